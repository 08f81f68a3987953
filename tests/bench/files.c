/* files.c -- speed of `mpsim stat` and `mpsim cast` on files in the page cache, as ratios to a plain sum over
 * the mapped file and to a copy of it, by turns in one process.
 *
 * The files lie in a folder of MPSIM_BENCH_DIR, or of /dev/shm, or of TMPDIR, and are removed. Their elements
 * are those of all benchmarks; codes of fp16 are random, and finite. The time of one thread is CPU time of the
 * process, that of two is by the wall clock. */
#include "command.h"
#include "frame.h"
#include "timing.h"

#include "sim/trace/trace.h"

#include <mpsim/mpsim.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REPEATS = 5, ROOM = 4200 };

typedef struct files {
    bench *b;
    char folder[ROOM - 100], in[ROOM], out[ROOM];
    char format[16]; /* of `in`, */
    size_t bytes;    /* its size */
    int failed;
} files;

/* ---- what is measured ---- */

/* A command of the program: IN, OUT and FORMAT stand for the files and what `in` holds. */
static void run_command(files *f, const char *line)
{
    char words[2 * ROOM + 1024];
    size_t n = 0;
    for (const char *p = line; *p; p += strspn(p, " ")) {
        const size_t length = strcspn(p, " ");
        const char *w = strncmp(p, "IN ", 3) == 0       ? f->in
                        : strncmp(p, "OUT ", 4) == 0    ? f->out
                        : strncmp(p, "FORMAT ", 7) == 0 ? f->format
                                                        : NULL;
        n += (size_t)(w ? snprintf(words + n, sizeof words - n, "%s ", w)
                        : snprintf(words + n, sizeof words - n, "%.*s ", (int)length, p));
        p += length;
    }
    f->failed |= bench_command(words) != 0;
}

static void run_sum(files *f, const char *unused)
{
    const int fd = open(f->in, O_RDONLY | O_CLOEXEC);
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, f->bytes, PROT_READ, MAP_SHARED, fd, 0);
    (void)unused;
    if (p == MAP_FAILED) {
        f->failed = 1;
    } else {
        bench mapped = {.x = p, .n = f->bytes / sizeof(float)};
        const bench_job sum = bench_sum(&mapped);
        sum.run(sum.context, 0, mapped.n);
        munmap(p, f->bytes);
    }
    if (fd >= 0)
        close(fd);
}

