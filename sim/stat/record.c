/* record.c -- see record.h. */
#include "record.h"

#include "../array/array.h"
#include "../process/host.h"

#include <math.h>
#include <stdlib.h>

const char *const stat_levels[] = {"tensor", "kind", "step", "total", NULL};

/* ---- what a group holds ---- */

#define AT(member) offsetof(mpsim_stats, member)
static const record_field stats_fields[] = {
    FIELD(COUNT, "count", IN_ALL, AT(count), "Elements.", .title = ">elements"),
    FIELD(SHARE, "zero", IN_ALL | FIELD_ZERO, AT(zero), "Elements that are 0.", .title = ">zero", .spare = 1,
          .of = AT(count)),
    FIELD(COUNT, "nan", IN_ALL | FIELD_BLANK, AT(nan), NULL, .title = ">NaN"),
    FIELD(COUNT, "inf", IN_ALL | FIELD_BLANK, AT(inf), NULL, .title = ">Inf"),
    FIELD(REAL, "amax", IN_ALL, AT(amax), "The largest finite magnitude; 0: none.", .title = ">amax", .column = 1),
    FIELD(REAL, "amin", IN_ALL, AT(amin), "The smallest finite magnitude above 0; 0: none.", .title = ">amin"),
    {0}};
#undef AT
static const record_kind stats_record = {"stats", NULL, sizeof(mpsim_stats), stats_fields};

#define AT(member) offsetof(stat_row, member)
static const record_field sums_fields[] = {
    FIELD(REAL, "mean", IN_ALL, AT(mean), "The mean of the finite elements.", .title = ">mean", .spare = 3),
    FIELD(REAL, "l2", IN_ALL, AT(l2), "The Euclidean norm of the finite elements.", .title = ">l2", .spare = 3),
    {0}};
#undef AT
static const record_kind sums_record = {"sums", NULL, sizeof(stat_row), sums_fields};

/* ---- bins ---- */

#define AT(member) offsetof(stat_bins, member)
#define BINS                                                                                   \
    FIELD(INTEGER, "first", IN_TREE, AT(first), "The power of two of the first bin."),         \
        FIELD(COUNTS, "counts", IN_TREE, AT(counts), "Bins of a factor of two.", .of = AT(n)), \
    {                                                                                          \
        0                                                                                      \
    }
static const record_field histogram_fields[] = {FIELD(COUNT, "zero", IN_TREE, AT(zero), NULL),
                                                FIELD(COUNT, "inf", IN_TREE, AT(inf), NULL),
                                                FIELD(COUNT, "nan", IN_TREE, AT(nan), NULL), BINS};
static const record_field scale_fields[] = {FIELD(COUNT, "zero", IN_TREE, AT(zero), "Scales that are 0."),
                                            FIELD(COUNT, "nonfinite", IN_TREE, AT(nan), "Scales that are Inf or NaN."),
                                            FIELD(COUNT, "zero_scales", IN_CSV, AT(zero), NULL),
                                            FIELD(COUNT, "nonfinite_scales", IN_CSV, AT(nan), NULL),
                                            FIELD(INTEGER, "scale_min_log2", IN_CSV, AT(lowest), NULL),
                                            FIELD(INTEGER, "scale_max_log2", IN_CSV, AT(highest), NULL),
                                            BINS};
#undef AT
static const record_kind histogram_record = {"histogram", "Elements by magnitude.", sizeof(stat_bins),
                                             histogram_fields};
static const record_kind scales_record = {"scales", "A histogram of the scales.", sizeof(stat_bins), scale_fields};

/* ---- what a cast or a recipe loses ---- */

