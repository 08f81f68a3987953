"""Loss scalers stepped by hand, beside the program's replay of a pattern."""
import copy
import json
import pickle

import numpy as np
import pytest

import mpsim

PATTERN = [1, 1, 1] + [0] * 9 + [1, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("row", mpsim.scalers)
def test_as_the_program_replays(row, program):
    spec = row + ":window=3" if row not in ("none", "static", "megatron-static", "deepspeed-static") else row
    text = ",".join(str(overflow) for overflow in PATTERN)
    report = json.loads(program("scaler", "--json", "--all", "--pattern", text, "-s", spec))["scalers"][0]
    theirs = []
    for part in report["trajectory"]:
        theirs += [(part["scale"], part["next"], tuple(part["events"]))] * part["steps"]
    s = mpsim.Scaler(spec)
    ours = []
    for overflow in PATTERN:
        stopped = s.stopped
        r = s.update(bool(overflow))
        if not stopped:
            ours.append((r.scale, r.next, r.events))
    assert ours == theirs[:len(ours)] and len(theirs) == len(ours)


def test_state():
    s = mpsim.Scaler("torch:init=2^10")
    s.update(True)
    t = mpsim.Scaler("torch:init=2^10")
    t.load(s.save())
    assert t.scale == s.scale == 512.0 and t.step == 1
    for state in ("scale=what", 3, s.save() + "\0"):
        with pytest.raises(mpsim.InputError, match="expected a state"):
            t.load(state)
    assert s.update(np.float32(1)).events[0] == "overflow" and s.update(np.False_).events == ()
    for overflow in ("no", np.ones(2), None):
        with pytest.raises(mpsim.InputError, match="overflow: expected a number"):
            s.update(overflow)


def test_checkpoints():
    """Pickled, copied, and as a dict that torch.save or JSON takes."""
    s = mpsim.Scaler("torch:init=2^10,window=3")
    for overflow in (True, False, False):
        s.update(overflow)
    t = mpsim.Scaler("torch:init=2^10,window=3")
    t.load_state_dict(json.loads(json.dumps(s.state_dict())))
    for other in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s), t):
        assert other.save() == s.save() and other.spec == s.spec
    assert [each.update(False).events for each in (s, t)] == [("growth",)] * 2
    for state, words in (({"spec": "torch", "state": s.save()}, "found one of 'torch'"), ({"scale": 1.0}, "as state_dict"), (None, "found None"),
                         ({"spec": s.spec, "state": "x"}, "as save")):
        with pytest.raises(mpsim.InputError, match=words):
            t.load_state_dict(state)


@pytest.mark.parametrize("spec, words", [("trch", "did you mean 'torch'"), ("torch:foo=1", "an unknown name, key"),
                                         (None, "found NoneType"), ("torch\0x", "NUL character")])
def test_refusals(spec, words):
    with pytest.raises(mpsim.InputError, match=words):
        mpsim.Scaler(spec)
