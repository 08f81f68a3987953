/* gemm.c -- matrix products: operands are unpacked once into panels, those of b a strip of columns after the other; tiles of
 * the result are independent tasks; see mpsim/dot.h.
 *
 * The caller lends the threads (mpsim_pool): lib starts none. A result depends on its row and its column only. A
 * caller without threads, such as Python, takes those of libmpsim-trace (mpsim/threads.h).
 *
 * What bounds small products (make bench, rows `shape`): the cost of a row or column before and after its products.
 * Lines of at most 64 products are packed a panel at a time, straight from memory if nothing converts them. Memory
 * of at most 16 KiB is on the stack. With `fma`, 2048 rows of 9 products and 16 columns, a row takes 12 ns, of
 * which multiply-adds take 2: 0.17 of a large product's speed. 0.4 would be 5 ns, 15 cycles; multiply-adds take 5,
 * which leaves 10 to read a row, look for NaNs and infinities twice and write 128 KiB of results. A row of a tensor
 * core that adds 16 products at once takes 37 ns, 0.26 of a large product's speed: an addition of 9 products costs
 * as much as one of 16, less 7 multiply-adds. The chains of cut.h do not pay below 24 products (fp8: 8), nor in
 * binary64 below 8 rows. */
#include "../base/codes.h"
#include "../base/environment.h"
#include "../base/isa.h"
#include "../base/matrix.h"
#include "../base/turn.h"
#include "dot.h"
#include "job.h"
#include "scalar.h"
#include "special.h"

#include <stdlib.h>

/* ---- scales ---- */

static int product_fits(size_t *product, size_t a, size_t b)
{
    *product = a * b;
    return b == 0 || a <= SIZE_MAX / b;
}

/* Whether operands can be scaled in panels: values of fused additions in vectors. */
static int takes_scales(const job *g)
{
    mpsim_unpacker a, b;
    mpsim_unpacker_init(&a, g->a->format, 0);
    mpsim_unpacker_init(&b, g->b->format, 0);
    return g->tile.vectors && a.direct && b.direct && a.bytes <= 4 && b.bytes <= 4 && g->m->block % N == 0 &&
           mpsim_format_last_bit(g->a->format) >= -126 && mpsim_format_last_bit(g->b->format) >= -126;
}

/* The exponents of the scales of `lines` lines, `blocks` each. */
static void unpack_scales(int16_t *e, const mpsim_scales *x, size_t lines, size_t blocks)
{
    const mpsim_format *f = x->format;
    const size_t bytes = mpsim_format_code_bytes(f);
    for (size_t i = 0; i < lines; i++)
        for (size_t q = 0; q < blocks; q++) {
            const uint64_t code = mpsim_code_load(x->codes, bytes, i * x->stride + q) & mpsim_magnitude_mask(f);
            const mpsim_term t = mpsim_scalar_term(f, MPSIM_MODEL_OWN_EMIN, code);
            e[i * blocks + q] = (int16_t)(t.kind != MPSIM_NUMBER_FINITE || t.s == 0 ? MPSIM_SCALE_NAN : t.e);
        }
}

static mpsim_status new_scales(job *g)
{
    const size_t block = g->m->block, blocks = block && g->depth ? (g->depth - 1) / block + 1 : 0;
    size_t n;
    if (!g->scales_a || !blocks || g->run != mpsim_fused_rows)
        return MPSIM_OK;
    if (g->rows > SIZE_MAX / 2 - g->columns || !product_fits(&n, g->rows + g->columns, blocks) ||
        n > SIZE_MAX / sizeof(int16_t))
        return MPSIM_ENOMEM;
    g->scales = (int16_t *)malloc(n * sizeof(int16_t));
    if (!g->scales)
        return MPSIM_ENOMEM;
    unpack_scales(g->scales, g->scales_a, g->rows, blocks);
    unpack_scales(g->scales + g->rows * blocks, g->scales_b, g->columns, blocks);
    g->lines_a.scales = g->scales;
    g->lines_b.scales = g->scales + g->rows * blocks;
    g->lines_a.block = g->lines_b.block = block;
    g->lines_a.blocks = g->lines_b.blocks = blocks;
    return MPSIM_OK;
}

/* ---- panels ---- */

