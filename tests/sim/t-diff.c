/* t-diff.c -- what mpsim diff measures; the order of execution; how tensors are matched; tolerances. Verdicts:
 * t-diff-verdicts.c. */
#include "samples.h"
#include "sim/diff/fit.h"
#include "sim/diff/order.h"
#include "support/support.h"

#include <threads/parallel.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- the measure ---- */

CASE("measures and names", 20);

TEST(measure_by_hand)
{
    sample a = {.shape = {1, 4}, .n = 4, .x = malloc(16)}, b = sample_copy(&a);
    const float x[4] = {1, -2, 0.5f, 3}, y[4] = {1, -2 - 0x1p-22f, 0.5f + 0x1p-23f, 5};
    memcpy(a.x, x, sizeof x);
    memcpy(b.x, y, sizeof y);
    const measure m = sample_compare(&a, &b, NULL).all;
    ck_assert(m.count == 4 && m.differ == 3 && m.first.at == 1 && m.last.at == 3 && m.worst.at == 3);
    ck_assert(m.first.codes[0] == 0xc0000000 && m.first.codes[1] == 0xc0000001);
    ck_assert(m.max_ulp == 0x40a00000 - 0x40400000 && m.ulps[1] == 1 && m.ulps[2] == 1 && m.ulps[23] == 1);
    ck_assert(m.bits[0] == 1 && m.bits[1] == 1 && m.one_bit == 2 && m.larger == 2 && m.smaller == 1);
    ck_assert(m.max_abs == 2 && m.max_rel == 0.4);
    free(a.x);
    free(b.x);
}

/* Any split of the elements over measures gives the same one. */
TEST(measure_merges)
{
    enum { N = 500 };
    const mpsim_format *f = mpsim_format_find("fp16");
    double x[N], y[N];
    uint16_t p[N], q[N];
    measurer r;
    measure whole, parts, part;
    sample_state = test_seed();
    for (int i = 0; i < N; i++) {
        p[i] = (uint16_t)test_random(&sample_state);
        q[i] = test_random(&sample_state) % 3 ? p[i] : (uint16_t)test_random(&sample_state);
    }
    mpsim_decode_array(f, x, p, N);
    mpsim_decode_array(f, y, q, N);
    diff_measurer_init(&r, f, f);
    diff_measure_init(&whole);
    diff_measure_add(&whole, &r, 0, p, q, x, y, N);
    for (int k = 0; k < 50; k++) {
        const size_t cut1 = test_random(&sample_state) % N, cut2 = cut1 + test_random(&sample_state) % (N - cut1);
        const size_t from[4] = {0, cut1, cut2, N}, order[3] = {(size_t)k % 3, (size_t)(k + 1) % 3, (size_t)(k + 2) % 3};
        diff_measure_init(&parts);
        for (int i = 0; i < 3; i++) {
            const size_t at = from[order[i]];
            diff_measure_init(&part);
            diff_measure_add(&part, &r, at, p + at, q + at, x + at, y + at, from[order[i] + 1] - at);
            diff_measure_merge(&parts, &part);
        }
        ck_assert(parts.differ == whole.differ && parts.worst.at == whole.worst.at && parts.max_ulp == whole.max_ulp);
        ck_assert(memcmp(parts.ulps, whole.ulps, sizeof whole.ulps) == 0 &&
                  memcmp(parts.bits, whole.bits, sizeof whole.bits) == 0);
        ck_assert(diff_measure_sqnr(&parts) == diff_measure_sqnr(&whole) && parts.first.at == whole.first.at &&
                  parts.last.at == whole.last.at);
        ck_assert(memcmp(parts.multiset, whole.multiset, sizeof whole.multiset) == 0 &&
                  parts.scale_min[0] == whole.scale_min[0]);
    }
}

TEST(tolerances)
{
    static const struct {
        const char *within;
        verdict verdict;
    } rows[] = {{"4ulp", VERDICT_TOLERATED},   {"3ULP", VERDICT_FLIPPED_BIT}, {"1e-6", VERDICT_TOLERATED},
                {"1e-8", VERDICT_FLIPPED_BIT}, {"100dB", VERDICT_TOLERATED},  {"200dB", VERDICT_FLIPPED_BIT}};
    sample_state = test_seed();
    sample a = sample_make(ROWS), b = sample_copy(&a);
    a.x[7] = 1;
    b.x[7] = 1 + 0x1p-21f;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_int_eq(sample_compare(&a, &b, rows[i].within).found.verdict, rows[i].verdict);
    b.x[8] = NAN;
    ck_assert_int_eq(sample_compare(&a, &b, "0dB").found.verdict, VERDICT_NON_FINITE);
    free(a.x);
    free(b.x);
}

