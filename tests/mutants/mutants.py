#!/usr/bin/env python3
"""mutants.py -- mutation testing of a module of lib: does a unit test notice a flipped operator, constant or condition?

    tests/mutants/mutants.py [-n MUTANTS] [-s SEED] [-j JOBS] [-t SECONDS] [--again FILE] MODULE...   in the build folder, after `make check`

A module is a folder, as lib/round. Of its files beside the kernels, and the headers that only kernels include, a sample of
mutants is taken, function by function in turn, so that each function has its share. A mutant is one change of one token. Its file alone is compiled (of a header all files of the
module and all its test programs that include the header), linked in front of libmpsim.a with each program
tests/MODULE/t-*, and these run, the fastest first, until one fails: the mutant is killed then, as it is by a program that runs four times as long as before. A mutant with the
machine code of the original is equivalent and not counted, nor is one that `equivalent` explains: a line there has the file, the
function, the line of C as the mutant has it, and why no caller can tell. Written: a table, and each survivor with its place and its
change. --again judges only the survivors that an earlier run wrote to FILE.
"""

import argparse
import concurrent.futures
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

# A token, and what takes its place.
SWAPS = {
    "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
    "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"], "*": ["+"], "/": ["*"], "%": ["*"],
    "<<": [">>"], ">>": ["<<"], "&": ["|"], "|": ["&"], "^": ["|"], "+=": ["-="], "-=": ["+="],
    "<<=": [">>="], ">>=": ["<<="], "&=": ["|="], "|=": ["&="], "++": ["--"], "--": ["++"], "!": [""], "~": [""],
}  # fmt: skip
TOKEN = re.compile(
    r"""(?P<skip>/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|^[ \t]*\#(?:\\\n|[^\n])*)
      |(?P<word>[A-Za-z_]\w*)
      |(?P<number>0[xX][0-9a-fA-F.]+(?:[pP][+-]?\d+)?\w*|\d[\d.]*(?:[eE][+-]?\d+)?\w*)
      |(?P<operator><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^~!<>=?:;,.(){}\[\]])""",
    re.S | re.M | re.X,
)
KEYWORDS = {"if", "while", "for", "switch", "return", "sizeof", "do", "else"}
TYPES = {"const", "char", "int", "long", "float", "double", "void", "unsigned", "size_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t",
         "int16_t", "int32_t", "int64_t"}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    file: Path
    function: str
    line: int
    begin: int
    end: int
    text: str
    was: str


    def changed(self) -> str:
        """The line of C as the mutant has it."""
        source = self.file.read_text()
        first, last = source.rfind("\n", 0, self.begin) + 1, source.find("\n", self.end)
        return (source[first : self.begin] + self.text + source[self.end : last]).strip()

    def place(self) -> str:
        return f"{self.file}:{self.line}: {self.change()}"

    def change(self) -> str:
        return f"{self.function}: '{self.was}' -> '{self.text}': {self.changed()}\n"

    def name(self) -> str:
        return f"{self.file}: {self.function}: {self.changed()}"


def explained() -> dict[str, str]:
    """Mutants that no caller can tell from the original, by name, and why."""
    lines = Path(__file__).with_name("equivalent").read_text().splitlines()
    return dict(line.split(" -- ", 1) for line in lines if line)  # type: ignore[misc]


def is_type(word: str) -> bool:
    return word in TYPES or word.startswith("mpsim_") or word.endswith("_t")


def swaps_of(kind: str, token: str, before: str, after: str) -> list[str]:
    """What may take the place of a token; before, after: its neighbours."""
    if kind == "number":
        if token.isdigit():
            return [str(int(token) + 1)] + ([str(int(token) - 1)] if int(token) else [])
        return [token + " + 1"] if re.fullmatch(r"0[xX][0-9a-fA-F]+[uUlL]*", token) else []
    if token in "*&-+" and (not before or before in "(,=?:{[;&|<>!~+-*/%^" or before in KEYWORDS or len(before) == 2 and not before[0].isalnum()):
        return []  # unary
    if token == "*" and (is_type(before) or after in {"*", ")", "const", "restrict", ","}):
        return []  # of a declaration, of a cast
    return SWAPS.get(token, [])


def mutants_of(path: Path) -> list[Mutant]:
    """All mutants of a file: what stands in bodies of functions."""
    source = path.read_text()
    tokens = [m for m in TOKEN.finditer(source) if m.lastgroup != "skip"]
    found: list[Mutant] = []
    depth, function, name = 0, "", ""
    for i, m in enumerate(tokens):
        token, before = m.group(), tokens[i - 1].group() if i else ""
        after = tokens[i + 1].group() if i + 1 < len(tokens) else ""
        if depth == 0 and token == "(" and re.match(r"[A-Za-z_]", before):
            name = before
        if token == "{":
            if depth == 0:
                function = name if before == ")" else ""
            depth += 1
        elif token == "}":
            depth -= 1
        elif depth and function:
            line = source.count("\n", 0, m.start()) + 1
            for text in swaps_of(m.lastgroup or "", token, before, after):
                found.append(Mutant(path, function, line, m.start(), m.end(), text, token))
            if token == "(" and before in {"if", "while"}:
                found.append(Mutant(path, function, line, m.end(), m.end(), "!", f"{before} ("))
    return [m for m in found if m.text != "!" or negates(source, m)]


