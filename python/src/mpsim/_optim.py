"""Optimizers by ctypes: the structures of mpsim/optim.h, optimstate.h and muon.h."""
from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_size_t, c_uint8, c_uint16, c_uint32
from typing import Any

from ._library import CFormat, CModel, lib, text

# by the numbers of mpsim_optim_setting
NUMBERS = ("lr", "momentum", "dampening", "weight_decay", "beta1", "beta2", "eps", "beta2_decay", "eps2", "d")


def fields(kind: Any, *names: str) -> list[tuple[str, Any]]:
    """Fields of a structure that have one type."""
    return [(name, kind) for name in names]


class CVariant(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("algorithms", c_uint8), ("stores", c_uint8), ("evidence", c_uint8), ("what", c_char_p),
                ("source", c_char_p), ("open", c_char_p)]


class CTraits(ctypes.Structure):
    _fields_ = [*fields(c_char_p, "name", "title", "source", "package"),
                *fields(c_uint8, "family", "arrays", "decoupled", "copies", "corrects", "roots", "cuda", "factors"), ("settings", c_uint16),
                *fields(c_double, "lr", "weight_decay", "beta1", "beta2", "eps", "beta2_decay", "eps2", "d")]


class COptim(ctypes.Structure):
    _fields_ = [("variant", POINTER(CVariant)), *fields(c_uint8, "algorithm", "store", "nesterov", "amsgrad", "maximize", "float_powers"),
                *fields(c_double, *NUMBERS), ("rows", c_size_t), ("cols", c_size_t), ("grad_scale", c_double), ("param", CFormat),
                ("state", CFormat)]


class CState(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("rule", c_uint8), ("bits", c_uint8), ("numbers", c_uint8), ("shared", c_uint8), ("block", c_uint32),
                ("format", c_char_p), ("map", c_uint8), ("adds", c_uint8), ("least", c_double)]


class CStates(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("m", POINTER(CState)), ("v", POINTER(CState)), ("kept", POINTER(CState)), ("least", c_uint32),
                ("whole", c_uint8), ("binary32", c_uint8), ("what", c_char_p), ("source", c_char_p), ("open", c_char_p)]


class CMuon(ctypes.Structure):
    _fields_ = [("variant", POINTER(CVariant)), *fields(c_uint8, "form", "scale", "nesterov", "steps", "products"),
                *fields(c_double, "lr", "momentum", "weight_decay", "eps", "a", "b", "c", "factor"), ("param", CFormat), ("format", CFormat),
                ("model", CModel)]


# by their names in C, for the test that compares them with the headers
STRUCTURES = {"mpsim_optim_variant": CVariant, "mpsim_optim_traits": CTraits, "mpsim_optim": COptim, "mpsim_state": CState,
              "mpsim_states": CStates, "mpsim_muon": CMuon}

_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "optim_traits_of": (POINTER(CTraits), [c_int]),
    "optim_variant_find": (POINTER(CVariant), [c_char_p]),
    "optim_variant_unscales": (c_int, [POINTER(CVariant)]),
    "optim_init": (None, [POINTER(COptim), c_int, POINTER(CVariant)]),
    "optim_check": (c_int, [POINTER(COptim)]),
    "clip_name": (c_char_p, [c_int]),
    "states_find": (POINTER(CStates), [c_char_p]),
}
for _name, (_restype, _argtypes) in _PROTOTYPES.items():
    _function = getattr(lib, "mpsim_" + _name)
    _function.restype, _function.argtypes = _restype, _argtypes


def _algorithms() -> tuple[str, ...]:
    names: list[str] = []
    while name := text(lib.mpsim_optim_traits_of(len(names)).contents.name):
        names.append(name)
    return tuple(names)


ALGORITHMS = _algorithms()
STORES = ("nearest", "stochastic", "kahan")
