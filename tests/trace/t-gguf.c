/* t-gguf.c -- GGUF files made byte by byte: item 52 of the list of bad inputs, what llama.cpp's reader was attacked with
 * (CVE-2024-21802, CVE-2024-23605, CVE-2026-33298 and their neighbours), and what must work. */
#include "support/badfile.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { F32 = 0, Q4_0 = 2, I8 = 24, BF16 = 30 };

static void string(blob *b, const char *s)
{
    blob_int(b, strlen(s), 8);
    blob_text(b, "%s", s);
}

static blob head(uint64_t tensors, uint64_t pairs)
{
    blob b = {0};
    blob_text(&b, "GGUF");
    blob_int(&b, 3, 4);
    blob_int(&b, tensors, 8);
    blob_int(&b, pairs, 8);
    return b;
}

static void info(blob *b, const char *name, uint32_t type, uint64_t n, uint64_t offset)
{
    string(b, name);
    blob_int(b, 1, 4);
    blob_int(b, n, 8);
    blob_int(b, type, 4);
    blob_int(b, offset, 8);
}

static void pad(blob *b, size_t alignment)
{
    while (b->n % alignment)
        blob_fill(b, 0, 1);
}

/* Two tensors of 3 and 2 numbers, and an alignment. */
static blob two(void)
{
    blob b = head(2, 1);
    string(&b, "general.alignment");
    blob_int(&b, 4, 4);
    blob_int(&b, 64, 4);
    info(&b, "a", F32, 3, 0);
    info(&b, "b", F32, 2, 64);
    pad(&b, 64);
    for (int i = 0; i < 16; i++)
        blob_int(&b, bits_of_f32(i < 3 ? (float)i + 1 : 0), 4);
    blob_int(&b, bits_of_f32(4), 4);
    blob_int(&b, bits_of_f32(5), 4);
    return b;
}

CASE("gguf", 60);

TEST(what_must_work)
{
    blob b = two();
    outcome o = bad_read(bad_write("two.gguf", &b), NULL);
    ck_assert_msg(!o.failed && o.tensors == 2 && o.elements == 5 && o.first[3] == 4, "%s", o.error.text);
    b = two(); /* padded at its end, too */
    pad(&b, 64);
    o = bad_read(bad_write("two.gguf", &b), NULL);
    ck_assert(!o.failed && o.elements == 5);
    b = head(0, 0); /* nothing in it */
    o = bad_read(bad_write("none.gguf", &b), NULL);
    ck_assert(!o.failed && o.tensors == 0);

    const trace_options e4m3 = {.as_int8 = mpsim_format_find("e4m3")};
    b = head(1, 0);
    info(&b, "codes", I8, 2, 0);
    pad(&b, 32);
    blob_int(&b, 0x38, 1);
    blob_int(&b, 0xb8, 1);
    o = bad_read(bad_write("codes.gguf", &b), &e4m3);
    ck_assert(!o.failed && o.elements == 2 && o.first[0] == 1 && o.first[1] == -1);
}

