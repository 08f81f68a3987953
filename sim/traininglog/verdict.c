/* verdict.c -- see verdict.h. */
#include "verdict.h"

#include "sentences.h"

#include <stdio.h>

const char *const traininglog_verdict_names[] = {[VERDICT_NONE] = "no steps",
                                                 [VERDICT_CLEAN] = "no overflow",
                                                 [VERDICT_STARTUP] = "start-up search",
                                                 [VERDICT_SEARCHING] = "start-up search, not finished",
                                                 [VERDICT_STEADY] = "steady",
                                                 [VERDICT_SPIKES] = "spikes",
                                                 [VERDICT_NOT_FINITE] = "Inf or NaN in the gradients",
                                                 [VERDICT_RUNAWAY] = "runaway",
                                                 [VERDICT_FLOOR] = "floor reached",
                                                 [VERDICT_TAKEN] = "overflow taken",
                                                 [VERDICT_STUCK] = "scale stuck",
                                                 [VERDICT_DIVERGING] = "diverging",
                                                 [VERDICT_RESUMED] = "scaler state lost",
                                                 [VERDICT_UNCLEAR] = "not enough to tell",
                                                 [VERDICT_LOST] = "Inf or NaN",
                                                 [VERDICT_WELL] = "nothing unusual",
                                                 [VERDICT_UNLEARNED] = "nothing is learned",
                                                 [VERDICT_MISMATCH] = "trainer and sampler differ",
                                                 [VERDICT_RANKS] = "ranks differ",
                                                 [VERDICT_RANKS + 1] = NULL};

static const char *const classes[] = {
    [VERDICT_NONE] = "not-enough",
    [VERDICT_CLEAN] = "fine-steady",
    [VERDICT_STARTUP] = "fine-startup",
    [VERDICT_SEARCHING] = "not-enough",
    [VERDICT_STEADY] = "fine-steady",
    [VERDICT_SPIKES] = "warn-spikes",
    [VERDICT_NOT_FINITE] = "warn-nonfinite",
    [VERDICT_RUNAWAY] = "warn-diverging",
    [VERDICT_FLOOR] = "stopped",
    [VERDICT_TAKEN] = "taken",
    [VERDICT_STUCK] = "warn-stuck",
    [VERDICT_DIVERGING] = "warn-diverging",
    [VERDICT_RESUMED] = "warn-resume",
    [VERDICT_UNCLEAR] = "not-enough",
    [VERDICT_LOST] = "warn-nonfinite",
    [VERDICT_WELL] = "fine-steady",
    [VERDICT_UNLEARNED] = "warn-not-learning",
    [VERDICT_MISMATCH] = "warn-mismatch",
    [VERDICT_RANKS] = "warn-ranks",
};

const char *traininglog_verdict_name(verdict v)
{
    return traininglog_verdict_names[v];
}

const char *traininglog_verdict_class(verdict v)
{
    return classes[v];
}

/* ---- doubts ---- */

/* What forbids to reassure, although all else looks well. */
static const struct {
    uint64_t fact;
    const char *says;
} doubts[] = {
    {FACT(UNREAD), "overflows whose scale cannot be read"},
    {FACT(BAD_LAST), "the last scale, which cannot be read"},
    {FACT(HIDDEN), "the rest of lines that are too long, which tell of scales"},
    {FACT(ZEROS), "why the loss is 0, or the same number all the time"},
    {FACT(LOST_MEAN), "the lines before, in which a number is Inf or NaN: its running mean is"},
    {FACT(DOWN_AT_ONE), "why the scale is down at 1"},
    {FACT(BELOW_ONE), "why the scale is below 1"},
    {FACT(ENDED), "the error that ends the run"},
};

#define DOUBTS                                                                                          \
    (FACT(UNREAD) | FACT(BAD_LAST) | FACT(HIDDEN) | FACT(ZEROS) | FACT(LOST_MEAN) | FACT(DOWN_AT_ONE) | \
     FACT(BELOW_ONE) | FACT(ENDED))

const char *traininglog_verdict_doubt(const facts *f)
{
    for (size_t i = 0; i < sizeof doubts / sizeof doubts[0]; i++)
        if (f->set & doubts[i].fact)
            return doubts[i].says;
    return NULL;
}