def negates(source: str, m: Mutant) -> bool:
    """A condition is negated as a whole only where it is one term."""
    end = source.find(")", m.end)
    return not re.search(r"[&|=<>?+]", source[m.end : end]) if m.begin == m.end else True


def sample(mutants: list[Mutant], n: int, seed: int) -> list[Mutant]:
    """n of them, each function in turn."""
    rng = random.Random(seed)
    by: dict[tuple[Path, str], list[Mutant]] = {}
    for m in mutants:
        by.setdefault((m.file, m.function), []).append(m)
    groups = list(by.values())
    for g in groups:
        rng.shuffle(g)
    rng.shuffle(groups)
    taken: list[Mutant] = []
    while len(taken) < n and any(groups):
        taken += [g.pop() for g in groups if g]
    return taken[:n]


class Module:
    def __init__(self, folder: str, seconds: float) -> None:
        self.folder, self.name = Path(folder), Path(folder).name
        self.sources = sorted(self.folder.glob("*.c"))
        self.commands = {c: self.command_of(c, self.object_of(c)) for c in self.sources}
        self.tests = self.time_tests(seconds)
        self.killers: dict[Path, str] = {}

    def make(self, *words: str) -> str:
        return subprocess.run(["make", "-n", "V=1", *words], capture_output=True, text=True, check=True).stdout

    def object_of(self, source: Path) -> str:
        """As the library calls it; lib/train has a library of its own."""
        made = sorted(source.parent.glob(f"*_a-{source.stem}.o")) or sorted(source.parent.glob(f"{source.stem}.o"))
        return str(made[0])

    def command_of(self, source: Path, to: str) -> list[str]:
        text = self.make("-W", str(source), to)
        line = next(l for l in text.splitlines() if " -c -o " in l)
        return line[: line.index(" -MT ")].split()

    def units_of(self, file: Path) -> list[Path]:
        """What is compiled again when the file changes."""
        if file.suffix == ".c":
            return [file]
        of_lib = [s for s in self.sources if self.includes(s, f"{Path(self.object_of(s)).stem}.Po", file)]
        return of_lib + [s for s in self.test_sources() if self.includes(s, f"{s.stem}.Po", file)]

    def includes(self, source: Path, rules: str, header: Path) -> bool:
        made = source.parent / ".deps" / rules
        return made.exists() and str(header) in made.read_text()

    def test_sources(self) -> list[Path]:
        return [Path(program).with_suffix(".c") for _, program, _ in self.tests]

    def tests_of(self, units: list[Path]) -> list[tuple[float, str, list[str]]]:
        """What killed the last mutant of the file first, then the fastest. A program's own source is of that program alone."""
        own = {str(u.with_suffix("")) for u in units} if all(u.parts[0] == "tests" for u in units) else set()
        tests = [t for t in self.tests if t[1] in own] if own else self.tests
        return sorted(tests, key=lambda t: t[1] != self.killers.get(units[0]))

    def time_tests(self, seconds: float) -> list[tuple[float, str, list[str]]]:
        found = []
        for source in sorted(Path("tests", self.name).glob("t-*.c")):
            program = str(source.with_suffix(""))
            if not Path(program).exists():
                continue
            text = self.make("-W", f"{program}.o", program)
            line = next((l for l in text.splitlines() if f"-o {program} " in l and "libtool" not in l), None)
            before = os.times().children_user
            if line and run_test(program, 4 * seconds) and os.times().children_user - before < seconds:
                found.append((os.times().children_user - before, program, line.split()))
                self.commands[source] = self.command_of(source, f"{program}.o")
            else:
                print(f"  {program} is left out", flush=True)
        return sorted(found)


def environment() -> dict[str, str]:
    more = {"MPSIM_TEST_MULTIPLIER": os.environ.get("MPSIM_TEST_MULTIPLIER", "0.2"), "CK_RUN_SUITE": "", "CK_FORK": "no"}
    del more["CK_RUN_SUITE"]
    return {**os.environ, **more, "CCACHE_DISABLE": "1"}


