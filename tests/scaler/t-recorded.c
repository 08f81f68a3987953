/* t-recorded.c -- what the frameworks' loss scalers did, step by step, replayed.
 *
 * data/vectors/scalers holds runs of the loss scalers of torch, Megatron-Core, DeepSpeed, Keras,
 * tf-keras and fairseq. Every step's scale and event and every counter is compared; the settings of
 * a case and the defaults that the frameworks print are read with mpsim_scaler_parse. */
#include <mpsim/scaler.h>

#include "support/support.h"
#include "support/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- settings ---- */

/* How a word of a case line reads as a change of a row: "key" with %s for its value, or a whole
 * "key=value". row: it names the row instead. */
typedef struct reading {
    const char *word, *text;
    int row;
} reading;

/* Which counters the columns after EVENT and COUNTER hold. */
enum { CLEAN, STEPS };
enum { NO_MORE, HYSTERESIS, OVER_LAST };

typedef struct recording {
    const char *file, *row;
    int counter, more;
    reading read[16];
} recording;

/* clang-format off */
static const recording recordings[] = {
    {"torch.txt", "torch", CLEAN, NO_MORE,
     {{"init", "init=%s", 0}, {"growth", "growth=%s", 0}, {"backoff", "backoff=%s", 0},
      {"window", "window=%s", 0}, {"enabled=0", "none", 1}}},
    {"torch.txt", "torch-cpu", CLEAN, NO_MORE,
     {{"init", "init=%s", 0}, {"growth", "growth=%s", 0}, {"backoff", "backoff=%s", 0},
      {"window", "window=%s", 0}, {"enabled=0", "none", 1}}},
    {"megatron.txt", "megatron", CLEAN, HYSTERESIS,
     {{"init", "init=%s", 0}, {"growth", "growth=%s", 0}, {"backoff", "backoff=%s", 0},
      {"window", "window=%s", 0}, {"hysteresis", "hysteresis=%s", 0}, {"floor", "floor=%s", 0}}},
    {"deepspeed.txt", "deepspeed", STEPS, HYSTERESIS,
     {{"rule=zero", "deepspeed", 1}, {"rule=fused", "deepspeed-fused", 1},
      {"rule=unfused", "deepspeed-unfused", 1}, {"init", "init=%s", 0},
      {"growth=2.0", "growth=2.0,backoff=0.5", 0}, {"window", "window=%s", 0},
      {"hysteresis", "hysteresis=%s", 0}, {"consecutive=0", "", 0},
      {"consecutive=1", "refill=clean", 0}, {"floor", "floor=%s", 0},
      {"raise=0", "floor-rule=clamp", 0}, {"raise=1", "floor-rule=raise", 0}}},
    {"keras.txt", "keras", CLEAN, NO_MORE,
     {{"init", "init=%s", 0}, {"growth", "growth=%s", 0}, {"backoff", "backoff=%s", 0},
      {"window", "window=%s", 0}}},
    {"tf-keras.txt", "tf-keras", CLEAN, NO_MORE,
     {{"init", "init=%s", 0}, {"growth=2.0", "growth=2,backoff=0.5", 0}, {"window", "window=%s", 0},
      {"floor", "floor=%s", 0}}},
    {"fairseq.txt", "fairseq", STEPS, OVER_LAST,
     /* It divides by the factor; times binary64's 1 / 1.5 gives the same for all scales here. */
     {{"init", "init=%s", 0}, {"factor=2.0", "growth=2,backoff=0.5", 0},
      {"factor=1.5", "growth=1.5,backoff=0x1.5555555555555p-1", 0}, {"window", "window=%s", 0},
      {"tolerance", "tolerance=%s", 0}, {"threshold=none", "threshold=0", 0},
      {"threshold", "threshold=%s", 0}, {"floor", "floor=%s", 0}}},
};
/* clang-format on */

enum { RECORDINGS = sizeof recordings / sizeof *recordings };

