/* verdict.h -- what a difference between two tensors is taken for, and why. */
#pragma once

#include "measure.h"
#include "walk.h"

/* In the order of reports; up to VERDICT_CODES no element has another value. V(NAME, word, title for people) */
/* clang-format off */
#define VERDICT_LIST(V) \
    V(VERDICT_EQUAL, "equal", "equal") \
    V(VERDICT_TOLERATED, "tolerated", "within the tolerance") \
    V(VERDICT_DTYPE, "dtype", "the same numbers in another dtype") \
    V(VERDICT_RESHAPED, "reshaped", "the same elements in another shape") \
    V(VERDICT_CODES, "codes", "the same values, other codes") /* signs of zero, payloads of NaN */ \
    V(VERDICT_STEP_SKIPPED, "step-skipped", "a step skipped") \
    V(VERDICT_STEP_SHIFTED, "step-shifted", "A's numbers of another step") /* B has what A has at another step */ \
    V(VERDICT_SCALAR, "scalar", "another number") /* one number each */ \
    V(VERDICT_CONSTANT, "constant", "a constant, which proves nothing") \
    V(VERDICT_FLIPPED_BIT, "flipped-bit", "a flipped bit") \
    V(VERDICT_BYTE_ORDER, "byte-order", "bytes in the opposite order") \
    V(VERDICT_REINTERPRETED, "reinterpreted", "the same codes, read as another dtype") \
    V(VERDICT_NEGATED, "negated", "the sign flipped") \
    V(VERDICT_SIGNS, "signs", "other signs") /* the same magnitudes, some signs differ */ \
    V(VERDICT_SCALED, "scaled", "a constant ratio") \
    V(VERDICT_OFFSET, "offset", "a constant difference") \
    V(VERDICT_AFFINE, "affine", "a scale and an offset") \
    V(VERDICT_QUANTISED, "quantised", "quantised as its file says") \
    V(VERDICT_ROUNDED, "rounded", "one rounding apart") \
    V(VERDICT_COMPUTED, "computed", "looks like computed in fewer bits") /* numbers of a narrower format, but no rounding of the other side */ \
    V(VERDICT_ZEROED, "zeroed", "zeros in place of numbers") \
    V(VERDICT_DROPOUT, "dropout", "zeros as dropout leaves them") \
    V(VERDICT_CLIPPED, "clipped", "clipped") \
    V(VERDICT_TRANSPOSED, "transposed", "axes in another order") \
    V(VERDICT_REVERSED, "reversed", "an axis run through backwards") \
    V(VERDICT_SHIFTED, "shifted", "elements shifted") \
    V(VERDICT_PERMUTED, "permuted", "the same elements in another order") \
    V(VERDICT_REARRANGED, "rearranged", "axes, rows or columns in another order, and a rounding or a scale") \
    V(VERDICT_RESIZED, "resized", "another number of elements") \
    V(VERDICT_NON_FINITE, "non-finite", "NaN or Inf appear") \
    V(VERDICT_SUM_ORDER, "sum-order", "looks like sums in another order") \
    V(VERDICT_PARTIAL, "partial", "some numbers moved, the rest is equal") \
    V(VERDICT_CORRUPTED, "corrupted", "other numbers in some places") \
    V(VERDICT_CLOSE, "close", "near, in no way that is known") /* no pattern is known, but the numbers are near */ \
    V(VERDICT_RELATED, "related", "related, in no way that is known") /* nor are they near, but they go up and down together */ \
    V(VERDICT_UNRELATED, "unrelated", "other numbers, no relation is known") \
    V(VERDICT_INTEGERS, "integers", "other integers") \
    V(VERDICT_BYTES, "bytes", "other bytes, whose numbers are not read") \
    V(VERDICT_MISSING, "missing", "missing in B") \
    V(VERDICT_EXTRA, "extra", "only in B") \
    V(VERDICT_INCOMPARABLE, "incomparable", "numbers on one side only") /* numbers on one side, integers or the like on the other */ \
    V(VERDICT_NOT_COMPARED, "not-compared", "not compared") /* neither numbers nor bytes can be read */ \
    V(VERDICT_UNREADABLE, "unreadable", "could not be read") /* with --keep-going */ \
    V(VERDICT_IN_PART, "equal-in-part", "") /* of a whole report: some were not compared */
/* clang-format on */

typedef enum verdict {
#define V(NAME, word, title) NAME,
    VERDICT_LIST(V)
#undef V
        VERDICTS
} verdict;

extern const char *const diff_verdict_words[];          /* "flipped-bit", up to NULL  */
extern const char *const diff_verdict_titles[VERDICTS]; /* "a flipped bit", for people */

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

void diff_finding_init(finding *f, verdict v);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void diff_finding_say(finding *f, const char *text, ...); /* appends to the evidence */

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
const char *diff_verdict_range(char out[96], const verdict_case *c);

/* The error and the correlation, to the evidence. */
void diff_verdict_say_errors(const verdict_case *c, finding *f);
