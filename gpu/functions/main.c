/* main.c -- mpsim-gpu-functions: every result of the special function unit (functions.h), each question an item of a worker
 * process. Exit: 0; 2: usage; 4: an item, the device or a file failed; 77: no device. */
#include "../validation/program/worker.h"
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FINE = 0, USAGE = 2, TROUBLE = 4, NO_DEVICE = 77 };

/* ---- items: first all digests, which are quick; then tables; then distances, which are the device's longest work ---- */

typedef struct item {
    gpu_outcome *outcome;
    int operation;
    size_t table; /* its number, or SIZE_MAX */
    int is_distances;
} item;

static item item_at(gpu_functions_session *s, size_t i)
{
    item x = {NULL, 0, SIZE_MAX, 0};
    if (i < GPU_OPERATIONS) {
        x.operation = (int)i;
        x.outcome = &s->digests_of[i];
    } else if (i < GPU_OPERATIONS + gpu_tables()) {
        x.table = i - GPU_OPERATIONS;
        x.operation = gpu_table_at(x.table).operation;
        x.outcome = &s->table_of[x.table];
    } else {
        x.is_distances = 1;
        x.operation = (int)(i - GPU_OPERATIONS - gpu_tables());
        x.outcome = &s->distances_of[x.operation];
    }
    return x;
}

static size_t count(void *context)
{
    (void)context;
    return GPU_OPERATIONS + gpu_tables() + GPU_FUNCTIONS;
}

static int is_wanted(void *context, size_t i)
{
    gpu_functions_session *s = context;
    const char *only = s->options.only;
    return !only || strstr(gpu_operation_at(item_at(s, i).operation)->name, only) != NULL;
}

static double seconds(void *context, size_t i)
{
    (void)i;
    return ((gpu_functions_session *)context)->options.limit;
}

/* ---- in a worker ---- */

