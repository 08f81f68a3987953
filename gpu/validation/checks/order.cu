/* order.cu -- the sums of orders.h on a device: a block of one warp for each sum, with a place of its own. */
#include "orders.h"
#include "reduce.cuh"

enum { LINE = 32 }; /* words from one place to the next: no two are in one line of a cache */
static __device__ __align__(128) uint32_t order_words[GPU_ORDER_RESULTS][LINE];

static __device__ void repeat(uint32_t words[WORDS], uint32_t code, int is_16)
{
    for (int i = 0; i < WORDS; i++)
        words[i] = is_16 ? code | code << 16 : code;
}

/* What `lane` adds, in a cell of shared memory for cp.reduce, too. */
static __device__ void prepare(reduction &r, const gpu_order_plan &p, uint32_t (*cells)[WORDS], int lane)
{
    repeat(r.operand, gpu_order_operand(&p, (int)blockIdx.x, lane), r.is_16);
    r.cell = (uint32_t)__cvta_generic_to_shared(cells[lane]);
    store_shared(r.cell, r.operand);
}

static __device__ void add_all(reduction &r, const gpu_order_plan &p, uint32_t (*cells)[WORDS], int lane)
{
    if (p.way == GPU_ORDER_WARP) {
        prepare(r, p, cells, lane);
        __syncwarp();
        reduce(r, p.row);
    } else if (lane == 0) {
        for (int k = 0; k < GPU_ORDER_LANES; k++) {
            prepare(r, p, cells, k);
            reduce(r, p.row);
        }
    }
    wait_bulk();
}

static __device__ void load(uint32_t after[WORDS], const reduction &r, int is_shared)
{
    if (is_shared)
        load_shared(after, r.shared);
    else
        load_global(after, r.global);
}

/* sums[i], and 1 in uneven[i] if the elements are not the same. */
__global__ void __launch_bounds__(GPU_ORDER_LANES)
    order_kernel(GPU_CONSTANT(gpu_order_plan) p, uint32_t *sums, uint32_t *uneven)
{
    __shared__ __align__(16) uint32_t place[WORDS], cells[GPU_ORDER_LANES][WORDS];
    const int lane = (int)threadIdx.x, sum = (int)blockIdx.x;
    reduction r;
    uint32_t after[WORDS];
    r.is_16 = p.bits == 16;
    r.place = 0;
    r.global = (uint64_t)__cvta_generic_to_global(order_words[sum]);
    r.shared = (uint32_t)__cvta_generic_to_shared(place);
    repeat(r.memory, gpu_order_start(&p, sum), r.is_16);
    if (lane == 0) {
        store_shared(r.shared, r.memory);
        store_global(r.global, r.memory);
    }
    __threadfence();
    __syncwarp();
    add_all(r, p, cells, lane);
    __threadfence();
    __syncwarp();
    if (lane != 0)
        return;
    load(after, r, p.is_shared);
    sums[sum] = element(after, 0, r.is_16);
    for (int i = 1; i < p.elements; i++)
        if (element(after, i, r.is_16) != sums[sum])
            uneven[sum] = 1;
}

cudaError_t gpu_order_launch(const gpu_order_plan *p, uint32_t *sums, uint32_t *uneven)
{
    order_kernel<<<(unsigned)gpu_order_sums(p), GPU_ORDER_LANES>>>(*p, sums, uneven);
    return cudaGetLastError();
}
