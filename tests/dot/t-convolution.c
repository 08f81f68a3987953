/* t-convolution.c -- convolutions and their gradients beside naive loops over mpsim_dot: every dimension, layout, order, model; what is
 * refused. */
#include "support/allocations.h"
#include "support/convnaive.h"
#include "sim/verify/kinds.h"
#include "support/dotcases.h"
#include "support/products.h"
#include "support/support.h"

#include <mpsim/format.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

/* Sizes that are small in all, with every setting. */
static void any_convolution(convsizes *c, uint64_t *seed)
{
    do {
        const uint64_t u = test_random(seed), v = test_random(seed);
        convsizes_init(c, 1 + u % 3);
        c->transposed = u >> 4 & 1;
        c->order = (uint8_t)((u >> 8) % MPSIM_CONVOLUTION_ORDERS);
        c->taps = u >> 12 & 1;
        c->row_multiple = u >> 13 & 1 ? 1 : 1 + (u >> 56) % 6;
        c->images = (u >> 16) % 4;
        c->groups = u >> 20 & 1 ? 1 : 1 + (u >> 24) % 3;
        c->channels = c->groups * (u >> 28 & 1 ? (u >> 32) % 4 : (u >> 32) % 40);
        c->outputs = c->groups * (u >> 40 & 1 ? (u >> 44) % 4 : (u >> 44) % 20);
        for (size_t d = 0; d < c->dims; d++) {
            const uint64_t e = v >> 16 * d;
            c->in[d] = e % 8;
            c->kernel[d] = (e >> 3) % 5;
            c->stride[d] = 1 + (e >> 6) % 3;
            c->padding[d] = (e >> 8) % 3;
            c->dilation[d] = 1 + (e >> 10) % 3;
        }
        const size_t extra[3] = {u >> 50 & 1, u >> 51 & 1, u >> 52 & 1};
        if (!convsizes_set(c, extra))
            c->groups = 0;
    } while (c->groups == 0 || c->images * convsizes_product(c->out, c->dims) * c->outputs *
                                       convsizes_product(c->kernel, c->dims) * c->channels / c->groups >
                                   40000);
}

/* Rounded as it is multiplied, or not; with an inverse. */
static void any_entry(const mpsim_model *m, convtensor *t, uint64_t u)
{
    static const char *const formats[] = {"bf16", "fp16", "e4m3"};
    const mpsim_format *f = mpsim_format_find(formats[u % COUNT(formats)]);
    mpsim_operand_init(&t->o, &t->s, u >> 8 & 1 && dot_can(m, f, f) ? f : NULL,
                       u >> 9 & 1 ? MPSIM_ROUND_NEAREST_EVEN : MPSIM_ROUND_UP);
    t->o.inverse = u >> 10 & 1 ? 1 : 1.25F;
}

static void run_sets(convproblem *p, int kind, uint64_t *seed)
{
    for (int i = CONV_FORWARD; i <= CONV_WEIGHT; i++) {
        const uint64_t u = test_random(seed);
        p->what = (convkind)i;
        convtensor *a = i == CONV_FORWARD ? &p->x : &p->y, *b = i == CONV_WEIGHT ? &p->x : &p->w;
        convtensor_fill(a, kind, seed);
        convtensor_fill(b, kind, seed);
        any_entry(&p->m, a, u);
        any_entry(&p->m, b, u >> 20);
        if (!dot_can(&p->m, a->o.format, b->o.format))
            a->o.format = a->s.format, b->o.format = b->s.format;
        p->rounds = u >> 40 & 1;
        p->factor = u >> 41 & 1 ? 1 : 0.75F;
        p->has_bias = i == CONV_FORWARD && u >> 42 & 1;
        convproblem_check(p);
    }
    p->rounds = p->has_bias = 0;
    p->factor = 1;
}

static size_t three(void *self)
{
    (void)self;
    return 3;
}

static const mpsim_pool threads = {product_on_threads, NULL, three};

START_TEST(rows_of_the_table)
{
    static const char *const models[] = {"fma",
                                         "sequential:bf16",
                                         "pairwise",
                                         "exact",
                                         "fma:fp16:round=sr",
                                         "avx512-bf16-fp32",
                                         "amx-bf16-fp32",
                                         "hopper-bf16-fp32",
                                         "volta-fp16-fp32",
                                         "cdna3-bf16-fp32",
                                         "fma:binary64",
                                         "avx512-bf16-fp32:chunk=4",
                                         "fma:chunk=3"};
    static const char *const formats[] = {"binary32", "bf16", "fp16"};
    uint64_t seed = test_seed() + 21;
    for (size_t n = 0; n < test_scaled(600); n++) {
        convproblem p = {.n = 0};
        const uint64_t u = test_random(&seed);
        ck_assert_msg(mpsim_model_parse(&p.m, models[n % COUNT(models)]) == MPSIM_OK, "%s", models[n % COUNT(models)]);
        any_convolution(&p.c, &seed);
        convproblem_tensors(&p, mpsim_format_find(formats[u % 3]), mpsim_format_find(formats[(u >> 8) % 3]),
                            mpsim_format_find(formats[(u >> 16) % 3]), &seed);
        p.pool = u >> 30 & 1 ? &threads : NULL;
        run_sets(&p, u >> 24 & 1 ? KIND_NORMAL : (int)((u >> 32) % KINDS), &seed);
        convproblem_clear(&p);
    }
}

