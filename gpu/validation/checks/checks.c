/* checks.c -- the table of checks; see checks.h. */
#include "checks.h"

#include "cases.h"
#include "doubles.h"
#include "instructions.h"
#include "reference.h"
#include "variants.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- conversions and arithmetic ---- */

typedef struct scalar_row {
    const char *name;
    int instruction, since, op;
    const char *operands, *result;
    int mode, inputs, log_count, expected, question;
} scalar_row;

enum { RN = MPSIM_ROUND_NEAREST_EVEN, RZ = MPSIM_ROUND_TOWARD_ZERO, RNA = MPSIM_ROUND_NEAREST_AWAY };

#define CONVERT(name, instruction, since, to, mode, expected, question)                                              \
    {                                                                                                                \
        "convert " name, GPU_CVT_##instruction, since, MPSIM_OP_CONVERT, "binary32", to, mode, GPU_INPUTS_EVERY, 32, \
            expected, question                                                                                       \
    }
#define PAIRS(what, OP, format, F)                                                                                  \
    {                                                                                                               \
        what " " format, GPU_ARITH_##F, 80, MPSIM_OP_##OP, format, format, RN, GPU_INPUTS_EVERY, 32, GPU_ROUNDED, 0 \
    }
#define TRIPLES(what, OP, format, F)                                                                                  \
    {                                                                                                                 \
        what " " format, GPU_ARITH_##F, 80, MPSIM_OP_##OP, format, format, RN, GPU_INPUTS_TRIPLES, 30, GPU_ROUNDED, 0 \
    }

/* NaNs are compared bit by bit; cvt.rna.tf32 gives the NaNs of MPSIM_NANS_ONES_OR_CUT. */
static const scalar_row scalar_rows[] = {
    CONVERT("fp16", RN_F16, 80, "fp16", RN, GPU_ROUNDED, 0),
    CONVERT("fp16 toward-zero", RZ_F16, 80, "fp16", RZ, GPU_ROUNDED, 0),
    CONVERT("bf16", RN_BF16, 80, "bf16", RN, GPU_ROUNDED, 0),
    CONVERT("bf16 toward-zero", RZ_BF16, 80, "bf16", RZ, GPU_ROUNDED, 0),
    CONVERT("tf32 nearest-away", RNA_TF32, 80, "tf32", RNA, GPU_ROUNDED, 0),
    CONVERT("tf32", RN_TF32, 90, "tf32", RN, GPU_ROUNDED, 0),
    CONVERT("tf32 toward-zero", RZ_TF32, 90, "tf32", RZ, GPU_ROUNDED, 0),
    CONVERT("e4m3", RN_E4M3, 89, "e4m3", RN, GPU_ROUNDED, 0),
    CONVERT("e5m2", RN_E5M2, 89, "e5m2", RN, GPU_ROUNDED, 0),
    PAIRS("add", ADD, "fp16", F16),
    PAIRS("sub", SUB, "fp16", F16),
    PAIRS("mul", MUL, "fp16", F16),
    PAIRS("div", DIV, "fp16", F16),
    TRIPLES("fma", FMA, "fp16", F16),
    PAIRS("add", ADD, "bf16", BF16),
    PAIRS("sub", SUB, "bf16", BF16),
    PAIRS("mul", MUL, "bf16", BF16),
    PAIRS("div", DIV, "bf16", BF16),
    TRIPLES("fma", FMA, "bf16", BF16),
    TRIPLES("add", ADD, "binary32", F32),
    TRIPLES("sub", SUB, "binary32", F32),
    TRIPLES("mul", MUL, "binary32", F32),
    TRIPLES("fma", FMA, "binary32", F32),
    TRIPLES("div", DIV, "binary32", F32),
    TRIPLES("sqrt", SQRT, "binary32", F32),
    CONVERT("tf32 nearest-away, the bits below", RNA_TF32_REST, 80, "tf32", RNA, GPU_ZERO, 1),
    CONVERT("tf32, the bits below", RN_TF32_REST, 90, "tf32", RN, GPU_ZERO, 1),
    CONVERT("tf32 toward-zero, the bits below", RZ_TF32_REST, 90, "tf32", RZ, GPU_ZERO, 1),
};
enum { SCALARS = sizeof scalar_rows / sizeof scalar_rows[0] };

