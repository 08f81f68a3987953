/* plan.c -- which cells a set of casts needs; see cells.h. */
#include "cells.h"

#include <stdlib.h>
#include <string.h>

enum { KEYS = MPSIM_BINADES - 1, CASES = 3 }; /* keys 1 to 254 are binades; thresholds of a target */

/* Add `word` to the ascending list of n words, if it is strictly inside the binade. */
static void insert(uint32_t *list, uint32_t *n, uint32_t word, uint32_t key)
{
    uint32_t i = *n;
    if (word <= key << 23 || word >= (key + 1) << 23)
        return;
    while (i > 0 && list[i - 1] > word)
        i--;
    if (i > 0 && list[i - 1] == word)
        return;
    memmove(list + i + 1, list + i, (*n - i) * sizeof *list);
    list[i] = word;
    ++*n;
}

/* What target t does in a binade: splits and cuts go to the lists. */
static void plan_target(mpsim_binade *b, const mpsim_target *t, uint32_t key, int errors, uint32_t *splits,
                        uint32_t *n_splits, uint32_t *cuts)
{
    const uint32_t from = key << 23, below = (key + 1) << 23;
    const int drop = mpsim_target_drop(t, (int)key);
    insert(splits, n_splits, t->over, key);
    if (t->cuts_zero)
        insert(splits, n_splits, t->least, key);
    else
        insert(cuts, &b->cuts, t->least, key);
    insert(cuts, &b->cuts, t->normal, key);
    if (t->least < below && t->over > from && drop > 0 && drop < MPSIM_DROPS) {
        b->exact |= (uint32_t)1 << drop;
        if (errors)
            b->drops |= (uint64_t)1 << (MPSIM_DROPS * t->kind + drop);
    }
    if (errors && mpsim_target_leaves(t, (int)key))
        b->left = 1;
}

/* The cells of a binade, after those that there are. */
static void plan_cells(mpsim_cells *m, uint32_t key, const uint32_t *splits, uint32_t n)
{
    mpsim_binade *b = &m->binades[key];
    b->first_cell = (uint32_t)m->n_cells;
    b->cells = n + 1;
    for (uint32_t i = 0; i <= n; i++) {
        mpsim_cell *c = &m->cells[m->n_cells++];
        c->n = 0;
        c->from = i == 0 ? key << 23 : splits[i - 1];
        c->below = i == n ? (key + 1) << 23 : splits[i];
    }
}

/* Of three thresholds that a target has, each is a split or a cut of one binade. */
static int plan_binades(mpsim_cells *m, int errors)
{
    const size_t room = CASES * m->n_targets + 1;
    uint32_t *lists = malloc(2 * room * sizeof *lists), *splits = lists, *cuts = lists + room;
    size_t n_cuts = 0, n_reached = 0;
    m->cells = malloc((KEYS + room) * sizeof *m->cells);
    m->cuts = malloc(room * sizeof *m->cuts);
    for (uint32_t key = 1; key < KEYS && lists && m->cells && m->cuts; key++) {
        mpsim_binade *b = &m->binades[key];
        uint32_t n_splits = 0;
        for (size_t i = 0; i < m->n_targets; i++)
            plan_target(b, &m->targets[i], key, errors, splits, &n_splits, cuts);
        plan_cells(m, key, splits, n_splits);
        b->first_cut = (uint32_t)n_cuts;
        memcpy(m->cuts + n_cuts, cuts, b->cuts * sizeof *cuts);
        n_cuts += b->cuts;
        n_reached += (size_t)b->cuts * b->cells;
    }
    m->reached = lists && m->cells && m->cuts ? malloc((n_reached + 1) * sizeof *m->reached) : NULL;
    free(lists);
    if (!m->reached)
        return -1;
    uint64_t *at = m->reached;
    for (uint32_t key = 1; key < KEYS; key++)
        for (uint32_t i = 0; i < m->binades[key].cells; i++, at += m->binades[key].cuts)
            mpsim_cells_of(m, key)[i].reached = at;
    return 0;
}

void mpsim_cells_free(mpsim_cells *m)
{
    free(m->targets);
    free(m->cells);
    free(m->cuts);
    free(m->reached);
    free(m->buffers);
    memset(m, 0, sizeof *m);
}

mpsim_status mpsim_cells_plan(mpsim_cells *m, mpsim_target *targets, size_t n, int errors)
{
    free(m->targets);
    free(m->cells);
    free(m->cuts);
    free(m->reached);
    memset(m->binades, 0, sizeof m->binades);
    m->cells = NULL;
    m->cuts = NULL;
    m->reached = NULL;
    m->n_cells = m->n_used = 0;
    m->targets = targets;
    m->n_targets = n;
    if (plan_binades(m, errors))
        return MPSIM_ENOMEM;
    m->pending = 1; /* the buffers have no places yet */
    mpsim_cells_forget(m);
    return MPSIM_OK;
}
