/* t-pass.c -- pieces and items on 1, 2 and 7 threads: all of them once, the error of the first piece that fails, an end
 * when it is asked for, what is told in order; elements by rows of what is stored by columns, against their indices. */
#include "sim/array/array.h"
#include "sim/pass/elements.h"
#include "sim/pass/pass.h"
#include "support/badfile.h"
#include "support/support.h"

#include <threads/parallel.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const unsigned thread_counts[] = {1, 2, 7};
enum { COUNTS = 3 };

static void use_threads(int i)
{
    parallel_eager(1);
    parallel_init(thread_counts[i]);
}

/* ---- pieces ---- */

enum { PIECES = 70000 }; /* more than are handed out at once */

typedef struct seen {
    atomic_uchar times[PIECES];
    uint64_t fails_from, stop_at; /* every third piece from there on; asked at */
    atomic_int asked;
    int lanes;
} seen;

static int see(void *context, uint64_t k, int lane, trace_error *error)
{
    seen *s = context;
    ck_assert(k < PIECES && lane >= 0 && lane < s->lanes);
    atomic_fetch_add(&s->times[k], 1);
    if (k == s->stop_at)
        s->asked = 1;
    if (k >= s->fails_from && (k - s->fails_from) % 3 == 0)
        return trace_error_set(error, 3, "file", UINT64_MAX, "piece %llu", (unsigned long long)k);
    return 0;
}

static int run(seen *s, uint64_t fails_from, uint64_t stop_at, int lanes, trace_error *error)
{
    memset(s, 0, sizeof *s);
    s->fails_from = fails_from;
    s->stop_at = stop_at;
    s->lanes = lanes;
    return pass_pieces(PIECES, lanes, see, s, &s->asked, error);
}

CASE("pass", 120);

TESTS(every_piece_once, COUNTS)
{
    static seen s;
    trace_error error;
    use_threads(_i);
    for (int alone = 0; alone < 2; alone++) {
        ck_assert(run(&s, UINT64_MAX, UINT64_MAX, alone ? 1 : pass_lanes(), &error) == 0);
        for (size_t k = 0; k < PIECES; k++)
            ck_assert_int_eq(s.times[k], 1);
    }
    ck_assert(pass_pieces(0, pass_lanes(), see, &s, NULL, &error) == 0);
}

TESTS(the_earliest_error_wins, COUNTS)
{
    static const uint64_t from[] = {0, 1, 777, 65535, 65536, PIECES - 1};
    static seen s;
    use_threads(_i);
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        trace_error error;
        char text[64];
        ck_assert(run(&s, from[i], UINT64_MAX, pass_lanes(), &error) == -1);
        snprintf(text, sizeof text, "file: piece %llu", (unsigned long long)from[i]);
        ck_assert_str_eq(error.text, text);
        for (size_t k = 0; k <= from[i]; k++)
            ck_assert_int_eq(s.times[k], 1);
    }
}

TESTS(no_piece_begins_when_the_end_is_asked_for, COUNTS)
{
    static seen s;
    trace_error error;
    use_threads(_i);
    ck_assert(run(&s, UINT64_MAX, 100, 1, &error) == 0);
    for (size_t k = 0; k < PIECES; k++)
        ck_assert_int_eq(s.times[k], k <= 100);
    ck_assert(run(&s, UINT64_MAX, 100, pass_lanes(), &error) == 0); /* others may be through before piece 100 asks */
    for (size_t k = 0; k < PIECES; k++)
        ck_assert_int_le(s.times[k], 1);
}

/* ---- items ---- */

enum { ROOM = 10, ITEMS = 1000 };

typedef struct items {
    pass_queue q;
    int number[ROOM], alone[ROOM], runs[ITEMS], next, stop_at, stopped;
    atomic_int inner;
} items;

static int add_one(void *context, uint64_t k, int lane, trace_error *error)
{
    items *x = context;
    (void)k;
    (void)lane;
    (void)error;
    atomic_fetch_add(&x->inner, 1);
    return 0;
}

static void run_item(void *context, int k, int lane)
{
    items *x = context;
    ck_assert(lane >= 0 && lane < pass_lanes());
    x->runs[x->number[k]]++;
    if (x->alone[k])
        ck_assert(x->q.n == 1 && pass_pieces(50, pass_lanes(), add_one, x, NULL, NULL) == 0);
}

static int tell_item(void *context, int k, int stopped)
{
    items *x = context;
    ck_assert_int_eq(x->number[k], x->next++);
    ck_assert_int_eq(x->runs[x->number[k]], 1);
    ck_assert_int_eq(stopped, x->next > x->stop_at + 1);
    x->stopped += stopped;
    return x->next == x->stop_at + 1 ? 7 : stopped ? 8 : 0;
}

