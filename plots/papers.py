"""papers.py [--quick] [NAME...] -- numbers of papers and pull requests, computed by mpsim: the tables of doc/gallery.md.

    python3 plots/papers.py                          all tables: curves, tf32, attention, blocks
    python3 plots/papers.py tf32                     one of them
    python3 plots/papers.py --quick                  fewer rows, and attention of fewer tokens: three seconds, for a test
    python3 plots/papers.py curves-of FOLDER         all points of the files of north-numerical-computing/MATLAB-tensor-core,
                                                     FOLDER: its experiments/data; a minute

Needs NumPy and the package mpsim. Random numbers are those of NumPy's RandomState, which no version changes.
"""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Iterator

import numpy as np

import mpsim

# ---- a table: label, published, here ----

def table(name: str, digits: int, rows: list[tuple[str, float, float]], unit: str = "%") -> str:
    """Lines as the page shows them. The difference is relative, in per cent; of decibels it is in these."""
    lines = [f"{name:<34} {'published':>12} {'here':>12}  difference"]
    for label, published, here in rows:
        gap = here - published if unit == "dB" else 100 * (here / published - 1)
        old, new = f"{published:.{digits}g}", f"{here:.{digits}g}"
        lines.append(f"{label:<34} {old:>12} {new:>12}  {'0' if old == new else f'{gap:+.2g} {unit}'}")
    return "\n".join(lines) + "\n"


# ---- curves: errors of products over their length (arXiv 2512.07004) ----
# format: its name there, significand bits, largest exponent; words a number is split into; devices and their models
RN = ":round=nearest-even"
CURVES: dict[str, tuple[str, int, int, tuple[int, ...], dict[str, str]]] = {
    "fp16": ("binary16", 11, 15, (1, 2, 3), {"v100": "volta-fp16-fp32", "a100": "ampere-fp16-fp32", "b200": "blackwell-fp16-fp32",
                                             "b200rn": "blackwell-fp16-fp32" + RN}),
    "bf16": ("bfloat16", 8, 127, (1, 2, 3), {"a100": "ampere-bf16-fp32", "b200": "blackwell-bf16-fp32", "b200rn": "blackwell-bf16-fp32" + RN}),
    "e5m2": ("fp8-e5m2", 3, 15, (1, 4, 6), {"l40s": "ada-fp8-fp32", "h100": "hopper-wgmma-fp8-fp32", "b200": "blackwell-tcgen05-fp8-fp32",
                                            "b200rn": "blackwell-tcgen05-fp8-fp32" + RN}),
}
LENGTHS = [int(n) for n in np.floor(np.logspace(1, 6, 20))]
LARGEST = 2.0**127 * (2 - 2.0**-23)
ROWS = {"fp16": {("v100", 1, 33): 2.227115e-04, ("b200", 3, 206): 7.306878e-08}, "bf16": {("a100", 2, 33): 1.068589e-05},
        "e5m2": {("b200", 6, 379): 4.766122e-07, ("l40s", 1, 33): 4.384558e-02, ("h100", 1, 18): 1.204863e-01}}


def operands(rng: Any, n: int) -> tuple[Any, Any]:
    """10 x n and n x 10 numbers of uniformly distributed logarithms and random signs, in MATLAB's order (down columns)."""
    a, b = (10.0 ** (rng.random_sample(shape).T * 20 - 10) for shape in ((n, 10), (10, n)))
    s, t = (np.floor(rng.random_sample(shape).T * 2) * 2 - 1 for shape in ((n, 10), (10, n)))
    return a * s, b * t


def in_words(x: Any, format: str, words: int, u: float, mode: str) -> list[Any]:
    """x as a sum of words times powers of u, each rounded to the format."""
    parts: list[Any] = []
    for i in range(words):
        if parts:
            x = x - parts[-1] * u ** (i - 1)
        parts.append(mpsim.round(x / u**i, format, mode))
    return parts


def norm(x: Any) -> float:
    return float(np.abs(x).sum(1).max())


def error(a: Any, b: Any, format: str, words: int, model: str, mode: str) -> float:
    """The relative error of a b in the norm of infinity, by rows and columns scaled to the range of the format."""
    _, bits, emax, _, _ = CURVES[format]
    u = 2.0**-bits
    theta = min(2.0**emax * (2 - 2 * u), np.sqrt(LARGEST / a.shape[1]))
    left = 2.0 ** np.floor(np.log2(theta / np.abs(a).max(1)))[:, None]
    right = 2.0 ** np.floor(np.log2(theta / np.abs(b).max(0)))[None, :]
    p, q = in_words(left * a, format, words, u, mode), in_words(b * right, format, words, u, mode)
    c = np.zeros((10, 10), np.float32)
    for i in range(words):
        for j in range(words - i):
            x = mpsim.round(u ** (i + j) * p[i], format).astype(np.float32)
            c = np.asarray(mpsim.gemm(x, q[j].astype(np.float32), c, model, format=format))
    exact = a @ b
    return norm(c / left / right - exact) / norm(a) / norm(b)


