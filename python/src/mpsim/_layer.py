"""What lies between products, on memory where it lies (mpsim/between.h): normalisations, activations, softmax, losses, tables and sums,
forward and backward, in a fixed order of operations, so that they have the same bits on every machine.

    layer_norm(y, x, weight, bias, mean=mean, inverse=inverse, math=None, format=bf16)

Results come first, and are written. An array is a tensor of torch, an array of NumPy or a View, of binary32 or a narrower format that is
a dtype there, with any strides. `math` is the format that every operation is rounded to (None: binary32); `format` what the results are
rounded to (None: the format of the array that they go to). Both are a Format, or None.
"""
from __future__ import annotations

import contextlib
import struct
import threading
from ctypes import addressof, c_float, c_uint64, create_string_buffer
from typing import Any, Iterator, Optional, Sequence

from ._error import InputError
from ._formats import Format, address_of, of_dtype
from ._library import EINVAL, CRng, check, lib
from ._threads import pool

RANK = 8
NORMS = {"layer": 0, "rms": 1}
ACTIVATIONS = {name: i for i, name in enumerate(("gelu-tanh", "gelu", "swiglu", "relu", "silu", "sigmoid", "tanh", "exp"))}
(ROWNORM, ROWNORM_BACKWARD, ROWNORM_GRADIENTS, ACTIVATE, ACTIVATE_BACKWARD, SOFTMAX, SOFTMAX_BACKWARD, LOG_SOFTMAX,
 LOG_SOFTMAX_BACKWARD, CROSS_ENTROPY, EMBED, EMBED_BACKWARD, ADD, MULTIPLY, DROPOUT, COLUMN_SUMS, PERIOD_SUMS, BATCHNORM,
 BATCHNORM_BACKWARD, BATCHNORM_INFERENCE) = range(20)
_WORDS = ("layer_norm", "norm_backward", "norm_gradients", "activate", "activate_backward", "softmax", "softmax_backward", "log_softmax",
          "log_softmax_backward", "cross_entropy", "embedding", "embedding_backward", "add", "multiply", "dropout", "column_sums", "period_sums",
          "batch_norm", "batch_norm_backward", "batch_norm_inference")
_LAYER = struct.Struct("@6B8N2N3fd3QPqPP")  # mpsim_between
_ARRAYS = [struct.Struct("@" + "PP8n" * n) for n in range(9)]  # so many mpsim_strided
_ZEROS = (0,) * RANK
_MISSING = (0, 0, *_ZEROS)
_Arrays = list[tuple[int, ...]]

_dtypes: dict[Any, tuple[int, int]] = {}


def _dtype(dtype: Any) -> tuple[int, int]:
    """The structure of the format of a dtype, and the bytes of an element."""
    found = _dtypes.get(dtype)
    if found is None:
        name = getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]
        format = of_dtype(name)
        if format is None or format.bits > 32:
            raise InputError(f"layer: expected numbers of float32 or a narrower dtype, found {name}")
        found = _dtypes[dtype] = address_of(format), format.code_dtype.itemsize
    return found


class _Own(threading.local):
    """Memory that a thread uses again, and where it is."""

    def __init__(self) -> None:
        self.layer, self.arrays, self.found = create_string_buffer(_LAYER.size), create_string_buffer(_ARRAYS[8].size), (c_uint64 * 2)()
        self.at = addressof(self.layer), addressof(self.arrays), addressof(self.found)
        self.device: Any = None  # where the arrays are: a Device, or in memory


_own = _Own()
_VIEW_OF_ONE = c_float(1.0)