static int put(items *x, int i)
{
    const int alone = i % 37 == 5, code = alone ? pass_alone(&x->q) : 0;
    if (code)
        return code;
    x->number[x->q.n] = i;
    x->alone[x->q.n] = alone;
    return pass_put(&x->q, i % 11 == 0 ? 90 : 4, alone);
}

TESTS(items_are_told_in_order, COUNTS)
{
    use_threads(_i);
    for (int stop_at = 13; stop_at < 3 * ITEMS; stop_at += 450) {
        items x = {.stop_at = stop_at};
        int code = 0;
        x.q = (pass_queue){.run = run_item, .tell = tell_item, .context = &x, .room = ROOM, .most = 100};
        for (int i = 0; i < ITEMS && !code; i++)
            code = put(&x, i);
        code = code ? code : pass_flush(&x.q);
        ck_assert_int_eq(code, stop_at < ITEMS ? 7 : 0);
        ck_assert(x.q.n == 0 && x.q.bytes == 0 && x.stopped < ROOM);
        ck_assert(stop_at < ITEMS ? x.next > stop_at && x.next <= stop_at + ROOM : x.next == ITEMS);
        ck_assert(stop_at < ITEMS || x.inner == 50 * ((ITEMS - 6) / 37 + 1));
    }
}

/* ---- elements ---- */

/* Number i of a column-major array is i: what stands at an index follows from the shape. */
static uint64_t stored_at(const uint64_t *shape, size_t rank, uint64_t place)
{
    uint64_t index[4], at = 0, step = 1;
    for (size_t d = rank; d-- > 0; place /= shape[d])
        index[d] = place % shape[d];
    for (size_t d = 0; d < rank; d++) {
        at += index[d] * step;
        step *= shape[d];
    }
    return at;
}

static const char *make_npy(const uint64_t *shape, size_t rank, unsigned width)
{
    char dict[200], sides[80] = "";
    uint64_t count = 1;
    blob data = {0};
    for (size_t d = 0; d < rank; d++) {
        count *= shape[d];
        snprintf(sides + strlen(sides), sizeof sides - strlen(sides), "%llu,", (unsigned long long)shape[d]);
    }
    snprintf(dict, sizeof dict, "{'descr': '<f%u', 'fortran_order': True, 'shape': (%s), }", width, sides);
    for (uint64_t i = 0; i < count; i++)
        blob_int(&data, i, width);
    blob file = bad_npy(1, dict, data.data, data.n);
    blob_clear(&data);
    return bad_write("columns.npy", &file);
}

static void compare_rows(const uint64_t *shape, size_t rank, unsigned width)
{
    trace_error error;
    elements e;
    trace *t = trace_open(make_npy(shape, rank, width), NULL, &error);
    ck_assert_msg(t != NULL, "%s", error.text);
    ck_assert(pass_elements_open(&e, t, 0, ELEMENTS_ROWS, NULL, &error) == 0);
    const uint64_t count = trace_at(t, 0)->count, mask = UINT64_MAX >> (64 - 8 * width);
    uint64_t wrong = 0;
    for (uint64_t first = 0, n; first < count; first += n) {
        uint64_t room[100];
        const unsigned char *codes = (const unsigned char *)room;
        n = count - first < 100 ? count - first : 100;
        ck_assert(pass_elements_codes(&e, first, room, (size_t)n, &error) == 0);
        for (uint64_t i = 0; i < n; i++)
            wrong += code_load(codes + i * width, width) != (stored_at(shape, rank, first + i) & mask);
        if (first == 300)
            ck_assert_int_eq(pass_elements_load(&e, &error), count <= (8 << 20) / width);
    }
    ck_assert_uint_eq(wrong, 0);
    pass_elements_close(&e);
    trace_close(t);
}

/* In memory, and in a file, in two bands of rows of 64 MiB. */
/* What no size_t counts is no memory, rather than a little. */
TEST(memory_that_cannot_be_counted)
{
    unsigned char *p = array_memory(0, 8);
    ck_assert_ptr_nonnull(p);
    p[0] = 1; /* one byte more than was asked for */
    free(p);
    ck_assert_ptr_null(array_memory(UINT64_MAX / 8 + 2, 8)); /* 8 bytes, modulo 2^64 */
    ck_assert_ptr_null(array_memory((uint64_t)SIZE_MAX + 1 ? (uint64_t)SIZE_MAX + 1 : UINT64_MAX, 1));
}

TEST(elements_by_rows)
{
    static const uint64_t shapes[][4] = {{7, 5}, {3, 4, 5, 2}, {1, 6}, {200, 31}, {2100, 4, 1000}};
    static const size_t ranks[] = {2, 4, 2, 2, 3};
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++)
        for (unsigned width = 2; width <= 8; width *= 2)
            if (i < 4 || width == 8)
                compare_rows(shapes[i], ranks[i], width);
}

TEST_MAIN_BY(bad_main, "sim-pass");
