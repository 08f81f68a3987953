"""libmpsim by ctypes: its structures and the prototypes of what the package calls.

The structures repeat lib/include/mpsim/; tests/test_layout.py compares them with the headers.
Every call releases Python's global lock.

ctypes over public headers only, so that one wheel fits every version of Python and nothing is compiled against one. The program of the wheel
finds its libraries by rpath; Python's process loads libmpsim alone. A function that would delay signals runs in a thread of its own.
"""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_float, c_int, c_int16, c_int64, c_size_t, c_ssize_t, c_ubyte, \
    c_uint, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

from ._error import Error, InputError

INSTALLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_install")
PROGRAM = os.path.join(INSTALLED, "bin", "mpsim")
LIBRARY = os.path.join(INSTALLED, "lib", "libmpsim.so.0")
try:
    lib: Any = ctypes.CDLL(LIBRARY)
except OSError as error:
    raise ImportError(f"mpsim: its library does not load: {error}") from None


class CFormat(ctypes.Structure):
    _fields_ = [("name", c_char * 56), ("aliases", c_char_p), ("bits", c_uint8), ("ebits", c_uint8),
                ("mbits", c_uint8), ("inf", c_uint8), ("nan", c_uint8), ("zero", c_uint8), ("bias", c_int16),
                ("max_finite", c_uint64), ("nan_code", c_uint64), ("source", c_char_p)]


class CRounding(ctypes.Structure):
    _fields_ = [(name, c_uint8) for name in (
        "mode", "sr_bits", "overflow", "infinity", "no_inf", "nan", "no_nan", "negative", "no_zero", "via_binary32",
        "by_field", "flush_input", "flush_output")] + [("scale", c_double), ("flush_below", c_double)]


class CRng(ctypes.Structure):
    _fields_ = [("seed", c_uint64), ("stream", c_uint64), ("index", c_uint64)]


class CLoop(ctypes.Structure):
    _fields_ = [("format", CFormat), ("rounding", CRounding), ("kind", c_uint8), ("from", c_uint8), ("to", c_uint8)]


class CRecipe(ctypes.Structure):
    _fields_ = [("name", c_char * 32), ("element", c_char * 16), ("rule", c_uint8), ("power_of_two", c_uint8),
                ("element_mode", c_uint8), ("sr_bits", c_uint8), ("block_rows", c_uint32), ("block_cols", c_uint32),
                ("scale_for_inf", c_double), ("amax_epsilon", c_double), ("margin", c_double), ("source", c_char_p)]


class CBlocks(ctypes.Structure):
    _fields_ = [(name, c_void_p) for name in (
        "codes", "values", "scale_codes", "scales", "inverses", "amax", "casts", "counts", "stats", "origin",
        "block_amax")]


class CRounded(ctypes.Structure):
    _fields_ = [("format", CFormat), ("rounding", CRounding)]


class CModel(ctypes.Structure):
    _fields_ = [("name", c_char * 96), ("addition", c_uint8), ("order", c_uint8), ("alignment", c_uint8),
                ("normalised", c_uint8), ("length", c_uint8), ("fraction", c_uint8), ("floor", c_int16),
                ("operand_emin", c_int16), ("traits", c_uint8), ("ways", c_uint8), ("kept", c_uint8), ("drop", c_uint8),
                ("group", c_uint8), ("block", c_uint8), ("chunk", c_uint32), ("product", CRounded), ("accumulator", CRounded),
                ("outer", CRounded), ("result", CRounded), ("architecture", c_char_p), ("instruction", c_char_p),
                ("operands", c_char_p), ("scales", c_char_p), ("evidence", c_int), ("unconfirmed", c_char_p),
                ("source", c_char_p)]


class CMatrix(ctypes.Structure):
    _fields_ = [("format", c_void_p), ("codes", c_void_p), ("stride", c_size_t), ("transposed", c_int)]


class CStack(ctypes.Structure):
    _fields_ = [("format", c_void_p), ("codes", c_void_p), ("rank", c_uint32), ("shape", c_size_t * 8), ("strides", c_int64 * 8)]


class CEntering(ctypes.Structure):
    _fields_ = [("format", c_void_p), ("mode", c_uint8), ("use", c_uint8), ("hadamard", c_uint32), ("recipe", c_void_p),
                ("given", c_float), ("rng", CRng)]


class CEntered(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in ("nonzero", "lost", "overflow", "nonfinite")]


