/* t-walked.c -- layouts whose directory is all over the file, Flax's MessagePack and ONNX: bad files made by hand, and any
 * damage. What good ones hold is in recorded/ (t-recorded). */
#include "sim/trace/impl.h"
#include "support/badfile.h"
#include "support/support.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ITEM = 61 };

static void refused(const char *name, const char *bytes, size_t n, const char *fragment)
{
    blob b = {0};
    blob_add(&b, (const unsigned char *)bytes, n);
    bad_expect(ITEM, name, bad_write(name, &b), NULL, 3, fragment);
}

/* {"a": array of shape, dtype and bytes} */
#define ARRAY(n, triple) \
    "\x81\xa1"           \
    "a\xc7" n "\x01" triple

CASE("walked", 60);

TEST(bad_msgpack)
{
#define BAD(text, fragment) refused("bad.msgpack", text, sizeof text - 1, fragment)
    BAD(ARRAY("\x20", "\x93\x91\x02\xa7"
                      "float32\xc4\x08"
                      "12345678"),
        "ends past the file");
    BAD(ARRAY("\x14", "\x93\x91\x03\xa7"
                      "float32\xc4\x08"
                      "12345678"),
        "has 8 bytes, unlike its shape");
    BAD(ARRAY("\x16", "\x93\x91\x02\xa7"
                      "float32\xc4\x08"
                      "12345678\xc0"),
        "1 bytes behind an array");
    BAD(ARRAY("\x14", "\x93\x91\xff\xa7"
                      "float32\xc4\x08"
                      "12345678"),
        "has no side");
    BAD(ARRAY("\x14", "\x93\x91\x02\xa7"
                      "float99\xc4\x08"
                      "12345678"),
        "dtype 'float99' is not known");
    BAD(ARRAY("\x1c", "\x93\x92\xcf\xff\xff\xff\xff\xff\xff\xff\xff\x02\xa7"
                      "float32\xc4\x08"
                      "12345678"),
        "unlike its shape");
    BAD("\x81\xa1"
        "a\x82\xa1",
        "are needed");
    BAD("\x81\xa1"
        "a\xc1.....",
        "byte 0xc1 begins no value of MessagePack");
    BAD("\x81\xa1"
        "a\xdf\xff\xff\xff\xff\xc0\xc0",
        "neither text nor a number");
    BAD("\x81\xa1"
        "a\xdd\xff\xff\xff\xff"
        "\xc0\xc0\xc0\xc0",
        "are needed");
    BAD("\x81\xa1"
        "a\xc0\xc0\xc0\xc0\xc0\xc0",
        "bytes behind the map");
    BAD("\x82\xa1"
        "a\xc7\x02\x01\x91\xc0"
        "\xa1"
        "a\xd4\x01\x90",
        "no shape where");
#undef BAD
    blob deep = {0};
    for (int i = 0; i < 70; i++)
        blob_add(&deep,
                 (const unsigned char *)"\x81\xa1"
                                        "a",
                 3);
    bad_expect(ITEM, "depth", bad_write("deep.msgpack", &deep), NULL, 3, "nested deeper than 64");
    blob long_path = {0};
    for (int i = 0; i < 40; i++) {
        blob_add(&long_path, (const unsigned char *)"\x81\xd9\xff", 3);
        blob_fill(&long_path, 'k', 255);
    }
    bad_expect(ITEM, "path", bad_write("path.msgpack", &long_path), NULL, 3,
               "the path of a key has more than 4096 bytes");
    blob long_list = {0};
    for (int i = 0; i < 16; i++) { /* 16 * 256 - 1 bytes, of which a list then asks for two more */
        blob_add(&long_list, (const unsigned char *)"\x81\xd9\xff", 3);
        blob_fill(&long_list, 'k', 255);
    }
    blob_add(&long_list, (const unsigned char *)"\x91\x01", 2);
    bad_expect(ITEM, "path", bad_write("list.msgpack", &long_list), NULL, 3,
               "the path of a key has more than 4096 bytes");
}

/* {"a": {KEY: true, "shape": {...}, "chunks": {...}}}; a piece has one float, or is of int8. */
#define CHUNKED(shape, chunks)                                     \
    "\x81\xa1"                                                     \
    "a\x83\xb9__msgpack_chunked_array__\xc3\xa5shape" shape "\xa6" \
    "chunks" chunks
