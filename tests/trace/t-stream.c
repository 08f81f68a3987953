/* t-stream.c -- packed streams: gzip through zlib, zstd, xz, bzip2 and lz4 through libarchive. Packed here by zlib, and
 * by libarchive's writers; what is damaged, cut, followed by something, packed twice, or a bomb has one line. */
#include "config.h"
#include "support/badfile.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#ifdef HAVE_LIBARCHIVE
#include <archive.h>
#include <archive_entry.h>
#endif

enum { KINDS = 5, ELEMENTS = 50000 };
static const char *const kinds[KINDS] = {"gzip", "zstd", "xz", "bzip2", "lz4"};

static blob gzip(const blob *b)
{
    blob out = {0};
    unsigned char *p = malloc(b->n + b->n / 100 + 1000);
    z_stream z = {
        .next_in = b->data, .avail_in = (uInt)b->n, .next_out = p, .avail_out = (uInt)(b->n + b->n / 100 + 1000)};
    ck_assert(p && deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    ck_assert(deflate(&z, Z_FINISH) == Z_STREAM_END);
    blob_add(&out, p, z.total_out);
    deflateEnd(&z);
    free(p);
    return out;
}

/* As the kind packs it; nothing where that cannot be done here. */
static blob pack(int kind, const blob *b)
{
    blob out = {0};
    if (kind == 0)
        return gzip(b);
    if (kind == 4 && b->n == 0)
        return out; /* libarchive 3.6.2 crashes */
#ifdef HAVE_LIBARCHIVE
    static int (*const add[KINDS])(struct archive *) = {NULL, archive_write_add_filter_zstd,
                                                        archive_write_add_filter_xz, archive_write_add_filter_bzip2,
                                                        archive_write_add_filter_lz4};
    size_t used = 0;
    const size_t room = 2 * b->n + 100000;
    char *p = malloc(room);
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    ck_assert(p && a && e && archive_write_set_format_raw(a) == ARCHIVE_OK && add[kind](a) == ARCHIVE_OK);
    archive_write_set_bytes_in_last_block(a, 1);
    archive_entry_set_filetype(e, AE_IFREG);
    ck_assert(archive_write_open_memory(a, p, room, &used) == ARCHIVE_OK);
    ck_assert(archive_write_header(a, e) == ARCHIVE_OK);
    ck_assert(archive_write_data(a, b->data, b->n) == (la_ssize_t)b->n);
    ck_assert(archive_write_close(a) == ARCHIVE_OK);
    blob_add(&out, p, used);
    archive_entry_free(e);
    archive_write_free(a);
    free(p);
#endif
    return out;
}

/* Kinds that this program unpacks. */
static int count(void)
{
#ifdef HAVE_LIBARCHIVE
    return KINDS;
#else
    return 1;
#endif
}

/* Numbers that pack to about a half. */
static blob array(size_t elements)
{
    char dict[128];
    snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu,)}", elements);
    blob b = bad_npy(1, dict, "", 0);
    uint32_t x = 1;
    for (size_t i = 0; i < elements; i++) {
        x = x * 1664525 + 1013904223;
        blob_int(&b, bits_of_f32((float)(x >> 20)), 4);
    }
    return b;
}

static int same(const outcome *a, const outcome *b)
{
    return !a->failed && !b->failed && a->elements == b->elements && memcmp(a->first, b->first, sizeof a->first) == 0;
}

