/* t-scaler-log.c -- training logs as recorded tracks: their jumps, verdicts, and whose rules reproduce them; patterns. */
#include "sim/scaler/pattern.h"
#include "sim/traininglog/judge.h"
#include "sim/traininglog/match.h"
#include "sim/traininglog/traininglog.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- logs ---- */

static char path[1024];

static void write_log(const char *text)
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/mpsim-test-XXXXXX", folder && *folder ? folder : "/tmp");
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    const size_t n = strlen(text);
    ck_assert(write(fd, text, n) == (ssize_t)n && close(fd) == 0);
}

static void read_log(training_log *l, const char *text)
{
    write_log(text);
    const int code = traininglog_training_log_read(l, path, NULL);
    unlink(path);
    ck_assert_int_eq(code, 0);
}

static uint64_t agreement(const training_log *l, const char *spec, uint64_t *compared)
{
    mpsim_scaler_config c;
    log_match m = {.label = ""};
    ck_assert(mpsim_scaler_parse(&c, spec) == MPSIM_OK);
    traininglog_match_scaler(&m, spec, &c, &l->recorded, 0);
    *compared = m.compared;
    return m.agreed;
}

/* A log of the lines that a scaler writes over a pattern, a line per step; skipped ones told. */
static char *simulated_log(const char *spec, const char *bits, int before)
{
    static char text[1 << 16];
    mpsim_scaler_config c;
    mpsim_scaler s;
    size_t n = 0;
    ck_assert(mpsim_scaler_parse(&c, spec) == MPSIM_OK && mpsim_scaler_init(&s, &c) == MPSIM_OK);
    for (size_t i = 0; bits[i] && n + 100 < sizeof text; i++) {
        const mpsim_scaler_result r = mpsim_scaler_update(&s, bits[i] == '1');
        n += (size_t)snprintf(text + n, sizeof text - n, "step %zu scale %.17g skipped %d\n", i + 1,
                              before ? r.scale : r.next, bits[i] == '1');
    }
    return text;
}

CASE("logs", 20);

/* Every scaler reproduces its own log, and those that differ do not. */
TEST(scalers_reproduce_their_logs)
{
    static const char bits[] = "0001001100000000000010110000001000000000000000110000000000000000000"
                               "0000000011000000100000001111110000000000000000";
    static const char *const specs[] = {
        "torch:window=7",
        "torch:window=7,backoff=0.25",
        "apex:window=7,ceiling=2^17",
        "megatron:window=7",
        "deepspeed:window=7",
        "apex-hysteresis:window=7",
        "fairseq:window=7",
        "tutorial:window=7,hysteresis=3",
    };
    enum { SPECS = sizeof specs / sizeof specs[0] };
    for (int before = 0; before < 2; before++)
        for (size_t i = 0; i < SPECS; i++) {
            static training_log l;
            uint64_t n;
            read_log(&l, simulated_log(specs[i], bits, before));
            const uint64_t own = agreement(&l, specs[i], &n);
            ck_assert_msg(own == n && n > 10, "%s: %d of %d", specs[i], (int)own, (int)n);
            ck_assert_uint_eq(l.recorded.steps, sizeof bits - 1);
            const uint64_t other = agreement(&l, "torch:window=9", &n);
            ck_assert_msg(other < n, "%s is torch:window=9", specs[i]);
            traininglog_training_log_clear(&l);
        }
}

