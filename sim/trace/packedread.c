/* packedread.c -- elements of weights that are packed integers: see packed.h.
 *
 * GPTQ and AWQ store what a model multiplies with transposed: what is asked for is cut into rows of the weight, and of
 * every word that they have codes in those of all the rows are one read. Scales and zeros of a group are read when a
 * column of it comes, and kept while they fit. Products and differences are rounded to binary32 one by one. */
#include "packed.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 17, ROWS_MAX = 1 << 12, LINE = 256 }; /* elements; rows at once; of bitsandbytes at once */

typedef struct reader {
    const trace *t;
    const quantised *q;
    const struct packed *p;
    trace_error *error;
} reader;

static const trace_entry *part(const reader *r, int i)
{
    return r->q->parts[i] == QUANTISED_ABSENT ? NULL : &r->t->entries[r->q->parts[i]];
}

static int stored(const reader *r, int i, uint64_t first, void *to, size_t n)
{
    return trace_stored(r->t, part(r, i), first, to, n, r->error);
}

/* n numbers of a part, as binary32. */
static int numbers(const reader *r, int i, uint64_t first, float *to, size_t n)
{
    enum { AT_ONCE = 256 };
    uint64_t codes[AT_ONCE];
    double wide[AT_ONCE];
    for (size_t k = 0, m; k < n; k += m) {
        m = n - k < AT_ONCE ? n - k : AT_ONCE;
        if (stored(r, i, first + k, codes, m))
            return -1;
        mpsim_decode_array(part(r, i)->tensor.format, wide, codes, m);
        for (size_t j = 0; j < m; j++)
            to[k + j] = (float)wide[j];
    }
    return 0;
}

/* ---- GPTQ, AWQ ---- */

typedef struct words {
    uint64_t out, in; /* the first row and column */
    size_t rows, cols;
    size_t lines;          /* groups that are kept     */
    uint64_t *tags;        /* which, plus 1            */
    float *scales, *zeros; /* lines of rows        */
    int32_t *groups;       /* of the columns; NULL: they follow each other */
    uint32_t *words;       /* of a column, or of 32 bits of a stream along columns */
} words;

