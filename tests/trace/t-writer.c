/* t-writer.c -- writing safetensors and npy files: what is written is read back, and what
 * fails leaves nothing behind. Items 54 and 55 of the list of bad inputs. */
#include "support/badfile.h"
#include "support/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t two_by_three[] = {2, 3}, empty[] = {0, 5}, long_shape[] = {200000};

static trace_tensor tensor(const char *name, const char *format, const uint64_t *shape, size_t rank, uint64_t count)
{
    return (trace_tensor){
        .name = name, .format = mpsim_format_find(format), .shape = shape, .rank = rank, .count = count};
}

static const char *const metadata[][2] = {{"mpsim.step", "120"}, {"quote", "\"\\/\b\n\x7f"}, {"\xc3\xa4", ""}};

/* All bytes of a file. */
static blob slurp(const char *path)
{
    blob b = {0};
    unsigned char buffer[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    while ((n = fread(buffer, 1, sizeof buffer, f)) > 0)
        blob_add(&b, buffer, n);
    fclose(f);
    return b;
}

CASE("writer", 60);

TEST(safetensors_are_read_back)
{
    static const char *const names[] = {"wgrad:a.b", "\033\"\\../\n", "", "\xf0\x9f\x98\x80", "e"};
    const trace_tensor x[] = {tensor(names[0], "binary32", two_by_three, 2, 6), tensor(names[1], "bf16", NULL, 0, 1),
                              tensor(names[2], "e4m3", two_by_three, 2, 6), tensor(names[3], "e5m2fnuz", empty, 2, 0),
                              tensor(names[4], "binary64", two_by_three + 1, 1, 3)};
    unsigned char data[24 + 2 + 6 + 24];
    trace_error e;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i & 0x3f);
    const char *path = bad_path("out.safetensors");
    trace_writer *w = trace_writer_safetensors(path, x, 5, metadata, 3, &e);
    ck_assert_msg(w != NULL, "%s", w ? "" : e.text);
    ck_assert_msg(access(path, F_OK) != 0, "visible before it is complete");
    ck_assert(trace_writer_data(w, data, 10, &e) == 0);
    ck_assert(trace_writer_data(w, NULL, 0, &e) == 0);
    ck_assert(trace_writer_data(w, data + 10, sizeof data - 10, &e) == 0);
    ck_assert_msg(trace_writer_finish(w, &e) == 0, "%s", e.text);

    trace *t = trace_open(path, NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_uint_eq(trace_count(t), 5);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(trace_metadata_key(t, i), metadata[i][0]);
        ck_assert_str_eq(trace_metadata_value(t, i), metadata[i][1]);
    }
    ck_assert_int_eq(trace_step(t), 120);
    ck_assert_uint_eq(trace_at(t, 0)->offset % 8, 0);
    uint64_t begin = trace_at(t, 0)->offset;
    blob b = slurp(path);
    ck_assert(b.n == begin + sizeof data && memcmp(b.data + begin, data, sizeof data) == 0);
    blob_clear(&b);
    for (size_t i = 0; i < 5; i++) {
        const trace_tensor *y = trace_at(t, i);
        ck_assert_str_eq(y->name, names[i]);
        ck_assert_ptr_eq(y->format, x[i].format);
        ck_assert(y->rank == x[i].rank && y->count == x[i].count);
        for (size_t k = 0; k < y->rank; k++)
            ck_assert_uint_eq(y->shape[k], x[i].shape[k]);
    }
    trace_close(t);
    struct stat st;
    const mode_t mask = umask(0);
    umask(mask);
    ck_assert(stat(path, &st) == 0 && (st.st_mode & 0777) == (0666 & ~mask));
}