#define AT(member) offsetof(stat_loss, member)
#define SQNR "Signal to quantisation noise, in decibels"
static const record_field errors_fields[] = {
    FIELD(REAL, "sqnr_db", IN_ALL, AT(sqnr_db), SQNR "; NaN: nothing compared."),
    FIELD(REAL, "mse", IN_ALL, AT(mse), "Mean squared error."),
    FIELD(CHARS, NULL, 0, AT(sqnr), SQNR ".", .title = ">SQNR dB", .when = SHOW_CASTS),
    FIELD(REAL, "max_rel_err", IN_ALL, AT(max_rel_err), "The largest |error| / |element|; NaN: nothing compared.",
          .title = ">max rel err", .spare = 2, .lacking = "-", .when = SHOW_CASTS),
    FIELD(COUNT, "compared", IN_ALL, AT(compared), "Finite elements with a finite result, which the errors are of."),
    {0}};
static const record_kind errors_record = {"errors", NULL, sizeof(stat_loss), errors_fields};

static const record_field losses_fields[] = {
    FIELD(COUNT, "underflow", IN_ALL, AT(underflow), "Elements other than 0 that become 0.", .title = ">underflow",
          .when = SHOW_CASTS),
    FIELD(SHARE, NULL, FIELD_BLANK, AT(underflow), NULL, .title = ">", .of = AT(of), .when = SHOW_CASTS),
    FIELD(SHARE, NULL, FIELD_ZERO, AT(underflow), NULL, .title = ">underflow", .of = AT(of), .when = SHOW_RECIPES),
    FIELD(COUNT, "subnormal", IN_ALL, AT(subnormal), "Results that are subnormal.", .title = ">subnormal", .spare = 1,
          .when = SHOW_CASTS),
    FIELD(SHARE, NULL, FIELD_BLANK, AT(subnormal), NULL, .title = ">", .of = AT(of), .when = SHOW_CASTS),
    FIELD(COUNT, "overflow", IN_ALL, AT(overflow),
          "Finite elements beyond the largest number once scaled and rounded, whether or not they saturate.",
          .title = ">overflow", .when = SHOW_CASTS),
    FIELD(SHARE, NULL, FIELD_BLANK, AT(overflow), NULL, .title = ">", .of = AT(of), .when = SHOW_CASTS),
    FIELD(SHARE, NULL, FIELD_ZERO, AT(overflow), "Finite elements that become the largest number.",
          .title = ">saturated", .of = AT(of), .when = SHOW_RECIPES),
    FIELD(COUNT, "inexact", IN_ALL, AT(inexact), "Elements that rounding changes.", .when = SHOW_CASTS),
    FIELD(SHARE, NULL, FIELD_ZERO, AT(inexact), NULL, .title = ">inexact", .spare = 3, .of = AT(of),
          .when = SHOW_CASTS),
    FIELD(RECORD, "", IN_ALL | FIELD_INLINE | FIELD_IF | FIELD_OPTIONAL, 0, NULL, .title = "", .of = AT(sums),
          .record = &errors_record, .when = SHOW_SUMS),
    {0}};
static const record_kind losses_record = {"losses", NULL, sizeof(stat_loss), losses_fields};

static const record_field cast_fields[] = {
    FIELD(TEXT, "format", IN_ALL, AT(name), NULL, .title = "<format"),
    FIELD(REAL, "scale", IN_ALL | FIELD_SCALE | FIELD_IF, AT(scale), NULL, .title = ">scale", .of = AT(is_cast),
          .when = SHOW_SCALES),
    FIELD(RECORD, "", IN_ALL | FIELD_INLINE, 0, NULL, .title = "", .record = &losses_record),
    {0}};
#undef AT
const record_kind stat_cast_record = {"cast", "What a cast to a format loses.", sizeof(stat_loss), cast_fields};

