/* family.c -- see family.h. Sources: the modules modeling_*.py and configuration_*.py of transformers 5.24; data/counts/transformers.tsv has
 * what these models count, which tests/cli/model-memory.sh compares. */
#include "family.h"

#include <stddef.h>
#include <string.h>

/* clang-format off */
#define LLAMA_BLOCK                                                                                                  \
    .block = "model.layers.", .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",   \
    .fused = "self_attn.qkv_proj", .out = "self_attn.o_proj", .gate = "mlp.gate_proj", .up = "mlp.up_proj",          \
    .down = "mlp.down_proj", .fused_gate = "mlp.gate_up_proj", .experts = "mlp.experts.", .router = "mlp.gate",      \
    .embed = "model.embed_tokens", .head = "lm_head"

static const family_names
    llama = {LLAMA_BLOCK, .norms = {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                                    "post_feedforward_layernorm"},
             .shared = "mlp.shared_expert", .last_norm = "model.norm"},
    olmo = {LLAMA_BLOCK, .norms = {"post_attention_layernorm", "post_feedforward_layernorm"}, .last_norm = "model.norm"},
    deepseek = {LLAMA_BLOCK, .norms = {"input_layernorm", "post_attention_layernorm"}, .shared = "mlp.shared_experts",
                .last_norm = "model.norm"},
    phi = {.block = "model.layers.", .embed = "model.embed_tokens", .norms = {"input_layernorm"}, .query = "self_attn.q_proj",
           .key = "self_attn.k_proj", .value = "self_attn.v_proj", .out = "self_attn.dense", .up = "mlp.fc1", .down = "mlp.fc2",
           .last_norm = "model.final_layernorm", .head = "lm_head"},
    starcoder = {.block = "model.layers.", .embed = "model.embed_tokens",
                 .norms = {"input_layernorm", "post_attention_layernorm"}, .query = "self_attn.q_proj",
                 .key = "self_attn.k_proj", .value = "self_attn.v_proj", .out = "self_attn.o_proj", .up = "mlp.c_fc",
                 .down = "mlp.c_proj", .last_norm = "model.norm", .head = "lm_head"},
    gpt2 = {.embed = "transformer.wte", .positions = "transformer.wpe", .block = "transformer.h.", .norms = {"ln_1", "ln_2"},
            .fused = "attn.c_attn", .out = "attn.c_proj", .up = "mlp.c_fc", .down = "mlp.c_proj",
            .last_norm = "transformer.ln_f", .head = "lm_head"},
    gptj = {.embed = "transformer.wte", .block = "transformer.h.", .norms = {"ln_1"}, .query = "attn.q_proj",
            .key = "attn.k_proj", .value = "attn.v_proj", .out = "attn.out_proj", .up = "mlp.fc_in", .down = "mlp.fc_out",
            .last_norm = "transformer.ln_f", .head = "lm_head"},
    neox = {.embed = "gpt_neox.embed_in", .block = "gpt_neox.layers.",
            .norms = {"input_layernorm", "post_attention_layernorm"}, .fused = "attention.query_key_value",
            .out = "attention.dense", .up = "mlp.dense_h_to_4h", .down = "mlp.dense_4h_to_h",
            .last_norm = "gpt_neox.final_layer_norm", .head = "embed_out"},
    bloom = {.embed = "transformer.word_embeddings", .embed_norm = "transformer.word_embeddings_layernorm",
             .block = "transformer.h.", .norms = {"input_layernorm", "post_attention_layernorm"},
             .fused = "self_attention.query_key_value", .out = "self_attention.dense", .up = "mlp.dense_h_to_4h",
             .down = "mlp.dense_4h_to_h", .last_norm = "transformer.ln_f", .head = "lm_head"},
    opt = {.embed = "model.decoder.embed_tokens", .positions = "model.decoder.embed_positions",
           .block = "model.decoder.layers.", .norms = {"self_attn_layer_norm", "final_layer_norm"},
           .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj", .out = "self_attn.out_proj",
           .up = "fc1", .down = "fc2", .last_norm = "model.decoder.final_layer_norm", .head = "lm_head"},
    bert = {.embed = "embeddings.word_embeddings", .positions = "embeddings.position_embeddings",
            .types = "embeddings.token_type_embeddings", .embed_norm = "embeddings.LayerNorm", .block = "encoder.layer.",
            .norms = {"attention.output.LayerNorm", "output.LayerNorm"}, .query = "attention.self.query",
            .key = "attention.self.key", .value = "attention.self.value", .out = "attention.output.dense",
            .up = "intermediate.dense", .down = "output.dense"},
    mixtral = {.block = "model.layers.", .embed = "model.embed_tokens",
               .norms = {"input_layernorm", "post_attention_layernorm"}, .query = "self_attn.q_proj",
               .key = "self_attn.k_proj", .value = "self_attn.v_proj", .out = "self_attn.o_proj", .gate = "w1", .up = "w3",
               .down = "w2", .experts = "block_sparse_moe.experts.", .router = "block_sparse_moe.gate",
               .last_norm = "model.norm", .head = "lm_head"},
    gptoss = {LLAMA_BLOCK, .norms = {"input_layernorm", "post_attention_layernorm"}, .last_norm = "model.norm"};