/* Models and formats that no table has. */
START_TEST(any_model)
{
    uint64_t seed = test_seed() + 22;
    for (size_t n = 0; n < test_scaled(600); n++) {
        convproblem p = {.n = 0};
        const mpsim_format f = dot_format(test_random(&seed) % DOT_FORMATS);
        dot_any_model(&p.m, &seed);
        any_convolution(&p.c, &seed);
        if (!dot_can(&p.m, &f, &f) || f.zero == MPSIM_ZERO_NONE || p.m.result.format.zero == MPSIM_ZERO_NONE)
            continue;
        convproblem_tensors(&p, &f, &f, &f, &seed);
        for (int i = CONV_FORWARD; i <= CONV_WEIGHT; i++) {
            p.what = (convkind)i;
            convtensor_fill(i == CONV_FORWARD ? &p.x : &p.y, (int)(n % KINDS), &seed);
            convtensor_fill(i == CONV_WEIGHT ? &p.x : &p.w, (int)(n % KINDS), &seed);
            convproblem_check(&p);
        }
        convproblem_clear(&p);
    }
}

/* More products than are added at once. */
START_TEST(deep)
{
    static const char *const models[] = {"fma",
                                         "avx512-bf16-fp32",
                                         "amx-bf16-fp32",
                                         "hopper-bf16-fp32",
                                         "pairwise",
                                         "fma:fp16",
                                         "hopper-wgmma-fp8-promoted",
                                         "exact",
                                         NULL};
    uint64_t seed = test_seed() + 23;
    for (size_t n = 0; n < test_scaled(180); n++) {
        convproblem p = {.n = 0};
        const char *name = models[n % COUNT(models)];
        if (!name)
            dot_any_model(&p.m, &seed);
        else
            ck_assert_msg(mpsim_model_parse(&p.m, name) == MPSIM_OK, "%s", name);
        const mpsim_format *f = mpsim_format_find(name && strstr(name, "fp8") ? "e4m3" : "bf16");
        convsizes_init(&p.c, 1);
        p.c.images = 2;
        p.c.channels = n % 2 ? 2100 : 1;
        p.c.outputs = 1 + n % 3;
        p.c.in[0] = n % 2 ? 1 : 3000;
        p.c.kernel[0] = n % 2 ? 2 : 1;
        p.c.padding[0] = n % 2;
        p.c.order = (uint8_t)(n % 3);
        ck_assert(convsizes_set(&p.c, NULL));
        if (dot_can(&p.m, f, f) && p.m.result.format.zero != MPSIM_ZERO_NONE) {
            convproblem_tensors(&p, f, f, mpsim_format_find("binary32"), &seed);
            p.what = n % 2 ? CONV_FORWARD : CONV_WEIGHT;
            if (p.what == CONV_WEIGHT) {
                free(p.y.memory);
                p.y = convtensor_new(f, 1, p.c.images, p.c.outputs, p.c.out, &seed);
            }
            convtensor_fill(&p.x, KIND_NORMAL, &seed);
            convtensor_fill(&p.w, KIND_NORMAL, &seed);
            convtensor_fill(&p.y, KIND_NORMAL, &seed);
            convproblem_check(&p);
            convproblem_clear(&p);
        }
    }
}

#ifdef CAN_FAIL
/* Every allocation fails once: that is a status, and nothing is left. */
START_TEST(no_memory)
{
    convproblem p;
    convproblem_by_hand(&p);
    p.has_bias = 1;
    for (int i = CONV_FORWARD; i <= CONV_WEIGHT; i++, p.has_bias = 0) {
        p.what = (convkind)i;
        const long before = live;
        failed = 1;
        for (int k = 1; failed; k++) {
            failed = 0;
            until = k;
            const mpsim_status s = convproblem_run(&p);
            until = 0;
            ck_assert_int_eq(s, failed ? MPSIM_ENOMEM : MPSIM_OK);
            ck_assert_int_eq(live, before);
            ck_assert(k > 2 || failed);
        }
    }
    convproblem_clear(&p);
}
#endif

/* ---- what is refused ---- */