#define AT(member) offsetof(block_sums, member)
static const record_field blocks_fields[] = {
    FIELD(COUNT, "spoilt", IN_ALL, AT(stats.spoilt),
          "Finite elements that another element or the scale makes Inf or NaN."),
    FIELD(COUNT, "blocks", IN_ALL, AT(stats.blocks), NULL),
    FIELD(COUNT, "zero_blocks", IN_ALL, AT(stats.zero_blocks), "Blocks all of whose elements are 0."),
    FIELD(SHARE, "saturated_blocks", IN_ALL | FIELD_ZERO, AT(stats.saturated_blocks),
          "Blocks with an element that saturates.", .title = ">sat. blocks", .spare = 2, .of = AT(stats.blocks)),
    FIELD(SHARE, NULL, FIELD_BLANK, AT(stats.spoilt), NULL, .title = ">spoilt", .of = AT(elements)),
    FIELD(SHARE, "lost_blocks", IN_ALL | FIELD_BLANK, AT(stats.lost_blocks),
          "Finite blocks, not all 0, whose values all become 0.", .title = ">lost blocks", .of = AT(stats.blocks)),
    FIELD(COUNT, "nonfinite_blocks", IN_ALL, AT(stats.nonfinite_blocks), "Blocks with an Inf or NaN."),
    FIELD(COUNT, "least_scales", IN_ALL, AT(stats.least_scales), "Scales that are the smallest of their format."),
    FIELD(COUNT, "largest_scales", IN_ALL, AT(stats.largest_scales), "Scales that are the largest of their format."),
    {0}};
#undef AT
static const record_kind blocks_record = {"blocks", NULL, sizeof(block_sums), blocks_fields};

#define AT(member) offsetof(stat_loss, member)
static const record_field of_recipe_fields[] = {
    FIELD(WORD, "axis", IN_CSV, AT(axis), NULL, .words = block_axes),
    FIELD(RECORD, "", IN_ALL | FIELD_INLINE | FIELD_POINTER, AT(blocks), NULL, .title = "", .record = &blocks_record),
    FIELD(RECORD, "scales", IN_TREE, AT(scales), NULL, .record = &scales_record),
    FIELD(RECORD, "", IN_CSV | FIELD_INLINE | FIELD_IF, AT(scales), NULL, .of = AT(is_recipe),
          .record = &scales_record),
    FIELD(CHARS, NULL, 0, AT(scales_text), "The smallest and the largest scale, as powers of two.", .title = ">scales",
          .spare = 3),
    FIELD(CHARS, NULL, 0, AT(sqnr), SQNR ".", .title = ">SQNR dB", .when = SHOW_SUMS),
    {0}};
static const record_kind of_recipe_record = {"of_recipe", NULL, sizeof(stat_loss), of_recipe_fields};

static const record_field recipe_fields[] = {
    FIELD(TEXT, "recipe", IN_TREE, AT(name), NULL, .title = "<recipe"),
    FIELD(WORD, "axis", IN_TREE, AT(axis), "Along what the blocks lie.", .title = "<axis", .words = block_axes,
          .when = SHOW_AXES),
    FIELD(COUNT, "elements", IN_TREE, AT(of), "Those in blocks."),
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE, 0, NULL, .title = "", .record = &losses_record),
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE, 0, NULL, .title = "", .record = &of_recipe_record),
    {0}};
const record_kind stat_recipe_record = {"recipe_loss", "What a block recipe loses.", sizeof(stat_loss), recipe_fields};

/* Of either: lines of CSV. */
static const record_field csv_loss_fields[] = {
    FIELD(RECORD, "", IN_CSV | FIELD_INLINE, 0, NULL, .record = &stat_cast_record),
    FIELD(RECORD, "", IN_CSV | FIELD_INLINE, 0, NULL, .record = &of_recipe_record, .when = SHOW_RECIPES),
    {0}};
#undef AT
static const record_kind csv_loss_record = {"loss", NULL, sizeof(stat_loss), csv_loss_fields};

/* ---- rows ---- */

#define AT(member) offsetof(stat_row, member)
static const record_field held_fields[] = {
    FIELD(RECORD, "", IN_ALL | FIELD_INLINE | FIELD_POINTER, AT(stats), NULL, .title = "", .record = &stats_record),
    FIELD(COUNT, "roundoff", IN_TREE | FIELD_IF | FIELD_OPTIONAL, AT(roundoff),
          "With --without-roundoff: elements that are nothing but rounding, which all else leaves out.",
          .of = AT(tells_roundoff)),
    FIELD(RECORD, "", IN_ALL | FIELD_INLINE | FIELD_IF | FIELD_OPTIONAL, 0, NULL, .title = "", .of = AT(sums),
          .record = &sums_record, .when = SHOW_SUMS),
    FIELD(LIST, "formats", IN_TREE, AT(casts), "Casts, of the scales of a format one after the other.",
          .of = AT(n_casts), .record = &stat_cast_record),
    FIELD(LIST, "blocks", IN_TREE | FIELD_OPTIONAL, AT(recipes), "Block recipes, of the axes one after the other.",
          .of = AT(n_recipes), .record = &stat_recipe_record),
    FIELD(RECORD, "histogram", IN_TREE | FIELD_POINTER | FIELD_OPTIONAL, AT(histogram), "With --histogram.",
          .record = &histogram_record),
    {0}};
