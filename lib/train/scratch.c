/* scratch.c -- memory that operations of a pass take one after the other; see trainer.h.
 *
 * An evaluation has one memory for the copies of the weights of all layers, and one for the scores of their tiles.
 * With 124 million parameters, a copy for each layer would double the memory. */
#include "trainer.h"

#include <stdlib.h>

/* The entry of a use and format, made if there is none; NULL: out of memory. */
static train_scratch *entry(train_pass *p, const char *use, const mpsim_format *f)
{
    for (size_t i = 0; i < p->n_scratch; i++)
        if (strcmp(p->scratch[i].use, use) == 0 && mpsim_format_same(p->scratch[i].tensor.format, f))
            return &p->scratch[i];
    train_scratch *all = realloc(p->scratch, (p->n_scratch + 1) * sizeof *all);
    if (!all)
        return NULL;
    p->scratch = all;
    train_scratch *s = &all[p->n_scratch++];
    memset(s, 0, sizeof *s);
    snprintf(s->use, sizeof s->use, "%.23s", use);
    s->tensor.format = f;
    s->tensor.cols = 1;
    return s;
}

int train_borrow(train_pass *p, const char *use, train_tensor *x, float value, char *error)
{
    train_scratch *s = entry(p, use, x->format);
    if (s && s->n == s->room) {
        const size_t room = s->room ? 2 * s->room : 16;
        train_tensor **users = realloc(s->users, room * sizeof *users);
        if (users) {
            s->users = users;
            s->room = room;
        }
    }
    if (!s || s->n == s->room)
        return train_fail(error, "out of memory");
    s->users[s->n++] = x;
    s->value = value;
    if (s->tensor.rows < x->rows * x->cols)
        s->tensor.rows = x->rows * x->cols;
    return 0;
}

static int fill(train *t, train_scratch *s, char *error)
{
    const size_t n = s->tensor.rows;
    float *values = s->value != 0 ? malloc((n ? n : 1) * sizeof *values) : NULL;
    if (s->value == 0)
        return 0;
    if (!values)
        return train_fail(error, "out of memory");
    for (size_t i = 0; i < n; i++)
        values[i] = s->value;
    const int code = t->e->ops->put(t->e, &s->tensor, values);
    free(values);
    return code ? train_engine_failed(t, s->use, error) : 0;
}

int train_scratch_open(train *t, train_pass *p, char *error)
{
    for (size_t i = 0; i < p->n_scratch; i++) {
        train_scratch *s = &p->scratch[i];
        if (t->e->ops->alloc(t->e, &s->tensor))
            return train_engine_failed(t, s->use, error);
        if (fill(t, s, error))
            return -1;
        for (size_t k = 0; k < s->n; k++) {
            s->users[k]->data = s->tensor.data;
            s->users[k]->inverse = 1;
        }
    }
    return 0;
}

void train_scratch_close(train *t, train_pass *p)
{
    for (size_t i = 0; i < p->n_scratch; i++) {
        if (p->scratch[i].tensor.data)
            t->e->ops->release(t->e, &p->scratch[i].tensor);
        free(p->scratch[i].users);
    }
    free(p->scratch);
}
