/* dot.h -- dot products and matrix products under accumulation models.
 *
 * A dot product c + a[0] b[0] + ... + a[K-1] b[K-1] in floating point has as many answers as there
 * are ways to add. A model is one of them, completely: which products are formed, how they are
 * aligned and added, in which order, and where something is rounded. Models of tensor cores
 * reproduce the recorded outputs of the hardware bit for bit; the row of a model says how well
 * the model is known.
 *
 * No result depends on the floating-point environment of the caller, which is left as it is. */
#ifndef MPSIM_DOT_H
#define MPSIM_DOT_H

#include <mpsim/round.h>

MPSIM_BEGIN

/* How the accumulator s takes up the next products, and how many at once: an addition. */
typedef enum mpsim_addition {
    MPSIM_ADDITION_EXACT,  /* all products of the chunk and s: one exact sum                   */
    MPSIM_ADDITION_FMA,    /* s = accumulator(a b + s), one product at a time                  */
    MPSIM_ADDITION_MULADD, /* s = accumulator(s + product(a b)), one product at a time         */
    MPSIM_ADDITION_FUSED,  /* `length` products and s at a time: see below                     */
    MPSIM_ADDITION_STAGED, /* the same in two stages: products first, then their sum and s     */
    MPSIM_ADDITION_GROUPED /* the same with exact sums of groups, scaled: see below            */
} mpsim_addition;

/* With length = 0 MPSIM_ADDITION_EXACT adds all products of the chunk at once, and pairwise sums make one
 * tree of them. With length = n they add n products at a time, each time to s, and an exact sum of zero
 * is +0 then. */

/* MPSIM_ADDITION_FUSED, that of tensor cores (a block fused multiply-add): L = length products and
 * the accumulator are added in fixed point, without normalising in between. With p the explicit
 * significand bits of a format, a number is s 2^(e - p): s = 2^p + T and e = E - bias for normal
 * numbers, s = T and e = emin for subnormal ones (where operand_emin is lower than emin: s 2^n and
 * e = emin - n, with the largest n that leaves e >= operand_emin and s < 2^(p + 1)). A product has
 * S = s_a s_b, scaled 2^-(p_a + p_b), and e = e_a + e_b; it is not normalised (S may be as large as
 * 4 - ulp), unless `normalised` is 1. Then
 *
 *   1. terms that are zero are dropped; a last addition of less than L products has fewer terms;
 *   2. E = the largest e of all terms, and not less than `floor`;
 *   3. every term is aligned to units of 2^(E - fraction), by `alignment`;
 *   4. the aligned terms are added exactly; T is the sum;
 *   5. s = accumulator(T 2^(E - fraction)), rounded once. Where that is a zero, it is +0, whatever the
 *      mode and the signs. What overflows becomes infinity also when rounding toward
 *      zero (unless the overflow choice is MPSIM_OVERFLOW_MAX).
 *
 * A NaN, an infinity times zero, or infinities of both signs among the terms give a NaN, with a
 * clear sign and no payload as input of the NaN choices; else an infinity gives that infinity.
 * MPSIM_ADDITION_EXACT does the same; MPSIM_ADDITION_FMA and _MULADD are operations of
 * mpsim/arith.h, on the operands in the order written here (a, b, s; s, product), as is the sum of
 * chunks. */

/* MPSIM_ADDITION_STAGED, that of AMD CDNA3, with e and S of a product as above:
 *
 *   1. a product with e, or e + 1 where S >= 2, above the exponent of the accumulator's largest number is
 *      an infinity;
 *   2. product k goes to sum k mod `ways`. In each sum the products are aligned to their largest
 *      exponent, truncated to `fraction` bits below it and added exactly, without a product
 *      the sum is 0;
 *   3. with more than one, sums are rounded toward -infinity to `fraction` bits below the largest of
 *      those exponents, E', and added exactly;
 *   4. E = the largest of E', the exponent of s and emin of the accumulator. The sum of the products
 *      is rounded toward -infinity to kept + 1 bits below E, s to `fraction` bits below E (with
 *      `drop` = 1, s counts as 0 where its exponent is below E - fraction - 1);
 *   5. these two are added exactly; the sum is rounded toward -infinity to `kept` bits below its own
 *      exponent, or emin if that is larger;
 *   6. s = accumulator(that). An exact zero is +0.
 *
 * MPSIM_ADDITION_GROUPED, that of NVIDIA's block-scaled fp4, without scales as if all were 1:
 *
 *   1. the products of `group` neighbours are added exactly: P. With the significands of the scales of
 *      their blocks, S = s_x s_y (a subnormal scale is not normalised), and their exponents, e = e_x + e_y,
 *      the term of the group is P S 2^e; its exponent is e, of whatever size P S is;
 *   2. groups whose products are all zero, or whose S is, are dropped, as is a zero s;
 *   3. from there as MPSIM_ADDITION_FUSED, from step 2 on.
 *
 * NaNs and infinities of both are those of MPSIM_ADDITION_FUSED; a scale that is NaN makes every product of
 * its block one. */
