/* input.c -- see input.h. */
#include "input.h"

#include <inttypes.h>
#include <mpsim/digest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void must(int true_always)
{
    if (!true_always)
        abort();
}

/* ---- the input ---- */

static char path[4096];

static void remove_file(void)
{
    unlink(path);
}

static int make_file(void)
{
    const char *dir = getenv("TMPDIR");
    int fd;
#ifdef MFD_CLOEXEC
    fd = memfd_create("mpsim-fuzz", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd >= 0 && access(path, R_OK) == 0)
        return fd;
#endif
    snprintf(path, sizeof path, "%s/mpsim-fuzz-XXXXXX", dir && *dir ? dir : "/tmp");
    fd = mkstemp(path);
    if (fd < 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    atexit(remove_file);
    return fd;
}

const char *input_path(const uint8_t *data, size_t n)
{
    static int fd = -1;
    if (fd < 0)
        fd = make_file();
    if (ftruncate(fd, 0) || pwrite(fd, data, n, 0) != (ssize_t)n) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    return path;
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

char *input_with_digest(const uint8_t *data, size_t n, const char *before, size_t *size)
{
    const size_t all = n + strlen(before) + 20;
    char *text = malloc(all);
    must(text != NULL);
    if (n)
        memcpy(text, data, n);
    if (n && text[n - 1] != '\n')
        text[n++] = '\n';
    *size = n + (size_t)snprintf(text + n, all - n, "%s%016" PRIx64 "\n", before,
                                 mpsim_digest_bytes(text, n, 0));
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

#ifdef __GLIBC__ /* where stderr may be another file for a while */

static FILE *messages, *standard;
static char *said;
static size_t said_size;

void messages_begin(void)
{
    if (!messages)
        messages = open_memstream(&said, &said_size);
    must(messages != NULL);
    rewind(messages);
    standard = stderr;
    stderr = messages;
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

void messages_begin(void) {}
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
