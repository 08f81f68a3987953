"""doc/tutorial.md: its scripts run, its screens are what they print, but for what other kernels of torch round otherwise."""
import os
import re
import subprocess
import sys

import pytest
from conftest import SOURCES

from mpsim._library import PROGRAM

pytest.importorskip("torch")

PAGE = os.path.join(SOURCES, "doc", "tutorial.md")
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
GAP = "..."


def blocks(text):
    """The indented blocks of a page, each with the paragraph above it."""
    for paragraph in re.split(r"\n\n(?=\S)", text):
        words, _, code = paragraph.partition("\n\n    ")
        if code:
            yield words, "\n".join(line[4:] for line in ("    " + code).split("\n")).strip() + "\n"


def alike(shown, printed):
    """Whether two lines have the same words, and numbers that are nearly the same."""
    if NUMBER.sub("#", " ".join(shown.split())) != NUMBER.sub("#", " ".join(printed.split())):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed))
    values = [(float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs]
    return all(abs(a - b) <= 0.1 * max(abs(a), abs(b)) + 0.01 for a, b in values)


def missing(screen, printed):
    """The first line of a screen that the output does not have in its place, or None. A line `...` stands for lines left out."""
    at, gap = 0, False
    for line in screen:
        if line.strip() == GAP:
            gap = True
            continue
        fits = [k for k in range(at, len(printed) if gap else min(at + 1, len(printed))) if alike(line, printed[k])]
        if not fits:
            return line
        at, gap = fits[0] + 1, False
    return None if gap or at == len(printed) else GAP


def test_the_comparison_sees_what_differs():
    printed = ["a 1", "b 2.00", "c"]
    assert missing(["a 1", "b 2.04", "c"], printed) is None and missing(["...", "c"], printed) is None
    assert missing(["a 1", "..."], printed) is None and missing(["a 1"], printed) == GAP
    assert missing(["a 1", "c"], printed) == "c" and missing(["a 1", "b 3", "c"], printed) == "b 3"


@pytest.mark.skipif(not SOURCES or not os.path.exists(PAGE), reason="MPSIM_SRCDIR names no checkout with doc/tutorial.md")
def test_scripts_and_screens(tmp_path):
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    place = os.environ | {"PATH": os.pathsep.join([os.path.dirname(PROGRAM), os.path.dirname(sys.executable), os.environ["PATH"]])}
    scripts = screens = 0
    for above, code in blocks(text):
        named = re.search(r"Save this as `(\S+)`", above)
        if named:
            (tmp_path / named[1]).write_text(code)
            scripts += 1
            if named[1] == "train.py":
                subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=place, check=True)
        elif code.startswith("$ "):
            command, *screen = code.splitlines()
            command = command[2:].replace("python3 ", f"{sys.executable} ")
            done = subprocess.run(command, shell=True, cwd=tmp_path, env=place, stdout=subprocess.PIPE, check=True)
            lost = missing(screen, done.stdout.decode().splitlines())
            assert lost is None, f"{command}: no line like {lost!r}"
            screens += 1
        elif code.startswith("mpsim "):
            subprocess.run(code, shell=True, cwd=tmp_path, env=place, stdout=subprocess.DEVNULL, check=True)
    assert scripts == 2 and screens == 3 and (tmp_path / "report.html").stat().st_size > 10_000
