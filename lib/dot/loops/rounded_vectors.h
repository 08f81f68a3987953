/* rounded_vectors.h -- the loops of rounded.h for binary32 and binary64 lanes: included by one unit per
 * instruction set, after its vectors (lib/simd). */
#include <math.h>

#ifdef __AVX512F__
enum { ROUNDED_ROWS = 8 };
#else
enum { ROUNDED_ROWS = 4 };
#endif

/* x + y rounded to odd: the last bit is set where the sum is not exact, by Knuth's two-sum. */
static ALWAYS_INLINE vf64 add_odd(vf64 x, vf64 y)
{
#ifdef __AVX512F__
    const vf64 down = (vf64)_mm512_add_round_pd((__m512d)x, (__m512d)y, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const vf64 up = (vf64)_mm512_add_round_pd((__m512d)x, (__m512d)y, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
    return (vf64)v_pick_u64(v_test_u64((vu64)down, v_u64(1)), (vu64)down, (vu64)up);
#else
    const vf64 sum = x + y, part = sum - x;
    const vf64 error = (x - (sum - part)) + (y - part);
    const vu64 u = (vu64)sum, inward = ((vu64)error ^ u) >> 63; /* of other signs */
    const m64 inexact = m64_not(v_eq_f64(error, v_f64(0)));
    const vu64 move = v_keep_u64(inexact, ~u & v_u64(1));
    return (vf64)(u + move - ((move & inward) << 1));
#endif
}

enum { WHOLE_HOW = 1, ENDLESS_HOW = 2 };

#define REAL float
#define V vf32
#define U vu32
#define LANES V_LANES
#define LOAD v_load_f32
#define STORE v_store_f32
#define SPLAT v_f32
#define MAX v_max_f32
#define MAX_BITS(x, y) v_max_u32(x, y)
#define BIGGER(x, y) m32_bits(v_gt_u32(x, y))
#define WHOLES 1
#define HALF(drop) v_u32((1u << (drop)) / 2 - 1)
#define KEEP(drop) v_u32(UINT32_MAX << (drop))
#define WHOLE(u, p) (((u) + (p)->half + (v_shr_u32(u, v_u32((uint32_t)(p)->drop)) & v_u32(1))) & (p)->keep)
#define ADD_ODD(x, y) ((x) + (y)) /* never wanted */
#define LARGEST 0x1.fffffep127F
#define UNLESS_ABOVE(size, most, x, y) ((V)v_pick_u32(v_ge_u32((U)(most), (U)(size)), (U)(x), (U)(y)))
#define NAME(name) name##_f32
#include "rounded_loops.h"

#define REAL double
#define V vf64
#define U vu64
#define LANES (V_LANES / 2)
#define LOAD v_load_f64
#define STORE v_store_f64
#define SPLAT v_f64
#define MAX v_max_f64
#define MAX_BITS(x, y) ((vu64)v_max_f64((vf64)(x), (vf64)(y)))
#define BIGGER(x, y) m64_bits(v_gt_f64((vf64)(x), (vf64)(y)))
#define WHOLES 0
#define HALF(drop) v_u64(0)
#define KEEP(drop) v_u64(0)
#define WHOLE(u, p) (u)
#define ADD_ODD add_odd
#define LARGEST 0x1.fffffffffffffp1023
#define UNLESS_ABOVE(size, most, x, y) ((V)v_pick_u64(m64_not(v_gt_u64((U)(size), (U)(most))), (U)(x), (U)(y)))
#define NAME(name) name##_f64
#include "rounded_loops.h"
