/* convnaive.c -- see convnaive.h. */
#include "support/convnaive.h"

#include "support/dotcases.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

static void add_product(convproblem *p, uint64_t a, uint64_t b)
{
    p->a[p->n] = a;
    p->b[p->n++] = b;
}

size_t convsizes_product(const size_t *n, size_t dims)
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

int convsizes_reads(const convsizes *c, int turned, const size_t *at, const size_t *t, const size_t *extent,
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
static void tap_of(const convproblem *p, int turned, size_t i, size_t taps, size_t *t)
{
    split(turned && p->c.taps == MPSIM_TAPS_AS_READ ? taps - 1 - i : i, p->c.kernel, p->c.dims, t);
}

/* The product of tap t and channel k, counted in the group. */
static void add_tap(convproblem *p, int turned, const size_t *i, const size_t *t, size_t k)
{
    const convsizes *c = &p->c;
    const convtensor *from = p->what == CONV_FORWARD ? &p->x : &p->y;
    const size_t results = (p->what == CONV_FORWARD ? c->outputs : c->channels) / c->groups;
    const size_t sources = (p->what == CONV_FORWARD ? c->channels : c->outputs) / c->groups;
    const size_t group = i[1] / results, of_result = i[1] % results;
    size_t at[CONV_AXES] = {i[0], group * sources + k, 0, 0, 0}, w[CONV_AXES] = {0};
    const int there = convsizes_reads(c, turned, i + 2, t, from->size + 2, at + 2);
    if (there < 0)
        return;
    w[0] = turned ? group * sources + k : i[1];
    w[1] = turned ? of_result : k;
    for (size_t d = 0; d < c->dims; d++)
        w[2 + d] = t[d];
    add_product(p, there ? convtensor_operand(from, at) : 0, convtensor_operand(&p->w, w));
}

static void list_taps(convproblem *p, const size_t *i)
{
    const convsizes *c = &p->c;
    const int turned = c->transposed == (p->what == CONV_FORWARD);
    const size_t taps = convsizes_product(c->kernel, c->dims);
    const size_t channels = (p->what == CONV_FORWARD ? c->channels : c->outputs) / c->groups;
    const size_t block = c->order == MPSIM_TAPS_CHANNELS ? channels : c->order == MPSIM_CHANNELS_TAPS ? 1 : 16;
    for (size_t first = 0; first < channels; first += block)
        for (size_t j = 0; j < taps; j++)
            for (size_t k = first; k < first + block && k < channels; k++) {
                size_t t[3];
                tap_of(p, turned, j, taps, t);
                add_tap(p, turned, i, t, k);
            }
}

static void list_positions(convproblem *p, const size_t *i)
{
    const convsizes *c = &p->c;
    const convtensor *seen = c->transposed ? &p->y : &p->x, *other = c->transposed ? &p->x : &p->y;
    const size_t lines = (c->transposed ? c->channels : c->outputs) / c->groups;
    const size_t group = i[0] / lines, of_seen = (c->transposed ? c->outputs : c->channels) / c->groups;
    const size_t positions = convsizes_product(other->size + 2, c->dims);
    for (size_t n = 0; n < c->images * positions; n++) {
        size_t at[CONV_AXES] = {n / positions, i[0], 0, 0, 0},
               from[CONV_AXES] = {n / positions, group * of_seen + i[1], 0, 0, 0};
        split(n % positions, other->size + 2, c->dims, at + 2);
        const uint64_t read = convsizes_reads(c, 0, at + 2, i + 2, seen->size + 2, from + 2)
                                  ? convtensor_operand(seen, from)
                                  : 0;
        add_product(p, c->transposed ? read : convtensor_operand(other, at),
                    c->transposed ? convtensor_operand(other, at) : read);
        if (at[1 + c->dims] + 1 == other->size[1 + c->dims])
            while (p->n % c->row_multiple)
                add_product(p, 0, 0);
    }
}

static double finished(const convproblem *p, double s, size_t output)
{
    const int wide = mpsim_format_code_bytes(&p->m.result.format) > 4;
    const size_t i[CONV_AXES] = {0, 0, output, 0, 0};
    const convtensor *a = p->what == CONV_FORWARD ? &p->x : &p->y, *b = p->what == CONV_WEIGHT ? &p->x : &p->w;
    const float factors[2] = {a->o.inverse * b->o.inverse, p->factor};
    for (size_t k = 0; k < COUNT(factors); k++)
        if (factors[k] != 1)
            s = wide ? s * (double)factors[k] : (double)((float)s * factors[k]);
    if (p->has_bias) {
        const double v = mpsim_decode(p->bias.s.format, convtensor_load(&p->bias, i));
        s = wide ? s + v : (double)((float)s + (float)v);
    }
    return s;
}

/* The code of the result in memory; what its rounding did. */
static uint64_t stored(convproblem *p, const convtensor *t, double s)
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

static convtensor *result_of(convproblem *p)
{
    return p->what == CONV_FORWARD ? &p->y : p->what == CONV_INPUT ? &p->x : &p->w;
}

/* The result by naive loops, into memory like that of the result. */
static void solve(convproblem *p, unsigned char *memory)
{
    const convtensor *d = result_of(p), *fa = p->what == CONV_FORWARD ? &p->x : &p->y,
                     *fb = p->what == CONV_WEIGHT ? &p->x : &p->w;
    unsigned char *a = malloc(p->n * 8 + 8), *b = malloc(p->n * 8 + 8);
    ck_assert(a && b);
    for (size_t n = 0; n < convtensor_numbers(d); n++) {
        size_t i[CONV_AXES];
        uint64_t code = 0;
        mpsim_rng rng = p->rng;
        convtensor_unravel(d, n, i);
        p->n = 0;
        (p->what == CONV_WEIGHT ? list_positions : list_taps)(p, i);
        dot_pack(fa->o.format, a, 0, p->a, p->n);
        dot_pack(fb->o.format, b, 0, p->b, p->n);
        rng.index += (uint64_t)n << 32;
        ck_assert(mpsim_dot(&p->m, fa->o.format, a, fb->o.format, b, p->n, 0, &rng, &code) == MPSIM_OK);
        const double s = finished(p, mpsim_decode(&p->m.result.format, code), i[1]);
        code_store(memory + ((unsigned char *)convtensor_place(d, i) - d->memory), mpsim_format_code_bytes(d->s.format),
                   stored(p, d, s));
    }
    free(a);
    free(b);
}

static mpsim_status run_counted(const convproblem *p, mpsim_entered *counts)
{
    mpsim_convolution c;
    mpsim_convolution_init(&c);
    c.model = &p->m;
    c.a = p->what == CONV_FORWARD ? &p->x.o : &p->y.o;
    c.b = p->what == CONV_WEIGHT ? &p->x.o : &p->w.o;
    c.d = p->what == CONV_FORWARD ? &p->y.s : p->what == CONV_INPUT ? &p->x.s : &p->w.s;
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
    return (p->what == CONV_FORWARD ? mpsim_convolution_forward
            : p->what == CONV_INPUT ? mpsim_convolution_backward_input
                                    : mpsim_convolution_backward_weight)(&c, p->pool);
}

mpsim_status convproblem_run(const convproblem *p)
{
    return run_counted(p, NULL);
}

static void print(const convproblem *p)
{
    const convsizes *c = &p->c;
    printf(
        "# %s%s, %zu dims, order %d, taps %d, row multiple %zu, %zu images, %zu to %zu channels, %zu groups, factor %g%s\n",
        c->transposed ? "transposed " : "",
        p->what == CONV_FORWARD ? "forward"
        : p->what == CONV_INPUT ? "backward_input"
                                : "backward_weight",
        c->dims, c->order, c->taps, c->row_multiple, c->images, c->channels, c->outputs, c->groups, (double)p->factor,
        p->has_bias ? ", bias" : "");
    for (size_t d = 0; d < c->dims; d++)
        printf("# %zu -> %zu: kernel %zu, stride %zu, padding %zu, dilation %zu\n", c->in[d], c->out[d], c->kernel[d],
               c->stride[d], c->padding[d], c->dilation[d]);
    printf("# model %s\n", p->m.name);
    dot_print_model(&p->m);
}

void convproblem_check(convproblem *p)
{
    const size_t terms = convsizes_product(p->c.kernel, p->c.dims) * (p->c.channels + p->c.outputs) +
                         p->c.images *
                             (convsizes_product(p->c.in, p->c.dims) + convsizes_product(p->c.out, p->c.dims)) *
                             p->c.row_multiple +
                         1;
    convtensor *d = result_of(p);
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
    for (size_t n = 0; n < convtensor_numbers(d); n++) {
        size_t i[CONV_AXES];
        convtensor_unravel(d, n, i);
        const size_t bytes = mpsim_format_code_bytes(d->s.format);
        unsigned char *at = want + ((unsigned char *)convtensor_place(d, i) - d->memory);
        const uint64_t found = convtensor_load(d, i);
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

void convproblem_clear(convproblem *p)
{
    free(p->x.memory);
    free(p->w.memory);
    free(p->y.memory);
    free(p->bias.memory);
}

/* ---- problems ---- */

void convproblem_tensors(convproblem *p, const mpsim_format *x, const mpsim_format *w, const mpsim_format *y,
                         uint64_t *seed)
{
    const convsizes *c = &p->c;
    p->x = convtensor_new(x, c->dims, c->images, c->channels, c->in, seed);
    p->y = convtensor_new(y, c->dims, c->images, c->outputs, c->out, seed);
    p->w = c->transposed ? convtensor_new(w, c->dims, c->channels, c->outputs / c->groups, c->kernel, seed)
                         : convtensor_new(w, c->dims, c->outputs, c->channels / c->groups, c->kernel, seed);
    p->bias = convtensor_new(mpsim_format_find("bf16"), 1, 1, 1, &c->outputs, seed);
    convtensor_fill(&p->bias, KIND_NORMAL, seed);
    p->factor = 1;
    p->rng = (mpsim_rng){7, 8, 9};
}

void convsizes_init(convsizes *c, size_t dims)
{
    *c = (convsizes){.dims = dims, .groups = 1, .row_multiple = 1, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
}

int convsizes_set(convsizes *c, const size_t *extra)
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

void convproblem_by_hand(convproblem *p)
{
    uint64_t seed = 5;
    memset(p, 0, sizeof *p);
    ck_assert(mpsim_model_parse(&p->m, "fma") == MPSIM_OK);
    convsizes_init(&p->c, 1);
    p->c.images = p->c.channels = p->c.outputs = 1;
    p->c.in[0] = p->c.kernel[0] = 3;
    p->c.padding[0] = 1;
    ck_assert(convsizes_set(&p->c, NULL));
    const mpsim_format *f = mpsim_format_find("binary32");
    convproblem_tensors(p, f, f, f, &seed);
}
