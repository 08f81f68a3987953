"""The program's commands that report: on arrays, dicts of arrays, or files."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from ._error import InputError
from ._options import options_of
from ._program import Report, Stored, as_list, operands_of


def _report(command: str, inputs: Sequence[Any], options: dict[str, Any]) -> Report:
    stored: list[Stored] = []
    for out in ("json", "csv", "ndjson", "output", "help"):
        if out in options:
            raise InputError(f"{command}: there is no option {out!r} here: the report is what is returned")
    operands = operands_of(inputs, stored)
    return Report([command, *options_of(options)], operands, stored)


def stat(x: Any, formats: Union[str, Sequence[str], None] = None, scales: Union[float, str, Sequence[Any], None] = None,
         **options: Any) -> Report:
    """Count underflow, overflow and error of casts: `mpsim stat`.

    x: an array, a dict of arrays by their names (as "wgrad:layers.0.weight"; doc/names.md), a path, or a list of paths.
    formats: formats and block recipes, as ["fp16", "e4m3@cuda", "mxfp8:rceil"].
    scales: loss scales, of gradients and of tensors without a kind, as [1, 2**16] or "2^0..2^32".
    options: those of `mpsim stat`, with _ for -: round="sr", axis="both", fail_if=["nan", "underflow>1%"],
        histogram=True, match=["wgrad:*"].

    The program that is in the package runs, on the files themselves; arrays go to it as a safetensors file in memory
    (a copy), whose name in the report is "-". The report is the program's to the byte.

    >>> r = mpsim.stat({"wgrad:w": np.float32([1e-8, 1e-3, 0.5])}, formats=["fp16"], scales=[1, 1024])
    >>> [(f["scale"], f["underflow"]) for f in r["total"]["formats"]]
    [(1.0, 1), (1024.0, 0)]
    """
    return _report("stat", as_list(x), {"format": formats, "scale": scales, **options})


def diff(a: Any, b: Any, **options: Any) -> Report:
    """Where two arrays, dicts of arrays, files or runs begin to differ, and what it looks like: `mpsim diff`.

    a, b: each an array, a dict of arrays by their names, or a path.
    options: those of `mpsim diff`, with _ for -: tolerance="4ulp", match=["weight:*"].

    Runs the program, as `stat` does; exit_code is 1 where they differ.

    >>> a = np.linspace(1, 2, 50, dtype=np.float32)
    >>> r = mpsim.diff(a, mpsim.round(a, "bf16"))
    >>> r.exit_code, r["tensors"][0]["verdict"]
    (1, 'rounded')
    """
    return _report("diff", [a, b], options)


def replay(traces: Any, policies: Union[str, Sequence[str], None] = None, **options: Any) -> Report:
    """Replay a recorded run through mixed-precision policies: `mpsim replay`.

    traces: a path or a list of paths of recorded steps.
    policies: names of bundled policies or YAML files, as ["pytorch-amp-fp16", "te-mxfp8"].
    options: those of `mpsim replay`, with _ for -: weights="carry", seed=1, tensors=True.

    Runs the program, as `stat` does.
    """
    return _report("replay", as_list(traces), {"policy": [policies] if isinstance(policies, str) else policies, **options})


def memory(files: Any = None, policies: Union[str, Sequence[str], None] = None, *, params: Optional[int] = None,
           **options: Any) -> Report:
    """Bytes of weights, gradients, optimizer state and activations under a policy: `mpsim memory`.

    files: a path or a list of paths of checkpoints; None where params, or layers and hidden, say the model.
    policies: as of `replay`. params: the number of parameters.
    options: those of `mpsim memory`, with _ for -: optimizer="adamw", layers=32, hidden=4096, zero=1, ranks=8.

    Runs the program, as `stat` does.

    >>> mpsim.memory(params=1000, policies="pytorch-amp-fp16")["policies"][0]["total"]
    18000
    """
    return _report("memory", [] if files is None else as_list(files), {
        "params": params, "policy": [policies] if isinstance(policies, str) else policies, **options})
