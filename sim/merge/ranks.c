/* ranks.c -- see ranks.h.
 *
 * A process writes what its shard found to an unnamed temporary file; the first takes these one after the other, behind
 * a head of its own, and what results is a part that has all shards. So memory is that of a process that works
 * alone. Errors have the order of the shards, which is that of the files. */
#include "ranks.h"

#include "../process/world.h"
#include "../stat/cmd.h"
#include "../stat/shard.h"
#include "../text/words.h"
#include "../trace/unnamed.h"
#include "merge.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static FILE *open_temporary(void)
{
    const int fd = trace_unnamed_file();
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w+");
    if (f)
        return f;
    fail(EXIT_IO, "a temporary file in %s: %s", trace_unnamed_place(), text_error(errno));
    if (fd >= 0)
        close(fd);
    return NULL;
}

static int failed_temporary(void)
{
    return fail(EXIT_IO, "a temporary file in %s: %s", trace_unnamed_place(), text_error(errno ? errno : EIO));
}

/* What a single process looks at before it reads: the conditions of --fail-if, the output. */
static int check(const shards *s, const stat_form *form)
{
    tally t;
    const int code = stat_tally_init(&t, "stat", s->settings, &form->fail_if, &s->targets);
    stat_tally_clear(&t);
    return code ? code : output_check(form->out.path);
}

/* The head: its bytes. */
static int write_head(const shards *s, FILE *to, off_t *bytes)
{
    part_writer w;
    stat_part_write_head(&w, to, &s->head);
    if (stat_part_write_finish(&w))
        return fail(EXIT_IO, "out of memory");
    errno = 0;
    *bytes = ftello(to);
    return *bytes < 0 ? failed_temporary() : 0;
}

/* The shard of this process, without the head, which those of others repeat: from where the file then stands. */
static int write_mine(shards *s, FILE *mine, uint64_t *bytes)
{
    off_t head, end;
    int code = write_head(s, mine, &head);
    if (code)
        return code;
    rewind(mine);
    code = stat_shards_write(s, (uint64_t)world_rank() + 1, mine);
    if (code && code != EXIT_PARTIAL)
        return code;
    errno = 0;
    if (fflush(mine) != 0 || ferror(mine) || (end = ftello(mine)) < head || fseeko(mine, head, SEEK_SET) != 0)
        return failed_temporary();
    *bytes = (uint64_t)(end - head);
    return 0;
}

static int collect(shards *s, const stat_form *form, FILE *mine, FILE *all)
{
    const part_source everything = {.name = "the parts of all ranks", .file = all};
    uint64_t bytes = 0;
    off_t head;
    int code = write_mine(s, mine, &bytes);
    s->head.sections = s->n;
    if (!code)
        code = write_head(s, all, &head);
    if (!code)
        code = world_stream(mine, bytes, all);
    if (code || world_rank())
        return code;
    world_forget(); /* files that failed: the report tells them in their order */
    errno = 0;
    if (fflush(all) != 0 || ferror(all))
        return failed_temporary();
    return merge_report("stat", &everything, 1, form);
}

static int stat_ranks(const stat_settings *settings, const stat_form *form, char **operands, int n)
{
    shards s;
    FILE *mine = NULL, *all = NULL;
    int code = stat_shards_open(&s, settings, operands, n, (uint64_t)world_size());
    if (!code)
        code = check(&s, form);
    if (!code && (!(mine = open_temporary()) || !(all = open_temporary())))
        code = EXIT_IO;
    if (!code) {
        world_expect(s.head.digest);
        world_expect(s.head.bytes);
        code = collect(&s, form, mine, all);
    }
    if (mine)
        fclose(mine);
    if (all)
        fclose(all);
    stat_shards_close(&s);
    return code;
}

int cmd_stat_ranks(const command *self, int argc, char **argv)
{
    return stat_command(self, argc, argv, world_size() > 1 ? stat_ranks : stat_files);
}
