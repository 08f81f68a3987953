"""Gradients and optimizer steps of parameters on a CUDA device, with the bits of mpsim/update.h: elementwise operations by torch in binary32, whose
results IEEE 754 defines, steps by libmpsim-cuda.
"""
from __future__ import annotations

import ctypes
import math
from ctypes import POINTER, byref, c_double, c_float, c_int, c_size_t, c_void_p
from typing import Any, Sequence

import numpy
import torch

from .._cast import plan_of, round as round_array
from .._device import CMatrix, COptimThere, CParameter, flat
from .._formats import Format, address_of, find
from .._library import CRng, lib, text
from .._product import View
from ._products import DTYPES

NONE, NORM = -1, -2  # MPSIM_CAUSE_*
CHECK_NORM = 1  # MPSIM_CHECK_NORM
RECIPROCAL, DIVIDE, ROUNDED = range(3)  # mpsim_unscale_rule
NOT_COUNTED = "updates that are lost are not counted on a device"
IN_MEMORY = "{} steps parameters in memory, from copies: libmpsim-cuda has no kernel for it"
BINARY32 = find("binary32")
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
_FORMAT = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_size_t)
_UNSCALE = ctypes.CFUNCTYPE(c_int, c_void_p, c_int, c_double)
_NORMS = ctypes.CFUNCTYPE(c_int, c_void_p, c_int, POINTER(c_float))
_SCALE = ctypes.CFUNCTYPE(c_int, c_void_p, c_float)


class CGradients(ctypes.Structure):
    _fields_ = [("context", c_void_p), ("n", c_size_t), ("norms", POINTER(c_float)), ("format", _FORMAT), ("unscale", _UNSCALE), ("norm", _NORMS),
                ("scale", _SCALE)]


STRUCTURES = {"mpsim_gradients": CGradients}
for _name, _restype, _argtypes in (("norm_overflows", c_int, [POINTER(c_float), c_size_t]),
                                   ("gradients_ready", c_int, [c_void_p, POINTER(CGradients), c_double, c_double, c_double, c_void_p])):
    _function = getattr(lib, "mpsim_" + _name)
    _function.restype, _function.argtypes = _restype, _argtypes


class Gradients:
    """Those of a step. flat: each as one array of float32 on the device, which is written; formats: that the optimizer gets them in."""

    def __init__(self, context: Any, flat: Sequence[Any], formats: Sequence[Any]) -> None:
        self.context, self.home, self.flat, self.c_formats = context, context.home, flat, formats
        self.formats = [find(text(f.name)) for f in formats]

    def _rounded(self, x: Any, format: Format) -> None:
        if format is not BINARY32:
            x.copy_(self.home.round(x, format))

    def _scaled(self, factor: float, divides: bool = False) -> None:
        for x, format in zip(self.flat, self.formats):
            if divides:
                x.div_(torch.full((), factor, device=x.device))  # by a number torch multiplies by its reciprocal
            else:
                x.mul_(factor)
            self._rounded(x, format)

    def unscale(self, rule: int, scale: float) -> None:
        """As mpsim_unscale_array."""
        if rule == DIVIDE:
            return self._scaled(float(numpy.float32(scale)), True)
        with numpy.errstate(divide="ignore", over="ignore"):
            inverse = numpy.float32(numpy.float64(1) / numpy.float64(scale))
        for x, format in zip(self.flat, self.formats):
            own = float(inverse if rule != ROUNDED or format is BINARY32 else numpy.float32(round_array(float(inverse), format)))
            if own != 1:
                x.mul_(own)
            self._rounded(x, format)

    def norms(self, own: bool) -> Any:
        """Of each, in its format or in binary32, as mpsim_norm."""
        made = (c_float * max(len(self.flat), 1))()
        if self.flat:
            made[:] = self.home.device.norms([(x, format if own else None) for x, format in zip(self.flat, self.formats)]).tolist()
        return made

    def check(self, rule: int, check: int, scale: float, looks: bool = True) -> int:
        """As mpsim_gradients_check; the cause. looks: a loss scaler is to hear of it, for which the host waits."""
        if not looks:
            self.unscale(rule, scale)
            return NONE
        overflows = check == CHECK_NORM and bool(lib.mpsim_norm_overflows(self.norms(False), len(self.flat)))
        finite = torch.stack([torch.isfinite(x).all() for x in self.flat]) if self.flat else torch.ones(0)
        self.unscale(rule, scale)
        first = next((i for i, all_are in enumerate(finite.tolist()) if not all_are), NONE)
        if check == CHECK_NORM:
            return (first if first != NONE else NORM) if overflows else NONE
        return first

    def move(self, rules: Any, scale: float, unscaled: float, out: Any) -> int:
        """As mpsim_gradients_move; the status."""
        n = len(self.flat)
        room = (c_float * max(n, 1))()

        def norm(context: Any, own: int, norms: Any) -> int:
            made = self.norms(bool(own))
            for i in range(n):
                norms[i] = made[i]
            return 0

        def unscale(context: Any, rule: int, by: float) -> int:
            self.unscale(rule, by)
            return 0

        def factor(context: Any, by: float) -> int:
            self._scaled(by)
            return 0

        calls = CGradients(None, n, room, _FORMAT(lambda context, i: ctypes.addressof(self.c_formats[i])), _UNSCALE(unscale), _NORMS(norm), _SCALE(factor))
        return int(lib.mpsim_gradients_ready(byref(rules), byref(calls), scale, unscaled, math.nan, byref(out)))


