/* t-textfile.c -- texts in memory: files, pipes with and without a writer, what has no end, what is no
 * file; texts that are written there. */
#include "sim/array/memory.h"
#include "sim/process/textfile.h"
#include "support/badfile.h"
#include "support/support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *file_of(const void *bytes, size_t n)
{
    blob b = {0};
    blob_add(&b, bytes, n);
    return bad_write("text", &b);
}

static void gives(const char *path, size_t most, const char *want, size_t length)
{
    trace_error e = {0};
    size_t n = 0;
    char *text = text_file_read(path, most, &n, &e);
    ck_assert_msg(text != NULL, "refused: %s", e.text);
    ck_assert_uint_eq(n, length);
    ck_assert(memcmp(text, want, length) == 0 && text[length] == 0);
    free(text);
}

static void refuses(const char *path, size_t most, size_t *n, int code, const char *fragment)
{
    trace_error e = {0};
    char *text = text_file_read(path, most, n, &e);
    ck_assert_msg(text == NULL, "%s: taken", path);
    ck_assert_msg(e.exit == code && strstr(e.text, fragment), "%s: %d '%s', wanted %d '%s'", path, e.exit, e.text, code,
                  fragment);
}

CASE("texts", 20);

TEST(files)
{
    char *large = malloc(100000);
    gives(file_of("", 0), 10, "", 0);
    gives(file_of("a\nb", 3), 3, "a\nb", 3);
    gives(file_of("a\0b", 3), 10, "a\0b", 3);
    memset(large, 'x', 100000);
    gives(file_of(large, 100000), 100000, large, 100000);
    refuses(file_of(large, 100000), 99999, NULL, 3, "more than the 99999 bytes");
    refuses(file_of("ab", 2), 1, NULL, 3, "more than the 1 bytes");
    refuses(file_of("a\0b", 3), 10, NULL, 3, "zero byte");
    refuses(bad_path("none"), 10, NULL, 4, "No such file");
    refuses(".", 10, NULL, 3, "is a directory");
    refuses("/dev/zero", 10, NULL, 3, "is a character device");
    refuses("/dev/null", 10, NULL, 3, "is a character device");
    free(large);
}

/* A child that opens the pipe after `wait` milliseconds and writes `n` bytes, a pause after each. */
static pid_t writer(const char *path, int wait, int pause, const char *text, size_t n)
{
    const pid_t child = fork();
    if (child)
        return child;
    usleep((useconds_t)wait * 1000);
    const int fd = open(path, O_WRONLY);
    for (size_t i = 0; fd >= 0 && i < n; i++) {
        if (pause)
            usleep((useconds_t)pause * 1000);
        if (write(fd, text + i, 1) != 1)
            break;
    }
    _exit(0);
}

TEST(pipes)
{
    const char *path = bad_path("pipe");
    struct timespec a, b;
    static char endless[1 << 20];
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    const struct {
        int wait, pause;
    } rows[] = {{0, 0}, {300, 0}, {0, 100}, {300, 100}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const pid_t child = writer(path, rows[i].wait, rows[i].pause, "abc", 3);
        gives(path, 10, "abc", 3);
        waitpid(child, NULL, 0);
    }
    const pid_t child = writer(path, 0, 0, endless, sizeof endless);
    size_t n;
    refuses(path, 100, &n, 3, "more than the 100 bytes");
    waitpid(child, NULL, 0);
    clock_gettime(CLOCK_MONOTONIC, &a);
    refuses(path, 10, NULL, 4, "nobody writes to");
    clock_gettime(CLOCK_MONOTONIC, &b);
    ck_assert_msg(b.tv_sec - a.tv_sec < 10, "%ld s", (long)(b.tv_sec - a.tv_sec));
}

TEST(standard_input)
{
    const int kept = dup(STDIN_FILENO);
    const int fd = open(file_of("abc", 3), O_RDONLY), zero = open("/dev/zero", O_RDONLY);
    ck_assert(kept >= 0 && fd >= 0 && zero >= 0);
    dup2(fd, STDIN_FILENO);
    gives("-", 10, "abc", 3);
    size_t n;
    dup2(zero, STDIN_FILENO);
    refuses("-", 10, &n, 3, "standard input: more than the 10 bytes");
    dup2(kept, STDIN_FILENO);
    close(kept);
    close(fd);
    close(zero);
}

TEST(written)
{
    char *text = NULL;
    size_t n = 1;
    FILE *to = memory_open(&text, &n);
    ck_assert(to && n == 0);
    for (size_t i = 0; i < 10000; i++) {
        ck_assert(fprintf(to, "%04zu\n", i) == 5);
        if (i % 1000 == 7)
            ck_assert(fflush(to) == 0 && n == 5 * (i + 1));
    }
    ck_assert(fclose(to) == 0 && n == 50000 && strlen(text) == n);
    ck_assert(strncmp(text, "0000\n0001\n", 10) == 0 && strcmp(text + n - 5, "9999\n") == 0);
    free(text);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return bad_main("textfile", test_cases());
}
