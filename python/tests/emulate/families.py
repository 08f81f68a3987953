"""Model families that somebody else wrote, tiny and with random weights: what `mpsim.emulate` is tried on.

A family is a function that builds a Case: a model, batches by seed (batches of all seeds have the same shapes) and a loss.
FAMILIES has all of them by name. A family whose package is not installed raises Missing, which names the package."""
from __future__ import annotations

import dataclasses
import importlib
import warnings
from typing import Any, Callable

import torch
from torch import nn
from torch.nn import functional as F

Batch = "dict[str, Any]"


class Missing(Exception):
    """A package, or a class of a package, that a family needs is not there."""


@dataclasses.dataclass
class Case:
    """What a family is: `loss(model, batch(seed))` is a number with a gradient."""

    model: nn.Module
    batch: Callable[[int], dict[str, Any]]
    loss: Callable[[nn.Module, dict[str, Any]], torch.Tensor]
    samples: Callable[[dict[str, Any], slice], dict[str, Any]] | None = None  # some samples of a batch, where it can be split
    native: tuple[str, ...] = ()  # operators with products inside that no emulation claims: they are allowed by name


FAMILIES: dict[str, Callable[[], Case]] = {}
FACTS: list[str] = []  # the 26 families of the facts that this project started from; the others are of our own choice


def family(name: str, facts: bool = False) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Enter a builder into FAMILIES."""
    def enter(build: Callable[[], Case]) -> Callable[[], Case]:
        FAMILIES[name] = build
        if facts:
            FACTS.append(name)
        return build
    return enter


def build(name: str) -> Case:
    """The family `name`, with the same weights each time."""
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FAMILIES[name]()


def package(name: str) -> Any:
    """A package that may be missing."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # an installed package may also fail to import
        raise Missing(f"{name} cannot be imported ({str(error).splitlines()[0][:80]})") from None


def transformers(name: str) -> Any:
    """A class of transformers."""
    module = package("transformers")
    module.utils.logging.set_verbosity_error()
    try:
        return getattr(module, name)
    except AttributeError:
        raise Missing(f"transformers {module.__version__} has no {name}") from None


def seeded(seed: int) -> torch.Generator:
    """A generator of a batch: what a batch holds depends on the seed alone."""
    return torch.Generator().manual_seed(seed)


def numbers(seed: int, *shape: int) -> torch.Tensor:
    """Normal numbers."""
    return torch.randn(*shape, generator=seeded(seed))


def integers(seed: int, high: int, *shape: int, low: int = 0) -> torch.Tensor:
    """Integers from low to high - 1."""
    return torch.randint(low, high, shape, generator=seeded(seed))


def part(batch: dict[str, Any], which: slice) -> dict[str, Any]:
    """Some samples of a batch whose tensors all have samples first."""
    return {key: value[which] for key, value in batch.items()}


# --- transformers ------------------------------------------------------------------------------------------------------

SIZES = dict(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64)
ENDS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)


def tokens(seed: int, samples: int = 2, length: int = 16, vocabulary: int = 64) -> dict[str, Any]:
    """Tokens and labels, none of them a special one."""
    ids = integers(seed, vocabulary, samples, length, low=4)
    return {"input_ids": ids, "labels": ids.clone()}


def own_loss(model: nn.Module, batch: dict[str, Any]) -> torch.Tensor:
    """The loss that a model of transformers gives itself."""
    loss: torch.Tensor = model(**batch).loss
    return loss


def summed(model: nn.Module, batch: dict[str, Any]) -> torch.Tensor:
    """A loss for a model that has none: squares of its first floating-point output."""
    return first(model(**batch)).float().square().mean()


def first(value: Any) -> torch.Tensor:
    """The first floating-point tensor with a gradient in what a model returned."""
    if isinstance(value, torch.Tensor):
        return value
    values = value.values() if isinstance(value, dict) else value
    for each in values:
        found = first(each) if isinstance(each, (dict, tuple, list, torch.Tensor)) else None
        if found is not None and found.is_floating_point() and found.requires_grad:
            return found
    raise TypeError(f"no tensor with a gradient in {type(value).__name__}")


