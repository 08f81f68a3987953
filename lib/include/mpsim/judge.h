/* judge.h -- somebody else's results, judged: which row gives them, and what is wrong where none does. In libmpsim-trace.
 *
 * A row is a complete definition of an operation of one kind: of a cast the format, the mode and what becomes of overflow, infinity,
 * NaN and subnormal numbers. A judge computes the results of rows from the inputs and compares bits. Without a row to expect
 * (`like`), it searches the row with the fewest other results. Then it looks at the results that differ: what they are
 * (halfway between two numbers, subnormal, beyond the largest number), where they are (rows, columns, tiles), and which results they
 * would be elsewhere (neighbours that changed places, a transposed matrix, a factor). */
#ifndef MPSIM_JUDGE_H
#define MPSIM_JUDGE_H

#include <mpsim/dot.h>

MPSIM_BEGIN

/* Kinds of operations, and the roles of their arrays.
 *
 *   CAST   x: the numbers; y: the results, codes of the format of the cast, or numbers of a wider format that stand for them.
 *          A row is FORMAT[@PRESET][:WORD]...: the name of a format, the preset of a library (default ieee), and what differs
 *          from it: a mode of mpsim/round.h but the stochastic ones; overflow=inf, overflow=max; infinity=keep, infinity=max;
 *          no-inf=nan, no-inf=max; nan=signed, positive, payload, ones, ones-signed, minus-ones, ones-or-cut, cut (the leading bits of the
 *          payload, not made quiet; 1 where these are 0); no-nan=max, zero, antizero; negative=nan, min, abs; no-zero=min, nan, nan-min;
 *          flush-inputs; flush-below=least, normal (numbers below the least positive or the least normal number of the format count as
 *          zero); flush-subnormals; via=binary32, fp16, bf16 (numbers are rounded to that format first, to nearest even), or via=none;
 *          scale=X.
 *   QUANTISE  x: the numbers, a matrix; codes: of the elements, a byte each, or two in a byte, the first in bits 0 to 3; scales: of the
 *          blocks, in the order of the grid, of its transpose, or that of cuBLAS (swizzled), codes or numbers; y: the numbers that codes
 *          and scales stand for. codes or y must be there. A row is a recipe of mpsim_block_parse,
 *          or ELEMENT/RxC, /row or /tensor with :scale=bf16 or fp16, for x whose numbers are of that format: amax / max, x over it and a code
 *          times it are each rounded to the format, as torch does with such tensors; a scale of 0 counts as 1.
 *   PRODUCT  a: rows x depth; b: depth x columns, or columns x depth; d: the results; c, bias (a number for each column): added to the
 *          sums in binary32, before the rounding to the format of d, to nearest even; scale_a, scale_b: one number, or one for each row
 *          and each column, that sums are multiplied by in binary32 before that. A row is a model of mpsim_model_parse,
 *          or mkl-fp32[:parts=2] (MKL on AVX-512: chains of fma over blocks of 384 products, of one thread or of two), then +chunk=N:
 *          a new sum begins after N products, and sums are added in order in binary32; +split=N: N parts of the depth, whose sums are
 *          added in order in binary32, or stored and added in the format of +partials=FORMAT; +operands=FORMAT: operands are
 *          rounded first, to nearest even; +scales=first (the sum times the product of the scales), a-b (times scale_a, then
 *          scale_b) or b-a. Where all of d are numbers of bf16 or fp16, so is the result of the row.
 *   SUM      x: a matrix; y: the sum, or the mean, of each row, of each column, or of all numbers. A row is lanes:N[:math=FORMAT]
 *          (mpsim_sum_lanes) or a model of mpsim_model_parse, with factors of 1; then :reverse (from the last number to the first);
 *          :columns; :mean (the sum, rounded to binary32, is divided) or :mean-by-reciprocal (multiplied by f32(1 / n)).
 *   SOFTMAX  x, y. A row is softmax or log-softmax[:causal][:scale=X][:math=FORMAT]: mpsim_softmax_rows and mpsim_log_softmax; causal: of
 *          square matrices, one below the other; :sum=FORMAT: powers are added one after the other in a format (not with causal).
 *   NORM     x, y; weight, bias: a number for each column; eps: one number. A row is layernorm or rmsnorm[:eps=X][:math=FORMAT]:
 *          mpsim_rownorm_forward; :normalised=FORMAT instead of math: numbers are rounded to a format before they are multiplied by the
 *          weight; :inverse=FORMAT: the inverse root is rounded to a format; eps: of the row, else of the array, else 1e-5.
 *   ACTIVATION  x, y; of swiglu a row of x is gates, then values. A row is gelu, gelu-tanh, silu, swiglu, relu, sigmoid, tanh or
 *          exp[:math=FORMAT]: mpsim_activate.
 *   UPDATE   param, grad; m, v, vmax: the state before the step, zeros where they are not given; new_param, new_m, new_v, new_vmax: the
 *          results. A row is sgd, adam, adamw or lion@VARIANT[:SETTING=X]...[:step=N]: mpsim_optim_step, with settings by the names of
 *          mpsim/optim.h; parameters and moments are stored to nearest in their arrays' formats. Without @VARIANT the variant is searched,
 *          without `like` so are the algorithm, usual learning rates, decays and momenta, and one of the first 100 steps.
 *   ARITH    a, b, c: operands; y: the results, as many of each. A row is add, sub, mul, div, sqrt or fma (a b + c) of mpsim/arith.h[:MODE],
 *          rounded once to the format of y; :nan=RULE: a rule of CAST for the first NaN of a, b, c, or x86 (the first NaN, made quiet; the
 *          canonical one with its sign where no operand is NaN), arm (a signalling NaN first, c before a and b), last; without RULE a
 *          NaN is equal to every NaN; :flush-inputs; :flush-results (subnormal results become zeros), :flush-tiny (those that are tiny after
 *          rounding with unbounded exponents: FTZ of x86) or :flush-before (tiny before rounding: FZ of Arm); :overflow=max; :separate (of fma: the
 *          product is rounded first); :reciprocal (of div: a times 1 / b, both rounded); :via=FORMAT (rounded to it first).
 *   ATTENTION  q: queries x dim, k: keys x dim, v: keys x size, o: queries x size, each for all heads, one below the other; lse: for each query
 *          the largest score plus the logarithm of the sum of powers; o or lse must be there. heads: how many heads q has, how many k and v
 *          have, which several heads of q may share, and of how many batches these are (default: 1). mask and bias: queries x keys, for all
 *          heads, for each batch, for each head, or for each head of a batch; mask: bytes that are not 0 or numbers 0: keys that are seen;
 *          slopes, sinks: a number for each head. A score is scaled, capped, then the bias is added and the slope times the distance
 *          of the key from the query's own is subtracted (ALiBi); a sink is one more score without a value. A row is eager
 *          (P = softmax of whole rows of scores, then P V) or flash (mpsim/attention.h), then :model=NAME (of both products; changes as
 *          of a product behind it: model=hopper-bf16-fp32:F=14; default sequential); :s=FORMAT, :p=FORMAT: scores (after each step) and P
 *          are rounded to it; :causal (the last query belongs to the last key), :causal-first (the first to the first);
 *          :window=N: keys that a query sees to its own; :scale=X (default 1 / sqrt(dim)); :softcap=X: scores become X tanh(score / X). Of
 *          eager: :scale-on=queries, or both (queries and keys, by the root of the scale), rounded to their format; :upcast: to
 *          binary32. Of flash: :tile=N keys, :exp2, :reciprocal, :sum-rounded, :sink-first (the sink is in front of the first tile, not behind
 *          the last). lse is rounded to nearest even, once, whatever the end of the row is.
 *   SCALED_PRODUCT  a: rows x depth, b: columns x depth or depth x columns; bytes: two elements of e2m1 in each, the first in bits 0
 *          to 3; d: the results; scale_a, scale_b: one scale, one of each line, or a grid of those of blocks (1 x 32, 128 x 128, ...) in the
 *          order of the operand; bytes are e8m0, of blocks of 16 e4m3; tensor_a, tensor_b: one number each, and bias: of each column, that sums
 *          are multiplied by and that is added, in binary32. A row is dequant[:to=FORMAT] (elements times scales are rounded to a
 *          format, then multiplied), blocks (the sum of each block is multiplied by scale_a scale_b, and added, in binary32; :fma: in one rounding;
 *          :separate: by scale_a, then by scale_b) or native (models with scales), then :model=NAME (changes may follow; default
 *          sequential); :swizzled: scales lie in the order of cuBLAS.
 *
 * math: what every operation is rounded to, binary32 where nothing is said. Rows from SUM to UPDATE give numbers of binary32, which are rounded to
 * the format of y to nearest even, once; +round=MODE behind a row is another mode (not of ARITH, which has :MODE). +result=FORMAT is a
 * narrower format that has all numbers of y (of UPDATE: of param and new_param). A row without +result gets it where all results are
 * numbers of bf16 or fp16. A row of ARITH does not get it where the operation gives such numbers by itself. */
