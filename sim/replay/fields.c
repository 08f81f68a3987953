/* fields.c -- see fields.h. */
#include "fields.h"

#include "../array/need.h"
#include "../policy/muon.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* ---- casts ---- */

#define STALE "FP8: elements that saturate, and would not at a scale of this step's amax."
#define COUNTS(WHERE)                                                                                              \
    FIELD(COUNT, "count", WHERE, AT(count), "Elements."),                                                          \
        FIELD(COUNT, "nonzero", WHERE, AT(nonzero), "Of these, those that are finite and not 0 before the cast."), \
        FIELD(COUNT, "nonfinite", IN_TREE, AT(nonfinite), "Elements that are infinite or NaN before the cast."),   \
        FIELD(COUNT, "underflow", WHERE, AT(underflow), "Elements other than 0 that become 0."),                   \
        FIELD(COUNT, "subnormal", WHERE, AT(subnormal), "Elements that become subnormal numbers."),                \
        FIELD(COUNT, "overflow", WHERE, AT(overflow), "Elements beyond the largest number, saturated or not."),    \
        FIELD(COUNT, "stale", WHERE, AT(stale), STALE)

#define AT(member) offsetof(replay_counts, member)
static const record_field counts_fields[] = {COUNTS(IN_TREE), {0}};
static const record_kind counts = {"counts", "Casts added up.", sizeof(replay_counts), counts_fields};
#undef AT

#define AT(member) offsetof(replay_cast_row, c.member)
static const record_field cast_fields[] = {
    FIELD(TEXT, "policy", IN_CSV, offsetof(replay_cast_row, policy), NULL),
    FIELD(LONG, "step", IN_CSV, offsetof(replay_cast_row, step), NULL),
    FIELD(TEXT, "name", IN_ALL, AT(name), "The kind of the tensor, a colon, its name."),
    FIELD(TEXT, "kind", IN_ALL, AT(kind), NULL, .words = trace_kinds),
    FIELD(WORD, "layer", IN_ALL, AT(layer), "The kind of the layer.", .words = policy_layer_kind_words),
    FIELD(CHARS, "format", IN_ALL, AT(format), NULL),
    FIELD(REAL, "scale", IN_ALL, AT(scale), "The factor before the cast; NaN: each block has its own."),
    FIELD(REAL, "next_scale", IN_ALL, AT(next), "FP8 delayed scaling: the scale of the next step; else NaN."),
    COUNTS(IN_ALL),
    FIELD(REAL, "amax", IN_ALL, AT(amax), "The largest magnitude before the cast, times the loss scale."),
    FIELD(REAL, "sqnr_db", IN_ALL, AT(sqnr_db), "Signal to quantisation noise, in decibels."),
    FIELD(REALS32, "amax_history", IN_TREE | FIELD_OPTIONAL, AT(history),
          "FP8 delayed scaling: amaxes after the step, the newest last.", .of = AT(n_history)),
    {0}};
const record_kind replay_cast_record = {"cast", "A tensor in a step, through its cast.", sizeof(replay_cast_row),
                                        cast_fields};
#undef AT

/* Of the history the newest amaxes; those that no step has filled yet are left out. */
static replay_cast_row cast_row_of(const char *by, int64_t step, const replay_cast *c)
{
    replay_cast_row row = {by, step, *c};
    size_t first = c->n_history > REPLAY_HISTORY_SHOWN ? c->n_history - REPLAY_HISTORY_SHOWN : 0;
    while (first < c->n_history && c->history[first] == 0)
        first++;
    row.c.history = c->history ? c->history + first : NULL;
    row.c.n_history = c->n_history - first;
    return row;
}

/* ---- moments in few bits ---- */

#define AT(member) offsetof(replay_error, member)
static const record_field error_fields[] = {
    FIELD(COUNT, "count", IN_TREE, AT(count), "Numbers."),
    FIELD(COUNT, "nonzero", IN_TREE, AT(nonzero), "Of these, those that are not 0 before they are stored."),
    FIELD(COUNT, "not_finite", IN_TREE, AT(not_finite), "Numbers that are NaN or infinite, before or after."),
    FIELD(COUNT, "become_zero", IN_TREE, AT(lost), "Numbers other than 0 that become 0."),
    FIELD(REAL, "sqnr_db", IN_TREE, AT(db), "Signal to noise of finite numbers, in decibels."),
    {0}};
static const record_kind error = {"error", "What storing numbers in few bits does to them.", sizeof(replay_error),
                                  error_fields};
#undef AT

