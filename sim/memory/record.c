/* record.c -- see record.h. */
#include "record.h"

const char *const memory_recomputation[] = {
    [COUNT_RECOMPUTE_NONE] = "none", [COUNT_RECOMPUTE_SELECTIVE] = "selective", [COUNT_RECOMPUTE_FULL] = "full", NULL};

/* ---- bytes of a policy ---- */

#define AT(member) offsetof(memory_term, member)
static const record_field term_fields[] = {FIELD(CHARS, "what", IN_TREE, AT(t.what), NULL),
                                           FIELD(CHARS, "formula", IN_TREE, AT(formula), NULL),
                                           FIELD(COUNT, "bytes", IN_TREE, AT(t.bytes), NULL),
                                           FIELD(COUNT, "bytes_each", IN_TREE | FIELD_NULL | FIELD_IF, AT(t.each),
                                                 "Bytes of an element; null: the term is no product.",
                                                 .of = AT(is_product)),
                                           FIELD(COUNT, "elements", IN_TREE | FIELD_NULL | FIELD_IF, AT(t.n),
                                                 "Elements; null: the term is no product.", .of = AT(is_product)),
                                           {0}};
static const record_kind term = {"term", NULL, sizeof(memory_term), term_fields};
#undef AT

#define AT(member) offsetof(memory_component, member)
static const record_field component_fields[] = {
    FIELD(TEXT, "component", IN_TREE, AT(name), NULL, .words = memory_ledger_names),
    FIELD(COUNT, "bytes", IN_TREE, AT(bytes), "The sum of the bytes of the terms."),
    FIELD(LIST, "terms", IN_TREE, AT(terms), NULL, .of = AT(count), .record = &term),
    {0}};
static const record_kind component = {"component", NULL, sizeof(memory_component), component_fields};
#undef AT

#define AT(member) offsetof(memory_row, member)
#define OF_FP32 "The total divided by that of the policy fp32."
static const record_field row_fields[] = {
    FIELD(TEXT, "policy", IN_TREE, AT(policy), NULL, .title = "<policy"),
    FIELD(COUNT, "from_step", IN_TREE, AT(from),
          "Of a schedule the plan that needs most is counted: the first step under that plan."),
    FIELD(TEXT, "optimizer", IN_TREE, AT(optimizer), NULL, .title = "<optimizer", .spare = 2),
    FIELD(LIST, "components", IN_TREE, AT(components), NULL, .of = AT(count), .record = &component),
    FIELD(COUNT, NULL, FIELD_BLANK, AT(columns[0]), NULL, .unit = 1e9, .title = ">weights"),
    FIELD(COUNT, NULL, FIELD_BLANK, AT(columns[1]), NULL, .unit = 1e9, .title = ">copies"),
    FIELD(COUNT, NULL, FIELD_BLANK, AT(columns[2]), NULL, .unit = 1e9, .title = ">master"),
    FIELD(COUNT, NULL, FIELD_BLANK, AT(columns[3]), NULL, .unit = 1e9, .title = ">gradients"),
    FIELD(COUNT, NULL, FIELD_BLANK, AT(columns[4]), NULL, .unit = 1e9, .title = ">state"),
    FIELD(COUNT, NULL, FIELD_BLANK, AT(columns[5]), NULL, .unit = 1e9, .title = ">activations"),
    FIELD(COUNT, "total", IN_TREE, AT(total), "The sum of the bytes of the components."),
    FIELD(COUNT, NULL, 0, AT(total), NULL, .title = ">all, GB", .unit = 1e9),
    FIELD(COUNT, NULL, 0, AT(total), NULL, .title = ">GiB", .spare = 4, .unit = 0x1p30),
    FIELD(REAL, NULL, 0, AT(a_parameter), "Bytes for each parameter.", .title = ">a parameter", .spare = 3,
          .format = "%.4g"),
    FIELD(REAL, "of_fp32", IN_TREE, AT(of_fp32), OF_FP32),
    FIELD(REAL, NULL, 0, AT(percent), OF_FP32, .title = ">of fp32", .format = "%.4g %%"),
    FIELD(TEXT, "unmatched_patterns", IN_TREE, AT(unmatched), "Patterns of the policy that fit no layer."),
    {0}};
