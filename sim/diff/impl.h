/* impl.h -- what the files of sim/diff have of one another. */
#pragma once

#include "../input/names.h"
#include "../record/record.h"
#include "fit.h"
#include "sequence.h"
#include "verdict.h"
#include "walk.h"

/* ---- bytes.c: two tensors by the bytes that they are stored as: those whose numbers are not read, and codes and scales
 * that stand for equal numbers. ---- */

/* diff_bytes_compare -- two tensors, of which one at least has no floating-point numbers that are read: VERDICT_EQUAL, or what
 * differs; VERDICT_NOT_COMPARED where the bytes of one are not there. 0, or -1 with *error. On one thread. */
int diff_bytes_compare(verdict_case *c, finding *f, trace_error *error);

/* diff_bytes_codes -- the same of two quantised tensors that are equal numbers: *f is changed only where another verdict than
 * VERDICT_EQUAL fits. */
int diff_bytes_codes(verdict_case *c, finding *f, trace_error *error);

/* ---- computed.c: results of a computation in fewer bits, which is no rounding of the other side's. Each is a
 * verdict_judge. ---- */

/* diff_computed_widened -- all numbers of one side are those of a narrower format, near the other side's.
 * diff_computed_operands -- results of products differ by as much as rounding their operands to bf16 or tf32 does: it only
 * looks like it. */
verdict_judge diff_computed_widened, diff_computed_operands;

/* ---- constants.c: one number, and constants: what fits many causes and proves none. Each is a verdict_judge. ---- */

/* diff_constants_scalar -- both sides are one finite number. diff_constants_constant -- all elements of a side are one, not zero
 * beside numbers, of which patterns.h says more. */
verdict_judge diff_constants_scalar, diff_constants_constant;

/* ---- dropout.c: zeros at random places, the rest scaled up, or as it is. ---- */

/* diff_dropout_masks -- one side has zeros where the other has numbers, as many of them as the scale of the rest calls for;
 * or both have, as many and at other places, and share the rest. */
verdict_judge diff_dropout_masks;

/* ---- entry.c: one tensor in a report of mpsim diff: a record, filled once. ---- */

enum { ENTRY_AXES = 64 };

/* A tensor of a side; the texts and the shape are the entry's own, the path is the side's. */
typedef struct entry_side {
    char *name, *dtype;
    uint64_t *shape;
    size_t rank;
    const char *file;
} entry_side;

/* A fact about B's tensor, only where it is another one than A's; NULL: it is not. */
typedef struct entry_other {
    const char *name, *dtype;
    const uint64_t *shape;
} entry_other;

typedef struct entry_place {
    const uint64_t *index;
    size_t rank;
    uint64_t at;
    double a, b;
    char a_code[24], b_code[24];
    uint64_t own[ENTRY_AXES]; /* where `index` is */
} entry_place;

/* Lists of pairs: the first ULP of a bin, or a bit; elements. */
typedef struct entry_pairs {
    const uint64_t *list;
    size_t n;
    uint64_t own[2 * MEASURE_ULP_BINS]; /* where `list` is */
} entry_pairs;

typedef struct entry_measure {
    measure of;
    const uint64_t *zero, *nan, *inf; /* of A, of B           */
    size_t two;                       /* 2                    */
    size_t compared;                  /* pairs have distances */
    entry_place first, worst;
    entry_pairs ulps, bits;
    char ulp_format[56], max_ulp_text[32];
    double sqnr, correlation;
} entry_measure;

typedef struct entry {
    verdict verdict;
    int64_t step, step_b, rank; /* -1: the files do not say */
    int64_t told_rank;          /* where steps have files of several ranks; else -1 */
    int64_t differ;             /* elements; -1: elements were not compared         */
    size_t other_step, some;    /* B's step is another one; there is a tensor, else a whole step */
    const char *name;           /* NULL: a whole step */
    char *shown;
    unsigned matched; /* of diff_match_words */
    const char *kind;
    uint64_t count;
    entry_side sides[2]; /* that of the side that has it, and B's behind A's */
    entry_other other;
    const char *title, *evidence, *format, *mode; /* or NULL */
    double scale;
    int bit;
    size_t shifted;
    int64_t shift;
    finding found; /* where these texts are */
    size_t measured;
    entry_measure m;
} entry;

