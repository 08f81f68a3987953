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
    mpsim_strided s;
    mpsim_rounded rounded;
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
    tensor t = {.s.format = memory, .dims = dims, .size = {first, second, 1, 1, 1}};
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
        t.s.stride[turn[i]] = (ptrdiff_t)n;
        n *= t.size[turn[i]] + (u >> (8 + i) & 1);
    }
    t.room = (n + 2) * 8;
    t.memory = malloc(t.room);
    ck_assert(t.memory);
    memset(t.memory, 0x5a, t.room);
    for (size_t i = 0; i < 2 + dims; i++)
        if (u >> (16 + i) & 1 && t.size[i]) {
            at += (t.size[i] - 1) * (size_t)t.s.stride[i];
            t.s.stride[i] = -t.s.stride[i];
        }
    t.s.codes = t.memory + 1 + at * mpsim_format_code_bytes(memory);
    return t;
}

static void *place(const tensor *t, const size_t *i)
{
    ptrdiff_t at = 0;
    for (size_t d = 0; d < 2 + t->dims; d++)
        at += (ptrdiff_t)i[d] * t->s.stride[d];
    return (unsigned char *)t->s.codes + at * (ptrdiff_t)mpsim_format_code_bytes(t->s.format);
}

static uint64_t load(const tensor *t, const size_t *i)
{
    return code_load(place(t, i), mpsim_format_code_bytes(t->s.format));
}

static const mpsim_format *multiplied(const tensor *t)
{
    return t->s.rounded ? &t->rounded.format : t->s.format;
}

/* The number as it is multiplied. */
static uint64_t operand(const tensor *t, const size_t *i)
{
    const uint64_t code = load(t, i);
    if (!t->s.rounded)
        return code;
    return mpsim_encode_f64(&t->rounded.format, &t->rounded.rounding, mpsim_decode(t->s.format, code), 0, NULL);
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

typedef struct problem {
    mpsim_convolution c;
    mpsim_model m;
    mpsim_convolution_how how;
    mpsim_rng rng;
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
static int reads(const mpsim_convolution *c, int turned, const size_t *at, const size_t *t, const size_t *extent,
                 size_t *from)
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
    const mpsim_convolution *c = &p->c;
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
    const mpsim_convolution *c = &p->c;
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
    const mpsim_convolution *c = &p->c;
    const tensor *seen = c->transposed ? &p->y : &p->x, *other = c->transposed ? &p->x : &p->y;
    const size_t lines = (c->transposed ? c->channels : c->outputs) / c->groups;
    const size_t group = i[0] / lines, of_seen = (c->transposed ? c->outputs : c->channels) / c->groups;
    const size_t positions = product_of(other->size + 2, c->dims);
    for (size_t n = 0; n < c->images * positions; n++) {
        size_t at[AXES] = {n / positions, i[0], 0, 0, 0}, from[AXES] = {n / positions, group * of_seen + i[1], 0, 0, 0};
        split(n % positions, other->size + 2, c->dims, at + 2);
        const uint64_t read = reads(c, 0, at + 2, i + 2, seen->size + 2, from + 2) ? operand(seen, from) : 0;
        add_product(p, c->transposed ? read : operand(other, at), c->transposed ? operand(other, at) : read);
    }
}

static double finished(const problem *p, double s, size_t output)
{
    const int wide = mpsim_format_code_bytes(&p->m.result.format) > 4;
    const size_t i[AXES] = {0, output, 0, 0, 0};
    if (p->how.factor != 1)
        s = wide ? s * p->how.factor : (double)((float)s * (float)p->how.factor);
    if (p->how.bias) {
        const double b = mpsim_decode(p->bias.s.format, load(&p->bias, i));
        s = wide ? s + b : (double)((float)s + (float)b);
    }
    return (p->how.factor != 1 || p->how.bias) && isnan(s) ? (double)NAN : s;
}

static uint64_t stored(const tensor *t, double s)
{
    mpsim_rounding nearest;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    if (t->s.rounded) {
        const uint64_t code = mpsim_encode_f64(&t->rounded.format, &t->rounded.rounding, s, 0, NULL);
        s = mpsim_decode(&t->rounded.format, code);
        if (mpsim_format_same(&t->rounded.format, t->s.format))
            return code;
    }
    return mpsim_encode_f64(t->s.format, &nearest, s, 0, NULL);
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
        dot_pack(multiplied(fa), a, 0, p->a, p->n);
        dot_pack(multiplied(fb), b, 0, p->b, p->n);
        rng.index += (uint64_t)n << 32;
        ck_assert(mpsim_dot(&p->m, multiplied(fa), a, multiplied(fb), b, p->n, 0, &rng, &code) == MPSIM_OK);
        const double s = finished(p, mpsim_decode(&p->m.result.format, code), i[1]);
        code_store(memory + ((unsigned char *)place(d, i) - d->memory), mpsim_format_code_bytes(d->s.format),
                   stored(d, s));
    }
    free(a);
    free(b);
}

