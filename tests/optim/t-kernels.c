/* t-kernels.c -- every instruction set gives the bits of the scalar code: steps of every variant,
 * algorithm, store and option, binary64 steps, gradients; odd lengths, alignments and values, NaNs
 * with their payloads. */
#include "support/optiminput.h"
#include "support/support.h"

#include <inttypes.h>
#include <mpsim/gradient.h>
#include <mpsim/isa.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 2200, ARRAYS = 6, ODD = 7 };

static const size_t lengths[] = {1, 3, 15, 16, 17, 31, 33, 47, 64, 100, 111, 255, 1041, MOST};

typedef struct set {
    float x[ARRAYS][MOST + 2 * ODD]; /* param, grad, m, v, vmax, kahan */
    double y[ARRAYS][MOST + 2 * ODD];
} set;

static set input, want, got;

static float bits(uint32_t u)
{
    return f32_of_bits(u);
}

/* Values as they come; one of `odd` elements is an edge, of `nans` a NaN. */
static float value(uint64_t *random, int which, unsigned odd, unsigned nans)
{
    static const uint32_t edges[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff,
                                     0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f800000, 0x1f800000,
                                     0x7f800000, 0xff800000, 0x60000000, 0x33800000};
    static const uint32_t payloads[] = {0x7fc00000, 0xffc00000, 0x7fc12345, 0x7f812345, 0xffabcdef};
    const uint64_t r = test_random(random);
    if (nans && r % nans == 0)
        return bits(payloads[r / nans % (sizeof payloads / sizeof *payloads)]);
    uint32_t u = (uint32_t)(r >> 32) & 0x807fffff;
    u |= (uint32_t)(100 + r % 28) << 23;
    if (odd && r / 64 % odd == 0)
        u = edges[r / 64 / odd % (sizeof edges / sizeof *edges)];
    return bits(which == 3 || which == 4 ? u & 0x7fffffff : u); /* second moments have no sign */
}

/* The first n elements. */
static void fill(const mpsim_optim *o, size_t n, uint64_t *random)
{
    static const unsigned rates[][2] = {{0, 0}, {9, 0}, {50, 700}, {5, 11}, {0, 40}};
    const size_t pick = test_random(random) % (sizeof rates / sizeof *rates);
    mpsim_rounding nearest;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    for (int k = 0; k < ARRAYS; k++) {
        for (size_t i = 0; i < n; i++) {
            input.x[k][i] = value(random, k, rates[pick][0], rates[pick][1]);
            input.y[k][i] = (double)input.x[k][i] * 1.0000000001;
        }
        const mpsim_format *f = k >= 2 && k <= 4 ? &o->state : &o->param;
        if (f->mbits != 23) /* of binary32, NaNs keep their bits */
            mpsim_round_array_f32(f, &nearest, NULL, input.x[k], input.x[k], n, NULL);
    }
}

/* One step of n elements at an odd place, by an instruction set. */
static void run(const char *isa, const mpsim_optim *o, uint64_t step, size_t at, size_t n, set *s)
{
    const mpsim_rng rng = {7, 11, 5};
    const mpsim_optim_tensor t = {
        s->x[0] + at, s->x[1] + at, s->x[2] + at, s->x[3] + at, s->x[4] + at, s->x[5] + at, n};
    for (int k = 0; k < ARRAYS; k++) {
        memcpy(s->x[k], input.x[k], (at + n + ODD) * sizeof *s->x[k]);
        memcpy(s->y[k], input.y[k], (at + n + ODD) * sizeof *s->y[k]);
    }
    ck_assert_int_eq(mpsim_isa_use(isa), MPSIM_OK);
    ck_assert_int_eq(mpsim_optim_step(o, step, &t, &rng), MPSIM_OK);
    ck_assert_int_eq(
        mpsim_optim_reference(o, step, s->y[0] + at, s->y[1] + at, s->y[2] + at, s->y[3] + at, s->y[4] + at, n),
        MPSIM_OK);
}

