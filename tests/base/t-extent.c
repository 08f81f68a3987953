/* t-extent.c -- every public function that is given a size or a stride refuses what memory cannot hold, before it reads anything.
 *
 * tests/ck-house.sh compares the names below with those in the headers. A function that asks for more than there is ends this
 * program by a signal. */
#include "support/support.h"

#include <mpsim/mpsim.h>

#include <math.h>

enum { PLACES = 16 };

static double at[PLACES]; /* of all arrays: in the middle of nothing else */
static uint32_t index_of[PLACES];
static const mpsim_rng rng = {1, 2, 3};

#define F ((float *)(void *)at)
#define X ((const float *)(void *)at)

static const mpsim_format *format(const char *name)
{
    return mpsim_format_find(name);
}

static mpsim_rounding nearest(void)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return r;
}

static mpsim_model model(const char *name)
{
    mpsim_model m;
    ck_assert_int_eq(mpsim_model_parse(&m, name), MPSIM_OK);
    return m;
}

/* ---- n elements ---- */

static int is_refused(mpsim_status s)
{
    return s == MPSIM_EINVAL;
}

#define OF_N(name, call)          \
    static int name##_n(size_t n) \
    {                             \
        return (call);            \
    }
#define STATUS_OF_N(name, ...) OF_N(name, is_refused(name(__VA_ARGS__)))

STATUS_OF_N(mpsim_decode_array, format("e4m3"), at, at, n)
STATUS_OF_N(mpsim_decode_array_f32, format("e4m3"), F, at, n)
STATUS_OF_N(mpsim_encode_array_f32, format("e4m3"), &(mpsim_rounding){.scale = 1}, NULL, at, X, n, NULL)
STATUS_OF_N(mpsim_encode_array_f64, format("e4m3"), &(mpsim_rounding){.scale = 1}, NULL, at, at, n, NULL)
STATUS_OF_N(mpsim_round_array_f32, format("e4m3"), &(mpsim_rounding){.scale = 1}, NULL, F, X, n, NULL)
STATUS_OF_N(mpsim_round_array_f64, format("e4m3"), &(mpsim_rounding){.scale = 1}, NULL, at, at, n, NULL)
STATUS_OF_N(mpsim_hadamard, F, n & ~(size_t)15)
STATUS_OF_N(mpsim_hadamard_groups, F, n, 16, 0)
STATUS_OF_N(mpsim_hadamard_groups_back, F, n, 16, 0)
STATUS_OF_N(mpsim_add_array, NULL, NULL, F, X, X, n)
STATUS_OF_N(mpsim_multiply_array, NULL, NULL, F, X, X, n)
STATUS_OF_N(mpsim_dropout, NULL, NULL, 0.5, &rng, F, X, n)
STATUS_OF_N(mpsim_state_quantise, mpsim_state_find("dynamic8"), X, n, NULL, NULL, NULL)
STATUS_OF_N(mpsim_state_values, mpsim_state_find("e4m3/256"), (uint16_t *)at, X, n, F)
STATUS_OF_N(mpsim_states_keep, mpsim_states_find("coat"), F, F, F, F, n)
STATUS_OF_N(mpsim_gradients_check, (mpsim_gradient[]){{format("binary32"), X, F, n, 0}}, 1, MPSIM_UNSCALE_DIVIDE,
            MPSIM_CHECK_ELEMENTS, 2, NULL, &(int64_t){0})
STATUS_OF_N(mpsim_gradients_move, &(mpsim_step_rules){0}, (mpsim_gradient[]){{format("binary32"), X, F, n, 0}}, 1, 2, 1,
            NULL, &(mpsim_readied){0})
OF_N(mpsim_norm, isnan(mpsim_norm(NULL, X, n)))
OF_N(mpsim_mean, isnan(mpsim_mean(NULL, X, n, 1)))
OF_N(mpsim_clip_total, isnan(mpsim_clip_total(MPSIM_CLIP_TORCH, NULL, X, n)))
OF_N(mpsim_norm_overflows, mpsim_norm_overflows(X, n))
OF_N(mpsim_unscale_array, mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, 2, NULL, F, X, n) != 0)
OF_N(mpsim_digest, mpsim_digest(format("fp16"), at, n, 0) == 0)
OF_N(mpsim_digest_blocks, mpsim_digest_blocks(format("fp16"), at, n, 0) == 0)
OF_N(mpsim_digest_bytes, mpsim_digest_bytes(at, n, 0) == 0)
OF_N(mpsim_amax, mpsim_amax(X, n) == 0)
OF_N(mpsim_count_numbers, mpsim_count_numbers(X, n).finite == 0)

