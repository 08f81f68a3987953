/* t-train-checkpoint.c -- checkpoints that go on to the same bits, and checkpoints that are damaged or
 * of another run. */
#include "sim/cli/options.h"
#include "sim/train/checkpoint.h"
#include "sim/train/store.h"
#include "support/replaykept.h"
#include "support/support.h"
#include "support/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct resumed {
    const char *policy, *net;
} resumed[] = {{"fp32", "mlp"},       {"pytorch-amp-fp16", "cnn"}, {"apex-O2", "cnn"},
               {"bf16-kahan", "mlp"}, {"bf16-stochastic", "mlp"},  {"nemo-fp8-hybrid-max", "mlp"},
               {"te-mxfp8", "mlp"},   {"deepspeed-fp16", "mlp"},   {"keras-mixed-float16", "mlp"}};

static const char *path_after(uint64_t step)
{
    char name[32];
    snprintf(name, sizeof name, "checkpoint-%d", (int)step);
    return trainer_path(name);
}

CASE("checkpoint", 60);

TESTS(a_resumed_run_gives_the_same_bits, (sizeof resumed / sizeof *resumed))
{
    enum { STEPS = 9 };
    const struct resumed *c = &resumed[_i];
    uint64_t whole[STEPS];
    trainer a, b;
    trace_error error;
    checkpoint_note note = {.taken = 2};
    checkpoint point = {.state = NULL};
    trainer_open(&a, c->policy, c->net, STEPS);
    for (uint64_t i = 0; i < STEPS; i++) {
        whole[i] = trainer_next(&a);
        note.step = i + 1;
        if (note.step == 2 || note.step == 5)
            ck_assert_msg(train_checkpoint_take(&point, path_after(note.step), a.train, &note, &error) == 0 &&
                              train_checkpoint_write(&point, path_after(note.step), &a.run, &error) == 0,
                          "%s", error.text);
    }
    train_checkpoint_clear(&point);
    for (uint64_t from = 2; from <= 5; from += 3) {
        checkpoint_note read = {0};
        trainer_open(&b, c->policy, c->net, STEPS + 100); /* more steps are what it is for */
        ck_assert_msg(train_checkpoint_read(path_after(from), &b.run, b.train, &read, &error) == 0, "%s", error.text);
        ck_assert_uint_eq(read.step, from);
        ck_assert_uint_eq(read.taken, 2);
        for (uint64_t i = from; i < STEPS; i++)
            ck_assert_uint_eq(trainer_next(&b), whole[i]);
        trainer_close(&b);
    }
    trainer_close(&a);
}

/* A checkpoint taken apart, to be written with one thing changed and with the digests of what it says then, which would
 * be refused before anything else. */
typedef struct parts {
    trainer own;
    stored_list list;
    char *run, state[1 << 16], step[24], taken[24], schema[64];
} parts;

static int take_state(const train_item *x, void *context)
{
    parts *p = context;
    char error[TRAIN_ERROR];
    return x->state ? train_stored_add(&p->list, &p->own.engine, x, error) : 0;
}

static void take_apart(parts *p, const char *name)
{
    memset(p, 0, sizeof *p);
    trainer_open(&p->own, name, "mlp", 6);
    (void)trainer_next(&p->own);
    (void)trainer_next(&p->own);
    ck_assert_int_eq(train_visit(p->own.train, take_state, p), 0);
    ck_assert_uint_lt(train_state_save(p->own.train, p->state, sizeof p->state), sizeof p->state);
    p->run = train_run_text(&p->own.run);
    strcpy(p->step, "2");
    strcpy(p->taken, "2");
    strcpy(p->schema, "mpsim-train-checkpoint/2");
}

static void forget_parts(parts *p)
{
    train_stored_clear(&p->list);
    free(p->run);
    trainer_close(&p->own);
}