class Coded:
    """An array of numbers as codes of a format while a step runs: of binary32 where it lies."""

    def __init__(self, home: Any, x: Any, format: Format) -> None:
        self.home, self.x, self.format = home, x, format
        dtype = DTYPES.get(format.name)
        if format is BINARY32:
            self.codes = x
        elif dtype is not None:
            self.codes = x.to(dtype)
        else:
            self.codes = torch.empty(x.shape, dtype=BITS[format.code_dtype.itemsize], device=x.device)
            self._cast(self.codes, x, format)

    def _cast(self, y: Any, x: Any, format: Format) -> None:
        self.home.device.cast(codes(y, format), flat(x), plan_of(format, None, 1.0, None, None, False, False, "binary32"))

    def back(self) -> None:
        """The numbers are in their place again."""
        if self.codes.is_floating_point():
            if self.codes is not self.x:
                self.x.copy_(self.codes)
        else:
            to = plan_of(BINARY32, None, 1.0, None, None, False, False, self.format.name)
            self.home.device.cast(flat(self.x), codes(self.codes, self.format), to)


def codes(x: Any, format: Format) -> View:
    n = x.numel()
    return View(x.data_ptr(), format, (1, n), (n, 1), x)


def has_kernel(job: Any) -> bool:
    """All but states of few bits, and Muon whose products are those of torch on a CPU."""
    s = job.settings
    return not s.states and (s.muon is None or not s.muon.products)


def step(home: Any, jobs: Sequence[Any], what: str) -> None:
    """The updates of jobs (Job of _optimizer.py) that have kernels; those of one rule and step together."""
    together: dict[tuple[bytes, int], list[Any]] = {}
    for job in jobs:
        if job.settings.muon is not None:
            t = job.c.t
            matrix = CMatrix(t.param, t.m, t.grad, job.c.rows, job.c.cols, job.settings.optim.grad_scale)
            home.device.muon(ctypes.addressof(job.muon), matrix, f"{what}: {job.says()}")
            continue
        together.setdefault((bytes(job.settings.optim), job.c.step), []).append(job)
    for (_, number), some in together.items():
        _launch(home, some, number, f"{what}: {some[0].says()}")


class InMemory:
    """The update of a job with copies of its arrays in memory."""

    def __init__(self, job: Any) -> None:
        self.c = type(job.c).from_buffer_copy(job.c)
        self.arrays = [(x, x.to("cpu", copy=True)) for x in (job.values, *job.kept)]
        places = {there.data_ptr(): here.data_ptr() for there, here in self.arrays}
        for name, _ in self.c.t._fields_:
            if name != "n":
                setattr(self.c.t, name, places.get(getattr(self.c.t, name)))


def back(several: Sequence[InMemory]) -> None:
    """What steps have written is on the device again."""
    for each in several:
        for there, here in each.arrays:
            there.copy_(here)


def _launch(home: Any, jobs: Sequence[Any], number: int, what: str) -> None:
    optim = jobs[0].settings.optim
    param, state = (find(text(f.name)) for f in (optim.param, optim.state))
    parameters: list[CParameter] = []
    held: list[Coded] = []
    for job in jobs:
        arrays = {x.data_ptr(): x for x in job.kept}
        t = job.c.t
        own = {name: Coded(home, job.values if name == "param" else arrays[getattr(t, name)], format) for name, format in (
            ("param", param), ("m", state), ("v", state), ("vmax", state), ("kahan", param)) if getattr(t, name)}
        held += own.values()
        places = {name: each.codes.data_ptr() for name, each in own.items()}
        parameters.append(CParameter(grad=t.grad, n=t.n, rng=job.rng or CRng(), **places))
    home.device.optimizer(COptimThere(ctypes.addressof(optim), address_of(BINARY32), None, None), number, parameters, what)
    for each in held:
        each.back()
