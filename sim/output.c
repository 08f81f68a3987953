/* output.c -- see output.h. */
#include "output.h"

#include "options.h"
#include "trace/outfile.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int output_open_stream(output *o, const char *path)
{
    if (path && strcmp(path, "-") != 0)
        return output_open(o, path);
    o->path = NULL;
    o->file = stdout;
    return 0;
}

/* Say early what would fail late: a directory, or a folder that cannot be written. */
static int check_path(const char *path)
{
    struct stat st;
    char folder[4096] = ".";
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 0;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return fail(EXIT_IO, "%s: %s", path, strerror(EISDIR));
    if (slash && n < sizeof folder) {
        memcpy(folder, path, n ? n : 1);
        folder[n ? n : 1] = '\0';
    }
    if (access(folder, W_OK) != 0)
        return fail(EXIT_IO, "%s: %s", path, strerror(errno));
    return 0;
}

int output_open(output *o, const char *path)
{
    o->file = NULL;
    o->path = path ? path : "-";
    if (strcmp(o->path, "-") != 0) {
        const int code = check_path(o->path);
        if (code)
            return code;
    }
    o->file = tmpfile();
    return o->file ? 0 : fail(EXIT_IO, "temporary file: %s", strerror(errno));
}

/* Copy the finished temporary file to its destination; closes both. */
static int deliver(output *o)
{
    char block[1 << 14];
    size_t n;
    trace_error error;
    int bad = 0;
    errno = 0;
    if (fflush(o->file) != 0 || ferror(o->file) || fseek(o->file, 0, SEEK_SET) != 0) {
        output_abandon(o);
        return fail(EXIT_IO, "temporary file: %s", strerror(errno ? errno : EIO));
    }
    outfile *to = outfile_open(o->path, &error);
    while (to && !bad && (n = fread(block, 1, sizeof block, o->file)) > 0)
        bad = outfile_write(to, block, n, &error);
    fclose(o->file);
    if (bad) {
        const int error_number = errno;
        outfile_abandon(to);
        errno = error_number;
    }
    if (to && !bad && outfile_close(to, &error) == 0)
        return 0;
    return errno == EPIPE ? EXIT_IO : fail(error.exit, "%s", error.text);
}

int output_close(output *o)
{
    if (o->path)
        return deliver(o);
    errno = 0;
    if (fflush(o->file) == 0 && !ferror(o->file))
        return 0;
    return errno == EPIPE ? EXIT_IO : fail(EXIT_IO, "standard output: %s", strerror(errno));
}

void output_abandon(output *o)
{
    if (o->path)
        fclose(o->file);
}
