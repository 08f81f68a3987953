"""Operations on arrays in the memory of a CUDA device, by libmpsim-cuda (gpu/include/mpsim/cuda.h): casts, recipes, products, sums and optimizers.

    device = Device.of(0)
    made = device.enter(view, entering)
    device.multiply(d, made, (other, bf16), "hopper-bf16-fp32")

`enter` and `multiply` take what those of `_product` take, with addresses of the device. An operation goes to the current stream of torch, with a
workspace of torch's allocator. Nothing here waits for the device.
"""
from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from ctypes import POINTER, addressof, c_double, c_int, c_size_t, c_uint64, c_void_p, create_string_buffer
from typing import Any, Callable, Iterator, Optional, Sequence

from . import _cuda, _product
from ._dot import model_of
from ._error import Error, InputError
from ._formats import Format, address_of
from ._library import COperand, CProduct, CRecipe, CRng, CStack, ENOMEM, ERANGE, check, lib, text
from ._product import Entering, Operand, Side, View

ALIGNMENT = 256  # MPSIM_CUDA_ALIGNMENT
LINE = 512
MISSING = "arrays on a device need libmpsim-cuda, which is not installed: MPSIM_CUDA=FILE names one"


class NoKernel(Error):
    """libmpsim-cuda has no kernel for these settings."""


class CCall(ctypes.Structure):
    _fields_ = [("stream", c_void_p), ("room", c_void_p), ("bytes", c_size_t), ("why", c_void_p), ("why_size", c_size_t)]


class COperandThere(ctypes.Structure):
    _fields_ = [("of", COperand), ("inverse", c_void_p)]


class CBlocksThere(ctypes.Structure):
    _fields_ = [(name, c_void_p) for name in ("codes", "values", "scale_codes", "scales", "inverses", "amax", "tensor_amax", "tensor_scale", "counts")]


class CParameter(ctypes.Structure):
    _fields_ = [(name, c_void_p) for name in ("param", "grad", "m", "v", "vmax", "kahan", "model", "remainder")] + [("n", c_uint64), ("rng", CRng)]


class COptimThere(ctypes.Structure):
    _fields_ = [(name, c_void_p) for name in ("optim", "grad", "model", "grad_scale")]


class CArray(ctypes.Structure):
    _fields_ = [("x", c_void_p), ("n", c_uint64), ("format", c_void_p)]


class CMatrix(ctypes.Structure):
    _fields_ = [("param", c_void_p), ("m", c_void_p), ("grad", c_void_p), ("rows", c_uint64), ("cols", c_uint64), ("grad_scale", c_double)]


# by their names in C, for the test that compares them with the headers
STRUCTURES = {"mpsim_cuda_array": CArray, "mpsim_cuda_matrix": CMatrix, "mpsim_cuda_parameter": CParameter, "mpsim_cuda_optim": COptimThere, "mpsim_cuda_call": CCall, "mpsim_cuda_operand": COperandThere, "mpsim_cuda_blocks": CBlocksThere}
_STACK, _CALL, _RECIPE, _HOW = POINTER(CStack), POINTER(CCall), POINTER(CRecipe), c_void_p
_OPERAND = POINTER(COperandThere)
PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "cast": (c_int, [_STACK, _STACK, c_void_p, c_void_p, c_void_p, _CALL]),
    "quantize_room": (c_size_t, [_RECIPE, c_size_t, c_size_t]),
    "quantize": (c_int, [_RECIPE, _STACK, c_void_p, c_void_p, POINTER(CBlocksThere), _CALL]),
    "enter_room": (c_size_t, [_STACK, _HOW]),
    "enter": (c_int, [_OPERAND, _STACK, _HOW, c_void_p, c_void_p, _CALL]),
    "gemm_room": (c_size_t, [POINTER(CProduct), _OPERAND, _OPERAND]),
    "gemm": (c_int, [POINTER(CProduct), _OPERAND, _OPERAND, _CALL]),
    "optimizer_room": (c_size_t, [c_void_p, POINTER(CParameter), c_size_t]),
    "optimizer": (c_int, [POINTER(COptimThere), c_uint64, POINTER(CParameter), c_size_t, _CALL]),
    "norm_room": (c_size_t, [c_size_t]),
    "norm": (c_int, [c_void_p, POINTER(CArray), c_size_t, _CALL]),
    "muon_room": (c_size_t, [c_void_p, POINTER(CMatrix)]),
    "muon": (c_int, [c_void_p, POINTER(CMatrix), _CALL]),
    "attention_forward_room": (c_size_t, [c_void_p] * 5),
    "attention_forward": (c_int, [c_void_p] * 7 + [_CALL]),
    "attention_backward_room": (c_size_t, [c_void_p] * 6),
    "attention_backward": (c_int, [c_void_p] * 11 + [_CALL]),
    "between_room": (c_size_t, [c_void_p]),
    "between": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, _CALL]),
}


