/* fields.c -- see fields.h. */
#include "fields.h"

#include "../array/need.h"
#include "../text/words.h"
#include "decoder.h"

#include <inttypes.h>
#include <math.h>

/* ---- what is trained ---- */

#define AT(member) offsetof(train_decoder, member)
static const record_field network_fields[] = {
    FIELD(COUNT32, "heads", IN_TREE, AT(heads), "Heads of attention."),
    FIELD(COUNT32, "kv_heads", IN_TREE, AT(kv_heads), "Heads of keys and values."),
    FIELD(COUNT32, "hidden", IN_TREE, AT(hidden), "Units of the feed-forward network."),
    FIELD(COUNT32, "context", IN_TREE, AT(context), "Tokens of a sequence."),
    FIELD(COUNT32, "vocabulary", IN_TREE, AT(vocabulary), "Tokens that there are."),
    FIELD(FLAG, "biases", IN_TREE, AT(biases), "Whether linear layers and norms have biases."),
    FIELD(FLAG, "tied", IN_TREE, AT(tied), "Whether the head's weight is the table of tokens."),
    FIELD(COUNT32, "tile", IN_TREE, AT(tile), "Columns of a tile of attention; 0: all scores at once."),
    FIELD(COUNT32, "accumulate", IN_TREE, AT(accumulate), "Micro-batches of a step."),
    FIELD(CHARS, "accumulate_format", IN_TREE, AT(accumulate_format), "The format of the micro-batches' sum."),
    FIELD(COUNT32, "ranks", IN_TREE, AT(ranks), "Simulated ranks, in data parallel."),
    FIELD(CHARS, "wire", IN_TREE, AT(wire), "The format of what ranks send."),
    FIELD(CHARS, "wire_sum", IN_TREE, AT(sum), "The format of the sums on their way."),
    FIELD(COUNT, "warmup", IN_TREE, AT(warmup), "Steps in which the learning rate rises."),
    FIELD(COUNT, "cooldown", IN_TREE, AT(cooldown), "Last steps, in which the learning rate falls to 0."),
    FIELD(REAL, "min_lr", IN_TREE, AT(min_lr), "What the schedule ends with, as a share of the learning rate."),
    FIELD(FLAG, "decay_all", IN_TREE, AT(decay_all), "Whether norms and biases decay, too."),
    FIELD(COUNT32, "validation", IN_TREE, AT(validation), "Sequences of the held-back text."),
    FIELD(CHARS, "text", IN_TREE, AT(text), "The name of the text."),
    {0}};
static const record_kind network = {"network", NULL, sizeof(train_decoder), network_fields};
#undef AT

#define AT(member) offsetof(train_decoder_row, member)
static const char *const positions[] = {"rotary", "learned", NULL};
static const record_field decoder_fields[] = {
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE | FIELD_POINTER, AT(d), NULL, .record = &network),
    FIELD(TEXT, "norm", IN_TREE, AT(words.norm), NULL),
    FIELD(TEXT, "activation", IN_TREE, AT(words.activation), "Of the feed-forward network."),
    FIELD(TEXT, "positions", IN_TREE, AT(positions), "How the network knows the place of a token.", .words = positions),
    FIELD(TEXT, "math_norm", IN_TREE, AT(math_norm), "The format of norms."),
    FIELD(TEXT, "math_softmax", IN_TREE, AT(math_softmax), "The format of attention's softmax."),
    FIELD(TEXT, "reduce", IN_TREE, AT(words.reduce), "The order in which the ranks' gradients are added."),
    FIELD(TEXT, "schedule", IN_TREE, AT(words.decay), "How the learning rate falls after the warm-up."),
    FIELD(CHARS, "text_digest", IN_TREE, AT(digest), NULL),
    {0}};
static const record_kind decoder = {"decoder", "Of transformers.", sizeof(train_decoder_row), decoder_fields};
#undef AT

