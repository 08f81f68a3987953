"""A referee for kernels: do results have the bits of a row (a definition with a name, as "e4m3@cuda"), and if not, what is wrong?

    from mpsim import testing

    print(testing.judge("cast", x=x, y=y))                       # which cast is this?
    testing.assert_bits("quantise", like="mxfp8", x=x, codes=codes, scales=scales)
    testing.assert_bits("product", like="hopper-bf16-fp32", a=a, b=b, d=a @ b)
    testing.assert_bits(my_kernel, like="mxfp8")             # called with inputs that tell rows apart
    print(testing.invariance(torch.matmul, a, b))            # do rows depend on the batch, strides, threads?

Arrays are of NumPy (with the dtypes of ml_dtypes), torch or JAX; codes may be integers of 8 bits. lib/include/mpsim/judge.h and
`mpsim judge --help` describe the kinds of operations, the roles of arrays, and the rows.

Tensors may be on a device: judges run on the CPU, and tensors are copied to it. `device="cuda"` calls a kernel with inputs there:

    testing.assert_bits(my_kernel, like="mxfp8", device="cuda")
"""
from __future__ import annotations

import os
from typing import Any, Callable, Optional, Sequence, Union

from ._error import InputError
from ._inputs import Inputs, here as _here, inputs as _inputs, results as _results
from ._invariance import Invariance, invariance
from ._judge import Finding, Judgement, Place, judge as _judge, kinds
from ._tolerance import Tolerance, tolerance as _tolerance

__all__ = ["Finding", "Inputs", "Invariance", "Judgement", "Place", "Tolerance", "assert_bits", "inputs", "invariance", "judge", "kinds",
           "tolerance"]


def judge(kind: str, like: Optional[str] = None, **arrays: Any) -> Judgement:
    """Find the row that gives the results of an operation, or what is wrong with them.

    kind: "cast" (x, y), "quantise" (x, and codes, scales or y), "product" (a, b, d), ...: `kinds()` lists all, `mpsim judge --help=all`
    their arrays. A row is a definition with a name, as "e4m3@cuda", "mxfp8" or "rmsnorm:eps=1e-6".
    like: the row that should give the results. Without it the judge searches the row with the fewest different results. All bits
    are compared, those of NaNs and zeros, too, but for results in a wider format that stand for codes of a narrower one.

    >>> x = np.float32([1, 1.0625, 1.1875, 500])
    >>> mpsim.testing.judge("cast", x=x, y=mpsim.round(x, "e4m3", overflow="saturate"))
    <Judgement e4m3@saturate: equal>
    """
    return _judge(kind, like, {role: _here(x) for role, x in arrays.items()})


def inputs(row: str, like: Optional[str] = None, *, dtype: Any = None, array: Optional[str] = None, device: str = "cpu") -> Inputs:
    """A small set of inputs that tells a row from all others of its kind: a mapping from roles to arrays.

    row: a row, whose kind follows from it, or a kind ("cast", "quantise", "product", "attention", "arith") of all rows. like: a row of the
    kind `row`.
    dtype: of the inputs, or its name; the default is float32, of a product what its model takes. array: "numpy" (dtypes that NumPy
    does not have are of ml_dtypes) or "torch"; None: "torch" where `device`, a device of torch's, is not the CPU.

    >>> mpsim.testing.inputs("mxfp8")
    <Inputs mxfp8 (quantise): x 109x96; 16 rows in 10 classes>
    """
    if like is not None and row not in kinds():
        raise InputError(f"inputs: expected a kind of operation before like={like!r}, found {row!r}")
    made = _inputs(like or row, dtype, array, device)
    if like is not None and made.kind != row:
        raise InputError(f"inputs: {like!r} is a row of {made.kind}, not of {row}")
    return made


def tolerance(row: str, *, depth: int = 0, dtype: Any = None, to: Any = None) -> Tolerance:
    """The largest error that a correct kernel of a row can have, with its reason: `rtol` times what `of` names, plus `atol`.

    depth: of a product how many products are added. dtype: of the inputs of a cast; to: of the results of a product. No bound is known for
    some rows, which are refused.

    >>> t = mpsim.testing.tolerance("e4m3")
    >>> t.rtol, t.atol, t.of
    (0.0625, 0.0009765625, '|x|')
    >>> mpsim.testing.tolerance("hopper-bf16-fp32", depth=4096, to="bf16")
    <Tolerance hopper-bf16-fp32: 0.00405945 * sum |a b| + 4.62877e-41>
    """
    return _tolerance(row, depth, dtype, to)


