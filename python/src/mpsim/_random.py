"""Random words of stochastic rounding: where they come from."""
from __future__ import annotations

import threading
from typing import Any, Optional

from ._error import InputError, integer_of, shown
from ._library import CRng

WORDS = 2**64  # of a stream
BESIDE = 2**32  # streams that users number by hand are below


def address_of(seed: Any, stream: Any, index: Any) -> tuple[int, int, int]:
    found = []
    for name, value in (("seed", seed), ("stream", stream), ("index", index)):
        number = integer_of(value)
        if number is None or not 0 <= number < WORDS:
            raise InputError(f"{name}: expected an integer from 0 to 2^64 - 1, found {shown(value)}")
        found.append(number)
    return found[0], found[1], found[2]


class Random:
    """Random words for stochastic rounding, which move on by themselves: each call that is given them takes new ones.

    seed, stream: as those of `round`; ranks of one training may take a stream each.
    index: of the next word.

    The words are those of `seed=`, `stream=` and `index=`, so a run repeats to the bit. Threads may share one; pickling
    keeps its place.

    >>> rng = mpsim.Random(7)
    >>> mpsim.round([1.1] * 3, "e4m3", "stochastic-c", rng=rng), mpsim.round([1.1] * 3, "e4m3", "stochastic-c", rng=rng)
    (array([1.125, 1.125, 1.   ]), array([1.   , 1.125, 1.125]))
    >>> rng
    mpsim.Random(7, stream=0, index=6)
    """

    __module__ = "mpsim"
    __slots__ = ("seed", "stream", "index", "_lock")

    def __init__(self, seed: int, stream: int = 0, index: int = 0) -> None:
        self.seed, self.stream, self.index = address_of(seed, stream, index)
        self._lock = threading.Lock()

    def take(self, n: int) -> CRng:
        """The address of the next n words, and move behind them; where a stream ends, another one begins."""
        with self._lock:
            if self.index + n > WORDS:
                self.stream, self.index = (self.stream + BESIDE) % WORDS, 0
            first = CRng(self.seed, self.stream, self.index)
            self.index += n
        return first

    def __reduce__(self) -> Any:
        return Random, (self.seed, self.stream, self.index)

    def __repr__(self) -> str:
        return f"mpsim.Random({self.seed}, stream={self.stream}, index={self.index})"


def words_of(rng: Optional[Random], seed: Optional[int], stream: Optional[int], index: Optional[int], n: int) -> CRng:
    """Where n random words come from: a generator, or an address, of which one number suffices."""
    given = [each for each in (seed, stream, index) if each is not None]
    if rng is None and not given:
        raise InputError("stochastic rounding: expected rng=mpsim.Random(seed), which gives each call words of its own, or seed= (and stream=, "
                         "index=), which gives each call the same ones")
    if rng is None:
        return CRng(*address_of(0 if seed is None else seed, 0 if stream is None else stream, 0 if index is None else index))
    if not isinstance(rng, Random):
        raise InputError(f"rng: expected an mpsim.Random, found {type(rng).__name__}")
    if given:
        raise InputError("rng: expected no seed, stream or index beside it: an mpsim.Random has its own")
    return rng.take(n)
