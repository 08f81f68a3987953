/* block_scaled.cu -- a probe that has never run: mma.sync with block scales, MXFP8 (PTX ISA 8.7, "mma.sync
 * ... .kind::mxf8f6f4 .block_scale", "Block Scaling for mma.sync"). Of sm_120a alone; no model row says what
 * it adds and how, and nothing calls it yet.
 *
 * D = C + (A times the scales of its rows) (B times those of its columns), 16 x 8 elements, 32 of depth, which
 * one scale (E8M0) covers. With g = lane / 4, t = lane mod 4, byte and thread selectors 0: the scale of row
 * g is the lowest byte of lane 4 g, that of row g + 8 of lane 4 g + 1; of column g that of lane 4 g. Fragments
 * of A, B, D as in mma.cuh. */
#include <stdint.h>

/* A warp's fragments, lane by lane. */
struct block_scaled_probe {
    uint32_t a[32][4], b[32][2];
    uint32_t scale_a[32], scale_b[32];
    float c[32][4], d[32][4];
};

#define BLOCK_SCALED(types)                                                                        \
    asm volatile("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32." \
                 types ".f32.ue8m0 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, "         \
                 "{%10}, {0, 0}, {%11}, {0, 0};"                                                   \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                  \
                 : "r"(p->a[lane][0]), "r"(p->a[lane][1]), "r"(p->a[lane][2]),                     \
                   "r"(p->a[lane][3]), "r"(p->b[lane][0]), "r"(p->b[lane][1]),                     \
                   "r"(p->scale_a[lane]), "r"(p->scale_b[lane]))

/* types: 0 e4m3 and e4m3, 1 e4m3 and e5m2, 2 e5m2 and e4m3, 3 e5m2 and e5m2. One warp. */
extern "C" __global__ void __launch_bounds__(32)
    gpu_block_scaled_probe(struct block_scaled_probe *p, int types)
{
    const unsigned lane = threadIdx.x;
    float d[4] = {p->c[lane][0], p->c[lane][1], p->c[lane][2], p->c[lane][3]};
    switch (types) {
    case 0:
        BLOCK_SCALED("e4m3.e4m3");
        break;
    case 1:
        BLOCK_SCALED("e4m3.e5m2");
        break;
    case 2:
        BLOCK_SCALED("e5m2.e4m3");
        break;
    default:
        BLOCK_SCALED("e5m2.e5m2");
    }
    for (int i = 0; i < 4; i++)
        p->d[lane][i] = d[i];
}
