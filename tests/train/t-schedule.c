/* t-schedule.c -- learning rates of steps: by hand, and that the optimizer gets them; which parameters decay. */
#include "support/support.h"

#include "lib/train/trainer.h"

#include <math.h>

static train_settings text_settings(train_decay decay, uint64_t steps, uint64_t warmup, uint64_t cooldown,
                                    double min_lr)
{
    train_settings s = {.net = "gpt", .steps = steps};
    s.decoder.decay = (uint8_t)decay;
    s.decoder.warmup = warmup;
    s.decoder.cooldown = cooldown;
    s.decoder.min_lr = min_lr;
    return s;
}

static void same(const train_settings *s, uint64_t step, double expected)
{
    const double got = train_schedule(s, step);
    ck_assert_msg(got == expected, "step %lu: %a, not %a", (unsigned long)step, got, expected);
}

CASE("all", 20);

TEST(constant)
{
    const train_settings s = text_settings(TRAIN_CONSTANT, 100, 0, 0, 0.1);
    for (uint64_t i = 0; i < 100; i++)
        same(&s, i, 1);
}

TEST(digits_have_none)
{
    train_settings s = text_settings(TRAIN_COSINE, 100, 10, 10, 0);
    strcpy(s.net, "mlp");
    for (uint64_t i = 0; i < 100; i++)
        same(&s, i, 1);
}

TEST(warm_up)
{
    const train_settings s = text_settings(TRAIN_LINEAR_DECAY, 104, 4, 0, 0.25);
    same(&s, 0, 0.25);
    same(&s, 1, 0.5);
    same(&s, 2, 0.75);
    same(&s, 3, 1);
    same(&s, 4, 1);
    same(&s, 54, 0.625);
    same(&s, 79, 1 - 0.75 * 0.75);
    same(&s, 103, 1 - 0.75 * (99.0 / 100));
    const train_settings never = text_settings(TRAIN_COSINE, 10, 1000, 0, 0);
    same(&never, 9, 10.0 / 1000);
}

TEST(cosine)
{
    const train_settings s = text_settings(TRAIN_COSINE, 300, 20, 0, 0.1);
    same(&s, 20, 0.1 + (1 - 0.1) * 0.5 * 2);
    for (uint64_t i = 20; i < 300; i++) {
        const double p = (double)(i - 20) / 280, x = acos(-1) * p;
        const double got = train_schedule(&s, i);
        same(&s, i, 0.1 + (1 - 0.1) * 0.5 * (1 + (double)mpsim_cos((float)(p * 3.14159265358979312))));
        ck_assert_double_eq_tol(got, 0.1 + 0.45 * (1 + cos(x)), 2e-7);
        if (i > 20)
            ck_assert_double_lt(got, train_schedule(&s, i - 1) + 1e-12);
    }
}

TEST(cool_down)
{
    const train_settings s = text_settings(TRAIN_CONSTANT, 100, 0, 4, 0);
    same(&s, 95, 1);
    same(&s, 96, 4.0 / 5);
    same(&s, 97, 3.0 / 5);
    same(&s, 98, 2.0 / 5);
    same(&s, 99, 1.0 / 5);
    const train_settings long_one = text_settings(TRAIN_LINEAR_DECAY, 10, 2, 50, 0);
    same(&long_one, 0, 0.5 * (10.0 / 51));
    same(&long_one, 6, 0.5 * (4.0 / 51));
}

TEST(beyond_the_end)
{
    const train_settings s = text_settings(TRAIN_COSINE, 50, 5, 5, 0.5);
    same(&s, 50, train_schedule(&s, 49));
    same(&s, UINT64_MAX, train_schedule(&s, 49));
}

TEST_MAIN("train-schedule");
