"""mpsim.emulate(model, ...): a model of PyTorch in any arithmetic. `python -m mpsim.emulate` runs a program so.

The module is called as a function; torch is loaded then.
"""
from __future__ import annotations

import sys
import types
from typing import Any


WITHOUT_TORCH = __doc__


class _Module(types.ModuleType):
    """A module that can be called; help() shows the arguments of the call."""

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        try:
            from ._emulator import emulate
        except ImportError:
            return str(WITHOUT_TORCH)
        return f"{WITHOUT_TORCH}\n{emulate.__doc__}"

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
