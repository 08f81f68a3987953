/* moments.h -- moments in few bits: stored as a policy's states say, and what that does to them. */
#pragma once

#include <mpsim/mpsim.h>

/* Numbers against the binary32 numbers that they are stored for; compared are those that are finite before and after. */
typedef struct replay_error {
    double signal, noise;    /* sums of squares, of the numbers and of the differences */
    uint64_t count, nonzero; /* all of them; before they were stored                   */
    uint64_t not_finite;     /* NaN or infinite before or now: not compared            */
    uint64_t lost;           /* not zero before, zero now                              */
    double db;               /* SQNR; infinite where nothing differs, NaN where nothing was compared */
    size_t is;               /* there are numbers */
} replay_error;

/* Of a parameter in a step, or of many. */
typedef struct replay_moments {
    size_t arrays; /* that are quantised; 0: the rest is 0 */
    replay_error m, v, kept;
    replay_error step;    /* m / (sqrt(v) + eps), corrected: with the stored moments */
    replay_error bounded; /* the same without those whose v became zero: the next gradient's square comes first */
    double largest, largest_stored; /* magnitude of that before and after; NaN where none was compared */
    replay_error muon;              /* the orthogonalised update of Muon against that of binary64 */
    uint64_t unbounded;             /* v is zero now and was not, m is not zero: m / eps */
} replay_moments;

/* The arrays of a parameter that are quantised; NULL: not, or there is none. */
typedef struct replay_arrays {
    float *m, *v, *kept;
} replay_arrays;

/* replay_moments_arrays -- those of them that states (NULL: none) quantise, of a parameter of `count` elements.
 * replay_moments_store -- n elements become what is stored. */
replay_arrays replay_moments_arrays(const mpsim_states *s, uint64_t count, float *m, float *v, float *kept);
void replay_moments_store(const mpsim_states *s, const replay_arrays *a, size_t n);

/* replay_moments_measure -- what that did after step t of o. */
void replay_moments_measure(const mpsim_optim *o, uint64_t t, const replay_arrays *before, const replay_arrays *after,
                            size_t n, replay_moments *out);

/* replay_error_measure -- n numbers b that stand for a. */
void replay_error_measure(const double *a, const float *b, size_t n, replay_error *e);

void replay_moments_add(replay_moments *to, const replay_moments *from);
/* replay_moments_error -- by which parameters are compared: of Muon's update, of steps, or of first moments. */
const replay_error *replay_moments_error(const replay_moments *m);
