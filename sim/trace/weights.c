/* weights.c -- see weights.h. The table has the buffers that a state_dict holds (those of transformers 5.23 that are
 * persistent, torch.nn 2.15, torchvision), and what quantisers store beside codes. */
#include "weights.h"

#include <string.h>

/* ---- names that only parameters have ---- */

static int ends_with(const char *s, size_t n, const char *end)
{
    const size_t length = strlen(end);
    return n >= length && memcmp(s + n - length, end, length) == 0;
}

static int begins_with(const char *s, size_t n, const char *begin)
{
    const size_t length = strlen(begin);
    return n > length && memcmp(s, begin, length) == 0;
}

static int is_separator(char c)
{
    return c == '.' || c == '/';
}

/* Where the last word begins. */
static size_t last_word(const weights_name *w)
{
    size_t begin = w->n;
    while (begin && !is_separator(w->fqn[begin - 1]))
        begin--;
    return begin;
}

int trace_weights_only_parameters(const weights_name *w)
{
    /* also: weight_ih_l0 of nn.LSTM, in_proj_weight of nn.MultiheadAttention, fc1_weight of te.LayerNormMLP,
     * q_bias, dt_bias; of Transformers, ViT, CLIP, Mamba */
    static const char *const others[] = {"kernel",
                                         "gamma",
                                         "beta",
                                         "embedding",
                                         "cls_token",
                                         "pos_embed",
                                         "class_embedding",
                                         "positional_embedding",
                                         "logit_scale",
                                         "A_log",
                                         "D"};
    static const char *const begins[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    const size_t begin = last_word(w), n = w->n - begin;
    const char *s = w->fqn + begin;
    if (trace_weights_buffer(w))
        return 0;
    int is = ends_with(s, n, "weight") || ends_with(s, n, "bias");
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        is |= begins_with(s, n, begins[i]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        is |= strlen(others[i]) == n && memcmp(others[i], s, n) == 0;
    return is;
}

/* ---- names of what is no parameter ---- */

enum { ANY = -1 };

/* The last words of a name, whole words; '*' before them: any beginning of the first. */
typedef struct buffer {
    const char *words;
    int rank; /* which it has, or ANY */
    int one;  /* the first dimension is 1 */
} buffer;

/* clang-format off */
static const buffer buffers[] = {
    /* torch.nn: batch norms, spectral_norm (old and as a parametrization; weight_v of weight_norm has more dimensions) */
    {"running_mean", ANY, 0}, {"running_var", ANY, 0}, {"num_batches_tracked", ANY, 0}, {"weight_u", 1, 0},
    {"weight_v", 1, 0}, {"parametrizations.weight.0._u", 1, 0}, {"parametrizations.weight.0._v", 1, 0},
    {"_extra_state", ANY, 0}, {"_mean", 1, 0}, {"_variance", 1, 0}, /* the last two of Paddle */
    /* positions: of rotary embeddings, tables of sines, indices, masks (the mask of GPT-2's attention is `bias`) */
    {"*inv_freq", ANY, 0}, {"inv_timescales", ANY, 0}, {"freqs_cis", ANY, 0}, {"cos_cached", ANY, 0},
    {"sin_cached", ANY, 0}, {"position_ids", ANY, 0}, {"token_type_ids", ANY, 0}, {"relative_position_index", ANY, 0},
    {"relative_coords_table", ANY, 0}, {"attn_mask", ANY, 0}, {"attn.bias", 4, 1}, {"attention.bias", 4, 1},
    {"bias", 4, 1}, {"masked_bias", ANY, 0}, {"attn_mask_probs", ANY, 0}, {"pos_idx_to_embed", ANY, 0},
    /* routers whose bias is moved by a rule, not by a gradient (Ernie's, of two dimensions, is a parameter) */
    {"e_score_correction_bias", 1, 0}, {"feed_forward.expert_bias", 1, 0}, {"balancing_biases", ANY, 0},
    /* codebooks that follow a moving average: Encodec, Mimi */
    {"cluster_size", ANY, 0}, {"cluster_usage", ANY, 0}, {"embed_avg", ANY, 0}, {"embed_sum", ANY, 0},
    {"codebook.embed", ANY, 0}, {"inited", ANY, 0}, {"codebook.initialized", ANY, 0},
    /* constants of one model: BART, Mask2Former, RT-DETR, FNet, MiniMax, Gemma 4, Phi 4, RADIO, SevenNet */
    {"rescale_atomic_energy.shift", 1, 0}, {"rescale_atomic_energy.scale", 1, 0}, {"*_convolution.denominator", 1, 0},
    {"final_logits_bias", 2, 1}, {"empty_weight", 1, 0}, {"num_points_scale", ANY, 0}, {"n_points_scale", ANY, 0},
    {"dft_mat_hidden", ANY, 0}, {"dft_mat_seq", ANY, 0}, {"slope_rate", ANY, 0}, {"query_decay", ANY, 0},
    {"key_decay", ANY, 0}, {"diagonal_decay", ANY, 0}, {"layer_scalar", ANY, 0}, {"input_min", ANY, 0},
    {"input_max", ANY, 0}, {"output_min", ANY, 0}, {"output_max", ANY, 0}, {"std_bias", ANY, 0}, {"std_scale", ANY, 0},
    {"global_mean", ANY, 0}, {"global_invstd", ANY, 0}, {"norm_mean", ANY, 0}, {"norm_std", ANY, 0},
    {"latent_mean", ANY, 0}, {"latent_std", ANY, 0},
    /* e3nn 0.6, which also has Wigner's 3j symbols, _w3j_1_1_2: below */
    {"output_mask", 1, 0},
    /* beside codes: GPTQ and AWQ, MLX, bitsandbytes, compressed-tensors, modelopt, DeepSeek, gpt-oss, HQQ */
    {"scales", ANY, 0}, {"qzeros", ANY, 0}, {"g_idx", ANY, 0}, {"biases", ANY, 0}, {"SCB", ANY, 0},
    {"*absmax", ANY, 0}, {"*quant_map", ANY, 0}, {"weight_format", ANY, 0}, {"weight_shape", ANY, 0},
    {"*weight_scale", ANY, 0}, {"*weight_scale_inv", ANY, 0}, {"*weight_scale_2", ANY, 0},
    {"*global_scale", ANY, 0}, {"*zero_point", ANY, 0}, {"*input_scale", ANY, 0}, {"k_scale", ANY, 0},
    {"v_scale", ANY, 0}, {"weight_g_idx", ANY, 0}, {"*proj_scales", ANY, 0},
};
/* clang-format on */

/* Whether a name ends with these words. */
static int fits(const weights_name *w, const char *words)
{
    const int any = words[0] == '*';
    const size_t n = strlen(words + any);
    return ends_with(w->fqn, w->n, words + any) && (any || w->n == n || is_separator(w->fqn[w->n - n - 1]));
}

int trace_weights_buffer(const weights_name *w)
{
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        const buffer *b = &buffers[i];
        if (fits(w, b->words) && (b->rank == ANY || (size_t)b->rank == w->rank) && (!b->one || w->first_is_one))
            return 1;
    }
    const size_t begin = last_word(w);
    return begins_with(w->fqn + begin, w->n - begin, "_w3j_") ||
           strstr(w->fqn, ".quant_state.") != NULL; /* bitsandbytes: a name goes on behind it */
}

/* ---- packed codes ---- */

int trace_weights_packed(const weights_name *w)
{
    /* as many bits as a word of codes has; indices are of 64 bits, masks BOOL */
    static const char *const words[] = {"I8",      "U8",      "I16",  "U16",   "I32",   "U32",  "F4",
                                        "F6_E2M3", "F6_E3M2", "int8", "uint8", "int16", "int32"};
    if (w->numbers || w->rank < 2 || !w->dtype || trace_weights_buffer(w))
        return 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i], w->dtype) == 0)
            return 1;
    return 0;
}

int trace_weights_in_model(const weights_name *w)
{
    return w->numbers ? !trace_weights_buffer(w) : trace_weights_packed(w);
}
