/* inputsout.c -- see inputsout.h. */
#include "inputsout.h"
#include "inputs.h"

#include "../array/need.h"
#include "../process/host.h"
#include "../process/output.h"
#include "../record/record.h"
#include "../text/words.h"
#include "../trace/trace.h"

#include <stdlib.h>
#include <string.h>
#include <threads/parallel.h>

/* ---- the file ---- */

static int write_codes(trace_writer *w, const mpsim_judge_array *a, trace_error *error)
{
    const size_t bytes = mpsim_format_code_bytes(a->format), n = a->rows * a->columns;
    unsigned char *codes = need_memory(n + 1, bytes);
    memcpy(codes, a->codes, n * bytes);
    trace_to_little_endian(codes, bytes, n);
    const size_t packed = trace_packed_dtype(a->format) ? trace_pack(a->format, codes, codes, n) : n * bytes;
    const int bad = trace_writer_data(w, codes, packed, error);
    free(codes);
    return bad;
}

static int write_file(const mpsim_judge_set *set, const char *row, const char *path)
{
    const char *const metadata[][2] = {{"mpsim.judge.row", row}, {"mpsim.judge.kind", judge_kind_name(set->kind)}};
    trace_tensor tensors[MPSIM_JUDGE_SET_ARRAYS] = {0};
    uint64_t shapes[MPSIM_JUDGE_SET_ARRAYS][2];
    trace_error error = {0};
    for (size_t i = 0; i < set->arrays; i++) {
        const mpsim_judge_array *a = &set->array[i];
        shapes[i][0] = a->rows;
        shapes[i][1] = a->columns;
        const size_t rank = set->kind == MPSIM_JUDGE_CAST || set->kind == MPSIM_JUDGE_ARITH ? 1 : 2;
        tensors[i] = (trace_tensor){.name = a->role,
                                    .format = a->format,
                                    .shape = shapes[i] + 2 - rank,
                                    .rank = rank,
                                    .count = (uint64_t)a->rows * a->columns};
    }
    trace_writer *w = trace_writer_safetensors(path, tensors, set->arrays, metadata, 2, &error);
    for (size_t i = 0; w && i < set->arrays; i++)
        if (write_codes(w, &set->array[i], &error)) {
            trace_writer_abandon(w);
            w = NULL;
        }
    return !w || trace_writer_finish(w, &error) ? fail(error.exit, "%s", error.text) : 0;
}

/* ---- the text ---- */

enum { NAMED = 4 }; /* rows of a class */

static void print_class(FILE *to, const mpsim_judge_set *set, size_t class)
{
    size_t n = 0;
    char line[1024] = "", count[32];
    for (size_t i = 0; i < set->rows; i++)
        if (set->class_of[i] == class && n++ < NAMED)
            (void)text_add(line, sizeof line, "%s%s", n > 1 ? ", " : "", set->row[i]);
    fprintf(to, "%6s  %s%s\n", text_count(count, n), line, n > NAMED ? ", ..." : "");
}

static void print_arrays(FILE *to, const mpsim_judge_set *set)
{
    for (size_t i = 0; i < set->arrays; i++) {
        const mpsim_judge_array *a = &set->array[i];
        fprintf(to, "%s%s %zu x %zu %s", i ? ", " : "", a->role, a->rows, a->columns, a->format->name);
    }
}

static void print(FILE *to, const mpsim_judge_set *set, const char *row)
{
    char n[2][32];
    fprintf(to, "%s %s: ", judge_kind_name(set->kind), row);
    print_arrays(to, set);
    fprintf(to, "\n%s rows in %s classes: these inputs do not tell the rows of a class apart\n\n  rows  class\n",
            text_count(n[0], set->rows), text_count(n[1], set->classes));
    for (size_t i = 0; i < set->classes; i++)
        print_class(to, set, i);
}

/* ---- records ---- */

typedef struct array_row {
    const char *role, *format;
    size_t rows, columns;
} array_row;

#define AT(member) offsetof(array_row, member)
static const record_field array_fields[] = {FIELD(TEXT, "role", IN_TREE, AT(role), NULL),
                                            FIELD(TEXT, "format", IN_TREE, AT(format), "The format of its codes."),
                                            FIELD(SIZE, "rows", IN_TREE, AT(rows), NULL),
                                            FIELD(SIZE, "columns", IN_TREE, AT(columns), NULL),
                                            {0}};
#undef AT
static const record_kind array_record = {"array", "An array of inputs.", sizeof(array_row), array_fields};

typedef struct class_row {
    size_t n;
    const char *const *names;
} class_row;

