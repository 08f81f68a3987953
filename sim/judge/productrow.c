/* productrow.c -- see productrow.h. */
#include "productrow.h"

#include "impl.h"

#include "../array/want.h"
#include "../operand/element.h"
#include "../text/option.h"
#include "../text/words.h"

#include <mpsim/torchmm.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 64 };

/* ---- names ---- */

static const char *const orders[PRODUCT_SCALES] = {"first", "a-b", "b-a"};

static int set_order(product_row *row, const char *word)
{
    for (int i = 0; i < PRODUCT_SCALES; i++)
        if (strcmp(word, orders[i]) == 0) {
            row->scales = i;
            return 0;
        }
    return -1;
}

/* split=N and chunk=N are not for MKL's own order. */
static int set_count(product_row *row, const char *word)
{
    uint64_t n;
    const int splits = strncmp(word, "split=", 6) == 0;
    if (row->mkl || parse_count(&n, word + 6) || n < 1 + (uint64_t)splits || n > (splits ? 1024 : 1 << 24))
        return -1;
    *(splits ? &row->split : &row->chunk) = (size_t)n;
    return 0;
}

static int set_word(product_row *row, const char *word)
{
    mpsim_round_mode mode;
    uint8_t bits;
    if (strncmp(word, "scales=", 7) == 0)
        return set_order(row, word + 7);
    if (strncmp(word, "split=", 6) == 0 || strncmp(word, "chunk=", 6) == 0)
        return set_count(row, word);
    if (strncmp(word, "round=", 6) == 0 && mpsim_round_mode_parse(&mode, &bits, word + 6) == MPSIM_OK &&
        mode < MPSIM_ROUND_STOCHASTIC_A) {
        row->mode = (uint8_t)mode;
        return 0;
    }
    if (strncmp(word, "partials=", 9) == 0)
        return mpsim_format_parse(&row->partials, word + 9) == MPSIM_OK ? 0 : -1;
    return strncmp(word, "operands=", 9) == 0 && mpsim_format_parse(&row->operands, word + 9) == MPSIM_OK ? 0 : -1;
}

/* Sums of lanes as add_chains has them: operations of binary32 to nearest. */
static unsigned plain_lanes(const char *word)
{
    unsigned long chunk = 0, lanes = 0;
    int n = 0;
    const char *chain = strchr(word, ':');
    if (!chain || (strncmp(word, "fma:", 4) != 0 && strncmp(word, "sequential:", 11) != 0) ||
        sscanf(chain, ":chunk=%9lu:order=lanes:L=%3lu%n", &chunk, &lanes, &n) != 2 || chain[n] || lanes > LANES)
        return 0;
    return (unsigned)lanes;
}

/* The model of a row; MKL's kernel for AVX-512 is chains of fma. 0, or -1. */
static int set_model(product_row *row, const char *word)
{
    const int halves = strcmp(word, "mkl-fp32:parts=2") == 0;
    row->mkl = halves || strcmp(word, "mkl-fp32") == 0;
    row->split = halves ? 2 : 1;
    row->lanes = plain_lanes(word);
    return mpsim_model_parse(&row->model, row->mkl ? "fma" : word) == MPSIM_OK ? 0 : -1;
}

mpsim_status judge_product_row_parse(product_row *row, const char *text)
{
    char copy[MPSIM_JUDGE_ROW], *next;
    if (strlen(text) >= sizeof copy)
        return MPSIM_ENOTFOUND;
    memset(row, 0, sizeof *row);
    snprintf(copy, sizeof copy, "%s", text);
    const char *model = strtok_r(copy, "+", &next);
    if (!model || set_model(row, model))
        return MPSIM_ENOTFOUND;
    for (const char *word = strtok_r(NULL, "+", &next); word; word = strtok_r(NULL, "+", &next))
        if (set_word(row, word))
            return MPSIM_ENOTFOUND;
    snprintf(row->name, sizeof row->name, "%s", text);
    return MPSIM_OK;
}

/* ---- which there are ---- */

typedef struct row_list {
    product_row *to;
    size_t n, most;
    const product_rows_source *from;
} row_list;

