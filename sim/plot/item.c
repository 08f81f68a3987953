/* item.c -- see item.h. A report is untrusted: every member is checked. */
#include "item.h"

#include <mpsim/blockstats.h>

#include <string.h>

#define AT(member) offsetof(plot_bins, member)
static const record_field bins_fields[] = {FIELD(INTEGER, "first", IN_JSON, AT(first), NULL),
                                           FIELD(COUNT, "zero", IN_JSON, AT(zero), NULL),
                                           FIELD(COUNT, "nonfinite", IN_JSON, AT(nonfinite), NULL),
                                           FIELD(COUNTS, "counts", IN_JSON, AT(counts), NULL, .of = AT(n)),
                                           {0}};
static const record_kind bins = {"bins", NULL, sizeof(plot_bins), bins_fields};
#undef AT

#define AT(member) offsetof(plot_cast, member)
static const record_field cast_fields[] = {
    FIELD(TEXT, "format", IN_JSON, AT(format), NULL),
    FIELD(TEXT, "recipe", IN_JSON, AT(recipe), NULL),
    FIELD(TEXT, "axis", IN_JSON, AT(axis), NULL),
    FIELD(REAL, "scale", IN_JSON | FIELD_FINITE | FIELD_OPTIONAL, AT(scale), NULL),
    FIELD(COUNT, "underflow", IN_JSON, AT(underflow), NULL),
    FIELD(COUNT, "overflow", IN_JSON, AT(overflow), NULL),
    FIELD(REAL, "sqnr_db", IN_JSON, AT(sqnr), NULL),
    FIELD(REAL, "mse", IN_JSON, AT(mse), NULL),
    FIELD(STEP, "elements", IN_JSON, AT(elements), NULL),
    FIELD(STEP, "compared", IN_JSON, AT(compared), NULL),
    FIELD(STEP, "spoilt", IN_JSON, AT(spoilt), NULL),
    FIELD(COUNT, "blocks", IN_JSON, AT(blocks), NULL),
    FIELD(COUNT, "zero_blocks", IN_JSON, AT(zero_blocks), NULL),
    FIELD(COUNT, "saturated_blocks", IN_JSON, AT(saturated_blocks), NULL),
    FIELD(COUNT, "lost_blocks", IN_JSON, AT(lost_blocks), NULL),
    FIELD(COUNT, "least_scales", IN_JSON, AT(least_scales), NULL),
    FIELD(COUNT, "largest_scales", IN_JSON, AT(largest_scales), NULL),
    FIELD(RECORD, "scales", IN_JSON, AT(scales), NULL, .record = &bins),
    {0}};
static const record_kind cast = {"cast", NULL, sizeof(plot_cast), cast_fields};
#undef AT

#define AT(member) offsetof(plot_item, member)
static const record_field item_fields[] = {
    FIELD(TEXT, "name", IN_JSON, AT(name), NULL),
    FIELD(TEXT, "kind", IN_JSON, AT(kind), NULL),
    FIELD(STEP, "step", IN_JSON, AT(step), NULL),
    FIELD(COUNT, "count", IN_JSON, AT(count), NULL),
    FIELD(COUNT, "zero", IN_JSON, AT(zero), NULL),
    FIELD(COUNT, "nan", IN_JSON, AT(nan), NULL),
    FIELD(COUNT, "inf", IN_JSON, AT(inf), NULL),
    FIELD(REAL, "amin", IN_JSON | FIELD_FINITE, AT(amin), NULL),
    FIELD(REAL, "amax", IN_JSON | FIELD_FINITE, AT(amax), NULL),
    FIELD(REAL, "l2", IN_JSON, AT(l2), NULL),
    FIELD(LIST, "formats", IN_JSON, AT(formats), NULL, .of = AT(n_formats), .record = &cast),
    FIELD(LIST, "blocks", IN_JSON, AT(blocks), NULL, .of = AT(n_blocks), .record = &cast),
    FIELD(RECORD, "histogram", IN_JSON, AT(histogram), NULL, .record = &bins),
    {0}};
static const record_kind item_record = {"item", NULL, sizeof(plot_item), item_fields};
#undef AT