TEST(every_dtype_round_trips)
{
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        const char *packed = trace_packed_dtype(f), *descr = trace_npy_descr(f);
        const char *dtype = packed ? packed : trace_safetensors_dtype(f);
        const unsigned char zeros[8] = {0};
        const size_t width = mpsim_format_code_bytes(f);
        const uint64_t four = 4;
        trace_tensor x = {.name = "x", .format = f, .shape = &four, .rank = packed != NULL, .count = packed ? 4 : 1};
        mpsim_format copy = *f;
        trace_error e;
        ck_assert((packed ? trace_packed_dtype : trace_safetensors_dtype)(&copy) == dtype &&
                  trace_npy_descr(&copy) == descr);
        for (int npy = 0; npy < 2; npy++) {
            const char *path = bad_path("dtype");
            trace_writer *w = npy ? trace_writer_npy(path, &x, &e) : trace_writer_safetensors(path, &x, 1, NULL, 0, &e);
            ck_assert_msg((w != NULL) == ((npy ? descr : dtype) != NULL), "%s", f->name);
            if (!w) {
                ck_assert(e.exit == 3 && strstr(e.text, f->name));
                continue;
            }
            const size_t bytes = packed && !npy ? 4 * (size_t)trace_code_bits(f) / 8 : (size_t)x.count * width;
            ck_assert(trace_writer_data(w, zeros, bytes, &e) == 0 && trace_writer_finish(w, &e) == 0);
            trace *t = trace_open(path, NULL, &e);
            ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
            ck_assert_ptr_eq(trace_at(t, 0)->format, f);
            ck_assert_str_eq(trace_at(t, 0)->dtype, npy ? descr : dtype);
            trace_close(t);
        }
    }
    ck_assert_str_eq(trace_safetensors_dtype(mpsim_format_find("e4m3")), "F8_E4M3");
    ck_assert_str_eq(trace_npy_descr(mpsim_format_find("bf16")), "<V2");
    ck_assert_str_eq(trace_npy_descr(mpsim_format_find("e5m2")), "|V1");
    ck_assert_ptr_null(trace_safetensors_dtype(mpsim_format_find("e2m1")));
    ck_assert_str_eq(trace_packed_dtype(mpsim_format_find("e2m1")), "F4");
    ck_assert_ptr_null(trace_packed_dtype(mpsim_format_find("e4m3")));
    const uint64_t odd = 3;
    trace_error e;
    const trace_tensor x = {.name = "x", .format = mpsim_format_find("e2m1"), .shape = &odd, .rank = 1, .count = 3};
    ck_assert_ptr_null(trace_writer_safetensors(bad_path("odd"), &x, 1, NULL, 0, &e));
    ck_assert(strstr(e.text, "3 elements of 4 bits do not end on a byte") && e.exit == 3);
    ck_assert_ptr_null(trace_safetensors_dtype(NULL));
    ck_assert_ptr_null(trace_npy_descr(NULL));
}

TEST(npy_is_read_back)
{
    uint64_t shape[64];
    trace_error e;
    for (size_t i = 0; i < 64; i++)
        shape[i] = 1;
    for (size_t rank = 0; rank <= 64; rank++)
        for (int fortran = 0; fortran < 2; fortran++) {
            trace_tensor x = tensor("ignored", "binary32", shape, rank, 1);
            const float one = 1;
            x.fortran = fortran != 0;
            const char *path = bad_path("out.npy");
            trace_writer *w = trace_writer_npy(path, &x, &e);
            ck_assert_msg(w != NULL, "%s", w ? "" : e.text);
            ck_assert(trace_writer_data(w, &one, 4, &e) == 0 && trace_writer_finish(w, &e) == 0);
            trace *t = trace_open(path, NULL, &e);
            ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
            ck_assert(trace_at(t, 0)->rank == rank && trace_at(t, 0)->fortran == fortran);
            ck_assert_uint_eq(trace_at(t, 0)->offset % 64, 0);
            trace_close(t);
        }
    blob b = slurp(bad_path("out.npy"));
    ck_assert(memcmp(b.data, "\x93NUMPY\1\0", 8) == 0);
    blob_clear(&b);
}

static void refuse(const trace_tensor *x, size_t n, const char *const (*m)[2], size_t n_m, const char *fragment)
{
    trace_error e;
    const char *path = bad_path("refused");
    ck_assert_ptr_null(trace_writer_safetensors(path, x, n, m, n_m, &e));
    ck_assert_msg(e.exit == 3 && strstr(e.text, fragment), "%s", e.text);
    ck_assert_msg(access(path, F_OK) != 0, "left behind");
}

TEST(what_cannot_be_written_is_refused)
{
    static const uint64_t huge[] = {(uint64_t)1 << 40, (uint64_t)1 << 40}, half[] = {(uint64_t)1 << 57};
    const trace_tensor same[] = {tensor("a", "fp16", NULL, 0, 1), tensor("a", "fp16", NULL, 0, 1)};
    const trace_tensor reserved = tensor("__metadata__", "fp16", NULL, 0, 1);
    const trace_tensor latin = tensor("\xe4", "fp16", NULL, 0, 1);
    const trace_tensor packed = tensor("x", "e3m4", NULL, 0, 1);
    const trace_tensor large = tensor("x", "fp16", huge, 2, 0);
    const trace_tensor many[] = {tensor("x", "binary64", half, 1, half[0]), tensor("y", "binary64", half, 1, half[0]),
                                 tensor("z", "binary64", half, 1, half[0]), tensor("u", "binary64", half, 1, half[0]),
                                 tensor("v", "binary64", half, 1, half[0]), tensor("w", "binary64", half, 1, half[0]),
                                 tensor("s", "binary64", half, 1, half[0]), tensor("t", "binary64", half, 1, half[0]),
                                 tensor("r", "binary64", half, 1, half[0])};
    const trace_tensor none = {.name = "x", .dtype = "complex128"};
    static const char *const twice[][2] = {{"k", "1"}, {"k", "2"}};
    static const char *const bad[][2] = {{"k", "\xff"}}, *const key[][2] = {{"\xff", ""}};
    refuse(same, 2, NULL, 0, "the name 'a' cannot be written");
    refuse(&reserved, 1, NULL, 0, "the name '__metadata__' cannot be written");
    refuse(&latin, 1, NULL, 0, "'\\xe4' is not UTF-8");
    refuse(&packed, 1, NULL, 0, "no dtype for e3m4");
    refuse(&none, 1, NULL, 0, "no dtype for complex128");
    refuse(&large, 1, NULL, 0, "too large to write");
    refuse(many, 9, NULL, 0, "too large for one file");
    refuse(same, 1, twice, 2, "the name 'k'");
    refuse(same, 1, bad, 1, "is not UTF-8");
    refuse(same, 1, key, 1, "is not UTF-8");

    trace_error e;
    trace_writer *w = trace_writer_safetensors(bad_path("none"), NULL, 0, NULL, 0, &e);
    ck_assert(w && trace_writer_finish(w, &e) == 0);
    ck_assert(!bad_read(bad_path("none"), NULL).failed);
}

