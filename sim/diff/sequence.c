/* sequence.c -- see sequence.h.
 *
 * Small tensors wait for others, so that each thread has one; of a large one every thread has pieces. What is told
 * of them keeps its order. */
#include "sequence.h"

#include "../array/need.h"
#include "../pass/pass.h"
#include "order.h"
#include "impl.h"

#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 256,           /* tensors that wait at most          */
    BATCH_BYTES = 8 << 20, /* and bytes of them, on either side */
    SMALL = 1 << 20        /* bytes of a tensor that waits       */
};

/* The tensors of a step, and where names are. */
typedef struct stage {
    side_group g;
    const side_tensor **by_name;
} stage;

typedef struct sequence {
    side *sides[2];
    const tolerance *within;
    sequence_told *told;
    void *context;
    stage now[2], before[2];
    match_list pairs;
    diff_shift shift;
    size_t step;       /* of A's list, that is compared */
    comparison *batch; /* that wait, and of each: */
    sequence_entry *entries;
    pass_queue queue;
} sequence;

/* ---- the step before ---- */

static int compare_names(const side_tensor *x, const side_tensor *y)
{
    const int c = strcmp(x->series, y->series);
    if (c)
        return c;
    return (x->file->said.rank > y->file->said.rank) - (x->file->said.rank < y->file->said.rank);
}

static int by_name(const void *a, const void *b)
{
    return compare_names(*(const side_tensor *const *)a, *(const side_tensor *const *)b);
}

static void index_names(stage *s)
{
    s->by_name = need_memory(s->g.n, sizeof *s->by_name);
    for (size_t i = 0; i < s->g.n; i++)
        s->by_name[i] = &s->g.tensors[i];
    if (s->g.n)
        qsort(s->by_name, s->g.n, sizeof *s->by_name, by_name);
}

static const side_tensor *find_before(const stage *s, const side_tensor *t)
{
    if (!s->by_name || !t || s->g.n == 0)
        return NULL;
    const side_tensor *const *found = bsearch(&t, s->by_name, s->g.n, sizeof *s->by_name, by_name);
    return found ? *found : NULL;
}

static void clear_stage(stage *s)
{
    free(s->by_name);
    s->by_name = NULL;
    diff_side_clear(&s->g);
}

/* ---- tensors ---- */

static void look(void *context, int i, int lane)
{
    sequence *s = context;
    (void)lane;
    diff_compare_look(&s->batch[i]);
}

static int tell(void *context, int i, int stopped)
{
    sequence *s = context;
    comparison *c = &s->batch[i];
    c->c.elsewhere = 0;
    c->failed |= stopped; /* nobody is told */
    if (c->measured && !c->failed && c->c.all.differ)
        c->failed = diff_shift_look(&s->shift, s->step, &c->c, &c->error);
    diff_compare_end(c);
    const int code = c->failed && !stopped ? input_failed(&s->sides[1]->in, &c->error) : 0;
    return code || stopped ? code : s->told(s->context, &s->entries[i]);
}

static uint64_t bytes_of(const side_tensor *t)
{
    return t && t->format ? t->count * mpsim_format_code_bytes(t->format) : 0;
}

static void add(sequence *s, const sequence_entry *e, int lanes)
{
    comparison *c = &s->batch[s->queue.n];
    s->entries[s->queue.n] = *e;
    s->entries[s->queue.n].compared = c;
    c->within = s->within;
    for (int k = 0; k < 2; k++) {
        c->c.sides[k] = s->sides[k];
        c->c.tensors[k] = e->tensors[k];
        c->c.before[k] = find_before(&s->before[k], e->tensors[k]);
    }
    c->c.step_before = s->before[0].g.of ? s->before[0].g.step : -1;
    diff_compare_begin(c, lanes);
}

/* Files that nothing waits for may be closed. */
static int pin(sequence *s, int code)
{
    for (int k = 0; k < 2 && s->queue.n == 0; k++)
        diff_side_pin(s->sides[k]);
    return code;
}