/* Rows first to first + n - 1 of a. */
static void turn_rows(const job *g, size_t first, size_t n)
{
    const mpsim_source *a = g->a;
    const size_t bytes = g->lines_a.bytes, apart = g->lines_a.line;
    mpsim_turn_codes((unsigned char *)g->turned + first * apart * bytes, (int64_t)apart, a->codes, bytes,
                     (int64_t)first, (int64_t)a->line, (int64_t)a->next, n, g->depth);
}

static void pack(size_t i, void *context)
{
    const job *g = (const job *)context;
    const size_t of_a = (g->rows - 1) / N + 1;
    const int groups = g->run == mpsim_scaledgroups_rows;
    if (i < of_a) {
        if (g->turned)
            turn_rows(g, i * N, g->rows - i * N < N ? g->rows - i * N : N);
        mpsim_panel_pack(&g->lines_a, &g->panels_a, i);
        for (size_t r = i * N; groups && r < g->rows && r < i * N + N; r++)
            mpsim_scaledgroups_pack_row(g, r);
    } else {
        mpsim_panel_pack(&g->lines_b, &g->panels_b, i - of_a);
        if (groups)
            mpsim_scaledgroups_pack_panel(g, i - of_a);
    }
}

/* Whether they lie so that rows need not be copied. */
static int lie_in_rows(const job *g)
{
    return g->lines_a.look && g->lines_a.next == 1 && (uintptr_t)g->lines_a.codes % g->real == 0;
}

/* MPSIM_CUT_... */
static int cut_of(const job *g)
{
    return g->run == mpsim_fused_rows ? g->tile.cut : MPSIM_CUT_NONE;
}

enum { ALIGNED = 64 /* so that no vector of a panel lies in two lines of a cache */ };

/* Memory of a job, part after part: first it is counted, without any. */
typedef struct workspace {
    unsigned char *memory; /* NULL: none yet */
    size_t used;
    int is_too_large;
} workspace;

/* n elements; NULL if there are none or is no memory. */
static void *take(workspace *w, size_t n, size_t size)
{
    const size_t at = w->used;
    if (n > SIZE_MAX / 4 / size || at > SIZE_MAX / 4)
        w->is_too_large = 1;
    else
        w->used += (n * size + ALIGNED - 1) / ALIGNED * ALIGNED;
    return w->memory && n ? w->memory + at : NULL;
}

/* Whether rows of a lie side by side. */
static int is_turned(const job *g)
{
    return g->depth > 1 && g->a->line == 1 && g->a->next != 1 && g->rows > 1;
}

static void lay_out(const job *g, workspace *w, mpsim_panels *p, size_t lines)
{
    const int fused = g->run == mpsim_fused_rows, exact = g->run == mpsim_exact_rows, cut = cut_of(g);
    const int narrow = cut == MPSIM_CUT_NARROW;
    const int is_copied = p != &g->panels_a || !lie_in_rows(g);
    const size_t ranges = exact || cut == MPSIM_CUT_WIDE ? lines : 0;
    size_t n;
    w->is_too_large |= !product_fits(&n, lines, g->padded);
    p->values = take(w, is_copied ? n + 1 : 0, g->real);
    p->exponents = (int16_t *)take(w, fused && !narrow ? n + 1 : 0, sizeof(int16_t));
    p->bytes = (uint8_t *)take(w, narrow ? n + 1 : 0, 1);
    p->signs = (uint32_t *)take(w, cut ? lines * p->words + 1 : 0, sizeof(uint32_t));
    p->low = (int16_t *)take(w, ranges, sizeof(int16_t));
    p->high = (int16_t *)take(w, ranges, sizeof(int16_t));
    p->special = (unsigned char *)take(w, lines, 1);
}

static void lay_out_job(job *g, workspace *w)
{
    size_t n;
    g->failed = (unsigned char *)take(w, g->tasks, 1);
    if (!g->run)
        return;
    if (is_turned(g)) {
        w->is_too_large |= !product_fits(&n, g->rows, g->lines_a.line);
        g->lines_a.codes = g->turned = take(w, n, g->lines_a.bytes);
    }
    lay_out(g, w, &g->panels_a, g->rows);
    lay_out(g, w, &g->panels_b, g->panels * N);
    g->rows_a = g->panels_a.values ? g->panels_a.values : g->lines_a.codes;
    g->next_a = g->panels_a.values ? g->padded : g->lines_a.line;
}