/* Names in the test directory that begin with `prefix`. */
static int files_named(const char *prefix)
{
    int n = 0;
    const struct dirent *d;
    DIR *dir = opendir(bad_path("."));
    while ((d = readdir(dir)))
        n += strstr(d->d_name, prefix) != NULL;
    closedir(dir);
    return n;
}

TEST(failure_leaves_nothing_behind)
{
    const trace_tensor x = tensor("x", "binary32", two_by_three, 2, 6);
    const float data[7] = {0};
    trace_error e;
    const char *path = bad_path("wrong");
    trace_writer *w = trace_writer_npy(path, &x, &e);
    ck_assert_int_eq(files_named("wrong"), 1); /* the temporary file */
    ck_assert(trace_writer_data(w, data, sizeof data, &e) != 0 && strstr(e.text, "only 24"));
    ck_assert(trace_writer_data(w, data, 20, &e) == 0);
    ck_assert(trace_writer_finish(w, &e) != 0 && strstr(e.text, "4 bytes of data are missing"));
    ck_assert_int_eq(files_named("wrong"), 0);

    w = trace_writer_npy(path, &x, &e);
    trace_writer_abandon(w);
    trace_writer_abandon(NULL);
    ck_assert_int_eq(files_named("wrong"), 0);

    static const char *const bad[][2] = {
        {"/nonexistent/x", "No such file"}, {"/", "Is a directory"}, {"", "No such file"}};
    for (size_t i = 0; i < 3; i++) {
        w = trace_writer_npy(bad[i][0], &x, &e);
        ck_assert_msg(!w && e.exit == 4 && strstr(e.text, bad[i][1]), "%s", e.text);
    }
}

/* Write far more than any buffer; the reason why it failed. */
static const char *write_much(const char *path, trace_error *e)
{
    static const float data[200000];
    const trace_tensor x = tensor("x", "binary32", long_shape, 1, 200000);
    trace_writer *w = trace_writer_npy(path, &x, e);
    if (!w)
        return e->text;
    if (trace_writer_data(w, data, sizeof data, e)) {
        trace_writer_abandon(w);
        return e->text;
    }
    return trace_writer_finish(w, e) ? e->text : NULL;
}