static int mpsim_scale_array_n(size_t n)
{
    mpsim_scale_array(NULL, F, X, n, 2);
    return 1;
}

static int mpsim_normal_array_n(size_t n)
{
    mpsim_normal_array(&rng, 1, F, n);
    return 1;
}

static int mpsim_arith_array_n(size_t n)
{
    mpsim_arith o = {.op = MPSIM_OP_ADD, .result = *format("binary64"), .rounding = nearest()};
    o.operand[0] = o.operand[1] = o.operand[2] = *format("e4m3");
    return is_refused(mpsim_arith_array(&o, NULL, at, at, at, at, n, NULL));
}

static int mpsim_stats_add_n(size_t n)
{
    mpsim_stats s;
    mpsim_stats_init(&s);
    mpsim_stats_add(&s, at, n);
    return s.count == 0;
}

static int mpsim_histogram_add_n(size_t n)
{
    mpsim_histogram h;
    mpsim_histogram_init(&h);
    mpsim_histogram_add(&h, at, n);
    return h.zero == 0;
}

static int mpsim_cast_stats_add_n(size_t n)
{
    mpsim_cast_stats c;
    const mpsim_rounding r = nearest();
    mpsim_cast_stats_init(&c);
    return is_refused(mpsim_cast_stats_add(&c, format("e4m3"), &r, NULL, at, n));
}

static int mpsim_cast_stats_add_values_n(size_t n)
{
    mpsim_cast_stats c;
    mpsim_cast_stats_init(&c);
    mpsim_cast_stats_add_values(&c, X, X, n);
    return c.compared == 0;
}

static int summary_of(mpsim_status (*add)(mpsim_summary *s, size_t n), size_t n)
{
    mpsim_summary *s = mpsim_summary_new();
    const int refused = mpsim_summary_begin(s, NULL, 0, 0) == MPSIM_OK && is_refused(add(s, n));
    mpsim_summary_free(s);
    return refused;
}

