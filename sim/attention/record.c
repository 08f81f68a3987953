/* record.c -- see record.h. */
#include "record.h"
#include "../operand/target.h"

/* ---- what is computed ---- */

#define AT(member) offsetof(heads_part, member)
static const record_field part_fields[] = {
    FIELD(CHARS, "values", IN_TREE, AT(of.label), "Where the numbers are from."),
    FIELD(CHARS, "format", IN_TREE, AT(of.format.name), NULL),
    FIELD(SIZE, "batch", IN_TREE, AT(batch), NULL),
    FIELD(SIZE, "heads", IN_TREE, AT(heads), NULL),
    FIELD(SIZE, "tokens", IN_TREE, AT(tokens), NULL),
    FIELD(SIZE, "size", IN_TREE, AT(size), "Numbers of a head."),
    FIELD(COUNT, "inexact", IN_TREE, AT(of.counts.inexact), "Numbers that the format does not have."),
    {0}};
static const record_kind part = {"part", "Q, K or V.", sizeof(heads_part), part_fields};
#undef AT

#define AT(member) offsetof(attention_config, member)
static const record_field config_fields[] = {
    FIELD(RECORD, "q", IN_TREE | FIELD_POINTER, AT(q), NULL, .record = &part),
    FIELD(RECORD, "k", IN_TREE | FIELD_POINTER, AT(k), NULL, .record = &part),
    FIELD(RECORD, "v", IN_TREE | FIELD_POINTER, AT(v), NULL, .record = &part),
    FIELD(TEXT, "q", IN_CSV, AT(labels[0]), "Where Q is from."),
    FIELD(TEXT, "k", IN_CSV, AT(labels[1]), "Where K is from."),
    FIELD(TEXT, "v", IN_CSV, AT(labels[2]), "Where V is from."),
    FIELD(TEXT, "generated", IN_TREE | FIELD_NULL, AT(generated), "How numbers were generated; null: read."),
    FIELD(COUNT, "seed", IN_TREE, AT(seed), NULL),
    FIELD(TEXT, "scores", IN_TREE | FIELD_NULL, AT(scores), "The model of the scores; null: that of the row."),
    FIELD(REAL32, "softmax_scale", IN_TREE, AT(a.scale), NULL),
    FIELD(SIZE, "tile", IN_TREE, AT(tile), "Keys of a tile."),
    FIELD(FLAG, "causal", IN_TREE, AT(a.causal), NULL),
    FIELD(SIZES, "window", IN_TREE | FIELD_NULL, AT(bounds),
          "Two numbers: keys that a query sees before its own and behind it; null: all.", .of = AT(windows)),
    FIELD(TEXT, "mask", IN_TREE | FIELD_NULL, AT(mask), "Where the mask is from; null: there is none."),
    FIELD(FLAG, "exp2", IN_TREE, AT(a.exp2), "Whether the softmax is by powers of two."),
    FIELD(TEXT, "softmax_format", IN_TREE, AT(softmax), NULL),
    FIELD(FLAG, "reverse", IN_TREE, AT(a.reverse), "Whether the last tile comes first."),
    FIELD(CHARS, "p_format", IN_ALL, AT(a.p.format.name), NULL),
    FIELD(TEXT, "p_round", IN_TREE, AT(p_round), NULL, .words = target_modes),
    FIELD(REAL32, "p_scale", IN_ALL, AT(a.p_scale), NULL),
    FIELD(SIZE, "tile", IN_CSV, AT(tile), NULL),
    FIELD(FLAG, "separate", IN_TREE, AT(a.separate), "Whether the products of a tile are summed apart."),
    FIELD(FLAG, "sum_rounded", IN_TREE, AT(a.sum_rounded), "Whether P is summed as rounded."),
    FIELD(FLAG, "reciprocal", IN_TREE, AT(a.reciprocal), "Whether the end multiplies by 1 / sum."),
    FIELD(TEXT, "output_format", IN_TREE, AT(output), NULL),
    FIELD(REAL32, "cure", IN_TREE | FIELD_POINTER | FIELD_NULL, AT(cure),
          "The factor of the largest score where it repeats; null: none."),
    FIELD(REAL32, "cure_margin", IN_TREE, AT(a.margin), NULL),
    FIELD(REAL, "above", IN_TREE | FIELD_POINTER | FIELD_NULL, AT(above), "The bound of --above; null: none."),
    {0}};
static const record_kind config = {"config", "What is computed.", sizeof(attention_config), config_fields};
#undef AT

/* ---- errors by the sign of the result ---- */

#define AT(member) offsetof(attention_signs, member)
static const record_field sign_fields[] = {
    FIELD(COUNT, "count", IN_TREE, AT(count), "Finite results.", .title = ">count"),
    FIELD(SHARE, "away", IN_TREE, AT(away), "Results beyond the exact ones, away from 0.", .title = ">away from 0",
          .of = AT(count), .column = 2),
    FIELD(REAL, "mean_error", IN_TREE, AT(mean), "The mean of d - e over the mean of |e|, of results e of one sign.",
          .title = ">mean error", .format = "%+.1e", .column = 1),
    {0}};
static const record_kind sign = {"sign", "Errors of results of one sign.", sizeof(attention_signs), sign_fields};
#undef AT

#define AT(i) ((i) * sizeof(attention_signs))
static const record_field signs_fields[] = {
    FIELD(RECORD, "negative", IN_TREE, AT(ATTENTION_NEGATIVE), NULL, .record = &sign),
    FIELD(RECORD, "positive", IN_TREE, AT(ATTENTION_POSITIVE), NULL, .record = &sign),
    {0}};
