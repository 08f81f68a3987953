#!/usr/bin/env python3
"""Write tests/trace/models.tsv: the tensors of small models of transformers as save_pretrained writes them, and how
many parameters each model says that it has. Nothing is downloaded: models are built from their configurations.

    python3 tests/trace/record_models.py >tests/trace/models.tsv      (torch, transformers, safetensors)

A line "@": a path, metadata; parameters=N is the model's own count, of each parameter once. The others: a name, shape
and dtype, kind, fqn. A tensor is a weight if a parameter is stored under the name, and no buffer is."""
import contextlib
import io
import json
import os
import struct
import sys
import tempfile

import torch
import transformers as tr

tr.logging.set_verbosity_error()
SMALL = dict(hidden_size=8, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
             vocab_size=32, head_dim=4, max_position_embeddings=32, pad_token_id=0, bos_token_id=1, eos_token_id=2)
MOE = dict(SMALL, moe_intermediate_size=16, num_experts=4, num_local_experts=4, num_experts_per_tok=2)
OLD = dict(vocab_size=32, pad_token_id=0, bos_token_id=1, eos_token_id=2)
MLA = dict(MOE, num_key_value_heads=2, n_routed_experts=4, n_group=1, topk_group=1, q_lora_rank=8, kv_lora_rank=8,
           qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=4, first_k_dense_replace=1)
VISION = dict(hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=32, patch_size=8)
ENCODER_DECODER = dict(OLD, d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                       decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, decoder_start_token_id=1)
SPEECH = dict(OLD, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, conv_dim=[8],
              conv_kernel=[2], conv_stride=[2], num_feat_extract_layers=1, num_conv_pos_embeddings=4,
              num_conv_pos_embedding_groups=2)
MODELS = {
    "llama": SMALL, "mistral": SMALL, "mixtral": MOE, "qwen2": SMALL, "qwen3": SMALL, "qwen3_moe": MOE,
    "qwen2_moe": dict(MOE, shared_expert_intermediate_size=16), "gemma2": SMALL, "gemma3_text": SMALL, "phi3": SMALL,
    "gpt_oss": MOE, "deepseek_v2": MLA, "deepseek_v3": MLA, "llama4_text": dict(MOE, intermediate_size_mlp=16),
    "granitemoe": MOE, "olmoe": MOE, "glm4_moe": MLA, "ernie4_5_moe": dict(MOE, moe_num_experts=4, moe_k=2),
    "gpt2": dict(OLD, n_embd=8, n_layer=2, n_head=2, n_positions=16),
    "gpt_neox": SMALL, "gptj": dict(OLD, n_embd=8, n_layer=1, n_head=2, rotary_dim=4), "bloom": dict(
        OLD, hidden_size=8, n_layer=1, n_head=2), "opt": dict(OLD, hidden_size=8, ffn_dim=16, num_hidden_layers=1,
                                                              num_attention_heads=2, word_embed_proj_dim=8),
    "falcon": dict(OLD, hidden_size=8, num_hidden_layers=1, num_attention_heads=2), "mpt": dict(OLD, d_model=8, n_heads=2, n_layers=1),
    "mamba": dict(OLD, hidden_size=8, num_hidden_layers=1, state_size=4),
    "mamba2": dict(OLD, hidden_size=8, num_hidden_layers=1, state_size=4, num_heads=4, head_dim=4, n_groups=1),
    "rwkv": dict(OLD, hidden_size=8, num_hidden_layers=2, attention_hidden_size=8),
    "qwen3_next": dict(MOE, linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=4,
                       linear_value_head_dim=4, shared_expert_intermediate_size=16,
                       layer_types=["linear_attention", "full_attention"]),
    "lfm2": SMALL, "lfm2_moe": dict(MOE, num_dense_layers=1, layer_types=["conv", "full_attention"]),
    "bert": SMALL, "roberta": SMALL, "albert": dict(SMALL, embedding_size=8), "electra": dict(SMALL, embedding_size=8),
    "deberta-v2": dict(SMALL, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=4),
    "modernbert": SMALL, "t5": dict(OLD, d_model=8, d_ff=16, d_kv=4, num_layers=1, num_heads=2),
    "bart": ENCODER_DECODER, "whisper": dict(ENCODER_DECODER, vocab_size=64), "vit": VISION, "vit_mae": dict(
        VISION, decoder_hidden_size=8, decoder_num_hidden_layers=1, decoder_num_attention_heads=2,
        decoder_intermediate_size=16), "dinov2": VISION, "beit": dict(VISION, use_relative_position_bias=True,
                                                                      layer_scale_init_value=0.1),
    "siglip_vision_model": VISION, "convnext": dict(hidden_sizes=[8, 8], depths=[1, 1], num_stages=2),
    "resnet": dict(embedding_size=8, hidden_sizes=[8], depths=[1]), "mobilenet_v2": dict(depth_multiplier=0.1),
    "swin": dict(embed_dim=8, depths=[1], num_heads=[1], image_size=32, window_size=2),
    "swinv2": dict(embed_dim=8, depths=[1], num_heads=[1], image_size=32, window_size=2),
    "clip": dict(text_config=dict(SMALL), vision_config=dict(VISION), projection_dim=8),
    "wav2vec2": SPEECH, "hubert": SPEECH, "mimi": dict(hidden_size=8, num_filters=2, num_hidden_layers=1,
                                                       num_attention_heads=2, num_key_value_heads=2, head_dim=4,
                                                       intermediate_size=16, codebook_size=8, codebook_dim=8,
                                                       vector_quantization_hidden_dimension=8, num_quantizers=2,
                                                       num_semantic_quantizers=1),
    "encodec": dict(hidden_size=8, num_filters=2, codebook_size=8, codebook_dim=8, target_bandwidths=[1.5]),
}


