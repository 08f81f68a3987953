/* check.cu -- see check.h. Arrays of several types, sizes, alignments and kinds of numbers; small ones are judged by
 * the functions of mpsim/stats.h, element by element, large ones by a summary on the CPU. */
#include "check.h"

#include "../include/mpsim/cudastats.h"
#include "../kernels/cuda.cuh"
#include "../../lib/digest/scalar.h"

#include <inttypes.h>
#include <mpsim/mpsim.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

namespace
{

enum { MOST_CASTS = 8, PLAIN = 200000 };

/* ---- casts ---- */

struct cast_row {
    const char *format;
    mpsim_round_mode mode;
    double scale;
    int saturates, flushes; /* flushes: 1: results, 2: inputs */
};

struct cast_set {
    const char *name;
    int codes_only; /* some are not for binary32 on the device */
    size_t n;
    cast_row rows[MOST_CASTS];
};

const mpsim_round_mode rne = MPSIM_ROUND_NEAREST_EVEN, rna = MPSIM_ROUND_NEAREST_AWAY, rtz = MPSIM_ROUND_TOWARD_ZERO;

const cast_set sets[] = {
    {"none", 0, 0, {}},
    {"fp16", 0, 1, {{"fp16", rne, 1, 0, 0}}},
    {"fp16, bf16", 0, 2, {{"fp16", rne, 1, 0, 0}, {"bf16", rne, 1, 0, 0}}},
    {"fp16, bf16, e4m3", 0, 3, {{"fp16", rne, 1, 0, 0}, {"bf16", rne, 1, 0, 0}, {"e4m3", rne, 1, 1, 0}}},
    {"fp16, bf16, e4m3, e5m2",
     0,
     4,
     {{"fp16", rne, 1, 0, 0}, {"bf16", rne, 1, 0, 0}, {"e4m3", rne, 1, 0, 0}, {"e5m2", rne, 1, 0, 0}}},
    {"scales, modes, flushing",
     0,
     8,
     {{"fp16", rne, 1024, 0, 0},
      {"fp16", rne, 0x1p-20, 0, 1},
      {"e4m3", rne, 0x1p14, 1, 0},
      {"e5m2", rtz, 1, 1, 0},
      {"bf16", rna, 1, 0, 0},
      {"e4m3", rtz, 0x1p-6, 0, 2},
      {"e2m1", rne, 0x1p40, 1, 0},
      {"e3m2", rna, 0x1p-3, 1, 0}}},
    {"tf32, binary32",
     0,
     3,
     {{"tf32", rne, 1, 0, 0}, {"binary32", rne, 0x1p90, 0, 0}, {"binary32", rne, 0x1p-100, 1, 1}}},
    {"any", 1, 3, {{"e4m3", rne, 3, 0, 0}, {"fp16", MPSIM_ROUND_UP, 1, 0, 0}, {"e8m0", rne, 1, 1, 0}}},
};

size_t make_casts(mpsim_cast *casts, const cast_set *of)
{
    for (size_t i = 0; i < of->n; i++) {
        const cast_row *r = &of->rows[i];
        casts[i].format = mpsim_format_find(r->format);
        mpsim_rounding_init(&casts[i].rounding, r->mode);
        casts[i].rounding.scale = r->scale;
        casts[i].rounding.overflow = uint8_t(r->saturates ? MPSIM_OVERFLOW_MAX : MPSIM_OVERFLOW_INF);
        casts[i].rounding.flush_output = r->flushes == 1;
        casts[i].rounding.flush_input = r->flushes == 2;
        casts[i].rounding.flush_below = r->flushes == 2 ? 0x1.8p-20 : 0;
    }
    return of->n;
}

/* ---- numbers ---- */

uint64_t mix(uint64_t i)
{
    uint64_t x = i * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

float bell(uint64_t i)
{
    const uint64_t a = mix(i);
    const double sum = double(a & 0xffff) + double(a >> 16 & 0xffff) + double(a >> 32 & 0xffff) + double(a >> 48);
    return float((sum - 131070 + double(mix(i + 77) & 0xffff) * 0x1p-16) * 0x1p-16);
}

/* Magnitudes at which casts change, and their neighbours. */
uint32_t special(uint64_t i)
{
    static const float at[] = {0,     0x1p-149f, 0x1p-126f, 0x1p-25f, 0x1p-24f, 0x1p-14f,    65504,      65520,
                               65536, 0x1p-10f,  0x1p-9f,   0x1p-6f,  448,      464,         480,        57344,
                               61440, 0x1p-17f,  0x1p-16f,  1,        1.5f,     0x1.fep127f, 0x1p127f,   0x1p-133f,
                               240,   0x1p-40f,  6,         5,        0.25f,    0x1p26f,     0x1.8p-20f, 0x1p-148f};
    const uint64_t r = mix(i);
    const uint32_t u = bits_of(at[r % (sizeof at / sizeof at[0])]);
    const uint32_t v = u + uint32_t(r >> 32) % 5 - 2;
    return (u == 0 ? u + uint32_t(r >> 32) % 3 : v) | uint32_t(r >> 63) << 31;
}

enum kind {
    BELL,
    WIDE,
    BITS,
    CONSTANT,
    ZEROS,
    RELU,
    OUTLIERS,
    TINY,
    NARROW,
    SPECIAL,
    LARGE,
    MOVING,
    TWO,
    SPREAD,
    TIES,
    SMALLEST,
    NEARER,
    KINDS
};
const char *const kinds[KINDS] = {"bell",        "all exponents",  "all bits", "one number", "zeros",     "half zeros",
                                  "outliers",    "tiny",           "of bf16",  "thresholds", "too large", "moving",
                                  "two numbers", "twenty binades", "ties",     "smallest",   "nearer"};

uint32_t word_of(int kind, uint64_t i)
{
    const uint64_t r = mix(i ^ 0x5555);
    switch (kind) {
    case BELL:
        return bits_of(bell(i));
    case WIDE:
        return (uint32_t(r) & 0x807fffffu) | uint32_t(r >> 32) % 254 << 23 | 1u << 23;
    case BITS:
        return uint32_t(r);
    case CONSTANT:
        return bits_of(1.1f);
    case ZEROS:
        return uint32_t(r & 1) << 31;
    case RELU:
        return bell(i) > 0 ? bits_of(bell(i)) : 0;
    case OUTLIERS:
        return r % 1000 == 0 ? bits_of(bell(i) * 1e30f) : r % 1013 == 0 ? 0x7f800000u : bits_of(bell(i) * 1e-3f);
    case TINY:
        return bits_of(bell(i) * 0x1p-30f);
    case NARROW:
        return bits_of(bell(i)) & 0xffff0000u;
    case SPECIAL:
        return special(i);
    case LARGE:
        return bits_of(bell(i) * 1e5f);
    case TWO:
        return bits_of(r & 1 ? 1 : 1.5f);
    case SPREAD: /* signs in turn */
        return bits_of(ldexpf(1 + float(r & 0xffffff) * 0x1p-24f, int(r >> 32) % 20 - 12)) | uint32_t(i & 1) << 31;
    case TIES: { /* halves of units of several casts, their neighbours, and what is exact */
        const uint32_t few = (uint32_t(r >> 40) & 127) << 16 >> uint32_t(r >> 8) % 6;
        return (uint32_t(r) & 0x80000000u) | (118 + uint32_t(r >> 32) % 12) << 23 | (few + uint32_t(r >> 16) % 3);
    }
    case SMALLEST: /* subnormal ones, and the next */
        return uint32_t(r) & 0x80ffffffu & (0xffffffffu << uint32_t(r >> 32) % 24);
    case NEARER: { /* half a unit of fp16 from below, of bf16 from above; later elements are nearer by one */
        const uint32_t near = i / 512 >= 128;
        return 0x3f800000u | (i & 1 ? 0x8014u - near : 0x0ffeu + near);
    }
    default: /* rows of other sizes */
        return bits_of(bell(i) * ldexpf(1, int(mix(i / 700) % 60) - 40));
    }
}

/* Codes of n numbers; those of narrow formats are all codes under BITS, else rounded. */
void fill(unsigned char *to, const mpsim_format *f, int kind, size_t n)
{
    enum { PERIOD = 1 << 20 }; /* a large array repeats, with other signs */
    const size_t width = mpsim_format_code_bytes(f);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < n && i < PERIOD; i++) {
        const uint32_t u = word_of(kind, i);
        uint64_t code = u;
        float x;
        unsigned flags;
        memcpy(&x, &u, sizeof x);
        if (width < 4 && kind != BITS)
            code = mpsim_encode_f64(f, &r, double(x), 0, &flags);
        memcpy(to + i * width, &code, width); /* little-endian, as devices are */
    }
    for (size_t i = PERIOD; i < n; i++) {
        memcpy(to + i * width, to + (i * 0x9e3779b1u & (PERIOD - 1)) * width, width);
        if (mix(i / 64) >> (i % 64) & 1)
            to[i * width + width - 1] ^= 0x80;
    }
}

/* ---- comparisons ---- */

struct facts {
    mpsim_stats stats;
    mpsim_histogram histogram;
    mpsim_cast_stats casts[MOST_CASTS];
};

int same_sum(const mpsim_sum *a, const mpsim_sum *b)
{
    mpsim_sum d = *a;
    int e;
    mpsim_sum_subtract(&d, b);
    return mpsim_sum_frexp(&d, &e) == 0;
}

int same_double(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* NULL, or what differs. */
const char *compare(const facts *got, const facts *want, size_t n_casts)
{
    static char text[200];
    const mpsim_stats *a = &got->stats, *b = &want->stats;
    if (a->count != b->count || a->zero != b->zero || a->nan != b->nan || a->inf != b->inf)
        return "counts of the array";
    if (!same_double(a->amax, b->amax) || !same_double(a->amin, b->amin))
        return "extremes";
    if (!same_sum(&a->sum, &b->sum) || !same_double(mpsim_stats_mean(a), mpsim_stats_mean(b)))
        return "the sum";
    if (!same_sum(&a->sum_squares, &b->sum_squares) || !same_double(mpsim_stats_l2(a), mpsim_stats_l2(b)))
        return "the sum of squares";
    if (memcmp(&got->histogram, &want->histogram, sizeof got->histogram))
        return "the histogram";
    for (size_t i = 0; i < n_casts; i++) {
        const mpsim_cast_stats *c = &got->casts[i], *d = &want->casts[i];
        const char *what = memcmp(&c->counts, &d->counts, sizeof c->counts)                ? "counts"
                           : c->compared != d->compared                                    ? "compared"
                           : !same_double(c->max_rel_err, d->max_rel_err)                  ? "largest error"
                           : !same_sum(&c->sum_squared_error, &d->sum_squared_error)       ? "errors"
                           : !same_sum(&c->sum_squares_left_out, &d->sum_squares_left_out) ? "left out"
                           : !same_double(mpsim_cast_stats_sqnr_db(c, a), mpsim_cast_stats_sqnr_db(d, b)) ? "SQNR"
                                                                                                          : NULL;
        if (what) {
            snprintf(text, sizeof text, "cast %zu: %s: %llu %llu %llu %llu %.17g, expected %llu %llu %llu %llu %.17g",
                     i, what, (unsigned long long)c->counts.inexact, (unsigned long long)c->counts.underflow,
                     (unsigned long long)c->counts.subnormal, (unsigned long long)c->counts.overflow, c->max_rel_err,
                     (unsigned long long)d->counts.inexact, (unsigned long long)d->counts.underflow,
                     (unsigned long long)d->counts.subnormal, (unsigned long long)d->counts.overflow, d->max_rel_err);
            return text;
        }
    }
    return NULL;
}

/* A digest of what was counted, in which every bit has a part; without decibels, which depend on the C library. */
struct facts_digest {
    uint64_t words, sum;
    void add(uint64_t word)
    {
        sum += mpsim_mix(words++, word);
    }
    void add(double x)
    {
        uint64_t u;
        memcpy(&u, &x, sizeof u);
        add(u);
    }
    void add(const mpsim_sum *x)
    {
        int e = 0;
        add(mpsim_sum_frexp(x, &e));
        add(uint64_t(e));
    }
    void add(const mpsim_cast_stats *c)
    {
        for (uint64_t n :
             {c->counts.inexact, c->counts.underflow, c->counts.subnormal, c->counts.overflow, c->compared})
            add(n);
        add(c->max_rel_err);
        add(&c->sum_squared_error);
        add(&c->sum_squares_left_out);
    }
};

uint64_t digest_of(const facts *f, size_t n_casts)
{
    facts_digest d = {0, 0};
    for (uint64_t n : {f->stats.count, f->stats.zero, f->stats.nan, f->stats.inf})
        d.add(n);
    d.add(f->stats.amax);
    d.add(f->stats.amin);
    d.add(&f->stats.sum);
    d.add(&f->stats.sum_squares);
    for (uint64_t n : f->histogram.bin)
        d.add(n);
    for (size_t i = 0; i < n_casts; i++)
        d.add(&f->casts[i]);
    return d.sum;
}

void judge_plainly(facts *f, const mpsim_format *format, const mpsim_cast *casts, size_t n_casts,
                   const unsigned char *codes, size_t n)
{
    enum { BLOCK = 512 };
    double x[BLOCK];
    const size_t width = mpsim_format_code_bytes(format);
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : +BLOCK;
        (void)mpsim_decode_array(format, x, codes + i * width, m);
        mpsim_stats_add(&f->stats, x, m);
        mpsim_histogram_add(&f->histogram, x, m);
        for (size_t k = 0; k < n_casts; k++)
            (void)mpsim_cast_stats_add(&f->casts[k], casts[k].format, &casts[k].rounding, NULL, x, m);
    }
}

/* Or by a summary. */
void judge(facts *f, const mpsim_format *format, const mpsim_cast *casts, size_t n_casts, const unsigned char *codes,
           size_t n)
{
    memset(f, 0, sizeof *f);
    if (n <= PLAIN) {
        judge_plainly(f, format, casts, n_casts, codes, n);
        return;
    }
    mpsim_summary *s = mpsim_summary_new();
    const unsigned all = MPSIM_SUMMARY_SUMS | MPSIM_SUMMARY_ERRORS | MPSIM_SUMMARY_HISTOGRAM;
    if (s && mpsim_summary_begin(s, casts, n_casts, all) == MPSIM_OK &&
        mpsim_summary_add_codes(s, format, NULL, codes, n) == MPSIM_OK)
        (void)mpsim_summary_read(s, &f->stats, &f->histogram, f->casts);
    mpsim_summary_free(s);
}

/* ---- the questions ---- */

struct question {
    const char *format;
    int kind;
    size_t n, set;
    int offset, stride; /* bytes; stride 0: one behind the other */
};

struct session {
    const stats_check_plan *plan;
    unsigned char *host, *device;
    size_t room;
    cudaStream_t stream;
    unsigned asked, compared, differing, found; /* found: in the report of plan->record */
    int broken;
};

void say(session *s, const question *q, const char *what)
{
    fprintf(s->plan->to, "DIFFERENT: %s, %zu elements, %s, casts: %s, offset %d, stride %d: %s\n", q->format, q->n,
            kinds[q->kind], sets[q->set].name, q->offset, q->stride, what);
}

/* The array's line in a report, without its end: whether it is equal, and the digest of what was counted. */
const char *line_of(const question *q)
{
    static char text[256];
    snprintf(
        text, sizeof text,
        "{\"format\": \"%s\", \"numbers\": \"%s\", \"casts\": \"%s\", \"elements\": %zu, \"offset\": %d, \"stride\": %d, ",
        q->format, kinds[q->kind], sets[q->set].name, q->n, q->offset, q->stride);
    return text;
}

void report(session *s, const question *q, uint64_t digest, int equal)
{
    if (!s->plan->json)
        return;
    fprintf(s->plan->json, "%s\n    %s\"equal\": %s, \"digest\": \"%016" PRIx64 "\"}", s->compared ? "," : "",
            line_of(q), equal ? "true" : "false", digest);
    fflush(s->plan->json); /* a session may end the program */
}

/* A report that has this array must have the digest of what the CPU counts. */
void compare_record(session *s, const question *q, uint64_t digest)
{
    const char *line = line_of(q), *at = strstr(s->plan->record, line);
    char end[64];
    snprintf(end, sizeof end, "\"equal\": true, \"digest\": \"%016" PRIx64 "\"}", digest);
    if (!at)
        return;
    s->found++;
    if (strncmp(at + strlen(line), end, strlen(end)) != 0) {
        say(s, q, "the report has another digest");
        s->differing++;
    }
}

/* The array as it lies, with gaps, behind `offset` bytes; the host has it without. */
void place(session *s, const question *q, size_t width, unsigned char *laid)
{
    const long stride = q->stride ? q->stride : long(width);
    const size_t gap = size_t(stride < 0 ? -stride : stride);
    memset(laid, 0x7b, q->offset + q->n * gap + 64);
    for (size_t i = 0; i < q->n; i++)
        memcpy(laid + q->offset + (stride < 0 ? q->n - 1 - i : i) * gap, s->host + i * width, width);
}

void ask(session *s, const question *q)
{
    static facts got, want;
    const mpsim_format *f = mpsim_format_find(q->format);
    const size_t width = mpsim_format_code_bytes(f);
    const size_t gap = q->stride ? size_t(q->stride < 0 ? -q->stride : q->stride) : width;
    mpsim_cast casts[MOST_CASTS];
    const size_t n_casts = make_casts(casts, &sets[q->set]);
    char why[256] = "";
    mpsim_cuda_counted *k = NULL;
    const unsigned number = s->asked++;
    if ((s->plan->due && !s->plan->due(number)) ||
        (s->plan->pieces && number % s->plan->pieces != s->plan->piece % s->plan->pieces))
        return;
    if (s->broken || q->offset + q->n * gap + 64 > s->room)
        return;
    mpsim_cuda *c = mpsim_cuda_new(casts, n_casts, MPSIM_SUMMARY_SUMS | MPSIM_SUMMARY_ERRORS | MPSIM_SUMMARY_HISTOGRAM,
                                   -1, why, sizeof why);
    fill(s->host, f, q->kind, q->n);
    if (q->stride || q->offset) {
        unsigned char *laid = static_cast<unsigned char *>(malloc(q->offset + q->n * gap + 64));
        if (laid) {
            place(s, q, width, laid);
            s->broken = cudaMemcpy(s->device, laid, q->offset + q->n * gap + 64, cudaMemcpyHostToDevice) != cudaSuccess;
        }
        free(laid);
    } else if (q->n) {
        s->broken = cudaMemcpy(s->device, s->host, q->n * width, cudaMemcpyHostToDevice) != cudaSuccess;
    }
    if (cudaDeviceSynchronize() != cudaSuccess) /* such a copy may end later, and the stream waits for no other */
        s->broken = 1;
    memset(&got, 0, sizeof got);
    judge(&want, f, casts, n_casts, s->host, q->n);
    const unsigned char *at = s->device + q->offset + (q->stride < 0 && q->n ? (q->n - 1) * gap : 0);
    /* twice: memory is used again */
    mpsim_status status = c ? mpsim_cuda_count(c, f, at, q->n, q->stride, s->stream, &k) : MPSIM_EIO;
    if (status == MPSIM_OK && q->n % 2) {
        mpsim_cuda_drop(k);
        status = mpsim_cuda_count(c, f, at, q->n, q->stride, s->stream, &k);
    }
    if (status == MPSIM_OK)
        status = mpsim_cuda_read(k, &got.stats, &got.histogram, got.casts);
    const char *what = status == MPSIM_OK ? compare(&got, &want, n_casts) : c ? mpsim_cuda_error(c) : why;
    if (status == MPSIM_EIO)
        s->broken = 1;
    if (what)
        say(s, q, *what ? what : mpsim_status_string(status));
    if (status == MPSIM_OK)
        report(s, q, digest_of(&got, n_casts), !what);
    if (s->plan->record)
        compare_record(s, q, digest_of(&want, n_casts));
    s->compared += status == MPSIM_OK;
    s->differing += what != NULL;
    mpsim_cuda_free(c);
}

void ask_all(session *s)
{
    static const char *const formats[] = {"binary32", "fp16", "bf16", "e4m3", "e5m2"};
    static const size_t sizes[] = {0, 1, 31, 1000, 30011};
    unsigned turn = 0;
    const size_t n_sets = sizeof sets / sizeof sets[0];
    for (const char *format : formats) {
        const int wide = strcmp(format, "binary32") == 0, width = wide ? 4 : format[0] == 'e' ? 1 : 2;
        for (int kind = 0; kind < KINDS; kind++) {
            for (size_t n : sizes) {
                const size_t set = turn++ % n_sets;
                question q = {format, kind, n, wide && sets[set].codes_only ? n_sets - 3 : set, 0, 0};
                ask(s, &q);
            }
            /* another place, strides */
            question q = {
                format, kind, 5000, turn % 6, int(turn % 16) / (turn % 3 ? width : 1) * (turn % 3 ? width : 1), 0};
            ask(s, &q);
            q.stride = turn % 2 ? 3 * width : -2 * width;
            q.set = (turn + 1) % 6;
            q.n = 3001;
            ask(s, &q);
            q = {format, kind, 100000, kind == NEARER ? 4u : wide ? 5u : 7u, 0, 0};
            if (kind == TWO) /* counters of 16 bits overflow */
                q.n = width == 1 ? 600001 : 200001;
            ask(s, &q);
            if (s->plan->largest > 100000 && (kind == BELL || kind == BITS || kind == MOVING)) {
                q = {format, kind, kind == BELL ? s->plan->largest : s->plan->largest / 10, kind == BITS ? 5u : 4u,
                     0,      0};
                ask(s, &q);
            }
        }
    }
}

/* ---- time ---- */

double now()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/* The median of the times of `run`, in ms, by events; `after` is not timed. */
template <class F, class G>
double median(session *s, F run, G after)
{
    enum { MOST = 32 };
    const int n = s->plan->repeat < MOST ? s->plan->repeat : +MOST;
    float ms[MOST] = {0};
    cudaEvent_t from, to;
    if (cudaEventCreate(&from) != cudaSuccess || cudaEventCreate(&to) != cudaSuccess)
        return 0;
    for (int i = -2; i < n; i++) {
        (void)cudaEventRecord(from, s->stream);
        run();
        (void)cudaEventRecord(to, s->stream);
        (void)cudaEventSynchronize(to);
        (void)cudaEventElapsedTime(&ms[i < 0 ? 0 : i], from, to);
        after();
    }
    for (int i = 0; i < n; i++)
        for (int k = i; k > 0 && ms[k] < ms[k - 1]; k--) {
            const float swap = ms[k];
            ms[k] = ms[k - 1];
            ms[k - 1] = swap;
        }
    (void)cudaEventDestroy(from);
    (void)cudaEventDestroy(to);
    return double(ms[n / 2]);
}

struct timing {
    const char *format;
    int kind;
    size_t set;
};

void time_one(session *s, const timing *t, const timing *before, size_t n, double copy, int *first)
{
    static facts got;
    const mpsim_format *f = mpsim_format_find(t->format);
    const size_t width = mpsim_format_code_bytes(f);
    mpsim_cast casts[MOST_CASTS];
    const size_t n_casts = make_casts(casts, &sets[t->set]);
    char why[256] = "";
    mpsim_cuda *c = mpsim_cuda_new(casts, n_casts, MPSIM_SUMMARY_SUMS | MPSIM_SUMMARY_ERRORS, -1, why, sizeof why);
    mpsim_cuda_counted *k = NULL;
    int bad = !c;
    if (c) {
        if (!before || strcmp(before->format, t->format) || before->kind != t->kind) {
            fill(s->host, f, t->kind, n);
            bad |= cudaMemcpy(s->device, s->host, n * width, cudaMemcpyHostToDevice) != cudaSuccess ||
                   cudaDeviceSynchronize() != cudaSuccess;
        }
        const auto count = [&](size_t elements) {
            bad |= mpsim_cuda_count(c, f, s->device, elements, 0, s->stream, &k) != MPSIM_OK;
        };
        const auto drop = [&] {
            mpsim_cuda_drop(k);
            k = NULL;
        };
        const double ms = median(
            s, [&] { count(n); }, drop);
        const double small = median(
            s, [&] { count(4096); }, drop);
        count(n);
        while (!bad && !mpsim_cuda_ready(k)) {
        }
        const double from = now();
        bad |= mpsim_cuda_read(k, &got.stats, NULL, got.casts) != MPSIM_OK;
        const double read = 1e3 * (now() - from);
        const double rate = ms > 0 ? double(n * width) / ms * 1e3 : 0;
        if (!bad) {
            fprintf(s->plan->to,
                    "%-8s %-14s %-26s %9.3f ms  %7.1f GB/s  %5.1f %% of copy  4096: %.1f us  read: %.3f ms\n",
                    t->format, kinds[t->kind], sets[t->set].name, ms, rate * 1e-9, copy > 0 ? 100 * rate / copy : 0,
                    1e3 * small, read);
            if (s->plan->json)
                fprintf(
                    s->plan->json,
                    "%s\n    {\"format\": \"%s\", \"numbers\": \"%s\", \"casts\": \"%s\", \"elements\": %zu, \"ms\": %.6g, "
                    "\"bytes_per_second\": %.6g, \"share_of_copy\": %.4g, \"ms_of_4096\": %.6g, \"ms_to_read\": %.6g}",
                    *first ? "" : ",", t->format, kinds[t->kind], sets[t->set].name, n, ms, rate,
                    copy > 0 ? rate / copy : 0, small, read);
            *first = 0;
        }
    }
    if (bad) {
        fprintf(s->plan->to, "FAILED: %s, %s: %s\n", t->format, sets[t->set].name, c ? mpsim_cuda_error(c) : why);
        s->broken = 1;
    }
    mpsim_cuda_free(c);
}

void time_all(session *s)
{
    static const timing rows[] = {
        {"binary32", BELL, 0},   {"binary32", BELL, 1}, {"binary32", BELL, 2},  {"binary32", BELL, 3},
        {"binary32", BELL, 4},   {"binary32", BELL, 5}, {"binary32", RELU, 4},  {"binary32", ZEROS, 4},
        {"binary32", MOVING, 4}, {"binary32", WIDE, 4}, {"binary32", LARGE, 4}, {"binary32", TINY, 4},
        {"binary32", NARROW, 4}, {"bf16", BELL, 4},     {"bf16", RELU, 4},      {"bf16", CONSTANT, 4},
        {"bf16", TWO, 4},        {"bf16", BITS, 4},     {"fp16", BELL, 4},      {"e4m3", BELL, 4},
        {"e4m3", BITS, 4},       {"e5m2", BELL, 4},
    };
    const size_t n = s->plan->timed;
    unsigned char *to = NULL;
    double copy = 0;
    int first = 1;
    if (cudaMalloc(&to, 4 * n) == cudaSuccess) {
        const double ms = median(
            s, [&] { (void)cudaMemcpyAsync(to, s->device, 4 * n, cudaMemcpyDeviceToDevice, s->stream); }, [] {});
        copy = ms > 0 ? 8 * double(n) / ms * 1e3 : 0;
        (void)cudaFree(to);
    }
    fprintf(s->plan->to, "copy of %zu bytes: %.1f GB/s read and written\n", 4 * n, copy * 1e-9);
    if (s->plan->json)
        fprintf(s->plan->json, ",\n  \"copy_bytes_per_second\": %.6g,\n  \"times\": [", copy);
    for (const timing &t : rows)
        if (!s->broken)
            time_one(s, &t, &t > rows ? &t - 1 : NULL, n, copy, &first);
    if (s->plan->json)
        fprintf(s->plan->json, "\n  ]");
}

void begin_report(const stats_check_plan *plan, const char *device)
{
    char date[32] = "";
    const time_t t = time(NULL);
    struct tm utc;
    if (gmtime_r(&t, &utc))
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    fprintf(plan->json,
            "{\n  \"schema\": \"mpsim.gpu-statistics/1\",\n  \"version\": \"%s\",\n  \"device\": \"%s\",\n"
            "  \"date\": \"%s\",\n  \"arrays\": [",
            mpsim_version(), device, date);
}

} // namespace