TEST(jumps_are_found)
{
    static training_log l;
    read_log(&l, "step 1 scale 65536 skipped 0\nstep 2 scale 256 skipped 0\n");
    ck_assert_uint_eq(l.n_jumps, 1);
    ck_assert(l.jumps[0].from == 65536 && l.jumps[0].to == 256 && l.jumps[0].step == 2 && l.jumps[0].line == 2 &&
              !l.jumps[0].restart);
    traininglog_training_log_clear(&l);
    read_log(&l, "step 1 scale 65536 skipped 0\nstep 2 scale 32768 skipped 1\n"
                 "step 3 scale 65536 skipped 0\n");
    ck_assert_uint_eq(l.n_jumps, 0); /* an overflow, a growth */
    traininglog_training_log_clear(&l);
    read_log(&l, "step 1 scale 65536\nstep 9 scale 256\n");
    ck_assert_uint_eq(l.n_jumps, 0); /* eight steps may have overflowed */
    traininglog_training_log_clear(&l);
    read_log(&l, "step 1 scale 65536\nstep 8 scale 256\n");
    ck_assert_uint_eq(l.n_jumps, 1);
    traininglog_training_log_clear(&l);
    read_log(&l, "step 8 scale 256 skipped 0\nstep 9 scale 256 skipped 0\n"
                 "step 8 scale 65536 skipped 0\nstep 9 scale 65536 skipped 0\n");
    ck_assert(l.n_jumps == 1 && l.jumps[0].restart && l.restarts == 1); /* state lost on resume */
    traininglog_training_log_clear(&l);
    read_log(&l, "step 8 scale 256 skipped 0\nstep 9 scale 256 skipped 0\n"
                 "step 8 scale 256 skipped 0\n");
    ck_assert(l.n_jumps == 0 && l.restarts == 1);
    traininglog_training_log_clear(&l);
    read_log(&l, "Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to 32768.0\n"
                 "Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to 128.0\n");
    ck_assert(l.n_jumps == 1 && l.jumps[0].from == 32768 && l.jumps[0].to == 256);
    traininglog_training_log_clear(&l);
    read_log(&l, "step 1 scale 1024\nstep 5000 scale 65536\n"); /* six growths in 4,999 steps */
    ck_assert(l.n_jumps == 0 && l.recorded.growths == 1);
    traininglog_training_log_clear(&l);
}

/* Growths that lines tell one by one, and those that a tracker shows which begins again at the same scale. */
TEST(growths_that_are_told)
{
    static training_log l;
    read_log(&l, "Grad overflow on iteration 145\nReducing dynamic loss scale from 128.0 to 64.0\n"
                 "Increasing dynamic loss scale from 64.0 to 128.0\nIncreasing dynamic loss scale from 128.0 to 256.0\n"
                 "Increasing dynamic loss scale from 256.0 to 512.0\n"
                 "Grad overflow on iteration 482\nReducing dynamic loss scale from 512.0 to 256.0\n");
    ck_assert(l.n_jumps == 0 && l.recorded.growths == 3 && l.recorded.overflows == 2 && l.recorded.last == 256);
    traininglog_training_log_clear(&l);
    read_log(&l, "step 10\n[AMP Stats] Scale: 65536.0, Growth tracker: 1500\n"
                 "step 20\n[AMP Stats] Scale: 65536.0, Growth tracker: 3\n");
    ck_assert(l.recorded.growths == 1 && l.recorded.overflows == 1 && l.recorded.steps == 20);
    ck_assert(l.recorded.spans[2].from == 17 && l.recorded.spans[2].events & MPSIM_SCALER_OVERFLOW);
    traininglog_training_log_clear(&l);
    read_log(&l, "step 10\n[AMP Stats] Scale: 65536.0, Growth tracker: 1500\n"
                 "step 20\n[AMP Stats] Scale: 131072.0, Growth tracker: 3\n");
    ck_assert(l.recorded.growths == 1 && l.recorded.overflows == 0);
    traininglog_training_log_clear(&l);
}

