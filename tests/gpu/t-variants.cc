/* t-variants.cc -- gpu/validation/checks/variants.cu without a device: where operands are packed, what descriptors say, and the
 * kernels themselves, whose instructions tests/gpu/host_wgmma.h plays. */
#include "tap.h"

#include "../../gpu/kernels/cuda.cuh"
#include "host_mma.h"
#include "host_wgmma.h"

#include "../../gpu/validation/checks/dmma.cu"
#include "../../gpu/validation/checks/mma_variants.cu"
#include "../../gpu/validation/checks/variants.cu"
#include "../../gpu/validation/checks/wgmma_sparse.cu"
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
        for (int is_b = 0; is_b < 2 && c.dots.variant.unit == GPU_UNIT_WGMMA; is_b++) {
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
    if ((j.variant.unit == GPU_UNIT_SPARSE  ? gpu_wgmma_sparse_launch(&j, &span, &t)
         : j.variant.unit == GPU_UNIT_DMMA  ? gpu_dmma_launch(&j, &span, &t)
         : j.variant.unit == GPU_UNIT_WGMMA ? gpu_variant_launch(&j, &span, &t, swap)
                                            : gpu_mma_variant_launch(&j, &span, &t)) != cudaSuccess) {
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
    const int unit = c.dots.variant.unit, is_wide = c.dots.columns > 64;
    const uint64_t all = unit == GPU_UNIT_WGMMA ? uint64_t(c.dots.k == 128 && !is_wide ? 2 : 1) : uint64_t(c.dots.k);
    const uint64_t turns = unit == GPU_UNIT_SPARSE ? 2 : all;
    const uint64_t of_names = mismatches(names, 0, kinds * turns, 0);
    return of_names ? of_names : mismatches(c.dots, (i * 7 + test_part_seed()) % 64, 1, 0);
}

static void test_kernels()
{
    gpu_check c;
    for (size_t i = 0; gpu_variant_check(&c, i, 90, GPU_RUN_TINY) == 1; i++)
        if (!strstr(c.name, " halves") && /* the same instruction */
            (c.dots.variant.unit == GPU_UNIT_MMA || c.dots.variant.unit == GPU_UNIT_DMMA || test_in_part(i, 4)))
            OK(of_variant(c, i) == 0, "%s", c.name);
}

/* The two offsets of a descriptor exchanged: names are in the wrong place. */
static void test_swap()
{
    gpu_check c;
    int asked = 0, seen = 0;
    for (size_t i = 0; gpu_variant_check(&c, i, 90, GPU_RUN_TINY) == 1; i++) {
        if (c.dots.columns > 64 || c.dots.k > 32 || !c.dots.variant.mn_b || !test_in_part(i, 1))
            continue;
        c.dots.distribution = GPU_NAMES;
        asked++;
        seen += mismatches(c.dots, 0, GPU_NAME_KINDS, 1) != 0;
    }
    OK(seen == asked, "exchanged offsets are seen (%d)", asked);
}

/* ---- sparse products ---- */

/* Which row and which depth a bit of a lane's metadata is about, of 8 bits, of 16 and of tf32: CuTe's ELayout_64x64, 64x32
 * and 64x16. */
static void test_metadata()
{
    static const struct {
        const char *name;
        int lane, bit, row, k;
    } cute[] = {
        {"variant mma.sp.k64 e4m3-fp32 sel0", 0, 0, 0, 0},     {"variant mma.sp.k64 e4m3-fp32 sel0", 0, 15, 0, 15},
        {"variant mma.sp.k64 e4m3-fp32 sel0", 0, 18, 0, 18},   {"variant mma.sp.k64 e4m3-fp32 sel0", 0, 31, 0, 31},
        {"variant mma.sp.k64 e4m3-fp32 sel0", 1, 0, 8, 0},     {"variant mma.sp.k64 e4m3-fp32 sel0", 1, 15, 8, 15},
        {"variant mma.sp.k64 e4m3-fp32 sel0", 1, 18, 8, 18},   {"variant mma.sp.k64 e4m3-fp32 sel0", 1, 31, 8, 31},
        {"variant mma.sp.k64 e4m3-fp32 sel0", 6, 0, 1, 32},    {"variant mma.sp.k64 e4m3-fp32 sel0", 6, 15, 1, 47},
        {"variant mma.sp.k64 e4m3-fp32 sel0", 6, 18, 1, 50},   {"variant mma.sp.k64 e4m3-fp32 sel0", 6, 31, 1, 63},
        {"variant mma.sp.k64 e4m3-fp32 sel0", 7, 0, 9, 32},    {"variant mma.sp.k64 e4m3-fp32 sel0", 7, 15, 9, 47},
        {"variant mma.sp.k64 e4m3-fp32 sel0", 7, 18, 9, 50},   {"variant mma.sp.k64 e4m3-fp32 sel0", 7, 31, 9, 63},
        {"variant mma.sp.k64 e4m3-fp32 sel0", 29, 0, 15, 0},   {"variant mma.sp.k64 e4m3-fp32 sel0", 29, 15, 15, 15},
        {"variant mma.sp.k64 e4m3-fp32 sel0", 29, 18, 15, 18}, {"variant mma.sp.k64 e4m3-fp32 sel0", 29, 31, 15, 31},
        {"variant mma.sp.k64 e4m3-fp32 sel0", 30, 0, 7, 32},   {"variant mma.sp.k64 e4m3-fp32 sel0", 30, 15, 7, 47},
        {"variant mma.sp.k64 e4m3-fp32 sel0", 30, 18, 7, 50},  {"variant mma.sp.k64 e4m3-fp32 sel0", 30, 31, 7, 63},
        {"variant mma.sp.k32 fp16-fp32 sel0", 0, 0, 0, 0},     {"variant mma.sp.k32 fp16-fp32 sel0", 0, 15, 0, 15},
        {"variant mma.sp.k32 fp16-fp32 sel0", 0, 18, 8, 2},    {"variant mma.sp.k32 fp16-fp32 sel0", 0, 31, 8, 15},
        {"variant mma.sp.k32 fp16-fp32 sel0", 1, 0, 0, 16},    {"variant mma.sp.k32 fp16-fp32 sel0", 1, 15, 0, 31},
        {"variant mma.sp.k32 fp16-fp32 sel0", 1, 18, 8, 18},   {"variant mma.sp.k32 fp16-fp32 sel0", 1, 31, 8, 31},
        {"variant mma.sp.k32 fp16-fp32 sel0", 29, 0, 7, 16},   {"variant mma.sp.k32 fp16-fp32 sel0", 29, 15, 7, 31},
        {"variant mma.sp.k32 fp16-fp32 sel0", 29, 18, 15, 18}, {"variant mma.sp.k32 fp16-fp32 sel0", 29, 31, 15, 31},
        {"variant mma.sp.k16 tf32-fp32 sel0", 0, 0, 0, 0},     {"variant mma.sp.k16 tf32-fp32 sel0", 0, 7, 0, 7},
        {"variant mma.sp.k16 tf32-fp32 sel0", 0, 10, 8, 2},    {"variant mma.sp.k16 tf32-fp32 sel0", 0, 15, 8, 7},
        {"variant mma.sp.k16 tf32-fp32 sel0", 1, 0, 0, 8},     {"variant mma.sp.k16 tf32-fp32 sel0", 1, 7, 0, 15},
        {"variant mma.sp.k16 tf32-fp32 sel0", 1, 10, 8, 10},   {"variant mma.sp.k16 tf32-fp32 sel0", 1, 15, 8, 15},
        {"variant mma.sp.k16 tf32-fp32 sel0", 29, 0, 7, 8},    {"variant mma.sp.k16 tf32-fp32 sel0", 29, 7, 7, 15},
        {"variant mma.sp.k16 tf32-fp32 sel0", 29, 10, 15, 10}, {"variant mma.sp.k16 tf32-fp32 sel0", 29, 15, 15, 15},
    };
    int wrong = 0;
    for (const auto &f : cute) {
        gpu_check c;
        size_t i = 0;
        while (gpu_variant_check(&c, i, 90, GPU_RUN_TINY) == 1 && strcmp(c.name, f.name) != 0)
            i++;
        /* a group of tf32 is two elements: four bits; others have a bit for each element */
        const int group = f.k / c.dots.variant.sparse, nibble = f.bit / c.dots.variant.sparse;
        wrong += (gpu_metadata(&c.dots, 5, 0, f.lane) >> (4 * nibble) & 15) !=
                 gpu_metadata_group(&c.dots, 5, f.row, group);
    }
    OK(wrong == 0, "lanes give the metadata that CuTe's layouts say");
}

/* Additions of half the length give other sums: the device's say which they are. */
static void test_halves()
{
    gpu_check whole, half;
    int same = 0, pairs = 0;
    for (size_t i = 0; gpu_variant_check(&half, i, 90, GPU_RUN_QUICK) == 1; i++) {
        if (strstr(half.name, " halves") && ++pairs) {
            uint64_t at = 0;
            while (at < half.count && gpu_check_reference(&whole, at) == gpu_check_reference(&half, at))
                at += 7;
            same += at >= half.count;
        }
        whole = half;
    }
    OK(pairs == 37 && same == 0, "additions of half the length are told from whole ones");
}

int main()
{
    OK(is_as_in_cute(), "places and descriptors are CuTe's");
    test_packings();
    test_metadata();
    test_halves();
    test_kernels();
    test_swap();
    return tap_end();
}
