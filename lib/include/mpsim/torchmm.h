/* mpsim/torchmm.h -- torch's products of bf16 and fp16 matrices on x86 CPUs that have instructions for them, whole: which
 * instruction adds up, how oneDNN cuts the depth, and what becomes of the sums.
 *
 *   AVX512  bf16: the model avx512-bf16-fp32; fp16: fma, as AVX512-FP16 widens. The depth is cut into chunks: of 512
 *           products, of 1024 where there are more than 1024 and the left operand is not transposed.
 *   AMX     bf16: the model amx-bf16-fp32, a chain of tiles of 32 products. Chunks are of `chunk` products, or there is one.
 *           A depth of less than 255 is not cut. Of n products that do not fill their last tile, where n is a multiple of
 *           twice the number of tiles, tiles are equal, or of 32 nevertheless: of 60 products two of 30, or 32 and 28. That
 *           is `tiles`. Products of few rows and a depth below 32 are AVX512's.
 *
 * With several threads the depth may be cut into parts first, of `part` products, and each of these into chunks: with AMX, and
 * where the left operand is transposed. The last part, and the last chunk of each part, may be shorter.
 *
 * All that depends on shape, layout, threads and caches. Where `threads` says how many threads torch has, it follows oneDNN's
 * rule (lib/dot/onednn.h) for the caches of Intel's CPUs with AMX so far, 48 KiB and 2 MiB; else it must be said.
 *
 * Each chunk is summed from +0; the sums of the chunks of a part, and then those of the parts, are added in their order in
 * binary32, to nearest even; the whole is rounded to the format of the operands, once.
 *
 * Source: torch 2.15.0 with oneDNN 3.13.3 as recorded in data/vectors/onednn, whose README says what else was found. Not
 * here: products with a vector, and those of 16^3 multiply-adds or fewer, for which torch does not call oneDNN. */
#ifndef MPSIM_TORCHMM_H
#define MPSIM_TORCHMM_H

#include <mpsim/dot.h>

MPSIM_BEGIN

typedef enum mpsim_torch_mm_by { MPSIM_TORCH_MM_AVX512, MPSIM_TORCH_MM_AMX } mpsim_torch_mm_by;

typedef enum mpsim_torch_mm_tiles {
    MPSIM_TORCH_MM_TILES_UNKNOWN,
    MPSIM_TORCH_MM_TILES_32,
    MPSIM_TORCH_MM_TILES_EQUAL
} mpsim_torch_mm_tiles;

typedef struct mpsim_torch_mm {
    char name[96];            /* as it was given                                        */
    uint8_t by;               /* mpsim_torch_mm_by                                      */
    uint8_t left_transposed;  /* 1: the left operand is transposed in torch             */
    uint8_t right_transposed; /* and the right one, as the weight of linear does        */
    uint8_t tiles;            /* AMX: mpsim_torch_mm_tiles                              */
    uint8_t cut;              /* it was said how the depth is cut                       */
    uint32_t part, chunk;     /* multiples of 32, chunk of AMX alone; 0: all            */
    uint32_t threads;         /* of torch, at most 256: cut by the rule; 0: as was said */
} mpsim_torch_mm;

/* mpsim_torch_mm_parse -- "torch-mm:avx512[:left-transposed][:part=N]", "torch-mm:amx[:part=N][:chunk=N][:tiles=32|equal]"
 * or, by the rule, "torch-mm:avx512|amx:threads=N[:left-transposed][:right-transposed]", any letter case; chunk=0: not cut.
 * MPSIM_ENOTFOUND for another name, MPSIM_EINVAL for a word that is none, comes twice or does not fit; *p is untouched
 * then. */
MPSIM_API mpsim_status mpsim_torch_mm_parse(mpsim_torch_mm *p, const char *name);

/* mpsim_torch_mm_chunk -- into chunks of how many products AVX512 cuts a depth; 0: it does not. */
MPSIM_API size_t mpsim_torch_mm_chunk(size_t depth, int left_transposed);

/* mpsim_torch_mm_tile -- how many products AMX's tiles of a chunk of n have if they are equal; 32 if they cannot be. */
MPSIM_API size_t mpsim_torch_mm_tile(size_t n);

/* mpsim_torch_mm_model -- the model of one chunk of operands of that format. MPSIM_ERANGE if it is not known,
 * MPSIM_EINVAL for a p->by that is none. */
MPSIM_API mpsim_status mpsim_torch_mm_model(mpsim_model *m, const mpsim_torch_mm *p, const mpsim_format *operands);

/* mpsim_torch_mm_run -- d = a b, rows x columns codes of the operands' format, row-major without gaps.
 *
 * MPSIM_EINVAL for what is inconsistent, MPSIM_ENOMEM, MPSIM_ERANGE for formats of operands and shapes of which it is not
 * known (see above): with AMX and without threads from a depth of 255 on if p->cut is 0, for a chunk whose tiles may be
 * equal if p->tiles is 0, and by the rule for more than 2^47 products. d is untouched then. */
MPSIM_API mpsim_status mpsim_torch_mm_run(const mpsim_torch_mm *p, size_t rows, size_t columns, size_t depth,
                                          const mpsim_matrix *a, const mpsim_matrix *b, void *d,
                                          const mpsim_pool *pool);

MPSIM_END

#endif
