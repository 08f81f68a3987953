/* t-scaler-log.c -- lines of training logs: what they say, and that hostile ones do no harm; logs
 * as recorded tracks, their jumps, and whose rules reproduce them; patterns. */
#include "sim/traininglog/judge.h"
#include "sim/traininglog/logline.h"
#include "sim/traininglog/match.h"
#include "sim/scaler/pattern.h"
#include "sim/traininglog/traininglog.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNKNOWN ((double)NAN)

/* ---- lines ---- */

typedef struct expected {
    const char *text;
    log_dialect dialect;
    unsigned what;
    int64_t step, rank;
    double before, after;
    uint64_t skipped;
} expected;

static int same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

START_TEST(lines_of_frameworks)
{
    static const expected rows[] = {
        {"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0", LOG_APEX, LOG_OVERFLOW, -1,
         -1, UNKNOWN, 32768, 0},
        {"3: Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to 1e-310", LOG_APEX, LOG_OVERFLOW, -1,
         3, UNKNOWN, 1e-310, 0},
        {"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 2048, reducing to 1024", LOG_DEEPSPEED,
         LOG_OVERFLOW, -1, 0, 2048, 1024, 0},
        {"[2023-05-05 12:00:00,1] [INFO] [loss_scaler.py:188:update_scale] [deepspeed] OVERFLOW! "
         "Rank 7 Skipping step. Attempted loss scale: 65536, but hysteresis is 2. Reducing "
         "hysteresis to 1",
         LOG_DEEPSPEED, LOG_OVERFLOW | LOG_TOLERATED, -1, 7, 65536, 65536, 0},
        {"[deepspeed] fp16 dynamic loss scale overflow! Skipping step. Attempted loss scale: "
         "65536.0, reducing to 32768.0",
         LOG_DEEPSPEED, LOG_OVERFLOW, -1, -1, 65536, 32768, 0},
        {"Grad overflow on iteration 17", LOG_DEEPSPEED, LOG_OVERFLOW | LOG_DETAIL, 17, -1, UNKNOWN, UNKNOWN, 0},
        {"Reducing dynamic loss scale from 65536 to 32768.0", LOG_DEEPSPEED, LOG_OVERFLOW | LOG_DETAIL, -1, -1, 65536,
         32768, 0},
        {"Increasing dynamic loss scale from 32768.0 to 65536.0", LOG_DEEPSPEED, LOG_GROWTH, -1, -1, 32768, 65536, 0},
        {"Exception: Current loss scale already at minimum - cannot decrease scale anymore. "
         "Exiting run.",
         LOG_DEEPSPEED, LOG_OVERFLOW | LOG_STOP, -1, -1, UNKNOWN, UNKNOWN, 0},
        {" iteration      120/    1000 | consumed samples:         960 | elapsed time per "
         "iteration (ms): 123.4 | loss scale: 4294967296.0 | grad norm: 1.2 | number of "
         "skipped iterations:   1 | number of nan iterations:   0 |",
         LOG_MEGATRON, LOG_STATUS | LOG_SKIPS, 120, -1, UNKNOWN, 4294967296, 1},
        {"2021-03-01 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring "
         "gradient, setting loss scale to: 64.0",
         LOG_FAIRSEQ, LOG_OVERFLOW, -1, -1, UNKNOWN, 64, 0},
        {"| WARNING: overflow detected, setting loss scale to: 32.0", LOG_FAIRSEQ, LOG_OVERFLOW, -1, -1, UNKNOWN, 32,
         0},
        {"FloatingPointError: Minimum loss scale reached (0.0001). Your loss is exploding.", LOG_FAIRSEQ,
         LOG_OVERFLOW | LOG_STOP, -1, -1, UNKNOWN, UNKNOWN, 0},
        {"{\"epoch\": 1, \"num_updates\": \"100\", \"loss_scale\": \"16\"}", LOG_VALUES, LOG_STATUS, 100, -1, UNKNOWN,
         16, 0},
        {"[AMP] step 12 scale 65536.0 growth_tracker 3 skipped 0", LOG_VALUES, LOG_STATUS | LOG_SKIPS, 12, -1, UNKNOWN,
         65536, 0},
        {"[AMP] step 13: scale 32768, growth_tracker 0, skipped Y", LOG_VALUES, LOG_STATUS | LOG_SKIPS, 13, -1, UNKNOWN,
         32768, 1},
        {"[AMP] step 14: scale 32768, growth_tracker 1, skipped n", LOG_VALUES, LOG_STATUS | LOG_SKIPS, 14, -1, UNKNOWN,
         32768, 0},
        {"[rank3] scale=65536 step skipped", LOG_VALUES, LOG_STATUS | LOG_SKIPS, -1, 3, UNKNOWN, 65536, 1},
        {"global_step=7 grad_scale=1.5e3 found_inf=True", LOG_VALUES, LOG_STATUS | LOG_SKIPS, 7, -1, UNKNOWN, 1500, 1},
        {"Epoch(train) [1][50/1000] lr: 1e-3 loss: 2.0 loss_scale: 512.0000", LOG_VALUES, LOG_STATUS, -1, -1, UNKNOWN,
         512, 0},
        {"iter 5: Loss Scale = 128", LOG_VALUES, LOG_STATUS, 5, -1, UNKNOWN, 128, 0},
        {"step 1,200 loss_scale: 65,536", LOG_VALUES, LOG_STATUS, 1200, -1, UNKNOWN, 65536, 0},
        {"loss_scale: 1,048,576.5, lr 1", LOG_VALUES, LOG_STATUS, -1, -1, UNKNOWN, 1048576.5, 0},
        {"loss_scale=512,lr=1", LOG_VALUES, LOG_STATUS, -1, -1, UNKNOWN, 512, 0},
        {"loss_scale 65536,128", LOG_VALUES, LOG_STATUS, -1, -1, UNKNOWN, 65536, 0},
        {"Attempted loss scale: 65,536, reducing to 32,768.0", LOG_DEEPSPEED, LOG_OVERFLOW, -1, -1, 65536, 32768, 0},
        {"Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to 4,294,967,296", LOG_APEX, LOG_OVERFLOW,
         -1, -1, UNKNOWN, 4294967296, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const expected *e = &rows[i];
        log_line l;
        ck_assert_msg(traininglog_line_parse(&l, e->text) == 1, "%s", e->text);
        ck_assert_msg(l.dialect == e->dialect && l.what == e->what, "%s: %d %u", e->text, (int)l.dialect, l.what);
        ck_assert_msg(l.step == e->step && l.rank == e->rank, "%s: step %d rank %d", e->text, (int)l.step, (int)l.rank);
        ck_assert_msg(same(l.before, e->before) && same(l.after, e->after), "%s: %a %a", e->text, l.before, l.after);
        ck_assert_msg(l.skipped == e->skipped && !l.bad, "%s: skipped %d", e->text, (int)l.skipped);
    }
}
END_TEST

START_TEST(lines_about_something_else)
{
    static const char *const lines[] = {
        "",
        "loss 2.3 lr 1e-4",
        "loss_scale             : dynamic",
        "  loss_scale ......... None",
        "image scale: 0.5",
        "img_scale=2 step 12",
        "rescale 3 step 1",
        "scale 0.5",
        "multi-scale testing at step 12",
        "Using a static loss scale.",
        "overflow",
        "scaleout: 12",
        "No Grad overflow for 1000 iterations",
        "number of skipped iterations: 0",
    };
    log_line l;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        ck_assert_msg(traininglog_line_parse(&l, lines[i]) == 0, "%s", lines[i]);
}
END_TEST

START_TEST(numbers_that_are_no_scale)
{
    static const char *const lines[] = {
        "loss_scale: nan",
        "loss_scale: inf",
        "loss_scale: -1",
        "loss_scale: 1e999",
        "step 1 scale nan skipped 0",
        "step 1 scale -inf",
        "Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to nan",
        "Attempted loss scale: 1e999, reducing to 3. Skipping step.",
        "loss_scale: 0,5",
        "loss_scale: 65,53",
        "loss_scale: 65,5366",
        "loss_scale: 1,024,1",
        "loss_scale: 0,512",
        "Attempted loss scale: 65,53, reducing to 3. Skipping step.",
    };
    log_line l;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ck_assert_msg(traininglog_line_parse(&l, lines[i]) == 1, "%s", lines[i]);
        ck_assert_msg(l.bad == 1, "%s", lines[i]);
    }
    /* numbers of steps beyond 63 bits are none */
    ck_assert(traininglog_line_parse(&l, "step 99999999999999999999 loss_scale 4") == 1 && l.step == -1);
    ck_assert(traininglog_line_parse(&l, "step 900000000000000000 scale 4") == 1 && l.step > 0);
}
END_TEST

