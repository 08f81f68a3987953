/* arith.c -- operations by name, one at a time and over arrays; see mpsim/arith.h. */
#include <mpsim/arith.h>

#include "../base/codes.h"
#include "../base/counts.h"
#include "../base/words.h"
#include "../round/rng.h"
#include "scalar.h"

/* ---- names ---- */

static const struct {
    const char *name;
    int operands;
} ops[MPSIM_OPS] = {
    [MPSIM_OP_CONVERT] = {"convert", 1}, [MPSIM_OP_ADD] = {"add", 2},
    [MPSIM_OP_SUB] = {"sub", 2},         [MPSIM_OP_MUL] = {"mul", 2},
    [MPSIM_OP_DIV] = {"div", 2},         [MPSIM_OP_SQRT] = {"sqrt", 1},
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

uint64_t mpsim_arith_apply(const mpsim_arith *o, uint64_t a, uint64_t b, uint64_t c,
                           uint32_t random, unsigned *flags)
{
    unsigned ignored;
    return mpsim_scalar_arith(o, a, b, c, random, flags ? flags : &ignored);
}

unsigned mpsim_arith_tiny(const mpsim_arith *o, uint64_t a, uint64_t b, uint64_t c, uint32_t random)
{
    unsigned raised;
    return mpsim_scalar_tiny(&o->result, &o->rounding, mpsim_scalar_exact(o, a, b, c, &raised),
                             random);
}

int mpsim_compare(const mpsim_format *fa, uint64_t a, const mpsim_format *fb, uint64_t b)
{
    return mpsim_number_compare(mpsim_scalar_unpack(fa, a), mpsim_scalar_unpack(fb, b));
}

/* ---- arrays ---- */

mpsim_status mpsim_arith_array(const mpsim_arith *o, const mpsim_rng *rng, void *result,
                               const void *a, const void *b, const void *c, size_t n,
                               mpsim_counts *counts)
{
    if (mpsim_arith_check(o) != MPSIM_OK)
        return MPSIM_EINVAL;
    const void *const from[3] = {a, b, c};
    const int operands = ops[o->op].operands;
    const int stochastic = mpsim_is_stochastic(o->rounding.mode);
    size_t bytes[3] = {0, 0, 0};
    if (stochastic && !rng)
        return MPSIM_EINVAL;
    if (n > 0 && !result)
        return MPSIM_EINVAL;
    for (int i = 0; i < operands; i++) {
        if (n > 0 && !from[i])
            return MPSIM_EINVAL;
        bytes[i] = mpsim_format_code_bytes(&o->operand[i]);
    }
    const size_t result_bytes = mpsim_format_code_bytes(&o->result);
    mpsim_counts sum = {0, 0, 0, 0, 0};
    for (size_t i = 0; i < n; i++) {
        uint64_t code[3] = {0, 0, 0};
        unsigned flags;
        for (int j = 0; j < operands; j++)
            code[j] = mpsim_code_load(from[j], bytes[j], i);
        const uint32_t random =
            stochastic ? mpsim_rng_word(rng->seed, rng->stream, rng->index + i) : 0;
        const uint64_t z = mpsim_scalar_arith(o, code[0], code[1], code[2], random, &flags);
        mpsim_code_store(result, result_bytes, i, z);
        mpsim_count_flags(&sum, flags);
    }
    if (counts)
        mpsim_counts_add(counts, &sum);
    return MPSIM_OK;
}

mpsim_status mpsim_compare_array(const mpsim_format *fa, const mpsim_format *fb, int8_t *order,
                                 const void *a, const void *b, size_t n)
{
    if (mpsim_format_check(fa) != MPSIM_OK || mpsim_format_check(fb) != MPSIM_OK)
        return MPSIM_EINVAL;
    if (n > 0 && (!order || !a || !b))
        return MPSIM_EINVAL;
    const size_t a_bytes = mpsim_format_code_bytes(fa), b_bytes = mpsim_format_code_bytes(fb);
    for (size_t i = 0; i < n; i++)
        order[i] = (int8_t)mpsim_compare(fa, mpsim_code_load(a, a_bytes, i), fb,
                                         mpsim_code_load(b, b_bytes, i));
    return MPSIM_OK;
}
