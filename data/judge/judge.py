# SPDX-License-Identifier: Apache-2.0
"""Judge the stacks of stacks.tsv with mpsim.testing, and print a table.

    python3 judge.py             results of packages come from recorded.npz
    python3 judge.py --live      the packages compute them now
    python3 judge.py --full      print whole judgements, too
    python3 judge.py --write     write what the judge says into stacks.tsv

A fault is named if the expected cause is among the findings, else missed. A sound stack is equal to a row, or near: no row gives its
bits, and the judge says that they are as near the exact results as rounding leaves them, or that only signs of zeros differ; else it
is an alarm.
"""
import argparse
import time

import stacks
from mpsim import testing

NO_KIND = "no kind"


def judge(row, live=False, fault=True):
    """The judgement of a stack, and its CPU time in ms."""
    arrays = stacks.play(row["name"], live=live and row["cause"] == "none", fault=fault)
    start = time.process_time()
    judgement = testing.judge(row["kind"], like=row["like"] or None, **arrays)
    return judgement, (time.process_time() - start) * 1e3


def sound(judgement):
    near = any(judgement.found(cause) for cause in ("rounding", "sum-order", "zero"))
    return "equal" if judgement.equal else "near" if near else "alarm"


def verdict(row, judgement):
    if row["cause"] == "none":
        return sound(judgement)
    return "named" if judgement.found(row["cause"]) else "missed"


def finding(row, judgement):
    """The sentence of the expected cause, or of the first finding; the row of a sound stack."""
    said = [f for f in judgement.findings if f.cause == row["cause"]] or list(judgement.findings[:1])
    return f"{said[0].cause}: {said[0].text}" if said else judgement.row if judgement.equal else "nothing is known"


def show(row, judgement, ms, full):
    print(f"{row['name']:17} {row['kind']:8} {row['now']:7} {judgement.differ:7} of {judgement.results:7} {ms:6.0f} ms  {finding(row, judgement)}")
    if full:
        print("    " + str(judgement).replace("\n", "\n    "))


def judge_all(given):
    rows = stacks.table()
    for row in rows:
        if row["kind"] not in testing.kinds():
            row["now"] = NO_KIND
            print(f"{row['name']:17} {row['kind']:8} {NO_KIND}")
            continue
        judgement, ms = judge(row, given.live)
        row["now"] = verdict(row, judgement)
        show(row, judgement, ms, given.full)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("live", "full", "write"):
        parser.add_argument("--" + name, action="store_true")
    given = parser.parse_args()
    rows = judge_all(given)
    now = [row["now"] for row in rows]
    faults = sum(row["cause"] != "none" for row in rows)
    print(f"{now.count('named')} of {faults} faults are named; {len(rows) - faults} sound stacks: {now.count('equal')} equal to a row, "
          f"{now.count('near')} near, {now.count('alarm')} false alarms; {now.count(NO_KIND)} without a kind")
    if given.write:
        lines = ["\t".join(rows[0])] + ["\t".join(row.values()) for row in rows]
        (stacks.HERE / "stacks.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
