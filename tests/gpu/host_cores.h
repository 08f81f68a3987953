/* host_cores.h -- the instructions of fragments.cuh and wgmma.cuh on the host executor: tensor
 * cores by the models of mpsim, asynchronous copies as late as they may be.
 *
 * A copy of cp.async arrives when its group is waited for; until then its place holds bytes 0xff,
 * which is NaN in every format. wgmma is computed when its group is waited for. So a wait too few
 * is seen. */
#pragma once

#include <mpsim/mpsim.h>

struct gpu_host_copy {
    unsigned char *to;
    const unsigned char *from;
    int bytes, size; /* given; of the place, whose rest becomes zeros */
    unsigned group;
};

struct gpu_host_async { /* a multiplication of wgmma that has been issued */
    int types, columns;
    float *d;
    uint64_t a, b;
    unsigned group;
    int mn_a, mn_b; /* lines are contiguous, not the depth */
    int adds;       /* to what is in d, else to zeros */
};

struct gpu_host_queue { /* of a thread */
    std::vector<gpu_host_copy> copies;
    std::vector<gpu_host_async> products;
    unsigned copy_group, product_group;
};

struct gpu_host_cores_state {
    mpsim_model mma[GPU_TYPES_COUNT], wgmma[GPU_TYPES_COUNT];
    int has_mma[GPU_TYPES_COUNT], has_wgmma[GPU_TYPES_COUNT];
    const mpsim_format *a[GPU_TYPES_COUNT], *b[GPU_TYPES_COUNT];
    std::vector<gpu_host_queue> queues;
    int sm;
    uint64_t dots;   /* computed so far */
    uint64_t serial; /* of the cluster whose queues these are */
};

inline gpu_host_cores_state gpu_host_cores;

static const char *const gpu_host_operands[GPU_TYPES_COUNT][2] = {{"fp16", "fp16"}, {"bf16", "bf16"}, {"tf32", "tf32"},
                                                                  {"e4m3", "e4m3"}, {"e4m3", "e5m2"}, {"e5m2", "e4m3"},
                                                                  {"e5m2", "e5m2"}};

/* The tensor cores of compute capability sm; gpu_gemm asks for those of its device. */
inline void gpu_host_cores_set(int sm)
{
    if (gpu_host_cores.sm == sm)
        return;
    gpu_host_cores.sm = sm;
    const char *arch = sm == 80    ? "ampere"
                       : sm == 89  ? "ada"
                       : sm == 90  ? "hopper"
                       : sm == 100 ? "blackwell"
                                   : "rtx-blackwell";
    for (int i = 0; i < GPU_TYPES_COUNT; i++) {
        const int fp8 = i >= GPU_TYPES_E4M3_E4M3;
        gpu_host_cores.a[i] = mpsim_format_find(gpu_host_operands[i][0]);
        gpu_host_cores.b[i] = mpsim_format_find(gpu_host_operands[i][1]);
        const char *type = fp8 ? (sm == 90 || sm == 100 ? "mma-fp8" : "fp8") : gpu_host_operands[i][0];
        char name[96];
        snprintf(name, sizeof name, "%s-%s-fp32", arch, type);
        gpu_host_cores.has_mma[i] = mpsim_model_parse(&gpu_host_cores.mma[i], name) == MPSIM_OK;
        snprintf(name, sizeof name, "hopper-%s-fp32", fp8 ? "wgmma-fp8" : type);
        gpu_host_cores.has_wgmma[i] = sm == 90 && mpsim_model_parse(&gpu_host_cores.wgmma[i], name) == MPSIM_OK;
    }
}

/* Nothing but zeros on one side, and numbers on the other: a sum that stays as it is need not be computed.
 * That is what kernels fill up with. */