#define AT(member) offsetof(train_settings, member)
#define OWN IN_TREE | FIELD_LOOSE /* what a user's network does not have */
static const record_field settings_fields[] = {
    FIELD(CHARS, "net", IN_TREE, AT(net), "The network: `mlp`, `cnn`, `gpt`, `llama`, or the class of a user's model."),
    FIELD(COUNT32, "depth", OWN, AT(depth), "Hidden layers, convolutions, or blocks."),
    FIELD(COUNT32, "width", OWN, AT(width), "Units of a hidden layer, channels of the first convolution."),
    FIELD(BOOLEAN, "batchnorm", OWN, AT(batchnorm), NULL),
    FIELD(COUNT32, "batch", OWN, AT(batch), "Images or sequences."),
    FIELD(COUNT, "steps", IN_TREE, AT(steps), NULL),
    FIELD(COUNT, "seed", IN_TREE, AT(seed), NULL),
    FIELD(REAL, "gain", OWN, AT(gain), "Of the first weights."),
    FIELD(REAL, "loss_factor", OWN, AT(loss_factor),
          "What the loss is multiplied by before the backward pass; losses of the report are without it."),
    FIELD(CHARS, "math", IN_TREE, AT(math), "The format of softmax, loss and normalisation."),
    FIELD(CHARS, "arch", IN_TREE, AT(arch), "Where matrix products run: an architecture, or a model of accumulation."),
    FIELD(BOOLEAN, "tf32", IN_TREE, AT(tf32), "Whether binary32 operands are rounded to tf32."),
    {0}};
#undef OWN
static const record_kind settings = {"settings", NULL, sizeof(train_settings), settings_fields};
#undef AT

#define AT(member) offsetof(train_config, member)
static const record_field config_fields[] = {
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE | FIELD_POINTER, AT(s), NULL, .record = &settings),
    FIELD(RECORD, "decoder", IN_TREE | FIELD_IF | FIELD_OPTIONAL, AT(decoder), NULL, .of = AT(has_decoder),
          .record = &decoder),
    {0}};
static const record_kind config = {"config", "What is trained.", sizeof(train_config), config_fields};
#undef AT

train_config train_config_of(const train_settings *s)
{
    const train_decoder *d = &s->decoder;
    train_config c = {.s = s, .has_decoder = train_is_decoder(s) != 0};
    if (!c.has_decoder)
        return c;
    c.decoder = (train_decoder_row){.d = d,
                                    .words = train_decoder_say(d),
                                    .positions = positions[!d->rotary],
                                    .math_norm = d->math_norm[0] ? d->math_norm : s->math,
                                    .math_softmax = d->math_softmax[0] ? d->math_softmax : s->math};
    snprintf(c.decoder.digest, sizeof c.decoder.digest, "%016" PRIx64, d->text_digest);
    return c;
}

/* ---- a step ---- */

#define AT(member) offsetof(train_counts, member)
static const record_field counts_fields[] = {
    FIELD(COUNT, "nonzero", IN_ALL, AT(nonzero), "Numbers that are finite and not zero before rounding."),
    FIELD(COUNT, "lost", IN_ALL, AT(lost), "Of these, those that become zero."),
    FIELD(COUNT, "overflow", IN_ALL, AT(overflow),
          "Of these, those beyond the format's largest number, saturated or not."),
    FIELD(COUNT, "nonfinite", IN_ALL, AT(nonfinite), "Results that are infinite or NaN."),
    {0}};
static const record_kind counts = {"counts", "Of roundings.", sizeof(train_counts), counts_fields};
#undef AT

/* What is rounded, and updates, of a step and of a run. */
#define ROUNDED_FIELDS(OF)                                                                                   \
    FIELD(RECORD, "act", IN_ALL, AT(OF.act), "Activations, weights, results of layers.", .record = &counts), \
        FIELD(RECORD, "agrad", IN_ALL, AT(OF.agrad), "Gradients of activations.", .record = &counts),        \
        FIELD(RECORD, "wgrad", IN_ALL, AT(OF.wgrad), "Gradients of weights.", .record = &counts),            \
        FIELD(COUNT, "updates", IN_ALL, AT(OF.updates), "Elements of weights that would move in binary64."), \
        FIELD(COUNT, "lost", IN_ALL, AT(OF.lost), "Of these, those that did not move.")

/* A number that only rows have where something was tested. */
#define TESTED IN_ALL | FIELD_IF | FIELD_OPTIONAL

