/* gnuplot.c -- running gnuplot so that a figure appears whole or not at all. */
#include "gnuplot.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../text/escape.h"
#include "../text/words.h"
#include "../trace/outfile.h"
#include "../trace/temporary.h"
#include "../trace/whole.h"
#include "plot.h"
#include "impl.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const plot_types[PLOT_TYPES] = {"pdf", "png", "svg", "txt", "cairolatex"};

const plot_drawn plot_files_drawn[PLOT_DRAWN] = {
    {PLOT_PDF, ".pdf", "%%EOF"}, {PLOT_PNG, ".png", "IEND\xae\x42\x60\x82"}, {PLOT_SVG, ".svg", "</svg>"},
    {PLOT_TXT, ".txt", " "},     {PLOT_LATEX, "-latex.tex", "\\endgroup"},   {PLOT_LATEX, "-latex.pdf", "%%EOF"},
};

enum { MESSAGE_SIZE = 4096 };

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
        sigaddset(&defaults, SIGXFSZ);
        error |= posix_spawnattr_setsigdefault(&attributes, &defaults);
        error |= posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        error |= posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        error |= posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
        error |= posix_spawn_file_actions_adddup2(&files, ends[1], 2);
        if (ends[1] > 2)
            error |= posix_spawn_file_actions_addclose(&files, ends[1]);
        error = error ? ENOMEM : trace_temporary_spawn(&child, &files, &attributes, argv);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    if (!error) {
        char rest[512];
        size_t used = 0;
        for (;;) {
            const size_t room = MESSAGE_SIZE - 1 - used;
            const ssize_t n = room ? read(ends[0], message + used, room) : read(ends[0], rest, sizeof rest);
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                break;
            if (room)
                used += (size_t)n;
        }
        message[used] = '\0';
        while (trace_temporary_wait(child, status) < 0)
            if (errno != EINTR) {
                error = errno;
                break;
            }
    }
    close(ends[0]);
    return error;
}

/* gnuplot prints the statement, a mark under it, then `"FILE" line N: message`. The first
 * such line that is no warning, or the first one with letters; FILE with the name that it will have. */
static void first_message(char *line, size_t size, char *message, const char *script, const char *prefix)
{
    const char *best = NULL, *any = NULL;
    char *rest;
    for (char *s = strtok_r(message, "\n", &rest); s; s = strtok_r(NULL, "\n", &rest)) {
        if (!any && strspn(s, " \t^") < strlen(s))
            any = s + strspn(s, " \t^");
        if (!best && strstr(s, " line ") && strstr(s, ": ") && !strstr(s, ": warning:"))
            best = s + strspn(s, " \t");
    }
    const char *said = best ? best : any ? any : "no message", *name = strstr(said, script);
    char *named = name ? need_format("%.*s%s.gp%s", (int)(name - said), said, prefix, name + strlen(script)) : NULL;
    escape_text(line, size, named ? named : said);
    free(named);
}

/* Whether a figure ends as its kind does: gnuplot says nothing of a full disk. -1 and errno if it cannot be read. */
static int is_whole(const char *path, const char *end)
{
    const size_t n = strlen(end);
    char last[16];
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const uint64_t size = fd >= 0 && fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
    ssize_t got = fd < 0 ? -1 : trace_whole_read_at(fd, last, sizeof last, size > sizeof last ? size - sizeof last : 0);
    const int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    if (got < 0)
        return -1;
    while (got && (last[got - 1] == '\n' || last[got - 1] == '\r'))
        got--;
    return got >= (ssize_t)n && memcmp(last + got - n, end, n) == 0;
}

/* cairo before 1.17 writes the time of day into a PDF where it can be blanked out. 0, or -1 and errno. */
static int remove_date(const char *path)
{
    static const char key[] = "/CreationDate (";
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : trace_whole_stream(fd, "r+", NULL);
    if (!f) {
        const int why = errno;
        if (fd >= 0)
            close(fd);
        errno = why;
        return -1;
    }
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
    int bad = ferror(f);
    bad |= fclose(f);
    return close(fd) != 0 || bad ? -1 : 0;
}

/* ---- one figure ---- */

typedef struct drawing {
    char *directory;                              /* beside the figures: where gnuplot puts them first */
    char *script, *settings;                      /* arguments of gnuplot                              */
    char *drawn[PLOT_DRAWN], *wanted[PLOT_DRAWN]; /* first and final names; NULL: not this file        */
    temporary folder, figures[PLOT_DRAWN];
} drawing;