START_TEST(losses)
{
    static const struct {
        const char *text;
        value_kind loss;
    } rows[] = {
        {"loss_scale: 4", VALUE_UNSAID},
        {"loss scale: 4", VALUE_UNSAID},
        {"loss scale: 4 | loss: nan", VALUE_NAN},
        {"Epoch: [0] [10/20] loss: nan (nan)  loss_scale: 0.0000 (1)", VALUE_NAN},
        {"step 3 train_loss=-nan loss_scale=4", VALUE_NAN},
        {"lm loss: NaN | loss scale: 4", VALUE_NAN},
        {"loss=inf loss_scale=4", VALUE_INF},
        {"step 3 loss -2.5e1 loss_scale 4", VALUE_FINITE},
        {"loss: nano loss_scale 4", VALUE_UNSAID},
        {"closs: nan loss_scale 4", VALUE_NAN}, /* a loss by the end of its name */
        {"colossal: nan loss_scale 4", VALUE_UNSAID},
        {"loss_scale nan", VALUE_UNSAID},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        log_note n;
        (void)traininglog_note_parse(&n, rows[i].text, rows[i].text);
        ck_assert_msg(n.loss == rows[i].loss, "%s: %d", rows[i].text, (int)n.loss);
    }
}
END_TEST

/* ---- bytes to lines ---- */

