/* t-zipdir.c -- the structure of zip archives: items 34 to 36 of the list of bad inputs, and
 * names as far as the directory is concerned. */
#include "support/badzip.h"
#include "support/support.h"

#include <string.h>

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
    {35, "offset past the end", CENTRAL1, 42, 4, 0x7fffffff, "begins past the directory's end, at 2147483647"},
    {35, "offset in the data", CENTRAL1, 42, 4, 50, "no zip member where the directory has one"},
    {34, "same member twice", CENTRAL1, 42, 4, 0, "overlap"},
    {34, "longer than its place", CENTRAL0, 20, 4, 200, "two sizes"},
    {36, "local signature", LOCAL1, 0, 4, 0, "no zip member where the directory has one"},
    {36, "local method", LOCAL0, 8, 2, 8, "contradicts the directory"},
    {36, "local CRC", LOCAL0, 14, 4, 1, "offset 0: the zip archive is not consistent: the local header of 'a.npy'"},
    {36, "local packed size", LOCAL0, 18, 4, 1,
     "offset 0: the zip archive is not consistent: the local header of 'a.npy'"},
    {36, "local size", LOCAL0, 22, 4, 1, "offset 0: the zip archive is not consistent: the local header of 'a.npy'"},
    {36, "local name", LOCAL0, 30, 1, 'x', "offset 0: the zip archive is not consistent: the local header of 'a.npy'"},
    {36, "local name length", LOCAL0, 26, 2, 4,
     "offset 0: the zip archive is not consistent: the local header of 'a.npy'"},
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

CASE("zipdir", 60);

TEST(item_34_to_38_every_lie)
{
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        archive a = archive_of_two();
        const size_t part[] = {a.local[0], a.local[1], a.central[0], a.central[1], a.end};
        blob_set(&a.b, part[lies[i].part] + lies[i].at, lies[i].value, lies[i].bytes);
        bad_expect(lies[i].item, lies[i].what, bad_write("lie.npz", &a.b), NULL, 3, lies[i].fragment);
    }
}

TEST(item_34_overlapping_members)
{
    /* Fifield: the second member begins within the first one's data and shares its end */
    blob x = archive_array(1), inner = {0};
    archive a = {0};
    archive_member(&a, "b.npy", &x, 0);
    blob_add(&inner, a.b.data, a.b.n);
    blob_clear(&a.b);
    a = (archive){0};
    archive_member(&a, "a.npy", &inner, 0);
    a.members = 2;
    a.local[1] = 35;
    archive_central(&a, 0, "a.npy", &inner, 0);
    archive_central(&a, 1, "b.npy", &x, 0);
    archive_end(&a);
    bad_expect(34, "overlap", bad_write("overlap.npz", &a.b), NULL, 3, "overlaps what follows");
    blob_clear(&x);
    blob_clear(&inner);

    /* a member that reaches into the directory */
    a = archive_of_two();
    const size_t n = a.central[0] - a.local[1] - 35 + 46;
    blob_set(&a.b, a.local[1] + 18, n | (uint64_t)n << 32, 8);
    blob_set(&a.b, a.central[1] + 20, n | (uint64_t)n << 32, 8);
    bad_expect(34, "into the directory", bad_write("overlap.npz", &a.b), NULL, 3, "overlaps");
}