static void add(row_list *l, const char *name)
{
    product_row *row = &l->to[l->n];
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->to[i].name, name) == 0)
            return;
    if (l->n == l->most || judge_product_row_parse(row, name) != MPSIM_OK)
        return;
    const mpsim_format *a = *row->operands.name ? &row->operands : l->from->a;
    const mpsim_format *b = *row->operands.name ? &row->operands : l->from->b;
    l->n += mpsim_model_accepts(&row->model, a, b) && row->model.block == 0;
}

/* Every model of the table with so many parts and these words. */
static void add_models(row_list *l, size_t split, const char *words)
{
    mpsim_model m;
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++) {
        char name[MPSIM_JUDGE_ROW] = "";
        (void)text_add(name, sizeof name, "%s%s", m.name, words);
        if (split > 1)
            (void)text_add(name, sizeof name, "+split=%zu", split);
        add(l, name);
    }
}

/* Chains in the format of the result, and in lanes and chunks: what kernels without tensor cores do. */
static void add_chains(row_list *l)
{
    static const char *const names[] = {"fma:%s", "sequential:%s", "pairwise:%s", "exact:result=%s"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[MPSIM_JUDGE_ROW];
        snprintf(name, sizeof name, names[i], l->from->d->name);
        add(l, name);
    }
    for (unsigned lanes = 2; lanes <= 64; lanes *= 2)
        for (int fma = 0; fma < 2; fma++) {
            char name[MPSIM_JUDGE_ROW];
            snprintf(name, sizeof name, "%s:chunk=%zu:order=lanes:L=%u", fma ? "fma" : "sequential", l->from->depth,
                     lanes);
            add(l, name);
        }
    for (unsigned chunk = 8; chunk <= 4096 && chunk < l->from->depth; chunk *= 2) {
        char name[MPSIM_JUDGE_ROW];
        snprintf(name, sizeof name, "fma:chunk=%u", chunk);
        add(l, name);
        snprintf(name, sizeof name, "sequential:chunk=%u", chunk);
        add(l, name);
    }
}

/* torch's own products on a CPU (mpsim/torchmm.h): of binary32 those of MKL, of bf16 and fp16 those of oneDNN. Its rule for AMX depends on
 * layout, threads and caches; nearly all of its chunks are a depth, or its half or quarter, in equal numbers of tiles. */
static void add_torch(row_list *l)
{
    enum { TILE = 32, LEAST = 512, GROUPS = 32 }; /* products; what is cut; equal parts */
    const size_t tiles = l->from->depth / TILE + (l->from->depth % TILE != 0);
    if (l->from->depth > PRODUCT_MKL_BLOCK) {
        add(l, "mkl-fp32");
        add(l, "mkl-fp32:parts=2");
    }
    for (size_t split = 1; split <= 4 && l->from->depth >= LEAST; split *= 2) {
        char words[32] = "", name[MPSIM_JUDGE_ROW];
        if (split > 1)
            snprintf(words, sizeof words, "+split=%zu", split);
        for (int turned = 0; turned < 2; turned++) {
            const size_t chunk = mpsim_torch_mm_chunk(l->from->depth, turned);
            snprintf(name, sizeof name, "avx512-bf16-fp32:chunk=%zu%s", chunk, words);
            add(l, name);
            snprintf(name, sizeof name, "fma:chunk=%zu%s", chunk, words);
            add(l, name);
        }
        for (size_t group = 2; group <= GROUPS; group++) {
            const size_t part = (tiles + split - 1) / split;
            snprintf(name, sizeof name, "amx-bf16-fp32+chunk=%zu%s", TILE * ((part + group - 1) / group), words);
            add(l, name);
        }
    }
}

/* Parts whose sums are stored in the format of the results. */
static void add_partials(row_list *l)
{
    static const char *const models[] = {"fma", "exact"};
    for (size_t split = 2; split <= 16 && split <= l->from->depth && l->from->d->bits == 16; split++)
        for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
            char name[MPSIM_JUDGE_ROW];
            snprintf(name, sizeof name, "%s+split=%zu+partials=%s", models[i], split, l->from->d->name);
            add(l, name);
        }
}

