/* record.c -- see record.h. */
#include "record.h"

/* ---- operands ---- */

#define AT(member) offsetof(operand, member)
static const record_field blocks_fields[] = {
    FIELD(SIZE, "elements", IN_TREE, AT(block), "Elements of a block."),
    FIELD(CHARS, "scales", IN_TREE, AT(scale_format.name), "The format of the scales."),
    {0}};
static const record_kind blocks = {"blocks", "Blocks with a scale each.", sizeof(operand), blocks_fields};

static const record_field operand_fields[] = {
    FIELD(CHARS, "format", IN_ALL, AT(format.name), NULL),
    FIELD(CHARS, "", IN_CSV, AT(label), "Where the numbers are from."),
    FIELD(CHARS, "values", IN_TREE, AT(label), "Where the numbers are from."),
    FIELD(SIZE, "rows", IN_TREE, AT(rows), NULL),
    FIELD(SIZE, "depth", IN_TREE, AT(depth), "Numbers of a row."),
    FIELD(REAL, "scale", IN_ALL, AT(scale), "Numbers were multiplied by it before they were rounded."),
    FIELD(RECORD, "blocks", IN_TREE | FIELD_OPTIONAL | FIELD_IF, 0, NULL, .of = AT(block), .record = &blocks),
    FIELD(COUNT, "nonzero", IN_TREE, AT(nonzero), "Numbers that were not 0 before rounding."),
    FIELD(COUNT, "underflow", IN_TREE, AT(counts.underflow), "Numbers that rounding made 0."),
    FIELD(COUNT, "inexact", IN_TREE, AT(counts.inexact), "Numbers that rounding changed."),
    {0}};
static const record_kind operand_record = {"operand", "A or B, as rounded.", sizeof(operand), operand_fields};
#undef AT

#define AT(member) offsetof(dot_operands, member)
static const record_field stream_fields[] = {
    FIELD(SIZE, "workers", IN_TREE, AT(split.workers), NULL),
    FIELD(SIZES, "tile", IN_TREE, AT(tile), "Rows, columns and products of a tile.", .of = AT(tiles)),
    FIELD(CHARS, "workspace", IN_TREE, AT(split.workspace.name), "The format in which sums are kept."),
    FIELD(CHARS, "sum", IN_TREE, AT(split.sum.name), "The format in which sums are added."),
    {0}};
static const record_kind stream = {"stream", "Stream-K.", sizeof(dot_operands), stream_fields};

static const record_field split_fields[] = {
    FIELD(SIZE, "parts", IN_TREE, AT(parts), "Parts of K."),
    FIELD(CHARS, "workspace", IN_TREE, AT(split.workspace.name), "The format in which sums are kept."),
    FIELD(CHARS, "sum", IN_TREE, AT(split.sum.name), "The format in which sums are added."),
    {0}};
static const record_kind split = {"split", "Split-K.", sizeof(dot_operands), split_fields};

static const record_field operands_fields[] = {
    FIELD(RECORD, "a", IN_ALL | FIELD_POINTER, AT(a), NULL, .record = &operand_record),
    FIELD(RECORD, "b", IN_ALL | FIELD_POINTER, AT(b), NULL, .record = &operand_record),
    FIELD(COUNT, "seed", IN_ALL | FIELD_POINTER | FIELD_NULL, AT(seed), "Of generated numbers; null: read."),
    FIELD(REAL, "above", IN_TREE | FIELD_POINTER | FIELD_NULL, AT(above), "The bound of --above; null: none."),
    FIELD(RECORD, "stream", IN_TREE | FIELD_OPTIONAL | FIELD_IF, 0, NULL, .of = AT(split.workers), .record = &stream),
    FIELD(RECORD, "split", IN_TREE | FIELD_OPTIONAL | FIELD_IF, 0, NULL, .of = AT(parts), .record = &split),
    {0}};
static const record_kind operands = {"operands", "What is multiplied, and how K is split.", sizeof(dot_operands),
                                     operands_fields};

static const record_field split_columns[] = {
    FIELD(SIZE, "split_k", IN_CSV, AT(parts), NULL, .when = DOT_SHOW_SPLIT),
    FIELD(CHARS, "workspace", IN_CSV, AT(split.workspace.name), NULL, .when = DOT_SHOW_SPLIT),
    FIELD(CHARS, "workspace_sum", IN_CSV, AT(split.sum.name), NULL, .when = DOT_SHOW_SPLIT),
    {0}};
static const record_kind split_row = {"split_row", NULL, sizeof(dot_operands), split_columns};
#undef AT

/* ---- a model ---- */

#define AT(member) offsetof(dot_row, member)
static const record_field row_fields[] = {
    FIELD(SIZE, "k", IN_ALL | FIELD_PLAIN, AT(k), "Products of a result.", .title = ">K", .when = DOT_SHOW_DEPTH),
    FIELD(TEXT, "model", IN_ALL, AT(model), NULL, .title = "<model"),
    FIELD(TEXT, "result_format", IN_ALL, AT(result_format), NULL, .title = "<result"),
    FIELD(COUNT, "count", IN_ALL, AT(e.count), "Results."),
    ERROR_FIELDS(e, rounded, 5),
    FIELD(REAL, "bits_lost", IN_ALL, AT(e.bits_lost),
          "p + log2(||d - e|| / ||e||) of the operands as rounded, from 0 to p: the significand bits of the result.",
          .title = ">bits lost", .format = "%.1f", .column = 4),
    FIELD(REAL, "first", IN_ALL, AT(e.first), "The first result.", .title = ">value", .format = "%.9g", .column = 1,
          .when = DOT_SHOW_VALUE),
    FIELD(RECORD, "operands", IN_CSV | FIELD_INLINE | FIELD_POINTER, AT(operands), NULL, .record = &operands),
    FIELD(COUNT, "compared", IN_CSV, AT(e.given.compared), NULL, .title = ">compared", .column = 2, .when = SHOW_BOUND),
    FIELD(RECORD, "given", IN_ALL, AT(e.given), "Against the exact sums of the operands before they were rounded.",
          .record = &dot_distance_record),
    FIELD(RECORD, "rounded", IN_ALL, AT(e.rounded), "Against the exact sums of the operands as rounded.",
          .record = &dot_distance_record),
    DISTANCE_COLUMNS(AT(apart), AT(e.rounded), 3),
    FIELD(RECORD, "split", IN_CSV | FIELD_INLINE | FIELD_POINTER, AT(operands), NULL, .record = &split_row),
    FIELD(RECORD, "operands", IN_LINE | FIELD_INLINE | FIELD_POINTER, AT(operands), NULL, .record = &operands),
    {0}};
static const record_kind row = {"result", "A model at a depth.", sizeof(dot_row), row_fields};
#undef AT

/* ---- the report ---- */

static const record_field document_fields[] = {FIELD(RECORD, "operands", IN_JSON, 0, NULL, .record = &operands),
                                               FIELD(LIST, "results", IN_JSON | FIELD_STREAM, 0, NULL, .record = &row),
                                               {0}};
static const record_kind document = {"document", NULL, sizeof(dot_operands), document_fields};

const report_kind dot_kind = {
    "mpsim.dot/1", "mpsim dot: errors of dot products",
    "Dot products of two matrices under models of matrix instructions, beside exact ones. $defs/line is "
    "a line of --ndjson, which names no schema.",
    &document};
