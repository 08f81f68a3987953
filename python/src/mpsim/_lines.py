"""The file of JSON lines that a watched training writes."""
from __future__ import annotations

import json
import os
from typing import IO, Any, Optional

from ._error import FileError, InputError
from ._options import path_of
from ._statistics import number


def plain(value: Any) -> Any:
    """A record in which NaN and infinities are words, as JSON has none."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


def text_of(line: dict[str, Any]) -> str:
    try:
        return json.dumps(line, allow_nan=False) + "\n"
    except ValueError:
        return json.dumps(plain(line)) + "\n"


def rank_of(rank: int) -> int:
    """The rank of this process; before torch.distributed begins, what torchrun says."""
    given = os.environ.get("RANK", "")
    return rank or (int(given) if given.isdigit() else 0)


class Lines:
    """A file of records, of this process alone: ranks but the first have a name of their own.

    Whether it can be written is known at once; it is never written over: records of another run, or of the first part of
    this one, stay."""

    def __init__(self, out: Any, rank: int, config: dict[str, Any]) -> None:
        if not isinstance(out, (str, os.PathLike)):
            raise InputError(f"watch: out: expected a path, found {type(out).__name__}")
        self.out, self.config = path_of(out), config
        self.file: Optional[IO[str]] = None
        self.path = self._name(rank)
        self.begun = False
        self._open()

    def _name(self, rank: int) -> str:
        rank = rank_of(rank)
        stem, ext = os.path.splitext(self.out)
        return f"{stem}.rank{rank:05d}{ext}" if rank else self.out

    def _open(self) -> None:
        try:
            self.file = open(self.path, "a", encoding="utf-8")
            if os.path.getsize(self.path):
                self.file.close()
                raise InputError(f"watch: out: {self.path} has content already: name another file for this run, or for this "
                                 "part of it, or remove it")
        except OSError as error:
            raise FileError(f"watch: out: {self.path}: cannot write: {error.strerror}") from None

    def write(self, lines: list[dict[str, Any]], rank: int) -> Optional[str]:
        """Append records. What went wrong, in a line, after which nothing is written any more."""
        try:
            if not self.begun and self._name(rank) != self.path:  # torch.distributed has begun since
                self.close()
                self.path = self._name(rank)
                self._open()
            if self.file:
                self.file.write("".join(map(text_of, lines if self.begun else [self.config, *lines])))
                self.file.flush()
                self.begun = True
        except (FileError, InputError, OSError) as error:
            self.close()
            return f"no more records: {self.path}: {getattr(error, 'strerror', None) or error}"
        return None

    def close(self) -> None:
        file, self.file = self.file, None
        try:
            if file:
                file.close()
        except OSError:  # of what could not be written before
            pass
