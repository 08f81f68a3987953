"""Where the tensors of an emulation lie, and which library computes there: memory (libmpsim), or a CUDA device (libmpsim-cuda).

A home has: kinds, the types of torch's devices whose tensors are taken; enter, multiply, convolve and round, of which the device's give the bits of those of
memory; counts, what roundings are counted in, with read and clear.
"""
from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Optional

import torch

from .. import _attention as tiles, _layer as layer
from .._cast import plan_of, round as round_array
from .._convolution import backward_input, backward_weight, forward
from .._device import Counts as CountsThere, Device, NoKernel, flat
from .._error import InputError
from .._formats import Format
from .._product import Counts, enter, multiply
from .._windows import convolve
from ..record import is_capturing
from ._products import DTYPES

CONVOLUTIONS: dict[str, Any] = {"forward": forward, "input": backward_input, "weight": backward_weight}
TILES_IN_MEMORY = "tiles of attention are computed in memory, from copies: libmpsim-cuda has no kernels for masks and some formats"
PLAYED: Optional[Device] = None  # tests: this device is played by the CPU


class Memory:
    """Tensors of the CPU."""

    kinds = ("cpu",)
    device: Optional[Device] = None
    enter, multiply, round = staticmethod(enter), staticmethod(multiply), staticmethod(round_array)
    counts, read, clear = Counts, staticmethod(Counts.read), staticmethod(Counts.clear)
    without_autocast = contextlib.nullcontext
    layer, tiles = layer, tiles

    @staticmethod
    def convolve(which: str, d: Any, a: Any, b: Any, model: str, geometry: Any, **terms: Any) -> None:
        """which: "forward" of (x, w), "input" of (dy, w) or "weight" of (dy, x)."""
        CONVOLUTIONS[which](d, a, b, model, geometry, **terms)

    @staticmethod
    def flags() -> list[Callable[[], None]]:
        return []


class Layers:
    """The functions of `_layer` on arrays of a device."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        function = getattr(layer, name)

        def run(*args: Any, **how: Any) -> Any:
            there = [self._device.there(x) for x in (*args, *how.values()) if isinstance(x, torch.Tensor)]
            if not any(there):
                return function(*args, **how)
            if not all(there):
                raise InputError(f"{name}: expected all arrays on the device, found some in memory")
            with layer.on(self._device):
                return function(*args, **how)

        setattr(self, name, run)
        return run

    @staticmethod
    def mean(x: Any, counted: Optional[int] = None) -> float:
        """As `_layer.mean`, of numbers that are copied to memory."""
        return layer.mean(x.cpu(), counted)


class Tiles:
    """The functions of `_attention` on a device; on copies in memory where there are no kernels, which `note` is told."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.note: Callable[[str], None] = lambda text: None

    def forward(self, y: Any, lse: Any, q: Any, k: Any, v: Any, how: Any, formats: Any, mask: Any = None) -> None:
        if not self._there(tiles.forward, (y, lse), (q, k, v), formats, mask, how, formats):
            self._run(tiles.forward, 2, (y, lse, q, k, v, how, formats, mask), {})

    def backward(self, dq: Any, dk: Any, dv: Any, dy: Any, q: Any, k: Any, v: Any, y: Any, lse: Any, how: Any, formats: Any, *, gradient: Any,
                 mask: Any = None, **more: Any) -> None:
        if not self._there(tiles.backward, (dq, dk, dv), (dy, q, k, v), (gradient, *formats), mask, y, lse, how, formats, gradient=gradient, **more):
            self._run(tiles.backward, 3, (dq, dk, dv, dy, q, k, v, y, lse, how, formats), {"gradient": gradient, "mask": mask, **more})

    def _there(self, function: Any, results: Any, read: Any, formats: Any, mask: Any, *args: Any, **how: Any) -> bool:
        """Whether kernels have computed it."""
        dtypes = [DTYPES.get(f.name) for f in formats]
        if mask is not None or None in dtypes or not all(self._device.there(x) for x in (*results, *read)):
            self.note(TILES_IN_MEMORY)
            return False
        try:
            function(*results, *(x.to(dtype).contiguous() for x, dtype in zip(read, dtypes)), *args, device=self._device, **how)
        except NoKernel:
            self.note(TILES_IN_MEMORY)
            return False
        return True

    @staticmethod
    def _run(function: Any, results: int, args: Any, how: Any) -> None:
        here = [x.to("cpu", copy=True) if isinstance(x, torch.Tensor) else x for x in args]
        function(*here, **{name: x.cpu() if isinstance(x, torch.Tensor) else x for name, x in how.items()})
        for to, made in zip(args[:results], here):
            to.copy_(made)


