/* lognote.c -- see lognote.h. */
#include "lognote.h"

#include "../array/need.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 8192 };

static const char *const loss_words[] = {
    "loss",      "train_loss",      "training_loss", "lm_loss", "total_loss", "loss_value", "reduced_train_loss",
    "loss_step", "train_loss_step", "trl",           NULL};
/* Where no other loss is told. */
static const char *const entropy_words[] = {
    "cross_entropy", "cross-entropy", "crossentropy", "cross entropy", "xent", "nll", NULL};
static const char *const llmc_words[] = {"tel", NULL};
static const char *const norm_words[] = {
    "grad_norm",           "grad norm",     "gnorm",      "gradnorm",        "gradient norm",
    "grad-norm",           "gradient_norm", "total_norm", "total_grad_norm", "global_norm",
    "l2_norm/grad/global", "norm",          NULL};
static const char *const step_words[] = {
    "global_step", "num_updates", "global step", "global iter", "trainer/global_step", "step",  "iteration",
    "iter",        "steps",       "it",          "update",      "global_batch_idx",    "batch", NULL};

/* ---- messages ---- */

/* A line with `phrase`, and none with `but`. */
static const struct {
    const char *phrase, *but;
    unsigned marks;
} explain_messages[] = {
    {"loss is nan", NULL, NOTE_LOST},
    {"loss is inf", NULL, NOTE_LOST},
    {"nan loss", NULL, NOTE_LOST},
    {"infinite or nan", NULL, NOTE_LOST},
    {"loss is not finite", NULL, NOTE_LOST},
    {"loss = nan", NULL, NOTE_LOST},
    {"grad_norm is not finite", NULL, NOTE_LOST_NORM},
    {"grad norm is not finite", NULL, NOTE_LOST_NORM},
    {"gradient norm is not finite", NULL, NOTE_LOST_NORM},
    {"gradients are not finite", NULL, NOTE_LOST_NORM},
    {"non-finite gradient norm", NULL, NOTE_LOST_NORM},
    {"nan detected in gradients", NULL, NOTE_LOST_NORM | NOTE_TENSOR},
    {"inf detected in gradients", NULL, NOTE_LOST_NORM | NOTE_TENSOR},
    {"nan in gradients", NULL, NOTE_LOST_NORM | NOTE_TENSOR},
    {"inf in gradients", NULL, NOTE_LOST_NORM | NOTE_TENSOR},
    {"nan detected in loss", NULL, NOTE_LOST},
    {"nan detected in parameters", NULL, NOTE_LOST},
    {"(inf)", NULL, NOTE_LOST_MEAN},
    {"(nan)", NULL, NOTE_LOST_MEAN},
    {"no checkpoint found", NULL, NOTE_FRESH},
    {"will start from random", NULL, NOTE_FRESH},
    {"training from scratch", NULL, NOTE_FRESH},
    {"loading checkpoint", "shards", NOTE_LOADED},
    {"loaded checkpoint", NULL, NOTE_LOADED},
    {"resuming", NULL, NOTE_RESUMED},
    {"resume from", NULL, NOTE_RESUMED},
    {"resumed from", NULL, NOTE_RESUMED},
    {"restored from", NULL, NOTE_LOADED},
    {"successfully loaded", "pretrain", NOTE_LOADED},
    {"traceback (most recent call last)", NULL, NOTE_ENDED},
    {"zerodivisionerror", NULL, NOTE_ENDED},
    {"floatingpointerror", NULL, NOTE_ENDED},
    {"runtimeerror:", NULL, NOTE_ENDED}, /* behind a rank, too */
    {"stopping training", NULL, NOTE_ENDED},
    {"exiting run", NULL, NOTE_ENDED},
    {"process exiting", NULL, NOTE_ENDED},
};