/* Write and read: the error line, "" if it is accepted. */
static const char *try(const parts *p, const char *name)
{
    static trace_error error;
    trainer t;
    checkpoint_note note;
    const char *pairs[][2] = {{"mpsim.schema", p->schema},         {"mpsim.step", p->step},
                              {"mpsim.optimizer_steps", p->taken}, {"mpsim.train.run", p->run},
                              {"mpsim.train.state", p->state},     {"mpsim.train.digests", NULL}};
    char *digests = train_stored_digests(&p->list, (const char *const(*)[2])pairs, 5);
    const char *path = trainer_path("damaged");
    memset(&error, 0, sizeof error);
    ck_assert_ptr_nonnull(digests);
    pairs[5][1] = digests;
    ck_assert_msg(train_stored_write(&p->list, path, (const char *const(*)[2])pairs, 6, &error) == 0, "%s", error.text);
    free(digests);
    trainer_open(&t, name, "mlp", 6);
    if (train_checkpoint_read(path, &t.run, t.train, &note, &error) == 0)
        error.text[0] = '\0';
    else
        ck_assert_int_eq(error.exit, EXIT_DATA);
    trainer_close(&t);
    return error.text;
}

#define POLICY "pytorch-amp-fp16"
#define REFUSED(p, what) \
    ck_assert_msg(strstr(try((p), POLICY), (what)) != NULL, "'%s' is not in: %s", (what), try((p), POLICY))

TEST(damaged_checkpoints_are_refused)
{
    static parts p;
    char kept[64];
    take_apart(&p, POLICY);
    ck_assert_str_eq(try(&p, POLICY), "");
    stored_tensor *s = &p.list.items[p.list.count - 1];
    /* names */
    strcpy(kept, s->name);
    strcpy(s->name, "weight:other");
    REFUSED(&p, "is missing");
    strcpy(s->name, kept);
    p.list.count--;
    REFUSED(&p, "is missing");
    p.list.count++;
    /* one tensor more */
    stored_tensor *more = calloc(p.list.count + 1, sizeof *more);
    ck_assert_ptr_nonnull(more);
    memcpy(more, p.list.items, p.list.count * sizeof *more);
    more[p.list.count] = *s;
    strcpy(more[p.list.count].name, "weight:more");
    parts q = p;
    q.list.items = more;
    q.list.count++;
    REFUSED(&q, "does not have");
    free(more);
    /* shapes, formats */
    s->shape[s->rank++] = 1;
    REFUSED(&p, "shape");
    s->rank--;
    const mpsim_format *f = s->format;
    s->format = mpsim_format_find("fp16");
    REFUSED(&p, "shape");
    s->format = f;
    /* numbers of steps */
    strcpy(p.step, "3");
    REFUSED(&p, "steps");
    strcpy(p.step, "two");
    REFUSED(&p, "steps");
    strcpy(p.step, "2");
    strcpy(p.taken, "3");
    REFUSED(&p, "steps");
    strcpy(p.taken, "2");
    /* what it is */
    strcpy(p.schema, "mpsim-trace/1");
    REFUSED(&p, "not a checkpoint");
    strcpy(p.schema, "mpsim-train-checkpoint/2");
    /* the state */
    char *age = strstr(p.state, "\nage ");
    age = strchr(age + 1, '\n') - 1; /* of two steps no parameter has three updates */
    ck_assert_int_eq(*age, '2');
    *age = '3';
    REFUSED(&p, "updates");
    *age = '2';
    const size_t n = strlen(p.state);
    for (size_t i = 0; i < n; i += 1 + n / 16) {
        char cut = p.state[i];
        p.state[i] = '\0';
        ck_assert_msg(try(&p, POLICY)[0] != '\0', "a state of %zu of %zu characters", i, n);
        p.state[i] = cut;
    }
    ck_assert_str_eq(try(&p, POLICY), "");
    forget_parts(&p);
}

