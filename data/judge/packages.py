# SPDX-License-Identifier: Apache-2.0
"""Low-precision functions of PyPI packages, called on a CPU and judged with mpsim.testing.

    python3 packages.py                judge all functions of the packages that are installed
    python3 packages.py gguf torchao   those of some packages
    python3 packages.py --full         print whole judgements, too
    python3 packages.py --write        write packages.tsv; with names, the lines of these packages
    python3 packages.py --count        count the lines of packages.tsv

A cast is judged once, on inputs for its format. Of a quantiser, the row is searched on `plain` blocks; then the row is compared on `hard`
blocks. Of a product, the row is searched.
"""
import argparse
import contextlib
import functools
import importlib
import importlib.metadata
import sys
import warnings
from pathlib import Path

import numpy as np

import mpsim
from mpsim import testing

HERE = Path(__file__).parent
TABLE = HERE / "packages.tsv"
COLUMNS = ("package", "version", "function", "kind", "inputs", "row", "results", "differ", "finding")
FUNCTIONS = []


def judged(package, function, kind, like=None, only=None):
    """Register a function that returns the arrays of a judgement. Quantisers take a matrix. only: the inputs, "plain" or "hard"."""
    def register(arrays):
        FUNCTIONS.append((package, function, kind, like, only, arrays))
        return arrays
    return register


# inputs


def around(numbers, dtype):
    """Numbers as a dtype, with the two neighbours of each."""
    with np.errstate(over="ignore"):
        x = np.asarray(numbers, np.float64).astype(dtype)
    bits = x.view(f"u{x.dtype.itemsize}")
    near = [bits, bits + 1, np.where(bits > 0, bits - 1, bits)]
    return np.unique(np.concatenate(near).astype(bits.dtype)).view(dtype)


def nans(dtype):
    """NaNs of both signs: all bits, the quiet bit, the lowest bit, and some between."""
    info = np.dtype(dtype).itemsize * 8
    bits = {16: 10, 32: 23, 64: 52}[info] if np.dtype(dtype).kind == "f" else 7
    top = (1 << (info - 1)) - (1 << bits)
    payloads = [(1 << bits) - 1, 1 << (bits - 1), 1, 1 << (bits - 2), (1 << (bits - 1)) + 1, 5 << (bits - 4)]
    codes = [top + p + s for p in payloads for s in (0, 1 << (info - 1))]
    return np.array(codes, f"u{info // 8}").view(dtype)


@functools.lru_cache(maxsize=None)
def cast_inputs(format, source, special=True):
    """All borders and numbers of a format (of one of 16 bits, some), with their neighbours; subnormal numbers, infinities, NaNs. These
    three come first and last, since the first numbers may go through vectors and the last ones through a scalar loop."""
    import ml_dtypes
    dtype = np.dtype(getattr(ml_dtypes, source) if source == "bfloat16" else source)
    f = mpsim.formats[format]
    codes = np.arange(1 << f.bits) if f.bits <= 8 else np.random.RandomState(1).randint(0, 1 << 16, 2000)
    if f.bits > 8:
        codes = np.unique(np.concatenate([codes, codes + 1, np.arange(40), (1 << f.bits - 1) - np.arange(300)])) % (1 << f.bits)
    values = np.unique(np.abs(mpsim.decode(codes.astype(f.code_dtype), format).astype(np.float64)))
    values = values[np.isfinite(values)]
    largest, smallest = values[-1], values[values > 0][0]
    step = largest - values[-2]
    beyond = largest + step * np.array([0.25, 0.5, 0.75, 1, 1.5, 2, 16, 1e4])
    below = smallest * np.array([2.0**-20, 0.25, 0.5, 0.75, 1.5])
    quarters = [values[:-1] + np.diff(values) * q for q in (0.25, 0.5, 0.75)]
    x = around(np.concatenate([values, *quarters, beyond, below, [0]]), dtype)
    x = x[np.isfinite(x.astype(np.float64))]
    x = np.concatenate([x, -x]).astype(dtype)
    if special:
        tiny = around(np.ldexp(1.0, -np.arange(20, 150, 7)), dtype)
        ends = np.concatenate([tiny, -tiny, np.array([np.inf, -np.inf]).astype(dtype), nans(dtype)])
        x = np.concatenate([ends, x, ends])
    return x