/* "ValueError: ...", as Python ends: a name that ends in error or exception begins the line. */
static int is_exception(const char *line)
{
    const size_t n = strspn(line, "abcdefghijklmnopqrstuvwxyz0123456789_.");
    return line[n] == ':' && ((n > 5 && strncmp(line + n - 5, "error", 5) == 0) ||
                              (n >= 9 && strncmp(line + n - 9, "exception", 9) == 0));
}

static unsigned marks_of(const char *line)
{
    unsigned marks = is_exception(line) ? NOTE_ENDED : 0;
    for (size_t i = 0; i < sizeof explain_messages / sizeof explain_messages[0]; i++)
        if ((*explain_messages[i].phrase == '(' ? strstr(line, explain_messages[i].phrase)
                                                : traininglog_words_find(line, explain_messages[i].phrase)) &&
            !(explain_messages[i].but && strstr(line, explain_messages[i].but)))
            marks |= explain_messages[i].marks;
    return marks & NOTE_FRESH ? marks & ~(unsigned)(NOTE_RESUMED | NOTE_LOADED) : marks;
}

/* ---- values ---- */

/* The first scale in a list of settings, as DeepSpeed, Megatron and fairseq print them. */
static double starts_at(const char *line)
{
    static const struct {
        const char *word;
        int is_power;
    } names[] = {{"initial_scale_power", 1}, {"initial_dynamic_scale", 0},
                 {"initial_loss_scale", 0},  {"fp16_init_scale", 0},
                 {"init_scale", 0},          {"initial_scale", 0}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        double x;
        const char *p = traininglog_words_find(line, names[i].word);
        if (p && traininglog_words_number(p + strspn(p, " .:='\""), &x) && x > 0)
            return names[i].is_power ? exp2(fmin(x, 128)) : x;
    }
    return (double)NAN;
}

/* "[1, 100] loss: 2.1", epoch and batch, as the tutorials of PyTorch print them. */
static int take_brackets(log_note *n, const char *line)
{
    int64_t epoch, batch;
    const char *p = line + strspn(line, " "), *comma = *p == '[' ? strchr(p, ',') : NULL;
    if (!comma || (epoch = traininglog_words_integer(p)) < 0 || (batch = traininglog_words_integer(comma + 1)) < 0 ||
        p[1 + strspn(p + 1, "0123456789, ")] != ']')
        return 0;
    n->epoch = (double)epoch;
    n->batch = batch;
    return 1;
}

/* The name that holds the letters from p on: letters, digits, marks within a name, folders of names. */
typedef struct named {
    const char *begin, *end;
    char name[64];
} named;

static named name_at(const char *line, const char *p)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_/";
    named n = {p, p + strspn(p, letters), ""};
    while (n.begin > line && strchr(letters, n.begin[-1]))
        n.begin--;
    snprintf(n.name, sizeof n.name, "%.*s", (int)(n.end - n.begin), n.begin);
    return n;
}

/* The number behind a word for steps, which is none behind a time: "ms/batch 12.11". */
static int64_t step_of(const char *line)
{
    static const char *const times[] = {"ms/", "sec/", "secs/", "s/"};
    for (const char *const *word = step_words; *word; word++)
        for (const char *p = line; (p = traininglog_words_find(p, *word)) != NULL;) {
            const named n = name_at(line, p - 1);
            int timed = 0;
            for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
                timed |= strncmp(n.name, times[i], strlen(times[i])) == 0;
            const int64_t v = timed ? -1 : traininglog_words_integer(p);
            if (v >= 0)
                return v;
        }
    return -1;
}

static void take_position(log_note *n, const char *line)
{
    if (take_brackets(n, line))
        return;
    if (strncmp(line, "s:", 2) == 0 && (n->step = traininglog_words_integer(line + 2)) >= 0) { /* llm.c */
        n->worded = 1;
        return;
    }
    int64_t at, of;
    const char *global = traininglog_words_find(line, "global iter"); /* behind fractions of inner loops */
    const int fraction = traininglog_words_fraction(global ? global : line, &at, &of);
    const char *epoch = traininglog_words_find(line, "epoch");
    n->step = step_of(line);
    n->worded = n->step >= 0;
    if (fraction && (n->step < 0 || n->step == at)) {
        n->per_epoch = n->step < 0 && (epoch || fraction > 1);
        n->step = at;
        n->of = of;
    }
    if (epoch && !traininglog_words_number(epoch, &n->epoch))
        n->epoch = -1;
}

