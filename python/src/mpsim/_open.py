"""Tensors of files, read when they are asked for: mpsim.open, over libmpsim-trace (lib/include/mpsim/trace.h).

The library is loaded by the first file that is opened: it brings those that unpack files.
"""
from __future__ import annotations

import ctypes
import functools
import math
import os
import threading
import weakref
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

import numpy as np

from ._error import Error, FileError, InputError
from ._formats import Format, find
from ._library import EINVAL, ENOMEM, ENOTFOUND, INSTALLED, CFormat, text
from ._options import PathLike, options_of, path_of

LIBRARY = os.path.join(INSTALLED, "lib", "libmpsim-trace.so.0")
EDATA, EIO = 6, 7
LINE = 2048
ROW = 1 << 14  # elements that are read whole and indexed in memory rather than piece by piece


class COption(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class CTensor(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("kind", c_char_p), ("fqn", c_char_p), ("dtype", c_char_p),
                ("format", POINTER(CFormat)), ("element", c_char_p), ("code_bytes", c_size_t),
                ("shape", POINTER(c_uint64)), ("dimensions", c_size_t), ("count", c_uint64), ("column_major", c_int),
                ("step", c_int64), ("rank", c_int64), ("file", c_char_p), ("offset", c_uint64), ("layout", c_char_p),
                ("quantised", c_char_p), ("in_order", c_int)]


# by their names in C, for the test that compares them with the header
STRUCTURES = {"mpsim_option": COption, "mpsim_tensor": CTensor}


@functools.lru_cache(maxsize=None)
def library() -> Any:
    try:
        loaded = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise ImportError(f"mpsim: its library of files does not load: {error}") from None
    read = (c_int, [c_void_p, c_size_t, c_uint64, c_size_t, c_void_p, c_char_p, c_size_t])
    prototypes: dict[str, tuple[Any, list[Any]]] = {
        "open": (c_int, [POINTER(c_void_p), POINTER(c_char_p), c_size_t, POINTER(COption), c_size_t, c_char_p, c_size_t]),
        "close": (None, [c_void_p]), "count": (c_size_t, [c_void_p]), "tensor": (POINTER(CTensor), [c_void_p, c_size_t]),
        "note": (c_char_p, [c_void_p, c_size_t]), "f64": read, "f32": read, "codes": read}
    for name, (restype, argtypes) in prototypes.items():
        function = getattr(loaded, "mpsim_reader_" + name)
        function.restype, function.argtypes = restype, argtypes
    return loaded


def _check(status: int, line: Any) -> None:
    if status == 0:
        return
    said = line.value.decode(errors="replace")
    if status == ENOMEM:
        raise MemoryError(said)
    raise (InputError if status in (EINVAL, ENOTFOUND, EDATA) else FileError if status == EIO else Error)(said)


class _Reader:
    """A reader of the library, for one thread at a time."""

    def __init__(self, paths: Sequence[str], words: Sequence[str]) -> None:
        names = (c_char_p * len(paths))(*map(os.fsencode, paths))
        options = (COption * len(words))()
        for option, word in zip(options, words):
            name, _, value = word[2:].partition("=")
            option.name, option.value = name.encode(), os.fsencode(value) if "=" in word else b"1"
        line, reader = ctypes.create_string_buffer(LINE), c_void_p()
        _check(library().mpsim_reader_open(byref(reader), names, len(paths), options, len(words), line, LINE), line)
        self.lock = threading.Lock()
        self.reader: Any = reader
        self.close = weakref.finalize(self, library().mpsim_reader_close, reader)

    def read(self, what: str, i: int, first: int, out: Any) -> None:
        """Elements of tensor i from `first` on, as many as the contiguous array has."""
        line = ctypes.create_string_buffer(LINE)
        with self.lock:
            if not self.close.alive:
                raise InputError("the file is closed: its tensors can be read no more")
            function = getattr(library(), "mpsim_reader_" + what)
            status = function(self.reader, i, first, out.size, out.ctypes.data or None, line, LINE)
        _check(status, line)


class Tensor:
    """A tensor of a file, of `mpsim.open`, whose elements are read when they are asked for.

    t[...], np.asarray(t), t.numpy(): an array of `dtype` and `shape`. t[2], t[:10], t[3, ::2] read what they need: rows
    of many elements that are left out are not read.
    t.codes(): the elements as they are stored, as unsigned integers of their width (integers and booleans as they are).

    name, kind, fqn: its key, what it is ("wgrad"; None if that is not known), and the parameter or module.
    step, rank: of the training step and the process that it was saved in; None where that is not known.
    dtype: of the array, by NumPy: float64, float32, float16 and integers as they are; other formats as `format` says,
        in float32, or float64 where that has not all their numbers.
    stored: the dtype as the file spells it; format: of mpsim.formats, None for what is no floating-point number.
    shape, ndim, size, nbytes: of the array.
    file, layout: where it lies, and in which layout; quantised: of what codes and scales it is made, or None.
    """

    __slots__ = ("_reader", "_i", "name", "kind", "fqn", "step", "rank", "dtype", "stored", "format", "shape", "file",
                 "layout", "quantised", "_column_major", "_code_dtype")

    def __init__(self, reader: _Reader, i: int, c: CTensor) -> None:
        self._reader, self._i = reader, i
        self.name: str = text(c.name)
        self.kind: Optional[str] = text(c.kind) or None
        self.fqn: str = text(c.fqn)
        self.step: Optional[int] = c.step if c.step >= 0 else None
        self.rank: Optional[int] = c.rank if c.rank >= 0 else None
        self.stored: str = text(c.dtype)
        self.shape: tuple[int, ...] = tuple(c.shape[k] for k in range(c.dimensions))
        self.file: str = os.fsdecode(c.file)
        self.layout: str = text(c.layout)
        self.quantised: Optional[str] = text(c.quantised) or None
        self._column_major = bool(c.column_major)
        element = text(c.element)
        self.format: Optional[Format] = find(element) if c.format else None
        self._code_dtype: Any = None
        self.dtype: Any = None
        if self.format is not None:
            self._code_dtype = self.format.code_dtype
            self.dtype = np.dtype(np.float16) if self.format.name == "fp16" else self.format.value_dtype
        elif element:
            self.dtype = self._code_dtype = np.dtype(element)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * int(self._dtype().itemsize)

    def _dtype(self) -> Any:
        if self.dtype is None:
            raise InputError(f"{self.file}: elements of dtype {self.stored}, of tensor '{self.name}', are not read")
        return self.dtype

    def _flat(self, first: int, n: int, codes: bool) -> Any:
        """Elements in the order in which they are stored."""
        name = self.format.name if self.format is not None and not codes else ""
        if name and name != "fp16":
            what = {8: "f64", 4: "f32"}[self.dtype.itemsize]
            out = np.empty(n, self.dtype)
        else:
            what, out = "codes", np.empty(n, self._dtype() if name else self._code_dtype if codes else self._dtype())
        self._reader.read(what, self._i, first, out)
        return out

    def _block(self, shape: tuple[int, ...], index: list[Any], first: int, codes: bool) -> Any:
        """What an index, an integer or a slice for each dimension, selects of a block of rows that lie behind each other."""
        while index and isinstance(index[0], int):
            first += index[0] * math.prod(shape[1:])
            shape, index = shape[1:], index[1:]
        if not index:
            return self._flat(first, 1, codes)[0]
        picked = range(*index[0].indices(shape[0]))
        row = math.prod(shape[1:])
        if row > ROW and any(each != slice(None) for each in index[1:]):  # of each row a part
            parts = [self._block(shape[1:], index[1:], first + r * row, codes) for r in picked]
            if parts:
                return np.stack(parts)
        low, high = (min(picked[0], picked[-1]), max(picked[0], picked[-1]) + 1) if picked else (0, 0)
        if row > ROW and abs(picked.step) > 1 and len(picked) > 1:  # and whole rows between them are left out
            return np.stack([self._block(shape[1:], index[1:], first + r * row, codes) for r in picked])
        whole = self._flat(first + low * row, (high - low) * row, codes).reshape(high - low, *shape[1:])
        back = whole[[r - low for r in picked]] if picked.step < 0 else whole[::picked.step]
        return back[(slice(None), *index[1:])]

    def _get(self, index: Any, codes: bool) -> Any:
        given = index if isinstance(index, tuple) else (index,)
        plain = all(isinstance(each, (int, np.integer, slice)) and not isinstance(each, bool) or each is Ellipsis for each in given)
        if not plain or sum(each is Ellipsis for each in given) > 1:  # NumPy judges, and has the rest of its rules
            return self._get((), codes)[index]
        given = tuple(int(each) if isinstance(each, np.integer) else each for each in given)
        at = next((k for k, each in enumerate(given) if each is Ellipsis), len(given))
        missing = self.ndim - sum(each is not Ellipsis for each in given)
        if missing < 0:
            raise IndexError(f"too many indices for tensor '{self.name}' of {self.ndim} dimensions")
        full = [*given[:at], *[slice(None)] * missing, *given[at + 1:]]
        for k, each in enumerate(full):
            if isinstance(each, int):
                if not -self.shape[k] <= each < self.shape[k]:
                    raise IndexError(f"index {each} is out of bounds for dimension {k} of size {self.shape[k]}")
                full[k] = each % self.shape[k]
        if not self._column_major:
            return self._block(self.shape, full, 0, codes)
        return self._block(self.shape[::-1], full[::-1], 0, codes).T

    def __getitem__(self, index: Any) -> Any:
        return self._get(index, False)

    def numpy(self) -> np.ndarray[Any, Any]:
        """All elements, as a NumPy array."""
        return np.asarray(self._get((slice(None),) * self.ndim, False))

    def codes(self) -> np.ndarray[Any, Any]:
        """All elements as they are stored, as a NumPy array of codes; of integers and booleans the array itself."""
        return np.asarray(self._get((slice(None),) * self.ndim, True))

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("a tensor of a file is read into new memory: copy=False cannot be had")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"tensor '{self.name}' has no dimensions, and no length")
        return self.shape[0]

    def __repr__(self) -> str:
        kind = f" {self.kind}" if self.kind and not self.name.startswith(self.kind + ":") else ""
        step = "" if self.step is None else f", step {self.step}"
        return f"<mpsim.Tensor '{self.name}'{kind}: {self.stored} {list(self.shape)}{step}>"


