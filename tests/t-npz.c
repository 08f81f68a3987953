/* t-npz.c -- the npz reader: items 34 to 38 of the list of bad inputs, and what must work. */
#include "badfile.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

#define DICT(descr, shape) "{'descr': " descr ", 'fortran_order': False, 'shape': " shape ", }"

/* A zip file with its parts' places, to lie in any field. */
typedef struct archive {
    blob b;
    size_t local[4], central[4], end;
    size_t members;
} archive;

/* crc and sizes 0 and bit 3 in the local header, as for a stream, if `streamed` */
static void add_member(archive *a, const char *name, const blob *data, int streamed)
{
    a->local[a->members++] = a->b.n;
    blob_text(&a->b, "PK\3\4");
    blob_int(&a->b, 20, 2);
    blob_int(&a->b, streamed ? 8 : 0, 2);
    blob_int(&a->b, 0, 2 + 4); /* stored; time and date */
    blob_int(&a->b, streamed ? 0 : bad_crc32(data->data, data->n), 4);
    blob_int(&a->b, streamed ? 0 : data->n, 4);
    blob_int(&a->b, streamed ? 0 : data->n, 4);
    blob_int(&a->b, strlen(name), 2);
    blob_int(&a->b, 0, 2);
    blob_add(&a->b, name, strlen(name));
    blob_add(&a->b, data->data, data->n);
    if (streamed) {
        blob_text(&a->b, "PK\7\10");
        blob_int(&a->b, bad_crc32(data->data, data->n), 4);
        blob_int(&a->b, data->n, 4);
        blob_int(&a->b, data->n, 4);
    }
}

static void add_central(archive *a, size_t i, const char *name, const blob *data, int streamed)
{
    a->central[i] = a->b.n;
    blob_text(&a->b, "PK\1\2");
    blob_int(&a->b, 20, 2);
    blob_int(&a->b, 20, 2);
    blob_int(&a->b, streamed ? 8 : 0, 2);
    blob_int(&a->b, 0, 2 + 4);
    blob_int(&a->b, bad_crc32(data->data, data->n), 4);
    blob_int(&a->b, data->n, 4);
    blob_int(&a->b, data->n, 4);
    blob_int(&a->b, strlen(name), 2);
    blob_int(&a->b, 0, 8); /* extra, comment, disk, attributes */
    blob_int(&a->b, 0, 4);
    blob_int(&a->b, a->local[i], 4);
    blob_add(&a->b, name, strlen(name));
}

static void add_end(archive *a)
{
    const size_t central = a->members ? a->central[0] : a->b.n;
    a->end = a->b.n;
    blob_text(&a->b, "PK\5\6");
    blob_int(&a->b, 0, 4);
    blob_int(&a->b, a->members, 2);
    blob_int(&a->b, a->members, 2);
    blob_int(&a->b, a->end - central, 4);
    blob_int(&a->b, central, 4);
    blob_int(&a->b, 0, 2);
}

static blob array(float first)
{
    const float x[3] = {first, 2, 3};
    return bad_npy(1, DICT("'<f4'", "(3,)"), x, sizeof x);
}

static archive archive_of(size_t n, const char *const *names, int streamed)
{
    archive a = {0};
    blob data[4];
    for (size_t i = 0; i < n; i++) {
        data[i] = array((float)i + 1);
        add_member(&a, names[i], &data[i], streamed);
    }
    for (size_t i = 0; i < n; i++)
        add_central(&a, i, names[i], &data[i], streamed);
    add_end(&a);
    for (size_t i = 0; i < n; i++)
        blob_clear(&data[i]);
    return a;
}

static archive two(void)
{
    static const char *const names[] = {"a.npy", "b.npy"};
    return archive_of(2, names, 0);
}

enum { LOCAL0, LOCAL1, CENTRAL0, CENTRAL1, END };

