/* torchfields.c -- named tuples in pickles, whose fields have no names there: the states of optax 0.2.8 (transforms'
 * _adding.py, _momentum.py, _accumulation.py, transform.py), which a tree of Flax or JAX holds as they are. */
#include "torch.h"

#include <string.h>

enum { FIELDS = 6 };

static const struct {
    const char *class, *fields[FIELDS];
} rows[] = {
    {"ScaleByAdamState", {"count", "mu", "nu"}},
    {"ScaleByAmsgradState", {"count", "mu", "nu", "nu_max"}},
    {"ScaleByBeliefState", {"count", "mu", "nu"}},
    {"ScaleByLionState", {"count", "mu"}},
    {"ScaleByRmsState", {"nu"}},
    {"ScaleByRStdDevState", {"mu", "nu"}},
    {"TraceState", {"trace"}},
};

const char *const *trace_torch_fields(const char *made)
{
    const char *last = strrchr(made, '.');
    for (size_t i = 0; last && strncmp(made, "optax.", 6) == 0 && i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(last + 1, rows[i].class) == 0)
            return rows[i].fields;
    return NULL;
}
