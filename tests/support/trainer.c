/* trainer.c -- see trainer.h. */
#include "trainer.h"

#include "replaykept.h"
#include "sim/train/policy.h"
#include "support.h"

#include <stdio.h>
#include <string.h>

void trainer_open(trainer *t, const char *name, const char *net, uint64_t steps)
{
    char error[TRAIN_ERROR], path[256];
    trace_error bad;
    train_settings s;
    snprintf(path, sizeof path, "data/policies/%s.yaml", name);
    ck_assert_msg(policy_load(&t->policy, test_source_path(path), 0, &bad) == 0, "%s", bad.text);
    train_settings_init(&s, net);
    s.width = strcmp(net, "cnn") == 0 ? 3 : 12;
    s.batch = 8;
    s.steps = steps;
    ck_assert_msg(train_run_of_policy(&t->run, &t->policy, &s, NULL, error) == 0, "%s", error);
    ck_assert_int_eq(train_engine_cpu(&t->engine, NULL), 0);
    t->train = train_open(&t->run, &t->engine, 0, error);
    ck_assert_msg(t->train != NULL, "%s", error);
}

void trainer_close(trainer *t)
{
    train_close(t->train);
    train_engine_close(&t->engine);
    train_run_clear(&t->run);
    policy_clear(&t->policy);
}

uint64_t trainer_next(trainer *t)
{
    char error[TRAIN_ERROR];
    train_step s;
    uint64_t digest;
    ck_assert_msg(train_next(t->train, &s, error) == 0, "%s", error);
    ck_assert_msg(train_digest_step(t->train, &s, &digest, NULL, NULL, error) == 0, "%s", error);
    return digest;
}

const char *trainer_path(const char *name)
{
    static char path[4][700];
    static int which;
    char *p = path[which++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", replay_top, name);
    return p;
}