/* Memory for the job: `here`, if that is enough, or what is to be freed. */
static mpsim_status allocate(job *g, unsigned char *here, size_t size)
{
    workspace w = {NULL, 0, 0};
    lay_out_job(g, &w);
    if (w.is_too_large)
        return MPSIM_ENOMEM;
    if (w.used > size)
        g->memory = here = (unsigned char *)aligned_alloc(ALIGNED, w.used);
    if (!here)
        return MPSIM_ENOMEM;
    w = (workspace){here, 0, 0};
    lay_out_job(g, &w);
    return MPSIM_OK;
}

/* What the codes of an operand in memory are. */
static const mpsim_format *lying(const mpsim_source *x)
{
    return x->entry ? x->entry->from : x->format;
}

static int has_doubles(const job *g)
{
    return g->run == mpsim_lanes_rows && g->lanes.kind == MPSIM_LANES_DOUBLE;
}

/* Whether results are words: see job.h. */
static int has_words(const job *g)
{
    return g->native_result && (g->run == mpsim_chain_rows || (g->run == mpsim_fused_rows && g->tile.vectors) ||
                                (g->run == mpsim_group_rows && g->group.kind == MPSIM_GROUP_ODD) ||
                                (g->run == mpsim_lanes_rows && !has_doubles(g)));
}

/* Whether codes of an operand are values of chains as they are. */
static int are_values(const job *g, const mpsim_source *x)
{
    const mpsim_format *f = x->format;
    return !x->entry && f->inf && f->zero == MPSIM_ZERO_SIGNED && f->nan == MPSIM_NAN_TOP &&
           ((g->run == mpsim_chain_rows && f->bits == 32 && f->mbits == 23 && f->bias == 127) ||
            (has_doubles(g) && f->bits == 64 && f->mbits == 52 && f->bias == 1023));
}

/* Whether binary64 values are read as those of binary32 first, in vectors. */
static int can_widen(const job *g, const mpsim_source *x)
{
    mpsim_unpacker u;
    mpsim_unpacker_init(&u, x->format, 0);
    return g->real == sizeof(double) && g->run != mpsim_fused_rows && mpsim_in_binary32(x->format) &&
           (x->entry || (u.direct && u.bytes <= 4));
}

static mpsim_lines lines_of(const job *g, const mpsim_source *x, int wide, size_t count)
{
    mpsim_lines l = {.decode = g->loops->decode,
                     .entry = x->entry,
                     .numbers = x->format,
                     .bytes = mpsim_format_code_bytes(lying(x)),
                     .codes = x->codes,
                     .count = count,
                     .depth = g->depth,
                     .line = x->line,
                     .next = x->next};
    if (can_widen(g, x))
        l.widen = g->loops->widen;
    /* both, since panels have zeros where codes are decoded, and only if a NaN need not be compared with an overflow */
    if (are_values(g, g->a) && are_values(g, g->b) && mpsim_specials_raw(g))
        l.look = wide ? g->loops->look_f64 : g->loops->look_f32;
    mpsim_unpacker_init(&l.u, x->entry ? mpsim_format_find("binary32") : x->format, wide && !l.widen);
    return l;
}

