/* t-codes.c -- elements as they are stored: trace_read_codes and trace_codes against trace_read, and
 * files that shrink meanwhile. */
#include "support/badzip.h"
#include "support/support.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 70000 }; /* more than a buffer of the readers holds, of 8 bytes each */

/* Every tensor in three ways: values, codes in order, codes at places. */
static void compare(const char *path, const trace_options *o)
{
    trace_error e;
    trace *t = trace_open(path, o, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *x = trace_at(t, i);
        const size_t n = (size_t)x->count, width = mpsim_format_code_bytes(x->format);
        double *values = malloc((n + 1) * sizeof *values), *decoded = malloc((n + 1) * sizeof *decoded);
        unsigned char *codes = malloc((n + 1) * width), *again = malloc((n + 1) * width);
        size_t got = 0, at = 0;
        ck_assert(values && decoded && codes && again);
        ck_assert(trace_select(t, i, &e) == 0 && trace_read(t, values, n + 1, &got, &e) == 0 && got == n);
        ck_assert(trace_select(t, i, &e) == 0);
        do {
            ck_assert(trace_read_codes(t, codes + at * width, at ? 33333 : 7, &got, &e) == 0);
            at += got;
        } while (got);
        ck_assert_uint_eq(at, n);
        ck_assert(mpsim_decode_array(x->format, decoded, codes, n) == MPSIM_OK);
        ck_assert(n == 0 || memcmp(values, decoded, n * sizeof *values) == 0);
        for (size_t first = 0; trace_is_flat(t) && first <= n; first += n / 3 + 1) {
            const size_t m = n - first < 1000 ? n - first : 1000;
            ck_assert_int_eq(trace_codes(t, i, first, again, m, &e), 0);
            ck_assert(memcmp(again, codes + first * width, m * width) == 0);
            ck_assert(trace_codes(t, i, first, again, n - first + 1, &e) != 0);
        }
        ck_assert(trace_is_flat(t) || trace_codes(t, i, 0, again, 1, &e) != 0);
        free(values);
        free(decoded);
        free(codes);
        free(again);
    }
    trace_close(t);
}

static blob random_bytes(size_t n)
{
    uint64_t state = test_seed();
    blob b = {0};
    for (size_t i = 0; i < n; i += 8)
        blob_int(&b, test_random(&state), n - i < 8 ? (unsigned)(n - i) : 8);
    return b;
}

CASE("codes", 60);

TEST(codes_are_values)
{
    static const char *const descr[] = {"<f8", ">f8", "<f4", ">f4", "<f2", ">f2"};
    static const unsigned width[] = {8, 8, 4, 4, 2, 2};
    for (size_t i = 0; i < sizeof descr / sizeof descr[0]; i++)
        for (int fortran = 0; fortran < 2; fortran++) {
            char dict[128];
            blob data = random_bytes((size_t)N * width[i]);
            snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': %s, 'shape': (2, %d), }", descr[i],
                     fortran ? "True" : "False", N / 2);
            blob b = bad_npy(1, dict, data.data, data.n);
            compare(bad_write("codes.npy", &b), NULL);
            blob_clear(&data);
        }
    /* at every alignment */
    for (unsigned skip = 0; skip < 8; skip++)
        for (int big = 0; big < 2; big++) {
            blob b = random_bytes((size_t)N * 4 + skip);
            const trace_options o = {
                .raw_format = mpsim_format_find("binary32"), .raw_offset = skip, .raw_big_endian = big};
            compare(bad_write("codes.bin", &b), &o);
        }
    archive a = archive_of_two();
    compare(bad_write("codes.npz", &a.b), NULL);
    blob b = bad_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},"
                             "\"b\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[0,6]}}",
                             6);
    compare(bad_write("codes.safetensors", &b), NULL);
}

/* A hole in a file is zeros. */
TEST(holes_are_zeros)
{
    blob b = bad_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1000000],\"data_offsets\":[0,4000000]}}", 0);
    const size_t header = b.n;
    const char *path = bad_write("hole.safetensors", &b);
    float *x = malloc(4000000);
    trace_error e;
    ck_assert(x && truncate(path, (off_t)header + 4000000) == 0);
    trace *t = trace_open(path, NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_int_eq(trace_codes(t, 0, 0, x, 1000000, &e), 0);
    size_t zeros = 0;
    for (size_t i = 0; i < 1000000; i++)
        zeros += x[i] == 0;
    ck_assert_uint_eq(zeros, 1000000);
    trace_close(t);
    free(x);
}

TEST(shrinking_file_at_a_place)
{
    blob b = bad_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[1000000],\"data_offsets\":[0,4000000]}}", 4000000);
    const char *path = bad_write("shrinks.safetensors", &b);
    float x[1000];
    trace_error e;
    trace *t = trace_open(path, NULL, &e);
    ck_assert(t && trace_codes(t, 0, 999000, x, 1000, &e) == 0);
    ck_assert(truncate(path, 100000) == 0);
    ck_assert_int_eq(trace_codes(t, 0, 1000, x, 1000, &e), 0); /* what is left is read */
    size_t first = 1000;
    while (first < 1000000 && trace_codes(t, 0, first, x, 1000, &e) == 0)
        first += 1000;
    ck_assert_uint_lt(first, 25000);
    ck_assert_int_eq(e.exit, 3);
    ck_assert_ptr_nonnull(strstr(e.text, "offset 100000: the file ends here: it has become shorter"));
    ck_assert(trace_codes(t, 0, 999000, x, 1000, &e) != 0 && e.exit == 3);
    ck_assert(trace_codes(t, 1, 0, x, 1, &e) != 0 && strstr(e.text, "there is no tensor 1"));
    trace_close(t);
}

TEST_MAIN_BY(bad_main, "codes");