#define AT(member) offsetof(replay_moments, member)
#define PART IN_TREE | FIELD_IF | FIELD_OPTIONAL
#define STORED(KEY, OF, WHAT) FIELD(RECORD, KEY, PART, AT(OF), WHAT, .of = AT(OF.is), .record = &error)
static const record_field moments_fields[] = {
    STORED("m", m, "First moments."),
    STORED("v", v, "Second moments."),
    STORED("weights", kept, "Weights that are stored in few bits, too."),
    STORED("step", step, "Steps m / (sqrt(v) + eps) with the stored moments."),
    STORED("muon", muon, "Muon's orthogonalised updates against those of binary64."),
    STORED("step_where_v_is_kept", bounded, "The same steps without those whose v became zero."),
    FIELD(REAL, "largest_step", PART, AT(largest), "Before the moments are stored.", .of = AT(step.is)),
    FIELD(REAL, "largest_step_stored", PART, AT(largest_stored), "With the stored moments.", .of = AT(step.is)),
    FIELD(COUNT, "v_became_zero_m_not", PART, AT(unbounded), NULL, .of = AT(step.is)),
    {0}};
static const record_kind moments = {"moments", "Optimizer states in few bits.", sizeof(replay_moments), moments_fields};
#undef AT

static const record_field stored_fields[] = {
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE, offsetof(replay_stored, sum), NULL, .record = &moments),
    FIELD(TEXT, "name", IN_TREE, offsetof(replay_stored, name), "The parameter."),
    {0}};
static const record_kind stored = {"stored", "The states of a parameter over all steps.", sizeof(replay_stored),
                                   stored_fields};

static const record_field states_fields[] = {
    FIELD(TEXT, "states", IN_TREE, offsetof(mpsim_states, name), "How moments are stored."),
    FIELD(TEXT, "source", IN_TREE, offsetof(mpsim_states, source), "Where that is published."),
    {0}};
static const record_kind states = {"states", NULL, sizeof(mpsim_states), states_fields};

#define AT(member) offsetof(replay_total_row, member)
static const record_field all_moments_fields[] = {
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE, AT(t.moments), NULL, .record = &moments),
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE | FIELD_POINTER | FIELD_OPTIONAL, AT(t.states), NULL, .record = &states),
    FIELD(TEXT, "muon_settings", IN_TREE | FIELD_OPTIONAL, AT(muon_states), NULL),
    FIELD(LIST, "parameters", IN_TREE, AT(t.stored), "The one whose steps differ most is the first.",
          .of = AT(t.n_stored), .record = &stored),
    {0}};
static const record_kind all_moments = {"all_moments", "Optimizer states in few bits, over all steps.",
                                        sizeof(replay_total_row), all_moments_fields};
#undef AT

/* ---- weights ---- */

/* Relative distances of weights from those of the references. */
#define FROM_FP32 "||w - r|| / ||r|| of the model's weights w and of those r of the run in binary32."
#define FROM_F64 "||w - r|| / ||r|| of the model's weights w and of those r of the run in binary64."
#define FROM_MASTERS "As from fp32, but of fp32 masters, where there are some."
#define LOST_UPDATES "Elements that would move in binary64, and whose master, or weight, does not."
#define BECOME_0 " other than 0 that become 0."
#define DISTANCES(WHERE)                                               \
    FIELD(REAL, "distance_fp32", WHERE, AT(distance_fp32), FROM_FP32), \
        FIELD(REAL, "distance_binary64", WHERE, AT(distance_f64), FROM_F64)
#define KEPT FIELD(REAL, "kept_from_fp32", IN_TREE, AT(kept_fp32), FROM_MASTERS)
#define UPDATES(WHERE)                                                                    \
    FIELD(COUNT, "updates", WHERE, AT(updates), "Elements that would move in binary64."), \
        FIELD(SHARE, "lost", WHERE, AT(lost), LOST_UPDATES, .title = ">updates", .of = AT(updates))
#define COMPARED                                                                                           \
    FIELD(COUNT, "compared", IN_TREE, AT(compared), "Numbers that were compared with the recorded ones."), \
        FIELD(COUNT, "differ", IN_TREE, AT(differ), "Of these, those that differ."),                       \
        FIELD(REAL, "max_difference", IN_TREE, AT(max_difference), "The largest, relative to the larger number.")

#define AT(member) offsetof(replay_weight, member)
static const record_field weight_fields[] = {
    FIELD(TEXT, "name", IN_TREE, AT(name), NULL),
    FIELD(TEXT, "storage", IN_TREE | FIELD_NULL, AT(storage), "The format of the model's copy."),
    FIELD(TEXT, "gradient", IN_TREE | FIELD_NULL, AT(grads), "The format of the gradient."),
    FIELD(BOOLEAN, "master", IN_TREE, AT(master), "Whether there is a master."),
    FIELD(COUNT, "count", IN_TREE, AT(count), "Elements."),
    UPDATES(IN_TREE),
    DISTANCES(IN_TREE),
    KEPT,
    COMPARED,
    FIELD(COUNT, "lost_in_model", IN_TREE, AT(lost_model),
          "Elements that would move in binary64, and whose weight in the model does not."),
    FIELD(RECORD, "moments", PART, AT(moments), NULL, .of = AT(moments.arrays), .record = &moments),
    {0}};
