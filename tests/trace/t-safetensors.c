/* t-safetensors.c -- the safetensors reader: items 1 to 25 of the list of bad inputs, and
 * what must work. */
#include "support/badfile.h"
#include "support/support.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define F32(shape, offsets) T("F32", shape, offsets)

typedef struct row {
    int item;
    const char *what, *header;
    size_t data;
    const char *fragment; /* NULL: must work */
} row;

/* clang-format off */
static const row rows[] = {
    {3, "N = 0", "", 0, "header length 0"},
    {6, "name not UTF-8", "{\"a\xff\":" F32("[1]", "[0,4]") "}", 4, "not valid JSON: unable to decode byte 0xff"},
    {6, "stray bytes", "{\xc3\xa4}", 0, "the name of a tensor expected"},
    {6, "stray bytes between", "{\"a\"\xff:1}", 0, "expected ':'"},
    {7, "array", "[]", 0, "does not begin with '{'"},
    {7, "string", " \"a\"", 0, "does not begin with '{'"},
    {7, "leading space", " \t\r\n {\"a\":" F32("[1]", "[0,4]") "}", 4, NULL},
    {7, "trailing space", "{\"a\":" F32("[1]", "[0,4]") "} \t\r\n ", 4, NULL},
    {7, "space inside", "{ \"a\" :\n" F32(" [ 1 ] ", "[0,\t4]") " } ", 4, NULL},
    {9, "brace only", "{", 0, "it ends too early"},
    {9, "in a key", "{\"a", 0, "premature end of input"},
    {9, "after a key", "{\"a\"", 0, "it ends too early"},
    {9, "after the colon", "{\"a\":", 0, "it ends too early"},
    {9, "in a value", "{\"a\":{\"dtype\":\"F32\",\"sha", 0, "not valid JSON"},
    {9, "no brace at the end", "{\"a\":" F32("[1]", "[0,4]"), 4, "it ends too early"},
    {9, "comma before the brace", "{\"a\":" F32("[1]", "[0,4]") ",}", 4, "the name of a tensor expected"},
    {9, "no comma", "{\"a\":" F32("[1]", "[0,4]") "\"b\":" F32("[1]", "[4,8]") "}", 8, "expected ',' or '}'"},
    {10, "after the object", "{\"a\":" F32("[1]", "[0,4]") "}x", 4, "1 bytes after the JSON header"},
    {10, "second object", "{}{}", 0, "2 bytes after the JSON header"},
    {10, "NUL", "{\"a\":" F32("[1]", "[0,4]") "} ]", 4, "after the JSON header"},
    {11, "name twice", "{\"a\":" F32("[1]", "[0,4]") ",\"a\":" F32("[1]", "[4,8]") "}", 8, "two tensors have the name 'a'"},
    {11, "name twice, escaped", "{\"a\":" F32("[1]", "[0,4]") ",\"\\u0061\":" F32("[1]", "[4,8]") "}", 8, "two tensors have the name 'a'"},
    {11, "data_offsets twice", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"data_offsets\":[0,4]}}", 4, "duplicate object key"},
    {11, "__metadata__ twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ occurs twice"},
    {11, "metadata key twice", "{\"__metadata__\":{\"k\":\"1\",\"l\":\"\",\"k\":\"1\"}}", 0, "offset 40: key 'k' occurs twice"},
    {12, "metadata number", "{\"__metadata__\":{\"step\":1}}", 0, "a string as value in __metadata__ expected"},
    {12, "metadata object", "{\"__metadata__\":{\"step\":{}}}", 0, "a string as value"},
    {12, "metadata list", "{\"__metadata__\":[]}", 0, "offset 24: header is not valid: an object as __metadata__ expected"},
    {22, "NUL in metadata", "{\"__metadata__\":{\"a\\u0000\":\"\"}}", 0, "a string holds \\u0000"},
    {12, "metadata key", "{\"__metadata__\":{1:\"\"}}", 0, "a string as key of __metadata__"},
    {13, "dtype unknown", "{\"a\":" T("F99", "[1]", "[0,4]") "}", 4, "dtype 'F99' of tensor 'a' is not known"},
    {13, "dtype lower case", "{\"a\":" T("f32", "[1]", "[0,4]") "}", 4, "dtype 'f32'"},
    {13, "dtype empty", "{\"a\":" T("", "[1]", "[0,4]") "}", 4, "dtype ''"},
    {13, "dtype number", "{\"a\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "is not a string"},
    {14, "no dtype", "{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no key \"dtype\""},
    {14, "no shape", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "no key \"shape\""},
    {14, "no data_offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "no key \"data_offsets\""},
    {14, "extra key", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":0}}", 4, "keys other than"},
    {14, "not an object", "{\"a\":[1]}", 0, "an object that describes a tensor expected"},
    {14, "null", "{\"a\":null}", 0, "an object that describes a tensor expected"},
    {15, "negative", "{\"a\":" F32("[-1]", "[0,4]") "}", 4, "not a list of natural numbers"},
    {15, "float", "{\"a\":" F32("[1.0]", "[0,4]") "}", 4, "not a list of natural numbers"},
    {15, "1e400", "{\"a\":" F32("[1e400]", "[0,4]") "}", 4, "real number overflow"},
    {15, "string", "{\"a\":" F32("[\"1\"]", "[0,4]") "}", 4, "not a list of natural numbers"},
    {15, "2^64", "{\"a\":" F32("[18446744073709551616]", "[0,4]") "}", 4, "too big integer"},
    {15, "true", "{\"a\":" F32("[true]", "[0,4]") "}", 4, "not a list of natural numbers"},
    {15, "nested", "{\"a\":" F32("[[1]]", "[0,4]") "}", 4, "not a list of natural numbers"},
    {15, "number", "{\"a\":" F32("1", "[0,4]") "}", 4, "not a list of natural numbers"},
    {15, "leading zero", "{\"a\":" F32("[01]", "[0,4]") "}", 4, "not valid JSON"},
    {16, "product", "{\"a\":" F32("[4294967296,4294967296]", "[0,0]") "}", 0, "shape of tensor 'a' is too large"},
    {16, "product, then 0", "{\"a\":" F32("[4294967296,4294967296,0]", "[0,0]") "}", 0, "too large"},
    {16, "0, then product", "{\"a\":" F32("[0,4294967296,4294967296]", "[0,0]") "}", 0, "too large"},
    {16, "size", "{\"a\":" F32("[9223372036854775807]", "[0,0]") "}", 0, "too large"},
    {18, "BEGIN > END", "{\"a\":" F32("[1]", "[4,0]") "}", 4, "begins at 4, after its end at 0"},
    {18, "END > file", "{\"a\":" F32("[2]", "[0,8]") "}", 4, "ends at 8, but there are 4 bytes"},
    {18, "negative", "{\"a\":" F32("[1]", "[-4,0]") "}", 4, "not two natural numbers"},
    {18, "END = 2^63-1", "{\"a\":" F32("[1]", "[0,9223372036854775807]") "}", 4, "but there are 4 bytes"},
    {18, "one offset", "{\"a\":" F32("[1]", "[4]") "}", 4, "not two natural numbers"},
    {18, "three offsets", "{\"a\":" F32("[1]", "[0,4,8]") "}", 4, "not two natural numbers"},
    {18, "offsets as strings", "{\"a\":" F32("[1]", "[\"0\",\"4\"]") "}", 4, "not two natural numbers"},
    {19, "overlap", "{\"a\":" F32("[2]", "[0,8]") ",\"b\":" F32("[2]", "[4,12]") "}", 12, "but the previous one ends at 8"},
    {19, "same bytes", "{\"a\":" F32("[1]", "[0,4]") ",\"b\":" F32("[1]", "[0,4]") "}", 4, "but the previous one ends at 4"},
    {19, "hole", "{\"a\":" F32("[1]", "[0,4]") ",\"b\":" F32("[1]", "[8,12]") "}", 12, "a gap: the previous one ends at 4"},
    {19, "hole at the start", "{\"a\":" F32("[1]", "[4,8]") "}", 8, "a gap: the previous one ends at 0"},
    {19, "bytes at the end", "{\"a\":" F32("[1]", "[0,4]") "}", 5, "1 bytes after the last tensor"},
    {19, "bytes and no tensor", "{}", 1, "1 bytes after the last tensor"},
    {20, "size", "{\"a\":" F32("[2]", "[0,4]") "}", 4, "has 4 bytes of data, its shape and dtype need 8"},
    {20, "F4 odd", "{\"a\":" T("F4", "[3]", "[0,2]") "}", 2, "does not end on a byte"},
    {20, "F6 odd", "{\"a\":" T("F6_E2M3", "[2]", "[0,2]") "}", 2, "does not end on a byte"},
    {20, "F4 even", "{\"a\":" T("F4", "[4]", "[0,2]") "}", 2, NULL},
    {20, "F6 whole", "{\"a\":" T("F6_E3M2", "[4]", "[0,3]") "}", 3, NULL},
    {22, "\\u0000", "{\"a\\u0000b\":" F32("[1]", "[0,4]") "}", 4, "a string holds \\u0000"},
    {22, "escape sequence raw", "{\"\033[31m\":" F32("[1]", "[0,4]") "}", 4, "control character 0x1b"},
    {22, "newline raw", "{\"a\nb\":" F32("[1]", "[0,4]") "}", 4, "unexpected newline"},
    {22, "names that bite", "{\"\\u001b[31m\":" F32("[0]", "[0,0]") ",\"a\\nb\":" F32("[0]", "[0,0]") ",\"../x\":" F32("[1]", "[0,4]") "}", 4, NULL},
    {23, "lone surrogate", "{\"\\ud800\":" F32("[1]", "[0,4]") "}", 4, "invalid Unicode"},
    {23, "low surrogate", "{\"\\udc00x\":" F32("[1]", "[0,4]") "}", 4, "invalid Unicode"},
    {23, "surrogate in UTF-8", "{\"\xed\xa0\x80\":" F32("[1]", "[0,4]") "}", 4, "unable to decode"},
    {23, "pair", "{\"\\ud83d\\ude00\":" F32("[1]", "[0,4]") "}", 4, NULL},
    {58, "metadata null", "{\"__metadata__\": null ,\"a\":" F32("[1]", "[0,4]") "}", 4, NULL},
    {58, "metadata nul", "{\"__metadata__\":nul,\"a\":" F32("[1]", "[0,4]") "}", 4, "an object as __metadata__ expected"},
    {58, "metadata null twice", "{\"__metadata__\":null,\"__metadata__\":null}", 0, "occurs twice"},
    {58, "no tensor", "{}", 0, NULL},
    {58, "no tensor, metadata", "{\"__metadata__\":{\"k\":\"v\"}}", 0, NULL},
    {58, "empty", "{\"a\":" F32("[0,9223372036854775807]", "[0,0]") "}", 0, NULL},
    {58, "empty name", "{\"\":" F32("[1]", "[0,4]") "}", 4, NULL},
};
/* clang-format on */

CASE("safetensors", 60);

TEST(every_row_of_the_list)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const row *r = &rows[i];
        blob b = bad_safetensors(r->header, r->data);
        const char *path = bad_write("row.safetensors", &b);
        if (r->fragment) {
            bad_expect(r->item, r->what, path, NULL, 3, r->fragment);
        } else {
            const outcome o = bad_read(path, NULL);
            ck_assert_msg(!o.failed, "item %d, %s: %s", r->item, r->what, o.error.text);
        }
    }
}