static void drawing_clear(drawing *w)
{
    for (int i = 0; i < PLOT_DRAWN; i++)
        trace_temporary_remove(&w->figures[i]); /* what gnuplot drew */
    trace_temporary_remove(&w->folder);
    for (int i = 0; i < PLOT_DRAWN; i++) {
        free(w->drawn[i]);
        free(w->wanted[i]);
    }
    free(w->settings);
    free(w->script);
    free(w->directory);
}

/* In front of a path, so that it is never an option, a pipe, ... */
static const char *here(const char *path)
{
    return strchr("./", path[0]) ? "" : "./";
}

/* All names; the directory is made, which gnuplot goes to: a figure for LaTeX has the name of its picture as gnuplot was told it.
 * -1 after a message. */
static int drawing_begin(drawing *w, const plot_files *f)
{
    const char *prefix = f->prefix;
    memset(w, 0, sizeof *w);
    w->directory = need_format("%s%s.XXXXXX", here(prefix), prefix);
    if (trace_temporary_folder(&w->folder, w->directory))
        return fail(EXIT_IO, "%s: %s", w->directory, text_error(errno));
    w->script = realpath(f->script, NULL);
    char *data = w->script ? realpath(f->data, NULL) : NULL;
    if (!data)
        return fail(EXIT_IO, "%s: %s", f->script, text_error(errno));
    char *figure = need_format("./%s", plot_base(prefix));
    char *quoted[3] = {plot_quote(w->directory), plot_quote(figure), plot_quote(data)};
    w->settings = need_format("cd %s; figure = %s; data = %s", quoted[0], quoted[1], quoted[2]);
    for (int i = 0; i < PLOT_DRAWN; i++)
        if (f->types & plot_files_drawn[i].type) {
            w->drawn[i] = need_format("%s/%s%s", w->directory, plot_base(prefix), plot_files_drawn[i].suffix);
            w->wanted[i] = need_format("%s%s", prefix, plot_files_drawn[i].suffix);
            trace_temporary_expect(&w->figures[i], w->drawn[i]);
        }
    for (int i = 0; i < 3; i++)
        free(quoted[i]);
    free(figure);
    free(data);
    return 0;
}

static void name_of_program(char program[4096])
{
    const char *wish = getenv("MPSIM_GNUPLOT");
    snprintf(program, 4096, "%s", wish && *wish ? wish : "gnuplot");
}

/* Whether what was to be run was not there. Of a name that is in no folder of PATH the system says EACCES, too: where one of
 * the folders may not be entered. */
static int is_missing(int error, int status)
{
    return error == ENOENT || error == EACCES || (!error && WIFEXITED(status) && WEXITSTATUS(status) == 127);
}

int plot_has_gnuplot(void)
{
    char message[MESSAGE_SIZE], program[4096], version[] = "--version";
    char *argv[] = {program, version, NULL};
    int status = 0;
    name_of_program(program);
    const int error = run(argv, message, &status);
    return !is_missing(error, status);
}

/* Where in an SVG the bytes so far end. */
typedef struct markup {
    int begun;    /* characters of what begins a section of characters as they are */
    int section;  /* in such a section */
    int brackets; /* 2: "]]" came last */
} markup;

/* In a text gnuplot leaves '>' as it is. Behind "]]" XML takes that for the end of a section, unless it is a reference. */
static int put_markup(outfile *to, markup *m, const unsigned char *p, size_t n, trace_error *error)
{
    static const char begin[] = "<![CDATA[";
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        const int ends = p[i] == '>' && m->brackets == 2;
        m->brackets = p[i] != ']' ? 0 : m->brackets < 2 ? m->brackets + 1 : 2;
        m->begun = p[i] == (unsigned char)begin[m->begun] ? m->begun + 1 : p[i] == '<';
        if (ends && !m->section) {
            if (trace_outfile_write(to, p + from, i - from, error) || trace_outfile_write(to, "&gt;", 4, error))
                return -1;
            from = i + 1;
        }
        m->section = m->section ? !ends : !begin[m->begun];
        m->begun = begin[m->begun] ? m->begun : 0;
    }
    return trace_outfile_write(to, p + from, n - from, error);
}

