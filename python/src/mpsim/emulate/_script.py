"""A script that knows nothing of mpsim, run under a policy.

Its model is found when an optimizer is built over its parameters, or when it is called. From there to the end of the script it is
emulated; `loss.backward()` is under the policy's loss scaler unless the script has a GradScaler of its own; regions of autocast do nothing,
as the policy says the formats. Reports are written at the end, also after an exception.
"""
from __future__ import annotations

import argparse
import gc
import os
import runpy
import sys
import traceback
from typing import Any, Callable, Optional, Sequence

from .._error import Error, FileError, InputError
from ._needs import check

CODES = ((FileError, 4), (InputError, 3), (Error, 3))


def parsed(words: Sequence[str]) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="python -m mpsim.emulate", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
                                description="Run an unchanged script of PyTorch under a policy, and report on it.",
                                epilog="Options stand before the script. The exit code is that of the script.\n\n"
                                       "  python -m mpsim.emulate -P te-nvfp4 --arch blackwell-scaled train.py --steps 100")
    p.add_argument("-P", "--policy", required=True, help="a policy file (YAML), or a bundled policy")
    p.add_argument("--arch", default="hopper", help="where products run: an architecture, an accumulation model, or torch: casts only (default: hopper)")
    p.add_argument("--seed", type=int, default=0, help="of random bits (default: 0)")
    p.add_argument("--between", choices=("native", "mpsim"), default="native", help="what computes between the products (default: native)")
    p.add_argument("--override", action="append", default=[], metavar="PATH=POLICY", help="modules under another policy; may be repeated")
    p.add_argument("--native", action="append", default=[], metavar="NAME", help="an operator or optimizer that torch may compute; may be repeated")
    p.add_argument("--not-strict", action="store_true", help="products that nothing claims run natively, and are reported")
    p.add_argument("--tf32", action="store_true", help="binary32 products on tensor cores, in tf32")
    p.add_argument("--report", default="auto", metavar="N", help="statistics of the first step and each that N divides; 0: none (default: 1, 2, 5, "
                   "10, 20, 50, 100, 200, ...)")
    p.add_argument("-o", "--out", default="emulate.json", metavar="FILE", help="the report (default: emulate.json); beside it FILE's name with .jsonl "
                   "(statistics), .audit.json and .txt")
    p.add_argument("--record", metavar="FOLDER", help="a trace of the run")
    p.add_argument("-q", "--quiet", action="store_true", help="do not print the report at the end")
    p.add_argument("-m", dest="module", action="store_true", help="the script is the name of a module")
    p.add_argument("script", help="a script of Python")
    p.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    return p.parse_args(words)


# ---- finding the model ----

def _modules() -> list[Any]:
    import torch

    return [each for each in gc.get_objects() if issubclass(type(each), torch.nn.Module)]  # asks no object for its class


def topmost(module: Any) -> Any:
    """The outermost module that has this one as a part."""
    inside: dict[int, Any] = {}
    for parent in _modules():
        for child in parent._modules.values():
            if child is not None:
                inside.setdefault(id(child), parent)
    seen = {id(module)}
    while id(module) in inside and id(inside[id(module)]) not in seen:
        module = inside[id(module)]
        seen.add(id(module))
    return module


def owner(parameters: Sequence[Any]) -> Optional[Any]:
    """The outermost module that has all these parameters; else the one that has the most."""
    wanted = {id(p) for p in parameters}
    best, most = None, 0
    for module in _modules():
        n = len(wanted & {id(p) for p in module.parameters(recurse=False)})
        if n:
            top = topmost(module)
            held = len(wanted & {id(p) for p in top.parameters()})
            if held > most:
                best, most = top, held
            if most == len(wanted):
                break
    return best


# ---- the script under a policy ----

