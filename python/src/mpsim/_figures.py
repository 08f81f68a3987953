"""Figures of reports: the program's, by gnuplot, or by Matplotlib where that is wanted or alone is there."""
from __future__ import annotations

import os
from typing import Any, Optional

from ._error import Error, FileError, InputError
from ._library import PROGRAM
from ._options import options_of, path_of, word_of


class Figure:
    """A figure of `mpsim plot`; a notebook shows it.

    svg: its text. data: its numbers, as gnuplot reads them.
    """

    def __init__(self, svg: str, data: str, files: dict[str, bytes]) -> None:
        self.svg, self.data, self._files = svg, data, files

    def save(self, path: Any) -> None:
        """Write it as the name says: .pdf, .png, .svg, or .gp, a script of gnuplot that stands alone beside .dat."""
        name = path_of(path)
        suffix = os.path.splitext(name)[1]
        if suffix not in self._files:
            raise InputError(f"expected a name in {', '.join(sorted(self._files))}, found {name!r}")
        try:
            with open(name, "wb") as f:
                f.write(self._files[suffix])
        except OSError as error:
            raise FileError(f"{name}: cannot write: {error.strerror}") from None

    def _repr_svg_(self) -> str:
        return self.svg


def has_gnuplot() -> bool:
    import shutil

    return shutil.which(os.environ.get("MPSIM_GNUPLOT", "gnuplot")) is not None


def of_program(report: bytes, figure: str, options: dict[str, Any]) -> Figure:
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "report"), "wb") as f:
            f.write(report)
        words = [PROGRAM, "plot", figure, *options_of(options), "-o", "figure", "report"]
        done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            line = next(iter(done.stderr.decode(errors="replace").splitlines()[-1:]), f"mpsim plot ended with code {done.returncode}")
            raise (InputError if done.returncode in (2, 3) else FileError if done.returncode == 4 else Error)(line)
        files = {}
        for name in os.listdir(folder):
            if name.startswith("figure."):
                with open(os.path.join(folder, name), "rb") as f:
                    files[os.path.splitext(name)[1]] = f.read()
    return Figure(files.get(".svg", b"").decode(), files[".dat"].decode(), files)


def rows(report: Any) -> list[dict[str, Any]]:
    """A row for each group and cast of a report of stat: what its CSV has, under the same names."""
    levels = [("tensor", report.get("tensors", [])), ("kind", report.get("kinds", [])), ("step", report.get("steps", [])),
              ("total", [report["total"]] if "total" in report else [])]
    made = []
    for level, groups in levels:
        for group in groups:
            own = {k: v for k, v in group.items() if k not in ("formats", "blocks", "histogram")}
            casts = [*group["formats"], *({"format": b["recipe"], **b} for b in group.get("blocks", []))]
            for cast in casts or [{}]:
                made.append({"level": level, **own, **{k: v for k, v in cast.items() if k not in ("recipe", "scales")}})
    return made


def number(x: Any) -> Any:
    return float(x.replace("Infinity", "inf")) if isinstance(x, str) else x


def of_matplotlib(report: Any, figure: str, ax: Any) -> Any:
    """sweep: underflow and overflow over the scale; sqnr: bars. Of kinds of tensors."""
    if figure not in ("sweep", "sqnr"):
        raise InputError(f"plot: {figure!r} is drawn by gnuplot" + ("" if has_gnuplot() else ", which is not here (apt install gnuplot-nox)") +
                         "; expected sweep or sqnr without gnuplot or on an axis of Matplotlib")
    if ax is None:
        import matplotlib.pyplot as plt
        ax = plt.subplots()[1]
    kinds = [r for r in rows(report) if r["level"] == "kind" and "format" in r]
    curves: dict[str, list[dict[str, Any]]] = {}
    for r in kinds:
        curves.setdefault(f"{r['kind'] or 'no kind'} {r['format']}", []).append(r)
    if figure == "sweep":
        for name, points in curves.items():
            if len(points) < 2:
                continue  # not scaled
            for key, style in (("underflow", "-"), ("overflow", "--")):
                ax.plot([p["scale"] for p in points], [100 * p[key] / max(p["count"], 1) for p in points], style,
                        label=f"{name} {key}")
        ax.set(xscale="log", xlabel="loss scale", ylabel="% of the elements")
        ax.set_xscale("log", base=2)
    else:
        ax.barh(list(curves), [number(points[0]["sqnr_db"]) for points in curves.values()])
        ax.set(xlabel="SQNR in dB")
    if figure == "sweep":
        ax.legend()
    return ax


def plot(report: Any, raw: bytes, figure: str, ax: Optional[Any], options: dict[str, Any]) -> Any:
    if not isinstance(figure, str):
        raise InputError(f"plot: expected the name of a figure, found {type(figure).__name__}")
    if ax is not None and not (hasattr(ax, "plot") and hasattr(ax, "barh")):
        raise InputError(f"plot: ax: expected an axis of Matplotlib, found {type(ax).__name__}")
    word_of(figure, "the name of a figure")
    if ax is None and has_gnuplot():
        return of_program(raw, figure, options)
    return of_matplotlib(report, figure, ax)
