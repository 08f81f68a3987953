/* t-convolution.c -- convolutions and their gradients beside naive loops over mpsim_dot in an explicit order: every
 * dimension, layout, order, model. */
#include "support/allocations.h"
#include "sim/verify/kinds.h"
#include "support/dotcases.h"
#include "support/products.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/convolution.h>
#include <mpsim/format.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

/* ---- tensors ---- */

enum { AXES = 5 };

typedef struct tensor {
    mpsim_stack s;
    mpsim_operand o;         /* the same as it is multiplied */
    size_t dims, size[AXES]; /* of 2 + dims axes: images, channels, ...; the rest is 1 */
    unsigned char *memory;
    size_t room; /* bytes */
} tensor;

static size_t numbers_in(const tensor *t)
{
    return t->size[0] * t->size[1] * t->size[2] * t->size[3] * t->size[4];
}

/* Axes in a random order, gaps between them, some backwards. */
static tensor tensor_new(const mpsim_format *memory, size_t dims, size_t first, size_t second, const size_t *extent,
                         uint64_t *seed)
{
    tensor t = {.s = {.format = memory, .rank = (uint32_t)(2 + dims)}, .dims = dims, .size = {first, second, 1, 1, 1}};
    size_t turn[AXES] = {0, 1, 2, 3, 4}, n = 1, at = 0;
    const uint64_t u = test_random(seed);
    for (size_t d = 0; d < dims; d++)
        t.size[2 + d] = extent[d];
    for (size_t i = 2 + dims; i > 1; i--) {
        const size_t j = (size_t)(test_random(seed) % i), x = turn[i - 1];
        turn[i - 1] = turn[j];
        turn[j] = u % 3 ? x : turn[j];
        turn[i - 1] = u % 3 ? turn[i - 1] : x;
    }
    for (size_t i = 2 + dims; i-- > 0;) {
        t.s.strides[turn[i]] = (int64_t)n;
        n *= (t.size[turn[i]] ? t.size[turn[i]] : 1) + (u >> (8 + i) & 1);
    }
    t.room = (n + 2) * 8;
    t.memory = malloc(t.room);
    ck_assert(t.memory);
    memset(t.memory, 0x5a, t.room);
    for (size_t i = 0; i < 2 + dims; i++)
        if (u >> (16 + i) & 1 && t.size[i]) {
            at += (t.size[i] - 1) * (size_t)t.s.strides[i];
            t.s.strides[i] = -t.s.strides[i];
        }
    t.s.codes = t.memory + 1 + at * mpsim_format_code_bytes(memory);
    memcpy(t.s.shape, t.size, t.s.rank * sizeof t.size[0]);
    mpsim_operand_init(&t.o, &t.s, NULL, MPSIM_ROUND_NEAREST_EVEN);
    return t;
}

static void *place(const tensor *t, const size_t *i)
{
    int64_t at = 0;
    for (size_t d = 0; d < 2 + t->dims; d++)
        at += (int64_t)i[d] * t->s.strides[d];
    return (unsigned char *)t->s.codes + at * (int64_t)mpsim_format_code_bytes(t->s.format);
}

static uint64_t load(const tensor *t, const size_t *i)
{
    return code_load(place(t, i), mpsim_format_code_bytes(t->s.format));
}

/* The number as it is multiplied. */
static uint64_t operand(const tensor *t, const size_t *i)
{
    const uint64_t code = load(t, i);
    mpsim_rounding r;
    if (mpsim_format_same(t->o.format, t->s.format))
        return code;
    mpsim_rounding_init(&r, (mpsim_round_mode)t->o.mode);
    return mpsim_encode_f64(t->o.format, &r, mpsim_decode(t->s.format, code), 0, NULL);
}

/* Index number n of a tensor, row-major. */
static void unravel(const tensor *t, size_t n, size_t *i)
{
    for (size_t d = AXES; d-- > 0; n /= t->size[d])
        i[d] = n % t->size[d];
}

static void fill(tensor *t, int kind, uint64_t *seed)
{
    const size_t n = numbers_in(t);
    uint64_t *x = calloc(2 * n + 2, sizeof *x);
    ck_assert(x);
    kinds_fill(t->s.format, x, t->s.format, x + n + 1, n, mpsim_format_find("binary32"), kind, seed);
    for (size_t k = 0; k < n; k++) {
        size_t i[AXES];
        unravel(t, k, i);
        code_store(place(t, i), mpsim_format_code_bytes(t->s.format), x[k]);
    }
    free(x);
}

/* ---- what is expected ---- */

typedef enum what { FORWARD, INPUT, WEIGHT } what;

/* A convolution with its sizes. */
typedef struct sized {
    size_t dims, images, channels, outputs, groups, in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
    uint8_t transposed, order, taps;
    size_t row_multiple;
} sized;

typedef struct problem {
    sized c;
    mpsim_model m;
    mpsim_rng rng;
    const mpsim_pool *pool;
    float factor;
    int has_bias, rounds; /* rounds: the result, to e4m3 */
    mpsim_entered counts; /* that is wanted */
    tensor x, w, y, bias; /* or their gradients */
    what what;
    uint64_t *a, *b; /* the factors of a sum */
    size_t n;
} problem;

static void add_product(problem *p, uint64_t a, uint64_t b)
{
    p->a[p->n] = a;
    p->b[p->n++] = b;
}

static size_t product_of(const size_t *n, size_t dims)
{
    size_t all = 1;
    for (size_t d = 0; d < dims; d++)
        all *= n[d];
    return all;
}

static void split(size_t n, const size_t *size, size_t dims, size_t *at)
{
    for (size_t d = dims; d-- > 0; n /= size[d])
        at[d] = n % size[d];
}

