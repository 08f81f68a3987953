/* state.c -- see state.h: what the files of a replay have in common. */
#include "state.h"

#include "../cli/stream.h"

int replay_no_memory(void)
{
    return fail(EXIT_IO, "replay: out of memory");
}

mpsim_rng replay_rng(const replay *r, const char *name)
{
    return (mpsim_rng){.seed = r->options->seed, .stream = name_stream(r->step, NULL, name)};
}

void replay_round(const mpsim_format *f, double factor, float *y, const double *x, size_t n)
{
    mpsim_rounding nearest;
    double block[512];
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    nearest.scale = factor;
    for (size_t i = 0; i < n; i += 512) {
        const size_t m = n - i < 512 ? n - i : 512;
        mpsim_round_array_f64(f, &nearest, NULL, block, x + i, m, NULL);
        for (size_t j = 0; j < m; j++)
            y[i + j] = (float)block[j];
    }
}