/* Everything about the operands that the fast paths need. */
static void describe_panels(job *g)
{
    const mpsim_source *a = g->a, *b = g->b;
    const int wide = g->run == mpsim_exact_rows || (g->run == mpsim_group_rows && g->group.kind != MPSIM_GROUP_ODD) ||
                     (g->run == mpsim_fused_rows && g->tile.wide) ||
                     (g->run == mpsim_rounded_rows && g->rounded.lanes != MPSIM_LANES_F32) || has_doubles(g);
    const size_t quads = g->m->order == MPSIM_ORDER_QUADS ? g->m->chunk : 0;
    const int cut = cut_of(g);
    g->real = wide || cut == MPSIM_CUT_WIDE ? sizeof(double) : sizeof(float);
    g->native_result = mpsim_is_native(&g->m->result);
    g->native_outer = mpsim_is_native(&g->m->outer);
    g->words = has_words(g);
    const int pairs = g->run == mpsim_fused_rows && g->tile.vectors && !g->tile.cut;
    const size_t whole = cut == MPSIM_CUT_NARROW ? 4 : cut || pairs ? 2 : 1;
    g->padded = (g->depth + whole - 1) / whole * whole;
    const size_t fill = quads ? quads : g->run == mpsim_scaledgroups_rows ? g->m->group : 1;
    if (g->depth % fill != 0)
        g->padded = g->depth + fill - g->depth % fill;
    g->lines_a = lines_of(g, a, wide, g->rows);
    g->lines_b = lines_of(g, b, wide, g->columns);
    if (is_turned(g)) {
        const size_t gap = g->depth < 16 * ALIGNED ? 0 : ALIGNED; /* of lines that would meet in one set of a cache */
        g->lines_a.line = g->depth + gap / g->lines_a.bytes;
        g->lines_a.next = 1;
    }
    g->raw = g->lines_a.look != NULL;
    g->lines_a.flush = g->lines_b.flush = g->run == mpsim_lanes_rows && g->m->traits != 0;
    mpsim_unpacker_init(&g->addends, &g->m->result.format, 1);
    mpsim_packer_init(&g->result, &g->m->result);
    mpsim_packer_init(&g->outer, &g->m->outer);
    g->panels_a = (mpsim_panels){.padded = g->padded, .quads = quads, .lowest = mpsim_tile_lowest(g->m, a->format)};
    g->panels_b = (mpsim_panels){.padded = g->padded,
                                 .quads = quads,
                                 .k_major = 1,
                                 .pairs = pairs,
                                 .lowest = mpsim_tile_lowest(g->m, b->format)};
    if (cut) {
        g->tile.counts = mpsim_isa_counts_bits();
        g->tile.tame = mpsim_cut_is_tame(a->format, b->format, g->depth);
        g->panels_a.length = g->panels_b.length = g->m->length;
        g->panels_a.words = g->panels_b.words = g->padded ? (g->padded - 1) / g->m->length + 1 : 0;
        if (cut == MPSIM_CUT_NARROW) {
            g->lines_a.mark = g->loops->mark_row;
            g->lines_b.mark = g->loops->mark_columns;
        } else {
            g->lines_a.prepare = g->loops->wide_row;
            g->lines_b.prepare = g->loops->wide_columns;
        }
    }
}

/* Memory, and scales in it. */
static mpsim_status begin(job *g, unsigned char *here, size_t size)
{
    if (g->run)
        describe_panels(g);
    const mpsim_status s = allocate(g, here, size);
    if (s != MPSIM_OK || !g->run)
        return s;
    return g->run != mpsim_scaledgroups_rows || mpsim_scaledgroups_allocate(g) ? new_scales(g) : MPSIM_ENOMEM;
}

static void end(job *g)
{
    if (g->run)
        mpsim_scaledgroups_free(g);
    free(g->scales);
    free(g->memory);
}

/* ---- elements ---- */

/* Where results go: row i, column j. */
typedef struct place {
    void *codes;
    size_t stride, row, column; /* those of the first code */
} place;

static size_t index_at(const place *to, size_t i, size_t j)
{
    return (i - to->row) * to->stride + (j - to->column);
}

static mpsim_number addend(const job *g, size_t i, size_t j)
{
    const mpsim_format *f = &g->m->result.format;
    if (!g->c)
        return mpsim_number_make(0, 0, 0);
    return mpsim_scalar_unpack(f, mpsim_code_load(g->c->codes, mpsim_format_code_bytes(f), mpsim_index_in(g->c, i, j)));
}

/* The scales of line i. */
static mpsim_vector scales_of(const mpsim_scales *x, size_t i)
{
    static const mpsim_vector none = {NULL, NULL, 0, 0, 1};
    if (!x)
        return none;
    const mpsim_vector v = {x->format, x->codes, mpsim_format_code_bytes(x->format), i * x->stride, 1};
    return v;
}

/* Line i as codes of the format that is multiplied, in `memory`, which holds them, unless they lie so. */
static mpsim_vector line_of(const job *g, const mpsim_source *x, size_t i, void *memory)
{
    const size_t bytes = mpsim_format_code_bytes(lying(x));
    unsigned char code[8];
    mpsim_vector v = {x->format, x->codes, bytes, i * x->line, x->next};
    if (!x->entry)
        return v;
    v = (mpsim_vector){x->format, memory, mpsim_format_code_bytes(x->format), 0, 1};
    for (size_t k = 0; k < g->depth; k++) {
        float value;
        mpsim_code_store(code, bytes, 0, mpsim_code_load(x->codes, bytes, i * x->line + k * x->next));
        mpsim_decode_array_f32(x->entry->from, &value, code, 1);
        mpsim_encode_array_f32(x->format, &x->entry->rounding, NULL, (char *)memory + k * v.bytes, &value, 1, NULL);
    }
    return v;
}