enum {
    BIASES = FAMILY_MLP_BIAS | FAMILY_QKV_BIAS | FAMILY_OUT_BIAS | FAMILY_NORM_BIAS,
    GATED = FAMILY_GATED, TIED = FAMILY_TIED
};
static const family rows[] = {
    {"llama",       &llama,     GATED, 2, 0, 0},
    {"mistral",     &llama,     GATED, 2, 0, 0},
    {"granite",     &llama,     GATED, 2, 0, 0},
    {"smollm3",     &llama,     GATED | TIED, 2, 0, 0},
    {"mixtral",     &mixtral,   GATED, 2, 0, 0},
    {"qwen2",       &llama,     GATED | FAMILY_QKV_BIAS, 2, 0, 0},
    {"qwen2_vl",    &llama,     GATED | FAMILY_QKV_BIAS, 2, 0, 0},
    {"qwen2_vl_text", &llama,   GATED | FAMILY_QKV_BIAS, 2, 0, 0},
    {"qwen2_5_vl",  &llama,     GATED | FAMILY_QKV_BIAS, 2, 0, 0},
    {"qwen2_5_vl_text", &llama, GATED | FAMILY_QKV_BIAS, 2, 0, 0},
    {"qwen2_moe",   &llama,     GATED | FAMILY_QKV_BIAS | FAMILY_SHARED_GATE, 2, 0, 0},
    {"qwen3",       &llama,     GATED | FAMILY_HEAD_NORMS, 2, 0, 128},
    {"qwen3_moe",   &llama,     GATED | FAMILY_HEAD_NORMS, 2, 0, 0},
    {"gemma",       &llama,     GATED | TIED, 2, 0, 256},
    {"gemma2",      &llama,     GATED | TIED, 4, 0, 256},
    {"gemma3_text", &llama,     GATED | TIED | FAMILY_HEAD_NORMS, 4, 0, 256},
    {"olmo2",       &olmo,      GATED | FAMILY_WIDE_NORMS, 2, 0, 0},
    {"olmoe",       &llama,     GATED | FAMILY_WIDE_NORMS, 2, 0, 0},
    {"stablelm",    &llama,     GATED | FAMILY_NORM_BIAS, 2, 0, 0},
    {"cohere",      &llama,     GATED | TIED, 1, 0, 0},
    {"phi",         &phi,       BIASES | FAMILY_HEAD_BIAS, 1, 0, 0},
    {"phi3",        &llama,     GATED | FAMILY_FUSED_QKV | FAMILY_FUSED_GATE, 2, 0, 0},
    {"starcoder2",  &starcoder, BIASES | TIED, 2, 0, 0},
    {"deepseek_v2", &deepseek,  GATED | FAMILY_LATENT, 2, 0, 0},
    {"deepseek_v3", &deepseek,  GATED | FAMILY_LATENT, 2, 0, 0},
    {"gpt_oss",     &gptoss,    GATED | FAMILY_QKV_BIAS | FAMILY_OUT_BIAS | FAMILY_SINKS | FAMILY_PACKED, 2, 0, 64},
    {"gpt2",        &gpt2,      BIASES | TIED | FAMILY_FUSED_QKV | FAMILY_POSITIONS, 2, 0, 0},
    {"gptj",        &gptj,      FAMILY_MLP_BIAS | FAMILY_NORM_BIAS | FAMILY_HEAD_BIAS, 1, 0, 0},
    {"gpt_neox",    &neox,      BIASES | FAMILY_FUSED_QKV, 2, 0, 0},
    {"bloom",       &bloom,     BIASES | TIED | FAMILY_FUSED_QKV | FAMILY_EMBED_NORM, 2, 0, 0},
    {"falcon",      &bloom,     FAMILY_NORM_BIAS | TIED | FAMILY_FUSED_QKV | FAMILY_MULTI_QUERY, 2, 0, 0},
    {"opt",         &opt,       BIASES | TIED | FAMILY_POSITIONS, 2, 2, 0},
    {"bert",        &bert,      BIASES | FAMILY_POSITIONS | FAMILY_EMBED_NORM | FAMILY_ENCODER, 2, 0, 0},
    {"roberta",     &bert,      BIASES | FAMILY_POSITIONS | FAMILY_EMBED_NORM | FAMILY_ENCODER, 2, 0, 0},
};
/* clang-format on */

const family *memory_family_at(int i)
{
    return i < (int)(sizeof rows / sizeof *rows) ? &rows[i] : NULL;
}

const family *memory_family_find(const char *type)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].type, type) == 0)
            return &rows[i];
    return NULL;
}
