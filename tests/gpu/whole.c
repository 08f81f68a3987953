/* whole.c -- see whole.h. */
#include "whole.h"

#include "../../gpu/validation/checks/cases.h"
#include "../../gpu/validation/checks/reference.h"
#include "lib/digest/scalar.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Codes as arrays of so many bytes each, and back. */
static void pack(void *to, size_t bytes, const uint32_t *from, size_t n)
{
    for (size_t i = 0; bytes == 1 && i < n; i++)
        ((uint8_t *)to)[i] = (uint8_t)from[i];
    for (size_t i = 0; bytes == 2 && i < n; i++)
        ((uint16_t *)to)[i] = (uint16_t)from[i];
    if (bytes == 4)
        memcpy(to, from, n * sizeof *from);
}

static void unpack(uint32_t *to, const void *from, size_t bytes, size_t n)
{
    for (size_t i = 0; bytes == 1 && i < n; i++)
        to[i] = ((const uint8_t *)from)[i];
    for (size_t i = 0; bytes == 2 && i < n; i++)
        to[i] = ((const uint16_t *)from)[i];
    if (bytes == 4)
        memcpy(to, from, n * sizeof *to);
}

static uint64_t digest_of(const uint32_t *outputs, size_t n, uint64_t first)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += mpsim_mix(first + i, outputs[i]);
    return sum;
}

/* ---- scalar operations ---- */

enum { BLOCK = 4096 };

typedef struct operands {
    uint32_t in[3][BLOCK], packed[3][BLOCK], result[BLOCK], output[BLOCK];
} operands;

/* What the library does not give. */
static void put_special(operands *x, const gpu_scalar *s, size_t n)
{
    uint64_t code;
    for (size_t i = 0; s->expected != GPU_ROUNDED && i < n; i++) {
        const uint32_t in[3] = {x->in[0][i], x->in[1][i]};
        x->output[i] = gpu_scalar_given(s, in, &code) ? (uint32_t)code : x->output[i];
    }
}

/* The array function of the operation; conversions from binary32 by that of casts, which most users have. */
static mpsim_status apply(operands *x, const gpu_scalar *s, size_t n)
{
    if (s->o.op == MPSIM_OP_CONVERT && strcmp(s->o.operand[0].name, "binary32") == 0)
        return mpsim_encode_array_f32(&s->o.result, &s->o.rounding, NULL, x->result,
                                      (const float *)(const void *)x->packed[0], n, NULL);
    return mpsim_arith_array(&s->o, NULL, x->result, x->packed[0], x->packed[1], x->packed[2], n, NULL);
}

static uint64_t block_digest(operands *x, const gpu_scalar *s, uint64_t first, size_t n)
{
    const size_t bytes = mpsim_format_code_bytes(&s->o.operand[0]);
    for (size_t i = 0; i < n; i++) {
        uint32_t in[3];
        gpu_scalar_case(s, first + i, in);
        for (int k = 0; k < 3; k++)
            x->in[k][i] = in[k];
    }
    for (int k = 0; k < mpsim_op_operands(s->o.op); k++)
        pack(x->packed[k], bytes, x->in[k], n);
    if (apply(x, s, n) != MPSIM_OK)
        return 0;
    unpack(x->output, x->result, mpsim_format_code_bytes(&s->o.result), n);
    put_special(x, s, n);
    return digest_of(x->output, n, first);
}

/* ---- tensor cores: a tile is a product of matrices ---- */

enum { MOST_CODES = GPU_ROWS * GPU_DEPTH };

typedef struct tile {
    uint32_t codes[MOST_CODES], a[MOST_CODES], b[MOST_CODES], c[MOST_CODES], d[MOST_CODES];
} tile;

static void fill_operand(tile *t, void *to, const gpu_dots *j, uint64_t number, int is_b)
{
    const int lines = is_b ? GPU_COLUMNS : j->rows;
    for (int i = 0; i < lines; i++)
        for (int k = 0; k < j->k; k++)
            t->codes[i * j->k + k] = gpu_operand(j, number, is_b, i, k);
    pack(to, mpsim_format_code_bytes(is_b ? &j->b : &j->a), t->codes, (size_t)(lines * j->k));
}

