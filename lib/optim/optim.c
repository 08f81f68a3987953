/* optim.c -- the table of optimizer variants, options, and what all steps share. */
#include "steps.h"

#include "../round/scalar.h"
#include "../base/words.h"

#include <math.h>
#include <string.h>

/* ---- names ---- */

static const char *const algorithm_names[MPSIM_OPTIM_ALGORITHMS] = {
    [MPSIM_OPTIM_SGD] = "sgd", [MPSIM_OPTIM_ADAM] = "adam", [MPSIM_OPTIM_ADAMW] = "adamw"};

const char *mpsim_optim_name(mpsim_optim_algorithm a)
{
    return (unsigned)a < MPSIM_OPTIM_ALGORITHMS ? algorithm_names[a] : NULL;
}

mpsim_status mpsim_optim_parse(mpsim_optim_algorithm *a, const char *name)
{
    if (!a || !name)
        return MPSIM_EINVAL;
    for (int i = 0; i < MPSIM_OPTIM_ALGORITHMS; i++)
        if (mpsim_same_word(name, strlen(name), algorithm_names[i])) {
            *a = (mpsim_optim_algorithm)i;
            return MPSIM_OK;
        }
    return MPSIM_ENOTFOUND;
}

/* ---- the table ---- */

enum {
    SGD = 1 << MPSIM_OPTIM_SGD,
    ADAM = 1 << MPSIM_OPTIM_ADAM | 1 << MPSIM_OPTIM_ADAMW,
    NEAREST = 1 << MPSIM_STORE_NEAREST,
    STOCHASTIC = 1 << MPSIM_STORE_STOCHASTIC,
    KAHAN = 1 << MPSIM_STORE_KAHAN,
    TORCH = MPSIM_HAS_AMSGRAD | MPSIM_HAS_MAXIMIZE | MPSIM_HAS_NESTEROV | MPSIM_HAS_DAMPENING,
    IEEE = TORCH | MPSIM_HAS_GRAD_SCALE,
    FUSED = IEEE | MPSIM_TAKES_SCALE,
    APEX = MPSIM_HAS_GRAD_SCALE | MPSIM_HAS_NESTEROV | MPSIM_HAS_DAMPENING
};

#define RECORDED "recorded, torch 2.15.0, MKL_CBWR=AVX2: data/vectors/optim"
#define OPTIMI "recorded, torch-optimi 0.3.3, torch 2.15.0: data/vectors/optim-lowp"

