/* t-contract.c -- what <mpsim/optim.h> promises beside bits: names, defaults,
 * statuses, what a variant has, splits of a tensor. */
#include "support/optiminput.h"
#include "support/support.h"

#include <mpsim/optim.h>
#include <stddef.h>
#include <string.h>

CASE("contract", 30);

TEST(table_and_names)
{
    for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++)
        ck_assert(!mpsim_optim_has(a, MPSIM_OPTIM_SETTINGS) && !mpsim_optim_has(a, (mpsim_optim_setting)99) &&
                  !mpsim_optim_has(a, (mpsim_optim_setting)-1));
    /* clang-format off */
    static const char *const names[] = {
        "ieee", "torch", "torch-foreach", "torch-capturable", "torch-foreach-capturable", "torch-cpu", "torch-cpu-default",
        "torch-cpu-foreach", "torch-cpu-foreach-default", "torch-fused-a", "torch-fused-b",
        "torch-fused-c", "torch-fused-cpu", "torch-fused-cpu-default", "apex", "torchao",
        "torchao-cpu", "optimi", "optimi-cpu", "optimi-cpu-default", "optimi-cpu-foreach",
        "optimi-cpu-foreach-default", "optimi-triton", "lion-pytorch", "lion-pytorch-cpu", "lion-pytorch-cpu-default",
        "torch-cpu-adafactor", "torch-cpu-adafactor-default", "coat", "ms-amp"};
    ck_assert_uint_eq(mpsim_optim_variant_count(), sizeof names / sizeof names[0]);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const mpsim_optim_variant *v = mpsim_optim_variant_find(names[i]);
        ck_assert_msg(v && strcmp(v->name, names[i]) == 0, "%s", names[i]);
        ck_assert_ptr_eq(mpsim_optim_variant_find(mpsim_optim_variant_at(i)->name),
                         mpsim_optim_variant_at(i));
        ck_assert(v->what && v->source && v->evidence <= MPSIM_OPTIM_OPEN && v->algorithms != 0 && v->stores != 0);
        ck_assert(v->algorithms < 1 << MPSIM_OPTIM_ALGORITHMS && v->stores < 8);
    }
    /* clang-format on */
    ck_assert_ptr_null(mpsim_optim_variant_at(mpsim_optim_variant_count()));
    ck_assert_ptr_null(mpsim_optim_variant_find("torch-fused"));
    static const char *const algorithms[] = {"sgd", "adam", "adamw", "lion", "adafactor"};
    for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++) {
        mpsim_optim_algorithm parsed = MPSIM_OPTIM_ALGORITHMS;
        ck_assert_str_eq(mpsim_optim_name((mpsim_optim_algorithm)a), algorithms[a]);
        ck_assert_int_eq(mpsim_optim_parse(&parsed, algorithms[a]), MPSIM_OK);
        ck_assert_int_eq(parsed, a);
    }
    mpsim_optim_algorithm a = MPSIM_OPTIM_ADAM;
    ck_assert_int_eq(mpsim_optim_parse(&a, "adamx"), MPSIM_ENOTFOUND);
    ck_assert_int_eq(a, MPSIM_OPTIM_ADAM);
}

TEST(defaults_are_those_of_torch)
{
    static const struct {
        double lr, decay, beta1, beta2, eps;
    } of[MPSIM_OPTIM_ALGORITHMS] = {{1e-3, 0, 0.9, 0.999, 1e-8},
                                    {1e-3, 0, 0.9, 0.999, 1e-8},
                                    {1e-3, 1e-2, 0.9, 0.999, 1e-8},
                                    {1e-4, 0, 0.9, 0.99, 1e-8},
                                    {1e-2, 0, 0, 0, 0x1p-23}};
    const mpsim_optim_variant *v = mpsim_optim_variant_find("ieee");
    for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++) {
        mpsim_optim o;
        memset(&o, 0xff, sizeof o);
        mpsim_optim_init(&o, (mpsim_optim_algorithm)a, v);
        ck_assert_ptr_eq(o.variant, v);
        ck_assert(o.algorithm == a && o.store == MPSIM_STORE_NEAREST);
        ck_assert(o.lr == of[a].lr && o.momentum == 0 && o.dampening == 0);
        ck_assert(o.weight_decay == of[a].decay);
        ck_assert(o.beta1 == of[a].beta1 && o.beta2 == of[a].beta2 && o.eps == of[a].eps && o.grad_scale == 1);
        ck_assert(!o.nesterov && !o.amsgrad && !o.maximize);
        ck_assert_str_eq(o.param.name, "binary32");
        ck_assert_str_eq(o.state.name, "binary32");
        ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_OK);
    }
}

