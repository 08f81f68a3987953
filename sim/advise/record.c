/* record.c -- the records of the advice (mpsim.advise/1); see record.h. */
#include "record.h"

#include "../trace/roundoff.h"

#include <math.h>
#include <string.h>

/* ---- what is asked ---- */

#define AT(member) offsetof(advise, member)
static const record_field bound_fields[] = {
    FIELD(REAL, "max_underflow", IN_JSON, AT(bounds.underflow), "Share of a tensor that may become 0."),
    FIELD(REAL, "max_overflow", IN_JSON, AT(bounds.overflow), "Share of a tensor that may become Inf or NaN."),
    FIELD(REAL, "min_sqnr_db", IN_JSON, AT(bounds.sqnr), "The least SQNR, in decibels."),
    FIELD(REAL, "max_lost", IN_JSON, AT(bounds.lost), "Share of updates that bf16 weights may lose."),
    FIELD(COUNT, "hold_back", IN_JSON, AT(hold_back), "Every so many steps one is held back; 0: none."),
    {0}};
static const record_kind bounds = {"bounds", NULL, sizeof(advise), bound_fields};
#undef AT

#define AT(member) offsetof(advise_document, member)
static const record_field config_fields[] = {
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE | FIELD_POINTER, AT(a), NULL, .record = &bounds),
    FIELD(TEXTS, "inputs", IN_JSON, AT(inputs), NULL, .of = AT(n_inputs)),
    {0}};
static const record_kind config = {"config", "What is asked.", sizeof(advise_document), config_fields};
#undef AT

/* ---- weights in bf16 ---- */

#define AT(member) offsetof(advise_weights, member)
static const record_field lost_fields[] = {
    FIELD(STEP, "step", IN_JSON | FIELD_NULL, AT(of.step), "The worst step; null: the file says none."),
    FIELD(COUNT, "updates", IN_JSON, AT(of.updates), "Elements that would move."),
    FIELD(COUNT, "lost", IN_JSON, AT(of.lost), "Elements that would move and do not."),
    FIELD(REAL, "moved", IN_JSON, AT(of.moved), "Share of the updates that the parameters make in the mean."),
    FIELD(REAL, "lr", IN_JSON, AT(of.lr), "The learning rate of the step."),
    FIELD(REAL, "lr_enough", IN_JSON, AT(of.enough),
          "A learning rate at which no more than max_lost are lost; NaN: not known."),
    FIELD(TEXT, "worst", IN_JSON | FIELD_NULL, AT(worst), "The parameter that loses most."),
    {0}};
static const record_kind lost = {"lost", NULL, sizeof(advise_weights), lost_fields};

static const record_field weights_fields[] = {
    FIELD(BOOLEAN, "known", IN_JSON, AT(known), "Whether it is known how many updates are lost."),
    FIELD(TEXT, "why_not_known", IN_JSON | FIELD_NULL, AT(why), "Why that, or lr_enough, is not known."),
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE | FIELD_IF | FIELD_OPTIONAL, 0, NULL, .of = AT(told), .record = &lost),
    FIELD(BOOLEAN, "masters", IN_JSON, AT(of.keep), "Whether master weights are advised."),
    {0}};
static const record_kind weights = {"weights", "Weights in bf16 that take up updates.", sizeof(advise_weights),
                                    weights_fields};
#undef AT

/* ---- the loss scale ---- */

#define AT(member) offsetof(advise_window, member)
static const record_field window_fields[] = {FIELD(INTEGER, "low_exponent", IN_TREE, AT(low), NULL),
                                             FIELD(INTEGER, "high_exponent", IN_TREE, AT(high), NULL),
                                             {0}};
static const record_kind window = {"window", "Powers of two, from 2^low_exponent to 2^high_exponent.",
                                   sizeof(advise_window), window_fields};
#undef AT

