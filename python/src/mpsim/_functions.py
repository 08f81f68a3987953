"""Layers of neural networks on arrays, forward and backward, in any arithmetic: products by accumulation models, recipes of block formats,
and what lies between products in a fixed order of operations."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _attention, _convolution, _layer
from ._arrays import F32, Given, address, of_any
from ._blocks import recipe_of
from ._dot import model_of
from ._error import InputError, flag_of, integer_of, name_of, real_of, shown
from ._formats import Format, find
from ._library import STOCHASTIC, CRecipe, CRng, check, lib
from ._product import Entering, Operand, View, enter, multiply
from ._random import Random

Named = Union[str, Format, None]
_Formats = tuple[Optional[Format], Optional[Format]]
ROUNDINGS = 2**32  # random words that lie between those of two results


def _format(name: Named) -> Optional[Format]:
    return None if name is None else find(name)


class _Given:
    """An array as float32, where it lies if it is that, and how results become arrays of its kind."""

    __slots__ = ("given", "a")

    def __init__(self, x: Any, what: str) -> None:
        self.given: Given = of_any(x, what)
        self.a: Any = np.asarray(self.given.floats(what), F32)

    def give(self, y: Any) -> Any:
        return self.given.give(y)


def _array(x: Any, what: str, shape: Optional[Sequence[int]] = None) -> Any:
    """Another array, as float32."""
    if x is None:
        return None
    a = _Given(x, what).a
    if shape is not None and a.shape != tuple(shape):
        raise InputError(f"{what}: expected shape {tuple(shape)}, found {a.shape}")
    return a


def _indices(x: Any, what: str) -> Any:
    """Whole numbers, as int64."""
    a = np.asarray(x.numpy() if hasattr(x, "data_ptr") else x)
    if a.dtype.kind not in "iu":
        raise InputError(f"{what}: expected whole numbers, found {a.dtype}")
    return np.ascontiguousarray(a, np.int64)


# ---- products ----

class _Side:
    """A matrix that enters products: rounded to a format, through a recipe. A recipe with one scale makes one copy for all products."""

    def __init__(self, a: Any, format: Optional[Format], recipe: Optional[str], rng: Optional[Random]) -> None:
        self.view, self.size, self.rng = View.of(a), a.size, rng
        self.format = format
        self.one: Optional[Operand] = None
        self.recipe: Optional[CRecipe] = None
        self.hadamard = 0
        if recipe is not None:
            self.recipe, self.hadamard = recipe_of(recipe)
        if self.recipe is not None and not self.recipe.block_rows and not self.hadamard:
            self.one = self._enter(self.view)

    def _enter(self, view: View) -> Operand:
        words: Optional[CRng] = None
        if self.recipe is not None and self.recipe.element_mode >= STOCHASTIC:
            if self.rng is None:
                raise InputError("stochastic rounding: expected rng=mpsim.Random(seed)")
            words = self.rng.take(self.size)
        return enter(view, Entering(self.format, self.recipe, hadamard=self.hadamard, rng=words))

    def along(self, turned: bool) -> Any:
        """As an operand whose depth are its columns, or turned its rows."""
        if self.one is not None:
            return self.one.t() if turned else self.one
        view = self.view.t() if turned else self.view
        return (view, self.format) if self.recipe is None else self._enter(view)


def _pair(x: Any, what: str) -> tuple[Any, Any]:
    """One for both operands, or one each."""
    if isinstance(x, (tuple, list)):
        if len(x) != 2:
            raise InputError(f"{what}: expected one, or one for each of two operands, found {len(x)}")
        return x[0], x[1]
    return x, x


def _multiply(shape: tuple[int, int], a: Any, b: Any, model: str, result: Optional[Format], rng: Optional[Random],
              bias: Any = None) -> Any:
    """The product of two operands as float32 numbers of `result`."""
    d = np.empty(shape, F32)
    words = _words(model, rng, d.size)
    if d.size:
        multiply(View.of(d), a, b, model, bias=None if bias is None else View.row(bias), rng=words, format=result)
    return d


def _words(model: str, rng: Optional[Random], n: int) -> Optional[CRng]:
    """Random words of so many dot products; None: the model takes none."""
    name_of(model, "model")
    if not model_of(model)[2]:
        return None
    if rng is None:
        raise InputError(f"model '{model}' rounds stochastically: expected rng=mpsim.Random(seed)")
    return rng.take(ROUNDINGS * n)


def _matrix(x: Any, what: str) -> tuple[_Given, Any, tuple[int, ...]]:
    """Rows of the last dimension, and the dimensions before."""
    given = _Given(x, what)
    if given.a.ndim < 1:
        raise InputError(f"{what}: expected an array of at least one dimension, found a number")
    shape = given.a.shape[:-1]
    return given, given.a.reshape(int(np.prod(shape)), given.a.shape[-1]), shape


def _weight(weight: Any, inputs: int, what: str) -> Any:
    w = _array(weight, f"{what}: weight")
    if w.ndim != 2 or w.shape[1] != inputs:
        raise InputError(f"{what}: expected a weight of outputs x {inputs}, found shape {w.shape}")
    return w


def linear(x: Any, weight: Any, bias: Any = None, model: str = "fma", *, format: Any = None, recipe: Any = None, result: Named = None,
           rng: Optional[Random] = None) -> Any:
    """`x @ weight.T + bias`, each element a dot product under an accumulation model, the bias in the epilogue: one rounding.

    x: (..., inputs). weight: outputs x inputs. bias: outputs, or None.
    model: as of `gemm`. format: what x and weight are rounded to first, to nearest even; None: as they are; two for two formats.
    recipe: a block recipe (one of `mpsim.recipes`) that both go through, blocks along the depth; two for two recipes, None for none.
    result: the format that the result is rounded to; None: float32's numbers.
    rng: an `mpsim.Random`, for models and recipes that round stochastically.

    >>> x, w = np.float32([[1, 0.3, -2]]), np.float32([[1, 1, 1], [0.1, 0.2, 0.3]])
    >>> mpsim.linear(x, w, np.float32([0.5, 0]), "hopper-bf16-fp32", format="bf16", result="bf16")
    array([[-0.19921875, -0.44140625]], dtype=float32)
    """
    given, rows, front = _matrix(x, "linear")
    w = _weight(weight, rows.shape[1], "linear")
    b = _array(bias, "linear: bias", w.shape[:1])
    formats, recipes = _pair(format, "format"), _pair(recipe, "recipe")
    left, right = _Side(rows, _format(formats[0]), recipes[0], rng), _Side(w, _format(formats[1]), recipes[1], rng)
    d = _multiply((rows.shape[0], w.shape[0]), left.along(False), right.along(False), model, _format(result), rng, b)
    return given.give(d.reshape(*front, w.shape[0]))


class LinearGradients(NamedTuple):
    """Gradients of `linear` and `conv`."""

    x: Any
    weight: Any
    bias: Any


def linear_backward(dy: Any, x: Any, weight: Any, model: str = "fma", *, format: Any = None, gradient: Named = None, recipe: Any = None,
                    gradient_recipe: Optional[str] = None, result: Named = None, rng: Optional[Random] = None) -> LinearGradients:
    """The gradients of `linear`: x `dy @ weight`, weight `dy.T @ x`, bias the sum over rows of dy in a fixed order (MPSIM_LANES_ALL).

    dy: (..., outputs). gradient, gradient_recipe: the format and the recipe of dy; None: as it is. The rest as of `linear`. A recipe with
    blocks quantises each operand for each product along its depth; one with a single scale once.

    >>> x, w, dy = np.float32([[1, 2], [3, 4]]), np.float32([[1, 0.5]]), np.float32([[1], [-1]])
    >>> mpsim.linear_backward(dy, x, w, format="e4m3", gradient="e5m2").weight
    array([[-2., -2.]], dtype=float32)
    """
    given, rows, front = _matrix(x, "linear_backward")
    w = _weight(weight, rows.shape[1], "linear_backward")
    g = _array(dy, "linear_backward: dy", (*front, w.shape[0])).reshape(rows.shape[0], w.shape[0])
    formats, recipes, to = _pair(format, "format"), _pair(recipe, "recipe"), _format(result)
    left, right = _Side(rows, _format(formats[0]), recipes[0], rng), _Side(w, _format(formats[1]), recipes[1], rng)
    back = _Side(g, _format(gradient), gradient_recipe, rng)
    dx = _multiply(rows.shape, back.along(False), right.along(True), model, to, rng)
    dw = _multiply((w.shape[0], w.shape[1]), back.along(True), left.along(True), model, to, rng)
    db = np.empty(w.shape[0], F32)
    _layer.column_sums(db, _rounded(g, _format(gradient)), format=to)
    return LinearGradients(given.give(dx.reshape(*front, w.shape[1])), given.give(dw), given.give(db))


def _rounded(a: Any, format: Optional[Format]) -> Any:
    """float32 numbers rounded to a format, to nearest even."""
    if format is None:
        return a
    from ._cast import round as rounded

    return np.asarray(rounded(a, format), F32)


# ---- convolutions ----

def _each(value: Any, dims: int, name: str, least: int) -> list[int]:
    """A number for each dimension."""
    given = list(value) if isinstance(value, (tuple, list)) else [value] * dims
    numbers = [integer_of(v) for v in given]
    if len(numbers) != dims or any(n is None or n < least for n in numbers):
        raise InputError(f"{name}: expected a number from {least} on, or {dims} of them, found {shown(value)}")
    return [int(n) for n in numbers if n is not None]


class _Window:
    """What a convolution reads: sizes of x, taps of the weight, sizes of y."""

    def __init__(self, what: str, x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: Any) -> None:
        dims = x.ndim - 2
        if not 1 <= dims <= 3 or w.ndim != x.ndim:
            raise InputError(f"{what}: expected x (images, channels, 1 to 3 sizes) and weight (outputs, channels / groups, taps), "
                             f"found shapes {x.shape} and {w.shape}")
        self.stride, self.padding, self.dilation = (_each(v, dims, n, least) for v, n, least in (
            (stride, "stride", 1), (padding, "padding", 0), (dilation, "dilation", 1)))
        self.groups = _each(groups, 1, "groups", 1)[0]
        if x.shape[1] != w.shape[1] * self.groups or w.shape[0] % self.groups:
            raise InputError(f"{what}: expected {self.groups} x {w.shape[1]} channels and a multiple of {self.groups} outputs, "
                             f"found {x.shape[1]} and {w.shape[0]}")
        self.images, self.inputs, self.outputs, self.taps = x.shape[0], x.shape[2:], w.shape[0], w.shape[2:]
        self.sizes = [(n + 2 * p - (t - 1) * d - 1) // s + 1 for n, p, t, d, s in zip(
            self.inputs, self.padding, self.taps, self.dilation, self.stride)]
        if min(self.sizes) < 1 or min(self.taps) < 1:
            raise InputError(f"{what}: expected a window within x and its padding, found taps {self.taps} and sizes {self.inputs}")

        self.geometry = _convolution.Geometry(self.stride, self.padding, self.dilation, self.groups)

    def run(self, sum_of: Any, d: Any, a: Any, b: Any, formats: _Formats, model: str, to: Optional[Format], rng: Optional[Random],
            **more: Any) -> None:
        """d = a convolution, or a gradient of one, of two arrays read in formats."""
        if d.size:
            sum_of(View.of(d), (View.of(a), formats[0]), (View.of(b), formats[1]), model, self.geometry, rng=_words(model, rng, d.size), format=to,
                   **more)


def conv(x: Any, weight: Any, bias: Any = None, model: str = "fma", *, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
         format: Any = None, result: Named = None, rng: Optional[Random] = None) -> Any:
    """A convolution of one to three dimensions: each number a dot product under an accumulation model over (tap, channel), taps row by row.

    x: (images, channels, sizes). weight: (outputs, channels / groups, taps). bias: outputs, in the epilogue, or None.
    stride, padding, dilation: a number, or one a dimension. What lies outside of x are products of +0 and the weight.
    model, format, result, rng: as of `linear`.

    >>> mpsim.conv(np.float32([[[1, 2, 3, 4]]]), np.float32([[[1, 0, -1]]]), padding=1)
    array([[[-2., -2., -2.,  3.]]], dtype=float32)
    """
    given = _Given(x, "conv")
    w = _array(weight, "conv: weight")
    window = _Window("conv", given.a, w, stride, padding, dilation, groups)
    b = _array(bias, "conv: bias", w.shape[:1])
    formats, to = [_format(f) for f in _pair(format, "format")], _format(result)
    y = np.empty((window.images, window.outputs, *window.sizes), F32)
    window.run(_convolution.forward, y, given.a, w, (formats[0], formats[1]), model, to, rng, bias=None if b is None else View.row(b))
    return given.give(y)


def conv_backward(dy: Any, x: Any, weight: Any, model: str = "fma", *, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
                  format: Any = None, gradient: Named = None, result: Named = None, rng: Optional[Random] = None) -> LinearGradients:
    """The gradients of `conv`: of x chains over (position, output), positions of dy row by row, where nothing is scattered; of the weight over
    images and positions; of the bias as that of `linear_backward`.

    gradient: the format of dy. The rest as of `conv`.

    >>> x, w = np.float32([[[1, 2, 3, 4]]]), np.float32([[[1, 0, -1]]])
    >>> dx, dw, db = mpsim.conv_backward(np.ones((1, 1, 2)), x, w)
    >>> dx.tolist(), dw.tolist(), db.tolist()
    ([[[1.0, 1.0, -1.0, -1.0]]], [[[3.0, 5.0, 7.0]]], [2.0])
    """
    given = _Given(x, "conv_backward")
    w = _array(weight, "conv_backward: weight")
    window = _Window("conv_backward", given.a, w, stride, padding, dilation, groups)
    g = _array(dy, "conv_backward: dy", (window.images, window.outputs, *window.sizes))
    formats, back, to = [_format(f) for f in _pair(format, "format")], _format(gradient), _format(result)
    dx, dw = np.zeros_like(given.a), np.empty_like(w)
    window.run(_convolution.backward_weight, dw, g, given.a, (back, formats[0]), model, to, rng)
    window.run(_convolution.backward_input, dx, g, w, (back, formats[1]), model, to, rng)
    rows = np.ascontiguousarray(np.moveaxis(g, 1, -1)).reshape(-1, window.outputs)
    db = np.empty(window.outputs, F32)
    _layer.column_sums(db, _rounded(rows, back), format=to)
    return LinearGradients(given.give(dx), given.give(dw), given.give(db))


# ---- attention ----

class Attention(NamedTuple):
    """What `attention` gives: y, and for the gradients the logarithm of the sum of exponentials of each row."""

    y: Any
    lse: Any


class AttentionGradients(NamedTuple):
    """Gradients of `attention`."""

    q: Any
    k: Any
    v: Any


class _Heads:
    """Heads of q, k and v, and the settings of one call."""

    def __init__(self, what: str, q: Any, k: Any, v: Any, format: Any, model: str, p: Named, p_scale: float, scale: Optional[float], causal: bool,
                 left: Optional[int], right: Optional[int], mask: Any, tile: Optional[int], reverse: bool, exp2: bool, softmax: Named,
                 result: Named) -> None:
        self.given = _Given(q, what)
        self.q, self.k, self.v = self.given.a, _array(k, f"{what}: k"), _array(v, f"{what}: v")
        formats = [*format] if isinstance(format, (tuple, list)) else [format] * 3
        if len(formats) != 3:
            raise InputError(f"{what}: expected a format, or one each for q, k and v, found {len(formats)}")
        self.formats = [find(f) if f is not None else find("binary32") for f in formats]
        self.p = self.formats[2] if p is None else find(p)
        name_of(model, "model")
        for name, value in (("left", left), ("right", right), ("tile", tile)):
            number = 0 if value is None else integer_of(value)
            if number is None or number < 0:
                raise InputError(f"{name}: expected a number of keys, found {shown(value)}")
        if self.q.ndim < 2 or self.k.ndim < 2:
            raise InputError(f"{what}: expected (..., heads, rows, columns), found shapes {self.q.shape} and {self.k.shape}")
        self.mask = None if mask is None else _mask(mask, (*self.q.shape[:-1], self.k.shape[-2]))
        self.settings = _attention.Settings(
            model, model, self.q.shape[-1], self.p, real_of(p_scale, "p_scale"), None if scale is None else real_of(scale, "scale"),
            flag_of(causal, "causal"), left, right, tile, flag_of(reverse, "reverse"), flag_of(exp2, "exp2"), _format(softmax), _format(result))

    @property
    def share(self) -> int:
        return self.q.shape[-3] // self.k.shape[-3] if self.q.ndim > 2 else 1


def _mask(mask: Any, shape: tuple[int, ...]) -> Any:
    a = np.asarray(mask.numpy() if hasattr(mask, "data_ptr") else mask)
    if a.dtype != np.bool_:
        raise InputError(f"mask: expected booleans, found {a.dtype}")
    try:
        return np.ascontiguousarray(np.broadcast_to(a, shape), np.uint8)
    except ValueError:
        raise InputError(f"mask: expected a shape that is repeated to {shape}, found {a.shape}") from None


def attention(q: Any, k: Any, v: Any, model: str = "fma", *, format: Any = None, p: Named = None, p_scale: float = 1.0,
              scale: Optional[float] = None, causal: bool = False, left: Optional[int] = None, right: Optional[int] = None, mask: Any = None,
              tile: Optional[int] = None, reverse: bool = False, exp2: bool = False, softmax: Named = None, result: Named = None) -> Attention:
    """softmax(scale q k^T) v of each head in tiles of keys with online softmax, as FlashAttention computes it.

    q: (..., heads, queries, dim). k: (..., heads, keys, dim), or a divisor of the heads, which share keys. v: (..., as k, keys, size).
    model: of both products. format: what q, k and v are rounded to, to nearest even; three for one each. p: the format of the
        probabilities as they enter the second product; None: that of v. p_scale: what they are multiplied by before.
    scale: 1 / sqrt(dim). causal, left, right: keys that a query sees; mask: booleans, repeated to (..., heads, queries, keys), False
        where a key is not seen. tile: keys a tile, 128; 0: all. reverse: tiles from the last. exp2: by powers of two.
    softmax: the format between the products; result: of y; None: float32's numbers.

    >>> q = np.float32([[[1, 0], [0, 1]]])
    >>> mpsim.attention(q, q, q, causal=True, format="bf16", result="bf16").y
    array([[[1.        , 0.        ],
            [0.33007812, 0.66796875]]], dtype=float32)
    """
    h = _Heads("attention", q, k, v, format, model, p, p_scale, scale, causal, left, right, mask, tile, reverse, exp2, softmax, result)
    y, lse = np.zeros((*h.q.shape[:-1], h.v.shape[-1]), F32), np.zeros(h.q.shape[:-1], F32)
    _attention.forward(y, lse, h.q, h.k, h.v, h.settings, h.formats, h.mask)
    return Attention(h.given.give(y), h.given.give(lse))


def attention_backward(dy: Any, q: Any, k: Any, v: Any, y: Any, lse: Any, model: str = "fma", *, format: Any = None, gradient: Named = None,
                       p: Named = None, ds: Named = None, scale: Optional[float] = None, causal: bool = False, left: Optional[int] = None,
                       right: Optional[int] = None, mask: Any = None, tile: Optional[int] = None, reverse: bool = False, exp2: bool = False,
                       softmax: Named = None, scale_last: bool = False, result: Named = None) -> AttentionGradients:
    """The gradients of `attention`, in tiles: scores and probabilities are computed again from lse.

    dy: the gradient of y. y, lse: what `attention` gave. gradient: the format of dy. p, ds: the formats of the probabilities and of the
    gradient of the scores as they enter products; None: those of v and of dy. scale_last: dq and dk are multiplied by the scale, not ds,
    as FlashAttention has it. result: of the three gradients. The gradients of heads that share keys are added in their order, in
    float32, before they are rounded. The rest as of `attention`.

    >>> q = np.float32([[[1, 0], [0, 1]]])
    >>> y, lse = mpsim.attention(q, q, q, causal=True)
    >>> mpsim.attention_backward(np.ones_like(y), q, q, q, y, lse, causal=True, result="bf16").v
    array([[[1.328125  , 1.328125  ],
            [0.66796875, 0.66796875]]], dtype=float32)
    """
    h = _Heads("attention_backward", q, k, v, format, model, p, 1.0, scale, causal, left, right, mask, tile, reverse, exp2, softmax, None)
    g = _array(dy, "attention_backward: dy", (*h.q.shape[:-1], h.v.shape[-1]))
    out, sums = _array(y, "attention_backward: y", g.shape), _array(lse, "attention_backward: lse", h.q.shape[:-1])
    of_dy, to = _format(gradient) or find("binary32"), _format(result)
    dq, dk, dv = np.zeros_like(h.q), _room(h, h.k), _room(h, h.v)
    alone = h.share == 1
    _attention.backward(dq, dk, dv, g, h.q, h.k, h.v, out, sums, h.settings, h.formats, models=[model] * 4, gradient=of_dy, p=h.p,
                        ds=of_dy if ds is None else find(ds), mask=h.mask, scale_last=flag_of(scale_last, "scale_last"), result=to if alone else None)
    if not alone:
        dq, dk, dv = _rounded(dq, to), _together(dk, h, to), _together(dv, h, to)
    return AttentionGradients(h.given.give(dq), h.given.give(dk), h.given.give(dv))


def _room(h: _Heads, like: Any) -> Any:
    """For the gradient of each head's keys or values."""
    return np.zeros((*h.q.shape[:-2], *like.shape[-2:]), F32)


