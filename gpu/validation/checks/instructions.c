/* instructions.c -- instructions of tensor cores, and the model rows that say what they compute. */
#include "cases.h"
#include "instructions.h"

#include <stdio.h>
#include <string.h>

/* Names of formats, by the type of PTX. */
#define NAME_f16 "fp16"
#define NAME_bf16 "bf16"
#define NAME_tf32 "tf32"
#define NAME_e4m3 "e4m3"
#define NAME_e5m2 "e5m2"
#define NAME_f32 "binary32"

static const gpu_instruction instructions[] = {
#define MMA(ID, shape, k, a, b, d, size, ...) \
    {"mma." #shape, NAME_##a, NAME_##b, NAME_##d, GPU_MMA, 16, k, 80, {__VA_ARGS__}},
#define MMA_FP8(ID, shape, k, a, b, d, size, ...) \
    {"mma." #shape, NAME_##a, NAME_##b, NAME_##d, GPU_MMA, 16, k, 89, {__VA_ARGS__}},
#define WGMMA(ID, shape, k, a, b, d, size, ...) \
    {"wgmma." #shape, NAME_##a, NAME_##b, NAME_##d, GPU_WGMMA, 64, k, 90, {__VA_ARGS__}},
    GPU_MMA_INSTRUCTIONS(MMA) GPU_MMA_FP8_INSTRUCTIONS(MMA_FP8) GPU_WGMMA_INSTRUCTIONS(WGMMA){
        "dmma.m8n8k4", "binary64", "binary64", "binary64", GPU_DMMA, 8, 4, 80, {"fp64", NULL}},
    {"dmma.m16n8k4", "binary64", "binary64", "binary64", GPU_DMMA, 16, 4, 90, {"fp64", NULL}},
    {"dmma.m16n8k8", "binary64", "binary64", "binary64", GPU_DMMA, 16, 8, 90, {"fp64", NULL}},
    {"dmma.m16n8k16", "binary64", "binary64", "binary64", GPU_DMMA, 16, 16, 90, {"fp64", NULL}},
};
enum { INSTRUCTIONS = sizeof instructions / sizeof instructions[0] };

const gpu_instruction *gpu_instruction_at(int i)
{
    return i >= 0 && i < INSTRUCTIONS ? &instructions[i] : NULL;
}

const char *gpu_architecture(int sm)
{
    switch (sm) {
    case 70:
        return "volta";
    case 75:
        return "turing";
    case 80:
    case 86:
    case 87:
        return "ampere";
    case 89:
        return "ada";
    case 90:
        return "hopper";
    case 100:
    case 103:
        return "blackwell";
    case 120:
    case 121:
        return "rtx-blackwell";
    default:
        return NULL;
    }
}

static int runs_on(const gpu_instruction *in, int sm)
{
    return in->family == GPU_WGMMA ? sm == 90 : sm >= in->since;
}

int gpu_model(mpsim_model *m, int sm, const gpu_instruction *in)
{
    const char *arch = gpu_architecture(sm);
    char name[96];
    for (int i = 0; arch && i < 2 && in->rows_of[i]; i++) {
        snprintf(name, sizeof name, "%s-%s", arch, in->rows_of[i]);
        if (mpsim_model_parse(m, name) == MPSIM_OK)
            return 0;
    }
    return -1;
}

int gpu_dots_fill(gpu_dots *j, int sm, int instruction, int distribution)
{
    const gpu_instruction *in = &instructions[instruction];
    mpsim_model m;
    if (!runs_on(in, sm) || gpu_model(&m, sm, in) != 0)
        return -1;
    const int is_fused = m.addition == MPSIM_ADDITION_FUSED, is_chain = m.addition == MPSIM_ADDITION_FMA;
    if ((in->family == GPU_DMMA ? !is_chain : !is_fused) || m.length > GPU_DEPTH ||
        (m.chunk != 0 && m.chunk != (uint32_t)in->k) || m.order == MPSIM_ORDER_PAIRWISE)
        return -1;
    memset(j, 0, sizeof *j);
    j->instruction = instruction;
    j->same_as = -1;
    j->rows = in->rows;
    j->k = in->k;
    j->columns = GPU_COLUMNS;
    j->words = in->family == GPU_DMMA ? 2 : 1;
    j->depth = GPU_DEPTH;
    j->slots = GPU_SLOTS;
    j->distribution = distribution;
    j->stream = 1000 + (uint64_t)instruction * 16 + (uint64_t)distribution;
    j->a = *mpsim_format_find(in->a);
    j->b = *mpsim_format_find(in->b);
    mpsim_rounding_init(&j->nearest, MPSIM_ROUND_NEAREST_EVEN);
    j->sum.alignment = m.alignment;
    j->sum.normalised = m.normalised;
    j->sum.fraction = m.fraction;
    j->sum.floor = m.floor;
    j->sum.operand_emin = m.operand_emin;
    j->sum.length = m.length;
    j->sum.quads = m.order == MPSIM_ORDER_QUADS;
    j->sum.chunk = (int)m.chunk;
    j->sum.accumulator = m.accumulator;
    j->sum.outer = m.outer;
    j->sum.result = m.result;
    return 0;
}

void gpu_instruction_name(const gpu_instruction *in, char *to, size_t size)
{
    const char *dot = strrchr(in->name, 'k');
    const int family = (int)strcspn(in->name, ".");
    const int mixed = strcmp(in->a, in->b) != 0;
    snprintf(to, size, "%.*s.%s %s%s%s-%s", family, in->name, dot, in->a, mixed ? "*" : "", mixed ? in->b : "",
             strcmp(in->d, "binary32") == 0 ? "fp32" : in->d);
}
