/* t-walked.c -- layouts whose directory is all over the file, Flax's MessagePack and ONNX: bad files made by hand, and any
 * damage. What good ones hold is in recorded/ (t-recorded). */
#include "sim/trace/impl.h"
#include "support/badfile.h"
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

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

START_TEST(bad_msgpack)
{
#define BAD(text, fragment) refused("bad.msgpack", text, sizeof text - 1, fragment)
    BAD(ARRAY("\x20", "\x93\x91\x02\xa7"
                      "float32\xc4\x08"
                      "12345678"),
        "ends past the file");
    BAD(ARRAY("\x14", "\x93\x91\x03\xa7"
                      "float32\xc4\x08"
                      "12345678"),
        "which its shape does not ask for");
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
        "does not ask for");
    BAD("\x81\xa1"
        "a\x82\xa1",
        "are needed");
    BAD("\x81\xa1"
        "a\xc1.....",
        "byte 0xc1 begins nothing");
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
END_TEST

/* ir_version, then a graph with one initialiser of these fields. */
#define MODEL(n, m, fields) "\x08\x0a\x3a" n "\x2a" m fields

START_TEST(bad_onnx)
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
        "data in two pieces");
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
        "no opset, which stands at its end");
    BAD(MODEL("\x18", "\x0a",
              "\x08\x01\x10\x01\x4a\x04"
              "1234") "\x2a\x0a\x08\x01\x10\x01\x4a\x04"
                      "1234\x42\x00",
        "two initialisers have the name ''");
#undef BAD
    blob ranks = {0};
    blob_add(&ranks, (const unsigned char *)"\x08\x0a\x3a\x4a\x2a\x48\x0a\x46", 8);
    blob_fill(&ranks, 1, 70);
    bad_expect(ITEM, "sides", bad_write("sides.onnx", &ranks), NULL, 3, "more than 64 of them");
}
END_TEST

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

START_TEST(any_damage_is_read_or_refused)
{
    damage("flax.msgpack");
    damage("model.onnx");
}
END_TEST

int main(void)
{
    TCase *all = test_case("walked", 60);
    tcase_add_test(all, bad_msgpack);
    tcase_add_test(all, bad_onnx);
    tcase_add_test(all, any_damage_is_read_or_refused);
    TCase *const cases[] = {all, NULL};
    return bad_main("walked", cases);
}
