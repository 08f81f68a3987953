"""make bench-python: casts by mpsim, ml_dtypes and gfloat; microseconds a call, the best of many, and ratios to mpsim."""
import sys
import time

import numpy as np

import mpsim

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None
try:
    import gfloat
    from gfloat.formats import format_info_bfloat16, format_info_ocp_e4m3, format_info_ocp_e5m2
    INFO = {"e4m3": format_info_ocp_e4m3, "e5m2": format_info_ocp_e5m2, "bf16": format_info_bfloat16}
except ImportError:
    gfloat = None
DTYPES = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "bf16": "bfloat16"}


def best(call, seconds=0.4):
    """The quickest of as many calls as fit, after a first one that may import or compile."""
    call()
    least, end = float("inf"), time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        least = min(least, now - start)
        if now > end:
            return least * 1e6


def row(what, name, n, ours, theirs):
    first = best(ours)
    cells = []
    for call in theirs:
        t = best(call) if call else None
        cells.append("%12.1f %7.1f" % (t, t / first) if t else "%12s %7s" % ("-", "-"))
    print("%-7s %-5s %8d %12.1f %s" % (what, name, n, first, " ".join(cells)), flush=True)


def main():
    print("%-7s %-5s %8s %12s %12s %7s %12s %7s" % ("", "", "elements", "mpsim us", "ml_dtypes us", "ratio", "gfloat us", "ratio"))
    for n in (10, 10**3, 10**6):
        x = np.random.default_rng(1).standard_normal(n).astype(np.float32)
        for name, dtype in DTYPES.items():
            t = getattr(ml_dtypes, dtype) if ml_dtypes else None
            info = INFO[name] if gfloat else None
            codes = mpsim.encode(x, name)
            theirs = codes.view(t) if t else None
            row("encode", name, n, lambda: mpsim.encode(x, name), [t and (lambda: x.astype(t)), None])
            row("round", name, n, lambda: mpsim.round(x, name), [
                t and (lambda: x.astype(t).astype(np.float32)), info and (lambda: gfloat.round_ndarray(info, x))])
            row("decode", name, n, lambda: mpsim.decode(codes, name), [
                t and (lambda: theirs.astype(np.float32)), info and (lambda: gfloat.decode_ndarray(info, codes))])


if __name__ == "__main__":
    sys.exit(main())