@functools.lru_cache(maxsize=None)
def functions() -> dict[str, Any]:
    """The functions of the library by their names without mpsim_cuda_; those that it lacks are missing."""
    library = _cuda.library()
    if library is None:
        raise Error(MISSING)
    found = {}
    for name, (restype, argtypes) in PROTOTYPES.items():
        function = getattr(library, "mpsim_cuda_" + name, None)
        if function is not None:
            function.restype, function.argtypes = restype, argtypes
            found[name] = function
    return found


def function(name: str) -> Any:
    found = functions().get(name)
    if found is None:
        raise Error(f"this libmpsim-cuda has no mpsim_cuda_{name}: a newer one is needed")
    return found


class Counts:
    """What roundings did, counted on a device: as Counts of `_product`. To read them waits for the device."""

    __slots__ = ("memory", "at")

    def __init__(self, memory: Any) -> None:
        self.memory, self.at = memory, memory.data_ptr()

    def add(self, *numbers: int) -> None:
        self.memory += self.memory.new_tensor(numbers)

    @staticmethod
    def read(several: Sequence[Any]) -> list[list[int]]:
        import torch

        made: list[list[int]] = torch.stack([c.memory for c in several]).tolist() if several else []
        return made

    @staticmethod
    def clear(several: Sequence[Any]) -> None:
        import torch

        if several:
            torch._foreach_zero_([c.memory for c in several])


class There(Operand):
    """An operand in the workspace `memory` of a device. amax: there, as a tensor of one number; None: it was not asked for."""

    __slots__ = ("there", "memory")

    def __init__(self) -> None:
        self.there = COperandThere()
        self.c = self.there.of
        self.at = addressof(self.there)
        self.amax: Any = None
        self.counts: Any = None
        self.view: Any = None
        self.numbers: Any = None
        self._of: Any = None
        self.memory: Any = None

    def t(self) -> There:
        turned = There()
        check(lib.mpsim_operand_turn(turned.at, self.at), "product: an operand with blocks cannot be turned")
        turned.there.inverse = self.there.inverse
        turned.amax, turned.counts, turned.view, turned._of, turned.memory = self.amax, self.counts, self.view, self, self.memory
        return turned

    def __del__(self) -> None:
        pass


@contextlib.contextmanager
def _in_memory(counts: Optional[Counts]) -> Iterator[Any]:
    """Counts of an operation in memory, which are added to a device's."""
    if counts is None:
        yield None
        return
    here = _product.Counts()
    yield here
    counts.add(*here.read([here])[0])


class _Own(threading.local):
    """Structures that a thread uses again."""

    def __init__(self) -> None:
        self.product, self.a, self.b, self.d, self.x = CProduct(), COperandThere(), COperandThere(), CStack(), CStack()
        self.d_at, self.x_at = addressof(self.d), addressof(self.x)
        self.why = create_string_buffer(LINE)
        self.call = CCall(None, None, 0, addressof(self.why), LINE)


_own = _Own()


