/* record.c -- see record.h. */
#include "record.h"

/* ---- codes and scales ---- */

#define AT(member) offsetof(trace_scale_stats, member)
static const record_field scales_fields[] = {
    FIELD(COUNT, "count", IN_TREE, AT(count), NULL, .title = ">scales"),
    FIELD(REAL, "least", IN_TREE, AT(least), "The least scale above 0, without the scale of the tensor.",
          .title = ">least"),
    FIELD(REAL, "largest", IN_TREE, AT(largest), "The largest finite scale, without the scale of the tensor.",
          .title = ">largest"),
    FIELD(COUNT, "least_codes", IN_TREE, AT(least_codes),
          "Scales that are the smallest of their format; 0 if they have more than 8 bits."),
    FIELD(COUNT, "largest_codes", IN_TREE, AT(largest_codes),
          "Scales that are the largest of their format; 0 if they have more than 8 bits."),
    FIELD(COUNT, "zeros", IN_TREE, AT(zeros), NULL),
    FIELD(COUNT, "nonfinite", IN_TREE, AT(nonfinite), NULL),
    FIELD(COUNT, "negative", IN_TREE, AT(negative), NULL),
    {0}};
static const record_kind scales = {"scales", "Scales of blocks, with --scales.", sizeof(trace_scale_stats),
                                   scales_fields};
#undef AT

#define AT(member) offsetof(trace_quantised, member)
static const record_field parts_fields[] = {
    FIELD(TEXT, "layout", IN_TREE, AT(layout), NULL),
    FIELD(TEXT, "type", IN_TREE, AT(type), NULL),
    FIELD(TEXT, "element", IN_TREE, AT(codes), "The format of the codes."),
    FIELD(TEXT, "scale", IN_TREE, AT(scales), "The format of the scales."),
    FIELD(TEXT, "order", IN_TREE, AT(order), "The order of the scales in the file."),
    FIELD(TEXT, "tensor_scale", IN_TREE | FIELD_NULL, AT(tensor_scale),
          "The tensor that holds the scale of the whole tensor; null: there is none."),
    FIELD(COUNT32, "transform", IN_TREE, AT(transform), "Size of the Hadamard transform; 0: none."),
    FIELD(COUNT, "bytes", IN_TREE | FIELD_BYTES, AT(bytes), "Bytes of codes and scales.", .title = ">stored"),
    FIELD(TEXT, "evidence", IN_TREE, AT(evidence), "What says so."),
    {0}};
static const record_kind parts = {"parts", NULL, sizeof(trace_quantised), parts_fields};
#undef AT

#define AT(member) offsetof(info_quantised, member)
static const record_field quantised_fields[] = {
    FIELD(CHARS, NULL, 0, AT(shown), NULL, .title = "<quantised"),
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE | FIELD_POINTER, AT(q), NULL, .title = "", .record = &parts),
    FIELD(COUNTS, "block", IN_TREE, AT(sides), "Two numbers: rows and columns of a block; 0: all.", .of = AT(two)),
    FIELD(RECORD, "scales", IN_TREE | FIELD_POINTER | FIELD_OPTIONAL, AT(scales), NULL, .title = "", .record = &scales),
    FIELD(CHARS, NULL, 0, AT(ends), NULL, .title = "<at the ends"),
    {0}};
static const record_kind quantised = {"quantised", "How the file holds a tensor as codes and scales.",
                                      sizeof(info_quantised), quantised_fields};
#undef AT

/* ---- tensors ---- */