/* One wrong field. Offsets are those of APPNOTE.TXT. */
static const struct {
    int item;
    const char *what;
    int part;
    size_t at;
    unsigned bytes;
    uint64_t value;
    const char *fragment;
} lies[] = {
    {35, "more entries counted", END, 8, 4, 0x00030003, "too small for 3 members"},
    {35, "fewer entries counted", END, 8, 4, 0x00010001, "has more entries than the 1"},
    {35, "no entries counted", END, 8, 4, 0, "has more entries than the 0"},
    {35, "65535 entries counted", END, 8, 4, 0xffffffff, "too small for 65535 members"},
    {35, "two counts", END, 8, 2, 1, "several parts"},
    {35, "disk number", END, 4, 2, 1, "several parts"},
    {35, "directory size", END, 12, 4, 10, "does not end at its end record"},
    {35, "directory size 4 GiB", END, 12, 4, 0xffffffff, "above the cap"},
    {35, "directory offset", END, 16, 4, 1, "does not end at its end record"},
    {35, "directory offset 4 GiB", END, 16, 4, 0xffffffff, "does not end at its end record"},
    {35, "comment length", END, 20, 2, 1, "no zip directory at the end"},
    {35, "end signature", END, 0, 4, 0, "no zip directory at the end"},
    {35, "central signature", CENTRAL1, 0, 4, 0, "no entry where one is expected"},
    {35, "central name length", CENTRAL1, 28, 2, 500, "ends within an entry"},
    {35, "central extra length", CENTRAL0, 30, 2, 7, "extra fields"},
    {35, "offset past the end", CENTRAL1, 42, 4, 0x7fffffff, "begins past the directory"},
    {35, "offset in the data", CENTRAL1, 42, 4, 50, "no zip member where the directory has one"},
    {34, "same member twice", CENTRAL1, 42, 4, 0, "overlap"},
    {34, "longer than its place", CENTRAL0, 20, 4, 200, "two sizes"},
    {36, "local signature", LOCAL1, 0, 4, 0, "no zip member where the directory has one"},
    {36, "local method", LOCAL0, 8, 2, 8, "contradicts the directory"},
    {36, "local CRC", LOCAL0, 14, 4, 1, "not consistent"},
    {36, "local packed size", LOCAL0, 18, 4, 1, "not consistent"},
    {36, "local size", LOCAL0, 22, 4, 1, "not consistent"},
    {36, "local name", LOCAL0, 30, 1, 'x', "not consistent"},
    {36, "local name length", LOCAL0, 26, 2, 4, "not consistent"},
    {36, "local name past the end", LOCAL1, 26, 2, 60000, "past the end of the file"},
    {36, "encrypted in the directory", CENTRAL0, 8, 2, 1, "encrypted"},
    {36, "encrypted in the local header", LOCAL0, 6, 2, 1, "contradicts the directory"},
    {36, "strong encryption", CENTRAL0, 8, 2, 1 << 6, "encrypted"},
    {36, "masked header", CENTRAL0, 8, 2, 1 << 13, "encrypted"},
    {36, "bzip2", CENTRAL0, 10, 2, 12, "zip compression method 12 is not supported"},
    {36, "zstd", CENTRAL0, 10, 2, 93, "zip compression method 93 is not supported"},
    {36, "method deflate", CENTRAL0, 10, 2, 8, "contradicts the directory"},
    {36, "two sizes", CENTRAL0, 24, 4, 100, "a stored zip member has two sizes"},
    {36, "zip64 without extra field", CENTRAL0, 24, 4, 0xffffffff, "extra fields"},
    {38, "NUL in the name", CENTRAL0, 47, 1, 0, "NUL byte"},
    {36, "disk of the member", CENTRAL0, 34, 2, 7, "several parts"},
};

START_TEST(item_34_to_38_every_lie)
{
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        archive a = two();
        const size_t part[] = {a.local[0], a.local[1], a.central[0], a.central[1], a.end};
        blob_set(&a.b, part[lies[i].part] + lies[i].at, lies[i].value, lies[i].bytes);
        bad_expect(lies[i].item, lies[i].what, bad_write("lie.npz", &a.b), NULL, 3,
                   lies[i].fragment);
    }
}
END_TEST

