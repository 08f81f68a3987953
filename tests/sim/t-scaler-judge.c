/* t-scaler-judge.c -- verdicts on logs: what may be called fine, and what may not; lines of guides and
 * scripts, of a terminal, of a pattern of one's own; hostile logs. */
#include "sim/traininglog/judge.h"
#include "support/support.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- logs ---- */

static char text[1 << 20];
static size_t length;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    length += (size_t)vsnprintf(text + length, sizeof text - length, format, values);
    va_end(values);
    ck_assert_uint_lt(length, sizeof text);
}

static void apex(double scale)
{
    add("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to %.17g\n", scale);
}

/* Lines of steps that go well. */
static void losses(int from, int to, int by, double loss, double change)
{
    for (int i = from; i < to; i += by)
        add("step %d loss %.4f\n", i, loss + change * i);
}

static void scales(int from, int to, double loss, double scale)
{
    for (int i = from; i < to; i++)
        add("step %d loss %.4f scale %g skipped 0\n", i, loss, scale);
}

static void judge_log(training_log *l, log_judgement *j, const log_pattern *own)
{
    const char *folder = getenv("TMPDIR");
    char path[1024];
    snprintf(path, sizeof path, "%s/mpsim-test-XXXXXX", folder && *folder ? folder : "/tmp");
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert(write(fd, text, length) == (ssize_t)length && close(fd) == 0);
    const int code = traininglog_training_log_read(l, path, own);
    unlink(path);
    ck_assert_int_eq(code, 0);
    traininglog_judge(j, l);
    length = 0;
}

static void expect(const char *class)
{
    static training_log l;
    log_judgement j;
    judge_log(&l, &j, NULL);
    ck_assert_msg(strcmp(traininglog_class(j.verdict), class) == 0, "%s, not %s: %s %s", traininglog_class(j.verdict),
                  class, j.text, j.missing);
    ck_assert_msg(j.n_evidence > 0 || j.missing[0], "%s: %s", class, j.text);
    ck_assert((j.sure == NOT_ENOUGH) == (strcmp(class, "not-enough") == 0));
    traininglog_training_log_clear(&l);
}

/* ---- a search needs evidence ---- */

START_TEST(searches)
{
    apex(32768); /* only overflows */
    apex(16384);
    expect("not-enough");
    apex(32768); /* the first scale, and they stop */
    apex(16384);
    losses(10, 400, 10, 5, -0.001);
    expect("fine-startup");
    losses(20000, 20200, 10, 5, 0); /* late, from the middle of a run */
    for (int i = 0; i < 5; i++)
        apex(8192 / exp2(i));
    expect("warn-diverging");
    for (int i = 0; i < 3; i++) /* early, by the bar */
        add("0%%| | %d/24128 [00:01<1:00, 2it/s] OVERFLOW! Rank 0 Skipping step. Attempted loss "
            "scale: %d, reducing to %d\n",
            95 + i, 1024 >> i, 512 >> i);
    add("1%%| | 200/24128 [00:40<1:00, 2it/s, loss=2]\n 1%%| | 300/24128 [00:50<1:00, 2it/s]\n");
    expect("fine-startup");
    for (int i = 0; i < 3; i++) /* the same at its floor */
        add("0%%| | %d/24128 [00:01<1:00, 2it/s] OVERFLOW! Rank 0 Skipping step. Attempted loss "
            "scale: 1, reducing to 1\n",
            95 + i);
    expect("warn-diverging");
    add("OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 1, reducing to 1\n");
    expect("warn-diverging");
    add("initial_dynamic_scale ........ 4096\n"); /* the settings' scale */
    add("OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4096, reducing to 2048\n");
    losses(2, 30, 1, 5, -0.01);
    expect("fine-startup");
}

/* ---- losses and norms beside the scale ---- */

