/* toleranceout.c -- mpsim judge --tolerance: the bound for people, beside the usual one. */
#include "tolerance.h"

#include "../process/host.h"
#include "../process/output.h"
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

int judge_tolerance_command(const char *row, const mpsim_format *from, const mpsim_format *to, size_t depth)
{
    mpsim_judge_tolerance t;
    output out;
    char why[256] = "bad format";
    const mpsim_status s = judge_tolerance_run(&t, row, from, to, depth, why, sizeof why);
    if (s != MPSIM_OK)
        return fail(EXIT_USAGE, "judge: --tolerance: %s", why);
    const int code = output_open_report(&out, NULL, REPORT_TEXT);
    if (code)
        return code;
    print(out.file, row, &t, depth);
    return output_close(&out);
}
