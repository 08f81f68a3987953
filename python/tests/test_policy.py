"""Policies: the door of mpsim/policy.h."""
import doctest
import gc
import os
import shutil
import subprocess
import time

import pytest
from conftest import SOURCES

from mpsim import FileError, InputError, _optim, _policy
from mpsim._policy import FOLDER, KINDS, ROLES, TABLE, Policy

STRUCTURES = {**_optim.STRUCTURES, **_policy.STRUCTURES}


def test_structures(tmp_path):
    cc = shutil.which("cc") or shutil.which("gcc")
    if not SOURCES or not cc:
        pytest.skip("no C compiler, or MPSIM_SRCDIR names no checkout")
    lines = []
    for name, structure in STRUCTURES.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));' for field, _ in structure._fields_]
    (tmp_path / "x.c").write_text("#include <mpsim/policy.h>\n#include <stdio.h>\nint main(void) {\n" + "\n".join(lines) + "}\n")
    subprocess.run([cc, "-I", os.path.join(SOURCES, "lib", "include"), "-o", tmp_path / "x", tmp_path / "x.c"], check=True)
    theirs = subprocess.run([tmp_path / "x"], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    ours = []
    for name, structure in STRUCTURES.items():
        ours.append(f"{name} {_policy.ctypes.sizeof(structure)}")
        ours += [f"{name}.{field} {getattr(structure, field).offset}" for field, _ in structure._fields_]
    assert theirs == ours


def test_docstrings():
    failed, tried = doctest.testmod(_policy)
    assert tried and not failed


def test_every_bundled_policy_opens():
    names = sorted(name[:-5] for name in os.listdir(FOLDER) if name.endswith(".yaml"))
    assert len(names) > 50
    for name in names:
        policy = Policy.open(name, layers=["h.0.mlp", "h.1.mlp"], steps_per_epoch=10)
        assert policy.name == name and policy.path.endswith(name + ".yaml")
        for plan in policy.plans:
            for kind in KINDS:
                assert set(plan.place("h.0.mlp", kind, rank=2).format) == set(ROLES)


def formats(place):
    return [place.format[role].name for role in ROLES]


def test_places():
    """As data/policies/README.md says it."""
    amp = Policy.open("pytorch-amp-bf16").plan()
    assert formats(amp.place("fc", "linear", rank=2)) == ["bf16"] * 6
    assert formats(amp.place("ln", "norm", rank=1)) == ["binary32"] * 6
    assert amp.place("fc", "linear", rank=2).kept.name == "binary32" and not amp.casts_all
    fp8 = Policy.open("te-fp8-delayed").plan()
    place = fp8.place("h.0.mlp", "linear", rank=2)
    assert [bool(place.recipe[role]) for role in ROLES] == [True, False, True, True, False, False]
    assert fp8.place("h.0.scores", "linear", attention=True).recipe["act"] is None and not fp8.attends
    assert fp8.place("h.0.mlp", "linear", rank=2, multiplies=False).recipe["act"] is None
    assert fp8.delayed.history == 1024 and amp.delayed is None
    assert Policy.open("te-fp8-current-dpa").plan().place("h.0.scores", "linear", attention=True).recipe["act"]
    kept = Policy.open("nvfp4-pretraining", layers=[f"h.{i}.mlp" for i in range(50)]).plan()
    assert kept.place("h.0.mlp", "linear", rank=2).recipe["act"] is None and kept.place("h.25.mlp", "linear", rank=2).recipe["act"]
    assert kept.place("h.25.mlp", "linear", rank=2).hadamard == 16
    assert Policy.open("deepseek-v3-fp8").plan().place("x", "linear", rank=2).promote == 128
    assert Policy.open("torchao-adamw8bit").plan().place("x", "linear", rank=2).states == "torchao-8bit"
    muon = Policy.open("muon-bf16").plan()
    assert muon.place("x", "linear", rank=2).muon and not muon.place("x", "norm", rank=1).muon
    assert not muon.place("wte", "embedding", rank=TABLE).muon


def test_kinds():
    plan = Policy.open({"precision": "bf16", "layer_kinds": {"odd*": "norm"}}).plan()
    assert [plan.kind("odd1", 2), plan.kind("ln_f", 1), plan.kind("x", 4), plan.kind("x", TABLE), plan.kind("x")] == [
        "norm", "norm", "conv", "embedding", "other"]
    assert formats(plan.place("odd1", "linear", rank=2)) == formats(plan.place("x", "norm", rank=1))


def test_plans():
    policy = Policy.open({"schedule": [{"step": 1, "precision": "fp16"}, {"step": 11, "precision": "bf16", "optimizer": {"name": "adamw", "lr": 0.5}}]})
    assert [policy.plan(step).precision for step in (0, 9, 10, 99)] == ["fp16", "fp16", "bf16", "bf16"]
    first, second = policy.plan(0), policy.plan(10)
    assert (first.start, second.start) == (0, 10) and first.scaler.name == b"torch"
    assert first.optimizer.algorithm is None and second.optimizer.algorithm == "adamw" and second.optimizer.numbers == {"lr": 0.5}
    assert second.optimizer.variant("adamw") and "precision bf16" in second.describe
    apex = Policy.open("apex-O2").plan()
    assert apex.master == "fp32" and apex.params.name == "fp16" and apex.optimizer.variant("adam").name == b"apex"
    stochastic = Policy.open("bf16-stochastic").plan()
    assert stochastic.optimizer.store == "stochastic" and stochastic.master is None


@pytest.mark.parametrize("source, line", [
    ({"precisoin": "fp16"}, "policy: unknown key 'precisoin': did you mean precision?"),
    ({"precision": float("nan")}, "policy: expected a dict of texts"),
    ({}, "policy: no key is given"), (3, "expected the name of a policy, a file or a dict of its keys, found int"),
    ({"precision": {"a": 1}}, "policy: precision"),
])
def test_what_is_no_policy(source, line):
    with pytest.raises(InputError, match="^" + line.replace("?", r"\?") if isinstance(source, dict) else line):
        Policy.open(source)


def test_no_such_policy(tmp_path, monkeypatch):
    with pytest.raises(FileError, match="did you mean te-nvfp4"):
        Policy.open("te-nvfp")
    file = tmp_path / "mine.yaml"
    file.write_text("precision: fp61\n")
    with pytest.raises(InputError, match="mine.yaml: line 1: precision"):
        Policy.open(file)
    file.write_text("precision: fp16\n")
    assert Policy.open(file).name == "mine"
    monkeypatch.setenv("MPSIM_POLICIES", str(tmp_path))
    assert Policy.open("mine").plan().precision == "fp16"


def test_a_plan_keeps_its_policy():
    plan = Policy.open("te-mxfp8").plan()
    gc.collect()
    assert plan.place("x", "linear", rank=2).recipe["act"].block_cols == 32


def test_a_place_is_quick():
    plan, best = Policy.open("te-mxfp8").plan(), 1.0
    for _ in range(300):
        start = time.perf_counter()
        plan.place("h.0.mlp", "linear", 2)
        best = min(best, time.perf_counter() - start)
    assert best < 20e-6
