/* t-variants.cc -- gpu/checks/variants.cu without a device: where operands are packed, what descriptors say, and the
 * kernels themselves, whose instructions tests/gpu/host_wgmma.h plays. */
#include "tap.h"

#include "../../gpu/kernels/cuda.cuh"
#include "host_wgmma.h"

#include "../../gpu/checks/variants.cu"
#include "support/extent.h"

/* What CUTLASS's CuTe says (tile_to_shape of Layout_*_Atom, make_gmma_desc), compiled for a CPU: the descriptor of the
 * first instruction at address 0, and the byte at which an element lies. */
static const struct {
    gpu_packing packing;
    uint64_t descriptor;
    struct {
        int line, k;
        uint32_t at;
    } place[3];
} facts[] = {
    {{0, 0, 2, 64, 256}, 0x0000000800400000, {{5, 3, 86}, {37, 131, 16982}, {63, 255, 32766}}},
    {{32, 0, 2, 64, 256}, 0xc000001000010000, {{5, 3, 182}, {37, 131, 17590}, {63, 255, 32750}}},
    {{64, 0, 2, 64, 256}, 0x8000002000010000, {{5, 3, 358}, {37, 131, 18790}, {63, 255, 32718}}},
    {{128, 0, 2, 64, 256}, 0x4000004000010000, {{5, 3, 726}, {37, 131, 21206}, {63, 255, 32654}}},
    {{0, 0, 4, 64, 32}, 0x0000000800400000, {{5, 3, 92}, {37, 19, 4700}, {63, 31, 8188}}},
    {{32, 0, 4, 64, 32}, 0xc000001000010000, {{5, 3, 188}, {37, 19, 5308}, {63, 31, 8172}}},
    {{64, 0, 4, 64, 32}, 0x8000002000010000, {{5, 3, 364}, {37, 19, 6508}, {63, 31, 8140}}},
    {{128, 0, 4, 64, 32}, 0x4000004000010000, {{5, 3, 732}, {37, 19, 4764}, {63, 31, 8076}}},
    {{0, 0, 1, 256, 128}, 0x0000000801000000, {{5, 3, 83}, {133, 67, 18515}, {255, 127, 32767}}},
    {{32, 0, 1, 256, 128}, 0xc000001000010000, {{5, 3, 179}, {133, 67, 20659}, {255, 127, 32751}}},
    {{64, 0, 1, 256, 128}, 0x8000002000010000, {{5, 3, 355}, {133, 67, 24931}, {255, 127, 32719}}},
    {{128, 0, 1, 256, 128}, 0x4000004000010000, {{5, 3, 723}, {133, 67, 17043}, {255, 127, 32655}}},
    {{0, 1, 2, 256, 64}, 0x0000004000080000, {{5, 3, 58}, {133, 35, 16954}, {255, 63, 32766}}},
    {{32, 1, 2, 256, 64}, 0xc000001000800000, {{5, 3, 106}, {133, 35, 17514}, {255, 63, 32750}}},
    {{64, 1, 2, 256, 64}, 0x8000002001000000, {{5, 3, 218}, {133, 35, 18650}, {255, 63, 32718}}},
    {{128, 1, 2, 256, 64}, 0x4000004002000000, {{5, 3, 442}, {133, 35, 20922}, {255, 63, 32654}}},
};

static int is_as_in_cute()
{
    int wrong = 0;
    for (const auto &f : facts) {
        wrong += gpu_descriptor(&f.packing, 0, 0) != f.descriptor;
        for (const auto &p : f.place)
            wrong += gpu_place(&f.packing, p.line, p.k) != p.at;
    }
    return wrong == 0;
}

/* Elements of an operand that its descriptors find elsewhere: a descriptor for each instruction of the chain. `change`
 * is added to each. */