def causal(config: str, model: str, batch: Callable[[int], dict[str, Any]] = tokens, **sizes: Any) -> Callable[[], Case]:
    """A builder of a model of transformers from its configuration; sizes of None are left out."""
    def make() -> Case:
        given = {key: value for key, value in {**SIZES, **ENDS, **sizes}.items() if value is not None}
        made = transformers(model)(transformers(config)(**given)).train()
        return Case(made, batch, own_loss if "labels" in batch(0) else summed, part)
    return make


ROPE = {"rope_type": "default", "rope_theta": 10000.0}
OF_TRANSFORMERS: dict[str, tuple[bool, Callable[[], Case]]] = {
    "gpt2": (True, causal("GPT2Config", "GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=4, n_positions=64)),
    "llama": (True, causal("LlamaConfig", "LlamaForCausalLM")),
    "qwen3": (True, causal("Qwen3Config", "Qwen3ForCausalLM", head_dim=8)),
    "gemma3": (True, causal("Gemma3TextConfig", "Gemma3ForCausalLM", head_dim=8, sliding_window=8)),
    "mixtral": (True, causal("MixtralConfig", "MixtralForCausalLM", num_local_experts=4, num_experts_per_tok=2)),
    "qwen3-moe": (True, causal("Qwen3MoeConfig", "Qwen3MoeForCausalLM", num_experts=4, num_experts_per_tok=2,
                               moe_intermediate_size=32, head_dim=8, decoder_sparse_step=1)),
    "deepseek-v3": (True, causal("DeepseekV3Config", "DeepseekV3ForCausalLM", num_key_value_heads=4, q_lora_rank=16,
                                 kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8, n_routed_experts=4,
                                 n_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=32, n_group=1, topk_group=1,
                                 first_k_dense_replace=1)),
    "gpt-oss": (True, causal("GptOssConfig", "GptOssForCausalLM", num_local_experts=4, num_experts_per_tok=2, head_dim=8,
                             sliding_window=8)),
    "mamba2": (True, causal("Mamba2Config", "Mamba2ForCausalLM", num_heads=8, head_dim=8, state_size=16, n_groups=1,
                            chunk_size=8, expand=2, num_attention_heads=None, num_key_value_heads=None)),
    "bert": (True, causal("BertConfig", "BertForMaskedLM")),
    "modernbert": (True, causal("ModernBertConfig", "ModernBertForMaskedLM", cls_token_id=1, sep_token_id=2,
                                local_attention=8, num_hidden_layers=3)),
    "deberta-v2": (True, causal("DebertaV2Config", "DebertaV2ForMaskedLM", relative_attention=True, pos_att_type=["p2c", "c2p"],
                                position_buckets=8)),
    "t5": (True, causal("T5Config", "T5ForConditionalGeneration", d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
                        decoder_start_token_id=0)),
    # twenty more, and some
    "gpt-neox": (False, causal("GPTNeoXConfig", "GPTNeoXForCausalLM")),
    "bloom": (False, causal("BloomConfig", "BloomForCausalLM", n_layer=2, n_head=4)),
    "opt": (False, causal("OPTConfig", "OPTForCausalLM", ffn_dim=64, word_embed_proj_dim=32)),
    "falcon": (False, causal("FalconConfig", "FalconForCausalLM", num_kv_heads=1, multi_query=True)),
    "phi": (False, causal("PhiConfig", "PhiForCausalLM", partial_rotary_factor=0.5)),
    "mistral": (False, causal("MistralConfig", "MistralForCausalLM", sliding_window=8)),
    "gemma2": (False, causal("Gemma2Config", "Gemma2ForCausalLM", head_dim=8, sliding_window=8)),
    "mpt": (False, causal("MptConfig", "MptForCausalLM", d_model=32, n_heads=4, n_layers=2, max_seq_len=64)),
    "xlnet": (False, causal("XLNetConfig", "XLNetLMHeadModel", max_position_embeddings=None, d_model=32, n_layer=2, n_head=4, d_inner=64)),
    "albert": (False, causal("AlbertConfig", "AlbertForMaskedLM", embedding_size=16)),
    "roberta": (False, causal("RobertaConfig", "RobertaForMaskedLM")),
    "electra": (False, causal("ElectraConfig", "ElectraForMaskedLM", embedding_size=16)),
    "distilbert": (False, causal("DistilBertConfig", "DistilBertForMaskedLM", dim=32, n_layers=2, n_heads=4, hidden_dim=64)),
    "bart": (False, causal("BartConfig", "BartForConditionalGeneration", d_model=32, encoder_layers=2, decoder_layers=2,
                           encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
                           decoder_start_token_id=2)),
    "longformer": (False, causal("LongformerConfig", "LongformerForMaskedLM", attention_window=[4, 4])),
    "funnel": (False, causal("FunnelConfig", "FunnelForMaskedLM", d_model=32, n_head=4, d_head=8, d_inner=64,
                             block_sizes=[1, 1], num_decoder_layers=1, num_hidden_layers=None)),
    "rwkv": (False, causal("RwkvConfig", "RwkvForCausalLM", attention_hidden_size=32, context_length=64)),
    "jamba": (False, causal("JambaConfig", "JambaForCausalLM", num_experts=2, num_experts_per_tok=1, attn_layer_period=2,
                            attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, use_mamba_kernels=False,
                            mamba_d_state=8, mamba_dt_rank=4)),
    "granite": (False, causal("GraniteConfig", "GraniteForCausalLM")),
    "olmo2": (False, causal("Olmo2Config", "Olmo2ForCausalLM")),
    "cohere": (False, causal("CohereConfig", "CohereForCausalLM")),
    "nemotron": (False, causal("NemotronConfig", "NemotronForCausalLM")),
    "mamba": (False, causal("MambaConfig", "MambaForCausalLM", state_size=8, time_step_rank=4, num_attention_heads=None,
                            num_key_value_heads=None)),
    "qwen3-next": (False, causal("Qwen3NextConfig", "Qwen3NextForCausalLM", num_experts=4, num_experts_per_tok=2, head_dim=8,
                                 moe_intermediate_size=32, shared_expert_intermediate_size=32, linear_num_value_heads=4,
                                 linear_num_key_heads=2, linear_key_head_dim=8, linear_value_head_dim=8,
                                 layer_types=["linear_attention", "full_attention"])),
}
for _name, (_facts, _make) in OF_TRANSFORMERS.items():
    family(_name, _facts)(_make)


@family("qwen3-next")
def qwen3_next() -> Case:
    """Its linear attention solves triangular systems."""
    case = OF_TRANSFORMERS["qwen3-next"][1]()
    case.native = ("aten::linalg_solve_triangular",)
    return case


VISION = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=4,
              num_channels=3)


def images(seed: int, size: int = 16, samples: int = 3, classes: int = 4) -> dict[str, Any]:
    """Pictures and their classes."""
    return {"pixel_values": numbers(seed, samples, 3, size, size), "labels": integers(seed, classes, samples)}


def seen(config: str, model: str, size: int = 16, **sizes: Any) -> Callable[[], Case]:
    """A builder of a classifier of pictures."""
    def make() -> Case:
        made = transformers(model)(transformers(config)(num_labels=4, **sizes)).train()
        return Case(made, lambda seed: images(seed, size), own_loss, part)
    return make


OF_PICTURES: dict[str, tuple[bool, Callable[[], Case]]] = {
    "vit": (True, seen("ViTConfig", "ViTForImageClassification", **VISION)),
    "swin": (True, seen("SwinConfig", "SwinForImageClassification", image_size=32, size=32, patch_size=4, embed_dim=16,
                        depths=[2, 2], num_heads=[2, 4], window_size=4)),
    "convnext": (True, seen("ConvNextConfig", "ConvNextForImageClassification", size=32, image_size=32, hidden_sizes=[8, 16],
                            depths=[1, 1], num_stages=2)),
    "deit": (False, seen("DeiTConfig", "DeiTForImageClassification", **VISION)),
    "beit": (False, seen("BeitConfig", "BeitForImageClassification", use_relative_position_bias=True, **VISION)),
    "dinov2": (False, seen("Dinov2Config", "Dinov2ForImageClassification", hidden_size=32, num_hidden_layers=2,
                           num_attention_heads=4, mlp_ratio=2, image_size=16, patch_size=4)),
    "mobilevit": (False, seen("MobileViTConfig", "MobileViTForImageClassification", size=128, image_size=128,
                              hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 64])),
}
for _name, (_facts, _make) in OF_PICTURES.items():
    family(_name, _facts)(_make)


