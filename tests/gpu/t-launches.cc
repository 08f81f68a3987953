/* t-launches.cc -- what a step of the runs in gpu/runs costs a device beside its arithmetic: launches of
 * kernels, and how often the host waits for a copy. The first step, which updates. Steps as CUDA graphs have the digests of others. */
#include "steps.h"

#include "../../gpu/train.h"

#include <train/digests.h>

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

/* A run of gpu/runs, of shorter texts. */
static int read_run(const char *name, train_run *r, char *error)
{
    char path[1024];
    const char *top = getenv("MPSIM_SRCDIR");
    memset(r, 0, sizeof *r);
    snprintf(path, sizeof path, "%s/gpu/runs/%s.run", top ? top : ".", name);
    FILE *f = fopen(path, "r");
    const int good = f && train_run_read(r, f, error) == 0;
    if (f)
        fclose(f);
    else
        snprintf(error, TRAIN_ERROR, "no such file");
    if (good && r->plans[0].scaler.dynamic)
        r->plans[0].scaler.init = 1024;         /* a step that is skipped updates nothing */
    if (good && strncmp(name, "gpt", 3) == 0) { /* no launch less, as many tiles */
        r->settings.batch = 1;
        r->settings.decoder.context /= 4;
        r->settings.decoder.tile /= 4;
    }
    return good;
}

/* Of the first step; 0 if it could not be done. */
static int step_of(const char *name, cost *found)
{
    char error[TRAIN_ERROR] = "";
    train_run r;
    train_step s;
    int good = read_run(name, &r, error);
    train *t = good ? train_open(&r, &cuda, 0, error) : NULL;
    const uint64_t launches = gpu_host.launches, waits = gpu_host.waits;
    good = t && train_next(t, &s, error) == 0 && !s.skipped;
    found->launches = unsigned(gpu_host.launches - launches);
    found->waits = unsigned(gpu_host.waits - waits);
    if (!good)
        printf("# %s: %s\n", name, error[0] ? error : "the step is skipped");
    if (t)
        train_close(t);
    train_run_clear(&r);
    return good;
}

/* ---- the same steps as CUDA graphs ---- */

enum { GRAPH_STEPS = 3 };

/* What a step costs as graphs: kernels, copies and fills; launches. */
struct replayed {
    const char *run;
    unsigned nodes, launches;
};

static const replayed replays[] = {
    {"mlp-fp16", 22, 2},       {"mlp-masters", 23, 2}, {"mlp-fp8", 35, 3},
    {"mlp-stochastic", 22, 2}, {"gpt-fp32", 79, 4},    {"gpt-fp8", 118, 4},
};

/* Digests of the first steps on the device; in `last` what the last of them cost. 0 after an error. */
static int steps_of(const char *name, int graphs, uint64_t digests[GRAPH_STEPS], train_replays *last)
{
    char error[TRAIN_ERROR] = "";
    train_run r;
    train_step s;
    train_step_digests d;
    train_replays before = {0, 0, 0, 0};
    memset(&d, 0, sizeof d);
    int good = read_run(name, &r, error) && train_engine_cuda_graphs(&cuda, graphs) == 0;
    train *t = good ? train_open(&r, &cuda, 0, error) : NULL;
    for (int i = 0; (good = good && t) && i < GRAPH_STEPS; i++) {
        train_engine_cuda_replays(&cuda, &before);
        good = train_next(t, &s, error) == 0;
        train_engine_cuda_replays(&cuda, last);
        good = good && train_digests_take(&d, t, &s, error) == 0;
        digests[i] = d.all;
    }
    last->launches -= before.launches;
    last->changed -= before.changed;
    last->made -= before.made;
    last->nodes -= before.nodes;
    if (!good)
        printf("# %s: %s\n", name, error);
    if (t)
        train_close(t);
    train_digests_free(&d);
    train_run_clear(&r);
    return good && train_engine_cuda_graphs(&cuda, 0) == 0;
}

static void test_graphs(const replayed &c)
{
    uint64_t eager[GRAPH_STEPS] = {0}, graphs[GRAPH_STEPS] = {1};
    train_replays none, last = {0, 0, 0, 0};
    const int good = steps_of(c.run, 0, eager, &none) && steps_of(c.run, 1, graphs, &last);
    OK(good && memcmp(eager, graphs, sizeof eager) == 0, "%s as graphs: digests of eager steps", c.run);
    OK(last.made == 0 && last.nodes == c.nodes && last.launches == c.launches && last.changed < last.nodes,
       "step %d: %llu nodes (%u in the table), %llu launches (%u), %llu nodes changed, %llu graphs made", GRAPH_STEPS,
       last.nodes, c.nodes, last.launches, c.launches, last.changed, last.made);
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
    for (const replayed &c : replays)
        if (test_in_part(index++, 3))
            test_graphs(c);
    train_engine_close(&cpu);
    train_engine_close(&cuda);
    return tap_end();
}
