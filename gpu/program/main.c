/* main.c -- mpsim-gpu: everything that is asked of the first CUDA device, in one run: probes, speed,
 * checks, trainings; print what was found, write the record.
 *
 * What is cheap comes first: a tiny part of every check, probes, speed. The record grows as
 * FILE.part and gets its name when it is complete: a run that is cut short leaves what it
 * found.
 *
 * Exit: see options.h. */
#include "../checks/checks.h"
#include "options.h"
#include "print.h"
#include "record.h"
#include "../train.h"

#include <train/parallel.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* All that a run finds. */
typedef struct session {
    gpu_options options;
    gpu_record record;
    gpu_result *results;
    gpu_probe *probes;
    gpu_training trainings[GPU_TRAININGS];
    gpu_speed_row speeds[GPU_SPEED_ROWS];
    char path[512], prefix[512]; /* of the record; of files beside it */
    char speed_failed[256];
    int status;
} session;

static void note(session *s, int status)
{
    s->status = status > s->status ? status : s->status;
}

/* ---- the record ---- */

/* To PATH.part, and to PATH if it is complete. */
static void write_record(session *s, int complete)
{
    const char *path = s->options.output;
    char part[1024];
    if (!path)
        return;
    snprintf(part, sizeof part, "%s.part", path);
    FILE *f = fopen(part, "w");
    int bad = !f || gpu_record_write(f, &s->record) != 0;
    bad |= f && fclose(f) != 0;
    bad = bad || (complete && rename(part, path) != 0);
    if (bad) {
        fprintf(stderr, "mpsim-gpu: %s: %s\n", path, strerror(errno));
        note(s, GPU_TROUBLE);
    } else if (complete) {
        printf("record: %s\n", path);
    }
}

/* "nvidia-h200-2026-11-20.json" in a directory. */
static void record_path(char *to, size_t size, const char *directory, const gpu_record *r)
{
    size_t n = (size_t)snprintf(to, size, "%s/", directory);
    n = n < size - 24 ? n : size - 24; /* too long a directory: opening it fails and says so */
    for (const char *p = r->device.name; *p && n + 20 < size; p++) {
        const char c = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
        const int word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (word || to[n - 1] != '-')
            to[n++] = word ? c : '-';
    }
    snprintf(to + n, size - n, "-%.10s.json", r->date);
}

/* Where the record goes, and what the names of files beside it begin with: "quick" of
 * "quick.json". */
static void choose_paths(session *s)
{
    gpu_options *o = &s->options;
    if (o->directory && !o->output) {
        (void)mkdir(o->directory, 0777); /* what is wrong with it, opening the record says */
        record_path(s->path, sizeof s->path, o->directory, &s->record);
        o->output = s->path;
    }
    if (!o->output)
        return;
    snprintf(s->prefix, sizeof s->prefix, "%s", o->output);
    const size_t n = strlen(s->prefix);
    if (n > 5 && strcmp(s->prefix + n - 5, ".json") == 0)
        s->prefix[n - 5] = 0;
}

/* ---- probes ---- */

static void run_probes(session *s)
{
    size_t answered = 0;
    if (!gpu_options_chosen(&s->options, "probes", ""))
        return;
    for (size_t i = 0; i < s->record.probes; i++) {
        gpu_probe_run(i, &s->probes[i]);
        note(s, gpu_print_probe(&s->probes[i], i, s->record.device.sm));
        answered += s->probes[i].status == GPU_DONE;
    }
    printf("%zu of %zu probes answered\n\n", answered, s->record.probes);
    write_record(s, 0);
}

/* ---- trainings ---- */

static void run_trainings(session *s)
{
    static const uint64_t part[] = {1, 10, 1}, most[] = {UINT64_MAX, UINT64_MAX, 2};
    static const int timed[] = {50, 20, 0};
    const int quick = s->options.quick;
    char device[256];
    const gpu_training_how how = {
        .open = train_engine_cuda,
        .pool = &parallel_pool,
        .arch = gpu_architecture(s->record.device.sm),
        .part = part[quick],
        .most = most[quick],
        .timed = timed[quick],
        .prefix = s->options.output ? s->prefix : NULL,
        .device = device,
    };
    snprintf(device, sizeof device, "%.128s, driver %.63s, %.31s", s->record.device.name,
             s->record.device.driver_name, s->record.date);
    parallel_init(0);
    int some = 0;
    for (size_t i = 0; i < s->record.trainings; i++) {
        gpu_training *t = &s->trainings[i];
        if (!gpu_options_chosen(&s->options, "training", t->plan)) {
            snprintf(t->report, sizeof t->report, "not asked for");
            continue;
        }
        if (!some++)
            gpu_print_trainings_head();
        gpu_training_run(t, s->options.plans, &how);
        note(s, gpu_print_training(t));
        write_record(s, 0);
    }
    if (some)
        putchar('\n');
}

static void find_trainings(session *s)
{
    char why[1200];
    s->record.trainings =
        gpu_training_list(s->trainings, GPU_TRAININGS, s->options.plans, why, sizeof why);
    if (s->record.trainings == 0 && gpu_options_chosen(&s->options, "training", "")) {
        fprintf(stderr, "mpsim-gpu: %s\n", why);
        note(s, GPU_TROUBLE);
    }
}

/* ---- speed ---- */

