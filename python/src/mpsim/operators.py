"""Operators of PyTorch, for models that are compiled, exported or differentiated: `import mpsim.operators` registers them.

    y = torch.ops.mpsim.cast(x, "e4m3")
    values, codes, scales, scale_codes, tensor_scale = torch.ops.mpsim.quantize(x, "mxfp8")
    y = torch.ops.mpsim.matmul(x, w.t(), "hopper-wgmma-fp8-fp32", format="e4m3", grad_format="e5m2")

Arguments and bits are those of `mpsim.round`, `mpsim.quantize` and `mpsim.gemm`, on tensors of the CPU and of a CUDA device. Each operator has a
fake implementation, so that torch.compile(fullgraph=True) and torch.export see its shapes.

Gradients: a cast and a quantisation pass the gradient on (straight-through; a cast times its scale). The gradients of a matmul are two products under
`grad_model` (None: the model), whose incoming gradient is rounded to `grad_format` (None: the format of a).
"""
from __future__ import annotations

from typing import Any, Callable, Optional

import torch

from . import _device
from ._blocks import _by_columns, _has_scale_codes, quantize as quantize_array, recipe_of
from ._cast import round as round_array
from ._dot import ROUNDINGS, accepted, model_of
from ._error import InputError
from ._formats import Format, find, of_dtype
from ._library import CRng
from ._product import View, multiply
from ._random import words_of

__all__ = ["cast", "matmul", "quantize"]
_DTYPES = {"binary32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "binary64": torch.float64}
_WORDS = "int? seed=None, int? stream=None, int? index=None"


def _operator(name: str, schema: str, fake: Any, backward: Any, setup: Any) -> Callable[[Callable[..., Any]], Any]:
    """Registers a function, with what torch needs beside it."""
    def registered(function: Callable[..., Any]) -> Any:
        made: Any = torch.library.custom_op(f"mpsim::{name}", function, mutates_args=(), schema=schema)
        made.register_fake(fake)
        made.register_autograd(backward, setup_context=setup)
        made.__doc__ = function.__doc__
        return made
    return registered


def _own(x: Any) -> Optional[Format]:
    return of_dtype(str(x.dtype)[6:]) if x.is_floating_point() else None


# ---- casts ----

def _cast_dtype(x: Any, format: str) -> Any:
    """The dtype of `mpsim.round`: x's, where it has all numbers of the format, else float32 or float64."""
    own, to = _own(x), find(format)
    if own is not None and to.within(own):
        return x.dtype
    return torch.float64 if own is None or own.name == "binary64" or to.value_dtype.itemsize == 8 else torch.float32


def _cast_fake(x: Any, format: str, *how: Any) -> Any:
    return torch.empty(x.shape, dtype=_cast_dtype(x, format), device=x.device)


def _cast_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.scale, ctx.dtype, ctx.n = inputs[3], inputs[0].dtype, len(inputs)


def _cast_backward(ctx: Any, grad: Any) -> Any:
    return (grad if ctx.scale == 1 else grad * ctx.scale).to(ctx.dtype), *(None,) * (ctx.n - 1)


@_operator("cast", f"(Tensor x, str format, str? mode=None, float scale=1.0, {_WORDS}, str? preset=None, str? overflow=None, "
                   "bool flush_subnormals=False, bool flush_inputs=False) -> Tensor", _cast_fake, _cast_backward, _cast_setup)
def cast(x: Any, format: str, mode: Any = None, scale: float = 1.0, seed: Any = None, stream: Any = None, index: Any = None, preset: Any = None,
         overflow: Any = None, flush_subnormals: bool = False, flush_inputs: bool = False) -> Any:
    """`mpsim.round` of a tensor."""
    return round_array(x, format, mode, scale=scale, seed=seed, stream=stream, index=index, preset=preset, overflow=overflow,
                       flush_subnormals=flush_subnormals, flush_inputs=flush_inputs).reshape(x.shape)


# ---- recipes ----

def _grid(recipe: Any, height: Any, width: Any) -> tuple[Any, Any]:
    """As mpsim_block_grid, also of symbolic sizes."""
    return tuple(1 if not block else (size + block - 1) // block for size, block in ((height, recipe.block_rows), (width, recipe.block_cols)))  # type: ignore[return-value]


def _quantize_fake(x: Any, recipe: str, axis: str = "rows", *how: Any) -> Any:
    c, columns = recipe_of(recipe)[0], _by_columns(axis, x.dim())
    width = x.shape[-1]
    height = x.numel() // width
    if columns:
        blocks: Any = _grid(c, width, height)[::-1]
    else:
        blocks = _grid(c, height, width)
        if c.block_rows == 1:
            blocks = (*x.shape[:-1], blocks[1])
    codes, scales = torch.empty(x.shape, dtype=torch.uint8, device=x.device), torch.empty(blocks, dtype=torch.float32, device=x.device)
    kept = torch.empty(blocks if _has_scale_codes(c) else (0,), dtype=torch.uint8, device=x.device)
    return torch.empty_like(codes, dtype=torch.float32), codes, scales, kept, torch.empty((), dtype=torch.float32, device=x.device)


def _quantize_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.dtype, ctx.n = inputs[0].dtype, len(inputs)
    ctx.mark_non_differentiable(*output[1:])


def _quantize_backward(ctx: Any, values: Any, *rest: Any) -> Any:
    return None if values is None else values.to(ctx.dtype), *(None,) * (ctx.n - 1)


@_operator("quantize", f"(Tensor x, str recipe, str axis='rows', float? amax=None, float given=1.0, {_WORDS}) -> "
                       "(Tensor values, Tensor codes, Tensor scales, Tensor scale_codes, Tensor tensor_scale)",
           _quantize_fake, _quantize_backward, _quantize_setup)
def quantize(x: Any, recipe: str, axis: str = "rows", amax: Optional[float] = None, given: float = 1.0, seed: Any = None, stream: Any = None,
             index: Any = None) -> Any:
    """`mpsim.quantize` of a tensor: values, codes, scales, codes of scales (empty where scales are binary32), the scale of the tensor."""
    along: Any = axis
    q = quantize_array(x, recipe, axis=along, amax=amax, given=given, seed=seed, stream=stream, index=index)
    kept = torch.empty(0, dtype=torch.uint8, device=x.device) if q.scale_codes is None else q.scale_codes
    scale = q.tensor_scale if isinstance(q.tensor_scale, torch.Tensor) else torch.tensor(q.tensor_scale, dtype=torch.float32, device=x.device)
    return tuple(each.contiguous().view(-1).view(each.shape) for each in (q.values, q.codes, q.scales, kept, scale))


# ---- products ----

def _formats_of(a: Any, b: Any, format: Optional[str], format_b: Optional[str]) -> tuple[Format, Format]:
    """That both operands are rounded to as they are read."""
    made = []
    for x, asked in ((a, format), (b, format_b or format)):
        own = find(asked) if asked else _own(x)
        if own is None:
            raise InputError(f"matmul: expected tensors of floating-point numbers, found {x.dtype}")
        made.append(own)
    return made[0], made[1]


def _result_of(model: str, out_format: Optional[str]) -> tuple[Format, Any]:
    """The format of the results, and the dtype that holds it."""
    to = find(out_format) if out_format else find(model_of(model)[1].name)
    return to, _DTYPES.get(to.name, torch.float32 if to.value_dtype.itemsize == 4 else torch.float64)


def _matmul_shape(a: Any, b: Any) -> tuple[Any, ...]:
    if a.dim() < 2 or b.dim() < 2 or a.shape[-1] != b.shape[-2]:
        raise InputError(f"matmul: expected (..., m, k) and (..., k, n), found shapes {tuple(a.shape)} and {tuple(b.shape)}")
    outer = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])  # type: ignore[no-untyped-call]
    return (*outer, a.shape[-2], b.shape[-1])


