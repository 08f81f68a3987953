/* t-log-lines.c -- lines of training logs: what they say, bytes that become lines, and that hostile ones do no harm. */
#include "sim/traininglog/logline.h"
#include "sim/traininglog/traininglog.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

CASE("lines", 20);

TEST(lines_of_frameworks)
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

TEST(lines_about_something_else)
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

TEST(numbers_that_are_no_scale)
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

TEST(losses)
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

TEST(bytes_become_lines)
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

TEST(long_lines_are_cut)
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

TEST(random_bytes_do_no_harm)
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

TEST_MAIN("log-lines");