/* Where position `at` reads by tap t: 1: at from, 0: outside, -1: nowhere. */
static int reads(const sized *c, int turned, const size_t *at, const size_t *t, const size_t *extent, size_t *from)
{
    int inside = 1;
    for (size_t d = 0; d < c->dims; d++) {
        const long stride = (long)c->stride[d], padding = (long)c->padding[d], tap = (long)(t[d] * c->dilation[d]);
        long i = turned ? (long)at[d] + padding - tap : (long)at[d] * stride - padding + tap;
        if (turned && i % stride != 0)
            return -1;
        i = turned ? i / stride : i;
        inside = inside && i >= 0 && i < (long)extent[d];
        from[d] = (size_t)i;
    }
    return inside;
}

/* The tap that is number i of the order. */
static void tap_of(const problem *p, int turned, size_t i, size_t taps, size_t *t)
{
    split(turned && p->c.taps == MPSIM_TAPS_AS_READ ? taps - 1 - i : i, p->c.kernel, p->c.dims, t);
}

/* The product of tap t and channel k, counted in the group. */
static void add_tap(problem *p, int turned, const size_t *i, const size_t *t, size_t k)
{
    const sized *c = &p->c;
    const tensor *from = p->what == FORWARD ? &p->x : &p->y;
    const size_t results = (p->what == FORWARD ? c->outputs : c->channels) / c->groups;
    const size_t sources = (p->what == FORWARD ? c->channels : c->outputs) / c->groups;
    const size_t group = i[1] / results, of_result = i[1] % results;
    size_t at[AXES] = {i[0], group * sources + k, 0, 0, 0}, w[AXES] = {0};
    const int there = reads(c, turned, i + 2, t, from->size + 2, at + 2);
    if (there < 0)
        return;
    w[0] = turned ? group * sources + k : i[1];
    w[1] = turned ? of_result : k;
    for (size_t d = 0; d < c->dims; d++)
        w[2 + d] = t[d];
    add_product(p, there ? operand(from, at) : 0, operand(&p->w, w));
}

static void list_taps(problem *p, const size_t *i)
{
    const sized *c = &p->c;
    const int turned = c->transposed == (p->what == FORWARD);
    const size_t taps = product_of(c->kernel, c->dims);
    const size_t channels = (p->what == FORWARD ? c->channels : c->outputs) / c->groups;
    const size_t block = c->order == MPSIM_TAPS_CHANNELS ? channels : c->order == MPSIM_CHANNELS_TAPS ? 1 : 16;
    for (size_t first = 0; first < channels; first += block)
        for (size_t j = 0; j < taps; j++)
            for (size_t k = first; k < first + block && k < channels; k++) {
                size_t t[3];
                tap_of(p, turned, j, taps, t);
                add_tap(p, turned, i, t, k);
            }
}

static void list_positions(problem *p, const size_t *i)
{
    const sized *c = &p->c;
    const tensor *seen = c->transposed ? &p->y : &p->x, *other = c->transposed ? &p->x : &p->y;
    const size_t lines = (c->transposed ? c->channels : c->outputs) / c->groups;
    const size_t group = i[0] / lines, of_seen = (c->transposed ? c->outputs : c->channels) / c->groups;
    const size_t positions = product_of(other->size + 2, c->dims);
    for (size_t n = 0; n < c->images * positions; n++) {
        size_t at[AXES] = {n / positions, i[0], 0, 0, 0}, from[AXES] = {n / positions, group * of_seen + i[1], 0, 0, 0};
        split(n % positions, other->size + 2, c->dims, at + 2);
        const uint64_t read = reads(c, 0, at + 2, i + 2, seen->size + 2, from + 2) ? operand(seen, from) : 0;
        add_product(p, c->transposed ? read : operand(other, at), c->transposed ? operand(other, at) : read);
        if (at[1 + c->dims] + 1 == other->size[1 + c->dims])
            while (p->n % c->row_multiple)
                add_product(p, 0, 0);
    }
}

static double finished(const problem *p, double s, size_t output)
{
    const int wide = mpsim_format_code_bytes(&p->m.result.format) > 4;
    const size_t i[AXES] = {0, 0, output, 0, 0};
    const tensor *a = p->what == FORWARD ? &p->x : &p->y, *b = p->what == WEIGHT ? &p->x : &p->w;
    const float factors[2] = {a->o.inverse * b->o.inverse, p->factor};
    for (size_t k = 0; k < COUNT(factors); k++)
        if (factors[k] != 1)
            s = wide ? s * (double)factors[k] : (double)((float)s * factors[k]);
    if (p->has_bias) {
        const double v = mpsim_decode(p->bias.s.format, load(&p->bias, i));
        s = wide ? s + v : (double)((float)s + (float)v);
    }
    return s;
}

/* The code of the result in memory; what its rounding did. */
static uint64_t stored(problem *p, const tensor *t, double s)
{
    const mpsim_format *numbers = p->rounds ? mpsim_format_find("e4m3") : t->s.format;
    mpsim_rounding nearest;
    unsigned flags = 0;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    const uint64_t code = mpsim_encode_f64(numbers, &nearest, s, 0, &flags);
    const double d = mpsim_decode(numbers, code);
    p->counts.nonzero += s != 0 && isfinite(s);
    p->counts.lost += (flags & MPSIM_FLAG_UNDERFLOW) != 0;
    p->counts.overflow += (flags & MPSIM_FLAG_OVERFLOW) != 0;
    p->counts.nonfinite += isfinite(d) ? 0 : 1;
    return p->rounds ? mpsim_encode_f64(t->s.format, &nearest, d, 0, NULL) : code;
}

