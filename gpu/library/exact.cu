/* exact.cu -- products by exact sums: which these are, launches; see exact.cuh. */
#include "exact.cuh"

#include "call.cuh"

namespace library
{

typedef void exact_function(GPU_CONSTANT_TYPE(product_arguments) p, GPU_CONSTANT_TYPE(exact_product) f,
                            const unsigned char *entered_a, const unsigned char *entered_b, unsigned char *left);

static exact_function *exact_tile_kernel_of(const exact_product &f)
{
    return f.chunk         ? exact_tile_kernel<0, 1>
           : f.length == 4 ? exact_tile_kernel<4, 0>
           : f.length == 2 ? exact_tile_kernel<2, 0>
                           : exact_tile_kernel<0, 0>;
}

static int is_binary32_place(const mpsim_rounded &p)
{
    return is_place(p, MPSIM_ROUND_NEAREST_EVEN, 8, 23);
}

/* Where the sign of a zero is that of the reference: a sum from +0, or one whose zeros are +0. */
static int has_zeros(const product_arguments &p)
{
    return !p.start.codes || (p.model.length && !p.model.traits);
}

int exact_of(exact_product *f, const product_arguments &p)
{
    const mpsim_model &m = p.model;
    const unsigned known = MPSIM_TRAIT_FLUSH_OPERANDS | MPSIM_TRAIT_FLUSH_SUMS | MPSIM_TRAIT_FILLED |
                           MPSIM_TRAIT_OVERFLOW | MPSIM_TRAIT_NAN_MINUS | MPSIM_TRAIT_PLUS_ZERO;
    memset(static_cast<void *>(f), 0, sizeof *f);
    if (m.addition != MPSIM_ADDITION_EXACT || (m.traits & ~known) || !has_zeros(p) || p.a.factors ||
        m.chunk > 0x7fffffff || (m.length != 0 && m.length != 2 && m.length != 4) || (m.length && m.chunk))
        return 0;
    if (!is_binary32_place(m.result) || ((m.length || m.chunk) && !is_binary32_place(m.accumulator)) ||
        (m.chunk && !is_binary32_place(m.outer)))
        return 0;
    f->length = m.length;
    f->chunk = static_cast<int>(m.chunk);
    f->flush_in = (m.traits & MPSIM_TRAIT_FLUSH_OPERANDS) != 0;
    f->flush_out = (m.traits & MPSIM_TRAIT_FLUSH_SUMS) != 0;
    return set_tiles(&f->tiles, p);
}

void exact_launch(const exact_product &f, const product_arguments &p, const unsigned char *entered_a,
                  const unsigned char *entered_b, unsigned char *left, cudaStream_t on)
{
    GPU_LAUNCH_ON(on, exact_tile_kernel_of(f), blocks_of_tiles(f.tiles, p), TILE_THREADS, 0, p, f, entered_a, entered_b,
                  left);
}

} // namespace library
