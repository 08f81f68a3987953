/* reductions.c -- the reductions of reductions.h as checks: of each what is settled, then what is open. */
#include "reductions.h"

#include "checks.h"

#include <stdio.h>
#include <string.h>

enum { IS_ADD, IS_MIN, IS_MAX };
enum { IS_GLOBAL, IS_SHARED };

typedef struct reduction {
    const char *name, *format;
    int space, op, elements, traits, log_count;
} reduction;

static const reduction rows[] = {
#define ROW(ID, head, tail, form, space, format, op, elements, traits, log_count) \
    {"memory " head tail, format, IS_##space, IS_##op, elements, traits, log_count},
    GPU_REDUCTIONS(ROW)
#undef ROW
};

static void fill_arith(mpsim_arith *o, const reduction *r)
{
    const mpsim_format *f = mpsim_format_find(r->format);
    o->op = MPSIM_OP_ADD;
    o->result = o->operand[0] = o->operand[1] = o->operand[2] = *f;
    mpsim_rounding_preset(&o->rounding, mpsim_preset_find("cuda"), f);
    o->rounding.mode = MPSIM_ROUND_NEAREST_EVEN;
    o->rounding.flush_input = o->rounding.flush_output = r->traits & GPU_REDUCTION_FLUSHES;
}

static void fill(gpu_check *c, size_t row, int asked, int *log_count)
{
    static const int expected[] = {[IS_ADD] = GPU_ROUNDED, [IS_MIN] = GPU_LESSER, [IS_MAX] = GPU_GREATER};
    enum { QUESTION = 26 };
    const reduction *r = &rows[row];
    gpu_scalar *s = &c->scalar;
    s->unit = GPU_UNIT_REDUCE;
    s->instruction = (int)row;
    s->expected = expected[r->op];
    s->stream = 200000 + row;
    s->open = GPU_OPEN_NANS;
    s->asked = asked;
    s->elements = r->elements;
    s->is_shared = r->space == IS_SHARED;
    s->inputs = r->log_count == 32 ? GPU_INPUTS_EVERY : GPU_INPUTS_TRIPLES;
    fill_arith(&s->o, r);
    c->since = 90;
    c->question = asked == GPU_ASKED_OPEN;
    *log_count = c->question ? QUESTION : r->log_count;
    snprintf(c->name, sizeof c->name, "%s%s", r->name, c->question ? ", NaNs" : "");
}

size_t gpu_reduction_count(void)
{
    return 2 * (size_t)GPU_REDUCTION_ROWS;
}

int gpu_reduction_fill(gpu_check *c, size_t i, int *log_count)
{
    if (i >= 2 * GPU_REDUCTION_ROWS)
        return 0;
    fill(c, i % GPU_REDUCTION_ROWS, i < GPU_REDUCTION_ROWS ? GPU_ASKED_SETTLED : GPU_ASKED_OPEN, log_count);
    return 1;
}