static mpsim_status run(const problem *p)
{
    if (p->what == FORWARD)
        return mpsim_convolution_forward(&p->c, &p->how, &p->x.s, &p->w.s, &p->y.s);
    if (p->what == INPUT)
        return mpsim_convolution_backward_input(&p->c, &p->how, &p->y.s, &p->w.s, &p->x.s);
    return mpsim_convolution_backward_weight(&p->c, &p->how, &p->y.s, &p->x.s, &p->w.s);
}

static void print(const problem *p)
{
    const mpsim_convolution *c = &p->c;
    printf("# %s%s, %u dims, order %d, taps %d, %zu images, %zu to %zu channels, %zu groups, factor %g%s\n",
           c->transposed ? "transposed " : "",
           p->what == FORWARD ? "forward"
           : p->what == INPUT ? "backward_input"
                              : "backward_weight",
           c->dims, c->order, c->taps, c->images, c->channels, c->outputs, c->groups, p->how.factor,
           p->how.bias ? ", bias" : "");
    for (size_t d = 0; d < c->dims; d++)
        printf("# %zu -> %zu: kernel %zu, stride %zu, padding %zu, dilation %zu\n", c->in[d], c->out[d], c->kernel[d],
               c->stride[d], c->padding[d], c->dilation[d]);
    printf("# model %s\n", p->m.name);
    dot_print_model(&p->m);
}

static void check(problem *p)
{
    const size_t terms = product_of(p->c.kernel, p->c.dims) * (p->c.channels + p->c.outputs) +
                         p->c.images * (product_of(p->c.in, p->c.dims) + product_of(p->c.out, p->c.dims)) + 1;
    tensor *d = result_of(p);
    unsigned char *want = malloc(d->room);
    p->a = malloc(terms * sizeof *p->a);
    p->b = malloc(terms * sizeof *p->b);
    p->n = terms;
    ck_assert(want && p->a && p->b);
    memcpy(want, d->memory, d->room);
    solve(p, want);
    ck_assert_int_eq(run(p), MPSIM_OK);
    for (size_t n = 0; n < numbers_in(d); n++) {
        size_t i[AXES];
        unravel(d, n, i);
        const size_t bytes = mpsim_format_code_bytes(d->s.format);
        const uint64_t found = load(d, i),
                       expected = code_load(want + ((unsigned char *)place(d, i) - d->memory), bytes);
        if (found != expected)
            print(p);
        ck_assert_msg(found == expected, "number %zu: found %#llx, expected %#llx", n, (unsigned long long)found,
                      (unsigned long long)expected);
    }
    ck_assert_msg(memcmp(want, d->memory, d->room) == 0, "written beside the result");
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
    const mpsim_convolution *c = &p->c;
    static const size_t none[3] = {1, 1, 1};
    p->x = tensor_new(x, c->dims, c->images, c->channels, c->in, seed);
    p->y = tensor_new(y, c->dims, c->images, c->outputs, c->out, seed);
    p->w = c->transposed ? tensor_new(w, c->dims, c->channels, c->outputs / c->groups, c->kernel, seed)
                         : tensor_new(w, c->dims, c->outputs, c->channels / c->groups, c->kernel, seed);
    p->bias = tensor_new(mpsim_format_find("bf16"), 1, 1, c->outputs, none, seed);
    fill(&p->bias, KIND_NORMAL, seed);
    p->how = (mpsim_convolution_how){.model = &p->m, .factor = 1};
}

