/* reduce.cu -- the reductions of reductions.h by the hardware, against mpsim_scalar_arith: each thread has 16 bytes of
 * its own, stores a number there, lets the memory add another one and reads what is there. No order plays a part, and no
 * other thread: PTX keeps what one thread does to one place in its order, so that the fences cost little (those of a device
 * would be most of the time). cp.reduce has its own.
 *
 * Vectors and pairs change several elements. One of them is what is asked for; the others have the operands exchanged. */
#include "reduce.cuh"
#include "scalar.cuh"

/* 16 bytes are what vectors and cp.reduce ask for. */
static __device__ __align__(16) uint32_t global_words[GPU_BLOCKS * GPU_THREADS][WORDS];

static __device__ void fill(reduction &r, const gpu_scalar &s, const uint32_t in[3])
{
    r.is_16 = s.o.result.bits == 16;
    r.place = (int)((in[0] * 0x9e3779b1u ^ in[1] * 0x85ebca6bu) >> 16) % s.elements;
    for (int i = 0; i < WORDS; i++) {
        uint32_t memory = in[1], operand = in[0];
        if (r.is_16) {
            const int low = 2 * i == r.place, high = 2 * i + 1 == r.place;
            memory = (low ? in[0] : in[1]) | (high ? in[0] : in[1]) << 16;
            operand = (low ? in[1] : in[0]) | (high ? in[1] : in[0]) << 16;
        } else if (i == r.place) {
            memory = in[0];
            operand = in[1];
        }
        r.memory[i] = memory;
        r.operand[i] = operand;
    }
}

static __device__ uint32_t hardware(const gpu_scalar &s, const uint32_t in[3])
{
    __shared__ __align__(16) uint32_t places[GPU_THREADS][WORDS], cells[GPU_THREADS][WORDS];
    reduction r;
    uint32_t after[WORDS];
    fill(r, s, in);
    r.global = (uint64_t)__cvta_generic_to_global(global_words[blockIdx.x * GPU_THREADS + threadIdx.x]);
    r.shared = (uint32_t)__cvta_generic_to_shared(places[threadIdx.x]);
    r.cell = (uint32_t)__cvta_generic_to_shared(cells[threadIdx.x]);
    store_shared(r.cell, r.operand);
    if (s.is_shared)
        store_shared(r.shared, r.memory);
    else
        store_global(r.global, r.memory);
    __threadfence_block();
    const uint32_t wrong = reduce(r, s.instruction);
    wait_bulk();
    __threadfence_block();
    if (s.is_shared)
        load_shared(after, r.shared);
    else
        load_global(after, r.global);
    return element(after, r.place, r.is_16) ^ wrong;
}

cudaError_t gpu_reduce_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally)
{
    return scalar_launch<hardware>(s, span, tally);
}