extern const record_kind diff_entry_record;

/* diff_entry_verdict -- of a tensor, or of a missing step. */
verdict diff_entry_verdict(const sequence_entry *e);

/* diff_entry_new -- all that is known; what it holds outlives the step. */
entry *diff_entry_new(const sequence_entry *e);
void diff_entry_free(entry *e); /* accepts NULL */

/* diff_entry_print -- for people, behind verdict and evidence. */
void diff_entry_print(FILE *to, const entry *e);

/* ---- line.c: B is A times one number, or plus one, or both, but for small errors. Each is a verdict_judge. ---- */

/* diff_line_offset -- B = A + c within a rounding, for all elements.
 * diff_line_fitted -- the best straight line leaves an error that is small against what it explains, nearly everywhere. */
verdict_judge diff_line_offset, diff_line_fitted;

/* ---- lines.c: each row, or each column, with a number of its own. ---- */

/* diff_lines_own -- each row of B is A's times, or plus, a number of that row; or each column times one. */
verdict_judge diff_lines_own;

/* ---- numbers.c: differences that arithmetic explains: a scale, a rounding. Each is a verdict_judge. ---- */

/* diff_numbers_rounded_own -- one side is the other one rounded to its own, narrower format.
 * diff_numbers_rounded -- one side is the other one rounded to any format of the table.
 * diff_numbers_scaled -- one side is the other one times a constant, rounded. */
verdict_judge diff_numbers_rounded_own, diff_numbers_rounded, diff_numbers_scaled;

/* ---- parts.c: less than half of the elements hold other numbers, the rest is equal. Each is a verdict_judge. ---- */

/* diff_parts_moved -- a little, or whole rows: what an update does that reaches some of them.
 * diff_parts_corrupted -- in any other way. */
verdict_judge diff_parts_moved, diff_parts_corrupted;

/* ---- patterns.c: differences that the measure of two tensors shows by itself. Each is a verdict_judge; flipped_bit
 * is of one element, flipped_bits of several. ---- */

verdict_judge diff_pattern_codes, diff_pattern_flipped_bit, diff_pattern_flipped_bits, diff_pattern_byte_order,
    diff_pattern_reinterpreted, diff_pattern_negated, diff_pattern_zeroed, diff_pattern_clipped,
    diff_pattern_non_finite, diff_pattern_sum_order, diff_pattern_close, diff_pattern_unrelated;

/* ---- places.c: differences of place: transposed, shifted, permuted; and other shapes. Each is a verdict_judge. ---- */

/* diff_places_moved -- of as many elements. diff_places_resized -- of other counts: always says something. */
verdict_judge diff_places_moved, diff_places_resized;

/* ---- axes.c: axes in another order, or backwards. ---- */

enum { REARRANGE_RANK = 5 }; /* axes are looked at up to this rank */

/* diff_rearrange_axes -- whether B is A with its axes in another order (axes[k]: which of A's is B's axis k), or, with
 * `flip`, with some axes run through backwards (axes[k]: 1). *looked: how many elements were compared; all of them
 * where they are few. 1, 0, or -1 with *error. */
int diff_rearrange_axes(walk *w, int flip, int axes[REARRANGE_RANK], uint64_t *looked, trace_error *error);

/* diff_axes_near -- a verdict_judge: the same by correlation of some elements, which then differ by a rounding, a scale or a small error. */
verdict_judge diff_axes_near;

/* diff_axes_say -- "B is A with the axes (1, 0)", or with `flip` "B is A, backwards along axis 0". */
void diff_axes_say(finding *f, int flip, const int *axes, size_t rank);

/* ---- rearrange.c: the same elements in other places: rows, shifts, parts that are missing. ---- */

/* What rows of one length have in common. */
typedef struct rearrange_rows {
    uint64_t length, rows;
    uint64_t moved;       /* rows that are not those of A at their place     */
    uint64_t first, last; /* of these                                        */
    int whole;            /* every row of B is one of A's                    */
    int within;           /* every row has the elements of A's row, in any order */
} rearrange_rows;

