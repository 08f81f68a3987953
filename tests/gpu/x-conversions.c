/* x-conversions.c -- what a device recorded of conversions from binary32 to its formats (data/gpu, digest_all): the array
 * functions of the library give the same codes for all 2^32 operands. For make check-long; t-record does a sample a day.
 *
 *     x-conversions [--jobs N] [RECORD]
 *
 * One process for each conversion, N at a time (default: one per CPU); RECORD is data/gpu/NAME-checks.json. TAP on
 * stdout, exit status 1 if a digest differs. MPSIM_ISA chooses the instruction set. */
#include "../../gpu/checks/cases.h"
#include "../../gpu/checks/checks.h"
#include "lib/digest/scalar.h"
#include "support/support.h"
#include "support/sweep.h"

#include <inttypes.h>
#include <jansson.h>
#include <mpsim/mpsim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 14 };

static gpu_check checks[SWEEP_MOST];
static const char *digests[SWEEP_MOST];

/* Whether the record holds a digest of all 2^32 conversions of a check. */
static int is_whole(const gpu_check *c, const json_t *o)
{
    return !c->is_dots && c->scalar.o.op == MPSIM_OP_CONVERT && c->scalar.expected == GPU_ROUNDED &&
           strcmp(c->scalar.o.operand[0].name, "binary32") == 0 && c->count == (uint64_t)1 << 32 &&
           strcmp(json_string_value(json_object_get(o, "name")), c->name) == 0 && json_object_get(o, "digest_all");
}

static size_t read_record(const char *path)
{
    size_t n = 0;
    json_t *entries = json_object_get(json_load_file(path, 0, NULL), "checks");
    const json_t *o;
    size_t i;
    json_array_foreach(entries, i,
                       o) if (n < SWEEP_MOST && gpu_check_at(&checks[n], i, 90, 0) == 1 && is_whole(&checks[n], o))
        digests[n++] = json_string_value(json_object_get(o, "digest_all"));
    return n;
}

static uint64_t digest_block(const gpu_check *c, uint64_t first)
{
    static uint32_t x[BLOCK];
    static uint8_t codes[4 * BLOCK];
    const size_t bytes = mpsim_format_code_bytes(&c->scalar.o.result);
    uint64_t sum = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        uint32_t in[3];
        gpu_scalar_case(&c->scalar, first + i, in);
        x[i] = in[0];
    }
    ck_assert(mpsim_encode_array_f32(&c->scalar.o.result, &c->scalar.o.rounding, NULL, codes,
                                     (const float *)(const void *)x, BLOCK, NULL) == MPSIM_OK);
    for (size_t i = 0; i < BLOCK; i++)
        sum += mpsim_mix(first + i, bytes == 1   ? codes[i]
                                    : bytes == 2 ? ((const uint16_t *)(const void *)codes)[i]
                                                 : ((const uint32_t *)(const void *)codes)[i]);
    return sum;
}

static int run_one(size_t i, int to)
{
    char line[200], got[17];
    uint64_t sum = 0;
    for (uint64_t first = 0; first < checks[i].count; first += BLOCK)
        sum += digest_block(&checks[i], first);
    snprintf(got, sizeof got, "%016" PRIx64, sum);
    const int n = snprintf(line, sizeof line, "%s: %s of 2^32 codes, of the device %s", checks[i].name, got,
                           digests[i]);
    return write(to, line, (size_t)n) != n || strcmp(got, digests[i]) != 0;
}

static void name_one(size_t i, char *text, size_t size)
{
    snprintf(text, size, "%s", checks[i].name);
}

static const char record[] = "data/gpu/nvidia-h200-2026-11-26-checks.json";

int main(int argc, char **argv)
{
    long jobs = sysconf(_SC_NPROCESSORS_ONLN);
    int at = 1;
    if (at + 1 < argc && strcmp(argv[at], "--jobs") == 0) {
        jobs = strtol(argv[at + 1], NULL, 10);
        at += 2;
    }
    const sweep_plan plan = {"x-conversions", read_record(at < argc ? argv[at] : test_source_path(record)), run_one,
                             name_one};
    if (jobs < 1 || plan.n == 0) {
        fprintf(stderr, "usage: x-conversions [--jobs N] [RECORD]; no digest of a conversion in the record\n");
        return 2;
    }
    return sweep_run(&plan, jobs);
}