/* DeepSpeed's "step=20, skipped=3, lr=[...], mom=[...]", "Skipped Steps: 3". */
static int64_t skipped_in_all(const char *line)
{
    static const char *const words[] = {"skipped_steps", "total_skipped", NULL};
    if (traininglog_words_integer_of(line, words) >= 0)
        return traininglog_words_integer_of(line, words);
    const char *p = traininglog_words_after(line, "step=");
    p = p ? p + strspn(p, "0123456789, ") : NULL;
    return p && strncmp(p, "skipped=", 8) == 0 ? traininglog_words_integer(p + 8) : -1;
}

/* Whether a name says that its number is a setting, or another number about losses: loss_weight, best_loss, loss_scale. */
static int is_of_setting(const char *name)
{
    static const char *const words[] = {"scal",     "best",   "weight", "coef",   "lambda", "every",
                                        "interval", "window", "thresh", "factor", "patien", "smooth",
                                        "balance",  "_fn",    "_type",  "alpha",  "beta",   NULL};
    for (size_t i = 0; words[i]; i++)
        if (strstr(name, words[i]))
            return 1;
    return 0;
}

/* Whether a name is one of an evaluation: val/loss, eval_loss, test_loss. */
static int is_of_evaluation(const char *name)
{
    const char *p = strstr(name, "val"), *test = strstr(name, "test");
    return (p && strncmp(p, "value", 5) != 0) || (test && (test == name || !isalpha((unsigned char)test[-1])));
}

/* Whether a loss is one beside that of the model: a critic's, a penalty, a balance of experts. */
static int is_of_another(const char *name)
{
    static const char *const words[] = {"value", "critic", "vf_", "kl", "aux", NULL};
    for (size_t i = 0; words[i]; i++)
        if (strstr(name, words[i]))
            return 1;
    return strstr(name, "entropy") && !strstr(name, "cross");
}

/* Whether `word` at p ends what its name says: "closs" is a loss, "colossal" is none. */
static int ends_there(const char *line, const char *p, const char *word)
{
    return p == line || !isalpha((unsigned char)p[-1]) || !isalpha((unsigned char)p[strlen(word)]);
}

/* A loss by any other name: the names that hold the word, but for those of a loss scale; those of evaluations, or all
 * others. One that is not finite counts first, and of finite ones none beside that of the model. */
static value_kind other_loss_of(const char *line, const char *word, int evaluation, double *x)
{
    value_kind found = VALUE_UNSAID;
    for (const char *p = line; (p = strstr(p, word)) != NULL;) {
        const named n = name_at(line, p);
        double value;
        const int other = is_of_setting(n.name) || strncmp(traininglog_words_skip_marks(n.end), "scal", 4) == 0;
        const value_kind v = other || !ends_there(line, p, word) || !is_of_evaluation(n.name) != !evaluation
                                 ? VALUE_UNSAID
                                 : traininglog_words_value(n.end, &value);
        if (v > VALUE_FINITE)
            return v;
        if (v == VALUE_FINITE && found == VALUE_UNSAID && !is_of_another(n.name)) {
            found = v;
            *x = value;
        }
        p = n.end;
    }
    return found;
}

static value_kind other_loss(const char *line, int evaluation, double *x)
{
    static const char *const words[] = {"loss", "objective", NULL};
    value_kind found = VALUE_UNSAID;
    for (size_t i = 0; words[i] && found == VALUE_UNSAID; i++)
        found = other_loss_of(line, words[i], evaluation, x);
    return found;
}

