"""Writes data/text/text.inc: this project's own pages as one C string; see README.md.

usage: python3 make.py [COMMIT] > text.inc    (in a clone; no module beside the standard library)
"""
import hashlib
import re
import subprocess
import sys

COMMIT = "165ea98"
CHUNK = 2048
MAPPED = {"·": "*", "→": "->", "←": "<-", "↓": "v", "−": "-", "×": "x", "—": "--", "–": "-", "±": "+-",
          "≠": "!=", "≤": "<=", "≥": ">=", "…": "...", "Σ": "sum", "∞": "inf"}
POWERS = dict(zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))


def git(*words):
    return subprocess.run(("git",) + words, check=True, capture_output=True).stdout.decode("utf-8")


def plain(page):
    """ASCII: powers after a ^, other characters as the table says; no blanks at ends of lines."""
    page = re.sub("[%s]+" % "".join(POWERS), lambda m: "^" + "".join(POWERS[c] for c in m[0]), page)
    page = "".join(MAPPED.get(c, c) for c in page)
    assert all(c == "\n" or " " <= c <= "~" for c in page), page
    return re.sub(" +$", "", page, flags=re.M).strip("\n")


def chunks(pages):
    """Paragraphs one after the other, cut where one ends and there are CHUNK characters."""
    at = ""
    for page in pages:
        for paragraph in re.split("\n\n+", page):
            at += paragraph + "\n\n"
            if len(at) >= CHUNK:
                yield at
                at = ""
    if at:
        yield at


commit = sys.argv[1] if len(sys.argv) > 1 else COMMIT
names = sorted(n for n in git("ls-tree", "-r", "--full-tree", "--name-only", commit).splitlines() if n.endswith(".md"))
parts = list(chunks(plain(git("show", "%s:%s" % (commit, n))) for n in names))
order = sorted(range(len(parts)), key=lambda i: hashlib.sha256(b"%d" % i).digest())
text = "".join(parts[i] for i in order)
print("/* %d bytes: %d pages of commit %s in %d chunks, made by data/text/make.py; see README.md. */"
      % (len(text), len(names), commit, len(parts)))
for line in text.splitlines():
    print('"%s\\n"' % line.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?"))
