/* products.cuh -- measurements of matrix products: every path of one format and model computes
 * the same product, and all of its result is compared with the first path's, of which a sample is
 * compared with mpsim_dot. So mma.sync and wgmma meet at the whole depth, too. */
#ifndef MPSIM_GPU_SPEED_PRODUCTS_CUH
#define MPSIM_GPU_SPEED_PRODUCTS_CUH

#include "cublas.h"
#include "../kernels/gemm.h"
#include "measure.cuh"

#include <mpsim/mpsim.h>

namespace {

enum { DOTS = 64 };

/* Codes of a bell for an n x n matrix; `seed` tells two matrices apart. Across: the same numbers,
 * transposed. */
__global__ void fill_codes_kernel(void *x, size_t n, const __grid_constant__ gpu_format f,
                                  uint64_t seed, int across)
{
    GPU_FOR(i, n * n) {
        const uint64_t from = across ? i % n * n + i / n : i;
        gpu_store(f, x, i,
                  gpu_encode(f, GPU_NEAREST, __uint_as_float(input_bits(BELL, from + seed))).code);
    }
}

struct product_memory { /* of the device: d = a b; across: b transposed; first: the first path's d */
    memory a, b, across, d, first;
};

struct product_problem { /* of one format and model */
    session *s;
    const product_memory *at;
    const gpu_cublas *cublas; /* or NULL */
    const char *no_cublas;
    const char *format_name, *first_name; /* first_name: of the first path, or NULL */
    const char *more;                     /* what the model adds to a name */
    const mpsim_format *format;
    mpsim_model model;
    size_t n, bytes; /* of a code */
    double flops, best; /* best: of cuBLAS, a second */
    size_t rows; /* the first row of this problem */
};

/* The text begins with format and order. */
gpu_speed_row *add_product(product_problem *x, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "%.8s %zu^3, %.32s%.12s", x->format_name, x->n, what, x->more);
    return add_row(x->s, name, 0, x->flops);
}

void fill_codes(session *s, const memory &m, const gpu_format &f, uint64_t seed, int across)
{
    GPU_LAUNCH(fill_codes_kernel, grid_of(s, fill_codes_kernel, 256), 256, 0, m.p, s->plan->order, f,
               seed, across);
}

/* 0, or -1: not a model or format of the device. */
int product_set(product_problem *x, const char *model)
{
    gpu_format g;
    x->format = mpsim_format_find(x->format_name);
    if (mpsim_model_parse(&x->model, model) != MPSIM_OK || gpu_format_set(&g, x->format) != 0)
        return -1;
    x->n = x->s->plan->order;
    x->bytes = mpsim_format_code_bytes(x->format);
    const double n = static_cast<double>(x->n);
    x->flops = 2 * n * n * n;
    x->rows = x->s->count;
    fill_codes(x->s, x->at->a, g, (uint64_t)1 << 40, 0);
    fill_codes(x->s, x->at->b, g, (uint64_t)1 << 41, 0);
    fill_codes(x->s, x->at->across, g, (uint64_t)1 << 41, 1);
    return 0;
}

/* ---- cuBLAS ---- */

/* What cuBLAS makes of the same matrices: the last result, or empty. */
std::vector<uint32_t> measure_cublas(product_problem *x)
{
    std::vector<uint32_t> result;
    if (x->bytes != 2)
        return result;
    if (!x->cublas) {
        gpu_speed_row *r = add_product(x, "cuBLAS");
        snprintf(r->text, sizeof r->text, "%s", x->no_cublas);
        return result;
    }
    for (int transposed = 0; transposed < 2; transposed++) {
        gpu_speed_row *r = add_product(x, transposed ? "cuBLAS, b transposed" : "cuBLAS");
        int status = 0;
        set_time(x->s, r, seconds_of(x->s, [&] {
            status |= gpu_cublas_gemm(x->cublas, static_cast<int>(x->n),
                                      strcmp(x->format_name, "bf16") == 0, transposed, x->at->a.p,
                                      transposed ? x->at->across.p : x->at->b.p, x->at->d.p);
        }));
        if (status) {
            snprintf(r->text, sizeof r->text, "cublasGemmEx gives %d", status);
            continue;
        }
        snprintf(r->text, sizeof r->text, "%.120s", x->cublas->name);
        if (r->seconds > 0)
            x->best = std::max(x->best, x->flops / r->seconds);
        result.resize(x->n * x->n);
        keep_error(x->s, cudaMemcpy(result.data(), x->at->d.p, 4 * result.size(),
                                    cudaMemcpyDeviceToHost));
    }
    return result;
}

