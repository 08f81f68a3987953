/* frameworks.c -- see frameworks.h. One function is one framework's update of its scale, in its own
 * variables and order; they are not meant to share anything. */
#include "frameworks.h"

/* PyTorch, CPU, and CUDA since 2.1: growth to infinity is refused; the tracker is 0 then, too. */
static unsigned torch_kernel(machine *m, const knobs *k, int inf)
{
    if (inf) {
        m->scale = (float)((double)m->scale * k->back);
        m->tracker = 0;
        return OV | SKIP | BACK;
    }
    const int64_t s = m->tracker + 1;
    if (s != k->window) {
        m->tracker = s;
        return 0;
    }
    m->tracker = 0;
    const float n = (float)((double)m->scale * k->grow);
    if (!isfinite(n))
        return REF;
    m->scale = n;
    return GROW;
}

/* Apex's class: Python floats; a cap on growth only; 0 is no floor. */
static unsigned apex(machine *m, const knobs *k, int inf)
{
    unsigned e = 0;
    if (inf) {
        m->cur = m->cur * k->back;
        e = OV | SKIP | BACK;
        if (k->floor != 0 && m->cur < k->floor) {
            m->cur = k->floor;
            e |= LOW;
        }
        m->tracker = 0;
    } else
        m->tracker += 1;
    if (m->tracker == k->window) {
        e |= GROW;
        m->cur = m->cur * k->grow;
        if (m->cur > k->ceiling) {
            m->cur = k->ceiling;
            e |= HIGH;
        }
        m->tracker = 0;
    }
    return e;
}

static unsigned apex_kernel(machine *m, const knobs *k, int inf)
{
    unsigned e = 0;
    if (inf) {
        m->h -= 1;
        m->tracker = 0;
        if (m->h > 0)
            return OV | SKIP | TOLD;
        m->scale = (float)((double)m->scale * k->back);
        return OV | SKIP | BACK;
    }
    if (m->tracker + 1 == k->window) {
        const float n = (float)((double)m->scale * k->grow);
        e = REF;
        if (isfinite(n)) {
            m->scale = n;
            e = GROW;
        }
        m->tracker = 0;
    } else
        m->tracker += 1;
    m->h = k->hysteresis;
    return e;
}

/* Megatron-Core: everything is a binary32 tensor, factors and floor included. */
static unsigned megatron(machine *m, const knobs *k, int inf)
{
    if (inf) {
        m->tracker = 0;
        m->h -= 1;
        if (m->h > 0)
            return OV | SKIP | TOLD;
        const float low = (float)k->floor, n = m->scale * (float)k->back;
        m->scale = n < low ? low : n;
        return OV | SKIP | BACK | (n < low ? LOW : 0u);
    }
    m->tracker += 1;
    if (m->tracker != k->window)
        return 0;
    m->tracker = 0;
    m->h = k->hysteresis;
    m->scale = m->scale * (float)k->grow;
    return GROW;
}

/* DeepSpeed's DynamicLossScaler: the last overflow is at -1 before the first. */
static unsigned deepspeed_zero(machine *m, const knobs *k, int inf)
{
    unsigned e = 0;
    if (inf) {
        e = OV | SKIP;
        if (k->hysteresis == 1 || m->h == 1) {
            if (m->cur == k->floor && k->raise)
                return OV | RAISED;
            const double half = m->cur / 2;
            e |= BACK | (half < k->floor ? LOW : 0u);
            m->cur = half < k->floor ? k->floor : half;
        } else {
            m->h -= 1;
            e |= TOLD;
        }
        m->last = m->iter;
    } else {
        if (k->consecutive)
            m->h = k->hysteresis;
        const int64_t stable = (m->iter - m->last) - 1;
        if (stable > 0 && stable % k->window == 0) {
            if (!k->consecutive)
                m->h = k->hysteresis;
            m->cur *= 2;
            e = GROW;
        }
    }
    m->iter += 1;
    return e;
}

/* DeepSpeed's FP16_Optimizer and FP16_UnfusedOptimizer. */
static unsigned deepspeed_plain(machine *m, const knobs *k, int inf)
{
    unsigned e = 0;
    if (inf) {
        const double half = m->cur / 2;
        e = OV | SKIP | BACK | (half < k->floor ? LOW : 0u);
        m->cur = half < k->floor ? k->floor : half;
        m->last = m->iter;
    } else {
        const int64_t stable = (m->iter - m->last) - 1;
        if (stable > 0 && stable % k->window == 0) {
            m->cur *= 2;
            e = GROW;
        }
    }
    m->iter += 1;
    return e;
}

