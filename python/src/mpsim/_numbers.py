"""Loss, norm and other numbers of the steps of a training: 9 bytes for each name and step."""
from __future__ import annotations

from array import array
from typing import Iterator, Mapping


class Column:
    """The numbers of one name, from step `first` on."""

    def __init__(self, first: int) -> None:
        self.first, self.numbers, self.known = first, array("d"), array("b")

    def put(self, step: int, number: float) -> None:
        before = max(0, self.first - step)
        if before:
            self.first = step
            self.numbers, self.known = array("d", bytes(8 * before)) + self.numbers, array("b", bytes(before)) + self.known
        after = max(0, step + 1 - self.first - len(self.known))
        self.numbers.frombytes(bytes(8 * after))
        self.known.frombytes(bytes(after))
        self.numbers[step - self.first], self.known[step - self.first] = number, 1

    def steps(self) -> set[int]:
        return {self.first + i for i, known in enumerate(self.known) if known}

    def has(self, step: int) -> bool:
        return 0 <= step - self.first < len(self.known) and bool(self.known[step - self.first])


class Numbers(Mapping[int, dict[str, float]]):
    """Numbers by name, by step."""

    def __init__(self) -> None:
        self.columns: dict[str, Column] = {}

    def note(self, step: int, numbers: Mapping[str, float]) -> None:
        for name, number in numbers.items():
            self.columns.setdefault(name, Column(step)).put(step, number)

    def __getitem__(self, step: int) -> dict[str, float]:
        found = {name: c.numbers[step - c.first] for name, c in self.columns.items() if c.has(step)}
        if not found:
            raise KeyError(step)
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(set().union(*(c.steps() for c in self.columns.values()))))

    def __len__(self) -> int:
        return len(list(iter(self)))
