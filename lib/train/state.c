/* state.c -- what a checkpoint holds beside tensors, as text; see train.h.
 *
 *   mpsim-train-state/1
 *   step 120
 *   scaler scale=0x1p+16 step=120 ...            (mpsim_scaler_save)
 *   age fc1.weight 119                           every parameter, in order
 *   fp8 fc1 act 0x1p+3 0x1p-3 0x0p+0 0x1.8p+1    scale, inverse, history but its last zeros
 *   end */
#include "run/fields.h"
#include "trainer.h"

#include <stdarg.h>
#include <stdlib.h>

/* ---- saving ---- */

typedef struct writer {
    char *text;
    size_t size, n; /* n: characters so far, whether they had room or not */
} writer;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
put(writer *w, const char *format, ...)
{
    const size_t room = w->n < w->size ? w->size - w->n : 0;
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(room ? w->text + w->n : NULL, room, format, list);
    va_end(list);
    w->n += n > 0 ? (size_t)n : 0;
}

static const char *const roles[TRAIN_FP8] = {"act", "weight", "agrad"};

static void put_fp8(writer *w, const char *layer, const char *role, const mpsim_delayed *d)
{
    size_t n = d->config.history;
    while (n > 0 && d->history[n - 1] == 0)
        n--;
    put(w, "fp8 %s %s %a %a", layer, role, (double)d->scale, (double)d->scale_inverse);
    for (size_t i = 0; i < n; i++)
        put(w, " %a", (double)d->history[i]);
    put(w, "\n");
}

size_t train_state_save(const train *t, char *text, size_t size)
{
    writer w = {text, size, 0};
    char scaler[512];
    if (size)
        text[0] = 0;
    mpsim_scaler_save(&t->scaler, scaler, sizeof scaler);
    put(&w, "mpsim-train-state/1\nstep %llu\nscaler %s\n", (unsigned long long)t->step, scaler);
    for (size_t i = 0; i < t->n_params; i++)
        put(&w, "age %s %llu\n", t->params[i].name, (unsigned long long)t->params[i].age);
    for (size_t i = 0; i < t->run->n_layers; i++)
        for (int k = 0; k < TRAIN_FP8; k++)
            if (t->fp8[i][k].used)
                put_fp8(&w, t->run->layers[i].name, roles[k], &t->fp8[i][k].state);
    put(&w, "end\n");
    return w.n;
}

/* ---- loading ---- */

typedef struct lines {
    char *next;
    unsigned long n;
    char *error;
} lines;

static int bad(const lines *l, const char *what)
{
    return train_fail(l->error, "training state, line %lu: %s", l->n, what);
}

/* The rest of the next line after "PREFIX ", or NULL. */
static char *due(lines *l, const char *prefix)
{
    const size_t n = strlen(prefix);
    char *line = l->next, *end = strchr(line, '\n');
    l->n++;
    if (!end || strncmp(line, prefix, n) != 0 || (line[n] != ' ' && line[n] != '\n')) {
        char what[128];
        snprintf(what, sizeof what, "'%.80s' is due here", prefix);
        bad(l, what);
        return NULL;
    }
    *end = 0;
    l->next = end + 1;
    return line + n + (line[n] == ' ');
}

static int load_fp8(lines *l, const char *layer, const char *role, mpsim_delayed *d)
{
    char prefix[2 * TRAIN_NAME];
    double v = 0;
    snprintf(prefix, sizeof prefix, "fp8 %s %s", layer, role);
    char *at = due(l, prefix);
    if (!at)
        return -1;
    memset(d->history, 0, d->config.history * sizeof *d->history);
    for (size_t i = 0; *at; i++) {
        char *end;
        v = strtod(at, &end);
        if (end == at || (*end && *end != ' '))
            return bad(l, "not a number");
        if (i >= 2 + (size_t)d->config.history)
            return bad(l, "more numbers than the history is long");
        *(i == 0 ? &d->scale : i == 1 ? &d->scale_inverse : &d->history[i - 2]) = (float)v;
        at = *end ? end + 1 : end;
    }
    return 0;
}

/* The plans of the steps that were done come into force one after the other. */
static int use_plans(train *t, char *error)
{
    for (size_t i = 0; i < t->run->n_plans; i++)
        if (t->run->plans[i].from < t->step && train_use(t, &t->run->plans[i], error))
            return -1;
    return 0;
}

static int load(train *t, lines *l)
{
    char *text = due(l, "mpsim-train-state/1");
    if (!text || (text = due(l, "step")) == NULL)
        return -1;
    if (train_read_integer(text, UINT64_MAX - 1, &t->step))
        return bad(l, "not a number of steps");
    if (use_plans(t, l->error) || (text = due(l, "scaler")) == NULL)
        return -1;
    if (mpsim_scaler_load(&t->scaler, text))
        return bad(l, "not a scaler's state");
    for (size_t i = 0; i < t->n_params; i++) {
        char prefix[2 * TRAIN_NAME];
        snprintf(prefix, sizeof prefix, "age %s", t->params[i].name);
        if ((text = due(l, prefix)) == NULL)
            return -1;
        if (train_read_integer(text, t->step, &t->params[i].age))
            return bad(l, "not a number of updates");
    }
    for (size_t i = 0; i < t->run->n_layers; i++)
        for (int k = 0; k < TRAIN_FP8; k++)
            if (t->fp8[i][k].used && load_fp8(l, t->run->layers[i].name, roles[k], &t->fp8[i][k].state))
                return -1;
    return due(l, "end") ? 0 : -1;
}

/* Text that was written here gives itself again. */
static int same_again(const train *t, const char *text, char *again, size_t size, char *error)
{
    train_state_save(t, again, size);
    return strcmp(text, again) == 0 ? 0 : train_fail(error, "training state: not in canonical form");
}

int train_state_load(train *t, const char *text, char *error)
{
    const size_t size = strlen(text) + 1;
    char *copy = malloc(size + 1);
    lines l = {copy, 0, error};
    if (t->step != 0 || t->plan != &t->run->plans[0]) {
        free(copy);
        return train_fail(error, "training state: the run has already begun");
    }
    if (!copy)
        return train_fail(error, "out of memory");
    memcpy(copy, text, size);
    int code = load(t, &l);
    if (!code)
        code = same_again(t, text, copy, size + 1, error);
    free(copy);
    return code;
}
