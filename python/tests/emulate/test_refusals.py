"""What is refused is refused in one line that names the operation, the module and the user's line; and nothing stays behind."""
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mpsim.emulate._emulator")
import mpsim  # noqa: E402

import refusals  # noqa: E402


@pytest.mark.parametrize("name", refusals.CASES)
def test_refused(name):
    """A case raises one line with its words; afterwards the same model computes natively."""
    build, run, words = refusals.CASES[name]
    model, x = build(), refusals.numbers(4, 32)
    with pytest.raises(mpsim.InputError) as caught:
        with mpsim.emulate(model, policy="pytorch-amp-bf16", arch="hopper"):
            run(model, x)
    text = str(caught.value)
    missing = [word for word in words if ("refusals.py:" if word == "line" else word) not in text]
    assert "\n" not in text and not missing, (text, missing)
    run(build(), x.detach())


@pytest.fixture(scope="module", autouse=True)
def group():
    """The process group of the cases ends with them."""
    yield
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