START_TEST(stored_members_work)
{
    archive a = two();
    trace_error e;
    trace *t = trace_open(bad_write("two.npz", &a.b), NULL, &e);
    double v[4];
    size_t got;
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_str_eq(trace_layout(t), "npz");
    ck_assert_uint_eq(trace_count(t), 2);
    ck_assert_str_eq(trace_at(t, 0)->name, "a");
    ck_assert_str_eq(trace_at(t, 1)->name, "b");
    ck_assert_str_eq(trace_at(t, 1)->dtype, "<f4");
    /* in any order, from the start each time, in pieces */
    for (int k = 0; k < 4; k++) {
        const size_t i = k & 1;
        ck_assert(trace_select(t, 1 - i, &e) == 0 && trace_read(t, v, 1, &got, &e) == 0);
        ck_assert(got == 1 && v[0] == 2 - (double)i);
        ck_assert(trace_read(t, v, 4, &got, &e) == 0 && got == 2 && v[0] == 2 && v[1] == 3);
        ck_assert(trace_read(t, v, 4, &got, &e) == 0 && got == 0);
    }
    trace_close(t);
}
END_TEST

START_TEST(item_36_streamed_members_work)
{
    static const char *const names[] = {"a.npy", "b.npy"};
    archive a = archive_of(2, names, 1);
    const outcome o = bad_read(bad_write("streamed.npz", &a.b), NULL);
    ck_assert_msg(!o.failed, "%s", o.error.text);
    ck_assert(o.elements == 6 && o.first[0] == 1 && o.first[3] == 2);
}
END_TEST

