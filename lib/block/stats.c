/* stats.c -- what becomes of blocks; see mpsim/blockstats.h. */
#include "stats.h"

#include "../round/scalar.h"

#include <math.h>
#include <string.h>

void mpsim_block_stats_init(mpsim_block_stats *s)
{
    memset(s, 0, sizeof *s);
}

void mpsim_block_stats_merge(mpsim_block_stats *to, const mpsim_block_stats *from)
{
    mpsim_cast_stats_merge(&to->casts, &from->casts);
    to->blocks += from->blocks;
    to->zero_blocks += from->zero_blocks;
    to->saturated_blocks += from->saturated_blocks;
    to->lost_blocks += from->lost_blocks;
    to->nonfinite_blocks += from->nonfinite_blocks;
    to->least_scales += from->least_scales;
    to->largest_scales += from->largest_scales;
    to->scale_zero += from->scale_zero;
    to->scale_nonfinite += from->scale_nonfinite;
    for (size_t i = 0; i < MPSIM_SCALE_BINS; i++)
        to->scales[i] += from->scales[i];
}

void mpsim_block_see(mpsim_block_seen *seen, const float *x, const float *values, size_t n,
                     int saturates)
{
    if (saturates)
        seen->saturated = 1;
    for (size_t i = 0; i < n; i++) {
        if (x[i] != 0) /* NaN is not, either */
            seen->nonzero = 1;
        if (!isfinite(x[i]))
            seen->nonfinite = 1;
        if (values[i] != 0)
            seen->kept = 1;
    }
}

static void count_scale(mpsim_block_stats *s, const mpsim_scale_rule_row *rule, uint8_t code,
                        float inverse)
{
    const uint32_t bits = mpsim_bits_f32(inverse);
    if (rule->scale_bytes == 1) {
        s->least_scales += code <= rule->least_code;
        s->largest_scales += code == rule->largest_code;
    }
    if (bits >= 0x7f800000u) /* scales are not negative */
        s->scale_nonfinite++;
    else if (bits == 0)
        s->scale_zero++;
    else
        s->scales[mpsim_number_f32(inverse).exp - MPSIM_SCALE_MIN]++;
}

void mpsim_block_tell(mpsim_block_stats *s, const mpsim_scale_rule_row *rule,
                      const mpsim_block_seen *seen, uint8_t code, float inverse)
{
    s->blocks++;
    s->saturated_blocks += seen->saturated;
    s->nonfinite_blocks += seen->nonfinite;
    s->zero_blocks += !seen->nonzero;
    if (!seen->nonzero)
        return;
    s->lost_blocks += !seen->nonfinite && !seen->kept;
    count_scale(s, rule, code, inverse);
}