class CEntryStats(ctypes.Structure):
    _fields_ = [(name, c_void_p) for name in ("amax", "counts", "casts")]


class COperand(ctypes.Structure):
    _fields_ = [("stack", CStack), ("format", c_void_p), ("mode", c_uint8), ("rounded", c_uint8), ("inverse", c_float), ("factors", c_void_p),
                ("block_rows", c_size_t), ("block_cols", c_size_t), ("grid_rows", c_size_t), ("grid_cols", c_size_t),
                ("scales", c_void_p), ("memory", c_void_p)]


class CProduct(ctypes.Structure):
    _fields_ = [("model", c_void_p), ("a", c_void_p), ("b", c_void_p), ("d", c_void_p), ("numbers", c_void_p), ("factor", c_float),
                ("start", c_void_p), ("bias", c_void_p), ("add", c_void_p), ("add_factor", c_float), ("depth_limit", c_size_t),
                ("rng", c_void_p), ("counts", c_void_p)]


class CConvolution(ctypes.Structure):
    _fields_ = [("model", c_void_p), ("a", c_void_p), ("b", c_void_p), ("d", c_void_p), ("numbers", c_void_p), ("factor", c_float),
                ("bias", c_void_p), ("rng", c_void_p), ("counts", c_void_p), ("transposed", c_uint8), ("order", c_uint8), ("taps", c_uint8),
                ("groups", c_size_t), ("row_multiple", c_size_t), ("stride", c_size_t * 3), ("padding", c_size_t * 3), ("dilation", c_size_t * 3)]


class CScaledMM(ctypes.Structure):
    _fields_ = [("name", c_char * 96), ("model", CModel), ("fast", c_uint8), ("order", c_uint8), ("parts", c_uint32),
                ("out", CFormat)]


class CStrided(ctypes.Structure):
    _fields_ = [("format", c_void_p), ("data", c_void_p), ("stride", c_ssize_t * 8)]


class CBetween(ctypes.Structure):
    _fields_ = [(name, c_uint8) for name in ("kind", "norm", "activation", "added", "ignores", "dims")] + [  # type: ignore[assignment]
        ("shape", c_size_t * 8), ("length", c_size_t), ("entries", c_size_t), ("eps", c_float), ("momentum", c_float), ("scale", c_float),
        ("p", c_double), ("rng", CRng), ("index", c_void_p), ("ignored", c_int64), ("math", c_void_p), ("f", c_void_p)]


class CAttention(ctypes.Structure):
    _fields_ = [("scores", c_void_p), ("context", c_void_p), ("p", CRounded), ("p_scale", c_float), ("scale", c_float), ("tile", c_size_t)] + [
        (name, c_uint8) for name in ("causal", "reverse", "separate", "sum_rounded", "reciprocal")] + [
        ("beta", c_float), ("margin", c_float), ("exp2", c_uint8), ("left", c_size_t), ("right", c_size_t), ("mask", c_void_p),
        ("softmax", c_void_p), ("f", c_void_p)]


class CAttentionShape(ctypes.Structure):
    _fields_ = [(name, c_size_t) for name in ("queries", "keys", "dim", "size")]


class CAttentionGradient(ctypes.Structure):
    _fields_ = [(name, c_void_p) for name in ("a", "dp", "dvalue", "dkey", "dquery")] + [("p", CRounded), ("ds", CRounded),
                                                                                        ("scale_last", c_uint8), ("f", c_void_p)]


class CTorchMM(ctypes.Structure):
    _fields_ = [("name", c_char * 96), ("by", c_uint8), ("left_transposed", c_uint8), ("right_transposed", c_uint8), ("tiles", c_uint8),
                ("cut", c_uint8), ("part", c_uint32), ("chunk", c_uint32), ("threads", c_uint32)]


class CScalerConfig(ctypes.Structure):
    _fields_ = [("name", c_char * 24)] + [(name, c_uint8) for name in (
        "dynamic", "skip", "growth_rule", "refill", "arithmetic", "guard", "floor_rule", "order", "unscale",
        "check")] + [("hysteresis", c_uint32), ("window", c_uint64)] + [(name, c_double) for name in (
            "init", "growth", "backoff", "floor", "ceiling", "tolerance", "threshold")]


class CScalerType(ctypes.Structure):
    _fields_ = [("config", CScalerConfig), ("framework", c_char_p), ("source", c_char_p), ("note", c_char_p)]