static mpsim_status element(const job *g, const place *to, size_t i, size_t j)
{
    unsigned char *lines = NULL;
    if (g->a->entry || g->b->entry) {
        lines = (unsigned char *)malloc(16 * g->depth + 1);
        if (!lines)
            return MPSIM_ENOMEM;
    }
    const mpsim_vectors v = {line_of(g, g->a, i, lines), line_of(g, g->b, j, lines ? lines + 8 * g->depth : NULL),
                             scales_of(g->scales_a, i), scales_of(g->scales_b, j)};
    const uint64_t base = g->rng ? g->rng->index + ((uint64_t)(i * g->columns + j) << 32) : 0;
    uint64_t d;
    const mpsim_status s = mpsim_dot_reference(g->m, &v, g->depth, addend(g, i, j), g->rng, base, &d);
    if (s == MPSIM_OK)
        mpsim_code_store(to->codes, mpsim_format_code_bytes(&g->m->result.format), index_at(to, i, j), d);
    free(lines);
    return s;
}

/* ---- tiles ---- */

static uint64_t code_in(const job *g, const results *from, size_t r, size_t j)
{
    return g->words ? mpsim_bits_f32(from->words[r][j]) : from->codes[r][j];
}

/* n codes, row r of the results, of row i from column j on. */
static void store(const job *g, const place *to, size_t i, size_t j, const results *from, size_t r, size_t n)
{
    const size_t bytes = g->result_bytes, at = index_at(to, i, j);
    unsigned char *d = (unsigned char *)to->codes + bytes * at;
    if (g->words && n == N) { /* a size that the compiler knows */
        memcpy(d, from->words[r], sizeof from->words[r]);
    } else if (g->words) {
        memcpy(d, from->words[r], n * sizeof from->words[r][0]);
    } else if (bytes == 8) {
        memcpy(d, from->codes[r], bytes * n);
    } else if (bytes == 4) {
        uint32_t u[N];
        for (size_t l = 0; l < N; l++)
            u[l] = (uint32_t)from->codes[r][l];
        memcpy(d, u, 4 * n);
    } else {
        for (size_t l = 0; l < n; l++)
            mpsim_code_store(to->codes, bytes, at + l, from->codes[r][l]);
    }
}

/* n rows of a panel, in `from` from number `at` on, of which results are done but for the columns in `redo`. */
static mpsim_status rows_of_panel(const job *g, const place *to, size_t first, size_t n, size_t panel,
                                  const results *from, size_t at, const unsigned *redo)
{
    const size_t columns = mpsim_panel_columns(g, panel), j0 = panel * N;
    for (size_t r = 0; r < n; r++) {
        const size_t i = first + r;
        const unsigned left = redo[r] & ((2u << (columns - 1)) - 1);
        if (!left) {
            store(g, to, i, j0, from, at + r, columns);
            continue;
        }
        for (size_t j = 0; j < columns; j++) {
            const mpsim_status s = left >> j & 1 ? element(g, to, i, j0 + j) : MPSIM_OK;
            if (s != MPSIM_OK)
                return s;
            if (!(left >> j & 1))
                mpsim_code_store(to->codes, g->result_bytes, index_at(to, i, j0 + j), code_in(g, from, at + r, j));
        }
    }
    return MPSIM_OK;
}

enum { BLOCK_ROWS = 32 };

/* Where the panels of a task go: to d, or each to a tile of its own. */
static place place_in(const job *g, uint64_t (*tiles)[BLOCK_ROWS * N], size_t first, size_t panel, size_t p)
{
    return g->taker ? (place){tiles[p], N, first, (panel + p) * N} : (place){g->d, g->d_stride, 0, 0};
}

/* Rows first to first + n - 1 of panels. All their addends are read before the first result is
 * stored, or by the reference just before its own is. */
static mpsim_status rows_of_tile(const job *g, const place *to, size_t first, size_t n, size_t panel, size_t panels)
{
    results from;
    unsigned redo[ABREAST * ROWS];
    mpsim_status s = MPSIM_OK;
    memset(redo, 0xff, sizeof redo);
    if (g->run) {
        memset(redo, 0, sizeof redo);
        if (!mpsim_specials_decided(g, first, n, &from, panels))
            g->run(g, first, n, panel, &from, redo);
        for (size_t at = 0; at < panels * ROWS; at += at % ROWS + 1 < n ? 1 : ROWS - at % ROWS)
            if (from.special[at] | redo[at])
                mpsim_specials_settle(g, first + at % ROWS, panel + at / ROWS, &from, at, &redo[at]);
    }
    for (size_t p = 0; p < panels && s == MPSIM_OK; p++)
        s = rows_of_panel(g, &to[p], first, n, panel + p, &from, p * ROWS, redo + p * ROWS);
    return s;
}