TEST(item_54_disk_full_and_closed_pipe)
{
    trace_error e;
    int ends[2];
    const int out = dup(STDOUT_FILENO);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (access("/dev/full", W_OK) == 0) {
        const trace_tensor x = tensor("x", "fp16", NULL, 0, 1);
        const char *why = write_much("/dev/full", &e);
        ck_assert(why && e.exit == 4 && strstr(why, "cannot write: No space left"));
        /* little data: found when the buffer is flushed */
        trace_writer *w = trace_writer_npy("/dev/full", &x, &e);
        ck_assert(w && trace_writer_data(w, "xx", 2, &e) == 0);
        ck_assert(trace_writer_finish(w, &e) != 0 && e.exit == 4);
    }
    ck_assert(pipe(ends) == 0 && dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    const char *why = write_much("-", &e);
    ck_assert(dup2(out, STDOUT_FILENO) == STDOUT_FILENO);
    ck_assert_msg(why && e.exit == 4 && strstr(why, "standard output: cannot write: Broken pipe"), "%s", why);

    const struct rlimit limit = {100000, 100000};
    ck_assert(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    why = write_much(bad_path("limited"), &e);
    ck_assert_msg(why && e.exit == 4 && strstr(why, "cannot write: File too large"), "%s", why);
    ck_assert_int_eq(files_named("limited"), 0);
}

TEST(standard_output_and_devices)
{
    trace_error e;
    const int out = dup(STDOUT_FILENO);
    const int fd = open(bad_path("stdout"), O_RDWR | O_CREAT, 0600);
    fflush(stdout);
    ck_assert(fd >= 0 && dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
    const char *why = write_much("-", &e);
    ck_assert(dup2(out, STDOUT_FILENO) == STDOUT_FILENO);
    close(fd);
    ck_assert_msg(!why, "%s", why);
    ck_assert_uint_eq(bad_read(bad_path("stdout"), NULL).elements, 200000);

    struct stat st;
    ck_assert(write_much("/dev/null", &e) == NULL);
    ck_assert(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
}

TEST(item_55_output_may_be_the_input)
{
    trace_error e;
    double v[10];
    size_t got;
    const char *path = bad_path("same.npy"), *link = bad_path("same.link");
    ck_assert(write_much(path, &e) == NULL);
    ck_assert(symlink("same.npy", link) == 0);
    for (int i = 0; i < 2; i++) { /* by its name, and through a link, which stays one */
        trace *t = trace_open(path, NULL, &e);
        const trace_tensor x = tensor("x", "bf16", long_shape, 1, 200000);
        const unsigned char code[] = {0x80, 0x3f};
        ck_assert(t && trace_select(t, 0, &e) == 0);
        trace_writer *w = trace_writer_safetensors(i ? link : path, &x, 1, NULL, 0, &e);
        ck_assert_msg(w != NULL, "%s", w ? "" : e.text);
        uint64_t n = 0;
        do {
            ck_assert(trace_read(t, v, 10, &got, &e) == 0);
            for (size_t k = 0; k < got; k++)
                ck_assert(v[k] == i && trace_writer_data(w, code, 2, &e) == 0);
            n += got;
        } while (got);
        ck_assert_uint_eq(n, 200000);
        ck_assert(trace_writer_finish(w, &e) == 0);
        trace_close(t);
        const outcome o = bad_read(path, NULL);
        ck_assert(!o.failed && o.elements == 200000 && o.first[0] == 1);
    }
    struct stat st;
    ck_assert(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    ck_assert_int_eq(files_named("same"), 2);
}

/* Tensors of many sizes, each written at once, in parts, and at places from the last to the first: the same file,
 * with every byte where it belongs. (A piece between half the buffer and all of it went ahead of what
 * waited in the buffer: header, and small tensors.) */
TEST(bug_20261122_pieces_of_any_size)
{
    static const uint64_t sizes[][1] = {{9000}, {140000}, {3}, {262143}, {1}, {0}, {131072}, {131073}, {300000}, {7}};
    enum { TENSORS = sizeof sizes / sizeof sizes[0] };
    trace_tensor all[TENSORS];
    blob data = {0}, files[3];
    trace_error e;
    uint64_t state = test_seed(), total = 0;
    for (int i = 0; i < TENSORS; i++) {
        char *name = strdup("tensor-0");
        name[7] = (char)('0' + i);
        all[i] = tensor(name, "e4m3", sizes[i], 1, sizes[i][0]);
        total += sizes[i][0];
    }
    for (uint64_t i = 0; i < total; i++)
        blob_int(&data, test_random(&state) & 0x7e, 1);
    for (int way = 0; way < 3; way++) {
        const char *path = bad_path("pieces.safetensors");
        trace_writer *w = trace_writer_safetensors(path, all, TENSORS, NULL, 0, &e);
        ck_assert_msg(w != NULL, "%s", w ? "" : e.text);
        ck_assert(trace_writer_has_places(w));
        uint64_t at = way == 2 ? total : 0;
        for (int i = 0; i < TENSORS; i++) {
            const size_t n = (size_t)all[way == 2 ? TENSORS - 1 - i : i].count, half = way == 1 ? n / 3 : 0;
            if (way == 2) {
                at -= n;
                ck_assert(trace_writer_data_at(w, at, data.data + at, n, &e) == 0);
                continue;
            }
            ck_assert(trace_writer_data(w, data.data + at, half, &e) == 0);
            ck_assert(trace_writer_data(w, data.data + at + half, n - half, &e) == 0);
            at += n;
        }
        ck_assert(trace_writer_finish(w, &e) == 0);
        files[way] = slurp(path);
        ck_assert(files[way].n > total && memcmp(files[way].data + files[way].n - total, data.data, total) == 0);
        ck_assert(files[way].n == files[0].n && memcmp(files[way].data, files[0].data, files[0].n) == 0);
        ck_assert_uint_eq(bad_read(path, NULL).elements, total);
    }
    for (int i = 0; i < 3; i++)
        blob_clear(&files[i]);
    for (int i = 0; i < TENSORS; i++)
        free((void *)(uintptr_t)all[i].name);
    blob_clear(&data);
}

TEST_MAIN_BY(bad_main, "writer");