inline int gpu_host_is_idle(int types, const uint32_t x[8], const uint32_t y[8])
{
    static const uint32_t top[GPU_TYPES_COUNT][2] = {{0x7c00, 16}, {0x7f80, 16}, {0x7f800000, 32}};
    uint32_t any[2] = {0, 0};
    for (int i = 0; i < 8; i++) {
        any[0] |= x[i];
        any[1] |= y[i];
    }
    if (types >= GPU_TYPES_E4M3_E4M3 || (any[0] && any[1])) /* FP8: zeros on both sides */
        return !any[0] && !any[1];
    const uint32_t *other = any[0] ? x : y;
    for (int i = 0; i < 8; i++)
        for (uint32_t n = 0; n < 32; n += top[types][1])
            if ((other[i] >> n & top[types][0]) == top[types][0])
                return 0;
    return 1;
}

/* Whether s + nothing is s: +0, or what the addition does not cut off; tests of the models say that it is so
 * for their own sums. -0 becomes +0. */
inline int gpu_host_stays(const mpsim_model *m, float s)
{
    uint32_t u;
    memcpy(&u, &s, sizeof u);
    if (u == 0 || !isfinite(s))
        return 1;
    const int cut = m->chunk || m->fraction >= 23 ? 0 : 23 - m->fraction;
    return (u >> 23 & 255) != 0 && ilogbf(s) >= m->floor && (u & ((1u << cut) - 1)) == 0;
}

/* 8 words of each operand as codes, and the types. */
inline float gpu_host_addition(const mpsim_model *m, int types, const uint32_t x[8], const uint32_t y[8], float c)
{
    const mpsim_format *fa = gpu_host_cores.a[types], *fb = gpu_host_cores.b[types];
    uint32_t a[8], b[8], addend;
    uint64_t d = 0;
    if (gpu_host_stays(m, c) && gpu_host_is_idle(types, x, y))
        return c;
    for (int i = 0; i < 8; i++) {
        a[i] = types == GPU_TYPES_TF32 ? x[i] >> 13 : x[i];
        b[i] = types == GPU_TYPES_TF32 ? y[i] >> 13 : y[i];
    }
    memcpy(&addend, &c, sizeof addend);
    if (mpsim_dot(m, fa, a, fb, b, 32 / mpsim_format_code_bytes(fa), addend, NULL, &d) != MPSIM_OK)
        gpu_host_fail(cudaErrorLaunchFailure, "mpsim_dot refuses");
    gpu_host_cores.dots++;
    return __uint_as_float(static_cast<uint32_t>(d));
}

/* ---- mma.sync, ldmatrix ---- */

struct gpu_host_fragment {
    uint32_t a[4], b[2];
};

inline void gpu_host_mma(const char *file, int line, int types, float d[4], const uint32_t a[4], const uint32_t b[2])
{
    const unsigned lane = gpu_host_lane(), g = lane / 4, t = lane % 4;
    gpu_host_fragment mine, all[32];
    memcpy(mine.a, a, sizeof mine.a);
    memcpy(mine.b, b, sizeof mine.b);
    gpu_host_meet(gpu_host.now->number / 32 * 32, 32, 0xffffffffu, &mine, sizeof mine, all, file, line);
    if (!gpu_host_cores.has_mma[types])
        gpu_host_fail(cudaErrorLaunchFailure, "mma.sync that this architecture has not");
    for (unsigned i = 0; i < 4; i++) {
        const unsigned row = g + 8 * (i / 2), column = 2 * t + i % 2;
        uint32_t x[8], y[8];
        for (unsigned w = 0; w < 8; w++) {
            x[w] = all[4 * (row % 8) + w % 4].a[row / 8 + 2 * (w / 4)];
            y[w] = all[4 * column + w % 4].b[w / 4];
        }
        d[i] = gpu_host_addition(&gpu_host_cores.mma[types], types, x, y, d[i]);
    }
}

#define gpu_mma_at(TYPES, d, a, b) gpu_host_mma(__FILE__, __LINE__, TYPES, d, a, b)
template <int TYPES>
static inline void gpu_mma(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    gpu_mma_at(TYPES, d, a, b);
}