START_TEST(refused)
{
    convproblem p;
    convproblem_by_hand(&p);
    const convsizes c = p.c;
    const convtensor tensors[] = {p.x, p.w, p.y};
    convtensor_put(&p.y, (const float[]){1, 2, 3});
#define REFUSED(wanted, change)                        \
    do {                                               \
        change;                                        \
        ck_assert_int_eq(convproblem_run(&p), wanted); \
        p.c = c;                                       \
        p.x = tensors[0];                              \
        p.w = tensors[1];                              \
        p.y = tensors[2];                              \
    } while (0)
    REFUSED(MPSIM_EINVAL, p.c.transposed = 2);
    REFUSED(MPSIM_EINVAL, p.c.order = MPSIM_CONVOLUTION_ORDERS);
    REFUSED(MPSIM_EINVAL, p.c.taps = MPSIM_CONVOLUTION_TAPS);
    REFUSED(MPSIM_EINVAL, p.c.row_multiple = 0);
    REFUSED(MPSIM_EINVAL, p.c.groups = 0);
    REFUSED(MPSIM_EINVAL, p.c.groups = 2);
    REFUSED(MPSIM_EINVAL, p.c.stride[0] = 0);
    REFUSED(MPSIM_EINVAL, p.c.dilation[0] = 0);
    REFUSED(MPSIM_EINVAL, p.c.padding[0] = (size_t)1 << 31);
    REFUSED(MPSIM_EINVAL, p.x.o.stack.shape[0] = 2);
    REFUSED(MPSIM_EINVAL, p.x.o.stack.shape[1] = 2);
    REFUSED(MPSIM_EINVAL, p.y.s.shape[1] = 2);
    REFUSED(MPSIM_EINVAL, p.w.o.stack.shape[0] = 2);
    REFUSED(MPSIM_EINVAL, p.w.o.stack.shape[1] = 2);
    REFUSED(MPSIM_EINVAL, p.x.o.stack.shape[2] = (size_t)1 << 31);
    REFUSED(MPSIM_EINVAL, p.y.s.rank = 2);
    REFUSED(MPSIM_EINVAL, p.y.s.rank = 6);
    REFUSED(MPSIM_EINVAL, p.x.o.stack.rank = 4);
    REFUSED(MPSIM_EINVAL, p.x.o.stack.format = NULL);
    REFUSED(MPSIM_EINVAL, p.x.o.format = NULL);
    REFUSED(MPSIM_EINVAL, p.x.o.mode = MPSIM_ROUND_STOCHASTIC_A);
    REFUSED(MPSIM_EINVAL, p.w.o.factors = &p.factor);
    REFUSED(MPSIM_EINVAL, p.w.o.stack.codes = NULL);
    REFUSED(MPSIM_EINVAL, p.y.s.codes = NULL);
    REFUSED(MPSIM_EINVAL, p.y.s.strides[2] = 0); /* one number for all */
    REFUSED(MPSIM_ERANGE, p.x.o.format = mpsim_format_find("e8m0"));
    p.rounds = 1;
    REFUSED(MPSIM_ERANGE, p.y.s.format = mpsim_format_find("e5m2"));
    p.rounds = 0;
    p.m.length = 200;
    REFUSED(MPSIM_EINVAL, p.m.addition = MPSIM_ADDITION_FUSED);
    ck_assert(mpsim_model_parse(&p.m, "fma") == MPSIM_OK);
    ck_assert(convtensor_number(&p.y, 0) == 1 && convtensor_number(&p.y, 1) == 2 && convtensor_number(&p.y, 2) == 3);
    p.has_bias = 1;
    p.bias.s.format = mpsim_format_find("binary64");
    REFUSED(MPSIM_ERANGE, (void)0);
    p.bias.s.format = mpsim_format_find("bf16");
    REFUSED(MPSIM_EINVAL, p.what = CONV_INPUT);
    REFUSED(MPSIM_EINVAL, p.what = CONV_WEIGHT);
    ck_assert(mpsim_convolution_forward(NULL, NULL) == MPSIM_EINVAL);
    ck_assert(mpsim_convolution_backward_input(NULL, NULL) == MPSIM_EINVAL);
    ck_assert(mpsim_convolution_backward_weight(NULL, NULL) == MPSIM_EINVAL);
    mpsim_convolution none;
    mpsim_convolution_init(&none);
    ck_assert(mpsim_convolution_forward(&none, NULL) == MPSIM_EINVAL);
    convproblem_clear(&p);
}

int main(void)
{
    TCase *naive = test_case("beside naive loops", 60), *bad = test_case("bad input", 5);
    tcase_add_test(naive, rows_of_the_table);
    tcase_add_test(naive, any_model);
    tcase_add_test(naive, deep);
    tcase_add_test(bad, refused);
#ifdef CAN_FAIL
    tcase_add_test(bad, no_memory);
#endif
    TCase *const cases[] = {naive, bad, NULL};
    return test_main("convolution", cases);
}