static void compute(size_t task, void *context)
{
    const job *g = (const job *)context;
    const size_t panel = task / g->blocks * g->abreast, panels = mpsim_panels_abreast(g, panel);
    const size_t first = task % g->blocks * g->block_rows;
    const size_t end = g->rows - first < g->block_rows ? g->rows : first + g->block_rows;
    uint64_t tiles[ABREAST][BLOCK_ROWS * N];
    place to[ABREAST];
    for (size_t p = 0; p < panels; p++)
        to[p] = place_in(g, tiles, first, panel, p);
    const mpsim_environment before = mpsim_environment_default();
    for (size_t i = first; i < end; i += ROWS)
        if (rows_of_tile(g, to, i, end - i < ROWS ? end - i : ROWS, panel, panels) != MPSIM_OK)
            g->failed[task] = 1;
    for (size_t p = 0; g->taker && !g->failed[task] && p < panels; p++)
        g->taker->take(g->taker->self, first, end - first, g->first_column + (panel + p) * N,
                       mpsim_panel_columns(g, panel + p), tiles[p]);
    mpsim_environment_restore(before);
}

/* ---- the whole ---- */

static void run_here(void *self, size_t n, void (*task)(size_t i, void *job), void *context)
{
    (void)self;
    for (size_t i = 0; i < n; i++)
        task(i, context);
}

static size_t one_thread(void *self)
{
    (void)self;
    return 1;
}

/* The chains of cut.h are not worth what they need before them for fewer products than FEW, or lines shorter than SHORT; those
 * in binary64 for fewer rows than they do at once. */
enum { FEW = 2000, SHORT = 8 };

static int machine_cuts(const job *g)
{
    const mpsim_environment before = mpsim_environment_toward_zero();
    const int does = g->loops->cuts() && g->loops->wide_cuts();
    mpsim_environment_restore(before);
    return does;
}

/* The fast path for this product, or NULL. */
static path *choose(job *g)
{
    const mpsim_model *m = g->m;
    const mpsim_format *fa = g->a->format, *fb = g->b->format;
    if (mpsim_is_stochastic(m->outer.rounding.mode) || mpsim_is_stochastic(m->result.rounding.mode))
        return NULL;
    if (mpsim_lanes_init(&g->lanes, m, fa, fb))
        return mpsim_lanes_rows;
    if (mpsim_scaledgroups_init(&g->scaledgroups, m, fa, fb, g->scales_a ? g->scales_a->format : NULL,
                                g->scales_b ? g->scales_b->format : NULL))
        return mpsim_scaledgroups_rows;
    if (m->length && m->order != MPSIM_ORDER_LANES && m->addition < MPSIM_ADDITION_FUSED)
        return NULL;
    if (mpsim_tile_init(&g->tile, m, fa, fb)) {
        const int wide = g->tile.cut == MPSIM_CUT_WIDE;
        if (g->tile.ways)
            return machine_cuts(g) ? mpsim_fused_rows : NULL;
        if (g->scales_a || g->depth < (wide ? g->loops->wide_from : SHORT) || (wide && g->rows < ROWS) ||
            (double)g->rows * (double)g->columns * (double)g->depth < FEW || !machine_cuts(g))
            g->tile.cut = MPSIM_CUT_NONE;
        return !g->scales_a || takes_scales(g) ? mpsim_fused_rows : NULL;
    }
    if (mpsim_chain_init(&g->chain, m, fa, fb))
        return mpsim_chain_rows;
    if (mpsim_rounded_init(&g->rounded, m, fa, fb))
        return mpsim_rounded_rows;
    if (mpsim_group_init(&g->group, m, fa, fb))
        return mpsim_group_rows;
    return mpsim_exact_init(&g->exact, m, fa, fb, g->depth) ? mpsim_exact_rows : NULL;
}

/* ---- strips ---- */

/* Columns whose panels are there at once, so that they are in a cache when rows meet them: some 0.5 MiB for one thread;
 * for several 4 MiB, for them to have enough tasks. */
