/* inputs.c -- see inputs.h. */
#include "inputs.h"

#include "impl.h"

#include <search.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct file {
    dev_t device;
    ino_t inode;
} file;

/* Files may be opened by several threads. */
static atomic_flag held = ATOMIC_FLAG_INIT;

static int watching, lost; /* lost: there was no memory for one */
static void *files;        /* a tree of tsearch */
static file state;         /* what may be renewed, */
static const char *renews; /* and by which output  */

static int compare(const void *pa, const void *pb)
{
    const file *a = pa, *b = pb;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return (a->inode > b->inode) - (a->inode < b->inode);
}

static void remember(const file *key)
{
    if (tfind(key, &files, compare))
        return;
    file *f = malloc(sizeof *f);
    if (f)
        *f = *key;
    if (!f || !tsearch(f, &files, compare)) {
        free(f);
        lost = 1;
    }
}

static void add(const struct stat *s)
{
    const file key = {s->st_dev, s->st_ino};
    if (!watching || !S_ISREG(s->st_mode))
        return;
    while (atomic_flag_test_and_set(&held))
        continue;
    remember(&key);
    atomic_flag_clear(&held);
}

/* "-" is that descriptor. */
static int look_at(const char *path, int standard, struct stat *s)
{
    return strcmp(path, "-") == 0 ? fstat(standard, s) : stat(path, s);
}

void trace_inputs_watch(void)
{
    watching = 1;
}

void trace_inputs_add(int fd)
{
    struct stat s;
    if (fstat(fd, &s) == 0)
        add(&s);
}

void trace_inputs_add_path(const char *path)
{
    struct stat s;
    if (path && look_at(path, STDIN_FILENO, &s) == 0)
        add(&s);
}

void trace_inputs_renew(const char *in, const char *out)
{
    struct stat s;
    if (!in || !out || look_at(in, STDIN_FILENO, &s) != 0)
        return;
    state = (file){s.st_dev, s.st_ino};
    renews = out;
}

int trace_inputs_check_file(const struct stat *s, const char *out, trace_error *error)
{
    if (!watching || !S_ISREG(s->st_mode))
        return 0;
    const file key = {s->st_dev, s->st_ino};
    const char *name = strcmp(out, "-") == 0 ? "standard output" : out;
    if (tfind(&key, &files, compare))
        return renews && strcmp(out, renews) == 0 && compare(&key, &state) == 0
                   ? 0
                   : trace_error_set(error, TRACE_EXIT_USAGE, name, TRACE_NO_OFFSET,
                                     "is an input: the output would replace it");
    return lost ? trace_error_memory(error, name) : 0;
}

int trace_inputs_check(const char *out, trace_error *error)
{
    struct stat s;
    return watching && look_at(out, STDOUT_FILENO, &s) == 0 ? trace_inputs_check_file(&s, out, error) : 0;
}