static void compare(const char *isa, const mpsim_optim *o, uint64_t step, size_t n)
{
    static const char *const names[ARRAYS] = {"param", "grad", "m", "v", "vmax", "kahan"};
    for (int k = 0; k < ARRAYS; k++) {
        if (memcmp(want.x[k], got.x[k], n * sizeof *want.x[k]) == 0 &&
            memcmp(want.y[k], got.y[k], n * sizeof *want.y[k]) == 0)
            continue;
        for (size_t i = 0; i < n; i++) {
            const uint32_t a = bits_of_f32(want.x[k][i]), b = bits_of_f32(got.x[k][i]);
            ck_assert_msg(a == b && memcmp(&want.y[k][i], &got.y[k][i], sizeof(double)) == 0,
                          "%s, %s %s in %s/%s store %d, step %" PRIu64 ", %zu elements: %s[%zu] is "
                          "%08x, expected %08x; in binary64 %a, expected %a; wd %g momentum %g "
                          "damp %g nesterov %d amsgrad %d maximize %d scale %g",
                          isa, o->variant->name, mpsim_optim_name(o->algorithm), o->param.name, o->state.name, o->store,
                          step, n, names[k], i, b, a, got.y[k][i], want.y[k][i], o->weight_decay, o->momentum,
                          o->dampening, o->nesterov, o->amsgrad, o->maximize, o->grad_scale);
        }
    }
}

/* The instruction sets beside the scalar code, which this machine has. */
static const char *isa_at(size_t *i)
{
    for (const char *name; (name = mpsim_isa_at(*i)) != NULL;) {
        ++*i;
        if (strcmp(name, "scalar") != 0 && mpsim_isa_use(name) == MPSIM_OK)
            return name;
    }
    return NULL;
}

static uint64_t compare_all(const mpsim_optim *o, uint64_t *random)
{
    const uint64_t step = steps[test_random(random) % STEPS];
    const size_t n = lengths[test_random(random) % (sizeof lengths / sizeof *lengths)];
    const size_t at = test_random(random) % ODD;
    size_t i = 0;
    fill(o, at + n + ODD, random);
    run("scalar", o, step, at, n, &want);
    for (const char *isa; (isa = isa_at(&i)) != NULL;) {
        run(isa, o, step, at, n, &got);
        compare(isa, o, step, at + n + ODD);
    }
    return n;
}

CASE("kernels", 120);

TESTS(steps_of_every_variant, mpsim_optim_variant_count())
{
    enum { PAIRS = 9 };
    static const char *const pairs[PAIRS][2] = {
        {"binary32", "binary32"}, {"bf16", "bf16"}, {"bf16", "binary32"},     {"binary32", "bf16"},
        {"fp16", "fp16"},         {"e4m3", "e4m3"}, {"e4m3fnuz", "e5m2fnuz"}, {"e7m3:ieee:bias=20", "e3m4"},
        {"bf16", "fp16"}};
    const mpsim_optim_variant *v = mpsim_optim_variant_at((size_t)_i);
    const char *before = mpsim_isa_active();
    uint64_t random = test_seed() + 31 * (uint64_t)_i, elements = 0, configurations = 0;
    for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++)
        for (unsigned k = 0; k < PAIRS * 3 * 32; k++) {
            mpsim_optim o;
            mpsim_optim_init(&o, (mpsim_optim_algorithm)a, v);
            numbers(&o, k % 32, &random);
            const char *const *formats = pairs[k / 32 % PAIRS];
            ck_assert_int_eq(mpsim_format_parse(&o.param, formats[0]), MPSIM_OK);
            ck_assert_int_eq(mpsim_format_parse(&o.state, formats[1]), MPSIM_OK);
            o.store = (uint8_t)(k / 32 / PAIRS);
            if (strncmp(v->name, "optimi", 6) == 0 && o.dampening != 0)
                o.dampening = o.momentum; /* a switch there */
            if (mpsim_optim_check(&o) != MPSIM_OK || (configurations && !test_in_part(k + k / 32 + (size_t)a, 1)))
                continue;
            configurations++;
            for (size_t i = 0; i < test_scaled(k / 32 % PAIRS == 0 ? 3 : 1); i++)
                elements += compare_all(&o, &random);
        }
    printf("# %s: %" PRIu64 " configurations, %" PRIu64 " elements\n", v->name, configurations, elements);
    ck_assert_int_eq(mpsim_isa_use(before), MPSIM_OK);
    ck_assert_uint_gt(configurations, 0);
}

