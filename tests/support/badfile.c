/* badfile.c -- see badfile.h. */
#include "badfile.h"
#include "sanitized.h"
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[4096];

static void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

void blob_add(blob *b, const void *p, size_t n)
{
    if (b->room - b->n < n) {
        b->room = 2 * b->room + n + 64;
        if (!(b->data = realloc(b->data, b->room)))
            die("blob");
    }
    if (n)
        memcpy(b->data + b->n, p, n);
    b->n += n;
}

void blob_fill(blob *b, char c, size_t n)
{
    char block[4096];
    memset(block, c, sizeof block);
    for (; n > sizeof block; n -= sizeof block)
        blob_add(b, block, sizeof block);
    blob_add(b, block, n);
}

void blob_int(blob *b, uint64_t u, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)(u >> 8 * i & 0xff);
        blob_add(b, &c, 1);
    }
}

void blob_text(blob *b, const char *format, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, format);
    const int n = vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof line)
        die("blob_text");
    blob_add(b, line, (size_t)n);
}

void blob_set(blob *b, size_t at, uint64_t u, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        b->data[at + i] = (unsigned char)(u >> 8 * i & 0xff);
}

void blob_clear(blob *b)
{
    free(b->data);
    memset(b, 0, sizeof *b);
}

const char *bad_path(const char *name)
{
    if (!*directory) /* bad_main makes it */
        die(name);
    static char ring[8][4400];
    static unsigned turn;
    char *p = ring[turn++ % 8];
    snprintf(p, sizeof ring[0], "%s/%s", directory, name);
    return p;
}

const char *bad_write(const char *name, blob *b)
{
    const char *path = bad_path(name);
    FILE *f = fopen(path, "wb");
    if (!f || (b->n && fwrite(b->data, 1, b->n, f) != b->n) || fclose(f))
        die(path);
    blob_clear(b);
    return path;
}

blob bad_safetensors(const char *header, size_t data)
{
    blob b = {0};
    blob_int(&b, strlen(header), 8);
    blob_add(&b, header, strlen(header));
    for (size_t i = 0; i < data; i++)
        blob_int(&b, i, 1);
    return b;
}

blob bad_npy(int version, const char *dict, const void *payload, size_t n)
{
    blob b = {0};
    const size_t prefix = version > 1 ? 12 : 10;
    const size_t pad = 63 - (prefix + strlen(dict)) % 64;
    blob_text(&b, "\x93NUMPY%c%c", version, 0);
    blob_int(&b, strlen(dict) + pad + 1, version > 1 ? 4 : 2);
    blob_add(&b, dict, strlen(dict));
    blob_fill(&b, ' ', pad);
    blob_text(&b, "\n");
    blob_add(&b, payload, n);
    return b;
}

uint32_t bad_crc32(const void *p, size_t n)
{
    const unsigned char *s = p;
    uint32_t c = 0xffffffff;
    for (; n; n--, s++) {
        c ^= *s;
        for (int i = 0; i < 8; i++)
            c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
    }
    return ~c;
}

outcome bad_read(const char *path, const trace_options *options)
{
    outcome o = {0};
    double values[512];
    trace *t = trace_open(path, options, &o.error);
    if (!t) {
        o.failed = 1;
        return o;
    }
    o.tensors = trace_count(t);
    for (size_t i = 0; i < o.tensors && !o.failed; i++) {
        size_t got = 1;
        if (!trace_at(t, i)->format)
            continue;
        o.failed = trace_select(t, i, &o.error) != 0;
        while (!o.failed && got) {
            o.failed = trace_read(t, values, 512, &got, &o.error) != 0;
            for (size_t k = 0; k < got && o.elements + k < 8; k++)
                o.first[o.elements + k] = values[k];
            o.elements += got;
        }
    }
    trace_close(t);
    return o;
}