START_TEST(losses_and_norms)
{
    for (int i = 0; i < 12; i++) /* Megatron-DeepSpeed: skipped iterations are always 0 */
        add(" iteration %d/ 50000 | elapsed time per iteration (ms): 1.0 | lm loss: %.2E | loss "
            "scale: %d.0 | grad norm: %d.0 | number of skipped iterations:   0 | number of nan "
            "iterations:   0 |\n",
            1000 + i, 2.8 + 0.4 * i, 65536 >> i / 3, i + 1);
    expect("warn-diverging");
    for (int i = 0; i < 4; i++) /* the norm is NaN, nothing is skipped */
        add(" iteration %d/ 50000 | loss scale: 1.0 | grad norm: nan | number of skipped "
            "iterations:   0 |\n",
            5000 + i);
    expect("warn-diverging");
    apex(32768);
    losses(10, 400, 10, 5, -0.001);
    add("step 400 loss nan\n");
    expect("warn-nonfinite");
    scales(1, 60, 2.5, 65536);
    expect("fine-steady");
    for (int i = 1; i < 60; i++) /* a scale that looks well does not make a rising loss fine */
        scales(i, i + 1, 2 + 0.1 * i, 65536);
    expect("warn-diverging");
    for (int i = 1; i < 60; i++) /* another rank's loss */
        add("[rank%d] step %d loss %s scale 65536 skipped 0\n", i % 2, i / 2, i % 2 && i > 30 ? "nan" : "2");
    expect("warn-nonfinite");
    for (int i = 0; i < 6; i++) /* no scale at all */
        add("{'loss': 0.0, 'grad_norm': nan, 'epoch': 0.%d}\n", i + 1);
    expect("warn-nonfinite");
    add("{'loss': 2.0, 'grad_norm': 1.0, 'epoch': 0.1}\n{'loss': 1.9, 'epoch': 0.2}\n");
    expect("not-enough");
    for (int i = 10; i < 500; i += 10) /* DeepSpeed's totals */
        add("[Rank 0] step=%d, skipped=%d, lr=[0.0], mom=[0.9]\n", i, i - 3);
    expect("warn-diverging");
}

/* ---- levels: evidence decides, not the number of lines ---- */

static uint64_t noise_state = 20261127;

/* Within +/- `size`, the same every time. */
static double noise(double size)
{
    noise_state = noise_state * 6364136223846793005u + 1442695040888963407u;
    return size * ((double)(noise_state >> 40) / 0x1p23 - 1);
}

static void loss_line(int i, double loss, double norm)
{
    add("{'loss': %.4f, 'grad_norm': %.3f, 'epoch': %.2f}\n", loss, norm, 0.01 * i);
}

/* What was learned and lost is never fine, however early it was and however many good steps there were. */
START_TEST(learned_and_lost)
{
    static const int lengths[] = {12, 40, 100, 300, 1000}, good[] = {2, 3, 5, 7, 15, 50, 150};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (size_t k = 0; k < sizeof good / sizeof good[0] && 2 * good[k] <= lengths[i]; k++) {
            const int n = lengths[i] - good[k];
            for (int j = 0; j < good[k]; j++)
                loss_line(j, 2 + noise(0.02), 1 + noise(0.1));
            for (int j = 0; j < n; j++)
                loss_line(good[k] + j, 11.4 - 4.2 * j / n + noise(0.05), 1 + noise(0.1));
            expect("warn-diverging");
        }
    for (int fall = 40; fall <= 640; fall *= 4) { /* more good steps before a rise */
        for (int j = 0; j < fall; j++)
            loss_line(j, 9 * exp(-8.0 * j / fall) + 2.2 + noise(0.05), 1 + noise(0.1));
        for (int j = 0; j < 12; j++)
            loss_line(fall + j, 3 + 0.5 * j + noise(0.05), 1 + noise(0.1));
        expect("warn-diverging");
    }
}

START_TEST(lines_change_how_sure)
{
    for (int n = 4; n <= 24; n++) {
        for (int i = 0; i < n; i++)
            loss_line(i, 6.37 * (1 + 0.15 * i), 1);
        expect("warn-diverging");
        for (int i = 0; i < n; i++)
            add(" iteration %d/ 1000 | lm loss: %.6E | loss scale: 65536.0 | grad norm: 1.%d | number of skipped iterations: 0 |\n",
                10 * i + 10, 6.37 + 0.95 * i, i);
        expect("warn-diverging");
        for (int i = 0; i < n; i++)
            add("{'loss': 0.0, 'grad_norm': 0.0, 'epoch': 0.%02d}\n", i + 1);
        expect("warn-not-learning");
        for (int i = 0; i < n; i++)
            loss_line(i, 1 + 8 * exp(-0.1 * i) + noise(0.01), 1 + noise(0.1));
        expect("fine-steady");
        for (int i = 0; i < n; i++)
            loss_line(i, 2 + noise(0.1), 1 + noise(0.1));
        expect("fine-steady");
    }
}

