/* steps.c -- see steps.h. */
#include "steps.h"

#include "../array/need.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct file_step {
    input_step said;
    size_t place;
    char *path;
} file_step;

static int64_t rank_of(const trace *t)
{
    uint64_t rank;
    const char *text = trace_metadata(t, "mpsim.rank");
    return text && parse_count(&rank, text) == 0 && rank <= INT32_MAX ? (int64_t)rank : -1;
}

static int by_step(const void *a, const void *b)
{
    const file_step *x = a, *y = b;
    if (x->said.step != y->said.step)
        return x->said.step < y->said.step ? -1 : 1;
    if (x->said.step >= 0 && x->said.rank != y->said.rank)
        return x->said.rank < y->said.rank ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Without --keep-going a file that does not open is an exit code; with it, *stays is 0. */
static int look_at(input *in, file_step *f, int *stays)
{
    trace_error error;
    *stays = 1;
    if (!input_is_file(f->path))
        return 0;
    trace *t = input_trace_open(in, f->path, &error);
    if (!t) {
        *stays = 0;
        return input_failed(in, &error);
    }
    f->said.step = trace_step(t);
    f->said.named = trace_step_of_path(t);
    f->said.rank = rank_of(t);
    twice_see(&in->twice, t);
    input_see(in, t);
    trace_close(t);
    return 0;
}

static int sort_files(input *in, file_step *files, input_step *steps)
{
    size_t kept = 0, left_out = 0;
    for (size_t i = 0; i < in->tree.count; i++) {
        file_step f = {{-1, -1, -1}, i, in->tree.paths[i]};
        int stays;
        const int code = look_at(in, &f, &stays);
        if (code)
            return code;
        if (stays)
            files[kept++] = f;
        else
            files[in->tree.count - ++left_out] = f;
    }
    for (size_t i = kept; i < in->tree.count; i++)
        free(files[i].path);
    if (kept)
        qsort(files, kept, sizeof *files, by_step);
    for (size_t i = 0; i < kept; i++) {
        in->tree.paths[i] = files[i].path;
        steps[i] = files[i].said;
    }
    in->tree.count = kept;
    return 0;
}

int input_order_steps(input *in, input_step **steps)
{
    file_step *files = need_memory(in->tree.count, sizeof *files);
    *steps = need_memory(in->tree.count, sizeof **steps);
    const int code = sort_files(in, files, *steps);
    free(files);
    in->looked = 1;
    twice_tell(&in->twice);
    unread_settle(&in->unread);
    if (code) {
        free(*steps);
        *steps = NULL;
    }
    return code;
}
