/* t-stat-tensor.c -- tensors accounted for in batches, in pieces and in order, on 1, 2 and 7 threads: equal
 * to the simple functions over their values, told in the order in which they were put, errors at their place. */
#include "sim/operand/stream.h"
#include "sim/stat/tensor.h"
#include "support/badzip.h"
#include "support/support.h"

#include <threads/parallel.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 2200000, SMALL = 300, SEED = 9 }; /* elements */

static blob random_bytes(size_t n)
{
    uint64_t state = test_seed();
    blob b = {0};
    for (size_t i = 0; i < n; i += 8)
        blob_int(&b, test_random(&state) & 0xbfffbfffbfffbfff, n - i < 8 ? (unsigned)(n - i) : 8);
    return b;
}

/* Small tensors, a large one, an empty one, integers, and small ones again. */
static const char *make_safetensors(void)
{
    blob b = {0}, header = {0};
    size_t at = 0;
    char c = '{';
    for (int i = 0; i < 2 * SMALL + 3; i++) {
        const int large = i == SMALL, empty = i == SMALL + 1, integers = i == SMALL + 2;
        const char *dtype = integers ? "I32" : i % 3 == 0 || large ? "F32" : i % 3 == 1 ? "BF16" : "F16";
        const size_t width = dtype[1] == '3' ? 4 : 2;
        const size_t n = large ? LARGE : empty ? 0 : (size_t)i % 50 + 1;
        blob_text(&header, "%c\"%s%d\":{\"dtype\":\"%s\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}", c,
                  i % 2 ? "wgrad:" : "weight:", i,
                  integers     ? "I32"
                  : width == 4 ? "F32"
                               : dtype,
                  n, at, at + n * width);
        at += n * width;
        c = ',';
    }
    blob_text(&header, "}");
    blob_int(&b, header.n, 8);
    blob_add(&b, header.data, header.n);
    blob data = random_bytes(at);
    blob_add(&b, data.data, data.n);
    blob_clear(&data);
    blob_clear(&header);
    return bad_write("tensors.safetensors", &b);
}

/* A member of several pieces for each of seven threads, and a small one. */
static const char *make_npz(void)
{
    archive a = {0};
    const char *const names[] = {"a.npy", "b.npy"};
    blob data[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        char dict[128];
        const size_t n = i ? 5 : LARGE;
        snprintf(dict, sizeof dict, DICT("'%s'", "(%zu,)"), i ? ">f4" : "<f2", n);
        blob payload = random_bytes(n * (i ? 4 : 2));
        data[i] = bad_npy(1, dict, payload.data, payload.n);
        blob_clear(&payload);
        archive_member(&a, names[i], &data[i], 0);
    }
    for (size_t i = 0; i < 2; i++) {
        archive_central(&a, i, names[i], &data[i], 0);
        blob_clear(&data[i]);
    }
    archive_end(&a);
    return bad_write("tensors.npz", &a.b);
}

/* ---- what it must be ---- */

typedef struct expectation {
    const target_list *targets;
    unsigned want;
    size_t next, told, without, errors;
    char error[256];
} expectation;

static int is_scaled(size_t i)
{
    return i % 4 != 0;
}

static void simple(const expectation *x, trace *t, size_t i, group *g)
{
    trace_error e;
    const size_t n = (size_t)trace_at(t, i)->count;
    double *v = malloc((n + 1) * sizeof *v);
    size_t got;
    trace *again = trace_open(trace_path(t), NULL, &e); /* t is in use */
    ck_assert(v && again && trace_select(again, i, &e) == 0 && trace_read(again, v, n + 1, &got, &e) == 0);
    ck_assert_uint_eq(got, n);
    const mpsim_rng rng = {SEED, name_stream(-1, NULL, trace_at(t, i)->name), 0};
    stat_group_init(g, x->targets, 1);
    mpsim_stats_add(&g->stats, v, n);
    mpsim_histogram_add(g->histogram, v, n);
    for (size_t k = 0; k < g->n_casts; k++) {
        mpsim_rounding r = target_rounding(&x->targets->items[k], trace_at(t, i)->format);
        r.scale = is_scaled(i) ? r.scale : 1;
        ck_assert(mpsim_cast_stats_add(&g->casts[k], &x->targets->items[k].format, &r, &rng, v, n) == MPSIM_OK);
    }
    g->tensors = 1;
    trace_close(again);
    free(v);
}

