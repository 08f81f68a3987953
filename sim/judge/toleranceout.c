/* toleranceout.c -- mpsim judge --tolerance: the bound for people, beside the usual one. */
#include "tolerance.h"

#include "../process/host.h"
#include "../process/output.h"
#include "../record/record.h"
#include "../text/screen.h"
#include "../text/words.h"

#include <stdio.h>

static const double usual = 8e-3;

static void print(FILE *to, const char *row, const mpsim_judge_tolerance *t, size_t depth)
{
    const double at_one = t->relative + t->absolute;
    fprintf(to, "%s %s", judge_kind_name(t->kind), row);
    if (t->kind == MPSIM_JUDGE_PRODUCT)
        fprintf(to, ", K = %zu", depth);
    fprintf(to, ": a correct result errs by at most rtol * %s + atol\n  rtol  %.6g\n  atol  %.6g\n", t->of, t->relative,
            t->absolute);
    if (t->scales > 0)
        fprintf(to, "  in units of the block's scale  %.6g\n", t->scales);
    fprintf(to, "  the usual atol=8e-3, where %s is 1, is %.3g times the bound\n  because ", t->of, usual / at_one);
    text_wrap(to, 10, 118, " ", t->reason);
}

/* ---- records ---- */

typedef struct tolerance_row {
    const char *kind, *row, *of, *reason;
    size_t depth, scales_known;
    double relative, absolute, scales;
} tolerance_row;

#define AT(member) offsetof(tolerance_row, member)
static const record_field tolerance_fields[] = {
    FIELD(TEXT, "kind", IN_ALL, AT(kind), "The kind of operation."),
    FIELD(TEXT, "row", IN_ALL, AT(row), NULL),
    FIELD(SIZE, "depth", IN_ALL, AT(depth), "Of a product: how many products are added; else 0."),
    FIELD(TEXT, "of", IN_ALL, AT(of), "What rtol is multiplied by."),
    FIELD(REAL, "rtol", IN_ALL, AT(relative), "A correct result errs by at most rtol times `of`, plus atol."),
    FIELD(REAL, "atol", IN_ALL, AT(absolute), NULL),
    FIELD(REAL, "scales", IN_ALL | FIELD_NULL | FIELD_IF, AT(scales),
          "Of a quantiser: the largest error in units of the block's scale.", .of = AT(scales_known)),
    FIELD(TEXT, "reason", IN_ALL, AT(reason), "How the bound follows from the row, and for which inputs."),
    {0}};
#undef AT
static const record_kind tolerance_record = {"tolerance", "The bound of a row.", sizeof(tolerance_row),
                                             tolerance_fields};
const report_kind judge_tolerance_report = {"mpsim.judge-tolerance/1", "mpsim judge --tolerance: largest errors",
                                            "The largest error that a correct kernel of a row can have.",
                                            REPORT_ROWS("tolerances", &tolerance_record)};

static void write_records(FILE *to, const char *row, const mpsim_judge_tolerance *t, size_t depth, report_style style)
{
    record_writer w = {.kind = &judge_tolerance_report, .style = style, .to = to};
    const tolerance_row r = {.kind = judge_kind_name(t->kind),
                             .row = row,
                             .of = t->of,
                             .reason = t->reason,
                             .depth = t->kind == MPSIM_JUDGE_PRODUCT ? depth : 0,
                             .scales_known = t->scales > 0,
                             .relative = t->relative,
                             .absolute = t->absolute,
                             .scales = t->scales};
    record_begin(&w);
    record_row(&w, &r);
    record_end(&w);
}

int judge_tolerance_command(const char *row, const mpsim_format *from, const mpsim_format *to, size_t depth,
                            const report_options *form)
{
    mpsim_judge_tolerance t;
    output out;
    char why[256] = "bad format";
    const mpsim_status s = judge_tolerance_run(&t, row, from, to, depth, why, sizeof why);
    if (s != MPSIM_OK)
        return fail(EXIT_USAGE, "judge: --tolerance: %s", why);
    const report_style style = report_options_style(form);
    const int code = report_options_open(&out, form);
    if (code)
        return code;
    if (style == REPORT_TEXT)
        print(out.file, row, &t, depth);
    else
        write_records(out.file, row, &t, depth, style);
    return output_close(&out);
}
