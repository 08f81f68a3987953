"""make bench-stat: mpsim.stat in this process beside the program that runs for it (sandbox=True): wall and CPU time of a call, the best of
several."""
import resource
import sys
import time

import numpy as np

import mpsim


def used():
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def best(call, times):
    """Microseconds of the quickest of five rounds of so many calls: wall, CPU."""
    call()
    wall = cpu = float("inf")
    for _ in range(5):
        start, began = time.perf_counter(), used()
        for _ in range(times):
            call()
        wall, cpu = min(wall, time.perf_counter() - start), min(cpu, used() - began)
    return wall / times * 1e6, cpu / times * 1e6


def main():
    print(f"{'elements':>10} {'in process: us':>15} {'CPU us':>10} {'program: us':>15} {'CPU us':>10} {'ratio':>6} {'of CPU':>6}")
    for n in (10, 1000, 10**5, 10**7):
        x = {"wgrad:x": np.random.default_rng(1).standard_normal(n, np.float32)}
        assert mpsim.stat(x).to_json() == mpsim.stat(x, sandbox=True).to_json()
        own = best(lambda: mpsim.stat(x), 200 if n < 10**5 else 20 if n < 10**7 else 1)
        other = best(lambda: mpsim.stat(x, sandbox=True), 10 if n < 10**7 else 1)
        print(f"{n:10} {own[0]:15.0f} {own[1]:10.0f} {other[0]:15.0f} {other[1]:10.0f} {other[0] / own[0]:6.1f} {other[1] / own[1]:6.1f}",
              flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