/* What the table of algorithms says is what steps do. */
static mpsim_status step_with(const mpsim_optim *o, unsigned given)
{
    float p = 1, g = 1, m = 0, v = 0, vmax = 0;
    const mpsim_optim_tensor t = {.param = &p,
                                  .grad = &g,
                                  .m = given & MPSIM_OPTIM_M ? &m : NULL,
                                  .v = given & MPSIM_OPTIM_V ? &v : NULL,
                                  .vmax = given & MPSIM_OPTIM_VMAX ? &vmax : NULL,
                                  .n = 1};
    return mpsim_optim_step(o, 1, &t, NULL);
}

TEST(steps_need_the_arrays_that_their_row_says)
{
    for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++)
        for (int k = 0; k < 4; k++) {
            mpsim_optim o;
            mpsim_optim_init(&o, (mpsim_optim_algorithm)a, mpsim_optim_variant_find("ieee"));
            o.momentum = mpsim_optim_has(a, MPSIM_OPTIM_MOMENTUM) && k & 1 ? 0.9 : 0;
            o.amsgrad = mpsim_optim_has(a, MPSIM_OPTIM_AMSGRAD) && k & 2;
            const unsigned needs = mpsim_optim_arrays(&o);
            ck_assert_uint_eq(mpsim_optim_traits_of(a)->arrays & ~needs, 0);
            for (unsigned given = 0; given < 8; given++)
                ck_assert_int_eq(step_with(&o, given), needs & ~given ? MPSIM_EINVAL : MPSIM_OK);
        }
    mpsim_optim sgd = {.algorithm = MPSIM_OPTIM_SGD, .amsgrad = 1}, adam = {.algorithm = MPSIM_OPTIM_ADAM};
    const mpsim_optim lion = {.algorithm = MPSIM_OPTIM_LION, .momentum = 0.9, .amsgrad = 1};
    ck_assert_uint_eq(mpsim_optim_arrays(&lion), MPSIM_OPTIM_M);
    mpsim_optim factored = {.algorithm = MPSIM_OPTIM_ADAFACTOR, .rows = 3, .cols = 5};
    ck_assert_uint_eq(mpsim_optim_elements(&factored, MPSIM_OPTIM_M, 30), 6);
    ck_assert_uint_eq(mpsim_optim_elements(&factored, MPSIM_OPTIM_V, 30), 10);
    factored.rows = factored.cols = 0;
    ck_assert_uint_eq(mpsim_optim_elements(&factored, MPSIM_OPTIM_M, 30), 0);
    ck_assert_uint_eq(mpsim_optim_elements(&factored, MPSIM_OPTIM_V, 30), 30);
    ck_assert_uint_eq(mpsim_optim_elements(&adam, MPSIM_OPTIM_V, 30), 30);
    ck_assert_uint_eq(mpsim_optim_elements(&adam, MPSIM_OPTIM_VMAX, 30), 0);
    ck_assert_uint_eq(mpsim_optim_arrays(&sgd), 0);
    ck_assert_uint_eq(mpsim_optim_arrays(&adam), MPSIM_OPTIM_M | MPSIM_OPTIM_V);
}