/* ---- order and names ---- */

TEST(order_of_execution)
{
    static const char *const recorded[] = {
        "act:fc1",           "act:fc2",           "agrad:fc1",        "agrad:fc2",        "opt.m:fc1.weight",
        "weight:fc1.weight", "weight:fc2.weight", "wgrad:fc1.weight", "wgrad:fc2.weight", "out:fc2"};
    static const char *const wanted[] = {
        "opt.m:fc1.weight", "weight:fc2.weight", "weight:fc1.weight", "act:fc2",   "out:fc2",
        "act:fc1",          "agrad:fc1",         "wgrad:fc1.weight",  "agrad:fc2", "wgrad:fc2.weight"};
    enum { N = 10 };
    trace_tensor t[N];
    const uint64_t shape = 1;
    const float zero[N] = {0};
    static const char *const metadata[][2] = {{"mpsim.order", "fc2,fc1"}, {"mpsim.step", "3"}};
    trace_error e;
    for (int i = 0; i < N; i++)
        t[i] = (trace_tensor){
            .name = recorded[i], .format = mpsim_format_find("fp32"), .shape = &shape, .rank = 1, .count = 1};
    const char *path = sample_path("order");
    trace_writer *w = trace_writer_safetensors(path, t, N, metadata, 2, &e);
    ck_assert(w && trace_writer_data(w, zero, sizeof zero, &e) == 0 && trace_writer_finish(w, &e) == 0);
    const told all = sample_run(path, path, NULL);
    unlink(path);
    ck_assert_int_eq(all.n, N);
    for (int i = 0; i < N; i++)
        ck_assert_str_eq(all.names[i], wanted[i]);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What safetensors' save_file writes: sorted by dtype, then by name. */
TEST(bug_20261123_sorted_names_tell_no_order)
{
    static const struct {
        const char *name, *format;
    } rows[] = {{"lm_head.weight", "fp32"},
                {"model.layers.10.mlp.weight", "fp32"},
                {"model.layers.2.input_norm.weight", "fp32"},
                {"model.norm.weight", "fp32"},
                {"model.embed_tokens.weight", "bf16"},
                {"model.layers.10.attn.weight", "bf16"},
                {"model.layers.2.mlp.weight", "bf16"}};
    static const char *const wanted[] = {"model.embed_tokens.weight",
                                         "model.layers.2.input_norm.weight",
                                         "model.layers.2.mlp.weight",
                                         "model.layers.10.attn.weight",
                                         "model.layers.10.mlp.weight",
                                         "model.norm.weight",
                                         "lm_head.weight"};
    enum { N = 7 };
    trace_tensor t[N];
    const uint64_t shape = 1;
    const unsigned char zero[4 * 4 + 3 * 2] = {0};
    trace_error e;
    for (int i = 0; i < N; i++)
        t[i] = (trace_tensor){
            .name = rows[i].name, .format = mpsim_format_find(rows[i].format), .shape = &shape, .rank = 1, .count = 1};
    const char *path = sample_path("sorted");
    trace_writer *w = trace_writer_safetensors(path, t, N, NULL, 0, &e);
    ck_assert(w && trace_writer_data(w, zero, sizeof zero, &e) == 0 && trace_writer_finish(w, &e) == 0);
    const told all = sample_run(path, path, NULL);
    unlink(path);
    ck_assert_int_eq(all.n, N);
    for (int i = 0; i < N; i++)
        ck_assert_str_eq(all.names[i], wanted[i]);
}

/* The modules of layers as they are called, from names in alphabetical order; what comes first there. */
TEST(parts_of_a_layer)
{
    /* clang-format off */
    static const char *const wanted[] = {
        "h.0.ln_1.weight", "h.0.attn.c_attn.weight", "h.0.attn.c_proj.weight", "h.0.ln_2.weight", "h.0.mlp.c_fc.weight",
        "h.0.mlp.c_proj.weight", "h.1.input_layernorm.weight", "h.1.self_attn.q_proj.weight",
        "h.1.self_attn.k_proj.weight", "h.1.self_attn.v_proj.weight", "h.1.self_attn.o_proj.weight",
        "h.1.post_attention_layernorm.weight", "h.1.mlp.gate.weight", "h.1.mlp.gate_proj.weight",
        "h.1.mlp.up_proj.weight", "h.1.mlp.down_proj.weight", "h.2.attention.self.query.weight",
        "h.2.attention.output.dense.weight", "h.2.intermediate.dense.weight", "h.2.output.dense.weight"};
    enum { N = sizeof wanted / sizeof wanted[0] };
    const char *sorted[N];
    trace_tensor t[N];
    const uint64_t shape = 1;
    const float zeros[N] = {0};
    trace_error e;
    memcpy(sorted, wanted, sizeof sorted);
    qsort(sorted, N, sizeof *sorted, by_text);
    for (int i = 0; i < N; i++)
        t[i] = (trace_tensor){.name = sorted[i], .format = mpsim_format_find("fp32"), .shape = &shape, .rank = 1,
                              .count = 1};
    const char *path = sample_path("parts");
    trace_writer *w = trace_writer_safetensors(path, t, N, NULL, 0, &e);
    ck_assert(w && trace_writer_data(w, zeros, sizeof zeros, &e) == 0 && trace_writer_finish(w, &e) == 0);
    const told all = sample_run(path, path, NULL);
    unlink(path);
    ck_assert_int_eq(all.n, N);
    for (int i = 0; i < N; i++)
        ck_assert_str_eq(all.names[i], wanted[i]);
}

/* ---- many tensors ---- */

enum { MANY = 3000, EACH_HAS = 8 };

static const char *save_many(const char *file, const char *prefix)
{
    static trace_tensor t[MANY];
    static char names[MANY][40];
    static float x[MANY * EACH_HAS];
    static const uint64_t shape = EACH_HAS;
    trace_error e;
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "%s%d.part%d", prefix, i / 10, i);
        t[i] = (trace_tensor){.name = names[i], .format = mpsim_format_find("binary32"), .shape = &shape, .rank = 1,
                              .count = EACH_HAS};
    }
    /* clang-format on */
    for (int i = 0; i < MANY * EACH_HAS; i++)
        x[i] = (float)(sample_uniform() - 0.5);
    const char *path = sample_path(file);
    trace_writer *w = trace_writer_safetensors(path, t, MANY, NULL, 0, &e);
    ck_assert(w && trace_writer_data(w, x, sizeof x, &e) == 0 && trace_writer_finish(w, &e) == 0);
    return path;
}