#define AT(member) offsetof(train_step_row, member)
static const record_field step_fields[] = {
    FIELD(TEXT, "policy", IN_LINE | IN_CSV, AT(policy), "The policy's name."),
    FIELD(COUNT, "step", IN_ALL, AT(step), "From 1."),
    FIELD(REAL32, "loss", IN_ALL, AT(row.step.loss), "The mean over the batch, before the update."),
    FIELD(REAL, "accuracy", IN_ALL | FIELD_LOOSE, AT(row.step.accuracy),
          "Of the batch, before the update; of transformers that of the next token."),
    FIELD(REAL, "scale", IN_ALL, AT(row.step.scale), "The loss scale."),
    FIELD(REAL, "next_scale", IN_ALL, AT(row.step.next_scale), "The loss scale of the next step."),
    FIELD(SET, "events", IN_ALL, AT(row.step.events), "What the loss scaler did.", .words = step_events),
    FIELD(BOOLEAN, "skipped", IN_TREE, AT(row.step.skipped), "Whether the step has no update."),
    FIELD(TEXT, "cause", IN_TREE | FIELD_NULL, AT(row.step.cause), "The tensor that overflowed first."),
    FIELD(REAL, "norm", IN_ALL, AT(row.step.norm),
          "Of all gradients, unscaled, before clipping; NaN: nothing clips, or the step is skipped."),
    FIELD(BOOLEAN, "clipped", IN_ALL | FIELD_DIGIT, AT(row.step.clipped), NULL),
    ROUNDED_FIELDS(row.step),
    FIELD(REAL, "test_loss", TESTED, AT(row.test_loss), "Of the test images, where the step is followed by a test.",
          .of = AT(images), .when = SHOW_IMAGES),
    FIELD(REAL, "test_accuracy", TESTED, AT(row.test_accuracy), NULL, .of = AT(images), .when = SHOW_IMAGES),
    FIELD(REAL, "validation_loss", TESTED, AT(row.test_loss),
          "Of transformers: of the held-back text, where the step is followed by a test.", .of = AT(text),
          .when = SHOW_TRANSFORMERS),
    FIELD(REAL, "validation_accuracy", TESTED, AT(row.test_accuracy), NULL, .of = AT(text), .when = SHOW_TRANSFORMERS),
    FIELD(REAL, "perplexity", TESTED, AT(perplexity), "e to the validation loss.", .of = AT(text),
          .when = SHOW_TRANSFORMERS),
    FIELD(REAL, "lr", TESTED, AT(row.step.lr), "Of transformers: the learning rate.", .of = AT(decoder),
          .when = SHOW_TRANSFORMERS),
    FIELD(COUNT, "passes", IN_JSON | FIELD_FOREIGN, 0,
          "Of a user's network: backward passes that the loss is the sum of; missing: one."),
    FIELD(TEXTS, "optimizers", IN_JSON | FIELD_FOREIGN, 0, "Of a user's network: the optimizers that stepped."),
    {0}};
static const record_kind step = {"step", "A step.", sizeof(train_step_row), step_fields};
#undef AT

train_step_row train_step_row_of(const train_job *j, const train_row *r)
{
    const size_t is_text = train_is_decoder(&j->run.settings) != 0;
    return (train_step_row){.policy = j->name,
                            .step = r->step.step + 1,
                            .row = *r,
                            .decoder = is_text,
                            .images = r->evaluated && !is_text,
                            .text = r->evaluated && is_text,
                            .perplexity = r->evaluated && is_text ? train_perplexity(r->test_loss) : 0};
}

/* ---- a run added up ---- */

#define AT(member) offsetof(train_operation, member)
static const record_field operation_fields[] = {
    FIELD(TEXT, "operands", IN_TREE, AT(name), "The formats of the operands."),
    FIELD(COUNT, "multiply_adds", IN_TREE, AT(n), NULL),
    {0}};
static const record_kind operation = {"operation", NULL, sizeof(train_operation), operation_fields};
#undef AT

#define AT(member) offsetof(train_digests_row, member)
static const record_field digests_fields[] = {
    FIELD(COUNT, "steps", IN_TREE, AT(steps), "Steps that were compared."),
    FIELD(TEXT, "difference", IN_TREE | FIELD_NULL, AT(difference), "The first difference; null: there is none."),
    {0}};
static const record_kind digests = {"digests", NULL, sizeof(train_digests_row), digests_fields};
#undef AT

