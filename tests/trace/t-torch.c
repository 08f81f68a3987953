/* t-torch.c -- PyTorch's files: every tensor (name, dtype, shape, SHA-256 of its contiguous little-endian bytes) as the
 * torch that wrote the file loads it itself; and the bad inputs, items 39 to 47.
 *
 * tests/trace/torch/digests.txt has what seven versions of torch wrote and read, bad.txt what is to be refused
 * (tests/trace/torch/README.md).
 * MPSIM_CHECKPOINTS names a folder of others, with such a list in digests.txt or digests-published.txt. */
#include "sim/trace/impl.h"
#include "support/badzip.h"
#include "sim/text/sha256.h"
#include "support/support.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 8192, CHUNK = 777 }; /* elements at a time: odd, so that boxes of views are cut anywhere */

static int tensors, files, unread;

/* Undoes the escapes of the list: \t, \n, \\. */
static void unescape(char *s)
{
    char *to = s;
    for (; *s; s++)
        if (*s == '\\' && s[1]) {
            s++;
            *to++ = *s == 't' ? '\t' : *s == 'n' ? '\n' : *s;
        } else {
            *to++ = *s;
        }
    *to = 0;
}

static size_t find(const trace *t, const char *name)
{
    for (size_t i = 0; i < trace_count(t); i++)
        if (strcmp(trace_at(t, i)->name, name) == 0)
            return i;
    return SIZE_MAX;
}

static void to_little_endian(unsigned char *p, size_t width, size_t n)
{
    for (size_t i = 0; i < n; i++, p += width)
        for (size_t k = 0; k < width / 2; k++) {
            const unsigned char c = p[k];
            p[k] = p[width - 1 - k];
            p[width - 1 - k] = c;
        }
}

/* The digest of all elements, whatever their dtype. */
static void digest_of(const trace *t, const trace_entry *e, char hex[65])
{
    static unsigned char codes[CHUNK * 16];
    const uint64_t n = e->tensor.count;
    const size_t width = n ? (size_t)(e->bytes / n) : 1;
    const size_t part = strncmp(e->tensor.dtype, "complex", 7) == 0 ? 2 : 1;
    trace_error error;
    sha256 s;
    sha256_init(&s);
    for (uint64_t first = 0; first < n; first += CHUNK) {
        const size_t m = n - first < CHUNK ? (size_t)(n - first) : CHUNK;
        ck_assert_msg(t->type->codes(t, e, first, codes, m, &error) == 0, "%s", error.text);
        if (e->tensor.big_endian)
            to_little_endian(codes, width / part, m * part);
        sha256_add(&s, codes, m * width);
    }
    sha256_hex(&s, hex);
}

/* A line of the list: PATH dtype shape digest note. */
static void compare(const trace *t, char *const field[6])
{
    char shape[1024] = "[", hex[65];
    char *name = strcmp(field[1], "-") ? field[1] : field[1] + 1;
    unescape(name);
    const size_t i = find(t, name);
    const int nowhere = strcmp(field[4], "-") == 0;
    if (i == SIZE_MAX && nowhere && strncmp(field[5], "meta", 4) != 0)
        return; /* sparse and nested tensors: their parts are listed */
    ck_assert_msg(i != SIZE_MAX, "%s: no tensor '%s'", field[0], name);
    const trace_entry *e = &t->entries[i];
    const char *dtype = strncmp(field[2], "numpy:", 6) ? field[2] : field[2] + 6;
    size_t n = 1;
    for (size_t k = 0; k < e->tensor.rank; k++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%llu", k ? "," : "",
                              (unsigned long long)e->tensor.shape[k]);
    snprintf(shape + n, sizeof shape - n, "]");
    ck_assert_msg(strcmp(dtype, e->tensor.dtype) == 0, "%s: '%s' is %s and not %s", field[0], name, e->tensor.dtype,
                  dtype);
    ck_assert_msg(strcmp(field[3], shape) == 0, "%s: '%s' has shape %s and not %s", field[0], name, shape, field[3]);
    tensors++;
    if (nowhere || strncmp(field[5], "conj", 4) == 0)
        return;
    digest_of(t, e, hex);
    ck_assert_msg(strcmp(field[4], hex) == 0, "%s: '%s' has other elements", field[0], name);
}