static tensor *result_of(problem *p)
{
    return p->what == FORWARD ? &p->y : p->what == INPUT ? &p->x : &p->w;
}

/* The result by naive loops, into memory like that of the result. */
static void solve(problem *p, unsigned char *memory)
{
    const tensor *d = result_of(p), *fa = p->what == FORWARD ? &p->x : &p->y, *fb = p->what == WEIGHT ? &p->x : &p->w;
    unsigned char *a = malloc(p->n * 8 + 8), *b = malloc(p->n * 8 + 8);
    ck_assert(a && b);
    for (size_t n = 0; n < numbers_in(d); n++) {
        size_t i[AXES];
        uint64_t code = 0;
        mpsim_rng rng = p->rng;
        unravel(d, n, i);
        p->n = 0;
        (p->what == WEIGHT ? list_positions : list_taps)(p, i);
        dot_pack(fa->o.format, a, 0, p->a, p->n);
        dot_pack(fb->o.format, b, 0, p->b, p->n);
        rng.index += (uint64_t)n << 32;
        ck_assert(mpsim_dot(&p->m, fa->o.format, a, fb->o.format, b, p->n, 0, &rng, &code) == MPSIM_OK);
        const double s = finished(p, mpsim_decode(&p->m.result.format, code), i[1]);
        code_store(memory + ((unsigned char *)place(d, i) - d->memory), mpsim_format_code_bytes(d->s.format),
                   stored(p, d, s));
    }
    free(a);
    free(b);
}

static mpsim_status run_counted(const problem *p, mpsim_entered *counts)
{
    mpsim_convolution c;
    mpsim_convolution_init(&c);
    c.model = &p->m;
    c.a = p->what == FORWARD ? &p->x.o : &p->y.o;
    c.b = p->what == WEIGHT ? &p->x.o : &p->w.o;
    c.d = p->what == FORWARD ? &p->y.s : p->what == INPUT ? &p->x.s : &p->w.s;
    c.numbers = p->rounds ? mpsim_format_find("e4m3") : NULL;
    c.factor = p->factor;
    c.bias = p->has_bias ? &p->bias.s : NULL;
    c.rng = &p->rng;
    c.counts = counts;
    c.transposed = p->c.transposed;
    c.order = p->c.order;
    c.taps = p->c.taps;
    c.row_multiple = p->c.row_multiple;
    c.groups = p->c.groups;
    memcpy(c.stride, p->c.stride, sizeof c.stride);
    memcpy(c.padding, p->c.padding, sizeof c.padding);
    memcpy(c.dilation, p->c.dilation, sizeof c.dilation);
    return (p->what == FORWARD ? mpsim_convolution_forward
            : p->what == INPUT ? mpsim_convolution_backward_input
                               : mpsim_convolution_backward_weight)(&c, p->pool);
}

static mpsim_status run(const problem *p)
{
    return run_counted(p, NULL);
}

static void print(const problem *p)
{
    const sized *c = &p->c;
    printf(
        "# %s%s, %zu dims, order %d, taps %d, row multiple %zu, %zu images, %zu to %zu channels, %zu groups, factor %g%s\n",
        c->transposed ? "transposed " : "",
        p->what == FORWARD ? "forward"
        : p->what == INPUT ? "backward_input"
                           : "backward_weight",
        c->dims, c->order, c->taps, c->row_multiple, c->images, c->channels, c->outputs, c->groups, (double)p->factor,
        p->has_bias ? ", bias" : "");
    for (size_t d = 0; d < c->dims; d++)
        printf("# %zu -> %zu: kernel %zu, stride %zu, padding %zu, dilation %zu\n", c->in[d], c->out[d], c->kernel[d],
               c->stride[d], c->padding[d], c->dilation[d]);
    printf("# model %s\n", p->m.name);
    dot_print_model(&p->m);
}

static void check(problem *p)
{
    const size_t terms =
        product_of(p->c.kernel, p->c.dims) * (p->c.channels + p->c.outputs) +
        p->c.images * (product_of(p->c.in, p->c.dims) + product_of(p->c.out, p->c.dims)) * p->c.row_multiple + 1;
    tensor *d = result_of(p);
    unsigned char *want = malloc(d->room);
    p->a = malloc(terms * sizeof *p->a);
    p->b = malloc(terms * sizeof *p->b);
    p->n = terms;
    ck_assert(want && p->a && p->b);
    memcpy(want, d->memory, d->room);
    mpsim_entered counts = {0, 0, 0, 0};
    memset(&p->counts, 0, sizeof p->counts);
    solve(p, want);
    ck_assert_int_eq(run_counted(p, p->n % 2 ? &counts : NULL), MPSIM_OK);
    for (size_t n = 0; n < numbers_in(d); n++) {
        size_t i[AXES];
        unravel(d, n, i);
        const size_t bytes = mpsim_format_code_bytes(d->s.format);
        unsigned char *at = want + ((unsigned char *)place(d, i) - d->memory);
        const uint64_t found = load(d, i);
        uint64_t expected = code_load(at, bytes);
        if (isnan(mpsim_decode(d->s.format, found)) && isnan(mpsim_decode(d->s.format, expected)))
            code_store(at, bytes, expected = found); /* as of products, any NaN may be stored */
        if (found != expected)
            print(p);
        ck_assert_msg(found == expected, "number %zu: found %#llx, expected %#llx", n, (unsigned long long)found,
                      (unsigned long long)expected);
    }
    ck_assert_msg(memcmp(want, d->memory, d->room) == 0, "written beside the result");
    ck_assert(p->n % 2 == 0 || memcmp(&counts, &p->counts, sizeof counts) == 0);
    free(want);
    free(p->a);
    free(p->b);
}