static void expect_bytes(int item, const char *what, const void *p, size_t n, const char *fragment)
{
    blob b = {0};
    blob_add(&b, p, n);
    bad_expect(item, what, bad_write("bytes", &b), NULL, 3, fragment);
}

TEST(item_1_to_5_lengths)
{
    expect_bytes(1, "empty", "", 0, "is empty");
    expect_bytes(2, "7 bytes", "\7\0\0\0\0\0\0", 7, "7 bytes are too few");
    expect_bytes(2, "1 byte", "x", 1, "1 bytes are too few");
    expect_bytes(3, "N = 0", "\0\0\0\0\0\0\0\0", 8, "header length 0");
    expect_bytes(4, "N > file", "\3\0\0\0\0\0\0\0{}", 10, "header length 3, but the file has 10");
    expect_bytes(4, "nothing after N", "\2\0\0\0\0\0\0\0", 8, "header length 2, but the file has 8");
    expect_bytes(5, "N = 2^64 - 1", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10,
                 "header length 18446744073709551615 is above the cap of 16777216");
    expect_bytes(5, "N = 2^63", "\0\0\0\0\0\0\0\x80{}", 10, "length 9223372036854775808 is above");
    expect_bytes(5, "N = cap + 1", "\1\0\0\1\0\0\0\0{}", 10, "16777217 is above the cap of 16777216");
    expect_bytes(5, "text", "# README\nThis is not a file of tensors\n", 38, "not a safetensors");

    /* a larger cap is honoured up to the limit of the format */
    const trace_options large = {.max_header = 200000000}, small = {.max_header = 40};
    blob b = {0};
    blob_int(&b, 100000001, 8);
    blob_text(&b, "{}");
    bad_expect(5, "N above any cap", bad_write("cap", &b), &large, 3, "above the cap of 100000000");
    b = bad_safetensors("{\"a\":" F32("[1]", "[0,4]") "}", 4);
    bad_expect(5, "small cap", bad_write("cap", &b), &small, 3, "above the cap of 40");
}

