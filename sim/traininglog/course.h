/* course.h -- the facts of one series: its levels, how they change, its jumps. A level is a median of neighbours, so that one line
 * makes none; a difference is measured in units of the noise.
 *
 * The best level may be early and short. Numbers above 0 are compared by their logarithms. The noise is that around
 * the level: of neighbours, and of what varies more slowly. */
#pragma once

#include "series.h"

/* LEVEL: lines that agree make a level; of FEWER than SHORT two do. NOISY: so many times the noise is no noise, of a
 * level; JUMPY: of a single line. */
enum { LEVEL = 3, SHORT = 6, NOISY = 6, JUMPY = 10 };

typedef struct course {
    size_t n;
    double noise;             /* of a line beside its neighbours: of the logarithm, where all are above 0 */
    double least;             /* the smallest number */
    sample first, last, most; /* most: the largest */
    sample best, end;         /* the lowest level, however early; that at the end */
    size_t best_at;           /* where the best level ends */
    sample low, high;         /* the lowest number that was held, or the first; and the end: of few lines single ones */
    size_t returns;           /* times that the series came down from as high to as low */
    double rise;              /* from best to end, in units of the noise; 0: it does not rise */
    size_t stays;             /* lines at the end of which four of five are above the middle of the two */
    int learned;              /* the series fell to its best level before it rose */
    int falls;                /* it falls at the end */
    int steep;                /* one step makes half of the way from the best level up to the most */
    int flat;                 /* all lines have the same number */
    size_t zeros;             /* lines with 0 at the end, in a row */
    size_t jumps;             /* single lines far above those before them */
    sample jump, highest;     /* the first and the largest of them */
    sample usual;             /* the level before the first */
    int open;                 /* the last line is one, or the level has not come back */
} course;

/* traininglog_course_find -- `jump`: the factor from which a line is a jump. */
void traininglog_course_find(course *c, const series *s, double jump);

/* traininglog_course_rises -- whether the end is above the best level by a factor, beyond the noise, for more than a jump. */
int traininglog_course_rises(const course *c, double factor);
/* traininglog_course_may_rise -- whether it may: it ends above a number that was reached, and has not come back from such a height, or once
 * where it is above by a factor; by more than `little`, within the noise by more than `much`. */
int traininglog_course_may_rise(const course *c, double little, double factor, double much);