@functools.lru_cache(maxsize=None)
def blocks(kind, source):
    """A matrix of 128 x 256. plain: normal numbers of other magnitudes in each block of 16. hard: ties, amax at powers of two and at
    the largest elements of formats and beside them, zeros, and the smallest and largest numbers of the source."""
    import ml_dtypes
    dtype = np.dtype(ml_dtypes.bfloat16 if source == "bfloat16" else source)
    random = np.random.RandomState(7)
    x = random.standard_normal((128, 256)).reshape(128, 16, 16)
    x = np.ldexp(x, random.randint(-5, 6, (128, 16, 1))).reshape(128, 256)
    if kind == "plain":
        return x.astype(np.float32).astype(dtype)
    lines = (np.round(x * 8) / 8 + 0.0).astype(dtype).reshape(-1, 32)
    tops = around(np.outer([1, 1.25, 1.5, 1.75, 1.875, 1.9375], np.ldexp(1.0, np.arange(-12, 12, 2))).ravel(), dtype)
    scale = (tops.astype(np.float64) / np.abs(lines[:len(tops)].astype(np.float64)).max(axis=1))[:, None]
    lines[:len(tops)] = (np.trunc(lines[:len(tops)].astype(np.float64) * scale * 64) / 64 + 0.0).astype(dtype)
    lines[:len(tops)][np.abs(lines[:len(tops)].astype(np.float64)) > tops.astype(np.float64)[:, None]] = 0
    lines[np.arange(len(tops)), 5] = tops
    info = ml_dtypes.finfo(dtype)
    at = len(tops)
    lines[at:at + 8] = 0
    for i, size in enumerate((info.smallest_subnormal, info.tiny, float(info.tiny) * 4, float(info.tiny) * 2**12, float(info.max) / 8)):
        part = lines[at + 8 + i * 8:at + 16 + i * 8].astype(np.float64)
        lines[at + 8 + i * 8:at + 16 + i * 8] = np.clip(part * float(size) / 4, -float(info.max), float(info.max)).astype(dtype)
    return lines.reshape(128, 256)


def operands(m, n, depth, source="float32"):
    import ml_dtypes
    dtype = np.dtype(ml_dtypes.bfloat16 if source == "bfloat16" else source)
    random = np.random.RandomState(11)
    return random.standard_normal((m, depth)).astype(dtype), random.standard_normal((depth, n)).astype(dtype)


def torch_of(x):
    import torch
    return torch.from_numpy(x.view(np.uint16).copy()).view(torch.bfloat16) if x.dtype.name == "bfloat16" else torch.from_numpy(x.copy())


# ml_dtypes, and what casts with it

FORMATS = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float8_e4m3fnuz": "e4m3fnuz", "float8_e5m2fnuz": "e5m2fnuz",
           "float8_e4m3b11fnuz": "e4m3b11fnuz", "float8_e4m3": "e4m3ieee", "float8_e3m4": "e3m4", "float6_e3m2fn": "e3m2",
           "float6_e2m3fn": "e2m3", "float4_e2m1fn": "e2m1", "float8_e8m0fnu": "e8m0", "bfloat16": "bf16"}
SOURCES = ("float64", "float32", "float16", "bfloat16")


def casts(package, call, formats, sources, name="{to} of {source}"):
    """Register casts: call(x, to) gives the codes of x."""
    for to in formats:
        for source in sources:
            if to == source:
                continue
            def arrays(to=to, source=source):
                x = cast_inputs(FORMATS.get(to, "fp16"), source)
                return {"x": x, "y": call(x, to)}
            judged(package, name.format(to=to, source=source), "cast")(arrays)


def ml_dtypes_cast(x, to):
    import ml_dtypes
    return x.astype(getattr(ml_dtypes, to))


def jax_cast(x, to):
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
    return np.asarray(jnp.asarray(x).astype(to))


def torch_cast(x, to):
    import torch
    return torch_of(x).to(getattr(torch, to))