#define PIECE(key, bytes)                     \
    "\xa1" key "\xc7\x11\x01\x93\x91\x01\xa7" \
    "float32\xc4\x04" bytes
#define BYTE_PIECE(key)                       \
    "\xa1" key "\xc7\x0b\x01\x93\x91\x01\xa4" \
    "int8\xc4\x01x"

TEST(bug_20261127_arrays_in_pieces)
{
    static const char good[] = CHUNKED("\x81\xa1"
                                       "0\x02",
                                       "\x82" PIECE("1", "\0\0\0\x40") PIECE("0", "\0\0\x80\x3f"));
    blob b = {0};
    trace_error e;
    double v[3];
    size_t got;
    blob_add(&b, good, sizeof good - 1);
    trace *t = trace_open(bad_write("chunks.msgpack", &b), NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert(trace_count(t) == 1 && strcmp(trace_at(t, 0)->name, "a") == 0 && !trace_metadata_key(t, 0));
    ck_assert(trace_select(t, 0, &e) == 0 && trace_read(t, v, 3, &got, &e) == 0 && got == 2 && v[0] == 1 && v[1] == 2);
    trace_close(t);
#define BAD(text, fragment) refused("bad.msgpack", text, sizeof text - 1, "array 'a' in pieces: " fragment)
    BAD(CHUNKED("\x81\xa1"
                "0\x03",
                "\x82" PIECE("0", "1234") PIECE("1", "1234")),
        "they do not have the elements");
    BAD(CHUNKED("\x81\xa1"
                "0\x02",
                "\x82" PIECE("0", "1234") PIECE("2", "1234")),
        "its pieces are not numbered");
    BAD(CHUNKED("\x81\xa1"
                "0\x02",
                "\x82" PIECE("0", "1234") PIECE("0", "1234")),
        "its pieces are not numbered");
    BAD(CHUNKED("\x81\xa1"
                "0\x02",
                "\x82" PIECE("0", "1234") BYTE_PIECE("1")),
        "its pieces are of different dtypes");
    BAD(CHUNKED("\x81\xa1"
                "1\x02",
                "\x81" PIECE("0", "1234")),
        "a side of its shape is missing");
    BAD(CHUNKED("\x82\xa1"
                "0\x01\xa1"
                "0\x01",
                "\x81" PIECE("0", "1234")),
        "a side of its shape is not");
    BAD(CHUNKED("\x81\xa1"
                "0\xff",
                "\x81" PIECE("0", "1234")),
        "a side of its shape is not");
    BAD(CHUNKED("\x80", "\x80"), "there is none");
    BAD(CHUNKED("\x82\xa1"
                "0\xcf\x80\0\0\0\0\0\0\0\xa1"
                "1\x02",
                "\x81" PIECE("0", "1234")),
        "they do not have the elements");
#undef BAD
}

/* ir_version, then a graph with one initialiser of these fields. */
#define MODEL(n, m, fields) "\x08\x0a\x3a" n "\x2a" m fields

TEST(bad_onnx)
{
#define BAD(text, fragment) refused("bad.onnx", text, sizeof text - 1, fragment)
    BAD(MODEL("\x20", "\x0a",
              "\x08\x02\x10\x01\x4a\x04"
              "1234"),
        "ends past its message");
    BAD(MODEL("\x0c", "\x0a",
              "\x08\x02\x10\x01\x4a\x04"
              "1234"),
        "has 4 bytes, and not the 8 of its shape");
    BAD(MODEL("\x0c", "\x0a",
              "\x08\x01\x10\x01\x4b\x04"
              "1234"),
        "wire type 3");
    BAD(MODEL("\x12", "\x10",
              "\x08\x01\x10\x01\x4a\x04"
              "1234\x4a\x04"
              "1234"),
        "raw data in two pieces");
    BAD(MODEL("\x15", "\x13",
              "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x01\x4a\x04"
              "1234"),
        "a side of 18446744073709551615");
    BAD(MODEL("\x1e", "\x1c",
              "\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x10\x01\x4a\x04"
              "1234"),
        "is too large");
    BAD("\x08\x0a\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "more than ten bytes");
    BAD(MODEL("\x0c", "\x0a",
              "\x08\x01\x10\x01\x4a\x04"
              "1234"),
        "the model has no opset at its end: the file is cut off");
    BAD(MODEL("\x18", "\x0a",
              "\x08\x01\x10\x01\x4a\x04"
              "1234") "\x2a\x0a\x08\x01\x10\x01\x4a\x04"
                      "1234\x42\x00",
        "two tensors have the name ''");
#undef BAD
    blob ranks = {0};
    blob_add(&ranks, (const unsigned char *)"\x08\x0a\x3a\x4a\x2a\x48\x0a\x46", 8);
    blob_fill(&ranks, 1, 70);
    bad_expect(ITEM, "sides", bad_write("sides.onnx", &ranks), NULL, 3, "more than 64 of them");
}

/* Messages made by hand. */

static void put_varint(blob *b, uint64_t u)
{
    for (; u > 127; u >>= 7)
        blob_int(b, (u & 127) | 128, 1);
    blob_int(b, u, 1);
}

static void put_field(blob *b, unsigned number, const void *bytes, size_t n)
{
    put_varint(b, number << 3 | 2);
    put_varint(b, n);
    blob_add(b, bytes, n);
}

static void put_text(blob *b, unsigned number, const char *text)
{
    put_field(b, number, text, strlen(text));
}

static void put_blob(blob *b, unsigned number, blob *content)
{
    put_field(b, number, content->data, content->n);
    blob_clear(content);
}

static void put_pair(blob *b, const char *key, const char *value)
{
    blob pair = {0};
    put_text(&pair, 1, key);
    put_text(&pair, 2, value);
    put_blob(b, 13, &pair);
}

/* Two floats called `name` in another file; what is NULL is not said. */
static blob external(const char *name, const char *location, const char *offset, const char *length)
{
    blob b = {0};
    blob_add(&b, (const unsigned char *)"\x08\x02\x10\x01\x70\x01", 6);
    put_text(&b, 8, name);
    if (location)
        put_pair(&b, "location", location);
    if (offset)
        put_pair(&b, "offset", offset);
    if (length)
        put_pair(&b, "length", length);
    put_pair(&b, "checksum", "0123456789012345678901234567890123456789");
    return b;
}

static const char *write_model(const char *name, blob *graph)
{
    blob model = {0};
    blob_add(&model, (const unsigned char *)"\x08\x0a", 2);
    put_blob(&model, 7, graph);
    blob_add(&model, (const unsigned char *)"\x42\x02\x10\x14", 4);
    return bad_write(name, &model);
}

/* What a file of 16 bytes beside the model makes of a tensor. */
static const struct {
    const char *location, *offset, *length, *refused, *unread;
} outside[] = {
    {"data.bin", NULL, NULL, NULL, NULL},
    {"./data.bin", "4", "8", NULL, NULL},
    {"data.bin", "8", NULL, NULL, NULL},
    {"data.bin", "9", NULL, "needs 8 bytes from 9 on of 'data.bin', which has 16", NULL},
    {"data.bin", "9223372036854775807", NULL, "is not an offset or a length", NULL},
    {"data.bin", "-1", NULL, "'-1' is not an offset or a length", NULL},
    {"data.bin", "0", "4", "has 4 bytes in 'data.bin', and not the 8 of its shape", NULL},
    {"data.bin/x", NULL, NULL, NULL, "is not there"},
    {"nothing.bin", NULL, NULL, NULL, "its data are in 'nothing.bin', which is not there"},
    {"/etc/passwd", NULL, NULL, "which is not below the folder of the model", NULL},
    {"../data.bin", NULL, NULL, "which is not below the folder of the model", NULL},
    {"a/../data.bin", NULL, NULL, "which is not below the folder of the model", NULL},
    {"a/..", NULL, NULL, "which is not below the folder of the model", NULL},
    {"", NULL, NULL, "which is not below the folder of the model", NULL},
    {NULL, NULL, NULL, "does not say which file", NULL},
    {".", NULL, NULL, "tensor 'w': its data are in '.', which is a directory", NULL},
};

TEST(bug_20261127_onnx_data_beside_the_model)
{
    blob data = {0};
    trace_error e;
    for (int i = 0; i < 4; i++)
        blob_int(&data, 0x3f800000u + (unsigned)i * 0x800000u, 4); /* 1, 2, 4, 8 */
    bad_write("data.bin", &data);
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        blob graph = {0}, w = external("w", outside[i].location, outside[i].offset, outside[i].length);
        put_blob(&graph, 5, &w);
        const char *path = write_model("outside.onnx", &graph);
        if (outside[i].refused) {
            bad_expect(ITEM, "outside", path, NULL, 3, outside[i].refused);
            continue;
        }
        trace *t = trace_open(path, NULL, &e);
        ck_assert_msg(t != NULL, "%zu: %s", i, e.text);
        ck_assert_uint_eq(trace_count(t), 1);
        const char *note = trace_unread_note(t);
        ck_assert(outside[i].unread ? note && strstr(note, outside[i].unread) : !note);
        double v[3] = {0};
        size_t got = 0;
        const int bad = trace_select(t, 0, &e) || trace_read(t, v, 3, &got, &e);
        const double first = outside[i].offset && *outside[i].offset == '8' ? 4 : outside[i].offset ? 2 : 1;
        ck_assert_msg(bad == (outside[i].unread != NULL) && (bad || (got == 2 && v[0] == first)), "%zu: %g", i, v[0]);
        trace_copy copy[TRACE_COPIES];
        ck_assert_uint_eq(trace_copies(t, 0, copy), !bad);
        trace_close(t);
    }
}

/* The same bytes again and again: a model of a few bytes is not to say more than --max-ratio times its files. */
TEST(onnx_shows_no_more_than_the_ratio)
{
    enum { BIG = 65 << 20 };
    blob graph = {0};
    char side[16] = "\x08\x00\x10\x01\x70\x01";
    trace_error e;
    for (int i = 0; i < 3; i++) {
        blob w = {0};
        char name[2] = {(char)('a' + i), 0};
        blob_add(&w, (const unsigned char *)"\x08", 1);
        put_varint(&w, BIG / 4);
        blob_add(&w, (const unsigned char *)side + 2, 4);
        put_text(&w, 8, name);
        put_pair(&w, "location", "sparse.bin");
        put_blob(&graph, 5, &w);
    }
    const char *path = write_model("shown.onnx", &graph);
    FILE *f = fopen(bad_path("sparse.bin"), "w");
    ck_assert(f && ftruncate(fileno(f), BIG) == 0 && fclose(f) == 0);
    const trace_options twice = {.max_ratio = 2}, more = {.max_ratio = 3};
    ck_assert_ptr_null(trace_open(path, &twice, &e));
    ck_assert_msg(strstr(e.text, "show more than 2 times the bytes of the files"), "%s", e.text);
    trace *t = trace_open(path, &more, &e);
    ck_assert(t && trace_count(t) == 3);
    trace_close(t);
}

/* A file that takes the place of the one that was there. */
TEST(onnx_data_stay_the_same_file)
{
    blob data = {0}, graph = {0}, w = external("w", "place.bin", NULL, NULL);
    trace_error e;
    double v[2];
    size_t got;
    blob_fill(&data, 1, 8);
    const char *place = bad_write("place.bin", &data);
    char other[4400];
    snprintf(other, sizeof other, "%s.new", place);
    put_blob(&graph, 5, &w);
    trace *t = trace_open(write_model("place.onnx", &graph), NULL, &e);
    ck_assert(t && trace_select(t, 0, &e) == 0 && trace_read(t, v, 2, &got, &e) == 0 && got == 2);
    FILE *f = fopen(other, "w");
    ck_assert(f && fwrite("12345678", 8, 1, f) == 1 && fclose(f) == 0 && rename(other, place) == 0);
    ck_assert(trace_select(t, 0, &e) == 0 && trace_read(t, v, 2, &got, &e) != 0);
    ck_assert_msg(strstr(e.text, "place.bin: has changed since the model was opened"), "%s", e.text);
    trace_close(t);
}

/* Graphs in graphs, and their names. */
TEST(onnx_nesting_has_an_end)
{
    for (int depth = 60; depth <= 70; depth += 10) {
        blob graph = {0};
        for (int i = 0; i < depth; i++) {
            blob node = {0}, attribute = {0}, outer = {0};
            put_text(&attribute, 1, "body");
            put_blob(&attribute, 6, &graph);
            put_text(&node, 2, "n");
            put_blob(&node, 5, &attribute);
            put_blob(&outer, 1, &node);
            graph = outer;
        }
        const char *path = write_model("deep.onnx", &graph);
        if (depth > 64)
            bad_expect(ITEM, "depth", path, NULL, 3, "graphs are nested deeper than 64");
        else
            ck_assert(!bad_read(path, NULL).failed);
    }
    char name[3000];
    blob graph = {0};
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 2; i++) {
        blob node = {0}, attribute = {0}, outer = {0};
        put_text(&attribute, 1, "body");
        put_blob(&attribute, 6, &graph);
        put_text(&node, 2, name);
        put_blob(&node, 5, &attribute);
        put_blob(&outer, 1, &node);
        graph = outer;
    }
    bad_expect(ITEM, "path", write_model("long.onnx", &graph), NULL, 3, "the path of a graph has more than 4096 bytes");
}