static const record_kind weight = {"weight", "A parameter in a step.", sizeof(replay_weight), weight_fields};
#undef AT

/* ---- a step ---- */

#define AT(member) offsetof(replay_doing, member)
static const record_field doing_fields[] = {
    FIELD(BOOLEAN, "skipped", IN_TREE, AT(skipped), NULL),
    FIELD(REAL, "norm", IN_TREE, AT(norm), "Of its gradients, before clipping; NaN: skipped, or nothing is clipped."),
    FIELD(BOOLEAN, "clipped", IN_TREE, AT(clipped), NULL),
    {0}};
static const record_kind doing = {"optimizer_step", "What one of several optimizers did.", sizeof(replay_doing),
                                  doing_fields};
#undef AT

#define AT(member) offsetof(replay_step_row, s.member)
#define ROW(member) offsetof(replay_step_row, member)
#define GROUP(G, MEMBER) ROW(groups) + (G) * sizeof(replay_counts) + offsetof(replay_counts, MEMBER)
#define LOST(G, KEY, TITLE, OF)                                                                                        \
    FIELD(SHARE, KEY "_underflow", IN_CSV, GROUP(G, underflow), OF BECOME_0, .title = TITLE, .of = GROUP(G, nonzero)), \
        FIELD(COUNT, KEY "_overflow", IN_CSV, GROUP(G, overflow), NULL)
static const record_field step_fields[] = {
    FIELD(TEXT, "policy", IN_LINE | IN_CSV, ROW(policy), "The policy's name."),
    FIELD(LONG, "step", IN_ALL, AT(step), NULL),
    FIELD(CHARS, NULL, 0, ROW(number), "*: with the recorded weights; else the run's own.", .title = ">step"),
    FIELD(BOOLEAN, "trains", IN_TREE, AT(trains), "Whether it is a step; else weights only, after the last step."),
    FIELD(BOOLEAN, "unknown", IN_TREE, AT(unknown), "Whether the record holds Inf or NaN from a larger scale."),
    FIELD(REAL, "scale", IN_ALL | FIELD_SCALE, AT(scale), "The loss scale.", .title = ">scale"),
    FIELD(REAL, "unscale", IN_TREE, AT(unscale), "The scale that gradients are divided by."),
    FIELD(REAL, "next_scale", IN_ALL, AT(next_scale), "The loss scale of the next step."),
    FIELD(SET, "events", IN_ALL, AT(events), "What the loss scaler did.", .words = step_events),
    FIELD(CHARS, NULL, 0, ROW(did),
          "What the loss scaler did. Not known: recorded Inf or NaN may be of a larger scale.", .title = "<events"),
    FIELD(COUNT, "growth_tracker", IN_ALL, AT(tracker), "Steps in a row without overflow, after this one."),
    FIELD(TEXT, "cause", IN_TREE | FIELD_NULL, AT(cause), "The tensor that overflowed first."),
    FIELD(REAL, "norm", IN_ALL, AT(norm), "Of all gradients, unscaled, before clipping; NaN: nothing is clipped."),
    FIELD(BOOLEAN, "clipped", IN_ALL | FIELD_DIGIT, AT(clipped), NULL),
    FIELD(BOOLEAN, "from_record", IN_ALL | FIELD_DIGIT, AT(from_record), "Whether the weights come from the record."),
    LOST(GROUP_ACT, "act", ">act", "Activations"),
    LOST(GROUP_AGRAD, "agrad", ">agrad", "Gradients of activations"),
    LOST(GROUP_WGRAD, "wgrad", ">wgrad", "Gradients of weights"),
    FIELD(COUNT, "stale", IN_CSV | FIELD_BLANK, ROW(stale), STALE, .title = ">stale"),
    FIELD(COUNT, "updates", IN_CSV, ROW(updates), NULL),
    FIELD(SHARE, "lost", IN_CSV, ROW(lost), LOST_UPDATES, .title = ">updates", .of = ROW(updates)),
    FIELD(REAL, "recorded_scale", IN_TREE, AT(recorded_scale), "The recorded loss scale; NaN: it was not recorded."),
    DISTANCES(IN_ALL),
    KEPT,
    FIELD(REAL, "fp32_from_binary64", IN_TREE, AT(fp32_f64), "The same of the two references."),
    FIELD(CHARS, NULL, 0, ROW(from_fp32), FROM_FP32, .title = ">from fp32", .spare = 2),
    FIELD(CHARS, NULL, 0, ROW(master), FROM_MASTERS, .title = ">master", .spare = 2, .when = SHOW_MASTER),
    FIELD(CHARS, NULL, 0, ROW(from_f64), FROM_F64, .title = ">from f64", .spare = 3, .when = SHOW_F64),
    FIELD(RECORD, "bytes", IN_TREE, AT(bytes), NULL, .record = &step_bytes_record),
    FIELD(LIST, "optimizers", IN_TREE | FIELD_OPTIONAL, AT(optimizers), "Of several, in the record's order.",
          .of = AT(n_optimizers), .record = &doing),
    FIELD(LIST, "tensors", IN_TREE, ROW(casts), NULL, .of = AT(n_casts), .record = &replay_cast_record),
    FIELD(LIST, "weights", IN_TREE, AT(weights), NULL, .of = AT(n_weights), .record = &weight),
    {0}};
