# with_jax.py TRACE: two recorded steps of JAX, with a loss scale and AdamW of optax.
import json
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from safetensors.numpy import save_file


def forward(params, added, x):  # `added` is zero; its gradient is that of what it is added to
    h = jax.nn.relu(x @ params["fc1"]["kernel"] + params["fc1"]["bias"] + added["fc1"])
    return h, h @ params["fc2"]["kernel"] + params["fc2"]["bias"] + added["fc2"]


def loss_of(params, added, x, y, scale):
    h, logits = forward(params, added, x)
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
    return loss * scale, (loss, {"fc1": x, "fc2": h})


def flat(kind, tree):
    """{"wgrad:fc1.kernel": array, ...} of a tree."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {f"{kind}:" + ".".join(str(k.key) for k in path): np.asarray(leaf) for path, leaf in leaves}


def record(trace, step, tensors, **notes):
    notes = dict(notes, schema="mpsim-trace/1", step=step, rank=0, world=1, framework="jax " + jax.__version__)
    path = os.path.join(trace, f"step_{step:06d}", "rank_00000.safetensors")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    save_file(tensors, path, {"mpsim." + k: v if isinstance(v, str) else json.dumps(v) for k, v in notes.items()})


keys = jax.random.split(jax.random.key(0), 4)
params = {"fc1": {"kernel": jax.random.normal(keys[0], (4, 8)) / 2, "bias": jnp.zeros(8)},
          "fc2": {"kernel": jax.random.normal(keys[1], (8, 2)) / 3, "bias": jnp.zeros(2)}}
x, y = jax.random.normal(keys[2], (6, 4)), jax.random.randint(keys[3], (6,), 0, 2)
added = {"fc1": jnp.zeros((6, 8)), "fc2": jnp.zeros((6, 2))}
settings = {"lr": 1e-2, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 1e-4}
adamw = optax.adamw(settings["lr"], settings["beta1"], settings["beta2"], settings["eps"], weight_decay=settings["weight_decay"])
state, scale = adamw.init(params), 2.0**10
step_of = jax.jit(jax.grad(loss_of, argnums=(0, 1), has_aux=True))
for step in range(1, 4):
    (wgrad, agrad), (loss, act) = step_of(params, added, x, y, scale)
    if step <= 2:  # gradients as they are, scaled; weights and moments before the update
        tensors = {**flat("weight", params), **flat("wgrad", wgrad), **flat("act", act), **flat("agrad", agrad),
                   **flat("opt.m", state[0].mu), **flat("opt.v", state[0].nu)}
        group = dict(settings, params=[n[7:] for n in tensors if n.startswith("weight:")], optimizer="adamw", steps=step - 1)
        record(sys.argv[1], step, tensors, loss_scale=scale, grads_scaled=True, grad_clip=0, loss=float(loss), groups=[group])
    updates, state = adamw.update(jax.tree.map(lambda g: g / scale, wgrad), state, params)
    params = optax.apply_updates(params, updates)
