# SPDX-License-Identifier: Apache-2.0
"""Record the pure Python reference code of TransformerEngine, without its GPU kernels.

    pip download --no-deps transformer_engine==2.20.2; unzip it into DIR
    python3 record_te.py DIR .          (writes te.safetensors, te-delayed.txt, te-defaults.txt)

The package itself needs a GPU build.  Loaded alone here, on CPU with torch 2.15.0: the file
common/recipe/__init__.py (defaults); pytorch/custom_recipes/reference_nvfp4.py and
reference_current_scaling.py, with empty stand-ins for the modules they import (used for classes
not called here); and from pytorch/quantization.py the functions of the delayed-scaling fallback,
compiled from their source text with jit_fuser as the identity.  These are the project's own
references for its kernels, not the kernels.

What they do:

* TransformerEngine's NVFP4 encodes -0 as +0, also where a product underflows (88 of 2,256 codes; mpsim: 8). Along columns the
  transform precedes amax, and transformed values are rounded to the input's type.
* Its delayed scaling is f32(f32(f32(1 / amax) * fp8_max) / 2^margin); one division would change the last bit of 95 of 376
  scales. If amax is not finite or not positive, the scale stays; an infinite scale becomes FLT_MAX. The history moves at every
  step; its maximum with NaN is NaN.
"""
import ast
import enum
import importlib.util
import inspect
import os
import sys
import types

import numpy as np
import torch

from record_torchao import from_torch, inputs, make_blocks, save, describe, SEED

VERSION = "2.20.2"
INF, NAN, FLT_MAX = float("inf"), float("nan"), float(np.finfo(np.float32).max)


def module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = m = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(m)
    return m


def stand_ins(root):
    base = "transformer_engine.pytorch"
    for name in ("transformer_engine", base, base + ".custom_recipes",
                 base + ".custom_recipes.gemm", base + ".quantized_tensor"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules[base + ".quantized_tensor"].QuantizedTensorStorage = object
    sys.modules[base + ".quantized_tensor"].Quantizer = object
    gemm = sys.modules[base + ".custom_recipes"].gemm = sys.modules[base + ".custom_recipes.gemm"]
    gemm.GEMMType = enum.Enum("GEMMType", "FPROP DGRAD WGRAD")       # named in signatures only
    gemm.MMParams = object
    folder = os.path.join(root, "transformer_engine/pytorch/custom_recipes/")
    sys.modules[base + ".custom_recipes"].reference_utils = module(
        base + ".custom_recipes.reference_utils", folder + "reference_utils.py")
    return module("te_nvfp4", folder + "reference_nvfp4.py"), module(
        "te_current", folder + "reference_current_scaling.py")


def functions(path, names):
    tree = ast.parse(open(path).read())
    tree.body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in names]
    for n in tree.body:
        n.decorator_list, n.returns = [], None
        for a in n.args.args:
            a.annotation = None
    space = {"torch": torch}
    exec(compile(tree, path, "exec"), space)
    return space


def hexf(x):
    x = float(x)
    if x != x or abs(x) == INF:
        return str(x)
    head, exp = x.hex().split("p")
    head = head.rstrip("0").rstrip(".") if "." in head else head
    return "0x0p+0" if x == 0 else head + "p" + exp


def write_defaults(root, out):
    recipe = module("te_recipe", os.path.join(root,
                                              "transformer_engine/common/recipe/__init__.py"))
    print("# SPDX-License-Identifier: Apache-2.0", file=out)
    print(f"# TransformerEngine {VERSION}: defaults of the recipe classes, no NVTE_ environment"
          " variables set", file=out)
    for name, cls in vars(recipe).items():
        if inspect.isclass(cls) and issubclass(cls, recipe.Recipe) and cls is not recipe.Recipe \
                and name != "CustomRecipe":
            o = cls()
            for key in cls.__annotations__:
                value = getattr(o, key)
                value = value.name if isinstance(value, enum.Enum) else value
                print(f"default {name}.{key}={value}", file=out)


