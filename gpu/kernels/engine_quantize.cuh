/* engine_quantize.cuh -- the operation quantize, of one tensor and of many: rules, scales, passes. */
#pragma once

#include "engine_lists.cuh"
#include "blocks_launch.cuh"
#include "hadamard.cuh"
#include "quantize.cuh"

#include <mpsim/block.h>
#include <mpsim/recipe.h>

/* The rule as kernels know it, GPU_SCALE_NONE: there is none. */
static int scale_rule_of(const mpsim_block_recipe *b, int whole)
{
    static const struct {
        int rule, kernel;
    } rows[] = {{MPSIM_SCALE_E8M0_TE, GPU_SCALE_E8M0},          {MPSIM_SCALE_E8M0_FLOOR, GPU_SCALE_FLOOR},
                {MPSIM_SCALE_E8M0_EVEN, GPU_SCALE_EVEN},        {MPSIM_SCALE_E8M0_CEIL, GPU_SCALE_CEIL},
                {MPSIM_SCALE_E8M0_RCEIL, GPU_SCALE_RCEIL},      {MPSIM_SCALE_AMAX_TE, GPU_SCALE_AMAX},
                {MPSIM_SCALE_NVFP4_TE, GPU_SCALE_NVFP4},        {MPSIM_SCALE_AMAX_DEEPSEEK, GPU_SCALE_DEEPSEEK},
                {MPSIM_SCALE_E8M0_DEEPGEMM, GPU_SCALE_DEEPGEMM}};
    const int fp4 = b->rule == MPSIM_SCALE_NVFP4_TE;
    const int columns_fit = b->block_cols == 16 || b->block_cols % GPU_TILE == 0;
    if (b->element_mode != MPSIM_ROUND_NEAREST_EVEN && !fp4)
        return GPU_SCALE_NONE;
    if (b->rule == MPSIM_SCALE_GIVEN || (b->rule == MPSIM_SCALE_AMAX_TE && whole))
        return GPU_SCALE_ONE;
    for (const auto &row : rows)
        if (row.rule == b->rule && columns_fit && !whole)
            return row.kernel;
    return GPU_SCALE_NONE;
}

static int in_one_block(const mpsim_block_recipe *b)
{
    return b->block_rows == 0 && b->block_cols == 0;
}

/* The element's format must be one of the device: see check_recipe. */
static void quantize_set(gpu_quantize *g, const train_quantized *t)
{
    const mpsim_block_recipe *b = t->how->recipe;
    const int rule = b->rule;
    memset(g, 0, sizeof *g);
    gpu_format_set(&g->element, mpsim_format_find(b->element));
    g->from = format_of(t->x);
    g->to = format_of(t->y);
    g->codes = in_one_block(b) || t->how->blocks;
    g->rule = scale_rule_of(b, in_one_block(b));
    g->span = b->block_cols == 16 ? 16 : GPU_TILE;
    g->in_warp = g->rule != GPU_SCALE_ONE && b->block_rows == 1 && b->block_cols == (uint32_t)g->span;
    g->keeps_nan = (rule >= MPSIM_SCALE_E8M0_FLOOR && rule <= MPSIM_SCALE_E8M0_RCEIL) ||
                   rule == MPSIM_SCALE_E8M0_DEEPGEMM;
    g->max = (float)mpsim_format_max(&g->element.math.format);
    g->epsilon = (float)b->amax_epsilon;
    g->for_inf = (float)b->scale_for_inf;
    g->power_of_two = b->power_of_two;
    g->stochastic = mpsim_is_stochastic((mpsim_round_mode)b->element_mode);
    if (g->rule == GPU_SCALE_NVFP4)
        gpu_format_set(&g->scale, mpsim_format_find("e4m3"));
}

/* All but its scale of the tensor and where results go. */
static void quantized_set(gpu_quantized *g, const train_quantized *t)
{
    const mpsim_block_recipe *b = t->how->recipe;
    const train_tensor *y = t->y;
    memset(g, 0, sizeof *g);
    g->y = at_of(y);
    g->x = at_of(t->x);
    g->rows = y->rows;
    g->cols = y->cols;
    g->block_rows = b->block_rows ? b->block_rows : y->rows ? y->rows : 1;
    g->block_cols = b->block_cols ? b->block_cols : y->cols ? y->cols : 1;
    g->grid_cols = (y->cols + g->block_cols - 1) / g->block_cols;
    g->transposed = t->how->transposed != 0;
    g->factors = static_cast<float *>(at_of(t->how->blocks));
    g->rng = t->how->rng;
}

