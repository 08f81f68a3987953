"""Pages of doc/ with sessions of Python (`>>>`): each session gives what its page shows. tests/cli runs all other screens."""
import doctest
import glob
import os

import pytest
from conftest import SOURCES

from mpsim import _figures

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
WIDTH = 84  # of a line that is printed


def text_of(page):
    with open(page, encoding="utf-8") as file:
        return file.read()


FIRST = os.path.join(SOURCES, "doc", "howto", "use-from-python.md")
PAGES = sorted(page for page in glob.glob(os.path.join(SOURCES, "doc", "**", "*.md"), recursive=True) if "\n    >>> " in text_of(page)) if SOURCES else []


def test_there_are_pages():
    if not SOURCES or not os.path.isdir(os.path.join(SOURCES, "doc")):
        pytest.skip("MPSIM_SRCDIR names no checkout")
    assert len(PAGES) >= 5


@pytest.mark.parametrize("page", PAGES, ids=[os.path.basename(page)[:-3] for page in PAGES])
def test_sessions(page, tmp_path, monkeypatch):
    text = text_of(page)
    for name in ("ml_dtypes", "torch"):
        if name in text:
            pytest.importorskip(name)
    if page == FIRST and not _figures.has_gnuplot():
        pytest.skip("no gnuplot")
    monkeypatch.chdir(tmp_path)  # which pages write files to
    failed, tried = doctest.testfile(page, module_relative=False, optionflags=FLAGS)
    assert tried > 4 and not failed
    if "mpsim.emulate(" in text:
        printed = [line for line in text.splitlines() if line.startswith("    ") and not line.startswith(("    >>>", "    ...", "    ("))]
        assert all(len(line) <= WIDTH for line in printed)
    if page == FIRST:  # for beginners: NumPy and gnuplot alone, a dozen lines, a figure
        assert text.count("\n    ") <= 12 and "torch" not in text
        assert (tmp_path / "sweep.png").read_bytes()[:4] == b"\x89PNG"