TEST(ranks_count_once)
{
#define APEX(s) "Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to " s "\n"
#define DEEP(r, a, b) "OVERFLOW! Rank " r " Skipping step. Attempted loss scale: " a ", reducing to " b "\n"
    static training_log l;
    read_log(&l, APEX("512") APEX("512") APEX("256") APEX("256") APEX("256") APEX("256"));
    ck_assert(l.copies == 2 && l.recorded.overflows == 3); /* 512; 256, and again after growth */
    traininglog_training_log_clear(&l);
    read_log(&l, APEX("512") APEX("256") APEX("256"));
    ck_assert(l.copies == 1 && l.recorded.overflows == 3);
    traininglog_training_log_clear(&l);
    read_log(&l, DEEP("1", "8", "4") DEEP("0", "8", "4") DEEP("0", "4", "2") DEEP("1", "4", "2"));
    ck_assert(l.other_ranks == 2 && l.recorded.overflows == 2 && l.recorded.last == 2);
    traininglog_training_log_clear(&l);
    read_log(&l, "Grad overflow on iteration 5\nReducing dynamic loss scale from 8 to 4.0\n"
                 "Skipping step. Attempted loss scale: 8, reducing to 4.0\n");
    ck_assert(l.recorded.overflows == 1 && l.recorded.spans[0].from == 5);
    traininglog_training_log_clear(&l);
#undef APEX
#undef DEEP
}

#define APEX(s) "Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to " s "\n"
#define DEEP(a, b) "Skipping step. Attempted loss scale: " a ", reducing to " b "\n"
#define BEIT(loss, s) "Epoch: [3] [ 10/1251] lr: 0.0001 loss: " loss " loss_scale: " s " (1)\n"

