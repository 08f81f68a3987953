"""What an older torch is told; python/README.md has the versions that the tests were run with."""
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
mpsim = pytest.importorskip("mpsim")

OLD = {"1.13.1": "hooks of modules that are always called, storages without types", "2.1.2+cpu": "weak references to storages",
       "2.2.2": "attention on a CPU as an operator of its own"}


@pytest.mark.parametrize("version", OLD)
def test_older(version, monkeypatch):
    monkeypatch.setattr(torch, "__version__", version)
    with pytest.raises(mpsim.Error) as error:
        mpsim.emulate(torch.nn.Linear(2, 2))
    assert str(error.value) == f"mpsim.emulate needs torch 2.4 or newer ({OLD[version]}), found torch {version}"


@pytest.mark.parametrize("version", ["2.4.0", "2.10.0a0+git1234", "3.0", "unknown"])
def test_newer(version, monkeypatch):
    monkeypatch.setattr(torch, "__version__", version)
    mpsim.emulate(torch.nn.Linear(2, 2), "fp32")


def test_program(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("")
    code = ("import sys, torch; torch.__version__ = '1.13.1'; from mpsim.emulate._script import main; "
            f"sys.exit(main(['-P', 'fp32', {str(script)!r}]))")
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 4 and done.stderr.strip().count("\n") == 0 and "needs torch 2.4 or newer" in done.stderr, done.stderr