static const record_kind signs = {"signs", NULL, 2 * sizeof(attention_signs), signs_fields};

static const record_field errors_fields[] = {
    FIELD(RECORD, "others", IN_TREE, AT(0), "Rows whose largest score is that of one key.", .record = &signs),
    FIELD(RECORD, "repeated", IN_TREE, AT(2), "Rows whose largest score is that of two keys or more.",
          .record = &signs),
    {0}};
static const record_kind errors = {"errors", "Errors by rows and signs of the exact results.",
                                   4 * sizeof(attention_signs), errors_fields};
#undef AT

#define AT(member) offsetof(attention_signs_row, member)
static const record_field signs_row_fields[] = {
    FIELD(TEXT, NULL, 0, AT(model), NULL, .title = "<model"),
    FIELD(TEXT, NULL, 0, AT(rows), NULL, .title = "<rows"),
    FIELD(TEXT, NULL, 0, AT(results), NULL, .title = "<results"),
    FIELD(RECORD, NULL, FIELD_POINTER, AT(signs), NULL, .title = "", .record = &sign),
    {0}};
const record_kind attention_signs_record = {"signs_row", NULL, sizeof(attention_signs_row), signs_row_fields};
#undef AT

/* ---- a model ---- */

#define AT(member) offsetof(attention_row, member)
#define COUNTS(member) offsetof(attention_row, x.counts.member)
static const record_field row_fields[] = {
    FIELD(TEXT, "model", IN_ALL, AT(model), NULL, .title = "<model"),
    FIELD(TEXT, "accumulator", IN_ALL, AT(accumulator), "The format of the accumulator.", .title = "<O"),
    FIELD(COUNT, "results", IN_ALL, AT(x.error.count), "Numbers of the result."),
    ERROR_FIELDS(x.error, rounded, 9),
    FIELD(
        REAL, "lean", IN_ALL, AT(x.lean),
        "The sum of (d - e) sign(e) over sqrt(n sum of (d - e)^2), a cosine. 1: all errors are of one size and go away "
        "from 0; -1: toward it; about 0: either way as often.",
        .title = ">lean", .spare = 1, .format = "%+.2f", .column = 3),
    FIELD(COUNT, "rows", IN_ALL, COUNTS(rows), "Queries of all heads."),
    FIELD(COUNT, "masked", IN_ALL, COUNTS(masked), "Rows that see no key."),
    FIELD(COUNT, "repeated", IN_ALL | FIELD_BLANK, COUNTS(repeated),
          "Rows whose largest score is that of two keys or more.", .title = ">repeats", .column = 6,
          .when = SHOW_REPEATED),
    FIELD(COUNT, "moved", IN_ALL | FIELD_BLANK, COUNTS(moved), "Rows whose largest score --cure moved.",
          .title = ">moved", .column = 7),
    FIELD(COUNT, "vanished", IN_ALL | FIELD_BLANK, COUNTS(vanished),
          "Rows that see keys and whose sum is 0: --cure moved too far.", .title = ">vanished", .column = 8),
    FIELD(COUNT, "elements", IN_ALL, COUNTS(elements), "Scores that a row sees."),
    FIELD(SHARE, "p_zero", IN_ALL, COUNTS(p_zero), "Scores that a row sees and whose P is 0.", .title = ">P = 0",
          .of = COUNTS(elements), .column = 4),
    FIELD(SHARE, "p_one", IN_ALL, COUNTS(p_one), "Scores that a row sees and whose P is exactly 1.", .title = ">P = 1",
          .spare = 3, .of = COUNTS(elements), .column = 5),
    FIELD(RECORD, "config", IN_CSV | FIELD_INLINE | FIELD_POINTER, AT(config), NULL, .record = &config),
    FIELD(RECORD, "errors", IN_TREE, AT(x.signs), NULL, .record = &errors),
    FIELD(COUNT, "compared", IN_CSV, AT(x.error.given.compared), NULL, .title = ">compared", .column = 1,
          .when = SHOW_BOUND),
    FIELD(RECORD, "given", IN_ALL, AT(x.error.given),
          "Against the attention, in binary64, of the operands before they were rounded.",
          .record = &dot_distance_record),
    FIELD(RECORD, "rounded", IN_ALL, AT(x.error.rounded),
          "Against the attention, in binary64, of the operands as rounded.", .record = &dot_distance_record),
    DISTANCE_COLUMNS(AT(apart), AT(x.error.rounded), 2),
    FIELD(RECORD, "config", IN_LINE | FIELD_POINTER, AT(config), NULL, .record = &config),
    {0}};
static const record_kind row = {"result", "A model.", sizeof(attention_row), row_fields};
#undef AT
#undef COUNTS

/* ---- the report ---- */

static const record_field document_fields[] = {FIELD(RECORD, "config", IN_JSON, 0, NULL, .record = &config),
                                               FIELD(LIST, "results", IN_JSON | FIELD_STREAM, 0, NULL, .record = &row),
                                               {0}};
static const record_kind document = {"document", NULL, sizeof(attention_config), document_fields};

const report_kind attention_kind = {
    "mpsim.attention/1", "mpsim attention: errors of attention",
    "Attention in tiles under models of matrix instructions, beside exact attention. $defs/line is a line of --ndjson, which "
    "names no schema.",
    &document};