class File(Mapping[str, Tensor]):
    """The tensors of files, by their names; of `mpsim.open`.

    tensors: all of them, in the order of files and of their places there.
    notes: lines on what a reader of the record should know: files that were passed over, names that clash.

    A key is the name of a tensor; where several have that name (the steps of a run), FILE:NAME. `select` gives those of
    one step, say, by their names. A context manager: `close` ends reading, as the end of all that refers to the file does.
    """

    def __init__(self, reader: _Reader, tensors: Sequence[Tensor], notes: Sequence[str]) -> None:
        self._reader = reader
        self.tensors: tuple[Tensor, ...] = tuple(tensors)
        self.notes: tuple[str, ...] = tuple(notes)
        times: dict[str, int] = {}
        for t in tensors:
            times[t.name] = times.get(t.name, 0) + 1
        self._by_key = {t.name if times[t.name] == 1 else f"{t.file}:{t.name}": t for t in tensors}

    def __getitem__(self, key: str) -> Tensor:
        return self._by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    @property
    def steps(self) -> tuple[int, ...]:
        """The training steps that there are, in ascending order."""
        return tuple(sorted({t.step for t in self.tensors if t.step is not None}))

    def select(self, **what: Any) -> File:
        """The tensors whose attributes are these, as step=100, kind="wgrad", rank=0; of the same reader."""
        unknown = [name for name in what if name not in ("name", "kind", "fqn", "step", "rank", "stored", "file", "layout")]
        if unknown:
            raise InputError(f"select: expected name, kind, fqn, step, rank, stored, file or layout, found {unknown[0]!r}")
        for name, value in what.items():
            if value is not None and not isinstance(value, (str, int, np.integer)):
                raise InputError(f"select: {name}: expected a name or a number, found {type(value).__name__}")
        return File(self._reader, [t for t in self.tensors if all(getattr(t, k) == v for k, v in what.items())], self.notes)

    def close(self) -> None:
        """End reading; arrays that were read stay."""
        with self._reader.lock:
            self._reader.close()

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        files = sorted({t.file for t in self.tensors})
        where = "nothing" if not files else files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
        return f"<mpsim.File of {where}: {len(self.tensors)} tensors>"