#define AT(member) offsetof(train_total_row, member)
static const record_field total_fields[] = {
    FIELD(TEXT, "policy", IN_CSV, AT(policy), NULL),
    FIELD(CHARS, "status", IN_ALL, AT(status), "What became of a run that did not end well, or nothing."),
    FIELD(COUNT, "parameters", IN_TREE, AT(t.parameters), NULL),
    FIELD(COUNT, "first", IN_ALL, AT(t.first), "The first step of this process, from 1."),
    FIELD(COUNT, "steps", IN_ALL, AT(t.done), "The last step that was done."),
    FIELD(REAL, "initial_loss", IN_ALL, AT(t.initial_loss), "Of the first step."),
    FIELD(REAL, "final_loss", IN_ALL, AT(t.final_loss), "The mean of the last tenth of all steps."),
    FIELD(REAL, "test_loss", TESTED, AT(t.test_loss), "Of the last test; NaN: there was none.", .of = AT(images),
          .when = SHOW_IMAGES),
    FIELD(REAL, "test_accuracy", TESTED, AT(t.test_accuracy), NULL, .of = AT(images), .when = SHOW_IMAGES),
    FIELD(REAL, "validation_loss", TESTED, AT(t.test_loss), "Of transformers.", .of = AT(text),
          .when = SHOW_TRANSFORMERS),
    FIELD(REAL, "validation_accuracy", TESTED, AT(t.test_accuracy), NULL, .of = AT(text), .when = SHOW_TRANSFORMERS),
    FIELD(COUNT, "skipped", IN_ALL, AT(t.skipped), "Steps without an update."),
    FIELD(COUNT, "overflows", IN_TREE, AT(t.overflows), "Steps whose gradients overflowed."),
    FIELD(COUNT, "backoffs", IN_TREE, AT(t.backoffs), "Steps after which the loss scale fell."),
    FIELD(COUNT, "growths", IN_TREE, AT(t.growths), "Steps after which the loss scale grew."),
    FIELD(COUNT, "clipped", IN_TREE, AT(t.clipped), "Steps whose gradients were clipped."),
    FIELD(COUNT, "first_skipped", IN_TREE, AT(t.first_skipped), "The first skipped step, from 1; 0: none."),
    FIELD(REAL, "final_scale", IN_ALL, AT(t.final_scale), "The loss scale of the next step."),
    FIELD(TEXT, "cause", IN_TREE | FIELD_NULL, AT(cause),
          "The tensor that overflowed first in the first skipped step."),
    ROUNDED_FIELDS(t),
    FIELD(COUNT, "multiply_adds", IN_TREE, AT(t.products), "Of matrix products."),
    FIELD(RECORD, "bytes", IN_TREE | FIELD_LOOSE, AT(t.bytes), NULL, .record = &step_bytes_record),
    FIELD(RECORD, "bytes", IN_CSV | FIELD_INLINE, AT(t.bytes), NULL, .record = &step_bytes_record),
    FIELD(REAL, "ms_per_step", IN_ALL | FIELD_OPTIONAL, AT(t.ms_per_step),
          "Milliseconds of the emulator, on a device: the median."),
    FIELD(CHARS, "clip", IN_CSV, AT(clip), NULL),
    FIELD(REAL, "perplexity", TESTED, AT(perplexity), "e to the validation loss.", .of = AT(text),
          .when = SHOW_TRANSFORMERS),
    FIELD(COUNT, "tokens_per_step", IN_TREE | FIELD_IF | FIELD_OPTIONAL, AT(tokens_per_step),
          "Of transformers: of all micro-batches and ranks.", .of = AT(text)),
    FIELD(LIST, "operations_per_step", IN_TREE | FIELD_OPTIONAL, AT(list),
          "Of transformers: multiply-adds of matrix products, forward and back, by the formats of their operands.",
          .of = AT(n_operations), .record = &operation),
    FIELD(REAL, "tokens_per_second", IN_ALL | FIELD_OPTIONAL, AT(tokens_per_second), "Of the emulator, on a device.",
          .when = SHOW_TRANSFORMERS),
    FIELD(CHARS, "operations", IN_CSV, AT(listed), NULL, .when = SHOW_TRANSFORMERS),
    FIELD(RECORD, "digests", IN_TREE | FIELD_POINTER | FIELD_OPTIONAL, AT(checked), "Of --check-digests.",
          .record = &digests),
    {0}};
const record_kind train_total_record = {"total", "A run added up.", sizeof(train_total_row), total_fields};
#undef AT

