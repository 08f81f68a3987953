"""A referee for kernels: whether results have the bits of a row, and what is wrong where they have not.

    from mpsim import testing

    print(testing.judge("cast", x=x, y=y))                       # which cast is this?
    testing.assert_bits("quantise", like="mxfp8", x=x, codes=codes, scales=scales)
    testing.assert_bits("product", like="hopper-bf16-fp32", a=a, b=b, d=a @ b)

Arrays are of NumPy (with the dtypes of ml_dtypes), torch or JAX; codes may be integers of 8 bits. lib/include/mpsim/judge.h and
`mpsim judge --help` describe the kinds of operations, the roles of arrays, and the rows.
"""
from __future__ import annotations

from typing import Any, Optional, Sequence

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


# ---- a whole model (torch) ----

__all__ += ["compare_runs", "open_recording", "record", "replay_products"]


def record(model: Any, *, limit: int = 1 << 30) -> Any:
    """Record a model of torch, forward and backward, operation by operation:

        with testing.record(model) as run:
            model(x).sum().backward()

    Each tensor before and after an operation has a digest; its numbers are kept, once for equal ones, up to `limit` bytes. Of more only the
    digests are kept, which `run.left_out` counts, and judgements that need the numbers say that they could not be made.
    `run.save(folder)` writes a recording, which `open_recording(folder)` reads on any machine.
    """
    from ._stand import Recording

    return Recording(model, limit)


def open_recording(folder: str) -> Any:
    """A recording that `Recording.save` has written."""
    from ._stand import open_recording as _open_recording

    return _open_recording(folder)


def compare_runs(a: Any, b: Any, *, leading: bool = False) -> Any:
    """Which operation is the first whose difference is its own, of two recordings of a model that should agree: two stacks, two machines, eager and
    fused, trainer and sampler, or (leading=True) two batches whose first sequences are the same.

    Operations are aligned by module and name; casts may be missing in one run. An operation whose inputs are equal and whose results differ is
    guilty. One whose inputs differ already inherits that, unless its results are not those that its own inputs give: by the row of the other
    run for a product, by torch on this CPU for another operation. Of the guilty the class is told: "order" of sums, "split" of the depth,
    "format", "formula" (also an argument, a factor, a permutation), "dropped" (zeros), "weights", "inputs", "random".

    print(runs) shows the first guilty operation, runs.first; runs.guilty, equal, inherited, unjudged, only and as_dict() have the rest.
    """
    from ._guilty import compare

    return compare(a, b, leading)


def replay_products(recording: Any, rows: Sequence[str] = ()) -> Any:
    """Compute the recorded products (mm, addmm, bmm, baddbmm) again on this CPU, and compare all bits: by the rows of torch on a CPU, by `rows`,
    else by a row that the judge of products finds. Products of which no row is known are counted as such.

    Rows beside those of `judge`: mpsim.testing knows MKL's products of binary32, "mkl-fp32" (chains of FMAs over blocks of 384 of the
    depth, the last two alike), and "mkl-fp32:parts=2", where two threads have half of the depth each.
    """
    from ._replay import replay

    return replay(recording, tuple(rows))
