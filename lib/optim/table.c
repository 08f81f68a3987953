/* table.c -- the table of optimizer variants.
 *
 * Each variant is a function, because variants differ in the order of their operations. The table has the sources.
 * Steps are the machine's binary32 and binary64 operations (IEEE 754; configure refuses flags that break it), with
 * fma where the framework contracts. Oracles repeat them in MPFR. */
#include "steps.h"

#include "../base/words.h"

#include <string.h>

enum {
    SGD_STEP = MPSIM_OPTIM_SGD,
    ADAM_STEP = MPSIM_OPTIM_ADAM,
    LION_STEP = MPSIM_OPTIM_LION,
    SGD = 1 << MPSIM_OPTIM_SGD,
    ADAM = 1 << MPSIM_OPTIM_ADAM | 1 << MPSIM_OPTIM_ADAMW,
    LION = 1 << MPSIM_OPTIM_LION,
    ADAFACTOR = 1 << MPSIM_OPTIM_ADAFACTOR,
    NEAREST = 1 << MPSIM_STORE_NEAREST,
    STOCHASTIC = 1 << MPSIM_STORE_STOCHASTIC,
    KAHAN = 1 << MPSIM_STORE_KAHAN,
    TORCH = MPSIM_HAS_AMSGRAD | MPSIM_HAS_MAXIMIZE | MPSIM_HAS_NESTEROV | MPSIM_HAS_DAMPENING,
    IEEE = TORCH | MPSIM_HAS_GRAD_SCALE,
    FUSED = IEEE | MPSIM_TAKES_SCALE,
    APEX = MPSIM_HAS_GRAD_SCALE | MPSIM_HAS_NESTEROV | MPSIM_HAS_DAMPENING
};

#define ON_DEVICE "recorded on an H200, torch 2.11.0: data/vectors/device"
#define RECORDED "recorded, torch 2.15.0, MKL_CBWR=AVX2: data/vectors/optim"
#define LION_PYTORCH "recorded, lion-pytorch 0.2.5, torch 2.15.0: data/vectors/optim-lion"
#define OPTIMI "recorded, torch-optimi 0.3.3, torch 2.15.0: data/vectors/optim-lowp"

