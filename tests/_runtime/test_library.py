"""Libraries of kernels: written, read, refused, and used by processes without llvmlite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flambeau._runtime import choice, library, machine_code, processor

needs_kernels = pytest.mark.skipif(
    not machine_code.POSSIBLE, reason="libraries are for Linux on x86-64"
)
WITHOUT_LLVM = "import sys; sys.modules['llvmlite'] = None\n"
PROGRAM = """
import flambeau as torch
torch.manual_seed(0)
x = torch.randn(200, 300, requires_grad=True)
w = torch.randn(300, 100, requires_grad=True)
y = torch.nn.functional.gelu(x @ w).softmax(1)
y = torch.nn.functional.layer_norm(y, (100,))
y.square().sum().backward()
print(f"{y[3, 5].item():.5f} {w.grad.abs().sum().item():.3f}")
optimizer = torch.optim.AdamW([w])
for _ in range(2):
    optimizer.step()
print(f"{w.double().sum().item():.4f}")
order = torch.randperm(3000)
print(order[:3].tolist(), torch.rand(4000).sum().item() > 0)
counts = torch.zeros(3000).index_add_(0, order % 7, torch.ones(3000))
print(counts[:8].tolist(), torch.sort(order)[0][:3].tolist(), torch.cumsum(order, 0)[-1].item())
print(f"{torch.randn(2000).double().sum().item():.4f}")
"""
REPORT = """
from flambeau._runtime import choice, launch
print(len(launch.KERNELS), choice.thread.launches, choice.available())
"""


def run(code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "FLAMBEAU_ENGINE": "llvm", **settings}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def printed(code: str, **settings: str) -> list[str]:
    done = run(code, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def make(path: Path, program: str, *groups: str) -> str:
    script = path.with_suffix(".py")
    script.write_text(program)
    words = ["warmup", "--library", str(path), *groups, "--", str(script)]
    code = f"import sys\nfrom flambeau.cli import main\nsys.exit(main({words!r}))"
    return printed(code)[-1]


@needs_kernels
def test_a_program_finds_all_its_kernels_in_its_library(tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    path = tmp_path / "kernels"
    assert "kernels" in make(path, PROGRAM)
    *found, counts = printed(WITHOUT_LLVM + PROGRAM + REPORT, FLAMBEAU_LIBRARY=str(path))
    *compiled, all_kernels = printed(PROGRAM + REPORT)
    assert found == compiled
    kernels, launches, available = counts.split()
    assert kernels == all_kernels.split()[0]
    assert int(launches) > int(kernels) > 10
    assert available == "True"


@needs_kernels
@pytest.mark.parametrize("part", ["pass", "torch.randn(4000)", "torch.ones(300, 300).exp().sum()"])
def test_numpy_computes_what_the_library_lacks(tmp_path: Path, part: str) -> None:
    pytest.importorskip("llvmlite")
    path = tmp_path / "kernels"
    make(path, f"import flambeau as torch\n{part}")
    found = printed(WITHOUT_LLVM + PROGRAM, FLAMBEAU_LIBRARY=str(path))
    assert found == printed(WITHOUT_LLVM + PROGRAM, FLAMBEAU_ENGINE="numpy")


def test_where_nothing_may_run_twice_the_missing_kernel_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def body(numbers: list[int]) -> None:
        if choice.thread.by_numpy:
            numbers.append(2)
            return
        choice.thread.launches += 1
        raise choice.KernelMissing("no kernel of that name")

    monkeypatch.setattr(choice, "FROM_LIBRARY", True)
    kept: list[int] = []
    choice.guarded(body, writes=False)(kept)
    assert kept == [2]
    with pytest.raises(choice.KernelMissing, match="of that name"):
        choice.guarded(body, writes=True)(kept)
    restored: list[str] = []
    choice.guarded(body, False, lambda _: lambda: restored.append("here"))(kept)
    assert (kept, restored) == ([2, 2], ["here"])
    assert not choice.thread.by_numpy


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(library.Recording, "kept", {"a": b"first", "b": b"second"})
    path = tmp_path / "library"
    assert library.write(path, ("cpu", "+sse2", frozenset({"sse2", "unheard-of"}))) == 2
    return path


def test_what_is_written_is_read(written: Path) -> None:
    found = library.Library(written)
    assert [found.read(name) for name in "abc"] == [b"first", b"second", None]
    assert found.made_for == (
        "cpu", "+sse2", frozenset({"sse2", "unheard-of"}), processor.cache_sizes()
    )  # fmt: skip
    assert "unheardof" not in found.flags
    assert found.sources == library.sources()
    assert list(written.parent.iterdir()) == [written]


@pytest.mark.parametrize("length", [0, 5, 19, 23, 27, 40])
def test_a_file_that_ends_too_early_is_refused(written: Path, length: int) -> None:
    written.write_bytes(written.read_bytes()[:length])
    with pytest.raises(RuntimeError, match="is no library of kernels"):
        library.Library(written)


def test_damaged_code_is_refused(written: Path) -> None:
    data = written.read_bytes()
    written.write_bytes(data[:-1] + b"x")
    found = library.Library(written)
    assert found.read("a") == b"first"
    with pytest.raises(RuntimeError, match="is damaged: kernel b"):
        found.read("b")
    written.write_bytes(data[:-3])
    with pytest.raises(RuntimeError, match="is damaged: kernel b"):
        library.Library(written).read("b")


def test_other_sources_and_processors(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "LIBRARY", str(written))
    look = library.opened.__wrapped__
    if machine_code.POSSIBLE:
        assert look().path == written
    monkeypatch.setattr(library, "system_flags", lambda: frozenset({"fpu"}))
    if library.Library(written).flags:
        with pytest.warns(RuntimeWarning, match="this processor has no sse2"):
            assert look() is None
    monkeypatch.setattr(library, "sources", lambda: "others")
    with pytest.raises(RuntimeError, match="made by another version of flambeau"):
        look()
    monkeypatch.setattr(choice, "LIBRARY", "")
    assert look() is None


def test_a_missing_file_is_an_error() -> None:
    code = "import flambeau as torch\ntorch.ones(10000).exp()"
    done = run(WITHOUT_LLVM + code, FLAMBEAU_LIBRARY="/nowhere/kernels")
    assert done.returncode
    assert "RuntimeError: /nowhere/kernels is no library of kernels" in done.stderr


def test_features_by_the_systems_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor: 0\nflags\t\t: fpu lm pni sse4_1 avx512_vbmi2 amx_tile abm\n")
    monkeypatch.setattr(library, "FLAGS", cpuinfo)
    wanted = ["64bit", "sse3", "sse4.1", "avx512vbmi2", "amx-tile", "lzcnt", "avx512f", "invented"]
    assert library.needs(wanted) == {"lm", "pni", "sse41", "avx512vbmi2", "amxtile", "abm"}
    monkeypatch.setattr(library, "FLAGS", tmp_path / "absent")
    assert library.system_flags() == frozenset()


@pytest.mark.parametrize("words", [["--library"], ["--library", "f", "unknown"], ["--", "a.py"]])
def test_command_lines_that_are_wrong(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from flambeau.cli import main

    assert main(["warmup", *words]) == 2
    assert "usage: flambeau warmup" in capsys.readouterr().err
