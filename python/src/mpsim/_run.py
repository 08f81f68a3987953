"""run.json of a recording: the operations that the judge knows, with their rows, tensors and digests (doc/howto/judge-a-run.md)."""
from __future__ import annotations

import json
import os
from typing import Any

import torch

from ._asked import DERIVED, Asked, asked
from ._stand import NAMES, Recording, Value

SCHEMA = "mpsim.run/1"
DEFINED = ("cast", "update")  # of which the arguments say the bits; of others the order of operations is the stack's
FORMATS = {torch.float32: "binary32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}


def _array(v: Value, result: bool) -> Any:
    """A tensor of tensors.safetensors, or the digest of a result that was not kept; None: neither is there, as of an array that was made for the question."""
    if v.tensor is not None and v.dtype in NAMES and v.digest != DERIVED:
        return v.digest
    return {"digest": v.bits, "format": FORMATS[v.dtype], "shape": list(v.shape)} if result and v.bits else None


def _entry(name: str, one: Asked, rows: dict[str, str]) -> Any:
    arrays = {**{role: _array(v, False) for role, v in one.arrays.items()}, **{role: _array(v, True) for role, v in one.results.items()}}
    entry = {"name": name, "kind": one.kind, "arrays": arrays}
    row = rows.get(one.kind, one.like)
    return {**entry, "row" if one.kind in rows or one.kind in DEFINED else "try": row} if row else entry


def write(recording: Recording, folder: str, rows: dict[str, str]) -> None:
    """Operations whose inputs were not kept are left out; `about` says how many of all are listed."""
    entries = [_entry(f"{op.number}: {op.place}", one, rows) for op in recording.ops for one in asked(op)]
    entries = [e for e in entries if None not in e["arrays"].values()]
    about = {"operations": len(recording.ops), "products": len(recording.products), "listed": len(entries)}
    with open(os.path.join(folder, "run.json"), "w") as file:
        json.dump({"schema": SCHEMA, "about": about, "files": ["tensors.safetensors"], "operations": entries}, file, indent=0)
