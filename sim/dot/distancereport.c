/* distancereport.c -- see distancereport.h. */
#include "distancereport.h"

#include "../cli/options.h"

#include <stddef.h>

#define AT(member) offsetof(dot_distance, member)

static const record_field distance_fields[] = {
    FIELD(COUNT, "compared", IN_TREE, AT(compared), "Results that the relative measures count."),
    FIELD(REAL, "rel_err", IN_ALL, AT(rel), "||d - e|| / ||e||, Euclidean norms.", .title = ">rel. error",
          .format = "%.2e", .when = SHOW_RELATIVE),
    FIELD(REAL, "max_rel_err", IN_ALL, AT(max_rel), "The largest |d - e| / |e|, over e not 0.", .title = ">largest",
          .spare = 3, .format = "%.2e", .when = SHOW_RELATIVE),
    FIELD(REAL, "mean_rel_err", IN_ALL, AT(mean_rel), "The mean of |d - e| / |e|, over e not 0."),
    FIELD(REAL, "bias", IN_ALL, AT(bias),
          "The sum of |d| - |e| over the sum of |e|: below 0 where magnitudes are lost.", .title = ">bias", .spare = 2,
          .format = "%+.1e", .when = SHOW_RELATIVE),
    FIELD(REAL, "max_abs_err", IN_ALL, AT(max_abs), "The largest |d - e|, without the scales of the operands.",
          .title = ">largest", .spare = 3, .format = "%.2e", .when = SHOW_ABSOLUTE),
    FIELD(REAL, "rmse", IN_ALL, AT(rmse), "The square root of the mean of (d - e)^2.", .title = ">RMSE",
          .format = "%.2e", .when = SHOW_ABSOLUTE),
    FIELD(REAL, "mean_abs_err", IN_ALL, AT(mean_abs), "The mean of |d - e|.", .title = ">mean abs.", .spare = 3,
          .format = "%.2e", .when = SHOW_ABSOLUTE),
    FIELD(REAL, "mean_err", IN_ALL, AT(mean), "The mean of d - e.", .title = ">mean", .spare = 2, .format = "%+.1e",
          .when = SHOW_ABSOLUTE),
    {0}};

const record_kind dot_distance_record = {
    "distance",
    "How far results d are from exact results e. Results that are not finite are left out; the relative measures (rel_err, "
    "max_rel_err, mean_rel_err, bias) count only results with |e| above `above`. Sums are exact.",
    sizeof(dot_distance), distance_fields};

unsigned dot_distance_shows(report_style style, int absolute, double above)
{
    if (style == REPORT_CSV)
        return ~0u;
    return (absolute ? SHOW_ABSOLUTE : SHOW_RELATIVE) | (above >= 0 ? SHOW_BOUND : 0);
}

/* ---- a large error of a result that cancels ---- */

void dot_distance_worse(dot_distance *worst, const dot_distance *d)
{
    if (d->max_rel >= 0.25 && d->max_rel > worst->max_rel)
        *worst = *d;
}

void dot_distance_note(FILE *to, const dot_distance *worst, const char *begin, const char *end)
{
    if (worst->max_rel > 0 && worst->cancelled < 0.1)
        fprintf(
            to,
            "\n%s largest error of %.2e is of a result that cancels to %.1e of the typical one (root mean square)%s.\n",
            begin, worst->max_rel, worst->cancelled, end);
}