const record_kind replay_step_record = {"step", "A step.", sizeof(replay_step_row), step_fields};
#undef GROUP
#undef ROW
#undef AT

static const char *distance_text(char out[32], double x)
{
    snprintf(out, 32, isnan(x) ? "" : x == 0 ? "0" : "%.1e", x);
    return out;
}

/* For people: an overflow that is skipped need not be called one, too; where weights came from. */
static void say_step(replay_step_row *row, const replay_step *s, int masters)
{
    const unsigned both = MPSIM_SCALER_OVERFLOW | MPSIM_SCALER_SKIP;
    const unsigned shown = (s->events & both) == both ? s->events & ~(unsigned)MPSIM_SCALER_OVERFLOW : s->events;
    char line[112];
    const char *events = step_events_text(line, sizeof line, ", ", shown);
    snprintf(row->number, sizeof row->number, "%" PRId64 "%s", s->step, s->from_record ? "*" : " ");
    if (s->unknown)
        snprintf(row->did, sizeof row->did, "not known");
    else
        snprintf(row->did, sizeof row->did, "%s%s%s", events, s->clipped && events[0] ? ", " : "",
                 s->clipped ? "clipped" : "");
    (void)distance_text(row->from_fp32, s->distance_fp32);
    (void)distance_text(row->from_f64, s->distance_f64);
    (void)distance_text(row->master, masters ? s->kept_fp32 : (double)NAN);
}

static uint64_t stale_of(const replay_counts groups[REPLAY_GROUPS])
{
    uint64_t n = 0;
    for (int g = 0; g < REPLAY_GROUPS; g++)
        n += groups[g].stale;
    return n;
}

void replay_step_row_fill(replay_step_row *row, const policy *p, const replay_step *s)
{
    int masters = 0;
    *row = (replay_step_row){.policy = p->name, .s = *s};
    row->s.optimizers = s->n_optimizers ? s->optimizers : NULL;
    row->casts = need_memory(s->n_casts, sizeof *row->casts);
    for (size_t i = 0; i < s->n_casts; i++)
        row->casts[i] = cast_row_of(p->name, s->step, &s->casts[i]);
    for (size_t i = 0; i < s->n_weights; i++) {
        row->updates += s->weights[i].updates;
        row->lost += s->weights[i].lost;
        masters |= s->weights[i].master;
    }
    replay_group_counts(s, row->groups);
    row->stale = stale_of(row->groups);
    say_step(row, s, masters);
}

void replay_step_row_clear(replay_step_row *row)
{
    free(row->casts);
    row->casts = NULL;
}

/* ---- a run added up ---- */

#define AT(member) offsetof(replay_movement, member)
static const record_field movement_fields[] = {
    FIELD(REAL, "share", IN_TREE, AT(share), "Of what moves in binary64 the share that moves in the same direction."),
    FIELD(REAL, "standard_error", IN_TREE, AT(error), "Of the share, were every rounding by chance."),
    FIELD(REAL, "drift", IN_TREE, AT(drift), "What is missing, beside the magnitudes of the parameters."),
    {0}};
static const record_kind movement = {"movement", "How far parameters move in the mean.", sizeof(replay_movement),
                                     movement_fields};
#undef AT

#define AT(member) offsetof(replay_moved, member)
static const record_field mover_fields[] = {
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE, AT(sum), NULL, .record = &movement),
    FIELD(TEXT, "name", IN_TREE, AT(name), NULL),
    FIELD(BOOLEAN, "lost_in_the_mean", IN_TREE, AT(sum.lost), "The share is below 0.9 by more than three errors."),
    {0}};
static const record_kind mover = {"parameter", "How far a parameter moves in the mean.", sizeof(replay_moved),
                                  mover_fields};
#undef AT

#define AT(member) offsetof(replay_total, member)
static const record_field moved_fields[] = {
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE, AT(movement), NULL, .record = &movement),
    FIELD(RECORD, "lost_by_nearest", IN_TREE, AT(small), "Updates that rounding to the nearest loses.",
          .record = &movement),
    FIELD(LIST, "parameters", IN_TREE, AT(moved), "The one that moves least is the first.", .of = AT(n_moved),
          .record = &mover),
    {0}};
