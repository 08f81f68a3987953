"""Running the mpsim program of the package, and its reports."""
from __future__ import annotations

import importlib
import json
import os
import weakref
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

import numpy as np

from . import _figures
from ._error import Error, FileError, InputError
from ._library import PROGRAM
from ._options import is_path, path_of
from ._stat import Answer, as_stored, named


def _in_memory() -> Any:
    """A file in memory; a temporary one where there are none."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("mpsim"), "w+b")
    import tempfile

    return tempfile.TemporaryFile()


class Stored:
    """Arrays as a safetensors file in memory, which the program reads; it lasts as long as this object."""

    def __init__(self, arrays: Any) -> None:
        header: dict[str, Any] = {}
        chunks: list[Any] = []
        offset = 0
        for name, x in named(arrays).items():
            a, dtype = as_stored(x, name)
            header[name] = {"dtype": dtype, "shape": list(a.shape), "data_offsets": [offset, offset + a.nbytes]}
            a = np.asarray(a, order="C")
            chunks.append(a.reshape(-1).view(np.uint8).data if a.size else b"")
            offset += a.nbytes
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        self.file = _in_memory()
        weakref.finalize(self, self.file.close)
        self.file.write(len(text).to_bytes(8, "little") + text)
        for chunk in chunks:
            self.file.write(chunk)
        self.file.flush()

    def path(self) -> str:
        return f"/proc/self/fd/{self.file.fileno()}"


def run(words: Sequence[str], stored: Sequence[Stored]) -> tuple[bytes, list[str], int]:
    """What a command writes, its lines on standard error, and its exit code. The first of `stored` is operand '-'."""
    import subprocess

    for each in stored:
        each.file.seek(0)
    done = subprocess.run([PROGRAM, *words], stdin=stored[0].file if stored else subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          pass_fds=[each.file.fileno() for each in stored[1:]])
    lines = done.stderr.decode(errors="replace").splitlines()
    if done.returncode in (0, 5) or (done.returncode == 1 and done.stdout):
        return done.stdout, lines, done.returncode
    line = next((each for each in reversed(lines) if each.startswith("mpsim: ")), "")
    line = line or f"mpsim: {words[0]} ended with code {done.returncode}"
    raise (InputError if done.returncode in (2, 3) else FileError if done.returncode == 4 else Error)(line)


NUMBERS = ("mean", "l2", "sqnr_db", "mse", "max_rel_err", "amax", "amin", "scale")


class Report(Mapping[str, Any]):
    """A report: its JSON as a mapping; printed, the program's table.

    exit_code: of the program: 1 where a condition of fail_if holds or two sides differ, 5 where files failed.
    notes: its lines on standard error.
    """

    def __init__(self, json: bytes, notes: list[str], exit_code: int, table: Callable[[], bytes]) -> None:
        self._json, self.notes, self.exit_code = json, notes, exit_code
        self._parsed: Any = None
        self._make_table: Optional[Callable[[], bytes]] = table
        self._table = ""

    def to_json(self) -> bytes:
        """The bytes that the program writes with --json."""
        return self._json

    def __getitem__(self, key: str) -> Any:
        if self._parsed is None:
            self._parsed = json.loads(self._json)
        return self._parsed[key]

    def __iter__(self) -> Iterator[str]:
        self["schema"]
        return iter(self._parsed)

    def __len__(self) -> int:
        self["schema"]
        return len(self._parsed)

    def __str__(self) -> str:
        if self._make_table:
            self._table = self._make_table().decode().rstrip("\n")
            self._make_table = None
        return self._table

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    def _rows(self) -> list[dict[str, Any]]:
        if self["schema"] != "mpsim.stat/1":
            raise InputError(f"expected a report of stat, found {self['schema']}")
        return [{k: str(v) if isinstance(v, list) else _figures.number(v) if k in NUMBERS else v for k, v in row.items()}
                for row in _figures.rows(self)]

    def to_pandas(self) -> Any:
        """A report of stat as a DataFrame of pandas: a row for each tensor, kind, step and the total, and each cast."""
        pandas: Any = importlib.import_module("pandas")
        return pandas.DataFrame(self._rows())

    def to_polars(self) -> Any:
        """The same of polars."""
        polars: Any = importlib.import_module("polars")
        return polars.DataFrame(self._rows(), infer_schema_length=None)

    def plot(self, figure: str = "sweep", ax: Any = None, **options: Any) -> Any:
        """A figure of the report: `mpsim plot`, which needs gnuplot; a notebook shows it, `save` writes it.

        figure: "sweep", "sqnr", "histogram", "ruler", "scales", "heatmap", "amax", "ranking"; "diff" of a report of diff;
            "lossscale", "updates" and "amax" of one of replay, "memory" of one of memory.
        ax: an axis of Matplotlib to draw on instead, as is done where there is no gnuplot (sweep and sqnr); it is returned.
        options: those of `mpsim plot`, with _ for -: match=["wgrad:*"], by="layer", venue="icml".
        """
        return _figures.plot(self, self._json, figure, ax, options)

    def __repr__(self) -> str:
        return f"<mpsim.Report {self['schema']}: {', '.join(self)}>"


def operands_of(inputs: Sequence[Any], stored: list[Stored]) -> list[str]:
    """The words that stand for paths and arrays; arrays are stored."""
    words = []
    for x in inputs:
        if is_path(x):
            words.append(path_of(x))
            continue
        stored.append(Stored(x))
        words.append("-" if len(stored) == 1 else stored[-1].path())
    return words


def as_list(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) and x and all(is_path(each) for each in x) else [x]


def paths_of(x: Any) -> list[str]:
    """A path, or several: of commands that read files more than once."""
    return list(map(path_of, as_list(x)))


def of_program(command: str, words: Sequence[str], inputs: Sequence[Any]) -> Report:
    """The report of a command that runs. Its table is asked of the program when it is printed first: files are read again then; of
    arrays the copy that the program has read is kept until then."""
    stored: list[Stored] = []
    operands = operands_of(inputs, stored)
    done = run([command, *words, "--json", "--", *operands], stored)
    return Report(*done, lambda: run([command, *words, "--", *operands], stored)[0])


def of_answer(answer: Answer) -> Report:
    """The report that the library gave."""
    return Report(answer.json, answer.lines, answer.code, lambda: answer.table)


class Page:
    """A page for a browser, of `mpsim report`: a notebook shows it, `save` writes it.

    html: its text, which needs nothing else.
    notes: the program's lines on standard error. exit_code: of the program, 5 where files failed.
    """

    def __init__(self, html: str, notes: list[str], exit_code: int) -> None:
        self.html, self.notes, self.exit_code = html, notes, exit_code

    def save(self, path: Any) -> None:
        try:
            with open(path_of(path), "w", encoding="utf-8") as f:
                f.write(self.html)
        except OSError as error:
            raise FileError(f"{os.fspath(path)}: cannot write: {error.strerror}") from None

    def _repr_html_(self) -> str:
        from html import escape

        return f'<iframe srcdoc="{escape(self.html)}" style="width: 100%; height: 48em; border: 0"></iframe>'

    def __repr__(self) -> str:
        return f"<mpsim.Page: {len(self.html)} characters of HTML>"


def page_of(command: str, words: Sequence[str], paths: Sequence[str]) -> Page:
    """What a command writes as a page."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "page.html")
        _, lines, code = run([command, *words, f"--output={path}", "--", *paths], [])
        with open(path, encoding="utf-8") as f:
            return Page(f.read(), lines, code)