static unsigned quantized_tiles(const gpu_quantized *g)
{
    return (unsigned)((g->cols + GPU_TILE - 1) / GPU_TILE * ((g->rows + GPU_TILE - 1) / GPU_TILE));
}

static void quantize_launch(const gpu_quantize &g, const gpu_quantized_list &list)
{
    if (list.n > 0)
        GPU_LAUNCH(quantize_kernel, list.end[list.n - 1], dim3(GPU_TILE, GPU_TILE_ROWS), 0, g, list);
}

static void quantize_launch_one(const gpu_quantize &g, const gpu_quantized &own)
{
    gpu_quantized_list list;
    list.end[0] = quantized_tiles(&own);
    list.n = list.end[0] > 0;
    list.item[0] = own;
    quantize_launch(g, list);
}

/* Blocks whose largest element no single warp sees: their amax first. */
static int quantize_blocks(train_engine *e, const gpu_quantize &g, gpu_quantized *own)
{
    const size_t blocks = own->grid_cols * ((own->rows + own->block_rows - 1) / own->block_rows);
    gpu_quantize first = g;
    gpu_quantized most = *own;
    unsigned *amax = static_cast<unsigned *>(buffer_of(e, 0, blocks * sizeof *amax));
    if (!amax || cuda_done(e, "quantize", gpu_set_async(amax, 0, blocks * sizeof *amax)))
        return -1;
    first.rule = GPU_SCALE_NONE;
    most.block_amax = own->block_amax = amax;
    most.amax = NULL;
    quantize_launch_one(first, most);
    quantize_launch_one(g, *own);
    return 0;
}

/* The largest magnitude of the whole tensor, for which the host waits. */
static int quantize_amax(train_engine *e, const gpu_quantize &g, const gpu_quantized &own, float *amax)
{
    gpu_quantize first = g;
    gpu_quantized most = own;
    first.rule = GPU_SCALE_NONE;
    most.amax = &self_of(e)->results->amax;
    if (results_begin(e, "quantize"))
        return -1;
    quantize_launch_one(first, most);
    const cuda_results *r = results_end(e, "quantize");
    if (r)
        *amax = mpsim_f32_bits(r->amax);
    return r ? 0 : -1;
}

/* NVFP4's scales of the tensor, as nvfp4_te_tensor has them. */
static int quantize_tensor(train_engine *e, const gpu_quantize &g, gpu_quantized *own)
{
    float whole = 0;
    if (quantize_amax(e, g, *own, &whole))
        return -1;
    const float most = 448 * g.max / whole;
    const float encode = whole == 0 || most == 0 ? 1 : most < FLT_MAX ? most : FLT_MAX;
    own->encode = encode * (1 / g.max);
    own->decode = 1 / encode;
    own->whole = whole;
    return 0;
}

/* Where a tensor's results go. */
static int quantized_results(train_engine *e, const train_quantized *t, gpu_quantized *own)
{
    int failed = 0;
    own->counts = slot_of(e, t->counts, &failed);
    own->amax = reinterpret_cast<unsigned *>(t->amax ? slot_for(e, CUDA_AMAX, t->amax, NULL) : NULL);
    return failed || (t->amax && !own->amax) ? -1 : 0;
}

/* The values of the codes of a tensor with one scale. */
static void set_inverse(const train_quantized *t, float factor)
{
    t->y->inverse = in_one_block(t->how->recipe) && !t->how->blocks && size_of(t->y) ? 1 / factor : 1;
}

static int waits_for_amax(const gpu_quantize &g, const train_quantized *t)
{
    return g.rule == GPU_SCALE_NVFP4 || (g.rule == GPU_SCALE_ONE && t->how->recipe->rule == MPSIM_SCALE_AMAX_TE);
}

/* One that takes more than a launch. */
static int quantize_alone(train_engine *e, const gpu_quantize &g, const train_quantized *t)
{
    gpu_quantized own;
    float whole = 0;
    quantized_set(&own, t);
    if (quantized_results(e, t, &own))
        return -1;
    if (g.rule == GPU_SCALE_NVFP4) {
        if (quantize_tensor(e, g, &own))
            return -1;
    } else if (waits_for_amax(g, t)) {
        if (quantize_amax(e, g, own, &whole))
            return -1;
        own.factor = mpsim_fp8_scale(whole, g.max, g.epsilon, g.for_inf, g.power_of_two);
    }
    set_inverse(t, own.factor);
    if (g.rule != GPU_SCALE_ONE && !g.in_warp)
        return quantize_blocks(e, g, &own);
    quantize_launch_one(g, own);
    return 0;
}

/* ---- the usual ones, by blocks.cuh ---- */

