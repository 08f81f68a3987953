# SPDX-License-Identifier: Apache-2.0
"""Record what real frameworks' casts from binary32 give, as text vectors.

    python3 record_casts.py ml_dtypes > ml_dtypes.txt     (chooses the inputs)
    python3 record_casts.py decode > ml_dtypes_decode.txt
    python3 record_casts.py torch ml_dtypes.txt .         (writes torch-VERSION*.txt; again with
                                                           ATEN_CPU_CAPABILITY=default)
    python3 record_casts.py onnx ml_dtypes.txt > onnx.txt

Rows: input bits, then the result's bits, one column per target, all in hex.
"""
import platform
import random
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")
ML = ("bfloat16 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 "
      "float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn").split()
TORCH = "float16 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu".split()
NANS = (0x7f800001, 0x7f802000, 0x7f808000, 0x7f80ffff, 0x7fa00000, 0x7fbfffff, 0x7fc00000, 0x7fc00001, 0x7fe003cf,
        0x7ff000f6, 0x7fffe2da, 0x7fff8c22, 0x7fffffff)


def f2b(x):
    return int(np.float32(x).view(np.uint32))


def nbits(name):
    return {"bfloat16": 16, "float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4}.get(name, 8)


def decode(name):
    import ml_dtypes
    return np.arange(2 ** nbits(name), dtype=np.uint8).view(getattr(ml_dtypes, name)).astype(np.float32)


def choose_inputs():
    """Values, midpoints and their float neighbours of the small formats, edges of the large ones, specials."""
    import ml_dtypes
    pick, pos = random.Random(2024), set()

    def around(x, width=1):
        b = f2b(x)
        pos.update(c for c in range(b - width, b + width + 1) if 0 <= c <= 0x7f800000)

    for name in ML:
        if name in ("bfloat16", "float8_e8m0fnu"):
            continue
        v = sorted({float(x) for x in decode(name) if np.isfinite(x) and x >= 0})
        v.append(2 * v[-1] - v[-2])                       # the next step beyond the largest value
        dense = name in ("float8_e4m3fn", "float8_e5m2") or nbits(name) < 8
        for lo, hi in zip(v, v[1:]):
            if dense or lo == 0 or lo < 4 * v[1] or lo > v[-1] / 3:
                around(lo)
                around((lo + hi) / 2)                     # exact: at most 6 significant bits
            else:                                         # the middle of the range: thinned
                around(lo, 0)
                around((lo + hi) / 2, pick.choice((0, 1)))
        around(v[-1])
    for e in range(-127, 128):                            # E8M0: powers of two and 1.5 x 2^e
        w = 1 if e < -124 or -4 < e < 5 or e > 124 else 0
        around(np.ldexp(1.0, e), w)
        if w or e % 4 == 0:
            around(np.ldexp(1.5, e), 1)
    first = set(pos)
    tiny = 2.0 ** -24
    for x in (tiny / 2, tiny, 1.5 * tiny, 2 * tiny, 2.5 * tiny, 2.0 ** -14, 2.0 ** -14 - tiny, 2.0 ** -14 - tiny / 2,
              1 + 2.0 ** -11, 1 + 3 * 2.0 ** -11, 65472.0, 65504.0, 65519.0, 65520.0, 65536.0, 131008.0):
        around(x, 2)                                      # fp16 edges
    for b in (0x00000000, 0x00000001, 0x00004000, 0x00008000, 0x0000c000, 0x00010000, 0x00018000, 0x00400000,
              0x007f8000, 0x007fffff, 0x00800000, 0x3f808000, 0x3f818000, 0x7f7f0000, 0x7f7f7fff, 0x7f7f8000,
              0x7f7fffff, 0x7f800000):                    # bf16 edges, float subnormals, infinity
        pos.update(c for c in range(b - 1, b + 2) if 0 <= c <= 0x7f800000)
    bits = set(pos)
    edges = pos - first                                   # these with both signs, of the others one in five
    bits.update(b | 0x80000000 for b in sorted(pos) if b in edges or b == 0 or pick.random() < 0.2)
    bits.update(pick.getrandbits(32) for _ in range(100))
    bits.update(pick.choice((0, 1)) << 31 | pick.randrange(100, 146) << 23 | pick.getrandbits(23) for _ in range(200))
    bits = {b for b in bits if b & 0x7fffffff <= 0x7f800000} | set(NANS) | {b | 0x80000000 for b in NANS}
    return sorted(bits)


def read_inputs(path):
    return [int(line.split()[0], 16) for line in open(path) if not line.startswith("#")]


def emit(out, head, names, inputs, columns):
    print("# SPDX-License-Identifier: Apache-2.0", file=out)
    for line in head + ["python " + platform.python_version() + ", " + platform.machine(),
                        "columns: input " + " ".join(names)]:
        print("#", line, file=out)
    widths = [2 * c.dtype.itemsize for c in columns]
    for i, b in enumerate(inputs):
        print("%08x" % b, *("%0*x" % (w, int(c[i])) for w, c in zip(widths, columns)), file=out)


def record_ml_dtypes():
    import ml_dtypes
    inputs = choose_inputs()
    x = np.array(inputs, dtype=np.uint32).view(np.float32)
    cols = [x.astype(np.float16).view(np.uint16)]
    for name in ML:
        q = x.astype(getattr(ml_dtypes, name))
        cols.append(q.view(np.uint16 if nbits(name) == 16 else np.uint8))
        one = [np.float32(v).astype(getattr(ml_dtypes, name)) for v in x[:50]]
        assert all(a.tobytes() == b.tobytes() for a, b in zip(one, q[:50])), name
    emit(sys.stdout, [f"casts from binary32 by numpy {np.__version__} (float16) and ml_dtypes {ml_dtypes.__version__} "
                      "(all others): array.astype(dtype)"], ["float16"] + ML, inputs, cols)


def record_decode():
    import ml_dtypes
    print("# SPDX-License-Identifier: Apache-2.0")
    print(f"# all codes of the ml_dtypes {ml_dtypes.__version__} types of 8 bits and fewer, as binary32 bits:"
          " name code value")
    for name in ML:
        if name != "bfloat16":
            for code, v in enumerate(decode(name)):
                print(name, "%02x" % code, "%08x" % f2b(v))


def torch_paths(x, name):
    """The same cast by four routes through the library, as unsigned integers."""
    import torch
    dt = getattr(torch, name)
    raw, mask = (torch.int16, 0xffff) if dt.itemsize == 2 else (torch.uint8, 0xff)
    array = x.repeat(16).to(dt).view(raw).reshape(16, -1)[7].numpy()
    spread = torch.empty(2 * len(x))
    spread[::2] = x
    strided = torch.empty(len(x), dtype=dt).copy_(spread[::2]).view(raw).numpy()
    single = [x[i:i + 1].clone().to(dt).view(raw).item() for i in range(len(x))]
    zero_dim = [x[i].clone().to(dt).reshape(1).view(raw).item() for i in range(len(x))]
    return [np.array(v).astype(np.int64) & mask for v in (array, strided, single, zero_dim)]


def record_torch(path, outdir):
    """One file of the contiguous array route, and one of the NaNs by every route."""
    import torch
    inputs = read_inputs(path)
    x = torch.from_numpy(np.array(inputs, dtype=np.uint32).view(np.float32).copy())
    names = [n for n in TORCH if hasattr(torch, n)]
    res = {n: torch_paths(x, n) for n in names}
    version, cap = torch.__version__.split("+")[0], torch.backends.cpu.get_cpu_capability()
    nan = torch.isnan(x).numpy()
    differ = []
    for n in names:
        array = res[n][0]
        assert all((v[~nan] == array[~nan]).all() for v in res[n]), n
        if any((v != array).any() for v in res[n]):
            differ.append(n)
    cap = "DEFAULT" if cap == "NO AVX" else cap           # its name before
    about = [f"casts from binary32 by torch {torch.__version__} on CPU, capability {cap}"]
    if cap != "DEFAULT":                                  # the usual route
        cols = [res[n][0].astype(np.uint16 if getattr(torch, n).itemsize == 2 else np.uint8) for n in names]
        with open(f"{outdir}/torch-{version}.txt", "w") as out:
            emit(out, about + ["route: one contiguous tensor of %d elements, .to(dtype)" % (16 * len(x)),
                               "the other routes (strided copy, one-element tensor, zero-dimensional tensor) agree, "
                               "but for NaN inputs to: " + (", ".join(differ) or "none")], names, inputs, cols)
    with open(f"{outdir}/torch-{version}-nan-{cap.lower()}.txt", "w") as out:
        print("# SPDX-License-Identifier: Apache-2.0", file=out)
        print("# " + about[0] + ": NaN inputs by four routes", file=out)
        print("# python " + platform.python_version() + ", " + platform.machine(), file=out)
        print("# routes agree for: " + " ".join(n for n in names if n not in differ), file=out)
        print("# columns: dtype input contiguous-array strided-copy one-element zero-dimensional", file=out)
        for n in names:
            if n in ("float16", "bfloat16") or n in differ:
                for i in np.nonzero(nan)[0]:
                    print(n, "%08x" % inputs[i], *("%04x" % v[i] for v in res[n]), file=out)


def record_onnx(path):
    import ml_dtypes
    import onnx
    from onnx import TensorProto as T, helper
    from onnx.reference import ReferenceEvaluator
    inputs = read_inputs(path)
    x = np.array(inputs, dtype=np.uint32).view(np.float32)
    names, cols = [], []
    for sat in (1, 0):
        cases = [("FLOAT8" + k, {}) for k in ("E4M3FN", "E5M2", "E4M3FNUZ", "E5M2FNUZ")]
        cases += [("FLOAT8E8M0", {"round_mode": m}) for m in ("up", "down", "nearest")]
        for to, mode in cases:
            node = helper.make_node("Cast", ["x"], ["y"], to=getattr(T, to), saturate=sat, **mode)
            graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", T.FLOAT, [None])],
                                      [helper.make_tensor_value_info("y", getattr(T, to), [None])])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])
            cols.append(ReferenceEvaluator(model).run(None, {"x": x})[0].view(np.uint8))
            names.append("/".join([to, f"saturate={sat}"] + list(mode.values())))
    emit(sys.stdout, [f"casts from binary32 by onnx {onnx.__version__} (ReferenceEvaluator, Cast, opset 24) "
                      f"with ml_dtypes {ml_dtypes.__version__}, numpy {np.__version__}",
                      "code path: saturate=1 is numpy.clip to finfo min/max, then ml_dtypes astype; "
                      "saturate=0 is ml_dtypes astype alone; "
                      "E8M0 is onnx.numpy_helper.to_float8e8m0",
                      "so this is what the reference implementation does, which is not always what the "
                      "operator's text says (see README.md)"], names, inputs, cols)


if __name__ == "__main__":
    {"ml_dtypes": record_ml_dtypes, "decode": record_decode, "torch": record_torch,
     "onnx": record_onnx}[sys.argv[1]](*sys.argv[2:])
