/* fuzz-logs.c -- two training logs, apart at the first zero byte, beside one another (mpsim log): they are compared, or
 * refused in one line. */
#include "input.h"
#include "sim/log/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void compare(const log_runs *r)
{
    static FILE *nowhere;
    comparison c;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    must(nowhere != NULL);
    log_compare(&c, r);
    must_be_line(log_run_verdicts[c.verdict]);
    must(c.first <= r->n && c.apart <= r->n);
    for (int i = 0; i < PARTS && c.verdict != RUNS_FEW && c.verdict != RUNS_LOST && c.verdict != RUNS_SAME; i++)
        must(c.parts[i].from <= c.parts[i].to && c.parts[i].to <= r->n);
    for (int style = REPORT_TEXT; style <= REPORT_CSV; style++)
        log_report_write(nowhere, (report_style)style, r, &c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const of[] = {"loss", "norm", "validation", "kl"};
    const uint8_t *zero = n ? memchr(data, 0, n) : NULL;
    const size_t first = zero ? (size_t)(zero - data) : n;
    static char paths[2][64];
    char *list[] = {paths[0], paths[1]};
    log_runs *r = calloc(1, sizeof *r);
    must(r != NULL);
    snprintf(paths[0], sizeof paths[0], "%s", input_path_of(0, data, first));
    snprintf(paths[1], sizeof paths[1], "%s", input_path_of(1, zero ? zero + 1 : data, zero ? n - first - 1 : n));
    messages_begin();
    const int code = log_runs_read(r, of[n % 8 < 5 ? 0 : n % 4], list, 2);
    messages_check(code);
    if (!code)
        compare(r);
    log_runs_clear(r);
    free(r);
    return 0;
}