TEST(item_8_depth)
{
    static const char *const what[] = {"braces", "brackets", "objects"};
    for (int i = 0; i < 3; i++) {
        blob b = {0};
        blob_int(&b, 0, 8);
        if (i)
            blob_text(&b, "{\"a\":{\"dtype\":");
        for (int k = 0; k < 1000000; k++)
            blob_text(&b, i == 0 ? "{" : i == 1 ? "[" : "{\"a\":");
        blob_set(&b, 0, b.n - 8, 8);
        const char *path = bad_write("deep.safetensors", &b);
        bad_expect(8, what[i], path, NULL, 3, "header");
        bad_within_limits("item 8, depth", bad_read_fails, path, 16);
    }
}

TEST(item_17_rank)
{
    for (int large = 0; large < 3; large++) {
        const int rank = large == 2 ? 1000000 : large ? 65 : 64;
        blob b = {0};
        blob_int(&b, 0, 8);
        blob_text(&b, "{\"a\":{\"dtype\":\"F32\",\"shape\":[1");
        for (int k = 1; k < rank; k++)
            blob_text(&b, ",1");
        blob_text(&b, "],\"data_offsets\":[0,4]}}");
        blob_set(&b, 0, b.n - 8, 8);
        blob_int(&b, 0, 4);
        const char *path = bad_write("rank.safetensors", &b);
        if (large)
            bad_expect(17, "rank", path, NULL, 3, large == 2 ? "longer than" : "65 dimensions");
        else
            ck_assert_uint_eq(bad_read(path, NULL).elements, 1);
    }
}