casts("ml_dtypes", ml_dtypes_cast, FORMATS, SOURCES)
casts("jax", jax_cast, ["bfloat16", "float16", *(f for f in FORMATS if f.startswith("float"))], SOURCES)
casts("torch", torch_cast, ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"], SOURCES)


# onnxruntime, onnx

ONNX = {"float8_e4m3fn": "FLOAT8E4M3FN", "float8_e4m3fnuz": "FLOAT8E4M3FNUZ", "float8_e5m2": "FLOAT8E5M2",
        "float8_e5m2fnuz": "FLOAT8E5M2FNUZ", "bfloat16": "BFLOAT16", "float16": "FLOAT16", "float4_e2m1fn": "FLOAT4E2M1", "float8_e8m0fnu": "FLOAT8E8M0"}
ONNX_SOURCES = {"float64": "DOUBLE", "float32": "FLOAT", "float16": "FLOAT16", "bfloat16": "BFLOAT16"}


def onnx_model(node, inputs, output, initializers=(), opset=24, second=None):
    from onnx import TensorProto, helper
    nodes = [node] + ([second] if second is not None else [])
    infos = [helper.make_tensor_value_info(name, getattr(TensorProto, kind), None) for name, kind in inputs]
    out = helper.make_tensor_value_info("y", getattr(TensorProto, output), None)
    graph = helper.make_graph(nodes, "g", infos, [out], list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return model


def run_onnx(model, feeds):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


def cast_model(source, to, saturate, opset):
    """A cast and back to FLOAT: Python's interface has no arrays of float8."""
    from onnx import TensorProto, helper
    kind = getattr(TensorProto, ONNX[to])
    first = helper.make_node("Cast", ["x"], ["t"], to=kind, **({} if saturate is None else {"saturate": saturate}))
    back = helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT)
    return onnx_model(first, [("x", ONNX_SOURCES[source])], "FLOAT", opset=opset, second=back)


def ort_casts():
    for to in ONNX:
        for saturate in ((1, 0) if to.startswith("float8") and "8_e8" not in to else (None,)):
            for source in ("float32", "float16", "float64"):
                if source == to:
                    continue
                def arrays(to=to, saturate=saturate, source=source):
                    x = cast_inputs(FORMATS.get(to, "fp16"), source)
                    return {"x": x, "y": run_onnx(cast_model(source, to, saturate, 21), {"x": x})}
                judged("onnxruntime", f"Cast {to} of {source}" + (f", saturate={saturate}" if saturate is not None else ""), "cast")(arrays)


def onnx_casts():
    for to in ONNX:
        for saturate in ((1, 0) if to.startswith("float8") and "8_e8" not in to else (None,)):
            for source in ("float32", "float16"):
                if source == to:
                    continue
                def arrays(to=to, saturate=saturate, source=source):
                    from onnx.reference import ReferenceEvaluator
                    x = cast_inputs(FORMATS.get(to, "fp16"), source)
                    return {"x": x, "y": ReferenceEvaluator(cast_model(source, to, saturate, 24)).run(None, {"x": x})[0]}
                judged("onnx", f"ReferenceEvaluator Cast {to} of {source}" + (f", saturate={saturate}" if saturate is not None else ""),
                       "cast")(arrays)


ort_casts()
onnx_casts()


def quantize_linear(to, source, evaluate, saturate=1):
    """QuantizeLinear with the scale 1, and a cast of the codes to FLOAT."""
    from onnx import TensorProto, helper
    x = cast_inputs(FORMATS[to], source, special=False)
    kind = getattr(TensorProto, ONNX[to])
    zero = helper.make_tensor("zero", kind, [], b"\0", raw=True)
    scale = helper.make_tensor("scale", getattr(TensorProto, ONNX_SOURCES[source]), [], [1.0])
    node = helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["t"], saturate=saturate)
    back = helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT)
    model = onnx_model(node, [("x", ONNX_SOURCES[source])], "FLOAT", [zero, scale], opset=21, second=back)
    return {"x": x, "y": evaluate(model, {"x": x})}


def reference(model, feeds):
    from onnx.reference import ReferenceEvaluator
    return ReferenceEvaluator(model).run(None, feeds)[0]


for to_ in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"):
    for source_ in ("float32", "float16"):
        judged("onnxruntime", f"QuantizeLinear {to_} of {source_}", "cast")(functools.partial(quantize_linear, to_, source_, run_onnx))
        judged("onnx", f"ReferenceEvaluator QuantizeLinear {to_} of {source_}", "cast")(
            functools.partial(quantize_linear, to_, source_, reference))


def ort_matmul(source, m=16, n=24, depth=96):
    from onnx import helper
    a, b = operands(m, n, depth, source)
    model = onnx_model(helper.make_node("MatMul", ["a", "b"], ["y"]), [(name, ONNX_SOURCES[source]) for name in "ab"], ONNX_SOURCES[source], opset=21)
    return {"a": a, "b": b, "d": run_onnx(model, {"a": a, "b": b})}


judged("onnxruntime", "MatMul of float32, 16 x 24 x 96", "product")(functools.partial(ort_matmul, "float32"))
judged("onnxruntime", "MatMul of float16, 16 x 24 x 96", "product")(functools.partial(ort_matmul, "float16"))


