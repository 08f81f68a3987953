# SPDX-License-Identifier: Apache-2.0
"""Times of operations, taken as mpsim-gpu takes those of its own kernels (gpu/validation/speed/measure.cuh): 200 ms of runs that do not
count, then 5 that do not and 30 that do, each between two events behind another run; the median counts. Then clocks, power and
temperature by NVML while the device is busy. On a CPU: one run, by the wall clock."""
import ctypes
import statistics
import time

import torch

BEFORE, RUNS, WARM = 5, 30, 0.2
COLUMNS = 1024                                   # of layers, as in gpu/validation/speed/tensors.cuh


class Nvml:
    """What libnvidia-ml.so.1 says of the device; nothing where it is missing. Changes no setting."""

    def __init__(self):
        self.handle = None
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        handle = ctypes.c_void_p()
        if self.library.nvmlInit_v2() == 0 and self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0:
            self.handle = handle

    def read(self, function, *arguments):
        x = ctypes.c_uint()
        return x.value if getattr(self.library, function)(self.handle, *arguments, ctypes.byref(x)) == 0 else 0

    def sample(self):
        if not self.handle:
            return {}
        return {"sm_clock": self.read("nvmlDeviceGetClockInfo", 1), "memory_clock": self.read("nvmlDeviceGetClockInfo", 2),
                "power": self.read("nvmlDeviceGetPowerUsage"), "temperature": self.read("nvmlDeviceGetTemperature", 0)}


class Timer:
    """Rows of one question; s: the session of ask_device.py."""

    def __init__(self, s):
        self.s, self.cuda = s, s.device == "cuda"
        self.nvml = Nvml() if self.cuda else None
        self.elements = 1 << 14 if s.quick else 1 << 28      # those of mpsim-gpu: parts.c, list_speeds
        self.order = 128 if s.quick else 4096
        self.rows = self.elements // COLUMNS

    def tensor(self, shape, dtype, seed=0):
        """Numbers of a bell; a tensor of one dtype is made only once for each seed."""
        g = torch.Generator(device=self.s.device).manual_seed(seed)
        return torch.randn(shape, generator=g, device=self.s.device, dtype=torch.float32).to(dtype)

    def median(self, run):
        if not self.cuda:
            began = time.perf_counter()
            run()
            return time.perf_counter() - began
        began = time.monotonic()
        while time.monotonic() - began < WARM:
            run()
            torch.cuda.synchronize()
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(BEFORE + RUNS)]
        for from_, to in events:
            run()
            from_.record()
            run()
            to.record()
            to.synchronize()
        return statistics.median(from_.elapsed_time(to) for from_, to in events[BEFORE:]) * 1e-3

    def clocks(self, run, seconds):
        if not self.cuda:
            return {}
        for _ in range(int(min(0.02 / max(seconds, 1e-6), 200))):
            run()
        found = self.nvml.sample()
        torch.cuda.synchronize()
        return found

    def row(self, name, beside, make, bytes_moved=0, flops=0, **facts):
        """make() gives what is timed, or raises: then the row says why. beside: the names of mpsim-gpu's rows."""
        def measured():
            run = make()
            run()
            seconds = self.median(run)
            return {"beside": beside, "bytes": bytes_moved, "flops": flops, "seconds": float(f"{seconds:.6g}"),
                    **self.clocks(run, seconds), **facts}
        self.s.try_answer(name, measured)
        if self.cuda:
            torch.cuda.empty_cache()


def optional(name):
    """A package that need not be there: then the row that asks for it says so."""
    try:
        return __import__(name, fromlist=["_"])
    except ImportError as e:
        raise RuntimeError(f"{name.split('.')[0]} is not installed: {e}") from None