typedef struct collected {
    char text[4096];
    size_t n;
} collected;

static int collect(const char *line, void *context)
{
    collected *c = context;
    const size_t n = strlen(line);
    if (c->n + n + 2 < sizeof c->text) {
        memcpy(c->text + c->n, line, n);
        c->text[c->n + n] = '|';
        c->n += n + 1;
    }
    return 0;
}

/* The lines of some bytes, given in pieces of `piece`. */
static const char *lines_of(collected *c, log_reader *r, const char *bytes, size_t n, size_t piece)
{
    memset(c, 0, sizeof *c);
    memset(r, 0, sizeof *r);
    for (size_t at = 0; at < n; at += piece) {
        const size_t length = n - at < piece ? n - at : piece;
        ck_assert(traininglog_reader_bytes(r, bytes + at, length, collect, c) == 0);
    }
    ck_assert(traininglog_reader_end(r, collect, c) == 0);
    c->text[c->n] = 0;
    return c->text;
}

START_TEST(bytes_become_lines)
{
#define ROW(in, out)           \
    {                          \
        in, sizeof in - 1, out \
    }
    static const struct {
        const char *bytes;
        size_t n;
        const char *lines;
    } rows[] = {
        ROW("", ""),
        ROW("a", "a|"),
        ROW("a\nb\n", "a|b|"),
        ROW("a\r\nb\r\n\r\n", "a|b|"),
        ROW("10%\r20%\rdone\n", "10%|20%|done|"),
        ROW("a\0b\0\n", "ab|"),
        ROW("\xff\xfe"
            "a\0b\0\n\0c\0",
            "  ab|c|"),                          /* UTF-16, little-endian */
        ROW("\xfe\xff\0a\0b\0\n\0c", "  ab|c|"), /* big-endian */
        ROW("\xef\xbb\xbf"
            "a\n",
            "   a|"),
        ROW("\033[31mred\033[0m x\n", "red x|"),
        ROW("\033]0;title\007a\n", "a|"),
        ROW("\033]0;title\033\\a\n", "a|"),
        ROW("\033[31", ""),
        ROW("\033[31\nb", "b|"), /* a sequence does not eat the next line */
        ROW("\033", ""),
        ROW("tab\there\n", "tab here|"),
    };
#undef ROW
    static collected c;
    static log_reader r;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t piece = 1; piece < 8; piece++)
            ck_assert_msg(strcmp(lines_of(&c, &r, rows[i].bytes, rows[i].n, piece), rows[i].lines) == 0,
                          "row %zu: '%s'", i, c.text);
}
END_TEST

START_TEST(long_lines_are_cut)
{
    enum { LENGTH = 100000 };
    static collected c;
    static log_reader r;
    char *bytes = malloc(LENGTH + 8);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, 'x', LENGTH);
    memcpy(bytes + LENGTH, "\nend\r\nz", 7);
    for (size_t piece = 1; piece < 100000; piece = 7 * piece + 1) {
        lines_of(&c, &r, bytes, LENGTH + 7, piece);
        ck_assert_msg(r.lines == 3 && r.cut == 1, "%d lines, %d cut", (int)r.lines, (int)r.cut);
        ck_assert_str_eq(c.text, "end|z|");
    }
    free(bytes);
}
END_TEST