/* ---- rows ---- */

/* What forbids every verdict that reassures. */
#define FINE                                                                                                         \
    (DOUBTS | FACT(MAY_RISE) | FACT(STARTING) | FACT(RISES) | FACT(JUMPS) | FACT(FLAT) | FACT(RANKS) | FACT(STUCK) | \
     FACT(NORM_LOST))
#define NEVER UINT64_MAX
#define FIND_NAN "Find the first tensor with Inf or NaN (mpsim stat on recorded tensors): data, a division, "
#define BACK "Go back to a checkpoint from before "

static const char batches[] =
    "Look at the batches of these steps; clip the gradients, or lower the learning rate, if it goes on.";
static const char stop_run[] =
    "Stop, go back to a checkpoint from before, lower the learning rate or clip; bf16 if activations "
    "exceed fp16. The loss scale is the symptom.";
static const char bad_batches[] =
    "Look at the batches of these steps, and skip a step whose norm is not finite: one that is "
    "taken makes every weight NaN.";
static const char go_on[] = "Go on, with the loss and the norm of the gradients in the log.";
static const char whole_log[] = "Give the whole log, from the beginning of the run to now.";
static const char lost_run[] = BACK "that line. " FIND_NAN "a logarithm of 0, an overflow in the forward pass.";
static const char no_scale[] = FIND_NAN "an overflow in the forward pass. No loss scale helps.";
static const char clean[] = "no step overflows at the scales in force.";
static const char next_lines[] = "Look at the next lines: overflows that go on below a scale of 1 are no search.";

/* In the order of how bad it is: what ends a run before what warns, numbers before a scale that warns, what warns before what
 * reassures. */