/* The bytes of a figure that was drawn, into a file that waits under a temporary name. */
static int copy_figure(outfile *to, const char *drawn, int is_svg, trace_error *error)
{
    unsigned char bytes[16 << 10];
    markup m = {0};
    ssize_t n = -1;
    int bad = 0;
    const int fd = open(drawn, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    while (fd >= 0 && !bad && ((n = read(fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR)))
        bad = n > 0 &&
              (is_svg ? put_markup(to, &m, bytes, (size_t)n, error) : trace_outfile_write(to, bytes, (size_t)n, error));
    const int why = errno;
    if (fd >= 0)
        close(fd);
    return bad     ? -1
           : n < 0 ? trace_error_set(error, EXIT_IO, drawn, UINT64_MAX, "%s", text_error(why))
                   : trace_outfile_finish(to, error);
}

static int is_svg(int i)
{
    return strcmp(plot_files_drawn[i].end, "</svg>") == 0;
}

/* The figures that were drawn to their places, as any other output: none of them where one cannot be written. */
static int put_figures(const drawing *w)
{
    trace_error error;
    outfile *held[PLOT_DRAWN] = {NULL};
    int bad = 0;
    for (int i = 0; i < PLOT_DRAWN && !bad; i++)
        if (w->drawn[i])
            bad = !(held[i] = trace_outfile_open(w->wanted[i], &error)) ||
                  copy_figure(held[i], w->drawn[i], is_svg(i), &error);
    for (int i = 0; i < PLOT_DRAWN; i++)
        if (bad)
            trace_outfile_abandon(held[i]);
        else if (held[i])
            bad = trace_outfile_close(held[i], &error) != 0;
    return bad ? fail(error.exit, "%s", error.text) : EXIT_OK;
}

/* Run gnuplot and look at what it left. */
static int drawing_run(const drawing *w, const plot_files *f, int *use)
{
    char message[MESSAGE_SIZE] = "", line[300], program[4096];
    char d_flag[] = "-d", e_flag[] = "-e"; /* -d: no settings of the user or the host */
    char *argv[] = {program, d_flag, e_flag, w->settings, w->script, NULL};
    int status = 0;
    name_of_program(program);
    const int error = run(argv, message, &status);
    *use = is_missing(error, status);
    if (*use)
        return fail(EXIT_IO, "%s: %s, but %s.gp and %s.dat are written: install gnuplot or set MPSIM_GNUPLOT", program,
                    error == EACCES ? "not found, or it may not be run" : "not found", f->prefix, f->prefix);
    if (error)
        return fail(EXIT_IO, "%s: %s", program, text_error(error));
    first_message(line, sizeof line, message, w->script, f->prefix);
    if (!WIFEXITED(status))
        return fail(EXIT_IO, "%s: killed by signal %d: %s", program, WTERMSIG(status), line);
    *use = WEXITSTATUS(status) != 0;
    if (*use)
        return fail(EXIT_IO, "%s: failed: %s", program, line);
    for (int i = 0; i < PLOT_DRAWN; i++) {
        const int whole = w->drawn[i] ? is_whole(w->drawn[i], plot_files_drawn[i].end) : 1;
        const char *kind = strrchr(plot_files_drawn[i].suffix, '.') + 1;
        if (whole < 0 && errno != ENOENT)
            return fail(EXIT_IO, "%s: %s", w->drawn[i], text_error(errno));
        if (whole < 0)
            return fail(EXIT_IO, "%s: drew no %s: %s", program, kind, line);
        if (!whole)
            return fail(EXIT_IO, "%s: the %s is not complete, the disk may be full: %s", program, kind, line);
    }
    return EXIT_OK;
}

int plot_gnuplot(const plot_files *f, int *use)
{
    drawing w;
    int code = EXIT_IO;
    *use = 0;
    if (drawing_begin(&w, f) == 0) {
        code = drawing_run(&w, f, use);
        for (int i = 0; i < PLOT_DRAWN; i++)
            if (code == EXIT_OK && w.drawn[i] && strcmp(plot_files_drawn[i].end, "%%EOF") == 0 &&
                remove_date(w.drawn[i]) != 0)
                code = fail(EXIT_IO, "%s: %s", w.drawn[i], text_error(errno));
        if (code == EXIT_OK)
            code = put_figures(&w);
    }
    drawing_clear(&w);
    return code;
}