START_TEST(random_bytes_do_no_harm)
{
    /* clang-format off */
    static const char *const words[] = {
        "loss scale", "loss_scale", ": ", "=", "step", "iteration", " ", "\n", "\033[",
        "skipped", "65536",
        "1e999", "-", "nan", "reducing loss scale to", "gradient overflow", "attempted loss scale:",
        "reducing to", "skipping step", "hysteresis", "rank", "[rank", "9999999999999999999",
        "scale",
        "number of skipped iterations", "grad overflow on iteration", "0x", ".", "(", "\"",
        "\r", "3: ",
        "reducing dynamic loss scale from", " to ", "already at minimum", "loss scaler",
    };
    /* clang-format on */
    enum { WORDS = sizeof words / sizeof words[0] };
    uint64_t state = test_seed() + 1;
    static log_reader r;
    uint64_t recognised = 0;
    for (size_t i = 0; i < test_scaled(20000); i++) {
        char line[512] = "";
        size_t n = 0;
        log_line l;
        for (uint64_t k = test_random(&state) % 12; k > 0; k--) {
            const uint64_t random = test_random(&state);
            const char *word = words[random % WORDS];
            if (random >> 60 == 0) { /* a byte of any kind */
                line[n++] = (char)(1 + (random >> 8) % 255);
            } else {
                memcpy(line + n, word, strlen(word));
                n += strlen(word);
            }
        }
        line[n] = 0;
        if (traininglog_line_parse(&l, line)) {
            recognised++;
            ck_assert(isnan(l.after) || (l.after >= 0 && isfinite(l.after)));
            ck_assert(isnan(l.before) || (l.before >= 0 && isfinite(l.before)));
            ck_assert(l.step >= -1 && l.rank >= -1 && l.dialect < LOG_DIALECTS);
        }
        static collected c;
        c.n = 0;
        ck_assert(traininglog_reader_bytes(&r, line, n, collect, &c) == 0);
    }
    ck_assert_uint_gt(recognised, 100);
}
END_TEST

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

/* Every scaler reproduces its own log, and those that differ do not. */
START_TEST(scalers_reproduce_their_logs)
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
END_TEST

START_TEST(jumps_are_found)
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
END_TEST

/* Growths that lines tell one by one, and those that a tracker shows which begins again at the same scale. */
START_TEST(growths_that_are_told)
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
END_TEST

START_TEST(ranks_count_once)
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
END_TEST

#define APEX(s) "Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to " s "\n"
#define DEEP(a, b) "Skipping step. Attempted loss scale: " a ", reducing to " b "\n"
#define BEIT(loss, s) "Epoch: [3] [ 10/1251] lr: 0.0001 loss: " loss " loss_scale: " s " (1)\n"

START_TEST(verdicts_on_short_tails)
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
END_TEST

/* Scales that go to 0, or are printed with few digits, are no jumps. */
START_TEST(falls_that_are_no_jumps)
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
END_TEST

START_TEST(losses_that_are_nan)
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
END_TEST

/* "reducing to" the scale it has: hysteresis, but for the minimum. */
START_TEST(overflows_that_are_tolerated)
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
END_TEST

#undef APEX
#undef DEEP
#undef BEIT

START_TEST(lines_have_the_numbers_of_an_editor)
{
    static training_log l;
    read_log(&l, "\n\r\nstep 1 scale 65536 skipped 0\r\n\r\n10%\r20%\n"
                 "step 2 scale 256 skipped 0\n");
    ck_assert(l.n_jumps == 1 && l.jumps[0].line == 6);
    traininglog_training_log_clear(&l);
}
END_TEST

START_TEST(bad_logs)
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
END_TEST

/* ---- patterns ---- */

static int add_run(double limit, uint64_t n, void *context)
{
    char *out = context;
    for (uint64_t i = 0; i < n && strlen(out) < 200; i++)
        strcat(out, limit < 0 ? "1" : isinf(limit) ? "0" : "?");
    return 0;
}

START_TEST(patterns)
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
END_TEST

int main(void)
{
    TCase *t = test_case("lines", 20), *logs = test_case("logs", 20);
    tcase_add_test(t, lines_of_frameworks);
    tcase_add_test(t, lines_about_something_else);
    tcase_add_test(t, numbers_that_are_no_scale);
    tcase_add_test(t, losses);
    tcase_add_test(t, bytes_become_lines);
    tcase_add_test(t, long_lines_are_cut);
    tcase_add_test(t, random_bytes_do_no_harm);
    tcase_add_test(logs, scalers_reproduce_their_logs);
    tcase_add_test(logs, jumps_are_found);
    tcase_add_test(logs, growths_that_are_told);
    tcase_add_test(logs, ranks_count_once);
    tcase_add_test(logs, verdicts_on_short_tails);
    tcase_add_test(logs, falls_that_are_no_jumps);
    tcase_add_test(logs, losses_that_are_nan);
    tcase_add_test(logs, overflows_that_are_tolerated);
    tcase_add_test(logs, lines_have_the_numbers_of_an_editor);
    tcase_add_test(logs, bad_logs);
    tcase_add_test(logs, patterns);
    TCase *const cases[] = {t, logs, NULL};
    return test_main("scaler-log", cases);
}
