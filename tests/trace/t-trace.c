/* t-trace.c -- what all layouts share: where bytes come from, how a layout is told, raw files,
 * locales. Items 53 to 58 of the list of bad inputs, as far as they concern reading. */
#include "config.h"
#include "support/badfile.h"
#include "support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ONE "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"

static blob good(void)
{
    blob b = bad_safetensors(ONE, 0);
    blob_int(&b, bits_of_f32(1.5f), 4);
    blob_int(&b, bits_of_f32(-2), 4);
    return b;
}

static int is_good(const outcome *o)
{
    return !o->failed && o->elements == 2 && o->first[0] == 1.5 && o->first[1] == -2;
}

CASE("trace", 60);

TEST(item_53_what_is_not_a_file)
{
    const char *dir = bad_path("dir"), *fifo = bad_path("fifo"), *sock = bad_path("socket");
    ck_assert(mkdir(dir, 0700) == 0 && mkfifo(fifo, 0600) == 0);
    bad_expect(53, "directory", dir, NULL, 3, "is a directory");
    bad_expect(53, "/dev/zero", "/dev/zero", NULL, 3, "is a character device");
    bad_expect(53, "/dev/null", "/dev/null", NULL, 3, "is a character device");
    bad_expect(53, "FIFO without a writer", fifo, NULL, 3, "is empty");
    bad_expect(53, "missing", bad_path("none"), NULL, 4, "cannot open: No such file");
    bad_expect(53, "empty path", "", NULL, 4, "cannot open: No such file");
    bad_expect(53, "below a file", "/dev/null/x", NULL, 4, "cannot open: Not a directory");

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int s = socket(AF_UNIX, SOCK_STREAM, 0);
    if (s >= 0 && strlen(sock) < sizeof address.sun_path) {
        strcpy(address.sun_path, sock);
        ck_assert(bind(s, (const struct sockaddr *)&address, sizeof address) == 0);
        bad_expect(53, "socket", sock, NULL, 3, "is not a regular file");
    }
    close(s);

    const char *dangling = bad_path("dangling"), *loop = bad_path("loop");
    ck_assert(symlink("none", dangling) == 0 && symlink("loop", loop) == 0);
    bad_expect(53, "dangling link", dangling, NULL, 4, "cannot open: No such file");
    bad_expect(53, "link to itself", loop, NULL, 4, "cannot open: Too many levels");
    blob b = good();
    const char *path = bad_write("file", &b), *link = bad_path("link");
    ck_assert(symlink("file", link) == 0);
    const outcome o = bad_read(link, NULL);
    ck_assert(is_good(&o));

    ck_assert(chmod(path, 0) == 0);
    if (geteuid() != 0)
        bad_expect(53, "unreadable", path, NULL, 4, "cannot open: Permission denied");
}

/* Write a blob to fd from a child process. */
static void feed(const char *path, int fd, const blob *b)
{
    const pid_t child = fork();
    ck_assert(child >= 0);
    if (child == 0) {
        if (path)
            fd = open(path, O_WRONLY);
        for (size_t i = 0; i < b->n;) {
            const size_t n = b->n - i < 10000 ? b->n - i : 10000;
            const ssize_t w = write(fd, b->data + i, n);
            if (w < 0)
                _exit(1);
            i += (size_t)w;
        }
        _exit(0);
    }
}