void bad_expect(int item, const char *what, const char *path, const trace_options *options, int exit_code,
                const char *fragment)
{
    const outcome o = bad_read(path, options);
    const size_t n = strlen(path);
    ck_assert_msg(o.failed, "item %d, %s: was accepted", item, what);
    ck_assert_msg(o.error.exit == exit_code, "item %d, %s: exit %d: %s", item, what, o.error.exit, o.error.text);
    ck_assert_msg(strstr(o.error.text, fragment) != NULL, "item %d, %s: no \"%s\" in \"%s\"", item, what, fragment,
                  o.error.text);
    ck_assert_msg(strncmp(o.error.text, path, n) == 0 && strncmp(o.error.text + n, ": ", 2) == 0,
                  "item %d, %s: the path is missing: \"%s\"", item, what, o.error.text);
    for (const char *s = o.error.text; *s; s++)
        ck_assert_msg((unsigned char)*s >= 0x20 && *s != 0x7f, "item %d, %s: control character in \"%s\"", item, what,
                      o.error.text);
}

void bad_read_ok(const void *path)
{
    const outcome o = bad_read(path, NULL);
    if (o.failed)
        fprintf(stderr, "%s\n", o.error.text);
    _exit(o.failed);
}

void bad_read_fails(const void *path)
{
    const outcome o = bad_read(path, NULL);
    _exit(!o.failed || o.error.exit != 3);
}

void bad_measure(void (*work)(const void *context), const void *context, long *kib, double *seconds)
{
    struct rusage usage;
    int status;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        work(context);
        _exit(0);
    }
    ck_assert(child > 0 && wait4(child, &status, 0, &usage) == child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: status %d", status);
    *kib = usage.ru_maxrss;
    *seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* Under a sanitizer or valgrind the figures are theirs. */
static int limits_hold(void)
{
    return !SANITIZED_MEMORY && !test_under_valgrind();
}

void bad_within_limits(const char *what, void (*work)(const void *context), const void *context, double header_mib)
{
    long kib;
    double seconds;
    bad_measure(work, context, &kib, &seconds);
    printf("# %s: %.1f MiB, %.2f s\n", what, (double)kib / 1024, seconds);
    if (!limits_hold())
        return;
    ck_assert_msg((double)kib < (64 + header_mib) * 1024, "%s: %ld KiB", what, kib);
    ck_assert_msg(seconds < 6, "%s: %.2f s", what, seconds); /* under 2 where the core is not shared */
}

static void must_be_clean(const char *path, const trace_options *options, const char *what, size_t at)
{
    const outcome o = bad_read(path, options);
    ck_assert_msg(!o.failed || (o.error.exit == 3 && o.error.text[0] && !strpbrk(o.error.text, "\n\t\033")),
                  "%s %zu: exit %d, \"%s\"", what, at, o.error.exit, o.error.text);
}

void bad_damage_all(const char *name, const blob *good, const trace_options *options)
{
    const char *path = bad_path(name);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert(fd >= 0 && write(fd, good->data, good->n) == (ssize_t)good->n);
    ck_assert(!bad_read(path, options).failed);
    for (size_t i = 0; i < good->n; i++) {
        static const unsigned char patterns[] = {0x01, 0x80, 0xff, 0x20};
        for (size_t k = 0; k < sizeof patterns; k++) {
            const unsigned char c = good->data[i] ^ patterns[k];
            ck_assert(pwrite(fd, &c, 1, (off_t)i) == 1);
            must_be_clean(path, options, "byte", i);
        }
        ck_assert(pwrite(fd, good->data + i, 1, (off_t)i) == 1);
    }
    for (size_t n = good->n; n-- > 0;) {
        ck_assert(ftruncate(fd, (off_t)n) == 0);
        must_be_clean(path, options, "length", n);
        /* a prefix is never a whole file; a raw file is whole at any length */
        if (!options || !options->raw_format)
            ck_assert_msg(bad_read(path, options).failed, "length %zu was accepted", n);
    }
    close(fd);
}

/* Files, links and directories that tests leave behind. */
static void remove_tree(const char *path)
{
    struct stat st;
    if (lstat(path, &st))
        return;
    if (S_ISDIR(st.st_mode)) {
        DIR *dir = opendir(path);
        const struct dirent *e;
        while (dir && (e = readdir(dir))) {
            char below[8192];
            if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                continue;
            snprintf(below, sizeof below, "%s/%s", path, e->d_name);
            remove_tree(below);
        }
        if (dir)
            closedir(dir);
        rmdir(path);
    } else {
        unlink(path);
    }
}

int bad_main(const char *suite, TCase *const *cases)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/mpsim-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(directory))
        die(directory);
    const int result = test_main(suite, cases);
    remove_tree(directory);
    return result;
}