int stats_check(const stats_check_plan *plan)
{
    session s = {};
    cudaDeviceProp p;
    s.plan = plan;
    const size_t most = plan->largest > plan->timed ? plan->largest : plan->timed;
    s.room = 4 * (most > 1000000 ? most : 1000000) + 4096;
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || cudaGetDeviceProperties(&p, device) != cudaSuccess) {
        fprintf(plan->to, "no device\n");
        return STATS_CHECK_NO_DEVICE;
    }
    s.host = static_cast<unsigned char *>(malloc(s.room));
    if (!s.host || cudaMalloc(&s.device, s.room) != cudaSuccess ||
        cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking) != cudaSuccess) {
        fprintf(plan->to, "no memory, here or on the device\n");
        free(s.host);
        return STATS_CHECK_FAILED;
    }
    if (plan->json)
        begin_report(plan, p.name);
    ask_all(&s);
    if (plan->json)
        fprintf(plan->json, "\n  ]");
    fprintf(plan->to, "%u arrays compared, %u differ\n", s.compared, s.differing);
    if (plan->record)
        fprintf(plan->to, "%u arrays are in the report\n", s.found);
    if (plan->json)
        fprintf(plan->json, ",\n  \"compared\": %u,\n  \"differing\": %u", s.compared, s.differing);
    if (plan->timed && !s.broken)
        time_all(&s);
    if (plan->json)
        fprintf(plan->json, "\n}\n");
    (void)cudaFree(s.device);
    (void)cudaStreamDestroy(s.stream);
    free(s.host);
    return s.broken ? +STATS_CHECK_FAILED : int(s.differing);
}