/* Of a fused CUDA kernel an element's bits depend on which of its thread's four the element is: as the place in four says where
 * the length is a multiple of four, else the 512. */
TESTS(four_of_a_thread, test_isa_count())
{
    static float x[MOST + 2 * ODD], g[MOST + 2 * ODD];
    const size_t n = MOST - 1;
    uint64_t random = test_seed();
    mpsim_optim o;
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, mpsim_optim_variant_find("torch-fused-c"));
    o.grad_scale = 7;
    for (size_t i = 0; i < n; i++)
        input.x[0][i] = x[i] = value(&random, 0, 0, 0), input.x[1][i] = g[i] = value(&random, 1, 0, 0);
    const mpsim_optim_tensor t = {x, g, NULL, NULL, NULL, NULL, n};
    const char *before = mpsim_isa_active();
    if (!test_isa_use((size_t)_i))
        return;
    ck_assert_int_eq(mpsim_optim_step(&o, 1, &t, NULL), MPSIM_OK);
    ck_assert_int_eq(mpsim_isa_use(before), MPSIM_OK);
    for (size_t i = 0; i < n; i++) {
        float four[4] = {0}, of[4] = {0};
        four[i / 512 % 4] = input.x[0][i], of[i / 512 % 4] = input.x[1][i];
        const mpsim_optim_tensor one = {four, of, NULL, NULL, NULL, NULL, 4};
        ck_assert_int_eq(mpsim_optim_step(&o, 1, &one, NULL), MPSIM_OK);
        ck_assert_msg(bits_of_f32(four[i / 512 % 4]) == bits_of_f32(x[i]), "element %zu", i);
    }
}

/* ---- gradients ---- */

typedef struct outcome {
    float y[MOST + 2 * ODD];
    unsigned found;
    float norm;
} outcome;

static void unscale(const char *isa, mpsim_unscale_rule rule, double scale, const mpsim_format *f, size_t at, size_t n,
                    outcome *out)
{
    memset(out, 0, sizeof *out);
    ck_assert_int_eq(mpsim_isa_use(isa), MPSIM_OK);
    out->found = mpsim_unscale_array(rule, scale, f, out->y + at, input.x[1] + at, n);
    out->norm = mpsim_norm(f, input.x[1] + at, n);
}

TEST(unscale_and_norm)
{
    static const double scales[] = {1, 65536, 3, 0x1p-20, 0x1p149, 0x1p-149, 1e-300, INFINITE, 0};
    static outcome a, b;
    const char *before = mpsim_isa_active();
    uint64_t random = test_seed() + 77;
    mpsim_optim o;
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, mpsim_optim_variant_find("ieee"));
    for (size_t k = 0; k < test_scaled(400); k++) {
        const mpsim_format *f = k % 3 == 0 ? NULL : optim_format(k % 3 == 1 ? BF16 : FP16);
        const double scale = scales[test_random(&random) % (sizeof scales / sizeof *scales)];
        const mpsim_unscale_rule rule = (mpsim_unscale_rule)(test_random(&random) % 3);
        const size_t n = lengths[test_random(&random) % (sizeof lengths / sizeof *lengths)];
        const size_t at = test_random(&random) % ODD;
        size_t i = 0;
        fill(&o, n + 2 * ODD, &random);
        unscale("scalar", rule, scale, f, at, n, &a);
        for (const char *isa; (isa = isa_at(&i)) != NULL;) {
            unscale(isa, rule, scale, f, at, n, &b);
            ck_assert_msg(
                memcmp(a.y, b.y, sizeof a.y) == 0 && a.found == b.found && bits_of_f32(a.norm) == bits_of_f32(b.norm),
                "%s: rule %d, scale %a, %zu elements of %s: found %u, expected %u; norm "
                "%a, expected %a",
                isa, rule, scale, n, f ? f->name : "binary32", b.found, a.found, (double)b.norm, (double)a.norm);
        }
    }
    ck_assert_int_eq(mpsim_isa_use(before), MPSIM_OK);
}