/* Every line of a list, which stands for files of a folder. */
static void compare_all(const char *folder, const char *list)
{
    char path[2 * LINE], line[LINE], open[LINE] = "";
    trace *t = NULL;
    trace_error error;
    snprintf(path, sizeof path, "%s/%s", folder, list);
    FILE *f = fopen(path, "r");
    if (!f)
        return;
    while (fgets(line, sizeof line, f)) {
        char *field[7] = {line}, *end;
        int n = 1;
        line[strcspn(line, "\n")] = 0;
        for (end = line; (end = strchr(end, '\t')) && n < 7; n++) {
            *end++ = 0;
            field[n] = end;
        }
        ck_assert_msg(n >= 6, "%s: a line of %d fields", path, n);
        if (strcmp(open, field[0]) != 0) {
            trace_close(t);
            snprintf(open, sizeof open, "%s", field[0]);
            snprintf(path, sizeof path, "%s/%s", folder, field[0]);
            t = trace_open(path, NULL, &error);
            files += t != NULL;
            unread += t == NULL;
            if (!t)
                printf("# %s\n", error.text);
        }
        if (t)
            compare(t, field);
    }
    trace_close(t);
    fclose(f);
}

CASE("torch", 120);

TEST(seven_versions_as_torch_reads_them)
{
    tensors = files = unread = 0;
    compare_all(test_source_path("tests/trace/torch"), "digests.txt");
    printf("# %d tensors of %d files\n", tensors, files);
    ck_assert_int_eq(unread, 0);
    ck_assert_int_gt(files, 50);
}

TEST(published_checkpoints)
{
    const char *folder = getenv("MPSIM_CHECKPOINTS");
    if (!folder) {
        printf("# SKIP: MPSIM_CHECKPOINTS names no folder\n");
        return;
    }
    tensors = files = unread = 0;
    compare_all(folder, "digests.txt");
    compare_all(folder, "digests-published.txt");
    printf("# %d tensors of %d files; %d files are refused\n", tensors, files, unread);
    ck_assert_int_gt(files, 0);
    ck_assert_int_eq(unread, 0);
}

/* ---- bad inputs ---- */

static blob from_base64(const char *s)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    blob b = {0};
    uint32_t u = 0;
    int bits = 0;
    for (const char *at; *s && (at = strchr(digits, *s)); s++) {
        u = u << 6 | (uint32_t)(at - digits);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            blob_int(&b, u >> bits & 0xff, 1);
        }
    }
    return b;
}

/* A line: NAME, exit code, part of the message, the file. */
TEST(items_39_to_47)
{
    static char line[8192];
    int n = 0;
    FILE *f = fopen(test_source_path("tests/trace/torch/bad.txt"), "r");
    ck_assert(f != NULL);
    for (; fgets(line, sizeof line, f); n++) {
        char *field[4];
        char *at = line;
        for (int i = 0; i < 4; i++) {
            field[i] = at;
            at += strcspn(at, "\t\n");
            *at++ = 0;
        }
        blob b = from_base64(field[3]);
        const char *path = bad_write(field[0], &b);
        if (field[1][0] != '0') {
            bad_expect(39, field[0], path, NULL, atoi(field[1]), field[2]);
        } else if (strncmp(field[0], "expand_huge", 11) == 0) { /* 2^40 elements of one number */
            trace_error e;
            double x[1000];
            size_t got;
            const trace_options any = {.max_ratio = UINT64_MAX};
            trace *t = trace_open(path, NULL, &e);
            ck_assert(t && trace_at(t, 0)->count >= (uint64_t)1 << 40);
            ck_assert(trace_select(t, 0, &e) == 0 && trace_read(t, x, 1000, &got, &e) == -1 && e.exit == 3);
            ck_assert(
                strstr(e.text, "show more than 1000 times the bytes of the file: if that is right, raise --max-ratio"));
            trace_close(t);
            t = trace_open(path, &any, &e);
            ck_assert(trace_select(t, 0, &e) == 0 && trace_read(t, x, 1000, &got, &e) == 0 && x[0] == x[999]);
            trace_close(t);
        } else {
            const outcome o = bad_read(path, NULL);
            ck_assert_msg(!o.failed, "%s", o.error.text);
        }
    }
    fclose(f);
    printf("# %d files\n", n);
}