START_TEST(names_are_data_and_members_are_ordered_by_place)
{
    /* the directory lists them the other way round */
    static const char *const names[] = {"wgrad:l/0.w.npy", "dir/", "x\033[31m.npy"};
    archive a = {0};
    blob x = array(1), none = {0};
    trace_error e;
    add_member(&a, names[0], &x, 0);
    add_member(&a, names[1], &none, 0);
    add_member(&a, names[2], &x, 0);
    const size_t directory = a.b.n;
    add_central(&a, 2, names[2], &x, 0);
    add_central(&a, 1, names[1], &none, 0);
    add_central(&a, 0, names[0], &x, 0);
    a.central[0] = directory;
    add_end(&a);
    trace *t = trace_open(bad_write("order.npz", &a.b), NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_uint_eq(trace_count(t), 2);
    ck_assert_str_eq(trace_at(t, 0)->name, "wgrad:l/0.w");
    ck_assert_str_eq(trace_kind(trace_at(t, 0)->name), "wgrad");
    ck_assert_str_eq(trace_at(t, 1)->name, "x\033[31m");
    trace_close(t);
    blob_clear(&x);
}
END_TEST

static void expect_names(int item, const char *first, const char *second, const char *fragment)
{
    const char *const names[] = {first, second};
    archive a = archive_of(2, names, 0);
    bad_expect(item, second, bad_write("names.npz", &a.b), NULL, 3, fragment);
}

START_TEST(item_38_names)
{
    expect_names(38, "a.npy", "a.npy", "exist");
    expect_names(38, "a.npy", "/etc/a.npy", "absolute");
    expect_names(38, "a.npy", "\\a.npy", "absolute");
    expect_names(38, "a.npy", "../a.npy", "leads out of the archive");
    expect_names(38, "a.npy", "x/../../a.npy", "leads out of the archive");
    expect_names(38, "a.npy", "x/..", "leads out of the archive");
    expect_names(38, "a.npy", "..\\a.npy", "leads out of the archive");
    expect_names(38, "a.npy", "a.txt", "member 'a.txt': offset 175: not an npy member");
    expect_names(38, "a.npy", "npy", "not an npy member");
    expect_names(38, "a.npy", "x/", "not an npy member");
    expect_names(34, "a.npy", "lib 0.zip", "member 'lib 0.zip': offset 175: not an npy member");
    expect_names(40, "archive/data.pkl", "archive/data/0", "this is a PyTorch file");
    expect_names(38, "a.npy", "\033[31m.txt", "member '\\x1b[31m.txt'");
}
END_TEST

START_TEST(item_35_end_records)
{
    archive a = two();
    blob_set(&a.b, a.end + 20, 5, 2);
    blob_text(&a.b, "hello");
    bad_expect(35, "comment", bad_write("end.npz", &a.b), NULL, 3, "followed by a comment");

    a = two();
    blob_text(&a.b, "hello");
    bad_expect(35, "appended", bad_write("end.npz", &a.b), NULL, 3, "something was appended");

    /* a second end record that takes the first one for its comment, and the other way round */
    a = two();
    blob_set(&a.b, a.end + 20, 22, 2);
    blob_add(&a.b, "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
    bad_expect(35, "two end records", bad_write("end.npz", &a.b), NULL, 3, "two end records");

    a = two();
    blob b = {0};
    blob_text(&b, "PK\3\4 junk ");
    blob_add(&b, a.b.data, a.b.n);
    blob_clear(&a.b);
    bad_expect(35, "prefix", bad_write("end.npz", &b), NULL, 3, "does not end at its end record");

    /* a prefix with all offsets adjusted */
    archive p = {0};
    blob x = array(1);
    blob_text(&p.b, "PK\3\4 junk ");
    add_member(&p, "a.npy", &x, 0);
    add_central(&p, 0, "a.npy", &x, 0);
    add_end(&p);
    blob_clear(&x);
    bad_expect(35, "prefix", bad_write("end.npz", &p.b), NULL, 3, "10 bytes before the first zip member");

    blob_text(&b, "PK\5\6");
    bad_expect(35, "4 bytes", bad_write("end.npz", &b), NULL, 3, "the file is truncated");
}
END_TEST

/* The end of an archive with zip64 records in front of the end record. */
static archive zip64(uint64_t count, uint64_t size_lie, uint64_t offset_lie, uint64_t place_lie)
{
    archive a = two();
    const size_t central = a.central[0], record = a.end;
    a.b.n = a.end;
    blob_text(&a.b, "PK\6\6");
    blob_int(&a.b, 44, 8);
    blob_int(&a.b, 45, 2);
    blob_int(&a.b, 45, 2);
    blob_int(&a.b, 0, 8);
    blob_int(&a.b, count, 8);
    blob_int(&a.b, count, 8);
    blob_int(&a.b, record - central + size_lie, 8);
    blob_int(&a.b, central + offset_lie, 8);
    blob_text(&a.b, "PK\6\7");
    blob_int(&a.b, 0, 4);
    blob_int(&a.b, record + place_lie, 8);
    blob_int(&a.b, 1, 4);
    a.end = a.b.n;
    blob_text(&a.b, "PK\5\6");
    blob_int(&a.b, 0, 4);
    blob_int(&a.b, 0xffffffff, 4);
    blob_int(&a.b, 0xffffffff, 4);
    blob_int(&a.b, 0xffffffff, 4);
    blob_int(&a.b, 0, 2);
    return a;
}

START_TEST(item_35_zip64)
{
    static const struct {
        uint64_t count, size, offset, place;
        const char *fragment;
    } rows[] = {
        {3, 0, 0, 0, "too small for 3 members"},
        {(uint64_t)1 << 60, 0, 0, 0, "more than 65535"},
        {2, 1, 0, 0, "does not end at its end record"},
        {2, 0, 1, 0, "does not end at its end record"},
        {2, (uint64_t)0 - 100, 100, 0, "too small for 2 members"},
        {2, 0, (uint64_t)1 << 63, 0, "does not end at its end record"},
        {2, (uint64_t)1 << 63, 0, 0, "above the cap"},
        {2, 0, 0, 1, "not in front of its locator"},
        {2, 0, 0, (uint64_t)0 - 1, "zip64 end record is not valid"},
        {2, 0, 0, (uint64_t)1 << 63, "not in front of its locator"},
    };
    archive a = zip64(2, 0, 0, 0);
    const outcome o = bad_read(bad_write("zip64.npz", &a.b), NULL);
    ck_assert_msg(!o.failed && o.elements == 6, "%s", o.error.text);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        a = zip64(rows[i].count, rows[i].size, rows[i].offset, rows[i].place);
        bad_expect(35, "zip64", bad_write("zip64.npz", &a.b), NULL, 3, rows[i].fragment);
    }
    a = zip64(2, 0, 0, 0);
    blob_set(&a.b, a.end + 8, 0x00030003, 4);
    bad_expect(35, "zip64 count", bad_write("zip64.npz", &a.b), NULL, 3, "contradicts");
}
END_TEST

/* Data that look like end records must not become any: what libzip makes of them is compared
 * with what zipdir.c read. */
START_TEST(item_35_end_records_in_the_data)
{
    for (int lie = 0; lie < 4; lie++) {
        blob x = {0}, payload = {0};
        const uint64_t at = 30 + 5 + 128, count = lie & 1 ? (uint64_t)1 << 24 : 0;
        blob_text(&payload, "PK\6\6");
        blob_int(&payload, 44, 8);
        blob_int(&payload, 0x2d002d, 4);
        blob_int(&payload, 0, 8);
        blob_int(&payload, count, 8);
        blob_int(&payload, count, 8);
        blob_int(&payload, count * 46, 8);
        blob_int(&payload, lie & 2 ? 0 : at, 8);
        blob_text(&payload, "PK\6\7");
        blob_int(&payload, 0, 4);
        blob_int(&payload, at, 8);
        blob_int(&payload, 1, 4);
        blob_text(&payload, "PK\5\6");
        blob_int(&payload, 0, 4);
        blob_int(&payload, lie & 1 ? 0xffffffff : 0, 4);
        blob_int(&payload, lie & 1 ? 0xffffffff : 0, 4);
        blob_int(&payload, lie & 1 ? 0xffffffff : at, 4);
        blob_int(&payload, 0, 4);
        ck_assert_uint_eq(payload.n, 100);
        x = bad_npy(1, DICT("'<f4'", "(25,)"), payload.data, payload.n);
        archive a = {0};
        add_member(&a, "a.npy", &x, 0);
        add_central(&a, 0, "a.npy", &x, 0);
        add_end(&a);
        const char *path = bad_write("inside.npz", &a.b);
        const outcome o = bad_read(path, NULL);
        ck_assert_msg(!o.failed || o.error.exit == 3, "%s", o.error.text);
        ck_assert(o.failed || o.elements == 25);
        bad_within_limits("item 35, end records in the data", o.failed ? bad_read_fails : bad_read_ok,
                          path, 16);
        blob_clear(&payload);
        blob_clear(&x);
    }
}
END_TEST

START_TEST(item_37_crc)
{
    /* a flipped bit in the data: found by the read that completes the tensor */
    archive a = two();
    a.b.data[a.central[0] - 1] ^= 1;
    const char *path = bad_write("crc.npz", &a.b);
    bad_expect(37, "data", path, NULL, 3, "member 'b': wrong CRC");
    trace_error e;
    double v[3];
    size_t got;
    trace *t = trace_open(path, NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert(trace_select(t, 1, &e) == 0 && trace_read(t, v, 2, &got, &e) == 0 && got == 2);
    ck_assert(trace_read(t, v, 1, &got, &e) != 0 && got == 0 && e.exit == 3);
    ck_assert(trace_select(t, 0, &e) == 0 && trace_read(t, v, 3, &got, &e) == 0 && got == 3);
    trace_close(t);

    a = two(); /* both CRCs are wrong in the same way */
    blob_set(&a.b, a.central[0] + 16, 1, 4);
    blob_set(&a.b, a.local[0] + 14, 1, 4);
    bad_expect(37, "CRC", bad_write("crc.npz", &a.b), NULL, 3, "member 'a': wrong CRC");
}
END_TEST

START_TEST(item_34_overlapping_members)
{
    /* Fifield: the second member begins within the first one's data and shares its end */
    blob x = array(1), inner = {0};
    archive a = {0};
    add_member(&a, "b.npy", &x, 0);
    blob_add(&inner, a.b.data, a.b.n);
    blob_clear(&a.b);
    a = (archive){0};
    add_member(&a, "a.npy", &inner, 0);
    a.members = 2;
    a.local[1] = 35;
    add_central(&a, 0, "a.npy", &inner, 0);
    add_central(&a, 1, "b.npy", &x, 0);
    add_end(&a);
    bad_expect(34, "overlap", bad_write("overlap.npz", &a.b), NULL, 3, "overlaps what follows");
    blob_clear(&x);
    blob_clear(&inner);

    /* a member that reaches into the directory */
    a = two();
    const size_t n = a.central[0] - a.local[1] - 35 + 46;
    blob_set(&a.b, a.local[1] + 18, n | (uint64_t)n << 32, 8);
    blob_set(&a.b, a.central[1] + 20, n | (uint64_t)n << 32, 8);
    bad_expect(34, "into the directory", bad_write("overlap.npz", &a.b), NULL, 3, "overlaps");
}
END_TEST

/* An archive that libzip makes: one deflated member. */
static const char *deflated(const char *name, const blob *data)
{
    const char *path = bad_path(name);
    int code;
    unlink(path);
    zip_t *z = zip_open(path, ZIP_CREATE | ZIP_EXCL, &code);
    zip_source_t *s = z ? zip_source_buffer(z, data->data, data->n, 0) : NULL;
    ck_assert(s && zip_file_add(z, "x.npy", s, ZIP_FL_ENC_UTF_8) == 0);
    ck_assert(zip_set_file_compression(z, 0, ZIP_CM_DEFLATE, 9) == 0 && zip_close(z) == 0);
    return path;
}

static blob slurp(const char *path)
{
    blob b = {0};
    unsigned char buffer[65536];
    size_t n;
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    while ((n = fread(buffer, 1, sizeof buffer, f)) > 0)
        blob_add(&b, buffer, n);
    fclose(f);
    return b;
}

START_TEST(item_34_deflated_members)
{
    blob x = bad_npy(1, DICT("'<f4'", "(100000,)"), "", 0);
    for (uint32_t i = 0; i < 100000; i++)
        blob_int(&x, bits_of_f32((float)i), 4);
    const char *path = deflated("deflated.npz", &x);
    outcome o = bad_read(path, NULL);
    ck_assert_msg(!o.failed && o.elements == 100000 && o.first[7] == 7, "%s", o.error.text);

    /* both headers agree on a size that the data do not have */
    for (int k = -4; k <= 4; k += 8) {
        blob b = slurp(path);
        size_t central = 0;
        for (size_t i = 0; i + 4 < b.n; i++)
            if (memcmp(b.data + i, "PK\1\2", 4) == 0)
                central = i;
        const uint64_t size = (uint64_t)((int64_t)x.n + k);
        blob_set(&b, 22, size, 4);
        blob_set(&b, central + 24, size, 4);
        bad_expect(36, "size", bad_write("size.npz", &b), NULL, 3, "of data, there are");
    }
    blob b = slurp(path); /* damaged in the middle */
    memset(b.data + b.n / 2, 0x55, 100);
    o = bad_read(bad_write("size.npz", &b), NULL);
    ck_assert(o.failed && o.error.exit == 3);
    blob_clear(&x);
}
END_TEST

START_TEST(item_34_bomb)
{
    const uint32_t n = 17 << 20; /* 68 MiB of zeros in 68 KiB */
    blob x = bad_npy(1, DICT("'<f4'", "(17825792,)"), "", 0);
    blob_fill(&x, 0, 4 * (size_t)n);
    const char *path = deflated("bomb.npz", &x);
    bad_expect(34, "bomb", path, NULL, 3, "more than 1000 to 1");
    blob_clear(&x);
    bad_within_limits("item 34, bomb", bad_read_fails, path, 16);
}
END_TEST

START_TEST(item_27_headers_together)
{
    /* each member has a header of 60 kB: two of them are above the cap of 100 kB */
    const trace_options o = {.max_header = 100000};
    static const char *const names[] = {"a.npy", "b.npy"};
    archive a = {0};
    blob x = {0};
    blob_text(&x, "\x93NUMPY\1%c", 0);
    blob_int(&x, 60000, 2);
    blob_text(&x, DICT("'<f4'", "()"));
    blob_fill(&x, ' ', 60010 - 1 - x.n);
    blob_text(&x, "\n");
    blob_int(&x, 0, 4);
    for (size_t i = 0; i < 2; i++)
        add_member(&a, names[i], &x, 0);
    for (size_t i = 0; i < 2; i++)
        add_central(&a, i, names[i], &x, 0);
    add_end(&a);
    blob_clear(&x);
    const char *path = bad_write("headers.npz", &a.b);
    ck_assert(!bad_read(path, NULL).failed);
    bad_expect(27, "headers", path, &o, 3, "member 'b.npy': the headers of the members");
}
END_TEST

/* As many members as are allowed, each of them empty. */
START_TEST(item_34_many_members)
{
    enum { N = 65535 };
    archive a = {0};
    blob x = bad_npy(1, DICT("'<f4'", "(0,)"), "", 0);
    for (unsigned i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "%x.npy", i);
        a.members = 0;
        add_member(&a, name, &x, 0);
    }
    const size_t directory = a.b.n;
    size_t at = 0;
    for (unsigned i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "%x.npy", i);
        a.local[0] = at;
        add_central(&a, 0, name, &x, 0);
        at += 30 + strlen(name) + x.n;
    }
    a.central[0] = directory;
    a.members = N;
    add_end(&a);
    blob_clear(&x);
    const char *path = bad_write("many.npz", &a.b);
    bad_within_limits("item 34, 65535 members", bad_read_ok, path, 16);
}
END_TEST