static const record_kind moved = {"moved", NULL, sizeof(replay_total), moved_fields};

static const record_field unheld_fields[] = {
    FIELD(COUNT, "count", IN_TREE, AT(unheld), "Recorded gradients that the format cannot hold."),
    FIELD(COUNT, "of", IN_TREE, AT(gradients), "Recorded gradients that are rounded to the format."),
    FIELD(CHARS, "format", IN_TREE, AT(gradient_format), NULL),
    FIELD(CHARS, "first_in", IN_TREE, AT(unheld_in), "The first parameter that has such gradients."),
    {0}};
static const record_kind unheld = {"unheld", "Recorded gradients that the precision of the policy cannot hold.",
                                   sizeof(replay_total), unheld_fields};
#undef AT

#define AT(member) offsetof(replay_settings_row, member)
static const record_field settings_fields[] = {
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE, AT(optimizer), NULL, .record = &step_optimizer_record),
    FIELD(REAL, "dampening", IN_TREE, AT(of.optimizer.dampening), NULL),
    FIELD(FLAG, "nesterov", IN_TREE, AT(of.optimizer.nesterov), NULL),
    FIELD(FLAG, "amsgrad", IN_TREE, AT(of.optimizer.amsgrad), NULL),
    FIELD(FLAG, "maximize", IN_TREE, AT(of.optimizer.maximize), NULL),
    FIELD(SIZE, "parameters", IN_TREE, AT(of.parameters), "Parameters that are updated with these settings."),
    {0}};
static const record_kind settings = {"group", "A parameter group.", sizeof(replay_settings_row), settings_fields};
#undef AT

#define AT(member) offsetof(replay_difference, c.member)
static const record_field difference_fields[] = {
    FIELD(TEXT, "name", IN_TREE, offsetof(replay_difference, name), NULL), COMPARED, {0}};
static const record_kind difference = {"difference", "A tensor that differs from the recorded one.",
                                       sizeof(replay_difference), difference_fields};
#undef AT

#define AT(member) offsetof(replay_omission, member)
static const record_field omission_fields[] = {
    FIELD(TEXT, "name", IN_TREE, AT(name), NULL),
    FIELD(COUNT, "count", IN_TREE, AT(count), "Recorded numbers that were not compared."),
    FIELD(CHARS, "weight_recorded_in", IN_TREE, AT(recorded), "A format; empty: there is no recorded weight."),
    FIELD(CHARS, "weight_here_in", IN_TREE, AT(here), NULL),
    {0}};
static const record_kind omission = {"omission", "A tensor that was recorded and not compared.",
                                     sizeof(replay_omission), omission_fields};
#undef AT

#define AT(member) offsetof(replay_total_row, t.member)
#define ROW(member) offsetof(replay_total_row, member)
#define GROUP(G, MEMBER) AT(groups) + (G) * sizeof(replay_counts) + offsetof(replay_counts, MEMBER)
#define LOST_OF(G, KEY, TITLE, OF)                                                               \
    FIELD(COUNT, KEY "_nonzero", IN_CSV, GROUP(G, nonzero), NULL),                               \
        FIELD(SHARE, KEY "_underflow", IN_CSV, GROUP(G, underflow), OF BECOME_0, .title = TITLE, \
              .of = GROUP(G, nonzero))
