/* fuzz-folder.c -- the members of a zip archive as the files of a folder: checkpoints of torch.distributed and of
 * DeepSpeed's ZeRO, indexes with their files. The folder and each file in it are read or refused, and so is what they say
 * of one another. */
#include "input.h"
#include "members.h"
#include "sim/trace/trace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOME = 300 };

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[sizeof folder + MEMBER_NAME + 2];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void remove_folder(void)
{
    rmdir(folder);
}

/* In memory where there is such a place. */
static void make_folder(void)
{
    strcpy(folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/mpsim-fuzz-XXXXXX" : "/tmp/mpsim-fuzz-XXXXXX");
    must(mkdtemp(folder) != NULL);
    atexit(remove_folder);
}

static int is_file(const char *name)
{
    return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strchr(name, '/');
}

static void write_files(const members *m)
{
    for (size_t i = 0; i < m->count; i++) {
        const int fd = is_file(m->of[i].name)
                           ? open(in_folder(m->of[i].name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
                           : -1;
        if (fd < 0)
            continue;
        must(m->of[i].n == 0 || write(fd, m->of[i].bytes, m->of[i].n) == (ssize_t)m->of[i].n);
        close(fd);
    }
}

static void remove_files(const members *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (is_file(m->of[i].name))
            unlink(in_folder(m->of[i].name));
}

static void read_all(const char *path)
{
    trace_error e;
    double values[SOME];
    size_t got;
    trace *t = trace_open(path, NULL, &e);
    for (size_t i = 0; t && i < trace_count(t); i++) {
        e.exit = 3;
        strcpy(e.text, "-");
        must(trace_at(t, i)->fqn && trace_file_of(t, i));
        if (trace_select(t, i, &e) == 0)
            trace_read(t, values, SOME, &got, &e); /* fewer than there may be: a shape costs nothing */
        must(e.exit == 3 || e.exit == 4);
        must_be_line(e.text);
    }
    if (!t)
        must_be_line(e.text);
    trace_close(t);
}

/* As an operand of a command. */
static void look_below(const char *path)
{
    trace_tree tree = {.paths = NULL};
    trace_error e;
    uint64_t bytes;
    if (trace_tree_add(&tree, path, NULL, &e))
        must_be_line(e.text);
    trace_tree_sort(&tree);
    for (size_t i = 0; i < tree.count; i++)
        (void)trace_tree_bytes(tree.paths[i], &bytes);
    trace_tree_clear(&tree);
    (void)trace_folder_unread(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static members m;
    if (members_read(&m, data, n))
        return 0;
    if (!folder[0])
        make_folder();
    write_files(&m);
    look_below(folder);
    read_all(folder);
    for (size_t i = 0; i < m.count; i++)
        if (is_file(m.of[i].name) && m.of[i].n && m.of[i].bytes[0] == '{')
            read_all(in_folder(m.of[i].name));
    remove_files(&m);
    members_clear(&m);
    return 0;
}