/* prefix, then `what` n times, then suffix; NULL: it is read, and has no tensors. */
static const struct {
    const char *name, *prefix;
    size_t prefix_bytes;
    const char *what;
    size_t n;
    const char *suffix, *fragment;
} large[] = {
    {"deep list", "\x80\2", 2, "](", 100000, ".", "the stack is empty"},
    {"deep tuple", "\x80\2)", 3, "\x85", 200000, ".", "nested deeper than 100"},
    {"marks", "\x80\2", 2, "(", 200000, ".", "the stack is empty"},
    {"list", "\x80\2](", 4, "N", 1000000, "e.", NULL},
    {"values", "\x80\2](", 4, "K\1", 1000000, "e.", NULL},
    {"popped", "\x80\2N", 3, "N0", 1000000, ".", NULL},
    {"lists", "\x80\2](", 4, "]", 4000000, "e.", "of memory"},
    {"too long", "\x80\2N", 3, "N0", 9000000, ".", "above the cap"},
    {"memo", "\x80\2N", 3, "q\1", 1000000, ".", NULL},
};

TEST(large_pickles)
{
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        if (!test_in_part(i, 1))
            continue;
        blob b = {0};
        blob_add(&b, large[i].prefix, large[i].prefix_bytes);
        for (size_t k = 0; k < large[i].n; k++)
            blob_add(&b, large[i].what, strlen(large[i].what));
        blob_text(&b, "%s", large[i].suffix);
        const char *path = bad_write("large.pkl", &b);
        if (large[i].fragment)
            bad_expect(41, large[i].name, path, NULL, 3, large[i].fragment);
        bad_within_limits(large[i].name, large[i].fragment ? bad_read_fails : bad_read_ok, path, 16);
    }
}

/* Every prefix and every changed byte of small files of each form. */
TEST(damage)
{
    static const char *const names[] = {"torch-2.6.0/tensor.legacy.pt", "torch-2.6.0/plain_protocol5.pkl",
                                        "torch-2.6.0/rezipped.zip.pt"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!test_in_part(i, 1))
            continue;
        char path[256];
        unsigned char buffer[8192];
        blob b = {0};
        snprintf(path, sizeof path, "tests/trace/torch/%s", names[i]);
        FILE *f = fopen(test_source_path(path), "rb");
        ck_assert(f != NULL);
        blob_add(&b, buffer, fread(buffer, 1, sizeof buffer, f));
        fclose(f);
        bad_damage_all("damaged.pt", &b, NULL);
        blob_clear(&b);
    }
}

/* ---- torch.export ---- */

static const char *write_export(const char *sizes, const char *strides)
{
    blob weight = {0}, config = {0};
    archive a = {0};
    blob_fill(&weight, 0, 8);
    blob_text(
        &config,
        "{\"config\":{\"w\":{\"path_name\":\"w0\",\"use_pickle\":false,\"tensor_meta\":{\"dtype\":7,\"sizes\":[%s],"
        "\"strides\":[%s],\"storage_offset\":{\"as_int\":0}}}}}",
        sizes, strides);
    static const char *const names[] = {"m/data/weights/w0", "m/data/weights/model_weights_config.json"};
    archive_member(&a, names[0], &weight, 0);
    archive_member(&a, names[1], &config, 0);
    archive_central(&a, 0, names[0], &weight, 0);
    archive_central(&a, 1, names[1], &config, 0);
    archive_end(&a);
    blob_clear(&weight);
    blob_clear(&config);
    return bad_write("w.pt2", &a.b);
}

#define INT(n) "{\"as_int\":" #n "}"

/* A tensor without elements has the strides that it would have with them, so it was said not to lie in rows; and a
 * shape was too large or not by the place of its 0. */
