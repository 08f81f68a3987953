"""A referee for kernels: whether results have the bits of a row, and what is wrong where they have not.

    from mpsim import testing

    print(testing.judge("cast", x=x, y=y))                       # which cast is this?
    testing.assert_bits("quantise", like="mxfp8", x=x, codes=codes, scales=scales)
    testing.assert_bits("product", like="hopper-bf16-fp32", a=a, b=b, d=a @ b)

Arrays are of NumPy (with the dtypes of ml_dtypes), torch or JAX; codes may be integers of 8 bits. lib/include/mpsim/judge.h and
`mpsim judge --help` describe the kinds of operations, the roles of arrays, and the rows.
"""
from __future__ import annotations

from typing import Any, Optional

from ._judge import Finding, Judgement, Place, judge as _judge, kinds

__all__ = ["Finding", "Judgement", "Place", "assert_bits", "judge", "kinds"]


def judge(kind: str, like: Optional[str] = None, **arrays: Any) -> Judgement:
    """Judge results of an operation: "cast" (x, y), "quantise" (x, and codes, scales or y), "product" (a, b, d).

    like: the row that should give the results; without one the row with the fewest other results is searched. All bits are
    compared, those of NaNs and zeros, too, but for results that stand for codes of a narrower format.

    >>> x = np.float32([1, 1.0625, 1.1875, 500])
    >>> mpsim.testing.judge("cast", x=x, y=mpsim.round(x, "e4m3", overflow="saturate"))
    <Judgement e4m3@saturate: equal>
    """
    return _judge(kind, like, arrays)


def assert_bits(kind: str, *, like: str, **arrays: Any) -> Judgement:
    """The same, as an assertion for tests: AssertionError with the whole judgement unless all results are those of the row `like`.

    >>> x = np.float32([1, 1.0625, 1.1875, 2])
    >>> mpsim.testing.assert_bits("cast", like="e4m3", x=x, y=mpsim.encode(x, "e4m3"))
    <Judgement e4m3: equal>
    """
    __tracebackhide__ = True
    judgement = _judge(kind, like, arrays)
    if not judgement.equal:
        raise AssertionError(str(judgement))
    return judgement