class Session:
    """What is replaced in torch while a script runs, and its emulation."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.e: Any = None
        self.model: Any = None
        self.autocasts = 0
        self.scaling = False  # a backward under the policy's scale runs
        self.undo: list[Callable[[], None]] = []

    def replace(self, thing: Any, name: str, make: Callable[[Any], Any]) -> None:
        old = getattr(thing, name)
        setattr(thing, name, make(old))
        self.undo.append(lambda: setattr(thing, name, old))

    def start(self) -> None:
        import torch

        self.replace(torch.optim.Optimizer, "__init__", self._optimizer)
        self.replace(torch.nn.Module, "__call__", self._call)
        self.replace(torch.Tensor, "backward", self._backward)
        self.replace(torch.autocast, "__init__", self._autocast)

    def stop(self) -> None:
        for undo in reversed(self.undo):
            undo()
        self.undo = []

    def found(self, model: Any) -> None:
        """A model is emulated from here on."""
        if model is None or model is self.model:
            return
        if self.model is not None:
            raise InputError(f"emulate: a second model, {type(model).__name__}, beside {type(self.model).__name__}: one model is emulated; put both into "
                             "one module")
        asked = self.asked
        from ._emulator import emulate

        overrides = dict(each.partition("=")[::2] for each in asked.override)
        report: Any = True if asked.report == "auto" else int(asked.report) if asked.report.isdigit() else asked.report
        self.e = emulate(model, asked.policy, arch=asked.arch, seed=asked.seed, overrides=overrides, strict=not asked.not_strict, between=asked.between,
                         native=asked.native, tf32=asked.tf32, report=report)
        self.model = model
        if asked.record:
            self.e.record(asked.record)
        self.e.__enter__()

    # ---- what stands in for torch's own ----

    def _optimizer(self, old: Any) -> Any:
        session = self

        def __init__(self: Any, params: Any, *args: Any, **kwargs: Any) -> None:
            old(self, params, *args, **kwargs)
            mine = [p for group in self.param_groups for p in group["params"]]
            known = session.e is not None and any(id(p) in session.e.core.params for p in mine)
            if not known:
                session.found(owner(mine))

        return __init__

    def _call(self, old: Any) -> Any:
        session = self

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            if session.model is None and any(True for _ in self.parameters()):
                session.found(topmost(self))
            return old(self, *args, **kwargs)

        return __call__

    def _backward(self, old: Any) -> Any:
        session = self

        def backward(self: Any, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False, inputs: Any = None) -> Any:
            e = session.e
            if e is None or session.scaling or gradient is not None or self.numel() != 1 or e.core.own_scaler:
                return old(self, gradient, retain_graph, create_graph, inputs)
            session.scaling = True
            try:
                return e.backward(self, retain_graph=retain_graph, create_graph=create_graph, inputs=inputs)
            finally:
                session.scaling = False

        return backward

    def _autocast(self, old: Any) -> Any:
        session = self

        def __init__(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
            if not str(sys._getframe(1).f_globals.get("__name__", "")).startswith("mpsim."):
                args, enabled = list(args), kwargs.get("enabled", True)  # type: ignore[assignment]
                if len(args) > 1:
                    enabled, args[1] = args[1], False  # type: ignore[index]
                else:
                    kwargs["enabled"] = False
                session.autocasts += bool(enabled)
            old(self, device_type, *args, **kwargs)

        return __init__

    # ---- the end ----

    def end(self) -> Optional[str]:
        """The emulation ends, reports are written; what went wrong with that."""
        self.stop()
        if self.e is None:
            return None
        e = self.e
        e.__exit__(None, None, None)
        if self.autocasts:
            e.core.note(f"regions of autocast of the script did nothing ({self.autocasts}): the policy says the formats")
        try:
            write(e, self.asked)
        except (Error, OSError) as error:
            return str(error)
        return None


def write(e: Any, asked: argparse.Namespace) -> None:
    """The report in its forms: FILE, and beside it statistics, audit and text."""
    stem = asked.out.removesuffix(".json")
    texts = [(stem + ".audit.json", e.audit().to_json() + "\n")]
    shown = str(e.audit())
    if e.core.report is not None:
        report = e.report()
        shown = str(report)
        texts += [(asked.out, report.to_json()), (stem + ".jsonl", report.to_ndjson())]
    texts.append((stem + ".txt", shown + "\n\n" + str(e.audit()) + "\n" if e.core.report is not None else shown + "\n"))
    for path, text in texts:
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".tmp", path)
    if not asked.quiet:
        print(f"\n{shown}\nmpsim: the report is in {', '.join(path for path, _ in texts)}", file=sys.stderr)


def _run(asked: argparse.Namespace) -> None:
    sys.argv = [asked.script, *asked.arguments]
    if asked.module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(asked.script, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(asked.script)))
        runpy.run_path(asked.script, run_name="__main__")


def main(words: Sequence[str]) -> int:
    """The exit code."""
    asked = parsed(words)
    if asked.script == "--" and asked.arguments:
        asked.script, asked.arguments = asked.arguments[0], asked.arguments[1:]
    if not asked.module and not os.path.exists(asked.script):
        print(f"mpsim: emulate: {asked.script}: cannot open: no such file", file=sys.stderr)
        return 4
    try:
        import torch

        check(torch.__version__)
    except (ImportError, Error) as error:
        print(f"mpsim: emulate: needs PyTorch: {error}" if isinstance(error, ImportError) else f"mpsim: {error}", file=sys.stderr)
        return 4
    session, code = Session(asked), 0
    session.start()
    try:
        _run(asked)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except Error as error:
        print(f"mpsim: {error}", file=sys.stderr)
        code = next(number for kind, number in CODES if isinstance(error, kind))
    except BaseException as error:  # the script's own: its traceback, and the report all the same
        traceback.print_exception(type(error), error, _of_script(error.__traceback__))
        code = 130 if isinstance(error, KeyboardInterrupt) else 1
    failed = session.end()
    if failed:
        print(f"mpsim: emulate: {failed}", file=sys.stderr)
        return code or 4
    if session.e is None and not code:
        print("mpsim: emulate: the script called no model of PyTorch and built no optimizer: nothing was emulated", file=sys.stderr)
        return 3
    return code


def _of_script(trace: Any) -> Any:
    """A traceback without the frames that run the script."""
    here = os.path.dirname(os.path.abspath(__file__))
    at = trace
    while at is not None and (at.tb_frame.f_code.co_filename.startswith(here) or "runpy" in at.tb_frame.f_code.co_filename):
        at = at.tb_next
    return at or trace
