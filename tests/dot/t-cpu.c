/* t-cpu.c -- what CPUs gave, as data/cpu has it, beside the library on any machine; models with one rule changed,
 * which must be told apart; and the instructions of this machine, a few cases of each. */
#include "sim/verify/cpu.h"
#include "support/support.h"

#include <mpsim/digest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1000, FIELDS = 15, ROWS = 64 };

static const char *const files[] = {"data/cpu/amd-zen5.txt", "data/cpu/intel-6-167.txt", "data/cpu/intel-6-207.txt",
                                    "data/cpu/qemu-10.0.2-arm.txt"};
enum { FILES = sizeof files / sizeof files[0] };

/* A row of a record. */
typedef struct recorded {
    char words[LINE], *field[FIELDS];
    cpu_instruction t;
    uint64_t digest;
    size_t cases;
    uint64_t d[CPU_RECORD_CASES][CPU_RECORD_CODES]; /* the first codes */
} recorded;

static void split(recorded *r)
{
    size_t n = 0;
    for (char *save = NULL, *s = strtok_r(r->words, "\t\n", &save); s; s = strtok_r(NULL, "\t\n", &save)) {
        ck_assert_uint_lt(n, FIELDS);
        r->field[n++] = s;
    }
    ck_assert_msg(n == FIELDS, "%s: %zu fields", r->field[1], n);
    const char *const *f = (const char *const *)r->field;
    char *times;
    const size_t lanes = strtoul(f[8], &times, 10); /* or rows, "x", columns */
    uint8_t bits = 32;
    r->t = (cpu_instruction){.name = f[1],
                             .feature = f[2],
                             .model = f[3],
                             .operand = f[5],
                             .result = f[6],
                             .traits = (unsigned)strtoul(f[7], NULL, 10),
                             .rows = *times ? lanes : 0,
                             .lanes = *times ? strtoul(times + 1, NULL, 10) : lanes,
                             .products = strtoul(f[9], NULL, 10)};
    if (mpsim_op_parse(&r->t.op, f[3]) == MPSIM_OK && strcmp(f[3], "fma") != 0)
        r->t.model = NULL;
    if (strcmp(f[3], "fma") == 0) { /* an operation, not the software model of that name */
        r->t.op = MPSIM_OP_FMA;
        r->t.model = NULL;
    }
    ck_assert(mpsim_round_mode_parse(&r->t.mode, &bits, f[4]) == MPSIM_OK);
    r->digest = strtoull(f[10], NULL, 16);
    ck_assert_msg(strcmp(f[14], "0") == 0, "%s: recorded with %s mismatches", f[1], f[14]);
}

static size_t load(recorded *rows, const char *path)
{
    char line[LINE];
    size_t n = 0;
    FILE *f = fopen(test_source_path(path), "r");
    ck_assert_msg(f && fgets(line, sizeof line, f) && strcmp(line, "mpsim-cpu/1\n") == 0, "%s", path);
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "row\t", 4) == 0) {
            ck_assert_uint_lt(n, ROWS);
            memset(&rows[n], 0, sizeof rows[n]);
            memcpy(rows[n].words, line, sizeof line);
            split(&rows[n++]);
        } else if (strncmp(line, "case\t", 5) == 0) {
            recorded *r = &rows[n - 1];
            ck_assert(n > 0 && r->cases < CPU_RECORD_CASES);
            char *at = line + 5;
            for (size_t i = 0; i < verify_cpu_results(&r->t) && i < CPU_RECORD_CODES; i++)
                r->d[r->cases][i] = strtoull(at, &at, 16);
            r->cases++;
        }
    }
    fclose(f);
    return n;
}

/* The digest of the first results by the library. */
static uint64_t digest_of(const cpu_instruction *t)
{
    uint64_t digest = 0;
    for (uint64_t n = 0; n < CPU_RECORD_RESULTS / verify_cpu_results(t); n++) {
        cpu_case x;
        uint64_t d[CPU_LANES];
        ck_assert_msg(verify_cpu_case_make(&x, t, CPU_RECORD_SEED, n) && verify_cpu_case_expect(&x, t, d), "%s",
                      t->name);
        digest += mpsim_digest(&x.result, d, x.results, n * x.results);
    }
    return digest;
}

static recorded rows[ROWS];

CASE("cpu", 20);

