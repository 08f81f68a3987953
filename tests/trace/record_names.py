#!/usr/bin/env python3
"""Names of tensors as frameworks give them, with the truth of what each is: conventions-recorded.tsv.

    python3 record_names.py torch >a; python3 record_names.py flax >b; cat a b >conventions-recorded.tsv

The truth is the framework's own: a parameter is what named_parameters() lists, a buffer what named_buffers() does, a
moment what the optimizer's state holds of it. Needs torch and transformers, or flax and optax; models are tiny. See conventions.tsv for the form of the lines.
"""
import sys


def shape(t):
    return "x".join(str(n) for n in t.shape) if len(t.shape) else "()"


# Parameters whose last word may be that of a buffer as well: without a kind, and that is accepted.
MISSED = {"position_embeddings", "layer_scale_parameter", "masked_spec_embed", "original0", "original1",
          "relative_position_bias_table"}


def line(name, t, kind="-", fqn=None):
    missed = kind == "weight" and name.split(".")[-1] in MISSED
    print(name, shape(t), kind, *([fqn] if kind != "-" else []), *(["missed"] if missed else []), sep="\t")


def hugging_face():
    import torch
    import transformers as tr

    small = dict(hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, vocab_size=32)
    configs = [
        tr.LlamaConfig(**small), tr.MixtralConfig(**small, num_key_value_heads=1, num_local_experts=2),
        tr.Qwen2Config(**small, num_key_value_heads=1), tr.Gemma2Config(**small, num_key_value_heads=1, head_dim=4),
        tr.GPT2Config(n_embd=8, n_layer=1, n_head=2, vocab_size=32, n_positions=16), tr.GPTNeoXConfig(**small),
        tr.BertConfig(**small), tr.T5Config(d_model=8, d_ff=16, d_kv=4, num_layers=1, num_heads=2, vocab_size=32),
        tr.BloomConfig(hidden_size=8, n_layer=1, n_head=2, vocab_size=32), tr.OPTConfig(
            hidden_size=8, ffn_dim=16, num_hidden_layers=1, num_attention_heads=2, vocab_size=32, word_embed_proj_dim=8),
        tr.MambaConfig(hidden_size=8, num_hidden_layers=1, vocab_size=32), tr.ViTConfig(
            hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=32),
        tr.WhisperConfig(d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                         decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, vocab_size=64,
                         pad_token_id=1, bos_token_id=1, eos_token_id=1, decoder_start_token_id=1),
        tr.ConvNextConfig(hidden_sizes=[8, 8], depths=[1, 1], num_stages=2), tr.ResNetConfig(
            embedding_size=8, hidden_sizes=[8], depths=[1]),
        tr.CLIPConfig(text_config=dict(small), vision_config=dict(small)),
        tr.Wav2Vec2Config(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
                          conv_dim=[8], conv_kernel=[2], conv_stride=[2], num_feat_extract_layers=1,
                          num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2),
        tr.SwinConfig(embed_dim=8, depths=[1], num_heads=[1], image_size=32, window_size=2),
    ]
    print(f"# Hugging Face: transformers {tr.__version__}, torch {torch.__version__}")
    for c in configs:
        kind = tr.AutoModelForCausalLM if type(c) in tr.MODEL_FOR_CAUSAL_LM_MAPPING else tr.AutoModel
        m = kind.from_config(c)
        print(f"@\t{c.model_type}/model.safetensors\tformat=pt")
        parameters = dict(m.named_parameters(remove_duplicate=False))
        for name, t in m.state_dict(keep_vars=True).items():
            if t.is_floating_point():
                line(name, t, *(["weight", name] if name in parameters else []))


def networks():
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 4, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(4)
            self.lstm = nn.LSTM(4, 3, bidirectional=True)
            self.attn = nn.MultiheadAttention(6, 2)
            self.layers = nn.ModuleList(nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5)) for _ in range(2))
            self.embedding = nn.Embedding(7, 6)
            self.head = nn.Linear(5, 2)

    return Net()


def trained(net, optimizer):
    import torch

    for p in net.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()


STATE = {"exp_avg": "opt.m", "exp_avg_sq": "opt.v", "max_exp_avg_sq": "opt.vmax", "momentum_buffer": "opt.m"}


def metadata(groups, prefix):
    out = []
    for g, group in enumerate(groups):
        for key in ("params", "param_names"):
            out += [f"{prefix}param_groups/{g}/{key}/{i}={x}" for i, x in enumerate(group.get(key, []))]
    return out


def tree(net, optimizer, words=("model", "optimizer"), wrap="", path="ckpt.pt", named=True):
    """What torch.save({"model": ..., "optimizer": ...}) holds, as paths."""
    parameters = dict(net.named_parameters())
    order = [n for g in optimizer.param_groups for p in g["params"] for n, q in parameters.items() if q is p]
    state = optimizer.state_dict()
    prefix = words[1] + "/" if words[1] else ""
    print("@", path, *metadata(state["param_groups"], prefix), sep="\t")
    for name, t in net.state_dict(keep_vars=True).items():
        if words[0] and t.is_floating_point():
            line(f"{words[0]}/{wrap}{name}", t, *(["weight", name] if name in parameters else []))
    for index, values in state["state"].items():
        for word, t in values.items():
            kind = STATE.get(word, "-")
            line(f"{prefix}state/{index}/{word}", t, kind, order[index] if named else str(index))