typedef enum mpsim_judge_kind {
    MPSIM_JUDGE_CAST,
    MPSIM_JUDGE_QUANTISE,
    MPSIM_JUDGE_PRODUCT,
    MPSIM_JUDGE_SUM,
    MPSIM_JUDGE_SOFTMAX,
    MPSIM_JUDGE_NORM,
    MPSIM_JUDGE_ACTIVATION,
    MPSIM_JUDGE_UPDATE,
    MPSIM_JUDGE_ARITH,
    MPSIM_JUDGE_ATTENTION,
    MPSIM_JUDGE_SCALED_PRODUCT,
    MPSIM_JUDGE_KINDS
} mpsim_judge_kind;

/* mpsim_judge_kind_name -- "cast"; NULL past the last one. mpsim_judge_roles -- the roles of a kind, up to NULL: first those that must
 * be there, then, behind a NULL, the others, up to a second NULL. */
MPSIM_API const char *mpsim_judge_kind_name(unsigned kind);
MPSIM_API const char *const *mpsim_judge_roles(mpsim_judge_kind kind);

/* An array of rows x columns codes, one row after the other, of mpsim_format_code_bytes each; format: NULL: bytes. */
typedef struct mpsim_judge_array {
    const char *role;
    const mpsim_format *format;
    const void *codes;
    size_t rows, columns;
} mpsim_judge_array;