typedef enum mpsim_alignment {
    MPSIM_ALIGN_TRUNCATE, /* the magnitude is truncated: what hardware does                    */
    MPSIM_ALIGN_FLOOR,    /* toward -infinity, as two's complement shifts would                */
    MPSIM_ALIGN_NEAREST   /* to nearest, ties to even                                          */
} mpsim_alignment;

/* The order in which products meet. */
typedef enum mpsim_order {
    MPSIM_ORDER_SEQUENTIAL, /* k ascending                                                     */
    MPSIM_ORDER_PAIRWISE,   /* products p[k] = product(a[k] b[k]); neighbours are added,
                               accumulator(p[0] + p[1]), accumulator(p[2] + p[3]), ..., an odd last
                               one passes; again, until one is left; then accumulator(s + it).
                               MULADD only.                                                     */
    MPSIM_ORDER_QUADS,      /* in each chunk first the products with k mod 4 in {0, 1}, then the
                               others, each group ascending; a short chunk is filled up with
                               products that are zero. FUSED only, chunk a multiple of 4, at
                               most 4096.                                                       */
    MPSIM_ORDER_ODD_FIRST,  /* k = 1, 0, 3, 2, ...: the second of two neighbours first. An odd last
                               product follows one that is +0. FMA and MULADD.                  */
    MPSIM_ORDER_LANES       /* in chunks, `length` = L sums from +0: product k of the chunk goes to sum
                               k mod L (roundings count sum by sum); then these are added as PAIRWISE adds products, and what comes
                               of it is t. FMA and MULADD, with chunks.                         */
} mpsim_order;

/* Further behaviour of instructions of CPUs and AMD: bits of `traits`. Not with FUSED and similar models. */
enum {
    MPSIM_TRAIT_FLUSH_OPERANDS = 1, /* a subnormal operand is read as zero of its sign            */
    MPSIM_TRAIT_FLUSH_SUMS = 2,     /* so is an accumulator, c too; and what a product, an addition or outer
                                   gives becomes zero of its sign where it is tiny: smaller than the
                                   smallest normal number also when it is rounded, by the same random
                                   bits, with unbounded exponent range (MPSIM_TINY_AFTER in round.h) */
    MPSIM_TRAIT_FILLED = 4,         /* of chunks, PAIRWISE or EXACT: t is made of the products alone, without a
                                   first +0; a short chunk is filled up with products that are +0 */
    MPSIM_TRAIT_OVERFLOW = 8,       /* what overflows becomes infinity in every mode (unless the overflow
                                   choice is MPSIM_OVERFLOW_MAX)                                 */
    MPSIM_TRAIT_NAN_MINUS = 16,     /* the NaN of an operation without a value has its sign set       */
    MPSIM_TRAIT_PLUS_ZERO = 32,     /* where subnormal numbers are read as zeros, these and -0 are +0  */
    MPSIM_TRAITS = 63
};

/* A place where something is rounded: a format and how. */
typedef struct mpsim_rounded {
    mpsim_format format;
    mpsim_rounding rounding; /* scale 1, no flushed inputs, not MPSIM_NANS_ONES_OR_CUT: no payload reaches a sum */
} mpsim_rounded;

enum { MPSIM_MODEL_NO_FLOOR = -32768, MPSIM_MODEL_OWN_EMIN = 32767 };

/* How a row is known. */
typedef enum mpsim_evidence {
    MPSIM_EVIDENCE_DEFINED,  /* software: the definition itself                                 */
    MPSIM_EVIDENCE_VECTORS,  /* equal to recorded outputs of hardware in every bit              */
    MPSIM_EVIDENCE_REPORTED, /* found on hardware by the authors of the source; no recorded outputs
                               have been compared here                                        */
    MPSIM_EVIDENCE_MANUAL,   /* what the manual or an emulator says; no hardware compared       */
    MPSIM_EVIDENCE_NONE      /* a row with changes                                              */
} mpsim_evidence;