TEST(bug_20261126_exported_without_elements)
{
    trace_error error;
    trace *t = trace_open(write_export(INT(2) "," INT(0) "," INT(3), INT(3) "," INT(3) "," INT(1)), NULL, &error);
    ck_assert_msg(t != NULL, "%s", t ? "" : error.text);
    ck_assert(trace_count(t) == 1 && trace_at(t, 0)->format && trace_at(t, 0)->count == 0);
    ck_assert_str_eq(trace_at(t, 0)->dtype, "F32");
    trace_close(t);
    bad_expect(0, "0, then product", write_export(INT(0) "," INT(8589934592) "," INT(8589934592), "0,0,0"), NULL, 3,
               "its shape is too large");
    bad_expect(0, "product, then 0", write_export(INT(8589934592) "," INT(8589934592) "," INT(0), "0,0,0"), NULL, 3,
               "its shape is too large");
}

/* ---- torch.package ---- */

/* {"w": a tensor of two floats in a storage whose key is a number, of so many elements} */
#define PICKLED(key, elements)                                                                                \
    "\x80\x03}X\x01\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nK" key \
    "X\x03\0\0\0cpuK" elements "tQK\0K\x02\x85K\x01\x85\x89}tRs."

typedef struct package_member {
    const char *name, *bytes;
    size_t n;
} package_member;

static const char *write_package(const package_member *members, size_t n)
{
    archive a = {0};
    blob data[8] = {{0}};
    for (size_t i = 0; i < n; i++) {
        blob_add(&data[i], members[i].bytes, members[i].n);
        archive_member(&a, members[i].name, &data[i], 0);
    }
    for (size_t i = 0; i < n; i++) {
        archive_central(&a, i, members[i].name, &data[i], 0);
        blob_clear(&data[i]);
    }
    archive_end(&a);
    return bad_write("package.pt", &a.b);
}

#define MEMBER(name, bytes)           \
    {                                 \
        name, bytes, sizeof bytes - 1 \
    }

TEST(bug_20261127_packages)
{
    trace_error e;
    package_member all[] = {MEMBER("p/.data/0.storage", "12345678"),
                            MEMBER("p/m/a.pkl", PICKLED("\0", "\x02")),
                            MEMBER("p/m/text", "\x80"),
                            MEMBER("p/.data/extern_modules", "torch"),
                            MEMBER("p/.data/version", "6\n"),
                            MEMBER("q/.data/version", "6\n")};
    trace *t = trace_open(write_package(all, 5), NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert(trace_count(t) == 1 && trace_at(t, 0)->count == 2);
    ck_assert_str_eq(trace_at(t, 0)->name, "w");
    trace_close(t);
    const package_member pickles[] = {
        MEMBER("p/m/a.pkl", PICKLED("\1", "\x02")), MEMBER("p/m/a.pkl", PICKLED("\0", "\x03")),
        MEMBER("p/m/a", "\x80\3cposix\nsystem\n(X\1\0\0\0xtR."), MEMBER("p/m/a", "\x80\x03}")};
    static const char *const why[] = {"member 'p/m/a.pkl': storage '1' is not in the archive",
                                      "has 8 bytes, the pickle says 12", "member 'p/m/a': offset", "the pickle ends"};
    for (size_t i = 0; i < sizeof pickles / sizeof pickles[0]; i++) {
        all[1] = pickles[i];
        bad_expect(0, why[i], write_package(all, 5), NULL, 3, why[i]);
    }
    all[4] = all[5]; /* the two members are in different folders: no package */
    bad_expect(0, "two folders", write_package(all, 5), NULL, 3, "no member is a data.pkl");
}

/* What is spent on one pickle that leads to the same values again and again is spent for all. */
TEST(many_pickles_have_one_bound)
{
    enum { DEEP = 20 };
    char bytes[200] = "\x80\x02]", name[8][16];
    size_t n = 3;
    package_member all[8] = {MEMBER("p/.data/extern_modules", ""), MEMBER("p/.data/version", "6\n")};
    for (int i = 0; i < DEEP; i++) { /* x = [x, x] */
        bytes[n++] = 'q';
        bytes[n++] = (char)i;
        bytes[n++] = 'h';
        bytes[n++] = (char)i;
        bytes[n++] = (char)0x86;
    }
    bytes[n++] = '.';
    for (size_t i = 2; i < 8; i++) {
        snprintf(name[i], sizeof name[i], "p/m/%zu.pkl", i);
        all[i] = (package_member){name[i], bytes, n};
    }
    bad_expect(0, "many", write_package(all, 8), NULL, 3, "the pickle leads to the same values again and again");
}

TEST_MAIN_BY(bad_main, "torch files");