static double seconds_of(const char *a, const char *b)
{
    const clock_t begin = clock();
    ck_assert_int_eq(sample_run(a, b, NULL).n, MANY);
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* Other names and other numbers take a few times as long as equal ones; with all formats asked in all widths it was 17
 * times. */
TEST(bug_20261123_many_tensors_of_other_names)
{
    parallel_init(1);
    sample_state = test_seed();
    const char *a = save_many("many-a", "a.block"), *b = save_many("many-b", "other/b");
    const double equal = fmin(seconds_of(a, a), seconds_of(a, a)), other = fmin(seconds_of(a, b), seconds_of(a, b));
    unlink(a);
    unlink(b);
    ck_assert_msg(other < 9 * equal, "%g s, %g s of equal ones", other, equal);
}

/* Fits by hand: e4m3 has steps of 1/8 from 1 on. */
TEST(fits)
{
    const double x[4] = {1.05, 1.07, 1.25, 500}, nearest[4] = {1, 1.125, 1.25, (double)NAN},
                 zero[4] = {1, 1, 1.25, 448}, neither[4] = {1.25, 1, 1.25, 448},
                 mixed[4] = {1.125, 1, 1.25, (double)NAN};
    const fit_question q = {.format = *mpsim_format_find("e4m3"), .scale = 1};
    fit f = {0};
    diff_fit_add(&f, &q, x, nearest, 4);
    ck_assert_str_eq(diff_fit_mode(&f), "nearest-even");
    ck_assert(f.inexact == 2 && f.exact == 1 && f.nan == 1);
    ck_assert_str_eq(diff_fit_overflow(&f), "nan");
    f = (fit){0};
    diff_fit_add(&f, &q, x, zero, 4);
    ck_assert_str_eq(diff_fit_mode(&f), "toward-zero");
    ck_assert_str_eq(diff_fit_overflow(&f), "saturated");
    f = (fit){0};
    diff_fit_add(&f, &q, x, mixed, 4);
    ck_assert_str_eq(diff_fit_mode(&f), "stochastic");
    f = (fit){0};
    diff_fit_add(&f, &q, x, neither, 4);
    ck_assert(diff_fit_mode(&f) == NULL && f.missed == 1);
    const double ties[4] = {1.0625, -1.0625, 1.1875, 1.07}, away[4] = {1.125, -1.125, 1.25, 1.125};
    f = (fit){0};
    diff_fit_add(&f, &q, ties, away, 4);
    ck_assert_str_eq(diff_fit_mode(&f), "nearest-away");
}

TEST_MAIN("diff");