#define AT(member) offsetof(plot_stat, member)
#define ITEMS(KEY, OF) FIELD(LIST, KEY, IN_JSON, AT(OF), NULL, .of = AT(n_##OF), .record = &item_record)
static const record_field stat_fields[] = {
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE, AT(settings), NULL, .record = &plot_settings_record),
    ITEMS("tensors", tensors),
    ITEMS("kinds", kinds),
    ITEMS("steps", steps),
    FIELD(RECORD, "total", IN_JSON, AT(total), NULL, .record = &item_record),
    {0}};
#undef AT
const record_kind plot_stat_record = {"stat", NULL, sizeof(plot_stat), stat_fields};

int plot_item_read(plot_item *item, const plot_report *r, record_source v, const char *needs)
{
    const int code = plot_read(r, &item_record, v, item, needs);
    if (code)
        return code;
    if (item->zero > item->count || item->nan > item->count - item->zero ||
        item->inf > item->count - item->zero - item->nan)
        return plot_malformed(r, "counts contradict each other");
    item->finite = item->count - item->nan - item->inf;
    return 0;
}

void plot_item_clear(plot_item *item)
{
    record_forget(&item_record, item);
}

const plot_cast *plot_item_cast(const plot_item *item, int scaled, const char *target, double scale)
{
    for (size_t i = 0; i < item->n_formats; i++) {
        const plot_cast *c = &item->formats[i];
        if (c->format && strcmp(c->format, target) == 0 && (!scaled || c->scale == scale))
            return c;
    }
    for (size_t i = 0; i < item->n_blocks; i++)
        if (item->blocks[i].recipe && strcmp(item->blocks[i].recipe, target) == 0)
            return &item->blocks[i];
    return NULL;
}

/* ---- sums ---- */

int plot_count(const plot_report *r, uint64_t *to, uint64_t n)
{
    if (*to > UINT64_MAX - n)
        return plot_malformed(r, "counts are too large");
    *to += n;
    return 0;
}

int plot_add_bins(const plot_report *r, const plot_bins *h, int least, int most, uint64_t *to, uint64_t *also)
{
    const char *bad = least == MPSIM_SCALE_MIN ? "scales have exponents beyond those of binary32"
                                               : "a histogram has exponents beyond those of binary64";
    if (h->n && (h->first < least || h->first > most || h->n > (size_t)(most - h->first) + 1))
        return plot_malformed(r, bad);
    uint64_t *const at = to + (h->n ? h->first - least : 0), *const beside = also ? also + (at - to) : NULL;
    int code = 0;
    for (size_t i = 0; !code && i < h->n; i++) {
        code = plot_count(r, &at[i], h->counts[i]);
        if (!code && beside)
            code = plot_count(r, &beside[i], h->counts[i]);
    }
    return code;
}

/* ---- what is selected ---- */

static int see(void *context, record_source item)
{
    plot_walk *w = context;
    const plot_label l = plot_label_of(item);
    if (!plot_item_selected(&l, w->selection, w->step))
        return 0;
    w->selected++;
    if (w->scaled && !plot_item_scaled(w->settings, l.kind))
        return 0;
    if (l.step >= 0) {
        const uint64_t step = (uint64_t)l.step;
        w->steps->first = w->steps->has && w->steps->first < step ? w->steps->first : step;
        w->steps->last = w->steps->has && w->steps->last > step ? w->steps->last : step;
        w->steps->has = 1;
    }
    return w->only_steps ? 0 : w->visit(w->context, item);
}

int plot_walk_items(plot_walk *w, const char *sums)
{
    const record_source root = w->report->root;
    int code = 0;
    if (w->selection->step && parse_count(&w->step, w->selection->step) != 0)
        return fail(EXIT_USAGE, "plot: --step: '%s' is not a number of a step", w->selection->step);
    w->only_steps = sums != NULL;
    if (!sums || record_has(root, "tensors"))
        code = plot_each(w->report, root, "tensors", see, w);
    w->only_steps = 0;
    if (!code && sums && strcmp(sums, "total") == 0)
        return w->visit(w->context, record_part(root, sums));
    if (!code && sums)
        code = plot_each(w->report, root, sums, see, w);
    if (!code && w->selected == 0)
        code = fail(EXIT_USAGE, "plot: --match, --kind, --step select no tensor of the report");
    return code;
}
