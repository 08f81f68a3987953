/* calc.c -- what an operation is; see calc.h. */
#include "calc.h"

#include "../cli/element.h"

int calculation_parse(calculation *c, const char *word)
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

void calculation_arith(const calculation *c, const target *t, const mpsim_format *operands, mpsim_arith *o,
                       mpsim_rounding *nearest)
{
    mpsim_arith_init(o, c->op, operands ? operands : &t->format, MPSIM_ROUND_NEAREST_EVEN);
    o->result = t->format;
    o->rounding = t->rounding;
    *nearest = t->rounding; /* the choices of the preset, too */
    nearest->mode = MPSIM_ROUND_NEAREST_EVEN;
}

int operand_number(double *x, const char *word)
{
    return number_parse(x, word + (word[0] == ' '));
}

const char *operand_file(char *const *words, int n)
{
    double x;
    for (int i = 0; i < n; i++)
        if (operand_number(&x, words[i]))
            return words[i];
    return NULL;
}