static void fill_scalar(gpu_scalar *s, const scalar_row *r, size_t i)
{
    const mpsim_format *operand = mpsim_format_find(r->operands);
    const mpsim_format *result = mpsim_format_find(r->result);
    s->instruction = r->instruction;
    s->inputs = r->inputs;
    s->expected = r->expected;
    s->unit = r->instruction >= GPU_ARITH_F16 ? GPU_UNIT_ARITH : GPU_UNIT_CONVERT;
    s->stream = i;
    s->o.op = (mpsim_op)r->op;
    s->o.result = *result;
    s->o.operand[0] = s->o.operand[1] = s->o.operand[2] = *operand;
    mpsim_rounding_preset(&s->o.rounding, mpsim_preset_find("cuda"), result);
    s->o.rounding.mode = (uint8_t)r->mode;
}

/* ---- dot products ---- */

static const char *const distributions[] = {"random", "normal", "relu", "wide", "cancel", "tiny", "dirty"};

static int is_tf32(const gpu_instruction *in)
{
    return strcmp(in->a, "tf32") == 0;
}

/* wgmma and mma.sync on the same inputs: P9. */
static const struct {
    int one, other;
} same_rows[] = {{GPU_WGMMA_F16, GPU_MMA_K16_F16},
                 {GPU_WGMMA_F16F16, GPU_MMA_K16_F16F16},
                 {GPU_WGMMA_BF16, GPU_MMA_K16_BF16},
                 {GPU_WGMMA_TF32, GPU_MMA_K8_TF32}};
enum { SAME = sizeof same_rows / sizeof same_rows[0] };

/* ---- checks ---- */

static int is_plain(int instruction)
{
    const gpu_instruction *in = gpu_instruction_at(instruction);
    return in && in->family != GPU_DMMA;
}

/* Dot products number i: which instruction, inputs and other instruction. */
static int find_dots(size_t i, int *instruction, int *distribution, int *same_as)
{
    for (int n = 0; is_plain(n); n++) {
        const size_t d = GPU_DISTRIBUTIONS - !is_tf32(gpu_instruction_at(n));
        *instruction = n;
        *distribution = (int)i;
        *same_as = -1;
        if (i < d)
            return 1;
        i -= d;
    }
    if (i >= SAME)
        return 0;
    *instruction = same_rows[i].one;
    *same_as = same_rows[i].other;
    *distribution = GPU_RANDOM;
    return 1;
}

static size_t count_dots(void)
{
    size_t n = SAME;
    for (int i = 0; is_plain(i); i++)
        n += (size_t)(GPU_DISTRIBUTIONS - !is_tf32(gpu_instruction_at(i)));
    return n;
}

/* About `least` outputs of the sample, 17 times as many of the large one; odd steps, so that all
 * places of a tile take part. */
static void set_sample(gpu_check *c, uint64_t least)
{
    const uint64_t step = c->count / (17 * least);
    c->large_step = step > 1 ? step | 1 : 1;
    c->sample_step = 17 * c->large_step;
}

/* Conversions and reductions that came later: behind the dot products, and before variants. */
static size_t count_later(void)
{
    return gpu_cvt_count() + gpu_reduction_count();
}

