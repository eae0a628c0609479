"""`flambeau names` and `flambeau doctor` on packages made for the test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import flambeau.utils
from flambeau import cli, hook
from flambeau._commands import names
from flambeau._commands.used_names import names_in

SOURCE = """
import torch, os
import torch.nn as nn
import torch.utils.data
from torch import Tensor as T, fft
from torch.optim import *
from .torch import other

def f(x: T) -> nn.Module:
    import torch.nn.functional as F
    return F.relu(fft.rfft(x)).torch.sum(os.path, torch.no_such_name.deeper(nn.Linear))
"""


@pytest.fixture(autouse=True)
def _without_hook():
    yield
    hook.uninstall()


def test_names_are_followed_through_imports():
    assert sorted(names_in(SOURCE)) == [
        "torch.Tensor", "torch.fft", "torch.fft.rfft", "torch.nn", "torch.nn.Linear",
        "torch.nn.Module", "torch.nn.functional", "torch.nn.functional.relu",
        "torch.no_such_name.deeper", "torch.optim", "torch.utils.data",
    ]  # fmt: skip


def test_source_that_does_not_parse_has_none():
    assert list(names_in("def f(:")) == []


def test_missing_names_are_listed(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "a.py").write_text(SOURCE)
    (tmp_path / "b.py").write_text("import torch\ntorch.no_such_name.deeper\ntorch.add")
    assert cli.main(["names", str(tmp_path)]) == 1
    out, err = capfd.readouterr()
    assert out == "torch.no_such_name.deeper\t2\n"
    assert err == "12 names used, 1 of them missing\n"
    assert cli.main(["names", "--all", str(tmp_path / "b.py")]) == 1
    assert capfd.readouterr().out == "torch.add\t1\ntorch.no_such_name.deeper\t1  missing\n"
    assert cli.main(["names", "no_such_package"]) == 1


def test_doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    (tmp_path / "sound_pack.py").write_text("import torch\ndef f(): torch.no_such_name()")
    (tmp_path / "broken_pack.py").write_text("import torch\ntorch.no_such_name()")
    monkeypatch.syspath_prepend(tmp_path)
    root = str(Path(__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{root}")
    assert cli.main(["doctor", "sound_pack"]) == 0
    assert capfd.readouterr().out.splitlines() == [
        "sound_pack: imports",
        "  uses 1 name of PyTorch, 1 of them missing",
        "  missing: torch.no_such_name (1 use)",
    ]
    assert cli.main(["doctor", "sound_pack", "broken_pack"]) == 1
    assert "broken_pack: does not import: AttributeError" in capfd.readouterr().out


def test_a_module_that_needs_another_distribution_is_there(monkeypatch: pytest.MonkeyPatch):
    hook.install()
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for name in ("flambeau.utils.tensorboard", "torch.utils.tensorboard"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delitem(vars(flambeau.utils), "tensorboard", raising=False)
    assert names.is_there("torch.utils.tensorboard.SummaryWriter")
    assert not names.is_there("torch.utils.nothing.SummaryWriter")