enum {
    MPSIM_JUDGE_ROW = 128,
    MPSIM_JUDGE_ROWS = 32,
    MPSIM_JUDGE_PLACES = 8,
    MPSIM_JUDGE_FINDINGS = 12,
    MPSIM_JUDGE_TEXT = 256
};

/* A result that differs: codes of the array's format. exact: what was to be rounded; NaN where it is not one binary64 number. */
typedef struct mpsim_judge_place {
    size_t row, column;
    uint64_t found, expected;
    double exact;
} mpsim_judge_place;

/* Something that results which differ have in common: a word of mpsim_judge_causes, a sentence, and how many of them. */
typedef struct mpsim_judge_finding {
    const char *cause;
    char text[MPSIM_JUDGE_TEXT];
    uint64_t explains;
} mpsim_judge_finding;

typedef struct mpsim_judgement {
    const char *role;    /* of the array that was compared                            */
    mpsim_format format; /* of its codes */
    size_t rows, columns;
    uint64_t results, differ;      /* elements; those that are not the row's                    */
    char row[MPSIM_JUDGE_ROW];     /* `like`, or else the row with the fewest other results     */
    char nearest[MPSIM_JUDGE_ROW]; /* with `like`, where results differ: the row with the fewest other results */
    uint64_t nearest_differ;
    size_t same; /* rows that give the results of `row` for these inputs: the class */
    char class_rows[MPSIM_JUDGE_ROWS][MPSIM_JUDGE_ROW]; /* the first of them                 */
    size_t places, findings;
    mpsim_judge_place place[MPSIM_JUDGE_PLACES];       /* the first ones                           */
    mpsim_judge_finding finding[MPSIM_JUDGE_FINDINGS]; /* that which explains most comes first */
} mpsim_judgement;

/* mpsim_judge_causes -- the words of findings, up to NULL. */
MPSIM_API const char *const *mpsim_judge_causes(void);

/* mpsim_judge -- n arrays of the roles of a kind, in any order. like: a row, or NULL. pool: threads, or NULL; bits do not depend on
 * them.
 *
 * MPSIM_EINVAL if a role is missing, unknown or given twice, or shapes do not fit; MPSIM_ENOTFOUND if `like` is no row;
 * MPSIM_ERANGE if no row takes these formats; MPSIM_ENOMEM. One line in `error` (`size` bytes, may be NULL) says more. */
MPSIM_API mpsim_status mpsim_judge(mpsim_judgement *j, mpsim_judge_kind kind, const mpsim_judge_array *arrays, size_t n,
                                   const char *like, const mpsim_pool *pool, char *error, size_t size);

/* ---- inputs with a purpose ---- */

/* A small set of inputs for one call of a kernel, on which rows of a kind give different results wherever other inputs could tell them
 * apart; and the classes of rows that give the same results even here. */