class CScaler(ctypes.Structure):
    _fields_ = [("config", CScalerConfig), ("scale", c_double), ("step", c_uint64), ("clean", c_uint64),
                ("last_overflow", c_int64), ("last_rescale", c_int64), ("overflows", c_uint64),
                ("hysteresis", c_int64), ("stopped", c_uint8)]


class CScalerResult(ctypes.Structure):
    _fields_ = [("events", c_uint), ("scale", c_double), ("unscale", c_double), ("next", c_double)]


class CPreset(ctypes.Structure):  # its beginning: presets are only pointed to
    _fields_ = [("name", c_char_p)]


# by their names in C, for the test that compares them with the headers
STRUCTURES = {
    "mpsim_format": CFormat, "mpsim_rounding": CRounding, "mpsim_rng": CRng, "mpsim_loop": CLoop, "mpsim_block_recipe": CRecipe,
    "mpsim_blocks": CBlocks, "mpsim_rounded": CRounded, "mpsim_model": CModel, "mpsim_matrix": CMatrix,
    "mpsim_scaled_mm": CScaledMM, "mpsim_torch_mm": CTorchMM, "mpsim_attention": CAttention, "mpsim_attention_shape": CAttentionShape,
    "mpsim_attention_gradient": CAttentionGradient, "mpsim_strided": CStrided, "mpsim_between": CBetween, "mpsim_stack": CStack, "mpsim_entering": CEntering, "mpsim_entered": CEntered,
    "mpsim_entry_stats": CEntryStats, "mpsim_operand": COperand, "mpsim_product": CProduct, "mpsim_convolution": CConvolution,
    "mpsim_scaler_config": CScalerConfig, "mpsim_scaler_type": CScalerType, "mpsim_scaler": CScaler,
    "mpsim_scaler_result": CScalerResult,
}

