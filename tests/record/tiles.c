/* tiles.c -- products whose kernels cut the depth of some tiles alone (segment-K, stream-K): which tiles, and where? The
 * places of each tile tell; the digest tells whether that is so in the whole result. */
#include "segments.h"

#include "support/support.h"

#include <inttypes.h>
#include <mpsim/digest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* sizes: of a tile: rows, columns, depth. cut: of each tile, the way that fits first; fits: how many do. */
typedef struct tiled {
    const json_t *c;
    const char *form, *words;
    const mpsim_format *operand, *out;
    size_t m, n, k, high, wide, unit, tiles, places, ways;
    uint64_t streams[2];
    mpsim_model row;
    segments *list;
    size_t *cut;
    unsigned char *a, *b; /* rows of a, columns of b */
} tiled;

static int marks(const char *name)
{
    return strstr(name, "segment_k_on") || strstr(name, "stream_k") || strstr(name, "streamk");
}

/* "tilesize128x256x64": cuBLAS multiplies columns by rows, so that the first is of our columns. */
static int read_kernel(const json_t *c, tiled *t)
{
    const json_t *names = json_object_get(c, "kernels");
    t->wide = t->high = 128;
    t->unit = 64;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        const char *size = name ? strstr(name, "tilesize") : NULL;
        if (!name || !marks(name))
            continue;
        if (size && sscanf(size, "tilesize%zux%zux%zu", &t->wide, &t->high, &t->unit) != 3)
            t->unit = 0;
        return t->unit > 0 && t->wide > 0 && t->high > 0;
    }
    return 0;
}

static int read_case(const json_t *c, tiled *t)
{
    *t = (tiled){.c = c,
                 .form = device_text(c, "form"),
                 .words = device_text(c, "d"),
                 .m = (size_t)device_integer(c, "m"),
                 .n = (size_t)device_integer(c, "n"),
                 .k = (size_t)device_integer(c, "k"),
                 .operand = device_format(device_text(c, "form")),
                 .out = device_format(device_text(c, "out"))};
    for (size_t i = 0; i < 2; i++)
        t->streams[i] = (uint64_t)json_integer_value(json_array_get(json_object_get(c, "streams"), i));
    t->places = device_codes(t->words);
    if (!t->operand || !t->out || t->operand->bits > 16 || !t->places || !t->m || !t->n || !t->k || t->k > WAYS_DEPTH ||
        !read_kernel(c, t))
        return 0;
    t->tiles = (t->m + t->high - 1) / t->high * ((t->n + t->wide - 1) / t->wide);
    return 1;
}

static size_t tile_of(const tiled *t, size_t at)
{
    return at / t->n / t->high * ((t->n + t->wide - 1) / t->wide) + at % t->n / t->wide;
}

/* ---- places ---- */

static void draw_element(const tiled *t, size_t at, element *e)
{
    e->fa = e->fb = t->operand;
    e->out = t->out;
    e->k = t->k;
    for (size_t k = 0; k < t->k; k++) {
        e->a[k] = device_number(t->form, -6, 4, t->streams[0], at / t->n * t->k + k);
        e->b[k] = device_number(t->form, -6, 4, t->streams[1], k * t->n + at % t->n);
    }
    ways_encode(e);
}

static int fits(const tiled *t, size_t which, size_t i, const element *e)
{
    return device_encode(t->out, segments_sum(&t->list[which], &t->row, e)) == device_code(t->words, i);
}

/* The places of a tile, in `mine`. */
static size_t places_of(const tiled *t, size_t tile, size_t *mine)
{
    size_t n = 0;
    for (size_t i = 0; i < t->places; i++)
        if (tile_of(t, device_place(t->c, i)) == tile)
            mine[n++] = i;
    return n;
}

/* The first cut that gives all places of a tile, or t->ways. A cut that is out stays so from place to place. */
static size_t cut_of(const tiled *t, size_t tile, size_t *mine)
{
    static element e;
    const size_t n = places_of(t, tile, mine);
    char *out = calloc(t->ways, 1);
    size_t first = 0;
    device_need(out != NULL);
    for (size_t i = 0; i < n && first == 0; i++) { /* whole, most of them */
        draw_element(t, device_place(t->c, mine[i]), &e);
        first = !fits(t, 0, mine[i], &e);
    }
    for (size_t i = 0; i < n && first > 0; i++) {
        draw_element(t, device_place(t->c, mine[i]), &e);
        for (size_t j = 1; j < t->ways; j++)
            out[j] |= !out[j] && !fits(t, j, mine[i], &e);
    }
    while (first > 0 && first < t->ways && out[first])
        first++;
    free(out);
    return first;
}

