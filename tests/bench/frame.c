/* frame.c -- see frame.h. */
#include "frame.h"

#include "goals.h"
#include "timing.h"

#include <mpsim/mpsim.h>
#include <threads/parallel.h>

#include <fnmatch.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef BENCH_COMPILED
#define BENCH_COMPILED "" /* the makefile says how the library was compiled */
#endif

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

enum { REPEATS_MAX = 5 };

static const double DISTURBED = 0.25; /* spread of what a row is compared with */

/* ---- the machine ---- */

static void find_cpu(char *text, size_t size)
{
    struct utsname u;
    char line[256];
    snprintf(text, size, "%s", uname(&u) == 0 ? u.machine : "unknown CPU");
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon && strlen(colon) > 2) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(text, size, "%s", colon + 2);
            break;
        }
    }
    if (f)
        fclose(f);
}

static void put_head(const bench *b, FILE *to, const char *mark)
{
    char cpu[256];
    find_cpu(cpu, sizeof cpu);
    fprintf(to, "%smpsim %s on %s, %ld cores\n", mark, mpsim_version(), cpu, sysconf(_SC_NPROCESSORS_ONLN));
    fprintf(to, "%s%s, %s; instruction sets", mark, COMPILER, BENCH_COMPILED);
    const char *const active = mpsim_isa_active();
    for (size_t i = 0; mpsim_isa_at(i); i++)
        if (mpsim_isa_use(mpsim_isa_at(i)) == MPSIM_OK)
            fprintf(to, " %s", mpsim_isa_at(i));
    (void)mpsim_isa_use(active);
    fprintf(to, "\n%stimes: CPU time of one thread, wall clock of several; medians of %d\n", mark, b->repeats);
}

/* ---- beginning and end ---- */

static int usage(const char *program)
{
    fprintf(stderr,
            "usage: %s [--quick | --tiny] [--csv FILE] [--only PATTERN]\n"
            "  FILE is added to; PATTERN is of an operation, a format, a recipe or a model, as 'round',\n"
            "  'hopper-*'. MPSIM_ISA chooses the instruction set of rows that are measured on the best\n",
            program);
    return 2;
}

int bench_begin(bench *b, int argc, char **argv, const char *program)
{
    const char *csv = NULL;
    *b = (bench){.program = program, .n = (size_t)1 << 26, .seconds = 0.15, .repeats = 3, .first = 1};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--quick") == 0) {
            b->n = (size_t)1 << 22;
            b->seconds = 0.02;
            b->quick = 1;
        } else if (strcmp(argv[i], "--tiny") == 0) {
            b->n = 1 << 13;
            b->seconds = 0;
            b->repeats = 1;
            b->quick = 1;
        } else if (strcmp(argv[i], "--csv") == 0 && i + 1 < argc)
            csv = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            b->only = argv[++i];
        else
            return usage(program);
    const char *isa = getenv("MPSIM_ISA");
    if (isa && *isa && mpsim_isa_use(isa) != MPSIM_OK) {
        fprintf(stderr, "%s: MPSIM_ISA: no %s here\n", program, isa);
        return 2;
    }
    if (csv && !(b->csv = fopen(csv, "a"))) {
        perror(csv);
        return 1;
    }
    if (b->csv && fseek(b->csv, 0, SEEK_END) == 0)
        b->first = ftell(b->csv) <= 0;
    if (b->first)
        put_head(b, stdout, "");
    if (b->csv && b->first) {
        put_head(b, b->csv, "# ");
        fputs("program,operation,what,how,isa,threads,elements,per_second,ratio,to,to_bytes_per_second,"
              "spread,goal,goal_of,met\n",
              b->csv);
    }
    return 0;
}

int bench_end(bench *b)
{
    if (b->met + b->missed)
        printf("\nGoals of %s: %d met, %d missed.\n", b->program, b->met, b->missed);
    if (b->disturbed)
        printf("~ %d row%s: what it is compared with differed by more than %.0f %% while it ran.\n", b->disturbed,
               b->disturbed == 1 ? "" : "s", 100 * DISTURBED);
    free(b->x);
    free(b->y);
    int bad = fflush(stdout) != 0;
    if (b->csv) {
        bad |= ferror(b->csv) != 0;
        bad |= fclose(b->csv) != 0;
    }
    if (bad)
        fprintf(stderr, "%s: a write failed\n", b->program);
    return bad;
}

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