/* Whether what kernels know of both is one. */
static int alike_quantized(const train_quantized *s, const train_quantized *t)
{
    const mpsim_block_recipe *a = s->how->recipe, *b = t->how->recipe;
    return mpsim_format_same(s->x->format, t->x->format) && mpsim_format_same(s->y->format, t->y->format) &&
           !s->how->blocks == !t->how->blocks && strcmp(a->element, b->element) == 0 && a->rule == b->rule &&
           a->element_mode == b->element_mode && a->power_of_two == b->power_of_two && a->block_rows == b->block_rows &&
           a->block_cols == b->block_cols && a->amax_epsilon == b->amax_epsilon && a->scale_for_inf == b->scale_for_inf;
}

/* Tensors of fewer elements have a launch of quantize_kernel, in both directions, if no amax is waited for. */
enum { USUAL_LEAST = 1 << 16 };

/* What a tensor is for these kernels; form.way GPU_WAY_NONE: they have none. `amax`: where its largest magnitude goes. */
struct usual_tensor {
    gpu_recipe recipe;
    gpu_blocks_form form;
    gpu_blocked tensor;
};

static void usual_set(usual_tensor *u, const train_quantized *t, unsigned *amax)
{
    const mpsim_block_recipe *b = t->how->recipe;
    const train_tensor *y = t->y;
    const int codes = in_one_block(b) || t->how->blocks, whole = in_one_block(b);
    memset(static_cast<void *>(u), 0, sizeof *u);
    u->recipe = gpu_recipe_of(b, y->rows, y->rows, y->cols, t->how->given, &t->how->rng);
    u->tensor.x = at_of(t->x);
    u->tensor.rows = y->rows;
    u->tensor.cols = y->cols;
    u->tensor.rng = t->how->rng;
    u->tensor.given = t->how->given;
    u->tensor.to.codes = codes ? static_cast<uint8_t *>(at_of(y)) : NULL;
    u->tensor.to.halves = codes ? NULL : static_cast<uint16_t *>(at_of(y));
    u->tensor.to.factors = static_cast<float *>(at_of(t->how->blocks));
    u->tensor.to.found_amax = amax;
    u->form = gpu_blocks_form_of(u->recipe, t->x->format, u->tensor, whole);
    if ((!codes && !mpsim_format_same(y->format, mpsim_format_find("bf16"))) ||
        (whole && b->rule != MPSIM_SCALE_GIVEN && b->rule != MPSIM_SCALE_AMAX_TE))
        u->form.way = GPU_WAY_NONE;
    if (u->form.way == GPU_WAY_LINE && !u->recipe.has_tensor && size_of(y) < USUAL_LEAST)
        u->form.way = GPU_WAY_NONE;
    if (gpu_blocks_needs_amax(u->form, u->recipe))
        u->tensor.to.tensor_amax = reinterpret_cast<const float *>(amax);
}

/* Where counts and the largest magnitude of a tensor go; adds to *failed. */
static void usual_results(train_engine *e, const train_quantized *t, gpu_blocked *b, int *failed)
{
    set_inverse(t, t->how->given);
    b->to.counts = slot_of(e, t->counts, failed);
    b->to.most = reinterpret_cast<int *>(t->amax ? slot_for(e, CUDA_AMAX, t->amax, NULL) : NULL);
    *failed |= t->amax && !b->to.most;
}

/* Launches transposes that both_blocks_kernel has, each with the same of x itself if the list has it untaken. */
static int quantize_both(train_engine *e, const train_quantized *list, size_t n, unsigned char *taken)
{
    unsigned char done[CUDA_SLOTS];
    gpu_both_list now;
    usual_tensor u;
    size_t first = 0;
    int failed = 0;
    for (size_t i = 0; i < n; i++) {
        usual_set(&u, &list[i], NULL);
        done[i] = taken[i] || !list[i].how->transposed || !gpu_both_has(u.form, u.recipe, u.tensor);
    }
    const auto alike = [&](size_t a, size_t b) { return alike_quantized(&list[a], &list[b]); };
    const auto fill = [&](gpu_both *to, size_t i) {
        usual_set(&u, &list[i], NULL);
        to->column = u.tensor;
        usual_results(e, &list[i], &to->column, &failed);
        memset(static_cast<void *>(&to->row), 0, sizeof to->row);
        taken[i] = 1;
        for (size_t k = 0; k < n && !to->row.x; k++) {
            usual_set(&u, &list[k], NULL);
            if (taken[k] || list[k].how->transposed || list[k].x != list[i].x || !alike(i, k) ||
                u.form.way != GPU_WAY_LINE)
                continue;
            to->row = u.tensor;
            usual_results(e, &list[k], &to->row, &failed);
            taken[k] = 1;
        }
        usual_set(&u, &list[i], NULL);
        return gpu_both_grid(u.form, *to);
    };
    while (gpu_list_next(&now, done, n, &first, alike, fill) > 0 && !failed) {
        usual_set(&u, &list[first], NULL);
        gpu_blocks_launch_both(u.form, u.recipe, now, NULL);
    }
    return failed || cuda_launched(e, "quantize") ? -1 : 0;
}