def points(format: str, wanted: set[tuple[str, int, int]], mode: str = "toward-zero") -> Iterator[tuple[str, int, int, float]]:
    """The wanted (device, words, length) of a format, with the errors. All devices see the same numbers; of e5m2 B200RN sees those that
    follow, since the authors' script does not seed again there."""
    _, _, _, all_words, devices = CURVES[format]
    later = ["b200rn"] if format == "e5m2" else []
    groups = [[d for d in devices if d not in later], later]
    left = set(wanted)
    rng = np.random.RandomState(1)
    for names, words, n in ((names, words, n) for names in groups for words in all_words for n in LENGTHS):
        if not left:
            return
        here = [d for d in names if (d, words, n) in left]
        if not here:
            for _ in range(40):
                rng.random_sample(n)
            continue
        a, b = operands(rng, n)
        for device in here:
            left.discard((device, words, n))
            yield device, words, n, error(a, b, format, words, devices[device], mode)


def curves(quick: bool) -> str:
    rows = []
    for format, listed in ROWS.items():
        listed = {at: e for at, e in listed.items() if at[1] == 1 or not quick}
        for device, words, n, here in points(format, set(listed)):
            rows.append((f"{format} {device.upper()}, words={words}, n={n}", listed[device, words, n], here))
    here = next(points("e5m2", {("h100", 1, 18)}, "nearest-even"))[3]
    rows.append(("e5m2 H100, n=18, to nearest", 1.204863e-01, here))
    return table("relative error", 7, rows)


def curves_of(folder: str) -> str:
    """Every point of the files, with operands that are truncated; what differs is listed, and whether nearest gives it."""
    equal = total = 0
    differ = []
    for format, (name, _, _, all_words, devices) in CURVES.items():
        wanted = {(d, w, n) for d in devices for w in all_words for n in LENGTHS}
        files = {(d, w): (Path(folder) / f"matmul_test_{name}_binary32_words_{w}_model_{d}.dat").read_text() for d in devices for w in all_words}
        published = {(d, w, int(line.split()[0])): line.split()[1] for (d, w), text in files.items() for line in text.splitlines()[1:]}
        for device, words, n, here in points(format, wanted):
            total += 1
            equal += f"{here:e}" == published[device, words, n]
            if f"{here:e}" != published[device, words, n]:
                nearest = next(points(format, {(device, words, n)}, "nearest-even"))[3]
                differ.append(f"{format} {device} words {words} n {n}: published {published[device, words, n]}, here {here:e}, to nearest {nearest:e}")
    return "\n".join([f"{equal} of {total} points equal in seven digits", *differ]) + "\n"


# ---- tf32: three products of TF32 for one of binary32 (Triton, pull request 4934, on an A100) ----
A100 = "ampere-tf32-fp32"
BEFORE = {256: 1.366855e-09, 512: 1.157405e-08, 1024: 9.253924e-08, 2048: 7.500014e-07}
AFTER = {2048: 1.443346e-09}


def three_products(a: Any, b: Any, depth: int, into: bool) -> Any:
    """a b of normal numbers in blocks of the depth; a number is a large and a small part in TF32. into: small products are added to the
    running sum, as before the change; else each block is summed from zero and added in binary32."""
    large, small = [], []
    for x in (a, b):
        large.append(np.asarray(mpsim.round(x, "tf32", "nearest-away")))
        small.append(np.asarray(mpsim.round(x - large[-1], "tf32", "nearest-away")))
    c = np.zeros((len(a), b.shape[1]), np.float32)
    for k in range(0, len(b), depth):
        part = slice(k, k + depth)
        d = c if into else None
        for x, y in ((small[0], large[1]), (large[0], small[1]), (large[0], large[1])):
            d = mpsim.gemm(np.ascontiguousarray(x[:, part]), np.ascontiguousarray(y[part]), d, A100, format="tf32")
        c = np.asarray(d) if into else (c + np.asarray(d)).astype(np.float32)
    return c


def tf32(quick: bool) -> str:
    rows = []
    for n in (256, 512) if quick else BEFORE:
        rng = np.random.RandomState(1)
        a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((64, n), (n, 64)))
        chain = np.asarray(mpsim.gemm(a, b, model="fma", format="binary32"), np.float64)
        for when, table_of, into in (("before", BEFORE, True), ("after", AFTER, False)):
            if n in table_of:
                rows.append((f"{when}, n={n}", table_of[n], float(np.mean((three_products(a, b, 32, into) - chain) ** 2))))
    return table("mean squared error", 3, rows)


# ---- attention: FlashAttention-3 (arXiv 2407.08608), table 3 ----
def with_outliers(rng: Any, tokens: int) -> Any:
    """tokens x 128: normal numbers; to one in a thousand another one is added whose deviation is 10."""
    x, y = rng.standard_normal((2, tokens, 128))
    return (x + 10 * y * (rng.random_sample((tokens, 128)) < 0.001)).astype(np.float32)


def scaled(x: Any, rows: int) -> Any:
    """x in e4m3 with a scale for so many rows: what codes and scales stand for."""
    blocks = x.reshape(-1, rows * x.shape[1])
    s = np.abs(blocks).max(1, keepdims=True).astype(np.float64) / 448
    return (np.asarray(mpsim.round((blocks / s).astype(np.float32), "e4m3"), np.float64) * s).astype(np.float32).reshape(x.shape)


