"""Reports of every command beside their schemas in doc/schema."""
import json
import os
import shlex
import subprocess

import numpy as np
import pytest
from conftest import SOURCES
from mpsim._library import PROGRAM

jsonschema = pytest.importorskip("jsonschema")
SCHEMAS = os.path.join(SOURCES, "doc", "schema")
if not SOURCES or not os.path.isdir(SCHEMAS):
    pytest.skip("MPSIM_SRCDIR names no checkout with doc/schema", allow_module_level=True)


def load(name):
    with open(os.path.join(SCHEMAS, name), encoding="utf-8") as file:
        return json.load(file)


ALL = {name: load(name) for name in sorted(os.listdir(SCHEMAS)) if name.endswith(".json")}
GPT = ("train --net gpt --depth 1 --width 16 --heads 2 --context 4 --batch 1 --steps 2 --warmup 0 --validation 1 --every 1 "
       "--threads 1 ")
MLP = "train --net mlp --width 4 --depth 1 --batch 4 --steps 2 --every 1 --threads 1 "
# D: the folder data, A: data/amp-mlp/adam, T: files made below
COMMANDS = """
stat D/digits-cnn/step_000001
stat -f fp16,mxfp8,nvfp4 -s 1,2^10 --histogram --axis both A/step_000010
stat -f fp16,e4m3/128x128:ue8m0 --counts --round stochastic --overflow saturate -m 'wgrad:*' A/step_000010
stat -f fp16 --map 'grad/(.*)=wgrad:\\1' T/w.npz
stat --keep-going T/a.npy T/broken.npy
info D/digits-cnn/step_000001
info --scales T/quantised.safetensors
info T/a.npy
formats
formats fp16 e5m7:fn binary8p3se
formats --check 1e-8 fp16 e4m3 e8m0
formats --check 448 fp16 e4m3 e8m0 e2m1
formats --check -1 fp16 e8m0
formats --positions 3000 bf16 binary32
formats --recipes
formats --models
cast --explain 1.5,nan,inf,-0,1e6 -f fp16,e4m3,mxfp4,nvfp4:2d,nvfp4:rht16
explain
explain 'Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0'
calc add -f fp16,bf16 1 nan
calc fma -f e4m3 1e5 3 -2 --round up
diff A/step_000010 D/amp-mlp/adamw/step_000010
diff T/a.npy T/b.npy
diff T/a.npy T/shifted.npy
diff T/a.npy T/reshaped.npy
diff T/w.npz T/renamed.npz
diff --tolerance 60dB T/a.npy T/b.npy
diff A/step_000010 A/step_000011
diff --logprob T/p.npy T/q.npy
mismatch -a hopper-bf16-fp32,softmax=bf16 -b fma,split=2 --count 4 --size 32 --vocabulary 50
judge cast --like fp16 --role 'x=*a.npy' --role 'y=*b.npy' T/a.npy T/b.npy
judge cast --role 'x=*a.npy' --role 'y=*b.npy' T/a.npy T/b.npy
judge T/run
judge --inputs e2m1
judge --inputs mxfp8 -o T/inputs.safetensors
judge --tolerance hopper-bf16-fp32 --depth 64 --to bf16
judge --tolerance mxfp8
dot -f bf16 -K 8,16 -M fma,exact
dot -f tf32 -K 8 -M fma --above 0.5 --absolute
dot -f fp16 -K 100 -M fma --split-k 3
dot -f bf16 -K 64 -M fma --stream-k 4,16x16x32 --workspace bf16
dot --blocks nvfp4 -K 64
dot -f e4m3 --a 1,2,3 --b 1,1,1 -M hopper-mma-fp8-fp32,exact --steps
dot --reduce --wire fp16,bf16 --a 'wgrad:*' A/step_000010/rank_00000.safetensors A/step_000011/rank_00000.safetensors
attention --tokens 16 --heads 1 -M fma,hopper-bf16-fp32 --above 0.1
attention --tokens 16 --heads 1 --values repeated --causal --cure 2 -M fma
attention --tokens 16 --heads 1 --window 3,0 --exp2 --softmax-format bf16 -M fma
memory --params 7B -P fp32 -P bf16-pure -P fp8-lm
memory --params 1e9 -P pytorch-amp-fp16 --ranks 8 --zero 2
verify cpu -q --threads 1
verify vectors
log D/logs/52-zipvoice-steady.log
log T/run1.txt T/run2.txt
scaler --list
scaler --pattern 0,1,0,1,1 -c all
scaler --log D/logs/80-torch-resumed-without-scaler.log
scaler --log D/logs/14-apex-two-ranks-subnormal.log
scaler --log D/logs/21-fairseq-roberta-average-scale.log
scaler --log D/logs/95-onnxruntime-deepspeed-loss-zero-stopped.log
scaler D/digits-cnn/step_000001 D/digits-cnn/step_000120
scaler --adaptive D/digits-cnn/step_000001
replay -P pytorch-amp-fp16 -P te-fp8-delayed -P te-mxfp8 D/digits-cnn/step_019999 D/digits-cnn/step_020000
advise D/digits-cnn/step_000001 D/digits-cnn/step_000120
advise --hold-back 2 -f fp16,mxfp8 A/step_000010 A/step_000011
advise D/charlm/step_000100
replay -P fp32 --weights recorded --no-reference A/step_000010
train-mlp -P pytorch-amp-fp16 -P fp32
train-mlp -P fp8-lm --optimizer adamw --check-digests T/digests
train-mlp -P fp32 --optimizer adafactor
train-gpt -P pytorch-amp-bf16 --accumulate 2 --ranks 2 --wire bf16
train-gpt -P fp32 --norm rmsnorm --positions rotary
""".strip().splitlines()
LINES = {"stat", "info", "formats", "dot", "attention", "mismatch", "advise", "cast", "replay"}  # that have --ndjson


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What the commands above read beside data/."""
    path = tmp_path_factory.mktemp("schemas")
    a = np.random.default_rng(1).standard_normal((8, 64)).astype(np.float32)
    a[0, :3] = np.nan, np.inf, 0
    for name, x in (("a", a), ("b", a * np.float32(1.5)), ("shifted", np.roll(a, 1)), ("reshaped", a.reshape(16, 32)),
                    ("p", -np.abs(a)[1:]), ("q", -np.abs(a)[1:] * 1.01)):
        np.save(path / f"{name}.npy", x)
    (path / "broken.npy").write_bytes(b"\x93NUMPY")
    for k in (1, 2):
        lines = [f"step {i} loss {4 / (i + k)}\n" for i in range(40)]
        (path / f"run{k}.txt").write_text("".join(lines))
    np.savez(path / "w.npz", **{"fc.weight": a[1:].copy(), "grad/fc.weight": a[1:].copy()})
    subprocess.run([PROGRAM, "cast", "-q", "-f", "mxfp8", "-o", path / "quantised.safetensors", path / "w.npz"], check=True)
    (path / "run").mkdir()
    np.savez(path / "run" / "t.npz", a=a, b=a * np.float32(1.5), c=np.float16(a[1:]), d=a[1:])
    arrays = ({"x": "a", "y": "a"}, {"x": "a", "y": "b"}, {"x": "c", "y": {"digest": "0" * 64, "format": "fp16", "shape": [7, 64]}})
    operations = [{"name": str(i), "kind": "cast", "row": "binary32" if i != 2 else "fp16", "arrays": x} for i, x in enumerate(arrays)]
    (path / "run" / "run.json").write_text(json.dumps({"schema": "mpsim.run/1", "files": ["t.npz"], "operations": operations}))
    np.savez(path / "renamed.npz", **{"head.weight": a[1:].reshape(14, 32), "grad/head.weight": a[1:].copy()})
    words = MLP.split() + ["-q", "-P", "fp8-lm", "--optimizer", "adamw"]
    subprocess.run([PROGRAM, *words, "--digests", path / "digests"], check=True, stdout=subprocess.DEVNULL)
    return path


def once(pairs):
    """An object, none of whose keys comes twice."""
    assert len(dict(pairs)) == len(pairs), [key for key, _ in pairs]
    return dict(pairs)


def read(text):
    return json.loads(text, object_pairs_hook=once, parse_constant=pytest.fail)


def judge(schema, value):
    """What does not fit, each a path and a reason."""
    found = jsonschema.Draft202012Validator(schema).iter_errors(value)
    return [f"{e.json_path}: {e.message[:200]}" for e in found]


def line_schema(schema):
    return {"$ref": "#/$defs/line", "$defs": schema["$defs"]}


def schema_of(report):
    name, version = report["schema"].split("/")
    return ALL[f"{name}.{version}.json"]


def run(line, form, files):
    line = line.replace("train-mlp ", MLP).replace("train-gpt ", GPT)
    folders = {"D/": f"{SOURCES}/data/", "A/": f"{SOURCES}/data/amp-mlp/adam/", "T/": f"{files}/"}
    words = [folders.get(word[:2], word[:2]) + word[2:] for word in shlex.split(line)]
    done = subprocess.run([PROGRAM, words[0], form, *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode in (0, 1, 5) and done.stdout, done.stderr
    return done.stdout.decode()


SEEN = {}  # the shortest report of each schema


@pytest.mark.parametrize("line", COMMANDS)
def test_reports(line, files):
    text = run(line, "--json", files)
    report = read(text)
    assert judge(schema_of(report), report) == []
    SEEN[report["schema"]] = min(SEEN.get(report["schema"], text), text, key=len)
    if line.split()[0] in LINES:
        lines = [read(text) for text in run(line, "--ndjson", files).splitlines()]
        assert lines and [e for one in lines for e in judge(line_schema(schema_of(report)), one)] == []


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("mpsim.emulate-")])  # test_emulate_report.py
def test_schemas(name):
    """Each is a schema, was the judge of a report, and notices a key too many, one too few, one of another type."""
    schema = ALL[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert name == "{}.{}.json".format(*schema["properties"]["schema"]["const"].split("/"))
    text = SEEN.get(schema["properties"]["schema"]["const"])
    assert text, "no command above writes it"
    report = read(text)
    assert judge(schema, {**report, "no_such_key": 1})
    for key in schema["required"]:
        assert judge(schema, {k: v for k, v in report.items() if k != key})
        assert judge(schema, {**report, key: [[1]]})


def objects(schema):
    """All schemas of objects that name their keys."""
    for value in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(value, (dict, list)):
            yield from objects(value)
    if isinstance(schema, dict) and schema.get("type") == "object":
        yield schema


@pytest.mark.parametrize("name", ALL)
def test_no_key_is_free(name):
    """Every object lists its keys, or says what those that depend on the input are."""
    for one in objects(ALL[name]):
        assert one["additionalProperties"] is False or "properties" not in one and one["additionalProperties"]