/* How the script made its pattern; nothing to us. */
static int ignored(const char *word)
{
    return strncmp(word, "seed=", 5) == 0 || strncmp(word, "p=", 2) == 0;
}

/* "%s" in `text` replaced. */
static void fill(char *out, size_t size, const char *text, const char *value)
{
    const char *at = strstr(text, "%s");
    if (at)
        snprintf(out, size, "%.*s%s", (int)(at - text), text, value);
    else
        snprintf(out, size, "%s", text);
}

static const reading *reading_of(const recording *r, const char *word)
{
    const size_t key = strcspn(word, "=");
    for (const reading *k = r->read; k->word; k++)
        if (strcmp(k->word, word) == 0 || (strlen(k->word) == key && strncmp(k->word, word, key) == 0))
            return k;
    ck_abort_msg("%s: what is \"%s\"?", r->file, word);
    return NULL;
}

/* case NAME key=value ... */
static mpsim_scaler_config settings(const recording *r, const words *w)
{
    char text[512], change[128], changes[384] = "";
    const char *row = r->row;
    for (size_t i = 2; i < w->count; i++) {
        if (ignored(w->word[i]))
            continue;
        const reading *k = reading_of(r, w->word[i]);
        fill(change, sizeof change, k->text, w->word[i] + strcspn(w->word[i], "=") + 1);
        if (k->row)
            row = k->text;
        else if (*change)
            snprintf(changes + strlen(changes), sizeof changes - strlen(changes), ",%s", change);
    }
    snprintf(text, sizeof text, "%s:%s", row, changes + 1);
    if (strcmp(row, "none") == 0)
        snprintf(text, sizeof text, "none");
    mpsim_scaler_config c;
    const mpsim_status s = mpsim_scaler_parse(&c, text);
    ck_assert_msg(s == MPSIM_OK, "%s, %s: \"%s\": %s", r->file, w->word[1], text, mpsim_status_string(s));
    return c;
}

/* ---- steps ---- */

typedef struct replay {
    const recording *r;
    mpsim_scaler s;
    char name[128], first[512];
    size_t cases, steps, mismatches;
    size_t raised, optimizers;
} replay;

static void wrong(replay *p, const char *what, double is, double should)
{
    if (p->mismatches++ == 0)
        snprintf(p->first, sizeof p->first, "%s, case %s, step %" PRIu64 ": %s is %a, recorded %a", p->r->file, p->name,
                 p->s.step, what, is, should);
}

static void expect(replay *p, const char *what, double is, double should)
{
    if (bits_of_f64(is) != bits_of_f64(should))
        wrong(p, what, is, should);
}

static int64_t at_least_one(int64_t h)
{
    return h < 1 ? 1 : h;
}

/* Used-up hysteresis counts on below 1 in some frameworks; it means the same. */
static void counters(replay *p, const char *const *word, size_t count)
{
    const mpsim_scaler *s = &p->s;
    if (!s->config.dynamic)
        return;
    expect(p, "the counter", (double)(p->r->counter == STEPS ? s->step : s->clean), words_real(word[0]));
    if (p->r->more == HYSTERESIS && count > 2 && strcmp(word[2], "-") != 0)
        expect(p, "hysteresis", (double)at_least_one(s->hysteresis),
               (double)at_least_one(traininglog_words_integer(word[2])));
    if (p->r->more == OVER_LAST) {
        ck_assert(count == 4);
        expect(p, "overflows", (double)s->overflows, words_real(word[2]));
        expect(p, "the last rescale", (double)s->last_rescale, words_real(word[3]));
    }
}

static const char *event_of(unsigned events)
{
    return events & MPSIM_SCALER_RAISED ? "raise" : events & MPSIM_SCALER_SKIP ? "skip" : "step";
}

