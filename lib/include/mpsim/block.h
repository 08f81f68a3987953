/* block.h -- scaled quantisation: per tensor, per row, per block; FP8, MX and FP4 recipes.
 *
 * A tensor is a matrix of rows x cols, row-major (a tensor of more dimensions: cols is the last
 * one). Every block of it, block_rows x block_cols elements, shares a scale s; an element x is
 * stored as the code of x * s (or x / s) and represents the value of that code divided by s. Blocks at the edges
 * are smaller. Inputs are binary32 values; needs the default floating-point environment. */
#ifndef MPSIM_BLOCK_H
#define MPSIM_BLOCK_H

#include <mpsim/blockstats.h>
#include <mpsim/format.h>
#include <mpsim/rng.h>
#include <mpsim/round.h>
#include <mpsim/stats.h>

MPSIM_BEGIN

/* How the scale of a block comes from the largest magnitude in it, amax. Each rule brings its
 * source's cast of the elements and its order of dequantisation. Rules of TransformerEngine, GIVEN
 * and AMAX_DEEPSEEK (Triton's max ignores NaN) drop NaN from amax, so that it stays in its element; in
 * the others a NaN makes amax NaN. */
typedef enum mpsim_scale_rule {
    MPSIM_SCALE_E8M0_FLOOR,    /* OCP MX: 2^(floor(log2 amax) - emax); elements may saturate     */
    MPSIM_SCALE_E8M0_EVEN,     /* torchao: amax rounded to the element's significand first       */
    MPSIM_SCALE_E8M0_CEIL,     /* torchao: 2^(ceil(log2 amax) - emax)                            */
    MPSIM_SCALE_E8M0_RCEIL,    /* amax / max rounded up to a power of two; inf and NaN: code 255 */
    MPSIM_SCALE_E8M0_TE,       /* the same as TransformerEngine has it: inf: code 254            */
    MPSIM_SCALE_E8M0_MICROX,   /* microxcaling: FLOOR of log2 rounded to binary32, as torch has it (just
                                  below a power of two: that power), with its own limits;
                                  elements by its own arithmetic: -0 becomes +0                  */
    MPSIM_SCALE_AMAX_TE,       /* TransformerEngine compute_scale_from_amax: f32(max / amax)     */
    MPSIM_SCALE_AMAX_TORCHAO,  /* torchao float8: f32(max / max(amax, 1e-12)), in binary64       */
    MPSIM_SCALE_MSAMP,         /* MS-AMP: 2^-margin times the power of two below max / amax; an
                                  amax of 0 or NaN keeps the scale so far, inf gives 1 over it   */
    MPSIM_SCALE_NVFP4_TE,      /* e4m3 block scale s under a binary32 tensor scale; an element stands
                                  for q * ((s * amax of the tensor) * (1 / 2688)), in binary32, as
                                  TransformerEngine's dequantize_nvfp4.cuh has it                */
    MPSIM_SCALE_NVFP4_TORCHAO, /* the same as torchao has it: a NaN in the tensor makes every value NaN;
                                  codes then follow its payload, in torch that of the NaN which the
                                  reduction keeps                                                */
    MPSIM_SCALE_GIVEN,         /* the caller's: delayed scaling, see mpsim/recipe.h              */
    /* The first four as torchao 0.18 has them. Under code 0 elements are divided by 2^-126 (RCEIL:
     * by 1), yet the code is 2^-127. An infinite amax has exponent 128 (RCEIL: code 254). Under
     * code 255 finite elements become 0 (RCEIL: NaN). RCEIL takes the ceiling of log2 rounded to
     * binary32. */
    MPSIM_SCALE_TORCHAO_018_FLOOR,
    MPSIM_SCALE_TORCHAO_018_EVEN,
    MPSIM_SCALE_TORCHAO_018_CEIL,
    MPSIM_SCALE_TORCHAO_018_RCEIL,
    MPSIM_SCALE_NVFP4_1LEVEL,  /* NVFP4_TORCHAO without a tensor scale: e4m3 of amax / 6, at least 2^-6 */
    MPSIM_SCALE_AMAX_DEEPSEEK, /* DeepSeek-V3 act_quant: s = f32(amax / max), elements divided by s,
                                  codes times s. s = 0 counts as 1 (there 0 / 0). Divisions are
                                  rounded correctly; on an H200 Triton and PyTorch multiply amax by
                                  f32(1 / max), often a last bit off, and Triton's x / s is up to
                                  1.9 ulp off (data/vectors/device)                                */
    MPSIM_SCALE_E8M0_DEEPGEMM  /* DeepGEMM ceil_to_ue8m0: f32(amax / max) rounded up to a power of two,
                                  2^-126 to 2^127; inf and NaN: code 255, for which it has none    */
} mpsim_scale_rule;

