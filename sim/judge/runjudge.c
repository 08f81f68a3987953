/* runjudge.c -- the verdicts of a stored run, operation by operation: see run.h. */
#include "run.h"

#include "../array/need.h"
#include "../operand/element.h"
#include "../process/host.h"
#include "../text/words.h"
#include "arrays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads/parallel.h>

const char run_equal[] = "equal", run_differs[] = "differs", run_not_judged[] = "not judged";

/* ---- arrays ---- */

static uint64_t count_of(const run_array *a)
{
    uint64_t n = 1;
    for (size_t i = 0; i < a->rank; i++)
        n *= a->shape[i];
    return n;
}

static void shape_of(run_codes *to, const run_operation *o, const run_array *a)
{
    const uint64_t all = count_of(a);
    to->columns = a->rank ? (size_t)a->shape[a->rank - 1] : 1;
    to->matrices = 1;
    if (o->kind == MPSIM_JUDGE_PRODUCT)
        for (size_t i = 0; i + 2 < a->rank; i++)
            to->matrices *= (size_t)a->shape[i];
    to->rows = to->columns && to->matrices ? (size_t)all / to->columns / to->matrices : 0;
}

static size_t bytes_of(const run_array *a)
{
    return *a->format.name ? mpsim_format_code_bytes(&a->format) : 1;
}

/* The transposes of all matrices. */
static void transpose(run_codes *c, size_t bytes)
{
    const size_t rows = c->columns, columns = c->rows, each = rows * columns;
    void *to = need_memory(each * c->matrices + 1, bytes);
    for (size_t m = 0; m < c->matrices; m++)
        for (size_t i = 0; i < rows; i++)
            for (size_t k = 0; k < columns; k++)
                element_put_code(to, bytes, m * each + i * columns + k,
                                 element_code(c->codes, bytes, m * each + k * rows + i));
    free(c->codes);
    *c = (run_codes){to, rows, columns, c->matrices};
}

/* Whether the judge sees by its sizes that an array lies the other way: then nothing is copied. */
static int is_seen(const run_operation *o, const run_array *a, const run_codes *c)
{
    return o->kind == MPSIM_JUDGE_PRODUCT && strcmp(a->role, "b") == 0 && c->rows != c->columns;
}

int run_load(run_codes *to, const run_operation *o, const run_array *a)
{
    trace_error error = {0};
    shape_of(to, o, a);
    if (a->digests) {
        to->matrices = 1;
        to->codes = need_memory(to->rows * to->columns + 1, bytes_of(a));
        return 0;
    }
    to->codes = judge_codes_read(a->file, a->at, &error);
    if (!to->codes)
        return fail(error.exit, "judge: %s", error.text);
    if (a->transposed && !is_seen(o, a, to))
        transpose(to, bytes_of(a));
    return 0;
}

mpsim_judge_array run_matrix(const run_codes *c, const run_array *a, size_t i)
{
    const size_t at = c->matrices == 1 ? 0 : i * c->rows * c->columns * bytes_of(a);
    return (mpsim_judge_array){a->role, *a->format.name ? &a->format : NULL, (char *)c->codes + at, c->rows,
                               c->columns};
}

/* ---- digests ---- */

void run_digest_begin(run_digest *d, const run_array *a)
{
    *d = (run_digest){.a = a};
    sha256_init(&d->state);
}

static void compare(run_digest *d)
{
    char hex[65];
    sha256_hex(&d->state, hex);
    if (strcmp(hex, json_string_value(json_array_get(d->a->digests, d->next))) != 0 && d->differ++ == 0)
        d->first_differ = d->next;
    d->next++;
    d->rows = 0;
    sha256_init(&d->state);
}

void run_digest_add(run_digest *d, const mpsim_format *f, const void *codes, size_t n)
{
    const size_t bytes = mpsim_format_code_bytes(f), columns = (size_t)d->a->shape[d->a->rank - 1];
    unsigned char *own = need_memory(n + 1, bytes);
    memcpy(own, codes, n * bytes);
    trace_to_little_endian(own, bytes, n);
    for (size_t i = 0; i < n / columns; i++) {
        sha256_add(&d->state, own + i * columns * bytes, columns * bytes);
        if (++d->rows == d->a->each)
            compare(d);
    }
    free(own);
}

void run_digest_end(run_digest *d)
{
    if (d->rows)
        compare(d);
}

/* ---- an operation ---- */

typedef struct loaded {
    const run_operation *o;
    run_codes codes[RUN_ARRAYS];
    run_digest digest[RUN_ARRAYS];
    uint64_t results, differ; /* of arrays that were kept */
} loaded;

static int load(loaded *l, const run_operation *o)
{
    int code = 0;
    *l = (loaded){.o = o};
    for (size_t i = 0; i < o->arrays && !code; i++)
        code = run_load(&l->codes[i], o, &o->of[i]);
    return code;
}