TEST(settings_are_fields_of_their_names)
{
    static const char *const names[] = {"lr",       "momentum", "dampening",   "weight_decay", "beta1",
                                        "beta2",    "eps",      "beta2_decay", "eps2",         "d",
                                        "nesterov", "amsgrad",  "maximize"};
    const mpsim_optim o = {.lr = 1,
                           .momentum = 2,
                           .dampening = 3,
                           .weight_decay = 4,
                           .beta1 = 5,
                           .beta2 = 6,
                           .eps = 7,
                           .beta2_decay = 8,
                           .eps2 = 9,
                           .d = 10,
                           .nesterov = 11,
                           .amsgrad = 12,
                           .maximize = 13};
    mpsim_optim set = {.lr = 0};
    for (int s = 0; s < MPSIM_OPTIM_SETTINGS; s++) {
        ck_assert_str_eq(mpsim_optim_setting_name((mpsim_optim_setting)s), names[s]);
        ck_assert(mpsim_optim_value(&o, (mpsim_optim_setting)s) == s + 1);
        mpsim_optim_set(&set, (mpsim_optim_setting)s, s + 1);
        ck_assert(mpsim_optim_value(&set, (mpsim_optim_setting)s) == (s < MPSIM_OPTIM_NUMBERS ? s + 1 : 1));
    }
    ck_assert_ptr_null(mpsim_optim_setting_name(MPSIM_OPTIM_SETTINGS));
    ck_assert_ptr_null(mpsim_optim_traits_of(-1)->name);
    ck_assert(!mpsim_optim_has(MPSIM_OPTIM_ALGORITHMS, MPSIM_OPTIM_LR));
    ck_assert(mpsim_optim_has(MPSIM_OPTIM_SGD, MPSIM_OPTIM_NESTEROV));
    ck_assert(!mpsim_optim_has(MPSIM_OPTIM_ADAM, MPSIM_OPTIM_NESTEROV));
    ck_assert(mpsim_optim_traits_of(MPSIM_OPTIM_ADAMW)->family == MPSIM_OPTIM_ADAM);
}

/* What a variant has, where the specification says it: algorithms and stores are those of its
 * row. */
TEST(what_a_variant_has)
{
    for (size_t i = 0; i < mpsim_optim_variant_count(); i++) {
        const mpsim_optim_variant *v = mpsim_optim_variant_at(i);
        for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++)
            for (int s = 0; s <= MPSIM_STORE_KAHAN; s++) {
                mpsim_optim o;
                mpsim_optim_init(&o, (mpsim_optim_algorithm)a, v);
                o.store = (uint8_t)s;
                if (s != MPSIM_STORE_NEAREST)
                    o.param = o.state = *optim_format(BF16);
                const int has = (v->algorithms >> a & 1) && (v->stores >> s & 1);
                ck_assert_msg(mpsim_optim_check(&o) == (has ? MPSIM_OK : MPSIM_EUNAVAILABLE), "%s %s store %d: %s",
                              v->name, mpsim_optim_name(o.algorithm), s, mpsim_status_string(mpsim_optim_check(&o)));
            }
    }
}

static mpsim_status checked(const char *variant, mpsim_optim_algorithm a, int amsgrad, int maximize, int nesterov,
                            double scale)
{
    mpsim_optim o;
    mpsim_optim_init(&o, a, mpsim_optim_variant_find(variant));
    o.amsgrad = (uint8_t)amsgrad;
    o.maximize = (uint8_t)maximize;
    o.nesterov = (uint8_t)nesterov;
    o.momentum = nesterov ? 0.9 : 0;
    o.grad_scale = scale;
    return mpsim_optim_check(&o);
}

TEST(what_torch_has)
{
    static const char *const torch[] = {"torch",         "torch-foreach",     "torch-capturable",
                                        "torch-cpu",     "torch-cpu-default", "torch-fused-a",
                                        "torch-fused-b", "torch-fused-c",     "torch-fused-cpu"};
    for (size_t i = 0; i < sizeof torch / sizeof torch[0]; i++) {
        ck_assert_int_eq(checked(torch[i], MPSIM_OPTIM_ADAM, 1, 1, 0, 1), MPSIM_OK);
        ck_assert_int_eq(checked(torch[i], MPSIM_OPTIM_ADAMW, 1, 1, 0, 1), MPSIM_OK);
        const int fused = strncmp(torch[i], "torch-fused-", 12) == 0;
        ck_assert_msg(checked(torch[i], MPSIM_OPTIM_ADAM, 0, 0, 0, 65536) == (fused ? MPSIM_OK : MPSIM_EUNAVAILABLE),
                      "%s with a scale", torch[i]);
        ck_assert_int_eq(mpsim_optim_variant_unscales(mpsim_optim_variant_find(torch[i])), fused);
        if (i < 5 && i != 2)
            ck_assert_int_eq(checked(torch[i], MPSIM_OPTIM_SGD, 0, 1, 1, 1), MPSIM_OK);
    }
    ck_assert(!mpsim_optim_variant_unscales(mpsim_optim_variant_find("apex")));
    ck_assert(!mpsim_optim_variant_unscales(mpsim_optim_variant_find("ieee")));
    ck_assert(!mpsim_optim_variant_unscales(NULL));
    ck_assert_int_eq(checked("apex", MPSIM_OPTIM_ADAM, 1, 0, 0, 1), MPSIM_EUNAVAILABLE);
    ck_assert_int_eq(checked("apex", MPSIM_OPTIM_SGD, 0, 0, 1, 1), MPSIM_OK);
}