#define AT(member) offsetof(advise_scale, member)
static const record_field scale_fields[] = {
    FIELD(RECORD, "window", IN_JSON | FIELD_IF | FIELD_NULL, AT(window),
          "Scales that keep the gradients within the bounds in fp16.", .of = AT(is), .record = &window),
    FIELD(INTEGER, "exponent", IN_JSON | FIELD_NULL, AT(exponent), "The scale that is advised is 2 to this."),
    FIELD(COUNT, "gradients", IN_JSON, AT(gradients), "Tensors."),
    FIELD(COUNT, "fit", IN_JSON, AT(fit), "Gradients that the window holds for."),
    {0}};
static const record_kind scale = {"scale", "The loss scale of fp16.", sizeof(advise_scale), scale_fields};
#undef AT

/* ---- layers ---- */

#define AT(member) offsetof(advise_layer, member)
static const record_field layer_fields[] = {
    FIELD(TEXT, "name", IN_JSON, AT(name), NULL),
    FIELD(WORD, "kind", IN_JSON, AT(kind), NULL, .words = policy_layer_kind_words),
    FIELD(FLAG, "keep_fp32", IN_JSON, AT(kept), "Whether the layer is kept in fp32."),
    FIELD(FLAG, "fp8_exclude", IN_JSON, AT(excluded), "Whether the recipe leaves the layer out."),
    {0}};
static const record_kind layer = {"layer", NULL, sizeof(advise_layer), layer_fields};
#undef AT

/* ---- tensors ---- */

#define AT(member) offsetof(advise_worst, member)
static const record_field worst_fields[] = {
    FIELD(REAL, "value", IN_TREE, AT(value), NULL),
    FIELD(STEP, "step", IN_TREE | FIELD_NULL, AT(step), "The step of this value; null: the file says none."),
    {0}};
static const record_kind worst = {"worst", "The worst of all steps.", sizeof(advise_worst), worst_fields};
#undef AT

#define AT(member) offsetof(advise_tried, member)
static const record_field tried_fields[] = {
    FIELD(TEXT, "format", IN_TREE, AT(format), NULL),
    FIELD(TEXT, "recipe", IN_TREE | FIELD_NULL, AT(recipe), "The block recipe; null: a cast."),
    FIELD(BOOLEAN, "fits", IN_TREE, AT(fits), "Whether the format keeps the bounds in every step."),
    FIELD(TEXT, "why_not", IN_TREE | FIELD_NULL, AT(why_not), NULL),
    FIELD(RECORD, "underflow", IN_TREE, AT(of.underflow), "Share of the elements.", .record = &worst),
    FIELD(RECORD, "overflow", IN_TREE, AT(of.overflow), "Share of the elements.", .record = &worst),
    FIELD(RECORD, "sqnr_db", IN_TREE, AT(of.sqnr), "In decibels.", .record = &worst),
    {0}};
static const record_kind tried = {"tried", "A format that was tried.", sizeof(advise_tried), tried_fields};
#undef AT