# torchao

TORCHAO_ELEMENTS = ("float8_e4m3fn", "float8_e5m2", "fp6_e2m3", "fp6_e3m2", "float4_e2m1fn_x2")


def torchao_to_mx(x, element, mode):
    import torch
    from torchao.prototype.mx_formats.config import ScaleCalculationMode
    from torchao.prototype.mx_formats.mx_tensor import to_mx
    scales, values = to_mx(torch_of(x), getattr(torch, element, element), 32, getattr(ScaleCalculationMode, mode))
    return {"x": x, "codes": values.view(torch.uint8).numpy(), "scales": scales.view(torch.uint8).numpy()}


def torchao_from_mx(x, element, mode):
    import torch
    from torchao.prototype.mx_formats.config import ScaleCalculationMode
    from torchao.prototype.mx_formats.mx_tensor import to_dtype, to_mx
    of = getattr(torch, element, element)
    scales, values = to_mx(torch_of(x), of, 32, getattr(ScaleCalculationMode, mode))
    return {"x": x, "y": to_dtype(values, scales, of, 32, torch.float32)}


def torchao_nvfp4(x, levels):
    import torch
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale
    t = torch_of(x)
    scales, values = nvfp4_quantize(t, 16, per_tensor_amax_to_scale(t.float().abs().max()) if levels == 2 else None)
    return {"x": x, "codes": values.view(torch.uint8).numpy(), "scales": scales.view(torch.uint8).numpy()}


for element_ in TORCHAO_ELEMENTS:
    for mode_ in ("FLOOR", "CEIL", "EVEN", "RCEIL"):
        for source_ in ("float32", "bfloat16"):
            judged("torchao", f"to_mx {element_} {mode_} of {source_}", "quantise")(
                lambda inputs, e=element_, m=mode_, s=source_: torchao_to_mx(blocks(inputs, s), e, m))
    judged("torchao", f"to_dtype {element_} FLOOR of float32", "quantise")(
        lambda inputs, e=element_: torchao_from_mx(blocks(inputs, "float32"), e, "FLOOR"))
for levels_ in (1, 2):
    for source_ in ("float32", "bfloat16"):
        judged("torchao", f"nvfp4_quantize, scales of {levels_} levels, of {source_}", "quantise")(
            lambda inputs, n=levels_, s=source_: torchao_nvfp4(blocks(inputs, s), n))


def torchao_floatx(format, ebits, mbits):
    import torch
    from torchao.prototype.custom_fp_utils import _f32_to_floatx_unpacked
    x = cast_inputs(format, "float32")
    x = x[~np.isnan(x)]  # documented: no NaN
    return {"x": x, "y": mpsim.decode(_f32_to_floatx_unpacked(torch.from_numpy(x.copy()), ebits, mbits).numpy(), format).astype(np.float32)}


for format_, bits_ in (("e2m1", (2, 1)), ("e3m2", (3, 2)), ("e2m3", (2, 3))):
    judged("torchao", f"_f32_to_floatx_unpacked {format_}", "cast")(functools.partial(torchao_floatx, format_, *bits_))


def torchao_float8(x, granularity, pow2, element):
    import torch
    from torchao.float8.config import ScalingGranularity
    from torchao.float8.float8_utils import tensor_to_scale, to_fp8_saturated
    t = torch_of(x)
    scale = tensor_to_scale(t, getattr(torch, element), scaling_granularity=getattr(ScalingGranularity, granularity),
                            axiswise_dim=-1 if granularity == "AXISWISE" else None, round_scales_to_power_of_2=pow2)
    y = to_fp8_saturated(t.float() * scale, getattr(torch, element))
    return {"x": x, "codes": y.view(torch.uint8).numpy(), "scales": (1 / scale).reshape(-1, 1).numpy()}


for source_ in ("float32", "bfloat16"):
    for words_ in (("TENSORWISE", False, "float8_e4m3fn"), ("TENSORWISE", False, "float8_e5m2"), ("AXISWISE", False, "float8_e4m3fn"),
                   ("TENSORWISE", True, "float8_e4m3fn"), ("AXISWISE", True, "float8_e4m3fn")):
        judged("torchao", f"tensor_to_scale, to_fp8_saturated {words_[2]} {words_[0]}{' power of 2' * words_[1]} of {source_}", "quantise")(
            lambda inputs, w=words_, s=source_: torchao_float8(blocks(inputs, s), *w))


