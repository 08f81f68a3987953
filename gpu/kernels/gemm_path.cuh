/* gemm_path.cuh -- which kernel computes a matrix product. A part of gemm.cu; tests ask it, too. */
#pragma once

#include "gemm.h"
#include "gemm_finish.cuh"

#include <string.h>

/* ---- the table: models, the devices whose instructions they are, the kernels ---- */

enum {
    FMA = 1 << GPU_GEMM_FMA,
    MMA = 1 << GPU_GEMM_MMA,
    FAST = 1 << GPU_GEMM_FAST,
    WGMMA = 1 << GPU_GEMM_WGMMA,
    WIDE = 1 << GPU_GEMM_WIDE,
    TMA = 1 << GPU_GEMM_TMA,
    SQUARE = 1 << GPU_GEMM_SQUARE,
    ANY_DEVICE = 9999
};

struct model_row {
    const char *model;
    int first, last; /* compute capabilities */
    unsigned paths;
    int promote; /* sums leave the tensor core every 128 products */
    int factors; /* they can, each time to be multiplied by factors */
};

/* Blackwell (sm_100): its mma.sync; tcgen05 has no kernel. */
static const model_row model_rows[] = {
    {"fma", 0, ANY_DEVICE, FMA, 0, 0},
    {"sequential", 0, ANY_DEVICE, FMA, 0, 0},
    {"ampere-fp16-fp32", 80, 87, MMA | FAST | SQUARE, 0, 0},
    {"ampere-bf16-fp32", 80, 87, MMA | FAST | SQUARE, 0, 0},
    {"ampere-tf32-fp32", 80, 87, MMA, 0, 0},
    {"ada-fp16-fp32", 89, 89, MMA | FAST | SQUARE, 0, 0},
    {"ada-bf16-fp32", 89, 89, MMA | FAST | SQUARE, 0, 0},
    {"ada-tf32-fp32", 89, 89, MMA, 0, 0},
    {"ada-fp8-fp32", 89, 89, MMA, 0, 0},
    {"hopper-fp16-fp32", 90, 90, MMA | FAST | SQUARE | WGMMA | WIDE | TMA, 0, 0},
    {"hopper-bf16-fp32", 90, 90, MMA | FAST | SQUARE | WGMMA | WIDE | TMA, 0, 0},
    {"hopper-tf32-fp32", 90, 90, MMA, 0, 0},
    {"hopper-wgmma-fp8-fp32", 90, 90, WGMMA | WIDE | TMA, 0, 1},
    {"hopper-wgmma-fp8-promoted", 90, 90, WGMMA | TMA, 1, 0},
    {"hopper-mma-fp8-fp32", 90, 90, MMA, 0, 0},
    {"blackwell-fp16-fp32", 100, 103, MMA | FAST | SQUARE, 0, 0},
    {"blackwell-bf16-fp32", 100, 103, MMA | FAST | SQUARE, 0, 0},
    {"blackwell-tf32-fp32", 100, 103, MMA, 0, 0},
    {"blackwell-mma-fp8-fp32", 100, 103, MMA, 0, 0},
    {"rtx-blackwell-fp16-fp32", 120, 121, MMA | FAST | SQUARE, 0, 0},
    {"rtx-blackwell-bf16-fp32", 120, 121, MMA | FAST | SQUARE, 0, 0},
    {"rtx-blackwell-tf32-fp32", 120, 121, MMA, 0, 0},
    {"rtx-blackwell-fp8-fp32", 120, 121, MMA, 0, 0},
};

/* ---- models by their parameters ---- */

/* The models of the rows. */
struct models_of_rows {
    mpsim_model at[sizeof model_rows / sizeof model_rows[0]];

    models_of_rows()
    {
        for (size_t i = 0; i < sizeof model_rows / sizeof model_rows[0]; i++)
            if (mpsim_model_parse(&at[i], model_rows[i].model) != MPSIM_OK)
                memset(static_cast<void *>(&at[i]), 0, sizeof at[i]); /* equal to none */
    }
};

static bool same_place(const mpsim_rounded &x, const mpsim_rounded &y)
{
    return mpsim_format_same(&x.format, &y.format) &&
           memcmp(&x.rounding, &y.rounding, offsetof(mpsim_rounding, flush_output) + 1) == 0 &&
           x.rounding.scale == y.rounding.scale;
}

