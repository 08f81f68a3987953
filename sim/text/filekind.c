/* filekind.c -- see filekind.h. */
#include "filekind.h"

#include <stddef.h>
#include <sys/stat.h>

const char *file_kind(mode_t mode)
{
    static const struct {
        mode_t type;
        const char *kind;
    } rows[] = {{S_IFDIR, "is a directory"},
                {S_IFIFO, "is a FIFO"},
                {S_IFCHR, "is a character device"},
                {S_IFBLK, "is a block device"},
                {S_IFSOCK, "is a socket"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if ((mode & S_IFMT) == rows[i].type)
            return rows[i].kind;
    return "is not a regular file";
}