TEST(values_that_are_odd)
{
    trace_error e;
    blob b = head(0, 4);
    string(&b, "bytes");
    blob_int(&b, 8, 4);
    string(&b, "a\xff\n");
    string(&b, "none");
    blob_int(&b, 9, 4);
    blob_int(&b, 4, 4);
    blob_int(&b, 0, 8);
    string(&b, "nan");
    blob_int(&b, 6, 4);
    blob_int(&b, 0x7fc00000, 4);
    string(&b, "true");
    blob_int(&b, 7, 4);
    blob_int(&b, 2, 1);
    trace *t = trace_open(bad_write("odd.gguf", &b), NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_str_eq(trace_metadata(t, "bytes"), "a\\xff\\n");
    ck_assert_str_eq(trace_metadata(t, "none"), "[]");
    ck_assert_str_eq(trace_metadata(t, "nan"), "nan");
    ck_assert_str_eq(trace_metadata(t, "true"), "true");
    trace_close(t);
}

static void refused(blob *b, const char *fragment)
{
    bad_expect(52, fragment, bad_write("bad.gguf", b), NULL, 3, fragment);
}

TEST(item_52_counts)
{
    static const uint64_t counts[] = {UINT64_MAX, (uint64_t)1 << 63, 1000000};
    for (size_t i = 0; i < 3; i++) {
        blob b = head(counts[i], 0);
        refused(&b, " tensors, but the file has 24 bytes");
        b = head(0, counts[i]); /* told before a tensor is taken for a key */
        blob_fill(&b, 'x', 100);
        refused(&b, " keys, but the file has 124 bytes");
        b = head(0, 1); /* a key, a string, the elements of an array */
        blob_int(&b, counts[i], 8);
        blob_fill(&b, 'x', 30);
        refused(&b, "a key needs ");
        b = head(0, 1);
        string(&b, "k");
        blob_int(&b, 8, 4);
        blob_int(&b, counts[i], 8);
        refused(&b, "a value needs ");
        for (unsigned type = 0; type < 13; type++) {
            b = head(0, 1);
            string(&b, "k");
            blob_int(&b, 9, 4);
            blob_int(&b, type, 4);
            blob_int(&b, counts[i], 8);
            blob_fill(&b, 0, 7);
            refused(&b, type == 9   ? "arrays in an array"
                        : type == 8 ? "strings does not fit the 7 bytes left"
                                    : "needs ");
        }
    }
}

TEST(item_52_types_and_versions)
{
    static const uint32_t types[] = {13, 0xffffffff, 0x80000000};
    for (size_t i = 0; i < 3; i++) {
        blob b = head(0, 1);
        string(&b, "k");
        blob_int(&b, types[i], 4);
        refused(&b, "of key 'k' is not known");
        b = head(0, 1);
        string(&b, "k");
        blob_int(&b, 9, 4);
        blob_int(&b, types[i], 4);
        blob_int(&b, 1, 8);
        refused(&b, "of an array is not known");
        b = head(1, 0);
        info(&b, "a", types[i] == 13 ? 4 : types[i], 1, 0);
        refused(&b, "of tensor 'a' is not known");
    }
    static const uint32_t versions[] = {0, 1, 4, 0x01000000, 0x04000000, 0x00030000, 0x80000000};
    for (size_t i = 0; i < 7; i++) {
        blob b = head(0, 0);
        blob_set(&b, 4, versions[i], 4);
        refused(&b, "is not known");
    }
    static const uint32_t alignments[] = {0, 3, 48, 0xffffffff};
    for (size_t i = 0; i < 4; i++) {
        blob b = two();
        blob_set(&b, 24 + 8 + 17 + 4, alignments[i], 4);
        refused(&b, "not a power of two");
    }
    blob b = two(); /* an int32 */
    blob_set(&b, 24 + 8 + 17, 5, 4);
    refused(&b, "offset 49: general.alignment is of type int32, not uint32");
}

TEST(item_52_shapes_and_places)
{
    const size_t a = 24 + 8 + 17 + 8; /* the description of a: 8 + 1, 4, 8, 4, 8 */
    blob b = two();
    blob_set(&b, a + 9, 5, 4);
    refused(&b, "has 5 dimensions, more than 4");
    static const uint64_t sizes[] = {UINT64_MAX, (uint64_t)1 << 62, (uint64_t)1 << 57};
    for (size_t i = 0; i < 3; i++) {
        b = two();
        blob_set(&b, a + 13, sizes[i], 8);
        refused(&b, i < 2 ? "is too large" : "ends past the file's");
    }
    b = head(1, 0); /* 2^32 * 2^32 */
    string(&b, "a");
    blob_int(&b, 2, 4);
    blob_int(&b, (uint64_t)1 << 32, 8);
    blob_int(&b, (uint64_t)1 << 32, 8);
    blob_int(&b, F32, 4);
    blob_int(&b, 0, 8);
    refused(&b, "is too large");
    b = head(1, 0);
    info(&b, "a", Q4_0, 33, 0);
    refused(&b, "rows of 33 elements, which are not whole blocks of Q4_0");
    b = two();
    blob_set(&b, a + 25, UINT64_MAX, 8);
    refused(&b, "ends past the file's");
    b = two();
    blob_set(&b, a + 25, 4, 8);
    refused(&b, "begins at 4 of the data, not at 0");
    b = two(); /* the second: on the first one, behind a gap */
    blob_set(&b, a + 33 + 25, 0, 8);
    refused(&b, "of the data, not at");
    b = two();
    blob_set(&b, a + 33 + 25, 128, 8);
    blob_fill(&b, 0, 128);
    refused(&b, "begins at 128 of the data, not at 64");
    b = two();
    pad(&b, 64);
    blob_fill(&b, 0, 1);
    refused(&b, "57 bytes after the last tensor");
    b = head(2, 0);
    info(&b, "a", F32, 0, 0);
    info(&b, "a", F32, 0, 0);
    refused(&b, "two tensors have the name 'a'");
    b = head(0, 2);
    for (unsigned i = 0; i < 2; i++) {
        string(&b, "k");
        blob_int(&b, 0, 4);
        blob_int(&b, i, 1);
    }
    refused(&b, "key 'k' occurs twice");
    b = head(1, 0);
    info(&b, "a\xff", F32, 1, 0);
    refused(&b, "the name of a tensor is not UTF-8");
    b = two();
    b.data[a + 8] = 0;
    refused(&b, "the name of a tensor holds a NUL");
}

/* Many strings cost time in proportion to the file; many tensors and keys are bounded. */
TEST(item_52_many)
{
    blob b = head(0, 1);
    string(&b, "tokens");
    blob_int(&b, 9, 4);
    blob_int(&b, 8, 4);
    blob_int(&b, 4000000, 8);
    blob_fill(&b, 0, 32000000);
    bad_within_limits("item 52, 4,000,000 strings", bad_read_ok, bad_write("strings.gguf", &b), 16);
    b = head(0, 600000);
    for (int i = 0; i < 600000; i++) {
        blob_int(&b, 8, 8);
        blob_text(&b, "%08d", i);
        blob_int(&b, 0, 5);
    }
    bad_within_limits("item 52, 600,000 keys", bad_read_fails, bad_write("keys.gguf", &b), 16);
    b = head(400000, 0);
    for (int i = 0; i < 400000; i++) {
        char name[16];
        snprintf(name, sizeof name, "%08d", i);
        info(&b, name, F32, 0, 0);
    }
    pad(&b, 32);
    bad_within_limits("item 52, 400,000 tensors", bad_read_ok, bad_write("tensors.gguf", &b), 16);
    b = head(0, 1); /* a value longer than the cap on headers */
    string(&b, "k");
    blob_int(&b, 8, 4);
    blob_int(&b, 20 << 20, 8);
    blob_fill(&b, 'x', 20 << 20);
    const char *path = bad_write("long.gguf", &b);
    bad_expect(52, "long value", path, NULL, 3, "a value of 20971520 bytes is too long");
    ck_assert(!bad_read(path, &(trace_options){.max_header = 30 << 20}).failed);
}

TEST(any_damage_is_read_or_refused)
{
    blob b = two();
    bad_damage_all("damage.gguf", &b, NULL);
    blob_clear(&b);
}

TEST_MAIN_BY(bad_main, "gguf");