TEST(numbers_out_of_their_domain)
{
    const mpsim_optim_variant *v = mpsim_optim_variant_find("torch-fused-b");
    static const size_t fields[] = {offsetof(mpsim_optim, lr),        offsetof(mpsim_optim, momentum),
                                    offsetof(mpsim_optim, dampening), offsetof(mpsim_optim, weight_decay),
                                    offsetof(mpsim_optim, beta1),     offsetof(mpsim_optim, beta2),
                                    offsetof(mpsim_optim, eps),       offsetof(mpsim_optim, grad_scale)};
    static const double wrong[] = {NOTANUMBER, INFINITE, -INFINITE};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        for (size_t k = 0; k < 3; k++) {
            mpsim_optim o;
            mpsim_optim_init(&o, MPSIM_OPTIM_ADAM, v);
            memcpy((char *)&o + fields[i], &wrong[k], sizeof wrong[k]);
            ck_assert_msg(mpsim_optim_check(&o) == MPSIM_EINVAL, "field %d: %g", (int)i, wrong[k]);
        }
    /* lr, weight decay, betas, eps: not negative; betas below 1; 0 is in the domain. */
    static const size_t signs[] = {offsetof(mpsim_optim, lr), offsetof(mpsim_optim, weight_decay),
                                   offsetof(mpsim_optim, beta1), offsetof(mpsim_optim, beta2),
                                   offsetof(mpsim_optim, eps)};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        mpsim_optim o;
        const double negative = -0x1p-1074, zero = 0, one = 1, below = 1 - 0x1p-53;
        mpsim_optim_init(&o, MPSIM_OPTIM_ADAMW, v);
        memcpy((char *)&o + signs[i], &negative, sizeof negative);
        ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_EINVAL);
        memcpy((char *)&o + signs[i], &zero, sizeof zero);
        ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_OK);
        memcpy((char *)&o + signs[i], &one, sizeof one);
        ck_assert_int_eq(mpsim_optim_check(&o), i == 2 || i == 3 ? MPSIM_EINVAL : MPSIM_OK);
        memcpy((char *)&o + signs[i], &below, sizeof below);
        ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_OK);
    }
    mpsim_optim o;
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, mpsim_optim_variant_find("torch"));
    o.nesterov = 1;
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_EINVAL);
    o.momentum = 0.9;
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_OK);
    o.dampening = 0.1;
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_EINVAL);
    o.nesterov = 0;
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_OK);
    o.momentum = -0.9;
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_EINVAL);
}

TEST(wrong_formats_and_selectors)
{
    mpsim_optim good, o;
    mpsim_optim_init(&good, MPSIM_OPTIM_ADAM, mpsim_optim_variant_find("ieee"));
    ck_assert_int_eq(mpsim_optim_check(&good), MPSIM_OK);
    o = good;
    o.param = *optim_format(B64);
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_ERANGE);
    o = good;
    o.state = *optim_format(B64);
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_ERANGE);
    o = good;
    o.param.ebits = 0;
    ck_assert_int_ne(mpsim_optim_check(&o), MPSIM_OK);
    o = good;
    o.algorithm = 99;
    ck_assert_int_ne(mpsim_optim_check(&o), MPSIM_OK);
    o = good;
    o.store = 99;
    ck_assert_int_ne(mpsim_optim_check(&o), MPSIM_OK);
    o = good;
    o.float_powers = 2;
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_EINVAL);
    o = good;
    o.variant = NULL;
    ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_EINVAL);
}