#define AT(member) offsetof(advise_row, member)
#define FP16_SCALES "Scales of a gradient that keep it within the bounds in fp16."
static const record_field row_fields[] = {
    FIELD(TEXT, "name", IN_TREE, AT(name), NULL),
    FIELD(TEXT, "tensor", IN_CSV, AT(name), NULL, .title = "<tensor"),
    FIELD(TEXT, "kind", IN_ALL | FIELD_NULL, AT(kind), NULL, .words = trace_kinds),
    FIELD(TEXT, "layer", IN_ALL, AT(layer), "The layer whose operand or parameter the tensor is."),
    FIELD(COUNT, "elements", IN_ALL, AT(elements), NULL, .title = ">elements", .spare = 2),
    FIELD(TEXT, "recorded", IN_TREE, AT(recorded), "The format in the file."),
    FIELD(COUNT, "steps", IN_ALL, AT(steps), "Steps that were measured."),
    FIELD(COUNT, "steps_left_out", IN_TREE, AT(broken), "Steps whose gradients hold Inf or NaN."),
    FIELD(COUNT, "roundoff", IN_TREE, AT(roundoff),
          "Elements that are nothing but rounding, most of a step: they are left out."),
    FIELD(TEXT, "roundoff_evidence", IN_TREE | FIELD_NULL, AT(evidence), "How that is known; null: there are none."),
    FIELD(TEXT, "narrowest", IN_ALL | FIELD_NULL, AT(narrowest),
          "The format that is advised; null: no step was measured."),
    FIELD(TEXT, NULL, 0, AT(shown), "The format that is advised.", .title = "<narrowest"),
    FIELD(REAL, "bits", IN_ALL, AT(bits), "Bits of an element, with its share of the block scales.", .csv = "%.10g"),
    FIELD(REAL, "underflow", IN_CSV | FIELD_OPTIONAL, AT(worst.underflow.value), NULL),
    FIELD(REAL, "overflow", IN_CSV | FIELD_OPTIONAL, AT(worst.overflow.value), NULL),
    FIELD(REAL, "sqnr_db", IN_CSV | FIELD_OPTIONAL, AT(worst.sqnr.value), NULL),
    FIELD(CHARS, NULL, 0, AT(underflow), "Elements other than 0 that become 0, in the worst step.",
          .title = ">underflow"),
    FIELD(CHARS, NULL, 0, AT(sqnr), "Signal to quantisation noise, in decibels, in the worst step.",
          .title = ">SQNR dB"),
    FIELD(STEP, "worst_step", IN_CSV, AT(worst.sqnr.step), NULL, .title = ">at step", .spare = 3),
    FIELD(RECORD, "fp16_scales", IN_TREE | FIELD_IF | FIELD_NULL, AT(window), FP16_SCALES, .of = AT(has_window),
          .record = &window),
    FIELD(INTEGER, "scale_low", IN_CSV | FIELD_IF, AT(window.low), NULL, .of = AT(has_window)),
    FIELD(INTEGER, "scale_high", IN_CSV | FIELD_IF, AT(window.high), NULL, .of = AT(has_window)),
    FIELD(TEXT, "why_not_narrower", IN_CSV, AT(why_not), NULL),
    FIELD(CHARS, NULL, 0, AT(why), "The next narrower format, and why it does not fit.", .title = "<not"),
    FIELD(CHARS, NULL, 0, AT(scales), FP16_SCALES, .title = "<fp16 scales"),
    FIELD(FLAG, "in_recipe", IN_TREE, AT(in_recipe), "Whether the recipe that is advised quantises the tensor."),
    FIELD(LIST, "formats", IN_TREE | FIELD_IF | FIELD_OPTIONAL, AT(formats), "The formats that were tried.",
          .of = AT(n_formats), .record = &tried),
    {0}};
const record_kind advise_row_record = {"tensor", NULL, sizeof(advise_row), row_fields};
#undef AT

/* ---- steps that were held back ---- */

#define AT(member) offsetof(advise_kept_row, member)
static const record_field broken_fields[] = {
    FIELD(TEXT, "first_broken", IN_JSON, AT(name), "The first tensor that breaks it."),
    FIELD(STEP, "step", IN_JSON | FIELD_NULL, AT(of.step), "The step of that tensor; null: the file says none."),
    {0}};
static const record_kind broken = {"broken", NULL, sizeof(advise_kept_row), broken_fields};

static const record_field kept_fields[] = {
    FIELD(COUNT, "judged", IN_JSON, AT(of.judged), NULL),
    FIELD(COUNT, "kept", IN_JSON, AT(of.kept), "Tensors and steps where the advice keeps the bounds."),
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE | FIELD_IF | FIELD_OPTIONAL, 0, NULL, .of = AT(is_broken),
          .record = &broken),
    {0}};
static const record_kind kept = {"kept", "How often a part of the advice is kept.", sizeof(advise_kept_row),
                                 kept_fields};
#undef AT

