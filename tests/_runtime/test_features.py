"""What the processor can do: LLVM's answer, kept for this kind of processor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flambeau._runtime import cache, features, machine_code

pytest.importorskip("llvmlite")

PROGRAM = """
import sys, flambeau as torch
x = torch.arange(90_000.0).reshape(300, 300) / 90_000
print((x.exp().sum() + (x @ x).sum()).item(), torch.randn(4096).sum().item() != 0)
print([name for name in ("llvmlite", "flambeau._compiler.module") if name in sys.modules])
"""


def run(folder: Path) -> list[str]:
    surroundings = {**os.environ, "FLAMBEAU_CACHE_DIR": str(folder), "FLAMBEAU_ENGINE": "llvm"}
    surroundings.pop("FLAMBEAU_DEBUG", None)
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=surroundings, text=True,
                          capture_output=True, check=True)  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.skipif(not machine_code.POSSIBLE, reason="LLVM loads objects here")
def test_a_program_whose_kernels_are_on_disk_does_not_load_llvm(tmp_path: Path) -> None:
    first, second = run(tmp_path), run(tmp_path)
    assert first[0] == second[0]
    assert first[1] == "['llvmlite', 'flambeau._compiler.module']" and second[1] == "[]"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and a processor that a file describes."""
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "cache"))
    told = tmp_path / "cpuinfo"
    told.write_text("processor\t: 0\nvendor_id\t: A\nflags\t\t: fpu avx\ncpu MHz\t\t: 1\n\n")
    monkeypatch.setattr(features, "INFORMATION", told)
    return told


def test_llvm_is_asked_once_for_each_kind(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flambeau._runtime import llvm

    asked: list[int] = []
    monkeypatch.setattr(llvm, "host", lambda: asked.append(1) or ("one", "+avx", ["avx"]))
    for _ in range(2):
        assert features.host.__wrapped__() == ("one", "+avx", frozenset({"avx"}))
    kept.write_text(kept.read_text().replace("MHz\t\t: 1", "MHz\t\t: 2") + "processor\t: 1\n")
    features.host.__wrapped__()
    assert len(asked) == 1, "neither its clock nor its neighbours make it another processor"
    kept.write_text(kept.read_text().replace("avx", "avx avx2"))
    features.host.__wrapped__()
    monkeypatch.setattr(features, "compiler_stamp", lambda: (("llvmlite", 1, 1),))
    features.host.__wrapped__()
    assert len(asked) == 3, "another processor, another LLVM"


@pytest.mark.parametrize("text", [None, "", "no lines that tell\n"])
def test_nothing_is_kept_where_the_system_tells_nothing(kept: Path, text: str | None) -> None:
    kept.unlink() if text is None else kept.write_text(text)
    assert features._kind() == ""
    assert features.host.__wrapped__() == features.host()
    assert cache.size() == (0, 0)
