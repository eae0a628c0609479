"""The command line, as a user calls it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flambeau import cli
from flambeau._environment import report
from flambeau._version import __version__

ROOT = str(Path(__file__).parents[1])


def flambeau(*words: str, cwd: Path | str = ROOT) -> subprocess.CompletedProcess[str]:
    """Run `python -m flambeau` in a process of its own."""
    command = [sys.executable, "-m", "flambeau", *words]
    environment = {"PYTHONPATH": ROOT, "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "program" / "script.py"
    path.parent.mkdir()
    return path


def test_script_sees_itself_as_under_python(script: Path, tmp_path: Path):
    script.write_text(
        "import sys, torch, neighbour\n"
        "import flambeau\n"
        "print(torch is flambeau, __name__, sys.argv, sys.path[0], __file__)\n"
        "print(sys.modules['__main__'].__dict__ is globals(), __spec__)\n"
    )
    script.with_name("neighbour.py").touch()
    result = flambeau("run", "program/script.py", "--epochs", "-m", cwd=tmp_path)
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        f"True __main__ ['program/script.py', '--epochs', '-m'] {script.parent} {script}",
        "True None",
    ]


def test_exit_code_and_traceback(script: Path):
    script.write_text("import torch\ndef fail():\n    raise ValueError('no')\nfail()\n")
    result = flambeau("run", str(script))
    assert result.returncode == 1
    files = [line for line in result.stderr.splitlines() if line.startswith("  File")]
    assert files == [
        f'  File "{script}", line 4, in <module>',
        f'  File "{script}", line 3, in fail',
    ]
    assert result.stderr.endswith("ValueError: no\n")


@pytest.mark.parametrize(
    ("code", "returncode", "stderr"),
    [
        ("raise SystemExit(7)", 7, ""),
        ("raise SystemExit('words')", 1, "words\n"),
        ("raise SystemExit", 0, ""),
    ],
)
def test_exit(code: str, returncode: int, stderr: str):
    result = flambeau("run", "-c", code)
    assert (result.returncode, result.stderr) == (returncode, stderr)


def test_code(tmp_path: Path):
    result = flambeau("run", "-c", "import sys, torch; print(sys.argv, [sys.path[0]])", "x", "-c")
    assert result.stdout == "['-c', 'x', '-c'] ['']\n"


def test_module(script: Path):
    script.write_text("import sys, torch\nprint(__spec__.name, sys.argv[1:], sys.path[0])\n")
    result = flambeau("run", "-m", "script", "--x", cwd=script.parent)
    assert result.stdout == f"script ['--x'] {script.parent}\n"


def test_syntax_error_shows_the_script_only(script: Path):
    script.write_text("import torch\nx = (\n")
    result = flambeau("run", str(script))
    assert result.returncode == 1
    assert result.stderr.splitlines()[0] == f'  File "{script}", line 2'


def test_spawned_children_have_the_hook(script: Path):
    script.write_text(
        "import torch, multiprocessing\n"
        "def child():\n    print('child', torch.__version__)\n"
        "if __name__ == '__main__':\n"
        "    process = multiprocessing.get_context('spawn').Process(target=child)\n"
        "    process.start(); process.join(); print(process.exitcode)\n"
    )
    result = flambeau("run", str(script))
    assert result.stdout == "child 2.13.0+flambeau\n0\n", result.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "usage: flambeau"),
        (["fly"], "no command 'fly'"),
        (["run"], "usage: flambeau run"),
        (["run", "-m"], "-m needs an argument"),
        (["run", "/no/such/script.py"], "can't open file '/no/such/script.py': No such file"),
        (["env", "now"], "usage: flambeau env"),
    ],
)
def test_wrong_use(words: list[str], text: str, capsys: pytest.CaptureFixture[str]):
    assert cli.main(words) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["-h"]])
def test_help(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert cli.main(words) == 0
    assert "flambeau run train.py" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"flambeau {__version__} (API of PyTorch 2.13.0)\n"


def test_env(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    assert cli.main(["env"]) == 0
    assert capsys.readouterr().out == report()
    for name in ("flambeau:", "Python:", "numpy:", "ml_dtypes:", "llvmlite:", "threads:", "cupy:",
                 "engine:", "memory:", f"{tmp_path}, 0 kernels"):  # fmt: skip
        assert name in report()
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", "")
    assert "FLAMBEAU_CACHE_DIR is empty" in report()


def test_warmup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """What was compiled once is found by the next process, for which nothing is new."""
    pytest.importorskip("llvmlite")
    for turn in range(2):
        result = subprocess.run(
            [sys.executable, "-m", "flambeau", "warmup", "random"], capture_output=True, text=True,
            env={**os.environ, "FLAMBEAU_CACHE_DIR": str(tmp_path), "FLAMBEAU_ENGINE": "auto"},
            check=True,
        )  # fmt: skip
        lines = result.stdout.splitlines()
        assert len(lines) == 3 and lines[0].startswith("[1/2] random, numbers, float32")
        assert (" 0 new " in lines[0]) == bool(turn)
        assert f"MB in {tmp_path}" in lines[-1]
    assert cli.main(["warmup", "everything"]) == 2
    assert "usage: flambeau warmup [pointwise|" in capsys.readouterr().err
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", "")
    assert cli.main(["warmup", "random"]) == 1
