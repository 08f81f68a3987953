/* input.c -- see input.h. */
#include "input.h"

#include <inttypes.h>
#include <mpsim/digest.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

void must(int true_always)
{
    if (!true_always)
        abort();
}

/* ---- the input ---- */

typedef struct file {
    char path[4096];
    int fd; /* 0: not made yet */
} file;

enum { FILE_MOST = 4 << 20 };

static file files[INPUT_FILES];

static void remove_files(void)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        unlink(files[i].path);
}

/* A packed file of some KiB may unpack to 64 MiB before its ratio counts: a tenth of a second. Beyond 4 MiB there is no room here. */
static void limit_files(void)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_FSIZE, &most) == 0) {
        most.rlim_cur = FILE_MOST;
        must(setrlimit(RLIMIT_FSIZE, &most) == 0 && signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    }
}

static void make_file(file *f)
{
    const char *dir = getenv("TMPDIR");
    limit_files();
#ifdef MFD_CLOEXEC
    f->fd = memfd_create("mpsim-fuzz", MFD_CLOEXEC);
    snprintf(f->path, sizeof f->path, "/proc/self/fd/%d", f->fd);
    if (f->fd >= 0 && access(f->path, R_OK) == 0)
        return;
#endif
    snprintf(f->path, sizeof f->path, "%s/mpsim-fuzz-XXXXXX", dir && *dir ? dir : "/tmp");
    f->fd = mkstemp(f->path);
    if (f->fd < 0) {
        perror(f->path);
        exit(EXIT_FAILURE);
    }
    atexit(remove_files);
}

const char *input_path_of(size_t which, const uint8_t *data, size_t n)
{
    file *f = &files[which];
    if (!f->fd)
        make_file(f);
    if (ftruncate(f->fd, 0) || pwrite(f->fd, data, n, 0) != (ssize_t)n) {
        perror(f->path);
        exit(EXIT_FAILURE);
    }
    return f->path;
}

const char *input_path(const uint8_t *data, size_t n)
{
    return input_path_of(0, data, n);
}

char *input_text(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1);
    must(text != NULL);
    if (n)
        memcpy(text, data, n);
    text[n] = 0;
    return text;
}

void input_pieces(const uint8_t *data, size_t n, void (*visit)(const uint8_t *piece, size_t n))
{
#ifdef FUZZ_STANDALONE
    size_t left = SIZE_MAX;
#else
    size_t left = INPUT_PIECES;
#endif
    size_t at = 0, end;
    do {
        const uint8_t *zero = at < n ? memchr(data + at, 0, n - at) : NULL;
        end = zero ? (size_t)(zero - data) : n;
        visit(data + at, end - at);
        at = end + 1;
    } while (end < n && --left);
}

char *input_with_digest(const uint8_t *data, size_t n, const char *before, size_t *size)
{
    const size_t all = n + strlen(before) + 20;
    char *text = malloc(all);
    must(text != NULL);
    if (n)
        memcpy(text, data, n);
    if (n && text[n - 1] != '\n')
        text[n++] = '\n';
    *size = n + (size_t)snprintf(text + n, all - n, "%s%016" PRIx64 "\n", before, mpsim_digest_bytes(text, n, 0));
    return text;
}

/* ---- messages ---- */

static void must_be_shown(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        must((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
}

void must_be_line(const char *text)
{
    must(text[0]);
    must_be_shown(text, strlen(text));
}

static char room[4096];
static size_t room_size;
enum { UNTOUCHED = 0x5a };

char *short_room(size_t size)
{
    room_size = size;
    return memset(room, UNTOUCHED, sizeof room);
}

void must_be_short(void)
{
    must(memchr(room, '\0', room_size) != NULL);
    for (size_t i = room_size; i < sizeof room; i++)
        must(room[i] == UNTOUCHED);
}

#ifdef __GLIBC__ /* where stderr may be another file for a while */

static FILE *explain_messages, *standard;
static char *said;
static size_t said_size;

void messages_begin(void)
{
    if (!explain_messages)
        explain_messages = open_memstream(&said, &said_size);
    must(explain_messages != NULL);
    rewind(explain_messages);
    standard = stderr;
    stderr = explain_messages;
}

void messages_check(int code)
{
    static const char head[] = "mpsim: ", note[] = "mpsim: note: ";
    int errors = 0;
    fputc(0, stderr);
    must(fflush(stderr) == 0);
    stderr = standard;
    for (const char *line = said; *line; line += strcspn(line, "\n") + 1) {
        const size_t n = strcspn(line, "\n");
        must(line[n] == '\n' && n > sizeof head - 1 && strncmp(line, head, sizeof head - 1) == 0);
        must_be_shown(line, n);
        errors += strncmp(line, note, sizeof note - 1) != 0;
    }
    must(code == 0 || (code >= 2 && code <= 4));
    must(errors == (code != 0));
}

#else

void messages_begin(void)
{
}
void messages_check(int code)
{
    must(code == 0 || (code >= 2 && code <= 4));
}

#endif

/* ---- without a fuzzer ---- */

#ifdef FUZZ_STANDALONE
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        uint8_t *data = malloc(1 << 24);
        if (!f || !data) {
            perror(argv[i]);
            return EXIT_FAILURE;
        }
        const size_t n = fread(data, 1, 1 << 24, f);
        fclose(f);
        (void)LLVMFuzzerTestOneInput(data, n);
        free(data);
    }
    return EXIT_SUCCESS;
}
#endif