static unsigned keras(machine *m, const knobs *k, int inf)
{
    if (inf) {
        m->tracker = 0;
        m->scale = m->scale * 0.5f;
        return OV | SKIP | BACK;
    }
    if (m->tracker == k->window - 1) {
        m->tracker = 0;
        m->scale = m->scale * 2.0f;
        return GROW;
    }
    m->tracker += 1;
    return 0;
}

static unsigned tf_keras(machine *m, const knobs *k, int inf)
{
    if (inf) {
        const float half = m->scale / 2.0f, low = (float)k->floor;
        m->tracker = 0;
        m->scale = fmaxf(half, low);
        return OV | SKIP | BACK | (half < low ? LOW : 0u);
    }
    if (m->tracker + 1 < k->window) {
        m->tracker += 1;
        return 0;
    }
    m->tracker = 0;
    if (isinf(m->scale * 2.0f))
        return REF;
    m->scale = m->scale * 2.0f;
    return GROW;
}

static unsigned fairseq(machine *m, const knobs *k, int inf)
{
    unsigned e = 0;
    if (inf) {
        const double prev = m->cur;
        const int64_t since = m->iter - m->rescale;
        m->last = m->iter;
        m->over += 1;
        e = OV | SKIP | TOLD;
        if ((double)m->over / (double)since >= k->tolerance) {
            m->cur /= 2;
            e = OV | SKIP | BACK;
            if (k->threshold != 0 && m->cur < k->threshold) {
                m->cur = k->threshold;
                e |= LOW;
            }
            m->rescale = m->iter;
            m->over = 0;
        }
        if (m->cur <= k->floor) {
            m->cur = prev;
            return OV | RAISED;
        }
    } else if ((m->iter - m->last) % k->window == 0) {
        m->cur *= 2;
        m->rescale = m->iter;
        e = GROW;
    }
    m->iter += 1;
    return e;
}

/* Constant scales: Apex, and training without a scaler, take the step; Megatron-Core skips it. */
static unsigned constant_taken(machine *m, const knobs *k, int inf)
{
    (void)m;
    (void)k;
    return inf ? OV : 0;
}

static unsigned constant_skipped(machine *m, const knobs *k, int inf)
{
    (void)m;
    (void)k;
    return inf ? OV | SKIP : 0;
}

/* "tutorial" is nobody's code, but what many explanations describe: halve after so many overflows
 * in a row, double after so many clean steps in a row, each counted from 0 once acted on. */
static unsigned tutorial(machine *m, const knobs *k, int inf)
{
    if (inf) {
        m->tracker = 0;
        m->over += 1;
        m->h = k->hysteresis - m->over;
        if (m->h > 0)
            return OV | SKIP | TOLD;
        m->over = 0;
        m->h = k->hysteresis;
        m->cur /= 2;
        return OV | SKIP | BACK;
    }
    m->over = 0;
    m->h = k->hysteresis;
    m->tracker += 1;
    if (m->tracker < k->window)
        return 0;
    m->tracker = 0;
    m->cur *= 2;
    return GROW;
}

/* ---- the table ---- */

enum { F32_F64 = MPSIM_SCALE_F32_F64, F32 = MPSIM_SCALE_F32, F64 = MPSIM_SCALE_F64 };

