/* arith.c -- operations by name, one at a time and over arrays; see mpsim/arith.h. */
#include <mpsim/arith.h>

#include "../base/extent.h"
#include "../base/codes.h"
#include "../base/counts.h"
#include "../base/environment.h"
#include "../base/words.h"
#include "../round/rng.h"
#include "kernel/kernel.h"
#include "scalar.h"

/* ---- names ---- */

static const struct {
    const char *name;
    int operands;
} ops[MPSIM_OPS] = {
    [MPSIM_OP_CONVERT] = {"convert", 1}, [MPSIM_OP_ADD] = {"add", 2}, [MPSIM_OP_SUB] = {"sub", 2},
    [MPSIM_OP_MUL] = {"mul", 2},         [MPSIM_OP_DIV] = {"div", 2}, [MPSIM_OP_SQRT] = {"sqrt", 1},
    [MPSIM_OP_FMA] = {"fma", 3},
};

const char *mpsim_op_name(mpsim_op op)
{
    return (unsigned)op < MPSIM_OPS ? ops[op].name : NULL;
}

int mpsim_op_operands(mpsim_op op)
{
    return (unsigned)op < MPSIM_OPS ? ops[op].operands : 0;
}

mpsim_status mpsim_op_parse(mpsim_op *op, const char *name)
{
    if (!op || !name)
        return MPSIM_EINVAL;
    for (int i = 0; i < MPSIM_OPS; i++)
        if (mpsim_same_word(name, strlen(name), ops[i].name)) {
            *op = (mpsim_op)i;
            return MPSIM_OK;
        }
    return MPSIM_ENOTFOUND;
}

/* ---- descriptions ---- */

void mpsim_arith_init(mpsim_arith *o, mpsim_op op, const mpsim_format *f, mpsim_round_mode mode)
{
    o->op = op;
    o->result = *f;
    for (int i = 0; i < 3; i++)
        o->operand[i] = *f;
    mpsim_rounding_init(&o->rounding, mode);
}

mpsim_status mpsim_arith_check(const mpsim_arith *o)
{
    if (!o || (unsigned)o->op >= MPSIM_OPS || mpsim_format_check(&o->result) != MPSIM_OK ||
        mpsim_rounding_check(&o->rounding) != MPSIM_OK)
        return MPSIM_EINVAL;
    for (int i = 0; i < ops[o->op].operands; i++)
        if (mpsim_format_check(&o->operand[i]) != MPSIM_OK)
            return MPSIM_EINVAL;
    return o->rounding.scale == 1 ? MPSIM_OK : MPSIM_EINVAL;
}

/* ---- one element ---- */

uint64_t mpsim_arith_apply(const mpsim_arith *o, uint64_t a, uint64_t b, uint64_t c, uint32_t random, unsigned *flags)
{
    unsigned ignored;
    return mpsim_scalar_arith(o, a, b, c, random, flags ? flags : &ignored);
}

unsigned mpsim_arith_tiny(const mpsim_arith *o, uint64_t a, uint64_t b, uint64_t c, uint32_t random)
{
    unsigned raised;
    return mpsim_scalar_tiny(&o->result, &o->rounding, mpsim_scalar_exact(o, a, b, c, &raised), random);
}

int mpsim_compare(const mpsim_format *fa, uint64_t a, const mpsim_format *fb, uint64_t b)
{
    return mpsim_number_compare(mpsim_scalar_unpack(fa, a), mpsim_scalar_unpack(fb, b));
}

/* ---- arrays ----
 *
 * An array is worked on in blocks, by the kernel and, where that leaves something, the reference.
 * The result of a block is stored when it is complete: it may be the array of an operand. */

enum { BLOCK = MPSIM_ARITH_BLOCK };