/* INF SCALE COUNTER EVENT ... */
static void one_step(replay *p, const words *w)
{
    const int inf = (int)traininglog_words_integer(w->word[0]);
    const mpsim_scaler_result r = mpsim_scaler_update(&p->s, inf);
    const char *event = event_of(r.events);
    expect(p, "the next scale", r.next, words_real(w->word[1]));
    expect(p, "the scale kept", p->s.scale, words_real(w->word[1]));
    if (strcmp(event, w->word[3]) != 0)
        wrong(p, event, 1, 0);
    if (r.events & MPSIM_SCALER_RAISED)
        p->raised++;
    else
        counters(p, w->word + 2, w->count - 2);
}

/* INF1 INF2 SCALE COUNTER EVENT1 EVENT2: one scaler, and each optimizer skips for itself. */
static void two_optimizers(replay *p, const words *w)
{
    const int a = (int)traininglog_words_integer(w->word[0]), b = (int)traininglog_words_integer(w->word[1]);
    const mpsim_scaler_result r = mpsim_scaler_update(&p->s, a || b);
    expect(p, "the next scale", r.next, words_real(w->word[2]));
    expect(p, "the counter", (double)p->s.clean, words_real(w->word[3]));
    const int skips = strcmp(w->word[4], "skip") == 0 || strcmp(w->word[5], "skip") == 0;
    expect(p, "a skip", (r.events & MPSIM_SCALER_SKIP) != 0, skips);
    p->optimizers++;
}

/* set=X SCALE COUNTER EVENT: the user gave a scale; the counter stays. */
static void set_scale(replay *p, const words *w)
{
    p->s.scale = (double)(float)words_real(w->word[0] + 4);
    expect(p, "the scale", p->s.scale, words_real(w->word[1]));
    expect(p, "the counter", (double)p->s.clean, words_real(w->word[2]));
}

CASE("scalers", 30);

TESTS(steps, RECORDINGS)
{
    replay p = {.r = &recordings[_i]};
    FILE *f = words_open(p.r->file);
    static words w;
    while (words_next(f, &w)) {
        if (words_skip(&w))
            continue;
        if (strcmp(w.word[0], "case") == 0) {
            const mpsim_scaler_config c = settings(p.r, &w);
            ck_assert(mpsim_scaler_init(&p.s, &c) == MPSIM_OK);
            snprintf(p.name, sizeof p.name, "%s", w.word[1]);
            p.cases++;
            continue;
        }
        ck_assert_msg(p.cases > 0 && w.count >= 4, "%s: a line of %zu words", p.r->file, w.count);
        p.steps++;
        if (strncmp(w.word[0], "set=", 4) == 0)
            set_scale(&p, &w);
        else if (strcmp(p.name, "two-optimizers") == 0)
            two_optimizers(&p, &w);
        else
            one_step(&p, &w);
    }
    fclose(f);
    printf("# %s %s: %zu cases, %zu steps (%zu that raise), %zu mismatches\n", p.r->file, p.r->row, p.cases, p.steps,
           p.raised, p.mismatches);
    ck_assert_msg(p.mismatches == 0, "%s", p.first);
    ck_assert(p.cases >= 10 && p.steps >= 150);
}

/* ---- defaults ---- */

