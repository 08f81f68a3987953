/* output.c -- see output.h. */
#include "output.h"

#include "../text/screen.h"
#include "../text/words.h"
#include "../trace/inputs.h"
#include "../trace/outfile.h"
#include "../trace/temporary.h"
#include "../trace/unnamed.h"
#include "../trace/trace.h"
#include "../trace/whole.h"
#include "progress.h"
#include "world.h"
#include "host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int first_error; /* of all temporary files; 0: none */

void output_watch(void)
{
    trace_temporary_watch();
    trace_inputs_watch();
}

/* Whether files can be made and renamed in the folder of a path. */
static int folder_takes(const char *path)
{
    char folder[4096] = ".";
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 0;
    if (slash && n < sizeof folder) {
        memcpy(folder, path, n ? n : 1);
        folder[n ? n : 1] = '\0';
    }
    return access(folder, W_OK) == 0;
}

/* A directory, or what cannot be written: of a device that itself, of a file its folder. */
static int check_path(const char *path)
{
    struct stat st;
    int direct;
    if (trace_outfile_descriptor(path) >= 0)
        return 0;
    char *target = trace_outfile_target(path, &direct);
    int bad = direct ? access(path, W_OK) != 0 : !target || !folder_takes(target);
    if (direct && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        bad = 1;
        errno = EISDIR;
    }
    const int why = errno;
    free(target);
    return bad ? fail(EXIT_IO, "%s: %s", path, text_error(why)) : 0;
}

int output_check(const char *path)
{
    trace_error error;
    if (world_rank())
        return 0;
    if (trace_inputs_check(path ? path : "-", &error))
        return fail(error.exit, "%s", error.text);
    return path ? check_path(path) : 0;
}

int output_open_stream(output *o, const char *path)
{
    if (path && strcmp(path, "-") != 0 && !world_rank())
        return output_open(o, path);
    o->path = NULL;
    o->is_screen = 0;
    o->fd = -1;
    o->file = stdout;
    if (isatty(STDOUT_FILENO)) /* its lines would meet that of the progress */
        (void)progress_option("never");
    return output_check(path);
}

int output_open(output *o, const char *path)
{
    o->file = NULL;
    o->is_screen = 0;
    o->path = path && !world_rank() ? path : "-";
    const int checked = output_check(path);
    if (checked)
        return checked;
    o->fd = trace_unnamed_text();
    o->file = o->fd < 0 ? NULL : trace_whole_stream(o->fd, "w", &first_error);
    if (o->file)
        return 0;
    const int why = errno;
    if (o->fd >= 0)
        close(o->fd);
    errno = why;
    return errno == ENOMEM ? fail(EXIT_IO, "out of memory")
                           : fail(EXIT_IO, "a temporary file in %s: %s", trace_unnamed_place(), text_error(errno));
}

int output_open_report(output *o, const char *path, report_style style)
{
    const int code = output_open(o, path);
    o->is_screen = !code && style == REPORT_TEXT && strcmp(o->path, "-") == 0 && screen_columns(stdout) > 0;
    if (o->is_screen)
        screen_report(o->file);
    return code;
}

int output_failed(void)
{
    return fail(EXIT_IO, "a temporary file in %s: %s", trace_unnamed_place(),
                text_error(first_error ? first_error : EIO));
}

/* After an error of a file: a line, unless the reader of a pipe has gone. */
static int not_written(const trace_error *error)
{
    return errno == EPIPE ? EXIT_IO : fail(error->exit, "%s", error->text);
}

/* The finished temporary file, to another. */
static int copy(int from, outfile *to, trace_error *error)
{
    char block[1 << 14];
    ssize_t n;
    for (uint64_t at = 0; (n = trace_whole_read_at(from, block, sizeof block, at)) > 0; at += (uint64_t)n)
        if (trace_outfile_write(to, block, (size_t)n, error))
            return -1;
    return n == 0 ? 0 : trace_error_io(error, trace_unnamed_place(), UINT64_MAX, "a temporary file cannot be read");
}

/* Lines of `from`, those that are too wide for the terminal folded, to `to`. */
static void fold_lines(FILE *from, FILE *to)
{
    char *line = NULL;
    size_t room = 0;
    for (ssize_t n; (n = getline(&line, &room, from)) > 0;)
        screen_fold(to, screen_columns(stdout), line, (size_t)n - (line[n - 1] == '\n'));
    free(line);
}