static size_t strip_of(const job *g, int is_alone)
{
    const size_t elements = (size_t)1 << (is_alone ? 17 : 20), least = is_alone ? 64 : 256;
    const size_t fits = elements / (g->depth ? g->depth : 1) / N * N, width = fits > least ? fits : least;
    const int whole = !g->run || g->run == mpsim_scaledgroups_rows || g->scales_a || g->rng; /* by columns' numbers */
    return whole || g->columns < 2 * width ? g->columns : width;
}

static mpsim_source lines_from(const mpsim_source *x, size_t j)
{
    mpsim_source part = *x;
    if (x->codes)
        part.codes = (const unsigned char *)x->codes + j * x->line * mpsim_format_code_bytes(lying(x));
    return part;
}

static mpsim_matrix from_column(const mpsim_matrix *x, size_t j)
{
    mpsim_matrix part = *x;
    if (x->codes)
        part.codes = (const unsigned char *)x->codes + mpsim_index_in(x, 0, j) * mpsim_format_code_bytes(x->format);
    return part;
}

static void pack_columns(size_t panel, void *context)
{
    const job *g = (const job *)context;
    pack((g->rows - 1) / N + 1 + panel, context);
}

/* Columns `first` to first + n - 1 of the job. */
static mpsim_status strip(const job *whole, const mpsim_pool *pool, size_t first, size_t n)
{
    job g = *whole;
    const size_t of_a = (g.rows - 1) / N + 1;
    const mpsim_source b = lines_from(g.b, first);
    const mpsim_matrix c = g.c ? from_column(g.c, first) : (mpsim_matrix){0};
    mpsim_status s = MPSIM_OK;
    g.b = &b;
    g.c = g.c ? &c : NULL;
    if (g.d)
        g.d = (unsigned char *)g.d + first * mpsim_format_code_bytes(&g.m->result.format);
    g.first_column = first;
    g.columns = g.lines_b.count = n;
    g.lines_b.codes = b.codes;
    g.panels = (n - 1) / N + 1;
    if (g.run && first == 0)
        pool->run(pool->self, of_a + g.panels, pack, &g);
    else if (g.run)
        pool->run(pool->self, g.panels, pack_columns, &g);
    if (g.run && !mpsim_specials_find(&g, pool, first == 0))
        return MPSIM_ENOMEM;
    const size_t tasks = ((g.panels - 1) / g.abreast + 1) * g.blocks;
    memset(g.failed, 0, tasks);
    pool->run(pool->self, tasks, compute, &g);
    for (size_t i = 0; i < tasks; i++)
        if (g.failed[i])
            s = MPSIM_ENOMEM;
    return s;
}

/* Bytes of memory that need not be asked for. */
enum { SMALL = 1 << 14 };

static mpsim_status in_strips(job *g, const mpsim_pool *pool)
{
    const size_t width = strip_of(g, pool->threads && pool->threads(pool->self) == 1);
    _Alignas(ALIGNED) unsigned char here[SMALL];
    g->block_rows = g->run ? BLOCK_ROWS : 1; /* the reference takes its time for a row */
    g->blocks = (g->rows - 1) / g->block_rows + 1;
    g->panels = (width - 1) / N + 1;
    g->abreast = g->run == mpsim_chain_rows ? 2 : g->run == mpsim_exact_rows || has_doubles(g) ? ABREAST : 1;
    if (!product_fits(&g->tasks, g->panels, g->blocks))
        return MPSIM_ENOMEM;
    mpsim_specials specials = {0};
    g->specials = &specials;
    if (g->run)
        mpsim_specials_init(&specials, g);
    mpsim_status s = begin(g, here, sizeof here);
    for (size_t j = 0; j < g->columns && s == MPSIM_OK; j += width)
        s = strip(g, pool, j, g->columns - j < width ? g->columns - j : width);
    end(g);
    mpsim_specials_free(&specials);
    return s;
}

mpsim_status mpsim_job_run(const job *what, const mpsim_pool *pool)
{
    static const mpsim_pool here = {run_here, NULL, one_thread};
    job g = *what;
    if (g.rows == 0 || g.columns == 0)
        return MPSIM_OK;
    g.loops = mpsim_loops_active();
    g.run = choose(&g);
    g.result_bytes = mpsim_format_code_bytes(&g.m->result.format);
    return in_strips(&g, pool ? pool : &here);
}
