# SPDX-License-Identifier: Apache-2.0
"""Ask a device questions that PyTorch alone can answer: each in a process and a time of its own.

    python3 ask_device.py --device cuda --output-dir OUT --jobs 4   all questions, in the order of LISTS, four at once
    python3 ask_device.py --device cuda --output-dir OUT --jobs 4 --of multiplications
    python3 ask_device.py --device cpu --quick --output-dir OUT casts products

A question is a module of the folder device/ with ask(session); README.md there says what its answers hold. OUT gets
QUESTION.ndjson, a line as soon as it is known, QUESTION.log, what was printed, and manifest.json: versions, and of
each question its state (done, skipped, failed, crashed, out of time), seconds and answers. What is out of time is ended;
its lines stay, and the next question runs. The exit status is 1 where a question was not done or skipped.
"""
import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Lists of questions, each with its most seconds on a device, importing torch and making a context included (six or so).
LISTS = {"first": {"casts": 30, "functions": 40, "reductions": 40, "optimizers": 60, "autocast": 40, "products": 140,
                   "scaled": 70, "attention": 60, "training": 90, "division": 30, "fused": 30, "pointwise": 30,
                   "matrices": 30, "doubles": 20},
         # Beside each other on an H100: 8 s for torch and the profiler, then 0.05 s a case (330 cases of `products` took 18 s on
         # an H200), and 2 ms for each 2^22 numbers that are drawn: `models` draws 10^10.
         "multiplications": {"models": 60, "convolutions": 60, "bias": 45, "batched": 45, "segments": 40, "models_fp8": 40,
                             "grouped": 40, "integers": 30},
         # 8 s for torch and the profiler, then 160 cases of 0.15 s: four calls, one of them under the profiler, digests.
         "raw": {"attention_raw": 80}}
LOST = 75                                        # exit status: a case lost the device's context; another process goes on behind it
QUESTIONS = {name: seconds for of in LISTS.values() for name, seconds in of.items()}


def arguments():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("questions", nargs="*", metavar="QUESTION", help="else all: " + " ".join(QUESTIONS))
    ap.add_argument("--of", choices=LISTS, help="the questions of this list, instead of all")
    ap.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    ap.add_argument("--output-dir", required=True)
    ap.add_argument("--quick", action="store_true", help="few and small cases")
    ap.add_argument("--limit", type=float, help="seconds for each question, instead of its own")
    ap.add_argument("--total", type=float, default=600, help="seconds for all")
    ap.add_argument("--jobs", type=int, default=1, help="questions at once; no answer is a time")
    ap.add_argument("--traces", help="what `training` compares with: a folder made by device/traces.sh")
    ap.add_argument("--modules", default=os.path.join(HERE, "device"), help="where the modules are")
    ap.add_argument("--again", action="store_true", help=argparse.SUPPRESS)   # with --inside: behind the cases that are known
    ap.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)  # the process of one question
    a = ap.parse_args()
    if a.of and a.questions:
        ap.error("--of names all questions of a list")
    if not a.inside:
        known = [q for q in a.questions if os.path.exists(os.path.join(a.modules, q + ".py"))]
        if known != a.questions:
            ap.error("no such question: " + " ".join(sorted(set(a.questions) - set(known))))
        a.questions = a.questions or list(LISTS[a.of] if a.of else QUESTIONS)
    return a


# ---- the process of one question ----

def inside(a):
    """Exit status: 0 done, 77 skipped, LOST, else failed."""
    sys.path[:0] = [a.modules, os.path.join(HERE, "device"), HERE]
    from session import Lost, Session, Skipped
    question, = a.questions
    session = Session(question, a)
    try:
        importlib.import_module(question).ask(session)
    except Skipped as why:
        session.end(skipped=str(why))
        sys.exit(77)
    except Lost as case:
        print("lost the device:", case, flush=True)
        os._exit(LOST)                           # without what a lost context makes wait
    session.end()


# ---- the driver: does not import torch ----

