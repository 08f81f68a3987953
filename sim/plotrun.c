/* plotrun.c -- running gnuplot so that a figure appears whole or not at all. */
#include "plot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

const char *const plot_suffixes[3] = {"pdf", "png", "svg"};

enum { MESSAGE_SIZE = 4096 };

/* A malloc'ed string from a format; NULL without memory. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
static char *text_of(const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    char *s = n < 0 ? NULL : malloc((size_t)n + 1);
    if (s)
        vsnprintf(s, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return s;
}

/* Run argv with its stderr in `message`, the rest from and to /dev/null. errno value, or 0
 * with the wait status. */
static int run(char *const argv[], char *message, int *status)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    int ends[2];
    pid_t child;
    if (pipe(ends) != 0)
        return errno;
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    int error = posix_spawn_file_actions_init(&files);
    if (error) {
        close(ends[0]);
        close(ends[1]);
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        sigemptyset(&defaults);
        sigaddset(&defaults, SIGPIPE); /* ignored here, and that would be inherited */
        error |= posix_spawnattr_setsigdefault(&attributes, &defaults);
        error |= posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        error |= posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        error |= posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
        error |= posix_spawn_file_actions_adddup2(&files, ends[1], 2);
        if (ends[1] > 2)
            error |= posix_spawn_file_actions_addclose(&files, ends[1]);
        error = error ? ENOMEM : posix_spawnp(&child, argv[0], &files, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    if (!error) {
        char rest[512];
        size_t used = 0;
        for (;;) {
            const size_t room = MESSAGE_SIZE - 1 - used;
            const ssize_t n = read(ends[0], room ? message + used : rest, room ? room : sizeof rest);
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                break;
            if (room)
                used += (size_t)n;
        }
        message[used] = '\0';
        while (waitpid(child, status, 0) < 0)
            if (errno != EINTR) {
                error = errno;
                break;
            }
    }
    close(ends[0]);
    return error;
}

/* gnuplot prints the statement, a mark under it, then `"FILE" line N: message`. That line, or
 * the first one with letters. */
static void first_message(char *line, size_t size, char *message)
{
    const char *best = NULL, *any = NULL;
    char *rest;
    for (char *s = strtok_r(message, "\n", &rest); s; s = strtok_r(NULL, "\n", &rest)) {
        if (!any && strspn(s, " \t^") < strlen(s))
            any = s + strspn(s, " \t^");
        if (!best && strstr(s, " line ") && strstr(s, ": "))
            best = s + strspn(s, " \t");
    }
    plot_text_clean(line, size, best ? best : any ? any : "no message");
}

/* cairo before 1.17 writes the time of day into a PDF where it can be blanked out. */
static void remove_date(const char *path)
{
    static const char key[] = "/CreationDate (";
    FILE *f = fopen(path, "r+b");
    if (!f)
        return;
    size_t matched = 0;
    for (int c; (c = fgetc(f)) != EOF;) {
        matched = c == key[matched] ? matched + 1 : c == key[0];
        if (!key[matched])
            break;
    }
    if (!key[matched]) {
        const long from = ftell(f) - (long)(sizeof key - 1);
        long n = (long)sizeof key - 1;
        for (int c; n < 64 && (c = fgetc(f)) != EOF;) {
            n++;
            if (c == ')')
                break;
        }
        if (n < 64 && fseek(f, from, SEEK_SET) == 0)
            fprintf(f, "%*s", (int)n, "");
    }
    fclose(f);
}

int plot_run(const char *prefix, unsigned types)
{
    const char *program = getenv("MPSIM_GNUPLOT"), *base = plot_base(prefix);
    char *drawn[3] = {0}, *final[3] = {0}, *quoted[2] = {0};
    char message[MESSAGE_SIZE] = "", line[300];
    const char *first = strchr("./", prefix[0]) ? "" : "./"; /* never an option, a pipe, ... */
    int code = EXIT_IO, status = 0;
    char *directory = text_of("%s%s.XXXXXX", first, prefix);
    char *script = text_of("%s%s.gp", first, prefix), *data = text_of("%s%s.dat", first, prefix);
    char *settings = NULL;
    if (!program || !*program)
        program = "gnuplot";
    if (!directory || !script || !data) {
        fail(EXIT_IO, "out of memory");
        goto done;
    }
    if (!mkdtemp(directory)) {
        fail(EXIT_IO, "%s: %s", directory, strerror(errno));
        goto done;
    }
    char *figure = text_of("%s/%s", directory, base);
    quoted[0] = figure ? plot_quote(figure) : NULL;
    quoted[1] = plot_quote(data);
    if (quoted[0] && quoted[1])
        settings = text_of("figure = %s; data = %s", quoted[0], quoted[1]);
    int complete = settings != NULL;
    for (int i = 0; i < 3; i++)
        if (types & 1u << i) {
            drawn[i] = text_of("%s/%s.%s", directory, base, plot_suffixes[i]);
            final[i] = text_of("%s.%s", prefix, plot_suffixes[i]);
            complete &= drawn[i] && final[i];
        }
    free(figure);
    if (!complete) {
        fail(EXIT_IO, "out of memory");
        goto clean;
    }
    char d_flag[] = "-d", e_flag[] = "-e"; /* -d: no settings of the user or the host */
    char *name = text_of("%s", program);
    char *argv[] = {name, d_flag, e_flag, settings, script, NULL};
    const int error = name ? run(argv, message, &status) : ENOMEM;
    free(name);
    if (error == ENOENT || (!error && WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
        fail(EXIT_IO, "%s not found; %s.gp and %s.dat are written: install gnuplot, or set "
                      "MPSIM_GNUPLOT", program, prefix, prefix);
        goto clean;
    }
    if (error) {
        fail(EXIT_IO, "%s: %s", program, strerror(error));
        goto clean;
    }
    first_message(line, sizeof line, message);
    if (!WIFEXITED(status)) {
        fail(EXIT_IO, "%s: killed by signal %d: %s", program, WTERMSIG(status), line);
        goto clean;
    }
    if (WEXITSTATUS(status) != 0) {
        fail(EXIT_IO, "%s: failed: %s", program, line);
        goto clean;
    }
    for (int i = 0; i < 3; i++) {
        struct stat s;
        if (drawn[i] && (stat(drawn[i], &s) != 0 || s.st_size == 0)) {
            fail(EXIT_IO, "%s: drew no %s: %s", program, plot_suffixes[i], line);
            goto clean;
        }
    }
    if (drawn[0])
        remove_date(drawn[0]);
    for (int i = 0; i < 3; i++)
        if (drawn[i] && rename(drawn[i], final[i]) != 0) {
            fail(EXIT_IO, "%s: %s", final[i], strerror(errno));
            goto clean;
        }
    code = EXIT_OK;
clean:
    for (int i = 0; i < 3; i++)
        if (drawn[i])
            unlink(drawn[i]);
    rmdir(directory);
done:
    for (int i = 0; i < 3; i++) {
        free(drawn[i]);
        free(final[i]);
    }
    free(quoted[0]);
    free(quoted[1]);
    free(settings);
    free(data);
    free(script);
    free(directory);
    return code;
}
