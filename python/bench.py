"""make bench-python: casts of float32 arrays by mpsim and its peers: microseconds a call, and how many times mpsim's.

All on one thread, the best of many calls, results in new arrays. `copy` is x.copy() of NumPy: what memory costs. "~": measured on
a tenth of the elements (gfloat and pychop need some ten times the array's memory), and multiplied. Peers that are not
installed are "-".
"""
import importlib
import sys
import time

import numpy as np

import mpsim

SIZES = (10, 10**3, 10**6, 10**8)
# format: dtype of ml_dtypes and torch, gfloat's description, pychop's exponent and significand bits
FORMATS = {"e4m3": ("float8_e4m3fn", "ocp_e4m3", (4, 3)), "e5m2": ("float8_e5m2", "ocp_e5m2", (5, 2)),
           "bf16": ("bfloat16", "bfloat16", (8, 7))}
TENTH = 10**7  # elements above which gfloat and pychop get a tenth
GOALS = {"ml_dtypes": 20, "gfloat": 100, "pychop": 100}


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def best(call, seconds):
    """Microseconds of the quickest of as many calls as fit, after a first one that may import or compile."""
    call()
    least, end = float("inf"), time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        least = min(least, now - start)
        if now > end:
            return least * 1e6


def peers_of(name, x, codes, m):
    """What each peer does: {peer: {operation: call}}, of the whole array or, of those that are slow, of what it is given."""
    dtype, info, (exponent, significand) = FORMATS[name]
    some = x if x.size <= TENTH else x[:x.size // 10]
    some_codes = codes[:some.size]
    calls = {}
    if m["ml_dtypes"]:
        t = getattr(m["ml_dtypes"], dtype)
        theirs = codes.view(t)
        calls["ml_dtypes"] = {"encode": lambda: x.astype(t), "round": lambda: x.astype(t).astype(np.float32),
                              "decode": lambda: theirs.astype(np.float32)}
    if m["torch"]:
        torch = m["torch"]
        to, tensor = getattr(torch, dtype), torch.from_numpy(x)
        stored = tensor.to(to)
        calls["torch"] = {"encode": lambda: tensor.to(to), "round": lambda: tensor.to(to).float(), "decode": lambda: stored.float()}
    if m["gfloat"]:
        g, fi = m["gfloat"], getattr(m["gfloat.formats"], "format_info_" + info)
        calls["gfloat"] = {"round": lambda: g.round_ndarray(fi, some), "decode": lambda: g.decode_ndarray(fi, some_codes),
                           "encode": lambda: g.encode_ndarray(fi, g.round_ndarray(fi, some))}
    if m["pychop"]:
        chop = m["pychop"].Chop(exponent, significand)  # IEEE's e4m3 for OCP's: its nearest
        calls["pychop"] = {"round": lambda: chop(some)}
    return calls, x.size // some.size


def products():
    """mpsim.gemm and the door of products below it, where they lie; multiply-adds a second of the larger ones."""
    from mpsim._formats import find
    from mpsim._product import View, multiply

    f, rng = find("bf16"), np.random.default_rng(1)
    for n in (8, 64, 512):
        a, d = rng.standard_normal((n, n), np.float32), np.empty((n, n), np.float32)
        calls = {"gemm": lambda: mpsim.gemm(a, a, model="hopper-bf16-fp32", format="bf16"),
                 "multiply": lambda: multiply(View.of(d), (View.of(a), f), (View.of(a), f), "hopper-bf16-fp32")}
        for what, call in calls.items():
            t = best(call, 0.4)
            print(f"{what:8} {n:4}^3 {t:10.1f} us {n**3 / t / 1e3:7.2f} G/s", flush=True)


def main():
    products()
    if module("torch"):
        from bench_emulate import main as emulations

        emulations()
    m = {name: module(name) for name in ("ml_dtypes", "torch", "gfloat", "gfloat.formats", "pychop")}
    if m["torch"]:
        m["torch"].set_num_threads(1)
    if m["pychop"]:
        m["pychop"].backend("numpy")
    shown = ("ml_dtypes", "torch", "gfloat", "pychop")
    least = {}  # by peer and size, the smallest ratio of formats that are not bf16
    print(f"{'':13} {'elements':>9} {'mpsim us':>10} {'copy us':>10} " + " ".join(f"{p + ' us':>13} {'ratio':>7}" for p in shown))
    for n in SIZES:
        x = np.random.default_rng(1).standard_normal(n, np.float32)
        seconds = 0.2 if n < 10**7 else 0.0  # of large ones the second call
        copy = best(x.copy, seconds)
        for name in FORMATS:
            codes = mpsim.encode(x, name)
            ours = {"encode": lambda: mpsim.encode(x, name), "round": lambda: mpsim.round(x, name),
                    "decode": lambda: mpsim.decode(codes, name)}
            calls, part = peers_of(name, x, codes, m)
            for what, call in ours.items():
                own, cells = best(call, seconds * 2), []
                for p in shown:
                    theirs = calls.get(p, {}).get(what)
                    if theirs is None:
                        cells.append(f"{'-':>13} {'-':>7}")
                        continue
                    times = part if p in ("gfloat", "pychop") else 1
                    t = best(theirs, seconds) * times
                    cells.append(f"{('~' if times > 1 else '') + format(t, '.1f'):>13} {t / own:7.1f}")
                    if name != "bf16":
                        least[p, n] = min(least.get((p, n), float("inf")), t / own)
                print(f"{what:7} {name:5} {n:9} {own:10.1f} {copy:10.1f} " + " ".join(cells), flush=True)
    for p, goal in GOALS.items():
        said = ", ".join(f"{least[p, n]:.1f} at {n}" for n in SIZES if (p, n) in least)
        if said:
            print(f"goal {goal} times {p}; of e4m3 and e5m2 at least: {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