size_t judge_product_rows(product_row *to, size_t most, const product_rows_source *from)
{
    static const char *const rounded[] = {"+operands=tf32", "+operands=bf16", "+operands=fp16"};
    row_list l = {to, 0, most, from};
    add_models(&l, 1, "");
    add_chains(&l);
    add_torch(&l);
    for (size_t i = 0; i < sizeof rounded / sizeof rounded[0] && from->a->mbits >= 23; i++)
        add_models(&l, 1, rounded[i]);
    for (int order = PRODUCT_SCALES_A_B; order < PRODUCT_SCALES && from->scales; order++)
        add_models(&l, 1, order == PRODUCT_SCALES_A_B ? "+scales=a-b" : "+scales=b-a");
    for (size_t split = 2; split <= 16 && split <= from->depth; split += split < 4 ? 1 : split)
        add_models(&l, split, "");
    add_partials(&l);
    return l.n;
}

/* ---- results ---- */

/* Where lines of a matrix come from. */
typedef struct line_source {
    const mpsim_judge_array *x;
    const size_t *which; /* NULL: all */
    size_t n, first, depth;
    int along_rows;
} line_source;

/* Lines, one after the other along the depth, rounded to a format. */
static void *lines_of(const line_source *l, const mpsim_format *to)
{
    const mpsim_judge_array *x = l->x;
    const size_t from_bytes = mpsim_format_code_bytes(x->format), bytes = mpsim_format_code_bytes(to);
    const int same = mpsim_format_same(x->format, to);
    unsigned char *lines = want_memory(l->n * l->depth + 1, bytes);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (lines && same && l->along_rows && !l->which && l->depth == x->columns) {
        memcpy(lines, x->codes, l->n * l->depth * bytes); /* they lie so */
        return lines;
    }
    for (size_t i = 0; i < l->n && lines; i++) {
        const size_t line = l->which ? l->which[i] : i;
        for (size_t k = 0; k < l->depth; k++) {
            const size_t at = l->along_rows ? line * x->columns + l->first + k : (l->first + k) * x->columns + line;
            const uint64_t code = element_code(x->codes, from_bytes, at);
            element_put_code(lines, bytes, i * l->depth + k,
                             same ? code : mpsim_encode_f64(to, &r, mpsim_decode(x->format, code), 0, NULL));
        }
    }
    return lines;
}

static float number(const mpsim_judge_array *x, size_t i)
{
    return (float)mpsim_decode(x->format, element_code(x->codes, mpsim_format_code_bytes(x->format), i));
}

typedef struct product_work {
    const product_operands *o;
    const product_row *row;
    void *a, *b, *part; /* part: results of a part of the depth, in the model's format */
    const mpsim_format *fa, *fb;
    float *sums;
    size_t m, n, depth;
} product_work;

/* A sum of parts, as it is stored. */
static float kept(const product_row *row, float x)
{
    mpsim_rounding r;
    if (!*row->partials.name)
        return x;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return (float)mpsim_decode(&row->partials, mpsim_encode_f32(&row->partials, &r, x, 0, NULL));
}

/* Numbers that binary32 has not. Such results go straight to their codes: then nothing is split or added. */
static int is_wide(const mpsim_format *f)
{
    return f->mbits > 23;
}

/* ---- sums of lanes, which lib/dot computes number by number ---- */

typedef struct lanes_work {
    const product_work *w;
    float *a, *b, *to;
    size_t n; /* products */
} lanes_work;

/* Neighbours are added, again and again, and the sum to 0. */
static float sum_lanes(float *s, size_t lanes)
{
    for (; lanes > 1; lanes = lanes / 2 + lanes % 2) {
        for (size_t i = 0; i < lanes / 2; i++)
            s[i] = s[2 * i] + s[2 * i + 1];
        if (lanes % 2)
            s[lanes / 2] = s[lanes - 1];
    }
    return 0 + s[0];
}