@family("segformer")
def segformer() -> Case:
    config = transformers("SegformerConfig")(num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[16, 32],
                                             patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2],
                                             decoder_hidden_size=16, num_labels=4)
    def batch(seed: int) -> dict[str, Any]:
        return {"pixel_values": numbers(seed, 2, 3, 32, 32), "labels": integers(seed, 4, 2, 32, 32)}
    return Case(transformers("SegformerForSemanticSegmentation")(config).train(), batch, own_loss, part)


@family("clip", facts=True)
def clip() -> Case:
    config = transformers("CLIPConfig")(
        text_config=dict(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                         max_position_embeddings=16, bos_token_id=1, eos_token_id=2, pad_token_id=0),
        vision_config=VISION, projection_dim=16)
    def batch(seed: int) -> dict[str, Any]:
        ids = integers(seed, 64, 4, 8, low=4)
        ids[:, -1] = 2
        return {"input_ids": ids, "pixel_values": numbers(seed, 4, 3, 16, 16)}
    def loss(model: nn.Module, given: dict[str, Any]) -> torch.Tensor:
        value: torch.Tensor = model(**given, return_loss=True).loss
        return value
    return Case(transformers("CLIPModel")(config).train(), batch, loss)


@family("whisper", facts=True)
def whisper() -> Case:
    config = transformers("WhisperConfig")(vocab_size=64, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2,
                                           encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
                                           decoder_ffn_dim=64, max_source_positions=16, max_target_positions=16,
                                           decoder_start_token_id=1, **ENDS)
    def batch(seed: int) -> dict[str, Any]:
        return {"input_features": numbers(seed, 2, 8, 32), "labels": integers(seed, 64, 2, 8, low=4)}
    return Case(transformers("WhisperForConditionalGeneration")(config).train(), batch, own_loss, part)


