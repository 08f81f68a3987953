/* calc.c -- what an operation is; see calc.h. */
#include "calc.h"

#include "../text/option.h"

int calc_parse(calculation *c, const char *word)
{
    if (mpsim_op_parse(&c->op, word) == MPSIM_OK) {
        *c = (calculation){mpsim_op_name(c->op), mpsim_op_operands(c->op), 0, c->op, 0};
        return 0;
    }
    if (mpsim_function_parse(&c->function, word) != MPSIM_OK)
        return -1;
    *c = (calculation){mpsim_function_name(c->function), 1, 1, MPSIM_OP_CONVERT, c->function};
    return 0;
}

const mpsim_format *calc_operand_format(const operand_formats *f, const target *result)
{
    return f->same ? &result->format : f->format;
}

mpsim_rounding calc_nearest(const target *t)
{
    mpsim_rounding nearest = t->rounding; /* the choices of the preset, too */
    nearest.mode = MPSIM_ROUND_NEAREST_EVEN;
    nearest.via_binary32 = 0;
    nearest.flush_input = 0;
    return nearest;
}

uint64_t calc_operand_code(const mpsim_format *f, const mpsim_rounding *nearest, const exact_number *x, unsigned *flags)
{
    if (!x->nan_of || !mpsim_format_same(x->nan_of, f))
        return exact_encode(f, nearest, x, 0, flags, NULL);
    *flags = MPSIM_FLAG_NAN;
    return x->nan;
}

int calc_flushes(const target *t, const exact_number *x, const mpsim_format *f)
{
    return t->rounding.flush_input && exact_is_below(x, mpsim_format_min_normal(f));
}

int calc_operand_is_number(const char *word)
{
    exact_number x;
    const char *text = word + (word[0] == ' ');
    return exact_is_code(text) || exact_parse(&x, text) == 0;
}

int calc_operand_value(exact_number *x, const operand_formats *f, const char *word)
{
    const element_kind kind = {.codes = f->codes, .ask = "--operands FORMAT"};
    return element_read(x, "calc", "operands", &kind, word + (word[0] == ' '));
}

const char *calc_operand_file(char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (!calc_operand_is_number(words[i]))
            return words[i];
    return NULL;
}