/* Whether a launch takes both: formats, recipe; the extents where kernels take them from the recipe. */
static int usual_alike(const train_quantized *s, const train_quantized *t)
{
    const mpsim_block_recipe *b = s->how->recipe;
    const int in_row = b->block_rows == 1 && b->block_cols;
    return alike_quantized(s, t) &&
           (in_row || in_one_block(b) || (s->y->rows == t->y->rows && s->y->cols == t->y->cols));
}

/* Of current scaling the host needs the inverses: one wait for all. */
static int usual_inverses(train_engine *e, const train_quantized *list, size_t n, const unsigned char *needs,
                          const unsigned *amax)
{
    unsigned found[CUDA_SLOTS];
    if (read_back(e, "quantize", found, amax, n * sizeof *found))
        return -1;
    for (size_t i = 0; i < n; i++) {
        const mpsim_block_recipe *b = list[i].how->recipe;
        const float max = (float)mpsim_format_max(mpsim_format_find(b->element));
        if (needs[i])
            set_inverse(&list[i], mpsim_fp8_scale(mpsim_f32_bits(found[i]), max, (float)b->amax_epsilon,
                                                  (float)b->scale_for_inf, b->power_of_two));
    }
    return 0;
}

/* Launches those that have kernels there, and takes them; the others stay untaken. */
static int quantize_usual(train_engine *e, const train_quantized *list, size_t n, unsigned char *taken)
{
    enum { UNUSUAL = 2 };
    unsigned char needs[CUDA_SLOTS];
    usual_tensor u;
    gpu_blocked_list now;
    size_t first = 0, waits = 0, needed = 0;
    int failed = 0;
    unsigned *amax = static_cast<unsigned *>(buffer_of(e, 1, n * sizeof *amax));
    if (!amax)
        return -1;
    for (size_t i = 0; i < n; i++) {
        needs[i] = 0;
        if (taken[i])
            continue;
        usual_set(&u, &list[i], amax + i);
        if (list[i].how->transposed)
            u.form.way = GPU_WAY_NONE;
        const int has_amax = u.form.way != GPU_WAY_NONE && gpu_blocks_needs_amax(u.form, u.recipe);
        taken[i] = u.form.way == GPU_WAY_NONE ? UNUSUAL : 0;
        needs[i] = has_amax && u.form.way == GPU_WAY_ONE;
        needed += (size_t)has_amax;
        waits += needs[i];
    }
    if (needed && cuda_done(e, "quantize", gpu_set_async(amax, 0, n * sizeof *amax)))
        return -1;
    const auto alike = [&](size_t a, size_t b) { return usual_alike(&list[a], &list[b]); };
    const auto fill = [&](gpu_blocked *to, size_t i) {
        usual_set(&u, &list[i], amax + i);
        *to = u.tensor;
        usual_results(e, &list[i], to, &failed);
        return gpu_blocks_grid(u.form, u.recipe, u.tensor);
    };
    while (gpu_list_next(&now, taken, n, &first, alike, fill) > 0 && !failed) {
        usual_set(&u, &list[first], amax + first);
        if (gpu_blocks_needs_amax(u.form, u.recipe))
            gpu_blocks_launch_amax(u.form, u.recipe, now, NULL);
        gpu_blocks_launch(u.form, u.recipe, now, NULL);
    }
    for (size_t i = 0; i < n; i++)
        taken[i] = taken[i] == 1;
    return failed || cuda_launched(e, "quantize") || (waits && usual_inverses(e, list, n, needs, amax)) ? -1 : 0;
}

/* ---- many ---- */

/* 0 if there is a kernel. */
static int check_recipe(train_engine *e, const train_quantize *q)
{
    gpu_format element;
    const mpsim_block_recipe *b = q->recipe;
    const int rule = scale_rule_of(b, in_one_block(b));
    if (rule == GPU_SCALE_NONE || gpu_format_set(&element, mpsim_format_find(b->element)) ||
        (rule != GPU_SCALE_NVFP4 && (element.kind != GPU_BITS || element.inf == 0)))
        return cuda_fail(e, "quantize: the device has no kernel for recipe %s", b->name);
    return 0;
}

