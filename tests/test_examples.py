"""The examples run, as `flambeau run` runs them."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEED_EXTRAS = {"ddp_digits.py", "digits.py", "digits_from_tar.py"}  # scikit-learn, matplotlib

# A line that each prints. Numbers are PyTorch's, from the same seed.
LINES = {
    "autograd.py": "derivatives of x sin x at 2: 0.0770, -2.6509",
    "broadcasting.py": "6 was wanted: tensor(12.)",
    "checkpoints.py": "continued: 0.173772 from step 20",
    "curve_fit.py": "should be close to 5, 0, 3:",
    "modules.py": "should be close to 5 and 3: 4.996 3.002",
    "operators.py": "in place: tensor([12.2500,  1.0000,  2.2500])",
    "stability.py": "gradient: tensor([ 0.5000, -0.5000])",
    "tensors.py": "matmul: torch.Size([3, 4]) tensor([-0.9084, -0.7472, -0.1533,  2.5353])",
}


@pytest.mark.parametrize("name", LINES)
def test_example(name: str, tmp_path: Path):
    command = [sys.executable, "-m", "flambeau", "run", str(ROOT / "examples" / name)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert result.stderr == ""
    assert result.returncode == 0
    assert any(line.startswith(LINES[name]) for line in result.stdout.splitlines()), result.stdout


def test_digits_from_tar(tmp_path: Path):
    for extra in ("sklearn", "matplotlib"):
        pytest.importorskip(extra)
    example = str(ROOT / "examples/digits_from_tar.py")
    command = [sys.executable, "-m", "flambeau", "run", example, "--epochs=2"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert [line.split()[:4] for line in lines[:2]] == [
        ["epoch", "1", "images", "1437"], ["epoch", "2", "images", "1437"]
    ]  # fmt: skip
    assert lines[2] == "interrupted after 320 images; the rest: 1117"
    assert float(lines[3].split()[2].rstrip("%")) > 75
    assert (tmp_path / "digits_from_tar.png").stat().st_size > 20_000


@pytest.mark.parametrize("launcher", ["torchrun", "spawn"])
def test_ddp_digits(launcher: str, tmp_path: Path):
    pytest.importorskip("sklearn")
    launch = {
        "torchrun": ["-m", "flambeau.distributed.run", "--standalone", "--nproc-per-node", "2"],
        "spawn": ["-m", "flambeau", "run"],
    }[launcher]
    options = ["--epochs=3", f"--out={tmp_path / 'checkpoint'}"]
    if launcher == "spawn":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            options += ["--spawn=2", f"--port={free.getsockname()[1]}"]
    command = [sys.executable, *launch, str(ROOT / "examples/ddp_digits.py"), *options]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "epoch 1  loss 1.7699", "epoch 2  loss 0.4287", "epoch 3  loss 0.2245",
        "test accuracy 91.67%; processes: 2",
    ]  # fmt: skip


def test_every_example_is_here():
    present = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert present == set(LINES) | NEED_EXTRAS
