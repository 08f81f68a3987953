/* functionsjudge.c -- see functionsjudge.h. */
#include "functionsjudge.h"

#include "unit.h"

#include "../../gpu/functions/cases.h"
#include "../../gpu/functions/exact.h"

#include <inttypes.h>
#include <mpsim/mpsim.h>
#include <stdio.h>

/* ---- contradictions ---- */

static gpu_distance measured(const functions_record *r, size_t i)
{
    const gpu_table t = gpu_table_at(i);
    gpu_distance d = {0, 0, 0, 0};
    for (uint32_t k = 0; k < gpu_table_count(&t, &r->tables.extent); k++) {
        int open = 0;
        const uint32_t x = gpu_table_operand(&t, &r->tables.extent, k);
        const uint64_t apart = gpu_codes_apart(r->tables.results[i][k], gpu_exact((gpu_function)t.operation, x, &open),
                                               32);
        d.equal += apart == 0;
        d.one += apart == 1;
        d.two += apart == 2;
        d.largest = apart > d.largest ? apart : d.largest;
    }
    return d;
}

static int same_distance(const functions_record *r, size_t i)
{
    const gpu_table t = gpu_table_at(i);
    if (t.operation >= GPU_FUNCTIONS || !r->has_distances[t.operation])
        return 1;
    const gpu_distance a = measured(r, i), *b = &r->distances[t.operation][t.first >> 23];
    return a.equal == b->equal && a.one == b->one && a.two == b->two && a.largest == b->largest;
}

const char *functions_contradiction(const functions_record *r, char *line)
{
    for (size_t i = 0; i < gpu_tables(); i++) {
        const gpu_table t = gpu_table_at(i);
        const size_t row = t.operation < GPU_FUNCTIONS ? t.first >> 23 : 0;
        const char *what = r->has_digests[t.operation] && r->table_digest[i] &&
                                   r->table_digest[i] != r->digests[t.operation][row].digest
                               ? "digest"
                           : r->tables.results[i] && !same_distance(r, i) ? "distances"
                                                                          : NULL;
        if (what) {
            snprintf(line, FUNCTIONS_LINE, "%s: the table from %08" PRIx32 " and its binade have different %s",
                     gpu_operation_at(t.operation)->name, t.first, what);
            return line;
        }
    }
    return NULL;
}

/* ---- rules ---- */

typedef struct chosen {
    const unit_tables *tables;
    int rule;
} chosen;

static int mufu(const void *of, int function, uint32_t x, uint32_t *y)
{
    const chosen *c = of;
    return unit_rule(c->tables, function, c->rule, x, y);
}

typedef struct score {
    int fit, differ, unknown, first; /* binades; the first that differs */
} score;

/* Of binade k; -1: a result is not known. */
static int sample_of(const functions_record *r, int operation, const chosen *c, uint32_t k, uint64_t *sum)
{
    const gpu_extent *e = &r->tables.extent;
    *sum = 0;
    for (uint32_t i = 0; i < gpu_extent_count(e); i += e->sample_step) {
        uint32_t y;
        const uint32_t x = k << 23 | i << e->shift;
        if (test_around_mufu(operation, x, 0, mufu, c, &y))
            return -1;
        *sum += mpsim_mix(x, y);
    }
    return 0;
}

static int sample_of_pairs(const functions_record *r, int operation, const chosen *c, uint32_t kind, uint64_t *sum)
{
    const gpu_extent *e = &r->tables.extent;
    *sum = 0;
    for (uint32_t i = 0; i < e->pairs; i += e->sample_step) {
        uint32_t a, b, y;
        gpu_function_pair((int)kind, e->shift, i, &a, &b);
        if (test_around_mufu(operation, a, b, mufu, c, &y))
            return -1;
        *sum += mpsim_mix(i, y);
    }
    return 0;
}

static score scored(const functions_record *r, int operation, const chosen *c)
{
    const int is_pair = gpu_operation_at(operation)->shape == GPU_BINARY;
    score s = {0, 0, 0, -1};
    for (uint32_t k = 0; k < (is_pair ? 2 : GPU_BINADES); k++) {
        uint64_t sum;
        const int lacks = (is_pair ? sample_of_pairs : sample_of)(r, operation, c, k, &sum);
        const int same = !lacks && sum == r->digests[operation][k].sample;
        s.unknown += lacks != 0;
        s.fit += same;
        s.differ += !lacks && !same;
        if (!lacks && !same && s.first < 0)
            s.first = (int)k;
    }
    return s;
}

static int is_better(score a, score b)
{
    return a.differ != b.differ ? a.differ < b.differ : a.fit > b.fit;
}