static void run_speed(session *s)
{
    static const size_t elements[] = {(size_t)1 << 28, (size_t)1 << 27, (size_t)1 << 14};
    static const size_t order[] = {4096, 4096, 128};
    static const int before[] = {5, 3, 0}, runs[] = {30, 7, 1};
    const int quick = s->options.quick;
    const gpu_speed_plan plan = {.sm = s->record.device.sm,
                                 .elements = elements[quick],
                                 .order = order[quick],
                                 .before = before[quick],
                                 .runs = runs[quick]};
    if (!gpu_options_chosen(&s->options, "speed", ""))
        return;
    s->record.speeds = gpu_speed_list(s->speeds, GPU_SPEED_ROWS, &plan);
    for (size_t i = 0; i < s->record.speeds && !s->record.speed_failed; i++) {
        if (gpu_speed_measure(s->speeds, s->record.speeds, i, &plan)) {
            snprintf(s->speed_failed, sizeof s->speed_failed, "%s: %.150s", s->speeds[i].name,
                     s->speeds[i].text);
            s->record.speed_failed = s->speed_failed;
            note(s, GPU_TROUBLE);
        }
        note(s, s->speeds[i].checked == 0 ? GPU_DIFFERS : GPU_AGREES);
        write_record(s, 0);
    }
    gpu_speed_table(stdout, s->speeds, s->record.speeds);
    putchar('\n');
}

/* ---- checks ---- */

/* A tiny part of each: layouts, and what differs everywhere, are known within seconds. */
static void look_at_checks(session *s)
{
    size_t looked = 0, agree = 0;
    gpu_result r;
    for (size_t i = 0; i < s->record.checks; i++) {
        const char *name = gpu_check_name(i);
        if (!gpu_options_chosen(&s->options, "checks", name))
            continue;
        gpu_check_run(i, GPU_RUN_TINY, &r);
        if (r.status == GPU_SKIPPED)
            continue;
        looked++;
        agree += r.status == GPU_DONE && r.mismatches == 0;
        if (r.status == GPU_FAILED || r.mismatches)
            note(s, gpu_print_check(name, &r));
    }
    if (looked)
        printf("a first look at %zu checks: %zu agree\n\n", looked, agree);
}

static void run_checks(session *s)
{
    double seconds = 0;
    uint64_t dots = 0;
    size_t done = 0;
    for (size_t i = 0; i < s->record.checks; i++) {
        const char *name = gpu_check_name(i);
        gpu_result *r = &s->results[i];
        if (!gpu_options_chosen(&s->options, "checks", name)) {
            snprintf(r->text, sizeof r->text, "not asked for");
            continue;
        }
        if (!done++)
            gpu_print_checks_head();
        gpu_check_run(i, s->options.quick, r);
        note(s, gpu_print_check(name, r));
        write_record(s, 0);
        seconds += r->seconds;
        gpu_check c;
        gpu_check_at(&c, i, 0, 1);
        dots += c.is_dots ? r->count : 0;
    }
    if (done)
        printf("%-34s %11llu %11s %8.2f\n\n", "all dot products", (unsigned long long)dots, "",
               seconds);
}

/* ---- the program ---- */

/* What has not been reached yet counts as skipped. 0, or -1. */
static int prepare(session *s)
{
    gpu_record *r = &s->record;
    const time_t now = time(NULL);
    const struct tm *utc = gmtime(&now);
    if (!utc || strftime(r->date, sizeof r->date, "%Y-%m-%dT%H:%M:%SZ", utc) == 0)
        r->date[0] = 0;
    r->quick = s->options.quick;
    while (gpu_check_name(r->checks))
        r->checks++;
    r->probes = gpu_probe_count();
    r->result = s->results = (gpu_result *)calloc(r->checks, sizeof *s->results);
    r->probe = s->probes = (gpu_probe *)calloc(r->probes, sizeof *s->probes);
    r->training = s->trainings;
    r->speed = s->speeds;
    if (!s->results || !s->probes)
        return -1;
    for (size_t i = 0; i < r->checks; i++) {
        s->results[i].status = GPU_SKIPPED;
        snprintf(s->results[i].text, sizeof s->results[i].text, "not reached");
    }
    for (size_t i = 0; i < r->probes; i++) {
        int instruction;
        (void)gpu_probe_fill(i, &s->probes[i], &instruction);
        s->probes[i].status = GPU_SKIPPED;
    }
    choose_paths(s);
    return 0;
}

static void run_all(session *s)
{
    write_record(s, 0); /* a place that cannot be written is known at once */
    if (s->status != GPU_AGREES)
        return;
    find_trainings(s);
    look_at_checks(s);
    run_probes(s);
    run_speed(s);
    run_checks(s);
    run_trainings(s);
    write_record(s, 1);
}

int main(int argc, char **argv)
{
    static session s;
    char why[256];
    const int stop = gpu_options_parse(&s.options, argc, argv);
    if (stop)
        return stop - 1;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* what was found shows at once, also through a pipe */
    if (gpu_open(&s.record.device, why, sizeof why) != 0) {
        printf("SKIP: %s\n", why);
        return GPU_NO_DEVICE;
    }
    if (prepare(&s) != 0) {
        fprintf(stderr, "mpsim-gpu: out of memory\n");
        s.status = GPU_TROUBLE;
    } else {
        gpu_print_device(&s.record.device);
        run_all(&s);
    }
    free(s.results);
    free(s.probes);
    return s.status;
}
