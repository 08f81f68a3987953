"""Bugs of training stacks, played right and wrong: what mpsim says of the two runs names module and role."""
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mpsim.emulate._emulator")
import mpsim  # noqa: E402

import bugs  # noqa: E402


def trained(play, folder):
    """A run of a play, recorded; its report."""
    model = play.build()
    with mpsim.emulate(model, policy=play.policy, arch="hopper", seed=5) as e:
        e.record(folder)
        losses = play.train(model)
        assert all(loss == loss and abs(loss) < 100 for loss in losses)  # no bug here shows in the loss at once
    return e.report()


@pytest.mark.parametrize("kind", [play for play in bugs.PLAYS if play is not bugs.LostMaster], ids=lambda play: play.__name__)
def test_difference_is_named(kind, tmp_path):
    """The first tensor that differs between the traces is where the bug is; two runs without the bug are equal."""
    for name, wrong in (("right", False), ("again", False), ("wrong", True)):
        trained(kind(wrong), tmp_path / name)
    assert mpsim.diff(tmp_path / "right", tmp_path / "again")["equal"]
    found = mpsim.diff(tmp_path / "right", tmp_path / "wrong")["first"]
    assert (found["name"], found["step"]) == (kind.first, kind.step_found), found
    assert not kind.pattern or found["verdict"] == kind.pattern, found


def test_lost_updates_are_named(tmp_path):
    """A policy without masters: the report of that run alone names the norms, whose updates are all lost."""
    right, wrong = (trained(bugs.LostMaster(each), tmp_path / str(each)) for each in (False, True))
    assert bugs.LostMaster.first.partition(":")[2] in str(wrong).splitlines()[1], str(wrong)
    norms = [name for name in wrong.lost if "norm" in name]
    assert norms and all(wrong.lost[name].lost == wrong.lost[name].updates > 0 for name in norms)
    assert not any(each.lost for name, each in right.lost.items() if "norm" in name), right.lost
