/* preset.c -- what the same format name means in different places: a table.
 *
 * The presets named after software are checked against recorded casts of that software
 * (data/vectors/casts, tests/round/t-framework.c), those of CUDA against NVIDIA's headers
 * (tests/round/t-cudahdr.c), but for tf32: the headers have an instruction there, cvt.rna, whose NaNs a device
 * answered (data/gpu, tests/round/t-nan.c). PyTorch and ml_dtypes convert binary64 to binary32 first (NumPy's fp16 does
 * not); E8M0 is to nearest, halves up, there, and CUDA's constructor and ONNX round it up. A choice that is not named has the value of mpsim_rounding_init. */
#include <mpsim/round.h>

#include "../base/words.h"

#define CHOICES(...)                           \
    {                                          \
        .sr_bits = 32, .scale = 1, __VA_ARGS__ \
    }

/* Sets of choices that stand in several rows. */
#define IEEE_LIKE .overflow = MPSIM_OVERFLOW_INF, .infinity = MPSIM_INFINITY_KEEP
#define SATURATING .overflow = MPSIM_OVERFLOW_MAX, .infinity = MPSIM_INFINITY_MAX
#define CUDA .nan = MPSIM_NANS_ONES, .negative = MPSIM_NEGATIVE_ABS
#define CUDA_TF32 IEEE_LIKE, .nan = MPSIM_NANS_ONES_OR_CUT, .negative = MPSIM_NEGATIVE_ABS
#define TORCH_FLOAT8 .nan = MPSIM_NANS_ONES_SIGNED, .negative = MPSIM_NEGATIVE_ABS
#define VIA .via_binary32 = 1
#define E8M0_NEAREST .mode = MPSIM_ROUND_NEAREST_AWAY, .by_field = 1
#define TORCH_BFLOAT16                                                \
    {                                                                 \
        "bf16", CHOICES(IEEE_LIKE, VIA, .nan = MPSIM_NANS_MINUS_ONES) \
    }
#define TORCH_E8M0                                                  \
    {                                                               \
        "e8m0", CHOICES(IEEE_LIKE, VIA, TORCH_FLOAT8, E8M0_NEAREST) \
    }
#define ML_DTYPES .no_nan = MPSIM_NO_NAN_ANTIZERO, .no_zero = MPSIM_NO_ZERO_NAN_MIN
#define P3109 .no_inf = MPSIM_NO_INF_MAX, .nan = MPSIM_NANS_POSITIVE

