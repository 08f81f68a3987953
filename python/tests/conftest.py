"""What the tests share: random numbers of all magnitudes, the same in every run, and the peers that are installed."""
import importlib
import os
import subprocess

import numpy as np
import pytest

import mpsim
from mpsim._library import PROGRAM

# where the sources are, for what compares with them; empty where the tests stand alone
SOURCES = os.environ.get("MPSIM_SRCDIR", "")


@pytest.fixture
def floats():
    """100,000 binary32 numbers (10^6 with PEERS=1): random bits, with NaN and infinities; magnitudes about 1; numbers of a few
    bits, which lie in the middle of two of a format."""
    n = 400_000 if os.environ.get("PEERS") else 40_000
    rng = np.random.default_rng(20261)
    bits = rng.integers(0, 2**32, n, dtype=np.uint32).view(np.float32)
    near = (rng.standard_normal(n) * 2.0 ** rng.integers(-12, 13, n)).astype(np.float32)
    few = (rng.integers(-4096, 4096, n // 2) >> rng.integers(0, 10, n // 2)) * 2.0 ** rng.integers(-20, 16, n // 2)
    return np.concatenate([bits, near, few.astype(np.float32)])


COUNTED = {}


def counted(peer, what, n):
    """Note that n results were equal to those of another library; all such notes are printed at the end."""
    COUNTED[peer, what] = COUNTED.get((peer, what), 0) + int(n)


def pytest_terminal_summary(terminalreporter):
    for (peer, what), n in sorted(COUNTED.items()):
        terminalreporter.write_line(f"equal to {peer}'s: {n} {what}")


@pytest.fixture
def program():
    """Runs the program of the package and returns what it writes, as bytes."""
    def run(*words, code=0, stdin=b""):
        done = subprocess.run([PROGRAM, *map(str, words)], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == code, done.stderr
        return done.stdout
    return run


@pytest.fixture
def trace():
    """A recorded step of the checkout."""
    path = os.path.join(SOURCES, "data", "digits-cnn")
    if not SOURCES or not os.path.isdir(path):
        pytest.skip("MPSIM_SRCDIR names no checkout with data/digits-cnn")
    return path


def peer(name):
    """A module that the results are compared with, or a skip that says what is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"{name} is not installed")


def same_numbers(a, b):
    """Equal as numbers with their signs; a NaN equals any NaN."""
    with np.errstate(invalid="ignore"):  # NaNs with the quiet bit clear
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return bool(np.all((np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))))


__all__ = ["SOURCES", "counted", "mpsim", "peer", "same_numbers"]
