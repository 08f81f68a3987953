/* inputs.c -- sizes and digests of the files that a page is about; see page.h. */
#include "page.h"

#include "../array/need.h"
#include "../process/progress.h"
#include "../text/sha256.h"
#include "../text/words.h"
#include "../trace/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AT_ONCE = 1 << 20 };

static int digest_file(page_file *f, const char *path, unsigned char *bytes, int no_digest)
{
    sha256 s;
    struct stat st;
    ssize_t n = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    sha256_init(&s);
    if (fd >= 0)
        n = fstat(fd, &st);
    if (fd >= 0 && n == 0 && S_ISDIR(st.st_mode)) { /* one trace in many files */
        close(fd);
        return trace_tree_bytes(path, &f->bytes) < 0 ? fail(EXIT_IO, "%s: %s", path, text_error(errno)) : 0;
    }
    if (fd >= 0 && n == 0 && no_digest)
        f->bytes = (uint64_t)st.st_size;
    while (fd >= 0 && n >= 0 && !no_digest && (n = trace_whole_read_at(fd, bytes, AT_ONCE, f->bytes)) > 0) {
        sha256_add(&s, bytes, (size_t)n);
        f->bytes += (uint64_t)n;
        progress_add((uint64_t)n);
    }
    const int why = errno;
    if (fd >= 0)
        close(fd);
    if (fd < 0 || n < 0)
        return fail(EXIT_IO, "%s: %s", path, text_error(why));
    if (!no_digest)
        sha256_hex(&s, f->digest);
    return 0;
}

int page_digest(page *p)
{
    unsigned char *bytes = need_memory(AT_ONCE, 1);
    int code = 0;
    p->files = need_memory(p->in.tree.count + 1, sizeof *p->files);
    for (size_t i = 0; i < p->in.tree.count && !code; i++)
        code = digest_file(&p->files[i], p->in.tree.paths[i], bytes, p->options->no_digests);
    free(bytes);
    return code;
}