def torchao_choose_scale(x, block):
    import torch
    from torchao.quantization.quant_primitives import _choose_scale_float8, _quantize_affine_float8
    t = torch_of(x)
    scale = _choose_scale_float8(t, block)
    y = _quantize_affine_float8(t, scale)
    return {"x": x, "codes": y.view(torch.uint8).numpy(), "scales": scale.reshape(scale.shape[0], -1).numpy()}


for name_, block_ in (("tensor", [128, 256]), ("row", [1, 256]), ("1x128", [1, 128]), ("128x128", [128, 128])):
    for source_ in ("float32", "bfloat16"):
        judged("torchao", f"_choose_scale_float8, _quantize_affine_float8 {name_} of {source_}", "quantise")(
            lambda inputs, b=block_, s=source_: torchao_choose_scale(blocks(inputs, s), b))


def torchao_blockwise(x, function):
    import torch
    from torchao.prototype.blockwise_fp8_training import kernels
    codes, scales = getattr(kernels, function)(torch_of(x))
    return {"x": x, "codes": codes.contiguous().view(torch.uint8).numpy(), "scales": scales.contiguous().numpy()}


for function_ in ("torch_blockwise_scale_act_quant_lhs", "torch_blockwise_scale_weight_quant"):
    for source_ in ("float32", "bfloat16"):
        judged("torchao", f"{function_} of {source_}", "quantise")(lambda inputs, f=function_, s=source_: torchao_blockwise(blocks(inputs, s), f))


# compressed-tensors


def compressed_args(bits, group, scale):
    from compressed_tensors.quantization import QuantizationArgs
    return QuantizationArgs(num_bits=bits, type="float", symmetric=True, strategy=scale[0], group_size=group, scale_dtype=scale[1], dynamic=True)


def compressed_mx(x, bits):
    import torch
    from compressed_tensors.compressors.mx_utils import compress_mx_scale
    from compressed_tensors.quantization.lifecycle.forward import quantize
    from compressed_tensors.quantization.utils.helpers import compute_dynamic_scales_and_zp
    args = compressed_args(bits, 32, ("group", torch.uint8))
    t = torch_of(x)
    scale, zero = compute_dynamic_scales_and_zp(t, args, None)
    y = quantize(t, scale, zero, args, dtype=torch.float8_e4m3fn if bits == 8 else None)
    exponents = compress_mx_scale(scale, torch.uint8).numpy()
    format = {8: "e4m3", 6: "e2m3", 4: "e2m1"}[bits]
    codes = y.view(torch.uint8).numpy() if bits == 8 else mpsim.encode(y.float().numpy(), format)
    return {"x": x, "codes": codes, "scales": exponents}


for bits_ in (8, 6, 4):
    for source_ in ("float32", "bfloat16", "float16"):
        judged("compressed-tensors", f"MXFP{bits_} of {source_}", "quantise")(lambda inputs, b=bits_, s=source_: compressed_mx(blocks(inputs, s), b))


def compressed_nvfp4(x):
    import torch
    from compressed_tensors.compressors.nvfp4.helpers import quantize_and_pack_fp4
    from compressed_tensors.quantization.utils.helpers import compute_dynamic_scales_and_zp, generate_gparam
    args = compressed_args(4, 16, ("tensor_group", torch.float8_e4m3fn))
    t = torch_of(x)
    top = generate_gparam(t.float().min(), t.float().max())
    scale, _ = compute_dynamic_scales_and_zp(t, args, None, global_scale=top)
    packed = quantize_and_pack_fp4(t, scale, global_scale=top, group_size=16)
    return {"x": x, "codes": packed.numpy(), "scales": scale.to(torch.float8_e4m3fn).view(torch.uint8).numpy()}


def compressed_fp8(x, strategy):
    import torch
    from compressed_tensors.quantization.lifecycle.forward import quantize
    from compressed_tensors.quantization.utils.helpers import compute_dynamic_scales_and_zp
    args = compressed_args(8, None, (strategy, None))
    t = torch_of(x)
    scale, zero = compute_dynamic_scales_and_zp(t, args, None)
    y = quantize(t, scale, zero, args, dtype=torch.float8_e4m3fn)
    return {"x": x, "codes": y.view(torch.uint8).numpy(), "scales": scale.float().reshape(-1, 1).numpy()}


for source_ in ("float32", "bfloat16"):
    judged("compressed-tensors", f"NVFP4 of {source_}", "quantise")(lambda inputs, s=source_: compressed_nvfp4(blocks(inputs, s)))
    for strategy_ in ("tensor", "token"):
        judged("compressed-tensors", f"FP8 {strategy_} of {source_}", "quantise")(
            lambda inputs, s=source_, w=strategy_: compressed_fp8(blocks(inputs, s), w))


