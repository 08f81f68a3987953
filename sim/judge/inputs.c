/* inputs.c -- see inputs.h. */
#include "inputs.h"
#include "castrow.h"
#include "impl.h"
#include "productrow.h"

#include "../array/want.h"

#include <mpsim/block.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const judge_inputs_kind *const kinds[] = {
    [MPSIM_JUDGE_CAST] = &judge_inputs_cast,       [MPSIM_JUDGE_QUANTISE] = &judge_inputs_quantise,
    [MPSIM_JUDGE_PRODUCT] = &judge_inputs_product, [MPSIM_JUDGE_ATTENTION] = &judge_inputs_attend,
    [MPSIM_JUDGE_ARITH] = &judge_inputs_arith,
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- which kind ---- */

static int is_cast(const char *row)
{
    cast_row cast;
    char why[16];
    return judge_cast_row_parse(&cast, row, mpsim_format_find("binary32"), why, sizeof why) == 0;
}

static int is_recipe(const char *row)
{
    mpsim_block_recipe b;
    unsigned transform;
    return mpsim_block_parse(&b, &transform, row, NULL, 0) == MPSIM_OK;
}

static int is_product(const char *row)
{
    product_row product;
    return judge_product_row_parse(&product, row) == MPSIM_OK;
}

static int (*const is_row[KINDS])(const char *row) = {[MPSIM_JUDGE_CAST] = is_cast,
                                                      [MPSIM_JUDGE_QUANTISE] = is_recipe,
                                                      [MPSIM_JUDGE_PRODUCT] = is_product,
                                                      [MPSIM_JUDGE_ATTENTION] = judge_inputs_is_attend,
                                                      [MPSIM_JUDGE_ARITH] = judge_inputs_is_arith};

mpsim_status judge_inputs_open(judge_inputs *w, const char *row, const mpsim_format *from)
{
    for (unsigned i = 0; i < KINDS; i++) {
        const char *kind = judge_kind_name(i);
        const size_t n = strlen(kind);
        const int named = strncasecmp(kind, row, n) == 0, whole = named && !row[n];
        const char *of = named && row[n] == ':' ? row + n + 1 : row;
        if (!kinds[i] || (!whole && !is_row[i](of)))
            continue;
        w->row = whole ? NULL : of;
        w->set->kind = (mpsim_judge_kind)i;
        return kinds[i]->formats(w, from);
    }
    return judge_inputs_fail(
        w, MPSIM_ENOTFOUND,
        "expected a cast, a block recipe, a model, arithmetic, attention, or a kind of operation that has inputs, found '%s'",
        row);
}

/* ---- arrays and rows ---- */

mpsim_status judge_inputs_make(judge_inputs *w)
{
    return kinds[w->set->kind]->make(w);
}

mpsim_status judge_inputs_rows(judge_inputs *w)
{
    return kinds[w->set->kind]->rows(w);
}

/* ---- classes ---- */

typedef struct sign_job {
    mpsim_judge_set *set;
    uint64_t *hashes;
    mpsim_status *statuses;
} sign_job;

static void sign_row(size_t i, void *job)
{
    const sign_job *s = job;
    s->statuses[i] = kinds[s->set->kind]->sign(s->set, s->set->row[i], &s->hashes[i]);
}

/* Rows without results go. */
static mpsim_status drop(mpsim_judge_set *set, uint64_t *hashes, const mpsim_status *statuses)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->rows; i++) {
        if (statuses[i] == MPSIM_ENOMEM)
            return MPSIM_ENOMEM;
        if (statuses[i] != MPSIM_OK)
            continue;
        memmove(set->row[kept], set->row[i], sizeof set->row[0]);
        hashes[kept++] = hashes[i];
    }
    set->rows = kept;
    return MPSIM_OK;
}

mpsim_status judge_inputs_sign(judge_inputs *w, uint64_t *hashes)
{
    sign_job s = {w->set, hashes, want_memory(w->set->rows + 1, sizeof *s.statuses)};
    if (!s.statuses)
        return MPSIM_ENOMEM;
    judge_in_pieces(w->pool, w->set->rows, sign_row, &s);
    const mpsim_status status = drop(w->set, hashes, s.statuses);
    free(s.statuses);
    return status;
}

mpsim_status judge_inputs_classes(judge_inputs *w, const uint64_t *hashes)
{
    mpsim_judge_set *set = w->set;
    free(set->class_of);
    set->classes = 0;
    if (!(set->class_of = want_memory(set->rows + 1, sizeof *set->class_of)))
        return MPSIM_ENOMEM;
    for (size_t i = 0; i < set->rows; i++) {
        size_t k = 0;
        while (k < i && hashes[k] != hashes[i])
            k++;
        set->class_of[i] = k < i ? set->class_of[k] : set->classes++;
    }
    return MPSIM_OK;
}

static mpsim_status classify(judge_inputs *w)
{
    uint64_t *hashes = want_memory(w->set->rows + 1, sizeof *hashes);
    mpsim_status s = hashes ? judge_inputs_sign(w, hashes) : MPSIM_ENOMEM;
    s = s == MPSIM_OK ? judge_inputs_classes(w, hashes) : s;
    free(hashes);
    return s;
}

mpsim_status judge_inputs_run(mpsim_judge_set *set, const char *row, const mpsim_format *from, const mpsim_pool *pool,
                              char *error, size_t size)
{
    judge_inputs w = {set, row, pool, error, size};
    if (!set || !row || (from && mpsim_format_check(from) != MPSIM_OK))
        return MPSIM_EINVAL;
    memset(set, 0, sizeof *set);
    set->format = want_memory(MPSIM_JUDGE_SET_FORMATS, sizeof *set->format);
    mpsim_status s = set->format ? judge_inputs_open(&w, row, from) : MPSIM_ENOMEM;
    s = s == MPSIM_OK ? judge_inputs_make(&w) : s;
    s = s == MPSIM_OK ? judge_inputs_rows(&w) : s;
    s = s == MPSIM_OK ? classify(&w) : s;
    if (s == MPSIM_ENOMEM)
        (void)judge_inputs_fail(&w, s, "%s", "out of memory");
    if (s != MPSIM_OK)
        judge_set_clear(set);
    return s;
}