static const mpsim_preset presets[] = {
    {.name = "ieee", .narrow = CHOICES(IEEE_LIKE), .wide = CHOICES(IEEE_LIKE), .source = "IEEE 754-2019; the default"},
    {.name = "saturate",
     .narrow = CHOICES(SATURATING),
     .wide = CHOICES(SATURATING),
     .source = "everything beyond the largest number becomes it"},
    {.name = "ocp",
     .narrow = CHOICES(IEEE_LIKE),
     .wide = CHOICES(IEEE_LIKE),
     .source = "OCP OFP8 1.0, non-saturating mode"},
    {.name = "ocp-sat",
     .narrow = CHOICES(SATURATING),
     .wide = CHOICES(IEEE_LIKE),
     .source = "OCP OFP8 1.0, saturating mode"},
    {.name = "cuda",
     .narrow = CHOICES(SATURATING, CUDA),
     .wide = CHOICES(IEEE_LIKE, CUDA),
     .source = "CUDA 13.0 headers, __NV_SATFINITE (cvt.rn.satfinite)",
     .exceptions = {{"e8m0", CHOICES(SATURATING, CUDA, .mode = MPSIM_ROUND_UP)}, {"tf32", CHOICES(CUDA_TF32)}}},
    {.name = "cuda-nosat",
     .narrow = CHOICES(IEEE_LIKE, CUDA),
     .wide = CHOICES(IEEE_LIKE, CUDA),
     .source = "CUDA 13.0 headers, __NV_NOSAT",
     .exceptions = {{"e8m0", CHOICES(IEEE_LIKE, CUDA, .mode = MPSIM_ROUND_UP)}, {"tf32", CHOICES(CUDA_TF32)}}},
    /* PyTorch: NaN as the vector code of contiguous tensors gives it. */
    {.name = "pytorch",
     .narrow = CHOICES(IEEE_LIKE, VIA, TORCH_FLOAT8),
     .wide = CHOICES(IEEE_LIKE, VIA, .nan = MPSIM_NANS_PAYLOAD),
     .source = "PyTorch 2.13 to 2.15 on CPU: only e4m3 saturates",
     .short_nan = "bf16",
     .exceptions = {{"e4m3", CHOICES(SATURATING, VIA, TORCH_FLOAT8)}, TORCH_BFLOAT16, TORCH_E8M0}},
    {.name = "pytorch-2.12",
     .narrow = CHOICES(IEEE_LIKE, VIA, TORCH_FLOAT8),
     .wide = CHOICES(IEEE_LIKE, VIA, .nan = MPSIM_NANS_PAYLOAD),
     .source = "PyTorch up to 2.12 on CPU, FP8 of 2.11 on an H200: nothing saturates",
     .short_nan = "bf16",
     .exceptions = {TORCH_BFLOAT16, TORCH_E8M0}},
    {.name = "ml-dtypes",
     .narrow = CHOICES(IEEE_LIKE, VIA, ML_DTYPES),
     .wide = CHOICES(IEEE_LIKE, VIA, ML_DTYPES),
     .source = "ml_dtypes 0.6 and, for fp16, NumPy 2.4: astype from binary32 (ml_dtypes takes "
               "binary64 through it; NumPy leaves a signalling NaN signalling: not done here)",
     .exceptions = {{"fp16", CHOICES(IEEE_LIKE, ML_DTYPES, .nan = MPSIM_NANS_PAYLOAD)},
                    {"e8m0", CHOICES(IEEE_LIKE, VIA, ML_DTYPES, E8M0_NEAREST)}}},
    {.name = "onnx",
     .narrow = CHOICES(SATURATING, .negative = MPSIM_NEGATIVE_ABS),
     .wide = CHOICES(IEEE_LIKE),
     .source = "ONNX Cast, saturate = 1 (its default)",
     /* infinity is NaN here */
     .exceptions = {{"e8m0", CHOICES(.overflow = MPSIM_OVERFLOW_MAX, .negative = MPSIM_NEGATIVE_ABS,
                                     .mode = MPSIM_ROUND_UP, .by_field = 1)}}},
    {.name = "onnx-nosat",
     .narrow = CHOICES(IEEE_LIKE, .negative = MPSIM_NEGATIVE_ABS),
     .wide = CHOICES(IEEE_LIKE, .negative = MPSIM_NEGATIVE_ABS),
     .source = "ONNX Cast, saturate = 0",
     .exceptions = {{"e8m0",
                     CHOICES(IEEE_LIKE, .negative = MPSIM_NEGATIVE_ABS, .mode = MPSIM_ROUND_UP, .by_field = 1)}}},
    {.name = "p3109-satfinite",
     .narrow = CHOICES(SATURATING, P3109, .negative = MPSIM_NEGATIVE_MIN),
     .wide = CHOICES(SATURATING, P3109, .negative = MPSIM_NEGATIVE_MIN),
     .source = "IEEE P3109 interim report 4.0, SatFinite"},
    {.name = "p3109-satpropagate",
     .narrow = CHOICES(P3109, .overflow = MPSIM_OVERFLOW_MAX, .negative = MPSIM_NEGATIVE_MIN),
     .wide = CHOICES(P3109, .overflow = MPSIM_OVERFLOW_MAX, .negative = MPSIM_NEGATIVE_MIN),
     .source = "IEEE P3109 interim report 4.0, SatPropagate"},
    {.name = "p3109-satnone",
     .narrow = CHOICES(IEEE_LIKE, P3109),
     .wide = CHOICES(IEEE_LIKE, P3109),
     .source = "IEEE P3109 interim report 4.0, SatNone (OvfInf)"},
};

enum { PRESETS = sizeof presets / sizeof presets[0] };

size_t mpsim_preset_count(void)
{
    return PRESETS;
}

const mpsim_preset *mpsim_preset_at(size_t i)
{
    return i < PRESETS ? &presets[i] : NULL;
}

const mpsim_preset *mpsim_preset_find(const char *name)
{
    if (name)
        for (size_t i = 0; i < PRESETS; i++)
            if (mpsim_same_word(name, strlen(name), presets[i].name))
                return &presets[i];
    return NULL;
}

/* All that the table says of numbers of binary32. */
static void copy_preset(mpsim_rounding *r, const mpsim_preset *p, const mpsim_format *f)
{
    *r = f->bits <= 8 ? p->narrow : p->wide;
    for (int i = 0; i < MPSIM_PRESET_EXCEPTIONS; i++)
        if (p->exceptions[i].format && strcmp(p->exceptions[i].format, f->name) == 0)
            *r = p->exceptions[i].rounding;
}

void mpsim_rounding_preset(mpsim_rounding *r, const mpsim_preset *p, const mpsim_format *f)
{
    copy_preset(r, p, f);
    r->mode = MPSIM_ROUND_NEAREST_EVEN;
    r->via_binary32 = r->by_field = 0;
}

void mpsim_rounding_preset_from(mpsim_rounding *r, const mpsim_preset *p, const mpsim_format *f,
                                const mpsim_format *source)
{
    copy_preset(r, p, f);
    if (source->bits < 32 && p->short_nan && strcmp(p->short_nan, f->name) == 0)
        r->nan = MPSIM_NANS_POSITIVE;
}