const record_kind stat_held_record = {"held", NULL, sizeof(stat_row), held_fields};

static const record_field array_fields[] = {
    FIELD(TEXT, "dtype", IN_ALL, offsetof(trace_tensor, dtype), "As the file has it."),
    FIELD(COUNTS, "shape", IN_ALL, offsetof(trace_tensor, shape), NULL, .of = offsetof(trace_tensor, rank)),
    {0}};
static const record_kind array_record = {"array", NULL, sizeof(trace_tensor), array_fields};

#define LEVEL(WORD) FIELD(TEXT, "level", IN_LINE | IN_CSV, AT(word), NULL, .words = (const char *const[]){WORD, NULL})
#define KIND \
    FIELD(TEXT, "kind", IN_ALL | FIELD_NULL, AT(kind), "null: tensors whose names say no kind.", .words = trace_kinds)
#define STEP FIELD(STEP, "step", IN_ALL | FIELD_NULL, AT(step), "null: files that say no step.")
#define TENSORS FIELD(COUNT, "tensors", IN_TREE | FIELD_BLANK, AT(tensors), NULL)
#define HELD FIELD(RECORD, "", IN_ALL | FIELD_INLINE, 0, NULL, .title = "", .record = &stat_held_record)

static const record_field tensor_fields[] = {
    LEVEL("tensor"),
    FIELD(TEXT, "file", IN_ALL, AT(file), NULL),
    FIELD(TEXT, "name", IN_ALL, AT(name), "Empty where the file names none."),
    KIND,
    STEP,
    FIELD(RECORD, "", IN_ALL | FIELD_INLINE | FIELD_POINTER, AT(tensor), NULL, .record = &array_record),
    FIELD(COUNT, NULL, FIELD_BLANK, AT(tensors), NULL, .title = ">tensors"),
    HELD,
    {0}};
static const record_field kind_fields[] = {LEVEL("kind"), KIND, TENSORS, HELD, {0}};
static const record_field step_fields[] = {LEVEL("step"), STEP, TENSORS, HELD, {0}};
static const record_field total_fields[] = {
    LEVEL("total"),
    TENSORS,
    HELD,
    FIELD(STEP, "failed_files", IN_TREE, AT(failed), "Files that could not be read, with --keep-going."),
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE | FIELD_POINTER, AT(unread), NULL, .record = &unread_list_record),
    FIELD(BOOLEAN, "partial", IN_LINE | FIELD_OPTIONAL, AT(partial),
          "A signal ended the command before all files were read."),
    {0}};
#undef AT
const record_kind stat_tensor_record = {"tensor", NULL, sizeof(stat_row), tensor_fields};
const record_kind stat_kind_record = {"kind", "All tensors of a kind.", sizeof(stat_row), kind_fields};
const record_kind stat_step_record = {"step", "All tensors of a step.", sizeof(stat_row), step_fields};
const record_kind stat_total_record = {"total", "All tensors.", sizeof(stat_row), total_fields};
const record_kind *const stat_level_records[STAT_LEVELS] = {&stat_tensor_record, &stat_kind_record, &stat_step_record,
                                                            &stat_total_record};

/* ---- lines of CSV and of tables for people ---- */