/* As cp does it: the kernel copies, or a buffer if it does not. */
static void run_copy(files *f, const char *unused)
{
    enum { BUFFER = 256 << 10 };
    static char buffer[BUFFER];
    ssize_t n;
    const int in = open(f->in, O_RDONLY | O_CLOEXEC);
    const int out = open(f->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    (void)unused;
    while ((n = copy_file_range(in, NULL, out, NULL, f->bytes, 0)) > 0)
        continue;
    while (n < 0 && (n = read(in, buffer, BUFFER)) > 0)
        n = write(out, buffer, (size_t)n) == n ? -1 : 0;
    f->failed |= in < 0 || out < 0 || n < 0;
    close(in);
    close(out);
    unlink(f->out);
}

typedef struct way {
    void (*run)(files *f, const char *line);
    const char *line, *name;
} way;

static const way the_sum = {run_sum, NULL, "sum"}, the_copy = {run_copy, NULL, "cp"};

/* Both by turns, and the row. */
static void measure(files *f, const char *operation, const char *what, const char *how, unsigned threads,
                    double elements, way w, way to)
{
    const clockid_t clock = threads > 1 ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
    double t[REPEATS], base[REPEATS];
    const int repeats = f->b->repeats < REPEATS ? f->b->repeats : REPEATS;
    if (!bench_wants(f->b, operation, what))
        return;
    for (int i = -1; i < repeats; i++) { /* the first is to warm up */
        const double t0 = read_clock(clock);
        to.run(f, to.line);
        const double t1 = read_clock(clock);
        w.run(f, w.line);
        base[i < 0 ? 0 : i] = t1 - t0;
        t[i < 0 ? 0 : i] = read_clock(clock) - t1;
    }
    const double median = middle(t, (size_t)repeats), other = middle(base, (size_t)repeats);
    const bench_row r = {.operation = operation,
                         .what = what,
                         .how = how,
                         .threads = threads,
                         .n = elements,
                         .per_second = elements / median,
                         .ratio = other / median,
                         .to = to.name,
                         .spread = (base[repeats - 1] - base[0]) / other,
                         .to_bytes = (double)f->bytes / other};
    bench_print(f->b, &r);
}

/* ---- files ---- */

static void begin_file(files *f, const char *name, size_t bytes)
{
    snprintf(f->in, sizeof f->in, "%s/%s", f->folder, name);
    snprintf(f->out, sizeof f->out, "%s/out.safetensors", f->folder);
    snprintf(f->format, sizeof f->format, "%s", name);
    f->bytes = bytes;
}

static void write_file(files *f, const void *p)
{
    FILE *file = fopen(f->in, "wb");
    f->failed |= !file || fwrite(p, 1, f->bytes, file) != f->bytes;
    f->failed |= file && fclose(file) != 0;
}

/* Codes of 16 bits, into b->y. */
static void make_codes(bench *b, const char *format)
{
    const mpsim_format *f = mpsim_format_find(format);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    uint16_t *codes = (uint16_t *)(void *)b->y;
    if (strcmp(format, "fp16") != 0) {
        (void)mpsim_encode_array_f32(f, &r, NULL, codes, b->x, b->n, NULL);
        return;
    }
    bench_random(codes, b->n * sizeof *codes, 16);
    for (size_t i = 0; i < b->n; i++)
        codes[i] &= (codes[i] & 0x7c00) == 0x7c00 ? 0xbfff : 0xffff;
}

/* So many tensors of 16 elements. */
static void make_many(files *f, size_t tensors)
{
    const uint64_t shape[1] = {16};
    trace_error e;
    trace_tensor *all = calloc(tensors, sizeof *all);
    char(*names)[16] = calloc(tensors, sizeof *names);
    for (size_t i = 0; all && names && i < tensors; i++) {
        snprintf(names[i], sizeof names[i], "wgrad:t%06zu", i % 1000000);
        all[i] = (trace_tensor){
            .name = names[i], .format = mpsim_format_find("binary32"), .shape = shape, .rank = 1, .count = 16};
    }
    begin_file(f, "tensors", tensors * 16 * sizeof(float));
    trace_writer *w = all && names ? trace_writer_safetensors(f->in, all, tensors, NULL, 0, &e) : NULL;
    f->failed |= !w;
    for (size_t i = 0; w && i < tensors; i++)
        f->failed |= trace_writer_data(w, f->b->x + i * 16 % (f->b->n - 16), 16 * sizeof(float), &e) != 0;
    f->failed |= w && trace_writer_finish(w, &e) != 0;
    free(all);
    free(names);
}

/* ---- rows ---- */

#define STAT "stat --csv --level total -o OUT --threads "
#define FOUR " -f fp16,bf16,e4m3,e5m2 "
#define SCALES                                                                                      \
    " -s 1,2,4,8,16,32,64,128,256,512,2^10,2^11,2^12,2^13,2^14,2^15,2^16,2^17,2^18,2^19,2^20,2^21," \
    "2^22,2^23,2^24 "

static const struct {
    const char *how, *line;
} recipes[] = {
    {"blocks of mxfp8", STAT "1 --dtype binary32 -f mxfp8 IN "},
    {"blocks of nvfp4", STAT "1 --dtype binary32 -f nvfp4 IN "},
    {"blocks of e4m3/1x128", STAT "1 --dtype binary32 -f e4m3/1x128 IN "},
    {"blocks of e4m3/128x128", STAT "1 --dtype binary32 -f e4m3/128x128 IN "},
};

static void binary32_rows(files *f)
{
    const double n = (double)f->b->n;
    const way one = {run_command, STAT "1 --dtype FORMAT IN " FOUR, "1 scale"};
    begin_file(f, "binary32", f->b->n * sizeof(float));
    write_file(f, f->b->x);
    measure(f, "sum", "binary32", "file", 1, n, the_sum, the_sum);
    measure(f, "stat", "binary32", "counts of 1 format", 1, n,
            (way){run_command, STAT "1 --counts --dtype binary32 -f fp16 IN ", ""}, the_sum);
    measure(f, "stat", "binary32", "counts of 4 formats", 1, n,
            (way){run_command, "stat --counts --histogram --json -o OUT --threads 1 --dtype FORMAT IN " FOUR, ""},
            the_sum);
    measure(f, "stat", "binary32", "all of 4 formats", 1, n, one, the_sum);
    measure(f, "stat", "binary32", "all of fp16", 1, n, (way){run_command, STAT "1 --dtype binary32 -f fp16 IN ", ""},
            the_sum);
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        measure(f, "stat", "binary32", recipes[i].how, 1, n, (way){run_command, recipes[i].line, ""}, the_sum);
    measure(f, "stat", "binary32", "25 scales of 4 formats", 1, n,
            (way){run_command, STAT "1 --dtype FORMAT IN " FOUR SCALES, ""}, one);
    measure(f, "stat", "binary32", "stochastic fp16", 1, n,
            (way){run_command, STAT "1 --dtype binary32 -r sr -f fp16 IN ", ""}, the_sum);
    measure(f, "stat", "binary32", "all of 4 formats", 2, n, (way){run_command, STAT "2 --dtype FORMAT IN " FOUR, ""},
            (way){run_command, one.line, "1 thread"});
    measure(f, "cast", "e4m3", "of binary32", 1, n,
            (way){run_command, "cast -q --threads 1 -f e4m3 --dtype FORMAT IN -o OUT ", ""}, the_copy);
    measure(f, "cast", "bf16", "of binary32", 1, n,
            (way){run_command, "cast -q --threads 1 -f bf16 --dtype FORMAT IN -o OUT ", ""}, the_copy);
    measure(f, "cast", "e4m3", "of binary32", 2, n,
            (way){run_command, "cast -q --threads 2 -f e4m3 --dtype FORMAT IN -o OUT ", ""}, the_copy);
    unlink(f->in);
}

static void codes_rows(files *f, const char *format)
{
    const double n = (double)f->b->n;
    begin_file(f, format, f->b->n * 2);
    make_codes(f->b, format);
    write_file(f, f->b->y);
    measure(f, "stat", format, "counts of 4 formats", 1, n,
            (way){run_command, STAT "1 --counts --dtype FORMAT IN " FOUR, ""}, the_sum);
    measure(f, "stat", format, "all of 4 formats", 1, n, (way){run_command, STAT "1 --dtype FORMAT IN " FOUR, ""},
            the_sum);
    measure(f, "cast", "e4m3", format[0] == 'b' ? "of bf16" : "of fp16", 1, n,
            (way){run_command, "cast -q --threads 1 -f e4m3 --dtype FORMAT IN -o OUT ", ""}, the_copy);
    unlink(f->in);
}

static void many_rows(files *f)
{
    const size_t tensors = f->b->n < 1 << 20 ? 100 : f->b->quick ? 10000 : 100000;
    make_many(f, tensors);
    measure(f, "stat", "tensors", "of 16 elements", 1, (double)tensors, (way){run_command, STAT "1 IN ", ""}, the_sum);
    measure(f, "cast", "tensors", "of 16 elements", 1, (double)tensors,
            (way){run_command, "cast -q --threads 1 -f bf16 IN -o OUT ", ""}, the_sum);
    unlink(f->in);
}

int main(int argc, char **argv)
{
    bench b;
    files f = {.b = &b};
    int code = bench_begin(&b, argc, argv, "files");
    const char *asked = getenv("MPSIM_BENCH_DIR"), *tmp = getenv("TMPDIR");
    if (code || (code = bench_data(&b)))
        return code;
    snprintf(f.folder, sizeof f.folder, "%s/mpsim-bench-XXXXXX",
             asked && *asked                 ? asked
             : access("/dev/shm", W_OK) == 0 ? "/dev/shm"
             : tmp && *tmp                   ? tmp
                                             : "/tmp");
    if (!mkdtemp(f.folder)) {
        perror(f.folder);
        return 1;
    }
    bench_part(&b, "Files in the page cache: stat, to a plain sum over the mapped file; cast, to a copy");
    binary32_rows(&f);
    codes_rows(&f, "bf16");
    codes_rows(&f, "fp16");
    many_rows(&f);
    unlink(f.in);
    unlink(f.out);
    rmdir(f.folder);
    if (f.failed)
        fprintf(stderr, "files: something could not be written, or read\n");
    return bench_end(&b) || f.failed;
}
