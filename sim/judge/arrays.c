/* arrays.c -- see arrays.h. */
#include "arrays.h"

#include "../array/need.h"
#include "../pass/elements.h"
#include "../process/host.h"
#include "../text/words.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int is_word(const char *word, const char *text, size_t n)
{
    return strlen(word) == n && strncasecmp(word, text, n) == 0;
}

/* The role that a text is, n bytes of it; NULL. */
static const char *role_of(mpsim_judge_kind kind, const char *text, size_t n)
{
    const char *const *roles = judge_roles(kind);
    for (int part = 0; part < 2; part++, roles++)
        for (; *roles; roles++)
            if (is_word(*roles, text, n))
                return *roles;
    return NULL;
}

int judge_arrays_check(const judge_arrays *a)
{
    for (size_t i = 0; a->as && i < a->as->count; i++) {
        const char *word = a->as->items[i], *equals = strchr(word, '=');
        char all[256];
        if (!equals)
            return fail(EXIT_USAGE, "judge: --role: expected ROLE=NAME, found '%s'", word);
        if (!role_of(a->kind, word, (size_t)(equals - word)))
            return fail(EXIT_USAGE, "judge: --role: '%.*s' is not a role of %s: %s", (int)(equals - word), word,
                        judge_kind_name(a->kind), judge_roles_text(all, sizeof all, judge_roles(a->kind)));
    }
    return 0;
}

/* The role that --role gives a name. */
static const char *role_given(const judge_arrays *a, const char *name)
{
    for (size_t i = 0; a->as && i < a->as->count; i++) {
        const char *word = a->as->items[i], *equals = strchr(word, '=');
        if (equals && fnmatch(equals + 1, name, 0) == 0)
            return role_of(a->kind, word, (size_t)(equals - word));
    }
    return NULL;
}

/* Whether --role says which tensor has a role: then its name gives it to no other one. */
static int is_given(const judge_arrays *a, const char *role)
{
    for (size_t i = 0; a->as && i < a->as->count; i++) {
        const char *equals = strchr(a->as->items[i], '=');
        if (equals && is_word(role, a->as->items[i], (size_t)(equals - a->as->items[i])))
            return 1;
    }
    return 0;
}

/* The last part of a name, or of a path without the end of the file's name. */
static const char *last_part(const char *text, const char *ends, size_t *n)
{
    const char *from = text;
    for (const char *p = text; *p; p++)
        if (strchr(ends, *p))
            from = p + 1;
    *n = strcspn(from, "./:");
    return from;
}

static const char *role_of_tensor(const judge_arrays *a, const trace *t, const trace_tensor *x)
{
    size_t n;
    const char *given = role_given(a, *x->name ? x->name : trace_path(t));
    const char *part = *x->name ? last_part(x->name, "./:", &n) : last_part(trace_path(t), "/", &n);
    char *word = need_format("%.*s", (int)n, part);
    given = given || *x->name ? given : role_given(a, word);
    free(word);
    const char *role = role_of(a->kind, part, n);
    return given ? given : role && !is_given(a, role) ? role : NULL;
}

/* ---- reading ---- */

/* The elements of a tensor of integers of a byte. */
static int read_bytes(void *to, trace *t, size_t i, trace_error *error)
{
    trace_copy copies[TRACE_COPIES];
    if (trace_copies(t, i, copies) != 1 || copies[0].width != 1 || copies[0].units != trace_at(t, i)->count)
        return trace_error_set(error, EXIT_DATA, trace_path(t), UINT64_MAX, "'%s': its bytes are not read",
                               trace_at(t, i)->name);
    return trace_copy_units(t, &copies[0], 0, to, (size_t)copies[0].units, error);
}

void *judge_codes_read(trace *t, size_t i, trace_error *error)
{
    const trace_tensor *x = trace_at(t, i);
    elements e = {0};
    void *codes = need_memory(x->count + 1, x->format ? mpsim_format_code_bytes(x->format) : 1);
    const int bad = !x->format ? read_bytes(codes, t, i, error)
                               : pass_elements_open(&e, t, i, ELEMENTS_ROWS, NULL, error) ||
                                     pass_elements_codes(&e, 0, codes, (size_t)x->count, error);
    if (x->format)
        pass_elements_close(&e);
    if (!bad)
        return codes;
    free(codes);
    return NULL;
}

