/* noise.c -- see noise.h. A report is untrusted: every member is checked. */
#include "noise.h"

#include <math.h>

int plot_held_read(plot_held *of, const plot_report *r, const json_t *item)
{
    static const char *const counts[] = {"count", "zero", "nan", "inf"};
    uint64_t n[4];
    for (size_t i = 0; i < 4; i++) {
        const int code = plot_get_count(r, item, counts[i], &n[i]);
        if (code)
            return code;
    }
    if (n[1] > n[0] || n[2] > n[0] - n[1] || n[3] > n[0] - n[1] - n[2])
        return plot_malformed(r, "counts contradict each other");
    const json_t *l2 = json_object_get(item, "l2");
    *of = (plot_held){.count = n[0],
                      .finite = n[0] - n[2] - n[3],
                      .zero = n[1],
                      .l2 = json_is_number(l2) ? json_number_value(l2) : (double)NAN};
    return 0;
}

/* SQNR is the ratio of two sums over the elements that were compared; the report has their ratio, and
 * of the noise the mean. Where there is no noise, the signal is that of all elements if all were
 * compared, 0 if only zeros were, and not known otherwise. */
int plot_noise_add(plot_noise *to, const plot_report *r, const json_t *cast, const plot_held *of)
{
    const json_t *mse = json_object_get(cast, "mse"), *compared = json_object_get(cast, "compared");
    double sqnr;
    if (!plot_is_number(json_object_get(cast, "sqnr_db"), &sqnr))
        return plot_wrong_member(r, "sqnr_db", "decibels");
    to->items++;
    to->sqnr = sqnr;
    const json_int_t n = json_is_integer(compared) ? json_integer_value(compared) : -1;
    if (n == 0)
        return 0;
    const double noise = n > 0 && json_is_number(mse) ? json_number_value(mse) * (double)n : (double)NAN;
    to->noise += noise;
    to->signal += noise > 0                   ? noise * pow(10, to->sqnr / 10)
                  : (uint64_t)n == of->finite ? of->l2 * of->l2
                  : (uint64_t)n <= of->zero   ? 0
                                              : (double)NAN;
    return 0;
}

/* Of a block recipe, which may take a part of the tensor only, "spoilt" are left out; of a format what was not compared. */
int plot_lost_read(uint64_t *lost, const plot_report *r, const json_t *cast, const plot_held *of)
{
    const json_t *spoilt = json_object_get(cast, "spoilt"), *compared = json_object_get(cast, "compared");
    uint64_t out = 0;
    int code = plot_get_count(r, cast, "underflow", lost);
    if (!code && spoilt)
        code = plot_get_count(r, cast, "spoilt", &out);
    else if (!code && compared && !json_object_get(cast, "recipe")) {
        code = plot_get_count(r, cast, "compared", &out);
        out = out <= of->finite ? of->finite - out : 0;
    }
    if (!code && (*lost > of->count || out > of->count - *lost))
        code = plot_malformed(r, "counts contradict each other");
    *lost += out;
    return code;
}

void plot_noise_merge(plot_noise *to, const plot_noise *from)
{
    if (from->items)
        to->sqnr = from->sqnr;
    to->items += from->items;
    to->signal += from->signal;
    to->noise += from->noise;
}

double plot_noise_decibels(const plot_noise *n)
{
    if (n->items == 1)
        return n->sqnr;
    if (!(n->signal > 0))
        return (double)NAN;
    return n->noise > 0 ? 10 * log10(n->signal / n->noise) : n->noise == 0 ? HUGE_VAL : (double)NAN;
}