/* 0, NaN and infinity are equal to themselves. */
static int equal(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void compare(const expectation *x, const group *a, const group *b)
{
    const mpsim_stats *s = &a->stats, *t = &b->stats;
    ck_assert(s->count == t->count && s->zero == t->zero && s->nan == t->nan && s->inf == t->inf);
    ck_assert(equal(s->amax, t->amax) && equal(s->amin, t->amin));
    if (x->want & MPSIM_SUMMARY_SUMS)
        ck_assert(equal(mpsim_stats_mean(s), mpsim_stats_mean(t)) && equal(mpsim_stats_l2(s), mpsim_stats_l2(t)));
    if (x->want & MPSIM_SUMMARY_HISTOGRAM)
        ck_assert(memcmp(a->histogram, b->histogram, sizeof *a->histogram) == 0);
    for (size_t k = 0; k < a->n_casts; k++) {
        const mpsim_cast_stats *c = &a->casts[k];
        const mpsim_cast_stats *d = b->scaled ? &b->casts[k] : &b->unscaled[k / x->targets->scales];
        ck_assert(memcmp(&c->counts, &d->counts, sizeof c->counts) == 0);
        if (!(x->want & MPSIM_SUMMARY_ERRORS))
            continue;
        ck_assert(c->compared == d->compared && equal(c->max_rel_err, d->max_rel_err));
        ck_assert(equal(mpsim_cast_stats_mse(c), mpsim_cast_stats_mse(d)));
        ck_assert(equal(mpsim_sum_value(&c->sum_squares_left_out), mpsim_sum_value(&d->sum_squares_left_out)));
    }
}

static void note_error(expectation *x, const trace_error *error)
{
    x->errors++;
    snprintf(x->error, sizeof x->error, "%s", strstr(error->text, "offset"));
}

static int told_file(void *context, trace *t, size_t i, const trace_error *error)
{
    (void)i;
    ck_assert(!t == (error != NULL));
    if (error)
        note_error(context, error);
    return 0;
}

static int told_tensor(void *context, const tensorstat_piece *piece, const group *of, const trace_error *error)
{
    expectation *x = context;
    trace *t = piece->t;
    const size_t i = piece->i;
    if (error) {
        note_error(x, error);
        return 7;
    }
    ck_assert_uint_eq(i, x->next++);
    x->told++;
    if (!of) {
        ck_assert_ptr_null(trace_at(t, i)->format);
        x->without++;
        return 0;
    }
    group want;
    simple(x, t, i, &want);
    ck_assert(of->tensors == 1 && of->scaled == (uint64_t)is_scaled(i));
    compare(x, &want, of);
    stat_group_clear(&want);
    return 0;
}

static const tensorstat_told told = {told_tensor, told_file};

static int put(tensorstat *s, trace *t, size_t i)
{
    const tensorstat_piece all = {.t = t, .i = i, .scaled = is_scaled(i), .n = trace_at(t, i)->count};
    return stat_tensorstat_put(s, &all);
}

/* Each of `sets` settings in its turn. */
static void run(unsigned set, unsigned sets, const char *path, const target_options *o, unsigned want, size_t without)
{
    if (!test_in_part(set, sets))
        return;
    static const unsigned threads[] = {1, 2, 7};
    target_list targets;
    ck_assert(target_list_make(&targets, o, "test", "fp16") == 0);
    for (int k = 0; k < 3; k++) {
        expectation x = {.targets = &targets, .want = want};
        trace_error e;
        parallel_eager(1);
        parallel_init(threads[k]);
        trace *t = trace_open(path, NULL, &e);
        ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
        tensorstat *s = stat_tensorstat_new(&targets, SEED, want, &told, &x);
        ck_assert_ptr_nonnull(s);
        for (size_t i = 0; i < trace_count(t); i++)
            ck_assert_int_eq(put(s, t, i), 0);
        ck_assert_int_eq(stat_tensorstat_flush(s), 0);
        ck_assert_uint_eq(x.told, trace_count(t));
        ck_assert_uint_eq(x.without, without);
        ck_assert_uint_eq(x.errors, 0);
        stat_tensorstat_free(s);
        trace_close(t);
    }
    target_list_clear(&targets);
}

static const unsigned everything = MPSIM_SUMMARY_SUMS | MPSIM_SUMMARY_ERRORS | MPSIM_SUMMARY_HISTOGRAM;

CASE("stat-tensor", 120);

TEST(tensors_in_batches_and_in_pieces)
{
    const char *path = make_safetensors();
    run(0, 3, path, &(target_options){.formats = "fp16,e4m3@cuda", .scales = "1,2^10"}, everything, 1);
    run(1, 3, path, &(target_options){.formats = "e5m2,bf16", .round = "sr", .scales = "3"}, everything, 1);
    run(2, 3, path, &(target_options){.formats = "e4m3", .flush_input = 1, .scales = "2^-4,2^4"}, 0, 1);
}

TEST(tensors_in_order)
{
    const char *path = make_npz();
    run(0, 2, path, &(target_options){.formats = "e4m3,e5m2", .scales = "1,2^3"}, everything, 0);
    run(1, 2, path, &(target_options){.formats = "e5m2", .round = "srb:9"}, everything, 0);
}

/* A large tensor is read in pieces by several threads: the first error is told, and the caller's code
 * comes back. */
TEST(errors_at_their_place)
{
    target_list targets;
    ck_assert(target_list_make(&targets, &(target_options){.formats = "fp16"}, "test", "fp16") == 0);
    for (unsigned threads = 1; threads < 4; threads++) {
        const char *path = make_safetensors();
        expectation x = {.targets = &targets, .want = everything};
        trace_error e, other;
        char place[64];
        parallel_eager(1);
        parallel_init(threads);
        trace *t = trace_open(path, NULL, &e);
        tensorstat *s = stat_tensorstat_new(&targets, SEED, everything, &told, &x);
        ck_assert(t && s);
        trace_error_set(&other, 3, "x", 0, "is not there");
        ck_assert_int_eq(stat_tensorstat_put_file(s, NULL, 0, &other), 0);
        for (size_t i = 0; i < 3; i++)
            ck_assert_int_eq(put(s, t, i), 0);
        ck_assert_int_eq(stat_tensorstat_flush(s), 0);
        ck_assert(x.errors == 1 && x.told == 3);
        ck_assert(truncate(path, (off_t)trace_at(t, SMALL)->offset + 4000000) == 0);
        ck_assert_int_eq(put(s, t, SMALL), 7);
        ck_assert_uint_eq(x.errors, 2);
        snprintf(place, sizeof place, "offset %llu: the file ends here",
                 (unsigned long long)trace_at(t, SMALL)->offset + 4000000);
        ck_assert_msg(strstr(x.error, place) == x.error, "%s", x.error);
        ck_assert(put(s, t, SMALL + 3) == 0 && stat_tensorstat_flush(s) == 7);
        stat_tensorstat_free(s);
        trace_close(t);
    }
    target_list_clear(&targets);
}

TEST_MAIN_BY(bad_main, "stat-tensor");
