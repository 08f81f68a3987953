/* t-launches.cc -- what a step of the runs in gpu/runs costs a device beside its arithmetic: launches of
 * kernels, and how often the host waits for a copy. The first step, which updates. */
#include "steps.h"

struct cost {
    const char *run;
    unsigned launches, waits;
};

static const cost costs[] = {
    {"gpt-fp32", 74, 3},   {"gpt-tf32", 100, 3}, {"gpt-fp16", 100, 3},   {"gpt-fp8", 113, 3},
    {"gpt-bf16", 109, 3},  /* attention in four tiles */
    {"gpt-mxfp8", 203, 3}, /* two ranks: a pass for each */
    {"mlp-fp32", 24, 2},   {"mlp-tf32", 22, 2},  {"mlp-fp16", 19, 2},    {"mlp-bf16", 22, 3},
    {"mlp-fp8", 31, 3},    {"mlp-mxfp8", 29, 3}, {"mlp-masters", 20, 2}, {"mlp-stochastic", 19, 2},
};

/* Of the first step; 0 if it could not be done. */
static int step_of(const char *name, cost *found)
{
    char path[1024], error[TRAIN_ERROR] = "";
    const char *top = getenv("MPSIM_SRCDIR");
    train_run r;
    train_step s;
    memset(&r, 0, sizeof r);
    snprintf(path, sizeof path, "%s/gpu/runs/%s.run", top ? top : ".", name);
    FILE *f = fopen(path, "r");
    int good = f && train_run_read(&r, f, error) == 0;
    if (f)
        fclose(f);
    if (good && r.plans[0].scaler.dynamic)
        r.plans[0].scaler.init = 1024;          /* a step that is skipped updates nothing */
    if (good && strncmp(name, "gpt", 3) == 0) { /* shorter texts: no launch less, as many tiles */
        r.settings.batch = 1;
        r.settings.decoder.context /= 4;
        r.settings.decoder.tile /= 4;
    }
    train *t = good ? train_open(&r, &cuda, 0, error) : NULL;
    const uint64_t launches = gpu_host.launches, waits = gpu_host.waits;
    good = t && train_next(t, &s, error) == 0 && !s.skipped;
    found->launches = unsigned(gpu_host.launches - launches);
    found->waits = unsigned(gpu_host.waits - waits);
    if (!good)
        printf("# %s: %s\n", path, error[0] ? error : f ? "the step is skipped" : "no such file");
    if (t)
        train_close(t);
    train_run_clear(&r);
    return good;
}

int main()
{
    if (open_engines())
        return 1;
    unsigned index = 0;
    for (const cost &c : costs) {
        if (!test_in_part(index++, 2))
            continue;
        cost found = c;
        const int good = step_of(c.run, &found);
        OK(good && found.launches == c.launches && found.waits == c.waits,
           "%s: %u launches (%u in the table), %u waits of the host (%u)", c.run, found.launches, c.launches,
           found.waits, c.waits);
    }
    train_engine_close(&cpu);
    train_engine_close(&cuda);
    return tap_end();
}
