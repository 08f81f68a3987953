/* engine_lists.cuh -- operations on many tensors at once: gradients. */
#pragma once

#include "engine.cuh"
#include "lists.cuh"

/* Bytes, one for each of n, that are 0; NULL with a line. */
static unsigned char *untaken(train_engine *e, size_t n)
{
    unsigned char *taken = static_cast<unsigned char *>(staging_of(e, n));
    if (taken)
        memset(taken, 0, n);
    return taken;
}

static int alike_pairs(const train_pair *a, const train_pair *b)
{
    return mpsim_format_same(a->x->format, b->x->format) && mpsim_format_same(a->y->format, b->y->format);
}

/* Pairs in launches of those whose formats are alike; result(i): of pair i. blocks_of(i, n): of its n elements. run(blocks,
 * first pair, list). */
template <class Result, class Blocks, class Run>
static int run_pairs(train_engine *e, const char *operation, const train_pair *list, size_t n, Result result,
                     Blocks blocks_of, Run run)
{
    gpu_pairs now;
    size_t first = 0;
    unsigned blocks;
    unsigned char *taken = untaken(e, n);
    if (!taken)
        return -1;
    const auto alike = [&](size_t a, size_t b) { return alike_pairs(&list[a], &list[b]); };
    const auto fill = [&](gpu_pair *p, size_t i) {
        *p = gpu_pair{at_of(list[i].y), at_of(list[i].x), size_of(list[i].x), result(i)};
        return blocks_of(i, p->n);
    };
    while ((blocks = gpu_list_next(&now, taken, n, &first, alike, fill)) > 0)
        run(blocks, list[first], now);
    return cuda_launched(e, operation);
}

static unsigned blocks_of_pair(size_t, size_t n)
{
    return gpu_list_blocks(n);
}

/* ---- gradients ---- */

/* n zeros on the device, until the next operation; NULL with a line. */
template <class T>
static T *zeros_of(train_engine *e, const char *operation, size_t n)
{
    T *to = static_cast<T *>(buffer_of(e, 0, n * sizeof(T)));
    return to && cuda_done(e, operation, gpu_set_async(to, 0, n * sizeof(T))) == 0 ? to : NULL;
}

/* They come back; NULL with a line. */
template <class T>
static const T *results_of(train_engine *e, const char *operation, const T *on_device, size_t n)
{
    T *host = static_cast<T *>(staging_of(e, n * sizeof(T)));
    return host && read_back(e, operation, host, on_device, n * sizeof(T)) == 0 ? host : NULL;
}

static int multiply(train_engine *e, const char *operation, const train_pair *list, size_t n, float factor, int divide,
                    unsigned *found)
{
    return run_pairs(
        e, operation, list, n, [&](size_t i) { return found ? found + i : NULL; }, blocks_of_pair,
        [&](unsigned blocks, const train_pair &first, const gpu_pairs &now) {
            GPU_LAUNCH(unscale_kernel, blocks, GPU_LIST_THREADS, 0, format_of(first.y), format_of(first.x), now, factor,
                       divide);
        });
}

/* The same rounding of the factor for tensors of one format. */
static int unscale_run(train_engine *e, const train_pair *list, size_t n, mpsim_unscale_rule rule, double scale,
                       unsigned *found)
{
    const int divide = rule == MPSIM_UNSCALE_DIVIDE;
    const float factor = divide ? (float)scale : mpsim_unscale_factor(scale);
    for (size_t i = 0; i < n; i++)
        list[i].y->inverse = 1;
    if (rule != MPSIM_UNSCALE_ROUNDED)
        return multiply(e, "unscale", list, n, factor, divide, found);
    for (size_t i = 0, run; i < n; i += run) {
        for (run = 1; i + run < n && mpsim_format_same(list[i].y->format, list[i + run].y->format);)
            run++;
        if (multiply(e, "unscale", list + i, run, mpsim_math_round(&format_of(list[i].y).math, factor), 0,
                     found ? found + i : NULL))
            return -1;
    }
    return 0;
}

static int cuda_unscale(train_engine *e, const train_pair *list, size_t n, mpsim_unscale_rule rule, double scale,
                        unsigned *found)
{
    unsigned *on_device = found ? zeros_of<unsigned>(e, "unscale", n) : NULL;
    if ((found && !on_device) || unscale_run(e, list, n, rule, scale, on_device))
        return -1;
    const unsigned *host = found ? results_of(e, "unscale", on_device, n) : NULL;
    for (size_t i = 0; host && i < n; i++)
        found[i] |= host[i];
    return found && !host ? -1 : 0;
}

/* Each with itself; NULL with a line. The caller frees them. */
static train_pair *pairs_of(train_engine *e, const char *operation, const train_tensor *const *x, size_t n)
{
    train_pair *list = static_cast<train_pair *>(calloc(n ? n : 1, sizeof *list));
    if (!list)
        cuda_fail(e, "%s: out of memory", operation);
    for (size_t i = 0; list && i < n; i++) {
        list[i].y = const_cast<train_tensor *>(x[i]);
        list[i].x = x[i];
    }
    return list;
}

static int norm_run(train_engine *e, const train_pair *list, size_t n, const mpsim_format *const *f, float *norms)
{
    gpu_squares *sums = zeros_of<gpu_squares>(e, "norm", n);
    if (!sums || run_pairs(
                     e, "norm", list, n, [&](size_t i) { return sums + i; }, blocks_of_pair,
                     [&](unsigned blocks, const train_pair &first, const gpu_pairs &now) {
                         GPU_LAUNCH(squares_kernel, blocks, GPU_LIST_THREADS, 0, format_of(first.x), now);
                     }))
        return -1;
    const gpu_squares *host = results_of(e, "norm", sums, n);
    for (size_t i = 0; host && i < n; i++)
        norms[i] = gpu_squares_norm(&host[i], f ? f[i] : NULL);
    return host ? 0 : -1;
}

static int cuda_norm(train_engine *e, const train_tensor *const *x, size_t n, const mpsim_format *const *f,
                     float *norms)
{
    train_pair *list = pairs_of(e, "norm", x, n);
    const int code = list ? norm_run(e, list, n, f, norms) : -1;
    free(list);
    return code;
}

static int cuda_scale(train_engine *e, train_tensor *const *x, size_t n, float factor)
{
    train_pair *list = pairs_of(e, "scale", x, n);
    const int code = list ? multiply(e, "scale", list, n, factor, 0, NULL) : -1;
    free(list);
    return code;
}