def _lies(x: Any) -> tuple[int, int, Sequence[int], Sequence[int]]:
    """Format, address, shape and strides of an array."""
    try:
        return _dtype(x.dtype)[0], x.data_ptr(), x.shape, x.stride()
    except AttributeError:
        pass
    if hasattr(x, "address"):  # a View
        return address_of(x.format), x.address, x.shape, x.strides
    if x.__class__ is _Turned:
        return x.lies
    format, size = _dtype(x.dtype)
    strides = x.strides
    if any(s % size for s in strides):
        raise InputError("layer: expected strides of whole elements, found an array with others")
    return format, x.__array_interface__["data"][0], x.shape, tuple(s // size for s in strides)


def _misfit(what: str, shape: Sequence[int], expected: Sequence[int]) -> InputError:
    return InputError(f"layer: expected {what} of shape {tuple(expected)}, found {tuple(shape)}")


def _rows(x: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """An array of the whole shape; dimensions that are missing in front, or 1, are repeated."""
    if x is None:
        return _MISSING
    format, address, own, strides = _lies(x)
    n = len(shape)
    if own == shape or tuple(own) == tuple(shape):
        return (format, address, *strides, *_ZEROS[n:])
    if len(own) > n:
        raise _misfit("an array", own, shape)
    front = n - len(own)
    for size, wanted in zip(own, shape[front:]):
        if size not in (1, wanted):
            raise _misfit("an array", own, shape)
    return (format, address, *_ZEROS[:front], *(0 if size == 1 else s for size, s in zip(own, strides)), *_ZEROS[n:])


def _result(x: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """The same of a result, which nothing is repeated in."""
    if x is not None and x.shape != shape and tuple(x.shape) != tuple(shape):
        raise _misfit("a result", x.shape, shape)
    return _rows(x, shape)


def _columns(x: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """A number for each element of the last dimension."""
    if x is None:
        return _MISSING
    format, address, own, strides = _lies(x)
    n = len(shape)
    if own[-1] != shape[-1] or len(own) > 1 and any(size != 1 for size in own[:-1]):
        raise _misfit("a number a column", own, shape[-1:])
    return (format, address, *_ZEROS[:n - 1], strides[-1], *_ZEROS[n:])


def _scalars(x: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """A number for each row: of the shape but for its last dimension, which may be there as 1."""
    if x is None:
        return _MISSING
    format, address, own, strides = _lies(x)
    n = len(shape)
    if own != shape[:-1] and tuple(own) != tuple(shape[:-1]) and tuple(own) != (*shape[:-1], 1):
        raise _misfit("a number a row", own, shape[:-1])
    return (format, address, *strides[:n - 1], *_ZEROS[n - 1:])


def _table(x: Any, shape: Sequence[int]) -> tuple[int, ...]:
    format, address, own, strides = _lies(x)
    n = len(shape)
    if len(own) != 2 or own[1] != shape[-1]:
        raise InputError(f"layer: expected a table of entries x {shape[-1]}, found shape {tuple(own)}")
    if n == 1:
        raise InputError("layer: expected rows of at least two dimensions beside a table")
    return (format, address, strides[0], *_ZEROS[1:n - 1], strides[1], *_ZEROS[n:])


def _mask(x: Any, shape: Sequence[int]) -> tuple[int, ...]:
    """Bytes, 0 where nothing is seen."""
    if x is None:
        return _MISSING
    try:
        address, strides = x.data_ptr(), x.stride()
    except AttributeError:
        address, strides = x.__array_interface__["data"][0], x.strides
    if x.dtype.itemsize != 1:
        raise InputError(f"layer: expected a mask of booleans, found {x.dtype}")
    own, n = x.shape, len(shape)
    front = n - len(own)
    if front < 0 or any(size not in (1, wanted) for size, wanted in zip(own, shape[front:])):
        raise _misfit("a mask", own, shape)
    return (0, address, *_ZEROS[:front], *(0 if size == 1 else s for size, s in zip(own, strides)), *_ZEROS[n:])


def _indices(index: Any, shape: Sequence[int]) -> tuple[int, Any]:
    """Where 64-bit integers lie, one for each row, and what keeps them."""
    rows = 1
    for size in shape[:-1]:
        rows *= size
    try:
        kept = index.long().contiguous()
        address, n = kept.data_ptr(), kept.numel()
    except AttributeError:
        import numpy as np

        kept = np.ascontiguousarray(index, dtype=np.int64)
        address, n = kept.__array_interface__["data"][0], kept.size
    if n != rows:
        raise _misfit("an index a row", index.shape, shape[:-1])
    return address, kept


def _whole(shape: Sequence[int]) -> Sequence[int]:
    n = len(shape)
    if not 1 <= n <= RANK:
        raise InputError(f"layer: expected 1 to {RANK} dimensions, found shape {tuple(shape)}")
    return shape


def _run(kind: int, shape: Sequence[int], arrays: _Arrays, math: Optional[Format] = None, format: Optional[Format] = None, *,
         norm: int = 0, activation: int = 0, added: int = 0, ignores: int = 0, length: int = 0, entries: int = 0, eps: float = 0.0,
         momentum: float = 0.0, scale: float = 1.0, p: float = 0.0, rng: tuple[int, int, int] = (0, 0, 0), index: int = 0,
         ignored: int = 0) -> None:
    own = _own
    n = len(shape)
    _LAYER.pack_into(own.layer, 0, kind, norm, activation, added, ignores, n, *shape, *_ZEROS[n:], length, entries, eps, momentum, scale, p,
                     *rng, index, ignored, address_of(math), address_of(format))
    flat: list[int] = []
    for a in arrays:
        flat += a
    count = len(arrays)
    _ARRAYS[count].pack_into(own.arrays, 0, *flat)
    layer, at, found = own.at
    if own.device is not None:
        own.found[:] = own.device.between(layer, at, count, _WORDS[kind], kind == CROSS_ENTROPY)
        return
    status = lib.mpsim_between_run(layer, at, count, found, pool())
    if status == EINVAL and index:
        entries = entries if kind != CROSS_ENTROPY else shape[-1]
        raise InputError(f"{_WORDS[kind]}: expected indices from 0 to {entries - 1}" + (f" or {ignored}" if ignores else "") + ", found others")
    if status:
        check(status, f"{_WORDS[kind]}: arrays of shape {tuple(shape)}, math {math or 'binary32'}, format {format or 'of the result'}")


@contextlib.contextmanager
def on(device: Any) -> Iterator[None]:
    """Arrays of this thread are on a Device."""
    _own.device = device
    try:
        yield
    finally:
        _own.device = None


# ---- normalisation ----

def layer_norm(y: Any, x: Any, weight: Any = None, bias: Any = None, *, mean: Any = None, inverse: Any = None, eps: float = 1e-5,
               kind: str = "layer", math: Optional[Format] = None, format: Optional[Format] = None) -> None:
    """y = LayerNorm of the rows of x, or of kind "rms" RMSNorm; mean and inverse (a number a row) are what norm_backward needs."""
    s = _whole(x.shape)
    _run(ROWNORM, s, [_rows(x, s), _columns(weight, s), _columns(bias, s), _result(y, s), _scalars(mean, s), _scalars(inverse, s)],
         math, format, norm=NORMS[kind], eps=eps)


def rms_norm(y: Any, x: Any, weight: Any = None, *, inverse: Any = None, eps: float = 1e-5, math: Optional[Format] = None,
             format: Optional[Format] = None) -> None:
    """y = RMSNorm of the rows of x."""
    layer_norm(y, x, weight, inverse=inverse, eps=eps, kind="rms", math=math, format=format)


def norm_backward(dx: Any, dy: Any, x: Any, mean: Any, inverse: Any, weight: Any = None, *, kind: str = "layer",
                  math: Optional[Format] = None, format: Optional[Format] = None) -> None:
    """The gradient of x; mean is None for kind "rms". dx may be dy."""
    s = _whole(x.shape)
    _run(ROWNORM_BACKWARD, s, [_rows(dy, s), _rows(x, s), _scalars(mean, s), _scalars(inverse, s), _columns(weight, s), _result(dx, s)],
         math, format, norm=NORMS[kind])


def norm_gradients(dweight: Any, dbias: Any, dy: Any, x: Any, mean: Any, inverse: Any, *, kind: str = "layer",
                   math: Optional[Format] = None) -> None:
    """The gradients of weight and bias, each of which may be None: sums over rows in lanes (MPSIM_LANES_ALL)."""
    s = _whole(x.shape)
    _run(ROWNORM_GRADIENTS, s, [_rows(dy, s), _rows(x, s), _scalars(mean, s), _scalars(inverse, s), _columns(dweight, s), _columns(dbias, s)],
         math, None, norm=NORMS[kind])


class _Turned:
    """An array with its channels, dimension 1, behind the others."""

    __slots__ = ("shape", "lies", "_of")

    def __init__(self, x: Any) -> None:
        format, address, shape, strides = _lies(x)
        if len(shape) < 2:
            raise InputError(f"layer: expected (batch, channels, ...), found shape {tuple(shape)}")
        self._of, self.shape = x, (shape[0], *shape[2:], shape[1])
        self.lies = format, address, self.shape, (strides[0], *strides[2:], strides[1])


def _channels(x: Any) -> Any:
    return None if x is None else _Turned(x)


def batch_norm(y: Any, x: Any, weight: Any = None, bias: Any = None, *, mean: Any = None, inverse: Any = None, running_mean: Any = None,
               running_var: Any = None, eps: float = 1e-5, momentum: float = 0.1, math: Optional[Format] = None,
               format: Optional[Format] = None) -> None:
    """y = batch normalisation of x, (batch, channels, ...), by the statistics of x; running_* are updated, both or none."""
    t, u = _Turned(x), _Turned(y)
    s = _whole(t.shape)
    _run(BATCHNORM, s, [_rows(t, s), _columns(weight, s), _columns(bias, s), _result(u, s), *(
        _columns(z, s) for z in (mean, inverse, running_mean, running_var))], math, format, eps=eps, momentum=momentum)


def batch_norm_backward(dx: Any, dweight: Any, dbias: Any, dy: Any, x: Any, mean: Any, inverse: Any, weight: Any = None, *,
                        math: Optional[Format] = None, format: Optional[Format] = None) -> None:
    """The gradients of batch_norm; each of the three may be None."""
    t = _Turned(x)
    s = _whole(t.shape)
    _run(BATCHNORM_BACKWARD, s, [_rows(_Turned(dy), s), _rows(t, s), _columns(mean, s), _columns(inverse, s), _columns(weight, s),
                                 _result(_channels(dx), s), _columns(dweight, s), _columns(dbias, s)], math, format)


def batch_norm_inference(y: Any, x: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5,
                         math: Optional[Format] = None, format: Optional[Format] = None) -> None:
    """y = batch normalisation of x by running statistics."""
    t, u = _Turned(x), _Turned(y)
    s = _whole(t.shape)
    _run(BATCHNORM_INFERENCE, s, [_rows(t, s), *(_columns(z, s) for z in (running_mean, running_var, weight, bias)), _result(u, s)],
         math, format, eps=eps)


def _room(like: Any) -> Any:
    """A float32 array of that shape, of torch or NumPy."""
    if hasattr(like, "new_empty"):
        import torch

        return torch.empty(like.shape, dtype=torch.float32, device=like.device)
    import numpy as np

    return np.empty(like.shape, np.float32)


def _groups(x: Any, groups: int) -> Any:
    """(batch, channels, ...) as rows of groups: (batch, groups, the rest)."""
    if len(x.shape) < 2 or groups < 1 or x.shape[1] % groups:
        raise InputError(f"layer: expected (batch, channels, ...) with a multiple of {groups} channels, found shape {tuple(x.shape)}")
    return x.reshape(x.shape[0], groups, -1)


def _each(weight: Any, x: Any) -> Any:
    """A number a channel, for every element of (batch, channels, ...)."""
    return weight.reshape(-1, *(1,) * (len(x.shape) - 2))


def _stored(y: Any, h: Any, format: Optional[Format]) -> None:
    """y = h, rounded once."""
    s = _whole(h.shape)
    one = _VIEW_OF_ONE
    _run(MULTIPLY, s, [_rows(h, s), (0, addressof(one), *_ZEROS), _result(y, s)], None, format)


def group_norm_backward(dx: Any, dweight: Any, dbias: Any, dy: Any, x: Any, mean: Any, inverse: Any, groups: int, weight: Any = None, *,
                        math: Optional[Format] = None, format: Optional[Format] = None) -> None:
    """The gradients of group_norm; each of the three may be None. dweight and dbias: sums over images and pixels of dy * h and dy, in lanes
    (MPSIM_LANES_ALL), h = (x - mean) * inverse."""
    g = _room(x)
    if dx is not None:
        if weight is None:
            _stored(g, dy, math)
        else:
            multiply(g, dy, _each(weight, x), math=math)
        back = _room(x)
        norm_backward(_groups(back, groups), _groups(g, groups), _groups(x, groups), mean, inverse, math=math)
        _stored(dx, back, format)
    if dweight is not None:
        _normal(g, x, mean, inverse, groups, math)
        multiply(g, dy, g, math=math)
        column_sums(dweight, _Turned(g), math=math)
    if dbias is not None:
        column_sums(dbias, _Turned(dy), math=math)


def _normal(h: Any, x: Any, mean: Any, inverse: Any, groups: int, math: Optional[Format]) -> None:
    """h = (x - mean) * inverse."""
    rows, to = _groups(x, groups), _groups(h, groups)
    add(to, rows, -mean.reshape(*rows.shape[:2], 1), math=math)
    multiply(to, to, inverse.reshape(*rows.shape[:2], 1), math=math)


def group_norm(y: Any, x: Any, groups: int, weight: Any = None, bias: Any = None, *, mean: Any = None, inverse: Any = None, eps: float = 1e-5,
               math: Optional[Format] = None, format: Optional[Format] = None) -> None:
    """y = GroupNorm of x, (batch, channels, ...): LayerNorm of the channels of a group together, d * inverse; then * weight, then + bias of the
    channel, each rounded to `math`. mean and inverse: batch x groups. Sums go over channels, then pixels, in lanes (MPSIM_LANES_ROW)."""
    h = _room(x)
    layer_norm(_groups(h, groups), _groups(x, groups), mean=mean, inverse=inverse, eps=eps, math=math)
    if weight is not None:
        multiply(h, h, _each(weight, x), math=math)
    if bias is not None:
        add(h, h, _each(bias, x), math=math)
    _stored(y, h, format)


# ---- elements ----

def _elements(x: Any) -> Sequence[int]:
    return _whole(x.shape or (1,))


def activate(kind: str, y: Any, x: Any, value: Any = None, *, math: Optional[Format] = None, format: Optional[Format] = None) -> None:
    """y = a function of x, one of ACTIVATIONS; "swiglu": of gates x and values."""
    s = _elements(y)
    _run(ACTIVATE, s, [_rows(x, s), _rows(value, s), _result(y, s) if y.shape else _rows(y, s)], math, format, activation=ACTIVATIONS[kind])


def activate_backward(kind: str, dx: Any, dy: Any, x: Any, value: Any = None, dvalue: Any = None, *, math: Optional[Format] = None,
                      format: Optional[Format] = None) -> None:
    """The gradient of x. Of "relu", "sigmoid", "tanh" and "exp" x is the result y of the forward pass."""
    s = _elements(dx)
    _run(ACTIVATE_BACKWARD, s, [_rows(z, s) for z in (dy, x, value, dx, dvalue)], math, format, activation=ACTIVATIONS[kind])


def add(y: Any, a: Any, b: Any, *, math: Optional[Format] = None, format: Optional[Format] = None) -> None:
    """y = a + b, with one rounding unless `math` is given; a and b are repeated as NumPy does."""
    s = _elements(y)
    _run(ADD, s, [_rows(a, s), _rows(b, s), _rows(y, s)], math, format)


def multiply(y: Any, a: Any, b: Any, *, math: Optional[Format] = None, format: Optional[Format] = None) -> None:
    """y = a * b, as `add`."""
    s = _elements(y)
    _run(MULTIPLY, s, [_rows(a, s), _rows(b, s), _rows(y, s)], math, format)


def dropout(y: Any, x: Any, p: float, rng: CRng, *, math: Optional[Format] = None, format: Optional[Format] = None) -> None:
    """y = x / (1 - p) where the random word of the element stays, else 0; the same call takes dy to dx."""
    s = _elements(y)
    _run(DROPOUT, s, [_rows(x, s), _rows(y, s)], math, format, p=p, rng=(rng.seed, rng.stream, rng.index))


# ---- softmax, losses ----

def softmax(p: Any, s: Any, *, scale: float = 1.0, length: int = 0, mask: Any = None, log: bool = False, math: Optional[Format] = None,
            format: Optional[Format] = None) -> None:
    """P = softmax of the rows of scale * s, or its logarithm. length: queries of a matrix under a causal mask, 0 for none; mask:
    booleans, False where a key is not seen, repeated as NumPy does. A row that sees nothing is 0."""
    shape = _whole(s.shape)
    _run(LOG_SOFTMAX if log else SOFTMAX, shape, [_rows(s, shape), _mask(mask, shape), _result(p, shape)], math, format, scale=scale, length=length)


def softmax_backward(ds: Any, dp: Any, p: Any, *, scale: float = 1.0, length: int = 0, mask: Any = None, log: bool = False,
                     math: Optional[Format] = None, format: Optional[Format] = None) -> None:
    """The gradient of s, from P (or its logarithm) and the gradient of it. ds may be dp."""
    shape = _whole(p.shape)
    _run(LOG_SOFTMAX_BACKWARD if log else SOFTMAX_BACKWARD, shape, [_rows(dp, shape), _rows(p, shape), _mask(mask, shape), _result(ds, shape)],
         math, format, scale=scale, length=length)


def cross_entropy(x: Any, labels: Any, *, loss: Any = None, dx: Any = None, coefficient: float = 1.0, ignored: Optional[int] = None,
                  math: Optional[Format] = None, format: Optional[Format] = None) -> tuple[int, int]:
    """Losses of rows of logits, and their gradient times `coefficient`; each may be None. How many rows are correct, and how many count:
    those whose label is not `ignored`."""
    s = _whole(x.shape)
    address, keep = _indices(labels, s)
    _run(CROSS_ENTROPY, s, [_rows(x, s), _scalars(loss, s), _result(dx, s)], math, format, scale=coefficient, index=address,
         ignores=ignored is not None, ignored=ignored or 0)
    return _own.found[0], _own.found[1]


# ---- tables, sums ----

def embedding(y: Any, table: Any, index: Any, *, format: Optional[Format] = None) -> None:
    """y[r] = table[index[r]]."""
    s = _whole(y.shape if len(y.shape) > 1 else (1, *y.shape))
    address, keep = _indices(index, s)
    _run(EMBED, s, [_table(table, s), _rows(y, s)], None, format, entries=table.shape[0], index=address)


def embedding_backward(dtable: Any, dy: Any, index: Any, *, ignored: Optional[int] = None, added: bool = False,
                       math: Optional[Format] = None) -> None:
    """The gradient of the table: a chain over rows, ascending; with `added` it begins with what is there."""
    s = _whole(dy.shape if len(dy.shape) > 1 else (1, *dy.shape))
    address, keep = _indices(index, s)
    _run(EMBED_BACKWARD, s, [_rows(dy, s), _table(dtable, s)], math, None, entries=dtable.shape[0], index=address, added=int(added),
         ignores=ignored is not None, ignored=ignored or 0)


def column_sums(sums: Any, x: Any, *, math: Optional[Format] = None, format: Optional[Format] = None) -> None:
    """The sum over all rows of each column, in lanes (MPSIM_LANES_ALL)."""
    s = _whole(x.shape)
    _run(COLUMN_SUMS, s, [_rows(x, s), _columns(sums, s)], math, format)


def period_sums(sums: Any, x: Any, *, added: bool = False, math: Optional[Format] = None, format: Optional[Format] = None) -> None:
    """sums[t] = x[t] + x[t + rows of sums] + ..., ascending: the gradient of a matrix that was added to each group of rows of x."""
    s = _whole(x.shape)
    _run(PERIOD_SUMS, s, [_rows(x, s), _table(sums, s)], math, format, entries=sums.shape[0], added=int(added))


def mean(x: Any, counted: Optional[int] = None, *, math: Optional[Format] = None) -> float:
    """The mean of contiguous float32 numbers: their sum in lanes divided by `counted`, their number."""
    format, address, shape, strides = _lies(x)
    n = 1
    for size in shape:
        n *= size
    return float(lib.mpsim_mean(address_of(math) or None, address, n, n if counted is None else counted))
