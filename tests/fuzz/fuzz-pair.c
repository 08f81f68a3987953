/* fuzz-pair.c -- two files of tensors, the first two members of a zip archive: mpsim diff compares them, or refuses one
 * of them in one line; also as log-probabilities. */
#include "input.h"
#include "members.h"
#include "sim/cli/options.h"
#include "sim/diff/logprob.h"
#include "sim/diff/report.h"

#include <stdio.h>
#include <string.h>

static FILE *nowhere;

static int compare(side sides[2], const char *const paths[2], report_style style)
{
    static const input_options none = {.wanted = {.offset = 0}};
    const diffreport_head head = {
        .paths = {paths[0], paths[1]}, .sides = sides, .match = none.wanted.match, .kinds = none.wanted.kinds};
    tolerance within;
    int code = diff_tolerance_parse(&within, NULL, "diff");
    diffreport *r = diff_report_new(nowhere, style, &head, &within, 1);
    must(code == 0 && r != NULL);
    code = diff_sequence_run(&sides[0], &sides[1], &within, diff_report_told, r);
    if (!code)
        diff_report_end(r, 0);
    diff_report_free(r);
    return code;
}

static void run(const members *m, int logprob, report_style style)
{
    static const input_options from = {.wanted = {.offset = 0}};
    const char *const paths[2] = {input_path_of(0, m->of[0].bytes, m->of[0].n),
                                  input_path_of(1, m->of[1].bytes, m->of[1].n)};
    char operands[2][64];
    side sides[2];
    int differ, code = 0;
    logprob_options lo = {.paths = {paths[0], paths[1]}, .band = {0.8, 1.2}};
    memset(sides, 0, sizeof sides);
    messages_begin();
    for (int k = 0; k < 2 && !code; k++) {
        must(strlen(paths[k]) < sizeof operands[k]);
        strcpy(operands[k], paths[k]);
        code = diff_side_open(&sides[k], "diff", &from, operands[k]);
    }
    if (!code)
        code = logprob ? diff_logprob_run(nowhere, style, &lo, &sides[0], &sides[1], &differ)
                       : compare(sides, paths, style);
    messages_check(code);
    diff_side_close(&sides[0]);
    diff_side_close(&sides[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const report_style styles[] = {REPORT_TEXT, REPORT_JSON, REPORT_CSV};
    static members m;
    if (members_read(&m, data, n))
        return 0;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    must(nowhere != NULL);
    if (m.count >= 2) {
        run(&m, 0, styles[n % 3]);
        run(&m, 1, styles[n % 2]);
    }
    members_clear(&m);
    return 0;
}
