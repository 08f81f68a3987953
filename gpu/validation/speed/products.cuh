/* products.cuh -- measurements of matrix products: every path of one format and model computes
 * the same product, and all of its result is compared with the first path's, of which a sample is
 * compared with mpsim_dot. So mma.sync and wgmma meet at the whole depth, too. */
#pragma once

#include "cublas.h"
#include "measure.cuh"

#include <mpsim/mpsim.h>

namespace
{

enum { DOTS = 64, B_TRANSPOSED = 1, A_TRANSPOSED = 2 };

struct product_case {
    const char *format, *model, *more; /* more: what the model adds to a name */
    int any, blocks; /* any: the model is the same for all architectures; blocks: factors for blocks of 128 of
                                          the depth, of a for each row, of b for each 128 columns */
};

/* Codes of a bell for an n x n matrix; `seed` tells two matrices apart. Across: the same numbers,
 * transposed. */
__global__ void fill_codes_kernel(void *x, size_t n, GPU_CONSTANT(gpu_format) f, uint64_t seed, int across, int shift)
{
    GPU_FOR(i, n * n)
    {
        const uint64_t from = across ? i % n * n + i / n : i;
        gpu_store(f, x, i, gpu_encode(f, GPU_NEAREST, __uint_as_float(input_bits(BELL, from + seed))).code << shift);
    }
}

/* Factors of blocks: powers of two times 1 or 1.5, so that they are exact in any order of products. */
__host__ __device__ inline float factor_of(uint64_t i, uint64_t seed)
{
    const uint32_t r = mix(i + seed);
    return mpsim_f32_bits((124 + r % 5) << 23 | (r >> 8 & 1) << 22);
}

__global__ void fill_factors_kernel(float *x, size_t n, uint64_t seed)
{
    GPU_FOR(i, n)
    x[i] = factor_of(i, seed);
}

/* ---- a product on the device ---- */

struct product {
    session *s;
    const mpsim_format *format;
    mpsim_model model;
    size_t n, bytes;        /* order; of a code */
    int shift;              /* of codes in a word: tf32 for a library, 13 */
    int blocks;             /* product_case.blocks */
    memory a, b, across, d; /* d = a b; across: b transposed */
    memory a_across;        /* a transposed, where the row has it so */
    memory a_factors, b_factors;
};

const uint64_t A_FACTORS = (uint64_t)1 << 42, B_FACTORS = (uint64_t)1 << 43;

void fill_codes(product *x, const memory &m, const gpu_format &f, uint64_t seed, int across)
{
    GPU_LAUNCH(fill_codes_kernel, grid_of(x->s, fill_codes_kernel, 256), 256, 0, m.p, x->n, f, seed, across, x->shift);
}

void fill_factors(product *x)
{
    const size_t blocks = x->n / GPU_GEMM_BLOCK;
    x->a_factors.get(x->s, 4 * x->n * blocks);
    x->b_factors.get(x->s, 4 * blocks * blocks);
    if (x->s->error != cudaSuccess)
        return;
    GPU_LAUNCH(fill_factors_kernel, 64, 256, 0, static_cast<float *>(x->a_factors.p), x->n * blocks, A_FACTORS);
    GPU_LAUNCH(fill_factors_kernel, 64, 256, 0, static_cast<float *>(x->b_factors.p), blocks * blocks, B_FACTORS);
}

/* 0, or -1: the row says why. */
int product_set(product *x, session *s, const item *it)
{
    gpu_format g;
    const size_t n = s->plan->order;
    x->s = s;
    x->n = n;
    x->format = mpsim_format_find(it->product->format);
    x->bytes = mpsim_format_code_bytes(x->format);
    x->shift = it->library && strcmp(it->product->format, "tf32") == 0 ? 13 : 0;
    x->blocks = it->product->blocks;
    if (mpsim_model_parse(&x->model, it->model) != MPSIM_OK || gpu_format_set(&g, x->format) != 0) {
        give_up(s, GPU_FAILED, "no such model");
        return -1;
    }
    x->a.get(s, n * n * x->bytes);
    x->b.get(s, n * n * x->bytes);
    x->across.get(s, n * n * x->bytes);
    x->d.get(s, 4 * n * n);
    if (s->error != cudaSuccess)
        return -1;
    fill_codes(x, x->a, g, (uint64_t)1 << 40, 0);
    fill_codes(x, x->b, g, (uint64_t)1 << 41, 0);
    fill_codes(x, x->across, g, (uint64_t)1 << 41, 1);
    if (it->transposed & A_TRANSPOSED) {
        x->a_across.get(s, n * n * x->bytes);
        fill_codes(x, x->a_across, g, (uint64_t)1 << 40, 1);
    }
    if (x->blocks)
        fill_factors(x);
    keep_error(s, cudaMemset(x->d.p, 0xff, 4 * n * n));
    keep_error(s, cudaDeviceSynchronize());
    return s->error == cudaSuccess ? 0 : -1;
}

/* Words of a library back to codes. */
void shift_back(const product *x, std::vector<unsigned char> *line)
{
    for (size_t i = 0; x->shift && i < line->size(); i += 4) {
        uint32_t word;
        memcpy(&word, line->data() + i, 4);
        word >>= x->shift;
        memcpy(line->data() + i, &word, 4);
    }
}

/* The element of row r and column c, in the order of gemm.h: 0, or -1 if the model refuses. */
int dot_of(const product *x, size_t r, size_t c, const unsigned char *row, const unsigned char *column, uint32_t *to)
{
    const size_t depth = x->blocks ? +GPU_GEMM_BLOCK : x->n, blocks = x->n / depth;
    float s = 0;
    for (size_t i = 0; i < blocks; i++) {
        uint64_t sum;
        const size_t at = i * depth * x->bytes;
        if (mpsim_dot(&x->model, x->format, row + at, x->format, column + at, depth, 0, NULL, &sum) != MPSIM_OK)
            return -1;
        const float p =
            static_cast<float>(mpsim_decode(&x->model.result.format, sum)); /* exact: binary32 or fewer bits */
        const float a = factor_of(r * blocks + i, A_FACTORS), b = factor_of(c / GPU_GEMM_BLOCK * blocks + i, B_FACTORS);
        s = x->blocks ? fmaf(a * b, p, s) : p;
    }
    *to = mpsim_bits_f32(s);
    return 0;
}

/* Some elements of the result, and what mpsim_dot gives: 0, or -1 if the model refuses. */
int sample_dots(product *x, uint32_t got[DOTS], uint32_t want[DOTS])
{
    const size_t n = x->n, line = n * x->bytes;
    std::vector<unsigned char> row(line), column(line);
    for (uint64_t i = 0; i < DOTS; i++) {
        const size_t r = mix(7 * i) % n, c = mix(7 * i + 3) % n;
        const unsigned char *a = static_cast<const unsigned char *>(x->a.p);
        const unsigned char *across = static_cast<const unsigned char *>(x->across.p);
        const uint32_t *d = static_cast<const uint32_t *>(x->d.p);
        keep_error(x->s, cudaMemcpy(row.data(), a + r * line, line, cudaMemcpyDeviceToHost));
        keep_error(x->s, cudaMemcpy(column.data(), across + c * line, line, cudaMemcpyDeviceToHost));
        keep_error(x->s, cudaMemcpy(&got[i], d + r * n + c, sizeof *got, cudaMemcpyDeviceToHost));
        shift_back(x, &row);
        shift_back(x, &column);
        if (dot_of(x, r, c, row.data(), column.data(), &want[i]))
            return -1;
    }
    return 0;
}

/* ---- NVIDIA's libraries: by tolerance only, since their order of additions is not published ---- */

void compare_library(product *x)
{
    uint32_t got[DOTS], want[DOTS];
    double most = 0, apart = 0;
    if (sample_dots(x, got, want) != 0)
        return;
    for (int i = 0; i < DOTS; i++) {
        const double ours = static_cast<double>(mpsim_f32_bits(want[i]));
        const double e = fabs(static_cast<double>(mpsim_f32_bits(got[i])) - ours);
        most = std::max(most, fabs(ours));
        apart = e <= apart ? apart : e == e ? e : HUGE_VAL;
    }
    x->s->row->difference = most > 0 ? apart / most : 0;
}

/* After the runs: what went wrong, or where the library is and how far off it is. */
void finish_library(product *x, const char *function, int status, const gpu_library *library)
{
    char why[128];
    if (status) {
        const int refused = status == GPU_CUBLAS_ARCH_MISMATCH || status == GPU_CUBLAS_NOT_SUPPORTED;
        snprintf(why, sizeof why, "%s gives %d", function, status);
        give_up(x->s, refused ? GPU_SKIPPED : GPU_FAILED, why);
        return;
    }
    snprintf(x->s->row->text, sizeof x->s->row->text, "%.180s", library->name);
    compare_library(x);
}

void measure_cublas(session *s, const item *it)
{
    gpu_cublas library;
    char why[128];
    product x;
    int status = 0;
    if (product_set(&x, s, it) != 0)
        return;
    if (gpu_cublas_open(&library, s->plan->cublas, why, sizeof why)) {
        give_up(s, GPU_SKIPPED, why);
        return;
    }
    measure_time(s, [&] {
        status = status ? status
                        : gpu_cublas_gemm(&library, static_cast<int>(x.n), it->product->format, it->transposed, x.a.p,
                                          it->transposed ? x.across.p : x.b.p, x.d.p);
    });
    finish_library(&x, "cublasGemmEx", status, &library.library);
    gpu_cublas_close(&library);
}

void measure_cublaslt(session *s, const item *it)
{
    gpu_cublaslt library;
    char why[128];
    product x;
    memory workspace;
    if (product_set(&x, s, it) != 0)
        return;
    workspace.get(s, GPU_CUBLASLT_WORKSPACE);
    if (s->error != cudaSuccess)
        return;
    if (gpu_cublaslt_open(&library, s->plan->cublaslt, why, sizeof why)) {
        give_up(s, GPU_SKIPPED, why);
        return;
    }
    int status = gpu_cublaslt_prepare(&library, static_cast<int>(x.n), it->fast);
    const char *const function = status ? "cublasLtMatmulAlgoGetHeuristic" : "cublasLtMatmul";
    if (!status)
        measure_time(
            s, [&] { status = status ? status : gpu_cublaslt_gemm(&library, x.a.p, x.across.p, x.d.p, workspace.p); });
    finish_library(&x, function, status, &library.library);
    gpu_cublaslt_close(&library);
}

/* ---- our kernels ---- */

/* A launch of a path. 0, or -1: the row says why. */
int launch_path(product *x, const item *it, void *d)
{
    char why[160] = "";
    gpu_product p = {};
    p.model = &x->model;
    p.rows = p.columns = p.depth = x->n;
    const int a_across = (it->transposed & A_TRANSPOSED) != 0, b_across = (it->transposed & B_TRANSPOSED) != 0;
    p.a = mpsim_matrix{x->format, a_across ? x->a_across.p : x->a.p, x->n, a_across};
    p.b = mpsim_matrix{x->format, b_across ? x->across.p : x->b.p, x->n, b_across};
    p.factor = 1;
    p.format = mpsim_format_find("binary32");
    p.d = d;
    p.d_stride = x->n;
    if (x->blocks) {
        p.a_factors = gpu_factors{static_cast<const float *>(x->a_factors.p), 1, x->n / GPU_GEMM_BLOCK};
        p.b_factors = gpu_factors{static_cast<const float *>(x->b_factors.p), GPU_GEMM_BLOCK, x->n / GPU_GEMM_BLOCK};
    }
    if (gpu_gemm(&p, x->s->plan->sm, it->path, why, sizeof why) == 0)
        return 0;
    give_up(x->s, strncmp(why, "matrix product: ", 16) == 0 ? GPU_FAILED : GPU_SKIPPED, why);
    return -1;
}

/* The first path of the same product, or NULL: it is this one. */
const item *first_path(const session *s, size_t *at)
{
    for (size_t i = 0; i < s->at; i++)
        if (s->items[i].product == s->items[s->at].product && !s->items[i].library)
            return *at = i, &s->items[i];
    return NULL;
}

void check_sample(product *x, const char *more)
{
    uint32_t got[DOTS], want[DOTS];
    gpu_speed_row *r = x->s->row;
    r->checked = sample_dots(x, got, want) ? -1 : memcmp(got, want, sizeof got) == 0;
    snprintf(r->text, sizeof r->text, "%d elements by mpsim_dot, model %s%s", DOTS, x->model.name, more);
}

/* All of the result with that of the first path, which is computed again, or a sample. */
void check_path(product *x)
{
    size_t at = 0;
    session *s = x->s;
    const item *first = first_path(s, &at);
    char text[160] = "";
    if (!first || s->rows[at].status != GPU_DONE || s->rows[at].checked != 1) {
        if (first)
            snprintf(text, sizeof text, "; unchecked: all of it, %.64s was not measured well", first->name);
        check_sample(x, text);
        return;
    }
    memory again;
    again.get(s, 4 * x->n * x->n);
    if (s->error != cudaSuccess || launch_path(x, first, again.p) != 0)
        return;
    compare(s, x->d.p, again.p, x->n * x->n);
    snprintf(s->row->text, sizeof s->row->text, "all elements: those of %s", strchr(first->name, ',') + 2);
}

void measure_path(session *s, const item *it)
{
    product x;
    if (product_set(&x, s, it) != 0 || launch_path(&x, it, x.d.p) != 0)
        return;
    keep_error(s, cudaDeviceSynchronize());
    if (s->error == cudaSuccess)
        check_path(&x);
    if (s->error == cudaSuccess && s->row->status == GPU_DONE)
        measure_time(s, [&] { launch_path(&x, it, x.d.p); });
}

/* ---- all of them ---- */

void set_share_of_libraries(session *s)
{
    double best = 0;
    const char *const format = s->items[s->at].product->format;
    for (size_t i = 0; i <= s->at; i++)
        if (s->items[i].library && strcmp(s->items[i].product->format, format) == 0)
            best = std::max(best, rate_of(&s->rows[i]));
    if (best > 0)
        s->row->share = rate_of(s->row) / best;
}

/* Formats of operands, a bit each. */
enum { FP16 = 1, BF16 = 2, TF32 = 4, BINARY32 = 8, E4M3 = 16 };

unsigned bit_of(const char *format)
{
    static const char *const names[] = {"fp16", "bf16", "tf32", "binary32", "e4m3"};
    unsigned i = 0;
    while (strcmp(names[i], format) != 0)
        i++;
    return 1u << i;
}

struct product_way {
    const char *name, *group;
    unsigned formats;
    void (*measure)(session *s, const item *it);
    gpu_gemm_path path;
    int transposed, fast;
};

const product_way product_ways[] = {
    {"cuBLAS", "cuBLAS", FP16 | BF16 | TF32 | BINARY32, measure_cublas, GPU_GEMM_AUTO, 0, 0},
    {"cuBLAS, b transposed", "cuBLAS", FP16 | BF16 | TF32 | BINARY32, measure_cublas, GPU_GEMM_AUTO, 1, 0},
    {"cublasLt, b transposed", "cublasLt", E4M3, measure_cublaslt, GPU_GEMM_AUTO, 1, 0},
    {"cublasLt, fast, b transposed", "cublasLt", E4M3, measure_cublaslt, GPU_GEMM_AUTO, 1, 1},
    {"fma", "fma", BINARY32, measure_path, GPU_GEMM_FMA, 0, 0},
    {"fma, b transposed", "fma", BINARY32, measure_path, GPU_GEMM_FMA, 1, 0},
    {"mma.sync", "mma.sync", TF32, measure_path, GPU_GEMM_MMA, 0, 0},
    {"mma.sync, b transposed", "mma.sync", TF32, measure_path, GPU_GEMM_MMA, 1, 0},
    {"mma.sync", "mma.sync", FP16 | BF16, measure_path, GPU_GEMM_FAST, 0, 0},
    {"mma.sync, b transposed", "mma.sync", FP16 | BF16, measure_path, GPU_GEMM_FAST, 1, 0},
    {"mma.sync 64 x 64", "mma.sync 64 x 64", FP16 | BF16, measure_path, GPU_GEMM_SQUARE, 0, 0},
    {"mma.sync 64 x 64, b transposed", "mma.sync 64 x 64", FP16 | BF16, measure_path, GPU_GEMM_SQUARE, 1, 0},
    {"wgmma, b transposed", "wgmma", FP16 | BF16 | E4M3, measure_path, GPU_GEMM_WGMMA, 1, 0},
    {"wgmma 128 x 256, b transposed", "wgmma 128 x 256", FP16 | BF16 | E4M3, measure_path, GPU_GEMM_WIDE, 1, 0},
    {"wgmma by TMA", "wgmma by TMA", FP16 | BF16, measure_path, GPU_GEMM_TMA, 0, 0},
    {"wgmma by TMA, a transposed", "wgmma by TMA", FP16 | BF16, measure_path, GPU_GEMM_TMA, A_TRANSPOSED, 0},
    {"wgmma by TMA, b transposed", "wgmma by TMA", FP16 | BF16 | E4M3, measure_path, GPU_GEMM_TMA, 1, 0}};

/* Whether there is such a row: libraries once for a format, which the first model has. */
int has_way(const gpu_speed_plan *plan, const product_case *c, const product_way *w)
{
    const int is_wgmma = w->path == GPU_GEMM_WGMMA || w->path == GPU_GEMM_WIDE || w->path == GPU_GEMM_TMA;
    const int is_first = !c->more[0];
    return (w->formats & bit_of(c->format)) != 0 && (!is_wgmma || plan->sm == 90) &&
           (is_first || (w->measure == measure_path && w->path != GPU_GEMM_WIDE)); /* no such kernel */
}

/* The ways to compute one model's product. */
void list_ways(item_list *list, const gpu_speed_plan *plan, const product_case *c, const char *model)
{
    const double n = static_cast<double>(plan->order);
    for (const product_way &w : product_ways) {
        if (!has_way(plan, c, &w))
            continue;
        item *it = add_item(list, "", w.measure);
        snprintf(it->name, sizeof it->name, "%.8s %zu^3, %.32s%.12s", c->format, plan->order, w.name, c->more);
        snprintf(it->group, sizeof it->group, "%.20s %.8s", w.group, c->format);
        snprintf(it->model, sizeof it->model, "%s", model);
        it->flops = 2 * n * n * n;
        it->product = c;
        it->path = w.path;
        it->library = w.measure != measure_path;
        it->transposed = w.transposed;
        it->fast = w.fast;
    }
}

void list_products(item_list *list, const gpu_speed_plan *plan)
{
    static const product_case cases[] = {{"fp16", "fp16-fp32", "", 0, 0},
                                         {"bf16", "bf16-fp32", "", 0, 0},
                                         {"tf32", "tf32-fp32", "", 0, 0},
                                         {"binary32", "fma", "", 1, 0},
                                         {"e4m3", "wgmma-fp8-fp32", "", 0, 0},
                                         {"e4m3", "wgmma-fp8-promoted", ", promoted", 0, 0},
                                         {"e4m3", "wgmma-fp8-fp32", ", blocks", 0, 1}};
    for (const product_case &c : cases) {
        const char *model = c.any ? c.model : model_of_device(c.model, plan->sm);
        if (model && (c.blocks ? gpu_gemm_has_factors(model, plan->sm) : gpu_gemm_has(model, plan->sm)))
            list_ways(list, plan, &c, model);
    }
}

} // namespace