#define NOTE(N) AT(notes) + (N) * sizeof(((replay_notes *)NULL)->text[0])
static const record_field total_fields[] = {
    FIELD(TEXT, "policy", IN_CSV, ROW(policy), NULL, .title = "<policy"),
    FIELD(COUNT, "steps", IN_ALL, AT(steps), NULL),
    FIELD(COUNT, "skipped", IN_ALL, AT(skipped), "Steps without an update."),
    FIELD(CHARS, NULL, 0, ROW(skipped), "Steps without an update, of all.", .title = ">skipped"),
    FIELD(COUNT, "overflows", IN_TREE, AT(overflows), "Steps whose gradients overflowed."),
    FIELD(COUNT, "growths", IN_TREE, AT(growths), "Steps after which the loss scale grew."),
    FIELD(COUNT, "backoffs", IN_TREE, AT(backoffs), "Steps after which the loss scale fell."),
    FIELD(COUNT, "clipped", IN_TREE, AT(clipped), "Steps whose gradients were clipped."),
    FIELD(REAL, "final_scale", IN_ALL | FIELD_SCALE, AT(final_scale), "The next loss scale.", .title = ">scale"),
    LOST_OF(GROUP_ACT, "act", ">act", "Activations"),
    LOST_OF(GROUP_AGRAD, "agrad", ">agrad", "Gradients of activations"),
    LOST_OF(GROUP_WGRAD, "wgrad", ">wgrad", "Gradients of weights"),
    FIELD(COUNT, "stale", IN_CSV | FIELD_BLANK, ROW(stale), STALE, .title = ">stale"),
    UPDATES(IN_ALL),
    FIELD(REAL, NULL, FIELD_NULL, ROW(percent),
          "Of the way that weights would move in binary64, the part that they move.", .title = ">moved",
          .format = "%.1f %%"),
    FIELD(COUNT, "lost_in_model", IN_TREE, AT(lost_model),
          "Elements that would move in binary64, and whose weight in the model does not."),
    COMPARED,
    DISTANCES(IN_ALL),
    FIELD(CHARS, NULL, 0, ROW(from_fp32), FROM_FP32, .title = ">from fp32", .spare = 2),
    FIELD(RECORD, "bytes", IN_TREE, AT(bytes), NULL, .record = &step_bytes_record),
    FIELD(RECORD, "bytes", IN_CSV | FIELD_INLINE, AT(bytes), NULL, .record = &step_bytes_record),
    FIELD(RECORD, "moved", IN_TREE, ROW(t), "All parameters, and each.", .record = &moved),
    FIELD(CHARS, "unmatched_patterns", IN_TREE, AT(unmatched), "Patterns of the policy that fit no layer."),
    FIELD(RECORD, "act", IN_TREE, GROUP(GROUP_ACT, count), "Activations and outputs.", .record = &counts),
    FIELD(RECORD, "weight", IN_TREE, GROUP(GROUP_WEIGHT, count), "Weights.", .record = &counts),
    FIELD(RECORD, "agrad", IN_TREE, GROUP(GROUP_AGRAD, count), "Gradients of activations.", .record = &counts),
    FIELD(RECORD, "wgrad", IN_TREE, GROUP(GROUP_WGRAD, count), "Gradients of weights.", .record = &counts),
    FIELD(LIST, "groups", IN_TREE, ROW(settings), "Parameter groups, in the record's order.", .of = ROW(n_settings),
          .record = &settings),
    FIELD(COUNTS, "optimizer_skips", IN_TREE | FIELD_OPTIONAL, ROW(skips),
          "Steps that each of several optimizers skipped, in the record's order.", .of = AT(n_optimizers)),
    FIELD(BOOLEAN, "equal_to_record", IN_TREE | FIELD_NULL, ROW(equal),
          "Whether all carried numbers equal the recorded ones; null: nothing, or not all, could be compared."),
    FIELD(LIST, "differing", IN_TREE, AT(differing), "Tensors that differ from the recorded ones, the worst first.",
          .of = AT(n_differing), .record = &difference),
    FIELD(COUNT, "not_compared", IN_TREE, AT(left_out), "Recorded numbers that are in other formats here, or absent."),
    FIELD(LIST, "not_compared_in", IN_TREE, AT(omitted), "Their tensors.", .of = AT(n_omitted), .record = &omission),
    FIELD(TEXT, "refused", IN_TREE | FIELD_OPTIONAL, ROW(refused), "What the policy's framework would refuse."),
    FIELD(TEXT, "formats", IN_TREE | FIELD_OPTIONAL, ROW(formats), "Parameters of several formats."),
    FIELD(TEXT, "policys_muon", IN_TREE | FIELD_OPTIONAL, ROW(muon), "Its settings that are not the recorded ones."),
    FIELD(CHARS, "policys_own", IN_TREE, NOTE(NOTE_POLICY), "Settings of the policy that are not the recorded ones."),
    FIELD(TEXTS, "lacks", IN_TREE, ROW(lack), "What the record lacks, and which values may differ for that.",
          .of = ROW(n_lacks)),
    FIELD(CHARS, "not_recorded", IN_TREE, NOTE(NOTE_NOT_RECORDED), "What the recorder left out, in its words."),
    FIELD(RECORD, "gradients_not_held", IN_TREE, ROW(t), NULL, .record = &unheld),
    FIELD(RECORD, "moments", PART, 0, NULL, .of = ROW(has_states), .record = &all_moments),
    {0}};
const record_kind replay_total_record = {"total", "A run added up.", sizeof(replay_total_row), total_fields};
#undef GROUP
#undef ROW
#undef AT

static void fill_settings(replay_total_row *row, const replay_total *t)
{
    row->settings = need_memory(t->n_settings, sizeof *row->settings);
    for (size_t i = 0; i < t->n_settings; i++)
        if (t->settings[i].parameters)
            row->settings[row->n_settings++] = (replay_settings_row){step_optimizer_of(&t->settings[i].optimizer),
                                                                     t->settings[i]};
}

static const char *note_of(const replay_total_row *row, replay_note note)
{
    return row->t.notes.text[note][0] ? row->t.notes.text[note] : NULL;
}

