#!/usr/bin/env python3
"""controls.py -- how many recorded results a wrong rule misses, without libmpsim: integers of any size, one sum after the other.

    controls.py FILE.npz [TYPE.RESULT [CHANGE...]]

A CHANGE is written as in tests/dot/t-tensorcore.c, whose counts this prints: "F=24", "L=8", "acc=e8m22",
"order=sequential", ...; "=exact" and "=fma" for those; after '@' what becomes of c: kept, zero, rounded (to fp16).
Without one it prints the changes that are listed below. The model that the changes are made to is the row of the GPU below.
Needs nothing but Python."""
import ast
import struct
import sys
import zipfile

UNIT = 400  # numbers are integers, in units of 2^-UNIT
FORMATS = {"fp16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "e4m3": (4, 3), "e5m2": (5, 2), "binary32": (8, 23)}
ROWS = {  # L, F, accumulator, its rounding, result; chunks of 32 in quads: chunk, operands as fp16
    "fp16.d_fp32": dict(L=16, F=25, acc="binary32", round="toward-zero", result="binary32"),
    "fp16.d_fp16": dict(L=16, F=25, acc="fp16", round="nearest-even", result="fp16"),
    "bf16.d_fp32": dict(L=16, F=25, acc="binary32", round="toward-zero", result="binary32"),
    "tf32.d_fp32": dict(L=8, F=25, acc="binary32", round="toward-zero", result="binary32"),
    "fp8.d_fp32": dict(L=16, F=25, acc="binary32", round="toward-zero", result="binary32", chunk=32, order="quads", emin=-14),
    "fp8.d_fp16": dict(L=16, F=25, acc="fp16", round="nearest-even", outer="fp16", result="fp16", chunk=32, order="quads", emin=-14),
}
COMMON = ["F=24", "F=26", "L=8", "round=nearest-even", "normalised=1", "align=floor", "align=nearest", "@zero", "@rounded"]
HALF = ["F=24", "F=26", "L=8", "round=toward-zero", "normalised=1", "align=floor", "align=nearest", "@zero", "result=binary32@kept",
        "chunk=16"]
FP8 = ["order=sequential", "chunk=0:order=sequential:L=32", "chunk=0:order=sequential", "F=23", "F=24", "F=26", "L=8",
       "L=32", "chunk=16", "chunk=64", "acc=e8m22", "outer-round=toward-zero", "@zero", "@rounded", "=exact", "=pairwise"]
FP8_HALF = ["order=sequential", "chunk=0:order=sequential:L=32", "chunk=0:order=sequential",
            "chunk=0:order=sequential:L=32:F=13", "F=23", "F=24", "F=26", "F=27", "L=8", "L=32", "chunk=16", "chunk=64",
            "acc=binary32", "round=toward-zero", "outer-round=toward-zero", "@zero", "result=binary32@kept"]
CHANGES = {"fp16.d_fp32": COMMON + ["acc=e8m22", "chunk=16", "floor=0", "=exact", "=exact:result-round=toward-zero", "=fma:round=toward-zero"],
           "fp16.d_fp16": HALF, "bf16.d_fp32": COMMON + ["acc=e8m22", "chunk=16"],
           "tf32.d_fp32": ["L=4" if c == "L=8" else c for c in COMMON] + ["L=2"], "fp8.d_fp32": FP8, "fp8.d_fp16": FP8_HALF}


def read(path):
    arrays = {}
    with zipfile.ZipFile(path) as z:
        for name in z.namelist():
            data = z.read(name)
            size = struct.unpack_from("<H", data, 8)[0]
            head = ast.literal_eval(data[10:10 + size].decode("latin-1"))
            assert head["descr"] == "<f4" and not head["fortran_order"], name
            arrays[name.removesuffix(".npy")] = head["shape"], struct.unpack_from(f"<{(len(data) - 10 - size) // 4}f", data, 10 + size)
    return arrays


def integer(x):
    n, d = x.as_integer_ratio()
    return n * ((1 << UNIT) // d)


def exponent(v):
    """floor(log2 |v|) of a number that is not 0."""
    return abs(v).bit_length() - 1 - UNIT


def keep(v, q, how):
    """v as a multiple of 2^q units."""
    if q <= 0:
        return v
    magnitude, sign = abs(v), -1 if v < 0 else 1
    low = magnitude & ((1 << q) - 1)
    m = magnitude >> q
    if how == "nearest-even":
        half = 1 << (q - 1)
        m += low > half or (low == half and m & 1)
    elif how == "floor":
        m += sign < 0 and low > 0
    return sign * m << q


def bits(name):
    if name in FORMATS:
        return FORMATS[name]
    e, m = name[1:].split("m")
    return int(e), int(m)


def rounded(v, name, how):
    if v == 0:
        return 0
    e, m = bits(name)
    return keep(v, UNIT + max(exponent(v), 2 - (1 << (e - 1))) - m, how)


def addition(terms, s, row):
    """The sum of products, each (exponent, number), and the number s."""
    present = [t for t in terms if t[1]] + ([(exponent(s), s)] if s else [])
    if not present:
        return 0
    top = max(max(e for e, _ in present), row.get("floor", -10000))
    how = {"truncate": "toward-zero", "floor": "floor", "nearest": "nearest-even"}[row.get("align", "truncate")]
    total = sum(keep(v, UNIT + top - row["F"], how) for _, v in present)
    return rounded(total, row["acc"], row["round"])


def products(a, b, emin, normalised):
    terms = []
    for x, y in zip(a, b):
        p = x * y >> UNIT
        e = max(exponent(x), emin) + max(exponent(y), emin) if p else 0
        terms.append((exponent(p) if p and normalised else e, p))
    return terms


def ordered(chunk, order):
    if order != "quads":
        return chunk
    return [t for g in (0, 2) for k, t in enumerate(chunk) if k & 2 == g]


def dot(a, b, c, row, emin):
    terms = products(a, b, row.get("emin", emin), row.get("normalised"))
    if row.get("model") in ("exact", "pairwise", "fma"):
        return software(terms, c, row)
    n = row.get("chunk", 0)
    total = c
    for first in range(0, len(terms), n or len(terms)):
        chunk = ordered(terms[first:first + n] if n else terms, row.get("order"))
        s = 0 if n else total
        for i in range(0, len(chunk), row["L"]):
            s = addition(chunk[i:i + row["L"]], s, row)
        total = rounded(total + s, row.get("outer", row["result"]), row.get("outer-round", "nearest-even")) if n else s
    return rounded(total, row["result"], "nearest-even")


def software(terms, c, row):
    numbers = [p for _, p in terms]
    if row["model"] == "exact":
        return rounded(c + sum(numbers), "binary32", row.get("result-round", "nearest-even"))
    if row["model"] == "fma":
        for p in numbers:
            c = rounded(c + p, "binary32", row.get("round", "nearest-even"))
        return c
    while len(numbers) > 1:
        numbers = [rounded(sum(numbers[i:i + 2]), "binary32", "nearest-even") for i in range(0, len(numbers), 2)]
    return rounded(c + numbers[0], "binary32", "nearest-even")


def changed(row, change):
    """The row and what becomes of c: as recorded, in fp16 for a result in fp16."""
    text, _, use = change.partition("@")
    row = dict(row)
    if text.startswith("="):
        row["model"], _, text = text[1:].partition(":")
        row["result"] = "binary32"
    for part in filter(None, text.split(":")):
        key, value = part.split("=")
        row[key] = int(value) if value.lstrip("-").isdigit() else value
    return row, use or ("rounded" if row["result"] == "fp16" else "kept")


def missed(arrays, kind, change):
    name, result = kind.split(".")
    row, use = changed(ROWS[kind if kind in ROWS else "fp8." + result], change)
    (n, k), a = arrays[name + ".a"]
    b, c, d = (arrays[f"{name}.{part}"][1] for part in ("b", "c", result))
    e = bits(name)[0]
    wrong = 0
    for i in range(n):
        at = slice(i * k, i * k + k)
        addend = 0 if use == "zero" else integer(c[i])
        if use == "rounded":
            addend = rounded(addend, "fp16", "nearest-even")
        wrong += dot([integer(x) for x in a[at]], [integer(x) for x in b[at]], addend, row, 2 - (1 << (e - 1))) != integer(d[i])
    return wrong


def main():
    arrays = read(sys.argv[1])
    kinds = sys.argv[2:3] or sorted(n for n in arrays if ".d_" in n)
    for kind in kinds:
        listed = CHANGES[kind if kind in CHANGES else "fp8." + kind.split(".")[1]]
        for change in sys.argv[3:] or ["", *listed]:
            print(kind, change or "-", missed(arrays, kind, change), flush=True)


main()
