/* torchquantised.c -- the quantised tensors of TransformerEngine in pickles: functions whose arguments have no names there.
 *
 * Sources: __reduce_ex__ of TransformerEngine 2.12, pytorch/tensor/{mxfp8,nvfp4,float8_blockwise,float8}_tensor.py; the
 * numbers of element types: NVTEDType of common/include/transformer_engine/transformer_engine.h, where those of 1.x are one
 * less (7 is E4M3 here: weights in E5M2, which it was in 1.x, are unheard of). That a pickle has an enumeration as a class
 * with a number as its state (pybind11) or its argument (Python) is unconfirmed: no file of theirs was at hand. */
#include "torch.h"

#include <string.h>

enum { ARGUMENTS = 12 };

/* "": not wanted. The element type is the argument whose name ends in _dtype. */
static const struct {
    const char *class, *arguments[ARGUMENTS];
} rows[] = {
    {"MXFP8Tensor",
     {"rowwise_data", "rowwise_scale_inv", "columnwise_data", "columnwise_scale_inv", "fp8_dtype", "dtype", "shape", "",
      "with_gemm_swizzled_scales"}},
    {"NVFP4Tensor",
     {"shape", "rowwise_data", "rowwise_scale_inv", "columnwise_data", "columnwise_scale_inv", "amax_rowwise",
      "amax_columnwise", "fp4_dtype", "dtype", "", "with_gemm_swizzled_scales"}},
    {"Float8BlockwiseQTensor",
     {"shape", "rowwise_data", "rowwise_scale_inv", "columnwise_data", "columnwise_scale_inv", "fp8_dtype", "dtype", "",
      "is_2D_scaled"}},
    {"Float8Tensor", {"data", "fp8_dtype", "fp8_scale_inv", "dtype", "shape"}},
};

/* "transformer_engine....CLASS._make_in_reduce_ex" */
static int is_function(const char *made, const char *class)
{
    static const char package[] = "transformer_engine.", function[] = "._make_in_reduce_ex";
    const size_t n = strlen(made), k = strlen(class), f = sizeof function - 1;
    return strncmp(made, package, sizeof package - 1) == 0 && n > k + f && strcmp(made + n - f, function) == 0 &&
           memcmp(made + n - f - k, class, k) == 0 && made[n - f - k - 1] == '.';
}

static const char *element_of(const pickle *p, pickle_ref r)
{
    static const char *const names[] = {[6] = "Float8E4M3", "Float8E4M3", "Float8E5M2", NULL, "Float4E2M1"};
    int64_t number = -1;
    if (pickle_type_of(p, r) != PICKLE_OBJECT)
        return NULL;
    if (pickle_int(p, pickle_item(p, pickle_args(p, r), 0), &number))
        pickle_int(p, pickle_state(p, r), &number);
    return number >= 0 && number < (int64_t)(sizeof names / sizeof names[0]) ? names[number] : NULL;
}

const char *const *trace_torch_quantised(const pickle *p, const char *made, pickle_ref args, const char **element)
{
    const size_t n = pickle_count(p, args);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const *names = rows[i].arguments;
        if (!is_function(made, rows[i].class))
            continue;
        for (size_t k = 0; k < n && k < ARGUMENTS && names[k]; k++)
            if (trace_torch_is_element(names[k]))
                *element = element_of(p, pickle_item(p, args, k));
        return *element ? names : NULL;
    }
    return NULL;
}

int trace_torch_is_element(const char *argument)
{
    static const char end[] = "_dtype";
    const size_t n = strlen(argument), k = sizeof end - 1;
    return n > k && strcmp(argument + n - k, end) == 0;
}
