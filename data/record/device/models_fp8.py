# SPDX-License-Identifier: Apache-2.0
"""The layers of `models` in FP8: torch._scaled_mm, forward, with scales of tensors, rows and blocks. Else as `scaled`."""
import torch

from models import LAYERS, QUICK, passes
from scaled import FORMS, multiply


def ask(s):
    for layer, (out, into) in (QUICK if s.quick else LAYERS).items():
        _, _, shape = next(passes(out, into, 32 if s.quick else None))
        for kind in ("tensor", "rows", "1x128 by 128x128"):
            if "128" in kind and (shape[2] % 128 or shape[1] % 128):
                continue
            for fast in (False, True):
                if fast and "128" in kind:       # refused wherever it was asked
                    continue
                name = f"e4m3fn e4m3fn {kind} {'fast' if fast else 'slow'} bfloat16 {layer} " \
                       + "x".join(str(size) for size in shape)
                s.try_answer(name, lambda: multiply(s, FORMS[0], kind, fast, torch.bfloat16, shape))
