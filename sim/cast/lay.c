/* lay.c -- see lay.h. */
#include "lay.h"

#include <string.h>

/* Bytes of a scale as it is stored. */
static size_t scale_bytes(const laid *l)
{
    return l->scale_codes ? 1 : sizeof(float);
}

/* From `first` to before `end`, of `all`: extended to `padded` where it is the last. */
typedef struct span {
    uint64_t first, end, all, padded;
} span;

static uint64_t span_end(const span *s)
{
    return s->end == s->all ? s->padded : s->end;
}

/* Blocks of the grid whose first element the tile has. */
static span blocks_of(uint64_t first, uint64_t n, uint64_t side, uint64_t all)
{
    return (span){quant_up(first, side), quant_up(first + n, side), all, all};
}

static uint64_t part_rows(const quant_shape *s)
{
    return s->rank ? s->count / (s->sides[s->rank - 1] ? s->sides[s->rank - 1] : 1) : 1;
}

static void spans(const quant_geometry *g, const block_part *t, span *rows, span *cols)
{
    *rows = blocks_of(t->row, t->rows, g->block_rows, g->grid_rows);
    *cols = blocks_of(t->col, t->cols, g->block_cols, g->grid_cols);
}

size_t cast_lay_room(const quant_geometry *g, const block_part *t)
{
    span rows, cols;
    spans(g, t, &rows, &cols);
    const uint64_t pad = 128; /* of either side, at most: of TransformerEngine, and of swizzled tiles */
    const uint64_t scales = (rows.end - rows.first + pad) * (cols.end - cols.first + pad) * sizeof(float);
    const uint64_t codes = 2 * t->rows * t->cols + t->rows + t->cols;
    return (size_t)(codes > scales ? codes : scales);
}

int cast_lay_lines(trace_writer *to, uint64_t at, uint64_t stride, const void *lines, uint64_t bytes, uint64_t n,
                   trace_error *error)
{
    const char *from = lines;
    if (bytes == stride)
        return trace_writer_data_at(to, at, from, (size_t)(n * bytes), error);
    for (uint64_t i = 0; i < n; i++)
        if (trace_writer_data_at(to, at + i * stride, from + i * bytes, (size_t)bytes, error))
            return -1;
    return 0;
}

/* ---- codes ---- */

int cast_lay_codes(const laid *l, trace_error *error)
{
    const quant_geometry *g = l->g;
    const block_part *t = &l->t;
    const int transposes = g->form->code_shape == QUANT_TRANSPOSED;
    const uint64_t lines = transposes ? t->cols : t->rows, n = transposes ? t->rows : t->cols;
    const uint64_t line = transposes ? t->col : t->row, first = transposes ? t->row : t->col;
    const uint64_t bytes = quant_packed(g->form->packing, n);
    const uint64_t begin = l->at[QUANT_CODES] + line * g->line_bytes + quant_packed(g->form->packing, first);
    const unsigned char *codes = l->codes;
    unsigned char *to = l->room;
    if (transposes != l->transposed) {
        pass_block_transpose_bytes(to, codes, (size_t)n, (size_t)lines);
        codes = to;
        to += lines * n;
    }
    for (uint64_t i = 0; i < lines; i++)
        quant_pack(g->form->packing, to + i * bytes, codes + i * n, (size_t)n);
    return cast_lay_lines(l->to, begin, g->line_bytes, to, bytes, lines, error);
}

/* ---- scales ---- */

/* The scale of block (i, j) of the grid, as it is stored. */
static void put_scale(const laid *l, unsigned char *to, uint64_t i, uint64_t j)
{
    const uint64_t row = i * l->g->block_rows - l->t.row, col = j * l->g->block_cols - l->t.col;
    const uint64_t line = l->transposed ? col : row, code = l->transposed ? row : col;
    const uint64_t across = quant_up(l->transposed ? l->t.rows : l->t.cols, l->block_codes);
    const uint64_t k = line / l->block_lines * across + code / l->block_codes;
    if (l->scale_codes) {
        *to = l->scale_codes[k];
    } else {
        memcpy(to, &l->scales[k], sizeof(float));
        trace_to_little_endian(to, sizeof(float), 1);
    }
}

/* Whole tiles of 512 bytes, in rows of them. */
static int lay_swizzled(const laid *l, const span *rows, const span *cols, trace_error *error)
{
    const int down = l->g->block_rows > l->g->block_cols;
    const span *outer = down ? cols : rows, *inner = down ? rows : cols;
    const uint64_t across = quant_up(inner->all, 4), left = inner->first / 4, n = quant_up(inner->end, 4) - left;
    for (uint64_t o = outer->first; o < outer->end; o += 128) {
        const uint64_t begin = (o / 128 * across + left) * 512;
        memset(l->room, 0, (size_t)(n * 512));
        for (uint64_t k = o; k < outer->end && k < o + 128; k++)
            for (uint64_t i = inner->first; i < inner->end; i++)
                put_scale(l, l->room + quant_swizzled_index(k, i, inner->all) - begin, down ? i : k, down ? k : i);
        if (trace_writer_data_at(l->to, l->at[QUANT_SCALES] + begin, l->room, (size_t)(n * 512), error))
            return -1;
    }
    return 0;
}

int cast_lay_scales(const laid *l, trace_error *error)
{
    const quant_geometry *g = l->g;
    const int transposed = g->form->arrangement == QUANT_PADDED_TRANSPOSED;
    const size_t each = scale_bytes(l);
    span rows, cols;
    spans(g, &l->t, &rows, &cols);
    if (g->swizzled)
        return lay_swizzled(l, &rows, &cols, error);
    span lines = transposed ? cols : rows, places = transposed ? rows : cols;
    lines.padded = part_rows(&g->parts[QUANT_SCALES]);
    places.padded = g->line_scales;
    const uint64_t first = lines.first, end = span_end(&lines), n = span_end(&places) - places.first;
    const uint64_t begin = l->at[QUANT_SCALES] + (first * g->line_scales + places.first) * each;
    if (first >= lines.end || places.first >= places.end)
        return 0; /* another tile has the beginning of the block */
    memset(l->room, 0, (size_t)((end - first) * n * each));
    for (uint64_t a = first; a < lines.end; a++)
        for (uint64_t b = places.first; b < places.end; b++)
            put_scale(l, l->room + ((a - first) * n + b - places.first) * each, transposed ? b : a, transposed ? a : b);
    return cast_lay_lines(l->to, begin, g->line_scales * each, l->room, n * each, end - first, error);
}