def run_test(program: str, seconds: float) -> bool:
    """Whether it ends well within the seconds of the processor, ten times as long by the clock: the machine may be busy."""
    words = ["sh", "-c", f'ulimit -t {math.ceil(seconds)}; exec "$0"', program]
    try:
        return subprocess.run(words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=10 * seconds).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def compile_file(module: Module, at: Path, source: Path, to: Path) -> bool:
    words = [*module.commands[source], "-w", "-g0", "-c", "-o", str(to), str(source)]
    return subprocess.run(words, cwd=at, env=environment(), capture_output=True).returncode == 0


def linked(line: list[str], program: str, binary: str, objects: dict[Path, Path]) -> list[str]:
    """The command that links the program, with the objects in front of the library, or in place of the program's own."""
    own = objects.get(Path(program).with_suffix(".c"))
    words = [binary if w == program else str(own) if own and w == f"{program}.o" else w for w in line]
    k = words.index("-o") + 2
    return words[:k] + [str(o) for s, o in objects.items() if s.parts[0] != "tests"] + words[k:]


def judge(module: Module, at: Path, m: Mutant) -> str:
    """killed, survived, equivalent, or broken: it is no C."""
    place = at / m.file
    original = place.read_text()
    units = module.units_of(m.file)
    objects = {s: at / f"{s.stem}.mutant.o" for s in units}
    plain = {s: at / f"{s.stem}.plain.o" for s in units}
    for s, o in plain.items():
        if not o.exists():
            compile_file(module, at, s, o)
    try:
        place.write_text(original[: m.begin] + m.text + original[m.end :])
        if not all([compile_file(module, at, s, o) for s, o in objects.items()]):
            return "broken"
    finally:
        place.write_text(original)
    if units and all(objects[s].read_bytes() == plain[s].read_bytes() for s in units):
        return "equivalent"
    binary = str(at / "t")
    for seconds, program, line in module.tests_of(units) if units else []:
        if subprocess.run(linked(line, program, binary, objects), capture_output=True).returncode != 0:
            return "broken"
        if not run_test(binary, 4 * seconds + 2):
            module.killers[units[0]] = program
            return "killed"
    return "survived"


def scratch(parent: str, k: int) -> Path:
    at = Path(parent, str(k))
    for folder in ("lib", "tests"):
        shutil.copytree(folder, at / folder, ignore=lambda d, names: [n for n in names if not (Path(d, n).is_dir() or n.endswith((".c", ".h")))])
    for name in ("config.h", "data"):
        if Path(name).exists():
            os.symlink(Path(name).resolve(), at / name)
    return at


def run_module(folder: str, o: argparse.Namespace) -> tuple[str, dict[str, int]]:
    module = Module(folder, o.t)
    files = [p for p in sorted(module.folder.glob("*.[ch]")) if module.units_of(p)]
    every = [m for f in files for m in mutants_of(f)]
    before = Path(o.again).read_text() if o.again else ""
    chosen = [m for m in every if m.change() in before] if o.again else sample(every, o.n, o.s)
    known = explained()
    counts = {"killed": 0, "survived": 0, "equivalent": 0, "broken": 0}
    with tempfile.TemporaryDirectory() as parent:
        free = [scratch(parent, k) for k in range(o.j)]
        begun = time.monotonic()

        def work(m: Mutant) -> tuple[Mutant, str]:
            if o.limit and time.monotonic() - begun > o.limit:
                return m, "left"
            if m.name() in known:
                return m, "equivalent"
            at = free.pop()
            try:
                return m, judge(module, at, m)
            finally:
                free.append(at)

        with concurrent.futures.ThreadPoolExecutor(o.j) as pool:
            for m, how in pool.map(work, chosen):
                counts[how] = counts.get(how, 0) + 1
                if how == "survived":
                    print(f"  {m.place()}", end="", flush=True)
    return folder, counts


def main() -> int:
    p = argparse.ArgumentParser(description="Mutation testing of modules of lib.")
    p.add_argument("-n", type=int, default=200, help="mutants a module")
    p.add_argument("-s", type=int, default=1, help="seed of the sample")
    p.add_argument("-j", type=int, default=2, help="mutants at once")
    p.add_argument("-t", type=float, default=20, help="unit tests that take more of the processor are left out")
    p.add_argument("--limit", type=float, default=0, help="seconds a module")
    p.add_argument("--again", help="what an earlier run wrote: its survivors alone")
    p.add_argument("modules", nargs="+")
    o = p.parse_args()
    rows = [run_module(m.rstrip("/"), o) for m in o.modules]
    print(f"{'module':<14} {'killed':>7} {'survived':>9} {'equivalent':>11} {'share':>7}")
    for name, c in rows:
        judged = c["killed"] + c["survived"]
        left = f"   {c['left']} left" if c.get("left") else ""
        print(f"{name:<14} {c['killed']:>7} {c['survived']:>9} {c['equivalent']:>11} {100 * c['killed'] / max(judged, 1):>6.1f}%{left}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