/* A header that fills `bytes` with the smallest entries, of tensors or of metadata. */
static const char *bloat(const char *name, int metadata, size_t bytes)
{
    blob b = {0};
    blob_int(&b, 0, 8);
    blob_text(&b, metadata ? "{\"__metadata__\":{\"\":\"\"" : "{\"__metadata__\":{}");
    for (unsigned i = 0; b.n + 70 < bytes + 8; i++)
        blob_text(&b, metadata ? ",\"%x\":\"\"" : ",\"%x\":" T("U8", "[0]", "[0,0]"), i);
    blob_text(&b, metadata ? "}}" : "}");
    blob_set(&b, 0, b.n - 8, 8);
    return bad_write(name, &b);
}

TEST(item_21_header_bloat)
{
    if (!test_in_part(0, 2))
        return;
    const char *path = bloat("bloat.safetensors", 0, 16 << 20);
    trace_error e;
    trace *t = trace_open(path, NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    printf("# item 21: %zu entries\n", trace_count(t));
    ck_assert_uint_gt(trace_count(t), 250000);
    trace_close(t);
    bad_within_limits("item 21, entries", bad_read_ok, path, 16);

    path = bloat("metadata.safetensors", 1, 16 << 20);
    bad_within_limits("item 21, metadata", bad_read_fails, path, 16);
    bad_expect(21, "metadata", path, NULL, 3, "more than 500000 metadata entries");
    path = bloat("metadata.safetensors", 1, 4 << 20);
    bad_within_limits("item 21, less metadata", bad_read_ok, path, 4);

    /* one string that fills the header */
    blob b = {0};
    blob_int(&b, 16 << 20, 8);
    blob_text(&b, "{\"__metadata__\":{\"\":\"");
    blob_fill(&b, 'x', (16 << 20) - 24 - 1);
    blob_text(&b, "\"}}");
    blob_fill(&b, ' ', 8 + (16 << 20) - b.n);
    path = bad_write("string.safetensors", &b);
    bad_within_limits("item 21, one string", bad_read_ok, path, 16);

    /* ten million entries are above every cap */
    b = bad_safetensors("{", 0);
    blob_set(&b, 0, 500000000, 8);
    path = bad_write("huge.safetensors", &b);
    ck_assert(truncate(path, 500000008) == 0);
    bad_expect(21, "500 MB of header", path, NULL, 3, "above the cap");
}

/* What costs most memory per byte of header, and most time. */
TEST(item_21_ranks_and_order)
{
    enum { N = 240000 };
    blob b = {0};
    if (!test_in_part(1, 2))
        return;
    blob_int(&b, 0, 8);
    blob_text(&b, "{\"\":" T("U8", "[0]", "[0,0]"));
    while (b.n + 220 < (16 << 20)) {
        blob_text(&b, ",\"%zx\":{\"dtype\":\"U8\",\"shape\":[0", b.n);
        for (int k = 1; k < 64; k++)
            blob_add(&b, ",0", 2);
        blob_text(&b, "],\"data_offsets\":[0,0]}");
    }
    blob_text(&b, "}");
    blob_set(&b, 0, b.n - 8, 8);
    bad_within_limits("item 21, 64 dimensions", bad_read_ok, bad_write("ranks.safetensors", &b), 16);

    blob_int(&b, 0, 8);
    for (unsigned i = 0; i < N; i++)
        blob_text(&b, "%c\"%x\":" T("U8", "[]", "[%u,%u]"), i ? ',' : '{', i, N - 1 - i, N - i);
    blob_text(&b, "}");
    blob_set(&b, 0, b.n - 8, 8);
    const off_t size = (off_t)b.n + N;
    const char *path = bad_write("reverse.safetensors", &b);
    ck_assert(truncate(path, size) == 0);
    bad_within_limits("item 21, reverse order", bad_read_ok, path, 16);
    trace_error e;
    trace *t = trace_open(path, NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    for (unsigned i = 0; i < N; i++)
        if (strtoul(trace_at(t, i)->name, NULL, 16) != N - 1 - i)
            ck_abort_msg("tensor %u is %s", i, trace_at(t, i)->name);
    trace_close(t);
}

TEST(item_22_names_are_data)
{
    static const char *const names[] = {"\033[31mred", "a\nb",       "../../etc/passwd", "/abs",
                                        "x\"y\\z",     "\u202eevil", "\U0001f600"};
    blob b = bad_safetensors(
        "{\"\\u001b[31mred\":" F32("[1]", "[0,4]") ",\"a\\nb\":" F32("[1]", "[4,8]") ",\"../../etc/passwd\":" F32("[1]", "[8,12]") ",\"/abs\":" F32(
            "[1]",
            "[12,16]") ",\"x\\\"y\\\\z\":" F32("[1]",
                                               "[16,20]") ",\"\u202eevil\":" F32("[1]",
                                                                                 "[20,24]") ",\"\\ud83d\\ude00\":" F32("[1]",
                                                                                                                       "[24,28]") "}",
        28);
    trace_error e;
    trace *t = trace_open(bad_write("names.safetensors", &b), NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_uint_eq(trace_count(t), 7);
    for (size_t i = 0; i < 7; i++)
        ck_assert_str_eq(trace_at(t, i)->name, names[i]);
    trace_close(t);

    /* and escaped where a message quotes them */
    b = bad_safetensors("{\"\\u001b[31m\\n\xe2\x80\xae\":" T("F99", "[1]", "[0,4]") "}", 4);
    bad_expect(22, "in a message", bad_write("row.safetensors", &b), NULL, 3, "'\\x1b[31m\\n\\u{202e}'");
    /* NUL as it is */
    b = bad_safetensors("{\"a?b\":" F32("[1]", "[0,4]") "}", 4);
    b.data[8 + 3] = 0;
    bad_expect(22, "raw NUL", bad_write("row.safetensors", &b), NULL, 3, "control character 0x0");
    b = bad_safetensors("{}?", 0);
    b.data[8 + 2] = 0;
    bad_expect(10, "NUL after the object", bad_write("row.safetensors", &b), NULL, 3, "1 bytes after the JSON header");
    b = bad_safetensors("{?", 0);
    b.data[8 + 1] = 0;
    bad_expect(9, "NUL in the object", bad_write("row.safetensors", &b), NULL, 3, "name of a tensor");
}

TEST(item_24_long_number)
{
    for (int k = 0; k < 3; k++) {
        blob b = {0};
        blob_int(&b, 0, 8);
        blob_text(&b, "{\"a\":{\"dtype\":\"F32\",\"shape\":[%s", k == 1 ? "0." : k == 2 ? "1e" : "");
        blob_fill(&b, '1', 1000000);
        blob_text(&b, "],\"data_offsets\":[0,4]}}");
        blob_set(&b, 0, b.n - 8, 8);
        const char *path = bad_write("number.safetensors", &b);
        bad_expect(24, "digits", path, NULL, 3, "is longer than 65536 bytes");
        bad_within_limits("item 24, digits", bad_read_fails, path, 16);
    }
}

/* The plain spelling is read without a JSON tree, all others with one: they say the same. */
TEST(spellings_of_a_tensor)
{
    static const char *const good[] = {
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}",
        "{\"a\": {\"dtype\": \"F32\", \"shape\": [1, 2], \"data_offsets\": [0, 8]}}",
        "{ \"a\" : { \"data_offsets\" :[ 0 , 8 ] , \"shape\":[1 ,2 ],\"dtype\" : \"F32\" } }",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,\n2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"\\u0064type\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}",
        "{\"\\u0061\":{\"dtype\":\"\\u0046\\u0033\\u0032\",\t\"shape\":[1,2],\"data_offsets\":[-0,8]}}",
    };
    static const char *const bad[][2] = {
        {"{\"dtype\":\"F32\",\"shape\":[1,02],\"data_offsets\":[0,8]}", "not valid JSON"},
        {"{\"dtype\":\"F32\",\"shape\":[1,2,],\"data_offsets\":[0,8]}", "not valid JSON"},
        {"{\"dtype\":\"F32\",\"shape\":[,1,2],\"data_offsets\":[0,8]}", "not valid JSON"},
        {"{\"dtype\":\"F32\",\"shape\":[1 2],\"data_offsets\":[0,8]}", "not valid JSON"},
        {"{\"dtype\":\"F32\",\"shape\":[1,2]\"data_offsets\":[0,8]}", "not valid JSON"},
        {"{,\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}", "not valid JSON"},
        {"{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8],}", "not valid JSON"},
        {"{\"dtype\":\"F32\",\"shape\":[1,2.0],\"data_offsets\":[0,8]}", "not a list of natural numbers"},
        {"{\"dtype\":\"F32\",\"shape\":[1,2e0],\"data_offsets\":[0,8]}", "not a list of natural numbers"},
        {"{\"dtype\":\"F32\",\"shape\":[1,-2],\"data_offsets\":[0,8]}", "not a list of natural numbers"},
        {"{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8,8]}", "not two natural numbers"},
        {"{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[8]}", "not two natural numbers"},
        {"{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":8}", "not two natural numbers"},
        {"{\"dtype\":F32,\"shape\":[1,2],\"data_offsets\":[0,8]}", "not valid JSON"},
        {"{\"dtype\":32,\"shape\":[1,2],\"data_offsets\":[0,8]}", "is not a string"},
        {"{\"dtype\":\"F32\",\"shape\":[1,2],\"shape\":[1,2]}", "duplicate"},
        {"{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8],\"x\":[]}", "keys other than"},
        {"{\"dtype\":\"F32\",\"shape\":[1,2]}", "has no key \"data_offsets\""},
        {"{\"dtype\":\"F32\",\"shape\":[1,99999999999999999999],\"data_offsets\":[0,8]}", "not valid JSON"},
        {"{\"dtype\":\"F32\",\"shape\":[2,999999999999],\"data_offsets\":[0,8]}", "bytes of data"},
        {"{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]", "not valid JSON"},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        blob b = bad_safetensors(good[i], 8);
        trace_error e;
        trace *t = trace_open(bad_write("spelling.safetensors", &b), NULL, &e);
        ck_assert_msg(t != NULL, "%s: %s", good[i], t ? "" : e.text);
        const trace_tensor *x = trace_at(t, 0);
        ck_assert(trace_count(t) == 1 && x->rank == 2 && x->shape[0] == 1 && x->shape[1] == 2);
        ck_assert(strcmp(x->name, "a") == 0 && strcmp(x->dtype, "F32") == 0 && x->count == 2);
        trace_close(t);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char header[256];
        snprintf(header, sizeof header, "{\"a\":%s}", bad[i][0]);
        blob b = bad_safetensors(header, 8);
        bad_expect(9, bad[i][0], bad_write("spelling.safetensors", &b), NULL, 3, bad[i][1]);
    }
}

TEST(item_25_file_shrinks_while_it_is_read)
{
    blob b = bad_safetensors("{\"a\":" F32("[1000000]", "[0,4000000]") "}", 4000000);
    const char *path = bad_write("shrinks.safetensors", &b);
    trace_error e;
    double values[1000];
    size_t got;
    trace *t = trace_open(path, NULL, &e);
    ck_assert(t && trace_select(t, 0, &e) == 0);
    ck_assert(trace_read(t, values, 1000, &got, &e) == 0 && got == 1000);
    ck_assert(truncate(path, 100000) == 0);
    int failed = 0;
    for (int i = 0; i < 1000 && !failed; i++)
        failed = trace_read(t, values, 1000, &got, &e);
    ck_assert(failed);
    ck_assert_uint_eq(got, 0);
    ck_assert_int_eq(e.exit, 3);
    ck_assert_ptr_nonnull(strstr(e.text, "offset 100000: the file ends here"));
    ck_assert(trace_read(t, values, 1000, &got, &e) != 0); /* and does not recover */
    trace_close(t);
}

/* One tensor of each dtype: what it is, and the value of the element with the code given. */
static const struct {
    const char *dtype, *format;
    unsigned bits;
    uint64_t code;
    double value;
} dtypes[] = {
    {"F64", "binary64", 64, 0x3ff8000000000000, 1.5},
    {"F32", "binary32", 32, 0xc0000000, -2},
    {"F16", "fp16", 16, 0x7bff, 65504},
    {"BF16", "bf16", 16, 0x4049, 3.140625},
    {"F8_E4M3", "e4m3", 8, 0x7e, 448},
    {"F8_E5M2", "e5m2", 8, 0x7b, 57344},
    {"F8_E8M0", "e8m0", 8, 0x80, 2},
    {"F8_E4M3FNUZ", "e4m3fnuz", 8, 0x7f, 240},
    {"F8_E5M2FNUZ", "e5m2fnuz", 8, 0x40, 1},
    {"F6_E2M3", "e2m3", 6, 0, 0}, /* all 0: the next test has others */
    {"F6_E3M2", "e3m2", 6, 0, 0},
    {"F4", "e2m1", 4, 0, 0},
    {"C64", NULL, 64, 0, 0},
    {"I64", NULL, 64, 0, 0},
    {"U64", NULL, 64, 0, 0},
    {"I32", NULL, 32, 0, 0},
    {"U32", NULL, 32, 0, 0},
    {"I16", NULL, 16, 0, 0},
    {"U16", NULL, 16, 0, 0},
    {"I8", NULL, 8, 0, 0},
    {"U8", NULL, 8, 0, 0},
    {"BOOL", NULL, 8, 0, 0},
};

TEST(every_dtype_is_listed_and_numbers_are_read)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        const uint64_t bytes = 4 * dtypes[i].bits / 8;
        char header[200];
        snprintf(header, sizeof header, "{\"a\":" T("%s", "[2,2]", "[0,%u]") "}", dtypes[i].dtype, (unsigned)bytes);
        blob b = bad_safetensors(header, 0);
        for (int k = 0; k < 4; k++)
            blob_int(&b, dtypes[i].code, dtypes[i].bits / 8);
        if (dtypes[i].bits < 8)
            blob_fill(&b, 0, bytes);
        trace_error e;
        trace *t = trace_open(bad_write("dtype.safetensors", &b), NULL, &e);
        ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
        const trace_tensor *x = trace_at(t, 0);
        ck_assert_str_eq(x->dtype, dtypes[i].dtype);
        ck_assert(x->count == 4 && x->rank == 2 && x->shape[0] == 2 && x->shape[1] == 2);
        if (dtypes[i].format) {
            double v[5];
            size_t got;
            ck_assert_ptr_eq(x->format, mpsim_format_find(dtypes[i].format));
            ck_assert(trace_select(t, 0, &e) == 0 && trace_read(t, v, 5, &got, &e) == 0);
            ck_assert(got == 4 && v[0] == dtypes[i].value && v[3] == dtypes[i].value);
        } else {
            ck_assert_ptr_null(x->format);
            ck_assert(trace_select(t, 0, &e) != 0);
            ck_assert_ptr_nonnull(strstr(e.text, "does not hold floating-point numbers"));
        }
        trace_close(t);
    }
}

