/* training.c -- see training.h. */
#include "training.h"

#include <train/digests.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 3, MOST_TIMED = 100 };

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* -1. A difference that was found stays what is reported; what happened later follows it. */
static int end(gpu_training *t, gpu_training_status status, const char *what)
{
    if (t->status == GPU_TRAINING_DIFFERS) {
        const size_t n = strlen(t->report);
        snprintf(t->report + n, sizeof t->report - n, "; then %.200s", what);
        return -1;
    }
    t->status = status;
    snprintf(t->report, sizeof t->report, "%.500s", what);
    return -1;
}

/* ---- the runs ---- */

size_t gpu_training_list(gpu_training *t, size_t max, const char *folder, char *why, size_t size)
{
    char path[1024], line[1024];
    size_t n = 0;
    snprintf(path, sizeof path, "%s/list", folder);
    FILE *f = fopen(path, "r");
    if (!f) {
        snprintf(why, size, "%s: %s", path, strerror(errno));
        return 0;
    }
    while (n < max && fgets(line, sizeof line, f)) {
        const size_t length = strcspn(line, " \t\r\n");
        if (length == 0 || line[0] == '#' || length >= sizeof t->run)
            continue;
        memset(&t[n], 0, sizeof t[n]);
        memcpy(t[n].run, line, length);
        t[n].status = GPU_TRAINING_SKIPPED;
        snprintf(t[n++].report, sizeof t->report, "not reached");
    }
    fclose(f);
    if (n == 0)
        snprintf(why, size, "%s: it names no runs", path);
    return n;
}

static int is_architecture(const char *name)
{
    mpsim_model m;
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++)
        if (m.architecture && strcmp(m.architecture, name) == 0)
            return 1;
    return 0;
}

/* The run, with the device's products and as many steps as are asked for. */
static int read_run(gpu_training *t, const char *folder, const gpu_training_how *how, train_run *r)
{
    char path[1024], line[TRAIN_ERROR], what[1400];
    snprintf(path, sizeof path, "%s/%s.run", folder, t->run);
    FILE *f = fopen(path, "r");
    int bad = !f;
    if (!f)
        snprintf(line, sizeof line, "%s", strerror(errno));
    else
        bad = train_run_read(r, f, line) != 0;
    if (f)
        fclose(f);
    if (bad) {
        snprintf(what, sizeof what, "%s: %s", path, line);
        return end(t, GPU_TRAINING_FAILED, what);
    }
    train_settings *s = &r->settings;
    if (how->arch && is_architecture(s->arch))
        snprintf(s->arch, sizeof s->arch, "%s", how->arch);
    s->steps = s->steps > how->part ? s->steps / how->part : 1;
    s->steps = s->steps < how->most ? s->steps : how->most;
    t->steps = s->steps;
    snprintf(t->arch, sizeof t->arch, "%s", s->arch);
    return 0;
}

/* ---- the file of digests ---- */

typedef struct digest_output {
    FILE *to;
    char path[1024], part[1032];
    train_digest_writer writer;
    train_step_digests now;
} digest_output;

static int open_digests(digest_output *d, gpu_training *t, const gpu_training_how *how, const train_run *r)
{
    if (!how->prefix)
        return 0;
    const char *slash = strrchr(how->prefix, '/');
    snprintf(d->path, sizeof d->path, "%s-%s.digests", how->prefix, t->run);
    snprintf(d->part, sizeof d->part, "%s.part", d->path);
    snprintf(t->digests, sizeof t->digests, "%.150s-%s.digests", slash ? slash + 1 : how->prefix, t->run);
    d->to = fopen(d->part, "w");
    char what[1100];
    if (d->to && train_digests_head(&d->writer, d->to, r, TRAIN_DIGEST_CODES) == 0) {
        snprintf(what, sizeof what, "device %.900s", how->device ? how->device : "?");
        train_digests_comment(&d->writer, what);
        return 0;
    }
    snprintf(what, sizeof what, "%s: %s", d->part, strerror(errno));
    t->digests[0] = 0;
    return end(t, GPU_TRAINING_FAILED, what);
}

/* The steps that are there get the file's name, also after a failure. */
static void close_digests(digest_output *d, gpu_training *t)
{
    train_digests_free(&d->now);
    if (!d->to)
        return;
    train_digests_end(&d->writer);
    int bad = ferror(d->to) != 0;
    bad |= fclose(d->to) != 0;
    if (bad || rename(d->part, d->path) != 0) {
        t->digests[0] = 0;
        end(t, GPU_TRAINING_FAILED, "the digests could not be written");
    }
}

/* ---- the run ---- */

static void note_step(gpu_training *t, const train_step *s)
{
    if (s->step == 0)
        t->first_loss = s->loss;
    t->last_loss = s->loss;
    t->skipped += s->skipped != 0;
}