def header(path):
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        return {k: v for k, v in json.loads(f.read(size)).items() if k != "__metadata__"}


def shape_of(entry):
    return "x".join(map(str, entry["shape"])) or "()"


def build(name, settings):
    config = tr.AutoConfig.for_model(name, **settings)
    for auto in (tr.AutoModelForCausalLM, tr.AutoModelForPreTraining, tr.AutoModel):
        if type(config) in auto._model_mapping:
            return auto.from_config(config)
    raise ValueError("no model")


def record(name, settings):
    torch.manual_seed(1)
    model = build(name, settings)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        stored = header(os.path.join(folder, "model.safetensors"))
    # buffers keep their names; parameters may be stored under others, in other pieces
    buffers = {n.split(".", 0)[-1] for n, _ in model.named_buffers()}
    tails = {n.rsplit(".", 1)[-1] for n in buffers} - {n.rsplit(".", 1)[-1] for n, _ in model.named_parameters()}
    count = sum(p.numel() for p in model.parameters())
    lines, total = [], 0
    for key, entry in stored.items():
        buffer = key in buffers or key.rsplit(".", 1)[-1] in tails
        lines.append(f"{key}\t{shape_of(entry)}:{entry['dtype']}\t" + ("-" if buffer else f"weight\t{key}"))
        size = 1
        for n in entry["shape"]:
            size *= n
        total += 0 if buffer else size
    if total != count:
        print(f"{name}: {total} elements of weights are stored, {count} parameters", file=sys.stderr)
    return [f"@\t{name}/model.safetensors\tformat=pt\tparameters={count}"] + lines


def main():
    print(f"# Written by record_models.py: transformers {tr.__version__}, torch {torch.__version__.split('+')[0]}. See there.")
    for name, settings in MODELS.items():
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                lines = record(name, settings)
        except Exception as e:  # another version has other settings: the others count
            print(f"{name}: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)
            continue
        print("\n".join(lines))


if __name__ == "__main__":
    main()