def uncaptured(device: Device) -> Device:
    """The device, of which a stream that captures a CUDA graph is an error."""
    def stream() -> int:
        if is_capturing():
            raise InputError("emulate: a CUDA graph captures this step, and its replays would repeat this step's random words, rates, scales and number: "
                             "run it without the graph")
        return device.stream()
    return Device(device.index, device.there, stream, device.empty)


class OnDevice:
    """Tensors of a CUDA device; those of the CPU beside them are computed in memory."""

    def __init__(self, device: Device, kinds: tuple[str, ...] = ("cpu", "cuda")) -> None:
        self.device, self.kinds = uncaptured(device), kinds
        device = self.device
        self.enter, self.multiply, self.counts = device.enter, device.multiply, device.counts
        self.convolve = functools.partial(convolve, device)
        self.layer, self.tiles = Layers(device), Tiles(device)
        self.read, self.clear = CountsThere.read, CountsThere.clear

    def without_autocast(self) -> Any:
        """Backward passes run without autocast, as torch has it."""
        return torch.autocast("cuda", enabled=False) if "cuda" in self.kinds else contextlib.nullcontext()

    def flags(self) -> list[Callable[[], None]]:
        """scaled_dot_product_attention arrives as one operator, the same for all sizes, and batch normalisation and recurrent layers as they
        arrive on a CPU, not as operators of cuDNN; what is returned undoes that."""
        if "cuda" not in self.kinds:
            return []
        cudnn = torch.backends.cudnn
        undo: list[Callable[[], None]] = [functools.partial(setattr, cudnn, "enabled", cudnn.enabled)]
        cudnn.enabled = False
        for name in ("flash", "cudnn"):
            enabled, enable = (getattr(torch.backends.cuda, form.format(name), None) for form in ("{}_sdp_enabled", "enable_{}_sdp"))
            if enabled is not None and enable is not None:
                undo.append(functools.partial(enable, enabled()))
                enable(False)
        return undo

    def round(self, x: Any, format: Format, mode: str = "nearest-even") -> Any:
        """As `mpsim.round` of float32 numbers."""
        if not self.device.there(x):
            return round_array(x, format, mode)
        dtype = DTYPES.get(format.name)
        if dtype is not None and mode == "nearest-even":
            return x.to(dtype).float()
        x = x.contiguous()
        y = torch.empty_like(x)
        self.device.cast(flat(y), flat(x), plan_of(format, mode, 1.0, None, None, False, False, "binary32"))
        return y


MEMORY = Memory()


def home_of(model: Any) -> Any:
    """Where the parameters of a model lie: in memory, or all on one CUDA device."""
    if PLAYED is not None:
        return OnDevice(PLAYED, ("cpu",))
    found: dict[Any, str] = {}
    for name, p in model.named_parameters():
        found.setdefault(p.device, name)
    there = [device for device in found if device.type != "cpu"]
    if not there:
        return MEMORY
    device = there[0]
    if device.type != "cuda" or torch.version.hip:
        raise InputError(f"emulate: parameter '{found[device]}' is on the device '{device}', expected memory or a CUDA device")
    if len(found) > 1:
        other = next(each for each in found if each != device)
        raise InputError(f"emulate: parameter '{found[other]}' is on '{other}' and '{found[device]}' on '{device}', expected all on one device")
    return OnDevice(Device.of(device.index or 0))
