/* fit.h -- whether one array is another one rounded to a format, scaled before. */
#pragma once

#include <mpsim/mpsim.h>

/* The question: y = round(x scale) in a format, or, `back`, that divided by the scale again. */
typedef struct fit_question {
    mpsim_format format;
    double scale;
    int back;
    double slack; /* back: how far a quotient may be from exact, relative: the roundoff of y's format */
} fit_question;

/* What was found; counts, which add up. Elements that are a number of the format already are exact. */
typedef struct fit {
    uint64_t exact, missed;                    /* missed: y is not one of the two neighbours                    */
    uint64_t inexact;                          /* y is one of them, and it is                                */
    uint64_t nearest, away, to_zero, up, down; /* that of a mode; away: ties away from zero         */
    uint64_t kept;                             /* inexact, and not zero                                      */
    double farthest;                   /* of the inexact: the largest error, between neighbours that are 1 apart */
    uint64_t infinite, nan, saturated; /* what became of those beyond the largest number   */
    uint64_t flushed;                  /* zero instead of a number below the smallest normal one     */
} fit;

/* diff_fit_may_hold -- whether y can be the answer to some x at all: cheap. */
int diff_fit_may_hold(const fit_question *q, double y);

/* diff_fit_add -- elements of both; of at most FIT_MOST. */
enum { FIT_MOST = 1024 };
void diff_fit_add(fit *f, const fit_question *q, const double *x, const double *y, size_t n);
void diff_fit_merge(fit *to, const fit *from);

/* diff_fit_mode -- the mode that all inexact elements show: "nearest-even", "nearest-away", "toward-zero", "up", "down",
 * else
 * "stochastic" (each is one of two neighbours); NULL if the fit misses, or nothing was rounded. */
const char *diff_fit_mode(const fit *f);

/* diff_fit_overflow -- what overflow became: "inf", "nan", "saturated", "several", NULL if there was none. */
const char *diff_fit_overflow(const fit *f);