static void clear(problem *p)
{
    free(p->x.memory);
    free(p->w.memory);
    free(p->y.memory);
    free(p->bias.memory);
}

/* ---- problems ---- */

static void set_tensors(problem *p, const mpsim_format *x, const mpsim_format *w, const mpsim_format *y, uint64_t *seed)
{
    const sized *c = &p->c;
    p->x = tensor_new(x, c->dims, c->images, c->channels, c->in, seed);
    p->y = tensor_new(y, c->dims, c->images, c->outputs, c->out, seed);
    p->w = c->transposed ? tensor_new(w, c->dims, c->channels, c->outputs / c->groups, c->kernel, seed)
                         : tensor_new(w, c->dims, c->outputs, c->channels / c->groups, c->kernel, seed);
    p->bias = tensor_new(mpsim_format_find("bf16"), 1, 1, 1, &c->outputs, seed);
    fill(&p->bias, KIND_NORMAL, seed);
    p->factor = 1;
    p->rng = (mpsim_rng){7, 8, 9};
}

static void init(sized *c, size_t dims)
{
    *c = (sized){.dims = dims, .groups = 1, .row_multiple = 1, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
}

/* The sizes of y; 0: there are none. */
static int set_sizes(sized *c, const size_t *extra)
{
    mpsim_convolution l;
    mpsim_convolution_init(&l);
    l.transposed = c->transposed;
    memcpy(l.stride, c->stride, sizeof l.stride);
    memcpy(l.padding, c->padding, sizeof l.padding);
    memcpy(l.dilation, c->dilation, sizeof l.dilation);
    for (size_t d = 0; d < c->dims; d++)
        if (mpsim_convolution_size(&l, d, c->in[d], c->kernel[d], extra ? extra[d] : 0, &c->out[d]) != MPSIM_OK)
            return 0;
    return 1;
}

/* Sizes that are small in all, with every setting. */
static void any_convolution(sized *c, uint64_t *seed)
{
    do {
        const uint64_t u = test_random(seed), v = test_random(seed);
        init(c, 1 + u % 3);
        c->transposed = u >> 4 & 1;
        c->order = (uint8_t)((u >> 8) % MPSIM_CONVOLUTION_ORDERS);
        c->taps = u >> 12 & 1;
        c->row_multiple = u >> 13 & 1 ? 1 : 1 + (u >> 56) % 6;
        c->images = (u >> 16) % 4;
        c->groups = u >> 20 & 1 ? 1 : 1 + (u >> 24) % 3;
        c->channels = c->groups * (u >> 28 & 1 ? (u >> 32) % 4 : (u >> 32) % 40);
        c->outputs = c->groups * (u >> 40 & 1 ? (u >> 44) % 4 : (u >> 44) % 20);
        for (size_t d = 0; d < c->dims; d++) {
            const uint64_t e = v >> 16 * d;
            c->in[d] = e % 8;
            c->kernel[d] = (e >> 3) % 5;
            c->stride[d] = 1 + (e >> 6) % 3;
            c->padding[d] = (e >> 8) % 3;
            c->dilation[d] = 1 + (e >> 10) % 3;
        }
        const size_t extra[3] = {u >> 50 & 1, u >> 51 & 1, u >> 52 & 1};
        if (!set_sizes(c, extra))
            c->groups = 0;
    } while (c->groups == 0 || c->images * product_of(c->out, c->dims) * c->outputs * product_of(c->kernel, c->dims) *
                                       c->channels / c->groups >
                                   40000);
}

/* Rounded as it is multiplied, or not; with an inverse. */
static void any_entry(const mpsim_model *m, tensor *t, uint64_t u)
{
    static const char *const formats[] = {"bf16", "fp16", "e4m3"};
    const mpsim_format *f = mpsim_format_find(formats[u % COUNT(formats)]);
    mpsim_operand_init(&t->o, &t->s, u >> 8 & 1 && dot_can(m, f, f) ? f : NULL,
                       u >> 9 & 1 ? MPSIM_ROUND_NEAREST_EVEN : MPSIM_ROUND_UP);
    t->o.inverse = u >> 10 & 1 ? 1 : 1.25F;
}

static void run_sets(problem *p, int kind, uint64_t *seed)
{
    for (int i = FORWARD; i <= WEIGHT; i++) {
        const uint64_t u = test_random(seed);
        p->what = (what)i;
        tensor *a = i == FORWARD ? &p->x : &p->y, *b = i == WEIGHT ? &p->x : &p->w;
        fill(a, kind, seed);
        fill(b, kind, seed);
        any_entry(&p->m, a, u);
        any_entry(&p->m, b, u >> 20);
        if (!dot_can(&p->m, a->o.format, b->o.format))
            a->o.format = a->s.format, b->o.format = b->s.format;
        p->rounds = u >> 40 & 1;
        p->factor = u >> 41 & 1 ? 1 : 0.75F;
        p->has_bias = i == FORWARD && u >> 42 & 1;
        check(p);
    }
    p->rounds = p->has_bias = 0;
    p->factor = 1;
}

static size_t three(void *self)
{
    (void)self;
    return 3;
}

static const mpsim_pool threads = {product_on_threads, NULL, three};

START_TEST(rows_of_the_table)
{
    static const char *const models[] = {"fma",
                                         "sequential:bf16",
                                         "pairwise",
                                         "exact",
                                         "fma:fp16:round=sr",
                                         "avx512-bf16-fp32",
                                         "amx-bf16-fp32",
                                         "hopper-bf16-fp32",
                                         "volta-fp16-fp32",
                                         "cdna3-bf16-fp32",
                                         "fma:binary64",
                                         "avx512-bf16-fp32:chunk=4",
                                         "fma:chunk=3"};
    static const char *const formats[] = {"binary32", "bf16", "fp16"};
    uint64_t seed = test_seed() + 21;
    for (size_t n = 0; n < test_scaled(600); n++) {
        problem p = {.n = 0};
        const uint64_t u = test_random(&seed);
        ck_assert_msg(mpsim_model_parse(&p.m, models[n % COUNT(models)]) == MPSIM_OK, "%s", models[n % COUNT(models)]);
        any_convolution(&p.c, &seed);
        set_tensors(&p, mpsim_format_find(formats[u % 3]), mpsim_format_find(formats[(u >> 8) % 3]),
                    mpsim_format_find(formats[(u >> 16) % 3]), &seed);
        p.pool = u >> 30 & 1 ? &threads : NULL;
        run_sets(&p, u >> 24 & 1 ? KIND_NORMAL : (int)((u >> 32) % KINDS), &seed);
        clear(&p);
    }
}
END_TEST

/* Models and formats that no table has. */
START_TEST(any_model)
{
    uint64_t seed = test_seed() + 22;
    for (size_t n = 0; n < test_scaled(600); n++) {
        problem p = {.n = 0};
        const mpsim_format f = dot_format(test_random(&seed) % DOT_FORMATS);
        dot_any_model(&p.m, &seed);
        any_convolution(&p.c, &seed);
        if (!dot_can(&p.m, &f, &f) || f.zero == MPSIM_ZERO_NONE || p.m.result.format.zero == MPSIM_ZERO_NONE)
            continue;
        set_tensors(&p, &f, &f, &f, &seed);
        for (int i = FORWARD; i <= WEIGHT; i++) {
            p.what = (what)i;
            fill(i == FORWARD ? &p.x : &p.y, (int)(n % KINDS), &seed);
            fill(i == WEIGHT ? &p.x : &p.w, (int)(n % KINDS), &seed);
            check(&p);
        }
        clear(&p);
    }
}
END_TEST

/* More products than are added at once. */
START_TEST(deep)
{
    static const char *const models[] = {"fma",
                                         "avx512-bf16-fp32",
                                         "amx-bf16-fp32",
                                         "hopper-bf16-fp32",
                                         "pairwise",
                                         "fma:fp16",
                                         "hopper-wgmma-fp8-promoted",
                                         "exact",
                                         NULL};
    uint64_t seed = test_seed() + 23;
    for (size_t n = 0; n < test_scaled(180); n++) {
        problem p = {.n = 0};
        const char *name = models[n % COUNT(models)];
        if (!name)
            dot_any_model(&p.m, &seed);
        else
            ck_assert_msg(mpsim_model_parse(&p.m, name) == MPSIM_OK, "%s", name);
        const mpsim_format *f = mpsim_format_find(name && strstr(name, "fp8") ? "e4m3" : "bf16");
        init(&p.c, 1);
        p.c.images = 2;
        p.c.channels = n % 2 ? 2100 : 1;
        p.c.outputs = 1 + n % 3;
        p.c.in[0] = n % 2 ? 1 : 3000;
        p.c.kernel[0] = n % 2 ? 2 : 1;
        p.c.padding[0] = n % 2;
        p.c.order = (uint8_t)(n % 3);
        ck_assert(set_sizes(&p.c, NULL));
        if (dot_can(&p.m, f, f) && p.m.result.format.zero != MPSIM_ZERO_NONE) {
            set_tensors(&p, f, f, mpsim_format_find("binary32"), &seed);
            p.what = n % 2 ? FORWARD : WEIGHT;
            if (p.what == WEIGHT) {
                free(p.y.memory);
                p.y = tensor_new(f, 1, p.c.images, p.c.outputs, p.c.out, &seed);
            }
            fill(&p.x, KIND_NORMAL, &seed);
            fill(&p.w, KIND_NORMAL, &seed);
            fill(&p.y, KIND_NORMAL, &seed);
            check(&p);
            clear(&p);
        }
    }
}
END_TEST

/* ---- as frameworks know them ---- */

START_TEST(sizes_of_frameworks)
{
    mpsim_convolution c;
    size_t n = 77;
    mpsim_convolution_init(&c);
    mpsim_convolution_init(NULL);
    c.stride[0] = 2;
    c.padding[0] = 1;
    ck_assert(mpsim_convolution_size(&c, 0, 7, 3, 0, &n) == MPSIM_OK && n == 4);
    ck_assert(mpsim_convolution_size(&c, 1, 2, 3, 0, &n) == MPSIM_OK && n == 0); /* 2 - 3 + 1 */
    ck_assert(mpsim_convolution_size(&c, 1, 1, 3, 0, &n) == MPSIM_EINVAL && n == 0);
    c.transposed = 1;
    ck_assert(mpsim_convolution_size(&c, 0, 7, 3, 1, &n) == MPSIM_OK && n == 14); /* 6 2 - 2 + 3 + 1 */
    ck_assert(mpsim_convolution_size(&c, 1, 1, 3, 0, &n) == MPSIM_OK && n == 3);
    ck_assert(mpsim_convolution_size(NULL, 0, 1, 1, 0, &n) == MPSIM_EINVAL);
    ck_assert(mpsim_convolution_size(&c, 3, 1, 1, 0, &n) == MPSIM_EINVAL);
    ck_assert(mpsim_convolution_size(&c, 0, SIZE_MAX, 1, 0, &n) == MPSIM_EINVAL);
    ck_assert(mpsim_convolution_size(&c, 0, 1, 1, 0, NULL) == MPSIM_EINVAL && n == 3);
}
END_TEST

/* One row of three numbers, a kernel of three, padding 1: by hand. */
static void by_hand(problem *p)
{
    uint64_t seed = 5;
    memset(p, 0, sizeof *p);
    ck_assert(mpsim_model_parse(&p->m, "fma") == MPSIM_OK);
    init(&p->c, 1);
    p->c.images = p->c.channels = p->c.outputs = 1;
    p->c.in[0] = p->c.kernel[0] = 3;
    p->c.padding[0] = 1;
    ck_assert(set_sizes(&p->c, NULL));
    const mpsim_format *f = mpsim_format_find("binary32");
    set_tensors(p, f, f, f, &seed);
}

static void put(const tensor *t, const float *values)
{
    for (size_t n = 0; n < numbers_in(t); n++) {
        size_t i[AXES];
        unravel(t, n, i);
        code_store(place(t, i), 4, bits_of_f32(values[n]));
    }
}

static float number(const tensor *t, size_t n)
{
    size_t i[AXES];
    unravel(t, n, i);
    return f32_of_bits((uint32_t)load(t, i));
}

START_TEST(padding_is_a_product)
{
    problem p;
    by_hand(&p);
    put(&p.x, (const float[]){1, 2, 3});
    put(&p.w, (const float[]){INFINITY, 10, 100});
    ck_assert(run(&p) == MPSIM_OK);
    ck_assert(isnan(number(&p.y, 0))); /* 0 times infinity */
    ck_assert(number(&p.y, 1) == INFINITY && number(&p.y, 2) == INFINITY);
    put(&p.w, (const float[]){1, 10, 100});
    ck_assert(run(&p) == MPSIM_OK);
    ck_assert(number(&p.y, 0) == 210 && number(&p.y, 1) == 321 && number(&p.y, 2) == 32);
    p.what = INPUT; /* dx[q] = dy[q + 1] w[0] + dy[q] w[1] + dy[q - 1] w[2] */
    put(&p.y, (const float[]){1, 2, 3});
    ck_assert(run(&p) == MPSIM_OK);
    ck_assert(number(&p.x, 0) == 12 && number(&p.x, 1) == 123 && number(&p.x, 2) == 230);
    p.what = WEIGHT; /* dw[t] = sum dy[p] x[p - 1 + t] */
    put(&p.x, (const float[]){1, 10, 100});
    ck_assert(run(&p) == MPSIM_OK);
    ck_assert(number(&p.w, 0) == 32 && number(&p.w, 1) == 321 && number(&p.w, 2) == 210);
    clear(&p);
}
END_TEST

/* 2^24 + 1 - 2^24: of a gradient, the taps' order shows. */
START_TEST(order_of_taps)
{
    problem p;
    by_hand(&p);
    p.what = INPUT;
    put(&p.y, (const float[]){0x1p24f, 1, -0x1p24f});
    put(&p.w, (const float[]){1, 1, 1});
    ck_assert(run(&p) == MPSIM_OK);
    ck_assert(number(&p.x, 1) == 0); /* dy ascending: 2^24 + 1 is 2^24 */
    put(&p.y, (const float[]){1, 0x1p24f, -0x1p24f});
    ck_assert(run(&p) == MPSIM_OK);
    ck_assert(number(&p.x, 1) == 0);
    p.c.taps = MPSIM_TAPS_AS_WEIGHTS;
    ck_assert(run(&p) == MPSIM_OK);
    ck_assert(number(&p.x, 1) == 1);
    clear(&p);
}
END_TEST

/* Rows of 31 columns by a kernel of 5: chains of 28 and 3 columns, each from +0 on, are added in binary32. */
START_TEST(rows_in_pieces)
{
    enum { N = 2, H = 3, W = 31, PIECE = 28 };
    const mpsim_format *f = mpsim_format_find("bf16");
    uint64_t seed = test_seed() + 25;
    problem p = {.n = 0};
    mpsim_model chain;
    ck_assert(mpsim_model_parse(&p.m, "avx512-bf16-fp32:chunk=28") == MPSIM_OK);
    ck_assert(mpsim_model_parse(&chain, "avx512-bf16-fp32") == MPSIM_OK);
    init(&p.c, 2);
    p.c.images = N;
    p.c.channels = p.c.outputs = 1;
    p.c.row_multiple = PIECE;
    p.c.in[0] = H;
    p.c.in[1] = W;
    p.c.kernel[0] = p.c.kernel[1] = 5;
    p.c.padding[0] = p.c.padding[1] = 2;
    ck_assert(set_sizes(&p.c, NULL));
    set_tensors(&p, f, mpsim_format_find("binary32"), f, &seed);
    fill(&p.x, KIND_NORMAL, &seed);
    fill(&p.y, KIND_NORMAL, &seed);
    p.what = WEIGHT;
    ck_assert(run(&p) == MPSIM_OK);
    for (size_t t = 0; t < 25; t++) {
        float sum = 0;
        for (size_t row = 0; row < N * H; row++)
            for (size_t first = 0; first < W; first += PIECE) {
                uint16_t a[PIECE], b[PIECE];
                size_t n = 0;
                uint64_t code = 0;
                for (; n < PIECE && first + n < W; n++) {
                    const size_t at[AXES] = {row / H, 0, row % H, first + n, 0};
                    size_t from[AXES] = {row / H, 0, 0, 0, 0};
                    const int inside = reads(&p.c, 0, at + 2, (const size_t[]){t / 5, t % 5}, p.x.size + 2, from + 2);
                    a[n] = (uint16_t)load(&p.y, at);
                    b[n] = (uint16_t)(inside ? load(&p.x, from) : 0);
                }
                ck_assert(mpsim_dot(&chain, f, a, f, b, n, 0, NULL, &code) == MPSIM_OK);
                sum += f32_of_bits((uint32_t)code);
            }
        ck_assert(bits_of_f32(sum) == bits_of_f32(number(&p.w, t)));
    }
    clear(&p);
}
END_TEST

/* What lib/include/train/train.h says of a trainer's convolutions, 3 x 3 with padding 1, in NHWC: im2col(x) W^T, dy^T im2col(x),
 * im2col(dy) V^T with V[c, (ky 3 + kx) O + o] = W[o, (2 - ky, 2 - kx, c)]. */
enum { IMAGES = 2, SIDE = 5, FROM = 3, TO = 4, PIXELS = IMAGES * SIDE * SIDE };

static void im2col(uint16_t *to, const uint16_t *x, int channels)
{
    for (int i = 0; i < PIXELS * 9 * channels; i++) {
        const int c = i % channels, k = i / channels % 9, pixel = i / channels / 9;
        const int y = pixel / SIDE % SIDE + k / 3 - 1, across = pixel % SIDE + k % 3 - 1;
        const int inside = y >= 0 && y < SIDE && across >= 0 && across < SIDE;
        to[i] = inside ? x[((pixel / SIDE / SIDE * SIDE + y) * SIDE + across) * channels + c] : 0;
    }
}

static void expect_gemm(const mpsim_model *m, size_t rows, size_t columns, size_t depth, const mpsim_matrix *a,
                        const mpsim_matrix *b, const float *found)
{
    float *want = malloc(rows * columns * sizeof *want);
    ck_assert(want);
    ck_assert(mpsim_gemm(m, rows, columns, depth, a, b, NULL, want, columns, NULL, NULL) == MPSIM_OK);
    ck_assert(memcmp(want, found, rows * columns * sizeof *want) == 0);
    free(want);
}

START_TEST(as_the_trainer)
{
    static uint16_t x[PIXELS * FROM], w[TO * 9 * FROM], v[FROM * 9 * TO], dy[PIXELS * TO], columns[PIXELS * 9 * TO];
    static float y[PIXELS * TO], dx[PIXELS * FROM], dw[TO * 9 * FROM];
    const mpsim_format *f = mpsim_format_find("bf16"), *r = mpsim_format_find("binary32");
    uint64_t seed = test_seed() + 24;
    mpsim_model m;
    ck_assert(mpsim_model_parse(&m, "hopper-bf16-fp32") == MPSIM_OK);
    uint16_t *const all[] = {x, w, dy};
    const size_t sizes_of[] = {COUNT(x), COUNT(w), COUNT(dy)};
    for (size_t k = 0; k < COUNT(all); k++)
        for (size_t i = 0; i < sizes_of[k]; i++)
            all[k][i] = (uint16_t)(0x3f00 + (test_random(&seed) & 0x80ff));
    for (int c = 0; c < FROM; c++)
        for (int k = 0; k < 9; k++)
            for (int o = 0; o < TO; o++)
                v[(c * 9 + k) * TO + o] = w[(o * 9 + 8 - k) * FROM + c];
    mpsim_convolution c;
    mpsim_convolution_init(&c);
    c.model = &m;
    c.padding[0] = c.padding[1] = 1;
#define NHWC(format, codes, channels)                             \
    {                                                             \
        format, codes, 4, {IMAGES, channels, SIDE, SIDE},         \
        {                                                         \
            SIDE *SIDE *(channels), 1, SIDE *(channels), channels \
        }                                                         \
    }
#define TAPS(format, codes)                 \
    {                                       \
        format, codes, 4, {TO, FROM, 3, 3}, \
        {                                   \
            9 * FROM, 1, 3 * FROM, FROM     \
        }                                   \
    }
    const mpsim_stack tx = NHWC(f, x, FROM), tdy = NHWC(f, dy, TO), ty = NHWC(r, y, TO), tdx = NHWC(r, dx, FROM);
    const mpsim_stack tw = TAPS(f, w), tdw = TAPS(r, dw);
    mpsim_operand ox, ow, ody;
    mpsim_operand_init(&ox, &tx, NULL, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_operand_init(&ow, &tw, NULL, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_operand_init(&ody, &tdy, NULL, MPSIM_ROUND_NEAREST_EVEN);
    c.a = &ox;
    c.b = &ow;
    c.d = &ty;
    ck_assert(mpsim_convolution_forward(&c, NULL) == MPSIM_OK);
    c.a = &ody;
    c.d = &tdx;
    ck_assert(mpsim_convolution_backward_input(&c, NULL) == MPSIM_OK);
    c.b = &ox;
    c.d = &tdw;
    ck_assert(mpsim_convolution_backward_weight(&c, NULL) == MPSIM_OK);
    im2col(columns, x, FROM);
    expect_gemm(&m, PIXELS, TO, 9 * FROM, &(mpsim_matrix){f, columns, 9 * FROM, 0}, &(mpsim_matrix){f, w, 9 * FROM, 1},
                y);
    expect_gemm(&m, TO, 9 * FROM, PIXELS, &(mpsim_matrix){f, dy, TO, 1}, &(mpsim_matrix){f, columns, 9 * FROM, 0}, dw);
    im2col(columns, dy, TO);
    expect_gemm(&m, PIXELS, FROM, 9 * TO, &(mpsim_matrix){f, columns, 9 * TO, 0}, &(mpsim_matrix){f, v, 9 * TO, 1}, dx);
}
END_TEST

#ifdef CAN_FAIL
/* Every allocation fails once: that is a status, and nothing is left. */
START_TEST(no_memory)
{
    problem p;
    by_hand(&p);
    p.has_bias = 1;
    for (int i = FORWARD; i <= WEIGHT; i++, p.has_bias = 0) {
        p.what = (what)i;
        const long before = live;
        failed = 1;
        for (int k = 1; failed; k++) {
            failed = 0;
            until = k;
            const mpsim_status s = run(&p);
            until = 0;
            ck_assert_int_eq(s, failed ? MPSIM_ENOMEM : MPSIM_OK);
            ck_assert_int_eq(live, before);
            ck_assert(k > 2 || failed);
        }
    }
    clear(&p);
}
END_TEST
#endif

/* ---- what is refused ---- */

START_TEST(refused)
{
    problem p;
    by_hand(&p);
    const sized c = p.c;
    const tensor tensors[] = {p.x, p.w, p.y};
    put(&p.y, (const float[]){1, 2, 3});
#define REFUSED(wanted, change)            \
    do {                                   \
        change;                            \
        ck_assert_int_eq(run(&p), wanted); \
        p.c = c;                           \
        p.x = tensors[0];                  \
        p.w = tensors[1];                  \
        p.y = tensors[2];                  \
    } while (0)
    REFUSED(MPSIM_EINVAL, p.c.transposed = 2);
    REFUSED(MPSIM_EINVAL, p.c.order = MPSIM_CONVOLUTION_ORDERS);
    REFUSED(MPSIM_EINVAL, p.c.taps = MPSIM_CONVOLUTION_TAPS);
    REFUSED(MPSIM_EINVAL, p.c.row_multiple = 0);
    REFUSED(MPSIM_EINVAL, p.c.groups = 0);
    REFUSED(MPSIM_EINVAL, p.c.groups = 2);
    REFUSED(MPSIM_EINVAL, p.c.stride[0] = 0);
    REFUSED(MPSIM_EINVAL, p.c.dilation[0] = 0);
    REFUSED(MPSIM_EINVAL, p.c.padding[0] = (size_t)1 << 31);
    REFUSED(MPSIM_EINVAL, p.x.o.stack.shape[0] = 2);
    REFUSED(MPSIM_EINVAL, p.x.o.stack.shape[1] = 2);
    REFUSED(MPSIM_EINVAL, p.y.s.shape[1] = 2);
    REFUSED(MPSIM_EINVAL, p.w.o.stack.shape[0] = 2);
    REFUSED(MPSIM_EINVAL, p.w.o.stack.shape[1] = 2);
    REFUSED(MPSIM_EINVAL, p.x.o.stack.shape[2] = (size_t)1 << 31);
    REFUSED(MPSIM_EINVAL, p.y.s.rank = 2);
    REFUSED(MPSIM_EINVAL, p.y.s.rank = 6);
    REFUSED(MPSIM_EINVAL, p.x.o.stack.rank = 4);
    REFUSED(MPSIM_EINVAL, p.x.o.stack.format = NULL);
    REFUSED(MPSIM_EINVAL, p.x.o.format = NULL);
    REFUSED(MPSIM_EINVAL, p.x.o.mode = MPSIM_ROUND_STOCHASTIC_A);
    REFUSED(MPSIM_EINVAL, p.w.o.factors = &p.factor);
    REFUSED(MPSIM_EINVAL, p.w.o.stack.codes = NULL);
    REFUSED(MPSIM_EINVAL, p.y.s.codes = NULL);
    REFUSED(MPSIM_EINVAL, p.y.s.strides[2] = 0); /* one number for all */
    REFUSED(MPSIM_ERANGE, p.x.o.format = mpsim_format_find("e8m0"));
    p.rounds = 1;
    REFUSED(MPSIM_ERANGE, p.y.s.format = mpsim_format_find("e5m2"));
    p.rounds = 0;
    p.m.length = 200;
    REFUSED(MPSIM_EINVAL, p.m.addition = MPSIM_ADDITION_FUSED);
    ck_assert(mpsim_model_parse(&p.m, "fma") == MPSIM_OK);
    ck_assert(number(&p.y, 0) == 1 && number(&p.y, 1) == 2 && number(&p.y, 2) == 3);
    p.has_bias = 1;
    p.bias.s.format = mpsim_format_find("binary64");
    REFUSED(MPSIM_ERANGE, (void)0);
    p.bias.s.format = mpsim_format_find("bf16");
    REFUSED(MPSIM_EINVAL, p.what = INPUT);
    REFUSED(MPSIM_EINVAL, p.what = WEIGHT);
    ck_assert(mpsim_convolution_forward(NULL, NULL) == MPSIM_EINVAL);
    ck_assert(mpsim_convolution_backward_input(NULL, NULL) == MPSIM_EINVAL);
    ck_assert(mpsim_convolution_backward_weight(NULL, NULL) == MPSIM_EINVAL);
    mpsim_convolution none;
    mpsim_convolution_init(&none);
    ck_assert(mpsim_convolution_forward(&none, NULL) == MPSIM_EINVAL);
    clear(&p);
}
END_TEST

int main(void)
{
    TCase *naive = test_case("beside naive loops", 60), *known = test_case("by hand", 5);
    TCase *bad = test_case("bad input", 5);
    tcase_add_test(naive, rows_of_the_table);
    tcase_add_test(naive, any_model);
    tcase_add_test(naive, deep);
    tcase_add_test(known, sizes_of_frameworks);
    tcase_add_test(known, padding_is_a_product);
    tcase_add_test(known, order_of_taps);
    tcase_add_test(known, rows_in_pieces);
    tcase_add_test(known, as_the_trainer);
    tcase_add_test(bad, refused);
#ifdef CAN_FAIL
    tcase_add_test(bad, no_memory);
#endif
    TCase *const cases[] = {naive, known, bad, NULL};
    return test_main("convolution", cases);
}