#define AT(member) offsetof(advise_held, member)
static const record_field held_fields[] = {FIELD(COUNT, "steps", IN_JSON, AT(steps), NULL),
                                           FIELD(RECORD, "narrowest", IN_JSON, AT(choice), NULL, .record = &kept),
                                           FIELD(RECORD, "loss_scale", IN_JSON, AT(scale), NULL, .record = &kept),
                                           FIELD(RECORD, "recipe", IN_JSON, AT(recipe), NULL, .record = &kept),
                                           {0}};
static const record_kind held = {"held", "How the advice does in steps that it does not know.", sizeof(advise_held),
                                 held_fields};
#undef AT

/* ---- the report ---- */

static const char *const computes[] = {"bf16", "fp16", "binary32", NULL};

#define AT(member) offsetof(advise_document, member)
static const record_field document_fields[] = {
    FIELD(RECORD, "config", IN_JSON, 0, NULL, .record = &config),
    FIELD(COUNT, "steps", IN_JSON, AT(steps), "Steps that were measured."),
    FIELD(TEXT, "compute", IN_JSON, AT(compute), "The format of the layers.", .words = computes),
    FIELD(TEXT, "recipe", IN_JSON | FIELD_NULL, AT(recipe), "Block or FP8 recipe of linear layers."),
    FIELD(TEXT, "no_recipe", IN_JSON | FIELD_NULL, AT(no_recipe), "Why there is none."),
    FIELD(RECORD, "bf16_weights", IN_JSON, AT(weights), NULL, .record = &weights),
    FIELD(RECORD, "loss_scale", IN_JSON, AT(scale), NULL, .record = &scale),
    FIELD(LIST, "layers", IN_JSON, AT(layers), NULL, .of = AT(n_layers), .record = &layer),
    FIELD(LIST, "tensors", IN_JSON | FIELD_STREAM, 0, NULL, .record = &advise_row_record),
    FIELD(LIST, "unread", IN_JSON, AT(unread.items),
          "Selected tensors whose numbers were not read; tensors of several files are one item.",
          .of = AT(unread.count), .record = &unread_record),
    FIELD(RECORD, "held_back", IN_JSON | FIELD_IF | FIELD_OPTIONAL, AT(held), "With --hold-back.", .of = AT(holds),
          .record = &held),
    {0}};
static const record_kind document = {"document", NULL, sizeof(advise_document), document_fields};
#undef AT

const report_kind advise_report = {
    "mpsim.advise/1", "mpsim advise: formats for a recorded run",
    "Which formats, loss scale and recipe a recorded run tolerates, and why. $defs/line is a line of --ndjson, which names no "
    "schema.",
    &document};

/* ---- tensors as rows ---- */

static void put_worst(char out[32], const advise_worst *w, int decibels)
{
    if (isnan(w->value))
        return;
    if (decibels && isinf(w->value))
        snprintf(out, 32, "exact");
    else if (decibels)
        snprintf(out, 32, "%.1f", w->value);
    else if (w->value > 0)
        snprintf(out, 32, "%.3g %%", 100 * w->value);
    else
        snprintf(out, 32, "0");
}

static void put_why(advise_row *row, const advise *a, const advise_tensor *t)
{
    char reason[200];
    if (!t->steps)
        snprintf(row->why, sizeof row->why, t->rounding ? "round-off in every step" : "Inf or NaN in every step");
    else if (t->choice)
        snprintf(row->why, sizeof row->why, "%s: %s", a->candidates.items[t->choice - 1].name,
                 advise_reason(reason, sizeof reason, a, t, t->choice - 1));
    row->why_not = t->steps ? row->why : NULL;
}

static void put_scales(advise_row *row, const advise *a, const advise_tensor *t)
{
    row->has_window = t->gradient && t->scales && !a->bad_scale && t->steps;
    row->window = (advise_window){t->low.exponent, t->high.exponent};
    if (row->has_window)
        snprintf(row->scales, sizeof row->scales, "2^%d to 2^%d", row->window.low, row->window.high);
    else if (t->gradient && t->steps && !a->bad_scale)
        snprintf(row->scales, sizeof row->scales, "none");
}