/* "# default NAME=VALUE" of a file: the row with this change is the row. */
static const struct {
    const char *file, *name, *row, *change;
} shipped[] = {
    {"accelerate.txt", "GradScalerKwargs.init_scale", "torch", "init=%s"},
    {"accelerate.txt", "GradScalerKwargs.growth_factor", "torch", "growth=%s"},
    {"accelerate.txt", "GradScalerKwargs.backoff_factor", "torch", "backoff=%s"},
    {"accelerate.txt", "GradScalerKwargs.growth_interval", "torch", "window=%s"},
    {"megatron.txt", "OptimizerConfig.initial_loss_scale", "megatron", "init=%s"},
    {"megatron.txt", "OptimizerConfig.min_loss_scale", "megatron", "floor=%s"},
    {"megatron.txt", "OptimizerConfig.loss_scale_window", "megatron", "window=%s"},
    {"megatron.txt", "OptimizerConfig.hysteresis", "megatron", "hysteresis=%s"},
    {"deepspeed.txt", "fp16.initial_scale_power", "deepspeed", "init=2^%s"},
    {"deepspeed.txt", "fp16.loss_scale_window", "deepspeed", "window=%s"},
    {"deepspeed.txt", "fp16.hysteresis", "deepspeed", "hysteresis=%s"},
    {"deepspeed.txt", "fp16.min_loss_scale", "deepspeed", "floor=%s"},
    {"deepspeed.txt", "fused.initial_dynamic_scale", "deepspeed-fused", "init=%s"},
    {"deepspeed.txt", "fused.default_scale_window", "deepspeed-fused", "window=%s"},
    {"deepspeed.txt", "fused.default_min_loss_scale", "deepspeed-fused", "floor=%s"},
    {"deepspeed.txt", "fused.scale_factor", "deepspeed-fused", "growth=%s"},
    {"deepspeed.txt", "unfused.initial_dynamic_scale", "deepspeed-unfused", "init=%s"},
    {"deepspeed.txt", "unfused.default_scale_window", "deepspeed-unfused", "window=%s"},
    {"deepspeed.txt", "unfused.default_min_loss_scale", "deepspeed-unfused", "floor=%s"},
    {"deepspeed.txt", "unfused.scale_factor", "deepspeed-unfused", "growth=%s"},
    {"keras.txt", "LossScaleOptimizer.initial_scale", "keras", "init=%s"},
    {"keras.txt", "LossScaleOptimizer.dynamic_growth_steps", "keras", "window=%s"},
    {"tf-keras.txt", "initial_scale", "tf-keras", "init=%s"},
    {"tf-keras.txt", "dynamic_growth_steps", "tf-keras", "window=%s"},
    {"tf-keras.txt", "multiplier", "tf-keras", "growth=%s"},
    {"fairseq.txt", "DynamicLossScaler.init_scale", "fairseq", "init=%s"},
    {"fairseq.txt", "DynamicLossScaler.scale_factor", "fairseq", "growth=%s"},
    {"fairseq.txt", "DynamicLossScaler.scale_window", "fairseq", "window=%s"},
    {"fairseq.txt", "DynamicLossScaler.tolerance", "fairseq", "tolerance=%s"},
    {"fairseq.txt", "DynamicLossScaler.min_loss_scale", "fairseq", "floor=%s"},
};

/* The value of "# default NAME=VALUE". */
static void printed(const char *file, const char *name, char *value, size_t size)
{
    FILE *f = words_open(file);
    static words w;
    const size_t n = strlen(name);
    *value = 0;
    while (!*value && words_next(f, &w))
        if (w.count == 3 && strcmp(w.word[1], "default") == 0 && strncmp(w.word[2], name, n) == 0 &&
            w.word[2][n] == '=')
            snprintf(value, size, "%s", w.word[2] + n + 1);
    fclose(f);
    ck_assert_msg(*value, "%s: no default %s", file, name);
}

TEST(defaults)
{
    const size_t n = sizeof shipped / sizeof *shipped;
    for (size_t i = 0; i < n; i++) {
        char value[64], change[96], text[160];
        printed(shipped[i].file, shipped[i].name, value, sizeof value);
        fill(change, sizeof change, shipped[i].change, value);
        snprintf(text, sizeof text, "%s:%s", shipped[i].row, change);
        mpsim_scaler_config with, without;
        ck_assert_msg(mpsim_scaler_parse(&with, text) == MPSIM_OK, "%s", text);
        ck_assert(mpsim_scaler_parse(&without, shipped[i].row) == MPSIM_OK);
        ck_assert_msg(memcmp(&with, &without, sizeof with) == 0, "%s is not the default of %s", text, shipped[i].row);
    }
    printf("# %zu printed defaults\n", n);
}

TEST_MAIN("t-scaler-recorded");