def open(paths: Union[PathLike, Sequence[PathLike]], **options: Any) -> File:
    """The tensors of files as a mapping of lazy ones: safetensors, PyTorch, npy, npz, GGUF, Flax, ONNX, packed or not.

    paths: a path or a list of paths, of files or directories (checkpoints in pieces, runs of many steps).
    options: those of the program that select tensors and say how files are read, with _ for -: kind=["wgrad"],
        match="*attn*", map="grad/(.*)=wgrad:\\\\1", dtype="bf16", shape="2,3", stored="parts", keep_going=True.

    What is read is checked as the program checks it; pickles are data, and nothing in them is called.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "step_7.npy")
    >>> np.save(path, np.arange(6, dtype=np.float32).reshape(2, 3))
    >>> f = mpsim.open(path)
    >>> t = f[""]  # an npy file names nothing
    >>> t.shape, t.dtype, t.step, t[1, ::2].tolist()
    ((2, 3), dtype('float32'), 7, [3.0, 5.0])
    >>> f.close()
    """
    several: Any = paths if isinstance(paths, (list, tuple)) else [paths]
    given = [path_of(each) for each in several]
    reader = _Reader(given, options_of(options))
    tensors = [Tensor(reader, i, library().mpsim_reader_tensor(reader.reader, i).contents)
               for i in range(library().mpsim_reader_count(reader.reader))]
    notes: list[str] = []
    while library().mpsim_reader_note(reader.reader, len(notes)) is not None:
        notes.append(text(library().mpsim_reader_note(reader.reader, len(notes))))
    return File(reader, tensors, notes)