START_TEST(no_members_and_errors_inside_members)
{
    archive a = {0};
    add_end(&a);
    const outcome o = bad_read(bad_write("none.npz", &a.b), NULL);
    ck_assert(!o.failed && o.tensors == 0);

    static const struct {
        const char *dict, *fragment;
    } rows[] = {
        {DICT("'|O'", "(1,)"), "member 'a.npy': offset 20: dtype '|O' holds Python objects"},
        {DICT("'<f4'", "(2,)"), "member 'a.npy': offset 128: the header promises 8 bytes"},
        {"[]", "member 'a.npy': offset 10: npy header is not valid"},
    };
    for (size_t i = 0; i < 3; i++) {
        blob x = bad_npy(1, rows[i].dict, "\0\0\0\0", 4);
        a = (archive){0};
        add_member(&a, "a.npy", &x, 0);
        add_central(&a, 0, "a.npy", &x, 0);
        add_end(&a);
        blob_clear(&x);
        bad_expect(30, "member", bad_write("inside.npz", &a.b), NULL, 3, rows[i].fragment);
    }
    blob x = {0};
    blob_text(&x, "not npy at all");
    a = (archive){0};
    add_member(&a, "a.npy", &x, 0);
    add_central(&a, 0, "a.npy", &x, 0);
    add_end(&a);
    blob_clear(&x);
    bad_expect(26, "member", bad_write("inside.npz", &a.b), NULL, 3, "not an npy file: wrong magic");
}
END_TEST