def heard(config: str, model: str, **sizes: Any) -> Callable[[], Case]:
    """A builder of a model of sound with classes of sequences."""
    def make() -> Case:
        given = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, conv_dim=(16, 16),
                     conv_kernel=(8, 4), conv_stride=(4, 4), num_feat_extract_layers=2, num_conv_pos_embeddings=8,
                     num_conv_pos_embedding_groups=2, classifier_proj_size=16, num_labels=4, mask_time_prob=0.0, layerdrop=0.0, **sizes)
        made = transformers(model)(transformers(config)(**given)).train()
        def batch(seed: int) -> dict[str, Any]:
            return {"input_values": numbers(seed, 2, 512), "labels": integers(seed, 4, 2)}
        return Case(made, batch, own_loss, part)
    return make


family("wav2vec2", facts=True)(heard("Wav2Vec2Config", "Wav2Vec2ForSequenceClassification"))
family("hubert")(heard("HubertConfig", "HubertForSequenceClassification"))
family("wavlm")(heard("WavLMConfig", "WavLMForSequenceClassification", num_buckets=16, max_bucket_distance=32))


@family("encodec")
def encodec() -> Case:
    config = transformers("EncodecConfig")(num_filters=4, hidden_size=16, codebook_size=16, codebook_dim=16, upsampling_ratios=[4, 2],
                                           num_lstm_layers=1, sampling_rate=800, target_bandwidths=[0.8], compress=2)
    made = transformers("EncodecModel")(config).train()
    def loss(model: Any, given: dict[str, Any]) -> torch.Tensor:  # encoder and decoder; the code book has no gradient
        return (model.decoder(model.encoder(given["input_values"])) - given["input_values"]).square().mean()
    return Case(made, lambda seed: {"input_values": numbers(seed, 2, 1, 128)}, loss, part)