static int read_one(judge_arrays *a, input *in, trace *t, size_t i, const char *role)
{
    const trace_tensor *x = trace_at(t, i);
    trace_error error = {0};
    if (a->n == ARRAYS_MOST)
        return fail(EXIT_USAGE, "judge: expected at most %d arrays", ARRAYS_MOST);
    mpsim_judge_array *to = &a->of[a->n];
    if (x->format)
        a->formats[a->n] = *x->format;
    to->role = a->names[a->n] = need_text(role);
    to->format = x->format ? &a->formats[a->n] : NULL;
    to->columns = x->rank ? (size_t)x->shape[x->rank - 1] : 1;
    to->rows = to->columns ? (size_t)x->count / to->columns : 0;
    a->matrices[a->n] = x->rank > 2 && x->shape[x->rank - 2] ? to->rows / (size_t)x->shape[x->rank - 2] : 1;
    a->batches[a->n] = x->rank > 3 && x->shape[x->rank - 3] ? a->matrices[a->n] / (size_t)x->shape[x->rank - 3] : 1;
    to->codes = a->codes[a->n++] = judge_codes_read(t, i, &error);
    return to->codes ? 0 : input_failed(in, &error);
}

/* Whether the elements are integers of a byte. */
static int is_bytes(const trace *t, size_t i)
{
    trace_copy copies[TRACE_COPIES];
    int is_signed;
    return trace_integers(trace_at(t, i), &is_signed) && trace_copies(t, i, copies) == 1 && copies[0].width == 1;
}

static int visit(input *in, trace *t, void *context)
{
    judge_arrays *a = context;
    int code = 0;
    for (size_t i = 0; i < trace_count(t) && !code; i++) {
        const trace_tensor *x = trace_at(t, i);
        const char *role = (x->format || is_bytes(t, i)) && input_selects(in, x) ? role_of_tensor(a, t, x) : NULL;
        (void)text_add(a->found, sizeof a->found, "%s'%.80s'%s%s", *a->found ? ", " : "",
                       *x->name ? x->name : trace_path(t), x->unread ? " of " : "", x->unread ? x->unread : "");
        code = role ? read_one(a, in, t, i, role) : 0;
    }
    return code;
}

static const mpsim_judge_array *find(const judge_arrays *a, const char *role)
{
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->names[i], role) == 0)
            return &a->of[i];
    return NULL;
}

/* Attention: the heads of q and k, where their shapes say how many there are. */
static void add_heads(judge_arrays *a)
{
    const mpsim_judge_array *q = find(a, "q"), *k = find(a, "k");
    if (a->kind != MPSIM_JUDGE_ATTENTION || !q || !k || find(a, "heads") || a->n == ARRAYS_MOST ||
        (a->matrices[q - a->of] == 1 && a->matrices[k - a->of] == 1))
        return;
    double *heads = need_memory(3, sizeof *heads);
    heads[0] = (double)a->matrices[q - a->of];
    heads[1] = (double)a->matrices[k - a->of];
    heads[2] = (double)(a->batches[q - a->of] == a->batches[k - a->of] ? a->batches[q - a->of] : 1);
    a->formats[a->n] = *mpsim_format_find("binary64");
    a->names[a->n] = need_text("heads");
    a->codes[a->n] = heads;
    a->of[a->n] = (mpsim_judge_array){a->names[a->n], &a->formats[a->n], heads, 1, 3};
    a->n++;
}

int judge_arrays_read(judge_arrays *a, input *in)
{
    const int code = input_each(in, visit, a);
    add_heads(a);
    return code;
}

const char *judge_arrays_missing(const judge_arrays *a)
{
    for (const char *const *role = judge_roles(a->kind); *role; role++)
        if (!find(a, *role))
            return *role;
    return NULL;
}

void judge_arrays_clear(judge_arrays *a)
{
    for (size_t i = 0; i < a->n; i++) {
        free(a->names[i]);
        free(a->codes[i]);
    }
}