/* Squares from 2^-298 to 2^256 in an array, few bits and many: the sum has to be exact. */
TEST(norm_of_all_magnitudes)
{
    const char *before = mpsim_isa_active();
    uint64_t random = test_seed() + 78;
    for (size_t k = 0; k < test_scaled(1000); k++) {
        const int span = (int)(test_random(&random) % 250) + 1, low = (int)(test_random(&random) % 254);
        const size_t n = lengths[k % (sizeof lengths / sizeof *lengths)];
        for (size_t i = 0; i < n; i++) {
            const uint64_t r = test_random(&random);
            int e = low + (int)(r % (unsigned)span);
            e = e > 254 ? 254 : e;
            input.x[0][i] = bits((uint32_t)(r >> 32) & 0x80000000u) == 0 && r % 97 == 0
                                ? 0
                                : bits(((uint32_t)(r >> 32) & 0x807fffffu) | (uint32_t)e << 23);
        }
        ck_assert_int_eq(mpsim_isa_use("scalar"), MPSIM_OK);
        const float norm = mpsim_norm(NULL, input.x[0], n);
        size_t at = 0;
        for (const char *isa; (isa = isa_at(&at)) != NULL;) {
            const float other = mpsim_norm(NULL, input.x[0], n);
            ck_assert_msg(bits_of_f32(norm) == bits_of_f32(other),
                          "%s: %zu elements, exponents from %d, %d of them: %a, expected %a", isa, n, low, span,
                          (double)other, (double)norm);
        }
    }
    ck_assert_int_eq(mpsim_isa_use(before), MPSIM_OK);
}

TEST(reductions)
{
    static float a[MOST], b[MOST];
    const char *before = mpsim_isa_active();
    const float *x[ARRAYS];
    uint64_t random = test_seed() + 79;
    mpsim_optim o;
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, mpsim_optim_variant_find("ieee"));
    for (size_t k = 0; k < test_scaled(200); k++) {
        const mpsim_format *f = optim_format(k % 2 ? B32 : BF16);
        const mpsim_reduce r = {*f, *f, *f, (uint8_t)(k % 3), (uint8_t)(k / 3 % 3)};
        const size_t n = lengths[test_random(&random) % (sizeof lengths / sizeof *lengths)];
        size_t i = 0;
        fill(&o, n + 2 * ODD, &random);
        for (int rank = 0; rank < ARRAYS; rank++)
            x[rank] = input.x[rank] + rank;
        ck_assert_int_eq(mpsim_isa_use("scalar"), MPSIM_OK);
        ck_assert_int_eq(mpsim_reduce_array(&r, a, x, ARRAYS, n), MPSIM_OK);
        for (const char *isa; (isa = isa_at(&i)) != NULL;) {
            ck_assert_int_eq(mpsim_reduce_array(&r, b, x, ARRAYS, n), MPSIM_OK);
            ck_assert_msg(memcmp(a, b, n * sizeof *a) == 0,
                          "%s: %zu elements of %s, order %d, "
                          "average %d",
                          isa, n, f->name, r.order, r.average);
        }
    }
    ck_assert_int_eq(mpsim_isa_use(before), MPSIM_OK);
}

TEST_MAIN("optim-kernels");