def pictured(text: dict[str, Any], token: int, samples: int = 2) -> Callable[[int], dict[str, Any]]:
    """Batches of text with one picture of sixteen tokens each."""
    def batch(seed: int) -> dict[str, Any]:
        ids = integers(seed, 60, samples, 24, low=4)
        ids[:, 1:17] = token
        return {"input_ids": ids, "pixel_values": numbers(seed, samples, 3, 16, 16), "labels": ids.clone()}
    return batch


@family("llava", facts=True)
def llava() -> Case:
    config = transformers("LlavaConfig")(
        vision_config=transformers("CLIPVisionConfig")(**VISION), text_config=transformers("LlamaConfig")(**SIZES, **ENDS),
        image_token_index=63, vision_feature_layer=-1, vision_feature_select_strategy="default", image_seq_length=16)
    return Case(transformers("LlavaForConditionalGeneration")(config).train(), pictured(SIZES, 63), own_loss)


@family("qwen2-vl")
def qwen2_vl() -> Case:
    text = dict(SIZES, rope_parameters={**ROPE, "mrope_section": [1, 1, 2]}, **ENDS)
    config = transformers("Qwen2VLConfig")(
        text_config=text, vision_config=dict(depth=2, embed_dim=32, hidden_size=32, num_heads=4, mlp_ratio=2, patch_size=4,
                                             spatial_merge_size=2, temporal_patch_size=2, in_channels=3),
        image_token_id=63, vision_start_token_id=62, vision_end_token_id=61, video_token_id=60)
    def batch(seed: int) -> dict[str, Any]:
        ids = integers(seed, 60, 1, 12, low=4)
        ids[:, 1], ids[:, 2:6], ids[:, 6] = 62, 63, 61
        kinds = (ids == 63).int()
        return {"input_ids": ids, "labels": ids.clone(), "pixel_values": numbers(seed, 16, 3 * 2 * 4 * 4),
                "image_grid_thw": torch.tensor([[1, 4, 4]]), "mm_token_type_ids": kinds}
    return Case(transformers("Qwen2VLForConditionalGeneration")(config).train(), batch, own_loss)


# --- diffusers, torchvision, timm, peft --------------------------------------------------------------------------------


def denoised(model: nn.Module, batch: dict[str, Any]) -> torch.Tensor:
    """The loss of a diffusion model: it predicts the noise."""
    target = batch["noise"]
    given = {key: value for key, value in batch.items() if key != "noise"}
    return F.mse_loss(model(**given).sample[:, :target.shape[1]], target)


@family("unet2d", facts=True)
def unet2d() -> Case:
    made = package("diffusers").UNet2DModel(sample_size=16, in_channels=3, out_channels=3, layers_per_block=1,
                                            block_out_channels=(16, 32), norm_num_groups=8, attention_head_dim=8,
                                            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                                            up_block_types=("AttnUpBlock2D", "UpBlock2D"))
    def batch(seed: int) -> dict[str, Any]:
        return {"sample": numbers(seed, 2, 3, 16, 16), "timestep": integers(seed, 1000, 2), "noise": numbers(seed + 99, 2, 3, 16, 16)}
    return Case(made.train(), batch, denoised, part)