def write_delayed(root, out):
    f = functions(os.path.join(root, "transformer_engine/pytorch/quantization.py"),
                  ("_update_amax_history", "_default_get_amax_and_update_history",
                   "_default_sf_compute"))
    print("# SPDX-License-Identifier: Apache-2.0", file=out)
    print(f"# TransformerEngine {VERSION}, delayed scaling, Python fallback torch"
          f" {torch.__version__.split('+')[0]}; recorded by record_te.py", file=out)
    print("# one line per step: AMAX (put into history[0]) SCALE then the history after the step",
          file=out)
    rng = np.random.default_rng(SEED)
    random = [float(np.float32(v)) for v in np.exp(rng.normal(size=24) * 3)]
    script = [1.5, 3.0, 0.7, 0.0, 0.0, 0.1, INF, 2.0, 2.5, 0.3, 0.2, NAN, 4.0, 1.0, 0.5, 0.25,
              0.0, 0.0, 0.0, 0.0, 1e-37, 1e-38, 1e-44, 1e-40, 1e-42, 448.0, 57344.0, FLT_MAX,
              3.0, 3.0, 3.0, 3.0, NAN, INF, 0.0, 1.0, 1.0, 1.0]
    for length in (1, 3):
        for algo in ("max", "most_recent"):
            for margin, top, name, amaxes in ((0, 448.0, "script", script),
                                              (0, 57344.0, "random", random),
                                              (2, 448.0, "margin", script[:14] + script[20:28]),
                                              (-1, 57344.0, "margin_down", script[20:30])):
                print(f"case {name}_{algo}_{length} algo={algo} length={length} margin={margin}"
                      f" fp8_max={top:g}", file=out)
                history, scale = torch.zeros(length, 1), torch.ones(1)
                for a in amaxes:
                    history[0] = a
                    history, amax = f["_default_get_amax_and_update_history"](history, algo)
                    scale = f["_default_sf_compute"](amax, scale, top, margin)
                    print(hexf(a if a != a else np.float32(a)), hexf(scale),
                          *(hexf(h) for h in history[:, 0]), file=out)


def main(root, directory):
    for key in [k for k in os.environ if k.startswith("NVTE")]:
        del os.environ[key]
    with open(os.path.join(directory, "te-defaults.txt"), "w") as out:
        write_defaults(root, out)
    with open(os.path.join(directory, "te-delayed.txt"), "w") as out:
        write_delayed(root, out)
    nvfp4, current = stand_ins(root)
    tensors, meta = {}, {"recorder": "data/vectors/blocks/record_te.py"}
    common = f"framework=transformer_engine version={VERSION} torch=" \
        + torch.__version__.split("+")[0]

    def put(case, text, **values):
        tensors.update({f"{case}/{k}": from_torch(v) for k, v in values.items()})
        meta[case] = f"{common} {text}"
    for dtype in ("f32", "bf16"):
        blocks = [(n, v) for n, v in make_blocks("e2m1", dtype, 16, specials=False)
                  if 2.0 ** -14 < np.abs(v).max() < 2.0 ** 9 or "zero" in n]
        x = inputs(blocks, dtype)
        own = x.abs().max().float().reshape(1)
        for name, tile, amax, data in (
                ("own", 1, own, x), ("larger", 1, own * 64, x), ("smaller", 1, own / 24, x),
                ("tile", 16, own, x[:16]), ("zero", 1, own * 0, x[:1] * 0),
                ("infinite", 1, own * INF, x[:6]), ("tiny", 1, own * 2.0 ** -131, x[:6])):
            if dtype == "bf16" and name != "own":
                continue
            q, s = nvfp4.NVFP4QuantizerRef._quantize_blockwise_reference(
                data.clone(), amax, 16, tile, pow_2_scales=False, eps=0.0)
            codes = torch.stack([q & 15, q >> 4], -1).reshape(data.shape)
            put(f"te-nvfp4-{name}-{dtype}", f"recipe=nvfp4 element=e2m1 block={tile}x16 "
                f"input={dtype} scale=e4m3 seed={SEED} blocks={describe(blocks[:len(data)])}",
                x=data, amax=amax, scale=s.reshape(-1), codes=codes)
    amaxes = [0.0, 1e-45, 1e-40, 1e-38, 1.2e-38, 1e-37, 1.3e-36, 1e-30, 0.1, 0.3, 0.7, 1.0, 1.75,
              3.0, 7.0, 10.0, 447.99997, 448.0, 448.00003, 512.0, 57343.996, 57344.0, 57344.004,
              1e10, 1e30, 2.0 ** 127, FLT_MAX, INF, NAN]
    amax = torch.tensor(amaxes, dtype=torch.float32)
    for fmt, target in (("e4m3", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2)):
        for dtype, td in (("f32", torch.float32), ("bf16", torch.bfloat16),
                          ("f16", torch.float16)):
            for pow2 in (False, True):
                for eps in (0.0, 0.5) if dtype == "f32" else (0.0,):
                    # with power-of-two scales the reference asserts an exponent above -127
                    a = amax[amax < 2.0 ** 100] if pow2 else amax
                    scale, inv, _ = current._scale_from_amax_tensor(
                        td, a.clone(), target, eps=eps, pow_2_scales=pow2)
                    put(f"te-scale-{fmt}-{dtype}-pow2_{int(pow2)}-eps_{eps:g}",
                        f"recipe=scale_from_amax element={fmt} input={dtype} pow2={int(pow2)} "
                        f"eps={eps!r}", amax=a, scale=scale, scale_inv=inv)
    save(os.path.join(directory, "te.safetensors"), tensors, meta)


if __name__ == "__main__":
    main(*sys.argv[1:])
