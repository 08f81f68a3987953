"""A short selection of what survey.py runs on all families."""
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mpsim.emulate._emulator")
import survey  # noqa: E402
import families  # noqa: E402

OPTIONS = {"policy": "te-nvfp4", "arch": "blackwell-scaled", "seed": 7}
SHORT = ("mlp", "gru", "einsum-attention", "tied-autoencoder", "conv1d-3d", "gcn", "llama", "t5", "mixtral", "resnet18", "lora")


@pytest.mark.parametrize("name", SHORT)
def test_family(name):
    """Products of a family: all claimed, roles as the judge has them, the same bits in other circumstances."""
    try:
        case = families.build(name)
    except families.Missing as error:
        pytest.skip(str(error))
    found = survey.row(name, case, OPTIONS, with_bits=name in ("mlp", "llama"))
    assert found.good, found