#define AT(member) offsetof(class_row, member)
static const record_field class_fields[] = {
    FIELD(SIZE, "rows", IN_ALL, AT(n), "How many rows the class has."),
    FIELD(TEXTS, "names", IN_ALL, AT(names), "Rows that give the same results for these inputs.", .of = AT(n)),
    {0}};
#undef AT
static const record_kind class_record = {"class", "Rows that these inputs do not tell apart.", sizeof(class_row),
                                         class_fields};

typedef struct inputs_report {
    const char *kind, *row, *file;
    size_t rows, classes, arrays;
    const array_row *array;
} inputs_report;

#define AT(member) offsetof(inputs_report, member)
static const record_field inputs_fields[] = {
    FIELD(TEXT, "kind", IN_JSON, AT(kind), "The kind of operation."),
    FIELD(TEXT, "row", IN_JSON, AT(row), "The row of --inputs, or the kind: all rows."),
    FIELD(TEXT, "file", IN_JSON | FIELD_NULL, AT(file), "The file of the inputs; null: none was written."),
    FIELD(LIST, "arrays", IN_JSON, AT(array), NULL, .record = &array_record, .of = AT(arrays)),
    FIELD(SIZE, "rows", IN_JSON, AT(rows), "Rows that these inputs are for."),
    FIELD(SIZE, "classes", IN_JSON, AT(classes), "Classes of rows that the inputs tell apart."),
    FIELD(LIST, "list", IN_JSON | FIELD_STREAM, 0, NULL, .record = &class_record),
    {0}};
#undef AT
static const record_kind inputs_document = {"document", NULL, sizeof(inputs_report), inputs_fields};
const report_kind judge_inputs_report = {"mpsim.judge-inputs/1", "mpsim judge --inputs: inputs that tell rows apart",
                                         "Which rows a set of inputs does not tell apart.", &inputs_document};

static void write_class(record_writer *w, const mpsim_judge_set *set, size_t class)
{
    const char **names = need_memory(set->rows + 1, sizeof *names);
    class_row row = {0, names};
    for (size_t i = 0; i < set->rows; i++)
        if (set->class_of[i] == class)
            names[row.n++] = set->row[i];
    record_row(w, &row);
    free((void *)names);
}

static void write_records(record_writer *w, const mpsim_judge_set *set, const char *row, const char *path)
{
    array_row arrays[MPSIM_JUDGE_SET_ARRAYS];
    const inputs_report d = {judge_kind_name(set->kind), row, path, set->rows, set->classes, set->arrays, arrays};
    for (size_t i = 0; i < set->arrays; i++) {
        const mpsim_judge_array *a = &set->array[i];
        arrays[i] = (array_row){a->role, a->format->name, a->rows, a->columns};
    }
    w->document = &d;
    record_begin(w);
    for (size_t i = 0; i < set->classes; i++)
        write_class(w, set, i);
    record_end(w);
}

static int report(const mpsim_judge_set *set, const char *row, const char *path, report_style style)
{
    output out;
    record_writer w = {.kind = &judge_inputs_report, .style = style};
    const int code = output_open_report(&out, NULL, style);
    if (code)
        return code;
    w.to = out.file;
    if (style == REPORT_TEXT)
        print(out.file, set, row);
    else
        write_records(&w, set, row, path);
    return output_close(&out);
}

static int exit_of(mpsim_status s)
{
    return s == MPSIM_ENOMEM ? EXIT_IO : EXIT_USAGE;
}

int judge_inputs_command(const char *row, const mpsim_format *from, const char *path, report_style style)
{
    static const char ending[] = ".safetensors";
    mpsim_judge_set set;
    char why[256] = "bad format";
    const size_t n = path ? strlen(path) : 0;
    if (path && (n < sizeof ending || strcmp(path + n + 1 - sizeof ending, ending) != 0))
        return fail(EXIT_USAGE, "judge: --inputs: -o '%s' does not end in %s, the format of the inputs", path, ending);
    int code = path ? output_check(path) : 0;
    if (code)
        return code;
    const mpsim_status s = judge_inputs_run(&set, row, from, &parallel_pool, why, sizeof why);
    if (s != MPSIM_OK)
        return fail(exit_of(s), "judge: --inputs: %s", why);
    for (size_t i = 0; i < set.arrays && path; i++)
        if (!trace_safetensors_dtype(set.array[i].format) && !trace_packed_dtype(set.array[i].format))
            code = fail(EXIT_USAGE, "judge: --inputs: %s has no dtype in safetensors files: use --from",
                        set.array[i].format->name);
    code = code || !path ? code : write_file(&set, row, path);
    code = code ? code : report(&set, row, path, style);
    judge_set_clear(&set);
    return code;
}