static int put(sequence *s, const sequence_entry *e)
{
    const uint64_t a = bytes_of(e->tensors[0]), b = bytes_of(e->tensors[1]), bytes = a > b ? a : b;
    const int alone = bytes >= SMALL, code = alone ? pin(s, pass_alone(&s->queue)) : 0;
    if (code)
        return code;
    add(s, e, alone ? pass_lanes() : 1);
    return pin(s, pass_put(&s->queue, bytes, alone));
}

static int compare_steps(sequence *s)
{
    const side_group *a = &s->now[0].g, *b = &s->now[1].g;
    int code = diff_match_groups(&s->pairs, a, b);
    for (size_t i = 0; i < s->pairs.n && !code; i++) {
        const match_pair *p = &s->pairs.pairs[i];
        const sequence_entry e = {
            .steps = {a->step, b->step},
            .tensors = {p->a == SIZE_MAX ? NULL : &a->tensors[p->a], p->b == SIZE_MAX ? NULL : &b->tensors[p->b]},
            .how = p->how,
            .sorted = a->sorted,
            .several = a->several || b->several};
        code = put(s, &e);
    }
    if (!code)
        code = pin(s, pass_flush(&s->queue));
    diff_match_clear(&s->pairs);
    return code;
}

/* ---- steps ---- */

static int load(sequence *s, int k, size_t step)
{
    stage *now = &s->now[k];
    int code = diff_side_load(&now->g, s->sides[k], step);
    if (code)
        return code;
    diff_order_group(&now->g);
    index_names(now);
    return 0;
}

static int run_step(sequence *s, size_t i, size_t k)
{
    int code = load(s, 0, i);
    s->step = i;
    if (!code)
        code = load(s, 1, k);
    if (!code)
        code = compare_steps(s);
    for (int which = 0; which < 2; which++) {
        clear_stage(&s->before[which]);
        s->before[which] = s->now[which];
        memset(&s->now[which], 0, sizeof s->now[which]);
    }
    return code;
}

static int missing_step(sequence *s, int which, int64_t step)
{
    const sequence_entry e = {.steps = {step, step}, .missing = which};
    return s->told(s->context, &e);
}

static int has_common_step(const side *a, const side *b)
{
    for (size_t i = 0, k = 0; i < a->n_steps && k < b->n_steps;) {
        if (a->steps[i].step == b->steps[k].step)
            return 1;
        if (a->steps[i].step < b->steps[k].step)
            i++;
        else
            k++;
    }
    return 0;
}

/* The steps that both have, and those that one lacks, in their order. */
static int run_steps(sequence *s)
{
    const side *a = s->sides[0], *b = s->sides[1];
    int code = 0;
    if (a->n_steps == 1 && b->n_steps == 1)
        return run_step(s, 0, 0);
    if (!has_common_step(a, b))
        return fail(EXIT_DATA, "diff: A and B have no step in common");
    for (size_t i = 0, k = 0; (i < a->n_steps || k < b->n_steps) && !code;) {
        const int x = i < a->n_steps, y = k < b->n_steps;
        const int c = x && y ? (a->steps[i].step > b->steps[k].step) - (a->steps[i].step < b->steps[k].step) : y - x;
        code = c == 0 ? run_step(s, i, k) : missing_step(s, c < 0, c < 0 ? a->steps[i].step : b->steps[k].step);
        i += c <= 0;
        k += c >= 0;
    }
    return code;
}

int diff_sequence_run(side *a, side *b, const tolerance *within, sequence_told *told, void *context)
{
    sequence s = {.sides = {a, b}, .within = within, .told = told, .context = context};
    s.shift.a = a;
    s.queue = (pass_queue){.run = look, .tell = tell, .context = &s, .room = BATCH, .most = BATCH_BYTES};
    s.batch = need_memory(BATCH, sizeof *s.batch);
    s.entries = need_memory(BATCH, sizeof *s.entries);
    const int code = run_steps(&s);
    for (int k = 0; k < 2; k++) {
        clear_stage(&s.now[k]);
        clear_stage(&s.before[k]);
    }
    diff_shift_clear(&s.shift);
    free(s.batch);
    free(s.entries);
    return code;
}