/* Plateaus whose lines are alike over a while, of two kinds of batches, and with a single bad line. */
START_TEST(noise_is_no_rise)
{
    for (int n = 20; n <= 2560; n *= 2) {
        double slow = 0;
        for (int i = 0; i < n; i++)
            loss_line(i, 2.5 + (slow = 0.9 * slow + noise(0.1)), 1 + noise(0.1));
        expect("fine-steady");
        for (int i = 0; i < n; i++)
            loss_line(i, (i * 7 % 5 < 3 ? 1.5 : 0.5) + noise(0.02), 1 + noise(0.1));
        expect("fine-steady");
        for (int i = 0; i < n; i++)
            loss_line(i, (i == n / 2 + 3 ? 8 : 2.5) + noise(0.1), 1 + noise(0.1));
        expect("warn-spikes");
    }
}

static void expect_says(const char *class, const char *words, const char *never)
{
    static training_log l;
    log_judgement j;
    judge_log(&l, &j, NULL);
    ck_assert_msg(strcmp(traininglog_class(j.verdict), class) == 0, "%s, not %s: %s", traininglog_class(j.verdict),
                  class, j.text);
    ck_assert_msg(strstr(j.text, words) && !(never && strstr(j.text, never)), "%s: %s", words, j.text);
    traininglog_training_log_clear(&l);
}

/* ---- few lines ---- */

static void numbers_of(const char *list, const char *form)
{
    int i = 0;
    for (const char *p = list; *p; p += strcspn(p, " "), p += strspn(p, " "))
        add(form, i++, (int)strcspn(p, " "), p);
}

/* What was reached and lost in few lines is not called fine, nor diverging where a run of such noise looks the same. */
START_TEST(few_lines_that_rise)
{
    static const char *const losses[] = {"2 5.5 4.5 5",
                                         "0.5 1.3 1.1 1.2",
                                         "0.1023 0.0998 0.55 1.02",
                                         "2 2 4 3.4",
                                         "3.117 3.006 3.682 6.434",
                                         "3.044 2.959 4.067 6.373",
                                         "6 4 2 4",
                                         "6 4.4 2.8 3.6 5.2",
                                         "6 4.67 3.33 2 3.33 4.67",
                                         "0.467 0.988 1.059 0.911 1.035 0.968",
                                         "5.77 5.53 11.29 11.31 9.36 11.27 9.53 9.25",
                                         "3 6 12",
                                         "1.112 0.98 1.1 1.13 1.13 1.32",
                                         "1.453 1.406 1.415 1.42 1.45 1.47 1.5 1.49 1.53 1.55 1.58 1.57 1.6 1.631"};
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        numbers_of(losses[i], "step %d loss: %.*s grad_norm: 0.8\n");
        expect_says("not-enough", "the end", NULL);
        numbers_of(losses[i], "step %d loss: %.*s scale: 65536\n");
        expect("not-enough");
    }
    numbers_of("3.01 2.99 9 3 3.02", "step %d loss: %.*s\n");
    expect("warn-spikes");
    numbers_of("0.8 0.75 80 0.82 0.79", "step %d loss: 3 grad_norm: %.*s\n");
    expect("warn-spikes");
    numbers_of("8 5 3.5 5", "step %d loss: %.*s\n");
    expect("not-enough");
    numbers_of("-1.0 -1.0 -1.0 -1.0 -1.0", "step %d loss: %.*s\n"); /* a rank that has no loss */
    expect("not-enough");
    numbers_of("4 4.1 2 4 4.05 4.1", "step %d loss: %.*s grad_norm: 1\n"); /* a dip is no level */
    expect("fine-steady");
}