template <int TRANSPOSED>
static inline void gpu_ldmatrix(uint32_t r[4], const unsigned char *line)
{
    const unsigned lane = gpu_host_lane();
    const unsigned char *all[32];
    if (reinterpret_cast<uintptr_t>(line) % 16)
        gpu_host_fail(cudaErrorLaunchFailure, "ldmatrix of an address that is not aligned");
    gpu_host_meet(gpu_host.now->number / 32 * 32, 32, 0xffffffffu, &line, sizeof line, all, __FILE__, __LINE__);
    for (unsigned m = 0; m < 4; m++) {
        uint16_t half[2];
        for (unsigned i = 0; i < 2; i++) {
            const unsigned other = 2 * (lane % 4) + i;
            const unsigned at = TRANSPOSED ? other : lane / 4, of = TRANSPOSED ? lane / 4 : other;
            memcpy(&half[i], all[8 * m + at] + 2 * of, sizeof half[i]);
        }
        r[m] = half[0] | static_cast<uint32_t>(half[1]) << 16;
    }
}

/* ---- cp.async ---- */

inline gpu_host_queue *gpu_host_queue_now()
{
    gpu_host_cores_state *s = &gpu_host_cores;
    if (s->serial != gpu_host.serial) {
        for (const gpu_host_queue &q : s->queues)
            if (!q.products.empty() && s->serial != gpu_host.broken)
                gpu_host_fail(cudaErrorLaunchFailure, "a block ended before its wgmma");
        s->queues.clear();
        s->serial = gpu_host.serial;
        s->queues.resize(size_t(gpu_host.threads) * gpu_host.cluster);
    }
    return &s->queues[gpu_host.rank * gpu_host.threads + gpu_host.now->number];
}

inline void gpu_host_copy_later(unsigned char *to, const unsigned char *from, int bytes, int size)
{
    gpu_host_queue *q = gpu_host_queue_now();
    const auto whole = static_cast<uintptr_t>(size);
    if (reinterpret_cast<uintptr_t>(to) % whole || reinterpret_cast<uintptr_t>(from) % whole || bytes < 0 ||
        bytes > size)
        gpu_host_fail(cudaErrorLaunchFailure, "cp.async of what is not aligned");
    if (!gpu_host_is_device(from, static_cast<size_t>(bytes)))
        gpu_host_fail(cudaErrorLaunchFailure, "cp.async from beside the memory of the device");
    memset(to, 0xff, whole);
    q->copies.push_back(gpu_host_copy{to, from, bytes, size, q->copy_group});
}
static inline void gpu_copy(unsigned char *to, const unsigned char *from, int bytes)
{
    gpu_host_copy_later(to, from, bytes, 16);
}
static inline void gpu_copy_if(unsigned char *to, const unsigned char *from, bool there)
{
    gpu_copy(to, from, there ? 16 : 0);
}
static inline void gpu_copy_word(unsigned char *to, const void *from, bool there)
{
    gpu_host_copy_later(to, static_cast<const unsigned char *>(from), there ? 4 : 0, 4);
}
static inline void gpu_copy_commit()
{
    gpu_host_queue_now()->copy_group++;
}
inline void gpu_host_copied(const gpu_host_copy &c)
{
    memset(c.to, 0, static_cast<size_t>(c.size));
    memcpy(c.to, c.from, static_cast<size_t>(c.bytes));
}
template <int N>
static inline void gpu_copy_wait()
{
    gpu_host_queue *q = gpu_host_queue_now();
    std::vector<gpu_host_copy> left;
    for (const gpu_host_copy &c : q->copies)
        if (c.group + N < q->copy_group)
            gpu_host_copied(c);
        else
            left.push_back(c);
    q->copies.swap(left);
}

/* ---- wgmma ---- */

#include "host_tma.h"

/* "Matrix Descriptor Format": bits 0-13 address, 16-29 leading dimension, 32-45 stride dimension, all in
 * units of 16 bytes, 62-63 swizzle: 1 is 128 bytes. K-major: a line has 128 bytes, groups of 8
 * lines follow in the stride. MN-major: 64 lines of an element of 16 bits are 128 bytes of a depth, 8 depths follow
 * each other, then the next 8 in the stride, and the next 64 lines in the leading dimension. Bits 4 to 6 of an address
 * are exchanged by exclusive or with bits 7 to 9. Addresses are those from the begin of the block's shared memory. */
