/* verdict.h -- what a difference between two tensors is taken for, and why. */
#pragma once

#include "measure.h"
#include "walk.h"

/* In the order of reports; `verdicts` has their words. */
typedef enum verdict {
    VERDICT_EQUAL,
    VERDICT_TOLERATED, /* within --tolerance                            */
    VERDICT_DTYPE,     /* the same numbers in another format            */
    VERDICT_RESHAPED,  /* the same elements under another shape         */
    VERDICT_CODES,     /* signs of zero, payloads of NaN                */
    VERDICT_STEP_SKIPPED,
    VERDICT_STEP_SHIFTED, /* B has what A has at another step              */
    VERDICT_SCALAR,       /* one number each                               */
    VERDICT_CONSTANT,     /* all elements of a side are one number         */
    VERDICT_FLIPPED_BIT,
    VERDICT_BYTE_ORDER,
    VERDICT_REINTERPRETED, /* the same codes as another format              */
    VERDICT_NEGATED,
    VERDICT_SIGNS, /* the same magnitudes, some signs differ        */
    VERDICT_SCALED,
    VERDICT_OFFSET,
    VERDICT_AFFINE,    /* a scale and an offset                         */
    VERDICT_QUANTISED, /* by the recipe that a file names                */
    VERDICT_ROUNDED,
    VERDICT_COMPUTED, /* numbers of a narrower format, but no rounding of the other side */
    VERDICT_ZEROED,
    VERDICT_DROPOUT,
    VERDICT_CLIPPED,
    VERDICT_TRANSPOSED,
    VERDICT_REVERSED,
    VERDICT_SHIFTED,
    VERDICT_PERMUTED,
    VERDICT_RESIZED,
    VERDICT_NON_FINITE,
    VERDICT_SUM_ORDER,
    VERDICT_PARTIAL,   /* some elements or rows have moved, the rest is equal */
    VERDICT_CORRUPTED, /* some elements hold other numbers, the rest is equal */
    VERDICT_CLOSE,     /* no pattern is known, but the numbers are near       */
    VERDICT_RELATED,   /* nor are they near, but they go up and down together */
    VERDICT_UNRELATED,
    VERDICT_INTEGERS,     /* integers, some of which differ                */
    VERDICT_BYTES,        /* numbers that are not read, whose bytes differ */
    VERDICT_MISSING,      /* not in B                                      */
    VERDICT_EXTRA,        /* not in A                                      */
    VERDICT_INCOMPARABLE, /* numbers on one side, integers or the like on the other */
    VERDICT_NOT_COMPARED, /* neither numbers nor bytes can be read         */
    VERDICT_UNREADABLE,   /* with --keep-going                             */
    VERDICTS
} verdict;

typedef struct verdict_word {
    const char *word;  /* "flipped-bit"                    */
    const char *title; /* "a flipped bit", for people      */
} verdict_word;

extern const verdict_word verdict_words[VERDICTS];

/* What was found, with its evidence. */
typedef struct finding {
    verdict verdict;
    char evidence[512];
    /* where they say something; else "", NULL, NaN or -1 */
    char format[56];
    const char *mode;
    double scale;
    int bit;
    int64_t shift;
} finding;

void finding_init(finding *f, verdict v);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void finding_say(finding *f, const char *text, ...); /* appends to the evidence */

/* What the judges look at. */
typedef struct verdict_case {
    side *sides[2];
    const side_tensor *tensors[2];
    const side_tensor *before[2]; /* of the step before, or NULL */
    int64_t step_before;
    int elsewhere; /* B has what A has at another step: that one */
    int64_t step_elsewhere;
    measurer measurer;
    measure all, part; /* part: of elements first to end - 1, which hold all that differ */
    uint64_t first, end;
    walk walk;
} verdict_case;

/* A judge says whether a difference is of its kind: 1 and *f, 0, or -1 with *error. */
typedef int verdict_judge(verdict_case *c, finding *f, trace_error *error);

/* "elements 3 to 17", "all 640 elements", of those that a verdict is about. */
const char *verdict_range(char out[96], const verdict_case *c);

/* The error and the correlation, to the evidence. */
void verdict_say_errors(const verdict_case *c, finding *f);
