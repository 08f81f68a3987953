/* outfile.c -- see outfile.h. */
#include "outfile.h"

#include "impl.h"
#include "inputs.h"
#include "temporary.h"
#include "unnamed.h"
#include "whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/xattr.h>
#endif
#include <time.h>
#include <unistd.h>

enum { BUFFER = 256 << 10 };

struct outfile {
    char *path;       /* as the caller wrote it, for messages       */
    char *target;     /* what is replaced; NULL: nothing            */
    char *name;       /* of the file being written; NULL: no rename */
    int folder;       /* that of both, opened once: links that change later change nothing; -1: none */
    const char *last; /* the target's name there                    */
    temporary file;
    int fd;
    int waiting;    /* -1, or a file without a name: what is written at places, where the output has none */
    uint64_t begun; /* bytes before that */
    size_t fill;
    unsigned char buffer[BUFFER];
};

static int io_error(const char *path, const char *what, trace_error *error)
{
    const char *name = strcmp(path, "-") == 0 ? "standard output" : path;
    if (errno == ENOMEM) /* it is not the file */
        return trace_error_memory(error, name);
    return trace_error_io(error, name, UINT64_MAX, "%s", what);
}

static int wait_error(const char *what, trace_error *error)
{
    return trace_error_io(error, trace_unnamed_place(), UINT64_MAX, "%s a temporary file", what);
}

static void outfile_free(outfile *o)
{
    if (o->folder >= 0)
        close(o->folder);
    free(o->path);
    free(o->target);
    free(o->name);
    free(o);
}

/* A name beside the target that nobody has: creating it decides that, not the name. */
static int create_beside(outfile *o)
{
    const size_t dir = (size_t)(o->last - o->target), size = strlen(o->target) + 64;
    if (!(o->name = malloc(size)))
        return -1;
    for (unsigned i = 0; i < 100; i++) {
        struct timespec now = {0};
        clock_gettime(CLOCK_REALTIME, &now);
        /* 200: the longest name that most file systems take is 255 bytes */
        snprintf(o->name, size, "%.*s.%.200s.%lx%lx%x.tmp", (int)dir, o->target, o->last, (unsigned long)getpid(),
                 (unsigned long)now.tv_nsec, i);
        o->fd = trace_temporary_create(&o->file, o->folder, o->name + dir);
        if (o->fd >= 0 || errno != EEXIST)
            break;
    }
    return o->fd < 0 ? -1 : 0;
}

/* What a symbolic link says, seen from where the link is. */
static char *link_text(const char *path)
{
    char text[4096];
    const ssize_t n = readlink(path, text, sizeof text);
    const char *slash = strrchr(path, '/');
    const size_t folder = slash && n > 0 && text[0] != '/' ? (size_t)(slash - path) + 1 : 0;
    if (n < 0)
        return NULL;
    if ((size_t)n == sizeof text) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    char *to = malloc(folder + (size_t)n + 1);
    if (to)
        snprintf(to, folder + (size_t)n + 1, "%.*s%.*s", (int)folder, path, (int)n, text);
    return to;
}

int trace_outfile_descriptor(const char *path)
{
    return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0 ? STDOUT_FILENO
           : strcmp(path, "/dev/stderr") == 0                         ? STDERR_FILENO
                                                                      : -1;
}

char *trace_outfile_target(const char *path, int *direct)
{
    struct stat st;
    *direct = trace_outfile_descriptor(path) >= 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode));
    char *target = *direct ? NULL : strdup(path);
    for (int links = 0; target && lstat(target, &st) == 0 && S_ISLNK(st.st_mode); links++) {
        char *to = links < 40 ? link_text(target) : NULL; /* as many as Linux follows */
        if (links == 40)
            errno = ELOOP;
        free(target);
        target = to;
    }
    return target;
}

/* ---- rights ---- */

/* The access control list of a file, as the kernel has it; no bytes: there is none, the mode says all. */
typedef struct rights {
    unsigned char *list;
    size_t n;
} rights;

#ifdef __linux__
static const char list_name[] = "system.posix_acl_access";

static int no_list(void)
{
    return errno == ENODATA || errno == ENOTSUP || errno == ENOSYS;
}

/* Of a path, or of a descriptor where that is NULL. 0, or -1 with errno. */
static int read_rights(rights *r, const char *path, int fd)
{
    *r = (rights){NULL, 0};
    ssize_t n = path ? getxattr(path, list_name, NULL, 0) : fgetxattr(fd, list_name, NULL, 0);
    if (n <= 0)
        return n == 0 || no_list() ? 0 : -1;
    if (!(r->list = malloc((size_t)n)))
        return -1;
    n = path ? getxattr(path, list_name, r->list, (size_t)n) : fgetxattr(fd, list_name, r->list, (size_t)n);
    r->n = n > 0 ? (size_t)n : 0;
    return n >= 0 || no_list() ? 0 : -1;
}

static int write_rights(int fd, const rights *r)
{
    return r->n ? fsetxattr(fd, list_name, r->list, r->n, 0) : fremovexattr(fd, list_name);
}

