"""python -m mpsim.emulate: an unchanged script of PyTorch under a policy."""
import sys

from ._script import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