#define AT(member) offsetof(stat_shown, member)
static const record_field shown_fields[] = {
    FIELD(CHARS, NULL, 0, AT(name), NULL, .title = "<tensor", .when = SHOW_TENSORS),
    FIELD(CHARS, NULL, 0, AT(step), NULL, .title = ">step", .when = SHOW_TENSORS),
    FIELD(CHARS, NULL, 0, AT(name), NULL, .title = "<kind", .when = SHOW_KINDS),
    FIELD(CHARS, NULL, 0, AT(name), NULL, .title = "<step", .when = SHOW_STEPS),
    FIELD(CHARS, NULL, 0, AT(name), NULL, .title = "<", .when = SHOW_TOTAL),
    {0}};
#undef AT
static const record_kind shown_record = {"shown", NULL, sizeof(stat_shown), shown_fields};

#define AT(member) offsetof(stat_line, member)
#define PART(MEMBER, RECORD_OF) \
    FIELD(RECORD, "", IN_CSV | FIELD_INLINE | FIELD_POINTER, AT(MEMBER), NULL, .title = "", .record = &RECORD_OF)
static const record_field csv_fields[] = {PART(row, stat_tensor_record), PART(loss, csv_loss_record), {0}};
static const record_field holds_fields[] = {PART(label, shown_record), PART(row, stat_tensor_record), {0}};
static const record_field loses_fields[] = {PART(label, shown_record), PART(loss, stat_cast_record), {0}};
static const record_field of_blocks_fields[] = {PART(label, shown_record), PART(loss, stat_recipe_record), {0}};
#undef AT
const record_kind stat_csv_record = {"line", NULL, sizeof(stat_line), csv_fields};
const record_kind stat_holds_record = {"holds", NULL, sizeof(stat_line), holds_fields};
const record_kind stat_loses_record = {"loses", NULL, sizeof(stat_line), loses_fields};
const record_kind stat_blocks_record = {"of_blocks", NULL, sizeof(stat_line), of_blocks_fields};

/* ---- filling ---- */

enum { NO_AXIS = BLOCK_REQUANTISED + 1 };

int stat_rows_make(stat_rows *m, const target_list *targets, int counts, int roundoff)
{
    *m = (stat_rows){.targets = targets, .counts = counts, .roundoff = roundoff};
    m->losses = array_zeros(targets->count + targets->blocks.count, sizeof *m->losses);
    m->histogram = array_zeros(1, sizeof *m->histogram);
    return m->losses && m->histogram ? 0 : host_no_memory();
}

void stat_rows_clear(stat_rows *m)
{
    free(m->losses);
    free(m->histogram);
    m->losses = NULL;
    m->histogram = NULL;
}

/* Of n bins, the first of which is `least`. */
static void fill_bins(stat_bins *b, const uint64_t *bins, int n, int least)
{
    int first = 0, end = n;
    while (first < end && bins[first] == 0)
        first++;
    while (end > first && bins[end - 1] == 0)
        end--;
    b->counts = bins + first;
    b->n = (size_t)(end - first);
    b->first = b->n ? first + least : 0;
    b->lowest = b->n ? b->first : FIELD_NONE;
    b->highest = b->n ? end - 1 + least : FIELD_NONE;
}

/* With a mark where it leaves out elements. */
static void write_sqnr(stat_loss *k, const char *mark)
{
    const char *behind = k->left_out ? mark : "";
    if (k->compared == 0)
        snprintf(k->sqnr, sizeof k->sqnr, "-");
    else if (isfinite(k->sqnr_db))
        snprintf(k->sqnr, sizeof k->sqnr, "%.1f%s", k->sqnr_db, behind);
    else
        snprintf(k->sqnr, sizeof k->sqnr, "%s%s", k->sqnr_db > 0 ? "exact" : "-inf", behind);
}

/* What a cast and a recipe have in common. */
static void fill_loss(stat_loss *k, int counts, const mpsim_cast_stats *c, const mpsim_stats *s, uint64_t of)
{
    k->of = of;
    k->underflow = c->counts.underflow;
    k->subnormal = c->counts.subnormal;
    k->overflow = c->counts.overflow;
    k->inexact = c->counts.inexact;
    k->compared = c->compared;
    k->left_out = c->compared + s->nan + s->inf < of;
    k->all_lost = c->compared == 0 && of > s->nan + s->inf;
    k->sums = !counts;
    if (counts)
        return;
    k->sqnr_db = mpsim_cast_stats_sqnr_db(c, s);
    k->mse = mpsim_cast_stats_mse(c);
    k->max_rel_err = c->compared ? c->max_rel_err : (double)NAN; /* nothing is known, which is not the error 0 */
}