/* The number that stands before its name, between commas: "run, 11.8750 loss, ...". */
static value_kind loss_before(const char *line, double *x)
{
    const char *behind = traininglog_words_find(line, "loss");
    const char *end = behind ? behind - strlen("loss") : line, *p = end;
    if (p == line || p[-1] != ' ' || (*behind && *behind != ','))
        return VALUE_UNSAID;
    while (p > line && (p[-1] == ' ' || (p[-1] != ',' && p < end && p[-1] != ' ')) && p[-1] != ',')
        p--;
    const char *value = traininglog_words_skip_marks(p);
    return p > line && strcspn(value, " ") == (size_t)(end - 1 - value) ? traininglog_words_value(value, x)
                                                                        : VALUE_UNSAID;
}

/* Whether the first loss of a line is that of an evaluation, or the mean of an epoch: such a word
 * stands before it. */
static int is_aside(const char *line)
{
    static const char *const words[] = {"valid", "validation", "val",     "eval", "evaluation",
                                        "test",  "dev",        "results", NULL};
    const char *loss = strstr(line, "loss");
    for (size_t i = 0; loss && words[i]; i++) {
        const char *p = traininglog_words_find(line, words[i]);
        if (p && p < loss)
            return 1;
    }
    return 0;
}

/* What stands behind the word: a value, or "train: 1.2, val: 1.3". */
static value_kind loss_behind(const char *p, double *x)
{
    static const char *const words[] = {"train:", "value:", NULL}; /* Megatron: "lm loss value: 6.5" */
    const char *const next = traininglog_words_skip_marks(p);
    for (size_t i = 0; words[i]; i++)
        if (strncmp(next, words[i], strlen(words[i])) == 0)
            return traininglog_words_value(next + strlen(words[i]), x);
    return traininglog_words_value(p, x);
}

/* The loss by one of its usual names. */
static value_kind plain_loss(const char *line, double *x)
{
    for (const char *const *word = loss_words; *word; word++)
        for (const char *p = line; (p = traininglog_words_find(p, *word)) != NULL;) {
            const value_kind v = is_of_evaluation(name_at(line, p - 1).name) ? VALUE_UNSAID : loss_behind(p, x);
            if (v != VALUE_UNSAID)
                return v;
        }
    return VALUE_UNSAID;
}

/* The loss of a line. Lightning's bar has a mean of its own, `loss`, which is NaN where a model
 * optimizes by hand: what the model logs counts. */
static value_kind loss_of(const char *line, double *x)
{
    static const char *const logged[] = {"reduced_train_loss", "train_loss", "train_loss_step",
                                         "training_loss",      "loss_step",  NULL};
    value_kind v = traininglog_words_find(line, "v_num") ? traininglog_words_value_of(line, logged, x) : VALUE_UNSAID;
    if (v == VALUE_UNSAID)
        v = plain_loss(line, x);
    if (v == VALUE_UNSAID)
        v = other_loss(line, 0, x);
    return v == VALUE_UNSAID ? loss_before(line, x) : v;
}

/* Whether all parts of the last folder of a name are words of the norm of all gradients. */
static int is_norm_of_all(const char *name)
{
    static const char words[] = " grad grads gradient gradients norm total global l2 avg mean raw unclipped train ";
    const char *p = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    char word[64];
    if (!strstr(p, "grad") || !strstr(p, "norm"))
        return 0;
    for (size_t n; *p; p += n + (p[n] == '_')) {
        n = strcspn(p, "_");
        snprintf(word, sizeof word, " %.*s ", (int)n, p);
        if (n == 0 || !strstr(words, word))
            return 0;
    }
    return 1;
}

static value_kind norm_of(const char *line, double *x)
{
    value_kind v = traininglog_words_value_of(line, norm_words, x);
    for (const char *p = line; v == VALUE_UNSAID && (p = strstr(p, "norm")) != NULL;) {
        const named n = name_at(line, p);
        v = is_norm_of_all(n.name) ? traininglog_words_value(n.end, x) : VALUE_UNSAID;
        p = n.end;
    }
    return v;
}