#define AT(member) offsetof(info_tensor, member)
static const record_field tensor_fields[] = {
    FIELD(TEXT, "file", IN_LINE | IN_CSV, AT(file), NULL),
    FIELD(TEXT, "name", IN_ALL, AT(name), NULL),
    FIELD(CHARS, NULL, 0, AT(shown), NULL, .title = "<name"),
    FIELD(CHARS, NULL, 0, AT(is), NULL, .title = "<is"),
    FIELD(TEXT, "kind", IN_ALL | FIELD_NULL, AT(kind), "null: the name says no kind.", .words = trace_kinds),
    FIELD(TEXT, "fqn", IN_TREE, AT(fqn), "The name of the parameter or layer, without its kind."),
    FIELD(TEXT, "dtype", IN_ALL, AT(dtype), "As the file has it.", .title = "<dtype"),
    FIELD(TEXT, "format", IN_ALL | FIELD_NULL, AT(format), "The name in mpsim; null: no floating-point numbers.",
          .title = "<format", .lacking = "-"),
    FIELD(COUNTS, "shape", IN_ALL, AT(dimensions), NULL, .title = "<shape", .of = AT(rank)),
    FIELD(COUNT, "count", IN_ALL, AT(count), "Elements.", .title = ">elements"),
    FIELD(COUNT, "offset", IN_ALL, AT(offset), "The place of the first byte in the file."),
    FIELD(FLAG, "big_endian", IN_TREE, AT(big_endian), NULL),
    FIELD(FLAG, "fortran", IN_TREE, AT(fortran), "Whether elements are in the order of columns."),
    FIELD(TEXT, NULL, 0, AT(order), NULL, .title = "<order", .spare = 1),
    FIELD(TEXT, "unread", IN_TREE | FIELD_OPTIONAL, AT(unread), "Why its numbers are not read."),
    FIELD(BOOLEAN, "unseen", IN_TREE | FIELD_OPTIONAL, AT(unseen),
          "Of an unread tensor: whether it may hold floating-point numbers or packed weights."),
    FIELD(RECORD, "quantised", IN_TREE | FIELD_POINTER | FIELD_OPTIONAL, AT(quantised), NULL, .title = "",
          .record = &quantised),
    {0}};
const record_kind info_tensor_record = {"tensor", NULL, sizeof(info_tensor), tensor_fields};
#undef AT

/* ---- files ---- */

#define AT(member) offsetof(info_file, member)
static const record_field file_fields[] = {
    FIELD(TEXT, "file", IN_JSON, AT(file), NULL),
    FIELD(TEXT, "layout", IN_JSON, AT(layout), "The kind of file."),
    FIELD(COUNT, "bytes", IN_JSON, AT(bytes), NULL),
    FIELD(STEP, "step", IN_JSON | FIELD_NULL, AT(step), NULL),
    FIELD(TEXT, "names", IN_JSON | FIELD_NULL, AT(names), "The convention or rules by which names say kinds."),
    FIELD(COUNT, "without_kind", IN_JSON, AT(without_kind), "Tensors of numbers with a name that says no kind."),
    FIELD(TEXT, "clash", IN_JSON | FIELD_OPTIONAL, AT(clash), "Two tensors that would be the same by the convention."),
    FIELD(TEXT, "not_quantised", IN_JSON | FIELD_OPTIONAL, AT(not_quantised), "Codes without their scales."),
    FIELD(TEXT, "not_read", IN_JSON | FIELD_OPTIONAL, AT(not_read), "Tensors whose elements are not read, and why."),
    FIELD(MAP, "metadata", IN_JSON, AT(metadata), NULL),
    {0}};
const record_kind info_file_record = {"file", NULL, sizeof(info_file), file_fields};
#undef AT

#define AT(member) offsetof(info_summary, member)
static const record_field summary_fields[] = {FIELD(TEXT, NULL, 0, AT(file), NULL, .title = "<file"),
                                              FIELD(TEXT, NULL, 0, AT(layout), NULL, .title = "<layout", .spare = 2),
                                              FIELD(STEP, NULL, 0, AT(step), NULL, .title = ">step"),
                                              FIELD(COUNT, NULL, 0, AT(tensors), NULL, .title = ">tensors"),
                                              FIELD(COUNT, NULL, 0, AT(elements), NULL, .title = ">elements"),
                                              FIELD(CHARS, NULL, 0, AT(kinds), NULL, .title = "<kinds"),
                                              {0}};
const record_kind info_summary_record = {"summary", NULL, sizeof(info_summary), summary_fields};
#undef AT

/* ---- the report ---- */

static const record_field row_fields[] = {FIELD(RECORD, "info", IN_JSON, 0, NULL, .record = &info_file_record),
                                          FIELD(LIST, "tensors", IN_JSON, 0, NULL, .record = &info_tensor_record),
                                          FIELD(RECORD, "", IN_LINE | IN_CSV | FIELD_INLINE | FIELD_POINTER,
                                                offsetof(info_row, tensor), NULL, .record = &info_tensor_record),
                                          {0}};
static const record_kind row = {"contents", NULL, sizeof(info_row), row_fields};
const report_kind info_kind = {"mpsim.info/1", "mpsim info: what is in a file",
                               "Files, their metadata, and the tensors in them. $defs/line is a line of --ndjson, "
                               "which is a tensor with its file and names no schema.",
                               REPORT_ROWS("files", &row)};