def compressed_cast(name, format, source):
    x = cast_inputs(format, source, special=False)
    x = x[np.abs(x.astype(np.float64)) <= mpsim.formats[format].max]
    module = importlib.import_module(f"compressed_tensors.quantization.utils.{name[-3:]}_utils")
    return {"x": x, "y": getattr(module, name)(torch_of(x)).float().numpy()}


for source_ in ("float32", "bfloat16", "float16"):
    judged("compressed-tensors", f"cast_to_fp4 of {source_}", "cast")(functools.partial(compressed_cast, "cast_to_fp4", "e2m1", source_))
    judged("compressed-tensors", f"cast_to_fp6 of {source_}", "cast")(functools.partial(compressed_cast, "cast_to_fp6", "e2m3", source_))


# gguf


@judged("gguf", "BF16", "cast")
def gguf_bf16():
    import gguf
    x = cast_inputs("bf16", "float32")
    x = x[:len(x) // 32 * 32].reshape(-1, 32)
    return {"x": x, "y": gguf.quants.quantize(x, gguf.GGMLQuantizationType.BF16).view("<u2").view(np.dtype("bfloat16")).reshape(x.shape)}


@judged("gguf", "F16", "cast")
def gguf_f16():
    import gguf
    x = cast_inputs("fp16", "float32")
    return {"x": x, "y": gguf.quants.quantize(x, gguf.GGMLQuantizationType.F16)}


@judged("gguf", "MXFP4", "quantise")
def gguf_mxfp4(inputs):
    import gguf
    x = blocks(inputs, "float32")
    packed = gguf.quants.quantize(x, gguf.GGMLQuantizationType.MXFP4).reshape(-1, 17)
    codes = np.concatenate([packed[:, 1:] & 15, packed[:, 1:] >> 4], axis=1).reshape(x.shape)
    return {"x": x, "codes": codes, "scales": packed[:, 0].reshape(len(x), -1)}


@judged("gguf", "NVFP4.fp32_to_ue4m3", "cast", "e4m3:overflow=max")
def gguf_scale():
    from gguf.quants import NVFP4
    x = cast_inputs("e4m3", "float32", special=False)
    x = x[(x >= 0) & ~np.signbit(x)]
    return {"x": x, "y": NVFP4.fp32_to_ue4m3(x)}


# optimum-quanto


def quanto(x, element, axis):
    import torch
    from optimum.quanto import absmax_scale
    from optimum.quanto.tensor import qtypes
    t, q = torch_of(x), qtypes[f"q{element}"]
    scale = absmax_scale(t, q, axis)
    y = torch.ops.quanto.quantize_symmetric(t, q.dtype, axis, scale)
    return {"x": x, "codes": y.view(torch.uint8).numpy(), "scales": scale.float().reshape(-1, 1).numpy()}


for element_ in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"):
    for axis_ in (None, 0):
        for source_ in ("float32", "bfloat16"):
            judged("optimum-quanto", f"quantize_symmetric {element_} {'tensor' if axis_ is None else 'row'} of {source_}", "quantise")(
                lambda inputs, e=element_, a=axis_, s=source_: quanto(blocks(inputs, s), e, a))


# amd-quark, neural-compressor


def quark_mx(x, element, mode):
    from quark.torch.kernel.hw_emulation.hw_emulation_interface import fake_quantize_mx
    return {"x": x, "y": fake_quantize_mx(torch_of(x), axis=-1, block_size=32, mx_element_dtype=element, scale_calculation_mode=mode).float().numpy()}


for element_ in ("fp8_e4m3", "fp8_e5m2", "fp6_e2m3", "fp6_e3m2", "fp4"):
    for mode_ in ("even", "floor"):
        for source_ in ("float32", "bfloat16"):
            judged("amd-quark", f"fake_quantize_mx {element_} {mode_} of {source_}", "quantise")(
                lambda inputs, e=element_, m=mode_, s=source_: quark_mx(blocks(inputs, s), e, m))


def compressor_mx(x, element, rounding):
    import logging
    from neural_compressor.torch.algorithms.mx_quant import utils
    logging.disable(logging.INFO)
    y = utils._quantize_mx(torch_of(x), 8, utils.ElemFormat.from_str(element), shared_exp_method="max", axes=[-1], block_size=32, round=rounding)
    return {"x": x, "y": y.float().numpy()}


for element_ in ("fp8_e4m3", "fp8_e5m2", "fp6_e2m3", "fp6_e3m2", "fp4"):
    for rounding_ in ("nearest", "even"):
        for source_ in ("float32", "bfloat16"):
            judged("neural-compressor", f"_quantize_mx {element_} {rounding_} of {source_}", "quantise")(
                lambda inputs, e=element_, r=rounding_, s=source_: compressor_mx(blocks(inputs, s), e, r))


# bitsandbytes: its codes are of tables of its own, so that only the rounding of what it dequantises is judged


def bitsandbytes_4bit(name, to):
    import torch
    from bitsandbytes import functional
    packed, state = functional.quantize_4bit(torch_of(blocks("hard", "float32")), blocksize=64, quant_type=name)
    values = functional.dequantize_4bit(packed, state)
    state.dtype = getattr(torch, to)
    return {"x": values.numpy(), "y": functional.dequantize_4bit(packed, state)}


def bitsandbytes_8bit(to):
    import torch
    from bitsandbytes import functional
    codes, state = functional.quantize_blockwise(torch_of(blocks("hard", "float32")), blocksize=64)
    values = functional.dequantize_blockwise(codes, state)
    state.dtype = getattr(torch, to)
    return {"x": values.numpy(), "y": functional.dequantize_blockwise(codes, state)}


for to_ in ("bfloat16", "float16"):
    judged("bitsandbytes", f"dequantize_4bit fp4 to {to_} beside float32", "cast")(functools.partial(bitsandbytes_4bit, "fp4", to_))
    judged("bitsandbytes", f"dequantize_4bit nf4 to {to_} beside float32", "cast")(functools.partial(bitsandbytes_4bit, "nf4", to_))
    judged("bitsandbytes", f"dequantize_blockwise to {to_} beside float32", "cast")(functools.partial(bitsandbytes_8bit, to_))


# products


def torch_product(source, m, n, depth):
    a, b = operands(m, n, depth, source)
    return {"a": a, "b": b, "d": torch_of(a) @ torch_of(b)}


def torch_scaled_mm(m, n, depth, out):
    import ml_dtypes
    import torch
    a, b = (x.astype(ml_dtypes.float8_e4m3fn) for x in operands(m, n, depth))
    one = torch.tensor(1.0)
    left, right = (torch.from_numpy(x.view(np.uint8).copy()).view(torch.float8_e4m3fn) for x in (a, np.ascontiguousarray(b.T)))
    return {"a": a, "b": b, "d": torch._scaled_mm(left, right.t(), one, one, out_dtype=getattr(torch, out))}


def jax_product(source, m, n, depth, out=None):
    import jax
    import jax.numpy as jnp
    import ml_dtypes
    a, b = operands(m, n, depth) if source.startswith("float8") else operands(m, n, depth, source)
    if source.startswith("float8"):
        a, b = (x.astype(getattr(ml_dtypes, source)) for x in (a, b))
    return {"a": a, "b": b, "d": np.asarray(jax.jit(lambda p, q: jnp.dot(p, q, preferred_element_type=out))(a, b))}


for shape_ in ((16, 24, 96), (32, 32, 1024)):
    words_ = " x ".join(map(str, shape_))
    for source_ in ("float32", "bfloat16", "float16"):
        judged("torch", f"matmul of {source_}, {words_}", "product")(functools.partial(torch_product, source_, *shape_))
        judged("jax", f"dot of {source_}, {words_}", "product")(functools.partial(jax_product, source_, *shape_))
    for out_ in ("float32", "bfloat16"):
        judged("torch", f"_scaled_mm of float8_e4m3fn to {out_}, {words_}", "product")(functools.partial(torch_scaled_mm, *shape_, out_))
    judged("jax", f"dot of float8_e4m3fn to float32, {words_}", "product")(functools.partial(jax_product, "float8_e4m3fn", *shape_, np.float32))
    judged("jax", f"dot of bfloat16 to float32, {words_}", "product")(functools.partial(jax_product, "bfloat16", *shape_, np.float32))


def torch_attention(backend, source, causal, tokens=160, size=64):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    random = np.random.RandomState(13)
    q, k, v = (torch.from_numpy(random.standard_normal((2, tokens, size))).to(getattr(torch, source)) for _ in range(3))
    with sdpa_kernel(getattr(SDPBackend, backend)):
        o = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]
    return {"q": q, "k": k, "v": v, "o": o}