void stat_loss_of_cast(stat_loss *k, int counts, const mpsim_cast_stats *c, const mpsim_stats *s)
{
    k->is_cast = 1;
    k->axis = NO_AXIS;
    fill_loss(k, counts, c, s, s->count);
    write_sqnr(k, "*");
}

static void fill_cast(stat_loss *k, const stat_rows *m, const group *g, size_t i)
{
    group_cast c;
    stat_group_cast_at(g, m->targets, i, &c);
    *k = (stat_loss){.to = c.to, .name = c.to->label, .scale = c.scale};
    stat_loss_of_cast(k, m->counts, &c.stats, &g->stats);
}

static void write_scales(stat_loss *k)
{
    const stat_bins *b = &k->scales;
    if (b->n == 0)
        snprintf(k->scales_text, sizeof k->scales_text, "-");
    else if (b->n == 1)
        snprintf(k->scales_text, sizeof k->scales_text, "2^%d", b->lowest);
    else
        snprintf(k->scales_text, sizeof k->scales_text, "2^%d..2^%d", b->lowest, b->highest);
}

void stat_loss_of_blocks(stat_loss *k, int counts, const block_sums *b, const mpsim_stats *of)
{
    const mpsim_block_stats *s = &b->stats;
    k->is_recipe = 1;
    k->blocks = b;
    fill_loss(k, counts, &s->casts, of, b->elements);
    k->underflow = s->underflow;
    k->overflow = s->saturated;
    k->scales.zero = s->scale_zero;
    k->scales.nan = s->scale_nonfinite;
    fill_bins(&k->scales, s->scales, MPSIM_SCALE_BINS, MPSIM_SCALE_MIN);
    write_scales(k);
    write_sqnr(k, "+");
}

static void fill_recipe(stat_loss *k, const stat_rows *m, const group *g, size_t i)
{
    const block_target *t = &m->targets->blocks.items[i];
    *k = (stat_loss){.name = t->label, .axis = t->axis};
    stat_loss_of_blocks(k, m->counts, &g->blocks[i], &g->stats);
}

static const stat_bins *fill_histogram(stat_bins *b, const mpsim_histogram *h)
{
    if (!h)
        return NULL;
    b->zero = h->zero;
    b->inf = h->inf;
    b->nan = h->nan;
    fill_bins(b, h->bin, MPSIM_HISTOGRAM_BINS, MPSIM_HISTOGRAM_MIN);
    return b;
}

void stat_row_sums(stat_row *row)
{
    row->sums = 1;
    row->mean = mpsim_stats_mean(row->stats);
    row->l2 = mpsim_stats_l2(row->stats);
}

void stat_row_fill(const stat_rows *m, stat_row *row, const group *g)
{
    row->word = stat_levels[row->level];
    row->group = g;
    row->stats = &g->stats;
    row->tensors = row->tensor ? 0 : g->tensors;
    row->roundoff = g->roundoff;
    row->tells_roundoff = m->roundoff != 0;
    if (!m->counts)
        stat_row_sums(row);
    row->casts = m->losses;
    row->n_casts = stat_group_casts(g);
    for (size_t i = 0; i < row->n_casts; i++)
        fill_cast(&row->casts[i], m, g, i);
    row->recipes = g->n_blocks ? m->losses + m->targets->count : NULL;
    row->n_recipes = 0;
    for (size_t i = 0; i < g->n_blocks; i++)
        if (stat_group_has_blocks(g, &m->targets->blocks, i))
            fill_recipe(&row->recipes[row->n_recipes++], m, g, i);
    row->histogram = fill_histogram(m->histogram, g->histogram);
}