int bench_data(bench *b)
{
    uint64_t state = 1;
    b->x = malloc(b->n * sizeof *b->x);
    b->y = malloc(b->n * sizeof *b->y);
    if (!b->x || !b->y) {
        fprintf(stderr, "%s: out of memory\n", b->program);
        return 1;
    }
    for (size_t i = 0; i < b->n; i++) {
        const uint64_t r = next_random(&state);
        const uint32_t exponent = 127 - 40 + (uint32_t)((r >> 32) * 60 >> 32);
        const uint32_t bits = (uint32_t)(r & 1) << 31 | exponent << 23 | (uint32_t)(r >> 8 & 0x7fffff);
        memcpy(&b->x[i], &bits, sizeof bits);
    }
    memset(b->y, 0, b->n * sizeof *b->y);
    return 0;
}

void bench_random(void *to, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        const uint64_t r = next_random(&seed);
        memcpy((char *)to + i, &r, bytes - i < sizeof r ? bytes - i : sizeof r);
    }
}

/* ---- what others are compared with ---- */

static void run_copy(void *context, size_t from, size_t n)
{
    bench *b = context;
    memcpy(b->y + from, b->x + from, n * sizeof *b->x);
    __asm__ volatile("" : : "r"(b->y) : "memory");
}

bench_job bench_copy(bench *b)
{
    return (bench_job){.operation = "memcpy",
                       .what = "binary32",
                       .how = "",
                       .name = "memcpy",
                       .isa = "libc",
                       .n = b->n,
                       .bytes = 8,
                       .run = run_copy,
                       .context = b};
}

/* In GCC's vectors, as the compiler does not vectorise a sum of floating-point numbers. */
typedef float lanes __attribute__((vector_size(64)));

static void run_sum(void *context, size_t from, size_t n)
{
    const bench *b = context;
    lanes s[4] = {{0}};
    size_t i = from;
    for (; i + 64 <= from + n; i += 64)
        for (size_t k = 0; k < 4; k++) {
            lanes v;
            memcpy(&v, b->x + i + 16 * k, sizeof v);
            s[k] += v;
        }
    float rest = 0;
    for (; i < from + n; i++)
        rest += b->x[i];
    s[0] += s[1] + s[2] + s[3] + rest;
    __asm__ volatile("" : : "r"(s) : "memory");
}

bench_job bench_sum(bench *b)
{
    return (bench_job){.operation = "sum",
                       .what = "binary32",
                       .how = "",
                       .name = "sum",
                       .isa = "compiler",
                       .n = b->n,
                       .bytes = 4,
                       .run = run_sum,
                       .context = b};
}

/* ---- measuring ---- */

/* A job in as many parts as threads. */
typedef struct parts {
    const bench_job *j;
    size_t n, each;
} parts;

static void run_part(int i, void *context)
{
    const parts *p = context;
    const size_t from = p->each * (size_t)i;
    p->j->run(p->j->context, from, (unsigned)i + 1 < p->j->threads ? p->each : p->n - from);
}

static void run_all(const bench_job *j, size_t n)
{
    parts p = {j, n, n / (j->threads ? j->threads : 1)};
    if (j->threads <= 1)
        j->run(j->context, 0, n);
    else
        parallel_for((int)j->threads, run_part, &p);
}

/* How a job is sampled: its first n elements, so many times. */
typedef struct plan {
    const bench_job *j;
    size_t n, loops;
    int wall;
} plan;

/* Seconds of an element. */
static double sample(const plan *p)
{
    const double t0 = p->wall ? now() : now_of_thread();
    for (size_t i = 0; i < p->loops; i++)
        run_all(p->j, p->n);
    const double t = (p->wall ? now() : now_of_thread()) - t0;
    return (t > 1e-9 ? t : 1e-9) / ((double)p->n * (double)p->loops);
}

enum { FEW = 1 << 13, MULTIPLE = 1 << 12 };

/* How many elements fit into so many seconds at `each`. */
static size_t fitting(const bench_job *j, double seconds, double each)
{
    const double fit = seconds / each;
    size_t n = fit < (double)j->n ? (size_t)fit : j->n;
    n = n > MULTIPLE ? n / MULTIPLE * MULTIPLE : n;
    return n >= FEW ? n : j->n < FEW ? j->n : FEW;
}

/* What fits into the time, at least so much that a clock can tell; judged by CPU time, which others on
 * the machine do not stretch. A first guess knows what few elements cost, with all that is done once a call. */
static plan make_plan(const bench *b, const bench_job *j, int wall)
{
    plan p = {.j = j, .n = j->n < FEW ? j->n : FEW, .loops = 1};
    (void)sample(&p);
    const double most = b->seconds / b->repeats;
    double each = sample(&p);
    p.n = fitting(j, most, each);
    if (p.n > 4 * FEW)
        p.n = fitting(j, most, each = sample(&p));
    const double once = each * (double)p.n;
    p.loops = once < most / 20 ? (size_t)(most / 20 / once) : 1;
    if (p.loops == 0 || p.n > FEW * 4)
        p.loops = 1;
    p.wall = wall;
    return p;
}

