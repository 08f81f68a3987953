/* recorded.c -- verify: recorded dot products, computed again by the models of tensor cores.
 *
 * A file does not say which instruction recorded a set. Candidates are the rows of its
 * architecture that take the operands to the result, with c as it was recorded (rounded to
 * nearest even where the result is fp16) and, for 8-bit operands with a binary32 result, also
 * without it, as wgmma outputs have been recorded. A set is reproduced if one candidate gives
 * every bit of every row. */
#include "impl.h"
#include "vectors.h"
#include "verify.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../process/progress.h"
#include "../text/words.h"

#include <threads/parallel.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A model on a set, and what came of it. */
typedef struct candidate {
    mpsim_model m;
    int without_c;
    uint64_t mismatches;
    size_t row; /* the first that differs, and the model's code there */
    uint64_t code;
} candidate;

/* ---- one candidate ---- */

enum { TASKS = 64 };

typedef struct job {
    const vector_set *s;
    const candidate *c;
    uint64_t seed;
    mpsim_status status[TASKS];
    candidate found[TASKS];
} job;

static mpsim_status dot(const job *j, size_t row, uint64_t *code)
{
    const vector_set *s = j->s;
    const size_t bytes = mpsim_format_code_bytes(&s->operand) * s->k;
    const mpsim_rng rng = {.seed = j->seed, .index = (uint64_t)row << 32}; /* stochastic models */
    return mpsim_dot(&j->c->m, &s->operand, s->a + row * bytes, &s->operand, s->b + row * bytes, s->k,
                     j->c->without_c ? 0 : s->c[row], &rng, code);
}

static void task(int i, void *context)
{
    job *j = context;
    candidate *found = &j->found[i];
    const size_t first = j->s->n / TASKS * (size_t)i;
    const size_t end = i + 1 < TASKS ? first + j->s->n / TASKS : j->s->n;
    for (size_t row = first; row < end && j->status[i] == MPSIM_OK; row++) {
        uint64_t code = 0;
        j->status[i] = dot(j, row, &code);
        if (code != j->s->d[row] && found->mismatches++ == 0) {
            found->row = row;
            found->code = code;
        }
    }
}

/* Fills in what came of it; 0 if the model cannot compute the set. */
static int try(const vector_set *s, candidate *c, uint64_t seed)
{
    static job j;
    memset(&j, 0, sizeof j);
    j.s = s;
    j.c = c;
    j.seed = seed;
    parallel_for(TASKS, task, &j);
    c->mismatches = 0;
    for (int i = 0; i < TASKS; i++) {
        if (j.status[i] != MPSIM_OK)
            return 0;
        if (c->mismatches == 0) {
            c->row = j.found[i].row;
            c->code = j.found[i].code;
        }
        c->mismatches += j.found[i].mismatches;
    }
    return 1;
}

static int fits(const mpsim_model *m, const vector_set *s)
{
    return mpsim_model_accepts(m, &s->operand, &s->operand) && strcmp(m->result.format.name, s->result.name) == 0;
}

/* The better one of with and without c, where both may be; 0 if the model cannot. */
static int try_both(const vector_set *s, candidate *c, const mpsim_model *m, uint64_t seed)
{
    const int may_lack_c = s->operand.bits <= 8 && s->result.bits == 32;
    *c = (candidate){.m = *m};
    if (!fits(m, s) || !try(s, c, seed))
        return 0;
    if (c->mismatches && may_lack_c) {
        candidate without = {.m = *m, .without_c = 1};
        if (try(s, &without, seed) && without.mismatches < c->mismatches)
            *c = without;
    }
    return 1;
}

/* ---- rows of the report ---- */

static verify_row *add_row(verify *v, const vector_set *s, const candidate *c)
{
    verify_row *row = verify_add(v, "vectors", "%s %s, K = %zu", s->file, s->name, s->k);
    if (!c)
        return row;
    row->compared = s->n;
    row->mismatches = c->mismatches;
    if (c->mismatches) {
        const int digits = s->result.bits / 4;
        snprintf(row->text, sizeof row->text, "row %zu: recorded 0x%0*" PRIx64 " (%a), %s%s gives 0x%0*" PRIx64 " (%a)",
                 c->row, digits, s->d[c->row], mpsim_decode(&s->result, s->d[c->row]), c->m.name,
                 c->without_c ? " with c = 0" : "", digits, c->code, mpsim_decode(&s->result, c->code));
    }
    return row;
}

/* Add " or NAME" to a list, or count what no longer fits. */
static void add_name(char *names, size_t size, const char *name, int *left_out)
{
    if (strlen(names) + strlen(name) + 24 < size)
        text_add(names, size, "%s%s", *names ? " or " : "", name);
    else
        ++*left_out;
}