typedef struct mpsim_block_recipe {
    char name[32];
    char element[16];                /* format of the elements: "e4m3"                                      */
    uint8_t rule;                    /* mpsim_scale_rule                                                    */
    uint8_t power_of_two;            /* AMAX rules: the scale is cut down to a power of two (torchao: by a
                             binary32 log2, which may give the power just above)                 */
    uint8_t element_mode;            /* mpsim_round_mode of the elements; overflow and infinity saturate    */
    uint8_t sr_bits;                 /* of a stochastic element_mode; NVFP4_TE: 8, on its own grid rule     */
    uint32_t block_rows, block_cols; /* 0: the whole dimension                                   */
    double scale_for_inf;            /* AMAX_TE: what an infinite scale becomes: FLT_MAX, 0x1.fep127 (bf16
                             input), 65504 (fp16 input)                                          */
    double amax_epsilon;             /* AMAX rules, E8M0_DEEPGEMM: amax is at least this                    */
    double margin;                   /* MSAMP: exponents below; a whole number, -126 to 126                 */
    const char *source;
} mpsim_block_recipe;

/* The table; find ignores letter case and takes '_' for '-'; NULL for an unknown name, and past the end:
 *   te-current te-current-e5m2 te-current-pow2 te-block-1x128 te-block-1x128-e5m2 te-block-128x128
 *   mxfp8 mxfp8-e5m2 mxfp8-floor mxfp8-even mxfp8-ceil mxfp8-rceil mxfp6-e3m2 mxfp6-e2m3 mxfp4 nvfp4 nvfp4-2d
 *   nvfp4-sr nvfp4-torchao microx-e4m3 microx-e5m2 microx-e3m2 microx-e2m3 microx-e2m1
 *   torchao-tensorwise torchao-tensorwise-e5m2 torchao-rowwise ms-amp
 *   torchao-0.18-floor torchao-0.18-even torchao-0.18-ceil torchao-0.18-rceil
 *   nvfp4-1level deepseek-1x128 deepseek-128x128 deepgemm-1x128 deepgemm-128x128 */
MPSIM_API size_t mpsim_block_count(void);
MPSIM_API const mpsim_block_recipe *mpsim_block_at(size_t i);
MPSIM_API const mpsim_block_recipe *mpsim_block_find(const char *name);

/* mpsim_block_parse -- a recipe from its text, NAME[:WORD]...
 *
 *   NAME  of the table ('-' may be left out), or ELEMENT/RxC, ELEMENT/tensor, ELEMENT/row: blocks of R rows
 *         and C columns (1 to 4294967295), the whole tensor, a row, with binary32 scales
 *   WORD  floor even ceil rceil te microx  the rule of E8M0 scales: of mxfp8, mxfp8-e5m2, mxfp6-e3m2,
 *                                          mxfp6-e2m3, mxfp4 and ELEMENT/...
 *         torchao-0.18-floor -even -ceil -rceil  the rule of torchao 0.18's MX: of mxfp8, mxfp8-e5m2, mxfp6-e3m2,
 *                                          mxfp6-e2m3, mxfp4
 *         ue8m0, f32                       scales of ELEMENT/...: E8M0_DEEPGEMM; AMAX_DEEPSEEK, the default
 *         2d, sr                           of nvfp4: blocks of 16 x 16; elements rounded by random bits
 *         1level                           of nvfp4, nvfp4-torchao: NVFP4_1LEVEL, no tensor scale
 *         rht, rht16, rht32, rht64, rht128 of all: *transform, the caller's to do; rht is rht16
 *
 * b->name is the text in one spelling: "mxfp6-e3m2:ceil:rht16", words in the order of this list. *transform
 * is 0 or the size of the groups of mpsim_hadamard_groups. MPSIM_ENOTFOUND if NAME is not in the
 * table and has no '/', as names of formats; MPSIM_EINVAL, and in `error` one line without a full stop
 * that says why, for what else is wrong (`size` bytes, may be NULL; a longer line is cut). *b and *transform are touched
 * by MPSIM_OK only. */
MPSIM_API mpsim_status mpsim_block_parse(mpsim_block_recipe *b, unsigned *transform, const char *text, char *error,
                                         size_t size);

/* mpsim_block_check -- MPSIM_OK if the recipe is consistent and its element format is known:
 * signed, at most 8 bits, with a significand field; e2m1 under the NVFP4 rules. */
MPSIM_API mpsim_status mpsim_block_check(const mpsim_block_recipe *b);

/* mpsim_block_divides -- 1 if elements are divided by a block's `inverses` (AMAX_DEEPSEEK), 0 if they are
 * multiplied by its `scales`, both in binary32. */
MPSIM_API int mpsim_block_divides(const mpsim_block_recipe *b);