@family("unet2d-text")
def unet2d_text() -> Case:
    made = package("diffusers").UNet2DConditionModel(sample_size=8, in_channels=4, out_channels=4, layers_per_block=1,
                                                     block_out_channels=(16, 32), norm_num_groups=8, attention_head_dim=4,
                                                     cross_attention_dim=16, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
                                                     up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"))
    def batch(seed: int) -> dict[str, Any]:
        return {"sample": numbers(seed, 2, 4, 8, 8), "timestep": integers(seed, 1000, 2),
                "encoder_hidden_states": numbers(seed + 7, 2, 6, 16), "noise": numbers(seed + 99, 2, 4, 8, 8)}
    return Case(made.train(), batch, denoised, part)


@family("dit")
def dit() -> Case:
    made = package("diffusers").DiTTransformer2DModel(num_attention_heads=2, attention_head_dim=16, in_channels=4, num_layers=2,
                                                      sample_size=8, patch_size=2, num_embeds_ada_norm=10, norm_num_groups=8)
    def batch(seed: int) -> dict[str, Any]:
        return {"hidden_states": numbers(seed, 2, 4, 8, 8), "timestep": integers(seed, 1000, 2), "class_labels": integers(seed, 10, 2),
                "noise": numbers(seed + 99, 2, 4, 8, 8)}
    return Case(made.train(), batch, denoised, part)


@family("autoencoder-kl")
def autoencoder_kl() -> Case:
    made = package("diffusers").AutoencoderKL(block_out_channels=(8, 16), layers_per_block=1, latent_channels=4, norm_num_groups=4,
                                              down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)
    def loss(model: Any, given: dict[str, Any]) -> torch.Tensor:
        coded = model.encode(given["sample"]).latent_dist
        return F.mse_loss(model.decode(coded.mean).sample, given["sample"]) + 1e-3 * coded.kl().mean()
    return Case(made.train(), lambda seed: {"sample": numbers(seed, 2, 3, 16, 16)}, loss)


def classified(model: nn.Module, batch: dict[str, Any]) -> torch.Tensor:
    """The loss of a classifier of pictures."""
    return F.cross_entropy(model(batch["pixel_values"]), batch["labels"])


@family("resnet18", facts=True)
def resnet18() -> Case:
    made = package("torchvision").models.resnet18(num_classes=4)
    return Case(made.train(), lambda seed: images(seed, 32), classified)


@family("mobilenet-v3")
def mobilenet_v3() -> Case:
    made = package("torchvision").models.mobilenet_v3_small(num_classes=4)
    return Case(made.train(), lambda seed: images(seed, 64), classified)


@family("timm-vit", facts=True)
def timm_vit() -> Case:
    made = package("timm").models.VisionTransformer(img_size=16, patch_size=4, embed_dim=32, depth=2, num_heads=4, num_classes=4)
    return Case(made.train(), images, classified, part)


@family("timm-mixer")
def timm_mixer() -> Case:
    made = package("timm").models.MlpMixer(img_size=16, patch_size=4, embed_dim=32, num_blocks=2, num_classes=4)
    return Case(made.train(), images, classified, part)


def adapted(**options: Any) -> Callable[[], Case]:
    """A builder of a frozen llama with adapters of peft."""
    def make() -> Case:
        peft, base = package("peft"), FAMILIES["llama"]()
        made = peft.get_peft_model(base.model, peft.LoraConfig(r=4, lora_alpha=8, init_lora_weights=False, **options))
        return Case(made.train(), tokens, own_loss, part)
    return make


family("lora")(adapted(target_modules=["q_proj", "v_proj", "down_proj"], lora_dropout=0.1))
family("dora")(adapted(target_modules=["q_proj", "v_proj"], use_dora=True))


# --- of torch alone ----------------------------------------------------------------------------------------------------


class Plain(nn.Module):
    """A small network from parts and a forward function."""

    def __init__(self, forward: Callable[..., torch.Tensor], **parts: nn.Module) -> None:
        super().__init__()
        for name, each in parts.items():
            self.add_module(name, each)
        self.run = forward

    def forward(self, **batch: Any) -> torch.Tensor:
        return self.run(self, **batch)


def squares(model: nn.Module, batch: dict[str, Any]) -> torch.Tensor:
    """Mean squares between what the model says and y."""
    given = {key: value for key, value in batch.items() if key != "y"}
    return F.mse_loss(model(**given), batch["y"])


def pairs(*shape: int, out: int = 4, samples: int = 4) -> Callable[[int], dict[str, Any]]:
    """Batches of x and y."""
    return lambda seed: {"x": numbers(seed, samples, *shape), "y": numbers(seed + 99, samples, out)}


@family("mlp")
def mlp() -> Case:
    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.out(F.gelu(self.inner(F.gelu(self.inner(F.gelu(self.enter(x)))))))  # inner is called twice
    made = Plain(run, enter=nn.Linear(16, 32), inner=nn.Linear(32, 32), out=nn.Linear(32, 4))
    return Case(made, pairs(16), squares, part)


def recurrent(kind: str, **options: Any) -> Callable[[], Case]:
    """A builder of a recurrent network."""
    def make() -> Case:
        def run(self: Any, x: torch.Tensor) -> torch.Tensor:
            return self.out(self.rnn(x)[0][:, -1])
        made = Plain(run, rnn=getattr(nn, kind)(16, 32, num_layers=2, batch_first=True, **options), out=nn.Linear(32, 4))
        return Case(made, pairs(6, 16), squares, part)
    return make


family("lstm", facts=True)(recurrent("LSTM"))
family("rnn", facts=True)(recurrent("RNN"))
family("gru")(recurrent("GRU"))


@family("lstm-cell")
def lstm_cell() -> Case:
    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        state = None
        for each in x.unbind(1):
            state = self.cell(each, state)
        return self.out(state[0])
    return Case(Plain(run, cell=nn.LSTMCell(16, 32), out=nn.Linear(32, 4)), pairs(4, 16), squares, part)


@family("transformer-bilinear", facts=True)
def transformer_bilinear() -> Case:
    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        coded = self.coder(x, x.flip(1))
        return self.pair(coded[:, 0], coded[:, -1])
    coder = nn.Transformer(32, 4, 1, 1, 64, dropout=0.1, batch_first=True)
    return Case(Plain(run, coder=coder, pair=nn.Bilinear(32, 32, 4)).train(), pairs(8, 32), squares, part)


@family("spectral-gan")
def spectral_gan() -> Case:
    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.two(self.one(x)).flatten(1))
    norm = nn.utils.parametrizations.spectral_norm
    made = Plain(run, one=nn.Sequential(norm(nn.Conv2d(3, 8, 4, 2, 1)), nn.LeakyReLU(0.2)),
                 two=nn.Sequential(norm(nn.Conv2d(8, 16, 4, 2, 1)), nn.LeakyReLU(0.2)), out=norm(nn.Linear(16 * 16, 2)))
    def batch(seed: int) -> dict[str, Any]:
        return {"x": numbers(seed, 4, 3, 16, 16), "y": torch.ones(4, 2)}
    def loss(model: nn.Module, given: dict[str, Any]) -> torch.Tensor:
        return F.binary_cross_entropy_with_logits(model(x=given["x"]), given["y"])
    return Case(made.train(), batch, loss)


