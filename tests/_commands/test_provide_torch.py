"""`flambeau provide-torch` in a virtual environment of its own, made without network."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from flambeau._core.torch_shim import DIST_INFO, ENTRY_POINTS, FUNCTORCH, MODULE
from flambeau._version import TORCH_VERSION

ROOT = Path(__file__).parents[2]
SHIM = ROOT / "packaging" / "torch-shim"
NEEDED = ("numpy", "ml_dtypes", "llvmlite")


class Environment:
    """A virtual environment whose packages are links to those of this Python."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
        self.python = folder / "bin" / "python"
        self.site = next((folder / "lib").glob("python*")) / "site-packages"
        (self.site / "flambeau_checkout.pth").write_text(f"{ROOT}\n")
        here = Path(sysconfig.get_path("purelib"))
        for name in NEEDED:
            for entry in here.glob(f"{name}*"):
                (self.site / entry.name).symlink_to(entry)

    def __call__(self, *words: str, ok: bool = True, cwd: Path | None = None) -> str:
        environment = {"PATH": os.environ["PATH"], "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        done = subprocess.run(
            [str(self.python), *words], env=environment, cwd=cwd or self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=120,
        )  # fmt: skip
        assert (done.returncode == 0) is ok, done.stdout
        return done.stdout

    def files(self) -> set[str]:
        """Everything in site-packages and bin."""
        paths = [*self.site.iterdir(), *(self.folder / "bin").iterdir()]
        return {str(path) for path in paths if path.name != "__pycache__"}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    if os.name != "posix":
        pytest.skip("the environment is made of links")
    return Environment(tmp_path_factory.mktemp("fresh") / "venv")


def provide(environment: Environment, *words: str, ok: bool = True) -> str:
    return environment("-m", "flambeau", "provide-torch", *words, ok=ok)


@pytest.fixture
def provided(environment: Environment) -> Iterator[Environment]:
    provide(environment)
    yield environment
    provide(environment, "--undo")


def test_import_torch_gives_flambeau(provided: Environment):
    told = provided(
        "-c",
        "import torch.nn as nn, torch, flambeau, importlib.metadata\n"
        "print(torch is flambeau, nn is flambeau.nn, torch.__version__)\n"
        "print(importlib.metadata.version('torch'))",
    )
    assert told.splitlines() == [f"True True {TORCH_VERSION}", TORCH_VERSION]


def test_functorch_comes_along(provided: Environment):
    told = provided("-c", "import functorch, torch, flambeau; print(functorch.vmap is torch.vmap)")
    assert told.splitlines() == ["True"]


def test_installers_accept_it(provided: Environment):
    assert "No broken requirements" in provided("-m", "pip", "check")
    for requirement in ("torch>=2.1,<2.14", "torch==2.13.0"):
        told = provided("-m", "pip", "install", "--no-index", requirement)
        assert "Requirement already satisfied: torch" in told


def test_undo_and_uninstall_leave_nothing(environment: Environment):
    before = environment.files()
    provide(environment)
    assert {Path(path).name for path in environment.files() - before} == {
        "torch", "functorch", DIST_INFO, "torchrun",
    }  # fmt: skip
    environment("-c", "import torch")
    assert "is gone" in provide(environment, "--undo")
    assert environment.files() == before
    provide(environment)
    provide(environment)  # again: the same
    environment("-c", "import torch")
    environment("-m", "pip", "uninstall", "-y", "torch")
    assert environment.files() == before
    assert "there is no torch" in provide(environment, "--undo", ok=False)


def test_the_real_torch_is_left_alone(environment: Environment):
    folder = environment.site / "torch-2.9.1.dist-info"
    folder.mkdir()
    try:
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1\n")
        assert "PyTorch 2.9.1 is installed in" in provide(environment, ok=False)
        assert "PyTorch 2.9.1 is installed in" in provide(environment, "--undo", ok=False)
        assert not (environment.site / "torch").exists()
    finally:
        (folder / "METADATA").unlink()
        folder.rmdir()


def test_a_folder_of_unknown_origin_is_left_alone(environment: Environment):
    folder = environment.site / "torch"
    folder.mkdir()
    try:
        assert "belongs to no distribution" in provide(environment, ok=False)
    finally:
        folder.rmdir()


def test_torchrun_and_modules(provided: Environment, tmp_path: Path):
    script = tmp_path / "program.py"
    script.write_text(
        "import os, sys, torch, neighbour\n"
        "print(torch.ones(2).sum().item(), sys.argv[1:], os.environ['WORLD_SIZE'])\n"
        "print(torch.distributed.is_torchelastic_launched(), __name__)\n"
    )
    (tmp_path / "neighbour.py").touch()
    torchrun = str(provided.folder / "bin" / "torchrun")
    expected = ["2.0 ['--epochs', '3'] 1", "True __main__"]
    words = ["--nproc_per_node=1", "--standalone", str(script), "--epochs", "3"]
    assert provided(torchrun, *words).splitlines() == expected
    assert provided("-m", "torch.distributed.run", *words).splitlines() == expected
    several = ["--nproc-per-node", "2", *words[1:]]
    assert provided(torchrun, *several).count("2.0") == 2  # their lines may mix


def test_the_wheel_project_says_the_same():
    assert (SHIM / "torch" / "__init__.py").read_text() == MODULE
    assert (SHIM / "functorch" / "__init__.py").read_text() == FUNCTORCH
    project = (SHIM / "pyproject.toml").read_text()
    assert f'version = "{TORCH_VERSION}"' in project
    name, _, function = ENTRY_POINTS.splitlines()[1].partition(" = ")
    assert f'{name} = "{function}"' in project