static void lanes_of_line(size_t line, void *job)
{
    const lanes_work *l = job;
    const size_t lanes = l->w->row->lanes;
    const int fma = l->w->row->model.addition == MPSIM_ADDITION_FMA;
    const float *a = l->a + line * l->n;
    for (size_t c = 0; c < l->w->n; c++) {
        const float *b = l->b + c * l->n;
        float s[LANES] = {0};
        for (size_t k = 0; k < l->n; k += lanes) {
            const size_t some = l->n - k < lanes ? l->n - k : lanes;
            for (size_t i = 0; i < some && fma; i++)
                s[i] = fmaf(a[k + i], b[k + i], s[i]);
            for (size_t i = 0; i < some && !fma; i++)
                s[i] += a[k + i] * b[k + i];
        }
        l->to[line * l->w->n + c] = sum_lanes(s, lanes);
    }
}

static float *floats_of(const void *codes, const mpsim_format *f, size_t lines, size_t depth, size_t first, size_t n)
{
    const size_t bytes = mpsim_format_code_bytes(f);
    float *x = want_memory(lines * n + 1, sizeof *x);
    for (size_t i = 0; i < lines && x; i++)
        (void)mpsim_decode_array_f32(f, x + i * n, (const char *)codes + (i * depth + first) * bytes, n);
    return x;
}

static mpsim_status add_lanes(product_work *w, float *sums, size_t first, size_t end, int begins)
{
    const size_t n = end - first;
    lanes_work l = {w, floats_of(w->a, w->fa, w->m, w->depth, first, n),
                    floats_of(w->b, w->fb, w->n, w->depth, first, n), w->part, n};
    const mpsim_status s = l.a && l.b ? MPSIM_OK : MPSIM_ENOMEM;
    if (s == MPSIM_OK)
        judge_in_pieces(w->o->pool, w->m, lanes_of_line, &l);
    for (size_t i = 0; i < w->m * w->n && s == MPSIM_OK; i++) {
        const float x = kept(w->row, l.to[i]);
        sums[i] = begins ? x : kept(w->row, sums[i] + x);
    }
    free(l.a);
    free(l.b);
    return s;
}

/* One chunk of the depth: added to the sums, or the first. */
static mpsim_status add_chunk(product_work *w, float *sums, size_t first, size_t end, int begins)
{
    const size_t ba = mpsim_format_code_bytes(w->fa), bb = mpsim_format_code_bytes(w->fb);
    const mpsim_format *f = &w->row->model.result.format;
    const mpsim_matrix a = {w->fa, (char *)w->a + first * ba, w->depth, 0},
                       b = {w->fb, (char *)w->b + first * bb, w->depth, 1};
    if (w->row->lanes && end - first <= w->row->model.chunk && !is_wide(w->fa) && !is_wide(w->fb))
        return add_lanes(w, sums, first, end, begins);
    const mpsim_status s = mpsim_gemm(&w->row->model, w->m, w->n, end - first, &a, &b, NULL, w->part, w->n, NULL,
                                      w->o->pool);
    for (size_t i = 0; i < w->m * w->n && s == MPSIM_OK; i++) {
        const float x = kept(w->row, (float)mpsim_decode(f, element_code(w->part, mpsim_format_code_bytes(f), i)));
        sums[i] = begins ? x : kept(w->row, sums[i] + x);
    }
    return s;
}

/* How many products MKL adds up before it begins a new sum: the last two blocks are alike where less than two are left. */
static size_t block_of(size_t left)
{
    return left >= (size_t)2 * PRODUCT_MKL_BLOCK ? PRODUCT_MKL_BLOCK
           : left > PRODUCT_MKL_BLOCK            ? left - left / 2
                                                 : left;
}

/* The sum of a part of the depth: of its chunks in order. */
static mpsim_status sum_part(product_work *w, float *sums, size_t first, size_t end)
{
    const size_t chunk = w->row->chunk ? w->row->chunk : w->depth + 1;
    mpsim_status s = MPSIM_OK;
    size_t at = first;
    do {
        const size_t left = end - at, next = at + (w->row->mkl ? block_of(left) : left < chunk ? left : chunk);
        s = add_chunk(w, sums, at, next, at == first);
        at = next;
    } while (at < end && s == MPSIM_OK);
    return s;
}

