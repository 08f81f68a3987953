/* distribution.c -- see distribution.h. A lane is a recipe in a group of tensors. */
#include "impl.h"

#include <inttypes.h>
#include <math.h>

enum { NAME_SHOWN = 26 };
static const double TAIL = 0.2; /* per cent */

/* Characters of a recipe's name: what leaves room for the scales and the table. */
static size_t lane_label(const plot_request *r)
{
    return plot_fit(0.34 * r->width - 0.14, NAME_SHOWN);
}

static double percent(uint64_t n, uint64_t of)
{
    return of ? 100 * (double)n / (double)of : 0;
}

/* Blocks that have a scale in a bin, and the largest bin. */
static uint64_t sum_scales(const plot_effect *e, uint64_t *most)
{
    uint64_t sum = 0;
    *most = 0;
    for (int i = 0; i < MPSIM_SCALE_BINS; i++) {
        sum += e->scales[i];
        *most = e->scales[i] > *most ? e->scales[i] : *most;
    }
    return sum;
}

/* The next lane: 1, or 0 behind the last. Start with row = item = 0 and *lane = -1. */
static int next_lane(const plot_groups *g, size_t *row, size_t *item, int *lane)
{
    for (*item += *lane >= 0; *row < g->n_groups; ++*row, *item = 0)
        for (; *item < g->n_targets; ++*item)
            if (g->groups[*row].effects[*item].blocks) {
                ++*lane;
                return 1;
            }
    return 0;
}

static void put_lanes(FILE *to, const plot_groups *g, size_t characters)
{
    size_t row = 0, item = 0;
    int lane = -1;
    fputs(
        "\n\n# lanes\n# 1 lane  2 group  3 blocks  4 of them zero, in per cent of all blocks: 5 saturated ones, 7 lost ones\n"
        "# (every element becomes zero); 6 elements that saturate, per cent of all  8 scales that are the least and\n"
        "# 9 the largest of their format, blocks whose scale is 10 zero, 11 Inf or NaN  12 label  13 recipe\n",
        to);
    while (next_lane(g, &row, &item, &lane)) {
        const plot_effect *e = &g->groups[row].effects[item];
        fprintf(to, "%d %zu %" PRIu64 " %" PRIu64 " %.6g %.6g %.6g %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ",
                lane, row, e->blocks, e->zero_blocks, percent(e->saturated_blocks, e->blocks),
                percent(e->overflow, e->elements), percent(e->lost_blocks, e->blocks), e->least_scales,
                e->largest_scales, e->scale_zero, e->scale_nonfinite);
        plot_put_label(to, g->targets[item].label, characters);
        fputc(' ', to);
        plot_put_data(to, g->targets[item].label);
        fputc('\n', to);
    }
}

static void put_bins(FILE *to, const plot_groups *g)
{
    size_t row = 0, item = 0;
    int lane = -1;
    fputs(
        "\n\n# scales\n# 1 lane  2 exponent of the scale  3 blocks, per cent of those in any bin  4 to the largest bin\n",
        to);
    while (next_lane(g, &row, &item, &lane)) {
        const plot_effect *e = &g->groups[row].effects[item];
        uint64_t most;
        const uint64_t all = sum_scales(e, &most);
        for (int i = 0; i < MPSIM_SCALE_BINS; i++)
            if (e->scales[i])
                fprintf(to, "%d %d %.6g %.6g\n", lane, i + MPSIM_SCALE_MIN, percent(e->scales[i], all),
                        (double)e->scales[i] / (double)most);
    }
}

void plot_put_distribution(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_groups *g = &in->groups;
    put_lanes(to, g, lane_label(r));
    fputs("\n\n# groups\n# 1 group  2 label  3 name\n", to);
    for (size_t i = 0; i < g->n_groups; i++) {
        fprintf(to, "%zu ", i);
        plot_put_label(to, g->groups[i].name, 2 * lane_label(r));
        fputc(' ', to);
        plot_put_data(to, g->groups[i].name);
        fputc('\n', to);
    }
    put_bins(to, g);
}

/* The bins from first to last, widened so that of a lane at most TAIL lies on either side. */
static void widen(const plot_effect *e, int *first, int *last)
{
    uint64_t most, below = 0, above = 0;
    const double tail = TAIL / 100 * (double)sum_scales(e, &most);
    int from = 0, to = MPSIM_SCALE_BINS - 1;
    if (most == 0)
        return;
    while ((double)(below += e->scales[from]) <= tail)
        from++;
    while ((double)(above += e->scales[to]) <= tail)
        to--;
    *first = from < *first ? from : *first;
    *last = to > *last ? to : *last;
}

/* Of the lane of which most lies there, what is left of the first bin and right of the last. */
static void find_beyond(const plot_groups *g, int first, int last, double beyond[2])
{
    size_t row = 0, item = 0;
    int lane = -1;
    while (next_lane(g, &row, &item, &lane)) {
        const plot_effect *e = &g->groups[row].effects[item];
        uint64_t most, sides[2] = {0, 0};
        const uint64_t all = sum_scales(e, &most);
        for (int i = 0; i < MPSIM_SCALE_BINS; i++)
            if (i < first || i > last)
                sides[i > last] += e->scales[i];
        for (int k = 0; k < 2; k++)
            beyond[k] = fmax(beyond[k], percent(sides[k], all));
    }
}

void plot_put_distribution_variables(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_groups *g = &in->groups;
    size_t row = 0, item = 0, longest = 0;
    uint64_t lost = 0;
    int lane = -1, first = MPSIM_SCALE_BINS, last = -1;
    double beyond[2] = {0, 0};
    while (next_lane(g, &row, &item, &lane)) {
        const plot_effect *e = &g->groups[row].effects[item];
        const size_t n = plot_characters(g->targets[item].label);
        longest = n > longest ? n : longest;
        lost += e->lost_blocks;
        widen(e, &first, &last);
    }
    fprintf(to, "has_scales = %d # some lane has a bin\n", first <= last);
    if (last < first)
        first = last = -MPSIM_SCALE_MIN;
    find_beyond(g, first, last, beyond);
    fprintf(to, "x_low = %d; x_high = %d # exponents: from the first bin to the end of the last\n",
            first + MPSIM_SCALE_MIN, last + MPSIM_SCALE_MIN + 1);
    fprintf(to, "beyond_low = %.3g; beyond_high = %.3g # per cent of the blocks of the lane of which most is\n",
            beyond[0], beyond[1]);
    fprintf(to, "n_lanes = %d; n_groups = %zu\n", lane + 1, g->n_groups);
    fprintf(to, "has_lost = %d # some block becomes zero\n", lost > 0);
    fprintf(to, "headings = %d # names of groups are shown\n", g->by != PLOT_TOTAL);
    fprintf(to, "name_length = %zu\n", longest < lane_label(r) ? longest : lane_label(r));
    plot_groups_put_note(to, g);
    plot_groups_put_axes(to, g);
}
