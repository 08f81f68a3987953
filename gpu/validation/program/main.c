/* main.c -- mpsim-gpu: everything that is asked of a CUDA device, in one run: a look at every
 * check, probes, orders, speed, checks, trainings; print what was found, write the record.
 *
 * What is cheap comes first. Every item is done in a process of its own kind (worker.h): one that
 * faults, hangs or loses the device's context costs itself and what is left of its group, the
 * instruction or kernel that it is about. The record grows as FILE.part and gets its name when it is
 * complete: a run that is cut short leaves what it found.
 *
 * Exit: see options.h. */
#include "print.h"
#include "session.h"
#include "worker.h"

#include <string.h>

/* ---- items: those of all parts, one part after the other ---- */

typedef struct item {
    const gpu_part *part;
    size_t i; /* in the part */
} item;

static size_t count_all(void *context)
{
    size_t n = 0;
    for (int k = 0; k < GPU_PARTS; k++)
        n += gpu_parts[k].count(context);
    return n;
}

static item item_at(gpu_session *s, size_t i)
{
    int k = 0;
    for (; k < GPU_PARTS - 1 && i >= gpu_parts[k].count(s); k++)
        i -= gpu_parts[k].count(s);
    return (item){&gpu_parts[k], i};
}

static int is_chosen(gpu_session *s, item x)
{
    return gpu_options_chosen(&s->options, x.part->name, x.part->item(s, x.i));
}

static int is_wanted(void *context, size_t i)
{
    gpu_session *s = context;
    return !s->ended[i] && is_chosen(s, item_at(s, i));
}

/* ---- what becomes of them ---- */

/* The rest of the group of what has failed is not tried: it would fail alike, and each costs time. */
static void give_up_group(gpu_session *s, item failed)
{
    char group[GPU_GROUP], other[GPU_GROUP], why[256];
    failed.part->group(s, failed.i, group, sizeof group);
    snprintf(why, sizeof why, "not run: %s failed in %s %s", group, failed.part->name, failed.part->item(s, failed.i));
    for (size_t i = 0; group[0] && i < count_all(s); i++) {
        const item x = item_at(s, i);
        x.part->group(s, x.i, other, sizeof other);
        if (!s->ended[i] && strcmp(group, other) == 0 && is_chosen(s, x)) {
            s->ended[i] = 1;
            x.part->skip(s, x.i, why);
        }
    }
}

/* Tables: the head when a part begins, the foot when another does. */
static void enter(gpu_session *s, const gpu_part *p)
{
    static const gpu_part *in;
    if (p == in)
        return;
    if (in && in->foot)
        in->foot(s);
    if (p && p->head)
        p->head(s);
    in = p;
}

static void finish_item(gpu_session *s, item x)
{
    enter(s, x.part);
    gpu_session_note(s, x.part->print(s, x.i));
    (void)gpu_session_write(s, 0);
}

static void done(void *context, size_t i, int spoilt)
{
    gpu_session *s = context;
    const item x = item_at(s, i);
    s->ended[i] = 1; /* it has had its turn */
    if (spoilt)
        give_up_group(s, x);
    finish_item(s, x);
}

static void failed(void *context, size_t i, const char *why)
{
    gpu_session *s = context;
    const item x = item_at(s, i);
    s->ended[i] = 1;
    x.part->fail(s, x.i, why);
    give_up_group(s, x);
    finish_item(s, x);
}

static double seconds(void *context, size_t i)
{
    gpu_session *s = context;
    return s->options.limit > 0 ? s->options.limit : item_at(s, i).part->seconds;
}

/* ---- in a worker ---- */

static int open_device(void *context)
{
    return gpu_session_device(context);
}

static int run(void *context, size_t i)
{
    gpu_session *s = context;
    const item x = item_at(s, i);
    x.part->run(s, x.i);
    return gpu_is_lost() ? -1 : 0;
}

/* ---- the program ---- */

/* The device is known: the record has its name, and a place that cannot be written is known at once. */
static int opened(void *context)
{
    gpu_session *s = context;
    if (s->is_met)
        return 0;
    s->is_met = 1;
    gpu_print_device(&s->record.device);
    gpu_session_name(s);
    return gpu_session_write(s, 0);
}

static int run_all(gpu_session *s)
{
    const gpu_items items = {.context = s,
                             .isolated = !s->options.one_process,
                             .open_seconds = 120,
                             .open = open_device,
                             .opened = opened,
                             .run = run,
                             .count = count_all,
                             .is_wanted = is_wanted,
                             .seconds = seconds,
                             .done = done,
                             .failed = failed};
    char why[256];
    const int stopped = gpu_work(&items, why, sizeof why);
    enter(s, NULL);
    if (stopped && !s->is_met) {
        printf("SKIP: %s\n", s->refused[0] ? s->refused : why);
        return GPU_NO_DEVICE;
    }
    if (stopped && (s->refused[0] || why[0])) {
        fprintf(stderr, "mpsim-gpu: %s\n", s->refused[0] ? s->refused : why);
        gpu_session_note(s, GPU_TROUBLE);
    }
    if (!stopped)
        (void)gpu_session_write(s, 1);
    return s->status;
}

int main(int argc, char **argv)
{
    gpu_options options;
    const int stop = gpu_options_parse(&options, argc, argv);
    if (stop)
        return stop - 1;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* what was found shows at once, also through a pipe */
    gpu_session *s = gpu_shared(sizeof *s);
    if (!s) {
        fprintf(stderr, "mpsim-gpu: out of memory\n");
        return GPU_TROUBLE;
    }
    s->options = options;
    if (gpu_session_begin(s) != 0) {
        fprintf(stderr, "mpsim-gpu: out of memory\n");
        return GPU_TROUBLE;
    }
    return run_all(s);
}