TESTS(as_recorded, FILES)
{
    const size_t n = load(rows, files[_i]);
    ck_assert_uint_gt(n, 9);
    for (size_t k = 0; k < n; k++) {
        const cpu_instruction *t = &rows[k].t;
        ck_assert_uint_eq(rows[k].cases, CPU_RECORD_CASES);
        for (size_t c = 0; c < CPU_RECORD_CASES; c++) {
            cpu_case x;
            uint64_t d[CPU_LANES];
            ck_assert_msg(verify_cpu_case_make(&x, t, CPU_RECORD_SEED, c) && verify_cpu_case_expect(&x, t, d), "%s",
                          t->name);
            for (size_t i = 0; i < x.results && i < CPU_RECORD_CODES; i++) {
                uint64_t was[CPU_LANES];
                memcpy(was, d, sizeof was);
                code_store((char *)was + i * mpsim_format_code_bytes(&x.result), mpsim_format_code_bytes(&x.result),
                           rows[k].d[c][i]);
                ck_assert_msg(verify_cpu_case_same(&x, t, was, d, i), "%s, case %zu, lane %zu: recorded %llx, got %llx",
                              t->name, c, i, (unsigned long long)rows[k].d[c][i],
                              (unsigned long long)verify_cpu_code(&x.result, d, i));
            }
        }
        if (test_in_part(k, 3)) /* of the others the cases above */
            ck_assert_msg(digest_of(t) == rows[k].digest, "%s: another digest", t->name);
    }
}

/* A rule of a model changed: what was recorded tells. */
TEST(one_rule_changed)
{
    static const struct {
        const char *file, *row, *model;
    } changed[] = {
        {"data/cpu/amd-zen5.txt", "vdpbf16ps zmm", "avx512-bf16-fp32:order=sequential"},
        {"data/cpu/amd-zen5.txt", "vdpbf16ps zmm", "avx512-bf16-fp32:flush=operands"},
        {"data/cpu/amd-zen5.txt", "vdpbf16ps zmm", "avx512-bf16-fp32:flush=sums"},
        {"data/cpu/amd-zen5.txt", "vdpbf16ps zmm", "avx512-bf16-fp32:round=toward-zero"},
        {"data/cpu/amd-zen5.txt", "vdpbf16ps zmm", "arm-bf16-fp32"},
        {"data/cpu/amd-zen5.txt", "vdpbf16ps zmm", "arm-ebf16-fp32"},
        {"data/cpu/intel-6-167.txt", "tdpbf16ps", "amx-bf16-fp32:order=sequential"},
        {"data/cpu/intel-6-167.txt", "tdpbf16ps", "amx-bf16-fp32:L=4"},
        {"data/cpu/intel-6-167.txt", "tdpbf16ps", "amx-bf16-fp32:chunk=16"},
        {"data/cpu/intel-6-167.txt", "tdpbf16ps, two products", "amx-bf16-fp32:flush=operands"},
        {"data/cpu/intel-6-167.txt", "tdpbf16ps, two products", "amx-bf16-fp32:flush=sums"},
        {"data/cpu/intel-6-167.txt", "tdpbf16ps", "amx-bf16-fp32:round=toward-zero"},
        {"data/cpu/intel-6-167.txt", "tdpfp16ps", "amx-fp16-fp32:order=sequential"},
        {"data/cpu/intel-6-167.txt", "tdpfp16ps, two products", "amx-fp16-fp32:flush=all"},
        {"data/cpu/intel-6-167.txt", "tdpfp16ps, two products", "amx-fp16-fp32:flush=none"},
        {"data/cpu/qemu-10.0.2-arm.txt", "bfdot", "arm-bf16-fp32:round=nearest-even"},
        {"data/cpu/qemu-10.0.2-arm.txt", "bfdot", "arm-bf16-fp32:flush=none"},
        {"data/cpu/qemu-10.0.2-arm.txt", "bfdot", "avx512-bf16-fp32"},
        {"data/cpu/qemu-10.0.2-arm.txt", "bfmmla", "arm-bf16-fp32:chunk=4"},
        {"data/cpu/qemu-10.0.2-arm.txt", "bfmmla, FPCR.EBF", "arm-ebf16-fp32:chunk=4"},
        {"data/cpu/qemu-10.0.2-arm.txt", "bfmopa", "arm-ebf16-fp32"},
        {"data/cpu/qemu-10.0.2-arm.txt", "bfmopa, FPCR.EBF", "arm-bf16-fp32"},
        {"data/cpu/qemu-10.0.2-arm.txt", "fmopa", "arm-fmlal-fp32"},
        {"data/cpu/qemu-10.0.2-arm.txt", "fmopa", "arm-fp16-fp32:round=toward-zero"},
    };
    for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++) {
        const size_t n = load(rows, changed[i].file);
        size_t k = 0;
        while (k < n && strcmp(rows[k].t.name, changed[i].row) != 0)
            k++;
        ck_assert_msg(k < n, "%s", changed[i].row);
        cpu_instruction t = rows[k].t;
        t.model = changed[i].model;
        ck_assert_msg(digest_of(&t) != rows[k].digest, "%s: no case tells %s", changed[i].row, changed[i].model);
    }
}

TEST(this_machine)
{
    for (size_t i = 0; verify_cpu_instruction_at(i); i++) {
        const cpu_instruction *t = verify_cpu_instruction_at(i);
        cpu_result r = {0};
        if (!t->here())
            continue;
        ck_assert(verify_cpu_compare(t, test_seed(), 0, test_scaled(4500) / verify_cpu_results(t) + 9, &r));
        ck_assert_msg(r.mismatches == 0, "%s: %s", t->name, r.first);
    }
}

TEST_MAIN("cpu");