def _call(kernel: Callable[..., Any], like: str, made: Inputs) -> Judgement:
    return _judge(made.kind, like, {**{role: _here(x) for role, x in made.items()}, **_results(made.kind, kernel(*made.values()))})


def assert_bits(kernel: Union[str, Callable[..., Any]], *, like: str, dtype: Any = None, array: Optional[str] = None, device: str = "cpu",
                **arrays: Any) -> Judgement:
    """Results or a kernel, as an assertion for tests: AssertionError with the whole judgement unless all results are those of `like`.

    kernel: a kind of operation, whose arrays are given by their roles; or what is called, once, with the arrays of
    `inputs(like, dtype=dtype, array=array, device=device)`: kernel(x), of a product kernel(a, b), of attention kernel(q, k, v), one head. It returns the results: an
    array (y, of a product d, of attention o; codes if they have 8 bits), a tuple (codes, scales; o, lse), or a dict by roles. device="cuda": the arrays are tensors
    there, and what the kernel returns is copied to the CPU, where the judge runs.

    >>> x = np.float32([1, 1.0625, 1.1875, 2])
    >>> mpsim.testing.assert_bits("cast", like="e4m3", x=x, y=mpsim.encode(x, "e4m3"))
    <Judgement e4m3: equal>
    >>> mpsim.testing.assert_bits(lambda x: mpsim.encode(x, "e4m3"), like="e4m3")
    <Judgement e4m3: equal>
    """
    __tracebackhide__ = True
    if callable(kernel):
        judgement = _call(kernel, like, _inputs(like, dtype, array, device))
    else:
        judgement = judge(kernel, like, **arrays)
    if not judgement.equal:
        raise AssertionError(str(judgement))
    return judgement


# ---- a whole model (torch) ----

__all__ += ["compare_runs", "open_recording", "record", "replay_products"]


def record(model: Any, *, limit: int = 1 << 30) -> Any:
    """Record a model of torch, forward and backward, operation by operation:

        with testing.record(model) as run:
            model(x).sum().backward()

    Record a model before torch.compile: torch runs a compiled one operation by operation while it is recorded, so it is refused.

    Each tensor before and after an operation has a digest. The numbers of equal tensors are kept once, up to `limit` bytes in all. Beyond
    the limit only digests are kept; `run.left_out` counts them, and reports list the operations that could not be judged.
    `run.save(folder)` writes a recording, which `open_recording(folder)` reads on any machine.
    """
    from ._stand import Recording

    return Recording(model, limit)


def open_recording(folder: str) -> Any:
    """A recording that `Recording.save` has written."""
    from ._stand import open_recording as _open_recording

    return _open_recording(folder)


def _recording(x: Any) -> Any:
    return open_recording(os.fspath(x)) if isinstance(x, (str, os.PathLike)) else x


def compare_runs(a: Any, b: Any, *, leading: bool = False) -> Any:
    """Which operation is the first whose difference is its own, of two recordings (or folders of `Recording.save`) of a model that should agree: two stacks, two machines, eager and
    fused, trainer and sampler, or (leading=True) two batches whose first sequences are the same.

    Operations are aligned by module and name; casts may be missing in one run. An operation whose inputs are equal and whose results differ is
    guilty. One whose inputs differ already inherits that, unless its own inputs give other results: by the row of the other
    run, where the judge has rows of this kind of operation, or by torch on this CPU. Each guilty operation has a class: "order" of sums, "split" of
    the depth, "format" (also a rounding mode), "formula" (also an argument, a factor, a permutation), "dropped" (zeros), "weights", "inputs",
    "random".

    print(runs) shows the first guilty operation, runs.first, with its rows in both runs and the places of the first results that differ; runs.guilty,
    equal, inherited, unproven, unjudged, only and as_dict() have the rest. Unproven are operations that inherit a difference, and of which neither a row
    nor torch says whether they differ themselves.
    """
    from ._guilty import compare

    return compare(_recording(a), _recording(b), leading)


def replay_products(recording: Any, rows: Sequence[str] = ()) -> Any:
    """Compute the products (mm, addmm, bmm, baddbmm) of a recording, or of its folder, again on this CPU, and compare all bits: by the rows of torch on a CPU, by `rows`,
    else by a row that the judge of products finds. Products of which no row is known are counted as such.

    Rows beside those of `judge`: mpsim.testing knows MKL's products of binary32, "mkl-fp32" (chains of FMAs over blocks of 384 of the
    depth, the last two alike), and "mkl-fp32:parts=2", where two threads have half of the depth each.
    """
    from ._replay import replay

    return replay(_recording(recording), tuple(rows))