static void fill_tile(tile *t, const gpu_dots *j, uint64_t number)
{
    fill_operand(t, t->a, j, number, 0);
    fill_operand(t, t->b, j, number, 1);
    for (int i = 0; i < j->rows * GPU_COLUMNS; i++)
        t->codes[i] = gpu_addend(j, number, i / GPU_COLUMNS, i % GPU_COLUMNS);
    pack(t->c, mpsim_format_code_bytes(&j->sum.result.format), t->codes, (size_t)(j->rows * GPU_COLUMNS));
}

static uint64_t tile_digest(tile *t, const mpsim_model *m, const gpu_dots *j, uint64_t number)
{
    const size_t depth = (size_t)j->k, rows = (size_t)j->rows, outputs = rows * GPU_COLUMNS;
    const mpsim_matrix a = {&j->a, t->a, depth, 0}, b = {&j->b, t->b, depth, 1};
    const mpsim_matrix c = {&j->sum.result.format, t->c, GPU_COLUMNS, 0};
    fill_tile(t, j, number);
    if (mpsim_gemm(m, rows, GPU_COLUMNS, depth, &a, &b, &c, t->d, GPU_COLUMNS, NULL, NULL) != MPSIM_OK)
        return 0;
    unpack(t->codes, t->d, mpsim_format_code_bytes(&j->sum.result.format), outputs);
    return digest_of(t->codes, outputs, number * outputs);
}

/* ---- by threads: blocks, or tiles, in turn ---- */

enum { MOST_THREADS = 64 };

typedef struct share {
    const gpu_check *c;
    const mpsim_model *m;
    uint64_t number, of, digest; /* blocks number, number + of, ... */
} share;

static uint64_t scalar_share(const share *s)
{
    operands *x = malloc(sizeof *x);
    const uint64_t count = s->c->count;
    uint64_t sum = 0;
    for (uint64_t i = s->number * BLOCK; x && i < count; i += s->of * BLOCK)
        sum += block_digest(x, &s->c->scalar, i, count - i < BLOCK ? (size_t)(count - i) : BLOCK);
    free(x);
    return sum;
}

/* Variants, whose tiles differ in size and whose products may be chains: one by one. */
static uint64_t variants_share(const share *s)
{
    uint64_t sum = 0;
    for (uint64_t i = s->number; i < s->c->count; i += s->of)
        sum += mpsim_mix(i, gpu_check_reference(s->c, i));
    return sum;
}

static uint64_t dots_share(const share *s)
{
    const gpu_dots *j = &s->c->dots;
    tile *t = malloc(sizeof *t);
    uint64_t sum = 0;
    for (uint64_t i = s->number; t && i < s->c->count / (uint64_t)(j->rows * GPU_COLUMNS); i += s->of)
        sum += tile_digest(t, s->m, j, i);
    free(t);
    return sum;
}

static void *take_share(void *x)
{
    share *s = x;
    s->digest = !s->c->is_dots ? scalar_share(s) : s->c->dots.variant.chain > 0 ? variants_share(s) : dots_share(s);
    return NULL;
}

uint64_t whole_digest(const gpu_check *c, int sm, unsigned threads)
{
    pthread_t thread[MOST_THREADS];
    share shares[MOST_THREADS];
    mpsim_model m;
    uint64_t sum = 0;
    threads = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
    if (c->is_dots && gpu_model(&m, sm, gpu_instruction_at(c->dots.instruction)) != 0)
        return 0;
    for (unsigned i = 0; i < threads; i++)
        shares[i] = (share){c, &m, i, threads, 0};
    for (unsigned i = 1; i < threads; i++)
        if (pthread_create(&thread[i], NULL, take_share, &shares[i]) != 0)
            return 0;
    (void)take_share(&shares[0]);
    for (unsigned i = 1; i < threads; i++)
        (void)pthread_join(thread[i], NULL);
    for (unsigned i = 0; i < threads; i++)
        sum += shares[i].digest;
    return sum;
}