/* A model. c enters unrounded, as the first accumulator:
 *
 *   without chunks (chunk = 0): s = c; the additions over k; d = result(s).
 *   with chunks of n products: s = c; for each chunk, the last may be short:
 *     t = the additions over the chunk, from +0; s = outer(s + t). d = result(s).
 *
 * MPSIM_ADDITION_EXACT without chunks is result(c + exact sum of products), one rounding. With an
 * exact sum of zero, here and in every sum of two terms, the sign is that of IEEE 754: terms of one
 * sign keep it, else +0 (-0 in mode DOWN of the rounding that follows). */
typedef struct mpsim_model {
    char name[96];             /* canonical name; see mpsim_model_parse                               */
    uint8_t addition;          /* mpsim_addition                                                      */
    uint8_t order;             /* mpsim_order                                                         */
    uint8_t alignment;         /* mpsim_alignment; FUSED                                              */
    uint8_t normalised;        /* 1: products are normalised before they are aligned; FUSED           */
    uint8_t length;            /* products an addition, 1 to 128; EXACT, PAIRWISE: also 0, all; sums: LANES */
    uint8_t fraction;          /* bits kept below the largest exponent, 1 to 50; FUSED and its kin    */
    int16_t floor;             /* lower bound of the exponent of alignment, or MPSIM_MODEL_NO_FLOOR;
                           FUSED                                                               */
    int16_t operand_emin;      /* smallest exponent e of operands, if lower than emin of their format:
                           fp8 that is widened to fp16 first has -14; MPSIM_MODEL_OWN_EMIN; FUSED */
    uint8_t traits;            /* MPSIM_TRAIT_...                                                     */
    uint8_t ways, kept, drop;  /* see STAGED: 1 or 2; 1 to 40; 0 or 1                                 */
    uint8_t group;             /* products of a group, 1 to 128; GROUPED                              */
    uint8_t block;             /* elements of a line that share a scale, 0: there are no scales       */
    uint32_t chunk;            /* products a chunk; 0: no chunks                                      */
    mpsim_rounded product;     /* MULADD                                                       */
    mpsim_rounded accumulator; /* FMA, MULADD, FUSED; EXACT with chunks                        */
    mpsim_rounded outer;       /* with chunks                                                  */
    mpsim_rounded result;      /* format of c and d                                            */
    const char *architecture;  /* "hopper"; NULL for software models                           */
    const char *instruction;   /* "wgmma.m64nNk32"; NULL for software models                   */
    const char *operands;      /* names of the formats it takes, separated by spaces; NULL: any */
    const char *scales;        /* names of the formats of scales, or NULL                      */
    mpsim_evidence evidence;
    const char *unconfirmed; /* what is not settled about the row, or NULL                   */
    const char *source;
} mpsim_model;

/* mpsim_model_count, mpsim_model_at -- the table. mpsim_model_at fills *m with row i, or returns
 * MPSIM_ENOTFOUND past the end. Among the rows of an architecture that take the same operands to
 * the same result the first is the one that training uses by default. */
MPSIM_API size_t mpsim_model_count(void);
MPSIM_API mpsim_status mpsim_model_at(mpsim_model *m, size_t i);

/* mpsim_model_parse -- the model with that name, any letter case, '-' or '_': a row of the table,
 * possibly with changes: ROW[:change]...
 *
 *   FORMAT               every rounding is to this format: "fma:bf16", "pairwise:fp16"
 *   acc=FORMAT           format of the accumulator; also product=, outer=, result=
 *   round=MODE           mode of the accumulator; also product-round=, outer-round=, result-round=.
 *                        A stochastic mode takes 32 random bits or as many as its name says
 *   F=N, L=N             fraction; length, also of order=lanes, pairwise and exact sums
 *   ways= kept= drop= group=N      of STAGED and GROUPED additions
 *   chunk=N              products a chunk, 0: none
 *   floor=E, floor=none  lower bound of the exponent, -4000 to 4000
 *   align=truncate|floor|nearest    normalised=0|1
 *   order=sequential|pairwise|quads|odd-first|lanes
 *   flush=none|operands|sums|all   the traits of that name
 *   operand-emin=E|own   smallest exponent of operands, -4000 to 4000
 *
 * A format or mode whose name has a ':' is taken as long as possible: "fma:e5m7:fn:round=sr:16".
 * Changes apply from left to right. m->name becomes the canonical row name followed by the changes
 * as they were typed; a row with changes keeps its architecture and operands, but no evidence,
 * instruction or open questions.
 *
 * MPSIM_ENOTFOUND if the row, a format or a mode is not known; MPSIM_EINVAL for a change that is
 * none, comes twice, has no effect in the model (F= where nothing is FUSED, outer= without chunks,
 * order= of an exact sum), or gives an invalid model, and for NULL; MPSIM_ERANGE for a format outside
 * binary64, or if the name becomes longer than a name may be. *m is untouched then. */