/* Reading "-" with this file as standard input, from `offset` on. */
static outcome read_stdin(int fd, const trace_options *options)
{
    const int saved = dup(STDIN_FILENO);
    ck_assert(dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    const outcome o = bad_read("-", options);
    ck_assert(dup2(saved, STDIN_FILENO) == STDIN_FILENO);
    close(saved);
    return o;
}

TEST(pipes_are_read_like_files)
{
    static const float x[100000] = {1.5f, -2};
    const char *fifo = bad_path("fifo2");
    blob files[3] = {good(), {0}, {0}};
    files[1] = bad_npy(1, "{'descr': '" BAD_FLOAT "', 'fortran_order': False, 'shape': (100000,)}", x, sizeof x);
    blob_add(&files[2], x, 8);
    const trace_options raw = {.raw_format = mpsim_format_find("binary32"), .raw_big_endian = BAD_FLOAT[0] == '>'};
    ck_assert(mkfifo(fifo, 0600) == 0);
    for (int i = 0; i < 3; i++) {
        const trace_options *options = i == 2 ? &raw : NULL;
        int status, ends[2];
        /* a FIFO with a writer: a reader of our own lets the writer open it first */
        const int hold = open(fifo, O_RDONLY | O_NONBLOCK);
        feed(fifo, -1, &files[i]);
        struct stat st;
        for (int k = 0; k < 1000 && (stat(fifo, &st) || st.st_size == 0); k++) {
            const struct timespec ms = {0, 1000000};
            nanosleep(&ms, NULL);
        }
        outcome o = bad_read(fifo, options);
        close(hold);
        ck_assert(wait(&status) > 0);
        ck_assert_msg(!o.failed && o.elements == (i == 1 ? 100000 : 2) && o.first[1] == -2, "%d: %s", i, o.error.text);
        /* standard input */
        ck_assert(pipe(ends) == 0);
        feed(NULL, ends[1], &files[i]);
        close(ends[1]);
        o = read_stdin(ends[0], options);
        close(ends[0]);
        ck_assert(wait(&status) > 0);
        ck_assert_msg(!o.failed && o.elements == (i == 1 ? 100000 : 2) && o.first[1] == -2, "%d: %s", i, o.error.text);
        blob_clear(&files[i]);
    }
}

TEST(item_53_standard_input)
{
    blob b = good();
    const size_t size = b.n;
    int fd = open(bad_write("stdin", &b), O_RDONLY);
    outcome o = read_stdin(fd, NULL);
    ck_assert(is_good(&o));
    o = read_stdin(fd, NULL); /* and again: the position has not moved */
    ck_assert(is_good(&o));
    ck_assert(lseek(fd, (off_t)size - 4, SEEK_SET) > 0);
    const trace_options raw = {.raw_format = mpsim_format_find("binary32")};
    o = read_stdin(fd, &raw); /* from where it stands */
    ck_assert(!o.failed && o.elements == 1 && o.first[0] == -2);
    close(fd);

    static const struct {
        const char *path, *fragment;
    } rows[] = {{"/dev/zero", "-: is a character device"},
                {"/dev/null", "-: is a character device"},
                {"/", "-: is a directory"}};
    for (size_t i = 0; i < 3; i++) {
        fd = open(rows[i].path, O_RDONLY);
        o = read_stdin(fd, NULL);
        close(fd);
        ck_assert_msg(o.failed && o.error.exit == 3 && strstr(o.error.text, rows[i].fragment), "%s", o.error.text);
    }
    fd = posix_openpt(O_RDWR | O_NOCTTY);
    if (fd >= 0 && grantpt(fd) == 0 && unlockpt(fd) == 0) {
        const int terminal = open(ptsname(fd), O_RDWR | O_NOCTTY);
        if (terminal >= 0) {
            o = read_stdin(terminal, NULL);
            close(terminal);
            ck_assert(o.failed && o.error.exit == 3 && strstr(o.error.text, "is a terminal"));
        }
        close(fd);
    }
}

TEST(item_53_endless_pipe_of_something_else_stops)
{
    int ends[2], status;
    ck_assert(pipe(ends) == 0);
    const pid_t child = fork();
    ck_assert(child >= 0);
    if (child == 0) {
        char line[4096];
        memset(line, 'y', sizeof line);
        close(ends[0]);
        signal(SIGPIPE, SIG_IGN);
        while (write(ends[1], line, sizeof line) > 0)
            continue;
        _exit(0);
    }
    close(ends[1]);
    const outcome o = read_stdin(ends[0], NULL);
    close(ends[0]);
    ck_assert(waitpid(child, &status, 0) == child);
    ck_assert(o.failed && o.error.exit == 3 && strstr(o.error.text, "not a safetensors"));

    /* no place for the copy */
    blob b = good();
    ck_assert(pipe(ends) == 0);
    feed(NULL, ends[1], &b);
    close(ends[1]);
    setenv("TMPDIR", "/nonexistent", 1);
    const outcome full = read_stdin(ends[0], NULL);
    close(ends[0]);
    ck_assert(wait(&status) > 0);
    ck_assert(full.failed && full.error.exit == 4 && strstr(full.error.text, "cannot create a temporary file"));
    blob_clear(&b);
}

TEST(content_not_name_decides)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *fragment;
    } rows[] = {
#ifndef HAVE_HDF5
        {"\x89HDF\r\n\x1a\n", 8, "an HDF5 file, which this mpsim was built without"},
#endif
        {"\x1f\x8b\10\0", 4, "damaged gzip data"},
        {"PK\7\10PK\3\4", 8, "a damaged or split zip file"},
        {"step,loss\n1,2.5\n", 16, "not a safetensors, PyTorch, npy, npz, GGUF, Flax, ONNX or llm.c file"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        blob b = {0};
        blob_add(&b, rows[i].bytes, rows[i].n);
        const char *path = bad_write("x.safetensors", &b);
        bad_expect(0, "other", path, NULL, 3, rows[i].fragment);
        ck_assert_int_eq(trace_probe(path, NULL), 0);
    }
    blob b = good();
    const char *path = bad_write("x.npy", &b);
    const outcome o = bad_read(path, NULL);
    ck_assert(is_good(&o));
    ck_assert_int_eq(trace_probe(path, NULL), 1);
    ck_assert_int_eq(trace_probe("/dev/zero", NULL), 0);
    ck_assert_int_eq(trace_probe(bad_path("nothing"), NULL), 0);
}