static const record_kind row = {"policy", "A model under a policy.", sizeof(memory_row), row_fields};
#undef AT

/* ---- lines ---- */

#define AT(member) offsetof(memory_line, member)
static const record_field line_fields[] = {
    FIELD(TEXT, "policy", IN_CSV, AT(policy), NULL),
    FIELD(TEXT, "optimizer", IN_CSV, AT(optimizer), NULL),
    FIELD(TEXT, "component", IN_CSV, AT(component), NULL, .title = "<component"),
    FIELD(COUNT, "bytes", IN_CSV, AT(bytes), NULL, .title = ">bytes"),
    FIELD(COUNT, NULL, FIELD_IF, AT(bytes), NULL, .title = ">GB", .spare = 3, .unit = 1e9, .of = AT(whole)),
    FIELD(COUNT, NULL, FIELD_IF, AT(bytes), NULL, .title = ">GiB", .spare = 4, .unit = 0x1p30, .of = AT(whole)),
    FIELD(REAL, NULL, FIELD_IF, AT(a_parameter), NULL, .title = ">a parameter", .spare = 3, .format = "%.4g",
          .of = AT(whole)),
    FIELD(CHARS, "formula", IN_CSV, AT(formula), NULL, .title = "<formula"),
    {0}};
const record_kind memory_line_record = {"line", NULL, sizeof(memory_line), line_fields};
#undef AT

/* ---- the report ---- */

#define AT(member) offsetof(memory_model, member)
static const record_field model_fields[] = {
    FIELD(COUNT, "parameters", IN_JSON, AT(parameters), "Parameters of the whole model."),
    FIELD(TEXT, "source", IN_JSON, AT(source), NULL),
    FIELD(COUNT, "ranks", IN_JSON, AT(ranks), "Data-parallel ranks."),
    FIELD(COUNT, "zero", IN_JSON, AT(zero), "Stage of ZeRO."),
    FIELD(COUNT, "tensor_parallel", IN_JSON, AT(tensor_parallel), "Ranks that share tensors."),
    FIELD(BOOLEAN, "sequence_parallel", IN_JSON, AT(sequence_parallel),
          "Whether tensor-parallel ranks also split the activations between matrix products."),
    FIELD(TEXT, "recompute", IN_JSON, AT(recompute), NULL, .words = memory_recomputation),
    FIELD(BOOLEAN, "activations", IN_JSON, AT(activations), "Whether activations are counted."),
    FIELD(TEXT, "not_counted", IN_JSON, AT(not_counted), "Parts of a model of config.json, by their keys."),
    {0}};
static const record_kind model = {"model", "What is counted.", sizeof(memory_model), model_fields};
#undef AT

#define AT(member) offsetof(memory_document, member)
static const record_field document_fields[] = {
    FIELD(RECORD, "model", IN_JSON, AT(model), NULL, .record = &model),
    FIELD(LIST, "policies", IN_JSON | FIELD_STREAM, 0, NULL, .record = &row),
    FIELD(RECORD, "unread", IN_JSON | FIELD_INLINE | FIELD_POINTER, AT(unread), NULL, .record = &unread_list_record),
    {0}};
static const record_kind document = {"document", NULL, sizeof(memory_document), document_fields};
#undef AT
const report_kind memory_kind = {
    "mpsim.memory/1", "mpsim memory: bytes of a training",
    "Bytes of weights, gradients, optimizer state and activations of each rank, with the formula of every term. "
    "$defs/line is a line of --ndjson, which names no schema.",
    &document};