/* What the group of the file may do, of which the mode has the most that anybody in the list may: version 2 of a list is 4 bytes of
 * it, then entries of tag, rights and number, little-endian, with a group (4) and a mask (16). */
static mode_t group_rights(const rights *r)
{
    unsigned group = 0, mask = 7;
    for (size_t i = 4; i + 8 <= r->n; i += 8) {
        group = r->list[i] == 4 ? r->list[i + 2] : group;
        mask = r->list[i] == 16 ? r->list[i + 2] : mask;
    }
    return (mode_t)(group & mask & 7) << 3;
}
#else
static int read_rights(rights *r, const char *path, int fd)
{
    (void)path;
    (void)fd;
    *r = (rights){NULL, 0};
    return 0;
}

static int write_rights(int fd, const rights *r)
{
    (void)fd;
    (void)r;
    return 0;
}

static mode_t group_rights(const rights *r)
{
    (void)r;
    return 0;
}
#endif

/* The list of the file that is replaced: a new file has that of its folder. Where it cannot be written (in the sandbox) nobody
 * gets more than before. */
static int take_list(int fd, const rights *old, const rights *new, mode_t mode)
{
    if (old->n == new->n && (!old->n || memcmp(old->list, new->list, old->n) == 0))
        return 0;
    if (write_rights(fd, old) == 0)
        return 0;
    if (errno != EPERM && errno != ENOTSUP && errno != ENOSYS)
        return -1;
    return fchmod(fd, (mode & ~(mode_t)070) | (new->n ? 0 : group_rights(old)));
}

/* The mode of the file that is replaced, setuid and setgid only where the new file is the same user's, or group's. */
static int take_rights(const outfile *o, int fd)
{
    struct stat old, new;
    rights before, after = {NULL, 0};
    if (fstatat(o->folder, o->last, &old, 0) != 0 || fstat(fd, &new) != 0)
        return 0;
    const mode_t other = (old.st_uid == new.st_uid ? 0 : S_ISUID) | (old.st_gid == new.st_gid ? 0 : S_ISGID);
    const mode_t mode = old.st_mode & 07777 & ~other;
    const int bad = read_rights(&before, o->target, -1) || fchmod(fd, mode) || read_rights(&after, NULL, fd) ||
                    take_list(fd, &before, &after, mode);
    const int why = errno;
    free(before.list);
    free(after.list);
    errno = why;
    return bad ? -1 : 0;
}

/* ---- the place of the output ---- */

/* A folder in which files are made and renamed, though nobody may list it. */
#if defined(O_PATH)
enum { FOLDER = O_PATH | O_DIRECTORY | O_CLOEXEC };
#elif defined(O_SEARCH)
enum { FOLDER = O_SEARCH | O_DIRECTORY | O_CLOEXEC };
#else
enum { FOLDER = O_RDONLY | O_DIRECTORY | O_CLOEXEC };
#endif

typedef enum opened { OPENED, FAILED, SAID, CHANGED } opened; /* FAILED: errno; SAID: *error */

static opened open_folder(outfile *o)
{
    const char *slash = strrchr(o->target, '/');
    o->last = slash ? slash + 1 : o->target;
    if (!*o->last) { /* renameat would find out, but late */
        errno = ENOENT;
        return FAILED;
    }
    char *folder = slash ? strndup(o->target, (size_t)(o->last - o->target)) : strdup(".");
    o->folder = folder ? open(folder, FOLDER) : -1;
    const int why = errno;
    free(folder);
    errno = why;
    return o->folder < 0 ? FAILED : OPENED;
}

