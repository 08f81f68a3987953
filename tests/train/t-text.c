/* t-text.c -- texts: the bundled one is what its digest says; tokens of one, two and four bytes; windows of
 * steps, micro-batches and ranks against another computation; what is held back stays so. */
#include "support/support.h"

#include "lib/train/trainer.h"

#include <stdlib.h>

/* ---- the bundled text ---- */

static uint64_t digest_of(const train_text *x)
{
    const size_t n = x->trained + x->held;
    unsigned char *bytes = malloc(4 * n);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 4; k++)
            bytes[4 * i + (size_t)k] = (unsigned char)(train_token(x, i) >> (8 * k));
    const uint64_t d = mpsim_digest_bytes(bytes, 4 * n, 0);
    free(bytes);
    return d;
}

CASE("all", 20);

TEST(bundled)
{
    const train_text *x = train_text_bundled();
    size_t counts[128] = {0};
    ck_assert_str_eq(x->name, "mpsim");
    ck_assert_uint_eq(x->trained, 283012);
    ck_assert_uint_eq(x->held, 31445);
    ck_assert_uint_eq(x->vocabulary, 256);
    ck_assert_uint_eq(x->digest, 0x49b5d80523a0927a);
    ck_assert_uint_eq(digest_of(x), x->digest);
    for (size_t i = 0; i < x->trained + x->held; i++) {
        const uint32_t c = train_token(x, i);
        ck_assert_msg(c == '\n' || (c >= ' ' && c <= '~'), "byte %u at %zu", (unsigned)c, i);
        counts[c]++;
    }
    ck_assert_uint_gt(counts['e'], counts['z']);
    ck_assert_uint_eq(train_token(x, x->trained + x->held - 1), '\n');
}

TEST(tokens_of_all_widths)
{
    static const uint8_t one[] = {7, 255, 0, 128, 3};
    static const uint16_t two[] = {7, 65535, 0, 256, 3};
    static const uint32_t four[] = {7, 0x80000001u, 0, 65536, 3};
    static const uint32_t expected[3][5] = {{7, 255, 0, 128, 3}, {7, 65535, 0, 256, 3}, {7, 0x80000001u, 0, 65536, 3}};
    const train_text texts[] = {{.tokens = one, .bytes = 1, .trained = 5},
                                {.tokens = two, .bytes = 2, .trained = 5},
                                {.tokens = four, .bytes = 4, .trained = 5}};
    for (int k = 0; k < 3; k++) {
        uint32_t tokens[3], labels[3];
        train_text_fill(&texts[k], 1, 3, tokens, labels);
        for (size_t i = 0; i < 3; i++) {
            ck_assert_uint_eq(tokens[i], expected[k][i + 1]);
            ck_assert_uint_eq(labels[i], expected[k][i + 2]);
        }
    }
}

/* ---- windows ---- */

/* FNV-1a, 64 bits. */
static uint64_t name_hash(const char *name)
{
    uint64_t h = 14695981039346656037u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

/* floor(x * n / 2^32), bit after bit of x. */
static uint64_t scaled(uint32_t x, uint64_t n)
{
    uint64_t whole = 0, rest = 0; /* of x n / 2^32: whole + rest / 2^32 */
    for (int bit = 31; bit >= 0; bit--) {
        whole = 2 * whole + (2 * rest >> 32);
        rest = 2 * rest & 0xffffffffu;
        if (x >> bit & 1) {
            const uint64_t sum = rest + (n & 0xffffffffu);
            whole += (n >> 32) + (sum >> 32);
            rest = sum & 0xffffffffu;
        }
    }
    return whole;
}

static void settings(train_run *r, uint64_t *s)
{
    train_decoder *d = &r->settings.decoder;
    memset(r, 0, sizeof *r);
    strcpy(r->settings.net, "gpt");
    strcpy(d->text, "mpsim");
    d->text_digest = train_text_bundled()->digest;
    d->vocabulary = 256;
    d->validation = 32;
    r->settings.seed = test_random(s);
    r->settings.batch = (uint32_t)(1 + test_random(s) % 9);
    d->context = (uint32_t)(1 + test_random(s) % 200);
    d->accumulate = (uint32_t)(1 + test_random(s) % 4);
    d->ranks = (uint32_t)(1 + test_random(s) % 4);
}

/* All windows of a step. */
static void check_windows(const train *t)
{
    const train_settings *s = &t->run->settings;
    const train_decoder *d = &s->decoder;
    uint64_t index = t->step * d->accumulate * d->ranks * s->batch;
    for (uint32_t m = 0; m < d->accumulate; m++)
        for (uint32_t r = 0; r < d->ranks; r++) {
            size_t starts[16];
            train_windows(t, m, r, starts);
            for (size_t b = 0; b < s->batch; b++, index++) {
                const uint32_t x = mpsim_rng_word(s->seed, name_hash("text windows"), index);
                ck_assert_uint_eq(starts[b], scaled(x, t->text->trained - d->context));
                ck_assert_uint_lt(starts[b] + d->context, t->text->trained);
            }
        }
}

TEST(windows)
{
    uint64_t s = test_seed();
    for (size_t i = 0; i < test_scaled(200); i++) {
        train_text x = *train_text_bundled();
        train_run r;
        settings(&r, &s);
        train *t = calloc(1, sizeof *t);
        ck_assert_ptr_nonnull(t);
        t->run = &r;
        t->text = &x;
        t->step = test_random(&s) % 100000;
        check_windows(t);
        x.trained = (size_t)r.settings.decoder.context + 1 + (size_t)(test_random(&s) >> (24 + i % 40));
        check_windows(t); /* tokens are not looked at */
        free(t);
    }
}

TEST(windows_held_back)
{
    train_text x = {.held = 0};
    train_settings s = {.decoder = {.context = 10, .validation = 3}};
    static const size_t held[] = {0, 1, 10, 11, 20, 21, 31, 1000}, n[] = {0, 0, 0, 1, 1, 2, 3, 3};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
        x.held = held[i];
        ck_assert_uint_eq(train_windows_held(&x, &s), n[i]);
    }
    s.decoder.validation = 0;
    ck_assert_uint_eq(train_windows_held(&x, &s), 0);
}

/* ---- what does not fit ---- */

static void refused(const train_text *x, const train_settings *s, const char *part)
{
    char error[TRAIN_ERROR] = "";
    ck_assert_int_eq(train_text_check(x, s, error), -1);
    ck_assert_msg(strstr(error, part) && !strchr(error, '\n'), "%s", error);
}

TEST(checks)
{
    uint64_t seed = test_seed();
    char error[TRAIN_ERROR];
    train_text x = *train_text_bundled();
    train_run r;
    settings(&r, &seed);
    train_settings *s = &r.settings;
    ck_assert_int_eq(train_text_check(&x, s, error), 0);
    x.name = "other";
    refused(&x, s, "is not the text of the run");
    x = *train_text_bundled();
    x.digest ^= 1;
    refused(&x, s, "is not the text of the run");
    x.digest ^= 1;
    x.trained = s->decoder.context;
    refused(&x, s, "too few");
    x.trained++;
    ck_assert_int_eq(train_text_check(&x, s, error), 0);
    x.held = s->decoder.context;
    refused(&x, s, "validation tokens are too few");
    s->decoder.validation = 0;
    ck_assert_int_eq(train_text_check(&x, s, error), 0);
    s->decoder.vocabulary = 255;
    refused(&x, s, "vocabulary");
}

TEST_MAIN("train-text");