/* By tolerance only: its order of additions is not published. */
void compare_cublas(product_problem *x, const std::vector<uint32_t> &theirs)
{
    std::vector<uint32_t> ours(theirs.size());
    double most = 0, apart = 0;
    if (theirs.empty() || !x->first_name)
        return;
    keep_error(x->s, cudaMemcpy(ours.data(), x->at->first.p, 4 * ours.size(),
                                cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < ours.size(); i++) {
        const double a = static_cast<double>(mpsim_f32_bits(ours[i]));
        const double b = static_cast<double>(mpsim_f32_bits(theirs[i]));
        most = std::max(most, fabs(a));
        apart = std::max(apart, fabs(a - b));
    }
    for (size_t i = x->rows; i < x->s->count && most > 0; i++) {
        gpu_speed_row *r = &x->s->rows[i];
        if (strstr(r->name, "cuBLAS, b transposed"))
            r->difference = apart / most;
    }
}

/* ---- our kernels ---- */

/* 64 elements of the first path's result by mpsim_dot: 1, 0, or -1 if the model refuses. */
int product_matches(product_problem *x)
{
    const size_t n = x->n, bytes = x->bytes;
    std::vector<unsigned char> row(n * bytes), column(n * bytes);
    for (uint64_t i = 0; i < DOTS; i++) {
        const size_t r = mix(7 * i) % n, c = mix(7 * i + 3) % n;
        uint64_t want;
        uint32_t got = 0;
        const unsigned char *a = static_cast<const unsigned char *>(x->at->a.p);
        const unsigned char *across = static_cast<const unsigned char *>(x->at->across.p);
        const uint32_t *first = static_cast<const uint32_t *>(x->at->first.p);
        keep_error(x->s, cudaMemcpy(row.data(), a + r * n * bytes, n * bytes,
                                    cudaMemcpyDeviceToHost));
        keep_error(x->s, cudaMemcpy(column.data(), across + c * n * bytes, n * bytes,
                                    cudaMemcpyDeviceToHost));
        keep_error(x->s, cudaMemcpy(&got, first + r * n + c, sizeof got, cudaMemcpyDeviceToHost));
        if (mpsim_dot(&x->model, x->format, row.data(), x->format, column.data(), n, 0, NULL,
                      &want) != MPSIM_OK)
            return -1;
        if (got != want)
            return 0;
    }
    return 1;
}

void check_path(product_problem *x, gpu_speed_row *r, const char *name)
{
    const size_t total = x->n * x->n;
    if (!x->first_name) {
        x->first_name = name;
        keep_error(x->s, cudaMemcpy(x->at->first.p, x->at->d.p, 4 * total,
                                    cudaMemcpyDeviceToDevice));
        r->checked = product_matches(x);
        snprintf(r->text, sizeof r->text, "%d elements by mpsim_dot, model %s", DOTS,
                 x->model.name);
        return;
    }
    compare(x->s, r, x->at->d.p, x->at->first.p, total);
    r->checked = r->differing == 0;
    snprintf(r->text, sizeof r->text, "all elements: those of %s", x->first_name);
}

void measure_path(product_problem *x, const char *name, gpu_gemm_path path, int transposed)
{
    char why[128];
    gpu_product p = {};
    p.model = &x->model;
    p.rows = p.columns = p.depth = x->n;
    p.a = mpsim_matrix{x->format, x->at->a.p, x->n, 0};
    p.b = mpsim_matrix{x->format, transposed ? x->at->across.p : x->at->b.p, x->n, transposed};
    p.factor = 1;
    p.format = mpsim_format_find("binary32");
    p.d = x->at->d.p;
    p.d_stride = x->n;
    keep_error(x->s, cudaMemset(p.d, 0xff, 4 * x->n * x->n));
    const int failed = gpu_gemm(&p, x->s->plan->sm, path, why, sizeof why) != 0;
    if (failed && strncmp(why, "matrix product: ", 16) != 0)
        return; /* not of this device or format */
    gpu_speed_row *r = add_product(x, name);
    if (failed) {
        snprintf(r->text, sizeof r->text, "FAILED: %.100s", why);
        return;
    }
    check_path(x, r, name);
    r->seconds = seconds_of(x->s, [&] { gpu_gemm(&p, x->s->plan->sm, path, why, sizeof why); });
}

/* The kernels of one format, and cuBLAS. */
void measure_products(product_problem x, const char *model)
{
    static const struct {
        const char *name;
        gpu_gemm_path path;
        int transposed;
    } paths[] = {{"mma.sync", GPU_GEMM_FAST, 0}, {"mma.sync, b transposed", GPU_GEMM_FAST, 1},
                 {"wgmma, b transposed", GPU_GEMM_WGMMA, 1},
                 {"wgmma 128 x 256, b transposed", GPU_GEMM_WIDE, 1}};
    if (product_set(&x, model) != 0)
        return;
    const std::vector<uint32_t> theirs = measure_cublas(&x);
    for (const auto &k : paths)
        measure_path(&x, k.name, k.path, k.transposed);
    compare_cublas(&x, theirs);
    for (size_t i = x.rows; i < x.s->count; i++) {
        gpu_speed_row *r = &x.s->rows[i];
        if (r->seconds > 0 && x.best > 0)
            r->share = r->flops / r->seconds / x.best;
    }
}

void measure_gemm(session *s)
{
    static const struct {
        const char *format, *model, *more;
    } formats[] = {{"fp16", "fp16-fp32", ""},
                   {"bf16", "bf16-fp32", ""},
                   {"e4m3", "wgmma-fp8-fp32", ""},
                   {"e4m3", "wgmma-fp8-promoted", ", promoted"}};
    static const char *const architectures[] = {"ampere", "ada", "hopper", "blackwell",
                                                "rtx-blackwell"};
    const size_t total = s->plan->order * s->plan->order;
    product_memory m;
    gpu_cublas cublas;
    char why[100] = "";
    keep_error(s, m.a.get(2 * total));
    keep_error(s, m.b.get(2 * total));
    keep_error(s, m.across.get(2 * total));
    keep_error(s, m.d.get(4 * total));
    keep_error(s, m.first.get(4 * total));
    if (s->error != cudaSuccess)
        return;
    const int found = gpu_cublas_open(&cublas, s->plan->cublas, why, sizeof why) == 0;
    for (const auto &f : formats)
        for (const char *arch : architectures) {
            product_problem x = {};
            char model[96];
            x.s = s;
            x.at = &m;
            x.cublas = found ? &cublas : NULL;
            x.no_cublas = why;
            x.format_name = f.format;
            x.more = f.more;
            snprintf(model, sizeof model, "%s-%s", arch, f.model);
            if (gpu_gemm_has(model, s->plan->sm))
                measure_products(x, model);
        }
    if (found)
        gpu_cublas_close(&cublas);
}

} // namespace

#endif