/* A start that rises step by step and still falls, whether the log tells steps or not; and one that has jumped. */
START_TEST(starts_that_still_fall)
{
    static const char rises[] = "10.8 16.9 26.5 41.4 64.8 53.5 44.2 36.5 30.1 24.9";
    numbers_of(rises, "{'loss': %3$.*2$s, 'grad_norm': 0.8, 'epoch': 0.%1$03d}\n");
    expect_says("not-enough", "too early", NULL);
    numbers_of("14.2 14.8 16 17 18.3 19.7 21 20.9 20.8 20.6 20.2 20 19.8 19.5 19.3 19 18.8 18.5 18.3 18.2",
               "step %d loss: %.*s\n");
    expect_says("not-enough", "too early", NULL);
    numbers_of("2 2.01 2 11.4 11 10.6 10.2 9.8 9.4 9 8.6 8.2 7.8 7.4", "step %d loss: %.*s\n");
    expect("warn-diverging");
}

/* Norms: NaN of which no scale tells, in few lines of a start, and 0. */
START_TEST(norms_in_few_lines)
{
    static const char *const forms[] = {"step 100%d loss: 2.9 grad_norm: %.*s\n",
                                        "step 100%d loss: 2.9 scale: 65536 grad_norm: %.*s\n",
                                        "step 100%d loss: 2.9 global_grad_norm: %.*s\n"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        numbers_of("0.8 0.75 nan 0.82", forms[i]);
        expect("warn-nonfinite");
        numbers_of("0.0 0.0 0.0 0.0 0.0 0.0", forms[i]);
        expect("warn-not-learning");
    }
    numbers_of("nan nan 1.2", "{'loss': 2.%d, 'grad_norm': %.*s, 'epoch': 0.001}\n");
    expect_says("not-enough", "If this is the start under mixed precision", NULL);
    numbers_of("inf", "{'loss': 2.%d, 'grad_norm': %.*s, 'epoch': 0.001}\n");
    expect_says("not-enough", "If this is the start under mixed precision", NULL);
    numbers_of("0.0 0.0 0.0 0.0 0.0", "| epoch 1 | %d/99 batches | ms/batch 12.11 | loss %.*s | gnorm 0.0\n");
    expect("warn-not-learning");
    numbers_of("3 3.3 3.6 3.9 4.2 4.5 4.8 5.1", "step %d cross_entropy: %.*s\n");
    expect("warn-diverging");
}

/* Settings that are printed twice with other values, as JSON, YAML and a diff. */
START_TEST(settings_twice)
{
    static const char *const settings[] = {
        "{\n  \"train_batch_size\": 256,\n  \"fp16\": {\n    \"loss_scale\": %d,\n    \"hysteresis\": 2\n  }\n}\n",
        "loss_scale: %d\nmax_grad_norm: 1.0\nmodel:\n  norm_eps: 1e-5\n", "+    \"loss_scale\": %d,\n"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        add(settings[i], 0); /* the format is one of the table */
        add(settings[i], 128);
        numbers_of("3 2.8 2.65 2.5 2.42 2.3", "step %d loss: %.*s grad_norm: 0.8\n");
        expect("fine-steady");
    }
}

START_TEST(first_steps_of_a_scaler)
{
    add("[AMP] step 1: scale 32768, growth_tracker 0, skipped Y\n"); /* as it is after the step */
    for (int i = 2; i < 30; i++)
        add("[AMP] step %d: scale 32768, growth_tracker %d, skipped n\n", i, i - 1);
    expect("fine-startup");
    for (int i = 1; i < 200; i++) /* a fall behind a hundred clean steps is no search */
        add("[AMP] step %d: scale %d, growth_tracker %d, skipped %s\n", i,
            i < 101   ? 65536
            : i < 108 ? 32768 >> (i - 101)
                      : 512,
            i < 101   ? i
            : i < 108 ? 0
                      : i - 107,
            i < 101 || i > 107 ? "n" : "Y");
    expect("warn-spikes");
    for (int i = 1; i < 60; i++)
        add("[AMP] step %d: scale %d, growth_tracker 0, skipped Y\n", i, i < 16 ? 65536 >> i : 1);
    expect("warn-diverging");
}