/* Conversions and arithmetic, then, behind the dot products, what came later. */
static int fill_scalar_check(gpu_check *c, size_t i, int *log_count)
{
    if (i >= SCALARS) {
        const size_t later = i - SCALARS - count_dots(), cvts = gpu_cvt_count();
        return later < cvts ? gpu_cvt_fill(c, later, log_count) : gpu_reduction_fill(c, later - cvts, log_count);
    }
    const scalar_row *r = &scalar_rows[i];
    snprintf(c->name, sizeof c->name, "%s", r->name);
    c->since = r->since;
    c->question = r->question;
    *log_count = r->log_count;
    fill_scalar(&c->scalar, r, i);
    return 1;
}

static int scalar_check_at(gpu_check *c, size_t i, int sm, int quick)
{
    int log_count;
    if (!fill_scalar_check(c, i, &log_count))
        return 0;
    c->count = (uint64_t)1 << (quick == GPU_RUN_TINY ? 12 : log_count - (quick ? 10 : 0));
    set_sample(c, 8192);
    return sm >= c->since ? 1 : -1;
}

static int variant_at(gpu_check *c, size_t i, int sm, int quick)
{
    const int found = gpu_variant_check(c, i, sm, quick);
    if (found)
        set_sample(c, 1024);
    return found;
}

int gpu_check_at(gpu_check *c, size_t i, int sm, int quick)
{
    memset(c, 0, sizeof *c);
    int instruction, distribution, same_as;
    char name[48];
    if (i < SCALARS || !find_dots(i - SCALARS, &instruction, &distribution, &same_as)) {
        const int found = scalar_check_at(c, i, sm, quick);
        return found ? found : variant_at(c, i - SCALARS - count_dots() - count_later(), sm, quick);
    }
    const gpu_instruction *in = gpu_instruction_at(instruction);
    gpu_instruction_name(in, name, sizeof name);
    if (same_as < 0)
        snprintf(c->name, sizeof c->name, "%s %s", name, distributions[distribution]);
    else
        snprintf(c->name, sizeof c->name, "%s as mma.sync", name);
    c->is_dots = 1;
    c->since = in->since;
    c->count = (uint64_t)1 << (quick == GPU_RUN_TINY ? 10 : quick ? 14 : 24);
    set_sample(c, 1024);
    if (gpu_dots_fill(&c->dots, sm, instruction, distribution) != 0)
        return -1;
    c->dots.same_as = same_as;
    if (same_as >= 0)
        c->dots.stream += 1000000;
    return 1;
}

void gpu_check_group(size_t i, char *to, size_t size)
{
    gpu_check c;
    int instruction, distribution, same_as;
    (void)gpu_check_at(&c, i, 0, GPU_RUN_TINY);
    if (c.is_dots && find_dots(i - SCALARS, &instruction, &distribution, &same_as))
        gpu_instruction_name(gpu_instruction_at(instruction), to, size);
    else
        snprintf(to, size, "%s", c.name);
}

/* ---- the CPU's answer ---- */

typedef struct dot_case {
    uint32_t a[GPU_MOST_DEPTH], b[GPU_MOST_DEPTH], c;
} dot_case;

static void fill_dot(dot_case *x, const gpu_dots *j, uint64_t index)
{
    const uint64_t tile = index / gpu_tile_outputs(j);
    const int place = (int)(index % gpu_tile_outputs(j));
    const int row = place / j->columns, column = place % j->columns;
    for (int k = 0; k < j->k; k++) {
        x->a[k] = gpu_operand(j, tile, 0, row, k);
        x->b[k] = gpu_operand(j, tile, 1, column, gpu_chosen(j, tile, row, k));
    }
    x->c = gpu_addend(j, tile, row, column);
}

/* Codes as arrays of mpsim_format_code_bytes each, with the other sign if `negated`. */
static void pack(void *to, const mpsim_format *f, const uint32_t *codes, int n, int negated)
{
    const size_t bytes = mpsim_format_code_bytes(f);
    for (int i = 0; i < n; i++) {
        const uint32_t code = codes[i] ^ (uint32_t)mpsim_sign_bit(f, negated);
        const uint8_t byte = (uint8_t)code;
        const uint16_t half = (uint16_t)code;
        const void *from = bytes == 1 ? (const void *)&byte : bytes == 2 ? (const void *)&half : (const void *)&code;
        memcpy((char *)to + (size_t)i * bytes, from, bytes);
    }
}