/* The parts: as equal as multiples of 32 allow, else as equal as can be; those of MKL's threads as equal as can be. */
static mpsim_status add_parts(product_work *w, float *other)
{
    const size_t unit = w->depth % 32 || w->row->mkl ? 1 : 32, steps = w->depth / unit, parts = w->row->split;
    const size_t each = (steps + parts - 1) / parts * unit;
    mpsim_status s = sum_part(w, w->sums, 0, each < w->depth ? each : w->depth);
    for (size_t at = each; at < w->depth && s == MPSIM_OK; at += each) {
        s = sum_part(w, other, at, at + each < w->depth ? at + each : w->depth);
        for (size_t i = 0; i < w->m * w->n && s == MPSIM_OK; i++)
            w->sums[i] = kept(w->row, w->sums[i] + other[i]);
    }
    return s;
}

/* The scale of a line: of its own, or that of all; 1 where there is none. */
static float scale_of(const mpsim_judge_array *x, size_t line)
{
    return !x ? 1 : number(x, x->rows * x->columns == 1 ? 0 : line);
}

static float scaled(float s, const product_work *w, size_t row, size_t column)
{
    const float a = scale_of(w->o->scale_a, row), b = scale_of(w->o->scale_b, column);
    return w->row->scales == PRODUCT_SCALES_A_B   ? s * a * b
           : w->row->scales == PRODUCT_SCALES_B_A ? s * b * a
                                                  : s * (a * b);
}

static void finish(void *codes, const product_work *w, const mpsim_format *f)
{
    const product_operands *o = w->o;
    const size_t bytes = mpsim_format_code_bytes(f);
    mpsim_rounding r;
    mpsim_rounding_init(&r, (mpsim_round_mode)w->row->mode);
    for (size_t i = 0; i < w->m * w->n; i++) {
        const size_t row = o->rows ? o->rows[i / w->n] : i / w->n,
                     column = o->columns ? o->columns[i % w->n] : i % w->n;
        float s = o->scale_a || o->scale_b ? scaled(w->sums[i], w, row, column) : w->sums[i];
        if (o->c)
            s += number(o->c, row * o->c->columns + column);
        if (o->bias)
            s += number(o->bias, column);
        element_put_code(codes, bytes, i, mpsim_encode_f32(f, &r, s, 0, NULL));
    }
}

static mpsim_status compute(void *codes, product_work *w, const mpsim_format *f)
{
    const mpsim_format *own = &w->row->model.result.format;
    if (!is_wide(own)) {
        float *other = want_memory(w->m * w->n + 1, sizeof *other);
        const mpsim_status s = other ? add_parts(w, other) : MPSIM_ENOMEM;
        free(other);
        if (s == MPSIM_OK)
            finish(codes, w, f);
        return s;
    }
    if (w->row->split > 1 || w->row->chunk || w->o->c || w->o->bias || w->o->scale_a || w->o->scale_b ||
        !mpsim_format_same(own, f))
        return MPSIM_ERANGE;
    const mpsim_matrix a = {w->fa, w->a, w->depth, 0}, b = {w->fb, w->b, w->depth, 1};
    return mpsim_gemm(&w->row->model, w->m, w->n, w->depth, &a, &b, NULL, codes, w->n, NULL, w->o->pool);
}

mpsim_status judge_product_compute(void *codes, const product_operands *o, const product_row *row,
                                   const mpsim_format *f, size_t m, size_t n, size_t depth)
{
    const int rounds = *row->operands.name != '\0';
    product_work w = {.o = o,
                      .row = row,
                      .fa = rounds ? &row->operands : o->a->format,
                      .fb = rounds ? &row->operands : o->b->format,
                      .m = m,
                      .n = n,
                      .depth = depth};
    const line_source a = {o->a, o->rows, m, o->first, depth, 1}, b = {o->b, o->columns, n, o->first, depth, o->turned};
    w.a = lines_of(&a, w.fa);
    w.b = lines_of(&b, w.fb);
    w.part = want_memory(m * n + 1, mpsim_format_code_bytes(&row->model.result.format));
    w.sums = want_memory(m * n + 1, sizeof *w.sums);
    const mpsim_status s = w.a && w.b && w.part && w.sums ? compute(codes, &w, f) : MPSIM_ENOMEM;
    free(w.a);
    free(w.b);
    free(w.part);
    free(w.sums);
    return s;
}
