/* output.c -- see output.h. */
#include "output.h"

#include "options.h"
#include "trace/outfile.h"

#include <errno.h>
#include <string.h>

int output_open_stream(output *o, const char *path)
{
    if (path && strcmp(path, "-") != 0)
        return output_open(o, path);
    o->to = NULL;
    o->file = stdout;
    return 0;
}

int output_open(output *o, const char *path)
{
    trace_error error;
    o->file = NULL;
    o->to = outfile_open(path ? path : "-", &error);
    if (!o->to)
        return fail(error.exit, "%s", error.text);
    o->file = tmpfile();
    if (!o->file) {
        outfile_abandon(o->to);
        return fail(EXIT_IO, "temporary file: %s", strerror(errno));
    }
    return 0;
}

/* Copy the finished temporary file to its destination; closes both. */
static int deliver(output *o)
{
    char block[1 << 14];
    size_t n;
    trace_error error;
    errno = 0;
    if (fflush(o->file) != 0 || ferror(o->file) || fseek(o->file, 0, SEEK_SET) != 0) {
        output_abandon(o);
        return fail(EXIT_IO, "temporary file: %s", strerror(errno ? errno : EIO));
    }
    while ((n = fread(block, 1, sizeof block, o->file)) > 0)
        if (outfile_write(o->to, block, n, &error)) {
            const int gone = errno == EPIPE;
            output_abandon(o);
            return gone ? EXIT_IO : fail(error.exit, "%s", error.text);
        }
    fclose(o->file);
    if (outfile_close(o->to, &error))
        return errno == EPIPE ? EXIT_IO : fail(error.exit, "%s", error.text);
    return 0;
}

int output_close(output *o)
{
    if (o->to)
        return deliver(o);
    errno = 0;
    if (fflush(o->file) == 0 && !ferror(o->file))
        return 0;
    return errno == EPIPE ? EXIT_IO : fail(EXIT_IO, "standard output: %s", strerror(errno));
}

void output_abandon(output *o)
{
    if (!o->to)
        return;
    fclose(o->file);
    outfile_abandon(o->to);
}
