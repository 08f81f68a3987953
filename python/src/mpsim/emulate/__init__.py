"""mpsim.emulate(model, ...): a model of PyTorch in any arithmetic. `python -m mpsim.emulate` runs a program so.

The module is called as a function; torch is loaded then.
"""
from __future__ import annotations

import sys
import types
from typing import Any


class _Module(types.ModuleType):
    """A module that can be called."""

    def __call__(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        from ._needs import check, missing

        try:
            import torch
        except ImportError as error:
            raise missing(error) from None
        check(torch.__version__)
        from ._emulator import emulate

        return emulate(model, *args, **kwargs)


sys.modules[__name__].__class__ = _Module