@family("dcgan-generator")
def dcgan_generator() -> Case:
    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.all(x[:, :, None, None]).flatten(1).mean(1, keepdim=True)
    layers = nn.Sequential(nn.ConvTranspose2d(16, 16, 4), nn.BatchNorm2d(16), nn.ReLU(), nn.ConvTranspose2d(16, 8, 4, 2, 1),
                           nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 3, 4, 2, 1, groups=1), nn.Tanh())
    return Case(Plain(run, all=layers).train(), pairs(16, out=1), squares)


@family("conv1d-3d")
def conv1d_3d() -> Case:
    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        wave = F.gelu(self.wave(x.flatten(2)))
        return self.out(torch.cat([wave.mean(2), F.gelu(self.block(x)).mean((2, 3, 4))], 1))
    made = Plain(run, wave=nn.Conv1d(4, 8, 5, 2, 4, dilation=2, groups=2), block=nn.Conv3d(4, 8, 3, 1, 1, bias=False),
                 out=nn.Linear(16, 4))
    return Case(made, pairs(4, 4, 4, 4), squares, part)


@family("weight-norm")
def weight_norm() -> Case:
    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.out(F.gelu(self.enter(x)))
    norm = nn.utils.parametrizations.weight_norm
    return Case(Plain(run, enter=norm(nn.Linear(16, 32)), out=norm(nn.Linear(32, 4))), pairs(16), squares, part)