START_TEST(answers_under_a_condition)
{
    apex(32768);
    apex(16384);
    expect_says("not-enough", "If this is the start under mixed precision, this is normal: the scale is being searched",
                NULL);
    for (int i = 0; i < 3; i++)
        add("{'loss': 2.%d, 'grad_norm': %s, 'epoch': 0.0%d}\n", 9 - i, i ? "1.2" : "nan", i + 1);
    expect_says("not-enough", "If this is the start under mixed precision, this is normal: the scale is being searched",
                NULL);
    add("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 2097152.0\n"); /* it has grown */
    expect_says("not-enough", "the growth is taken back", "the start");
    for (int i = 0; i < 40; i++) /* a jump in the last line */
        loss_line(i, i == 39 ? 11.187 : 2 + noise(0.02), 1 + noise(0.1));
    expect_says("warn-spikes", "has not come back", "comes back");
    for (int i = 0; i < 30; i++)
        add("{'loss': 0.0, 'grad_norm': 0.%d, 'reward': 0.%d, 'kl': 0.000%d, 'epoch': 0.%02d}\n", 30 + i, 20 + i,
            10 + i % 7, i);
    expect_says("fine-steady", "in GRPO it is beta times the KL by construction", NULL);
    for (int i = 0; i < 40; i++) /* a start that is above its first loss, and falls */
        loss_line(i, i == 0 ? 10.9 : 15 + 70 * exp(-0.2 * i), 1 + noise(0.1));
    expect_says("not-enough", "too early to tell", NULL);
}

/* ---- rounding, growth, copies ---- */

START_TEST(scales_that_are_printed_as_they_are)
{
    for (int i = 1; i < 20; i++) /* 2^-4 */
        add("num_updates=%d00 loss=%d.5 gnorm=2 loss_scale=%s\n", i, 30 - i, i % 2 ? "0.062" : "0.0625");
    expect("fine-steady");
    for (int i = 1; i < 8; i++) /* growth that Apex does not print */
        for (int k = 0; k < 2; k++)
            if (k)
                apex(65536);
            else
                losses(4000 * i, 4000 * i + 4000, 500, 3, 0);
    losses(32000, 33000, 500, 3, 0);
    expect("fine-steady");
    for (int i = 0; i < 12; i++) /* an overflow and the line of its iteration are one step */
        add("OVERFLOW! Rank 0 Skipping step. Attempted loss scale: %d, reducing to %d\n"
            " iteration %d/ 50000 | lm loss: 2.0E+00 | loss scale: %d.0 | number of skipped "
            "iterations:   0 |\n",
            65536 >> i, 32768 >> i, i + 1, 32768 >> i);
    static training_log l;
    log_judgement j;
    judge_log(&l, &j, NULL);
    ck_assert_uint_eq(l.recorded.overflows, 12);
    ck_assert_uint_eq(l.recorded.steps, 12);
    traininglog_training_log_clear(&l);
    double scale = 65536; /* each growth is followed by three overflows: the scale goes down */
    for (int i = 0; i < 5; i++) {
        scales(100 * i, 100 * i + 1, 3, scale);
        scales(100 * i + 1, 100 * i + 2, 3, 2 * scale);
        for (int k = 2; k < 5; k++)
            add("step %d loss 3 scale %g skipped 1\n", 100 * i + k, scale = k == 2 ? scale : scale / 2);
    }
    scales(2000, 2050, 3, scale);
    expect("warn-spikes");
}

START_TEST(runs_that_are_resumed)
{
    scales(1, 30, 3, 1024);
    add("Resuming from checkpoint at step 20\n");
    scales(20, 40, 3, 65536);
    expect("warn-resume");
    for (int i = 0; i < 3; i++)
        apex(32768 >> i);
    losses(1000, 20000, 1000, 5, -1e-4);
    add("=> loaded checkpoint (epoch 3)\n");
    for (int i = 0; i < 3; i++)
        apex(32768 >> i);
    losses(20000, 40000, 1000, 3, -1e-5);
    expect("warn-resume");
}

/* ---- lines ---- */