Bytes = POINTER(c_ubyte)  # arrays: what `at` and c_ubyte.from_buffer give
F, R = POINTER(CFormat), POINTER(CRounding)
_CAST = (c_int, [Bytes, Bytes, c_void_p, Bytes, Bytes, c_size_t, c_void_p])
_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "version": (c_char_p, []),
    "status_string": (c_char_p, [c_int]),
    "format_count": (c_size_t, []),
    "format_at": (F, [c_size_t]),
    "format_find": (F, [c_char_p]),
    "format_parse": (c_int, [F, c_char_p]),
    "format_code_bytes": (c_size_t, [F]),
    "format_is_signed": (c_int, [F]),
    "format_max": (c_double, [F]),
    "format_min_normal": (c_double, [F]),
    "format_min_positive": (c_double, [F]),
    "format_epsilon": (c_double, [F]),
    "decode": (c_double, [F, c_uint64]),
    "loop_init": (c_int, [POINTER(CLoop), c_int, F, R]),
    "rounding_init": (None, [R, c_int]),
    "rounding_check": (c_int, [R]),
    "round_mode_parse": (c_int, [POINTER(c_int), POINTER(c_uint8), c_char_p]),
    "round_mode_name": (c_char_p, [c_int]),
    "preset_count": (c_size_t, []),
    "preset_at": (POINTER(CPreset), [c_size_t]),
    "preset_find": (POINTER(CPreset), [c_char_p]),
    "rounding_preset_from": (None, [R, c_void_p, F, F]),
    "encode_array_f32": _CAST, "encode_array_f64": _CAST, "round_array_f32": _CAST, "round_array_f64": _CAST,
    "block_count": (c_size_t, []),
    "block_at": (POINTER(CRecipe), [c_size_t]),
    "block_find": (POINTER(CRecipe), [c_char_p]),
    "block_scale_format": (F, [POINTER(CRecipe)]),
    "block_parse": (c_int, [POINTER(CRecipe), POINTER(c_uint), c_char_p, c_char_p, c_size_t]),
    "block_grid": (None, [POINTER(CRecipe), c_size_t, c_size_t, POINTER(c_size_t), POINTER(c_size_t)]),
    "block_bytes": (c_uint64, [POINTER(CRecipe), c_size_t, c_size_t]),
    "block_quantize": (c_int, [POINTER(CRecipe), Bytes, c_size_t, c_size_t, c_float, c_float, c_void_p,
                               POINTER(CBlocks), POINTER(c_float)]),
    "hadamard_groups": (c_int, [Bytes, c_size_t, c_uint, c_uint64]),
    "hadamard_groups_back": (c_int, [Bytes, c_size_t, c_uint, c_uint64]),
    "model_count": (c_size_t, []),
    "model_at": (c_int, [POINTER(CModel), c_size_t]),
    "model_parse": (c_int, [POINTER(CModel), c_char_p]),
    "model_accepts": (c_int, [POINTER(CModel), F, F]),
    "model_for": (c_int, [POINTER(CModel), c_char_p, F, F, F]),
    "model_for_blocks": (c_int, [POINTER(CModel), c_char_p, F, F, c_size_t, F]),
    "dot": (c_int, [POINTER(CModel), F, Bytes, F, Bytes, c_size_t, c_uint64, c_void_p, POINTER(c_uint64)]),
    "gemm": (c_int, [POINTER(CModel), c_size_t, c_size_t, c_size_t, POINTER(CMatrix), POINTER(CMatrix),
                     POINTER(CMatrix), Bytes, c_size_t, c_void_p, c_void_p]),
    "operand_enter": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "operand_free": (None, [c_void_p]),
    "operand_turn": (c_int, [c_void_p, c_void_p]),
    "product_run": (c_int, [c_void_p, c_void_p]),
    "convolution_init": (None, [c_void_p]),
    "convolution_size": (c_int, [c_void_p, c_size_t, c_size_t, c_size_t, c_size_t, POINTER(c_size_t)]),
    "convolution_forward": (c_int, [c_void_p, c_void_p]),
    "convolution_backward_input": (c_int, [c_void_p, c_void_p]),
    "convolution_backward_weight": (c_int, [c_void_p, c_void_p]),
    "scaled_mm_parse": (c_int, [POINTER(CScaledMM), c_char_p]),
    "scaled_mm_run": (c_int, [POINTER(CScaledMM), c_size_t, c_size_t, c_size_t, POINTER(CMatrix), POINTER(CMatrix), c_float,
                              c_float, POINTER(c_float), Bytes, c_void_p]),
    "attention_init": (None, [c_void_p, c_size_t]),
    "attention_gradient_init": (None, [c_void_p, c_void_p]),
    "attention_forward": (c_int, [c_void_p] * 11),
    "attention_backward": (c_int, [c_void_p] * 14),
    "rotary": (c_int, [c_void_p, c_void_p, c_size_t, c_size_t, c_double]),
    "between_run": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p]),
    "mean": (c_float, [c_void_p, c_void_p, c_size_t, c_size_t]),
    "torch_mm_parse": (c_int, [POINTER(CTorchMM), c_char_p]),
    "torch_mm_run": (c_int, [POINTER(CTorchMM), c_size_t, c_size_t, c_size_t, POINTER(CMatrix), POINTER(CMatrix), c_void_p, c_void_p]),
    "scaler_count": (c_size_t, []),
    "scaler_at": (POINTER(CScalerType), [c_size_t]),
    "scaler_parse": (c_int, [POINTER(CScalerConfig), c_char_p]),
    "scaler_init": (c_int, [POINTER(CScaler), POINTER(CScalerConfig)]),
    "scaler_update": (CScalerResult, [POINTER(CScaler), c_int]),
    "scaler_save": (c_size_t, [POINTER(CScaler), c_char_p, c_size_t]),
    "scaler_load": (c_int, [POINTER(CScaler), c_char_p]),
}
for _name, (_restype, _argtypes) in _PROTOTYPES.items():
    _function = getattr(lib, "mpsim_" + _name)
    _function.restype, _function.argtypes = _restype, _argtypes

OK, EINVAL, ENOTFOUND, ERANGE, ENOMEM, EUNAVAILABLE = range(6)
STOCHASTIC = 6  # the first mode that needs random bits: MPSIM_ROUND_STOCHASTIC_A


def at(structure: Any) -> Any:
    """A structure as an argument of type Bytes, made once; the structure must outlive it."""
    return c_ubyte.from_address(ctypes.addressof(structure))


def check(status: int, what: str) -> None:
    """Raise what a status other than MPSIM_OK says of `what`."""
    if status == OK:
        return
    if status == ENOMEM:
        raise MemoryError(what)
    text = lib.mpsim_status_string(status).decode()
    raise (InputError if status in (EINVAL, ENOTFOUND, ERANGE) else Error)(f"{what}: {text}")


def text(value: bytes | None) -> str:
    return value.decode() if value else ""


