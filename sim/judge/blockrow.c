/* blockrow.c -- see blockrow.h. */
#include "blockrow.h"
#include "modelword.h"

#include "../array/want.h"
#include "../operand/element.h"
#include "../quant/quant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

const char *const judge_block_forms[BLOCK_FORMS] = {"dequant", "blocks", "native"};

/* A row while it is read. */
typedef struct reading {
    block_row *row;
    judge_model_text model;
} reading;

static int set_own(block_row *row, const char *word, const char *value)
{
    if (value)
        return strcmp(word, "to") == 0 && row->form == BLOCK_DEQUANT && mpsim_format_parse(&row->to, value) == MPSIM_OK
                   ? 0
                   : -1;
    if (strcmp(word, "swizzled") == 0)
        return (row->swizzled = 1) - 1;
    if (row->form == BLOCK_SUMS && strcmp(word, "fma") == 0)
        return (row->fma = 1) - 1;
    return row->form == BLOCK_SUMS && strcmp(word, "separate") == 0 ? (row->separate = 1) - 1 : -1;
}

static int set_word(void *context, const char *word, const char *value)
{
    reading *r = context;
    if (set_own(r->row, word, value) == 0) {
        judge_model_close(&r->model);
        return 0;
    }
    return judge_model_word(&r->model, word, value) ? 0 : -1;
}

int judge_block_read(void *to, char *text)
{
    block_row *row = to;
    reading r = {row, {"", 0}};
    const size_t n = strcspn(text, ":");
    while (row->form < BLOCK_FORMS &&
           (strlen(judge_block_forms[row->form]) != n || strncmp(judge_block_forms[row->form], text, n) != 0))
        row->form++;
    if (row->form == BLOCK_FORMS || judge_words(text, set_word, &r) ||
        judge_model_read(&row->model, &r.model, "sequential"))
        return -1;
    if (!*row->to.name)
        row->to = *mpsim_format_find("binary32");
    return (row->model.block != 0) == (row->form == BLOCK_NATIVE) ? 0 : -1;
}

static int takes_scales(const mpsim_model *m, const block_operand *x)
{
    char name[48] = " ", list[128] = " ";
    if (!x->given || x->down != 1 || x->across != m->block || strlen(x->scale_format->name) > 40)
        return 0;
    strncat(list, m->scales, sizeof list - 3);
    strcat(list, " ");
    strcat(strcat(name, x->scale_format->name), " ");
    return strstr(list, name) != NULL;
}

int judge_block_takes(const block_row *row, const block_operand *a, const block_operand *b)
{
    const int possible = !row->swizzled || (a->given && b->given && a->down == 1 && b->down == 1);
    if (!possible || ((a->swizzled_only || b->swizzled_only) && !row->swizzled))
        return 0;
    if (row->form == BLOCK_DEQUANT)
        return mpsim_model_accepts(&row->model, &row->to, &row->to);
    return mpsim_model_accepts(&row->model, a->format, b->format) &&
           (row->form != BLOCK_NATIVE || (takes_scales(&row->model, a) && takes_scales(&row->model, b)));
}

size_t judge_block_scale_at(const block_operand *x, int swizzled, size_t line, size_t t)
{
    if (swizzled)
        return (size_t)quant_swizzled_index(line, t, x->grid);
    return x->turned ? t * x->grid_lines + line : line * x->grid + t;
}

/* ---- results ---- */

static const char *line_codes(const block_operand *x, size_t line, size_t k)
{
    return (const char *)x->codes + (line * x->depth + k) * mpsim_format_code_bytes(x->format);
}

/* Elements times their scales, rounded. */
static void *scaled_lines(const block_row *row, const block_operand *x, size_t line, size_t n)
{
    const size_t from = mpsim_format_code_bytes(x->format), bytes = mpsim_format_code_bytes(&row->to);
    void *codes = want_memory(n * x->depth + 1, bytes);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < n && codes; i++)
        for (size_t k = 0; k < x->depth; k++) {
            const double v = mpsim_decode(x->format, element_code(line_codes(x, line + i, 0), from, k));
            element_put_code(
                codes, bytes, i * x->depth + k,
                mpsim_encode_f64(&row->to, &r, v * judge_block_scale(x, row->swizzled, line + i, k), 0, NULL));
        }
    return codes;
}

typedef struct part {
    size_t m, n, depth;
    mpsim_matrix a, b;
} part;

static mpsim_status multiply(const mpsim_model *m, const part *p, float *y)
{
    const mpsim_format *f = &m->result.format;
    void *codes = want_memory(p->m * p->n + 1, mpsim_format_code_bytes(f));
    mpsim_status s = codes ? mpsim_gemm(m, p->m, p->n, p->depth, &p->a, &p->b, NULL, codes, p->n, NULL, NULL)
                           : MPSIM_ENOMEM;
    if (s == MPSIM_OK)
        s = mpsim_decode_array_f32(f, y, codes, p->m * p->n);
    free(codes);
    return s;
}