/* The best rows of other architectures, if they have fewer mismatches than `best` or there is none. */
static void name_closest(const verify *v, const vector_set *s, const char *architecture, const candidate *best,
                         char *text, size_t size)
{
    candidate c, closest = {.mismatches = 0};
    mpsim_model m;
    char names[128] = "";
    int found = 0, left_out = 0;
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++) {
        if (!m.architecture || strcmp(m.architecture, architecture) == 0 || !try_both(s, &c, &m, v->seed) ||
            (best && c.mismatches >= best->mismatches) || (found && c.mismatches > closest.mismatches))
            continue;
        if (found && c.mismatches < closest.mismatches) {
            names[0] = '\0';
            left_out = 0;
        }
        add_name(names, sizeof names, m.name, &left_out);
        closest = c;
        found = 1;
    }
    char more[32] = "";
    if (left_out)
        snprintf(more, sizeof more, " and %d more", left_out);
    if (found)
        snprintf(text, size, "closest: %s%s%s, %" PRIu64 " mismatch%s", names, more,
                 closest.without_c ? " with c = 0" : "", closest.mismatches, closest.mismatches == 1 ? "" : "es");
}

/* All rows of the architecture. */
static void replay_set(verify *v, const vector_set *s, const char *architecture)
{
    candidate c, best;
    mpsim_model m;
    char names[sizeof((verify_row *)0)->with] = "";
    int found = 0, all_without_c = 1;
    unsigned fitting = 0;
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++) {
        if (!m.architecture || strcmp(m.architecture, architecture) != 0 || !try_both(s, &c, &m, v->seed))
            continue;
        if (c.mismatches == 0) {
            fitting++;
            text_add(names, sizeof names, "%s%s", *names ? " or " : "", c.m.name);
            all_without_c &= c.without_c;
        }
        if (!found || c.mismatches < best.mismatches)
            best = c;
        found = 1;
    }
    verify_row *row = add_row(v, s, found ? &best : NULL);
    row->fitting = fitting;
    if (!found) {
        row->status = VERIFY_SKIPPED;
        snprintf(row->text, sizeof row->text, "%s has no model for it", architecture);
        name_closest(v, s, architecture, NULL, row->note, sizeof row->note);
        return;
    }
    if (best.mismatches) {
        snprintf(names, sizeof names, "best: %s", best.m.name);
        all_without_c = best.without_c;
        name_closest(v, s, architecture, &best, row->note, sizeof row->note);
    }
    snprintf(row->with, sizeof row->with, "%.160s%s", names, all_without_c ? ", c = 0" : "");
}

/* The models that the user names; used[i] becomes 1 if model i fits. */
static void replay_models(verify *v, const vector_set *s, char *used)
{
    candidate c;
    for (size_t i = 0; i < v->n_models; i++) {
        if (!try_both(s, &c, &v->models[i], v->seed))
            continue;
        used[i] = 1;
        verify_row *row = add_row(v, s, &c);
        snprintf(row->with, sizeof row->with, "%s%s", c.m.name, c.without_c ? ", c = 0" : "");
    }
}

/* ---- files ---- */

/* A file that cannot be replayed: one line on standard error and a row; the others go on. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static void
fail_file(verify *v, const char *name, int code, const char *message, ...)
{
    va_list arguments;
    verify_row *row = verify_add(v, "vectors", "%s", name);
    row->status = VERIFY_FAILED;
    va_start(arguments, message);
    vsnprintf(row->text, sizeof row->text, message, arguments);
    va_end(arguments);
    if (!v->bad_file)
        v->bad_file = fail(code, "%s", row->text);
    else
        (void)fail(code, "%s", row->text);
}

static void replay_file(verify *v, const char *path, char *used)
{
    vector_file f;
    trace_error error;
    if (verify_vectors_load(&f, path, &error)) {
        fail_file(v, f.name, error.exit, "%s", error.text);
        return;
    }
    const char *architecture = verify_architecture_of(f.name);
    if (!architecture)
        architecture = v->architecture;
    if (!architecture && !v->n_models) {
        fail_file(v, f.name, EXIT_DATA, "%s: its name does not tell the GPU; say --architecture NAME, one of %s",
                  f.name, verify_architecture_list());
        verify_vectors_clear(&f);
        return;
    }
    for (size_t i = 0; i < f.count; i++) {
        char what[400];
        snprintf(what, sizeof what, "%s %s", f.sets[i].file, f.sets[i].name);
        progress_say("vectors: %s", what);
        if (v->n_models)
            replay_models(v, &f.sets[i], used);
        else
            replay_set(v, &f.sets[i], architecture);
    }
    verify_vectors_clear(&f);
}

int verify_vectors_here(const verify *v, char *text, size_t size)
{
    snprintf(text, size, "%s", v->vectors ? v->vectors : "no recorded vectors (--vectors DIR)");
    return v->vectors != NULL;
}

int verify_vectors(verify *v)
{
    trace_tree files = {0};
    trace_error error;
    char *used = need_memory(v->n_models, 1);
    int code = 0;
    if (verify_vectors_find(&files, v->vectors, &error))
        code = fail(error.exit, "%s", error.text);
    for (size_t i = 0; !code && i < files.count; i++)
        replay_file(v, files.paths[i], used);
    for (size_t i = 0; !code && i < v->n_models; i++)
        if (!used[i]) {
            verify_row *row = verify_add(v, "vectors", "%s", v->models[i].name);
            row->status = VERIFY_SKIPPED;
            snprintf(row->text, sizeof row->text, "no set has its operands and result");
        }
    trace_tree_clear(&files);
    free(used);
    return code;
}
