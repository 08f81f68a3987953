/* unzip.c -- libzip, which unpacks the members of zip archives. */
#include "impl.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

enum { NO_MEMORY_OF_ZLIB = -4 }; /* Z_MEM_ERROR */

static int failed(const trace *t, zip_error_t *z, const char *what, trace_error *error)
{
    const int code = zip_error_code_zip(z);
    const int system = zip_error_code_system(z);
    if (code == ZIP_ER_MEMORY || code == ZIP_ER_NOZIP || /* that it is no zip file was told by trace_zip_directory */
        (code == ZIP_ER_ZLIB && system == NO_MEMORY_OF_ZLIB) ||
        (zip_error_system_type(z) == ZIP_ET_SYS && system == ENOMEM))
        return trace_no_memory(t, error);
    if (code == ZIP_ER_CRC)
        return trace_fail(t, error, TRACE_NO_OFFSET, "wrong CRC: the data are damaged");
    if (code == ZIP_ER_READ && system != 0)
        return trace_error_set(error, TRACE_EXIT_IO, t->path, TRACE_NO_OFFSET, "cannot read: %s",
                               zip_error_strerror(z));
    return trace_fail(t, error, TRACE_NO_OFFSET, "%s: %s", what, zip_error_strerror(z));
}

trace_unzip *trace_unzip_open(const trace *t, trace_error *error)
{
    int code = 0;
    if (t->is_section) {
        trace_fail(t, error, 0, "packed members are not read here");
        return NULL;
    }
    const int fd = fcntl(t->fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0) {
        trace_error_io(error, t->path, TRACE_NO_OFFSET, "cannot read");
        return NULL;
    }
    zip_t *z = zip_fdopen(fd, ZIP_CHECKCONS, &code);
    if (z)
        return z;
    close(fd);
    /* NOENT: an extra field that a local header needs is missing */
    if (code == ZIP_ER_INCONS || code == ZIP_ER_NOENT) {
        trace_fail(t, error, TRACE_NO_OFFSET,
                   "the zip archive is not consistent: local headers contradict the directory");
        return NULL;
    }
    zip_error_t e;
    zip_error_init_with_code(&e, code);
    failed(t, &e, "the zip archive is not consistent", error);
    zip_error_fini(&e);
    return NULL;
}

void trace_unzip_close(trace_unzip *z)
{
    if (z)
        zip_discard(z);
}

int trace_unzip_failed(const trace *t, trace_unzip *z, const char *what, trace_error *error)
{
    return failed(t, zip_get_error(z), what, error);
}

const char *trace_unzip_name(trace_unzip *z, uint64_t index)
{
    return zip_get_name(z, index, ZIP_FL_ENC_RAW);
}

trace_unzipped *trace_unzip_member(const trace *t, trace_unzip *z, uint64_t index, trace_error *error)
{
    zip_file_t *file = zip_fopen_index(z, index, 0);
    if (!file)
        trace_unzip_failed(t, z, "cannot open the member", error);
    return file;
}

int trace_unzip_bytes(const trace *t, trace_unzipped *file, void *p, size_t n, uint64_t at, trace_error *error)
{
    for (size_t got = 0; got < n;) {
        const zip_int64_t r = zip_fread(file, (char *)p + got, n - got);
        if (r < 0)
            return failed(t, zip_file_get_error(file), "cannot unpack", error);
        if (r == 0)
            return trace_fail(t, error, at + got, "the member ends here, before the size that the zip directory has");
        got += (size_t)r;
    }
    return 0;
}

/* libzip compares the CRC when it meets the end. */
int trace_unzip_end(const trace *t, trace_unzipped *file, uint64_t at, trace_error *error)
{
    char beyond;
    const zip_int64_t r = zip_fread(file, &beyond, 1);
    if (r < 0)
        return failed(t, zip_file_get_error(file), "cannot unpack", error);
    if (r > 0)
        return trace_fail(t, error, at, "the member is longer than the zip directory says");
    return 0;
}

void trace_unzip_end_member(trace_unzipped *file)
{
    if (file)
        zip_fclose(file);
}