/* What is refused leaves every array as it was. */
TEST(a_refused_step_touches_nothing)
{
    uint64_t random = test_seed() + 3;
    mpsim_optim o;
    arrays a, before;
    mpsim_optim_init(&o, MPSIM_OPTIM_ADAM, mpsim_optim_variant_find("torch"));
    o.amsgrad = 1;
    optim_fill(&a, &o, B32, B32, 0, &random);
    before = a;
    for (int missing = 0; missing < 5; missing++) {
        mpsim_optim_tensor t = tensor(&a, &o, 0, N);
        if (missing == 0)
            t.param = NULL;
        if (missing == 1)
            t.grad = NULL;
        if (missing == 2)
            t.m = NULL;
        if (missing == 3)
            t.v = NULL;
        if (missing == 4)
            t.vmax = NULL;
        ck_assert_int_eq(mpsim_optim_step(&o, 1, &t, NULL), MPSIM_EINVAL);
    }
    const mpsim_optim_tensor t = tensor(&a, &o, 0, N);
    ck_assert_int_eq(mpsim_optim_step(&o, 1, NULL, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_optim_step(NULL, 1, &t, NULL), MPSIM_EINVAL);
    mpsim_optim bad = o;
    bad.beta2 = 1;
    ck_assert_int_eq(mpsim_optim_step(&bad, 1, &t, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(memcmp(&a, &before, sizeof a), 0);
    mpsim_optim_init(&o, MPSIM_OPTIM_ADAM, mpsim_optim_variant_find("torchao"));
    o.store = MPSIM_STORE_STOCHASTIC;
    o.param = *optim_format(BF16);
    const mpsim_optim_tensor s = tensor(&a, &o, 0, N);
    ck_assert_int_eq(mpsim_optim_step(&o, 1, &s, NULL), MPSIM_EINVAL); /* no random bits */
    ck_assert_int_eq(memcmp(&a, &before, sizeof a), 0);
    mpsim_optim_tensor none = {0};
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, mpsim_optim_variant_find("torch"));
    const mpsim_status empty = mpsim_optim_step(&o, 1, &none, NULL);
    ck_assert(empty == MPSIM_OK || empty == MPSIM_EINVAL); /* n = 0 with NULL: either */
    ck_assert_int_eq(mpsim_optim_reference(NULL, 1, NULL, NULL, NULL, NULL, NULL, 0), MPSIM_EINVAL);
}

/* -------------------------------------------------------------------------------------- splits */

TEST(any_split_gives_the_same_bits)
{
    uint64_t random = test_seed() + 4;
    for (size_t i = 0; i < mpsim_optim_variant_count(); i++) {
        const mpsim_optim_variant *v = mpsim_optim_variant_at(i);
        const int whole_tensors = strstr(v->name, "-cpu") && !strstr(v->name, "default");
        for (int k = 0; k < 3 * MPSIM_OPTIM_ALGORITHMS; k++) {
            mpsim_optim o;
            mpsim_optim_init(&o, (mpsim_optim_algorithm)(k / 3), v);
            o.store = (uint8_t)(k % 3);
            o.param = o.state = *optim_format(o.store == MPSIM_STORE_NEAREST ? B32 : BF16);
            if (mpsim_optim_check(&o) != MPSIM_OK || mpsim_optim_traits_of(o.algorithm)->factors)
                continue;
            arrays whole, split;
            optim_fill(&whole, &o, BF16, BF16, 0, &random);
            split = whole;
            const mpsim_rng rng = {1, 2, 1001};
            const mpsim_optim_tensor t = tensor(&whole, &o, 0, N);
            ck_assert_int_eq(mpsim_optim_step(&o, 5, &t, &rng), MPSIM_OK);
            for (size_t first = 0; first < N;) {
                size_t n = whole_tensors ? VECTOR : 1 + test_random(&random) % 9;
                n = n > N - first ? N - first : n;
                const mpsim_rng at = {1, 2, 1001 + first};
                const mpsim_optim_tensor part = tensor(&split, &o, first, n);
                ck_assert_int_eq(mpsim_optim_step(&o, 5, &part, &at), MPSIM_OK);
                first += n;
            }
            ck_assert_msg(memcmp(&whole, &split, sizeof whole) == 0, "%s store %d", v->name, o.store);
        }
    }
}

TEST_MAIN("optim-contract");