/* clang-format off */
const framework frameworks[FRAMEWORKS] = {
    {"torch", torch_kernel, TRACKER, 65536, 2, 0.5, 0, NO_CEILING, 2000, 2000, 1,
     1, 1, MPSIM_GROWTH_COUNTER, -1, F32_F64, 1, -1, MPSIM_UPDATE_AFTER_STEP, 0, 0},
    {"torch-cpu", torch_kernel, TRACKER, 65536, 2, 0.5, 0, NO_CEILING, 2000, 2000, 1,
     1, 1, MPSIM_GROWTH_COUNTER, -1, F32_F64, 1, -1, MPSIM_UPDATE_AFTER_STEP, 0, 0},
    {"apex", apex, TRACKER | PYTHON, 65536, 2, 0.5, 0, 16777216, 2000, 2000, 1,
     1, 1, MPSIM_GROWTH_COUNTER, -1, F64, 0, -1, MPSIM_UPDATE_BEFORE_STEP, 0, 0},
    {"apex-hysteresis", apex_kernel, TRACKER | HYST | CALLER, 0, 0, 0, 0, NO_CEILING, 0, 0, 0,
     1, 1, MPSIM_GROWTH_COUNTER, MPSIM_REFILL_CLEAN, F32_F64, 1, -1, -1, 0, 0},
    {"megatron", megatron, TRACKER | HYST, 4294967296.0, 2, 0.5, 1, NO_CEILING, 1000, 1000, 2,
     1, 1, MPSIM_GROWTH_COUNTER, MPSIM_REFILL_GROWTH, F32, 0, MPSIM_FLOOR_CLAMP,
     MPSIM_UPDATE_BEFORE_STEP, 0, 0},
    {"deepspeed", deepspeed_zero, HYST | PYTHON | EARLY, 65536, 2, 0.5, 1, NO_CEILING, 1000, 1001,
     2, 1, 1, MPSIM_GROWTH_INTERVAL, MPSIM_REFILL_GROWTH, F64, 0, MPSIM_FLOOR_RAISE,
     MPSIM_UPDATE_BEFORE_UNSCALE, 0, 0},
    {"deepspeed-fused", deepspeed_plain, PYTHON | EARLY, 4294967296.0, 2, 0.5, 1, NO_CEILING, 1000,
     1001, 1, 1, 1, MPSIM_GROWTH_INTERVAL, -1, F64, 0, MPSIM_FLOOR_CLAMP,
     MPSIM_UPDATE_BEFORE_UNSCALE, 0, 0},
    {"deepspeed-unfused", deepspeed_plain, PYTHON | EARLY, 65536, 2, 0.5, 0.25, NO_CEILING, 1000,
     1001, 1, 1, 1, MPSIM_GROWTH_INTERVAL, -1, F64, 0, MPSIM_FLOOR_CLAMP,
     MPSIM_UPDATE_BEFORE_UNSCALE, 0, 0},
    {"keras", keras, TRACKER, 32768, 2, 0.5, 0, NO_CEILING, 2000, 2000, 1,
     1, 1, MPSIM_GROWTH_COUNTER, -1, F32, 0, -1, MPSIM_UPDATE_AFTER_STEP, MPSIM_UNSCALE_DIVIDE, 0},
    {"tf-keras", tf_keras, TRACKER, 32768, 2, 0.5, 1, NO_CEILING, 2000, 2000, 1,
     1, 1, MPSIM_GROWTH_COUNTER, -1, F32, 1, MPSIM_FLOOR_CLAMP, -1, -1, 0},
    {"fairseq", fairseq, PYTHON | OVERS, 32768, 2, 0.5, 1e-4, NO_CEILING, 2000, 2000, 1,
     1, 1, MPSIM_GROWTH_MULTIPLE, -1, F64, 0, MPSIM_FLOOR_STOP, MPSIM_UPDATE_AFTER_STEP, 0,
     MPSIM_CHECK_NORM},
    {"tutorial", tutorial, TRACKER | HYST | PYTHON | CALLER, 0, 0, 0, 0, NO_CEILING, 0, 0, 0,
     1, 1, MPSIM_GROWTH_COUNTER, MPSIM_REFILL_CLEAN | MPSIM_REFILL_BACKOFF, F64, -1, -1, -1, -1,
     0},
    {"static", constant_taken, PYTHON | CALLER, 0, 0, 0, 0, NO_CEILING, 0, 0, 0,
     0, 0, -1, -1, -1, -1, -1, -1, -1, 0},
    {"megatron-static", constant_skipped, PYTHON | CALLER, 0, 0, 0, 0, NO_CEILING, 0, 0, 0,
     0, 1, -1, -1, -1, -1, -1, -1, 0, 0},
    {"deepspeed-static", constant_skipped, PYTHON | CALLER, 0, 0, 0, 0, NO_CEILING, 0, 0, 0,
     0, 1, -1, -1, F64, -1, -1, MPSIM_UPDATE_BEFORE_UNSCALE, -1, 0},
    {"none", constant_taken, PYTHON, 1, -1, -1, -1, -1, -1, 0, -1,
     0, 0, -1, -1, -1, -1, -1, -1, -1, -1},
};
/* clang-format on */

int framework_takes_factors(const framework *f)
{
    return f->step == torch_kernel || f->step == apex_kernel || f->step == megatron;
}
