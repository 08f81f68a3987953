"""The program's commands that report: on arrays, dicts of arrays, or files."""
from __future__ import annotations

from typing import Any, Callable, Optional, Sequence, Union

from ._error import InputError, flag_of
from ._options import is_path, options_of
from ._program import Page, Report, as_list, of_answer, of_program, page_of, paths_of
from ._stat import ask


def _words(command: str, options: dict[str, Any]) -> list[str]:
    for out in ("json", "csv", "ndjson", "output", "help"):
        if out in options:
            raise InputError(f"{command}: there is no option {out!r} here: the report is what is returned")
    return options_of(options)


def _report(command: str, inputs: Sequence[Any], options: dict[str, Any]) -> Report:
    return of_program(command, _words(command, options), inputs)


def stat(x: Any, formats: Union[str, Sequence[str], None] = None, scales: Union[float, str, Sequence[Any], None] = None, *,
         sandbox: bool = False, progress: Optional[Callable[[int, int], Any]] = None, **options: Any) -> Report:
    """Count underflow, overflow and error of casts: `mpsim stat`.

    x: an array, a dict of arrays by their names (as "wgrad:layers.0.weight"; doc/reference/names.md), a path, or a list of paths.
    formats: formats and block recipes, as ["fp16", "e4m3@cuda", "mxfp8:rceil"].
    scales: loss scales, of gradients and of tensors without a kind, as [1, 2**16] or "2^0..2^32".
    options: those of `mpsim stat`, with _ for -: round="sr", axis="both", fail_if=["nan", "underflow>1%"],
        histogram=True, match=["wgrad:*"].
    progress: is called now and then with the bytes that are done and all of them; what it raises ends the call.
    sandbox: True: the program that is in the package runs instead, which gives up its rights before it reads files; arrays
        go to it as a safetensors file in memory (a copy).

    The report is the program's to the byte. Arrays are read where they lie, and must not change meanwhile; their file in the
    report is "-".

    >>> r = mpsim.stat({"wgrad:w": np.float32([1e-8, 1e-3, 0.5])}, formats=["fp16"], scales=[1, 1024])
    >>> [(f["scale"], f["underflow"]) for f in r["total"]["formats"]]
    [(1.0, 1), (1024.0, 0)]
    """
    if progress is not None and not callable(progress):
        raise InputError(f"stat: progress: expected a function, found {type(progress).__name__}")
    inputs, words = as_list(x), _words("stat", {"format": formats, "scale": scales, **options})
    if flag_of(sandbox, "sandbox"):
        return of_program("stat", ["--sandbox", *words], inputs)
    return of_answer(ask(inputs, words, is_path(inputs[0]), progress))


def diff(a: Any, b: Any, **options: Any) -> Report:
    """Where two arrays, dicts of arrays, files or runs begin to differ, and what it looks like: `mpsim diff`.

    a, b: each an array, a dict of arrays by their names, or a path.
    options: those of `mpsim diff`, with _ for -: tolerance="4ulp", match=["weight:*"].

    Runs the program that is in the package; exit_code is 1 where they differ.

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

    Runs the program, as `diff` does.
    """
    return _report("replay", paths_of(traces), {"policy": [policies] if isinstance(policies, str) else policies, **options})


def advise(traces: Any, formats: Union[str, Sequence[str], None] = None, **options: Any) -> Report:
    """Which formats, loss scale and recipe a recorded run tolerates: `mpsim advise`.

    traces: a path or a list of paths of recorded steps.
    formats: formats and block recipes that are tried.
    options: those of `mpsim advise`, with _ for -: max_underflow="1%", hold_back=2, fail_if="lost>50%".

    Runs the program, as `diff` does; printed, the advice in sentences.
    """
    return _report("advise", paths_of(traces), {"format": formats, **options})


def report(traces: Any, formats: Union[str, Sequence[str], None] = None, scales: Union[float, str, Sequence[Any], None] = None,
           **options: Any) -> Page:
    """A page for a browser on a recorded run: verdicts, tables, figures, advice: `mpsim report`.

    traces: a path or a list of paths of recorded steps. formats, scales: as of `stat`.
    options: those of `mpsim report`, with _ for -.

    Runs the program, as `diff` does. A notebook shows the page; `mpsim.report("trace").save("trace.html")` writes it.
    """
    return page_of("report", _words("report", {"format": formats, "scale": scales, **options}), paths_of(traces))


def memory(files: Any = None, policies: Union[str, Sequence[str], None] = None, *, params: Optional[int] = None,
           **options: Any) -> Report:
    """Bytes of weights, gradients, optimizer state and activations under a policy: `mpsim memory`.

    files: a path or a list of paths of checkpoints; None where params, or layers and hidden, say the model.
    policies: as of `replay`. params: the number of parameters.
    options: those of `mpsim memory`, with _ for -: optimizer="adamw", layers=32, hidden=4096, zero=1, ranks=8.

    Runs the program, as `diff` does.

    >>> mpsim.memory(params=1000, policies="pytorch-amp-fp16")["policies"][0]["total"]
    18000
    """
    return _report("memory", [] if files is None else as_list(files), {
        "params": params, "policy": [policies] if isinstance(policies, str) else policies, **options})