class Device:
    """A CUDA device.

    index: its number. there: whether a tensor is on it. stream: the stream that operations go to. empty: memory of so many bytes, as a
    tensor. The last three are torch's; tests put a CPU in their place.
    """

    def __init__(self, index: int, there: Callable[[Any], bool], stream: Callable[[], int], empty: Callable[[int], Any]) -> None:
        self.index, self.there, self.stream, self.empty = index, there, stream, empty

    @staticmethod
    def of(index: int) -> Device:
        """A device of torch's."""
        return _of_torch(index)

    # ---- calls ----

    def room(self, bytes: int) -> tuple[int, Any]:
        """Memory of the device, aligned, and what keeps it."""
        if not bytes:
            return 0, None
        memory = self.empty(bytes + ALIGNMENT)
        at = memory.data_ptr()
        return at + -at % ALIGNMENT, memory

    def call(self, bytes: int = 0) -> tuple[CCall, Any]:
        """The structure of a call, with a workspace, and what keeps that."""
        call = _own.call
        call.stream = self.stream()
        call.room, memory = self.room(bytes)
        call.bytes = bytes
        _own.why[0] = b"\0"
        return call, memory

    def done(self, status: int, what: str) -> None:
        if status:
            why = _own.why.value.decode(errors="replace")
            if status == ENOMEM:
                raise MemoryError(f"{what}: {why}")
            raise (InputError if status in (1, 2, 3) else Error)(f"{what}: {why or text(lib.mpsim_status_string(status))}")

    def counts(self) -> Counts:
        return Counts(self.empty(32).zero_().view(_int64()))

    # ---- casts ----

    def cast(self, y: View, x: View, plan: Any, rng: Optional[CRng] = None, counts: Optional[Counts] = None) -> None:
        """y = x rounded as a plan of `_cast` has it: codes, or numbers where y's format has them all."""
        from ._statistics import CCast

        own = _own
        call, _ = self.call()
        to = CCast(addressof(plan.format.c), plan.rounding)
        y.put(own.d, own.d_at)
        x.put(own.x, own.x_at)
        self.done(function("cast")(own.d, own.x, addressof(to), None if rng is None else addressof(rng), None if counts is None else counts.at, call),
                  f"cast to {plan.format}")

    # ---- recipes ----

    def quantize(self, recipe: CRecipe, x: View, rows: int, cols: int, given: Optional[int], rng: Optional[CRng], out: CBlocksThere, what: str) -> None:
        """As mpsim_block_quantize; given: where the number is."""
        own = _own
        x.put(own.x, own.x_at)
        call, _ = self.call(function("quantize_room")(recipe, rows, cols))
        self.done(function("quantize")(recipe, own.x, given, None if rng is None else addressof(rng), out, call), what)

    # ---- between products ----

    def between(self, layer: int, arrays: int, n: int, what: str, counts: bool = False) -> tuple[int, int]:
        """The operation whose structures are there, as mpsim_between_run. counts: what that finds is read, which waits."""
        found = self.empty(16).zero_().view(_int64()) if counts else None
        call, _ = self.call(function("between_room")(layer))
        self.done(function("between")(layer, arrays, n, None if found is None else found.data_ptr(), call), what)
        return tuple(found.tolist()) if found is not None else (0, 0)

    # ---- attention ----

    def attention(self, direction: str, read: Sequence[Any], arrays: Sequence[int]) -> None:
        """A head, as mpsim_attention_forward or _backward. read: what the size of the workspace is found from, too."""
        call, _ = self.call(function(f"attention_{direction}_room")(*read))
        status = function(f"attention_{direction}")(*read, *arrays, call)
        if status == ERANGE:
            raise NoKernel(_own.why.value.decode(errors="replace"))
        self.done(status, "attention")

    # ---- optimizers ----

    def optimizer(self, optim: COptimThere, step: int, parameters: Sequence[CParameter], what: str) -> None:
        """A step of parameters, as mpsim_optim_step."""
        n, several = len(parameters), (CParameter * len(parameters))(*parameters)
        call, _ = self.call(function("optimizer_room")(optim.optim, several, n))
        self.done(function("optimizer")(optim, step, several, n, call), what)

    def norms(self, several: Sequence[tuple[Any, Optional[Format]]]) -> Any:
        """The norm of each float32 tensor in its format, or in binary32, as mpsim_norm: a tensor of the device."""
        n = len(several)
        arrays = (CArray * n)(*(CArray(x.data_ptr(), x.numel(), address_of(format)) for x, format in several))
        made = self.empty(4 * n).view(_float32())
        call, _ = self.call(function("norm_room")(n))
        self.done(function("norm")(made.data_ptr(), arrays, n, call), "norm")
        return made

    def muon(self, muon: int, matrix: CMatrix, what: str) -> None:
        """A step of a matrix by the mpsim_muon that is there, as mpsim_update_run."""
        call, _ = self.call(function("muon_room")(muon, matrix))
        self.done(function("muon")(muon, matrix, call), what)

    # ---- products ----

    def enter(self, view: View, entering: Entering, stats: Any = None, amax: bool = True) -> Operand:
        """As `_product.enter`; amax stays on the device."""
        if not self.there(view.keep):
            with _in_memory(stats) as here:
                return _product.enter(view, entering, here, amax)
        own = _own
        made = There()
        made.view, made.counts = (view, entering), stats
        view.put(own.x, own.x_at)
        call, made.memory = self.call(function("enter_room")(own.x, entering.at))
        if amax and entering.recipe is not None:
            made.amax = self.empty(4).zero_().view(_float32())
        status = function("enter")(made.there, own.x, entering.at, None if made.amax is None else made.amax.data_ptr(), None if stats is None else stats.at,
                                   call)
        if status:
            self.done(status, f"enter: {view!r}")
        return made

    def _side(self, side: Side, own: COperandThere) -> COperandThere:
        if isinstance(side, There):
            return side.there
        if isinstance(side, Operand):
            raise InputError("product: expected both operands on a device, found one in memory")
        _product.read_in_place(side[0], side[1], own.of)
        return own

    def multiply(self, d: View, a: Side, b: Side, model: str, bias: Optional[View] = None, factor: float = 1.0, add: Optional[View] = None,
                 rng: Optional[CRng] = None, counts: Any = None, *, format: Optional[Format] = None, start: Optional[View] = None,
                 add_factor: float = 1.0, depth: int = 0) -> None:
        """As `_product.multiply`; counts: those of `counts`."""
        if not self.there(d.keep):
            with _in_memory(counts) as here:
                _product.multiply(d, a, b, model, bias, factor, add, rng, here, format=format, start=start, add_factor=add_factor, depth=depth)
            return
        m = model_of(model)
        if m[2] and rng is None:
            raise InputError(f"model '{model}' rounds stochastically: expected rng=")
        own = _own
        left, right = self._side(a, own.a), self._side(b, own.b)
        _product.PRODUCT.pack_into(own.product, 0, addressof(m[0]), 0, 0, d.put(own.d, own.d_at), address_of(format), factor,
                                   0 if start is None else start.at(), 0 if bias is None else bias.at(), 0 if add is None else add.at(), add_factor,
                                   depth, 0 if rng is None else addressof(rng), 0 if counts is None else counts.at)
        call, _ = self.call(function("gemm_room")(own.product, left, right))
        status = function("gemm")(own.product, left, right, call)
        if status:
            self.done(status, f"multiply to {d!r} under model '{model}'")


def flat(x: Any) -> View:
    """A contiguous tensor as one row."""
    n = x.numel()
    return View(x.data_ptr(), _product.format_of(x.dtype), (1, n), (n, 1), x)


def _int64() -> Any:
    import torch

    return torch.int64


def _float32() -> Any:
    import torch

    return torch.float32


@functools.lru_cache(maxsize=None)
def _of_torch(index: int) -> Device:
    import torch

    functions()
    device, cuda, uint8 = torch.device("cuda", index), torch.cuda, torch.uint8

    def stream() -> int:
        if cuda.current_device() != index:
            raise InputError(f"expected tensors on the current device, cuda:{cuda.current_device()}, found some on cuda:{index}: torch.cuda.set_device({index})")
        return int(cuda.current_stream(index).cuda_stream)
    return Device(index, lambda t: bool(t.is_cuda), stream, lambda n: torch.empty(n, dtype=uint8, device=device))