TEST(item_35_end_records)
{
    archive a = archive_of_two();
    blob_set(&a.b, a.end + 20, 5, 2);
    blob_text(&a.b, "hello");
    bad_expect(35, "comment", bad_write("end.npz", &a.b), NULL, 3, "followed by a comment");

    a = archive_of_two();
    blob_text(&a.b, "hello");
    bad_expect(35, "appended", bad_write("end.npz", &a.b), NULL, 3, "something was appended");

    /* a second end record that takes the first one for its comment, and the other way round */
    a = archive_of_two();
    blob_set(&a.b, a.end + 20, 22, 2);
    blob_add(&a.b, "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
    bad_expect(35, "two end records", bad_write("end.npz", &a.b), NULL, 3, "two end records");

    a = archive_of_two();
    blob b = {0};
    blob_text(&b, "PK\3\4 junk ");
    blob_add(&b, a.b.data, a.b.n);
    blob_clear(&a.b);
    bad_expect(35, "prefix", bad_write("end.npz", &b), NULL, 3, "does not end at its end record");

    /* a prefix with all offsets adjusted */
    archive p = {0};
    blob x = archive_array(1);
    blob_text(&p.b, "PK\3\4 junk ");
    archive_member(&p, "a.npy", &x, 0);
    archive_central(&p, 0, "a.npy", &x, 0);
    archive_end(&p);
    blob_clear(&x);
    bad_expect(35, "prefix", bad_write("end.npz", &p.b), NULL, 3, "10 bytes before the first zip member");

    blob_text(&b, "PK\5\6");
    bad_expect(35, "4 bytes", bad_write("end.npz", &b), NULL, 3, "the file is truncated");
}

TEST(item_35_end_records_in_the_data)
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
        archive_member(&a, "a.npy", &x, 0);
        archive_central(&a, 0, "a.npy", &x, 0);
        archive_end(&a);
        const char *path = bad_write("inside.npz", &a.b);
        const outcome o = bad_read(path, NULL);
        ck_assert_msg(!o.failed || o.error.exit == 3, "%s", o.error.text);
        ck_assert(o.failed || o.elements == 25);
        bad_within_limits("item 35, end records in the data", o.failed ? bad_read_fails : bad_read_ok, path, 16);
        blob_clear(&payload);
        blob_clear(&x);
    }
}

TEST(item_35_zip64)
{
    static const struct {
        uint64_t count, size, offset, place;
        const char *fragment;
    } rows[] = {
        {3, 0, 0, 0, "too small for 3 members"},
        {(uint64_t)1 << 60, 0, 0, 0, "more than 500000"},
        {2, 1, 0, 0, "does not end at its end record"},
        {2, 0, 1, 0, "does not end at its end record"},
        {2, (uint64_t)0 - 100, 100, 0, "too small for 2 members"},
        {2, 0, (uint64_t)1 << 63, 0, "does not end at its end record"},
        {2, (uint64_t)1 << 63, 0, 0, "above the cap"},
        {2, 0, 0, 1, "not in front of its locator"},
        {2, 0, 0, (uint64_t)0 - 1, "zip64 end record is not valid"},
        {2, 0, 0, (uint64_t)1 << 63, "not in front of its locator"},
    };
    archive a = archive_zip64(2, 0, 0, 0);
    const outcome o = bad_read(bad_write("zip64.npz", &a.b), NULL);
    ck_assert_msg(!o.failed && o.elements == 6, "%s", o.error.text);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        a = archive_zip64(rows[i].count, rows[i].size, rows[i].offset, rows[i].place);
        bad_expect(35, "zip64", bad_write("zip64.npz", &a.b), NULL, 3, rows[i].fragment);
    }
    a = archive_zip64(2, 0, 0, 0);
    blob_set(&a.b, a.end + 8, 0x00030003, 4);
    bad_expect(35, "zip64 count", bad_write("zip64.npz", &a.b), NULL, 3, "contradicts");
}

/* Data that look like end records must not become any: what libzip makes of them is compared
 * with what zipdir.c read. */

TEST(item_36_streamed_members_work)
{
    static const char *const names[] = {"a.npy", "b.npy"};
    archive a = archive_of(2, names, 1);
    const outcome o = bad_read(bad_write("streamed.npz", &a.b), NULL);
    ck_assert_msg(!o.failed, "%s", o.error.text);
    ck_assert(o.elements == 6 && o.first[0] == 1 && o.first[3] == 2);
}

TEST_MAIN_BY(bad_main, "zipdir");
