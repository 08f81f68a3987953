/* inputsout.c -- see inputsout.h. */
#include "inputsout.h"
#include "inputs.h"

#include "../array/need.h"
#include "../process/host.h"
#include "../process/output.h"
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
    trace_tensor tensors[2] = {0};
    uint64_t shapes[2][2];
    trace_error error = {0};
    for (size_t i = 0; i < set->arrays; i++) {
        const mpsim_judge_array *a = &set->array[i];
        shapes[i][0] = a->rows;
        shapes[i][1] = a->columns;
        const size_t rank = set->kind == MPSIM_JUDGE_CAST ? 1 : 2;
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

static int print(const mpsim_judge_set *set, const char *row)
{
    output out;
    char n[2][32];
    const int code = output_open_report(&out, NULL, REPORT_TEXT);
    if (code)
        return code;
    fprintf(out.file, "%s %s: ", judge_kind_name(set->kind), row);
    print_arrays(out.file, set);
    fprintf(out.file, "\n%s rows in %s classes: these inputs do not tell the rows of a class apart\n\n  rows  class\n",
            text_count(n[0], set->rows), text_count(n[1], set->classes));
    for (size_t i = 0; i < set->classes; i++)
        print_class(out.file, set, i);
    return output_close(&out);
}

static int exit_of(mpsim_status s)
{
    return s == MPSIM_ENOMEM ? EXIT_IO : EXIT_USAGE;
}

int judge_inputs_command(const char *row, const mpsim_format *from, const char *path)
{
    mpsim_judge_set set;
    char why[256] = "bad format";
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
    code = code ? code : print(&set, row);
    judge_set_clear(&set);
    return code;
}
