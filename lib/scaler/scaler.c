/* scaler.c -- the table of loss scalers and what one step does to a scale; see mpsim/scaler.h.
 *
 * Sources are named as FILE @ SNAPSHOT, a commit of the project that holds the file. */
#include <mpsim/scaler.h>

#include "../base/words.h"

#include <math.h>

/* ---- the table ---- */

#define NO_CEILING ((double)INFINITY)

/* What a static scaler has: whether it skips; what it is kept in; where it stands in a step. */
#define STATIC(label, skips, kept_in, when)                                                              \
    {                                                                                                    \
        .name = label, .skip = skips, .arithmetic = MPSIM_SCALE_##kept_in, .order = MPSIM_UPDATE_##when, \
        .hysteresis = 1, .window = 2000, .init = 1, .growth = 2, .backoff = 0.5, .ceiling = NO_CEILING   \
    }

/* What a dynamic one has: the start, the rule of growth, the window, whether infinity is refused,
 * the ceiling; the floor; hysteresis and refills; what it is kept in; where it stands in a step,
 * how gradients are unscaled, what is tested. All grow by 2 and back off by 0.5. */
#define DYNAMIC(label, start, rule, clean, guarded, most, least, at_floor, held, refills, kept_in, when, how, what)  \
    {                                                                                                                \
        .name = label, .dynamic = 1, .skip = 1, .init = start, .growth_rule = MPSIM_GROWTH_##rule, .window = clean,  \
        .guard = guarded, .ceiling = most, .floor = least, .floor_rule = MPSIM_FLOOR_##at_floor, .hysteresis = held, \
        .refill = refills, .arithmetic = MPSIM_SCALE_##kept_in, .order = MPSIM_UPDATE_##when,                        \
        .unscale = MPSIM_UNSCALE_##how, .check = MPSIM_CHECK_##what, .growth = 2, .backoff = 0.5                     \
    }