/* Whether both have the same bits for all operands: names, sources and lists of operands do not count. */
static bool same_parameters(const mpsim_model &x, const mpsim_model &y)
{
    return x.addition == y.addition && x.order == y.order && x.alignment == y.alignment &&
           x.normalised == y.normalised && x.length == y.length && x.fraction == y.fraction && x.floor == y.floor &&
           x.operand_emin == y.operand_emin && x.traits == y.traits && x.chunk == y.chunk && x.block == y.block &&
           same_place(x.accumulator, y.accumulator) && same_place(x.result, y.result) &&
           (!x.chunk || same_place(x.outer, y.outer)) &&
           (x.addition != MPSIM_ADDITION_MULADD || same_place(x.product, y.product));
}

/* The row whose kernel has the bits of the model on this device; takes: its operands are those of this pair, NULL: any. */
static const model_row *row_of(const mpsim_model &m, int sm, const mpsim_format *a = nullptr,
                               const mpsim_format *b = nullptr)
{
    static const models_of_rows models;
    for (size_t i = 0; i < sizeof model_rows / sizeof model_rows[0]; i++) {
        const model_row &r = model_rows[i];
        if (sm >= r.first && sm <= r.last && same_parameters(models.at[i], m) &&
            (!a || mpsim_model_accepts(&models.at[i], a, b)))
            return &r;
    }
    return nullptr;
}

static const model_row *row_of(const char *model, int sm)
{
    mpsim_model m;
    return mpsim_model_parse(&m, model) == MPSIM_OK ? row_of(m, sm) : nullptr;
}

/* ---- the choice ---- */

/* What a path can do beside its row: the fast kernels and TMA whole pieces of 16 bytes, these and the wide tiles
 * sums from +0 alone, since their registers are full; factors are those of the narrow tiles and of TMA, which takes FP8
 * along the depth. */
static int can(const model_row *r, const gpu_job *j, gpu_gemm_path path)
{
    const int tma = path == GPU_GEMM_TMA, pieces = path == GPU_GEMM_FAST || path == GPU_GEMM_SQUARE || tma;
    if (!(r->paths >> path & 1) || (j->a_factors.at && path != GPU_GEMM_WGMMA && !tma))
        return 0;
    if (pieces && !(j->a.aligned && j->b.aligned))
        return 0;
    if (tma && (j->depth == 0 || j->out.rows >> 31 || j->out.columns >> 31 ||
                (j->a.shift == 0 && !(j->a.along && j->b.along))))
        return 0;
    return (!pieces && path != GPU_GEMM_WIDE) || j->out.start != TRAIN_FROM_SUM;
}

/* What AUTO takes: the first of these that the model has and that can do it, with so many tiles of 128 x 128
 * or more: few leave most of a device idle, then smaller ones are faster. `whole`: only where both operands go by
 * pieces of 16 bytes along the depth; wgmma reads others word by word, slower than mma.sync by ldmatrix. 132 tiles
 * are one for each multiprocessor of an H100, 528 are four.
 *
 * fp16 and bf16 of Hopper have one model row for mma.sync and wgmma, by which these may be exchanged: the checks
 * "wgmma... as mma.sync" (data/gpu).
 *
 * `confirmed`: a record of a device has the row of speed of this path with the bits of the others. AUTO takes no other.
 * Once they are, TMA replaces WIDE, and SQUARE replaces FAST (gpu/README.md). */
static const struct {
    gpu_gemm_path path;
    size_t tiles;
    int whole, confirmed;
} choices[] = {
    {GPU_GEMM_FMA, 0, 0, 1},     {GPU_GEMM_TMA, 264, 0, 0},    {GPU_GEMM_WIDE, 528, 1, 1},
    {GPU_GEMM_WGMMA, 132, 1, 1}, {GPU_GEMM_SQUARE, 132, 0, 0}, {GPU_GEMM_FAST, 32, 0, 1},
    {GPU_GEMM_MMA, 0, 0, 1},     {GPU_GEMM_WIDE, 528, 0, 1},   {GPU_GEMM_WGMMA, 0, 0, 1},
};

static gpu_gemm_path path_for(const model_row *r, const gpu_job *j, size_t stacks)
{
    const size_t tiles = (j->out.rows + 127) / 128 * ((j->out.columns + 127) / 128) * stacks;
    const int whole = j->a.along && j->a.aligned && j->b.along && j->b.aligned;
    for (const auto &c : choices)
        if (c.confirmed && can(r, j, c.path) && tiles >= c.tiles && whole >= c.whole)
            return c.path;
    return GPU_GEMM_AUTO; /* none: every row of the table has FMA, MMA or WGMMA */
}
