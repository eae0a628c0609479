"""`flambeau run-archive` and `flambeau inspect --code`: what they print, write and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import cli
from tests.jit.archive import handmade

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Model(torch.nn.Module):
    """A linear layer, in evaluation mode twice as much; and a method that counts."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))

    def forward(self, x):  # type: ignore[no-untyped-def]
        y = x @ self.weight
        return y if self.training else y * 2

    @torch.jit.export
    def count(self, n: int, text: str, scale: float):  # type: ignore[no-untyped-def]
        return {text: torch.full((n,), scale)}, [n, n + 1]

    @torch.jit.export
    def endless(self, n: int) -> int:
        while True:
            n = n + 1
        return n


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archives") / "model.pt"
    torch.jit.script(Model()).save(str(path))
    return path


@pytest.fixture
def flambeau(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command line; gives exit code, stdout and stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        code = cli.main([str(word) for word in words])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def x(tmp_path: Path) -> Path:
    path = tmp_path / "x.npy"
    np.save(path, np.array([[1.0, 1.0]], np.float32))
    return path


def test_inputs_and_results(flambeau: Any, archive: Path, x: Path) -> None:
    code, out, err = flambeau("run-archive", archive, "--input", x)
    assert (code, err) == (0, "")
    assert out.splitlines() == ["torch.float32 [1, 2] (8 B)", "tensor([[ 8., 12.]])"]


def test_inputs_of_torch_save(flambeau: Any, archive: Path, tmp_path: Path) -> None:
    torch.save(torch.zeros(3, 2), tmp_path / "x.pt")
    code, out, _ = flambeau("run-archive", archive, "--input", tmp_path / "x.pt")
    assert code == 0
    assert "torch.float32 [3, 2]" in out


def test_values_and_methods(flambeau: Any, archive: Path) -> None:
    values = [word for value in ("3", '"a"', "0.5") for word in ("--value", value)]
    code, out, _ = flambeau("run-archive", archive, "--method", "count", *values)
    assert code == 0
    for line in (
        "tuple of 2:",
        "dict of 1:",
        "tensor([0.5000, 0.5000, 0.5000])",
        "list of 2:",
        "4",
    ):
        assert line in [text.strip() for text in out.splitlines()]


@pytest.mark.parametrize("ending", ["npy", "npz", "pt"])
def test_output(flambeau: Any, archive: Path, x: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"y.{ending}"
    code, _, err = flambeau("run-archive", archive, "--input", x, "--output", path)
    assert (code, err) == (0, "")
    found = torch.load(path).numpy() if ending == "pt" else np.load(path)
    found = found["result"] if ending == "npz" else found
    assert found.tolist() == [[8, 12]]


def test_repeat_is_timed(flambeau: Any, archive: Path, x: Path) -> None:
    code, _, err = flambeau("run-archive", archive, "--input", x, "--repeat", 3)
    assert code == 0
    assert err.startswith("first call ")


def test_limits(flambeau: Any, archive: Path) -> None:
    words = ("run-archive", archive, "--method", "endless", "--value", "1", "--steps", "1e3")
    code, out, err = flambeau(*words)
    assert (code, out) == (1, "")
    assert "more than 1000 steps" in err
    values = ("--value", "100000", "--value", '"a"', "--value", "0.5")
    code, _, err = flambeau("run-archive", archive, "--method", "count", *values,
                            "--memory", "1e5")  # fmt: skip
    assert code == 1
    assert "more than 100000 bytes of memory" in err


REFUSED = {
    "no file": (["absent.pt"], "does not exist"),
    "no method": (["{archive}", "--method", "nope"], "no method 'nope'; there are forward, count"),
    "no input": (["{archive}"], "missing value for argument 'x'"),
    "no JSON": (["{archive}", "--value", "{{"], "--value {{: Expecting"),
    "no array": (["{archive}", "--input", "{archive}.npy"], "No such file"),
    "a list for .npy": (["{archive}", "--method", "count", "--value", "2", "--value", '"a"',
                         "--value", "1.5", "--output", "y.npy"], "the result is no tensor"),
    "another ending": (["{archive}", "--input", "{x}", "--output", "y.txt"],
                       "results are written as .npy, .npz or .pt"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(flambeau: Any, archive: Path, x: Path, name: str) -> None:
    words, text = REFUSED[name]
    given = [word.format(archive=archive, x=x) for word in words]
    code, _, err = flambeau("run-archive", *given)
    assert code == 1
    assert text.replace("{{", "{") in err
    assert err.startswith("flambeau run-archive: ")


def test_a_checkpoint_is_no_archive(flambeau: Any, tmp_path: Path) -> None:
    torch.save({"a": torch.ones(2)}, tmp_path / "a.pt")
    code, _, err = flambeau("run-archive", tmp_path / "a.pt")
    assert code == 1
    assert "constants.pkl" in err


def test_hostile_archives_end_in_one_line(flambeau: Any, tmp_path: Path) -> None:
    path = tmp_path / "hostile.pt"
    path.write_bytes(handmade.archive(handmade.module("return torch.from_file('/etc/passwd')")))
    code, out, err = flambeau("run-archive", path)
    assert (code, out) == (1, "")
    assert "from_file" in err


def test_inspect_shows_code_and_runs_nothing(flambeau: Any, archive: Path) -> None:
    code, out, _ = flambeau("inspect", archive, "--code")
    assert code == 0
    for text in (
        "weight",
        "def forward(self: __torch__.",
        "torch.matmul(x, weight)",
        "def endless",
    ):
        assert text in out
    code, out, _ = flambeau("inspect", archive)
    assert code == 0
    assert "def forward" not in out
    assert "endless" in out


def test_inspect_shows_code_of_hostile_archives(flambeau: Any, tmp_path: Path) -> None:
    """Characters that a terminal would obey are escaped; code that cannot be compiled is shown."""
    path = tmp_path / "hostile.pt"
    text = handmade.module("return torch.nonsense('\x1b[31m')")
    path.write_bytes(handmade.archive(text))
    code, out, _ = flambeau("inspect", path, "--code")
    assert code == 0
    assert "torch.nonsense" in out
    assert "\x1b" not in out
    code, out, _ = flambeau("inspect", path, "--json")
    assert code == 0
    assert json.loads(out)["methods"]