static const mpsim_optim_row rows[] = {
    {.variant = {"ieee", SGD | ADAM, NEAREST | STOCHASTIC, MPSIM_OPTIM_DEFINED,
                 "textbook order, every operation rounded, no FMA",
                 "the algorithms in torch's documentation", NULL},
     .sgd = mpsim_sgd_ieee, .adam = mpsim_adam_ieee, .options = IEEE},
    {.variant = {"torch", SGD | ADAM, NEAREST, MPSIM_OPTIM_DERIVED,
                 "torch.optim for-loop on CUDA",
                 "torch/optim/sgd.py 0316fdce, adam.py 63bb1015; Lerp.h 16f0e589, "
                 "DeviceAddCmulCdiv.cuh 67685796, BinaryDivTrueKernel.cu 0f57f050",
                 "contraction by the device compiler; added numbers of low-precision tensors"},
     .sgd = mpsim_sgd_ops, .adam = mpsim_adam_ops, .rules = &mpsim_rules_cuda_loop,
     .options = TORCH},
    {.variant = {"torch-foreach", SGD | ADAM, NEAREST, MPSIM_OPTIM_DERIVED,
                 "torch.optim foreach on CUDA",
                 "torch/optim/sgd.py 0316fdce, adam.py 63bb1015; division by a list of numbers",
                 "contraction by the device compiler; added numbers of low-precision tensors"},
     .sgd = mpsim_sgd_ops, .adam = mpsim_adam_ops, .rules = &mpsim_rules_cuda_list,
     .options = TORCH},
    {.variant = {"torch-capturable", ADAM, NEAREST, MPSIM_OPTIM_OPEN,
                 "torch.optim for-loop on CUDA, capturable",
                 "torch/optim/adam.py, capturable branch",
                 "powf of the device"},
     .adam = mpsim_adam_capturable, .rules = &mpsim_rules_cuda_loop, .options = TORCH},
    {.variant = {"torch-cpu", SGD | ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim for-loop on CPU with FMA",
                 RECORDED, NULL},
     .sgd = mpsim_sgd_ops, .adam = mpsim_adam_ops, .rules = &mpsim_rules_cpu_loop,
     .options = TORCH, .body = {16, 32}},
    {.variant = {"torch-cpu-default", SGD | ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim for-loop on CPU without FMA (ATEN_CPU_CAPABILITY=default)", RECORDED, NULL},
     .sgd = mpsim_sgd_ops, .adam = mpsim_adam_ops, .rules = &mpsim_rules_cpu_loop_plain,
     .options = TORCH},
    {.variant = {"torch-cpu-foreach", SGD | ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim foreach on CPU with FMA",
                 RECORDED, NULL},
     .sgd = mpsim_sgd_ops, .adam = mpsim_adam_ops, .rules = &mpsim_rules_cpu_list,
     .options = TORCH, .body = {16, 32}},
    {.variant = {"torch-cpu-foreach-default", SGD | ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim foreach on CPU without FMA", RECORDED, NULL},
     .sgd = mpsim_sgd_ops, .adam = mpsim_adam_ops, .rules = &mpsim_rules_cpu_list_plain,
     .options = TORCH},
    {.variant = {"torch-fused-a", SGD | ADAM, NEAREST, MPSIM_OPTIM_OPEN,
                 "torch.optim fused on CUDA, 2022: binary64, corrections per element",
                 "fused_adam_utils.cuh a11d775f; pow is the device's",
                 "pow of the device; contraction in binary64"},
     .sgd = mpsim_sgd_fused_double, .adam = mpsim_adam_fused_double, .options = FUSED,
     .generation = 'a'},
    {.variant = {"torch-fused-b", SGD | ADAM, NEAREST, MPSIM_OPTIM_OPEN,
                 "torch.optim fused on CUDA, to about 2.9: binary64",
                 "fused_adam_utils.cuh 3539e1d2; pow is the device's",
                 "pow of the device; contraction in binary64"},
     .sgd = mpsim_sgd_fused_double, .adam = mpsim_adam_fused_double, .options = FUSED,
     .generation = 'b'},
    {.variant = {"torch-fused-c", SGD | ADAM, NEAREST, MPSIM_OPTIM_OPEN,
                 "torch.optim fused on CUDA, 2026: binary32 with FMAs",
                 "fused_adam_utils.cuh of 2026; powf is the device's, contraction of SGD open",
                 "powf of the device; which product of SGD is contracted"},
     .sgd = mpsim_sgd_fused_float, .adam = mpsim_adam_fused_float, .options = FUSED,
     .generation = 'c'},
    {.variant = {"torch-fused-cpu", SGD | ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim fused on CPU with FMA",
                 RECORDED,
                 "where bf16 and fp16 tensors use FMA"},
     .sgd = mpsim_sgd_fused_cpu, .adam = mpsim_adam_fused_cpu, .options = FUSED, .body = {8, 16},
     .fused = 1},
    {.variant = {"torch-fused-cpu-default", SGD | ADAM, NEAREST, MPSIM_OPTIM_RECORDED,
                 "torch.optim fused on CPU without FMA", RECORDED, NULL},
     .sgd = mpsim_sgd_fused_cpu, .adam = mpsim_adam_fused_cpu, .options = FUSED},
    {.variant = {"apex", SGD | ADAM, NEAREST, MPSIM_OPTIM_OPEN,
                 "Apex and TransformerEngine FusedAdam, FusedSGD, with IEEE division and root",
                 "multi_tensor_adam.cu, multi_tensor_sgd_kernel.cu 6424da3b; built with "
                 "--use_fast_math, which flushes subnormals, too",
                 "approximate division and root, flushed subnormals: built with fast-math"},
     .sgd = mpsim_sgd_apex, .adam = mpsim_adam_apex, .options = APEX},
    {.variant = {"torchao", ADAM, NEAREST | STOCHASTIC, MPSIM_OPTIM_RECORDED,
                 "torchao: binary32, moments rounded after use, stochastic rounding",
                 "torchao optim/adam.py 36027d82; bits as recorded uncompiled on CPU with FMA",
                 "contraction once compiled for a GPU; its random bits are torch's"},
     .adam = mpsim_adam_torchao, .options = MPSIM_HAS_AMSGRAD, .fused = 1},
    {.variant = {"torchao-cpu", ADAM, NEAREST | STOCHASTIC, MPSIM_OPTIM_RECORDED,
                 "torchao on CPU without FMA",
                 "recorded, torchao 0.18.0: data/vectors/optim-lowp",
                 "compiled, it was compared once and not recorded"},
     .adam = mpsim_adam_torchao, .options = MPSIM_HAS_AMSGRAD},
    {.variant = {"optimi", SGD | ADAM, NEAREST | KAHAN, MPSIM_OPTIM_DERIVED,
                 "optimi for-loop on CUDA: operations in the parameter's format, Kahan summation",
                 "optimi/adam.py, sgd.py 17a3d542",
                 "contraction by the device compiler"},
     .sgd = mpsim_sgd_optimi, .adam = mpsim_adam_optimi, .rules = &mpsim_rules_cuda_loop},
    {.variant = {"optimi-cpu", SGD | ADAM, NEAREST | KAHAN, MPSIM_OPTIM_RECORDED,
                 "optimi for-loop on CPU with FMA",
                 OPTIMI, NULL},
     .sgd = mpsim_sgd_optimi, .adam = mpsim_adam_optimi, .rules = &mpsim_rules_cpu_loop,
     .body = {16, 32}},
    {.variant = {"optimi-cpu-default", SGD | ADAM, NEAREST | KAHAN, MPSIM_OPTIM_RECORDED,
                 "optimi for-loop on CPU without FMA", OPTIMI, NULL},
     .sgd = mpsim_sgd_optimi, .adam = mpsim_adam_optimi, .rules = &mpsim_rules_cpu_loop_plain},
    {.variant = {"optimi-cpu-foreach", SGD | ADAM, NEAREST | KAHAN, MPSIM_OPTIM_RECORDED,
                 "optimi foreach on CPU with FMA", OPTIMI, NULL},
     .sgd = mpsim_sgd_optimi, .adam = mpsim_adam_optimi, .rules = &mpsim_rules_cpu_list,
     .body = {16, 32}},
    {.variant = {"optimi-cpu-foreach-default", SGD | ADAM, NEAREST | KAHAN, MPSIM_OPTIM_RECORDED,
                 "optimi foreach on CPU without FMA", OPTIMI, NULL},
     .sgd = mpsim_sgd_optimi, .adam = mpsim_adam_optimi, .rules = &mpsim_rules_cpu_list_plain},
    {.variant = {"optimi-triton", SGD | ADAM, NEAREST | KAHAN, MPSIM_OPTIM_OPEN,
                 "optimi's Triton kernels: binary32 moments and updates, Kahan summation",
                 "optimi/adam.py, sgd.py 17a3d542; Triton's division and root are approximate",
                 "approximate division and root of Triton"},
     .sgd = mpsim_sgd_optimi_triton, .adam = mpsim_adam_optimi_triton},
};

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
static const mpsim_optim_row *row_of(const mpsim_optim_variant *v)
{
    for (size_t i = 0; v && i < ROWS; i++)
        if (v == &rows[i].variant)
            return &rows[i];
    return NULL;
}

int mpsim_optim_variant_unscales(const mpsim_optim_variant *v)
{
    const mpsim_optim_row *r = row_of(v);
    return r && (r->options & MPSIM_TAKES_SCALE);
}

/* ---- options ---- */

void mpsim_optim_init(mpsim_optim *o, mpsim_optim_algorithm a, const mpsim_optim_variant *v)
{
    memset(o, 0, sizeof *o);
    o->variant = v;
    o->algorithm = (uint8_t)a;
    o->lr = 1e-3;
    o->weight_decay = a == MPSIM_OPTIM_ADAMW ? 1e-2 : 0;
    o->beta1 = 0.9;
    o->beta2 = 0.999;
    o->eps = 1e-8;
    o->grad_scale = 1;
    o->param = o->state = *mpsim_format_find("binary32");
}

static int at_least_zero(double x)
{
    return isfinite(x) && x >= 0;
}

static int numbers_are_valid(const mpsim_optim *o)
{
    const double betas[] = {o->beta1, o->beta2};
    for (int i = 0; i < 2; i++)
        if (!at_least_zero(betas[i]) || betas[i] >= 1)
            return 0;
    if (o->nesterov && (o->momentum <= 0 || o->dampening != 0))
        return 0;
    return at_least_zero(o->lr) && at_least_zero(o->momentum) && isfinite(o->dampening) &&
           at_least_zero(o->weight_decay) && at_least_zero(o->eps) && isfinite(o->grad_scale) &&
           o->grad_scale > 0;
}

/* Whether a row can do what is asked for. */
static int is_available(const mpsim_optim_row *r, const mpsim_optim *o)
{
    unsigned needs = 0;
    if (o->amsgrad)
        needs |= MPSIM_HAS_AMSGRAD;
    if (o->maximize)
        needs |= MPSIM_HAS_MAXIMIZE;
    if (o->grad_scale != 1)
        needs |= MPSIM_HAS_GRAD_SCALE;
    if (o->nesterov)
        needs |= MPSIM_HAS_NESTEROV;
    if (o->dampening != 0 && o->dampening != o->momentum)
        needs |= MPSIM_HAS_DAMPENING;
    if (o->amsgrad && o->algorithm == MPSIM_OPTIM_SGD)
        return 0;
    return (r->variant.algorithms >> o->algorithm & 1) && (r->variant.stores >> o->store & 1) &&
           (needs & ~(unsigned)r->options) == 0;
}

/* MPSIM_OK if all numbers of f are binary32 numbers. */
static mpsim_status check_format(const mpsim_format *f)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_round_array_f32(f, &r, NULL, NULL, NULL, 0, NULL);
}

mpsim_status mpsim_optim_check(const mpsim_optim *o)
{
    const mpsim_optim_row *r = o ? row_of(o->variant) : NULL;
    if (!r || o->algorithm >= MPSIM_OPTIM_ALGORITHMS || o->store > MPSIM_STORE_KAHAN ||
        o->nesterov > 1 || o->amsgrad > 1 || o->maximize > 1 || !numbers_are_valid(o))
        return MPSIM_EINVAL;
    if (!is_available(r, o))
        return MPSIM_EUNAVAILABLE;
    const mpsim_status s = check_format(&o->param);
    return s == MPSIM_OK ? check_format(&o->state) : s;
}

/* ---- numbers of a format ---- */

mpsim_held mpsim_hold(const mpsim_format *f)
{
    const int exact = !f || (f->bits == 32 && f->ebits == 8 && f->mbits == 23 && f->bias == 127 &&
                             f->inf && f->nan == MPSIM_NAN_TOP && f->zero == MPSIM_ZERO_SIGNED);
    return (mpsim_held){.format = f, .exact = exact};
}

void mpsim_hold_array(const mpsim_held *h, float *x, size_t n)
{
    if (h->exact)
        return;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_round_array_f32(h->format, &r, NULL, x, x, n, NULL);
}

float mpsim_hold_one(const mpsim_held *h, float x)
{
    mpsim_hold_array(h, &x, 1);
    return x;
}

/* ---- a step ---- */

void mpsim_optim_store_param(const mpsim_optim_job *j, const mpsim_optim_block *b, float *x)
{
    if (j->o->store == MPSIM_STORE_STOCHASTIC && !j->param.exact) {
        mpsim_rounding r;
        mpsim_rng rng = *j->rng;
        rng.index += b->at;
        mpsim_rounding_init(&r, MPSIM_ROUND_STOCHASTIC_A);
        mpsim_round_array_f32(j->param.format, &r, &rng, b->p, x, b->n, NULL);
    } else {
        mpsim_hold_array(&j->param, x, b->n);
        memcpy(b->p, x, b->n * sizeof *x);
    }
}

void mpsim_optim_store_state(const mpsim_optim_job *j, float *to, const float *x, size_t n)
{
    memcpy(to, x, n * sizeof *x);
    mpsim_hold_array(&j->state, to, n);
}

static mpsim_optim_power power_of(const mpsim_optim *o, double beta, uint64_t step)
{
    if (o->algorithm == MPSIM_OPTIM_SGD)
        return (mpsim_optim_power){.of_double = 0, .of_float = 0};
    return (mpsim_optim_power){.of_double = mpsim_power(beta, step),
                               .of_float = mpsim_power((double)(float)beta, step)};
}

static int has_arrays(const mpsim_optim *o, const mpsim_optim_tensor *t)
{
    const int adam = o->algorithm != MPSIM_OPTIM_SGD;
    if (t->n == 0)
        return 1;
    return t->param && t->grad && (t->m || (!adam && o->momentum == 0)) && (t->v || !adam) &&
           (t->vmax || !o->amsgrad) && (t->kahan || o->store != MPSIM_STORE_KAHAN);
}

static float *from(float *x, size_t i)
{
    return x ? x + i : NULL;
}

/* Elements begin to end - 1 in blocks. */
static void run(const mpsim_optim_job *j, const mpsim_optim_tensor *t, size_t begin, size_t end,
                int tail)
{
    mpsim_optim_function *const step =
        j->o->algorithm == MPSIM_OPTIM_SGD ? j->row->sgd : j->row->adam;
    for (size_t i = begin; i < end; i += MPSIM_OPTIM_BLOCK) {
        const mpsim_optim_block b = {
            .p = t->param + i, .g = t->grad + i, .m = from(t->m, i), .v = from(t->v, i),
            .vmax = from(t->vmax, i), .kahan = from(t->kahan, i), .at = i,
            .n = end - i < MPSIM_OPTIM_BLOCK ? end - i : MPSIM_OPTIM_BLOCK, .tail = tail};
        step(j, &b);
    }
}

mpsim_status mpsim_optim_step(const mpsim_optim *o, uint64_t step, const mpsim_optim_tensor *t,
                              const mpsim_rng *rng)
{
    if (mpsim_optim_check(o) != MPSIM_OK || step == 0 || !t || !has_arrays(o, t) ||
        (o->store == MPSIM_STORE_STOCHASTIC && !rng))
        return MPSIM_EINVAL;
    const mpsim_optim_row *const row = row_of(o->variant);
    const mpsim_optim_job j = {.o = o, .row = row, .step = step, .rng = rng,
                               .param = mpsim_hold(&o->param), .state = mpsim_hold(&o->state),
                               .beta1 = power_of(o, o->beta1, step),
                               .beta2 = power_of(o, o->beta2, step)};
    const size_t multiple = row->body[j.param.exact ? 0 : 1];
    const size_t body = multiple ? t->n - t->n % multiple : 0;
    run(&j, t, 0, body, 0);
    run(&j, t, body, t->n, 1);
    return MPSIM_OK;
}

/* ---- the reference ---- */

/* What an element is updated with. */
typedef struct reference {
    const mpsim_optim *o;
    uint64_t step;
    double bc1, bc2;
} reference;

static double reference_sgd(const reference *r, double g, double *m)
{
    const mpsim_optim *o = r->o;
    if (o->momentum == 0)
        return o->lr * g;
    *m = r->step == 1 ? g : o->momentum * *m + (1 - o->dampening) * g;
    return o->lr * (o->nesterov ? g + o->momentum * *m : *m);
}

static double reference_adam(const reference *r, double g, double *m, double *v, double *vmax)
{
    const mpsim_optim *o = r->o;
    *m = o->beta1 * *m + (1 - o->beta1) * g;
    *v = o->beta2 * *v + (1 - o->beta2) * (g * g);
    if (vmax)
        *vmax = *vmax > *v || isnan(*vmax) ? *vmax : *v;
    return o->lr * (*m / r->bc1) / (sqrt((vmax ? *vmax : *v) / r->bc2) + o->eps);
}

mpsim_status mpsim_optim_reference(const mpsim_optim *o, uint64_t step, double *param,
                                   const double *grad, double *m, double *v, double *vmax,
                                   size_t n)
{
    if (mpsim_optim_check(o) != MPSIM_OK || step == 0)
        return MPSIM_EINVAL;
    const int adam = o->algorithm != MPSIM_OPTIM_SGD;
    if (n > 0 && (!param || !grad || (!m && (adam || o->momentum != 0)) || (!v && adam) ||
                  (!vmax && o->amsgrad)))
        return MPSIM_EINVAL;
    const reference r = {.o = o, .step = step, .bc1 = 1 - mpsim_power(o->beta1, step),
                         .bc2 = 1 - mpsim_power(o->beta2, step)};
    for (size_t i = 0; i < n; i++) {
        double g = grad[i] / o->grad_scale;
        g = o->maximize ? -g : g;
        if (o->weight_decay != 0 && o->algorithm == MPSIM_OPTIM_ADAMW)
            param[i] -= o->lr * o->weight_decay * param[i];
        else if (o->weight_decay != 0)
            g += o->weight_decay * param[i];
        param[i] -= adam ? reference_adam(&r, g, m + i, v + i, o->amsgrad ? vmax + i : NULL)
                         : reference_sgd(&r, g, o->momentum != 0 ? m + i : NULL);
    }
    return MPSIM_OK;
}

/* ---- powers ----
 *
 * significand * 2^exp with significand in [2^191, 2^192), the highest limb first. A product is
 * truncated: its error is below 2^-190, and n products of repeated squaring err by less than
 * n 2^-190 together, below 2^-126 for every n. */

typedef struct wide {
    uint64_t limb[3];
    int64_t exp;
} wide;

static wide wide_product(const wide *a, const wide *b)
{
    uint64_t p[6] = {0, 0, 0, 0, 0, 0}; /* lowest first */
    for (int i = 0; i < 3; i++) {
        uint64_t carry = 0;
        for (int k = 0; k < 3; k++) {
            uint64_t hi, lo;
            mpsim_mul64(&hi, &lo, a->limb[2 - i], b->limb[2 - k]);
            lo += carry;
            hi += lo < carry;
            p[i + k] += lo;
            carry = hi + (p[i + k] < lo);
        }
        p[i + 3] = carry;
    }
    wide y = {.limb = {p[5], p[4], p[3]}, .exp = a->exp + b->exp + 192};
    if (!(p[5] >> 63)) {
        y.limb[0] = p[5] << 1 | p[4] >> 63;
        y.limb[1] = p[4] << 1 | p[3] >> 63;
        y.limb[2] = p[3] << 1 | p[2] >> 63;
        y.exp--;
    }
    return y;
}

/* Rounded once, to nearest even. */
static double wide_value(const wide *x)
{
    const mpsim_format *f = mpsim_format_find("binary64");
    mpsim_rounding r;
    unsigned flags;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    const mpsim_number y = {.kind = MPSIM_NUMBER_FINITE, .exp = (int)(x->exp + 191),
                            .hi = x->limb[0], .lo = x->limb[1] | (x->limb[2] != 0)};
    return mpsim_scalar_decode(f, mpsim_scalar_encode(f, &r, r.mode, y, 0, &flags));
}

double mpsim_power(double beta, uint64_t n)
{
    enum { TINY = -4000 }; /* below it, a power rounds to 0 */
    const mpsim_number b = mpsim_number_f64(beta);
    if (!(beta >= 0 && beta < 1))
        return (double)NAN;
    if (n == 0 || beta == 0)
        return n == 0;
    wide base = {.limb = {b.hi, 0, 0}, .exp = b.exp - 191};
    wide power = {.limb = {(uint64_t)1 << 63, 0, 0}, .exp = -191};
    for (;; n >>= 1) {
        if (n & 1)
            power = wide_product(&power, &base);
        if (power.exp < TINY || (base.exp < TINY && n > 1))
            return 0;
        if (n <= 1)
            return wide_value(&power);
        base = wide_product(&base, &base);
    }
}
