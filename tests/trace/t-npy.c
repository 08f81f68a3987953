/* t-npy.c -- the npy reader: items 26 to 33 of the list of bad inputs, and what must work. */
#include "support/badfile.h"
#include "support/support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DICT(descr, shape) "{'descr': " descr ", 'fortran_order': False, 'shape': " shape ", }"

typedef struct row {
    int item;
    const char *what, *dict;
    size_t data;
    const char *fragment; /* NULL: must work */
} row;

/* clang-format off */
static const row rows[] = {
    {28, "not a dict", "[1]", 0, "it is not a dict"},
    {28, "empty", "", 0, "it is not a dict"},
    {28, "empty dict", "{}", 0, "no key descr"},
    {28, "no fortran_order", "{'descr': '<f4', 'shape': (1,)}", 4, "no key fortran_order"},
    {28, "no shape", "{'descr': '<f4', 'fortran_order': False}", 4, "no key shape"},
    {28, "extra key", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", 4, "a key other than"},
    {28, "key twice", "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, "a key that occurs twice"},
    {28, "no colon", "{'descr' '<f4'}", 4, "':' expected"},
    {28, "no comma", "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", 4, "',' or '}' expected"},
    {28, "no end", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", 4, "',' or '}' expected"},
    {28, "no end of a string", "{'descr': '<f4, ", 4, "control character"},
    {28, "escape", "{'descr': '<\\x66\\x34', 'fortran_order': False, 'shape': (1,)}", 4, "with an escape"},
    {28, "long string", "{'descr': '<f40000000000000000000000000000000000000000000000000000000000000000'}", 4, "too long"},
    {28, "something after it", DICT("'<f4'", "(1,)") " x", 4, "something follows the dict"},
    {28, "two dicts", DICT("'<f4'", "(1,)") DICT("'<f4'", "(1,)"), 4, "something follows the dict"},
    {28, "fortran_order 1", "{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}", 4, "neither True nor False"},
    {28, "code", "__import__('os').system('true')", 0, "it is not a dict"},
    {28, "code inside", "{'descr': eval('1'), 'fortran_order': False, 'shape': (1,)}", 4, "a string expected"},
    {28, "nested parens", DICT("'<f4'", "((((((1,),),),),),)"), 4, "a tuple inside the shape"},
    {28, "list", DICT("'<f4'", "[1]"), 4, "shape is not a tuple"},
    {28, "number", DICT("'<f4'", "1"), 4, "shape is not a tuple"},
    {28, "number in parens", DICT("'<f4'", "(1)"), 4, "shape is not a tuple"},
    {28, "Python 2", DICT("'<f4'", "(1L,)"), 4, "suffix L of Python 2"},
    {28, "other key order", "{'shape': (1,), 'fortran_order': False, 'descr': '<f4'}", 4, NULL},
    {28, "double quotes, no spaces", "{\"shape\":(1,),\"fortran_order\":False,\"descr\":\"<f4\"}", 4, NULL},
    {28, "spaces", " {  'shape' :\t( 1 , ) , 'fortran_order' : False , 'descr' : '<f4' , } ", 4, NULL},
    {29, "claims 32 GiB", DICT("'<f8'", "(65536, 65536)"), 0, "promises 34359738368 bytes of data, there are 0"},
    {29, "leading zero", DICT("'<f4'", "(01,)"), 4, "a number that begins with 0"},
    {29, "negative", DICT("'<f4'", "(-1,)"), 4, "a negative dimension"},
    {29, "float", DICT("'<f4'", "(1.0,)"), 4, "not an integer"},
    {29, "string", DICT("'<f4'", "('1',)"), 4, "a number expected in the shape"},
    {29, "2^64", DICT("'<f4'", "(18446744073709551616,)"), 4, "more than 64 bits"},
    {29, "product", DICT("'<f4'", "(4294967296, 4294967296)"), 4, "the shape is too large"},
    {29, "size", DICT("'<f4'", "(18446744073709551615,)"), 4, "the shape is too large"},
    {29, "0, then product", DICT("'<f4'", "(0, 4294967296, 4294967296)"), 0, "the shape is too large"},
    {29, "product, then 0", DICT("'<f4'", "(4294967296, 4294967296, 0)"), 0, "the shape is too large"},
    {29, "two commas", DICT("'<f4'", "(1,,)"), 4, "a number expected"},
    {29, "only a comma", DICT("'<f4'", "(,)"), 4, "a number expected"},
    {29, "no comma", DICT("'<f4'", "(1 1)"), 4, "',' or ')' expected"},
    {30, "object", DICT("'|O'", "(1,)"), 8, "dtype '|O' holds Python objects (a pickle), which are never loaded"},
    {30, "object with size", DICT("'|O8'", "(1,)"), 8, "holds Python objects"},
    {30, "structured", DICT("[('a', '<f4'), ('b', '<i4')]", "(1,)"), 8, "a structured dtype"},
    {30, "structured with objects", DICT("[('a', '|O')]", "(1,)"), 8, "a structured dtype"},
    {30, "subarray", DICT("('<f4', (2,))", "(1,)"), 8, "a structured dtype"},
    {30, "unicode", DICT("'<U3'", "(1,)"), 12, "holds strings"},
    {30, "bytes", DICT("'|S3'", "(1,)"), 3, "holds byte strings"},
    {30, "date", DICT("'<M8[ns]'", "(1,)"), 8, "holds dates"},
    {30, "date without unit", DICT("'<M8'", "(1,)"), 8, "holds dates"},
    {30, "time span", DICT("'<m8[s]'", "(1,)"), 8, "holds time spans"},
    {30, "complex", DICT("'<c8'", "(1,)"), 8, "holds complex numbers"},
    {30, "long double", DICT("'<f16'", "(1,)"), 16, "long double"},
    {30, "long double of x87", DICT("'<f10'", "(1,)"), 10, "long double"},
    {30, "odd float", DICT("'<f3'", "(1,)"), 3, "dtype '<f3' is not known"},
    {30, "no float", DICT("'<f0'", "(1,)"), 0, "dtype '<f0' is not known"},
    {30, "opaque", DICT("'|V5'", "(1,)"), 5, "does not say what it holds"},
    {30, "unknown", DICT("'<x4'", "(1,)"), 4, "dtype '<x4' is not known"},
    {30, "name", DICT("'float9'", "(1,)"), 4, "dtype 'float9' is not known"},
    {30, "empty", DICT("''", "(1,)"), 4, "dtype '' is not known"},
    {30, "sign only", DICT("'<'", "(1,)"), 4, "dtype '<' is not known"},
    {30, "endless size", DICT("'<f99999999999999999999'", "(1,)"), 4, "dtype '<f99999999999999999999'"},
    {31, "f1", DICT("'<f1'", "(1,)"), 1, "dtype '<f1' does not say what it holds: pass --assume V1="},
    {31, "V1", DICT("'|V1'", "(1,)"), 1, "dtype '|V1' does not say what it holds: pass --assume V1="},
    {31, "V2", DICT("'<V2'", "(1,)"), 2, "dtype '<V2' does not say what it holds: pass --assume V2=bf16"},
    {31, "g2", DICT("'<g2'", "(1,)"), 2, "dtype '<g2' does not say what it holds: pass --assume V2=bf16"},
    {32, "short", DICT("'<f4'", "(2,)"), 7, "promises 8 bytes of data, there are 7"},
    {32, "long", DICT("'<f4'", "(2,)"), 9, "promises 8 bytes of data, there are 9"},
    {32, "scalar", DICT("'<f4'", "()"), 5, "promises 4 bytes of data, there are 5"},
    {32, "integers too", DICT("'<i8'", "(2,)"), 15, "promises 16 bytes of data, there are 15"},
    {58, "empty", DICT("'<f4'", "(0, 18446744073709551615)"), 0, NULL},
};
/* clang-format on */

CASE("npy", 60);

TEST(every_row_of_the_list)
{
    static const char zeros[64];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int version = 1; version <= 3; version++) {
            const row *r = &rows[i];
            blob b = bad_npy(version, r->dict, zeros, r->data);
            const char *path = bad_write("row.npy", &b);
            if (r->fragment) {
                bad_expect(r->item, r->what, path, NULL, 3, r->fragment);
            } else {
                const outcome o = bad_read(path, NULL);
                ck_assert_msg(!o.failed, "item %d, %s: %s", r->item, r->what, o.error.text);
            }
        }
}

/* What mpsim writes as bytes it reads back: a comment behind the dict, which numpy passes over, names the format. */
TEST(bug_20261127_own_bytes_need_no_option)
{
    static const struct {
        const char *dict, *format, *fragment;
        size_t bytes;
    } cases[] = {
        {DICT("'<V2'", "(1,)") " # mpsim: bf16", "bf16", NULL, 2},
        {DICT("'|V1'", "(1,)") " # mpsim: e4m3  ", "e4m3", NULL, 1},
        {DICT("'|V1'", "(1,)") " # mpsim: binary8p3se", "binary8p3se", NULL, 1},
        {DICT("'<V2'", "(1,)") " # mpsim: e4m3", NULL, "cannot be codes of e4m3", 2},
        {DICT("'<V2'", "(1,)") " # mpsim: fp99", NULL, "'# mpsim: fp99' names no format", 2},
        {DICT("'<V2'", "(1,)") " # mpsim: bf16 x", NULL, "something follows the dict", 2},
        {DICT("'<V2'", "(1,)") " # bf16", NULL, "something follows the dict", 2},
        {DICT("'<V2'", "(1,)") " # mpsim: ", NULL, "does not say what it holds", 2},
    };
    static const char zeros[2];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        blob b = bad_npy(1, cases[i].dict, zeros, cases[i].bytes);
        const char *path = bad_write("own.npy", &b);
        trace_error e;
        if (cases[i].fragment) {
            bad_expect(31, cases[i].fragment, path, NULL, 3, cases[i].fragment);
            continue;
        }
        trace *t = trace_open(path, NULL, &e);
        ck_assert_msg(t != NULL, "%s", e.text);
        ck_assert_str_eq(trace_at(t, 0)->format->name, cases[i].format);
        trace_close(t);
    }
}

static blob good(void)
{
    const float x[2] = {1, 2};
    return bad_npy(1, DICT("'<f4'", "(2,)"), x, sizeof x);
}

/* The offset of what is wrong, not of what follows it. */
TEST(bug_20261126_offsets_in_the_header)
{
    static const struct {
        const char *dict, *fragment;
    } cases[] = {
        {"{'descr': '<f4', 'x': 1}", "offset 27: npy header is not valid: a key other than"},
        {"{'descr': '<f4',  'descr': '<f4'}", "offset 28: npy header is not valid: a key that occurs twice"},
        {DICT("'<f4'", "(9223372036854775807, 2)"), "offset 60: the shape is too large"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        blob b = bad_npy(1, cases[i].dict, "", 0);
        bad_expect(28, cases[i].fragment, bad_write("offset.npy", &b), NULL, 3, cases[i].fragment);
    }
}

TEST(item_26_magic_and_version)
{
    blob b = good();
    blob_set(&b, 6, 0x0909, 2);
    bad_expect(26, "version 9.9", bad_write("v.npy", &b), NULL, 3, "offset 6: npy version 9.9 is not known");
    b = good();
    blob_set(&b, 6, 0, 2);
    bad_expect(26, "version 0.0", bad_write("v.npy", &b), NULL, 3, "npy version 0.0");
    b = good();
    blob_set(&b, 7, 1, 1);
    bad_expect(26, "version 1.1", bad_write("v.npy", &b), NULL, 3, "npy version 1.1");
    b = good();
    blob_set(&b, 5, 'X', 1);
    bad_expect(26, "magic", bad_write("v.npy", &b), NULL, 3, "a damaged npy file");
    b = good();
    blob_set(&b, 0, 'X', 1);
    bad_expect(26, "magic", bad_write("v.npy", &b), NULL, 3,
               "not a safetensors, PyTorch, npy, npz, GGUF, Flax, ONNX or llm.c file");
    b = good();
    b.n = 6;
    bad_expect(26, "magic only", bad_write("v.npy", &b), NULL, 3, "6 bytes are too few");
}

TEST(item_27_header_length)
{
    for (int version = 1; version <= 3; version++) {
        blob b = bad_npy(version, DICT("'<f4'", "(1,)"), "\0\0\0\0", 4);
        blob_set(&b, 8, 0xffffffff, version > 1 ? 4 : 2);
        const char *path = bad_write("long.npy", &b);
        bad_expect(27, "4 GiB", path, NULL, 3,
                   version > 1 ? "header length 4294967295 is above the cap of 16777216"
                               : "header length 65535, but the file has");
        bad_within_limits("item 27", bad_read_fails, path, 16);
    }
    const trace_options small = {.max_header = 100};
    blob b = good();
    bad_expect(27, "cap", bad_write("cap.npy", &b), &small, 3, "is above the cap of 100");
}

TEST(item_28_newline_and_bombs)
{
    blob b = good();
    b.data[b.n - 8 - 1] = ' ';
    bad_expect(28, "no newline", bad_write("line.npy", &b), NULL, 3, "no newline at its end");
    for (int k = 0; k < 3; k++) {
        b = (blob){0};
        blob_text(&b, "\x93NUMPY\2%c", 0);
        blob_int(&b, 1000000, 4);
        blob_text(&b, "%s", k == 0 ? "" : k == 1 ? "{'shape': " : "{'shape': (1,");
        blob_fill(&b, k == 0 ? '{' : '(', 1000000 + 12 - 1 - b.n);
        blob_text(&b, "\n");
        const char *path = bad_write("bomb.npy", &b);
        bad_expect(28, "bomb", path, NULL, 3, k ? "a tuple inside" : "a string expected");
        bad_within_limits("item 28, nesting", bad_read_fails, path, 16);
    }
}

TEST(item_29_dimensions)
{
    for (int rank = 64; rank <= 65; rank++) {
        char dict[1000] = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
        for (int i = 0; i < rank; i++)
            strcat(dict, "1, ");
        strcat(dict, ")}");
        blob b = bad_npy(1, dict, "\0\0\0\0", 4);
        const char *path = bad_write("rank.npy", &b);
        if (rank == 65)
            bad_expect(29, "65 dimensions", path, NULL, 3, "a shape of more than 64 dimensions");
        else
            ck_assert_uint_eq(bad_read(path, NULL).elements, 1);
    }
    blob b = bad_npy(1, DICT("'<f8'", "(65536, 65536)"), "", 0);
    b.n = 80;
    bad_expect(29, "80 bytes", bad_write("80.npy", &b), NULL, 3, "header length 118, but the file has 80");
}

/* The descr, what it means, a code in the file's byte order, and its value. */
static const struct {
    const char *descr, *format;
    unsigned char code[8];
    size_t width;
    double value;
    int big;
} dtypes[] = {
    {"<f4", "binary32", {0, 0, 0xc0, 0x3f}, 4, 1.5, 0},
    {">f4", "binary32", {0x3f, 0xc0, 0, 0}, 4, 1.5, 1},
    {"<f2", "fp16", {0x00, 0x3e}, 2, 1.5, 0},
    {">f2", "fp16", {0x3e, 0x00}, 2, 1.5, 1},
    {"<f8", "binary64", {0, 0, 0, 0, 0, 0, 0xf8, 0xbf}, 8, -1.5, 0},
    {">f8", "binary64", {0xbf, 0xf8, 0, 0, 0, 0, 0, 0}, 8, -1.5, 1},
    {"|V1", "e4m3", {0x7e}, 1, 448, 0},
    {"<V1", "e4m3", {0x7e}, 1, 448, 0},
    {"<f1", "e4m3", {0x38}, 1, 1, 0},
    {"<V2", "bf16", {0xc0, 0x3f}, 2, 1.5, 0},
    {"|V2", "bf16", {0xc0, 0x3f}, 2, 1.5, 0},
    {">V2", "bf16", {0x3f, 0xc0}, 2, 1.5, 1},
    {"<g2", "bf16", {0xc0, 0x3f}, 2, 1.5, 0},
    {"bfloat16", "bf16", {0xc0, 0x3f}, 2, 1.5, 0},
    {"float8_e4m3fn", "e4m3", {0x38}, 1, 1, 0},
    {"float8_e5m2", "e5m2", {0x3c}, 1, 1, 0},
    {"<i2", "fp16", {0x00, 0x3e}, 2, 1.5, 0},
    {">u2", "fp16", {0x3e, 0x00}, 2, 1.5, 1},
    {"|i1", "e5m2", {0x3c}, 1, 1, 0},
    {"|u1", "e5m2", {0x3c}, 1, 1, 0},
    {"<i4", NULL, {0}, 4, 0, 0},
    {"<i8", NULL, {0}, 8, 0, 0},
    {"|b1", NULL, {0}, 1, 0, 0},
};

TEST(item_33_every_dtype_in_both_byte_orders)
{
    const trace_options o = {.assume_v1 = mpsim_format_find("e4m3"),
                             .assume_v2 = mpsim_format_find("bf16"),
                             .as_int16 = mpsim_format_find("fp16"),
                             .as_int8 = mpsim_format_find("e5m2")};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        char dict[200];
        trace_error e;
        double v[2];
        size_t got;
        snprintf(dict, sizeof dict, DICT("'%s'", "()"), dtypes[i].descr);
        blob b = bad_npy(1, dict, dtypes[i].code, dtypes[i].width);
        trace *t = trace_open(bad_write("dtype.npy", &b), &o, &e);
        ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
        const trace_tensor *x = trace_at(t, 0);
        ck_assert_str_eq(x->dtype, dtypes[i].descr);
        ck_assert_str_eq(x->name, "");
        ck_assert(x->rank == 0 && x->count == 1);
        if (dtypes[i].format) {
            ck_assert_ptr_eq(x->format, mpsim_format_find(dtypes[i].format));
            ck_assert_int_eq(x->big_endian, dtypes[i].big);
            ck_assert(trace_select(t, 0, &e) == 0 && trace_read(t, v, 2, &got, &e) == 0);
            ck_assert_msg(got == 1 && v[0] == dtypes[i].value, "%s: %g", dtypes[i].descr, v[0]);
        } else {
            ck_assert_ptr_null(x->format);
        }
        trace_close(t);
    }
}

TEST(item_31_assumed_formats_must_fit)
{
    const trace_options o = {.assume_v1 = mpsim_format_find("bf16"), .assume_v2 = mpsim_format_find("e4m3")};
    blob b = bad_npy(1, DICT("'|V1'", "(1,)"), "\0", 1);
    bad_expect(31, "V1 as bf16", bad_write("V1.npy", &b), &o, 3, "cannot be codes of bf16");
    b = bad_npy(1, DICT("'|V2'", "(1,)"), "\0\0", 2);
    bad_expect(31, "V2 as e4m3", bad_write("V2.npy", &b), &o, 3, "cannot be codes of e4m3");
}

TEST(item_33_fortran_order_is_reported_and_read_in_storage_order)
{
    const float x[6] = {0, 3, 1, 4, 2, 5};
    blob b = bad_npy(1, "{'descr': '" BAD_FLOAT "', 'fortran_order': True, 'shape': (2, 3), }", x, sizeof x);
    const char *path = bad_write("fortran.npy", &b);
    trace_error e;
    trace *t = trace_open(path, NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert(trace_at(t, 0)->fortran == 1 && trace_at(t, 0)->offset == 128);
    ck_assert_str_eq(trace_layout(t), "npy");
    ck_assert_uint_eq(trace_size(t), 152);
    trace_close(t);
    const outcome o = bad_read(path, NULL);
    ck_assert(!o.failed && o.elements == 6);
    for (int i = 0; i < 6; i++)
        ck_assert(o.first[i] == (double)x[i]);
}

TEST(item_58_two_to_the_33_elements)
{
    blob b = bad_npy(2, DICT("'<f2'", "(8589934592,)"), "", 0);
    const off_t size = (off_t)b.n + 2 * 8589934592;
    const char *path = bad_write("large.npy", &b);
    if (truncate(path, size)) {
        printf("# no sparse files here: 2^33 elements not tested\n");
        return;
    }
    trace_error e;
    trace *t = trace_open(path, NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_uint_eq(trace_at(t, 0)->count, 8589934592);
    trace_close(t);
    unlink(path);
}

TEST(any_damage_is_read_or_refused)
{
    blob b = good();
    bad_damage_all("damage.npy", &b, NULL);
    blob_clear(&b);
    b = bad_npy(3, DICT("'>f2'", "(2, 1)"), "\1\2\3\4", 4);
    bad_damage_all("damage.npy", &b, NULL);
    blob_clear(&b);
}

TEST_MAIN_BY(bad_main, "npy");