MPSIM_API mpsim_status mpsim_model_parse(mpsim_model *m, const char *name);

/* mpsim_model_check -- MPSIM_OK if *m is consistent, else MPSIM_EINVAL. For models filled by hand, most
 * easily from a row: all four places must be valid, also those that the model does not use. */
MPSIM_API mpsim_status mpsim_model_check(const mpsim_model *m);

/* mpsim_model_accepts -- whether `operands` has both formats: what the hardware of a row takes (0 for NULL). The
 * functions below compute with any operands, if the model can: FUSED and STAGED need at most 60
 * and 48 explicit significand bits in both together, GROUPED sums that fit 60 bits. */
MPSIM_API int mpsim_model_accepts(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb);

/* mpsim_model_for -- the default row of an architecture for these operands and this result:
 * ("hopper", e4m3, e5m2, binary32). MPSIM_ENOTFOUND if there is none. */
MPSIM_API mpsim_status mpsim_model_for(mpsim_model *m, const char *architecture, const mpsim_format *fa,
                                       const mpsim_format *fb, const mpsim_format *result);

/* mpsim_model_for_blocks -- the row of an architecture that multiplies these elements with a scale in `scales` for every
 * `block` of them, to binary32: ("rtx-blackwell", e2m1, e2m1, 16, e4m3). MPSIM_ENOTFOUND if there is none. */
MPSIM_API mpsim_status mpsim_model_for_blocks(mpsim_model *m, const char *architecture, const mpsim_format *fa,
                                              const mpsim_format *fb, size_t block, const mpsim_format *scales);

/* mpsim_dot -- *d = c + a[0] b[0] + ... + a[n-1] b[n-1], by the scalar reference.
 *
 *   a, b  n codes each of formats fa, fb, as in mpsim_decode_array
 *   c, d  codes of m->result.format
 *   rng   the j-th rounding takes the random word of index rng->index + j; may be NULL unless a
 *         mode is stochastic. Roundings count in the order of the definition, products of a
 *         pairwise sum first; only those of a stochastic mode count.
 *
 * MPSIM_EINVAL if m or a format is invalid or a needed pointer is NULL, MPSIM_ERANGE if the model
 * cannot take the formats, MPSIM_ENOMEM (pairwise sums). *d is untouched then. */
MPSIM_API mpsim_status mpsim_dot(const mpsim_model *m, const mpsim_format *fa, const void *a, const mpsim_format *fb,
                                 const void *b, size_t n, uint64_t c, const mpsim_rng *rng, uint64_t *d);

/* The scales of an operand: line i (row i of a, column i of b) has the scale of code number
 * i stride + q for its elements q block to (q + 1) block - 1. Formats: e8m0 (any format without explicit
 * significand bits), and for GROUPED also e4m3; signs are ignored (ue4m3). */
typedef struct mpsim_scales {
    const mpsim_format *format;
    const void *codes;
    size_t stride;
} mpsim_scales;

/* mpsim_dot_scaled -- mpsim_dot for a model with block > 0, each operand with the scales of line 0.
 * MPSIM_EINVAL also if the model has no blocks or scales are missing, MPSIM_ERANGE for scales of
 * a format that the model cannot take. */
MPSIM_API mpsim_status mpsim_dot_scaled(const mpsim_model *m, const mpsim_format *fa, const void *a,
                                        const mpsim_scales *sa, const mpsim_format *fb, const void *b,
                                        const mpsim_scales *sb, size_t n, uint64_t c, const mpsim_rng *rng,
                                        uint64_t *d);

