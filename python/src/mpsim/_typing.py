"""Types of what the package's functions take and give, for their signatures."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, Sequence, TypeVar, Union

import numpy as np

if TYPE_CHECKING:
    from typing_extensions import TypeAlias, TypedDict

    from ._random import Random

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.floating[Any]]]
    Codes: TypeAlias = np.ndarray[Any, np.dtype[np.unsignedinteger[Any]]]
    Listed: TypeAlias = Union[Array, Sequence[Any]]  # of which NumPy makes arrays

    class Casting(TypedDict, total=False):
        """Keywords of round and encode."""

        scale: float
        rng: Random | None
        seed: int | None
        stream: int | None
        index: int | None
        preset: str | None
        overflow: Literal["inf", "saturate"] | None
        flush_subnormals: bool
        flush_inputs: bool

    class Adding(TypedDict, total=False):
        """Keywords of gemm."""

        format: Any
        transpose_a: bool
        transpose_b: bool
        rng: Random | None
        seed: int | None
        stream: int | None
        index: int | None


Mode = Union[Literal["nearest-even", "nearest-away", "toward-zero", "up", "down", "to-odd", "stochastic-a", "stochastic-b",
                     "stochastic-c"], str]
Overflow = Literal["inf", "saturate"]
Axis = Union[Literal["rows", "columns"], int]


class Tensor(Protocol):
    """An array of torch or JAX."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def device(self) -> Any: ...


T = TypeVar("T", bound=Tensor)  # what comes in is what comes out
