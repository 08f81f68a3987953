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
    to->underflow += from->underflow;
    to->saturated += from->saturated;
    to->spoilt += from->spoilt;
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

/* What saturates stands for the largest number times the scale: for 0 only if all values are 0. */
void mpsim_block_see(mpsim_block_stats *s, mpsim_block_seen *seen, const float *x, const float *values, size_t n,
                     uint64_t overflow)
{
    uint64_t underflow = 0, spoilt = 0;
    int number = 0;
    for (size_t i = 0; i < n; i++) {
        const int finite = isfinite(values[i]);
        number |= finite && values[i] != 0;
        if (isfinite(x[i])) {
            spoilt += !finite;
            underflow += x[i] != 0 && values[i] == 0;
        }
        if (x[i] != 0) /* NaN is not, either */
            seen->nonzero = 1;
        if (!isfinite(x[i]))
            seen->nonfinite = 1;
        if (values[i] != 0)
            seen->kept = 1;
    }
    s->underflow += underflow;
    s->spoilt += spoilt;
    if (number && overflow > spoilt) {
        s->saturated += overflow - spoilt;
        seen->saturated = 1;
    }
}

static void count_inverse(mpsim_block_stats *s, float inverse)
{
    const uint32_t bits = mpsim_bits_f32(inverse);
    if (bits >= 0x7f800000u) /* scales are not negative */
        s->scale_nonfinite++;
    else if (bits >= 0x800000)
        s->scales[(int)(bits >> 23) - 127 - MPSIM_SCALE_MIN]++;
    else if (bits)
        s->scales[mpsim_number_f32(inverse).exp - MPSIM_SCALE_MIN]++;
    else
        s->scale_zero++;
}

void mpsim_block_tell(mpsim_block_stats *s, const mpsim_scale_rule_row *rule, const mpsim_block_seen *seen,
                      const uint8_t *code, const float *inverse, size_t n)
{
    const int has_codes = rule->scale_bytes == 1;
    uint64_t zero = 0, saturated = 0, nonfinite = 0, lost = 0, least = 0, largest = 0;
    for (size_t k = 0; k < n; k++) {
        const mpsim_block_seen b = seen[k];
        saturated += b.saturated;
        nonfinite += b.nonfinite;
        zero += !b.nonzero;
        if (!b.nonzero)
            continue;
        lost += !b.nonfinite & !b.kept;
        least += code[k] <= rule->least_code;
        largest += code[k] == rule->largest_code;
        count_inverse(s, inverse[k]);
    }
    s->blocks += n;
    s->zero_blocks += zero;
    s->saturated_blocks += saturated;
    s->nonfinite_blocks += nonfinite;
    s->lost_blocks += lost;
    s->least_scales += has_codes ? least : 0;
    s->largest_scales += has_codes ? largest : 0;
}