static int open_device(void *context)
{
    gpu_functions_session *s = context;
    return gpu_functions_open(&s->device, s->refused, sizeof s->refused);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* An item that failed may have lost the context: another process goes on. */
static int run(void *context, size_t i)
{
    gpu_functions_session *s = context;
    const item x = item_at(s, i);
    gpu_outcome *const o = x.outcome;
    const double began = now();
    int failed = 0;
    if (x.table != SIZE_MAX)
        gpu_functions_keep(s, x.table);
    else if (x.is_distances)
        failed = gpu_functions_distances((gpu_function)x.operation, &s->extent, s->distances[x.operation], o->text,
                                         sizeof o->text);
    else
        failed = gpu_functions_digests(x.operation, &s->extent, s->digests[x.operation], o->text, sizeof o->text);
    if (x.table == SIZE_MAX)
        o->status = failed ? GPU_FAILED : GPU_DONE;
    o->seconds = now() - began;
    o->is_asked = 1;
    return o->status == GPU_FAILED ? -1 : 0;
}

/* ---- in the caller: files, as they grow ---- */

static void complain(gpu_functions_session *s, const char *path)
{
    fprintf(stderr, "mpsim-gpu-functions: %s: %s\n", path, strerror(errno));
    s->trouble = s->is_unwritable = 1;
}

/* Behind what the file has. */
static void write_tables(gpu_functions_session *s)
{
    if (!s->options.tables || (s->written && s->written == s->used))
        return;
    FILE *f = fopen(s->options.tables, s->written ? "ab" : "wb");
    const size_t more = s->used - s->written;
    int bad = !f || fwrite(s->packed + s->written, 1, more, f) != more;
    bad |= f && fclose(f) != 0;
    s->written = s->used;
    if (bad)
        complain(s, s->options.tables);
}

static void write_record(gpu_functions_session *s, int is_complete)
{
    char part[1024];
    if (!s->options.output)
        return;
    snprintf(part, sizeof part, "%s.part", s->options.output);
    FILE *f = fopen(part, "w");
    int bad = !f || gpu_functions_write(f, s) != 0;
    bad |= f && fclose(f) != 0;
    bad = bad || (is_complete && rename(part, s->options.output) != 0);
    if (bad)
        complain(s, part);
}

static int opened(void *context)
{
    gpu_functions_session *s = context;
    if (!s->is_met) {
        printf("device: %s, sm_%d, driver %s\n", s->device.name, s->device.sm, s->device.driver_name);
        write_tables(s);
        write_record(s, 0);
    }
    s->is_met = 1;
    return s->is_unwritable ? -1 : 0;
}

static void tell(gpu_functions_session *s, const item *x)
{
    static const char *const names[] = {"done", "skipped", "FAILED"};
    const gpu_outcome *o = x->outcome;
    printf("%-24s %-9s %-7s %6.3f s", gpu_operation_at(x->operation)->name,
           x->table != SIZE_MAX ? "table"
           : x->is_distances    ? "distances"
                                : "digests",
           names[o->status], o->seconds);
    if (o->status == GPU_DONE && x->table != SIZE_MAX)
        printf("  from %08x: %zu bytes", (unsigned)gpu_table_at(x->table).first, s->table[x->table].bytes);
    printf("%s%s\n", o->text[0] ? ": " : "", o->text);
}

static void done(void *context, size_t i, int spoilt)
{
    gpu_functions_session *s = context;
    const item x = item_at(s, i);
    s->trouble |= spoilt;
    tell(s, &x);
    write_tables(s);
    write_record(s, 0);
}

static void failed(void *context, size_t i, const char *why)
{
    gpu_functions_session *s = context;
    gpu_outcome *const o = item_at(s, i).outcome;
    o->is_asked = 1;
    o->status = GPU_FAILED;
    snprintf(o->text, sizeof o->text, "%s", why);
    done(s, i, 1);
}

/* ---- the program ---- */

static int usage(FILE *to, int status)
{
    fprintf(to, "usage: mpsim-gpu-functions [--output FILE] [--tables FILE] [--most BYTES] [--only WORD] [--tiny]\n"
                "       [--limit SECONDS] [--one-process]\n"
                "Asks a CUDA device for every result of ex2, rcp, rsqrt, lg2, sin, cos, tanh, sqrt and of approximate\n"
                "divisions.\n"
                "  --output FILE   the record, JSON\n"
                "  --tables FILE   results of some binades, packed\n"
                "  --most BYTES    of tables at most (default: 16777216); others are left out\n"
                "  --only WORD     operations whose names contain it\n"
                "  --tiny          few operands, for tests\n");
    return status;
}

static int take(gpu_functions_options *o, const char *name, const char *value)
{
    if (strcmp(name, "--output") == 0)
        o->output = value;
    else if (strcmp(name, "--tables") == 0)
        o->tables = value;
    else if (strcmp(name, "--only") == 0)
        o->only = value;
    else if (strcmp(name, "--most") == 0)
        o->most = (size_t)strtoull(value, NULL, 10);
    else if (strcmp(name, "--limit") == 0)
        o->limit = strtod(value, NULL);
    else
        return 0;
    return o->most >= 4096 && o->most <= (size_t)1 << 30 && o->limit > 0;
}

/* 0, or the exit code plus 1. */
static int parse(gpu_functions_options *o, int argc, char **argv)
{
    const gpu_functions_options defaults = {NULL, NULL, NULL, 16777216, 60, 0, 0};
    *o = defaults;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--tiny") == 0)
            o->tiny = 1;
        else if (strcmp(argv[i], "--one-process") == 0)
            o->one_process = 1;
        else if (strcmp(argv[i], "--help") == 0)
            return 1 + usage(stdout, FINE);
        else if (i + 1 < argc && take(o, argv[i], argv[i + 1]))
            i++;
        else
            return 1 + usage(stderr, USAGE);
    }
    return 0;
}

static int run_all(gpu_functions_session *s)
{
    const gpu_items items = {.context = s,
                             .isolated = !s->options.one_process,
                             .open_seconds = 120,
                             .open = open_device,
                             .opened = opened,
                             .run = run,
                             .count = count,
                             .is_wanted = is_wanted,
                             .seconds = seconds,
                             .done = done,
                             .failed = failed};
    char why[256] = "";
    const int stopped = gpu_work(&items, why, sizeof why);
    const char *reason = s->refused[0] ? s->refused : why;
    if (stopped && !s->is_met) {
        printf("SKIP: %s\n", reason);
        return NO_DEVICE;
    }
    if (stopped && reason[0])
        fprintf(stderr, "mpsim-gpu-functions: %s\n", reason);
    if (!stopped)
        write_record(s, 1);
    return stopped || s->trouble ? TROUBLE : FINE;
}

int main(int argc, char **argv)
{
    gpu_functions_options options;
    const int stop = parse(&options, argc, argv);
    if (stop)
        return stop - 1;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    gpu_functions_session *s = gpu_shared(sizeof *s);
    uint8_t *packed = gpu_shared(options.most);
    if (!s || !packed) {
        fprintf(stderr, "mpsim-gpu-functions: out of memory\n");
        return TROUBLE;
    }
    s->options = options;
    s->packed = packed;
    gpu_extent_of(&s->extent, options.tiny);
    const time_t t = time(NULL);
    strftime(s->date, sizeof s->date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&t));
    return run_all(s);
}
