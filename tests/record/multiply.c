/* multiply.c -- what a way gives in many elements, by the library's matrix products; see ways.h. */
#include "ways.h"

#include "support/support.h"

#include <mpsim/round.h>
#include <stdlib.h>
#include <string.h>

/* Codes of sums as numbers. */
static void numbers(const mpsim_format *f, const unsigned char *codes, float *x, size_t n)
{
    if (mpsim_decode_array_f32(f, x, codes, n) == MPSIM_OK)
        return;
    for (size_t i = 0; i < n; i++)
        x[i] = (float)mpsim_decode(f, code_load(codes + i * mpsim_format_code_bytes(f), mpsim_format_code_bytes(f)));
}

/* Products first to first + depth - 1, added to the codes of c (NULL: zero), become codes d. */
static int gemm(const way *w, const operands *x, size_t first, size_t depth, const void *c, void *d)
{
    const mpsim_matrix a = {x->fa, x->a + first * mpsim_format_code_bytes(x->fa), x->k, 0};
    const mpsim_matrix b = {x->fb, x->b + first * mpsim_format_code_bytes(x->fb), x->k, 1};
    const mpsim_matrix from = {&w->m.result.format, c, x->n, 0};
    return mpsim_gemm(&w->m, x->m, x->n, depth, &a, &b, c ? &from : NULL, d, x->n, NULL, NULL) == MPSIM_OK;
}

void ways_multiply_range(const way *w, const operands *x, size_t first, size_t depth, float *sums)
{
    const mpsim_format *f = &w->m.result.format;
    const size_t of_tile = w->cut.tile ? depth % w->cut.tile : 0, rest = of_tile == depth ? 0 : of_tile;
    unsigned char *d = malloc(x->m * x->n * mpsim_format_code_bytes(f));
    device_need(d != NULL);
    const int begun = rest == 0 || gemm(w, x, first, rest, NULL, d);
    if (begun && gemm(w, x, first + rest, depth - rest, rest ? d : NULL, d))
        numbers(f, d, sums, x->m * x->n);
    else
        for (size_t i = 0; i < x->m * x->n; i++)
            sums[i] = 0.0f / 0.0f;
    free(d);
}

/* The chunks of each part side by side, in lines of k codes. */
static void turn_lines(unsigned char *to, const unsigned char *from, size_t lines, size_t k, size_t bytes, const cut *c)
{
    const size_t parts = k / c->part;
    for (size_t i = 0; i < lines; i++)
        for (size_t part = 0; part < parts; part++)
            for (size_t at = part * c->turn; at < k; at += parts * c->turn, to += c->turn * bytes)
                memcpy(to, from + (i * k + at) * bytes, c->turn * bytes);
}

static operands by_turns(const operands *x, const cut *c)
{
    const size_t a = mpsim_format_code_bytes(x->fa), b = mpsim_format_code_bytes(x->fb);
    operands turned = *x;
    turned.a = malloc(x->m * x->k * a);
    turned.b = malloc(x->n * x->k * b);
    device_need(turned.a && turned.b);
    turn_lines(turned.a, x->a, x->m, x->k, a, c);
    turn_lines(turned.b, x->b, x->n, x->k, b, c);
    return turned;
}

static void add_part(const way *w, const operands *x, float *sums, const float *one, int first)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < x->m * x->n; i++)
        sums[i] = first ? one[i] : sums[i] + one[i];
    if (w->partial)
        device_need(mpsim_round_array_f32(x->out, &r, NULL, sums, sums, x->m * x->n, NULL) == MPSIM_OK);
}

static void add_parts(const way *w, const operands *x, float *sums)
{
    const size_t part = w->cut.part;
    float *one = malloc(x->m * x->n * sizeof *one);
    device_need(one != NULL);
    for (size_t k = 0; k < x->k; k += part) {
        ways_multiply_range(w, x, k, k + part < x->k ? part : x->k - k, one);
        add_part(w, x, sums, one, k == 0);
    }
    free(one);
}

void ways_multiply(const way *w, const operands *x, float *sums)
{
    if (w->cut.part == 0) {
        ways_multiply_range(w, x, 0, x->k, sums);
    } else if (w->cut.turn) {
        const operands turned = by_turns(x, &w->cut);
        add_parts(w, &turned, sums);
        free(turned.a);
        free(turned.b);
    } else {
        add_parts(w, x, sums);
    }
}