for backend_ in ("MATH", "FLASH_ATTENTION"):
    for source_ in ("float32", "bfloat16"):
        for causal_ in (False, True):
            judged("torch", f"scaled_dot_product_attention of {source_}, {backend_}{', causal' * causal_}", "attention")(
                functools.partial(torch_attention, backend_, source_, causal_))


# judgements


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def finding(judgement):
    return "; ".join(f"{f.cause} {f.explains}" for f in judgement.findings[:3]) if not judgement.equal else ""


def line(package, function, kind, inputs, judgement):
    return dict(zip(COLUMNS, (package, version(package), function, kind, inputs, judgement.row, judgement.results, judgement.differ,
                              finding(judgement))))


OTHERS = ("e4m3/tensor", "e4m3/row", "e5m2/tensor", "e5m2/row", "e4m3fnuz/tensor", "e4m3fnuz/row")  # rows that the search does not try


def nearest(kind, arrays, names):
    """The judgement of the row of these with the fewest other results."""
    best = None
    for name in dict.fromkeys(names):
        try:
            j = testing.judge(kind, like=name, **arrays)
        except mpsim.Error:
            continue  # a row of another shape or format
        best = j if best is None or j.differ < best.differ else best
    return best


@contextlib.contextmanager
def one_thread(package):
    """torch cuts arrays and sums by the number of its threads."""
    if package != "torch":
        yield
        return
    import torch
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def judge_one(package, function, kind, like, only, arrays):
    """Lines of the table with their judgements."""
    with one_thread(package):
        return lines_of(package, function, kind, like, only, arrays)


