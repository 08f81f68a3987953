/* cpu.c -- see cpu.h. */
#include "cpu.h"

#include "../text/words.h"
#include "kinds.h"

#include <inttypes.h>
#include <mpsim/digest.h>
#include <stdio.h>
#include <string.h>

uint64_t verify_cpu_code(const mpsim_format *f, const void *codes, size_t i)
{
    const unsigned char *p = codes;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (mpsim_format_code_bytes(f)) {
    case 1:
        return p[i];
    case 2:
        memcpy(&u16, p + 2 * i, 2);
        return u16;
    case 4:
        memcpy(&u32, p + 4 * i, 4);
        return u32;
    default:
        memcpy(&u64, p + 8 * i, 8);
        return u64;
    }
}

static void put(const mpsim_format *f, void *codes, size_t i, uint64_t code)
{
    unsigned char *p = codes;
    const uint16_t u16 = (uint16_t)code;
    const uint32_t u32 = (uint32_t)code;
    switch (mpsim_format_code_bytes(f)) {
    case 1:
        p[i] = (unsigned char)code;
        break;
    case 2:
        memcpy(p + 2 * i, &u16, 2);
        break;
    case 4:
        memcpy(p + 4 * i, &u32, 4);
        break;
    default:
        memcpy(p + 8 * i, &code, 8);
    }
}

/* Beside the middle of two numbers of a narrower format: where roundings differ. */
static uint64_t near_middle(const mpsim_format *from, const mpsim_format *to, uint64_t code, uint64_t word)
{
    const int cut = from->mbits - to->mbits;
    if (cut < 2 || word % 3 == 0)
        return code;
    const uint64_t half = (uint64_t)1 << (cut - 1), mask = 2 * half - 1;
    return (code & ~mask) | ((half + word / 3 % 3 - 1) & mask);
}

int verify_cpu_case_make(cpu_case *x, const cpu_instruction *t, uint64_t seed, uint64_t n)
{
    uint64_t state = seed * 0x100000001b3 + n, a[CPU_PRODUCTS], b[CPU_PRODUCTS];
    const int kind = (int)(n % KINDS);
    memset(x, 0, sizeof *x);
    if (mpsim_format_parse(&x->operand, t->operand) != MPSIM_OK ||
        mpsim_format_parse(&x->result, t->result) != MPSIM_OK)
        return 0;
    x->results = verify_cpu_results(t);
    x->products = t->products;
    for (size_t i = 0; i < t->lanes || i < t->rows; i++) {
        verify_kinds_fill(&x->operand, a, &x->operand, b, t->products, &x->result, kind, &state);
        for (size_t k = 0; k < t->products; k++) {
            if (!t->model && t->op == MPSIM_OP_CONVERT)
                a[k] = near_middle(&x->operand, &x->result, a[k], verify_kinds_word(&state));
            if (!t->rows || i < t->rows)
                put(&x->operand, x->a, i * t->products + k, a[k]);
            if (i < t->lanes)
                put(&x->operand, x->b, i * t->products + k, b[k]);
        }
        if (!t->rows)
            put(&x->result, x->d, i, verify_kinds_addend(&x->result, kind, &state));
    }
    for (size_t i = 0; i < x->results; i++) {
        x->a_of[i] = t->rows ? i / t->lanes : i;
        x->b_of[i] = i % t->lanes;
        if (t->rows)
            put(&x->result, x->d, i, verify_kinds_addend(&x->result, kind, &state));
    }
    return 1;
}

/* Result i by an operation. */
static uint64_t operation(const cpu_case *x, const cpu_instruction *t, size_t i)
{
    mpsim_arith o;
    unsigned flags;
    mpsim_arith_init(&o, t->op, &x->operand, t->mode);
    o.result = o.operand[2] = x->result;
    o.rounding.nan = MPSIM_NANS_PAYLOAD;
    o.rounding.flush_input = (t->traits & CPU_FLUSH_INPUT) != 0;
    const uint64_t code = mpsim_arith_apply(&o, verify_cpu_code(&x->operand, x->a, i),
                                            verify_cpu_code(&x->operand, x->b, i), verify_cpu_code(&x->result, x->d, i),
                                            0, &flags);
    return flags & MPSIM_FLAG_INVALID && t->traits & CPU_NAN_MINUS ? code | (uint64_t)1 << (x->result.bits - 1) : code;
}