TEST(verdicts_on_short_tails)
{
    static const struct {
        const char *text;
        verdict v;
        const char *words, *never; /* in the text; not there */
    } rows[] = {
        {"step 1 loss 2 loss_scale: 65536\nstep 2 loss: nan loss_scale: 32768\n", VERDICT_NOT_FINITE,
         "somewhere else than the loss scale", "normal. "},
        {"step 1 scale 8 skipped 0\nstep 2 scale 4 skipped 1\nstep 3 scale 2 skipped 1\n", VERDICT_SEARCHING,
         "ends in 2 overflows", "then none"},
        {"step 1 scale 8 skipped 0\nstep 2 scale 4 skipped 1\nstep 3 scale 4 skipped 0\n", VERDICT_STARTUP, "then none",
         "ends in"},
        {"step 1 scale 8 skipped 0\nstep 500 scale 8 skipped 0\nstep 501 scale 4 skipped 1\n", VERDICT_SPIKES,
         "The last step overflows, too", "then none"},
        {APEX("32768.0"), VERDICT_UNCLEAR, "If this is the start under mixed precision, this is normal",
         "This is normal"},
        {APEX("1e-323") APEX("5e-324") APEX("0.0"), VERDICT_RUNAWAY, "down to 0", "normal"},
        {APEX("0.0"), VERDICT_RUNAWAY, "down to 0", "normal"},
        {APEX("0.0") APEX("0.0"), VERDICT_RUNAWAY, "down to 0", "normal"},
        {APEX("3.0517578125e-05"), VERDICT_RUNAWAY, "far below", "normal"},
        {APEX("0.0001220703125"), VERDICT_RUNAWAY, "far below", "normal"},
        {BEIT("nan", "0.0000"), VERDICT_RUNAWAY, "down to 0", "normal"},
        {BEIT("2.0", "65536.0000") BEIT("nan", "64.0000") BEIT("nan", "0.0000"), VERDICT_RUNAWAY, "down to 0",
         "normal"},
        {BEIT("nan", "0.0005") BEIT("nan", "0.0002") BEIT("nan", "0.0001") BEIT("nan", "0.0001") BEIT("nan", "0.0000"),
         VERDICT_RUNAWAY, "down to 0", "normal"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static training_log l;
        log_judgement j;
        read_log(&l, rows[i].text);
        traininglog_judge(&j, &l);
        ck_assert_msg(j.verdict == rows[i].v, "row %zu: %s: %s", i, traininglog_verdict_name(j.verdict), j.text);
        ck_assert_msg(strstr(j.text, rows[i].words) && !strstr(j.text, rows[i].never), "row %zu: %s", i, j.text);
        traininglog_training_log_clear(&l);
    }
}

/* Scales that go to 0, or are printed with few digits, are no jumps. */
TEST(falls_that_are_no_jumps)
{
    static const char *const falls[] = {
        APEX("1e-323") APEX("5e-324") APEX("0.0") APEX("0.0"),
        APEX("0.0"),
        APEX("0.25") APEX("0.1") APEX("0.1") APEX("0.0"),
        "step 1 loss_scale 0.0005\nstep 2 loss_scale 0.0002\nstep 3 loss_scale 0.0001\n"
        "step 4 loss_scale 0.0001\nstep 5 loss_scale 0.0000\nstep 6 loss_scale 0.0000\n",
        "step 1 scale 0.0001 skipped 0\nstep 2 scale 0.0000 skipped 1\n",
        BEIT("2", "65536.0000") BEIT("nan", "64.0000") BEIT("nan", "0.0625") BEIT("nan", "0.0000"),
    };
    static const char *const jumps[] = {
        APEX("32768.0") APEX("0.0"),
        "step 1 loss_scale 65536\nstep 2 loss_scale 0.0000\n",
        BEIT("2", "65536.0000") BEIT("2", "64.0000"), /* nothing tells of an overflow */
        BEIT("2", "64.0000") BEIT("nan", "65536.0000"),
    };
    static training_log l;
    for (size_t i = 0; i < sizeof falls / sizeof falls[0]; i++) {
        read_log(&l, falls[i]);
        ck_assert_msg(l.n_jumps == 0, "%s", falls[i]);
        traininglog_training_log_clear(&l);
    }
    for (size_t i = 0; i < sizeof jumps / sizeof jumps[0]; i++) {
        read_log(&l, jumps[i]);
        ck_assert_msg(l.n_jumps == 1, "%s", jumps[i]);
        traininglog_training_log_clear(&l);
    }
}

TEST(losses_that_are_nan)
{
    static training_log l;
    read_log(&l, "step 1 loss 2 loss_scale 8\n\nstep 2 loss nan loss_scale 8\n"
                 "step 3 loss nan loss_scale 8\n");
    ck_assert(l.lost_since && l.lost == 3 && l.lost_lines == 2);
    traininglog_training_log_clear(&l);
    read_log(&l, "step 1 loss inf loss_scale 8\nstep 2 loss 2 loss_scale 8\n");
    ck_assert(!l.lost_since && l.lost_lines == 1);
    traininglog_training_log_clear(&l);
    read_log(&l, "step 1 loss nan loss_scale 8\nstep 2 loss 2 loss_scale 8\nstep 3 loss_scale 8\n"
                 "step 4 loss nan loss_scale 4\nstep 5 loss_scale 4\n");
    ck_assert(l.lost_since && l.lost == 4 && l.lost_lines == 2);
    traininglog_training_log_clear(&l);
    read_log(&l, "rank 0 step 1 loss 2 loss_scale 8\nrank 1 step 1 loss nan loss_scale 8\n");
    ck_assert(!l.lost_since && l.lost_lines == 0 && l.other_ranks == 1);
    traininglog_training_log_clear(&l);
}

/* "reducing to" the scale it has: hysteresis, but for the minimum. */
TEST(overflows_that_are_tolerated)
{
    static training_log l;
    read_log(&l, DEEP("65536", "65536") DEEP("65536", "32768") DEEP("32768", "32768"));
    ck_assert(l.recorded.tolerated == 2 && l.recorded.floored == 0 && l.recorded.backoffs == 1);
    traininglog_training_log_clear(&l);
    read_log(&l, DEEP("2", "1") DEEP("1", "1"));
    ck_assert(l.recorded.tolerated == 0 && l.recorded.floored == 1);
    traininglog_training_log_clear(&l);
    read_log(&l, DEEP("512", "256") DEEP("256", "256") DEEP("256", "256") DEEP("256", "256") DEEP("256", "256")
                     DEEP("256", "256")); /* a minimum of the user's */
    ck_assert(l.recorded.tolerated == 3 && l.recorded.floored == 2);
    traininglog_training_log_clear(&l);
}

#undef APEX
#undef DEEP
#undef BEIT

TEST(lines_have_the_numbers_of_an_editor)
{
    static training_log l;
    read_log(&l, "\n\r\nstep 1 scale 65536 skipped 0\r\n\r\n10%\r20%\n"
                 "step 2 scale 256 skipped 0\n");
    ck_assert(l.n_jumps == 1 && l.jumps[0].line == 6);
    traininglog_training_log_clear(&l);
}

TEST(bad_logs)
{
    static training_log l;
    write_log("nothing here\n");
    ck_assert_int_eq(traininglog_training_log_read(&l, path, NULL), 3);
    traininglog_training_log_clear(&l);
    unlink(path);
    ck_assert_int_eq(traininglog_training_log_read(&l, path, NULL), 4); /* gone */
    traininglog_training_log_clear(&l);
    ck_assert_int_eq(traininglog_training_log_read(&l, "/", NULL), 3); /* no text */
    traininglog_training_log_clear(&l);
    /* steps that are far apart, or go back, and scales at the ends of binary64 */
    read_log(&l, "step 1 scale 1e308 skipped 0\nstep 900000000000000000 scale 1e-308 skipped 0\n"
                 "step 2 scale 0 skipped 1\nstep 3 scale 0 skipped 1\nstep 4 scale 0 skipped 0\n"
                 "step 5 scale 65536 skipped 7\nstep 900000000000000000 scale 65536 skipped 0\n");
    for (size_t i = 0; i < mpsim_scaler_count(); i++) {
        uint64_t n;
        ck_assert_uint_le(agreement(&l, mpsim_scaler_at(i)->config.name, &n), n);
    }
    traininglog_training_log_clear(&l);
}

/* ---- patterns ---- */

static int add_run(double limit, uint64_t n, void *context)
{
    char *out = context;
    for (uint64_t i = 0; i < n && strlen(out) < 200; i++)
        strcat(out, limit < 0 ? "1" : isinf(limit) ? "0" : "?");
    return 0;
}

TEST(patterns)
{
    static const char *const good[][2] = {
        {"0", "0"},
        {"1*3,0*2,1", "111001"},
        {"x.X0", "1010"},
        {"(0*2,1)*3", "001001001"},
        {"((1,0)*2 . )*2", "1010010100"},
        {" 1 * 2\n# a comment (\n0", "110"},
        {"0*0,1", "1"},
        {"(1*0)*5,0", "0"},
        {"{2^14}*2,{65536},0", "???0"},
        {"()*3,1", "1"},
    };
    /* clang-format off */
    static const char *const bad[] = {"2", "1*", "(", ")", "(1", "1)", "*3", "{}", "{x}", "{1",
                                      "{-1}", "1**2", "0*2000000000000", "(0*1000000)*2000000",
                                      "0*100000001", "0*100000000,0", "(0*10000,1)*10000",
                                      "((((((((((((((((((1))))))))))))))))))"};
    /* clang-format on */
    uint64_t steps;
    size_t at;
    const char *reason;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        char out[256] = "";
        ck_assert_msg(scaler_pattern_each(good[i][0], add_run, out, &steps, &at, &reason) == 0, "%s", good[i][0]);
        ck_assert_str_eq(out, good[i][1]);
        ck_assert_uint_eq(steps, strlen(good[i][1]));
    }
    ck_assert(scaler_pattern_each("0*100000000", NULL, NULL, &steps, &at, &reason) == 0 && steps == PATTERN_STEPS);
    ck_assert(scaler_pattern_each("0,(1*0)*99999999999", NULL, NULL, &steps, &at, &reason) == -1);
    ck_assert_str_eq(reason, "more than 10^8 steps");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(scaler_pattern_each(bad[i], NULL, NULL, &steps, &at, &reason) == -1 && reason &&
                          at <= strlen(bad[i]),
                      "%s", bad[i]);
}

TEST_MAIN("scaler-log");