enum { MPSIM_JUDGE_SET_ARRAYS = 3, MPSIM_JUDGE_SET_FORMATS = 3 };

typedef struct mpsim_judge_set {
    mpsim_judge_kind kind;
    mpsim_judge_array array[MPSIM_JUDGE_SET_ARRAYS]; /* of the kind's roles: x, a and b, q, k and v, or a, b, c */
    size_t arrays;
    size_t rows, classes;
    char (*row)[MPSIM_JUDGE_ROW]; /* the names of rows                                  */
    size_t *class_of;             /* the class of each row, 0 to classes - 1            */
    mpsim_format *format;         /* of the arrays, and of the results of a product     */
} mpsim_judge_set;

/* mpsim_judge_inputs -- a set for a row (its kind follows from the row: a format is a cast, a recipe a quantiser, a model a product, an operation
 * arithmetic), or for all rows of a kind, given by its name ("cast", "quantise", "product", "attention", "arith"). "arith:fma" is a row
 * of a kind: without a kind, fma is a model.
 *
 *   from  the format of the inputs; NULL: binary32, of a product what its model takes
 *
 * CAST      x: around every number of the target format (a selection if it has more than 8 bits): the number, halfway and a quarter
 *           of the way to the next one, each with its neighbours in `from`; the border of overflow; what is subnormal before or after the
 *           cast; zeros, infinities, NaNs. Rows: every preset with every mode, and of a single format every choice that acts in it.
 * QUANTISE  x: a matrix whose blocks have maxima at the borders of the scale rules; elements at ties under the scales; zeros; blocks
 *           with NaN, and, where a scale is that of one block, with infinities. Rows: all recipes.
 * PRODUCT   a: rows x depth, b: depth x columns: ordinary lines, wide exponents, cancellation, halfway cases, tiny and huge numbers, and
 *           specials in lines of their own; the depth is no multiple of the chunks of models. Rows: all that take these formats.
 *
 * ATTENTION  q: queries x dim, k: keys x dim, v: keys x size of one head: the largest scores grow from tile to tile and repeat, rows are flat
 *           or sharp, values cancel; the keys fill no tile. Rows: all with the mask, window, scale and cap of the row; `from` is the format
 *           of results, too, but bf16 of FP8.
 * ARITH     a, b, c, or as many as the operation of a row has: specials with specials, NaNs of each operand with NaNs of the others,
 *           ties, cancellation, results where the format begins and ends. Rows: of the operation, with every mode and every choice.
 *
 * MPSIM_ENOTFOUND if this is no row; MPSIM_ERANGE if the row does not take `from`; MPSIM_EINVAL; MPSIM_ENOMEM. *set is to be cleared after
 * MPSIM_OK only. One line in `error` says more. */
MPSIM_API mpsim_status mpsim_judge_inputs(mpsim_judge_set *set, const char *row, const mpsim_format *from,
                                          const mpsim_pool *pool, char *error, size_t size);
MPSIM_API void mpsim_judge_set_clear(mpsim_judge_set *set);

/* ---- tolerances with a reason ---- */

enum { MPSIM_JUDGE_REASON = 640 };

/* The largest error that a result of a row can have: relative times what `of` names, plus absolute. */
typedef struct mpsim_judge_tolerance {
    mpsim_judge_kind kind;
    double relative, absolute;
    double scales; /* QUANTISE: the largest error in units of the block's scale; else 0   */
    char of[64];   /* "|x|", "the block's largest magnitude", "sum |a b|"                */
    char reason[MPSIM_JUDGE_REASON];
} mpsim_judge_tolerance;

/* mpsim_judge_tolerance_of -- computed from the definition of the row; `reason` says how, and for which inputs.
 *
 *   from   CAST: the format of the inputs; NULL: binary32
 *   to     PRODUCT: the format of the results; NULL: that of the model
 *   depth  PRODUCT: how many products are added
 *
 * The bound is that of the worst inputs: some inputs come within a factor of two of it (tests/sim/t-judge-tolerance.c). MPSIM_ENOTFOUND
 * if this is no row, MPSIM_ERANGE if no bound is known for it, MPSIM_EINVAL; one line in `error` says more. */
MPSIM_API mpsim_status mpsim_judge_tolerance_of(mpsim_judge_tolerance *t, const char *row, const mpsim_format *from,
                                                const mpsim_format *to, size_t depth, char *error, size_t size);

MPSIM_END

#endif