/* diff_rearrange_by_rows -- look at both as rows of `length` elements. 0, or -1 with *error. */
int diff_rearrange_by_rows(walk *w, uint64_t length, rearrange_rows *found, trace_error *error);

/* diff_rearrange_shift -- whether B's elements from `first` to end - 1 are A's elements `*shift` behind them, but for a
 * tenth: *same of the *of that A has there. 1, 0, or -1 with *error. */
int diff_rearrange_shift(walk *w, uint64_t first, uint64_t end, int64_t *shift, uint64_t *same, uint64_t *of,
                         trace_error *error);

/* diff_rearrange_gap -- of different counts: whether the longer one (0: A) is the other one with elements put in between:
 * they begin at *at, at the beginning of a row of `length` where that can be. 1, 0, or -1 with *error. */
int diff_rearrange_gap(walk *w, uint64_t length, uint64_t *at, trace_error *error);

/* ---- linematch.c: which row, or column, of A each one of B is, by correlation. ---- */

#define LINE_NONE UINT32_MAX

typedef struct line_match {
    uint64_t n, length; /* lines; elements of a row */
    int columns;        /* lines are columns        */
    uint32_t *from;     /* of each line of B: A's, or LINE_NONE */
    uint64_t moved;     /* lines of B that are not A's at their place */
    uint64_t found;     /* of these: A has them at another place      */
} line_match;

/* diff_line_match -- look at two tensors of one shape as rows of `length` elements, or as columns. 1 where lines have changed
 * places and nineteen of twenty of these are found, 0, or -1 with *error; diff_line_match_clear in any case. */
int diff_line_match(line_match *m, walk *w, uint64_t length, int columns, trace_error *error);
void diff_line_match_clear(line_match *m);

/* ---- remains.c: what differs once elements of A are where B has them. ---- */

enum { REMAINS_FORMATS = 5 };

typedef struct remains {
    uint64_t n, equal;
    double aa, bb, ab, apart;     /* A A, B B, A B, (A - B)^2 */
    fit fits[2][REMAINS_FORMATS]; /* [the side that is rounded]  */
} remains;

void diff_remains_add(remains *r, const double *a, const double *b, size_t n);
/* diff_remains_explain -- whether B is A times a number, but for a small part. diff_remains_say -- "; the rest is equal, in 512 elements looked at". */
int diff_remains_explain(const remains *r);
void diff_remains_say(finding *f, const remains *r);

/* ---- moved.c: rows or columns that changed places, and were rounded or scaled too. A verdict_judge. ---- */

verdict_judge diff_moved_lines;

/* ---- recipe.c: the recipe that a file names for its quantised tensors, asked first. ---- */

/* A judge: one side is the other quantised by the recipe that its file names, or by one of the layout that it has. */
verdict_judge diff_recipe_named;

/* ---- shift.c: whether B has what A has at another step. ---- */

/* A step of A, open beside the one that is compared, and by how many steps B is known to be shifted. */
typedef struct diff_shift {
    side *a;
    int64_t by;     /* steps of A's list; 0: not known */
    int tried;      /* tensors that were looked for    */
    size_t step, n; /* what is open: traces of its files */
    trace **traces;
    nameindex *names; /* of each                         */
} diff_shift;

/* diff_shift_look -- whether B's tensor of a case is A's of another step: c->elsewhere. `step`: of A's list, the one that is
 * compared. The first differences of a run are looked for in the steps around; all later ones at the distance that was
 * found. 0, or -1 with *error. */
int diff_shift_look(diff_shift *s, size_t step, verdict_case *c, trace_error *error);
void diff_shift_clear(diff_shift *s);

/* ---- stale.c: differences that the step before explains. Each is a verdict_judge. ---- */

/* diff_stale_shifted -- B has what A has at another step, and not what it had itself before.
 * diff_stale_b -- B has what it, or A, had at the step before, and A has not. diff_stale_a -- the other way round; a run skips
 * steps by itself, so that this explains less. */
verdict_judge diff_stale_shifted, diff_stale_b, diff_stale_a;
