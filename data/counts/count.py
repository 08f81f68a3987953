# SPDX-License-Identifier: Apache-2.0
"""Independent counts of rounding events in a trace, with NumPy and ml_dtypes.

    python3 count.py ../digits-cnn --scaled-steps 1,500,20000 > digits-cnn.tsv
    python3 count.py ../charlm --steps 1,1000,12000 --scaled-steps 12000 > charlm.tsv

Shares no code with mpsim: an oracle for its reports.  Definitions: README.md.
"""
import argparse
import json
import math
import os
import re
import struct
import sys

import ml_dtypes
import numpy as np

FORMATS = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16,
           "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
CASES = [("fp16", 1), ("bf16", 1), ("e4m3", 1), ("e5m2", 1), ("fp16", 1024), ("fp16", 65536), ("e4m3", 65536)]
COLUMNS = ("file tensor format scale count zero nan inf amax amin mean l2 underflow subnormal overflow inexact "
           "mse sqnr_db max_rel_err").split()


def read_safetensors(path):
    with open(path, "rb") as f:
        head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    for name in sorted(k for k in head if k != "__metadata__"):
        e = head[name]
        assert e["dtype"] == "F32", name
        yield name, np.frombuffer(data[slice(*e["data_offsets"])], dtype="<f4")


def number(v):
    return "%.17g" % v


def plain(x):
    """Statistics of the tensor itself: finite elements only, sums exact before one final rounding."""
    d = x.astype(np.float64)
    fin = d[np.isfinite(d)]
    mag = np.abs(fin[fin != 0])
    mean = number(math.fsum(fin) / len(fin)) if len(fin) else "-"
    l2 = number(math.sqrt(math.fsum(fin * fin))) if len(fin) else "-"
    return [str(len(x)), str(int((d == 0).sum())), str(int(np.isnan(d).sum())), str(int(np.isinf(d).sum())),
            number(mag.max() if len(mag) else 0.0), number(mag.min() if len(mag) else 0.0), mean, l2]


def cast_counts(x, fmt, scale):
    dtype = FORMATS[fmt]
    info = ml_dtypes.finfo(dtype)
    fin = x[np.isfinite(x)]
    scaled = fin * np.float32(scale)                 # a power of two: exact ...
    exact = fin.astype(np.float64) * scale
    assert (scaled == exact).all()                   # ... checked: no fp32 overflow here
    with np.errstate(over="ignore", invalid="ignore"):
        q = scaled.astype(dtype).astype(np.float64)
    # float64 holds x*scale and q exactly, and their difference where it matters.
    overflow = ~np.isfinite(q) | (np.abs(q) > float(info.max))
    nz = exact != 0
    ok = ~overflow
    rel = np.abs(exact[ok & nz] - q[ok & nz]) / np.abs(exact[ok & nz])
    d, err = fin[ok].astype(np.float64), fin[ok].astype(np.float64) - q[ok] / scale
    ss, ee = math.fsum(d * d), math.fsum(err * err)
    if len(d) == 0:
        mse = sqnr = "-"
    else:
        mse = number(ee / len(d))
        sqnr = "inf" if ee == 0 else "-inf" if ss == 0 else number(10 * math.log10(ss / ee))
    return [str(int((nz & (q == 0)).sum())),
            str(int(((q != 0) & (np.abs(q) < float(info.smallest_normal))).sum())),
            str(int(overflow.sum())), str(int((q != exact).sum())), mse, sqnr,
            number(rel.max()) if len(rel) else "-"]


def wanted(step, tensor, scale, last, args):
    """All of a trace would be a large table: opt.* only at the last step, scaled casts only of gradients."""
    if scale != 1:
        return tensor.startswith(("agrad:", "wgrad:")) and (not args.scaled_steps or step in args.scaled_steps)
    return (not args.steps or step in args.steps) and (not tensor.startswith("opt.") or step == last)


def main():
    def ints(text):
        return {int(t) for t in text.split(",")}
    ap = argparse.ArgumentParser()
    ap.add_argument("root")
    ap.add_argument("--steps", type=ints, help="only these steps (default: all)")
    ap.add_argument("--scaled-steps", type=ints, help="scaled casts only at these steps (default: all)")
    args = ap.parse_args()
    paths = sorted(os.path.join(d, f) for d, _, fs in os.walk(args.root) for f in fs if f.endswith(".safetensors"))
    steps = {p: int(re.search(r"step_(\d+)", p).group(1)) for p in paths}
    last = max(steps.values())
    print("# SPDX-License-Identifier: Apache-2.0")
    print("# mpsim independent counts of", os.path.basename(os.path.abspath(args.root)))
    print("# python %s, numpy %s, ml_dtypes %s; casts: numpy float16, ml_dtypes bfloat16, float8_e4m3fn, float8_e5m2"
          % (sys.version.split()[0], np.__version__, ml_dtypes.__version__))
    print("# definitions of the columns: README.md beside this file")
    print("#" + "\t".join(COLUMNS))
    for path in paths:
        for tensor, x in read_safetensors(path):
            cases = [c for c in CASES if wanted(steps[path], tensor, c[1], last, args)]
            head = plain(x) if cases else []
            for fmt, scale in cases:
                row = [os.path.relpath(path, args.root).replace(os.sep, "/"), tensor, fmt, str(scale)]
                print("\t".join(row + head + cast_counts(x, fmt, scale)))


if __name__ == "__main__":
    main()
