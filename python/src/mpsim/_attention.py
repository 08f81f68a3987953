"""Attention in tiles of keys, forward and backward, on memory where it lies (mpsim/attention.h).

Arrays are tensors of torch or arrays of NumPy, (..., heads, rows, columns). Operands whose dtype is the format that a product reads, with
columns side by side, are read where they lie; others are rounded to it, to nearest even, as codes. Heads of k and v may be a divisor of
those of q, which share them.
"""
from __future__ import annotations

from ctypes import addressof, byref
from itertools import product
from typing import Any, Iterator, Optional, Sequence

from ._dot import model_of
from ._error import InputError
from ._formats import Format, address_of, find
from ._layer import _lies
from ._library import CAttention, CAttentionGradient, CAttentionShape, CMatrix, check, lib
from ._threads import pool


class Settings:
    """How: models of the two products, the format of P and what it is multiplied by, and the fields of mpsim_attention."""

    def __init__(self, scores: str, context: str, dim: int, p: Format, p_scale: float = 1.0, scale: Optional[float] = None, causal: bool = False,
                 left: Optional[int] = None, right: Optional[int] = None, tile: Optional[int] = None, reverse: bool = False,
                 exp2: bool = False, softmax: Optional[Format] = None, result: Optional[Format] = None) -> None:
        self.scores, self.context = self._model(scores), self._model(context)
        self.keep = [softmax, result]
        c = self.c = CAttention()
        lib.mpsim_attention_init(byref(c), dim)
        c.scores, c.context, c.p.format, c.p_scale = addressof(self.scores), addressof(self.context), p.c, p_scale
        c.causal, c.reverse, c.exp2 = causal, reverse, exp2
        c.softmax, c.f = (None if f is None else addressof(f.c) for f in self.keep)
        for name, value in (("scale", scale), ("left", left), ("right", right), ("tile", tile)):
            if value is not None:
                setattr(c, name, value)

    @staticmethod
    def _model(name: str) -> Any:
        model, _, stochastic = model_of(name)
        if stochastic:
            raise InputError(f"attention: model '{name}' rounds stochastically, which attention from Python does not")
        return model