void bench_run(bench *b, const bench_job *j)
{
    double own[REPEATS_MAX], to[REPEATS_MAX + 1] = {0};
    const int wall = j->threads > 1;
    if (!bench_wants(b, j->operation, j->what))
        return;
    parallel_init(j->threads ? j->threads : 1);
    parallel_eager(1);
    const plan p = make_plan(b, j, wall);
    plan other = {0};
    if (j->to) {
        other = make_plan(b, j->to, wall);
        to[0] = sample(&other);
    }
    for (int i = 0; i < b->repeats; i++) {
        own[i] = sample(&p);
        if (j->to)
            to[i + 1] = sample(&other);
    }
    bench_row r = {.operation = j->operation,
                   .what = j->what,
                   .how = j->how,
                   .isa = j->isa,
                   .threads = j->threads,
                   .n = (double)p.n,
                   .per_second = 1 / middle(own, (size_t)b->repeats)};
    if (j->to) {
        const size_t n = (size_t)b->repeats + 1;
        const double median = middle(to, n); /* sorts */
        r.to = j->to->name;
        r.to_bytes = j->to->bytes / median;
        r.ratio = r.per_second * j->bytes / r.to_bytes;
        r.spread = (to[n - 1] - to[0]) / median;
    }
    bench_print(b, &r);
}

int bench_wants(const bench *b, const char *operation, const char *what)
{
    return !b->only || fnmatch(b->only, operation, 0) == 0 || fnmatch(b->only, what, 0) == 0;
}

double bench_seconds(const bench *b, void (*run)(void *context), void *context)
{
    double t[REPEATS_MAX];
    for (int i = -1; i < b->repeats; i++) {
        const double t0 = now_of_thread();
        run(context);
        t[i < 0 ? 0 : i] = now_of_thread() - t0;
        if (i < 0 && t[0] > b->seconds)
            return t[0];
    }
    return middle(t, (size_t)b->repeats);
}

/* ---- rows ---- */

void bench_part(bench *b, const char *heading)
{
    printf("\n%s\n%-9s %-33s %-8s %s %10s %6s %-10s %6s\n", heading, "", "", "set", "thr", "a second", "ratio", "to",
           "goal");
    (void)b;
}

/* "1.23 G", "45.6 M" */
static const char *quantity(char text[32], double x)
{
    static const char units[] = " kMGTP";
    int u = 0;
    for (; x >= 999.5 && units[u + 1]; u++)
        x /= 1000;
    snprintf(text, 32, "%.*f %c", x < 9.995 ? 2 : x < 99.95 ? 1 : 0, x, units[u]);
    return text;
}

void bench_print(bench *b, const bench_row *r)
{
    char speed[32], ratio[32] = "", least[32] = "", what[96];
    const char *isa = r->isa ? r->isa : mpsim_isa_active();
    const unsigned threads = r->threads ? r->threads : 1;
    const bench_goal *g = bench_goal_of(r->operation, r->what, r->how, isa, threads);
    const int met = g && (g->kind == GOAL_SPEED ? r->per_second : r->ratio) >= g->least;
    const int disturbed = r->spread > DISTURBED;
    if (!bench_wants(b, r->operation, r->what))
        return;
    b->met += met;
    b->missed += g && !met;
    b->disturbed += disturbed;
    snprintf(what, sizeof what, "%s%s%s", r->what, *r->how ? " " : "", r->how);
    if (r->ratio > 0)
        snprintf(ratio, sizeof ratio, "%.3f", r->ratio);
    if (g && g->kind == GOAL_SPEED)
        quantity(least, g->least);
    else if (g)
        snprintf(least, sizeof least, "%.3g", g->least);
    printf("%-9s %-33s %-8s %3u %10s %6s %-10s %6s%s%s\n", r->operation, what, isa, threads,
           quantity(speed, r->per_second), ratio, r->to ? r->to : "", least,
           !g    ? ""
           : met ? " met"
                 : " missed",
           disturbed ? " ~" : "");
    fflush(stdout);
    if (b->csv)
        fprintf(b->csv, "%s,%s,%s,%s,%s,%u,%.0f,%.6g,%.4g,%s,%.4g,%.3g,%.4g,%s,%s\n", b->program, r->operation, r->what,
                r->how, isa, threads, r->n, r->per_second, r->ratio, r->to ? r->to : "", r->to_bytes, r->spread,
                g ? g->least : 0,
                !g                      ? ""
                : g->kind == GOAL_SPEED ? "per_second"
                                        : "ratio",
                !g    ? ""
                : met ? "yes"
                      : "no");
}