def _together(x: Any, h: _Heads, to: Optional[Format]) -> Any:
    """The sum over heads that share keys, in their order."""
    x = x.reshape(*x.shape[:-3], x.shape[-3] // h.share, h.share, *x.shape[-2:])
    total = x[..., 0, :, :]
    for i in range(1, h.share):
        total = total + x[..., i, :, :]
    return _rounded(np.ascontiguousarray(total), to)


# ---- normalisation ----

class NormGradients(NamedTuple):
    """Gradients of `layer_norm` and `rms_norm`; those of parameters that were not there are None."""

    x: Any
    weight: Any
    bias: Any


def _norm(what: str, kind: str, x: Any, weight: Any, bias: Any, eps: float, math: Named, result: Named) -> Any:
    given, rows, front = _matrix(x, what)
    w, b = (_array(z, f"{what}: parameters", rows.shape[1:]) for z in (weight, bias))
    y = np.empty_like(rows)
    _layer.layer_norm(y, rows, w, b, eps=real_of(eps, "eps"), kind=kind, math=_format(math), format=_format(result))
    return given.give(y.reshape(*front, rows.shape[1]))


def _norm_backward(what: str, kind: str, dy: Any, x: Any, weight: Any, eps: float, math: Named, result: Named) -> NormGradients:
    given, rows, front = _matrix(x, what)
    w, m, to = _array(weight, f"{what}: weight", rows.shape[1:]), _format(math), _format(result)
    g = _array(dy, f"{what}: dy", (*front, rows.shape[1])).reshape(rows.shape)
    mean, inverse, dx = np.empty(rows.shape[0], F32), np.empty(rows.shape[0], F32), np.empty_like(rows)
    _layer.layer_norm(dx, rows, w, mean=mean, inverse=inverse, eps=real_of(eps, "eps"), kind=kind, math=m)
    center = mean if kind == "layer" else None
    _layer.norm_backward(dx, g, rows, center, inverse, w, kind=kind, math=m, format=to)
    dw, db = np.zeros(rows.shape[1], F32), np.zeros(rows.shape[1], F32)
    _layer.norm_gradients(dw, db, g, rows, center, inverse, kind=kind, math=m)
    return NormGradients(given.give(dx.reshape(*front, rows.shape[1])), *(given.give(_rounded(z, to)) for z in (dw, db)))


def layer_norm(x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5, math: Named = None, result: Named = None) -> Any:
    """LayerNorm over the last dimension, in a fixed order of correctly rounded operations.

    weight, bias: of the last dimension, or None for 1 and none.
    math: the format that inputs and the result of every operation are rounded to, as a chain of framework operations in that format
        does; None: float32. result: what the result is rounded to in the end; None: float32's numbers.

    >>> mpsim.layer_norm(np.float32([1, 2, 3, 6]), result="bf16")
    array([-1.0703125 , -0.53515625,  0.        ,  1.6015625 ], dtype=float32)
    """
    return _norm("layer_norm", "layer", x, weight, bias, eps, math, result)


def layer_norm_backward(dy: Any, x: Any, weight: Any = None, *, eps: float = 1e-5, math: Named = None, result: Named = None) -> NormGradients:
    """The gradients of `layer_norm`; mean and deviation of rows are computed again. Arguments as there.

    >>> mpsim.layer_norm_backward(np.ones((2, 2)), np.float32([[1, 2], [5, 9]])).bias
    array([2., 2.], dtype=float32)
    """
    return _norm_backward("layer_norm_backward", "layer", dy, x, weight, eps, math, result)


def rms_norm(x: Any, weight: Any = None, *, eps: float = 1e-5, math: Named = None, result: Named = None) -> Any:
    """RMSNorm over the last dimension; arguments as of `layer_norm`.

    >>> mpsim.rms_norm(np.float32([[3, 4]]), result="bf16")
    array([[0.84765625, 1.1328125 ]], dtype=float32)
    """
    return _norm("rms_norm", "rms", x, weight, None, eps, math, result)


def rms_norm_backward(dy: Any, x: Any, weight: Any = None, *, eps: float = 1e-5, math: Named = None, result: Named = None) -> NormGradients:
    """The gradients of `rms_norm`; that of the bias, which it has not, is None.

    >>> mpsim.rms_norm_backward(np.float32([[1, 0]]), np.float32([[3, 4]]), result="bf16").x
    array([[ 0.18066406, -0.13574219]], dtype=float32)
    """
    return _norm_backward("rms_norm_backward", "rms", dy, x, weight, eps, math, result)._replace(bias=None)


# ---- activations ----

def _gelu(approximate: str) -> str:
    if approximate not in ("none", "tanh"):
        raise InputError(f"approximate: expected none or tanh, found {shown(approximate)}")
    return "gelu-tanh" if approximate == "tanh" else "gelu"


def gelu(x: Any, approximate: str = "none", *, math: Named = None, result: Named = None) -> Any:
    """GELU by erf, or with approximate="tanh" by tanh; math and result as of `layer_norm`.

    >>> mpsim.gelu(np.float32([-1, 0, 2]), result="bf16")
    array([-0.15820312,  0.        ,  1.953125  ], dtype=float32)
    """
    given = _Given(x, "gelu")
    y = np.empty_like(given.a)
    _layer.activate(_gelu(approximate), y, given.a, math=_format(math), format=_format(result))
    return given.give(y)


def gelu_backward(dy: Any, x: Any, approximate: str = "none", *, math: Named = None, result: Named = None) -> Any:
    """The gradient of `gelu`.

    >>> mpsim.gelu_backward(np.float32([1, 2]), np.float32([0, 0]))
    array([0.5, 1. ], dtype=float32)
    """
    given = _Given(x, "gelu_backward")
    dx = np.empty_like(given.a)
    _layer.activate_backward(_gelu(approximate), dx, _array(dy, "gelu_backward: dy", dx.shape), given.a, math=_format(math), format=_format(result))
    return given.give(dx)


def swiglu(gate: Any, value: Any, *, math: Named = None, result: Named = None) -> Any:
    """gate * sigmoid(gate) * value; math and result as of `layer_norm`.

    >>> mpsim.swiglu(np.float32([1, -1]), np.float32([2, 2]), result="bf16")
    array([ 1.4609375, -0.5390625], dtype=float32)
    """
    given = _Given(gate, "swiglu")
    y = np.empty_like(given.a)
    _layer.activate("swiglu", y, given.a, _array(value, "swiglu: value", y.shape), math=_format(math), format=_format(result))
    return given.give(y)


def swiglu_backward(dy: Any, gate: Any, value: Any, *, math: Named = None, result: Named = None) -> tuple[Any, Any]:
    """The gradients of gate and value.

    >>> mpsim.swiglu_backward(np.float32([1]), np.float32([0]), np.float32([3]))
    (array([1.5], dtype=float32), array([0.], dtype=float32))
    """
    given = _Given(gate, "swiglu_backward")
    dgate, dvalue = np.empty_like(given.a), np.empty_like(given.a)
    g, v = (_array(z, "swiglu_backward: dy, value", given.a.shape) for z in (dy, value))
    _layer.activate_backward("swiglu", dgate, g, given.a, v, dvalue, math=_format(math), format=_format(result))
    return given.give(dgate), given.give(dvalue)


# ---- softmax, losses, tables ----

def _queries(causal: bool, shape: Sequence[int], what: str) -> int:
    if not flag_of(causal, "causal"):
        return 0
    if len(shape) < 2:
        raise InputError(f"{what}: expected (..., queries, keys) with causal, found shape {tuple(shape)}")
    return shape[-2]


def softmax(x: Any, *, scale: float = 1.0, causal: bool = False, mask: Any = None, log: bool = False, math: Named = None,
            result: Named = None) -> Any:
    """Softmax of scale * x over the last dimension, or its logarithm.

    causal: rows are queries, the last of which sees all keys, each one before a key fewer. mask: booleans that are repeated to the shape
    of x, False where a key is not seen; its probability is 0. math and result as of `layer_norm`.

    >>> mpsim.softmax(np.float32([[1, 2], [3, 3]]), causal=True)
    array([[1. , 0. ],
           [0.5, 0.5]], dtype=float32)
    """
    given = _Given(x, "softmax")
    y = np.empty_like(given.a)
    _layer.softmax(y, given.a, scale=real_of(scale, "scale"), length=_queries(causal, y.shape, "softmax"), log=flag_of(log, "log"),
                   mask=None if mask is None else _mask(mask, y.shape), math=_format(math), format=_format(result))
    return given.give(y)


def softmax_backward(dy: Any, y: Any, *, scale: float = 1.0, causal: bool = False, mask: Any = None, log: bool = False, math: Named = None,
                     result: Named = None) -> Any:
    """The gradient of x, from what `softmax` gave and the gradient of that.

    >>> mpsim.softmax_backward(np.float32([[1, 0]]), np.float32([[0.5, 0.5]]))
    array([[ 0.25, -0.25]], dtype=float32)
    """
    given = _Given(y, "softmax_backward")
    dx = np.empty_like(given.a)
    _layer.softmax_backward(dx, _array(dy, "softmax_backward: dy", dx.shape), given.a, scale=real_of(scale, "scale"), log=flag_of(log, "log"),
                            length=_queries(causal, dx.shape, "softmax_backward"), mask=None if mask is None else _mask(mask, dx.shape),
                            math=_format(math), format=_format(result))
    return given.give(dx)


def cross_entropy(x: Any, labels: Any, *, ignored: Optional[int] = -100, math: Named = None) -> float:
    """The mean cross-entropy of softmax of logits (..., classes) and their labels (...), of those that are not `ignored`.

    >>> mpsim.cross_entropy(np.float32([[2, 2], [5, 1]]), np.array([1, -100]))
    0.6931471824645996
    """
    _, rows, _ = _matrix(x, "cross_entropy")
    loss = np.empty(rows.shape[0], F32)
    _, counted = _layer.cross_entropy(rows, _indices(labels, "labels"), loss=loss, ignored=ignored, math=_format(math))
    return _layer.mean(loss, counted, math=_format(math))


def cross_entropy_backward(x: Any, labels: Any, *, scale: float = 1.0, ignored: Optional[int] = -100, math: Named = None,
                           result: Named = None) -> Any:
    """The gradient of the mean times `scale`, the loss scale: (softmax - 1 at the label) * f32(scale / rows that count).

    >>> mpsim.cross_entropy_backward(np.float32([[2, 2], [5, 1]]), np.array([1, -100]), scale=8)
    array([[ 4., -4.],
           [ 0.,  0.]], dtype=float32)
    """
    given, rows, front = _matrix(x, "cross_entropy_backward")
    at, dx = _indices(labels, "labels"), np.empty_like(rows)
    counted = int(np.count_nonzero(at != ignored)) if ignored is not None else at.size
    coefficient = float(np.float32(real_of(scale, "scale") / max(counted, 1)))
    _layer.cross_entropy(rows, at, dx=dx, coefficient=coefficient, ignored=ignored, math=_format(math), format=_format(result))
    return given.give(dx.reshape(*front, rows.shape[1]))


def embedding(table: Any, index: Any, *, result: Named = None) -> Any:
    """The rows of a table (entries x size) that the index (...) says, rounded to `result`.

    >>> mpsim.embedding(np.float32([[1, 2], [3, 4.01]]), np.array([1, 1]), result="bf16")
    array([[3., 4.],
           [3., 4.]], dtype=float32)
    """
    given = _Given(table, "embedding")
    if given.a.ndim != 2:
        raise InputError(f"embedding: expected a table of entries x size, found shape {given.a.shape}")
    at = _indices(index, "index")
    y = np.empty((at.size, given.a.shape[1]), F32)
    _layer.embedding(y, given.a, at, format=_format(result))
    return given.give(y.reshape(*at.shape, given.a.shape[1]))


def embedding_backward(dy: Any, index: Any, entries: int, *, ignored: Optional[int] = None, math: Named = None) -> Any:
    """The gradient of the table: for each entry a chain of the rows of dy that took it, ascending. Rows of the entry `ignored` are
    left out.

    >>> mpsim.embedding_backward(np.float32([[1], [2], [3]]), np.array([1, 0, 1]), 3)
    array([[2.],
           [4.],
           [0.]], dtype=float32)
    """
    given, rows, front = _matrix(dy, "embedding_backward")
    at = _indices(index, "index")
    number = integer_of(entries)
    if number is None or number < 1:
        raise InputError(f"entries: expected the number of entries of the table, found {shown(entries)}")
    if at.shape != front:
        raise InputError(f"embedding_backward: expected an index of shape {front}, found {at.shape}")
    d = np.zeros((number, rows.shape[1]), F32)
    _layer.embedding_backward(d, rows, at, ignored=ignored, math=_format(math))
    return given.give(d)


def rotary(length: int, size: int, base: float = 10000.0) -> tuple[Any, Any]:
    """Cosines and sines of rotary positions, length x size / 2, as `mpsim train` has them: the same bits on every machine.

    >>> cos, sin = mpsim.rotary(4096, 64)
    >>> cos.shape, float(cos[1, 0]) == float(np.float32(np.cos(1.0)))
    ((4096, 32), True)
    """
    sizes = integer_of(length), integer_of(size)
    if sizes[0] is None or sizes[1] is None or sizes[0] < 0 or sizes[1] < 0 or sizes[1] % 2:
        raise InputError(f"rotary: expected a length and an even size, found {shown(length)} and {shown(size)}")
    cos, sin = np.empty((sizes[0], sizes[1] // 2), F32), np.empty((sizes[0], sizes[1] // 2), F32)
    check(lib.mpsim_rotary(address(cos), address(sin), sizes[0], sizes[1] // 2, real_of(base, "base")), f"rotary: base {shown(base)}")
    return cos, sin
