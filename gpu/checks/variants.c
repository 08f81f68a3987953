/* variants.c -- the table of variants of wgmma; see variants.h. */
#include "variants.h"

#include "cases.h"

#include <stdio.h>

typedef struct form {
    int types, n, registers, mn_a, mn_b, negate_a, negate_b;
} form;

#define FORM(types, n, registers, mn_a, mn_b, negate_a, negate_b) \
    {GPU_TYPE_##types, n, registers, mn_a, mn_b, negate_a, negate_b},
static const form forms[] = {GPU_FORMS(FORM)};
enum { FORMS = sizeof forms / sizeof forms[0], WGMMA_FIRST = 16 };

/* How each form is asked: swizzle and chain. */
typedef struct way {
    int swizzle, chain;
} way;
enum { WAYS = 5 };

/* All types: chains of every length in every layout. */
static const way narrow[WAYS] = {{128, 1}, {0, 2}, {32, 4}, {64, 4}, {128, 16}};
static const way wide[WAYS] = {{0, 1}, {128, 4}};
static const way transposed[WAYS] = {{0, 1}, {32, 1}, {64, 2}, {128, 4}};
static const way negated[WAYS] = {{0, 1}, {64, 4}};

static const way *ways_of(const form *f)
{
    if (f->registers)
        return wide;
    if (f->negate_a || f->negate_b)
        return negated;
    if (f->mn_a || f->mn_b)
        return transposed;
    return f->n == 16 ? narrow : wide;
}

/* Row i: its form, and how that is asked. */
static int find(size_t i, int *number, way *how)
{
    for (*number = 0; *number < FORMS; ++*number) {
        const way *ways = ways_of(&forms[*number]);
        for (int w = 0; w < WAYS && ways[w].chain; w++)
            if (i-- == 0) {
                *how = ways[w];
                return 1;
            }
    }
    return 0;
}

/* "variant wgmma.n64.k16 fp16-fp32 B^T sw128 x4": also -A, -B, and Ar for A in registers. */
static void name_of(char *to, size_t size, const form *f, const way *how)
{
    const gpu_instruction *in = gpu_instruction_at(WGMMA_FIRST + f->types);
    char plain[32], swizzle[8] = "";
    gpu_instruction_name(in, plain, sizeof plain);
    if (how->swizzle)
        snprintf(swizzle, sizeof swizzle, " sw%d", how->swizzle);
    snprintf(to, size, "variant wgmma.n%d%s%s%s%s%s%s%s x%d", f->n, plain + 5, f->registers ? " Ar" : "",
             f->mn_a ? " A^T" : "", f->mn_b ? " B^T" : "", f->negate_a ? " -A" : "", f->negate_b ? " -B" : "", swizzle,
             how->chain);
}

int gpu_variant_check(gpu_check *c, size_t i, int sm, int quick)
{
    int number;
    way how;
    if (!find(i, &number, &how))
        return 0;
    const form *f = &forms[number];
    name_of(c->name, sizeof c->name, f, &how);
    c->is_dots = 1;
    c->since = 90;
    const uint64_t tile = (uint64_t)GPU_ROWS * (uint64_t)f->n;
    c->count = tile * (quick == GPU_RUN_TINY ? 1 : quick ? 64 : ((uint64_t)1 << 22) / tile);
    gpu_dots *j = &c->dots;
    if (gpu_dots_fill(j, sm, WGMMA_FIRST + f->types, GPU_MIXED) != 0)
        return -1;
    j->k *= how.chain;
    j->columns = f->n;
    j->depth = j->k;
    j->slots = GPU_SLOTS_OF_VARIANT;
    j->stream = 2000000 + i;
    j->variant = (gpu_variant){number,  how.chain, how.swizzle, f->registers,
                               f->mn_a, f->mn_b,   f->negate_a, f->negate_b};
    return 1;
}