class _Codes:
    """Matrices of codes of a format, one a head."""

    __slots__ = ("format", "address", "size", "shape", "strides", "keep")

    def __init__(self, x: Any, format: Format) -> None:
        given, address, shape, strides = _lies(x)
        self.size, self.format, self.keep = format.code_dtype.itemsize, format, x
        if given != address_of(format) or strides[-1] != 1 and shape[-1] > 1 or strides[-2] < shape[-1] and shape[-2] > 1:
            from ._cast import encode

            self.keep = encode(x, format)
            codes = self.keep.numpy() if hasattr(self.keep, "data_ptr") else self.keep
            address, strides = codes.__array_interface__["data"][0], tuple(s // codes.itemsize for s in codes.strides)
        self.address, self.shape, self.strides = address, shape, strides

    def matrix(self, head: Sequence[int]) -> CMatrix:
        at = sum(i * s for i, s in zip(head, self.strides))
        return CMatrix(address_of(self.format), self.address + at * self.size, max(self.strides[-2], self.shape[-1]), 0)


def _shape(q: Any, k: Any, v: Any) -> tuple[CAttentionShape, int]:
    """Sizes of a head, and how many share keys."""
    a, b, c = tuple(q.shape), tuple(k.shape), tuple(v.shape)
    heads, shared = (a[-3] if len(a) > 2 else 1), (b[-3] if len(b) > 2 else 1)
    if not (len(a) == len(b) == len(c) >= 2 and a[:-3] == b[:-3] == c[:-3] and b[:-1] == c[:-1] and a[-1] == b[-1]) or (
            heads != shared and (shared == 0 or heads % shared)):
        raise InputError(f"attention: expected q (..., heads, queries, dim), k (..., heads or a divisor, keys, dim), v (..., as k, keys, size), "
                         f"found shapes {a}, {b} and {c}")
    return CAttentionShape(a[-2], b[-2], a[-1], c[-1]), heads // shared if shared else 1


def _floats(x: Any, shape: Sequence[int], what: str) -> tuple[int, Sequence[int]]:
    """Where dense rows of float32 lie, and the strides of heads."""
    format, address, own, strides = _lies(x)
    dense = all(n < 2 or s == step for n, s, step in zip(own[-2:], strides[-2:], (shape[-1], 1)))
    if tuple(own) != tuple(shape) or format != address_of(find("binary32")) or not dense:
        raise InputError(f"attention: expected {what} of float32 and shape {tuple(shape)} with rows side by side, found shape {tuple(own)}")
    return address, strides


def _at(x: tuple[int, Sequence[int]], head: Sequence[int]) -> int:
    return x[0] + 4 * sum(i * s for i, s in zip(head, x[1]))


def _heads(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return product(*(range(n) for n in shape[:-2]))


def _shared(head: tuple[int, ...], share: int) -> tuple[int, ...]:
    return (*head[:-1], head[-1] // share) if head else head


class _Masks:
    """The mask of each head: contiguous bytes of (..., heads, queries, keys), or None."""

    def __init__(self, mask: Any, shape: Sequence[int]) -> None:
        self.mask = mask
        if mask is None:
            return
        if tuple(mask.shape) != tuple(shape) or mask.dtype.itemsize != 1:
            raise InputError(f"attention: expected a mask of bytes of shape {tuple(shape)}, found {mask.dtype} of shape {tuple(mask.shape)}")
        self.address = mask.data_ptr() if hasattr(mask, "data_ptr") else mask.__array_interface__["data"][0]
        self.size = shape[-2] * shape[-1]

    def see(self, c: CAttention, number: int) -> None:
        c.mask = None if self.mask is None else self.address + number * self.size


def forward(y: Any, lse: Any, q: Any, k: Any, v: Any, settings: Settings, formats: Sequence[Format], mask: Any = None,
            device: Any = None) -> None:
    """y and lse, of float32, of each head. formats: what q, k and v are read as. device: all arrays are on it (Device of _device.py), q, k and v
    in these formats."""
    shape, share = _shape(q, k, v)
    codes = [_Codes(x, f) for x, f in zip((q, k, v), formats)]
    masks = _Masks(mask, (*q.shape[:-1], k.shape[-2]))
    out, sums = _floats(y, (*q.shape[:-1], v.shape[-1]), "y"), _floats(lse[..., None], (*q.shape[:-1], 1), "lse")
    for number, head in enumerate(_heads(q.shape)):
        masks.see(settings.c, number)
        mq, mk, mv = (c.matrix(h) for c, h in zip(codes, (head, *[_shared(head, share)] * 2)))
        matrices, results = (byref(mq), byref(mk), byref(mv)), (_at(out, head), _at(sums, head))
        if device is not None:
            device.attention("forward", (byref(settings.c), byref(shape), *matrices), results)
        else:
            check(lib.mpsim_attention_forward(byref(settings.c), byref(shape), *matrices, *results, None, None, None, pool()), "attention")


def backward(dq: Any, dk: Any, dv: Any, dy: Any, q: Any, k: Any, v: Any, y: Any, lse: Any, settings: Settings, formats: Sequence[Format], *,
             models: Sequence[str], gradient: Format, p: Format, ds: Format, mask: Any = None, scale_last: bool = False,
             result: Optional[Format] = None, device: Any = None) -> None:
    """dq, dk and dv, of float32, one of each head of q: those of heads that share keys are to be added. models: of dP, dV, dK and dQ.
    gradient: what dy is read as. p, ds: the formats of P and dS in these products."""
    shape, share = _shape(q, k, v)
    codes = [_Codes(x, f) for x, f in zip((q, k, v, dy), (*formats, gradient))]
    masks = _Masks(mask, (*q.shape[:-1], k.shape[-2]))
    front = tuple(q.shape[:-2])
    out, sums = _floats(y, (*q.shape[:-1], v.shape[-1]), "y"), _floats(lse[..., None], (*q.shape[:-1], 1), "lse")
    if tuple(dy.shape) != tuple(y.shape):
        raise InputError(f"attention: expected dy of shape {tuple(y.shape)}, found {tuple(dy.shape)}")
    to = [_floats(x, (*front, *like.shape[-2:]), "a gradient") for x, like in ((dq, q), (dk, k), (dv, v))]
    c, by = CAttentionGradient(), [Settings._model(m) for m in models]
    lib.mpsim_attention_gradient_init(byref(c), byref(settings.c))
    c.dp, c.dvalue, c.dkey, c.dquery = (addressof(m) for m in by)
    c.p.format, c.ds.format, c.scale_last, c.f = p.c, ds.c, scale_last, None if result is None else addressof(result.c)
    for number, head in enumerate(_heads(q.shape)):
        masks.see(settings.c, number)
        mq, mk, mv, m = (x.matrix(h) for x, h in zip(codes, (head, *[_shared(head, share)] * 2, head)))
        matrices, results = (byref(mq), byref(mk), byref(mv), byref(m)), [_at(x, head) for x in to]
        if device is not None:
            device.attention("backward", (byref(c), byref(shape), *matrices), (_at(out, head), _at(sums, head), *results))
        else:
            check(lib.mpsim_attention_backward(byref(c), byref(shape), *matrices, _at(out, head), None, _at(sums, head), *results, None, pool()),
                  "attention_backward")