/* What the record lacks and which values may differ for that; nothing where all are equal. */
static void fill_notes(replay_total_row *row)
{
    row->refused = note_of(row, NOTE_REFUSED);
    row->formats = note_of(row, NOTE_FORMATS);
    row->muon = note_of(row, NOTE_MUON);
    row->lack = row->lacks;
    for (int i = NOTE_POLICY + 1; i < NOTE_NOT_RECORDED && replay_total_doubts(&row->t); i++)
        if (note_of(row, (replay_note)i))
            row->lacks[row->n_lacks++] = row->t.notes.text[i];
}

void replay_total_row_fill(replay_total_row *row, const policy *p, const replay_total *t)
{
    *row = (replay_total_row){.policy = p->name, .t = *t, .stale = stale_of(t->groups)};
    row->equal = !t->compared || (t->left_out && !t->differ) ? -1 : t->differ == 0;
    row->skips = t->n_optimizers ? row->t.optimizer_skips : NULL;
    fill_settings(row, t);
    fill_notes(row);
    row->muon_states = t->muon.model.name[0] ? policy_muon_describe(&t->muon, row->said, sizeof row->said) : NULL;
    row->has_states = t->states || row->muon_states;
    row->percent = 100 * t->movement.share;
    snprintf(row->skipped, sizeof row->skipped, "%" PRIu64 "/%" PRIu64, t->skipped, t->steps);
    (void)distance_text(row->from_fp32, t->distance_fp32);
}

void replay_total_row_clear(replay_total_row *row)
{
    free(row->settings);
    *row = (replay_total_row){.policy = NULL};
}

/* ---- a run ---- */

#define AT(member) offsetof(replay_delayed_row, member)
static const record_field delayed_fields[] = {
    FIELD(INTEGER, "margin", IN_TREE, AT(margin), NULL),
    FIELD(COUNT, "history", IN_TREE, AT(history), "Steps."),
    FIELD(TEXT, "algorithm", IN_TREE, AT(algorithm), NULL, .words = (const char *const[]){"max", "most_recent", NULL}),
    {0}};
static const record_kind delayed = {"delayed", "What decides the scales of FP8 delayed scaling.",
                                    sizeof(replay_delayed_row), delayed_fields};
#undef AT

#define AT(member) offsetof(replay_plan_row, member)
static const record_field plan_fields[] = {FIELD(COUNT, "from", IN_TREE, AT(from), "The first step."),
                                           FIELD(CHARS, "plan", IN_TREE, AT(plan), NULL),
                                           FIELD(RECORD, "delayed_scaling", IN_TREE | FIELD_IF | FIELD_NULL,
                                                 AT(delayed), "FP8 delayed scaling; null: the plan has no such recipe.",
                                                 .of = AT(is_delayed), .record = &delayed),
                                           {0}};
static const record_kind plan_record = {"plan", NULL, sizeof(replay_plan_row), plan_fields};
#undef AT

#define AT(member) offsetof(replay_run_row, member)
static const record_field policy_fields[] = {
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE, AT(policy), NULL, .record = &step_policy_record),
    FIELD(LIST, "plans", IN_TREE, AT(plans), NULL, .of = AT(n_plans), .record = &plan_record),
    {0}};
static const record_kind policy_record = {"policy", NULL, sizeof(replay_run_row), policy_fields};

static const record_field run_fields[] = {
    FIELD(RECORD, "policy", IN_JSON, 0, NULL, .record = &policy_record),
    FIELD(LIST, "steps", IN_JSON | FIELD_STREAM, 0, NULL, .record = &replay_step_record),
    FIELD(RECORD, "total", IN_JSON, AT(total), NULL, .record = &replay_total_record),
    {0}};
static const record_kind run = {"run", "The recorded run under a policy.", sizeof(replay_run_row), run_fields};
#undef AT

static replay_plan_row plan_row_of(const plan *p)
{
    replay_plan_row row = {.from = p->from,
                           .delayed = {p->delayed.margin, p->delayed.history, policy_plan_amax_algorithm(p)},
                           .is_delayed = p->recipe && p->recipe->delayed};
    (void)policy_plan_describe(p, row.plan, sizeof row.plan);
    return row;
}

void replay_run_row_fill(replay_run_row *row, const policy *p)
{
    *row = (replay_run_row){.policy = {p->name, p->path, p->source, p->note}, .n_plans = p->count};
    row->plans = need_memory(p->count, sizeof *row->plans);
    for (size_t i = 0; i < p->count; i++)
        row->plans[i] = plan_row_of(&p->plans[i]);
}

/* ---- the report ---- */

const char *const replay_weights_words[] = {"auto", "recorded", "carry", NULL};