static mpsim_status dequant(const block_row *row, const block_operand *a, const block_operand *b, const size_t line[2],
                            const part *p, float *y)
{
    void *lines[2] = {scaled_lines(row, a, line[0], p->m), scaled_lines(row, b, line[1], p->n)};
    part scaled = *p;
    scaled.a = (mpsim_matrix){&row->to, lines[0], a->depth, 0};
    scaled.b = (mpsim_matrix){&row->to, lines[1], b->depth, 1};
    const mpsim_status s = lines[0] && lines[1] ? multiply(&row->model, &scaled, y) : MPSIM_ENOMEM;
    free(lines[0]);
    free(lines[1]);
    return s;
}

static float scaled_sum(const block_row *row, float sum, float x, float by_a, float by_b)
{
    return row->fma ? fmaf(x, by_a * by_b, sum) : row->separate ? sum + x * by_a * by_b : sum + x * (by_a * by_b);
}

/* The sum of each block, times its scales, is added to the others. */
static mpsim_status block_sums(const block_row *row, const block_operand *a, const block_operand *b,
                               const size_t line[2], const part *p, float *y)
{
    const size_t step = a->across < b->across ? a->across : b->across;
    float *sums = want_memory(p->m * p->n + 1, sizeof *sums);
    mpsim_status s = sums ? MPSIM_OK : MPSIM_ENOMEM;
    memset(y, 0, p->m * p->n * sizeof *y);
    for (size_t k = 0; k < a->depth && s == MPSIM_OK; k += step) {
        part one = *p;
        one.depth = a->depth - k < step ? a->depth - k : step;
        one.a.codes = line_codes(a, line[0], k);
        one.b.codes = line_codes(b, line[1], k);
        s = multiply(&row->model, &one, sums);
        for (size_t i = 0; i < p->m * p->n && s == MPSIM_OK; i++)
            y[i] = scaled_sum(row, y[i], sums[i], (float)judge_block_scale(a, row->swizzled, line[0] + i / p->n, k),
                              (float)judge_block_scale(b, row->swizzled, line[1] + i % p->n, k));
    }
    free(sums);
    return s;
}

/* Scales of lines as codes, one line behind the other. */
static void *scale_codes(const block_row *row, const block_operand *x, size_t line, size_t n)
{
    const size_t bytes = mpsim_format_code_bytes(x->scale_format);
    void *codes = want_memory(n * x->grid + 1, bytes);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < n && codes; i++)
        for (size_t t = 0; t < x->grid; t++)
            element_put_code(codes, bytes, i * x->grid + t,
                             mpsim_encode_f64(x->scale_format, &r,
                                              judge_block_scale(x, row->swizzled, line + i, t * x->across), 0, NULL));
    return codes;
}

static mpsim_status native(const block_row *row, const block_operand *a, const block_operand *b, const size_t line[2],
                           const part *p, float *y)
{
    const mpsim_format *f = &row->model.result.format;
    void *codes[2] = {scale_codes(row, a, line[0], p->m), scale_codes(row, b, line[1], p->n)},
         *d = want_memory(p->m * p->n + 1, mpsim_format_code_bytes(f));
    const mpsim_scales sa = {a->scale_format, codes[0], a->grid}, sb = {b->scale_format, codes[1], b->grid};
    mpsim_status s = codes[0] && codes[1] && d ? mpsim_gemm_scaled(&row->model, p->m, p->n, p->depth, &p->a, &sa, &p->b,
                                                                   &sb, NULL, d, p->n, NULL, NULL)
                                               : MPSIM_ENOMEM;
    if (s == MPSIM_OK)
        s = mpsim_decode_array_f32(f, y, d, p->m * p->n);
    free(codes[0]);
    free(codes[1]);
    free(d);
    return s;
}

mpsim_status judge_block_compute(const block_row *row, const block_operand *a, const block_operand *b, size_t line_a,
                                 size_t m, size_t line_b, size_t n, float *y)
{
    static mpsim_status (*const forms[BLOCK_FORMS])(const block_row *, const block_operand *, const block_operand *,
                                                    const size_t[2], const part *,
                                                    float *) = {dequant, block_sums, native};
    const size_t line[2] = {line_a, line_b};
    const part p = {m,
                    n,
                    a->depth,
                    {a->format, line_codes(a, line_a, 0), a->depth, 0},
                    {b->format, line_codes(b, line_b, 0), b->depth, 1}};
    return forms[row->form](row, a, b, line, &p, y);
}
