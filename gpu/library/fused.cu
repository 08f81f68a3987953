/* fused.cu -- products by fused additions in binary64: which these are, their workspace, launches; see fused.cuh. */
#include "fused_tile.cuh"

#include "call.cuh"
#include "grouped.cuh"

namespace library
{

/* ---- which ---- */

typedef void kernel(GPU_CONSTANT_TYPE(fused_product) f, GPU_CONSTANT_TYPE(product_shape) g,
                    GPU_CONSTANT_TYPE(strided) to, GPU_CONSTANT_TYPE(fused_places) at, float *d);

/* The pairs of lengths and accumulators of the table of models. */
static kernel *kernel_of(const fused_product &f)
{
#define ROW(L, kind, chunked)                            \
    {                                                    \
        L, kind, chunked, fused_kernel<L, kind, chunked> \
    }
    static const struct {
        int length, kind, chunked;
        kernel *run;
    } kernels[] = {ROW(4, FUSED_BINARY32, 0),   ROW(4, FUSED_FP16, 0),      ROW(8, FUSED_BINARY32, 0),
                   ROW(8, FUSED_FP16, 0),       ROW(16, FUSED_BINARY32, 0), ROW(16, FUSED_E8M13, 0),
                   ROW(16, FUSED_FP16, 0),      ROW(32, FUSED_BINARY32, 0), ROW(32, FUSED_E8M13, 0),
                   ROW(32, FUSED_FP16, 0),      ROW(16, FUSED_BINARY32, 1), ROW(16, FUSED_FP16, 1),
                   ROW(16, FUSED_E8M13, 1),     ROW(32, FUSED_BINARY32, 1), ROW(32, FUSED_E8M13, 1),
                   ROW(4, FUSED_STAGED, 0),     ROW(8, FUSED_STAGED, 0),    ROW(16, FUSED_STAGED_TWO, 0),
                   ROW(16, FUSED_STAGED_TWO, 1)};
#undef ROW
    if (f.kind == FUSED_GROUPED)
        return grouped_kernel;
    for (const auto &k : kernels)
        if (k.length == f.length && k.kind == f.kind && k.chunked == (f.per_chunk != 0))
            return k.run;
    return nullptr;
}

/* Additions of CDNA3 end in binary32. */
static int staged_kind_of(const mpsim_model &m)
{
    const int fits = !m.chunk && m.fraction <= 30 && m.kept <= 40 && m.drop == (m.ways == 2) &&
                     is_place(m.accumulator, MPSIM_ROUND_NEAREST_EVEN, 8, 23);
    return !fits ? -1 : m.ways == 1 ? FUSED_STAGED : FUSED_STAGED_TWO;
}

static int fused_kind_of(const mpsim_model &m)
{
    static const struct {
        int mode, ebits, mbits;
    } kinds[FUSED_KINDS] = {
        {MPSIM_ROUND_TOWARD_ZERO, 8, 23}, {MPSIM_ROUND_TOWARD_ZERO, 8, 13}, {MPSIM_ROUND_NEAREST_EVEN, 5, 10}};
    for (int k = 0; k < FUSED_KINDS; k++)
        if (is_place(m.accumulator, kinds[k].mode, kinds[k].ebits, kinds[k].mbits))
            return k;
    return -1;
}

static int grouped_kind_of(const mpsim_model &m)
{
    const int fits = m.length == GROUPED_LENGTH && m.group == GROUPED_GROUP && !m.chunk &&
                     m.alignment == MPSIM_ALIGN_TRUNCATE && is_place(m.accumulator, MPSIM_ROUND_TOWARD_ZERO, 8, 23);
    return fits ? FUSED_GROUPED : -1;
}

static int kind_of(const mpsim_model &m)
{
    if (m.addition == MPSIM_ADDITION_STAGED)
        return staged_kind_of(m);
    if (m.addition == MPSIM_ADDITION_GROUPED)
        return grouped_kind_of(m);
    return m.addition == MPSIM_ADDITION_FUSED && m.alignment != MPSIM_ALIGN_NEAREST && !m.normalised ? fused_kind_of(m)
                                                                                                     : -1;
}

/* Sums of chunks and results: binary32, or fp16 where the accumulator is, to nearest even. */
static int has_results(const mpsim_model &m, int kind)
{
    const int ebits = kind == FUSED_FP16 ? 5 : 8, mbits = kind == FUSED_FP16 ? 10 : 23;
    return is_place(m.result, MPSIM_ROUND_NEAREST_EVEN, ebits, mbits) &&
           (!m.chunk || (is_place(m.outer, MPSIM_ROUND_NEAREST_EVEN, ebits, mbits) && m.chunk % m.length == 0));
}

struct range {
    int least, most;
};

/* Exponents of terms. */
static range range_of(const product_operand &o, const mpsim_model &m, int scaled)
{
    const mpsim_format &f = o.multiplied;
    const int emin = mpsim_emin(&f);
    range r = {m.operand_emin < emin ? m.operand_emin : emin, static_cast<int>(f.max_finite >> f.mbits) - f.bias};
    if (scaled) {
        r.least += mpsim_emin(&o.scales);
        r.most += static_cast<int>(o.scales.max_finite >> o.scales.mbits) - o.scales.bias;
    }
    return r;
}

/* Zeros have exponents below those of all products, also beside the largest number. */
static int are_in_range(const product_arguments &p, int scaled)
{
    const range a = range_of(p.a, p.model, scaled), b = range_of(p.b, p.model, scaled);
    const int most = a.most > b.most ? a.most : b.most;
    return most < 300 && most - 500 < a.least + b.least - 32 && p.a.multiplied.mbits <= 20 &&
           p.b.multiplied.mbits <= 20;
}

static int emax_of(const mpsim_format &f)
{
    return static_cast<int>(f.max_finite >> f.mbits) - f.bias;
}

/* The exponent of an element's last bit times the smallest scale. */
static int last_bit_of(const product_operand &o)
{
    const int scale = o.factors ? mpsim_emin(&o.scales) - o.scales.mbits : 0;
    return scale + mpsim_emin(&o.multiplied) - o.multiplied.mbits;
}

/* Elements of grouped additions are integers of a byte; four terms of 16 products and significands of two scales are aligned to
 * fewer than 50 bits; products are normal numbers of binary64. */
static int are_bytes(const product_arguments &p)
{
    const mpsim_format *const both[2] = {&p.a.multiplied, &p.b.multiplied};
    int bits = p.model.fraction + 4 + 2 + 2 + 2;
    for (const mpsim_format *f : both) {
        if (f->bits > 8 || emax_of(*f) + 1 - mpsim_emin(f) + f->mbits > 7)
            return 0;
        bits += emax_of(*f) + 1;
    }
    return bits <= 51 && last_bit_of(p.a) + last_bit_of(p.b) > -FUSED_BIAS &&
           (!p.a.factors || (p.model.block % GROUPED_GROUP == 0 && p.a.scales.mbits <= 3 && p.b.scales.mbits <= 3));
}

/* Staged sums have no floor, but zeros must be below a unit: the smallest exponent of products. */
static int floor_of(const product_arguments &p, int kind)
{
    const int own = p.model.floor > -900 ? p.model.floor : -900;
    if (kind < FUSED_STAGED || kind == FUSED_GROUPED)
        return FUSED_BIAS + own;
    return FUSED_BIAS + (range_of(p.a, p.model, 0).least + range_of(p.b, p.model, 0).least);
}

static int64_t up_to(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static int deep_of_stage(int length)
{
    return length > 16 ? length : 16;
}

/* Blocks that are summed by themselves and enter the sum with factors. 0: not these. */
static int set_blocks(fused_product *f, const product_arguments &p)
{
    const int64_t block = p.a.block_cols, blocks = block ? up_to(p.shape.depth, block) / block : 0;
    if (p.model.chunk || f->kind == FUSED_FP16 || !blocks || block > 1 << 20 || !has_small_grids(p))
        return 0;
    f->block = static_cast<int>(block);
    f->filled = static_cast<int>(up_to(block, f->length));
    f->blocks = static_cast<int>(blocks);
    f->per_chunk = f->filled / f->length;
    f->end = (blocks - 1) * f->filled + p.shape.depth - (blocks - 1) * block;
    f->deep = up_to(blocks * f->filled, deep_of_stage(f->length));
    f->a = block_factors_of(p.a);
    f->b = block_factors_of(p.b);
    return 1;
}

int fused_of(fused_product *f, const product_arguments &p)
{
    const mpsim_model &m = p.model;
    const int kind = kind_of(m), scaled = p.a.factors && m.block;
    memset(static_cast<void *>(f), 0, sizeof *f);
    if (kind < 0 || !has_results(m, kind) || p.start.codes)
        return 0;
    if (kind == FUSED_GROUPED ? !are_bytes(p) || (p.a.factors && !m.block) : !are_in_range(p, scaled))
        return 0;
    if (kind != FUSED_GROUPED && (m.length != 4 && m.length != 8 && m.length != 16 && m.length != 32))
        return 0;
    if (m.fraction > 40)
        return 0;
    f->kind = static_cast<fused_kind>(kind);
    f->length = m.length;
    f->fraction = m.fraction;
    f->kept = m.kept;
    f->near = m.drop ? m.fraction + 1 : 0x7ff;
    f->floor = floor_of(p, kind);
    f->odd = kind >= FUSED_STAGED || m.alignment == MPSIM_ALIGN_TRUNCATE;
    f->quads = m.order == MPSIM_ORDER_QUADS;
    f->per_chunk = static_cast<int>(m.chunk / m.length);
    f->deep = up_to(m.chunk ? up_to(p.shape.depth, m.chunk) : p.shape.depth, deep_of_stage(m.length));
    f->end = f->quads ? f->deep : p.shape.depth;
    if (p.a.factors && !m.block && !set_blocks(f, p))
        return 0;
    f->rows = up_to(p.shape.rows, FUSED_LINES);
    f->columns = up_to(p.shape.columns, FUSED_LINES);
    if (f->rows / FUSED_LINES * (f->columns / FUSED_LINES) > 0x7fffffff / p.shape.matrices)
        return 0;
    if (!kernel_of(*f))
        return 0;
    unsigned flags = 0;
    const mpsim_rounded &last = m.chunk ? m.outer : m.accumulator;
    const uint64_t sum = mpsim_scalar_encode(&last.format, &last.rounding, last.rounding.mode,
                                             mpsim_number_invalid(&flags), 0, &flags);
    f->invalid = mpsim_scalar_encode(&m.result.format, &m.result.rounding, m.result.rounding.mode,
                                     mpsim_scalar_unpack(&last.format, sum), 0, &flags);
    f->not_a_number = mpsim_f32_bits(kind == FUSED_FP16 ? 0x7fc00000u : static_cast<uint32_t>(f->invalid));
    return 1;
}

/* ---- the workspace ---- */

/* Sums are stored in d as they are. */
static int is_stored(const product_arguments &p)
{
    const product_ending &e = p.end;
    return e.plain && !p.a.inverse && !p.b.inverse && p.a.own_inverse == 1 && p.b.own_inverse == 1 && e.factor == 1 &&
           !e.bias.codes && !e.add.codes && !e.counts;
}

static fused_operand operand_in(room *r, const fused_product &f, int64_t lines, int64_t matrices)
{
    const size_t all = static_cast<size_t>(f.deep * lines * matrices), is_grouped = f.kind == FUSED_GROUPED;
    fused_operand x;
    x.values = r->take<uint32_t>(is_grouped ? all / 4 : all);
    x.exponents = r->take<uint32_t>(is_grouped ? all / GROUPED_GROUP : all / 2);
    x.signs = r->take<uint32_t>(all / static_cast<size_t>(is_grouped ? int(GROUPED_GROUP) : f.length));
    x.special = r->take<unsigned char>(static_cast<size_t>(lines * matrices));
    return x;
}

fused_places fused_in(void *workspace, size_t *bytes, const fused_product &f, const product_arguments &p)
{
    const product_shape &g = p.shape;
    room r(workspace);
    fused_places at;
    at.a = operand_in(&r, f, f.rows, g.matrices);
    at.b = operand_in(&r, f, f.columns, g.matrices);
    at.any = r.take<int>(1);
    at.sums = is_stored(p) ? nullptr : r.take<float>(static_cast<size_t>(g.matrices * g.rows * g.columns));
    *bytes = r.used;
    return at;
}

/* ---- launches ---- */

static unsigned blocks_of(int64_t threads)
{
    const int64_t n = (threads + FUSED_THREADS - 1) / FUSED_THREADS;
    return static_cast<unsigned>(n < 1 ? 1 : n < 1 << 20 ? n : 1 << 20);
}

static void pack(const fused_product &f, const product_arguments &p, int is_b, const unsigned char *entered,
                 const fused_operand &to, int *any, cudaStream_t on)
{
    const product_operand &o = is_b ? p.b : p.a;
    const fused_packing w = {f.length,
                             deep_of_stage(f.length),
                             f.odd,
                             is_b,
                             f.kind < FUSED_STAGED ? int(p.model.operand_emin) : int(MPSIM_MODEL_OWN_EMIN),
                             f.quads,
                             o.factors && p.model.block,
                             f.kind < FUSED_STAGED ? 1000 : 63,
                             f.block,
                             f.filled,
                             f.deep,
                             is_b ? p.shape.columns : p.shape.rows,
                             is_b ? f.columns : f.rows,
                             static_cast<int64_t>(p.model.chunk)};
    if (f.kind == FUSED_GROUPED)
        GPU_LAUNCH_ON(on, grouped_pack_kernel, blocks_of(p.shape.matrices * (f.deep / GROUPED_GROUP) * w.padded),
                      FUSED_THREADS, 0, o, p.shape, w, entered, to, any);
    else
        GPU_LAUNCH_ON(on, fused_pack_kernel, blocks_of(p.shape.matrices * (f.deep / w.deep_of_stage) * w.padded),
                      FUSED_THREADS, 0, o, p.shape, w, entered, to, any);
}

void fused_launch(const fused_product &f, const product_arguments &p, const fused_places &at,
                  const unsigned char *entered_a, const unsigned char *entered_b, cudaStream_t on)
{
    const product_shape &g = p.shape;
    const int64_t lines_a = f.rows * g.matrices, lines_b = f.columns * g.matrices;
    const unsigned tiles = static_cast<unsigned>(f.rows / FUSED_LINES * (f.columns / FUSED_LINES) * g.matrices);
    strided dense = {{0}, g.columns, 1};
    int64_t step = g.rows * g.columns;
    for (int k = g.rank; k-- > 0; step *= g.outer[k])
        dense.outer[k] = step;
    GPU_LAUNCH_ON(on, fused_clear_kernel, blocks_of(lines_a > lines_b ? lines_a : lines_b), FUSED_THREADS, 0,
                  at.a.special, lines_a, at.b.special, lines_b, at.any);
    pack(f, p, 0, entered_a, at.a, at.any, on);
    pack(f, p, 1, entered_b, at.b, at.any, on);
    GPU_LAUNCH_ON(on, kernel_of(f), tiles, FUSED_THREADS, 0, f, g, at.sums ? dense : p.end.at, at,
                  at.sums ? at.sums : reinterpret_cast<float *>(p.end.d));
    if (at.sums)
        GPU_LAUNCH_ON(on, fused_finish_kernel, blocks_of(g.matrices * g.rows * g.columns), FUSED_THREADS, 0, p, f, at);
}

} // namespace library
