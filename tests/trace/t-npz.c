/* t-npz.c -- npz archives through libzip: items 34 (bombs), 37 and 38 of the list of bad
 * inputs, and what must work. The structure of zip archives is the matter of t-zipdir.c. */
#include "support/badzip.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

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

CASE("npz", 60);

TEST(stored_members_work)
{
    archive a = archive_of_two();
    trace_error e;
    trace *t = trace_open(bad_write("two.npz", &a.b), NULL, &e);
    double v[4];
    size_t got;
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_str_eq(trace_layout(t), "npz");
    ck_assert_uint_eq(trace_count(t), 2);
    ck_assert_str_eq(trace_at(t, 0)->name, "a");
    ck_assert_str_eq(trace_at(t, 1)->name, "b");
    ck_assert_str_eq(trace_at(t, 1)->dtype, BAD_FLOAT);
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

/* a.npy, and b.npy with that header; the last byte of its data is not as its CRC has it: `flip`. */
static const char *with_header(const char *dict, unsigned char flip)
{
    static const double three[3] = {1, 2, 3};
    archive a = {0};
    blob good = archive_array(1), other = bad_npy(1, dict, three, sizeof three);
    archive_member(&a, "a.npy", &good, 0);
    archive_member(&a, "b.npy", &other, 0);
    const size_t directory = a.b.n;
    archive_central(&a, 0, "a.npy", &good, 0);
    archive_central(&a, 1, "b.npy", &other, 0);
    a.central[0] = directory;
    archive_end(&a);
    a.b.data[directory - 1] ^= flip;
    blob_clear(&good);
    blob_clear(&other);
    return bad_write("header.npz", &a.b);
}

/* A member is left out as its header says, where that is as it was written. */
TEST(bug_20261127_a_header_that_is_damaged_is_not_judged)
{
    static const char *const dicts[] = {"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
                                        "{'descr': '<U2', 'fortran_order': False, 'shape': (3,), }",
                                        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }"};
    for (size_t i = 0; i < sizeof dicts / sizeof *dicts; i++) {
        trace_error e;
        trace *t = trace_open(with_header(dicts[i], 0), NULL, &e);
        ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
        trace_close(t);
        bad_expect(37, dicts[i], with_header(dicts[i], 1), NULL, 3, "member 'b.npy': wrong CRC");
    }
}

TEST(names_are_data_and_members_are_ordered_by_place)
{
    /* the directory lists them the other way round */
    static const char *const names[] = {"wgrad:l/0.w.npy", "dir/", "x\033[31m.npy"};
    archive a = {0};
    blob x = archive_array(1), none = {0};
    trace_error e;
    archive_member(&a, names[0], &x, 0);
    archive_member(&a, names[1], &none, 0);
    archive_member(&a, names[2], &x, 0);
    const size_t directory = a.b.n;
    archive_central(&a, 2, names[2], &x, 0);
    archive_central(&a, 1, names[1], &none, 0);
    archive_central(&a, 0, names[0], &x, 0);
    a.central[0] = directory;
    archive_end(&a);
    trace *t = trace_open(bad_write("order.npz", &a.b), NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_uint_eq(trace_count(t), 2);
    ck_assert_str_eq(trace_at(t, 0)->name, "wgrad:l/0.w");
    ck_assert_str_eq(trace_kind(trace_at(t, 0)->name), "wgrad");
    ck_assert_str_eq(trace_at(t, 1)->name, "x\033[31m");
    trace_close(t);
    blob_clear(&x);
}

static void expect_names(int item, const char *first, const char *second, const char *fragment)
{
    const char *const names[] = {first, second};
    archive a = archive_of(2, names, 0);
    bad_expect(item, second, bad_write("names.npz", &a.b), NULL, 3, fragment);
}

TEST(item_38_names)
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
    expect_names(40, "archive/data.pkl", "archive/data/0", "the pickle");
    expect_names(38, "a.npy", "\033[31m.txt", "member '\\x1b[31m.txt'");
}

TEST(item_37_crc)
{
    /* a flipped bit in the data: found by the read that completes the tensor */
    archive a = archive_of_two();
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

    a = archive_of_two(); /* both CRCs are wrong in the same way */
    blob_set(&a.b, a.central[0] + 16, 1, 4);
    blob_set(&a.b, a.local[0] + 14, 1, 4);
    bad_expect(37, "CRC", bad_write("crc.npz", &a.b), NULL, 3, "member 'a': wrong CRC");
}

TEST(item_34_deflated_members)
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

TEST(item_34_bomb)
{
    const uint32_t n = 17 << 20; /* 68 MiB of zeros in 68 KiB */
    blob x = bad_npy(1, DICT("'<f4'", "(17825792,)"), "", 0);
    blob_fill(&x, 0, 4 * (size_t)n);
    const char *path = deflated("bomb.npz", &x);
    bad_expect(34, "bomb", path, NULL, 3, "more than 1000 to 1");
    blob_clear(&x);
    bad_within_limits("item 34, bomb", bad_read_fails, path, 16);
}

TEST(item_27_headers_together)
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
        archive_member(&a, names[i], &x, 0);
    for (size_t i = 0; i < 2; i++)
        archive_central(&a, i, names[i], &x, 0);
    archive_end(&a);
    blob_clear(&x);
    const char *path = bad_write("headers.npz", &a.b);
    ck_assert(!bad_read(path, NULL).failed);
    bad_expect(27, "headers", path, &o, 3, "member 'b.npy': the headers of the members");
}

