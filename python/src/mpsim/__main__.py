"""python -m mpsim: the program itself."""
import os
import sys

from ._library import PROGRAM

os.environ.setdefault("PYTHON", sys.executable)  # of `emulate`
os.execv(PROGRAM, ["mpsim", *sys.argv[1:]])