/* Puts the text that is folded in the place of the one that was written. 0, or -1. */
static int fold(output *o)
{
    const int fd = trace_unnamed_text();
    FILE *to = fd < 0 ? NULL : trace_whole_stream(fd, "w", &first_error);
    FILE *from = lseek(o->fd, 0, SEEK_SET) < 0 ? NULL : trace_whole_stream(o->fd, "r", &first_error);
    if (from && to)
        fold_lines(from, to);
    const int bad = !from || !to || ferror(from) || fflush(to) != 0 || ferror(to);
    if (from)
        fclose(from);
    if (to)
        fclose(to);
    if (bad && fd >= 0)
        close(fd);
    if (bad)
        return -1;
    close(o->fd);
    o->fd = fd;
    return 0;
}

/* All that is written to the temporary file: 0, or -1. */
static int complete(output *o)
{
    if (o->is_screen)
        screen_end(o->file);
    return fflush(o->file) != 0 || ferror(o->file) || (o->is_screen && fold(o)) ? -1 : 0;
}

int output_hold(output *o, outfile **held)
{
    trace_error error;
    progress_end();
    if (complete(o)) {
        output_abandon(o);
        return output_failed();
    }
    *held = trace_outfile_open(o->path, &error);
    int bad = !*held || copy(o->fd, *held, &error) || trace_outfile_finish(*held, &error);
    const int number = errno;
    output_abandon(o);
    if (bad)
        trace_outfile_abandon(*held);
    errno = number;
    return bad ? not_written(&error) : 0;
}

int output_keep(outfile *held)
{
    trace_error error;
    return trace_outfile_close(held, &error) ? not_written(&error) : 0;
}

int output_close(output *o)
{
    outfile *held;
    int code;
    if (o->path) {
        code = output_hold(o, &held);
        return code ? code : output_keep(held);
    }
    progress_end();
    errno = 0;
    if (fflush(o->file) == 0 && !ferror(o->file))
        return 0;
    return errno == EPIPE ? EXIT_IO : fail(EXIT_IO, "standard output: %s", text_error(errno));
}

static int is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The folder of a path, and its last part. */
static const char *split(const char *path, char *folder, size_t size)
{
    const char *slash = strrchr(path, '/');
    const size_t n = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    snprintf(folder, size, "%.*s", n ? (int)n : 1, n ? path : ".");
    return slash ? slash + 1 : path;
}

/* Whether standard output leads to the file at a path, which then must not be replaced. */
static int leads_to(const char *path)
{
    struct stat x, y;
    return fstat(STDOUT_FILENO, &x) == 0 && S_ISREG(x.st_mode) && stat(path, &y) == 0 && is_same_file(&x, &y);
}

/* Paths of what would be replaced: files, or places for them. */
static int is_same_target(const char *a, const char *b)
{
    char folder_a[4096], folder_b[4096];
    struct stat x, y;
    const int exists = stat(a, &x) == 0;
    if ((stat(b, &y) == 0) != exists)
        return 0;
    if (exists)
        return S_ISREG(x.st_mode) && is_same_file(&x, &y);
    const char *name_a = split(a, folder_a, sizeof folder_a);
    const char *name_b = split(b, folder_b, sizeof folder_b);
    return strcmp(name_a, name_b) == 0 && stat(folder_a, &x) == 0 && stat(folder_b, &y) == 0 && is_same_file(&x, &y);
}

int output_is_same(const char *a, const char *b)
{
    int direct_a, direct_b;
    if (!a || !b)
        return 0;
    const int fd_a = trace_outfile_descriptor(a), fd_b = trace_outfile_descriptor(b);
    if (fd_a >= 0 || fd_b >= 0)
        return fd_a == fd_b || (fd_a == STDOUT_FILENO && leads_to(b)) || (fd_b == STDOUT_FILENO && leads_to(a));
    char *target_a = trace_outfile_target(a, &direct_a), *target_b = trace_outfile_target(b, &direct_b);
    const int same = target_a && target_b && is_same_target(target_a, target_b);
    free(target_a);
    free(target_b);
    return same;
}

int output_apart(const char *self, const output_named *of, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (output_is_same(of[i].path, of[k].path))
                return fail(EXIT_USAGE, "%s: %s and %s write to the same place, '%s': name two places", self,
                            of[i].what, of[k].what,
                            trace_outfile_descriptor(of[i].path) == STDOUT_FILENO ? "-" : of[i].path);
    return 0;
}

void output_done(void)
{
    screen_end(stdout);
}

void output_abandon(output *o)
{
    if (!o->path)
        return;
    if (o->is_screen)
        screen_report(NULL);
    fclose(o->file);
    close(o->fd);
}

int output_end(output *o, int code)
{
    if (!code)
        return output_close(o);
    output_abandon(o);
    return code;
}