static void put_formats(advise_row *row, const advise *a, const advise_tensor *t)
{
    row->n_formats = t->steps ? a->candidates.count - 1 : 0;
    for (size_t c = 0; c < row->n_formats; c++) {
        advise_tried *f = &row->formats_of[c];
        *f = (advise_tried){.format = a->candidates.items[c].name,
                            .recipe = a->candidates.items[c].casts[t->role],
                            .fits = t->fits >> c & 1,
                            .of = t->of[c]};
        if (!f->fits)
            f->why_not = advise_reason(f->reason, sizeof f->reason, a, t, c);
    }
    row->formats = row->formats_of;
}

void advise_row_fill(advise_row *row, const advise *a, const advise_tensor *t)
{
    const candidate *c = &a->candidates.items[t->choice];
    *row = (advise_row){.name = t->name,
                        .kind = *t->kind ? t->kind : NULL,
                        .layer = t->layer,
                        .recorded = t->stored->name,
                        .evidence = t->roundoff ? trace_roundoff_evidence(t->evidence) : NULL,
                        .narrowest = t->steps ? c->name : NULL,
                        .shown = t->steps ? c->name : "not known",
                        .elements = t->count,
                        .steps = t->steps,
                        .broken = t->broken,
                        .roundoff = t->roundoff,
                        .bits = c->bits,
                        .worst = t->of[t->choice],
                        .in_recipe = t->in_recipe};
    if (t->steps) {
        put_worst(row->underflow, &row->worst.underflow, 0);
        put_worst(row->sqnr, &row->worst.sqnr, 1);
    }
    put_why(row, a, t);
    put_scales(row, a, t);
    put_formats(row, a, t);
}

/* ---- the document ---- */

static advise_weights weights_of(const advise_stall *s)
{
    return (advise_weights){
        .known = !s->unknown, .told = !s->unknown, .why = s->unknown ? s->unknown : s->no_lr, .of = *s};
}

static advise_scale scale_of(const advise *a)
{
    const int is = a->scale_low <= a->scale_high;
    return (advise_scale){.is = is != 0,
                          .window = {a->scale_low, a->scale_high},
                          .exponent = is ? a->scale : FIELD_NONE,
                          .gradients = a->gradients,
                          .fit = is ? a->scale_fits : 0};
}

static advise_kept_row kept_of(const advise *a, const advise_kept *k)
{
    advise_kept_row row = {.of = *k, .is_broken = k->kept < k->judged};
    if (row.is_broken)
        row.name = a->tensors[k->tensor].name;
    return row;
}

static advise_document document_of(const advise *a, const input *in)
{
    advise_document d = {.a = a,
                         .inputs = (const char *const *)in->tree.paths,
                         .n_inputs = in->tree.count,
                         .steps = a->steps - a->held_steps,
                         .compute = a->compute,
                         .recipe = a->recipe ? a->recipe->name : NULL,
                         .no_recipe = a->no_recipe,
                         .weights = weights_of(&a->stall),
                         .scale = scale_of(a),
                         .layers = a->layers,
                         .n_layers = a->n_layers,
                         .unread = in->unread,
                         .holds = a->hold_back != 0};
    if (d.holds)
        d.held = (advise_held){.steps = a->held_steps,
                               .choice = kept_of(a, &a->kept_choice),
                               .scale = kept_of(a, &a->kept_scale),
                               .recipe = kept_of(a, &a->kept_recipe)};
    return d;
}

void advise_write(const advise *a, const input *in, report_style style, FILE *to)
{
    advise_document d = document_of(a, in);
    advise_row row;
    record_writer w = {.kind = &advise_report, .to = to, .style = style, .document = &d};
    d.weights.worst = *d.weights.of.worst ? d.weights.of.worst : NULL;
    record_begin(&w);
    for (size_t i = 0; i < a->n_tensors; i++) {
        advise_row_fill(&row, a, &a->tensors[i]);
        record_row(&w, &row);
    }
    record_end(&w);
}