static uint64_t model_dot(const mpsim_model *m, const gpu_dots *j, const dot_case *x)
{
    uint32_t a[GPU_MOST_DEPTH], b[GPU_MOST_DEPTH];
    uint64_t d = 0;
    pack(a, &j->a, x->a, j->k, j->variant.negate_a);
    pack(b, &j->b, x->b, j->k, j->variant.negate_b);
    return mpsim_dot(m, &j->a, a, &j->b, b, (size_t)j->k, x->c, NULL, &d) == MPSIM_OK ? d : ~(uint64_t)0;
}

/* The model that was copied into the sum. */
static void model_of_sum(mpsim_model *m, const gpu_dots *j)
{
    memset(m, 0, sizeof *m);
    m->addition = MPSIM_ADDITION_FUSED;
    m->order = j->sum.quads ? MPSIM_ORDER_QUADS : MPSIM_ORDER_SEQUENTIAL;
    m->alignment = (uint8_t)j->sum.alignment;
    m->normalised = (uint8_t)j->sum.normalised;
    m->length = (uint8_t)j->sum.length;
    m->fraction = (uint8_t)j->sum.fraction;
    m->floor = (int16_t)j->sum.floor;
    m->operand_emin = (int16_t)j->sum.operand_emin;
    m->chunk = (uint32_t)j->sum.chunk;
    m->product = j->sum.result;
    m->accumulator = j->sum.accumulator;
    m->outer = j->sum.outer;
    m->result = j->sum.result;
}

/* Where output `index` of a result of two outputs is. */
static uint64_t double_place(const gpu_dots *j, uint64_t index, int *row, int *column)
{
    const int place = (int)(index % gpu_tile_outputs(j)) / 2;
    *row = place / j->columns;
    *column = place % j->columns;
    return index / gpu_tile_outputs(j);
}

/* By the row of the model, which is that of every architecture. */
static uint32_t double_reference(const gpu_dots *j, uint64_t index)
{
    uint64_t a[GPU_DEPTH], b[GPU_DEPTH], d = 0;
    int row, column;
    const uint64_t tile = double_place(j, index, &row, &column);
    mpsim_model m;
    for (int k = 0; k < j->k; k++) {
        a[k] = gpu_double_operand(j, tile, 0, row, k);
        b[k] = gpu_double_operand(j, tile, 1, column, k);
    }
    if (mpsim_model_parse(&m, "hopper-fp64") != MPSIM_OK ||
        mpsim_dot(&m, &j->a, a, &j->b, b, (size_t)j->k, gpu_double_addend(j, tile, row, column), NULL, &d) != MPSIM_OK)
        return ~0u;
    return gpu_double_word(d, (int)(index & 1));
}

uint64_t gpu_check_reference(const gpu_check *c, uint64_t index)
{
    if (!c->is_dots) {
        const gpu_scalar *s = &c->scalar;
        uint32_t in[3];
        uint64_t code;
        gpu_scalar_case(s, index, in);
        if (!gpu_scalar_given(s, in, &code))
            code = mpsim_arith_apply(&s->o, gpu_scalar_operand(s, in, 0), in[1], in[2], 0, NULL);
        return gpu_scalar_is_asked(s, in, code) ? code : 0;
    }
    mpsim_model m;
    dot_case x;
    if (c->dots.words == 2)
        return double_reference(&c->dots, index);
    model_of_sum(&m, &c->dots);
    fill_dot(&x, &c->dots, index);
    return model_dot(&m, &c->dots, &x);
}

/* ---- words ---- */

typedef struct text {
    char *at;
    size_t left;
} text;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
put(text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(t->at, t->left, format, list);
    va_end(list);
    const size_t used = n < 0 ? 0 : (size_t)n < t->left ? (size_t)n : t->left - 1;
    t->at += used;
    t->left -= used;
}

