"""Low-precision numbers, bit for bit.

Casts to any small floating-point format, block formats, dot products as tensor cores add them, loss scalers, and
reports on tensors: those of the mpsim program, over the same library. doc/reference/python.md is a page to begin with.

    import mpsim
    mpsim.round(x, "e4m3")                      an array of x's kind
    mpsim.quantize(x, "nvfp4").values
    mpsim.gemm(a, b, model="hopper-wgmma-fp8-fp32")
    mpsim.scaled_mm(a, b, scale_a, scale_b, like="torch-scaled-mm:S=1")
    mpsim.open("model.safetensors")["wgrad:fc1"][:10]
    print(mpsim.stat(x, formats=["fp16", "e4m3"], scales=[1, 2**16]))
    with mpsim.watch(model, optimizer, every=100, formats=["fp16"], out="run.jsonl"): ...
"""
import importlib
from typing import TYPE_CHECKING, Any

from ._blocks import RECIPES as recipes, Quantized, quantize
from ._cast import MODES as modes, PRESETS as presets, decode, encode, round
from ._dot import MODELS as models, dot, gemm, scaled_mm
from ._error import Error, FileError, InputError
from ._formats import Format, formats
from ._library import lib as _lib
from ._open import File, Tensor, open
from ._program import Page, Report
from ._random import Random
from ._reports import advise, diff, memory, replay, report, stat
from ._scaler import EVENTS as events, SCALERS as scalers, Scaler, Step
from ._threads import set_threads
from ._torchmm import torch_mm
from ._watch import watch

if TYPE_CHECKING:
    from ._functions import attention, attention_backward, conv, conv_backward, cross_entropy, cross_entropy_backward, embedding, embedding_backward, gelu, \
        gelu_backward, layer_norm, layer_norm_backward, linear, linear_backward, rms_norm, rms_norm_backward, rotary, softmax, softmax_backward, \
        swiglu, swiglu_backward
    from . import callbacks as callbacks, operators as operators, record as record, testing as testing
    from .emulate._emulator import emulate as emulate  # the module, which can be called

__version__: str = _lib.mpsim_version().decode()
__all__ = ["Error", "File", "FileError", "Format", "InputError", "Page", "Quantized", "Random", "Report", "Scaler", "Step", "Tensor",
           "advise", "attention", "attention_backward", "conv", "conv_backward", "cross_entropy", "cross_entropy_backward", "decode", "diff", "dot", "embedding",
           "embedding_backward", "encode", "events", "formats", "gelu", "gelu_backward", "gemm", "layer_norm", "layer_norm_backward",
           "linear", "linear_backward", "memory", "models", "modes", "open", "presets", "quantize", "recipes", "replay", "report",
           "rms_norm", "rms_norm_backward", "rotary", "round", "scaled_mm", "scalers", "set_threads", "softmax", "softmax_backward",
           "stat", "swiglu", "swiglu_backward", "torch_mm", "watch"]
_LATER = ("callbacks", "emulate", "operators", "record", "testing")  # are loaded when they are asked for; all but testing need torch

_FUNCTIONS = frozenset((
    "attention attention_backward conv conv_backward cross_entropy cross_entropy_backward embedding "
    "embedding_backward gelu gelu_backward layer_norm layer_norm_backward linear linear_backward rms_norm "
    "rms_norm_backward rotary softmax softmax_backward swiglu swiglu_backward").split())  # loaded when the first of them is asked for


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        found = globals()[name] = getattr(importlib.import_module("mpsim._functions"), name)
        return found
    if name in _LATER:
        return importlib.import_module("mpsim." + name)
    raise AttributeError(f"module 'mpsim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_LATER, *(name for name in globals() if name.startswith("__"))})