def lines_of(package, function, kind, like, only, arrays):
    if kind != "quantise":
        judgement = testing.judge(kind, like=like, **arrays())
        return [(line(package, function, kind, "all", judgement), judgement)]
    plain, hard = (testing.judge(kind, like=like, **arrays(name)) for name in ("plain", "hard"))
    if not like and not plain.equal:
        plain = nearest(kind, arrays("plain"), [plain.row, *OTHERS])
    if hard.row != plain.row or not hard.equal:
        hard = nearest(kind, arrays("hard"), [plain.row, *plain.same])
        plain = testing.judge(kind, like=hard.row, **arrays("plain"))
    return [(line(package, function, kind, name, j), j) for name, j in (("plain", plain), ("hard", hard)) if only in (None, name)]


def table():
    """The rows of packages.tsv as dictionaries."""
    lines = TABLE.read_text().splitlines()
    return [dict(zip(lines[0].split("\t"), text.split("\t"))) for text in lines[1:]]


def count():
    """Functions are counted without their inputs: a quantiser has a line for plain and one for hard blocks."""
    for package in [*dict.fromkeys(row["package"] for row in table()), "all"]:
        of = [row for row in table() if package in ("all", row["package"])]
        functions = {(row["package"], row["function"]) for row in of}
        differ = {(row["package"], row["function"]) for row in of if int(row["differ"])}
        print(f"{package:18} {len(functions):4} functions, {len(functions) - len(differ):4} equal to a row, "
              f"{sum(int(row['results']) for row in of):9} results, {sum(int(row['differ']) for row in of):7} differ")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="*")
    for name in ("full", "write", "count"):
        parser.add_argument("--" + name, action="store_true")
    given = parser.parse_args()
    if given.count:
        return count()
    warnings.filterwarnings("ignore")
    rows = []
    for entry in FUNCTIONS:
        if version(entry[0]) is None or (given.packages and entry[0] not in given.packages):
            continue
        try:
            done = judge_one(*entry)
        except Exception as error:  # a function that a package does not have on this machine
            print(f"{entry[0]:18} {entry[1]}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200], file=sys.stderr)
            continue
        for row, judgement in done:
            rows.append(row)
            print(f"{row['package']:18} {row['function']:60} {row['inputs']:5} {row['row']:50} {row['differ']:6} of {row['results']:6} {row['finding']}", flush=True)
            if given.full and not judgement.equal:
                print("    " + str(judgement).replace("\n", "\n    "))
    if given.write:
        order = {entry[:2]: i for i, entry in enumerate(FUNCTIONS)}
        done = {r["package"] for r in rows}
        rows += [r for r in table() if r["package"] not in done and (r["package"], r["function"]) in order]
        rows.sort(key=lambda r: order[r["package"], r["function"]])
        TABLE.write_text("\n".join("\t".join(map(str, row)) for row in [COLUMNS, *(r.values() for r in rows)]) + "\n")


if __name__ == "__main__":
    main()