static void fill_operations(train_total_row *row, const train_job *j)
{
    train_operations_count(&row->counted, &j->run, train_last_plan(&j->run, &row->t));
    for (size_t i = 0; i < row->counted.count; i++) {
        row->operations[i] = (train_operation){row->counted.rows[i].name, row->counted.rows[i].n};
        text_add(row->listed, sizeof row->listed, "%s%s=%" PRIu64, i ? ";" : "", row->operations[i].name,
                 row->operations[i].n);
    }
    row->list = row->operations;
    row->n_operations = row->counted.count;
    row->perplexity = train_perplexity(row->t.test_loss);
    row->tokens_per_step = train_tokens_per_step(&j->run.settings);
}

void train_total_row_fill(train_total_row *row, const train_job *j, const train_total *t)
{
    const size_t is_text = train_is_decoder(&j->run.settings) != 0;
    *row = (train_total_row){.policy = j->name,
                             .cause = t->cause[0] ? t->cause : NULL,
                             .t = *t,
                             .images = !is_text,
                             .text = is_text,
                             .tokens_per_second = is_text && !isnan(t->ms_per_step) ? t->tokens_per_second
                                                                                    : (double)NAN,
                             .digests = {t->compared, t->difference[0] ? t->difference : NULL}};
    train_status(row->status, sizeof row->status, t);
    train_clip_text(row->clip, sizeof row->clip, &j->run);
    row->checked = t->compared ? &row->digests : NULL;
    if (is_text)
        fill_operations(row, j);
}

/* ---- a run ---- */

#define AT(member) offsetof(train_plan_row, member)
static const record_field plan_fields[] = {
    FIELD(COUNT, "from", IN_TREE, AT(from), "The first step, from 1."),
    FIELD(CHARS, "plan", IN_TREE, AT(plan), NULL),
    FIELD(RECORD, "optimizer", IN_TREE | FIELD_LOOSE, AT(optimizer), NULL, .record = &step_optimizer_record),
    {0}};
static const record_kind plan_record = {"plan", NULL, sizeof(train_plan_row), plan_fields};
#undef AT

#define AT(member) offsetof(train_run_row, member)
static const record_field policy_fields[] = {
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE, AT(policy), NULL, .record = &step_policy_record),
    FIELD(LIST, "plans", IN_TREE, AT(plans), NULL, .of = AT(n_plans), .record = &plan_record),
    FIELD(CHARS, "products", IN_TREE, AT(products), "How matrix products are computed."),
    FIELD(CHARS, "clip", IN_TREE, AT(clip), "The largest norm of the gradients, and the rule of the clip."),
    {0}};
static const record_kind policy_record = {"policy", NULL, sizeof(train_run_row), policy_fields};

static const record_field run_fields[] = {
    FIELD(RECORD, "policy", IN_JSON, 0, NULL, .record = &policy_record),
    FIELD(LIST, "steps", IN_JSON | FIELD_STREAM, 0, NULL, .record = &step),
    FIELD(RECORD, "total", IN_JSON, AT(total), NULL, .record = &train_total_record),
    {0}};
static const record_kind run = {"run", "A training under a policy.", sizeof(train_run_row), run_fields};
#undef AT

void train_run_row_fill(train_run_row *row, const train_job *j)
{
    const policy *p = j->policy;
    *row = (train_run_row){.policy = {.name = j->name}, .n_plans = j->run.n_plans};
    if (p)
        row->policy = (step_policy){j->name, p->path, p->source, p->note};
    row->plans = need_memory(row->n_plans, sizeof *row->plans);
    for (size_t i = 0; i < row->n_plans; i++) {
        const train_plan *t = &j->run.plans[i];
        row->plans[i] = (train_plan_row){.from = t->from + 1, .optimizer = step_optimizer_of(&t->optimizer)};
        train_plan_text(row->plans[i].plan, sizeof row->plans[i].plan, j, i);
    }
    train_products_text(row->products, sizeof row->products, &j->run);
    train_clip_text(row->clip, sizeof row->clip, &j->run);
}

/* ---- the report ---- */

static const record_field document_fields[] = {FIELD(RECORD, "config", IN_JSON, 0, NULL, .record = &config),
                                               FIELD(LIST, "runs", IN_JSON | FIELD_STREAM, 0, NULL, .record = &run),
                                               {0}};
static const record_kind document = {"document", NULL, sizeof(train_config), document_fields};

const report_kind train_kind = {
    "mpsim.train/1", "mpsim train: trainings under policies",
    "Trainings in emulated arithmetic: settings, every step, and totals. Of mpsim.emulate, whose networks are the user's, without what "
    "only the networks of mpsim train have. $defs/line is a line of --ndjson: a step with the name of its policy.",
    &document};