/* Code k of a row of words: bits that follow each other, or AWQ's order of eight in a word. */
static unsigned code_of(const struct packed *p, const uint32_t *w, uint64_t k)
{
    static const uint8_t places[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    if (p->kind == PACKED_AWQ)
        return w[k / 8] >> 4 * places[k % 8] & 15;
    const uint64_t bit = k * p->bits, at = bit / 32, shift = bit % 32;
    const uint64_t two = w[at] | (shift + p->bits > 32 ? (uint64_t)w[at + 1] << 32 : 0);
    return (unsigned)(two >> shift & ((1u << p->bits) - 1));
}

/* How many codes begin a new word, for a run of words to begin with. */
static uint64_t aligned(uint64_t k)
{
    return k / 32 * 32;
}

/* Words [code first, code end) of a line of words of a part, of which `line_words` are in a line; the word of aligned(first)
 * is the first. */
static int run_of_words(const reader *r, int i, uint64_t line, uint64_t line_words, uint64_t first, uint64_t end,
                        uint32_t *to)
{
    const uint64_t low = aligned(first) * r->p->bits / 32, high = quant_up(end * r->p->bits, 32);
    return stored(r, i, line * line_words + low, to, (size_t)(high - low));
}

/* Scales and zeros of a group, for the rows. */
static int fetch_group(const reader *r, const words *w, uint64_t group, size_t line)
{
    const struct packed *p = r->p;
    uint32_t zeros[ROWS_MAX / 4 + 16];
    float *scale = w->scales + line * w->rows, *zero = w->zeros + line * w->rows;
    if (w->tags[line] == group + 1)
        return 0;
    w->tags[line] = 0;
    if (numbers(r, PACKED_SCALES, group * p->outs + w->out, scale, w->rows) ||
        run_of_words(r, PACKED_ZEROS, group, p->outs * p->bits / 32, w->out, w->out + w->rows, zeros))
        return -1;
    for (size_t i = 0; i < w->rows; i++)
        zero[i] = (float)(code_of(p, zeros, w->out - aligned(w->out) + i) + (p->kind == PACKED_GPTQ));
    w->tags[line] = group + 1;
    return 0;
}

static int group_of(const reader *r, const words *w, size_t col, uint64_t *group)
{
    *group = (w->in + col) / r->p->group;
    if (!w->groups)
        return 0;
    if (w->groups[col] < 0 || (uint64_t)w->groups[col] >= r->p->groups)
        return trace_fail(r->t, r->error, TRACE_NO_OFFSET,
                          "'%s': group %" PRId32 " of input %" PRIu64 " is not one of %" PRIu64,
                          part(r, PACKED_GROUPS)->tensor.name, w->groups[col], w->in + col, r->p->groups);
    *group = (uint64_t)w->groups[col];
    return 0;
}

/* The words that column `col` needs: AWQ a line of its own; GPTQ the rows' words of 32 columns, one column of words after
 * the other, when the first of them comes. */
static int fetch_words(const reader *r, const words *w, size_t col)
{
    const struct packed *p = r->p;
    if (p->kind == PACKED_AWQ)
        return run_of_words(r, PACKED_CODES, w->in + col, p->outs / 8, w->out, w->out + w->rows, w->words);
    if (col && (w->in + col) % 32)
        return 0;
    for (unsigned k = 0; k < p->bits; k++) {
        const uint64_t line = aligned(w->in + col) / 32 * p->bits + k;
        if (line * 32 < p->ins * p->bits &&
            stored(r, PACKED_CODES, line * p->outs + w->out, w->words + k * w->rows, w->rows))
            return -1;
    }
    return 0;
}

static unsigned code_at(const reader *r, const words *w, size_t row, size_t col)
{
    uint32_t own[9] = {0};
    if (r->p->kind == PACKED_AWQ)
        return code_of(r->p, w->words, w->out - aligned(w->out) + row);
    for (unsigned k = 0; k < r->p->bits; k++)
        own[k] = w->words[k * w->rows + row];
    return code_of(r->p, own, (w->in + col) % 32);
}

static int read_rows(const reader *r, const words *w, float *to)
{
    uint64_t group;
    for (size_t col = 0; col < w->cols; col++) {
        if (group_of(r, w, col, &group))
            return -1;
        const size_t line = (size_t)(group % w->lines);
        if (fetch_group(r, w, group, line) || fetch_words(r, w, col))
            return -1;
        for (size_t row = 0; row < w->rows; row++) {
            const float x = w->scales[line * w->rows + row] *
                            ((float)code_at(r, w, row, col) - w->zeros[line * w->rows + row]);
            to[row * w->cols + col] = x == x ? x : NAN;
        }
    }
    return 0;
}

static int begin_rows(const reader *r, words *w)
{
    const size_t fit = ROOM / w->rows;
    w->lines = r->p->groups < fit ? (size_t)r->p->groups : fit;
    w->tags = calloc(w->lines, sizeof *w->tags);
    w->scales = malloc(w->lines * w->rows * sizeof *w->scales);
    w->zeros = malloc(w->lines * w->rows * sizeof *w->zeros);
    w->words = malloc((8 * w->rows + 16) * sizeof *w->words);
    w->groups = part(r, PACKED_GROUPS) ? malloc(w->cols * sizeof *w->groups) : NULL;
    if (!w->tags || !w->scales || !w->zeros || !w->words || (part(r, PACKED_GROUPS) && !w->groups))
        return trace_no_memory(r->t, r->error);
    return w->groups ? stored(r, PACKED_GROUPS, w->in, w->groups, w->cols) : 0;
}

/* Whole rows, or a run of one. */
static int words_read(const reader *r, uint64_t first, float *to, size_t n)
{
    const uint64_t ins = r->p->ins;
    int failed = 0;
    while (n && !failed) {
        words w = {.out = first / ins, .in = first % ins, .rows = 1};
        if (w.in == 0 && n >= ins) {
            const uint64_t fit = n < ROOM ? n / ins : ins < ROOM ? ROOM / ins : 1;
            w.rows = (size_t)(fit < ROWS_MAX ? fit : ROWS_MAX);
        }
        w.cols = (size_t)(n < ins - w.in ? n : ins - w.in);
        w.cols = w.cols < ROOM ? w.cols : ROOM;
        failed = begin_rows(r, &w) || read_rows(r, &w, to);
        free(w.tags);
        free(w.scales);
        free(w.zeros);
        free(w.words);
        free(w.groups);
        first += w.rows * w.cols;
        to += w.rows * w.cols;
        n -= w.rows * w.cols;
    }
    return failed ? -1 : 0;
}

/* ---- compressed-tensors ---- */

/* The scale and the zero of a group of a row. */
static int row_scale(const reader *r, uint64_t row, uint64_t group, float *scale, float *zero)
{
    const struct packed *p = r->p;
    uint32_t two_words[2] = {0};
    int8_t byte;
    const uint64_t bit = row * p->bits, line = bit / 32;
    *zero = 0;
    if (numbers(r, PACKED_ROW_SCALES, row * p->groups + group, scale, 1) || !part(r, PACKED_ROW_ZEROS))
        return part(r, PACKED_ROW_ZEROS) ? -1 : 0;
    if (p->kind == PACKED_INT8) {
        const int failed = stored(r, PACKED_ROW_ZEROS, row * p->groups + group, &byte, 1);
        *zero = failed ? 0 : (float)byte;
        return failed;
    }
    for (unsigned k = 0; k < 2 && (line + k) * 32 < bit + p->bits; k++)
        if (stored(r, PACKED_ROW_ZEROS, (line + k) * p->groups + group, &two_words[k], 1))
            return -1;
    const uint64_t two = two_words[0] | (uint64_t)two_words[1] << 32;
    *zero = (float)((int)(two >> bit % 32 & ((1u << p->bits) - 1)) - (1 << (p->bits - 1)));
    return 0;
}

/* n codes of a row, as numbers with a sign. */
static int row_codes(const reader *r, uint64_t row, uint64_t col, float *to, size_t n)
{
    const struct packed *p = r->p;
    uint32_t line[LINE / 4 + 16];
    int8_t bytes[LINE];
    if (p->kind == PACKED_INT8 ? stored(r, PACKED_CODES, row * p->ins + col, bytes, n)
                               : run_of_words(r, PACKED_CODES, row, quant_up(p->ins * p->bits, 32), col, col + n, line))
        return -1;
    for (size_t i = 0; i < n; i++)
        to[i] = p->kind == PACKED_INT8 ? (float)bytes[i]
                                       : (float)((int)code_of(p, line, col - aligned(col) + i) - (1 << (p->bits - 1)));
    return 0;
}

static int row_groups(const reader *r, uint64_t col, int32_t *groups, size_t n)
{
    if (part(r, PACKED_ROW_GROUPS))
        return stored(r, PACKED_ROW_GROUPS, col, groups, n);
    for (size_t i = 0; i < n; i++)
        groups[i] = (int32_t)((col + i) / r->p->group);
    return 0;
}

static int rows_read(const reader *r, uint64_t first, float *to, size_t n)
{
    int32_t groups[LINE];
    float scale = 0, zero = 0;
    for (size_t m; n; first += m, to += m, n -= m) {
        const uint64_t row = first / r->p->ins, col = first % r->p->ins;
        int32_t now = -1;
        m = n < r->p->ins - col ? n : (size_t)(r->p->ins - col);
        m = m < LINE ? m : LINE;
        if (row_codes(r, row, col, to, m) || row_groups(r, col, groups, m))
            return -1;
        for (size_t i = 0; i < m; i++) {
            if (groups[i] < 0 || (uint64_t)groups[i] >= r->p->groups)
                return trace_fail(r->t, r->error, TRACE_NO_OFFSET,
                                  "'%s': group %" PRId32 " of input %" PRIu64 " is not one of %" PRIu64,
                                  part(r, PACKED_ROW_GROUPS)->tensor.name, groups[i], col + i, r->p->groups);
            if (groups[i] != now && row_scale(r, row, (uint64_t)groups[i], &scale, &zero))
                return -1;
            now = groups[i];
            const float x = (to[i] - zero) * scale;
            to[i] = x == x ? x : NAN;
        }
    }
    return 0;
}

/* ---- bitsandbytes ---- */

/* The scale of block i. */
static int absmax(const reader *r, const float *nested, uint64_t i, float *scale)
{
    unsigned char code;
    float own;
    if (!r->p->nested_block)
        return numbers(r, PACKED_ABSMAX, i, scale, 1);
    if (stored(r, PACKED_ABSMAX, i, &code, 1) || numbers(r, PACKED_NESTED, i / r->p->nested_block, &own, 1))
        return -1;
    const float product = nested[code] * own;
    *scale = product + r->p->offset;
    return 0;
}

/* Two codes in a byte, the first in the high half; one scale for each run of elements. */
static int four_read(const reader *r, uint64_t first, float *to, size_t n)
{
    float table[16], nested[256] = {0}, scale;
    unsigned char bytes[LINE / 2 + 1];
    if (numbers(r, PACKED_TABLE, 0, table, 16) ||
        (r->p->nested_block && numbers(r, PACKED_NESTED_TABLE, 0, nested, 256)))
        return -1;
    while (n) {
        const uint64_t left = r->p->block - first % r->p->block;
        size_t m = n < left ? n : (size_t)left;
        m = m < LINE ? m : LINE;
        if (absmax(r, nested, first / r->p->block, &scale) ||
            stored(r, PACKED_CODES, first / 2, bytes, (size_t)((first + m - 1) / 2 - first / 2 + 1)))
            return -1;
        for (size_t i = 0; i < m; i++) {
            const unsigned char byte = bytes[(first + i) / 2 - first / 2];
            const float x = table[(first + i) % 2 ? byte & 15 : byte >> 4] * scale;
            to[i] = x == x ? x : NAN;
        }
        first += m;
        to += m;
        n -= m;
    }
    return 0;
}

/* Codes times the largest magnitude of the row, over 127 as the source has it: times a constant. */
static int eight_read(const reader *r, uint64_t first, float *to, size_t n)
{
    const float over = 7.874015718698502e-3F;
    int8_t codes[LINE];
    float scale;
    while (n) {
        const uint64_t left = r->p->block - first % r->p->block;
        size_t m = n < left ? n : (size_t)left;
        m = m < LINE ? m : LINE;
        if (numbers(r, PACKED_SCB, first / r->p->block, &scale, 1) || stored(r, PACKED_CODES, first, codes, m))
            return -1;
        for (size_t i = 0; i < m; i++) {
            const float product = (float)codes[i] * scale, x = product * over;
            to[i] = x == x ? x : NAN;
        }
        first += m;
        to += m;
        n -= m;
    }
    return 0;
}

int trace_packed_read(const trace *t, const trace_entry *e, uint64_t first, float *to, size_t n, trace_error *error)
{
    const quantised *q = (const quantised *)(const void *)e->tensor.quantised;
    const reader r = {t, q, q->packed, error};
    return r.p->kind == PACKED_FOUR                               ? four_read(&r, first, to, n)
           : r.p->kind == PACKED_EIGHT                            ? eight_read(&r, first, to, n)
           : r.p->kind == PACKED_ROWS || r.p->kind == PACKED_INT8 ? rows_read(&r, first, to, n)
                                                                  : words_read(&r, first, to, n);
}