static void unload(loaded *l)
{
    for (size_t i = 0; i < l->o->arrays; i++)
        free(l->codes[i].codes);
}

static void matrices(mpsim_judge_array to[RUN_ARRAYS], const loaded *l, size_t i)
{
    for (size_t k = 0; k < l->o->arrays; k++)
        to[k] = run_matrix(&l->codes[k], &l->o->of[k], i);
}

static void take(void *self, const char *role, uint64_t differ, const mpsim_format *f, const void *expected, size_t n)
{
    loaded *l = self;
    for (size_t i = 0; i < l->o->arrays; i++) {
        if (strcmp(l->o->of[i].role, role) != 0)
            continue;
        if (l->o->of[i].digests) {
            run_digest_add(&l->digest[i], f, expected, n);
            return;
        }
        l->results += n;
        l->differ += differ;
    }
}

static int has_digests(const run_operation *o)
{
    for (size_t i = 0; i < o->arrays; i++)
        if (o->of[i].digests)
            return 1;
    return 0;
}

/* All results beside those of a row, in l; the judge's status. */
static mpsim_status count(loaded *l, const char *row, char *why, size_t size)
{
    const judge_sink sink = {take, l};
    mpsim_judge_array arrays[RUN_ARRAYS];
    mpsim_judgement j;
    uint64_t results = 0, differ = 0;
    mpsim_status s = MPSIM_OK;
    l->results = l->differ = 0;
    for (size_t i = 0; i < l->o->arrays; i++)
        run_digest_begin(&l->digest[i], &l->o->of[i]);
    for (size_t i = 0; i < l->o->stack && s == MPSIM_OK; i++) {
        matrices(arrays, l, i);
        s = judge_count(&j, l->o->kind, arrays, l->o->arrays, row, &parallel_pool, &sink, why, size);
        results += j.results;
        differ += j.differ;
    }
    for (size_t i = 0; i < l->o->arrays && s == MPSIM_OK; i++)
        if (l->o->of[i].digests)
            run_digest_end(&l->digest[i]);
    if (!has_digests(l->o)) { /* of a quantiser `take` sees nothing */
        l->results = results;
        l->differ = differ;
    }
    return s;
}

/* Whether results came for each array of digests: a kind that gives none has no verdict. */
static int is_hashed(const loaded *l)
{
    for (size_t i = 0; i < l->o->arrays; i++)
        if (l->o->of[i].digests && l->digest[i].next == 0)
            return 0;
    return 1;
}

static uint64_t digests_differ(const loaded *l)
{
    uint64_t n = 0;
    for (size_t i = 0; i < l->o->arrays; i++)
        n += l->digest[i].differ;
    return n;
}

/* ---- verdicts ---- */

static void say_digest(run_verdict *v, const run_digest *d)
{
    const run_array *a = d->a;
    const size_t first = (size_t)d->first_differ * a->each;
    if (!a->each)
        snprintf(v->text, sizeof v->text, "the digest of %s differs", a->role);
    else
        snprintf(v->text, sizeof v->text, "%s: %llu of %zu digests differ, first that of row %zu", a->role,
                 (unsigned long long)d->differ, json_array_size(a->digests), first);
}

static void fill(run_verdict *v, const loaded *l, const char *row)
{
    snprintf(v->row, sizeof v->row, "%s", row);
    v->results = l->results;
    v->differ = l->differ;
    for (size_t i = 0; i < l->o->arrays; i++) {
        const run_digest *d = &l->digest[i];
        v->digests += l->o->of[i].digests ? json_array_size(l->o->of[i].digests) : 0;
        v->digests_differ += d->differ;
        if (d->differ)
            say_digest(v, d);
    }
    v->state = v->differ || v->digests_differ ? run_differs : run_equal;
}

static int not_judged(run_verdict *v, const char *why)
{
    v->state = run_not_judged;
    snprintf(v->text, sizeof v->text, "%s", why);
    return 0;
}

/* What the judge refuses: formats are no fault of run.json, all else is. */
static int refused(run_verdict *v, const run *r, const run_operation *o, mpsim_status s, const char *why)
{
    if (s == MPSIM_ERANGE)
        return not_judged(v, why);
    return fail(s == MPSIM_ENOMEM ? EXIT_IO : EXIT_DATA, "judge: %s: operation %zu (%.100s): %s", r->path, v->number,
                o->name ? o->name : "no name", why);
}

/* Whether operation i has no row for an operation of the kind of v; whether one behind it has the same row. */
static int is_other(const run_verdict *all, size_t i, const run_verdict *v)
{
    return all[i].state == run_not_judged || strcmp(all[i].kind, v->kind) != 0;
}