/* clang-format off */
static const mpsim_optim_row rows[] = {
    {.variant = {"ieee", SGD | ADAM | LION | ADAFACTOR, NEAREST | STOCHASTIC, MPSIM_OPTIM_DEFINED,
                 "textbook order, every operation rounded, no FMA",
                 "the algorithms in torch's documentation; Lion in arXiv 2302.06675", NULL},
     .kernel = {[SGD_STEP] = MPSIM_STEP_SGD_IEEE, [ADAM_STEP] = MPSIM_STEP_ADAM_IEEE, [LION_STEP] = MPSIM_STEP_LION_IEEE}, .one_pass = 1,
     .step[SGD_STEP] = &mpsim_sgd_ieee, .step[ADAM_STEP] = &mpsim_adam_ieee, .step[LION_STEP] = &mpsim_lion_ieee,
     .tensor = mpsim_adafactor_step, .options = IEEE},
    {.variant = {"torch", SGD | ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim for-loop on CUDA",
                 ON_DEVICE, "nesterov, dampening, amsgrad and maximize"},
     .kernel = {MPSIM_STEP_SGD_OPS_CUDA, MPSIM_STEP_ADAM_OPS_RECIPROCAL},
     .step[SGD_STEP] = &mpsim_sgd_ops, .step[ADAM_STEP] = &mpsim_adam_ops, .rules = &mpsim_rules_cuda_loop,
     .options = TORCH},
    {.variant = {"torch-foreach", SGD | ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim foreach on CUDA",
                 ON_DEVICE, "nesterov, dampening, amsgrad and maximize"},
     .kernel = {MPSIM_STEP_SGD_OPS_CUDA, MPSIM_STEP_ADAM_OPS_CUDA},
     .step[SGD_STEP] = &mpsim_sgd_ops, .step[ADAM_STEP] = &mpsim_adam_ops, .rules = &mpsim_rules_cuda_list,
     .options = TORCH},
    {.variant = {"torch-capturable", ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim for-loop on CUDA, capturable",
                 ON_DEVICE, "powf of the device beyond the fifth step; amsgrad and maximize"},
     .kernel = {MPSIM_STEP_NONE, MPSIM_STEP_ADAM_OPS_CUDA},
     .step[ADAM_STEP] = &mpsim_adam_capturable, .rules = &mpsim_rules_cuda_loop, .options = TORCH},
    {.variant = {"torch-foreach-capturable", ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim foreach on CUDA, capturable",
                 ON_DEVICE, "powf of the device beyond the fifth step; amsgrad and maximize"},
     .kernel = {MPSIM_STEP_NONE, MPSIM_STEP_ADAM_CAPTURABLE_LIST},
     .step[ADAM_STEP] = &mpsim_adam_capturable_list, .rules = &mpsim_rules_cuda_loop, .options = TORCH},
    {.variant = {"torch-cpu", SGD | ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim for-loop on CPU with FMA",
                 RECORDED, NULL},
     .kernel = {MPSIM_STEP_SGD_OPS_CPU, MPSIM_STEP_ADAM_OPS_CPU},
     .step[SGD_STEP] = &mpsim_sgd_ops, .step[ADAM_STEP] = &mpsim_adam_ops, .rules = &mpsim_rules_cpu_loop,
     .options = TORCH, .body = {16, 32}},
    {.variant = {"torch-cpu-default", SGD | ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim for-loop on CPU without FMA (ATEN_CPU_CAPABILITY=default)", RECORDED, NULL},
     .kernel = {MPSIM_STEP_SGD_OPS_PLAIN, MPSIM_STEP_ADAM_OPS_PLAIN},
     .step[SGD_STEP] = &mpsim_sgd_ops, .step[ADAM_STEP] = &mpsim_adam_ops, .rules = &mpsim_rules_cpu_loop_plain,
     .options = TORCH},
    {.variant = {"torch-cpu-foreach", SGD | ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim foreach on CPU with FMA",
                 RECORDED, NULL},
     .kernel = {MPSIM_STEP_SGD_OPS_CPU, MPSIM_STEP_ADAM_OPS_CPU},
     .step[SGD_STEP] = &mpsim_sgd_ops, .step[ADAM_STEP] = &mpsim_adam_ops, .rules = &mpsim_rules_cpu_list,
     .options = TORCH, .body = {16, 32}},
    {.variant = {"torch-cpu-foreach-default", SGD | ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim foreach on CPU without FMA", RECORDED, NULL},
     .kernel = {MPSIM_STEP_SGD_OPS_PLAIN, MPSIM_STEP_ADAM_OPS_PLAIN},
     .step[SGD_STEP] = &mpsim_sgd_ops, .step[ADAM_STEP] = &mpsim_adam_ops, .rules = &mpsim_rules_cpu_list_plain,
     .options = TORCH},
    {.variant = {"torch-fused-a", SGD | ADAM, NEAREST, MPSIM_OPTIM_OPEN,
                 "torch.optim fused on CUDA, 2022: binary64, corrections per element",
                 "fused_adam_utils.cuh a11d775f; pow is the device's",
                 "pow of the device; contraction in binary64"},
     .kernel = {MPSIM_STEP_SGD_FUSED_DOUBLE, MPSIM_STEP_ADAM_FUSED_DOUBLE}, .one_pass = 1,
     .step[SGD_STEP] = &mpsim_sgd_fused_double, .step[ADAM_STEP] = &mpsim_adam_fused_double, .options = FUSED,
     .generation = 'a'},
    {.variant = {"torch-fused-b", SGD | ADAM, NEAREST, MPSIM_OPTIM_OPEN,
                 "torch.optim fused on CUDA, to about 2.9: binary64",
                 "fused_adam_utils.cuh 3539e1d2; pow is the device's",
                 "pow of the device; contraction in binary64"},
     .kernel = {MPSIM_STEP_SGD_FUSED_DOUBLE, MPSIM_STEP_ADAM_FUSED_DOUBLE}, .one_pass = 1,
     .step[SGD_STEP] = &mpsim_sgd_fused_double, .step[ADAM_STEP] = &mpsim_adam_fused_double, .options = FUSED,
     .generation = 'b'},
    {.variant = {"torch-fused-c", SGD | ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim fused on CUDA, 2026: binary32 with FMAs",
                 ON_DEVICE, "powf of the device beyond the fifth step; maximize or amsgrad with a scale, amsgrad with decay"},
     .kernel = {MPSIM_STEP_SGD_FUSED_CPU, MPSIM_STEP_ADAM_FUSED_FLOAT}, .one_pass = 1,
     .step[SGD_STEP] = &mpsim_sgd_fused_float, .step[ADAM_STEP] = &mpsim_adam_fused_float, .options = FUSED,
     .generation = 'c'},
    {.variant = {"torch-fused-cpu", SGD | ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim fused on CPU with FMA",
                 RECORDED,
                 "where bf16 and fp16 tensors use FMA"},
     .kernel = {MPSIM_STEP_SGD_FUSED_CPU, MPSIM_STEP_ADAM_FUSED_CPU}, .one_pass = 1,
     .step[SGD_STEP] = &mpsim_sgd_fused_cpu, .step[ADAM_STEP] = &mpsim_adam_fused_cpu, .options = FUSED, .body = {8, 16},
     .fused = 1},
    {.variant = {"torch-fused-cpu-default", SGD | ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim fused on CPU without FMA", RECORDED, NULL},
     .kernel = {MPSIM_STEP_SGD_FUSED_CPU_PLAIN, MPSIM_STEP_ADAM_FUSED_CPU_PLAIN}, .one_pass = 1,
     .step[SGD_STEP] = &mpsim_sgd_fused_cpu, .step[ADAM_STEP] = &mpsim_adam_fused_cpu, .options = FUSED},
    {.variant = {"apex", SGD | ADAM, NEAREST, MPSIM_OPTIM_OPEN,
                 "Apex and TransformerEngine FusedAdam, FusedSGD, with IEEE division and root",
                 "multi_tensor_adam.cu, multi_tensor_sgd_kernel.cu 6424da3b; built with "
                 "--use_fast_math, which flushes subnormals, too",
                 "approximate division and root, flushed subnormals: built with fast-math"},
     .kernel = {MPSIM_STEP_SGD_FUSED_FLOAT, MPSIM_STEP_ADAM_APEX}, .one_pass = 1,
     .step[SGD_STEP] = &mpsim_sgd_apex, .step[ADAM_STEP] = &mpsim_adam_apex, .options = APEX},
    {.variant = {"torchao", ADAM, NEAREST | STOCHASTIC, MPSIM_OPTIM_RECORDED,
                 "torchao: binary32, moments rounded after use, stochastic rounding",
                 "torchao optim/adam.py 36027d82; bits as recorded uncompiled on CPU with FMA",
                 "contraction once compiled for a GPU; its random bits are torch's"},
     .kernel = {MPSIM_STEP_NONE, MPSIM_STEP_ADAM_TORCHAO}, .one_pass = 1,
     .step[ADAM_STEP] = &mpsim_adam_torchao, .options = MPSIM_HAS_AMSGRAD, .fused = 1},
    {.variant = {"torchao-cpu", ADAM, NEAREST | STOCHASTIC, MPSIM_OPTIM_RECORDED,
                 "torchao on CPU without FMA",
                 "recorded, torchao 0.18.0: data/vectors/optim-lowp",
                 "compiled, it was compared once and not recorded"},
     .kernel = {MPSIM_STEP_NONE, MPSIM_STEP_ADAM_TORCHAO_PLAIN}, .one_pass = 1,
     .step[ADAM_STEP] = &mpsim_adam_torchao, .options = MPSIM_HAS_AMSGRAD},
    {.variant = {"optimi", SGD | ADAM, NEAREST | KAHAN, MPSIM_OPTIM_DERIVED,
                 "optimi for-loop on CUDA: operations in the parameter's format, Kahan summation",
                 "optimi/adam.py, sgd.py 17a3d542",
                 "contraction by the device compiler"},
     .kernel = {MPSIM_STEP_SGD_OPTIMI_CUDA, MPSIM_STEP_ADAM_OPTIMI_CUDA},
     .step[SGD_STEP] = &mpsim_sgd_optimi, .step[ADAM_STEP] = &mpsim_adam_optimi, .rules = &mpsim_rules_cuda_loop},
    {.variant = {"optimi-cpu", SGD | ADAM, NEAREST | KAHAN, MPSIM_OPTIM_RECORDED,
                 "optimi for-loop on CPU with FMA",
                 OPTIMI, NULL},
     .kernel = {MPSIM_STEP_SGD_OPTIMI_CPU, MPSIM_STEP_ADAM_OPTIMI_CPU},
     .step[SGD_STEP] = &mpsim_sgd_optimi, .step[ADAM_STEP] = &mpsim_adam_optimi, .rules = &mpsim_rules_cpu_loop,
     .body = {16, 32}},
    {.variant = {"optimi-cpu-default", SGD | ADAM, NEAREST | KAHAN, MPSIM_OPTIM_RECORDED,
                 "optimi for-loop on CPU without FMA", OPTIMI, NULL},
     .kernel = {MPSIM_STEP_SGD_OPTIMI_PLAIN, MPSIM_STEP_ADAM_OPTIMI_PLAIN},
     .step[SGD_STEP] = &mpsim_sgd_optimi, .step[ADAM_STEP] = &mpsim_adam_optimi, .rules = &mpsim_rules_cpu_loop_plain},
    {.variant = {"optimi-cpu-foreach", SGD | ADAM, NEAREST | KAHAN, MPSIM_OPTIM_RECORDED,
                 "optimi foreach on CPU with FMA", OPTIMI, NULL},
     .kernel = {MPSIM_STEP_SGD_OPTIMI_CPU, MPSIM_STEP_ADAM_OPTIMI_CPU},
     .step[SGD_STEP] = &mpsim_sgd_optimi, .step[ADAM_STEP] = &mpsim_adam_optimi, .rules = &mpsim_rules_cpu_list,
     .body = {16, 32}},
    {.variant = {"optimi-cpu-foreach-default", SGD | ADAM, NEAREST | KAHAN, MPSIM_OPTIM_RECORDED,
                 "optimi foreach on CPU without FMA", OPTIMI, NULL},
     .kernel = {MPSIM_STEP_SGD_OPTIMI_PLAIN, MPSIM_STEP_ADAM_OPTIMI_PLAIN},
     .step[SGD_STEP] = &mpsim_sgd_optimi, .step[ADAM_STEP] = &mpsim_adam_optimi, .rules = &mpsim_rules_cpu_list_plain},
    {.variant = {"optimi-triton", SGD | ADAM, NEAREST | KAHAN, MPSIM_OPTIM_OPEN,
                 "optimi's Triton kernels: binary32 moments and updates, Kahan summation",
                 "optimi/adam.py, sgd.py 17a3d542; Triton's division and root are approximate",
                 "approximate division and root of Triton"},
     .kernel = {MPSIM_STEP_SGD_TRITON, MPSIM_STEP_ADAM_TRITON},
     .step[SGD_STEP] = &mpsim_sgd_optimi_triton, .step[ADAM_STEP] = &mpsim_adam_optimi_triton},
    {.variant = {"lion-pytorch", LION, NEAREST, MPSIM_OPTIM_DERIVED,
                 "lion-pytorch's Lion on CUDA, without Triton",
                 "lion-pytorch 0.2.5 lion_pytorch.py; arXiv 2302.06675",
                 "contraction by the device compiler"},
     .kernel[LION_STEP] = MPSIM_STEP_LION_OPS_CUDA, .step[LION_STEP] = &mpsim_lion_ops, .rules = &mpsim_rules_cuda_loop},
    {.variant = {"lion-pytorch-cpu", LION, NEAREST, MPSIM_OPTIM_RECORDED,
                 "lion-pytorch's Lion on CPU with FMA",
                 LION_PYTORCH, NULL},
     .kernel[LION_STEP] = MPSIM_STEP_LION_OPS_CPU, .step[LION_STEP] = &mpsim_lion_ops, .rules = &mpsim_rules_cpu_loop, .body = {16, 32}},
    {.variant = {"lion-pytorch-cpu-default", LION, NEAREST, MPSIM_OPTIM_RECORDED,
                 "lion-pytorch's Lion on CPU without FMA", LION_PYTORCH, NULL},
     .kernel[LION_STEP] = MPSIM_STEP_LION_OPS_PLAIN, .step[LION_STEP] = &mpsim_lion_ops, .rules = &mpsim_rules_cpu_loop_plain},
    {.variant = {"torch-cpu-adafactor", ADAFACTOR, NEAREST, MPSIM_OPTIM_OPEN,
                 "torch.optim.Adafactor for-loop on CPU with FMA, its sums exact",
                 "torch/optim/_adafactor.py of 2.15; compared with data/vectors/optim-adafactor",
                 "the order of sums in norms and means"},
     .tensor = mpsim_adafactor_step, .rules = &mpsim_rules_cpu_loop, .options = MPSIM_HAS_MAXIMIZE},
    {.variant = {"torch-cpu-adafactor-default", ADAFACTOR, NEAREST, MPSIM_OPTIM_OPEN,
                 "torch.optim.Adafactor for-loop on CPU without FMA, its sums exact",
                 "torch/optim/_adafactor.py of 2.15; compared with data/vectors/optim-adafactor",
                 "the order of sums in norms and means"},
     .tensor = mpsim_adafactor_step, .rules = &mpsim_rules_cpu_loop_plain, .options = MPSIM_HAS_MAXIMIZE},
    {.variant = {"coat", 1 << MPSIM_OPTIM_ADAMW, NEAREST, MPSIM_OPTIM_OPEN,
                 "COAT's AdamW, its moments as states say",
                 "NVlabs/VILA @36f6adcd fp8_adamw_expand_cuda_kernel.cu; arXiv 2410.19313",
                 "contraction by the device compiler; powf of the device"},
     .kernel = {MPSIM_STEP_NONE, MPSIM_STEP_ADAM_COAT}, .step[ADAM_STEP] = &mpsim_adam_coat},
    {.variant = {"ms-amp", ADAM, NEAREST, MPSIM_OPTIM_OPEN,
                 "MS-AMP's LBAdam and LBAdamW, its moments as states say",
                 "Azure/MS-AMP msamp/optim/adamw.py @03d05edc, adamw.cu @4480ffa4; arXiv 2310.18313",
                 "contraction by the device compiler"},
     .kernel = {MPSIM_STEP_NONE, MPSIM_STEP_ADAM_MSAMP}, .step[ADAM_STEP] = &mpsim_adam_msamp, .options = MPSIM_HAS_MAXIMIZE},
};
/* clang-format on */

enum { ROWS = sizeof rows / sizeof rows[0] };

size_t mpsim_optim_variant_count(void)
{
    return ROWS;
}

const mpsim_optim_variant *mpsim_optim_variant_at(size_t i)
{
    return i < ROWS ? &rows[i].variant : NULL;
}

const mpsim_optim_variant *mpsim_optim_variant_find(const char *name)
{
    for (size_t i = 0; name && i < ROWS; i++)
        if (mpsim_same_word(name, strlen(name), rows[i].variant.name))
            return &rows[i].variant;
    return NULL;
}

/* The row of a variant of the table; NULL for any other pointer. */
const mpsim_optim_row *mpsim_optim_row_of(const mpsim_optim_variant *v)
{
    for (size_t i = 0; v && i < ROWS; i++)
        if (v == &rows[i].variant)
            return &rows[i];
    return NULL;
}

int mpsim_optim_variant_unscales(const mpsim_optim_variant *v)
{
    const mpsim_optim_row *r = mpsim_optim_row_of(v);
    return r && (r->options & MPSIM_TAKES_SCALE);
}