static void put_code(text *t, const mpsim_format *f, uint64_t code)
{
    put(t, "0x%0*" PRIx64, (f->bits + 3) / 4, code);
}

static void put_value(text *t, const char *what, const mpsim_format *f, uint64_t code)
{
    put(t, "%s ", what);
    put_code(t, f, code);
    put(t, " (%a)", mpsim_decode(f, code));
}

static void put_codes(text *t, const char *what, const uint32_t *codes, int n)
{
    put(t, "%s", what);
    for (int i = 0; i < n; i++)
        put(t, " %" PRIx32, codes[i]);
}

static void describe_double(text *t, const gpu_dots *j, uint64_t index, uint64_t hardware, uint64_t reference)
{
    int row, column;
    const uint64_t tile = double_place(j, index, &row, &column);
    put(t, "%s word: hardware 0x%08" PRIx64 ", reference 0x%08" PRIx64 "; c %" PRIx64 "; a, b",
        index & 1 ? "high" : "low", hardware, reference, gpu_double_addend(j, tile, row, column));
    for (int k = 0; k < j->k; k++)
        put(t, " %" PRIx64 " %" PRIx64, gpu_double_operand(j, tile, 0, row, k),
            gpu_double_operand(j, tile, 1, column, k));
}

void gpu_check_describe(const gpu_check *c, uint64_t index, uint64_t hardware, char *to, size_t size)
{
    text t = {to, size};
    const uint64_t reference = gpu_check_reference(c, index);
    if (size == 0)
        return;
    if (!c->is_dots) {
        const gpu_scalar *s = &c->scalar;
        static const char *const names[] = {"a", ", b", ", c"};
        uint32_t in[3];
        gpu_scalar_case(s, index, in);
        for (int i = 0; i < mpsim_op_operands(s->o.op); i++)
            put_value(&t, names[i], &s->o.operand[i], gpu_scalar_operand(s, in, i));
        put_value(&t, ": hardware", &s->o.result, hardware);
        put_value(&t, ", reference", &s->o.result, reference);
        return;
    }
    const gpu_dots *j = &c->dots;
    const mpsim_format *d = &j->sum.result.format;
    dot_case x;
    if (j->words == 2) {
        describe_double(&t, j, index, hardware, reference);
        return;
    }
    fill_dot(&x, j, index);
    /* what a check of two instructions compares with is another one, which is not run again here */
    put_value(&t, "hardware", d, hardware);
    put_value(&t, j->same_as >= 0 ? ", model (not what was compared)" : ", reference", d, reference);
    put_value(&t, "; c", d, x.c);
    put_codes(&t, "; a", x.a, j->k);
    put_codes(&t, "; b", x.b, j->k);
}

const char *gpu_check_name(size_t i)
{
    static char names[4][64];
    static unsigned turn;
    gpu_check c;
    if (gpu_check_at(&c, i, 0, 1) == 0)
        return NULL;
    char *name = names[turn++ % 4];
    memcpy(name, c.name, sizeof c.name);
    return name;
}

/* ---- the model's answer to a probe ---- */

int gpu_probe_reference(const gpu_probe *p, int instruction, int sm, uint32_t *d)
{
    const gpu_instruction *in = gpu_instruction_at(instruction);
    mpsim_model m;
    gpu_dots j;
    dot_case x;
    if (gpu_model(&m, sm, in) != 0)
        return -1;
    memset(&j, 0, sizeof j);
    j.a = *mpsim_format_find(in->a);
    j.b = *mpsim_format_find(in->b);
    j.k = in->k;
    memset(&x, 0, sizeof x);
    memcpy(x.a, p->a, sizeof p->a);
    memcpy(x.b, p->b, sizeof p->b);
    x.c = p->c;
    *d = (uint32_t)model_dot(&m, &j, &x);
    return 0;
}
