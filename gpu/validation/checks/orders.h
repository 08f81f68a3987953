/* orders.h -- in which order does the memory add? 32 lanes of a warp add to one place at once, or one thread adds 32
 * numbers to it one after the other. The numbers are such that the sum names the order:
 *
 *   behind   The place holds -B, lane i adds B, lanes of a group add small numbers, a bit each, all others +0. A small
 *            number that meets B or -B alone is lost; behind both it stays. So the sum says, in a chain, which lanes of the
 *            group come behind lane i: for all i and all groups, the whole chain.
 *   apart    The place holds +0, lane i adds B, lane j adds -B, the others as above: the bits that stay are those of lanes
 *            that meet neither B nor -B alone. So trees of lanes show how they are built.
 *   mixed    All lanes add random numbers of several exponents, to +0: what has been found from the others must give
 *            these sums, too.
 *
 * C17 and CUDA: the device and the reader make the same numbers. */
#pragma once

#include "cases.h"

enum {
    GPU_ORDER_PAIRS = 80, /* i and i with one bit more, for each of five bits */
    GPU_ORDER_MIXED = 32, /* sums of random numbers */
    GPU_ORDER_STREAM = 300000
};

/* The ways of one reduction. */
typedef enum gpu_order_way { GPU_ORDER_WARP, GPU_ORDER_THREAD, GPU_ORDER_WAYS } gpu_order_way;

typedef struct gpu_order_plan {
    int row, way; /* of reductions.h; gpu_order_way */
    int is_shared, elements;
    int bits, mbits, bias;
    int group;               /* lanes with a small number */
    uint32_t big, minus;     /* the code of B, the sign */
    uint32_t smallest, next; /* the code of the least small number; how far the next one is */
    uint64_t stream;
} gpu_order_plan;

static inline MPSIM_HD int gpu_order_groups(const gpu_order_plan *p)
{
    return GPU_ORDER_LANES / p->group;
}

static inline MPSIM_HD int gpu_order_sums(const gpu_order_plan *p)
{
    return (GPU_ORDER_LANES + GPU_ORDER_PAIRS) * gpu_order_groups(p) + GPU_ORDER_MIXED;
}

/* Pair n: the first lane has bit n / 16 clear, the second one has it set. */
static inline MPSIM_HD int gpu_order_first(int n)
{
    const int bit = n / 16, rest = n % 16;
    return rest >> bit << (bit + 1) | (rest & ((1 << bit) - 1));
}

static inline MPSIM_HD int gpu_order_second(int n)
{
    return gpu_order_first(n) | 1 << n / 16;
}

static inline MPSIM_HD uint32_t gpu_order_small(const gpu_order_plan *p, int group, int lane)
{
    return lane / p->group == group ? p->smallest + (uint32_t)(lane % p->group) * p->next : 0;
}

/* Exponents that differ by up to half the significand. */
static inline MPSIM_HD uint32_t gpu_order_mixed(const gpu_order_plan *p, int n, int lane)
{
    uint32_t w[4];
    mpsim_rng_block(w, GPU_SEED, p->stream, (uint64_t)(n * GPU_ORDER_LANES + lane));
    const uint32_t field = (uint32_t)p->bias + w[1] % (uint32_t)(p->mbits / 2 + 2);
    return (w[2] & 1 ? p->minus : 0) | field << p->mbits | (w[0] & (((uint32_t)1 << p->mbits) - 1));
}

/* What `lane` adds in sum i. */
static inline MPSIM_HD uint32_t gpu_order_operand(const gpu_order_plan *p, int i, int lane)
{
    const int groups = gpu_order_groups(p), behind = GPU_ORDER_LANES * groups;
    if (i < behind)
        return lane == i / groups ? p->big : gpu_order_small(p, i % groups, lane);
    i -= behind;
    if (i >= GPU_ORDER_PAIRS * groups)
        return gpu_order_mixed(p, i - GPU_ORDER_PAIRS * groups, lane);
    if (lane == gpu_order_first(i / groups))
        return p->big;
    return lane == gpu_order_second(i / groups) ? p->big | p->minus : gpu_order_small(p, i % groups, lane);
}

/* The memory before sum i. */
static inline MPSIM_HD uint32_t gpu_order_start(const gpu_order_plan *p, int i)
{
    return i < GPU_ORDER_LANES * gpu_order_groups(p) ? p->big | p->minus : 0;
}

#ifdef __cplusplus
extern "C" {
#endif

/* gpu_order_fill -- what order i asks: 1, or 0 past the end; the addition is that of the check of its instruction. */
int gpu_order_fill(size_t i, gpu_order_plan *p);
/* gpu_order_played -- sum `sum` of order i by the k-th way of adding that is known; its name, NULL past the end. */
const char *gpu_order_played(size_t i, size_t k, int sum, uint32_t *result);

#ifdef __cplusplus
}
#endif
