"""What users print and write: lines for people, JSON for programs."""
from __future__ import annotations

import json
from typing import Any, Iterable

from .._lines import plain


class Said:
    """str() is the lines of `_lines`, to_json() the members of `as_dict`."""

    def as_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    def _lines(self) -> Iterable[str]:
        raise NotImplementedError

    def to_json(self) -> str:
        return json.dumps(plain(self.as_dict()), indent=1)

    def __str__(self) -> str:
        return "\n".join(self._lines())