def _matmul_fake(a: Any, b: Any, model: str, format: Optional[str] = None, format_b: Optional[str] = None, out_format: Optional[str] = None,
                 *how: Any) -> Any:
    return torch.empty(_matmul_shape(a, b), dtype=_result_of(model, out_format)[1], device=a.device)


def _matmul_setup(ctx: Any, inputs: Any, output: Any) -> None:
    a, b, *rest = inputs
    ctx.save_for_backward(a, b)
    ctx.asked = rest


def _matmul_backward(ctx: Any, grad: Any) -> Any:
    a, b = ctx.saved_tensors
    model, format, format_b, _, grad_model, grad_format, seed, stream, index = ctx.asked
    fa, fb = (f.name for f in _formats_of(a, b, format, format_b))
    model, fg = grad_model or model, grad_format or fa
    how = {"seed": seed, "index": index}
    da = db = None
    if ctx.needs_input_grad[0]:
        da = _summed(matmul(grad, b.mT, model, fg, fb, _kept(a), stream=_later(seed, stream, 1), **how), a)
    if ctx.needs_input_grad[1]:
        if b.dim() == 2:  # one product over all rows
            a, grad = a.flatten(0, -2), grad.flatten(0, -2)
        db = _summed(matmul(a.mT, grad, model, fa, fg, _kept(b), stream=_later(seed, stream, 2), **how), b)
    return da, db, *(None,) * len(ctx.asked)


def _kept(x: Any) -> str:
    own = _own(x)
    return own.name if own is not None and own.name in _DTYPES else "binary32"


def _later(seed: Optional[int], stream: Optional[int], n: int) -> Optional[int]:
    return None if seed is None else (stream or 0) + n


def _summed(x: Any, like: Any) -> Any:
    """A gradient in the shape and dtype of what it is of."""
    return x.sum_to_size(like.shape).to(like.dtype)


@_operator("matmul", "(Tensor a, Tensor b, str model, str? format=None, str? format_b=None, str? out_format=None, str? grad_model=None, "
                     f"str? grad_format=None, {_WORDS}) -> Tensor", _matmul_fake, _matmul_backward, _matmul_setup)
def matmul(a: Any, b: Any, model: str, format: Optional[str] = None, format_b: Optional[str] = None, out_format: Optional[str] = None,
           grad_model: Optional[str] = None, grad_format: Optional[str] = None, seed: Any = None, stream: Any = None, index: Any = None) -> Any:
    """The products of stacks of matrices (..., m, k) and (..., k, n) under an accumulation model.

    format, format_b: that both operands, or b alone, are rounded to (None: those of their dtypes). out_format: that sums are rounded to once (None:
    that of the model); the result has its dtype, or float32. seed, stream, index: of models that round stochastically; the gradients take the next
    two streams."""
    shape, (fa, fb), (to, dtype) = _matmul_shape(a, b), _formats_of(a, b, format, format_b), _result_of(model, out_format)
    m, _, stochastic = model_of(model)
    accepted("matmul", model, m, fa, fb)
    out = torch.empty(shape, dtype=dtype, device=a.device)
    rows = out.numel() // max(shape[-1], 1)
    rng: Optional[CRng] = words_of(None, seed, stream, index, ROUNDINGS * rows * shape[-1]) if stochastic else None
    run = _device.Device.of(a.device.index).multiply if a.is_cuda else multiply
    run(View.of(out), (View.of(a), fa), (View.of(b).t(), fb), model, rng=rng, format=to)
    return out
