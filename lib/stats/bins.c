/* bins.c -- counting elements; see bins.h. */
#include "bins.h"

#include <stdlib.h>
#include <string.h>

/* Add a cut of a binade to those of all. */
static void add_cut(mpsim_bins *b, uint32_t word)
{
    mpsim_bin_job *job = &b->job;
    const uint32_t sig = (word & 0x7fffff) | 0x800000;
    uint32_t i = job->n_cuts;
    while (i > 0 && job->cuts[i - 1] > sig)
        i--;
    if (i > 0 && job->cuts[i - 1] == sig)
        return;
    if (job->n_cuts == MPSIM_CUTS) {
        b->can = 0;
        return;
    }
    memmove(job->cuts + i + 1, job->cuts + i, (job->n_cuts - i) * sizeof *job->cuts);
    job->cuts[i] = sig;
    job->n_cuts++;
}

void mpsim_bins_plan(mpsim_bins *b, const mpsim_cells *m)
{
    mpsim_bins_forget(b);
    b->job.n_cuts = 0;
    b->can = 1;
    for (uint32_t key = 1; key < 255; key++) {
        const mpsim_binade *binade = &m->binades[key];
        for (uint32_t i = 1; i < binade->cells; i++)
            add_cut(b, mpsim_cells_of(m, key)[i].from);
        for (uint32_t i = 0; i < binade->cuts; i++)
            if ((m->cuts[binade->first_cut + i] & 0x7fffff) != 1) /* the zeros at the end say that */
                add_cut(b, m->cuts[binade->first_cut + i]);
    }
}

/* The extremes of a block in which there are infinities or NaN. */
static uint32_t largest_finite(const unsigned char *x, size_t n)
{
    uint32_t max = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, x + 4 * i, sizeof u);
        u &= 0x7fffffff;
        if (u < 0x7f800000 && u > max)
            max = u;
    }
    return max;
}

mpsim_status mpsim_bins_add(mpsim_bins *b, mpsim_cells *m, const mpsim_cell_loops *loops, const void *x, size_t n)
{
    enum { BLOCK = MPSIM_CELL_BLOCK, WHOLE = 32 };
    const unsigned char *from = x;
    if (!b->job.bins) {
        b->job.bins = aligned_alloc(64, MPSIM_BINS * sizeof *b->job.bins);
        if (!b->job.bins)
            return MPSIM_ENOMEM;
        memset(b->job.bins, 0, MPSIM_BINS * sizeof *b->job.bins);
    }
    while (n >= WHOLE) {
        const size_t part = n < BLOCK ? n - n % WHOLE : BLOCK;
        if (b->n > UINT32_MAX - BLOCK)
            mpsim_bins_settle(b, m);
        if (loops->bin(&b->job, from, part)) {
            const uint32_t min = b->job.min >> 1, max = b->job.max >> 1;
            const uint32_t most = max < 0x7f800000 ? max : largest_finite(from, part);
            b->n += part;
            m->min = min && min < 0x7f800000 && min < m->min ? min : m->min;
            m->max = most > m->max ? most : m->max;
        } else {
            const mpsim_status status = mpsim_cells_add(m, loops, from, part);
            if (status != MPSIM_OK)
                return status;
        }
        from += 4 * part;
        n -= part;
    }
    return n ? mpsim_cells_add(m, loops, from, n) : MPSIM_OK;
}

static void settle_row(mpsim_cells *m, uint32_t key, mpsim_cell *c, uint32_t from, const uint32_t *row)
{
    for (int zeros = 0; zeros < 24; zeros++) {
        const uint32_t n = row[zeros];
        if (n == 0)
            continue;
        if (key == 0)
            m->zero += n;
        else if (key == 255 && zeros == 23)
            m->inf += n;
        else if (key == 255)
            m->nan += n;
        else
            mpsim_cell_add_counted(m, key, c, from, zeros, n);
    }
}

void mpsim_bins_settle(mpsim_bins *b, mpsim_cells *m)
{
    static const uint32_t none[MPSIM_ROW];
    const mpsim_bin_job *job = &b->job;
    for (uint32_t k = 0; k <= job->n_cuts && b->n; k++) {
        const uint32_t from = k ? job->cuts[k - 1] & 0x7fffff : 0;
        for (uint32_t key = 0; key < 256; key++) {
            const uint32_t *row = job->bins + k * MPSIM_SHEET + key * MPSIM_ROW;
            mpsim_cell *c = key && key < 255 ? mpsim_cells_of(m, key) : NULL;
            if (memcmp(row, none, sizeof none) == 0)
                continue;
            while (c && c->below <= (key << 23 | from))
                c++;
            settle_row(m, key, c, from, row);
        }
    }
    mpsim_bins_forget(b);
}

void mpsim_bins_forget(mpsim_bins *b)
{
    if (b->n)
        memset(b->job.bins, 0, MPSIM_BINS * sizeof *b->job.bins);
    b->n = 0;
}