#define AT(member) offsetof(replay_document, member)
static const record_field config_fields[] = {
    FIELD(TEXT, "weights", IN_JSON, AT(weights), "Whose weights a step starts from.", .words = replay_weights_words),
    FIELD(COUNT, "seed", IN_JSON, AT(seed), "Of stochastic rounding."),
    FIELD(BOOLEAN, "references", IN_JSON, AT(references), "Whether binary32 and binary64 ran along."),
    FIELD(TEXTS, "inputs", IN_JSON, AT(inputs), "Files, in the order of their steps.", .of = AT(n_inputs)),
    {0}};
static const record_kind config = {"config", NULL, sizeof(replay_document), config_fields};

static const record_field document_fields[] = {
    FIELD(RECORD, "config", IN_JSON, 0, NULL, .record = &config),
    FIELD(LIST, "policies", IN_JSON | FIELD_STREAM, 0, NULL, .record = &run),
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE | FIELD_POINTER, AT(unread), NULL, .record = &unread_list_record),
    {0}};
static const record_kind document = {"document", NULL, sizeof(replay_document), document_fields};
#undef AT

const report_kind replay_kind = {
    "mpsim.replay/1", "mpsim replay: recorded steps under a policy",
    "What recorded training steps would have been under mixed-precision policies. $defs/line is a line of --ndjson: a step with the "
    "name of its policy.",
    &document};

/* ---- for people ---- */

#define AT(member) offsetof(replay_tensor_row, member)
static const record_field tensor_fields[] = {
    FIELD(CHARS, NULL, 0, AT(name), NULL, .title = "<tensor"),
    FIELD(WORD, NULL, 0, AT(t.layer), NULL, .title = "<layer", .spare = 3, .words = policy_layer_kind_words),
    FIELD(CHARS, NULL, 0, AT(t.format), NULL, .title = "<format"),
    FIELD(SHARE, NULL, 0, AT(t.counts.underflow), NULL, .title = ">lost", .of = AT(t.counts.nonzero)),
    FIELD(SHARE, NULL, 0, AT(t.counts.subnormal), NULL, .title = ">subnormal", .spare = 1, .of = AT(t.counts.nonzero)),
    FIELD(COUNT, NULL, FIELD_BLANK, AT(t.counts.overflow), NULL, .title = ">overflow"),
    FIELD(COUNT, NULL, FIELD_BLANK, AT(t.counts.stale), NULL, .title = ">stale"),
    FIELD(REAL, NULL, FIELD_NULL, AT(sqnr), NULL, .title = ">SQNR dB", .format = "%.1f"),
    FIELD(REAL, NULL, FIELD_IF, AT(t.scale), NULL, .title = ">scale", .of = AT(has_next)),
    FIELD(REAL, NULL, FIELD_IF, AT(t.next), NULL, .title = ">next", .of = AT(has_next)),
    {0}};
const record_kind replay_tensor_record = {"tensor", NULL, sizeof(replay_tensor_row), tensor_fields};
#undef AT

replay_tensor_row replay_tensor_row_of(const replay_tensor *t)
{
    char name[256];
    replay_tensor_row row = {
        .t = *t, .sqnr = isfinite(t->worst_sqnr) ? t->worst_sqnr : (double)NAN, .has_next = (size_t)!isnan(t->next)};
    snprintf(row.name, sizeof row.name, "%.60s", escape_text(name, sizeof name, t->name));
    return row;
}

#define AT(member) offsetof(replay_group_row, member)
static const record_field group_fields[] = {
    FIELD(TEXT, NULL, 0, AT(name), NULL, .title = "<kind"),
    FIELD(COUNT, NULL, 0, AT(c.count), NULL, .title = ">numbers"),
    FIELD(SHARE, NULL, 0, AT(zero), NULL, .title = ">zero already", .of = AT(c.count)),
    FIELD(COUNT, NULL, FIELD_BLANK, AT(c.nonfinite), NULL, .title = ">Inf, NaN already"),
    FIELD(SHARE, NULL, 0, AT(c.underflow), NULL, .title = ">become zero", .of = AT(c.nonzero)),
    FIELD(SHARE, NULL, 0, AT(c.subnormal), NULL, .title = ">subnormal", .spare = 1, .of = AT(c.nonzero)),
    FIELD(SHARE, NULL, 0, AT(c.overflow), NULL, .title = ">overflow", .of = AT(c.nonzero)),
    FIELD(COUNT, NULL, FIELD_BLANK, AT(c.stale), NULL, .title = ">stale"),
    {0}};
const record_kind replay_group_record = {"kind", NULL, sizeof(replay_group_row), group_fields};
#undef AT

replay_group_row replay_group_row_of(replay_group g, const replay_counts *c)
{
    static const char *const names[REPLAY_GROUPS] = {"activations", "weights", "activation gradients",
                                                     "weight gradients"};
    return (replay_group_row){names[g], *c, c->count - c->nonzero - c->nonfinite};
}