/* mpsim_block_scale_format -- the format of scale_codes, e8m0 or e4m3; NULL for rules whose scale is binary32. */
MPSIM_API const mpsim_format *mpsim_block_scale_format(const mpsim_block_recipe *b);

/* mpsim_block_grid -- number of blocks along both dimensions. */
MPSIM_API void mpsim_block_grid(const mpsim_block_recipe *b, size_t rows, size_t cols, size_t *grid_rows,
                                size_t *grid_cols);

/* Results of quantising; pointers may be NULL. Blocks are numbered row-major. */
typedef struct mpsim_blocks {
    uint8_t *codes;           /* rows x cols: the element's code                                     */
    float *values;            /* rows x cols: dequantised values, as the source dequantises, in
                             binary32                                                            */
    uint8_t *scale_codes;     /* per block: E8M0 or E4M3 code; 0 in rules whose scale is binary32    */
    float *scales;            /* per block: the factor that elements were multiplied by (AMAX_DEEPSEEK:
                             1 / s, of what they were divided by)                                */
    float *inverses;          /* per block: the factor beside the codes, tensor scale included; values
                             are formed as the source does, which may round twice          */
    float *amax;              /* per block, as the rule sees it (NaN dropped or not)                 */
    mpsim_cast_stats *casts;  /* added to: the errors of values against x, and the flags of
                                mpsim/round.h for x * scale; overflow counts the finite elements
                                that saturate, or stand for infinity or NaN                       */
    mpsim_counts *counts;     /* added to: the counts alone, those of casts, without the time that errors
                             take                                                                */
    mpsim_block_stats *stats; /* added to: casts, and what becomes of blocks                     */
    const float *origin;      /* rows x cols: what the errors of casts and stats are against (x stands
                                for it already, as values of another quantisation do); NULL: x */
    const float *block_amax;  /* per block: the largest magnitude of its elements that x does not hold, or of all of
                                them; amax is then the larger of this and that of x. The sign is ignored; NaN
                                makes amax NaN, or is dropped by the rule, which needs the largest number then.
                                x may so be a part of the tensor with parts of blocks: cut along the blocks of
                                the recipe as ever, it has the scales of the whole blocks; `amax` says what these
                                come from, and `stats` counts the elements of x, but no blocks. NULL: x is all */
} mpsim_blocks;

/* mpsim_block_quantize -- quantise a matrix.
 *
 *   amax    NVFP4: the tensor's largest magnitude (for the global scale); < 0: of x itself
 *   given   GIVEN: the scale; MSAMP: the scale so far; not negative, not NaN; else ignored
 *   rng     for a stochastic element_mode, element i of the matrix takes index rng->index + i
 *   tensor_scale  NULL, or receives NVFP4's global decode scale, 1 for others
 *
 * MPSIM_EINVAL if the recipe is invalid or a needed pointer is NULL; nothing is touched then. */
MPSIM_API mpsim_status mpsim_block_quantize(const mpsim_block_recipe *b, const float *x, size_t rows, size_t cols,
                                            float amax, float given, const mpsim_rng *rng, const mpsim_blocks *out,
                                            float *tensor_scale);

/* mpsim_block_bytes -- bytes of a quantised matrix: packed elements (each row of a block begins at
 * a byte), block scales, tensor scale; UINT64_MAX if they are more than that. */
MPSIM_API uint64_t mpsim_block_bytes(const mpsim_block_recipe *b, uint64_t rows, uint64_t cols);

/* mpsim_hadamard -- NVFP4's random Hadamard transform of groups of 16 along a row, in place, in
 * binary32: the signs of TransformerEngine, then the transform by butterflies of neighbours
 * (distance 1, 2, 4, 8), times 1/4. TransformerEngine multiplies by a matrix, in an order of its own.
 * MPSIM_EINVAL if n is no multiple of 16. */
MPSIM_API mpsim_status mpsim_hadamard(float *x, size_t n);

/* mpsim_hadamard_groups -- the transform of groups of `size` elements, in place, in binary32; a tail of fewer
 * stays as it is. 16: mpsim_hadamard. 32, 64, 128: the same with signs from the seed (element i of a
 * group is negated if the lowest bit of word i of (seed, stream 0) is set, see mpsim/rng.h) and times the
 * number nearest to 1 / sqrt(size). MPSIM_EINVAL for any other size. */
MPSIM_API mpsim_status mpsim_hadamard_groups(float *x, size_t n, unsigned size, uint64_t seed);

/* mpsim_hadamard_groups_back -- the inverse, which is the transposed matrix: the same butterflies, the signs after
 * them. What comes back is x up to the roundings of both. */
MPSIM_API mpsim_status mpsim_hadamard_groups_back(float *x, size_t n, unsigned size, uint64_t seed);

MPSIM_END

#endif
