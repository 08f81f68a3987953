# SPDX-License-Identifier: Apache-2.0
"""Tests of ask_device.py: python3 test_ask_device.py. Not part of `make check`; half a minute.

A question that hangs (with a process that it started), one that crashes, one that raises, one that cannot be put, and
good ones before and after; a total time; the words that C draws; each module is in a list.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = {
    "good": "def ask(s):\n    s.answer('one', d=1)\n    s.answer('two', d=2)\n",
    "hangs": "import subprocess\ndef ask(s):\n    s.answer('one', d=1)\n"
             "    p = subprocess.Popen(['sleep', '1000'])\n    print(p.pid, flush=True)\n    p.wait()\n",
    "crashes": "import os, signal\ndef ask(s):\n    s.answer('one', d=1)\n    os.kill(os.getpid(), signal.SIGSEGV)\n",
    "raises": "def ask(s):\n    s.answer('one', d=1)\n    raise RuntimeError('CUDA error: of this test')\n",
    "cannot": "from session import Skipped\ndef ask(s):\n    raise Skipped('nothing to ask')\n",
    "refuses": "def ask(s):\n    def no():\n        raise RuntimeError('no such kernel')\n    s.try_answer('one', no)\n",
    "loses": "def ask(s):\n    def no():\n        s.is_lost = lambda: True\n        raise RuntimeError('a fault')\n"
             "    s.try_answer('one', no)\n    s.answer('two', d=2)\n    s.try_answer('three', no)\n    s.answer('four', d=4)\n",
    "last": "def ask(s):\n    s.answer('one', d=3)\n",
}
STATES = {"good": ("done", 2), "hangs": ("out of time", 1), "crashes": ("crashed", 1), "raises": ("failed", 1),
          "cannot": ("skipped", 0), "refuses": ("done", 1), "loses": ("done", 4), "last": ("done", 1)}


def run(folder, out, *options):
    command = [sys.executable, os.path.join(HERE, "ask_device.py"), "--device", "cpu", "--quick", "--modules", folder,
               "--output-dir", out, *options]
    result = subprocess.run(command, capture_output=True, text=True)
    with open(os.path.join(out, "manifest.json"), encoding="utf-8") as f:
        return result, json.load(f)


def is_there(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().split()[2] != "Z"
    except OSError:
        return False


def questions_are_isolated(folder, out):
    result, manifest = run(folder, out, "--limit", "12", *MODULES)
    assert result.returncode == 1, result
    found = {q: (m["state"], m["answers"]) for q, m in manifest["questions"].items()}
    assert found == STATES, found
    assert manifest["torch"] and manifest["kind"] == "cpu"
    with open(os.path.join(out, "hangs.log"), encoding="ascii") as f:
        assert not is_there(int(f.read())), "what a question started is still there"
    with open(os.path.join(out, "refuses.ndjson"), encoding="ascii") as f:
        assert "no such kernel" in f.read()
    with open(os.path.join(out, "loses.ndjson"), encoding="ascii") as f:
        lines = [json.loads(line) for line in f]
    assert "schema" in lines[0] and [line.get("case") for line in lines[1:]] == ["one", "two", "three", "four", None], lines


def total_time_is_kept(folder, out):
    began = time.monotonic()
    result, manifest = run(folder, out, "--total", "6", "hangs", "good")
    states = [m["state"] for m in manifest["questions"].values()]
    assert result.returncode == 1 and states == ["out of time", "no time left"], manifest
    assert time.monotonic() - began < 12


def words_are_those_of_the_library():
    import argparse
    sys.path.insert(0, os.path.join(HERE, "device"))
    import torch
    import session

    def plain(index, output):                    # lib/digest/scalar.h, with Python's integers
        mask = (1 << 64) - 1
        z = index * 0x9e3779b97f4a7c15 + 0x632be59bd9b4e019 & mask
        for more in (0, output * 0xd6e8feb86659fd93 & mask):
            z ^= more
            z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & mask
            z = (z ^ z >> 27) * 0x94d049bb133111eb & mask
            z ^= z >> 31
        return z

    a = argparse.Namespace(device="cpu", quick=True, traces=None, output_dir=tempfile.gettempdir())
    s = session.Session("words", a)
    os.remove(s.file.name)
    want = [plain(i, 77) for i in range(1000)]
    assert [w & (1 << 64) - 1 for w in s.words(1000, 77).tolist()] == want
    t = torch.tensor([1.5, float("nan"), -0.0])
    codes = [0x3fc00000, 0xffffffff, 0x80000000]
    assert session.digest(t) == f"{sum(plain(i, c) for i, c in enumerate(codes)) % (1 << 64):016x}"
    assert session.hexadecimal(session.of_bits(torch.arange(256), torch.float8_e5m2))[:11] == "00 01 02 03"


def names_lose_their_parameters():
    from products import without_parameters
    for name, want in (("void k(int)", "void k"), ("nvjet_sm90", "nvjet_sm90"), ("void a::(anonymous namespace)::k<int>(f*)",
                       "void a::(anonymous namespace)::k<int>"), ("void k<f<(b::M)0> >(p, q<1>)", "void k<f<(b::M)0> >")):
        assert without_parameters(name) == want, name


def scales_are_in_fours():
    import torch
    from scaled import in_fours
    y = torch.arange(14.0).reshape(7, 2)
    assert torch.equal(in_fours(y, False), y) and in_fours(y, False).stride() == (1, 8) and in_fours(y, True).stride() == (1, 7)
    assert torch.equal(in_fours(y, True).as_strided((7, 2), (1, 8)), y)


def lists_name_the_modules():
    sys.path.insert(0, HERE)
    from ask_device import LISTS
    named = [question for questions in LISTS.values() for question in questions]
    folder = os.path.join(HERE, "device")
    there = set()
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            if name.endswith(".py") and "\ndef ask(s):" in f.read():
                there.add(name[:-3])
    assert sorted(named) == sorted(there), set(named) ^ there


def main():
    lists_name_the_modules()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in MODULES.items():
            with open(os.path.join(folder, name + ".py"), "w", encoding="ascii") as f:
                f.write(text)
        questions_are_isolated(folder, os.path.join(folder, "one"))
        total_time_is_kept(folder, os.path.join(folder, "two"))
    words_are_those_of_the_library()
    names_lose_their_parameters()
    scales_are_in_fours()
    print("all passed")


if __name__ == "__main__":
    main()