int verify_cpu_case_expect(const cpu_case *x, const cpu_instruction *t, uint64_t *d)
{
    mpsim_model m;
    const size_t bytes = mpsim_format_code_bytes(&x->operand) * x->products;
    if (t->model && mpsim_model_parse(&m, t->model) != MPSIM_OK)
        return 0;
    for (size_t i = 0; i < x->results; i++) {
        uint64_t code = 0;
        const char *a = (const char *)x->a + x->a_of[i] * bytes, *b = (const char *)x->b + x->b_of[i] * bytes;
        if (!t->model)
            code = operation(x, t, i);
        else if (mpsim_dot(&m, &x->operand, a, &x->operand, b, x->products, verify_cpu_code(&x->result, x->d, i), NULL,
                           &code) != MPSIM_OK)
            return 0;
        put(&x->result, d, i, code);
    }
    return 1;
}

int verify_cpu_case_same(const cpu_case *x, const cpu_instruction *t, const void *got, const void *want, size_t i)
{
    const uint64_t g = verify_cpu_code(&x->result, got, i), w = verify_cpu_code(&x->result, want, i);
    return g == w || (t->traits & CPU_ANY_NAN && mpsim_classify(&x->result, g) == MPSIM_CLASS_NAN &&
                      mpsim_classify(&x->result, w) == MPSIM_CLASS_NAN);
}

static void describe(char *out, size_t size, const cpu_case *x, size_t i, uint64_t n, const void *got, const void *want)
{
    snprintf(out, size, "case %" PRIu64 " (%s), lane %zu: ", n, verify_kinds_name((int)(n % KINDS)), i);
    for (size_t k = 0; k < x->products; k++)
        text_add(out, size, "%s0x%" PRIx64 " 0x%" PRIx64, k ? ", " : "",
                 verify_cpu_code(&x->operand, x->a, x->a_of[i] * x->products + k),
                 verify_cpu_code(&x->operand, x->b, x->b_of[i] * x->products + k));
    text_add(out, size, "; 0x%" PRIx64 ": the CPU gives 0x%" PRIx64 ", mpsim 0x%" PRIx64,
             verify_cpu_code(&x->result, x->d, i), verify_cpu_code(&x->result, got, i),
             verify_cpu_code(&x->result, want, i));
}

int verify_cpu_compare(const cpu_instruction *t, uint64_t seed, uint64_t first, uint64_t n, cpu_result *r)
{
    for (uint64_t number = first; number < first + n; number++) {
        cpu_case x;
        uint64_t got[CPU_LANES], want[CPU_LANES];
        if (!verify_cpu_case_make(&x, t, seed, number) || !verify_cpu_case_expect(&x, t, want))
            return 0;
        memcpy(got, x.d, sizeof got);
        t->execute(got, x.a, x.b);
        for (size_t i = 0; i < x.results; i++)
            if (!verify_cpu_case_same(&x, t, got, want, i) && r->mismatches++ == 0)
                describe(r->first, sizeof r->first, &x, i, number, got, want);
        r->compared += x.results;
        r->digest += mpsim_digest(&x.result, got, x.results, number * x.results);
    }
    return 1;
}

/* ---- records ---- */

void verify_cpu_record_head(FILE *to, const char *cpu)
{
    fprintf(to, "mpsim-cpu/1\ncpu\t%s\n", cpu);
    fputs(
        "# name, feature, what computes it, mode, operand, result, traits, lanes (of a tile rows x columns), products;"
        " digest of the first\n# results with seed 1; all that were compared: seed, results, digest, mismatches. Then what"
        " the first cases gave.\n",
        to);
}

void verify_cpu_record(FILE *to, const cpu_instruction *t, uint64_t seed, const cpu_result *r)
{
    cpu_result brief = {0};
    verify_cpu_compare(t, CPU_RECORD_SEED, 0, CPU_RECORD_RESULTS / verify_cpu_results(t), &brief);
    fprintf(to, "row\t%s\t%s\t%s\t%s\t%s\t%s\t%u\t", t->name, t->feature, t->model ? t->model : mpsim_op_name(t->op),
            mpsim_round_mode_name(t->mode), t->operand, t->result, t->traits);
    if (t->rows)
        fprintf(to, "%zux", t->rows);
    fprintf(to, "%zu\t%zu\t%016" PRIx64 "\t%" PRIu64 "\t%" PRIu64 "\t%016" PRIx64 "\t%" PRIu64 "\n", t->lanes,
            t->products, brief.digest, seed, r->compared, r->digest, r->mismatches);
    for (uint64_t n = 0; n < CPU_RECORD_CASES; n++) {
        cpu_case x;
        uint64_t d[CPU_LANES];
        if (!verify_cpu_case_make(&x, t, CPU_RECORD_SEED, n))
            return;
        memcpy(d, x.d, sizeof d);
        t->execute(d, x.a, x.b);
        for (size_t i = 0; i < x.results && i < CPU_RECORD_CODES; i++)
            fprintf(to, "%s%" PRIx64, i ? " " : "case\t", verify_cpu_code(&x.result, d, i));
        fputc('\n', to);
    }
}