def hadamard(n: int) -> Any:
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return h / np.sqrt(n)


def exact_attention(q: Any, k: Any, v: Any) -> Any:
    out = []
    for rows in np.split(q.astype(np.float64), 8):
        s = rows @ k.T.astype(np.float64) / np.sqrt(q.shape[1])
        p = np.exp(s - s.max(1, keepdims=True))
        out.append(p @ v.astype(np.float64) / p.sum(1, keepdims=True))
    return np.concatenate(out)


def attention(quick: bool) -> str:
    tokens, queries = (1024, 128) if quick else (8192, 2048)
    rng = np.random.RandomState(1)
    q, k, v = (with_outliers(rng, tokens) for _ in range(3))
    m = hadamard(128) * np.where(rng.random_sample(128) < 0.5, -1, 1)[:, None]
    turned_q, turned_k = ((x @ m).astype(np.float32) for x in (q, k))
    exact = exact_attention(q[:queries], k, v)

    def rmse(q: Any, k: Any, v: Any, **how: Any) -> float:
        y = mpsim.attention(q[None, :queries], k[None], v[None], result="fp16", **how).y
        return float(np.sqrt(np.mean((np.asarray(y[0], np.float64) - exact) ** 2)))

    def standard(q: Any, k: Any, v: Any, p_rows: int) -> float:
        """Scores, scaled scores and P as a framework stores them: in fp16. p_rows: P goes into the product in e4m3, with a scale for so many rows."""
        s = mpsim.round(q[:queries] @ k.T, "fp16")  # sums of exact products in binary32, as on a tensor core
        s = np.asarray(mpsim.round(np.asarray(s) / np.float32(np.sqrt(128)), "fp16"), np.float64)
        p = np.exp(s - s.max(1, keepdims=True))
        p = np.asarray(mpsim.round((p / p.sum(1, keepdims=True)).astype(np.float32), "fp16"))
        y = mpsim.round((scaled(p, p_rows) if p_rows else p) @ v, "fp16")
        return float(np.sqrt(np.mean((np.asarray(y, np.float64) - exact) ** 2)))

    in_fp16 = [np.asarray(mpsim.round(x, "fp16")) for x in (q, k, v)]
    fp16 = {"format": "fp16", "model": "hopper-fp16-fp32"}
    fp8 = {"format": "binary32", "model": "fma"}  # the numbers that codes and scales stand for
    rows = [("fp16 standard", 3.2e-4, standard(*in_fp16, 0)),
            ("fp16 FlashAttention-3", 1.9e-4, rmse(q, k, v, exp2=True, reverse=True, **fp16)),
            ("e4m3 standard", 2.4e-2, standard(scaled(q, tokens), scaled(k, tokens), scaled(v, tokens), queries)),
            ("e4m3 FlashAttention-3", 9.1e-3, rmse(scaled(turned_q, 128), scaled(turned_k, 128), scaled(v, 128), p="e4m3", exp2=True, **fp8)),
            ("e4m3 without block scales", 9.3e-3, rmse(scaled(turned_q, tokens), scaled(turned_k, tokens), scaled(v, tokens), p="e4m3", exp2=True, **fp8)),
            ("e4m3 without Hadamard transform", 2.4e-2, rmse(scaled(q, 128), scaled(k, 128), scaled(v, 128), p="e4m3", exp2=True, **fp8))]
    return table("root mean square error", 2, rows)


# ---- blocks: torchao, pull request 1763 ----
def blocks(_: bool) -> str:
    rows = []
    rng = np.random.RandomState(1)
    depth, columns = 8192, 1024
    x = rng.standard_normal((16, depth)).astype(np.float16).astype(np.float32)
    w = ((rng.random_sample((columns, depth)) * 2 - 1) / np.sqrt(depth)).astype(np.float16).astype(np.float32)
    exact = x.astype(np.float64) @ w.T.astype(np.float64)
    for format, published in (("e4m3", 28.8681), ("e5m2", 22.9387)):
        p, q = (np.asarray(mpsim.quantize(t, f"{format}/{block}").values, np.float64) for t, block in ((x, "1x128"), (w, "128x128")))
        rows.append((f"{format}, n=8192", published, float(-20 * np.log10(np.linalg.norm(p @ q.T - exact) / np.linalg.norm(exact)))))
    return table("signal to noise (dB)", 4, rows, "dB")


TABLES = {"curves": curves, "tf32": tf32, "attention": attention, "blocks": blocks}


def main(words: list[str]) -> None:
    if words[:1] == ["curves-of"] and len(words) == 2:
        print(curves_of(words[1]), end="")
        return
    quick = "--quick" in words
    names = [w for w in words if w != "--quick"] or list(TABLES)
    if any(n not in TABLES for n in names):
        sys.exit(f"papers.py: expected {', '.join(TABLES)} or curves-of FOLDER, found {' '.join(names)}")
    print("\n".join(TABLES[n](quick) for n in names), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