/* "-", which is a pipe that another process writes a file into. */
static outcome read_through_pipe(const char *path)
{
    int ends[2], status;
    const int saved = dup(STDIN_FILENO);
    ck_assert(saved >= 0 && pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        dup2(ends[1], STDOUT_FILENO);
        execlp("cat", "cat", path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    ck_assert(child > 0 && dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    const outcome o = bad_read("-", NULL);
    ck_assert(dup2(saved, STDIN_FILENO) == STDIN_FILENO);
    close(ends[0]);
    close(saved);
    ck_assert(waitpid(child, &status, 0) == child && status == 0);
    return o;
}

CASE("stream", 120);

TEST(every_kind_unpacks)
{
    blob x = array(ELEMENTS);
    blob copy = {0};
    blob_add(&copy, x.data, x.n);
    const outcome plain = bad_read(bad_write("x.npy", &copy), NULL);
    for (int k = 0; k < count(); k++) {
        char label[32];
        trace_error e;
        blob p = pack(k, &x);
        const char *path = bad_write("x.npy.packed", &p);
        const outcome o = bad_read(path, NULL);
        ck_assert_msg(same(&plain, &o), "%s: %s", kinds[k], o.error.text);
        ck_assert(trace_probe(path, NULL) == 1);
        trace *t = trace_open(path, NULL, &e);
        snprintf(label, sizeof label, "npy (%s)", kinds[k]);
        ck_assert_str_eq(trace_layout(t), label);
        ck_assert_uint_eq(trace_size(t), x.n);
        trace_close(t);
        const outcome in = read_through_pipe(path);
        ck_assert_msg(same(&plain, &in), "%s: %s", kinds[k], in.error.text);
    }
    blob_clear(&x);
}

TEST(raw_elements_may_be_packed_too)
{
    const trace_options raw = {.raw_format = mpsim_format_find("binary32")};
    blob x = {0};
    for (int i = 0; i < 1000; i++)
        blob_int(&x, bits_of_f32((float)i), 4);
    for (int k = 0; k < count(); k++) {
        blob p = pack(k, &x);
        const outcome o = bad_read(bad_write("raw", &p), &raw);
        ck_assert_msg(!o.failed && o.elements == 1000 && o.first[7] == 7, "%s", kinds[k]);
    }
    /* what begins as gzip does, but is none, stays what it was */
    static const unsigned char numbers[4][12] = {{0x1f, 0x8b, 8, 0xe0},
                                                 {0x1f, 0x8b, 9},
                                                 {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 1},
                                                 {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 77}};
    for (int i = 0; i < 4; i++) {
        blob_clear(&x);
        blob_add(&x, numbers[i], 12);
        const outcome o = bad_read(bad_write("raw", &x), &raw);
        ck_assert(!o.failed && o.elements == 3);
    }
}

TEST(members_one_behind_the_other)
{
    blob x = array(ELEMENTS), twice = {0};
    const blob front = {x.data, 100001, 0}, back = {x.data + 100001, x.n - 100001, 0};
    for (int k = 0; k < count(); k++) {
        blob a = pack(k, &front), b = pack(k, &back);
        blob_add(&twice, a.data, a.n);
        blob_add(&twice, b.data, b.n);
        if (k == 0)
            blob_fill(&twice, 0, 1000);
        const outcome o = bad_read(bad_write("twice", &twice), NULL);
        ck_assert_msg(!o.failed && o.elements == ELEMENTS, "%s: %s", kinds[k], o.error.text);
        blob_clear(&a);
        blob_clear(&b);
    }
    blob_clear(&x);
}

TEST(damage_is_told)
{
    blob x = array(ELEMENTS);
    for (int k = 0; k < count(); k++) {
        char fragment[64];
        blob p = pack(k, &x);
        snprintf(fragment, sizeof fragment, "the %s data are damaged: ", kinds[k]);
        for (int what = 0; what < 5; what++) {
            blob bad = {0};
            if (what == 2 && k == 1)
                continue; /* libarchive writes no checksum into zstd data, as the program zstd does */
            blob_add(&bad, p.data, what == 0 ? p.n - 1 : what == 1 ? p.n / 2 : p.n);
            if (what == 2)
                bad.data[bad.n / 2] ^= 1;
            else if (what == 3)
                blob_text(&bad, "something else");
            else if (what == 4)
                blob_fill(&bad, 'x', 1 << 17);
            /* bzip2 gives the whole block out before it compares the CRC */
            bad_expect(34, kinds[k], bad_write("damaged", &bad), NULL, 3, what == 2 && k == 3 ? "" : fragment);
        }
        blob_clear(&p);
    }
    blob p = gzip(&x); /* the CRC, the length: libarchive compares neither */
    for (size_t i = 1; i <= 8; i++) {
        blob bad = {0};
        blob_add(&bad, p.data, p.n);
        bad.data[p.n - i] ^= 0x10;
        bad_expect(37, "trailer", bad_write("damaged", &bad), NULL, 3,
                   i > 4 ? "damaged: incorrect data check" : "damaged: incorrect length check");
    }
    blob_clear(&p);
    blob_clear(&x);
}

TEST(one_level)
{
    blob x = array(1000);
    for (int k = 0; k < count(); k++) {
        char fragment[64];
        blob inner = pack(0, &x), p = pack(k, &inner);
        snprintf(fragment, sizeof fragment, "gzip data inside %s data: unpack it first", kinds[k]);
        bad_expect(34, kinds[k], bad_write("twice", &p), NULL, 3, fragment);
        blob_clear(&inner);
    }
    blob_clear(&x);
}

TEST(item_34_bombs)
{
    static const trace_options many = {.max_ratio = 100000000};
    blob x = bad_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (19922944,)}", "", 0);
    blob_fill(&x, 0, (size_t)4 * 19922944); /* 76 MiB */
    for (int k = 0; k < count(); k++) {
        char fragment[80];
        if (!test_in_part((uint64_t)k, 3))
            continue;
        blob p = pack(k, &x);
        const int is_bomb = x.n / p.n >= 1000;
        const char *path = bad_write("bomb", &p);
        snprintf(fragment, sizeof fragment, "the %s data unpack to more than 1000 times their size", kinds[k]);
        if (is_bomb) /* lz4 packs zeros to a 255th */
            bad_expect(34, kinds[k], path, NULL, 3, fragment);
        ck_assert(is_bomb || kinds[k][0] == 'l');
        if (k == 0 || k == 2)
            ck_assert(!bad_read(path, &many).failed);
    }
    blob_clear(&x);
    /* nothing of what is no file of tensors is written */
    blob_fill(&x, 'a', 1 << 20);
    for (int k = 0; k < count(); k++) {
        blob p = pack(k, &x);
        bad_expect(34, kinds[k], bad_write("text", &p), NULL, 3,
                   "not a safetensors, PyTorch, npy, npz, GGUF, Flax, ONNX or llm.c file");
    }
    blob_clear(&x);
    for (int k = 0; k < count(); k++) {
        blob p = pack(k, &x);
        if (p.n)
            bad_expect(34, kinds[k], bad_write("empty", &p), NULL, 3, "is empty");
        blob_clear(&p);
    }
}

TEST(without_libarchive)
{
#ifndef HAVE_LIBARCHIVE
    static const char *const heads[] = {"\x28\xb5\x2f\xfd",
                                        "\xfd"
                                        "7zXZ",
                                        "BZh91AY&SY", "\x04\x22\x4d\x18"};
    for (int i = 0; i < 4; i++) {
        char fragment[64];
        blob b = {0};
        blob_text(&b, "%s", heads[i]);
        blob_fill(&b, 0, 100);
        snprintf(fragment, sizeof fragment, "%s data, and this mpsim was built without libarchive", kinds[i + 1]);
        bad_expect(53, kinds[i + 1], bad_write("x", &b), NULL, 3, fragment);
        ck_assert(trace_probe(bad_path("x"), NULL) == 0);
    }
#endif
}

TEST(any_damage_is_read_or_refused)
{
    blob x = array(20);
    for (int k = 0; k < count(); k++) {
        if (!test_in_part((uint64_t)k, 1))
            continue;
        blob p = pack(k, &x);
        bad_damage_all("damage", &p, NULL);
        blob_clear(&p);
    }
    blob_clear(&x);
}

TEST_MAIN_BY(bad_main, "stream");
