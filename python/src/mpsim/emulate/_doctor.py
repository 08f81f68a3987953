"""What a long run would be refused for, found by one step that changes nothing."""
from __future__ import annotations

from typing import Any, Callable, Iterator, Optional

from .._error import Error
from .._library import lib
from ._apart import NoLoss, one_step, untouched
from ._audit import ASKED, HOWS, INTEGERS, Audit, wrapped
from ._said import Said


class Doctor(Said):
    """What `Emulator.doctor` gives.

    refused: a row for each operator that a strict emulation refuses: operator, module, the user's line, why, calls.
    native: operators that are computed by torch between the products, with how. foreign: names of operators outside aten.
    error: what ended the step before its end; what comes behind is not known. audit: of the step. ok: nothing is refused.
    """

    def __init__(self, audit: Audit, error: Optional[str], loss: Optional[float]) -> None:
        self.audit, self.error, self.loss = audit, error, loss
        self.refused = [each for each in audit.native if each["why"] not in (ASKED, INTEGERS)]
        self.native = [each for each in audit.operators if each["how"] in ("between", "float32", "other")]
        self.foreign = audit.foreign

    @property
    def ok(self) -> bool:
        return not self.refused and self.error is None

    def as_dict(self) -> dict[str, Any]:
        return {"schema": "mpsim.emulate-doctor/1", "mpsim": lib.mpsim_version().decode(), "ok": self.ok, "error": self.error, "loss": self.loss,
                "refused": self.refused, "native": self.native, "foreign": self.foreign, "products": len(self.audit), "notes": self.audit.notes}

    def __bool__(self) -> bool:
        return self.ok

    def _lines(self) -> Iterator[str]:
        calls = sum(p.calls for p in self.audit if p.kind != "native")
        yield "Nothing is refused." if self.ok else "The step ended before its end." if self.error is not None else \
            f"A strict emulation refuses {len(self.refused)} of the operators."
        yield f"{calls:,} products are emulated" + ("" if self.loss is None else f"; the loss is {self.loss:.6g}") + "."
        for each in self.refused:
            yield from wrapped(f"refused: {each['operator']} in {each['module']} ({each['line']}): {each['why']}; "
                               f"native=['{each['operator']}'] allows it")
        if self.error is not None:
            yield from wrapped(f"refused: {self.error}")
            yield "What comes behind is not known."
        for how in ("between", "float32", "other"):
            names = [each["operator"].removeprefix("aten::") for each in self.native if each["how"] == how]
            if names:
                yield from wrapped(f"{HOWS[how]}: {', '.join(names)}")
        yield "Operators outside aten: " + (", ".join(self.foreign) or "none")
        for line in self.audit.notes:
            yield from wrapped(f"note: {line}")

    def __repr__(self) -> str:
        return f"<mpsim.emulate doctor: {'nothing is refused' if self.ok else 'refusals'}>"


def examine(e: Any, batch: Any, loss: Optional[Callable[[Any], Any]]) -> Doctor:
    """One step of an emulation that refuses as little as can be."""
    error, value = None, None
    with e.apart(), untouched(e.model):
        trial = e.again(strict=False, report=False)
        with trial:
            try:
                value = one_step(trial, batch, loss)
            except NoLoss:
                raise
            except Error as reason:
                error = str(reason)
            except Exception as reason:  # whatever it is: the user's own, or a kernel that torch does not have
                line = (str(reason).splitlines() or [""])[0]
                error = f"{type(reason).__name__}: {line}, in {trial.core.mode.last} of {trial.core.where()}"
        return Doctor(trial.audit(), error, value)