#define SUMMARY(name, ...)                                    \
    static mpsim_status name##_of(mpsim_summary *s, size_t n) \
    {                                                         \
        return name(s, __VA_ARGS__);                          \
    }                                                         \
    OF_N(name, summary_of(name##_of, n))

SUMMARY(mpsim_summary_add_f32, NULL, X, n)
SUMMARY(mpsim_summary_add_f64, NULL, at, n)
SUMMARY(mpsim_summary_add_codes, format("e4m3"), NULL, at, n)
SUMMARY(mpsim_summary_begin, (const mpsim_cast *)(const void *)at, n, 0)

static int mpsim_reduce_array_n(size_t n)
{
    mpsim_reduce r = {.wire = *format("fp16"), .accumulator = *format("fp16"), .result = *format("fp16")};
    const float *const x[] = {X, X};
    return is_refused(mpsim_reduce_array(&r, F, x, 2, n)) && is_refused(mpsim_reduce_array(&r, F, x, n, 1));
}

static mpsim_optim adam(void)
{
    mpsim_optim o;
    mpsim_optim_init(&o, MPSIM_OPTIM_ADAM, mpsim_optim_variant_at(0));
    return o;
}

static int mpsim_optim_step_n(size_t n)
{
    const mpsim_optim o = adam();
    const mpsim_optim_tensor t = {F, X, F, F, F, F, n};
    return is_refused(mpsim_optim_step(&o, 1, &t, &rng));
}

static int mpsim_optim_reference_n(size_t n)
{
    const mpsim_optim o = adam();
    return is_refused(mpsim_optim_reference(&o, 1, at, at, at, at, at, n));
}

static int mpsim_update_run_n(size_t n)
{
    const mpsim_optim o = adam();
    mpsim_update u = {.optim = &o, .step = 1, .t = {F, X, F, F, F, F, n}};
    return is_refused(mpsim_update_run(&u, 1, 0, NULL, NULL)) &&
           is_refused(mpsim_update_run(&u, SIZE_MAX / 8, 0, NULL, NULL));
}

static mpsim_muon muon(void)
{
    mpsim_muon o;
    mpsim_muon_init(&o, MPSIM_MUON_TORCH, mpsim_optim_variant_find("torch-cpu"));
    return o;
}

static int mpsim_muon_momentum_n(size_t n)
{
    const mpsim_muon o = muon();
    return is_refused(mpsim_muon_momentum(&o, F, F + 1, X, n));
}

static int mpsim_dot_n(size_t n)
{
    const mpsim_model m = model("fma");
    uint64_t d;
    return is_refused(mpsim_dot(&m, format("e4m3"), at, format("binary32"), at, n, 0, NULL, &d));
}

static int mpsim_dot_steps_n(size_t n)
{
    const mpsim_model m = model("fma");
    uint64_t d;
    return is_refused(mpsim_dot_steps(&m, format("binary32"), at, format("e4m3"), at, n, 0, NULL, &d, NULL, NULL));
}

static mpsim_model blocks(void)
{
    mpsim_model m;
    const mpsim_status s = mpsim_model_for_blocks(&m, "rtx-blackwell", format("e2m1"), format("e2m1"), 16,
                                                  format("e4m3"));
    ck_assert_int_eq(s, MPSIM_OK);
    return m;
}

static int mpsim_dot_scaled_n(size_t n)
{
    const mpsim_model m = blocks();
    const mpsim_scales s = {format("e4m3"), at, 1};
    uint64_t d;
    return is_refused(mpsim_dot_scaled(&m, format("e2m1"), at, &s, format("e2m1"), at, &s, n, 0, NULL, &d));
}

/* ---- rows of columns ---- */

#define OF_ROWS(name, call)                          \
    static int name##_rows(size_t rows, size_t cols) \
    {                                                \
        return (call);                               \
    }
#define STATUS_OF_ROWS(name, ...) OF_ROWS(name, is_refused(name(__VA_ARGS__)))

STATUS_OF_ROWS(mpsim_softmax_xent, NULL, NULL, rows, cols, X, index_of, 1, F, F, NULL)
STATUS_OF_ROWS(mpsim_cross_entropy, NULL, NULL, rows, cols, X, index_of, 0, 1, F, F, NULL, NULL)
STATUS_OF_ROWS(mpsim_activate, MPSIM_SWIGLU, NULL, NULL, F, X, rows, cols)
STATUS_OF_ROWS(mpsim_activate_backward, MPSIM_RELU, NULL, NULL, F, X, X, rows, cols)
STATUS_OF_ROWS(mpsim_rotary, F, F, rows, cols, 1e4)
STATUS_OF_ROWS(mpsim_softmax_rows, &(mpsim_softmax){.rows = rows, .cols = cols}, F, X, NULL)
STATUS_OF_ROWS(mpsim_softmax_backward, &(mpsim_softmax){.rows = rows, .cols = cols}, F, X, X, NULL)
STATUS_OF_ROWS(mpsim_log_softmax, &(mpsim_softmax){.rows = rows, .cols = cols}, F, X, NULL)
STATUS_OF_ROWS(mpsim_log_softmax_backward, &(mpsim_softmax){.rows = rows, .cols = cols}, F, X, X, NULL)
STATUS_OF_ROWS(mpsim_causal_softmax, &(mpsim_causal){.matrices = rows, .length = cols}, F, X)
STATUS_OF_ROWS(mpsim_causal_softmax_backward, &(mpsim_causal){.matrices = rows, .length = cols}, F, X, X)
STATUS_OF_ROWS(mpsim_causal_tile_forward, &(mpsim_causal_tile){.c = {.matrices = rows, .length = cols}, .cols = 1}, F,
               F, F, F, X)
STATUS_OF_ROWS(mpsim_causal_tile_end, &(mpsim_causal_tile){.c = {.matrices = 1, .length = rows}, .size = cols}, F, F, X,
               X, X)
STATUS_OF_ROWS(mpsim_causal_tile_dots, &(mpsim_causal_tile){.c = {.matrices = rows, .length = 1}, .size = cols}, F, X,
               X)
STATUS_OF_ROWS(mpsim_causal_tile_again, &(mpsim_causal_tile){.c = {.matrices = 1, .length = rows}, .cols = cols}, F, X,
               X)
STATUS_OF_ROWS(mpsim_causal_tile_backward, &(mpsim_causal_tile){.c = {.matrices = 1, .length = rows}, .cols = cols}, F,
               X, X, X, X)
STATUS_OF_ROWS(mpsim_rownorm_forward, &(mpsim_rownorm){.rows = rows, .cols = cols}, F, F, F, X, X, X)
STATUS_OF_ROWS(mpsim_rownorm_backward, &(mpsim_rownorm){.rows = rows, .cols = cols}, F, F, F, X, X, X, X, X)
STATUS_OF_ROWS(mpsim_batchnorm_forward, &(mpsim_batchnorm){.rows = rows, .channels = cols}, F, F, F, NULL, NULL, X, X,
               X)
STATUS_OF_ROWS(mpsim_batchnorm_backward, &(mpsim_batchnorm){.rows = rows, .channels = cols}, F, F, F, X, X, X, X, X)
STATUS_OF_ROWS(mpsim_batchnorm_inference, &(mpsim_batchnorm){.rows = rows, .channels = cols}, F, X, X, X, X, X)
OF_ROWS(mpsim_embed, is_refused(mpsim_embed(NULL, F, X, index_of, rows, cols, 1)) &&
                         is_refused(mpsim_embed(NULL, F, X, index_of, 1, cols, rows)))
OF_ROWS(mpsim_embed_backward, is_refused(mpsim_embed_backward(NULL, F, X, index_of, rows, cols, 0, 1, 0)) &&
                                  is_refused(mpsim_embed_backward(NULL, F, X, index_of, 1, cols, 0, rows, 0)))
OF_ROWS(mpsim_column_sums, is_refused(mpsim_column_sums(NULL, NULL, F, X, rows, 1, cols)) &&
                               is_refused(mpsim_column_sums(NULL, NULL, F, X, rows, cols, cols)))
OF_ROWS(mpsim_period_sums, is_refused(mpsim_period_sums(NULL, NULL, F, X, rows, 1, cols, 1, 0)) &&
                               is_refused(mpsim_period_sums(NULL, NULL, F, X, 1, cols, cols, rows, 0)))
OF_ROWS(mpsim_sum_lanes, isnan(mpsim_sum_lanes(NULL, X, rows, cols, 32)))

static int mpsim_block_quantize_rows(size_t rows, size_t cols)
{
    const mpsim_blocks out = {0};
    return is_refused(mpsim_block_quantize(mpsim_block_find("mxfp8"), X, rows, cols, -1, 1, NULL, &out, NULL));
}

static int mpsim_muon_orthogonalise_rows(size_t rows, size_t cols)
{
    const mpsim_muon o = muon();
    return is_refused(mpsim_muon_orthogonalise(&o, F, X, rows, cols, NULL));
}

static int mpsim_muon_apply_rows(size_t rows, size_t cols)
{
    const mpsim_muon o = muon();
    return is_refused(mpsim_muon_apply(&o, F, F, rows, cols));
}

static int mpsim_muon_reference_rows(size_t rows, size_t cols)
{
    const mpsim_muon o = muon();
    return is_refused(mpsim_muon_reference(&o, at, at, rows, cols));
}

/* ---- matrices: every operand in turn, by its size and by its stride ---- */

static mpsim_matrix matrix(const char *name, size_t stride)
{
    return (mpsim_matrix){format(name), at, stride, 0};
}

static int mpsim_gemm_rows(size_t rows, size_t cols)
{
    const mpsim_model m = model("fma");
    const mpsim_matrix one = matrix("e4m3", 1), a = matrix("e4m3", cols), c = matrix("binary32", cols);
    const mpsim_matrix turned = {format("e4m3"), at, cols, 1};
    return is_refused(mpsim_gemm(&m, rows, 1, 1, &a, &one, NULL, at, 1, NULL, NULL)) &&
           is_refused(mpsim_gemm(&m, 1, rows, 1, &one, &turned, NULL, at, rows, NULL, NULL)) &&
           is_refused(mpsim_gemm(&m, 1, cols, rows, &one, &a, NULL, at, 1, NULL, NULL)) &&
           is_refused(mpsim_gemm(&m, rows, 1, 1, &one, &one, &c, at, 1, NULL, NULL)) &&
           is_refused(mpsim_gemm(&m, rows, 1, 1, &one, &one, NULL, at, cols, NULL, NULL));
}

static int mpsim_gemm_scaled_rows(size_t rows, size_t cols)
{
    const mpsim_model m = blocks();
    const mpsim_matrix one = matrix("e2m1", 1);
    const mpsim_scales s = {format("e4m3"), at, 1}, far = {format("e4m3"), at, cols};
    return is_refused(mpsim_gemm_scaled(&m, rows, 1, 1, &one, &far, &one, &s, NULL, at, 1, NULL, NULL)) &&
           is_refused(mpsim_gemm_scaled(&m, 1, rows, 1, &one, &s, &one, &far, NULL, at, rows, NULL, NULL));
}

static int mpsim_scaled_mm_run_rows(size_t rows, size_t cols)
{
    mpsim_scaled_mm p;
    const mpsim_matrix one = matrix("e4m3", 1), a = matrix("e4m3", cols);
    return mpsim_scaled_mm_parse(&p, "torch-scaled-mm") == MPSIM_OK &&
           is_refused(mpsim_scaled_mm_run(&p, rows, 1, 1, &a, &one, 1, 1, NULL, at, NULL)) &&
           is_refused(mpsim_scaled_mm_run(&p, 1, cols, rows, &one, &a, 1, 1, NULL, at, NULL));
}

static int mpsim_torch_mm_run_rows(size_t rows, size_t cols)
{
    mpsim_torch_mm p;
    const mpsim_matrix one = matrix("bf16", 1), a = matrix("bf16", cols);
    return mpsim_torch_mm_parse(&p, "torch-mm:avx512") == MPSIM_OK &&
           is_refused(mpsim_torch_mm_run(&p, rows, 1, 1, &a, &one, at, NULL)) &&
           is_refused(mpsim_torch_mm_run(&p, 1, cols, rows, &one, &a, at, NULL));
}

static int mpsim_attention_forward_rows(size_t rows, size_t cols)
{
    const mpsim_model m = model("fma");
    const mpsim_matrix one = matrix("binary32", 1), far = matrix("binary32", cols);
    mpsim_attention a;
    mpsim_attention_init(&a, 1);
    a.scores = a.context = &m;
    const mpsim_attention_shape q = {rows, 1, 1, 1}, k = {1, rows, 1, 1};
    return is_refused(mpsim_attention_forward(&a, &q, &far, &one, &one, F, NULL, NULL, NULL, NULL, NULL)) &&
           is_refused(mpsim_attention_forward(&a, &k, &one, &far, &one, F, NULL, NULL, NULL, NULL, NULL)) &&
           is_refused(mpsim_attention_forward(&a, &k, &one, &one, &far, F, NULL, NULL, NULL, NULL, NULL));
}

static int mpsim_attention_exact_rows(size_t rows, size_t cols)
{
    const mpsim_matrix one = matrix("binary32", 1), far = matrix("binary32", cols);
    mpsim_attention a;
    mpsim_attention_init(&a, 1);
    const mpsim_attention_shape q = {rows, 1, 1, 1}, k = {1, rows, 1, 1};
    return is_refused(mpsim_attention_exact(&a, &q, &far, &one, &one, at, NULL)) &&
           is_refused(mpsim_attention_exact(&a, &k, &one, &far, &one, at, NULL));
}

static int mpsim_attention_backward_rows(size_t rows, size_t cols)
{
    const mpsim_model m = model("fma");
    const mpsim_matrix one = matrix("binary32", 1), far = matrix("binary32", cols);
    mpsim_attention a;
    mpsim_attention_gradient g;
    mpsim_attention_init(&a, 1);
    a.scores = a.context = &m;
    mpsim_attention_gradient_init(&g, &a);
    g.dp = g.dvalue = g.dkey = g.dquery = &m;
    const mpsim_attention_shape q = {rows, 1, 1, 1}, k = {1, rows, 1, 1};
    return is_refused(mpsim_attention_backward(&g, &q, &one, &one, &one, &far, X, X, X, F, F, F, NULL, NULL)) &&
           is_refused(mpsim_attention_backward(&g, &k, &one, &far, &one, &one, X, X, X, F, F, F, NULL, NULL));
}

/* ---- stacks, and arrays with strides ---- */

static mpsim_stack stack(size_t rows, int64_t stride)
{
    return (mpsim_stack){format("binary32"), at, 2, {rows, 1}, {stride, 1}};
}

static int mpsim_operand_enter_rows(size_t rows, size_t cols)
{
    const mpsim_entering how = {.format = format("bf16")};
    const mpsim_stack far = stack(rows, (int64_t)(cols / 2)), back = stack(rows, -(int64_t)(cols / 2));
    const mpsim_stack large = {format("binary32"), at, 3, {rows, cols, 1}, {0, 0, 0}};
    mpsim_operand o;
    return is_refused(mpsim_operand_enter(&o, &far, &how, NULL, NULL)) &&
           is_refused(mpsim_operand_enter(&o, &back, &how, NULL, NULL)) &&
           is_refused(mpsim_operand_enter(&o, &large, &how, NULL, NULL));
}

static int product_of(const mpsim_stack *a, const mpsim_stack *b, const mpsim_stack *d, const mpsim_stack *bias)
{
    const mpsim_model m = model("fma");
    mpsim_operand x, y;
    mpsim_product p;
    mpsim_operand_init(&x, a, NULL, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_operand_init(&y, b, NULL, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_product_init(&p);
    p.model = &m;
    p.a = &x;
    p.b = &y;
    p.d = d;
    p.bias = bias;
    return is_refused(mpsim_product_run(&p, NULL));
}

static int mpsim_product_run_rows(size_t rows, size_t cols)
{
    const mpsim_stack one = stack(1, 1), far = stack(rows, (int64_t)(cols / 2)), none = stack(rows, 0),
                      d = stack(rows, 1);
    const mpsim_stack across = {format("binary32"), at, 2, {1, rows}, {1, 1}};
    return product_of(&far, &one, &d, NULL) && product_of(&one, &far, &across, NULL) &&
           product_of(&none, &one, &far, NULL) && product_of(&none, &one, &d, &far);
}

static int mpsim_product_of_rows(size_t rows, size_t cols)
{
    const mpsim_model m = model("fma");
    const mpsim_stack one = stack(1, 1), far = stack(rows, (int64_t)(cols / 2)), d = stack(rows, 1);
    const mpsim_entering how = {0};
    mpsim_product p;
    mpsim_product_init(&p);
    p.model = &m;
    p.d = &d;
    return is_refused(mpsim_product_of(&p, &far, &how, &one, &how, NULL));
}

static int convolution_of(mpsim_status run(const mpsim_convolution *c, const mpsim_pool *pool), size_t rows,
                          size_t cols)
{
    const mpsim_model m = model("fma");
    mpsim_stack x = {format("binary32"), at, 3, {rows, 1, cols}, {(int64_t)cols, 1, 1}};
    const mpsim_stack w = {format("binary32"), at, 3, {1, 1, 1}, {1, 1, 1}};
    mpsim_operand a, b;
    mpsim_convolution c;
    mpsim_operand_init(&a, &x, NULL, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_operand_init(&b, run == mpsim_convolution_backward_weight ? &x : &w, NULL, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_convolution_init(&c);
    c.model = &m;
    c.a = &a;
    c.b = &b;
    c.d = run == mpsim_convolution_backward_weight ? &w : &x;
    return is_refused(run(&c, NULL));
}

OF_ROWS(mpsim_convolution_forward, convolution_of(mpsim_convolution_forward, rows, cols))
OF_ROWS(mpsim_convolution_backward_input, convolution_of(mpsim_convolution_backward_input, rows, cols))
OF_ROWS(mpsim_convolution_backward_weight, convolution_of(mpsim_convolution_backward_weight, rows, cols))

/* Where every array has its strides, and where only the shape is too large. */
static int between_of(mpsim_between_kind kind, size_t rows, size_t cols)
{
    const int table = kind == MPSIM_BETWEEN_EMBED || kind == MPSIM_BETWEEN_EMBED_BACKWARD ||
                      kind == MPSIM_BETWEEN_PERIOD_SUMS;
    mpsim_between o = {.kind = (uint8_t)kind, .dims = 2, .shape = {rows, 1}, .entries = 1, .index = (int64_t *)at};
    mpsim_strided far[MPSIM_BETWEEN_ARRAYS], still[MPSIM_BETWEEN_ARRAYS];
    for (int i = 0; i < MPSIM_BETWEEN_ARRAYS; i++) {
        far[i] = (mpsim_strided){NULL, at, {(ptrdiff_t)(cols / 2), 1}};
        still[i] = (mpsim_strided){NULL, at, {0, 0}};
    }
    if (table)
        o.shape[0] = 1, o.entries = rows < UINT32_MAX ? rows : UINT32_MAX - 1u, far->stride[0] = PTRDIFF_MAX;
    for (int i = 0; table && i < MPSIM_BETWEEN_ARRAYS; i++)
        far[i].stride[0] = PTRDIFF_MAX;
    const int strides = is_refused(mpsim_between_run(&o, far, MPSIM_BETWEEN_ARRAYS, NULL, NULL));
    o.shape[0] = rows;
    o.shape[1] = cols;
    o.entries = 1;
    return strides && is_refused(mpsim_between_run(&o, still, MPSIM_BETWEEN_ARRAYS, NULL, NULL));
}

static int mpsim_between_run_rows(size_t rows, size_t cols)
{
    for (int k = 0; k <= MPSIM_BETWEEN_BATCHNORM_INFERENCE; k++)
        if (!between_of((mpsim_between_kind)k, rows, cols))
            return 0;
    return 1;
}

/* ---- all of them ---- */

#define N(name)               \
    {                         \
#name, name##_n, NULL \
    }
#define ROWS(name)               \
    {                            \
#name, NULL, name##_rows \
    }

static const struct {
    const char *name;
    int (*of_n)(size_t n);
    int (*of_rows)(size_t rows, size_t cols);
} functions[] = {
    N(mpsim_decode_array),
    N(mpsim_decode_array_f32),
    N(mpsim_encode_array_f32),
    N(mpsim_encode_array_f64),
    N(mpsim_round_array_f32),
    N(mpsim_round_array_f64),
    N(mpsim_arith_array),
    N(mpsim_hadamard),
    N(mpsim_hadamard_groups),
    N(mpsim_hadamard_groups_back),
    N(mpsim_amax),
    N(mpsim_digest),
    N(mpsim_digest_blocks),
    N(mpsim_digest_bytes),
    N(mpsim_add_array),
    N(mpsim_multiply_array),
    N(mpsim_dropout),
    N(mpsim_normal_array),
    N(mpsim_count_numbers),
    N(mpsim_mean),
    N(mpsim_norm),
    N(mpsim_norm_overflows),
    N(mpsim_clip_total),
    N(mpsim_unscale_array),
    N(mpsim_scale_array),
    N(mpsim_reduce_array),
    N(mpsim_state_quantise),
    N(mpsim_state_values),
    N(mpsim_states_keep),
    N(mpsim_gradients_check),
    N(mpsim_gradients_move),
    N(mpsim_optim_step),
    N(mpsim_optim_reference),
    N(mpsim_update_run),
    N(mpsim_muon_momentum),
    N(mpsim_stats_add),
    N(mpsim_histogram_add),
    N(mpsim_cast_stats_add),
    N(mpsim_cast_stats_add_values),
    N(mpsim_summary_begin),
    N(mpsim_summary_add_f32),
    N(mpsim_summary_add_f64),
    N(mpsim_summary_add_codes),
    N(mpsim_dot),
    N(mpsim_dot_steps),
    N(mpsim_dot_scaled),
    ROWS(mpsim_softmax_xent),
    ROWS(mpsim_cross_entropy),
    ROWS(mpsim_activate),
    ROWS(mpsim_activate_backward),
    ROWS(mpsim_rotary),
    ROWS(mpsim_softmax_rows),
    ROWS(mpsim_softmax_backward),
    ROWS(mpsim_log_softmax),
    ROWS(mpsim_log_softmax_backward),
    ROWS(mpsim_causal_softmax),
    ROWS(mpsim_causal_softmax_backward),
    ROWS(mpsim_causal_tile_forward),
    ROWS(mpsim_causal_tile_end),
    ROWS(mpsim_causal_tile_dots),
    ROWS(mpsim_causal_tile_again),
    ROWS(mpsim_causal_tile_backward),
    ROWS(mpsim_rownorm_forward),
    ROWS(mpsim_rownorm_backward),
    ROWS(mpsim_batchnorm_forward),
    ROWS(mpsim_batchnorm_backward),
    ROWS(mpsim_batchnorm_inference),
    ROWS(mpsim_embed),
    ROWS(mpsim_embed_backward),
    ROWS(mpsim_column_sums),
    ROWS(mpsim_period_sums),
    ROWS(mpsim_sum_lanes),
    ROWS(mpsim_block_quantize),
    ROWS(mpsim_muon_orthogonalise),
    ROWS(mpsim_muon_apply),
    ROWS(mpsim_muon_reference),
    ROWS(mpsim_gemm),
    ROWS(mpsim_gemm_scaled),
    ROWS(mpsim_scaled_mm_run),
    ROWS(mpsim_torch_mm_run),
    ROWS(mpsim_attention_forward),
    ROWS(mpsim_attention_exact),
    ROWS(mpsim_attention_backward),
    ROWS(mpsim_operand_enter),
    ROWS(mpsim_product_run),
    ROWS(mpsim_product_of),
    ROWS(mpsim_convolution_forward),
    ROWS(mpsim_convolution_backward_input),
    ROWS(mpsim_convolution_backward_weight),
    ROWS(mpsim_between_run),
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* A byte too many, and what wraps around in bytes of any width. */
static const size_t sizes[] = {(size_t)PTRDIFF_MAX + 1, SIZE_MAX, SIZE_MAX - 3, SIZE_MAX / 2 + 2,
                               (size_t)PTRDIFF_MAX + 1025};

static const size_t extents[][2] = {
    {2, SIZE_MAX - 3},     {2, SIZE_MAX},     {2, (size_t)PTRDIFF_MAX + 1},
    {3, SIZE_MAX / 2 + 1}, {SIZE_MAX, 2},     {SIZE_MAX / 4 + 1, 4},
    {5, SIZE_MAX / 4},     {SIZE_MAX / 2, 3}, {SIZE_MAX, SIZE_MAX},
    {65, SIZE_MAX / 64},
};

CASE("extent", 4);

TESTS(what_memory_cannot_hold_is_refused, FUNCTIONS)
{
    const int i = _i;
    for (size_t k = 0; functions[i].of_n && k < sizeof sizes / sizeof *sizes; k++)
        ck_assert_msg(functions[i].of_n(sizes[k]), "%s: %zu elements", functions[i].name, sizes[k]);
    for (size_t k = 0; functions[i].of_rows && k < sizeof extents / sizeof *extents; k++)
        ck_assert_msg(functions[i].of_rows(extents[k][0], extents[k][1]), "%s: %zu x %zu", functions[i].name,
                      extents[k][0], extents[k][1]);
}

/* The largest that there may be is not refused: nothing of it is read where other sizes are 0. */
TEST(nothing_is_never_too_large)
{
    const mpsim_model m = model("fma");
    const mpsim_matrix a = matrix("e4m3", SIZE_MAX);
    const mpsim_stack x = {format("binary32"), NULL, 2, {SIZE_MAX, 0}, {INT64_MAX, INT64_MIN}};
    const mpsim_entering how = {.format = format("bf16")};
    mpsim_operand o;
    ck_assert_int_eq(mpsim_gemm(&m, 0, SIZE_MAX, 0, &a, &a, NULL, NULL, 0, NULL, NULL), MPSIM_OK);
    ck_assert_int_eq(mpsim_activate(MPSIM_SWIGLU, NULL, NULL, NULL, NULL, 0, SIZE_MAX), MPSIM_OK);
    ck_assert_int_eq(mpsim_column_sums(NULL, NULL, NULL, NULL, SIZE_MAX, 0, SIZE_MAX), MPSIM_OK);
    ck_assert_int_eq(mpsim_operand_enter(&o, &x, &how, NULL, NULL), MPSIM_OK);
    mpsim_operand_free(&o);
    const mpsim_stack many = {format("binary32"), NULL, 3, {SIZE_MAX, 0, 1}, {1, 1, 1}}, one = stack(1, 1);
    const mpsim_entering as_is = {0};
    mpsim_product p;
    mpsim_product_init(&p);
    p.model = &m;
    p.d = &many;
    ck_assert_int_eq(mpsim_product_of(&p, &many, &as_is, &one, &as_is, NULL), MPSIM_OK);
}

TEST_MAIN("extent");