TEST(checkpoints_of_other_runs_are_refused)
{
    static parts p;
    take_apart(&p, "fp32");
    REFUSED(&p, "another run: ");
    ck_assert_ptr_nonnull(strstr(try(&p, POLICY), "not "));
    forget_parts(&p);
    take_apart(&p, POLICY);
    char *batch = strstr(p.run, "batch 8");
    ck_assert_ptr_nonnull(batch);
    batch[6] = '9';
    REFUSED(&p, "batch 9, not 8");
    batch[6] = '8';
    p.run[strlen(p.run) - 9] = '\0';
    REFUSED(&p, "another run");
    p.run[0] = '\0';
    REFUSED(&p, "nothing more, not ");
    forget_parts(&p);
}

/* Every prefix of a checkpoint, and bytes of its header changed: refused, never read beyond. */
TEST(truncated_checkpoints_are_refused)
{
    static parts p;
    static unsigned char bytes[1 << 20];
    trace_error error;
    take_apart(&p, POLICY);
    ck_assert_str_eq(try(&p, POLICY), "");
    FILE *f = fopen(trainer_path("damaged"), "rb");
    ck_assert_ptr_nonnull(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    ck_assert_uint_lt(n, sizeof bytes);
    for (size_t i = 0; i < n; i += 1 + n / (1 + (size_t)(30 * test_multiplier()))) {
        trainer t;
        checkpoint_note note;
        const char *path = trainer_path("truncated");
        f = fopen(path, "wb");
        ck_assert_uint_eq(fwrite(bytes, 1, i, f), i);
        fclose(f);
        trainer_open(&t, POLICY, "mlp", 6);
        ck_assert_msg(train_checkpoint_read(path, &t.run, t.train, &note, &error) != 0, "%zu of %zu bytes", i, n);
        trainer_close(&t);
    }
    forget_parts(&p);
}

TEST(the_run_of_a_checkpoint)
{
    static parts p;
    trace_error error;
    train_run read;
    take_apart(&p, POLICY);
    ck_assert_str_eq(try(&p, POLICY), "");
    ck_assert_msg(train_checkpoint_run(trainer_path("damaged"), &read, &error) == 0, "%s", error.text);
    char *text = train_run_text(&read);
    ck_assert_str_eq(text, p.run);
    free(text);
    train_run_clear(&read);
    strcpy(p.run + strlen(p.run) / 2, "nonsense\n");
    (void)try(&p, POLICY);
    ck_assert_int_ne(train_checkpoint_run(trainer_path("damaged"), &read, &error), 0);
    ck_assert_int_eq(error.exit, EXIT_DATA);
    ck_assert_int_ne(train_checkpoint_run(trainer_path("no-such-file"), &read, &error), 0);
    ck_assert_int_eq(error.exit, EXIT_IO);
    forget_parts(&p);
}

TEST(differences_of_runs)
{
    static const struct {
        const char *a, *b, *want; /* NULL: none */
    } rows[] = {{"x\nsteps 5\ny\n", "x\nsteps 6\ny\n", NULL},
                {"x\nsteps 5\ny\n", "x\ny\n", NULL},
                {"", "", NULL},
                {"a 1\nb 2\n", "a 1\nb 3\n", "b 2, not 3"},
                {"a 1\n", "a 1\nb 3\n", "nothing more, not b 3"},
                {"a 1\nb 3", "a 1\n", "b 3, not nothing more"},
                {"a 12\n", "a 1\n", "a 12, not 1"},
                {"a x=1,y=2 z\n", "a x=1,y=3 z\n", "a y=2, not y=3"},
                {"layer a\n", "end\n", "layer a, not end"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[128] = "";
        ck_assert_int_eq(train_run_difference(text, sizeof text, rows[i].a, rows[i].b), rows[i].want != NULL);
        if (rows[i].want)
            ck_assert_str_eq(text, rows[i].want);
    }
}

TEST_MAIN_BY(replay_test_main, "train-checkpoint");
