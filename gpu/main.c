/* main.c -- mpsim-gpu: run every check and probe on the first CUDA device, print what was found,
 * write the record.
 *
 *   mpsim-gpu [--quick | --tiny] [--only WORD] [--skip WORD] [--output FILE | --output-dir DIR]
 *
 * The record grows while the checks run, as FILE.part, and gets its name when it is complete: a run
 * that is cut short leaves what it found.
 *
 * Exit: 0 all agrees, 1 something differs, 2 wrong usage, 4 a file or a CUDA call failed, 77 no
 * device. */
#include "checks.h"
#include "record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { AGREES = 0, DIFFERS = 1, USAGE = 2, TROUBLE = 4, NO_DEVICE = 77 };

static int worse(int a, int b)
{
    return a > b ? a : b;
}

/* ---- checks ---- */

static int print_check(const char *name, const gpu_result *r)
{
    if (r->status != GPU_DONE) {
        printf("%-34s %s: %s\n", name, r->status == GPU_SKIPPED ? "skipped" : "FAILED", r->text);
        return r->status == GPU_SKIPPED ? AGREES : TROUBLE;
    }
    printf("%-34s %11" PRIu64 " %11" PRIu64 " %8.2f", name, r->count, r->mismatches, r->seconds);
    if (r->mismatches)
        printf("  [%" PRIu64 "] %s", r->first, r->text);
    if (r->mismatches && r->question)
        printf(" (a question, not an error)");
    if (r->odd_nans)
        printf("  %" PRIu64 " NaNs with other bits than the reference's", r->odd_nans);
    putchar('\n');
    return r->mismatches && !r->question ? DIFFERS : AGREES;
}

/* The command line. */
typedef struct options {
    const char *output, *directory, *only, *skip;
    int quick;
} options;

static int is_chosen(const options *o, const char *name)
{
    return (!o->only || strstr(name, o->only)) && !(o->skip && strstr(name, o->skip));
}

/* To PATH.part, and to PATH if it is complete. A NULL path: nowhere. */
static int write_record(const char *path, const gpu_record *r, int complete)
{
    char part[1024];
    if (!path)
        return AGREES;
    snprintf(part, sizeof part, "%s.part", path);
    FILE *f = fopen(part, "w");
    int bad = !f || gpu_record_write(f, r) != 0;
    bad |= f && fclose(f) != 0;
    bad = bad || (complete && rename(part, path) != 0);
    if (bad) {
        fprintf(stderr, "mpsim-gpu: %s: %s\n", path, strerror(errno));
        return TROUBLE;
    }
    if (complete)
        printf("record: %s\n", path);
    return AGREES;
}

static int run_checks(const options *o, const gpu_record *record, gpu_result *results)
{
    const size_t n = record->checks;
    int status = AGREES;
    double seconds = 0;
    uint64_t dots = 0;
    printf("%-34s %11s %11s %8s  %s\n", "check", "compared", "mismatches", "seconds",
           "first mismatch");
    for (size_t i = 0; i < n; i++) {
        if (!is_chosen(o, gpu_check_name(i))) {
            snprintf(results[i].text, sizeof results[i].text, "not asked for");
            continue;
        }
        gpu_check_run(i, o->quick, &results[i]);
        status = worse(status, print_check(gpu_check_name(i), &results[i]));
        status = worse(status, write_record(o->output, record, 0));
        seconds += results[i].seconds;
        gpu_check c;
        gpu_check_at(&c, i, 0, 1);
        dots += c.is_dots ? results[i].count : 0;
    }
    printf("%-34s %11" PRIu64 " %11s %8.2f\n\n", "all dot products", dots, "", seconds);
    return status;
}

/* ---- probes ---- */

static void print_answer(const char *result, uint32_t code)
{
    const mpsim_format *f = mpsim_format_find(result);
    printf("0x%0*" PRIx32 " (%a)", f->bits / 4, code, mpsim_decode(f, code));
}

static int print_probe(const gpu_probe *p, size_t i, int sm)
{
    uint32_t expected;
    if (p->status == GPU_SKIPPED)
        return AGREES;
    printf("%-6s %-15s %s-%-9s", p->id, p->instruction, p->operands, p->result);
    if (p->status == GPU_FAILED) {
        printf("FAILED\n");
        return TROUBLE;
    }
    const int agrees = gpu_probe_agrees(p, i, sm, &expected);
    print_answer(p->result, p->d);
    if (agrees == 0) {
        printf(" BUT THE MODEL SAYS ");
        print_answer(p->result, expected);
    }
    printf("  %s %s\n", p->question, p->meaning);
    return agrees == 0 ? DIFFERS : AGREES;
}