/* Make one word of a phrase, whose parts have other meanings. */
static void join_words(char *line, const char *phrase)
{
    char *p = strstr(line, phrase);
    if (p)
        *strchr(p, ' ') = '_';
}

/* The bar of Keras, whose losses are means: "12/99 [==>...] - ETA: 0:07 - loss: nan". */
static int is_bar(const char *line)
{
    return strstr(line, " - loss: ") && (strstr(line, "] - ") || strstr(line, "/step - "));
}

int traininglog_note_parse(log_note *n, const char *text, const char *settings)
{
    static const char *const lost[] = {"number of nan iterations", NULL};
    char line[WIDTH + 1];
    traininglog_words_lower(line, sizeof line, settings);
    const double starts = starts_at(line);
    traininglog_words_lower(line, sizeof line, text);
    join_words(line, "skipped steps");
    *n = (log_note){.step = -1, .batch = -1, .of = -1, .about = -1, .epoch = -1, .marks = marks_of(line)};
    n->loss = loss_of(line, &n->loss_value);
    n->aside = is_aside(line);
    if (n->loss == VALUE_UNSAID &&
        (n->loss = traininglog_words_value_of(line, entropy_words, &n->loss_value)) != VALUE_UNSAID)
        n->aside = 1;
    n->norm = norm_of(line, &n->norm_value);
    n->validation = other_loss(line, 1, &n->validation_value);
    if (n->validation == VALUE_UNSAID)
        n->validation = traininglog_words_value_of(line, llmc_words, &n->validation_value);
    n->skipped = skipped_in_all(line);
    n->starts = starts;
    n->timed = strstr(line, "elapsed time per iteration") != NULL;
    if (n->loss > VALUE_FINITE && is_bar(line))
        n->marks |= NOTE_BAR;
    if (n->norm == VALUE_FINITE && strstr(line, "skipping optimizer step"))
        n->marks |= NOTE_SKIPPED;
    if (traininglog_words_integer_of(line, lost) > 0 && n->loss == VALUE_UNSAID)
        n->loss = VALUE_NAN;
    if (n->marks & NOTE_LOST && n->loss == VALUE_UNSAID)
        n->loss = VALUE_NAN;
    if (n->marks & NOTE_LOST_NORM && n->norm == VALUE_UNSAID)
        n->norm = VALUE_NAN;
    take_position(n, line);
    return n->marks || n->loss || n->norm || n->validation || n->step >= 0 || n->skipped >= 0 || !isnan(n->starts);
}

/* ---- the series ---- */

static int is_rare(const log_note *n)
{
    return n->marks || n->loss > VALUE_FINITE || n->norm > VALUE_FINITE || n->validation > VALUE_FINITE;
}

/* Every second goes, but for the rare ones while they are not many. */
static void thin(log_notes *all)
{
    size_t kept = 0, rare = 0;
    for (size_t i = 0; i < all->count; i++) {
        const int spared = is_rare(&all->at[i]) && rare++ < NOTES_MANY;
        if (spared || i % 2 == 0)
            all->at[kept++] = all->at[i];
    }
    all->count = kept;
    all->stride *= 2;
}

void traininglog_notes_add(log_notes *all, const log_note *n)
{
    if (all->count == 0)
        all->stride = 1;
    const int spared = is_rare(n) && all->rare < NOTES_MANY;
    if (all->seen++ % all->stride && !spared)
        return;
    all->rare += (size_t)spared;
    if (all->count == NOTES_MAX)
        thin(all);
    need_room(&all->at, all->count, sizeof *all->at);
    all->at[all->count++] = *n;
}

void traininglog_notes_clear(log_notes *all)
{
    free(all->at);
    all->at = NULL;
    all->count = 0;
}