/* Codes that share bytes, the first in the lowest bits, from any place: more than one buffer of the reader. */
TEST(bug_20261127_packed_codes_are_read)
{
    static const struct {
        const char *dtype;
        unsigned bits;
    } packed[] = {{"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6}};
    enum { N = 100000 };
    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++) {
        const unsigned bits = packed[i].bits, bytes = N * bits / 8;
        static const size_t at[] = {0, 1, 2, 3, 5, 32767, 32768, 65535, N - 1};
        unsigned char *data = calloc(bytes, 1), *codes = malloc(N), some[40];
        char header[200];
        trace_error e;
        size_t got;
        for (size_t k = 0; k < N; k++)
            for (unsigned b = 0; b < bits; b++)
                data[(k * bits + b) / 8] |= (unsigned char)(((k * 2654435761u >> 7) >> b & 1) << (k * bits + b) % 8);
        snprintf(header, sizeof header, "{\"a\":" T("%s", "[100,1000]", "[0,%u]") "}", packed[i].dtype, bytes);
        blob b = bad_safetensors(header, 0);
        blob_add(&b, data, bytes);
        trace *t = trace_open(bad_write("packed.safetensors", &b), NULL, &e);
        ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
        ck_assert(trace_select(t, 0, &e) == 0 && trace_read_codes(t, codes, N, &got, &e) == 0 && got == N);
        for (size_t k = 0; k < N; k++)
            ck_assert_uint_eq(codes[k], (k * 2654435761u >> 7) & ((1u << bits) - 1));
        for (size_t k = 0; k < sizeof at / sizeof at[0]; k++) {
            const size_t n = N - at[k] < sizeof some ? N - at[k] : sizeof some;
            ck_assert(trace_codes(t, 0, at[k], some, n, &e) == 0 && memcmp(some, codes + at[k], n) == 0);
        }
        ck_assert(trace_codes(t, 0, N - 1, some, 2, &e) != 0);
        trace_close(t);
        free(data);
        free(codes);
    }
}

TEST(integers_may_be_codes)
{
    const trace_options o = {.as_int16 = mpsim_format_find("bf16"), .as_int8 = mpsim_format_find("e5m2")};
    const trace_options wrong = {.as_int16 = mpsim_format_find("e5m2")};
    blob b = bad_safetensors("{\"a\":" T("I16", "[1]", "[0,2]") ",\"b\":" T("U8", "[1]", "[2,3]") "}", 0);
    blob_int(&b, 0x3f80, 2);
    blob_int(&b, 0x3c, 1);
    const char *path = bad_write("int.safetensors", &b);
    const outcome r = bad_read(path, &o);
    ck_assert(!r.failed && r.elements == 2 && r.first[0] == 1 && r.first[1] == 1);
    ck_assert_uint_eq(bad_read(path, NULL).elements, 0);
    bad_expect(31, "wrong width", path, &wrong, 3, "dtype I16 cannot be codes of e5m2");
}

TEST(item_58_shapes_order_and_alignment)
{
    /* c lies before a in the file; everything is unaligned behind one byte */
    blob b = bad_safetensors("{\"a\":" F32("[]", "[9,13]") ",\"e\":" F32("[3,0]", "[9,9]") ",\"c\":" T(
                                 "F64", "[1]", "[1,9]") ",\"u\":" T("U8", "[1]", "[0,1]") "}",
                             1);
    blob_int(&b, bits_of_f64(2.5), 8);
    blob_int(&b, bits_of_f32(-0.25f), 4);
    trace_error e;
    double v[3];
    size_t got;
    trace *t = trace_open(bad_write("order.safetensors", &b), NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_str_eq(trace_layout(t), "safetensors");
    ck_assert_str_eq(trace_at(t, 0)->name, "u");
    ck_assert_str_eq(trace_at(t, 1)->name, "c");
    ck_assert_str_eq(trace_at(t, 2)->name, "e");
    ck_assert_str_eq(trace_at(t, 3)->name, "a");
    ck_assert_ptr_null(trace_at(t, 4));
    ck_assert(trace_select(t, 1, &e) == 0 && trace_read(t, v, 3, &got, &e) == 0);
    ck_assert(got == 1 && v[0] == 2.5);
    ck_assert(trace_read(t, v, 3, &got, &e) == 0 && got == 0); /* past the end */
    ck_assert(trace_select(t, 2, &e) == 0 && trace_read(t, v, 3, &got, &e) == 0 && got == 0);
    ck_assert(trace_at(t, 3)->rank == 0 && trace_at(t, 3)->count == 1);
    ck_assert(trace_select(t, 3, &e) == 0 && trace_read(t, v, 3, &got, &e) == 0);
    ck_assert(got == 1 && v[0] == -0.25);
    ck_assert(trace_select(t, 4, &e) != 0 && strstr(e.text, "there is no tensor 4"));
    ck_assert(trace_read(t, v, 3, &got, &e) != 0);
    trace_close(t);
}

TEST(item_58_nan_and_infinity)
{
    blob b = bad_safetensors("{\"a\":" F32("[3]", "[0,12]") ",\"b\":" T("F16", "[2]", "[12,16]") "}", 0);
    blob_int(&b, 0x7fc00000, 4);
    blob_int(&b, 0x7f800000, 4);
    blob_int(&b, 0x80000000, 4);
    blob_int(&b, 0xfc00, 2);
    blob_int(&b, 0x7e00, 2);
    const outcome o = bad_read(bad_write("nan.safetensors", &b), NULL);
    ck_assert(!o.failed && o.elements == 5);
    ck_assert(isnan(o.first[0]) && isinf(o.first[1]) && o.first[2] == 0 && signbit(o.first[2]));
    ck_assert(isinf(o.first[3]) && o.first[3] < 0 && isnan(o.first[4]));
}

TEST(item_58_two_to_the_33_elements)
{
    blob b = bad_safetensors("{\"a\":" T("F8_E4M3", "[8589934592]", "[0,8589934592]") "}", 0);
    const off_t size = (off_t)b.n + 8589934592;
    const char *path = bad_write("large.safetensors", &b);
    if (truncate(path, size)) {
        printf("# no sparse files here: 2^33 elements not tested\n");
        return;
    }
    trace_error e;
    double v[4];
    size_t got;
    trace *t = trace_open(path, NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_uint_eq(trace_at(t, 0)->count, 8589934592);
    ck_assert(trace_select(t, 0, &e) == 0 && trace_read(t, v, 4, &got, &e) == 0 && got == 4);
    trace_close(t);
    unlink(path);
}

TEST(metadata_is_kept_in_order)
{
    blob b = bad_safetensors("{\"__metadata__\":{\"z\":\"1\",\"a\":\"\\u00fc\",\"mpsim.step\":\"120\"}}", 0);
    trace_error e;
    trace *t = trace_open(bad_write("step_7.safetensors", &b), NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_str_eq(trace_metadata_key(t, 0), "z");
    ck_assert_str_eq(trace_metadata_key(t, 1), "a");
    ck_assert_str_eq(trace_metadata_value(t, 1), "\xc3\xbc");
    ck_assert_ptr_null(trace_metadata_key(t, 3));
    ck_assert_ptr_null(trace_metadata_value(t, 3));
    ck_assert_str_eq(trace_metadata(t, "z"), "1");
    ck_assert_ptr_null(trace_metadata(t, "none"));
    ck_assert_int_eq(trace_step(t), 120); /* before the file's name */
    trace_close(t);
}

TEST(any_damage_is_read_or_refused)
{
    blob b = bad_safetensors(
        "{\"__metadata__\":{\"k\":\"v\"},\"a\":" F32("[2]", "[0,8]") ",\"b\":" T("BF16", "[1,2]", "[8,12]") "}  ", 12);
    bad_damage_all("damage.safetensors", &b, NULL);
    blob_clear(&b);
}

TEST_MAIN_BY(bad_main, "safetensors");
