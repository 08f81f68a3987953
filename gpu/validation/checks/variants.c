/* variants.c -- the tables of variants: of wgmma, see variants.h, and of mma.sync, see mma_forms.h. */
#include "variants.h"

#include "mma_forms.h"

#include <stdio.h>
#include <string.h>

typedef struct form {
    int types, n, registers, mn_a, mn_b, negate_a, negate_b;
} form;

#define FORM(types, n, registers, mn_a, mn_b, negate_a, negate_b) \
    {GPU_WGMMA_##types, n, registers, mn_a, mn_b, negate_a, negate_b},
static const form forms[] = {GPU_FORMS(FORM)};
enum { FORMS = sizeof forms / sizeof forms[0] };

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

static size_t count(void)
{
    int number;
    way how;
    size_t n = 0;
    while (find(n, &number, &how))
        n++;
    return n;
}

/* "variant wgmma.n64.k16 fp16-fp32 B^T sw128 x4": also -A, -B, and Ar for A in registers. */
static void name_of(char *to, size_t size, const form *f, const way *how)
{
    const gpu_instruction *in = gpu_instruction_at(f->types);
    char plain[32], swizzle[8] = "";
    gpu_instruction_name(in, plain, sizeof plain);
    if (how->swizzle)
        snprintf(swizzle, sizeof swizzle, " sw%d", how->swizzle);
    snprintf(to, size, "variant wgmma.n%d%s%s%s%s%s%s%s x%d", f->n, plain + 5, f->registers ? " Ar" : "",
             f->mn_a ? " A^T" : "", f->mn_b ? " B^T" : "", f->negate_a ? " -A" : "", f->negate_b ? " -B" : "", swizzle,
             how->chain);
}

/* Whole tiles of about 2^22 outputs. */
static uint64_t outputs(uint64_t tile, int quick)
{
    const uint64_t few = tile < 1024 ? 1024 / tile : 1;
    return tile * (quick == GPU_RUN_TINY ? few : quick ? 64 * few : ((uint64_t)1 << 22) / tile);
}

/* ---- mma.sync: see mma_forms.h ---- */

static const struct mma_form {
    const char *text;
    int row, k, sparse, selector;
} mma_forms[] = {
#define MMA_ROW(ID, text, result, na, nb, row, k, sparse, selector) {text, row, k, sparse, selector},
    GPU_MMA_FORMS(MMA_ROW)};
enum { MMA_FORMS = sizeof mma_forms / sizeof mma_forms[0] };

/* Sparse forms come twice, because no text says how many products an addition has: as many as the model's row says, or
 * half of them. */
static int find_mma(size_t i, int *number, int *halved)
{
    for (*number = 0; *number < MMA_FORMS; ++*number)
        for (*halved = 0; *halved < 1 + (mma_forms[*number].sparse != 0); ++*halved)
            if (i-- == 0)
                return 1;
    return 0;
}

static void name_of_mma(char *to, size_t size, const struct mma_form *f, int halved)
{
    char plain[32], selector[8] = "";
    gpu_instruction_name(gpu_instruction_at(f->row), plain, sizeof plain);
    if (f->sparse)
        snprintf(selector, sizeof selector, " sel%d", f->selector);
    snprintf(to, size, "variant mma%s.k%d%s%s%s", f->sparse ? ".sp" : "", f->sparse ? 2 * f->k : f->k,
             strchr(plain, ' '), selector, halved ? " halves" : "");
}

/* ---- sparse wgmma ---- */

static const struct mma_form sparse_forms[] = {
#define SPARSE_ROW(ID, text, result, tail, row, k, sparse, selector) {text, row, k, sparse, selector},
    GPU_SPARSE_WGMMA_FORMS(SPARSE_ROW)};
enum { SPARSE_FORMS = sizeof sparse_forms / sizeof sparse_forms[0], SPARSE_WAYS = 3, SPARSE_N = 16 };

/* Each form with three swizzles, twice as those of mma.sync. */
static int sparse_check(gpu_check *c, size_t i, int sm, int quick)
{
    static const int swizzles[SPARSE_WAYS] = {0, 64, 128};
    if (i >= 2 * SPARSE_WAYS * (size_t)SPARSE_FORMS)
        return 0;
    const int number = (int)i / (2 * SPARSE_WAYS), swizzle = swizzles[i / 2 % SPARSE_WAYS], halved = (int)i % 2;
    const struct mma_form *f = &sparse_forms[number];
    char plain[32];
    gpu_instruction_name(gpu_instruction_at(f->row), plain, sizeof plain);
    snprintf(c->name, sizeof c->name, "variant wgmma.sp.k%d%s sel%d sw%d%s", 2 * f->k, strchr(plain, ' '), f->selector,
             swizzle, halved ? " halves" : "");
    c->is_dots = 1;
    c->since = 90;
    c->question = 1;
    c->count = outputs((uint64_t)(GPU_ROWS * SPARSE_N), quick);
    gpu_dots *j = &c->dots;
    if (gpu_dots_fill(j, sm, f->row, GPU_MIXED) != 0)
        return -1;
    j->columns = SPARSE_N;
    j->depth = 2 * j->k;
    j->slots = GPU_SLOTS_OF_VARIANT;
    j->stream = 5000000 + (uint64_t)i / 2;
    if (halved)
        j->sum.length /= 2;
    j->variant = (gpu_variant){.unit = GPU_UNIT_SPARSE,
                               .form = number,
                               .chain = 1,
                               .swizzle = swizzle,
                               .sparse = f->sparse,
                               .selector = f->selector};
    return 1;
}

/* ---- binary64: each instruction with numbers, and with NaNs, whose bits no source says ---- */

enum { DMMA_FIRST = 28, DMMAS = 4 };

static int dmma_check(gpu_check *c, size_t i, int sm, int quick)
{
    if (i >= 2 * DMMAS)
        return sparse_check(c, i - 2 * DMMAS, sm, quick);
    const gpu_instruction *in = gpu_instruction_at(DMMA_FIRST + (int)i / 2);
    snprintf(c->name, sizeof c->name, "variant %s binary64%s", in->name, i % 2 ? " NaNs" : "");
    c->is_dots = 1;
    c->since = in->since;
    c->question = (int)i % 2;
    c->count = outputs((uint64_t)(2 * in->rows * GPU_COLUMNS), quick);
    gpu_dots *j = &c->dots;
    if (gpu_dots_fill(j, sm, DMMA_FIRST + (int)i / 2, i % 2 ? GPU_RANDOM : GPU_MIXED) != 0)
        return -1;
    j->stream = 4000000 + i;
    j->variant = (gpu_variant){.unit = GPU_UNIT_DMMA, .form = (int)i / 2, .chain = 1};
    return 1;
}

static size_t count_mma(void)
{
    int number, halved;
    size_t n = 0;
    while (find_mma(n, &number, &halved))
        n++;
    return n;
}

static int mma_check(gpu_check *c, size_t i, int sm, int quick)
{
    int number, halved;
    if (!find_mma(i, &number, &halved))
        return dmma_check(c, i - count_mma(), sm, quick);
    const struct mma_form *f = &mma_forms[number];
    const gpu_instruction *in = gpu_instruction_at(f->row);
    name_of_mma(c->name, sizeof c->name, f, halved);
    c->is_dots = 1;
    c->since = in->since;
    c->question = f->sparse != 0;
    c->count = outputs((uint64_t)(in->rows * GPU_COLUMNS), quick);
    gpu_dots *j = &c->dots;
    if (gpu_dots_fill(j, sm, f->row, GPU_MIXED) != 0)
        return -1;
    if (j->k != f->k && j->sum.chunk) { /* in software: two HMMA of half the depth, one addition */
        j->sum.chunk = f->k;
        j->sum.length = f->k / 2;
    }
    j->k = f->k;
    j->depth = 2 * f->k;
    j->slots = GPU_SLOTS_OF_VARIANT;
    j->stream = 3000000 + (uint64_t)number;
    if (halved)
        j->sum.length = (j->sum.length < j->k ? j->sum.length : j->k) / 2;
    j->variant =
        (gpu_variant){.unit = GPU_UNIT_MMA, .form = number, .chain = 1, .sparse = f->sparse, .selector = f->selector};
    return 1;
}

/* ---- wgmma ---- */

int gpu_variant_check(gpu_check *c, size_t i, int sm, int quick)
{
    int number;
    way how;
    if (!find(i, &number, &how))
        return mma_check(c, i - count(), sm, quick);
    const form *f = &forms[number];
    name_of(c->name, sizeof c->name, f, &how);
    c->is_dots = 1;
    c->since = 90;
    c->count = outputs((uint64_t)GPU_ROWS * (uint64_t)f->n, quick);
    gpu_dots *j = &c->dots;
    if (gpu_dots_fill(j, sm, f->types, GPU_MIXED) != 0)
        return -1;
    j->k *= how.chain;
    j->columns = f->n;
    j->depth = j->k;
    j->slots = GPU_SLOTS_OF_VARIANT;
    j->stream = 2000000 + i;
    j->variant = (gpu_variant){.unit = GPU_UNIT_WGMMA,
                               .form = number,
                               .chain = how.chain,
                               .swizzle = how.swizzle,
                               .registers = f->registers,
                               .mn_a = f->mn_a,
                               .mn_b = f->mn_b,
                               .negate_a = f->negate_a,
                               .negate_b = f->negate_b};
    return 1;
}
