/* unnamed.c -- see unnamed.h. */
#include "unnamed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#include <sys/statvfs.h>
#include <unistd.h>
#include <fcntl.h>

enum { NAME = 4096 };

static const char *own;
static void (*before)(void), (*after)(void);

void trace_unnamed_in(const char *folder)
{
    own = folder;
}

void trace_unnamed_guard(void (*enter)(void), void (*leave)(void))
{
    before = enter;
    after = leave;
}

const char *trace_unnamed_place(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

int trace_unnamed_file(void)
{
    char name[NAME];
    if ((size_t)snprintf(name, NAME, "%s/mpsim-XXXXXX", own ? own : trace_unnamed_place()) >= NAME) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (before)
        before();
    const int fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(name);
    if (after)
        after();
    return fd;
}

int trace_unnamed_text(void)
{
    int fd = trace_unnamed_file();
#ifdef __linux__
    const int why = errno;
    if (fd < 0 && (why == ENOENT || why == ENOTDIR || why == EACCES || why == EROFS || why == EPERM || why == ENOSPC)) {
        fd = memfd_create("mpsim", MFD_CLOEXEC);
        errno = why;
    }
#endif
    return fd;
}

uint64_t trace_unnamed_room(int fd)
{
    struct statvfs v;
    if (fstatvfs(fd, &v))
        return UINT64_MAX; /* writing says what is wrong */
    const uint64_t unit = v.f_frsize, blocks = v.f_bavail - v.f_bavail / 16;
    return unit && blocks > UINT64_MAX / unit ? UINT64_MAX : blocks * unit;
}