/* The steps of mpsim_dot, one at a time. Numbers are exact as binary64. */
typedef enum mpsim_dot_event {
    MPSIM_DOT_PRODUCT,  /* value = product(a[k] b[k]), k = first: MULADD                             */
    MPSIM_DOT_ADDITION, /* value = accumulator(x + products first to first + n - 1), of FUSED those of
                           `places`; MULADD: (x + y), y a product or, n = 0, a sum of a pairwise tree  */
    MPSIM_DOT_CHUNK,    /* value = outer(x + y), y the sum of a chunk                                */
    MPSIM_DOT_RESULT    /* value = result(x); of an exact sum without chunks, of x and n products    */
} mpsim_dot_event;

typedef struct mpsim_dot_step {
    mpsim_dot_event event;
    const mpsim_rounded *place; /* where value is rounded                                           */
    size_t first, n;
    double x, y, value;
    uint64_t code; /* of value                                                         */
    /* FUSED additions and their kin: places[i] of n products; of FUSED aligned = 1 if a term is not zero and all are finite:
     * then x is accumulator 2^unit and product i terms[i] 2^unit after alignment, and their sum is
     * sum 2^unit, before it is rounded. */
    const size_t *places;
    const int64_t *terms;
    int64_t accumulator, sum;
    int aligned, unit;
} mpsim_dot_step;

/* mpsim_dot_steps -- mpsim_dot, and see(context, step) for every step of it, in their order. Statuses as
 * there; after an error nothing was seen but with MPSIM_ENOMEM. */
MPSIM_API mpsim_status mpsim_dot_steps(const mpsim_model *m, const mpsim_format *fa, const void *a,
                                       const mpsim_format *fb, const void *b, size_t n, uint64_t c,
                                       const mpsim_rng *rng, uint64_t *d,
                                       void (*see)(void *context, const mpsim_dot_step *step), void *context);

/* A matrix in memory: row i, column j is code number i * stride + j, or j * stride + i if it is
 * transposed. */
typedef struct mpsim_matrix {
    const mpsim_format *format;
    const void *codes;
    size_t stride;
    int transposed;
} mpsim_matrix;

/* Threads that the caller lends: run calls task(i, job) for 0 <= i < n, in any order, on any
 * threads, and returns when all have returned. How many threads there may be decides how work is cut, no result. */
typedef struct mpsim_pool {
    void (*run)(void *self, size_t n, void (*task)(size_t i, void *job), void *job);
    void *self;
    size_t (*threads)(void *self); /* NULL: more than one */
} mpsim_pool;

/* mpsim_gemm -- d[i][j] = c[i][j] + sum over k of a[i][k] b[k][j], each by the model.
 *
 *   a, b     rows x depth and depth x columns (after transposition), any formats
 *   c        rows x columns in m->result.format, or NULL for +0
 *   d        rows x columns codes of m->result.format, row-major, d_stride codes a row; may be the
 *            codes of c if c has the same stride and is not transposed; must not overlap otherwise
 *   rng      element (i, j) is a dot product whose index starts at rng->index + 2^32 (i columns + j)
 *   pool     threads, or NULL: this one
 *
 * The bits do not depend on the threads, nor on the instruction set; every element is what
 * mpsim_dot gives. Fused additions with tensor-core formats (6 to 10 bytes of memory for an element
 * of an operand), chains, trees and chunks of formats of up to 50 bits where every place rounds to
 * nearest even (4 or 8), exact sums (8) and the additions of every tensor core of the table have fast paths. Errors as
 * mpsim_dot; MPSIM_EINVAL also if a stride is too small, or larger than memory can be, c has another format, or
 * pool->run is NULL; MPSIM_ENOMEM also
 * on the fast path, and for pairwise sums. After an error other than MPSIM_ENOMEM d is untouched. */
MPSIM_API mpsim_status mpsim_gemm(const mpsim_model *m, size_t rows, size_t columns, size_t depth,
                                  const mpsim_matrix *a, const mpsim_matrix *b, const mpsim_matrix *c, void *d,
                                  size_t d_stride, const mpsim_rng *rng, const mpsim_pool *pool);

/* mpsim_gemm_scaled -- mpsim_gemm for a model with block > 0 and the scales of both operands. Errors as
 * there and in mpsim_dot_scaled; a stride of scales must hold those of a line. */
MPSIM_API mpsim_status mpsim_gemm_scaled(const mpsim_model *m, size_t rows, size_t columns, size_t depth,
                                         const mpsim_matrix *a, const mpsim_scales *sa, const mpsim_matrix *b,
                                         const mpsim_scales *sb, const mpsim_matrix *c, void *d, size_t d_stride,
                                         const mpsim_rng *rng, const mpsim_pool *pool);

MPSIM_END

#endif