static int lost(const gpu_packing &p, uint64_t change)
{
    const int each = 32 / p.bytes;
    int n = 0;
    for (int k = 0; k < p.depth; k++) {
        const uint64_t d = gpu_descriptor(&p, 4096, 0) + (gpu_place(&p, 0, k / each * each) >> 4) + change;
        for (int line = 0; line < p.lines; line++)
            n += gpu_host_address(d, p.mn, p.bytes, line, k % each) != 4096 + gpu_place(&p, line, k);
    }
    return n;
}

/* Whether no instruction needs the leading offset: one piece has all lines, or K-major all of its depth. */
static int has_no_leading(const gpu_packing &p)
{
    return p.swizzle && (!p.mn || p.lines * p.bytes <= p.swizzle);
}

/* All packings that variants have, and descriptors of which a field is wrong. */
static void test_packings()
{
    gpu_check c;
    int found = 0, whole = 1, unseen = 0, expected = 0;
    for (size_t i = 0; gpu_variant_check(&c, i, 90, GPU_RUN_TINY) == 1; i++)
        for (int is_b = 0; is_b < 2; is_b++) {
            const gpu_packing p = gpu_packing_of(&c.dots, is_b);
            found++;
            whole = whole && lost(p, 0) == 0;
            expected += has_no_leading(p);
            for (const uint64_t field : {uint64_t(1), uint64_t(1) << 16, uint64_t(1) << 32, uint64_t(1) << 62})
                unseen += lost(p, field) == 0;
        }
    OK(found > 200 && whole, "descriptors find every element of %d operands", found);
    OK(unseen == expected, "a wrong address, offset or swizzle is seen, where it counts");
}

/* ---- the kernels ---- */

static uint64_t mismatches(const gpu_dots &j, uint64_t first, uint64_t tiles, int swap)
{
    gpu_tally t = {};
    t.first = ~0ull;
    const gpu_span span = {first * gpu_tile_outputs(&j), (first + tiles) * gpu_tile_outputs(&j), 1, 1, NULL};
    if (gpu_variant_launch(&j, &span, &t, swap) != cudaSuccess) {
        printf("# %s\n", gpu_host.text);
        gpu_host_clear();
        return ~0ull;
    }
    return t.mismatches;
}

/* Names of every depth, and a tile of numbers; another each day. */
static uint64_t of_variant(const gpu_check &c, size_t i)
{
    const uint64_t kinds = GPU_NAME_KINDS;
    gpu_dots names = c.dots;
    names.distribution = GPU_NAMES;
    const uint64_t turns = c.dots.k == 128 && c.dots.columns <= 64 ? 2 : 1;
    const uint64_t of_names = mismatches(names, 0, kinds * turns, 0);
    return of_names ? of_names : mismatches(c.dots, (i * 7 + test_part_seed()) % 64, 1, 0);
}

static void test_kernels()
{
    gpu_check c;
    for (size_t i = 0; gpu_variant_check(&c, i, 90, GPU_RUN_TINY) == 1; i++)
        if (test_in_part(i, 4))
            OK(of_variant(c, i) == 0, "%s", c.name);
}

/* The two offsets of a descriptor exchanged: names are in the wrong place. */
static void test_swap()
{
    gpu_check c;
    int asked = 0, seen = 0;
    for (size_t i = 0; gpu_variant_check(&c, i, 90, GPU_RUN_TINY) == 1; i++) {
        const gpu_packing b = gpu_packing_of(&c.dots, 1);
        if (c.dots.columns > 64 || c.dots.k > 32 || !b.mn || !test_in_part(i, 1))
            continue;
        c.dots.distribution = GPU_NAMES;
        asked++;
        seen += mismatches(c.dots, 0, GPU_NAME_KINDS, 1) != 0;
    }
    OK(seen == asked, "exchanged offsets are seen (%d)", asked);
}

int main()
{
    OK(is_as_in_cute(), "places and descriptors are CuTe's");
    test_packings();
    test_kernels();
    test_swap();
    return tap_end();
}