inline void gpu_host_operand(uint64_t descriptor, int mn, unsigned line, uint32_t words[8])
{
    const size_t start = (descriptor & 0x3fff) << 4, stride = (descriptor >> 32 & 0x3fff) << 4;
    const size_t leading = (descriptor >> 16 & 0x3fff) << 4;
    if (descriptor >> 62 != 1 || (descriptor >> 49 & 7) != 0 || start % 16)
        gpu_host_fail(cudaErrorLaunchFailure, "a descriptor of another layout");
    unsigned char *const to = reinterpret_cast<unsigned char *>(words);
    for (unsigned i = 0; i < (mn ? 16u : 8u); i++) {
        const unsigned bytes = mn ? 2 : 4;
        const size_t at = mn ? start + line / 64 * leading + i / 8 * stride + i % 8 * 128 + line % 64 * 2
                             : start + line / 8 * stride + line % 8 * 128 + 4 * i;
        memcpy(to + i * bytes, gpu_host.shared + (at ^ (at >> 7 & 7) << 4), bytes);
        if (i % 8 == 0 && gpu_host_is_awaited(at & ~size_t(127), 128))
            gpu_host_fail(cudaErrorLaunchFailure, "wgmma reads where a copy is under way");
    }
}

/* What a line of 8 words has: anything but zeros, and numbers that are not finite. */
enum { GPU_HOST_ANY = 1, GPU_HOST_ODD = 2 };

inline int gpu_host_line_has(const mpsim_format *f, const uint32_t words[8])
{
    const uint64_t top = (uint64_t(1) << (f->bits - 1)) - 1;
    uint32_t any = 0;
    int odd = 0;
    for (unsigned w = 0; w < 8; w++) {
        any |= words[w];
        for (unsigned at = 0; words[w] && at < 32; at += unsigned(f->bits))
            odd |= (words[w] >> at & top) > f->max_finite;
    }
    return (any ? GPU_HOST_ANY : 0) | (odd ? GPU_HOST_ODD : 0);
}

/* Whether the products of two lines of that kind are zeros. */
inline int gpu_host_are_zeros(int x, int y)
{
    return (!(x & GPU_HOST_ANY) && !(y & GPU_HOST_ODD)) || (!(y & GPU_HOST_ANY) && !(x & GPU_HOST_ODD));
}

inline void gpu_host_wgmma(const gpu_host_async *p)
{
    const unsigned lane = gpu_host_lane(), warp = gpu_host.now->number / 32 % 4;
    const mpsim_model *const m = &gpu_host_cores.wgmma[p->types];
    uint32_t x[2][8], y[8];
    int of_x[2];
    if (!gpu_host_cores.has_wgmma[p->types])
        gpu_host_fail(cudaErrorLaunchFailure, "wgmma that this architecture has not");
    for (unsigned i = 0; i < 2; i++) {
        gpu_host_operand(p->a, p->mn_a, 16 * warp + lane / 4 + 8 * i, x[i]);
        of_x[i] = gpu_host_line_has(gpu_host_cores.a[p->types], x[i]);
    }
    for (unsigned j = 0; j < static_cast<unsigned>(p->columns) / 8; j++)
        for (unsigned c = 0; c < 2; c++) {
            gpu_host_operand(p->b, p->mn_b, 8 * j + 2 * (lane % 4) + c, y);
            const int of_y = gpu_host_line_has(gpu_host_cores.b[p->types], y);
            for (unsigned i = 0; i < 2; i++) {
                float *d = &p->d[4 * j + 2 * i + c];
                *d = p->adds ? *d : 0.0f;
                if (!gpu_host_are_zeros(of_x[i], of_y) || !gpu_host_stays(m, *d))
                    *d = gpu_host_addition(m, p->types, x[i], y, *d);
            }
        }
}
