# SPDX-License-Identifier: Apache-2.0
"""Count the parameters of models as transformers builds them, without memory for them.

    python3 record_transformers.py > transformers.tsv

Recorded with transformers 5.24.0 and torch 2.15.0. A line is a model's name, the number of its parameters, those that are tied
once, and the keys of its config.json that decide it: published facts, typed here. BERT and RoBERTa are models without a head.
"""
import json

import torch
import transformers

COMMON = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size")
MODELS = {
    "gpt2": ("gpt2", None, dict(n_embd=768, n_layer=12, n_head=12, n_positions=1024, vocab_size=50257)),
    "opt-125m": ("opt", None, dict(hidden_size=768, ffn_dim=3072, num_hidden_layers=12, num_attention_heads=12,
                                   max_position_embeddings=2048, vocab_size=50272)),
    "pythia-160m": ("gpt_neox", None, dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072,
                                           vocab_size=50304, tie_word_embeddings=False)),
    "bloom-560m": ("bloom", None, dict(n_layer=24, n_head=16, hidden_size=1024, vocab_size=250880)),
    "gpt-j-6b": ("gptj", None, dict(n_embd=4096, n_layer=28, n_head=16, vocab_size=50400, tie_word_embeddings=False)),
    "bert-base-uncased": ("bert", None, dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072,
                                             max_position_embeddings=512, type_vocab_size=2, vocab_size=30522)),
    "roberta-base": ("roberta", None, dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072,
                                           max_position_embeddings=514, type_vocab_size=1, vocab_size=50265)),
    "Llama-2-7b": ("llama", (4096, 11008, 32, 32, 32, 32000), dict(tie_word_embeddings=False)),
    "Llama-3.1-8B": ("llama", (4096, 14336, 32, 32, 8, 128256), dict(tie_word_embeddings=False)),
    "Llama-3.2-1B": ("llama", (2048, 8192, 16, 32, 8, 128256), dict(head_dim=64, tie_word_embeddings=True)),
    "Mistral-7B": ("mistral", (4096, 14336, 32, 32, 8, 32000), dict(tie_word_embeddings=False)),
    "Mixtral-8x7B": ("mixtral", (4096, 14336, 32, 32, 8, 32000), dict(num_local_experts=8, tie_word_embeddings=False)),
    "Qwen2.5-0.5B": ("qwen2", (896, 4864, 24, 14, 2, 151936), dict(tie_word_embeddings=True)),
    "Qwen3-0.6B": ("qwen3", (1024, 3072, 28, 16, 8, 151936), dict(head_dim=128, tie_word_embeddings=True)),
    "Qwen3-30B-A3B": ("qwen3_moe", (2048, 6144, 48, 32, 4, 151936),
                      dict(head_dim=128, moe_intermediate_size=768, num_experts=128, num_experts_per_tok=8,
                           tie_word_embeddings=False)),
    "Qwen1.5-MoE-A2.7B": ("qwen2_moe", (2048, 5632, 24, 16, 16, 151936),
                          dict(moe_intermediate_size=1408, shared_expert_intermediate_size=5632, num_experts=60,
                               num_experts_per_tok=4, tie_word_embeddings=False)),
    "gemma-2b": ("gemma", (2048, 16384, 18, 8, 1, 256000), dict(head_dim=256)),
    "gemma-2-2b": ("gemma2", (2304, 9216, 26, 8, 4, 256000), dict(head_dim=256)),
    "gemma-3-1b": ("gemma3_text", (1152, 6912, 26, 4, 1, 262144), dict(head_dim=256)),
    "phi-2": ("phi", (2560, 10240, 32, 32, 32, 51200), dict(tie_word_embeddings=False)),
    "Phi-3-mini-4k": ("phi3", (3072, 8192, 32, 32, 32, 32064), dict(tie_word_embeddings=False, pad_token_id=32000)),
    "DeepSeek-V2-Lite": ("deepseek_v2", (2048, 10944, 27, 16, 16, 102400),
                         dict(moe_intermediate_size=1408, n_routed_experts=64, n_shared_experts=2, num_experts_per_tok=6,
                              first_k_dense_replace=1, kv_lora_rank=512, q_lora_rank=None, qk_nope_head_dim=128,
                              qk_rope_head_dim=64, v_head_dim=128, tie_word_embeddings=False)),
    "DeepSeek-V3": ("deepseek_v3", (7168, 18432, 61, 128, 128, 129280),
                    dict(moe_intermediate_size=2048, n_routed_experts=256, n_shared_experts=1, num_experts_per_tok=8,
                         first_k_dense_replace=3, kv_lora_rank=512, q_lora_rank=1536, qk_nope_head_dim=128, qk_rope_head_dim=64,
                         v_head_dim=128, tie_word_embeddings=False)),
    "falcon-7b": ("falcon", None, dict(hidden_size=4544, num_hidden_layers=32, num_attention_heads=71, vocab_size=65024,
                                       multi_query=True, parallel_attn=True, new_decoder_architecture=False, bias=False)),
    "falcon-40b": ("falcon", None, dict(hidden_size=8192, num_hidden_layers=60, num_attention_heads=128, num_kv_heads=8,
                                        vocab_size=65024, parallel_attn=True, new_decoder_architecture=True, bias=False)),
    "OLMo-2-1B": ("olmo2", (2048, 8192, 16, 16, 16, 100352), dict(tie_word_embeddings=False)),
    "OLMoE-1B-7B": ("olmoe", (2048, 1024, 16, 16, 16, 50304), dict(num_experts=64, num_experts_per_tok=8, tie_word_embeddings=False)),
    "starcoder2-3b": ("starcoder2", (3072, 12288, 30, 24, 2, 49152), dict(use_bias=True)),
    "stablelm-2-1_6b": ("stablelm", (2048, 5632, 24, 32, 32, 100352), dict(use_qkv_bias=True, tie_word_embeddings=False)),
    "gpt-oss-20b": ("gpt_oss", (2880, 2880, 24, 64, 8, 201088),
                    dict(head_dim=64, num_local_experts=32, num_experts_per_tok=4, tie_word_embeddings=False)),
    "c4ai-command-r-v01": ("cohere", (8192, 22528, 40, 64, 64, 256000), {}),
}


def count(kind, keys):
    config = transformers.AutoConfig.for_model(kind, **keys)
    auto = transformers.AutoModel if kind in ("bert", "roberta") else transformers.AutoModelForCausalLM
    with torch.device("meta"):
        model = auto.from_config(config)
        model.tie_weights()
    return sum(p.numel() for p in model.parameters())


if __name__ == "__main__":
    for name, (kind, sizes, keys) in MODELS.items():
        keys = {**dict(zip(COMMON, sizes or ())), **keys}
        print(name, count(kind, keys), json.dumps({"model_type": kind, **keys}), sep="\t", flush=True)