/* What is replaced, in the folder that is open: no input, and no link or device that was not there a moment ago. */
static opened check_place(const outfile *o, trace_error *error)
{
    struct stat s;
    if (fstatat(o->folder, o->last, &s, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? OPENED : FAILED;
    if (!S_ISREG(s.st_mode))
        return CHANGED;
    return trace_inputs_check_file(&s, o->path, error) ? SAID : OPENED;
}

/* /dev/null must stay what it is; a folder makes open() fail with the reason. */
static opened open_direct(outfile *o)
{
    struct stat s;
    o->fd = open(o->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (o->fd < 0)
        return FAILED;
    if (fstat(o->fd, &s) == 0 && !S_ISREG(s.st_mode))
        return OPENED;
    close(o->fd);
    o->fd = -1;
    return CHANGED;
}

static opened open_beside(outfile *o, trace_error *error)
{
    const opened place = open_folder(o);
    const opened checked = place == OPENED ? check_place(o, error) : place;
    if (checked != OPENED)
        return checked;
    if (create_beside(o))
        return FAILED;
    if (take_rights(o, o->fd)) {
        const int why = errno;
        close(o->fd);
        trace_temporary_remove(&o->file);
        errno = why;
        return FAILED;
    }
    return OPENED;
}

static opened open_once(outfile *o, trace_error *error)
{
    int direct;
    if (o->folder >= 0)
        close(o->folder);
    free(o->target);
    o->folder = -1;
    o->target = trace_outfile_target(o->path, &direct);
    if (direct)
        return open_direct(o);
    return o->target ? open_beside(o, error) : FAILED;
}

static opened open_fd(outfile *o, trace_error *error)
{
    enum { TIMES = 100 }; /* somebody changes the links all the time */
    const int own = trace_outfile_descriptor(o->path);
    opened how = CHANGED;
    if (own >= 0) {
        if (trace_inputs_check(o->path, error))
            return SAID;
        o->fd = fcntl(own, F_DUPFD_CLOEXEC, 3);
        return o->fd < 0 ? FAILED : OPENED;
    }
    for (int i = 0; i < TIMES && how == CHANGED; i++)
        how = open_once(o, error);
    if (how == CHANGED)
        errno = EBUSY;
    return how;
}

outfile *trace_outfile_open(const char *path, trace_error *error)
{
    outfile *o = malloc(sizeof *o);
    if (!o) {
        errno = ENOMEM;
        io_error(path, "cannot write", error);
        return NULL;
    }
    o->fd = o->waiting = o->folder = -1;
    o->fill = 0;
    o->target = o->name = NULL;
    o->file.path = NULL;
    o->path = strdup(path);
    const opened how = o->path ? open_fd(o, error) : FAILED;
    if (how == OPENED)
        return o;
    if (how != SAID)
        io_error(path, "cannot write", error);
    outfile_free(o);
    return NULL;
}

static int write_all(const outfile *o, const void *p, size_t n, trace_error *error)
{
    return trace_whole_write(o->fd, p, n) ? io_error(o->path, "cannot write", error) : 0;
}

static int flush(outfile *o, trace_error *error)
{
    const size_t n = o->fill;
    o->fill = 0;
    return write_all(o, o->buffer, n, error);
}

int trace_outfile_write(outfile *o, const void *p, size_t n, trace_error *error)
{
    const int direct = n > BUFFER / 2;
    if ((direct || n > BUFFER - o->fill) && flush(o, error))
        return -1;
    if (direct)
        return write_all(o, p, n, error);
    if (n)
        memcpy(o->buffer + o->fill, p, n);
    o->fill += n;
    return 0;
}

int trace_outfile_has_places(const outfile *o)
{
    return o->name != NULL;
}

int trace_outfile_make_places(outfile *o, uint64_t begun, trace_error *error)
{
    o->begun = begun;
    if (flush(o, error))
        return -1;
    if (!o->name && (o->waiting = trace_unnamed_file()) < 0)
        return wait_error("cannot write", error);
    return 0;
}

int trace_outfile_write_at(outfile *o, uint64_t offset, const void *p, size_t n, trace_error *error)
{
    if (o->waiting < 0)
        return trace_whole_write_at(o->fd, p, n, offset) ? io_error(o->path, "cannot write", error) : 0;
    return trace_whole_write_at(o->waiting, p, n, offset) ? wait_error("cannot write", error) : 0;
}

/* What was written at places. */
static int write_waiting(outfile *o, trace_error *error)
{
    ssize_t n = o->waiting < 0 ? 0 : BUFFER;
    for (uint64_t at = o->begun; n == BUFFER; at += (uint64_t)n) {
        n = trace_whole_read_at(o->waiting, o->buffer, BUFFER, at);
        if (n < 0)
            return wait_error("cannot read", error);
        if (write_all(o, o->buffer, (size_t)n, error))
            return -1;
    }
    return 0;
}

int trace_outfile_finish(outfile *o, trace_error *error)
{
    int result = flush(o, error) || write_waiting(o, error) ? -1 : 0;
    /* what is replaced is lost at the rename: what replaces it has to be on the disk by then */
    if (result == 0 && o->name && faccessat(o->folder, o->last, F_OK, 0) == 0 && fsync(o->fd) != 0)
        result = io_error(o->path, "cannot write", error);
    /* some file systems report a full disk only now */
    if (close(o->fd) && result == 0)
        result = io_error(o->path, "cannot write", error);
    o->fd = -1;
    return result;
}

/* The rename, unless an input has got there since. Of a link that has, the link is replaced. */
static int keep(outfile *o, trace_error *error)
{
    if (check_place(o, error) == SAID)
        return -1;
    return trace_temporary_keep(&o->file, o->last) ? io_error(o->path, "cannot rename the finished file", error) : 0;
}

int trace_outfile_close(outfile *o, trace_error *error)
{
    int result = o->fd < 0 ? 0 : trace_outfile_finish(o, error);
    if (result == 0 && o->name)
        result = keep(o, error);
    trace_outfile_abandon(o);
    return result;
}

void trace_outfile_abandon(outfile *o)
{
    if (!o)
        return;
    if (o->fd >= 0)
        close(o->fd);
    if (o->waiting >= 0)
        close(o->waiting);
    trace_temporary_remove(&o->file);
    outfile_free(o);
}

const char *trace_outfile_path(const outfile *o)
{
    return o->path;
}

const char *trace_outfile_name(const outfile *o)
{
    return o->name ? o->name : o->path;
}
