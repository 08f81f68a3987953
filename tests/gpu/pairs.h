/* pairs.h -- for tests of the CUDA engine without a device: the same tensors in the CPU engine and
 * in the CUDA engine on the host executor, TAP lines, inputs. Plain C++17, no test framework. */
#pragma once

#include "../../gpu/kernels/fragments.cuh"
#include "../../gpu/train.h"

#include "support/extent.h"
#include "tap.h"

#include <mpsim/mpsim.h>

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

/* ---- random numbers ---- */

struct source {
    uint64_t state;
    uint64_t next() /* splitmix64 */
    {
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
    unsigned below(unsigned n)
    {
        return (unsigned)(next() >> 32) % n;
    }
    double unit()
    {
        return (double)(next() >> 11) * 0x1p-53;
    }
};

/* One of n combinations by chance, others in each part. */
inline int chosen(source *s, unsigned n)
{
    return test_in_part(s->next() >> 32, n);
}

/* Kinds of inputs. */
enum input {
    ORDINARY, /* -2 to 2                                              */
    WIDE,     /* magnitudes of every exponent that the format has     */
    CODES,    /* any code: subnormals, infinities, NaNs, both zeros   */
    FEW       /* few different numbers: equals, zeros of both signs   */
};

inline float rounded(const mpsim_format *f, double x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    const uint64_t code = mpsim_encode_f64(f, &r, x, 0, NULL);
    return (float)mpsim_decode(f, code);
}

inline float draw(source *s, const mpsim_format *f, input kind)
{
    static const double few[] = {0.0, -0.0, 1, -1, 0.5, 1, 2, 2};
    switch (kind) {
    case ORDINARY:
        return rounded(f, 4 * s->unit() - 2);
    case WIDE: {
        const int lowest = ilogb(mpsim_format_min_positive(f)), highest = ilogb(mpsim_format_max(f));
        const int e = lowest + (int)s->below((unsigned)(highest - lowest + 1));
        return rounded(f, (s->below(2) ? -1 : 1) * ldexp(1 + s->unit(), e));
    }
    case CODES:
        switch (s->below(32)) {
        case 0:
            return f->inf ? s->below(2) ? INFINITY : -INFINITY : rounded(f, 3);
        case 1:
            return (float)(s->below(2) ? mpsim_format_max(f) : -mpsim_format_max(f));
        case 2:
            return (float)mpsim_format_min_positive(f);
        case 3:
        case 4:
        case 5:
            return rounded(f, few[s->below(8)]);
        }
        return (float)mpsim_decode(f, s->next() >> 7 & (((uint64_t)1 << f->bits) - 1));
    case FEW:
    default:
        return rounded(f, few[s->below(8)]);
    }
}

inline std::vector<float> draw_all(source *s, const mpsim_format *f, input kind, size_t n)
{
    std::vector<float> x(n);
    for (float &v : x)
        v = draw(s, f, kind);
    return x;
}

/* ---- both engines ---- */

inline train_engine cpu, cuda;
inline uint64_t compared; /* elements */

inline int failed(int status)
{
    if (status)
        printf("# %s / %s\n", cpu.error, cuda.error);
    return status != 0;
}

struct pair {
    train_tensor c, g;