def answers_of(path):
    """The head of a question's file, and how many answers it holds; a last line that is cut off does not count."""
    lines = []
    try:
        with open(path, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f if line.endswith("\n")]
    except (OSError, ValueError):
        pass
    return (lines[0] if lines else {}), sum("case" in line for line in lines[1:])


def end(process):
    """The process and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


class Asked:
    """A question's process, and until when it may run."""

    def __init__(self, a, question, limit, began=None):
        """began: of the process before, which lost the device; this one goes on."""
        self.question, self.limit, self.began = question, limit, began or time.monotonic()
        self.process = None
        if limit <= 0:
            return
        options = ["--device", a.device, "--output-dir", a.output_dir, "--modules", a.modules, "--inside"]
        options += ["--quick"] if a.quick else []
        options += ["--traces", a.traces] if a.traces else []
        options += ["--again"] if began else []
        with open(os.path.join(a.output_dir, question + ".log"), "ab" if began else "wb") as log:
            self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), question] + options, stdout=log,
                                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)

    def state(self):
        """None while it runs, else state and exit status; then all that it started has ended, too."""
        if not self.process:
            return "no time left", None
        status = self.process.poll()
        if status is None and time.monotonic() - self.began < self.limit:
            return None
        end(self.process)
        if status is None:
            return "out of time", None
        return {0: "done", 77: "skipped"}.get(status, "crashed" if status < 0 else "failed"), status


def old_manifest(a):
    """That of an earlier call for the same folder and device, or a new one."""
    try:
        with open(os.path.join(a.output_dir, "manifest.json"), encoding="utf-8") as f:
            old = json.load(f)
        if old.get("kind") == a.device and old["quick"] == a.quick:
            return old
    except (OSError, ValueError):
        pass
    return {"schema": "mpsim.device-manifest/1", "quick": a.quick, "questions": {}}


def write_manifest(a, manifest):
    path = os.path.join(a.output_dir, "manifest.json")
    with open(path + ".part", "w", encoding="utf-8") as f:
        json.dump(manifest, f, indent=1)
        f.write("\n")
    os.replace(path + ".part", path)


def ask_all(a, told):
    """Questions in their order, `jobs` at once; told(asked, state, status) of each that has ended."""
    began, waiting, running = time.monotonic(), list(a.questions), []
    try:
        while waiting or running:
            while waiting and len(running) < a.jobs:
                question = waiting.pop(0)
                limit = a.limit or QUESTIONS.get(question, 60)
                running.append(Asked(a, question, min(limit, a.total - (time.monotonic() - began))))
            ended = [(asked, asked.state()) for asked in running]
            for asked, state in ended:
                if not state:
                    continue
                running.remove(asked)
                if state[1] == LOST and asked.began + asked.limit > time.monotonic():
                    running.append(Asked(a, asked.question, asked.limit, asked.began))
                else:
                    told(asked, *state)
            if all(state is None for _, state in ended):
                time.sleep(0.05)
    finally:
        for asked in running:
            if asked.process:
                end(asked.process)


def main():
    a = arguments()
    if a.inside:
        inside(a)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # through the `finally` above
    os.makedirs(a.output_dir, exist_ok=True)
    manifest = old_manifest(a)
    for question in a.questions:
        path = os.path.join(a.output_dir, question + ".ndjson")
        if os.path.exists(path):                 # of an earlier call
            os.remove(path)

    def told(asked, state, status):
        seconds = time.monotonic() - asked.began
        head, count = answers_of(os.path.join(a.output_dir, asked.question + ".ndjson"))
        for key in ("device", "kind", "torch", "cuda", "driver", "capability", "triton"):
            if key in head:
                manifest.setdefault(key, head[key])
        manifest["questions"][asked.question] = {"state": state, "status": status, "limit": round(asked.limit, 1),
                                                 "seconds": round(seconds, 1), "answers": count}
        write_manifest(a, manifest)
        print(f"{asked.question}: {state}, {count} answers, {seconds:.1f} s", flush=True)

    ask_all(a, told)
    sys.exit(any(manifest["questions"][q]["state"] not in ("done", "skipped") for q in a.questions))


if __name__ == "__main__":
    main()
