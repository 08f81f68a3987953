/* frameworks.h -- the loss scalers of the frameworks, each written out on its own.
 *
 * Judges of lib/scaler/scaler.c: they share no code with it, and their numbers are typed from the
 * frameworks' sources. */
#pragma once

#include <mpsim/scaler.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OV = MPSIM_SCALER_OVERFLOW,
    SKIP = MPSIM_SCALER_SKIP,
    BACK = MPSIM_SCALER_BACKOFF,
    GROW = MPSIM_SCALER_GROWTH,
    TOLD = MPSIM_SCALER_TOLERATED,
    LOW = MPSIM_SCALER_FLOORED,
    HIGH = MPSIM_SCALER_CEILING,
    REF = MPSIM_SCALER_REFUSED,
    RAISED = MPSIM_SCALER_RAISED
};

/* What a framework's constructor takes. */
typedef struct knobs {
    double init, grow, back, floor, ceiling, tolerance, threshold;
    int64_t window, hysteresis;
    int consecutive, raise;
} knobs;

/* A scaler at work: the frameworks' variables under their names; each uses its own. */
typedef struct machine {
    float scale;        /* a binary32 tensor                        */
    double cur;         /* a Python float                           */
    int64_t tracker;    /* clean steps, where the framework counts  */
    int64_t h;          /* hysteresis                               */
    int64_t iter, last; /* index of the step, of the last overflow  */
    int64_t rescale, over;
} machine;

/* One step. Returns the events; the scale lies in `scale` (binary32) or `cur`. */
typedef unsigned algorithm(machine *m, const knobs *k, int inf);

enum { TRACKER = 1, HYST = 2, PYTHON = 4, EARLY = 8, OVERS = 16, CALLER = 32 };

#define NO_CEILING ((double)INFINITY)

/* Defaults; a wildcard (-1) is what the framework does not say. */
typedef struct framework {
    const char *name;
    algorithm *step;
    unsigned has; /* TRACKER: counts clean steps; HYST; PYTHON: the scale is a Python float; EARLY:
                      unscales with the new scale; OVERS: fairseq's counters; CALLER: no defaults */
    double init, grow, back, floor, ceiling;
    int64_t window, first, hysteresis; /* first: first growth of a clean run                     */
    int dynamic, skip, rule, refill, arithmetic, guard, floor_rule, order, unscale, check;
} framework;

extern const framework frameworks[];

enum { FRAMEWORKS = 16 };

/* Whether its factors can be chosen freely; else they are 2 and 1/2. */
int framework_takes_factors(const framework *f);
