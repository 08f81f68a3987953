"""Numbers of papers, computed again: plots/papers.py prints what doc/gallery.md shows."""
import importlib.util
import os
import re

import pytest
from conftest import SOURCES

pytestmark = pytest.mark.skipif(not SOURCES, reason="MPSIM_SRCDIR names no checkout")


@pytest.fixture(scope="module")
def papers():
    spec = importlib.util.spec_from_file_location("papers", os.path.join(SOURCES, "plots", "papers.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def shown():
    with open(os.path.join(SOURCES, "doc", "gallery.md"), encoding="utf-8") as page:
        return page.read().partition("\n# Papers")[2].splitlines()


def rows_of(text):
    return ["    " + line for line in text.splitlines()[1:]]


@pytest.mark.parametrize("name, least", [("curves", 4), ("tf32", 2), ("blocks", 2)])
def test_the_page_shows_what_is_computed(papers, shown, name, least):
    rows = rows_of(papers.TABLES[name](True))
    assert len(rows) >= least and not [row for row in rows if row not in shown]


def test_truncated_operands_give_the_published_digits(papers):
    rows = rows_of(papers.curves(True))
    assert all(row.endswith("  0") for row in rows[:-1]) and rows[-1].split()[-4:] == ["0.1204863", "0.01203044", "-90", "%"]


def test_attention_in_the_published_order(papers):
    """Of 1024 tokens, where outliers are few: what has the smaller error in the paper has it here."""
    here = [float(row[52:64]) for row in rows_of(papers.attention(True))]
    standard, flash, standard8, flash8, *_ = here
    assert flash < standard < flash8 < standard8


@pytest.mark.skipif(not os.environ.get("PEERS"), reason="PEERS=1: all rows, ten seconds")
def test_all_rows(papers, shown):
    rows = [row for name in papers.TABLES for row in rows_of(papers.TABLES[name](False))]
    assert len(rows) == 20 and not [row for row in rows if row not in shown]
