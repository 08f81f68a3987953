/* schedule.c -- the learning rate of a step; see train.h. */
#include "trainer.h"

/* From 1 to min_lr while p goes from 0 to 1. */
static double decayed(const train_decoder *d, double p)
{
    switch ((train_decay)d->decay) {
    case TRAIN_LINEAR_DECAY:
        return 1 - (1 - d->min_lr) * p;
    case TRAIN_COSINE:
        return d->min_lr + (1 - d->min_lr) * 0.5 * (1 + (double)mpsim_cos((float)(p * 0x1.921fb54442d18p+1)));
    default:
        return 1;
    }
}

/* Steps after the last take what the last took. */
double train_schedule(const train_settings *s, uint64_t step)
{
    const train_decoder *d = &s->decoder;
    const uint64_t at = step < s->steps ? step : s->steps - 1;
    double factor;
    if (!train_is_text(s))
        return 1;
    if (at < d->warmup)
        factor = (double)(at + 1) / (double)d->warmup;
    else
        factor = decayed(d, (double)(at - d->warmup) / (double)(s->steps - d->warmup));
    if (d->cooldown > 0 && s->steps - at <= d->cooldown)
        factor = factor * ((double)(s->steps - at) / ((double)d->cooldown + 1));
    return factor;
}