static int run_probes(const options *o, gpu_probe *probes, size_t n, int sm)
{
    int status = AGREES;
    size_t answered = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_chosen(o, "probes"))
            continue;
        gpu_probe_run(i, &probes[i]);
        status = worse(status, print_probe(&probes[i], i, sm));
        answered += probes[i].status == GPU_DONE;
    }
    printf("%zu of %zu probes answered\n", answered, n);
    return status;
}

/* ---- the program ---- */

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

static int usage(FILE *to, int status)
{
    fprintf(to, "usage: mpsim-gpu [option]...\n"
                "Compare the first CUDA device with mpsim's reference, bit for bit.\n"
                "  --quick           a thousandth of the inputs\n"
                "  --tiny            far less: for compute-sanitizer\n"
                "  --only WORD       only the checks with WORD in their name; 'probes' are the probes\n"
                "  --skip WORD       all but these\n"
                "  --output FILE     write the record (JSON, schema mpsim.gpu/1)\n"
                "  --output-dir DIR  the same, named DIR/<device>-<date>.json\n"
                "Exit: 0 all agrees, 1 something differs, 2 usage, 4 trouble, 77 no device.\n");
    return status;
}

/* 0, or an exit status + 1. */
static int parse(options *o, int argc, char **argv)
{
    const struct {
        const char *name;
        const char **value;
    } words[] = {{"--output", &o->output},
                 {"--output-dir", &o->directory},
                 {"--only", &o->only},
                 {"--skip", &o->skip}};
    enum { WORDS = sizeof words / sizeof words[0] };
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        while (k < WORDS && strcmp(argv[i], words[k].name) != 0)
            k++;
        if (k < WORDS && i + 1 < argc)
            *words[k].value = argv[++i];
        else if (strcmp(argv[i], "--quick") == 0)
            o->quick = GPU_RUN_QUICK;
        else if (strcmp(argv[i], "--tiny") == 0)
            o->quick = GPU_RUN_TINY;
        else
            return 1 + (strcmp(argv[i], "--help") == 0 ? usage(stdout, AGREES)
                                                       : usage(stderr, USAGE));
    }
    return 0;
}

/* What has not been reached yet counts as skipped. */
static void prepare(gpu_result *results, size_t checks, gpu_probe *probes, size_t n)
{
    for (size_t i = 0; i < checks; i++) {
        results[i].status = GPU_SKIPPED;
        snprintf(results[i].text, sizeof results[i].text, "not reached");
    }
    for (size_t i = 0; i < n; i++) {
        int instruction;
        (void)gpu_probe_fill(i, &probes[i], &instruction);
        probes[i].status = GPU_SKIPPED;
    }
}

int main(int argc, char **argv)
{
    gpu_record r;
    options o;
    char why[256], path[512];
    memset(&r, 0, sizeof r);
    memset(&o, 0, sizeof o);
    const int stop = parse(&o, argc, argv);
    if (stop)
        return stop - 1;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* what was found shows at once, also through a pipe */
    if (gpu_open(&r.device, why, sizeof why) != 0) {
        printf("SKIP: %s\n", why);
        return NO_DEVICE;
    }
    const time_t now = time(NULL);
    const struct tm *utc = gmtime(&now);
    if (!utc || strftime(r.date, sizeof r.date, "%Y-%m-%dT%H:%M:%SZ", utc) == 0)
        r.date[0] = 0;
    r.quick = o.quick;
    while (gpu_check_name(r.checks))
        r.checks++;
    r.probes = gpu_probe_count();
    gpu_result *results = (gpu_result *)calloc(r.checks, sizeof *results);
    gpu_probe *probes = (gpu_probe *)calloc(r.probes, sizeof *probes);
    if (!results || !probes) {
        fprintf(stderr, "mpsim-gpu: out of memory\n");
        free(results);
        free(probes);
        return TROUBLE;
    }
    prepare(results, r.checks, probes, r.probes);
    r.result = results;
    r.probe = probes;
    printf("device: %s, compute capability %d.%d, driver %s (CUDA %d), toolkit %d\n\n",
           r.device.name, r.device.sm / 10, r.device.sm % 10, r.device.driver_name,
           r.device.driver, r.device.runtime);
    if (o.directory && !o.output) {
        record_path(path, sizeof path, o.directory, &r);
        o.output = path;
    }
    int status = write_record(o.output, &r, 0); /* a place that cannot be written is known at once */
    if (status == AGREES) {
        status = run_checks(&o, &r, results);
        status = worse(status, run_probes(&o, probes, r.probes, r.device.sm));
        status = worse(status, write_record(o.output, &r, 1));
    }
    free(results);
    free(probes);
    return status;
}