static int step_failed(gpu_training *t, uint64_t step, const char *line)
{
    char what[TRAIN_ERROR + 64];
    snprintf(what, sizeof what, "step %llu: %s", (unsigned long long)step + 1, line);
    return end(t, GPU_TRAINING_FAILED, what);
}

/* Digests of the device's step are taken in any case: they count the tensors. */
static int digest_step(gpu_training *t, digest_output *d, train *device, const train_step *s, int tensors)
{
    char line[TRAIN_ERROR];
    if (train_digests_take(&d->now, device, s, line))
        return step_failed(t, s->step, line);
    if (d->to) {
        train_digests_write(&d->writer, &d->now, tensors);
        fflush(d->to);
    }
    return 0;
}

/* Both in step; from a difference on the device alone, since its digests are what is scarce. */
static int run_steps(gpu_training *t, digest_output *d, train *device, train *cpu, const gpu_training_how *how)
{
    char line[TRAIN_ERROR];
    train_step a, b;
    for (uint64_t i = 0; i < t->steps; i++) {
        int differs = 0;
        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        if (t->status == GPU_TRAINING_EQUAL)
            differs = train_compare_step(device, cpu, &a, &b, t->report, sizeof t->report, line);
        else if (train_next(device, &a, line))
            differs = -1;
        if (differs < 0)
            return step_failed(t, i, line);
        if (differs)
            t->status = GPU_TRAINING_DIFFERS;
        note_step(t, &a);
        if (digest_step(t, d, device, &a, i < GPU_TENSORS_STEPS || differs))
            return -1;
        if (t->status == GPU_TRAINING_EQUAL) {
            t->compared++;
            t->tensors += d->now.count;
        }
        if (how->alive)
            how->alive();
        if (a.stopped)
            break;
    }
    return 0;
}

/* ---- the device alone ---- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The median of the wall times of steps, each until the device has finished. */
static int measure(gpu_training *t, const train_run *r, train_engine *e, int timed, double *median)
{
    char line[TRAIN_ERROR];
    double seconds[MOST_TIMED];
    size_t n = 0;
    train_step s;
    train *device = train_open(r, e, 0, line);
    int code = device ? 0 : step_failed(t, 0, line);
    for (int i = 0; !code && i < timed + WARM_UP && (uint64_t)i < r->settings.steps; i++) {
        const double began = now();
        memset(&s, 0, sizeof s);
        if (train_next(device, &s, line) || e->ops->finish(e))
            code = step_failed(t, (uint64_t)i, line);
        else if (i >= WARM_UP && n < MOST_TIMED)
            seconds[n++] = now() - began;
        if (s.stopped)
            break;
    }
    if (device)
        train_close(device);
    if (!code && n) {
        qsort(seconds, n, sizeof *seconds, ascending);
        *median = seconds[n / 2];
    }
    return code;
}

static void measure_all(gpu_training *t, const train_run *r, train_engine *e, const gpu_training_how *how)
{
    if (measure(t, r, e, how->timed, &t->seconds_step) || !how->graphs)
        return;
    if (how->graphs(e, 1) == 0)
        (void)measure(t, r, e, how->timed, &t->seconds_graphs);
    (void)how->graphs(e, 0);
}

/* ---- all of it ---- */

static void run_both(gpu_training *t, const train_run *r, train_engine *device, train_engine *cpu,
                     const gpu_training_how *how)
{
    char line[TRAIN_ERROR];
    int trained = 0; /* to the end, also apart */
    digest_output d;
    memset(&d, 0, sizeof d);
    train *a = NULL, *b = train_open(r, cpu, 0, line);
    if (!b) /* as products of FP8 on an architecture without them */
        end(t, GPU_TRAINING_SKIPPED, line);
    else if ((a = train_open(r, device, 0, line)) == NULL)
        end(t, GPU_TRAINING_FAILED, line);
    else if (open_digests(&d, t, how, r) == 0) {
        const double began = now();
        trained = run_steps(t, &d, a, b, how) == 0;
        t->seconds = now() - began;
        close_digests(&d, t);
    }
    if (a)
        train_close(a);
    if (b)
        train_close(b);
    if (trained && how->timed > 0)
        measure_all(t, r, device, how);
}

void gpu_training_run(gpu_training *t, const char *folder, const gpu_training_how *how)
{
    char why[256];
    train_run r;
    train_engine device, cpu;
    memset(&r, 0, sizeof r);
    memset(&device, 0, sizeof device);
    memset(&cpu, 0, sizeof cpu);
    t->status = GPU_TRAINING_EQUAL;
    t->report[0] = 0;
    if (read_run(t, folder, how, &r) == 0) {
        if (how->open(&device, why, sizeof why))
            end(t, GPU_TRAINING_FAILED, why);
        else if (train_engine_cpu(&cpu, how->pool))
            end(t, GPU_TRAINING_FAILED, "out of memory");
        else
            run_both(t, &r, &device, &cpu, how);
        train_engine_close(&device);
        train_engine_close(&cpu);
    }
    train_run_clear(&r);
}