static const verdict_row rows[] = {
    {VERDICT_NONE, FACT(SIMULATED), FACT(STEPS), NEVER, NULL, NULL, 0, "there is no step."},
    /* the run is over, or does not train */
    {VERDICT_DIVERGING, FACT(SKIPS_MOST), 0, NEVER, traininglog_says_skips, stop_run, 0, NULL},
    {VERDICT_FLOOR, FACT(STOPPED), 0, 0, traininglog_says_floor,
     BACK "the overflows and find where Inf or NaN comes from; a lower floor only delays the end.", 0, NULL},
    {VERDICT_TAKEN, FACT(TAKEN), 0, NEVER, traininglog_says_taken, BACK "that: the weights hold NaN. Skip such steps.",
     0, NULL},
    {VERDICT_STUCK, FACT(STUCK), 0, NEVER, traininglog_says_stuck, NULL, 0, NULL},
    {VERDICT_STUCK, FACT(LOW), 0, NEVER, traininglog_says_low,
     "Start again from the last checkpoint with a new scaler, whose first scale is what fits; a shorter window, or a "
     "floor, keeps it from falling so far.",
     0, NULL},
    {VERDICT_NOT_FINITE, FACT(ISOLATED) | FACT(AT_ONE), 0, FACT(ENDING), traininglog_says_isolated, bad_batches, 0,
     NULL},
    {VERDICT_RUNAWAY, FACT(RUNS_AWAY), 0, FACT(ENDLESS), traininglog_says_runaway,
     "Stop the run. Find the first tensor with Inf or NaN: data, forward pass, a division; go back to a checkpoint from "
     "before; bf16 if activations exceed fp16.",
     0, NULL},
    {VERDICT_DIVERGING, FACT(GONE_AT_ONE) | FACT(STEPS), 0, NEVER, traininglog_says_collapse, lost_run, 0, NULL},
    {VERDICT_DIVERGING, FACT(COLLAPSES), 0, NEVER, traininglog_says_collapse, stop_run, 0, NULL},
    {VERDICT_TAKEN, FACT(NORM_TAKEN) | FACT(STEPS), 0, NEVER, NULL, BACK "that: the weights hold NaN. Skip such steps.",
     0,
     "the norm of the gradients is NaN or Inf at steps that the log tells to have been taken: the weights are lost."},
    /* Inf or NaN */
    {VERDICT_NOT_FINITE, FACT(SCALED) | FACT(LOSS_GONE), 0, FACT(ENDING), traininglog_says_lost, no_scale, 0, NULL},
    {VERDICT_NOT_FINITE, FACT(SCALED) | FACT(LOSS_APART), FACT(ISOLATED), FACT(ENDING), traininglog_says_apart,
     no_scale, 0, NULL},
    {VERDICT_NOT_FINITE, FACT(SCALED) | FACT(NORM_GONE), FACT(ISOLATED), FACT(ENDING), traininglog_says_lost, no_scale,
     0, NULL},
    {VERDICT_NOT_FINITE, FACT(NOT_FINITE), 0, NEVER, traininglog_says_not_finite, no_scale, 0, NULL},
    {VERDICT_LOST, FACT(LOSS_GONE), 0, FACT(ENDING), traininglog_says_lost, lost_run, 1, NULL},
    {VERDICT_LOST, FACT(NORM_GONE), 0, FACT(ENDING), traininglog_says_lost, lost_run, 1, NULL},
    {VERDICT_LOST, FACT(LOSS_APART), 0, NEVER, traininglog_says_apart, bad_batches, 1, NULL},
    {VERDICT_LOST, FACT(NORM_APART), 0, NEVER, traininglog_says_apart, bad_batches, 1, NULL},
    {VERDICT_RANKS, FACT(RANKS), 0, 0, traininglog_says_ranks,
     "Let all ranks agree on an overflow: reduce the flag of the overflow (found_inf) over the ranks before the step, so that "
     "all skip it or none.",
     0, NULL},
    {VERDICT_RESUMED, FACT(RESUMED), 0, FACT(RESTARTS), traininglog_says_resumed,
     "Save and load the scaler's state with the checkpoint (scaler.state_dict(), amp.state_dict()).", 0, NULL},
    /* numbers beside the scale */
    {VERDICT_LOST, FACT(VALIDATION_GONE), 0, NEVER, traininglog_says_validation,
     "Evaluate in binary32, or bf16: what is NaN only there overflows in the evaluation's narrower format, or in averaged "
     "weights.",
     1, NULL},
    {VERDICT_MISMATCH, FACT(GAP), 0, NEVER, traininglog_says_gap,
     "Make both sides compute alike: the same format (no fp8 on one side only), weights that have arrived, the same "
     "temperature and mask; or correct by importance weights.",
     1, NULL},
    {VERDICT_DIVERGING, FACT(KL), 0, NEVER, traininglog_says_kl,
     BACK "that; lower the learning rate, or raise the KL penalty.", 1, NULL},
    {VERDICT_DIVERGING, FACT(CLIP), 0, NEVER, traininglog_says_clip,
     "Lower the learning rate, or take fewer updates of the same samples: what is clipped teaches nothing.", 1, NULL},
    {VERDICT_LOST, FACT(METRIC_GONE), 0, NEVER, traininglog_says_metric_lost,
     "Look at what this number is computed from: a logarithm of 0, a division by a length or a deviation of 0, a sampler "
     "that returns NaN.",
     1, NULL},
    {VERDICT_UNLEARNED, FACT(FLAT), 0, FACT(NORM_TOLD), traininglog_says_flat,
     "Look whether the loss depends on the weights (detached or frozen, labels that are all masked), whether gradients "
     "vanish in their format, and whether the learning rate is 0.",
     1, NULL},
    {VERDICT_DIVERGING, FACT(RISES), 0, FACT(SURE_RISE), traininglog_says_rise,
     "Stop, go back to a checkpoint from before the rise, lower the learning rate or clip the gradients.", 1, NULL},
    {VERDICT_UNCLEAR, FACT(STARTING), 0, NEVER, traininglog_says_starting,
     "Look at the next lines: a loss that comes down below its first value is a start, one that does not is lost.", 1,
     NULL},
    /* scales that warn, and jumps */
    {VERDICT_SPIKES, FACT(ISOLATED), 0, NEVER, traininglog_says_isolated,
     "Look at the batches of these steps. If it goes on, take a smaller constant scale, or a dynamic one, which finds it.",
     0, NULL},
    {VERDICT_SPIKES, FACT(LOST_BETWEEN) | FACT(OVERFLOWS), 0, NEVER, traininglog_says_spikes, batches, 0, NULL},
    {VERDICT_SPIKES, FACT(SPIKES), 0, NEVER, traininglog_says_spikes,
     "Look at the batches, the learning rate and the norm of the gradients at these steps; clip, or use bf16, if they go on.",
     0, NULL},
    {VERDICT_SEARCHING, FACT(SEARCH) | FACT(PLACED), FACT(ENDS), NEVER, traininglog_says_searching, next_lines, 0,
     NULL},
    {VERDICT_SPIKES, FACT(JUMPS), 0, NEVER, traininglog_says_jumps, batches, 1, NULL},
    {VERDICT_UNCLEAR, FACT(MAY_RISE), 0, NEVER, traininglog_says_may_rise,
     "Look at the next lines: a loss that stays above what it had reached is lost; then go back to a checkpoint from before.",
     1, NULL},
    /* what reassures */
    {VERDICT_STARTUP, FACT(SEARCH) | FACT(ENDS), FINE | FACT(UNSURE), FACT(SURE_SCALE) | FACT(READ),
     traininglog_says_startup, "Nothing. A lower first scale would save the skipped steps.", 0, NULL},
    {VERDICT_STEADY, FACT(PROBES), FINE, FACT(SURE_SCALE) | FACT(READ), traininglog_says_steady, "Nothing.", 0, NULL},
    {VERDICT_CLEAN, FACT(STEPS) | FACT(SCALED), FINE | FACT(OVERFLOWS) | FACT(ONE_LINE),
     FACT(LONG) | FACT(READ) | FACT(SETTLED), NULL, "Nothing.", 0, clean},
    {VERDICT_WELL, 0, FINE | FACT(FEW) | FACT(SCALED) | FACT(OVERFLOWS), FACT(MANY) | FACT(READ) | FACT(SETTLED),
     traininglog_says_well, go_on, 1, NULL},
    {VERDICT_CLEAN, FACT(STEPS), FINE | FACT(SCALED) | FACT(OVERFLOWS) | FACT(ONE_LINE),
     FACT(LONG) | FACT(READ) | FACT(SETTLED), NULL, go_on, 0, clean},
    /* what is not known */
    {VERDICT_UNCLEAR, 0, FACT(STEPS) | FACT(SCALED), NEVER, traininglog_says_few,
     "Give more lines, with the loss and the norm of the gradients.", 1, NULL},
    {VERDICT_UNCLEAR, 0, FACT(STEPS), NEVER, traininglog_says_unclear,
     "Log the loss scale, too (scaler.get_scale(), optimizer.loss_scale), or give the part of the log that has it.", 0,
     NULL},
    {VERDICT_UNCLEAR, 0, 0, NEVER, traininglog_says_unclear, whole_log, 0, NULL},
};

/* What would reassure but for a doubt. */
static const verdict_row doubtful = {VERDICT_UNCLEAR, 0, 0, NEVER, traininglog_says_doubt, whole_log, 0, NULL};

static const verdict_row *first_of(uint64_t set)
{
    const verdict_row *r = rows;
    while ((set & r->needs) != r->needs || set & r->forbids)
        r++;
    return r; /* the last one fits all */
}

const verdict_row *traininglog_verdict_find(const facts *f)
{
    const verdict_row *r = first_of(f->set), *else_r = first_of(f->set & ~DOUBTS);
    return r->verdict == VERDICT_UNCLEAR && else_r->forbids & DOUBTS ? &doubtful : r;
}

void traininglog_verdict_says(const verdict_row *r, const facts *f, char *text, size_t size)
{
    if (r->says)
        r->says(f, text, size);
    else
        snprintf(text, size, "%s", r->text);
}

confidence traininglog_verdict_confidence(const verdict_row *r, const facts *f)
{
    if (r->verdict == VERDICT_UNCLEAR || r->verdict == VERDICT_SEARCHING || r->verdict == VERDICT_NONE)
        return NOT_ENOUGH;
    return (f->set & r->certain) == r->certain ? CERTAIN : LIKELY;
}
