"""A selection of peers.py: operands of an emulated decoder are torchao's in every bit. With TransformerEngine and microxcaling: `make
check-emulate PEERS=...`."""
import os
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchao")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
if not os.path.isdir(os.path.join(os.environ.get("MPSIM_SRCDIR") or "/nowhere", "data", "vectors")):
    pytest.skip("MPSIM_SRCDIR names no checkout with data/vectors", allow_module_level=True)
peers = pytest.importorskip("peers")


@pytest.mark.parametrize("policy", ["torchao-nvfp4", "mxfp8-floor", "te-mxfp8", "mxfp6", "torchao-rowwise", "torchao-tensorwise"])
def test_torchao(policy, tmp_path):
    counts = peers.judge_all(peers.Peers("", ""), policy, peers.from_emulator(policy, str(tmp_path), steps=1))
    count = counts["torchao"]
    assert (count.wrong_scales, count.wrong_codes) == (0, 0), count.first
    assert count.operands >= 30 and count.codes > 100_000