/* As many members as are allowed, each of them empty. */

TEST(item_34_many_members)
{
    if (!test_in_part(1, 1))
        return;
    enum { N = 65535 };
    archive a = {0};
    blob x = bad_npy(1, DICT("'<f4'", "(0,)"), "", 0);
    for (unsigned i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "%x.npy", i);
        a.members = 0;
        archive_member(&a, name, &x, 0);
    }
    const size_t directory = a.b.n;
    size_t at = 0;
    for (unsigned i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "%x.npy", i);
        a.local[0] = at;
        archive_central(&a, 0, name, &x, 0);
        at += 30 + strlen(name) + x.n;
    }
    a.central[0] = directory;
    a.members = N;
    archive_end(&a);
    blob_clear(&x);
    const char *path = bad_write("many.npz", &a.b);
    bad_within_limits("item 34, 65535 members", bad_read_ok, path, 16);
}

TEST(bug_20261123_members_without_numbers_are_named)
{
    static const char *const dicts[] = {DICT("'<U5'", "(1,)"), DICT("'<f4'", "(1,)"), DICT("'|O'", "(1,)"),
                                        DICT("'<M8[D]'", "(1,)"), DICT("[('a', '<f4')]", "(1,)")};
    static const char *const names[] = {"s.npy", "w.npy", "o.npy", "d.npy", "r.npy"};
    static const size_t bytes[] = {20, 4, 8, 8, 4};
    archive a = {0};
    trace_error e;
    blob x[5];
    for (int i = 0; i < 5; i++) {
        x[i] = bad_npy(1, dicts[i], "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", bytes[i]);
        archive_member(&a, names[i], &x[i], 0);
    }
    for (int i = 0; i < 5; i++)
        archive_central(&a, (size_t)i, names[i], &x[i], 0);
    archive_end(&a);
    trace *t = trace_open(bad_write("mixed.npz", &a.b), NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_uint_eq(trace_count(t), 5);
    for (size_t i = 0; i < 5; i++) { /* those that hold texts, objects, dates and records are listed, and not read */
        const trace_tensor *m = trace_at(t, i);
        ck_assert_msg(strcmp(m->name, "w") == 0 ? m->format && !m->unread : !m->format && m->unread, "%s", m->name);
        ck_assert_int_eq(m->unseen, strcmp(m->name, "o") == 0 || strcmp(m->name, "r") == 0);
    }
    const char *what = trace_metadata(t, TRACE_NOT_READ);
    ck_assert(what && strstr(what, "4 members: s.npy (dtype '<U5' holds strings), o.npy") &&
              strstr(what, "d.npy (dtype '<M8[D]'") && strstr(what, "r.npy (a structured dtype)"));
    trace_close(t);
    for (int i = 0; i < 5; i++)
        blob_clear(&x[i]);
}

TEST(no_members_and_errors_inside_members)
{
    archive a = {0};
    archive_end(&a);
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
        archive_member(&a, "a.npy", &x, 0);
        archive_central(&a, 0, "a.npy", &x, 0);
        archive_end(&a);
        blob_clear(&x);
        bad_expect(30, "member", bad_write("inside.npz", &a.b), NULL, 3, rows[i].fragment);
    }
    blob x = {0};
    blob_text(&x, "not npy at all");
    a = (archive){0};
    archive_member(&a, "a.npy", &x, 0);
    archive_central(&a, 0, "a.npy", &x, 0);
    archive_end(&a);
    blob_clear(&x);
    bad_expect(26, "member", bad_write("inside.npz", &a.b), NULL, 3, "not an npy file: wrong magic");
}

TEST(any_damage_is_read_or_refused)
{
    archive a = archive_of_two();
    bad_damage_all("damage.npz", &a.b, NULL);
    blob_clear(&a.b);
    a = archive_zip64(2, 0, 0, 0);
    bad_damage_all("damage.npz", &a.b, NULL);
    blob_clear(&a.b);
    blob x = archive_array(1);
    blob b = slurp(deflated("small.npz", &x));
    bad_damage_all("damage.npz", &b, NULL);
    blob_clear(&x);
    blob_clear(&b);
}

TEST_MAIN_BY(bad_main, "npz");