START_TEST(any_damage_is_read_or_refused)
{
    archive a = two();
    bad_damage_all("damage.npz", &a.b, NULL);
    blob_clear(&a.b);
    a = zip64(2, 0, 0, 0);
    bad_damage_all("damage.npz", &a.b, NULL);
    blob_clear(&a.b);
    blob x = array(1);
    blob b = slurp(deflated("small.npz", &x));
    bad_damage_all("damage.npz", &b, NULL);
    blob_clear(&x);
    blob_clear(&b);
}
END_TEST

int main(void)
{
    TCase *c = test_case("npz", 60);
    tcase_add_test(c, stored_members_work);
    tcase_add_test(c, names_are_data_and_members_are_ordered_by_place);
    tcase_add_test(c, item_27_headers_together);
    tcase_add_test(c, item_34_to_38_every_lie);
    tcase_add_test(c, item_34_bomb);
    tcase_add_test(c, item_34_deflated_members);
    tcase_add_test(c, item_34_many_members);
    tcase_add_test(c, item_34_overlapping_members);
    tcase_add_test(c, item_35_end_records);
    tcase_add_test(c, item_35_end_records_in_the_data);
    tcase_add_test(c, item_35_zip64);
    tcase_add_test(c, item_36_streamed_members_work);
    tcase_add_test(c, item_37_crc);
    tcase_add_test(c, item_38_names);
    tcase_add_test(c, no_members_and_errors_inside_members);
    tcase_add_test(c, any_damage_is_read_or_refused);
    TCase *const cases[] = {c, NULL};
    return bad_main("npz", cases);
}