    pair(const mpsim_format *f, size_t rows, size_t cols)
    {
        memset(&c, 0, sizeof c);
        c.format = f;
        c.rows = rows;
        c.cols = cols;
        g = c;
        if (failed(cpu.ops->alloc(&cpu, &c) | cuda.ops->alloc(&cuda, &g)))
            exit(1);
    }
    pair(const mpsim_format *f, size_t rows, size_t cols, const std::vector<float> &x) : pair(f, rows, cols)
    {
        put(x);
    }
    pair(source *s, const mpsim_format *f, size_t rows, size_t cols, input kind)
        : pair(f, rows, cols, draw_all(s, f, kind, rows * cols))
    {
    }
    pair(const pair &) = delete;
    ~pair()
    {
        cpu.ops->release(&cpu, &c);
        cuda.ops->release(&cuda, &g);
    }
    void put(const std::vector<float> &x)
    {
        if (failed(cpu.ops->put(&cpu, &c, x.data()) | cuda.ops->put(&cuda, &g, x.data())))
            exit(1);
    }
    /* Values, digests and inverses agree; NaNs are one. */
    int same(const char *what) const
    {
        std::vector<float> a(c.rows * c.cols), b(a.size());
        uint64_t da = 1, db = 2;
        if (failed(cpu.ops->get(&cpu, &c, a.data()) | cuda.ops->get(&cuda, &g, b.data()) |
                   cpu.ops->digest(&cpu, &c, &da) | cuda.ops->digest(&cuda, &g, &db)))
            return 0;
        for (size_t i = 0; i < a.size(); i++) {
            uint32_t u, v;
            memcpy(&u, &a[i], 4);
            memcpy(&v, &b[i], 4);
            if (u != v && !(isnan(a[i]) && isnan(b[i]))) {
                printf("# %s: element %zu of %zu x %zu %s: %a on the CPU, %a by kernels\n", what, i, c.rows, c.cols,
                       c.format->name, (double)a[i], (double)b[i]);
                return 0;
            }
        }
        compared += a.size();
        if (da != db)
            printf("# %s: digests differ\n", what);
        if (!(c.inverse == g.inverse))
            printf("# %s: inverse %a and %a\n", what, (double)c.inverse, (double)g.inverse);
        return da == db && c.inverse == g.inverse;
    }
};

struct counts {
    train_counts c, g;
    counts()
    {
        memset(this, 0, sizeof *this);
    }
    int same(const char *what)
    {
        if (failed(cuda.ops->finish(&cuda) | cpu.ops->finish(&cpu)))
            return 0;
        if (memcmp(&c, &g, sizeof c) == 0)
            return 1;
        printf("# %s: counts %llu %llu %llu %llu and %llu %llu %llu %llu\n", what, (unsigned long long)c.nonzero,
               (unsigned long long)c.lost, (unsigned long long)c.overflow, (unsigned long long)c.nonfinite,
               (unsigned long long)g.nonzero, (unsigned long long)g.lost, (unsigned long long)g.overflow,
               (unsigned long long)g.nonfinite);
        return 0;
    }
};

inline int same_float(const char *what, float a, float b)
{
    if (memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)))
        return 1;
    printf("# %s: %a on the CPU, %a by kernels\n", what, (double)a, (double)b);
    return 0;
}

/* A call on both engines; 1 if both went well. X is c or g. */
#define BOTH(operation, ...)                              \
    ([&] {                                                \
        int status;                                       \
        {                                                 \
            train_engine *const e = &cpu;                 \
            auto of = [](auto &both) { return &both.c; }; \
            (void)of;                                     \
            status = e->ops->operation(e, __VA_ARGS__);   \
        }                                                 \
        {                                                 \
            train_engine *const e = &cuda;                \
            auto of = [](auto &both) { return &both.g; }; \
            (void)of;                                     \
            status |= e->ops->operation(e, __VA_ARGS__);  \
        }                                                 \
        return !failed(status);                           \
    }())

inline int open_engines()
{
    char why[200] = "";
    gpu_host_cores_set(90);
    if (train_engine_cpu(&cpu, NULL) == 0 && train_engine_cuda(&cuda, why, sizeof why) == 0)
        return 0;
    printf("Bail out! no engine: %s %s\n", cpu.error, why);
    return -1;
}

inline const mpsim_format *format(const char *name)
{
    return mpsim_format_find(name);
}

static const char *const all_formats[] = {"binary32", "tf32", "fp16", "bf16", "e4m3", "e5m2"};
enum { FORMATS = 6 };

struct shape {
    size_t rows, cols;
};

static const shape shapes[] = {{1, 1}, {3, 5}, {257, 7}, {64, 64}, {600, 33}, {1, 300}};
