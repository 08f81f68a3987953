/* lognote.c -- see lognote.h. */
#include "lognote.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 8192 };

static const char *const loss_words[] = {"loss", "train_loss", "training_loss", "lm_loss",
                                         "total_loss", "loss_value", "reduced_train_loss",
                                         "loss_step", "train_loss_step", NULL};
static const char *const norm_words[] = {"grad_norm", "grad norm", "gnorm", "gradnorm",
                                         "gradient norm", "grad-norm", "gradient_norm",
                                         "total_norm", "global_norm", "norm", NULL};
static const char *const step_words[] = {"global_step", "num_updates", "global step",
                                         "trainer/global_step", "step", "iteration", "iter",
                                         "steps", "it", "update", NULL};

/* ---- messages ---- */

/* A line with `phrase`, and none with `but`. */
static const struct {
    const char *phrase, *but;
    unsigned marks;
} messages[] = {
    {"loss is nan", NULL, NOTE_LOST},
    {"loss is inf", NULL, NOTE_LOST},
    {"nan loss", NULL, NOTE_LOST},
    {"infinite or nan", NULL, NOTE_LOST},
    {"loss = nan", NULL, NOTE_LOST},
    {"no checkpoint found", NULL, NOTE_FRESH},
    {"will start from random", NULL, NOTE_FRESH},
    {"training from scratch", NULL, NOTE_FRESH},
    {"loading checkpoint", "shards", NOTE_RESUMED},
    {"loaded checkpoint", NULL, NOTE_RESUMED},
    {"resuming", NULL, NOTE_RESUMED},
    {"resume from", NULL, NOTE_RESUMED},
    {"resumed from", NULL, NOTE_RESUMED},
    {"restored from", NULL, NOTE_RESUMED},
    {"successfully loaded", "pretrain", NOTE_RESUMED},
    {"traceback (most recent call last)", NULL, NOTE_ENDED},
    {"zerodivisionerror", NULL, NOTE_ENDED},
    {"floatingpointerror", NULL, NOTE_ENDED},
    {"runtimeerror:", NULL, NOTE_ENDED},
    {"stopping training", NULL, NOTE_ENDED},
    {"exiting run", NULL, NOTE_ENDED},
    {"process exiting", NULL, NOTE_ENDED},
};

static unsigned marks_of(const char *line)
{
    unsigned marks = 0;
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++)
        if (words_find(line, messages[i].phrase) &&
            !(messages[i].but && strstr(line, messages[i].but)))
            marks |= messages[i].marks;
    return marks & NOTE_FRESH ? marks & ~(unsigned)NOTE_RESUMED : marks;
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
        const char *p = words_find(line, names[i].word);
        if (p && words_number(p + strspn(p, " .:='\""), &x) && x > 0)
            return names[i].is_power ? exp2(fmin(x, 128)) : x;
    }
    return (double)NAN;
}

static void take_position(log_note *n, const char *line)
{
    int64_t at, of;
    const int fraction = words_fraction(line, &at, &of);
    const char *epoch = words_find(line, "epoch");
    n->step = words_integer_of(line, step_words);
    if (fraction && (n->step < 0 || n->step == at)) {
        n->per_epoch = n->step < 0 && (epoch || fraction > 1);
        n->step = at;
        n->of = of;
    }
    if (epoch) {
        epoch = words_skip_marks(epoch);
        epoch += *epoch == ')' ? 1 : 0;
        if (!words_number(epoch, &n->epoch))
            n->epoch = -1;
    }
}

/* DeepSpeed's "step=20, skipped=3, lr=[...], mom=[...]". */
static int64_t skipped_in_all(const char *line)
{
    static const char *const words[] = {"skipped", NULL};
    return strstr(line, "mom=[") ? words_integer_of(line, words) : -1;
}

int log_note_parse(log_note *n, const char *text)
{
    static const char *const lost[] = {"number of nan iterations", NULL};
    char line[WIDTH + 1];
    size_t length = 0;
    for (; text[length] && length < WIDTH; length++)
        line[length] = (char)tolower((unsigned char)text[length]);
    line[length] = 0;
    *n = (log_note){.step = -1, .of = -1, .epoch = -1, .marks = marks_of(line)};
    n->loss = words_value_of(line, loss_words, &n->loss_value);
    n->norm = words_value_of(line, norm_words, &n->norm_value);
    n->skipped = skipped_in_all(line);
    n->starts = starts_at(line);
    if (words_integer_of(line, lost) > 0 && n->loss == VALUE_UNSAID)
        n->loss = VALUE_NAN;
    if (n->marks & NOTE_LOST && n->loss == VALUE_UNSAID)
        n->loss = VALUE_NAN;
    take_position(n, line);
    return n->marks || n->loss || n->norm || n->step >= 0 || n->skipped >= 0 || !isnan(n->starts);
}

/* ---- the series ---- */

int log_notes_add(log_notes *all, const log_note *n)
{
    if (!all->at) {
        all->at = malloc(NOTES_MAX * sizeof *all->at);
        all->stride = 1;
        if (!all->at)
            return -1;
    }
    const int rare = n->marks || n->loss > VALUE_FINITE || n->norm > VALUE_FINITE;
    if (all->seen++ % all->stride && !rare)
        return 0;
    if (all->count == NOTES_MAX) {
        for (size_t i = 0; i < NOTES_MAX / 2; i++)
            all->at[i] = all->at[2 * i];
        all->count = NOTES_MAX / 2;
        all->stride *= 2;
    }
    all->at[all->count++] = *n;
    return 0;
}

void log_notes_clear(log_notes *all)
{
    free(all->at);
    all->at = NULL;
    all->count = 0;
}