/* Numbers written one by one, packed and not, of an unlucky size; an attribute of a Constant without a number. */
TEST(onnx_numbers_in_pieces)
{
    blob graph = {0}, w = {0}, node = {0}, attribute = {0};
    trace_error e;
    double v[4];
    size_t got;
    blob_add(&w, (const unsigned char *)"\x08\x03\x25\0\0\x80\x3f\x22\x08\0\0\0\x40\0\0\x40\x40\x10\x01", 19);
    put_text(&w, 8, "w");
    put_blob(&graph, 5, &w);
    put_text(&attribute, 1, "value_float");
    put_text(&node, 2, "zero");
    put_text(&node, 4, "Constant");
    put_blob(&node, 5, &attribute);
    put_blob(&graph, 1, &node);
    trace *t = trace_open(write_model("pieces.onnx", &graph), NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert(trace_select(t, 0, &e) == 0 && trace_read(t, v, 4, &got, &e) == 0 && got == 3 && v[0] == 1 && v[2] == 3);
    ck_assert(trace_select(t, 1, &e) == 0 && trace_read(t, v, 4, &got, &e) == 0 && got == 1 && v[0] == 0);
    ck_assert_str_eq(trace_at(t, 1)->name, "zero");
    trace_close(t);
#define BAD(text, fragment) refused("bad.onnx", text, sizeof text - 1, fragment)
    BAD(MODEL("\x0d", "\x0b", "\x08\x01\x10\x0a\x2a\x05\x01\x02\x03\x04\x80") "\x42\x00", "are needed");
    BAD(MODEL("\x0a", "\x08", "\x08\x02\x10\x0a\x2a\x02\x01\x80") "\x42\x00", "are needed");
    BAD(MODEL("\x0a", "\x08", "\x08\x03\x10\x0a\x2a\x02\x01\x02") "\x42\x00", "has 4 bytes, and not the 6");
#undef BAD
}

TEST(core_ml_is_no_onnx)
{
#define BAD(text, fragment) refused("model.mlmodel", text, sizeof text - 1, fragment)
    BAD("\x08\x04\x12\x07\x0a\x05\x0a\x01xxxxxx\xa2\x1f\x00", "but a Core ML model, which is not read");
    BAD("\x08\x09\x12\x80\x01\xa2\x01\x05\x0a\x01xxxxxx", "but a Core ML model, which is not read");
    BAD("\x08\x04\x12\x01x\xa2\x1f\x00\x00", "is a Core ML model, which is not read");
#undef BAD
    blob good = {0};
    blob_add(&good, (const unsigned char *)"\x08\x04\x12\x07pytorch\x42\x00", 13);
    ck_assert(!bad_read(bad_write("model.onnx", &good), NULL).failed);
}

static void damage(const char *file)
{
    char path[256];
    blob good = {0};
    snprintf(path, sizeof path, "tests/trace/recorded/%s", file);
    FILE *f = fopen(test_source_path(path), "rb");
    ck_assert(f != NULL);
    for (int c; (c = fgetc(f)) != EOF;)
        blob_int(&good, (uint64_t)c, 1);
    fclose(f);
    bad_damage_all(file, &good, NULL);
    blob_clear(&good);
}

TEST(any_damage_is_read_or_refused)
{
    damage("flax.msgpack");
    damage("chunks.msgpack");
    damage("model.onnx");
    damage("graphs.onnx");
}

TEST_MAIN_BY(bad_main, "walked");