def checkpoints():
    import torch

    print(f"# torch.save of trees, torch {torch.__version__}")
    for make in (lambda p: torch.optim.Adam(p, amsgrad=True), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)):
        net = networks()
        optimizer = make(net.parameters())
        trained(net, optimizer)
        tree(net, optimizer)
    tree(net, optimizer, ("model_state_dict", "optimizer_state_dict"))
    tree(net, optimizer, ("state_dict", "optimizer_states/0"))  # Lightning
    tree(net, optimizer, ("model", "optimizer"), "module.")  # DistributedDataParallel
    tree(net, optimizer, ("model", "optimizer"), "_orig_mod.")  # torch.compile, as nanoGPT saves it
    tree(net, optimizer, (None, ""), path="optimizer.pt", named=False)  # transformers' Trainer
    print("# two groups: the numbers are in the order of the groups, which shapes or names can tell")
    net = networks()
    matrices = [(n, p) for n, p in net.named_parameters() if p.dim() > 1]
    others = [(n, p) for n, p in net.named_parameters() if p.dim() <= 1]
    for named in (False, True):
        pick = (lambda l: l) if named else (lambda l: [p for _, p in l])
        optimizer = torch.optim.AdamW([{"params": pick(matrices)}, {"params": pick(others), "weight_decay": 0.0}])
        trained(net, optimizer)
        tree(net, optimizer)
    print("# gradients")
    print("@\tgrads.pt")
    for name, p in net.named_parameters():
        line(f"grads/{name}", p.grad, "wgrad", name)
    print("@\tgrads.npz")
    for name, p in net.named_parameters():
        line(f"{name}.grad", p.grad, "wgrad", name)


def distributed():
    import torch
    from torch.distributed.checkpoint import _nested_dict
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

    print(f"# torch.distributed.checkpoint, torch {torch.__version__}: the names of .metadata")
    for flat in (False, True):
        net = networks()
        optimizer = torch.optim.AdamW(net.parameters())
        trained(net, optimizer)
        model, optim = get_state_dict(net, optimizer, options=StateDictOptions(flatten_optimizer_state_dict=flat))
        whole = {**model, **optim} if flat else {"model": model, "optim": optim}
        parameters = dict(net.named_parameters())
        print("@\tcheckpoint.safetensors")
        flattened, _ = _nested_dict.flatten_state_dict(whole)
        for name, t in flattened.items():
            if not isinstance(t, torch.Tensor) or not t.is_floating_point():
                continue
            fqn = name.removeprefix("model.") if not flat else name
            word = name.rsplit(".", 1)[-1]
            if fqn in parameters:
                line(name, t, "weight", fqn)
            elif word in STATE:
                line(name, t, STATE[word], name.removeprefix("optim.").removeprefix("state.")[: -len(word) - 1])
            else:
                line(name, t)


def flax():
    import flax as f
    import jax
    import jax.numpy as jnp
    import optax
    from flax import linen as nn
    from flax import serialization, traverse_util
    from flax.training import train_state

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.BatchNorm(use_running_average=True)(nn.Conv(4, (3, 3))(x))
            x = nn.LayerNorm()(x.reshape((x.shape[0], -1)))
            x = nn.MultiHeadDotProductAttention(num_heads=1)(nn.Dense(3)(x))
            return nn.Embed(5, 3)(jnp.zeros((1,), int)) + x

    words = {"mu": "opt.m", "nu": "opt.v", "nu_max": "opt.vmax", "trace": "opt.m"}
    print(f"# flax {f.__version__}, optax {optax.__version__}, jax {jax.__version__}: TrainState as a flat dictionary")
    net = Net()
    variables = net.init(jax.random.PRNGKey(0), jnp.ones((1, 4, 4, 1)))
    for tx in (optax.adamw(1e-3), optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3)), optax.amsgrad(1e-3),
               optax.sgd(0.1, momentum=0.9)):
        state = train_state.TrainState.create(apply_fn=net.apply, params=variables["params"], tx=tx)
        print("@\tstate.npz")
        flat = traverse_util.flatten_dict(serialization.to_state_dict(state), sep="/")
        for name, t in flat.items():
            parts = name.split("/")
            at = next((i for i, w in enumerate(parts) if w in words), None)
            if not hasattr(t, "shape"):
                continue
            if parts[0] == "params":
                line(name, t, "weight", ".".join(parts[1:]))
            elif at is not None:
                line(name, t, words[parts[at]], ".".join(parts[at + 1:]))
            else:
                line(name, t)
    print("@\tvariables.npz")
    for name, t in traverse_util.flatten_dict(variables, sep="/").items():
        parts = name.split("/")
        line(name, t, *(["weight", ".".join(parts[1:])] if parts[0] == "params" else []))
    print("@\torbax.npz")
    for name, t in traverse_util.flatten_dict(serialization.to_state_dict(state), sep=".").items():
        parts = name.split(".")
        if hasattr(t, "shape") and "params" in parts[0]:
            line(name, t, "weight", ".".join(parts[1:]))
        elif hasattr(t, "shape") and "trace" in parts:
            line(name, t, "opt.m", ".".join(parts[parts.index("trace") + 1:]))


if __name__ == "__main__":
    if sys.argv[1:] == ["flax"]:
        flax()
    else:
        hugging_face()
        checkpoints()
        distributed()