/* Sizes that are small in all, with every setting. */
static void any_convolution(mpsim_convolution *c, uint64_t *seed)
{
    do {
        const uint64_t u = test_random(seed), v = test_random(seed);
        mpsim_convolution_init(c, 1 + u % 3);
        c->transposed = u >> 4 & 1;
        c->order = (uint8_t)((u >> 8) % MPSIM_CONVOLUTION_ORDERS);
        c->taps = u >> 12 & 1;
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
        if (mpsim_convolution_sizes(c, extra) != MPSIM_OK)
            c->groups = 0;
    } while (c->groups == 0 || c->images * product_of(c->out, c->dims) * c->outputs * product_of(c->kernel, c->dims) *
                                       c->channels / c->groups >
                                   40000);
}

static void run_sets(problem *p, int kind, uint64_t *seed)
{
    static const char *const formats[] = {"bf16", "fp16", "e4m3"};
    for (int i = FORWARD; i <= WEIGHT; i++) {
        const uint64_t u = test_random(seed);
        p->what = (what)i;
        tensor *d = result_of(p);
        p->x.s.rounded = p->w.s.rounded = p->y.s.rounded = NULL;
        tensor *const operands[2] = {i == FORWARD ? &p->x : &p->y, i == WEIGHT ? &p->x : &p->w};
        for (size_t k = 0; k < 2; k++) {
            fill(operands[k], kind, seed);
            operands[k]->rounded.format = *mpsim_format_find(formats[(u >> 8 * k) % COUNT(formats)]);
            mpsim_rounding_init(&operands[k]->rounded.rounding,
                                u >> (4 + k) & 1 ? MPSIM_ROUND_NEAREST_EVEN : MPSIM_ROUND_UP);
            operands[k]->s.rounded = u >> (6 + k) & 1 &&
                                             dot_can(&p->m, &operands[k]->rounded.format, &operands[k]->rounded.format)
                                         ? &operands[k]->rounded
                                         : NULL;
        }
        if (!dot_can(&p->m, multiplied(operands[0]), multiplied(operands[1])))
            operands[0]->s.rounded = operands[1]->s.rounded = NULL;
        d->rounded.format = *mpsim_format_find("e4m3");
        mpsim_rounding_init(&d->rounded.rounding, MPSIM_ROUND_TOWARD_ZERO);
        d->s.rounded = u >> 40 & 1 ? &d->rounded : NULL;
        p->how.factor = u >> 41 & 1 ? 1 : 0.75;
        p->how.bias = i == FORWARD && u >> 42 & 1 ? &p->bias.s : NULL;
        p->rng = (mpsim_rng){7, 8, 9};
        p->how.rng = &p->rng;
        check(p);
    }
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
                                         "fma:binary64"};
    static const char *const formats[] = {"binary32", "bf16", "fp16"};
    uint64_t seed = test_seed() + 21;
    for (size_t n = 0; n < test_scaled(600); n++) {
        problem p = {.n = 0};
        const uint64_t u = test_random(&seed);
        ck_assert_msg(mpsim_model_parse(&p.m, models[n % COUNT(models)]) == MPSIM_OK, "%s", models[n % COUNT(models)]);
        any_convolution(&p.c, &seed);
        set_tensors(&p, mpsim_format_find(formats[u % 3]), mpsim_format_find(formats[(u >> 8) % 3]),
                    mpsim_format_find(formats[(u >> 16) % 3]), &seed);
        p.how.pool = u >> 30 & 1 ? &threads : NULL;
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
            p.how.rng = &p.rng;
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
        mpsim_convolution_init(&p.c, 1);
        p.c.images = 2;
        p.c.channels = n % 2 ? 2100 : 1;
        p.c.outputs = 1 + n % 3;
        p.c.in[0] = n % 2 ? 1 : 3000;
        p.c.kernel[0] = n % 2 ? 2 : 1;
        p.c.padding[0] = n % 2;
        p.c.order = (uint8_t)(n % 3);
        ck_assert(mpsim_convolution_sizes(&p.c, NULL) == MPSIM_OK);
        if (dot_can(&p.m, f, f) && p.m.result.format.zero != MPSIM_ZERO_NONE) {
            set_tensors(&p, f, f, mpsim_format_find("binary32"), &seed);
            p.y.s.rounded = NULL;
            p.how.rng = &p.rng;
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

START_TEST(sizes)
{
    mpsim_convolution c;
    mpsim_convolution_init(&c, 2);
    c.in[0] = 7;
    c.in[1] = 2;
    c.kernel[0] = c.kernel[1] = 3;
    c.stride[0] = 2;
    c.padding[0] = 1;
    ck_assert(mpsim_convolution_sizes(&c, NULL) == MPSIM_OK); /* 2 - 3 + 1 = 0 */
    ck_assert_uint_eq(c.out[0], 4);
    ck_assert_uint_eq(c.out[1], 0);
    c.in[1] = 1;
    ck_assert(mpsim_convolution_sizes(&c, NULL) == MPSIM_EINVAL);
    c.transposed = 1;
    const size_t extra[2] = {1, 0};
    ck_assert(mpsim_convolution_sizes(&c, extra) == MPSIM_OK);
    ck_assert_uint_eq(c.out[0], 14); /* 6 2 - 2 + 3 + 1 */
    ck_assert_uint_eq(c.out[1], 3);
    ck_assert(mpsim_convolution_sizes(NULL, NULL) == MPSIM_EINVAL);
}
END_TEST

/* One row of three numbers, a kernel of three, padding 1: by hand. */
static void by_hand(problem *p)
{
    uint64_t seed = 5;
    memset(p, 0, sizeof *p);
    ck_assert(mpsim_model_parse(&p->m, "fma") == MPSIM_OK);
    mpsim_convolution_init(&p->c, 1);
    p->c.images = p->c.channels = p->c.outputs = 1;
    p->c.in[0] = p->c.kernel[0] = 3;
    p->c.padding[0] = 1;
    ck_assert(mpsim_convolution_sizes(&p->c, NULL) == MPSIM_OK);
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
    mpsim_convolution_init(&c, 2);
    c.images = IMAGES;
    c.channels = FROM;
    c.outputs = TO;
    for (size_t d = 0; d < 2; d++) {
        c.in[d] = SIDE;
        c.kernel[d] = 3;
        c.padding[d] = 1;
    }
    ck_assert(mpsim_convolution_sizes(&c, NULL) == MPSIM_OK);
    const mpsim_convolution_how how = {.model = &m, .factor = 1};
#define NHWC(format, codes, channels)                                                   \
    {                                                                                   \
        format, codes, {SIDE * SIDE * (channels), 1, SIDE * (channels), channels}, NULL \
    }
    const mpsim_strided tx = NHWC(f, x, FROM), tdy = NHWC(f, dy, TO), ty = NHWC(r, y, TO), tdx = NHWC(r, dx, FROM);
    const mpsim_strided tw = {f, w, {9 * FROM, 1, 3 * FROM, FROM}, NULL},
                        tdw = {r, dw, {9 * FROM, 1, 3 * FROM, FROM}, NULL};
    ck_assert(mpsim_convolution_forward(&c, &how, &tx, &tw, &ty) == MPSIM_OK);
    ck_assert(mpsim_convolution_backward_input(&c, &how, &tdy, &tw, &tdx) == MPSIM_OK);
    ck_assert(mpsim_convolution_backward_weight(&c, &how, &tdy, &tx, &tdw) == MPSIM_OK);
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
    p.how.bias = &p.bias.s;
    p.bias.s.stride[1] = 1;
    for (int i = FORWARD; i <= WEIGHT; i++, p.how.bias = NULL) {
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
            ck_assert(k > 3 || failed);
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
    mpsim_convolution c = p.c;
    mpsim_convolution_how how = p.how;
    mpsim_rounded r = {.format = *mpsim_format_find("bf16")};
    const float before[] = {1, 2, 3};
    put(&p.y, before);
#define REFUSED(status, change)            \
    do {                                   \
        p.c = c;                           \
        p.how = how;                       \
        change;                            \
        ck_assert_int_eq(run(&p), status); \
    } while (0)
    REFUSED(MPSIM_EINVAL, p.c.dims = 0);
    REFUSED(MPSIM_EINVAL, p.c.dims = 4);
    REFUSED(MPSIM_EINVAL, p.c.transposed = 2);
    REFUSED(MPSIM_EINVAL, p.c.order = MPSIM_CONVOLUTION_ORDERS);
    REFUSED(MPSIM_EINVAL, p.c.taps = MPSIM_CONVOLUTION_TAPS);
    REFUSED(MPSIM_EINVAL, p.c.groups = 0);
    REFUSED(MPSIM_EINVAL, p.c.groups = 2);
    REFUSED(MPSIM_EINVAL, p.c.stride[0] = 0);
    REFUSED(MPSIM_EINVAL, p.c.dilation[0] = 0);
    REFUSED(MPSIM_EINVAL, p.c.padding[0] = (size_t)1 << 31);
    REFUSED(MPSIM_EINVAL, p.c.images = SIZE_MAX);
    REFUSED(MPSIM_EINVAL, p.c.in[0] = p.c.images = p.c.channels = INT32_MAX);
    REFUSED(MPSIM_EINVAL, p.how.model = NULL);
    REFUSED(MPSIM_EINVAL, p.how.factor = 0.1); /* no number of binary32 */
    REFUSED(MPSIM_EINVAL, p.how.factor = (double)NAN);
    mpsim_strided *tensors[] = {&p.x.s, &p.w.s, &p.y.s};
    for (size_t i = 0; i < COUNT(tensors); i++) {
        const mpsim_strided kept = *tensors[i];
        REFUSED(MPSIM_EINVAL, tensors[i]->format = NULL);
        *tensors[i] = kept;
        REFUSED(MPSIM_EINVAL, tensors[i]->codes = NULL);
        *tensors[i] = kept;
        mpsim_rounding_init(&r.rounding, MPSIM_ROUND_STOCHASTIC_C);
        REFUSED(MPSIM_EINVAL, tensors[i]->rounded = &r);
        r.rounding.mode = 77;
        REFUSED(MPSIM_EINVAL, tensors[i]->rounded = &r);
        *tensors[i] = kept;
    }
    mpsim_rounding_init(&r.rounding, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_rounded none = r;
    none.format = *mpsim_format_find("e8m0");
    REFUSED(MPSIM_ERANGE, p.x.s.rounded = &none);
    p.x.s.rounded = NULL;
    p.y.s.format = mpsim_format_find("fp16"); /* does not hold numbers of bf16 */
    REFUSED(MPSIM_ERANGE, p.y.s.rounded = &r);
    p.y.s.format = p.x.s.format;
    p.y.s.rounded = NULL;
    mpsim_model random;
    ck_assert(mpsim_model_parse(&random, "fma:bf16:round=sr") == MPSIM_OK);
    REFUSED(MPSIM_EINVAL, p.how.model = &random);
    ck_assert(number(&p.y, 0) == 1 && number(&p.y, 1) == 2 && number(&p.y, 2) == 3);
    p.what = INPUT;
    REFUSED(MPSIM_EINVAL, p.how.bias = &p.bias.s);
    ck_assert(mpsim_convolution_forward(NULL, &how, &p.x.s, &p.w.s, &p.y.s) == MPSIM_EINVAL);
    ck_assert(mpsim_convolution_forward(&c, NULL, &p.x.s, &p.w.s, &p.y.s) == MPSIM_EINVAL);
    ck_assert(mpsim_convolution_forward(&c, &how, NULL, &p.w.s, &p.y.s) == MPSIM_EINVAL);
    ck_assert(mpsim_convolution_backward_input(&c, &how, &p.y.s, NULL, &p.x.s) == MPSIM_EINVAL);
    ck_assert(mpsim_convolution_backward_weight(&c, &how, &p.y.s, &p.x.s, NULL) == MPSIM_EINVAL);
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
    tcase_add_test(known, sizes);
    tcase_add_test(known, padding_is_a_product);
    tcase_add_test(known, order_of_taps);
    tcase_add_test(known, as_the_trainer);
    tcase_add_test(bad, refused);
#ifdef CAN_FAIL
    tcase_add_test(bad, no_memory);
#endif
    TCase *const cases[] = {naive, known, bad, NULL};
    return test_main("convolution", cases);
}
