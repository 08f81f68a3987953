# SPDX-License-Identifier: Apache-2.0
"""Speeds of mpsim's kernels beside those of libraries: shares, and shares per clock.

    python3 gpu/validation/speed/shares.py                      of the newest records in data/gpu
    python3 gpu/validation/speed/shares.py RECORD [BESIDE]      RECORD: of mpsim-gpu; BESIDE: the folder of gpu/validation/speed/beside's answers, or what
                                                     their names begin with

A line for each row of the record that is no library's, and below it a line for each library that does the same work: its time,
mpsim's share of its speed, and the share per clock, that is, as if both had run at the same SM clock. Copies are what the rows
that move bytes are compared with: their share is of the copy's bytes a second. Reads JSON alone; needs Python, no package.
Exit: 0; 2: usage; 3: a file is no such record; 77: there is no record.
"""
import glob
import json
import os
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
LIBRARIES = ("cuBLAS", "cublasLt")               # of the record's own rows
COPIES = ("copy, cudaMemcpyAsync", "copy, own kernel")


class Bad(Exception):
    """A file is not what it should be."""


def number(row, key):
    x = row.get(key, 0)
    if not isinstance(x, (int, float)) or isinstance(x, bool) or x < 0:
        raise Bad(f"{row.get('name') or row.get('case')}: {key} is {x!r}, expected a number")
    return x


def record_rows(path):
    """The head of a record and its measured rows."""
    try:
        with open(path, encoding="utf-8") as f:
            record = json.load(f)
    except ValueError as e:
        raise Bad(f"{path}: {e}") from None
    if not isinstance(record, dict) or record.get("schema") != "mpsim.gpu/1":
        raise Bad(f"{path}: not of schema mpsim.gpu/1")
    return record, [row for row in record.get("speed", []) if row.get("status") == "done"]


def answers(beside):
    """The head of the answers and all of them, in the order of their files' names."""
    head, found = {}, []
    paths = sorted(glob.glob(os.path.join(beside, "*.ndjson") if os.path.isdir(beside) else beside + "*.ndjson"))
    if not paths:
        raise Bad(f"{beside}: no files of answers")
    for path in paths:
        with open(path, encoding="utf-8") as f:
            lines = [line for line in f if line.endswith("\n")]
        try:
            lines = [json.loads(line) for line in lines]
        except ValueError as e:
            raise Bad(f"{path}: {e}") from None
        if not lines or lines[0].get("schema") != "mpsim.device/1":
            raise Bad(f"{path}: not of schema mpsim.device/1")
        head = head or lines[0]
        found += [line for line in lines[1:] if "case" in line]
    return head, found


def is_library(row):
    return row["name"].split(", ")[1:2] and row["name"].split(", ")[1] in LIBRARIES


def same_work(ours, libraries, said):
    """(name, row) of what does the work of a row of ours: libraries of the record, by operands and order, and answers."""
    operands = ours["name"].split(", ")[0]
    found = [(row["name"], row) for row in libraries if number(ours, "flops") and row["name"].split(", ")[0] == operands]
    return found + [(row["case"], row) for row in said if ours["name"] in row.get("beside", [])]


def shares(ours, other):
    """mpsim's share of the other's speed, and per clock (None where a clock is not known)."""
    share = number(other, "seconds") / number(ours, "seconds")
    clocks = number(ours, "sm_clock"), number(other, "sm_clock")
    return share, share * clocks[1] / clocks[0] if all(clocks) else None


def percent(x):
    return f"{100 * x:6.1f}%" if x is not None else f"{'-':>7}"


def line(name, row, share=None, per_clock=None):
    clock = number(row, "sm_clock")
    print(f"{name:56} {1e3 * number(row, 'seconds'):9.3f} ms {f'{clock} MHz' if clock else '':>9} {percent(share)} {percent(per_clock)}")


def show(record, rows, said):
    fastest = max((number(r, "bytes") / number(r, "seconds") for r in rows if r["name"] in COPIES), default=0)
    libraries = [r for r in rows if is_library(r)]
    print(f"{record.get('device', '')}, {record.get('date', '')}\n{'row':56} {'time':>12} {'SM clock':>9} {'share':>7} {'a clock':>7}")
    for ours in rows:
        if is_library(ours):
            continue
        of_copy = number(ours, "bytes") / number(ours, "seconds") / fastest if number(ours, "bytes") and fastest else None
        line(ours["name"], ours, of_copy)
        for name, other in same_work(ours, libraries, said):
            line("  " + name, other, *shares(ours, other))
    for row in said:
        if "refused" in row:
            print(f"not measured: {row['case']}: {row['refused']}")


def newest():
    records = sorted(p for p in glob.glob(os.path.join(TOP, "data", "gpu", "*-speed.json")))
    if not records:
        return None, None
    beside = records[-1].removesuffix("speed.json") + "beside-"
    return records[-1], beside if glob.glob(beside + "*.ndjson") else None


def main(words):
    if len(words) > 2 or any(w.startswith("-") for w in words):
        print(__doc__.strip(), file=sys.stdout if "--help" in words else sys.stderr)
        return 0 if "--help" in words else 2
    record, beside = (words + [None])[:2] if words else newest()
    if not record:
        print("SKIP waits for a device: no record in data/gpu")
        return 77
    try:
        head, rows = record_rows(record)
        other, said = answers(beside) if beside else ({}, [])
        if said and other.get("device") != head.get("device"):
            raise Bad(f"{beside}: answers of {other.get('device')}, the record is of {head.get('device')}")
        show(head, rows, said)
    except (Bad, OSError) as e:
        print(f"shares.py: {e}", file=sys.stderr)
        return 3
    if not said:
        print("SKIP waits for a device: torch and other libraries beside these rows (part `beside` of gpu/session.sh)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