/* ---- the digest ---- */

static void *room(size_t n, size_t bytes)
{
    void *p = calloc(n, bytes);
    device_need(p != NULL);
    return p;
}

/* Lines of the depth: rows of a, columns of b. */
static unsigned char *draw_lines(const tiled *t, int right, size_t lines)
{
    const size_t bytes = mpsim_format_code_bytes(t->operand);
    unsigned char *codes = room(lines * t->k, bytes);
    for (size_t i = 0; i < lines; i++)
        for (size_t k = 0; k < t->k; k++) {
            const float x = device_number(t->form, -6, 4, t->streams[right], right ? k * t->n + i : i * t->k + k);
            code_store(codes + (i * t->k + k) * bytes, bytes, device_encode(t->operand, x));
        }
    return codes;
}

/* Some products of each of the lines side by side. */
static unsigned char *gather(const tiled *t, const unsigned char *lines, size_t n, const size_t *products, size_t count)
{
    const size_t bytes = mpsim_format_code_bytes(t->operand);
    unsigned char *codes = room(n * count + 1, bytes);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < count; k++)
            memcpy(codes + (i * count + k) * bytes, lines + (i * t->k + products[k]) * bytes, bytes);
    return codes;
}

/* A part's sums of a tile. */
static float *part_of(const tiled *t, const segments *s, size_t part, const size_t from[2], const size_t size[2])
{
    static size_t products[WAYS_DEPTH];
    const mpsim_format *f = &t->row.result.format;
    const size_t bytes = mpsim_format_code_bytes(t->operand), wide = mpsim_format_code_bytes(f);
    const size_t n = segments_of(s, part, t->k, products), all = size[0] * size[1];
    unsigned char *a = gather(t, t->a + from[0] * t->k * bytes, size[0], products, n), *d = room(all, wide);
    unsigned char *b = gather(t, t->b + from[1] * t->k * bytes, size[1], products, n);
    float *sums = room(all, sizeof *sums);
    const mpsim_matrix x = {t->operand, a, n, 0}, y = {t->operand, b, n, 1};
    device_need(mpsim_gemm(&t->row, size[0], size[1], n, &x, &y, NULL, d, size[1], NULL, NULL) == MPSIM_OK);
    for (size_t i = 0; i < all; i++)
        sums[i] = (float)mpsim_decode(f, code_load(d + i * wide, wide));
    free(a);
    free(b);
    free(d);
    return sums;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static uint64_t digest_tile(const tiled *t, size_t tile)
{
    const size_t across = (t->n + t->wide - 1) / t->wide, from[2] = {tile / across * t->high, tile % across * t->wide};
    const size_t size[2] = {least(t->high, t->m - from[0]), least(t->wide, t->n - from[1])};
    const size_t bytes = mpsim_format_code_bytes(t->out);
    const segments *s = &t->list[t->cut[tile]];
    float *parts[SEGMENTS_MOST];
    uint64_t digest = 0;
    for (size_t i = 0; i < s->parts; i++)
        parts[i] = part_of(t, s, i, from, size);
    for (size_t i = 0; i < size[0] * size[1]; i++) {
        float sums[SEGMENTS_MOST];
        unsigned char code[8];
        for (size_t j = 0; j < s->parts; j++)
            sums[j] = parts[j][i];
        code_store(code, bytes, device_encode(t->out, segments_add(s, t->out, sums)));
        digest += mpsim_digest(t->out, code, 1, (from[0] + i / size[1]) * t->n + from[1] + i % size[1]);
    }
    for (size_t i = 0; i < s->parts; i++)
        free(parts[i]);
    return digest;
}

static uint64_t digest_of(tiled *t)
{
    uint64_t digest = 0;
    t->a = draw_lines(t, 0, t->m);
    t->b = draw_lines(t, 1, t->n);
    for (size_t tile = 0; tile < t->tiles; tile++)
        digest += digest_tile(t, tile);
    free(t->a);
    free(t->b);
    return digest;
}

/* ---- the answer ---- */

static int before(const tiled *t, size_t tile)
{
    for (size_t i = 0; i < tile; i++)
        if (t->cut[i] == t->cut[tile])
            return 1;
    return 0;
}

/* "124 whole, 4 cut at 2048 (13-1 13-2 14-0 14-1)": row and column of the tiles that are cut. */
static void name_tiles(const tiled *t, char *text, size_t size)
{
    const size_t across = (t->n + t->wide - 1) / t->wide;
    size_t used = 0;
    for (size_t tile = 0; tile < t->tiles && used < size; tile++) {
        char how[100] = "by no way";
        size_t n = 0;
        if (before(t, tile))
            continue;
        for (size_t i = tile; i < t->tiles; i++)
            n += t->cut[i] == t->cut[tile];
        if (t->cut[tile] < t->ways)
            segments_name(&t->list[t->cut[tile]], how, sizeof how);
        used += (size_t)snprintf(text + used, size - used, "%s%zu %s", used ? ", " : "", n, how);
        for (size_t i = tile; i < t->tiles && t->cut[tile] > 0 && used < size; i++)
            if (t->cut[i] == t->cut[tile])
                used += (size_t)snprintf(text + used, size - used, "%s%zu-%zu", i == tile ? " (" : " ", i / across,
                                         i % across);
        if (t->cut[tile] > 0 && used < size)
            used += (size_t)snprintf(text + used, size - used, ")");
    }
}

/* The default row of the architecture, as products of these operands and this result use it. */
static int find_row(const json_t *head, tiled *t)
{
    const char *arch = ways_architecture(head);
    const int sums = strstr(device_text(t->c, "case"), " sums ") != NULL;
    return arch && mpsim_model_for(&t->row, arch, t->operand, t->operand,
                                   sums ? t->out : mpsim_format_find("binary32")) == MPSIM_OK;
}

static void answer_tiles(tiled *t, char *answer)
{
    char text[DEVICE_ANSWER - 120] = "";
    size_t *mine = room(t->places, sizeof *mine), none = 0;
    t->list = segments_list(t->k, t->unit, &t->ways);
    t->cut = room(t->tiles, sizeof *t->cut);
    for (size_t tile = 0; tile < t->tiles; tile++) {
        t->cut[tile] = cut_of(t, tile, mine);
        none += t->cut[tile] == t->ways;
    }
    name_tiles(t, text, sizeof text);
    const int reads = (double)t->m * (double)t->n * (double)t->k <= device_most_products;
    const int all = none == 0 && (!reads || device_same_digest(t->c, "digest", digest_of(t)));
    device_say(answer, "%s %s in tiles of %zux%zu: %s%s",
               !all    ? "none fits"
               : reads ? "fits"
                       : "sample fits",
               t->row.name, t->high, t->wide, text, none || all ? "" : "; all places do, the digest does not");
    free(mine);
    free(t->list);
    free(t->cut);
}

void device_segments(const json_t *head, const json_t *c, char *answer)
{
    tiled t;
    if (read_case(c, &t) && find_row(head, &t))
        answer_tiles(&t, answer);
    else
        device_products(head, c, answer);
}

/* ---- a device that is played ---- */

void device_play_segments(json_t *c, const char *row, size_t whole, size_t at)
{
    static element e;
    tiled t;
    char digest[17];
    device_need(read_case(c, &t) && mpsim_model_parse(&t.row, row) == MPSIM_OK);
    t.list = segments_list(t.k, t.unit, &t.ways);
    t.cut = room(t.tiles, sizeof *t.cut);
    for (size_t i = whole; i < t.tiles; i++)
        while (t.list[t.cut[i]].parts != 2 || t.list[t.cut[i]].ends[0] != at)
            t.cut[i]++;
    const size_t places = (size_t)json_integer_value(json_array_get(json_object_get(c, "places"), 0));
    char *words = room(places, 5);
    for (size_t i = 0; i < places; i++) {
        const size_t place = device_place(c, i);
        draw_element(&t, place, &e);
        sprintf(words + strlen(words), "%s%04x", i ? " " : "",
                (unsigned)device_encode(t.out, segments_sum(&t.list[t.cut[tile_of(&t, place)]], &t.row, &e)));
    }
    snprintf(digest, sizeof digest, "%016" PRIx64, digest_of(&t));
    json_object_set_new(c, "d", json_string(words));
    json_object_set_new(c, "digest", json_string(digest));
    free(words);
    free(t.list);
    free(t.cut);
}