/* Those that take more than a launch; the others stay untaken. */
static int quantize_those_alone(train_engine *e, const train_quantized *list, size_t n, unsigned char *taken)
{
    for (size_t i = 0; i < n; i++) {
        gpu_quantize g;
        if (taken[i])
            continue;
        quantize_set(&g, &list[i]);
        taken[i] = waits_for_amax(g, &list[i]) || (g.rule != GPU_SCALE_ONE && !g.in_warp);
        if (taken[i] && quantize_alone(e, g, &list[i]))
            return -1;
    }
    return 0;
}

/* The others, those alike by one launch. */
static int quantize_at_once(train_engine *e, const train_quantized *list, size_t n, unsigned char *taken)
{
    gpu_quantized_list now;
    gpu_quantize g;
    size_t first = 0;
    int failed = 0;
    const auto alike = [&](size_t a, size_t b) { return alike_quantized(&list[a], &list[b]); };
    const auto fill = [&](gpu_quantized *own, size_t i) {
        quantized_set(own, &list[i]);
        own->factor = list[i].how->given;
        set_inverse(&list[i], own->factor);
        failed |= quantized_results(e, &list[i], own);
        return quantized_tiles(own);
    };
    while (gpu_list_next(&now, taken, n, &first, alike, fill) > 0 && !failed) {
        quantize_set(&g, &list[first]);
        quantize_launch(g, now);
    }
    return failed ? -1 : cuda_launched(e, "quantize");
}

static int cuda_quantize_list(train_engine *e, const train_quantized *list, size_t n)
{
    if (n > CUDA_SLOTS / 2)
        return cuda_quantize_list(e, list, CUDA_SLOTS / 2) ||
                       cuda_quantize_list(e, list + CUDA_SLOTS / 2, n - CUDA_SLOTS / 2)
                   ? -1
                   : 0;
    for (size_t i = 0; i < n; i++)
        if (check_recipe(e, list[i].how))
            return -1;
    unsigned char *taken = untaken(e, n);
    if (!taken || reserve_slots(e, 2 * n) || quantize_both(e, list, n, taken) || quantize_usual(e, list, n, taken) ||
        quantize_those_alone(e, list, n, taken))
        return -1;
    return quantize_at_once(e, list, n, taken);
}

static int cuda_quantize(train_engine *e, train_tensor *y, const train_tensor *x, const train_quantize *q, float *amax,
                         train_counts *counts)
{
    const train_quantized one = {y, x, q, amax, counts};
    return cuda_quantize_list(e, &one, 1);
}

/* Rows of whole groups, straight; 0: not these. */
static int hadamard_of_line(const train_tensor *y, const train_tensor *x)
{
    const int input = gpu_blocks_input(x->format);
    const size_t n = size_of(y), each = size_t(GPU_BLOCKS_THREADS) * (input == GPU_INPUT_F32 ? 4 : 8);
    const size_t wanted = (n + each - 1) / each;
    const unsigned blocks = unsigned(wanted < 4 * GPU_BLOCKS_MOST ? wanted : size_t(4 * GPU_BLOCKS_MOST));
    if (input < 0 || n == 0 || y->cols % 16 || !gpu_is_aligned(at_of(x), 16) || !gpu_is_aligned(at_of(y), 16))
        return 0;
    if (input == GPU_INPUT_F32)
        GPU_LAUNCH(hadamard_line_kernel<GPU_INPUT_F32>, blocks, GPU_BLOCKS_THREADS, 0, format_of(y), at_of(y), at_of(x),
                   n);
    else if (input == GPU_INPUT_BF16)
        GPU_LAUNCH(hadamard_line_kernel<GPU_INPUT_BF16>, blocks, GPU_BLOCKS_THREADS, 0, format_of(y), at_of(y),
                   at_of(x), n);
    else
        GPU_LAUNCH(hadamard_line_kernel<GPU_INPUT_F16>, blocks, GPU_BLOCKS_THREADS, 0, format_of(y), at_of(y), at_of(x),
                   n);
    return 1;
}

static int cuda_hadamard(train_engine *e, train_tensor *y, const train_tensor *x, int transposed)
{
    if (!transposed && hadamard_of_line(y, x))
        return wrote(e, "hadamard", y);
    GPU_LAUNCH(hadamard_kernel, blocks_of(y->rows * ((y->cols + 15) / 16), GPU_THREADS_ELEMENT), GPU_THREADS_ELEMENT, 0,
               format_of(y), at_of(y), at_of(x), y->rows, y->cols, transposed != 0);
    return wrote(e, "hadamard", y);
}