static int is_tried(const run_verdict *all, size_t i, const run_verdict *v)
{
    for (size_t k = i + 1; k < v->number - 1; k++)
        if (!is_other(all, k, v) && strcmp(all[k].row, all[i].row) == 0)
            return 1;
    return 0;
}

/* Whether a row gives all results. */
static int gives(loaded *l, const char *row)
{
    char why[256];
    return count(l, row, why, sizeof why) == MPSIM_OK && !l->differ && is_hashed(l) && !digests_differ(l);
}

/* The row to try, or that of an operation before that gives all results, the last ones first; NULL: there is none. */
static const char *row_before(loaded *l, const run_verdict *v)
{
    const run_verdict *all = v - (v->number - 1);
    if (l->o->try && gives(l, l->o->try))
        return l->o->try;
    for (size_t i = v->number - 1; i-- > 0;)
        if (!is_other(all, i, v) && !is_tried(all, i, v) && gives(l, all[i].row))
            return all[i].row;
    return NULL;
}

/* The row that gives all results of the first matrix, by a search; 0, or an exit code after a message. */
static int search(char row[MPSIM_JUDGE_ROW], run_verdict *v, loaded *l, const run *r)
{
    char why[MPSIM_JUDGE_TEXT] = "out of memory";
    const judge_sink sink = {take, l};
    mpsim_judge_array arrays[RUN_ARRAYS];
    mpsim_judgement j;
    *row = '\0';
    matrices(arrays, l, 0);
    const mpsim_status s = judge_count(&j, l->o->kind, arrays, l->o->arrays, NULL, &parallel_pool, &sink, why,
                                       sizeof why);
    if (s != MPSIM_OK)
        return refused(v, r, l->o, s, why);
    if (j.differ == 0)
        memcpy(row, j.row, MPSIM_JUDGE_ROW);
    return 0;
}

/* Whether a row leaves a choice, which digests cannot make: a step of an optimizer without its variant. */
static int is_open(const run_operation *o, const char *row)
{
    return o->kind == MPSIM_JUDGE_UPDATE && !strchr(row, '@');
}

static int judge_by(run_verdict *v, loaded *l, const run *r, const char *row)
{
    char why[MPSIM_JUDGE_TEXT] = "out of memory";
    if (has_digests(l->o) && is_open(l->o, row))
        return not_judged(v, "digests need a row with the optimizer's variant");
    const mpsim_status s = count(l, row, why, sizeof why);
    if (s != MPSIM_OK)
        return refused(v, r, l->o, s, why);
    if (!is_hashed(l))
        return not_judged(v, "digests of this kind are not judged");
    fill(v, l, row);
    return 0;
}

/* Without a row: one that gives all results, or no verdict. */
static int judge_free(run_verdict *v, loaded *l, const run *r)
{
    char row[MPSIM_JUDGE_ROW] = "";
    const char *before = row_before(l, v);
    if (before) {
        fill(v, l, before);
        return 0;
    }
    if (has_digests(l->o))
        return not_judged(v, "no row is given, no row of an operation before gives these digests");
    const int code = search(row, v, l, r);
    if (code || v->state)
        return code;
    if (!*row || judge_by(v, l, r, row) || v->state != run_equal) {
        *v = (run_verdict){.number = v->number, .name = v->name, .kind = v->kind};
        return not_judged(v, "no row is given, and no known row gives all results");
    }
    return 0;
}

/* The whole judgement of the first matrix whose results differ, of an operation whose results were kept. */
static void explain(mpsim_judgement *j, const loaded *l, const char *row)
{
    mpsim_judge_array arrays[RUN_ARRAYS];
    memset(j, 0, sizeof *j);
    for (size_t i = 0; i < l->o->stack && !j->differ && !has_digests(l->o); i++) {
        matrices(arrays, l, i);
        if (judge_run(j, l->o->kind, arrays, l->o->arrays, row, &parallel_pool, NULL, 0) != MPSIM_OK)
            memset(j, 0, sizeof *j);
    }
}

static int judge_one(run_verdict *v, mpsim_judgement *first, const run *r, const run_operation *o)
{
    loaded *l = need_memory(1, sizeof *l);
    int code = load(l, o);
    v->name = o->name ? o->name : "";
    v->kind = judge_kind_name(o->kind);
    if (!code)
        code = o->row ? judge_by(v, l, r, o->row) : judge_free(v, l, r);
    if (!code && v->state == run_differs && first)
        explain(first, l, v->row);
    unload(l);
    free(l);
    return code;
}

int run_judge(run_verdict *to, mpsim_judgement *first, const run *r)
{
    int code = 0, guilty = 0;
    memset(first, 0, sizeof *first);
    for (size_t i = 0; i < r->operations && !code; i++) {
        to[i].number = i + 1;
        code = judge_one(&to[i], guilty ? NULL : first, r, &r->operation[i]);
        guilty |= to[i].state == run_differs;
    }
    return code;
}