static int function_of(int operation)
{
    static const int plain[] = {GPU_EX2, GPU_RCP, GPU_RSQRT, GPU_LG2, GPU_SIN, GPU_COS, GPU_SQRT};
    return operation < GPU_FUNCTIONS ? operation : operation < 15 ? plain[operation - GPU_FUNCTIONS] : GPU_RCP;
}

/* By the function's rules one after the other: the one that fits best. */
static int answer_wide(const functions_record *r, int operation, char *line)
{
    const int function = function_of(operation), is_pair = gpu_operation_at(operation)->shape == GPU_BINARY;
    score best = {0, GPU_BINADES + 1, 0, -1};
    const char *name = "";
    for (int rule = 0; unit_rule_name(function, rule); rule++) {
        const chosen c = {&r->tables, rule};
        const score s = scored(r, operation, &c);
        if (is_better(s, best)) {
            best = s;
            name = unit_rule_name(function, rule);
        }
    }
    const int n = snprintf(line, FUNCTIONS_LINE, "%s by %s: %d %s equal, %d differ, %d follow from no table",
                           best.differ || !best.fit ? "none fits; best" : "fits", name, best.fit,
                           is_pair ? "samples of pairs" : "binades", best.differ, best.unknown);
    if (best.differ)
        snprintf(line + n, FUNCTIONS_LINE - (size_t)n, "; first %s %03x", is_pair ? "sample" : "binade", best.first);
    return 1;
}

/* ---- 16 bits ---- */

static uint32_t widened(int is_bf16, uint32_t x)
{
    const mpsim_format *f = mpsim_format_find(is_bf16 ? "bf16" : "fp16");
    const float y = (float)mpsim_decode(f, x);
    uint32_t code;
    memcpy(&code, &y, sizeof code);
    return code;
}

static uint32_t narrowed(int is_bf16, uint32_t y, mpsim_round_mode mode)
{
    mpsim_rounding r;
    float x;
    memcpy(&x, &y, sizeof x);
    mpsim_rounding_init(&r, mode);
    r.overflow = MPSIM_OVERFLOW_INF;
    if (x != x)
        return 0x7fff;
    return (uint32_t)mpsim_encode_f32(mpsim_format_find(is_bf16 ? "bf16" : "fp16"), &r, x, 0, NULL);
}

/* Results of 16 bits that are those of binary32, rounded; of all that are known. */
static int equal_halves(const functions_record *r, size_t table, int rule, mpsim_round_mode mode, int *known)
{
    const int operation = gpu_table_at(table).operation, function = operation & 1 ? GPU_EX2 : GPU_TANH;
    int equal = 0;
    *known = 0;
    for (uint32_t x = 0; x < 1 << 16; x++) {
        uint32_t y;
        if (unit_rule(&r->tables, function, rule, widened(operation >= 17, x), &y))
            continue;
        ++*known;
        equal += narrowed(operation >= 17, y, mode) == r->tables.results[table][x];
    }
    return equal;
}

static int answer_half(const functions_record *r, int operation, char *line)
{
    size_t table = 0;
    int best = -1, of = 0;
    const char *name = "", *how = "";
    while (gpu_table_at(table).operation != operation)
        table++;
    if (!r->tables.results[table])
        return 0;
    for (int k = 0; k < 6; k++) {
        const int rule = k / 2, function = operation & 1 ? GPU_EX2 : GPU_TANH;
        const mpsim_round_mode mode = k & 1 ? MPSIM_ROUND_TOWARD_ZERO : MPSIM_ROUND_NEAREST_EVEN;
        int known;
        const int equal = unit_rule_name(function, rule) ? equal_halves(r, table, rule, mode, &known) : -1;
        if (equal > best) {
            best = equal;
            of = known;
            name = unit_rule_name(function, rule);
            how = k & 1 ? "cut" : "to nearest";
        }
    }
    snprintf(line, FUNCTIONS_LINE, "%s that of binary32, rounded %s, by %s: %d of %d codes that are known",
             best == of && of ? "fits" : "none fits; best", how, name, best, of);
    return 1;
}

static int answer_packed(const functions_record *r, int operation, char *line)
{
    const int alone = gpu_operation_at(operation)->alone;
    const uint64_t one = r->digests[alone][0].digest;
    const int same = r->digests[operation][0].digest == one && r->digests[operation][1].digest == one;
    snprintf(line, FUNCTIONS_LINE, "%s %s of each half", same ? "fits" : "none fits; not",
             gpu_operation_at(alone)->name);
    return r->has_digests[alone];
}

int functions_answer(const functions_record *r, int operation, char *line)
{
    static int (*const answers[])(const functions_record *r, int operation, char *line) = {
        [GPU_UNARY] = answer_wide, [GPU_HALF] = answer_half, [GPU_PACKED] = answer_packed, [GPU_BINARY] = answer_wide};
    return r->has_digests[operation] && answers[gpu_operation_at(operation)->shape](r, operation, line);
}