static const mpsim_scaler_type rows[] = {
    {STATIC("none", 0, F64, AFTER_STEP), "no loss scaling (bf16, binary32)", "no framework",
     "nothing is checked: a step with Inf or NaN is taken"},
    {STATIC("static", 0, F64, BEFORE_STEP), "Apex LossScaler with a number", "apex/amp/scaler.py @ e13873de",
     "overflow is never acted on: the step is taken with Inf and NaN; 1 as in O0 and O3, else give yours: static:1024"},
    {STATIC("megatron-static", 1, F32, BEFORE_STEP), "Megatron-Core ConstantGradScaler",
     "megatron/core/optimizer/grad_scaler.py @ d98e8a64",
     "steps that overflow are skipped; Megatron has no default scale: give yours"},
    {DYNAMIC("torch", 0x1p16, COUNTER, 2000, 1, NO_CEILING, 0, CLAMP, 1, 0, F32_F64, AFTER_STEP, RECIPROCAL, ELEMENTS),
     "torch.amp.GradScaler, CUDA",
     "torch/amp/grad_scaler.py @ 0202916b, aten/src/ATen/native/cuda/AmpKernels.cu @ ee04104d",
     "no floor: under repeated overflow the scale reaches 0"},
    {DYNAMIC("torch-cpu", 0x1p16, COUNTER, 2000, 1, NO_CEILING, 0, CLAMP, 1, 0, F32_F64, AFTER_STEP, RECIPROCAL,
             ELEMENTS),
     "torch.amp.GradScaler, CPU",
     "torch/amp/grad_scaler.py @ 0202916b, aten/src/ATen/native/cpu/AmpGradScalerKernels.cpp",
     "the same; on CUDA up to 2.0 growth was not tested (pytorch issue 98828): torch:guard=0"},
    {DYNAMIC("apex", 0x1p16, COUNTER, 2000, 0, 0x1p24, 0, CLAMP, 1, 0, F64, BEFORE_STEP, RECIPROCAL, ELEMENTS),
     "Apex amp LossScaler", "apex/amp/scaler.py @ e13873de",
     "at most 2^24; no floor: the scale falls through the subnormals of binary64"},
    {DYNAMIC("apex-hysteresis", 0x1p16, COUNTER, 2000, 1, NO_CEILING, 0, CLAMP, 2, MPSIM_REFILL_CLEAN, F32_F64,
             AFTER_STEP, RECIPROCAL, ELEMENTS),
     "Apex, update_scale_hysteresis", "csrc/update_scale_hysteresis.cu @ 6424da3b",
     "its caller gives every number; these are torch's, with a hysteresis of 2"},
    {DYNAMIC("megatron", 0x1p32, COUNTER, 1000, 0, NO_CEILING, 1, CLAMP, 2, MPSIM_REFILL_GROWTH, F32, BEFORE_STEP,
             RECIPROCAL, ELEMENTS),
     "Megatron-Core DynamicGradScaler", "megatron/core/optimizer/grad_scaler.py, optimizer_config.py @ d98e8a64",
     "the tolerated overflow comes back on growth only, not on clean steps"},
    {DYNAMIC("deepspeed", 0x1p16, INTERVAL, 1000, 0, NO_CEILING, 1, RAISE, 2, MPSIM_REFILL_GROWTH, F64, BEFORE_UNSCALE,
             RECIPROCAL, ELEMENTS),
     "DeepSpeed ZeRO DynamicLossScaler", "deepspeed/runtime/fp16/loss_scaler.py @ edaa7221",
     "an overflow at the floor ends training; grows on the 1001st clean step; a step of growth is "
     "unscaled with the new scale; refill=clean is consecutive_hysteresis"},
    {DYNAMIC("deepspeed-fused", 0x1p32, INTERVAL, 1000, 0, NO_CEILING, 1, CLAMP, 1, 0, F64, BEFORE_UNSCALE, RECIPROCAL,
             ELEMENTS),
     "DeepSpeed FP16_Optimizer fused", "deepspeed/runtime/fp16/fused_optimizer.py @ edaa7221",
     "no hysteresis; initial_scale_power 16 is init=2^16"},
    {DYNAMIC("deepspeed-unfused", 0x1p16, INTERVAL, 1000, 0, NO_CEILING, 0.25, CLAMP, 1, 0, F64, BEFORE_UNSCALE,
             RECIPROCAL, ELEMENTS),
     "DeepSpeed FP16_Optimizer unfused", "deepspeed/runtime/fp16/unfused_optimizer.py @ edaa7221", "no hysteresis"},
    {STATIC("deepspeed-static", 1, F64, BEFORE_UNSCALE), "DeepSpeed LossScaler, a number",
     "deepspeed/runtime/fp16/loss_scaler.py @ 03365187, fused_optimizer.py @ 023f3614",
     "steps that overflow are skipped, whatever the scaler; its update does nothing: deepspeed-static:128"},
    {DYNAMIC("keras", 0x1p15, COUNTER, 2000, 0, NO_CEILING, 0, CLAMP, 1, 0, F32, AFTER_STEP, DIVIDE, ELEMENTS),
     "Keras 3 LossScaleOptimizer", "keras/src/optimizers/loss_scale_optimizer.py @ 3422977a", "no floor, no ceiling"},
    {DYNAMIC("tf-keras", 0x1p15, COUNTER, 2000, 1, NO_CEILING, 1, CLAMP, 1, 0, F32, BEFORE_STEP, ROUNDED, ELEMENTS),
     "tf.keras LossScaleOptimizer", "tf_keras/mixed_precision/loss_scale_optimizer.py @ 6add81a9",
     "unscales by the reciprocal, rounded to the gradient's dtype first, as recorded; backs off by dividing by its "
     "multiplier, 2 here: of another one the quotient, not the product, is what it rounds"},
    {DYNAMIC("fairseq", 0x1p15, MULTIPLE, 2000, 0, NO_CEILING, 1e-4, STOP, 1, 0, F64, AFTER_STEP, RECIPROCAL, NORM),
     "fairseq DynamicLossScaler", "fairseq/optim/dynamic_loss_scaler.py, fp16_optimizer.py @ 3d262bb2",
     "backing off to 0.0001 or below ends training; its trainer's window is 2^14 / ranks / "
     "update_freq where none is given"},
    {DYNAMIC("tutorial", 0x1p16, COUNTER, 2000, 0, NO_CEILING, 0, CLAMP, 5, MPSIM_REFILL_CLEAN | MPSIM_REFILL_BACKOFF,
             F64, AFTER_STEP, RECIPROCAL, ELEMENTS),
     "the scaler of many explanations", "no framework",
     "halves after so many overflows in a row (hysteresis), doubles after a window of clean steps"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

size_t mpsim_scaler_count(void)
{
    return ROWS;
}

const mpsim_scaler_type *mpsim_scaler_at(size_t i)
{
    return i < ROWS ? &rows[i] : NULL;
}

const mpsim_scaler_type *mpsim_scaler_find(const char *name)
{
    for (size_t i = 0; name && i < ROWS; i++)
        if (mpsim_same_word(name, strlen(name), rows[i].config.name))
            return &rows[i];
    return NULL;
}

/* ---- configurations ---- */

static int is_factor(double x)
{
    return x > 0 && isfinite(x);
}

static int is_magnitude(double x)
{
    return x >= 0 && isfinite(x) && !signbit(x);
}

/* Whether the scale's arithmetic can hold the numbers. */
static int fits(const mpsim_scaler_config *c)
{
    if (c->arithmetic == MPSIM_SCALE_F64)
        return 1;
    if (!isfinite((float)c->init) || !isfinite((float)c->floor) || !isfinite((float)c->threshold))
        return 0;
    return c->arithmetic != MPSIM_SCALE_F32 ||
           (is_factor((double)(float)c->growth) && is_factor((double)(float)c->backoff));
}

mpsim_status mpsim_scaler_config_check(const mpsim_scaler_config *c)
{
    const unsigned refills = MPSIM_REFILL_CLEAN | MPSIM_REFILL_GROWTH | MPSIM_REFILL_BACKOFF;
    const int ok = c && memchr(c->name, 0, sizeof c->name) && c->dynamic <= 1 && c->skip <= 1 && c->guard <= 1 &&
                   c->growth_rule <= MPSIM_GROWTH_MULTIPLE && (c->refill & ~refills) == 0 &&
                   c->arithmetic <= MPSIM_SCALE_F64 && c->floor_rule <= MPSIM_FLOOR_STOP &&
                   c->order <= MPSIM_UPDATE_BEFORE_UNSCALE && c->unscale <= MPSIM_UNSCALE_ROUNDED &&
                   c->check <= MPSIM_CHECK_NORM && c->hysteresis >= 1 && c->window >= 1 && is_magnitude(c->init) &&
                   is_factor(c->growth) && is_factor(c->backoff) && is_magnitude(c->floor) && c->ceiling > 0 &&
                   is_magnitude(c->tolerance) && is_magnitude(c->threshold) && c->floor <= c->ceiling && fits(c);
    return ok ? MPSIM_OK : MPSIM_EINVAL;
}

/* ---- arithmetic of the scale ---- */

static double kept(const mpsim_scaler_config *c, double x)
{
    return c->arithmetic == MPSIM_SCALE_F64 ? x : (double)(float)x;
}

static double multiplied(const mpsim_scaler_config *c, double scale, double factor)
{
    if (c->arithmetic == MPSIM_SCALE_F32)
        return (double)((float)scale * (float)factor);
    return kept(c, scale * factor);
}

mpsim_status mpsim_scaler_init(mpsim_scaler *s, const mpsim_scaler_config *c)
{
    if (!s || mpsim_scaler_config_check(c) != MPSIM_OK)
        return MPSIM_EINVAL;
    const mpsim_scaler fresh = {
        .config = *c, .scale = kept(c, c->init), .last_overflow = -1, .last_rescale = -1, .hysteresis = c->hysteresis};
    *s = fresh;
    return MPSIM_OK;
}

/* ---- one step ---- */

/* Whether this overflow is tolerated. fairseq divides in binary64 and resets the number of
 * overflows when it backs off, not when it grows. The hysteresis stays at 1 once it is used up. */
static int is_tolerated(mpsim_scaler *s)
{
    const double since = (double)(s->step - (uint64_t)s->last_rescale);
    s->overflows++;
    const int rare = (double)s->overflows / since < s->config.tolerance;
    const int held = s->hysteresis > 1;
    s->hysteresis -= held;
    return rare || held;
}

/* The scale after backing off; sets FLOORED or RAISED. Under RAISED it is the old one. */
static double backed_off(const mpsim_scaler *s, unsigned *events)
{
    const mpsim_scaler_config *c = &s->config;
    const double floor = kept(c, c->floor), threshold = kept(c, c->threshold);
    double next = multiplied(c, s->scale, c->backoff);
    if (floor > 0 && c->floor_rule == MPSIM_FLOOR_RAISE && s->scale == floor) {
        *events |= MPSIM_SCALER_RAISED;
        return s->scale;
    }
    if (next < threshold) {
        next = threshold;
        *events |= MPSIM_SCALER_FLOORED;
    }
    if (c->floor_rule != MPSIM_FLOOR_STOP && next < floor) {
        next = floor;
        *events |= MPSIM_SCALER_FLOORED;
    }
    return next;
}

/* fairseq tests the floor on every overflow, a tolerated one too. */
static int is_stopped(const mpsim_scaler_config *c, double next)
{
    const double floor = kept(c, c->floor);
    return c->floor_rule == MPSIM_FLOOR_STOP && floor > 0 && next <= floor;
}

static unsigned overflowed(mpsim_scaler *s)
{
    const mpsim_scaler_config *c = &s->config;
    unsigned events = MPSIM_SCALER_OVERFLOW | (c->skip ? MPSIM_SCALER_SKIP : 0);
    s->clean = 0;
    s->last_overflow = (int64_t)s->step;
    if (!c->dynamic)
        return events;
    unsigned how = is_tolerated(s) ? MPSIM_SCALER_TOLERATED : MPSIM_SCALER_BACKOFF;
    const double next = how == MPSIM_SCALER_BACKOFF ? backed_off(s, &how) : s->scale;
    if (how & MPSIM_SCALER_RAISED || is_stopped(c, next)) {
        s->stopped = 1;
        return events | MPSIM_SCALER_RAISED;
    }
    if (how & MPSIM_SCALER_BACKOFF) {
        s->last_rescale = (int64_t)s->step;
        s->overflows = 0;
        if (c->refill & MPSIM_REFILL_BACKOFF)
            s->hysteresis = c->hysteresis;
    }
    s->scale = next;
    return events | how;
}

/* Whether the rule lets the scale grow on this clean step, which `clean` counts already. */
static int is_due(const mpsim_scaler *s)
{
    const mpsim_scaler_config *c = &s->config;
    const uint64_t since = s->step - (uint64_t)s->last_overflow;
    if (c->growth_rule == MPSIM_GROWTH_COUNTER)
        return s->clean == c->window;
    if (c->growth_rule == MPSIM_GROWTH_INTERVAL)
        return since > 1 && (since - 1) % c->window == 0;
    return since % c->window == 0;
}

static unsigned cleared(mpsim_scaler *s)
{
    const mpsim_scaler_config *c = &s->config;
    const double ceiling = kept(c, c->ceiling);
    unsigned events = MPSIM_SCALER_GROWTH;
    s->clean++;
    if (!c->dynamic)
        return 0;
    if (c->refill & MPSIM_REFILL_CLEAN)
        s->hysteresis = c->hysteresis;
    if (!is_due(s))
        return 0;
    double next = multiplied(c, s->scale, c->growth);
    if (next > ceiling) {
        next = ceiling;
        events |= MPSIM_SCALER_CEILING;
    }
    if (c->guard && !isfinite((float)next)) {
        if (c->growth_rule == MPSIM_GROWTH_COUNTER)
            s->clean = 0;
        return MPSIM_SCALER_REFUSED;
    }
    s->scale = next;
    s->clean = 0;
    s->last_rescale = (int64_t)s->step;
    if (c->refill & MPSIM_REFILL_GROWTH)
        s->hysteresis = c->hysteresis;
    return events;
}

mpsim_scaler_result mpsim_scaler_update(mpsim_scaler *s, int overflow)
{
    mpsim_scaler_result r = {MPSIM_SCALER_RAISED, s->scale, s->scale, s->scale};
    if (s->stopped)
        return r;
    r.events = overflow ? overflowed(s) : cleared(s);
    r.next = s->scale;
    if (s->config.order == MPSIM_UPDATE_BEFORE_UNSCALE)
        r.unscale = r.next;
    s->step++;
    return r;
}