typedef struct job {
    const mpsim_arith *o;
    const mpsim_rng *rng; /* NULL unless stochastic */
    void *result;
    const void *from[3];
    size_t bytes[3], result_bytes; /* of a code */
    mpsim_arith_kernel kernel;
    mpsim_arith_function *run; /* NULL: the reference does everything */
    int counting;
    mpsim_counts counts;
} job;

/* Element i by the reference. */
static uint64_t one(job *j, size_t i, uint32_t random)
{
    uint64_t code[3] = {0, 0, 0};
    unsigned flags;
    for (int k = 0; k < ops[j->o->op].operands; k++)
        code[k] = mpsim_code_load(j->from[k], j->bytes[k], i);
    const uint64_t z = mpsim_scalar_arith(j->o, code[0], code[1], code[2], random, &flags);
    mpsim_count_flags(&j->counts, flags);
    return z;
}

/* Elements i to i + n - 1, n <= BLOCK. */
static void run_block(job *j, size_t i, size_t n)
{
    uint64_t codes[BLOCK], left[BLOCK / 64] = {0};
    uint32_t room[BLOCK + MPSIM_RNG_ROOM];
    const uint32_t *words = j->rng ? mpsim_rng_words(room, j->rng, i, n) : NULL;
    size_t done = 0;
    if (j->run) {
        const void *from[3] = {NULL, NULL, NULL};
        for (int k = 0; k < ops[j->o->op].operands; k++)
            from[k] = (const unsigned char *)j->from[k] + i * j->bytes[k];
        done = j->run(&j->kernel, codes, left, j->counting ? &j->counts : NULL, from, words, n);
    }
    for (size_t w = 0; w < BLOCK / 64; w++)
        for (size_t k = 64 * w; left[w] != 0; left[w] >>= 1, k++)
            if (left[w] & 1)
                mpsim_code_store(codes, j->result_bytes, k, one(j, i + k, words ? words[k] : 0));
    for (size_t k = done; k < n; k++)
        mpsim_code_store(codes, j->result_bytes, k, one(j, i + k, words ? words[k] : 0));
    memcpy((unsigned char *)j->result + i * j->result_bytes, codes, n * j->result_bytes);
}

/* Check the arguments and prepare the job. */
static mpsim_status start(job *j, const mpsim_arith *o, const mpsim_rng *rng, size_t n)
{
    if (mpsim_arith_check(o) != MPSIM_OK || (n > 0 && !j->result) ||
        !mpsim_fits(n, mpsim_format_code_bytes(&o->result)))
        return MPSIM_EINVAL;
    for (int i = 0; i < ops[o->op].operands; i++) {
        if (n > 0 && !j->from[i])
            return MPSIM_EINVAL;
        j->bytes[i] = mpsim_format_code_bytes(&o->operand[i]);
        if (!mpsim_fits(n, j->bytes[i]))
            return MPSIM_EINVAL;
    }
    if (mpsim_is_stochastic(o->rounding.mode)) {
        if (!rng)
            return MPSIM_EINVAL;
        j->rng = rng;
    }
    j->o = o;
    j->result_bytes = mpsim_format_code_bytes(&o->result);
    j->run = mpsim_arith_kernel_init(&j->kernel, o, ops[o->op].operands);
    return MPSIM_OK;
}

mpsim_status mpsim_arith_array(const mpsim_arith *o, const mpsim_rng *rng, void *result, const void *a, const void *b,
                               const void *c, size_t n, mpsim_counts *counts)
{
    job j = {.result = result, .from = {a, b, c}, .counting = counts != NULL};
    const mpsim_status s = start(&j, o, rng, n);
    if (s != MPSIM_OK)
        return s;
    const mpsim_environment before = mpsim_environment_default();
    for (size_t i = 0; i < n; i += BLOCK)
        run_block(&j, i, n - i < BLOCK ? n - i : BLOCK);
    mpsim_environment_restore(before);
    if (counts)
        mpsim_counts_add(counts, &j.counts);
    return MPSIM_OK;
}