@family("gcn")
def gcn() -> Case:
    def run(self: Any, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        for layer in (self.one, self.two):
            sent = layer(x)
            x = F.relu(torch.zeros_like(sent).index_add(0, edges[1], sent[edges[0]]) + sent)
        return self.out(x)
    def batch(seed: int) -> dict[str, Any]:
        return {"x": numbers(seed, 10, 16), "edges": integers(seed, 10, 2, 24), "y": numbers(seed + 99, 10, 4)}
    return Case(Plain(run, one=nn.Linear(16, 32), two=nn.Linear(32, 32), out=nn.Linear(32, 4)), batch, squares)


@family("gat")
def gat() -> Case:
    def run(self: Any, x: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
        sent = self.one(x)
        score = F.leaky_relu(sent @ self.left.weight.t() + (sent @ self.right.weight.t()).t())
        return self.out(F.elu(torch.softmax(score.masked_fill(~near, -1e9), 1) @ sent))
    def batch(seed: int) -> dict[str, Any]:
        return {"x": numbers(seed, 10, 16), "near": (numbers(5, 10, 10) > 0) | torch.eye(10, dtype=torch.bool),
                "y": numbers(seed + 99, 10, 4)}
    made = Plain(run, one=nn.Linear(16, 32, bias=False), left=nn.Linear(32, 1, bias=False), right=nn.Linear(32, 1, bias=False),
                 out=nn.Linear(32, 4))
    return Case(made, batch, squares)


@family("dlrm")
def dlrm() -> Case:
    def run(self: Any, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        parts = torch.stack([F.relu(self.bottom(x))] + [bag(ids[:, i]) for i, bag in enumerate(self.bags)], 1)
        cross = torch.bmm(parts, parts.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([parts[:, 0], cross], 1))
    bags = nn.ModuleList([nn.EmbeddingBag(20, 16, mode="sum") for _ in range(3)])
    def batch(seed: int) -> dict[str, Any]:
        return {"x": numbers(seed, 4, 8), "ids": integers(seed, 20, 4, 3, 2), "y": numbers(seed + 99, 4, 4)}
    return Case(Plain(run, bottom=nn.Linear(8, 16), bags=bags, top=nn.Linear(32, 4)), batch, squares, part)


@family("tied-autoencoder")
def tied_autoencoder() -> Case:
    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.linear(torch.tanh(self.enter(x)), self.enter.weight.t())
    return Case(Plain(run, enter=nn.Linear(16, 8)), pairs(16, out=16), squares, part)


@family("einsum-attention")
def einsum_attention() -> Case:
    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (each.unflatten(2, (4, 8)) for each in self.qkv(x).chunk(3, 2))
        share = torch.softmax(torch.einsum("bihd,bjhd->bhij", q, k) / 8 ** 0.5, 3)
        mixed = torch.einsum("bhij,bjhd->bihd", share, v).flatten(2)
        return self.out(mixed[:, 0]) + self.out(mixed[0, 0]) + (mixed[:, 1] @ self.out.weight[0])[:, None]  # 1-d and mv
    return Case(Plain(run, qkv=nn.Linear(32, 96), out=nn.Linear(32, 4)), pairs(6, 32), squares)


@family("attention-dropout")
def attention_dropout() -> Case:
    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.attend(x, x, x, need_weights=False)[0][:, 0])
    made = Plain(run, attend=nn.MultiheadAttention(32, 4, dropout=0.1, batch_first=True), out=nn.Linear(32, 4))
    return Case(made.train(), pairs(6, 32), squares)


@family("siren")
def siren() -> Case:
    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.sin(30 * self.two(torch.sin(30 * self.one(x)))))
    return Case(Plain(run, one=nn.Linear(2, 32), two=nn.Linear(32, 32), out=nn.Linear(32, 3)), pairs(2, out=3, samples=16), squares, part)


@family("hypernetwork")
def hypernetwork() -> Case:
    def run(self: Any, x: torch.Tensor) -> torch.Tensor:  # the weights of a product are made by another product
        weights = self.maker(self.codes.weight).view(4, 16)
        return F.linear(x, weights)
    return Case(Plain(run, maker=nn.Linear(8, 64), codes=nn.Embedding(1, 8)), pairs(16), squares, part)
