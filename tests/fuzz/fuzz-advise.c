/* fuzz-advise.c -- the first two members of a zip archive as the steps of a trace: mpsim advise has advice for them, in every
 * form, or refuses them in one line; the policy that it writes is one. Whether bf16 weights need masters is left out: that is
 * a replay's. */
#include "input.h"
#include "members.h"
#include "sim/advise/advise.h"
#include "sim/cli/options.h"
#include "sim/policy/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *nowhere;

/* What is written is read again. */
static void check_policy(const advise *a)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    policy p;
    trace_error error;
    must(to != NULL);
    advise_write_policy(a, to);
    must(fclose(to) == 0);
    const int code = policy_load(&p, input_path_of(2, (const uint8_t *)text, size), 1, &error);
    must(code == 0);
    policy_clear(&p);
    free(text);
}

static int look(const char *const typed[2], int n, uint64_t hold_back)
{
    static const input_options from = {.wanted = {.offset = 0}};
    char operands[2][64], *list[2] = {operands[0], operands[1]};
    advise a = {.bounds = {.underflow = 0.01, .sqnr = 25, .lost = 0.1}, .hold_back = hold_back};
    input in = {0};
    a.stall = (advise_stall){.unknown = "it was not asked", .keep = 1};
    for (int i = 0; i < n; i++) {
        must(strlen(typed[i]) < sizeof operands[i]);
        strcpy(operands[i], typed[i]);
    }
    int code = advise_candidates_make(&a.candidates, NULL);
    if (!code)
        code = input_open(&in, "advise", &from, list, n);
    in.needs_kinds = 1;
    if (!code && !(code = advise_measure(&a, &in))) {
        advise_judge(&a);
        advise_hold(&a);
        advise_print(&a, 1, nowhere);
        advise_write(&a, &in, REPORT_JSON, nowhere);
        advise_write(&a, &in, REPORT_CSV, nowhere);
        check_policy(&a);
    }
    input_close(&in);
    advise_clear(&a);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static members m;
    if (members_read(&m, data, n))
        return 0;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    must(nowhere != NULL);
    if (m.count >= 2) {
        const char *const paths[2] = {input_path_of(0, m.of[0].bytes, m.of[0].n),
                                      input_path_of(1, m.of[1].bytes, m.of[1].n)};
        messages_begin();
        messages_check(look(paths, 2, n % 2 ? 2 : 0));
    }
    members_clear(&m);
    return 0;
}