START_TEST(lines_of_guides_and_scripts)
{
    static const struct {
        const char *line;
        unsigned what;
        double scale;
    } rows[] = {
        {"[AMP Stats] Scale: 32768.0, Growth tracker: 0", LOG_STATUS, 32768},
        {"Loss scale changed to: 16384.0", LOG_STATUS, 16384},
        {"Current scale: 8192.0", LOG_STATUS, 8192},
        {"Gradient overflow detected, skipping update", LOG_OVERFLOW, (double)NAN},
        {"12%|#| 98/24128 [00:10<1:00, 9it/s, loss=2.3, scale=65536]", LOG_STATUS, 65536},
        {"Epoch 3: 5%| | 10/200 [lr=1e-4, scale=1024]", LOG_STATUS, 1024},
        {"Attempted loss scal                   e: 8192, reducing to 4096 skipping step", LOG_OVERFLOW, 4096},
        {"Attempted loss scale: 8192, reducing to 40      96", LOG_OVERFLOW, 4096},
        {"Overflow occurs, the loss scale is adjusted to 512.0", LOG_OVERFLOW, 512},
        {"AMP: decreasing loss scale to 128.000000", LOG_OVERFLOW, 128},
        {"Found inf or nan, current scale is: 64.0, decrease to: 64.0*0.5", LOG_OVERFLOW, 32},
        {"Found NaN, decreased lg_loss_scale to 19.0", LOG_OVERFLOW, 524288},
        {"overflow, still update, loss scale adjust to 1024.0", LOG_OVERFLOW | LOG_TAKEN, 1024},
        {"num_updates=5, gnorm=1, loss_scale=0.004", LOG_STATUS, 0x1p-8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        log_line l;
        ck_assert_msg(traininglog_line_parse(&l, rows[i].line) == 1, "%s", rows[i].line);
        ck_assert_msg(l.what == rows[i].what && !l.bad, "%s: %u", rows[i].line, l.what);
        ck_assert_msg(l.after == rows[i].scale || (isnan(l.after) && isnan(rows[i].scale)), "%s: %a", rows[i].line,
                      l.after);
    }
}

START_TEST(lines_that_a_terminal_broke)
{
    static training_log l;
    log_judgement j;
    add("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scal\ne: 65536, reducing to "
        "327\n68\n[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss\n scale: 32768, "
        "reducing to\n16384\n");
    judge_log(&l, &j, NULL);
    ck_assert(l.recorded.overflows == 2 && l.recorded.last == 16384 && l.bad == 0);
    traininglog_training_log_clear(&l);
    scales(1, 20, 2, 65536); /* cut in the last number */
    add("step 20 loss 2 scale 655");
    judge_log(&l, &j, NULL);
    ck_assert(l.bad == 1 && l.recorded.last == 65536);
    traininglog_training_log_clear(&l);
    apex(32768); /* a value that cannot be read */
    add("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 1638?\n");
    losses(2, 30, 1, 5, -0.01);
    expect("not-enough");
    char a[LOG_WIDTH + 1] = "step 5 loss 2.0 skipped";
    ck_assert_int_eq(traininglog_line_join(a, "scale 0.5 image"), 0);
}

/* ---- patterns ---- */

START_TEST(patterns_of_ones_own)
{
    static const char *const bad[] = {"it {step}", "{scale",         "{scal}", "{scale} {scale}", "({scale}",
                                      "[{scale}",  "x{2,3} {scale}", "{}",     "*{scale}\\("};
    static training_log l;
    log_judgement j;
    log_pattern *own = NULL;
    const char *reason;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(traininglog_pattern_add(&own, bad[i], &reason) == -1 && reason, "%s", bad[i]);
    ck_assert_int_eq(traininglog_pattern_add(&own, "it ({step}|x).* amp={scale} [[]skip={overflow}[]]", &reason), 0);
    ck_assert_int_eq(traininglog_pattern_add(&own, "^DOWN {before}->{after}$", &reason), 0);
    for (int i = 0; i < 40; i++)
        add("it %d | Q=%d amp=%d [skip=%s]\n", i + 1, i, i < 3 ? 32768 >> i : 8192, i < 3 ? "yes" : "no");
    judge_log(&l, &j, own);
    ck_assert_uint_eq(l.recognised[LOG_OWN], 40);
    ck_assert(l.recorded.overflows == 3 && l.recorded.last == 8192);
    ck_assert_str_eq(traininglog_class(j.verdict), "fine-startup");
    traininglog_training_log_clear(&l);
    add("DOWN 8->4\nup\nDOWN 4->2\n");
    judge_log(&l, &j, own);
    ck_assert(l.recorded.overflows == 2 && l.recorded.last == 2);
    traininglog_training_log_clear(&l);
    traininglog_pattern_free(own);
}

/* A bracket expression ended at the first ']', that of a class within it. */
START_TEST(bug_20261126_classes_in_brackets)
{
    static const struct {
        const char *pattern, *line;
    } rows[] = {
        {"^[[:alpha:]{}]+ {scale}$", "{amp} 256\n"}, {"^[^[:digit:](]+ {scale}$", "amp: 256\n"},
        {"^[[=a=](]+ {scale}$", "a(a 256\n"},        {"^[[.].](]+ {scale}$", "]( 256\n"},
        {"^[][:space:]{(]+ {scale}$", "] {( 256\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static training_log l;
        log_judgement j;
        log_pattern *own = NULL;
        const char *reason = "";
        ck_assert_msg(traininglog_pattern_add(&own, rows[i].pattern, &reason) == 0, "%s: %s", rows[i].pattern, reason);
        add("%s", rows[i].line);
        judge_log(&l, &j, own);
        ck_assert_msg(l.recognised[LOG_OWN] == 1 && l.recorded.last == 256, "%s", rows[i].pattern);
        traininglog_training_log_clear(&l);
        traininglog_pattern_free(own);
    }
}

/* ---- hostile logs ---- */

START_TEST(notes_are_bounded)
{
    log_notes all = {.count = 0};
    for (int i = 0; i < 10 * NOTES_MAX; i++) {
        const log_note n = {.seq = (uint64_t)i, .marks = i % 7 == 0};
        traininglog_notes_add(&all, &n);
    }
    ck_assert_uint_le(all.count, NOTES_MAX);
    for (size_t i = 1; i < all.count; i++)
        ck_assert_uint_lt(all.at[i - 1].seq, all.at[i].seq);
    traininglog_notes_clear(&all);
}

START_TEST(logs_of_any_kind)
{
    scales(1, 20, 2, 65536); /* what is hidden in a long line is not passed over */
    for (int i = 0; i < 9000; i++)
        add("x");
    add(" step 20 loss nan scale 1 skipped 1\n");
    expect("not-enough");
    double scale = 65536;
    for (int i = 1; i < 60; i++) { /* two processes out of order */
        scale /= i > 2 && i < 6 ? 2 : 1;
        for (int k = i > 1 && i % 5 == 0; k >= 0; k--)
            add("step %d loss 2 scale %g skipped %d\n", i - k, i > 2 && i < 6 && k ? 2 * scale : scale,
                i - k > 2 && i - k < 6);
    }
    expect("fine-startup");
    for (int i = 0; i < 90; i++) /* colours, CRLF, a bar */
        add("\033[32m%d%%|#| %d/1000 [00:01<00:10, 10it/s, loss=%.2f, scale=%d]\033[0m\r\n", i, 10 * i, 4 - 0.01 * i,
            i < 1 ? 65536 : 16384);
    expect("fine-startup");
    for (int i = 0; i < 80; i++) /* carriage returns only */
        add("Epoch 0: %d%%|#| %d/800 [00:10<01:00, 8it/s, loss=%s, v_num=0]\r", i, 8 * i, i < 60 ? "2.5" : "nan");
    expect("warn-nonfinite");
}

/* Numbers that are not what they look like, and steps that are none. */
START_TEST(numbers_beside_the_scale)
{
    static const char *const powers[] = {"**", "^"};
    for (size_t k = 0; k < 2; k++) {
        for (int i = 1; i < 20; i++)
            add("step %d loss 3 scale 2%s%d skipped %d\n", 5000 + i, powers[k],
                i < 6   ? 16
                : i < 9 ? 22 - i
                        : 13,
                i > 5 && i < 9);
        expect("warn-spikes");
    }
    add("10%%|#| 11/1000 [00:05<03:06]\n"
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore.\n"
        "12%%|#| 17/1000 [00:06<06:07]\n"); /* a bar is no clean step */
    expect("stopped");
    add("Exception: Skipped 50 iterations in a row due to Overflow - Exiting training.\n");
    expect("stopped");
    for (int i = 0; i < 3; i++) /* Lightning's own loss, and the model's */
        add("Epoch 0: 3%%|#| %d/201 [00:19<00:08, loss=nan, v_num=1, train_loss=3.9, "
            "loss_scale=65536]\n",
            10 + i);
    expect("fine-steady");
    for (int i = 0; i < 3; i++)
        add("Epoch 0: 3%%|#| %d/201 [00:19<00:08, loss=nan, v_num=1, train_loss=nan]\n", 10 + i);
    expect("warn-nonfinite");
    for (int i = 1; i < 9; i++) /* the loss of an evaluation is no rise of the training's */
        add("step %d, loss: %d.5, loss_scaling: 65536.00\nvalid step %d, loss: %d.5\n", i, 12 - i, i, 40 - i);
    expect("fine-steady");
    for (int i = 1; i < 4; i++) /* the number of the step stands before the loss */
        add("Validation loss %d:  0.15\n", 7000 + i);
    for (double scale = 256; scale > 1; scale /= 2)
        apex(scale);
    add("Validation loss 8416:  0.71\n");
    expect("warn-diverging");
}

START_TEST(growth_and_means)
{
    for (int i = 0; i < 6; i++) /* tenfold, every second step */
        add("step %d loss 2 is_finite True loss_scale %g\n", 6 * i + 5, 65536 * pow(1000, i));
    expect("fine-steady");
    add("step 5 loss 2 loss_scale 4096\nstep 11 loss 2 loss_scale 65536\n"); /* once is no rule */
    expect("warn-resume");
    add("1epoch:train:1-1000batch: loss=252, loss_scale=6.554e+04\n"
        "1epoch:train:1001-2000batch: loss=91, loss_scale=1.311e+05\n"
        "1epoch results: [train] loss=141, loss_scale=9.782e+04\n");
    expect("fine-steady");
    add("Grad overflow on iteration 0\nUsing dynamic loss scale of 65536\n"
        "Grad overflow on iteration 1\nUsing dynamic loss scale of 32768.0\n");
    expect("not-enough");
    for (int i = 0; i < 3; i++)
        apex(32768 >> i);
    add("loss 3.5\nloss 3.4\n"); /* fewer lines than overflows */
    expect("not-enough");
    for (int i = 1; i < 7; i++) /* it falls in every interval, in the last one, too */
        add("step %d loss 2 amp_scale %d\n", 100 * i, 32768 >> i);
    expect("not-enough");
    for (int i = 0; i < 3; i++)
        add("step %d loss 0.0 scale 65536\n", i);
    expect("not-enough");
    add("step 1 loss 3 loss_scale 65536\nstep 2 loss 3 loss_scale 65536\n"
        "ValueError: Loss is not finite and patience is exhausted.\n");
    expect("warn-nonfinite");
    add("step 1 loss 3 loss_scale 65536\nstep 2 loss 3 loss_scale 65536\n"
        "torch.cuda.OutOfMemoryError: CUDA out of memory.\n");
    expect("not-enough");
    for (int i = 0; i < 4; i++)
        add("(trainer:581) WARNING: The grad norm is nan. Skipping updating the model.\n");
    expect("warn-nonfinite");
}

int main(void)
{
    TCase *c = tcase_create("judge");
    tcase_add_test(c, numbers_beside_the_scale);
    tcase_add_test(c, growth_and_means);
    tcase_add_test(c, searches);
    tcase_add_test(c, losses_and_norms);
    tcase_add_test(c, learned_and_lost);
    tcase_add_test(c, lines_change_how_sure);
    tcase_add_test(c, noise_is_no_rise);
    tcase_add_test(c, few_lines_that_rise);
    tcase_add_test(c, starts_that_still_fall);
    tcase_add_test(c, norms_in_few_lines);
    tcase_add_test(c, settings_twice);
    tcase_add_test(c, first_steps_of_a_scaler);
    tcase_add_test(c, answers_under_a_condition);
    tcase_add_test(c, scales_that_are_printed_as_they_are);
    tcase_add_test(c, runs_that_are_resumed);
    tcase_add_test(c, lines_of_guides_and_scripts);
    tcase_add_test(c, lines_that_a_terminal_broke);
    tcase_add_test(c, patterns_of_ones_own);
    tcase_add_test(c, bug_20261126_classes_in_brackets);
    tcase_add_test(c, notes_are_bounded);
    tcase_add_test(c, logs_of_any_kind);
    TCase *const cases[] = {c, NULL};
    return test_main("scaler-judge", cases);
}