TEST(raw_files)
{
    const uint64_t shape[] = {2, 2}, three[] = {3}, huge[] = {(uint64_t)1 << 33, (uint64_t)1 << 33};
    const trace_options whole = {.raw_format = mpsim_format_find("fp16")};
    trace_options o = {.raw_format = mpsim_format_find("fp16"), .raw_shape = shape, .raw_rank = 2, .raw_offset = 3};
    blob b = {0};
    blob_text(&b, "xyz");
    for (int i = 0; i < 4; i++)
        blob_int(&b, 0x3c00, 2);
    const char *path = bad_write("raw", &b);
    trace_error e;
    trace *t = trace_open(path, &o, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    const trace_tensor *x = trace_at(t, 0);
    ck_assert_str_eq(trace_layout(t), "raw");
    ck_assert_str_eq(trace_path(t), path);
    ck_assert_str_eq(x->name, "");
    ck_assert(x->rank == 2 && x->shape[1] == 2 && x->count == 4 && x->offset == 3);
    trace_close(t);
    const outcome r = bad_read(path, &o);
    ck_assert(!r.failed && r.elements == 4 && r.first[3] == 1);
    bad_expect(32, "odd size", path, &whole, 3, "11 bytes are not a whole number of fp16 elements");
    o.raw_shape = three;
    o.raw_rank = 1;
    bad_expect(32, "short", path, &o, 3, "the shape needs 6 bytes of fp16, there are 8");
    o.raw_shape = huge;
    o.raw_rank = 2;
    bad_expect(16, "overflow", path, &o, 3, "the shape is too large");
    const uint64_t rest[] = {2, TRACE_RAW_REST}, rests[] = {TRACE_RAW_REST, TRACE_RAW_REST},
                   odd[] = {TRACE_RAW_REST, 3}, none[] = {0, TRACE_RAW_REST};
    o.raw_shape = rest;
    t = trace_open(path, &o, &e);
    ck_assert(t && trace_at(t, 0)->shape[0] == 2 && trace_at(t, 0)->shape[1] == 2 && trace_at(t, 0)->count == 4);
    trace_close(t);
    o.raw_shape = rests;
    bad_expect(16, "two rests", path, &o, 3, "the shape leaves more than one dimension to the file");
    o.raw_shape = odd;
    bad_expect(32, "no whole number", path, &o, 3, "the shape needs 6 bytes of fp16, there are 8");
    o.raw_shape = none;
    bad_expect(32, "rest beside nothing", path, &o, 3, "the shape needs 0 bytes of fp16, there are 8");
    o.raw_offset = 12;
    bad_expect(32, "offset", path, &o, 3, "the offset 12 is past the end");

    /* big-endian; every width; a format that is not in the table and does not outlive open */
    static const struct {
        const char *format;
        unsigned bytes;
        uint64_t code;
        double value;
    } rows[] = {{"e4m3", 1, 0x38, 1},
                {"bf16", 2, 0x4049, 3.140625},
                {"binary32", 4, 0x40000000, 2},
                {"binary64", 8, 0x4008000000000000, 3},
                {"e5m6", 2, 0x3c0, 1}};
    for (size_t i = 0; i < 5; i++)
        for (int big = 0; big < 2; big++) {
            mpsim_format *f = malloc(sizeof *f);
            double v[2];
            size_t got;
            ck_assert(f && mpsim_format_parse(f, rows[i].format) == MPSIM_OK);
            const trace_options p = {.raw_format = f, .raw_big_endian = big};
            for (unsigned k = 0; k < rows[i].bytes; k++)
                blob_int(&b, rows[i].code >> 8 * (big ? rows[i].bytes - 1 - k : k) & 0xff, 1);
            t = trace_open(bad_write("raw", &b), &p, &e);
            ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
            memset(f, 0xff, sizeof *f);
            free(f);
            ck_assert(trace_select(t, 0, &e) == 0 && trace_read(t, v, 2, &got, &e) == 0);
            ck_assert_msg(got == 1 && v[0] == rows[i].value, "%s: %g", rows[i].format, v[0]);
            trace_close(t);
        }

    const trace_options byte = {.raw_format = mpsim_format_find("e4m3")};
    blob_text(&b, "0123456789");
    bad_damage_all("raw", &b, &byte);
    blob_clear(&b);
    ck_assert(bad_read(bad_write("raw", &b), &byte).failed == 0); /* empty: no elements */
}

TEST(item_56_locales_change_nothing)
{
    static const char *const names[] = {"C",           "POSIX",       "de_DE.UTF-8", "de_DE",
                                        "fr_FR.UTF-8", "tr_TR.UTF-8", "ja_JP.SJIS"};
    blob b = bad_safetensors("{\"\xc3\xa4:x\":{\"dtype\":\"F32\",\"shape\":[1.5],"
                             "\"data_offsets\":[0,8]}}",
                             8);
    const char *broken = bad_write("locale", &b);
    b = good();
    const char *path = bad_write("locale.safetensors", &b);
    blob n = bad_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "\0\0\x80?", 4);
    const char *npy = bad_write("locale.npy", &n);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!setlocale(LC_ALL, names[i]))
            continue;
        printf("# locale %s, decimal point '%s'\n", names[i], localeconv()->decimal_point);
        outcome o = bad_read(path, NULL);
        ck_assert(is_good(&o));
        o = bad_read(npy, NULL);
        ck_assert(!o.failed && o.first[0] == 1);
        o = bad_read(broken, NULL);
        ck_assert(o.failed && strstr(o.error.text, "shape of tensor '\xc3\xa4:x' is not a list"));
    }
}

TEST_MAIN_BY(bad_main, "trace");
