"""The import hook: one copy of every module, and traces of torch that go when it goes."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pickle
import subprocess
import sys
import types
from collections.abc import Iterator

import pytest

import flambeau
from flambeau import hook
from flambeau._core.missing import NotImplementedInFlambeau, missing, missing_from_tensor
from flambeau._version import TORCH_VERSION


@pytest.fixture
def no_torch() -> Iterator[None]:
    """Nothing called torch is imported; what was there comes back afterwards."""
    names = [name for name in sys.modules if name == "torch" or name.startswith("torch.")]
    before = {name: sys.modules.pop(name) for name in names}
    yield
    hook.uninstall()
    sys.modules.update(before)


@pytest.fixture
def installed(no_torch: None) -> None:
    assert hook.install()


@pytest.fixture
def made_in_memory(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("flambeau.made_in_memory")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(flambeau, "made_in_memory", module, raising=False)
    return module


@pytest.mark.usefixtures("installed")
class TestInstalled:
    def test_torch_is_flambeau(self):
        import torch

        assert torch is flambeau

    @pytest.mark.parametrize("name", ["autograd", "hook", "torch_version", "_core.missing"])
    def test_submodule_is_the_same_object(self, name: str):
        ours = importlib.import_module(f"flambeau.{name}")
        spec = ours.__spec__
        assert importlib.import_module(f"torch.{name}") is ours
        assert sys.modules[f"torch.{name}"] is sys.modules[f"flambeau.{name}"]
        assert ours.__spec__ is spec
        assert ours.__name__ == f"flambeau.{name}"

    def test_a_function_keeps_its_name_when_its_file_is_imported(self):
        module = importlib.import_module("torch.nn.utils.weight_norm")
        assert module.weight_norm is flambeau.nn.utils.weight_norm

    def test_submodule_that_was_not_imported_yet(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.delitem(sys.modules, "flambeau._core.distribution", raising=False)
        theirs = importlib.import_module("torch._core.distribution")
        assert theirs is sys.modules["flambeau._core.distribution"]

    def test_module_made_in_memory(self, made_in_memory: types.ModuleType):
        assert importlib.import_module("torch.made_in_memory") is made_in_memory
        assert made_in_memory.__spec__ is None

    def test_from_import(self):
        from torch import torch_version as module
        from torch.torch_version import TorchVersion

        assert module.TorchVersion is TorchVersion

    def test_absent_submodule_is_named(self):
        with pytest.raises(ModuleNotFoundError) as caught:
            importlib.import_module("torch.no_such_module")
        assert str(caught.value) == "torch.no_such_module is not implemented in flambeau 0.1"
        assert caught.value.name == "torch.no_such_module"

    def test_find_spec(self):
        assert importlib.util.find_spec("torch") is not None
        assert importlib.util.find_spec("torch.torch_version") is not None
        assert importlib.util.find_spec("torch.no_such_module") is None

    def test_metadata(self):
        distribution = importlib.metadata.distribution("torch")
        assert importlib.metadata.version("torch") == TORCH_VERSION == "2.13.0+flambeau"
        assert distribution.metadata["Name"] == "torch"
        assert "torch" in importlib.metadata.packages_distributions()["torch"]

    def test_version_compares_as_a_version(self):
        import torch

        assert str(torch.__version__) == TORCH_VERSION
        assert torch.__version__ >= (2, 4)
        assert torch.__version__ > "2.9.1"
        assert not torch.__version__ < "2.13"

    def test_installing_twice_changes_nothing(self):
        before = list(sys.meta_path)
        assert hook.install()
        assert sys.meta_path == before

    def test_children_install_it_too(self):
        spawn = importlib.import_module("multiprocessing.spawn")
        data = spawn.get_preparation_data("child")
        hook.uninstall()
        pickle.loads(pickle.dumps(data["flambeau_hook"]))
        assert hook.is_installed()


def test_uninstall_leaves_nothing(no_torch: None):
    hook.install()
    importlib.import_module("torch.autograd")
    hook.uninstall()
    hook.uninstall()
    assert not hook.is_installed()
    assert not [name for name in sys.modules if name.partition(".")[0] == "torch"]
    spawn = importlib.import_module("multiprocessing.spawn")
    assert "flambeau_hook" not in spawn.get_preparation_data("child")


def test_refuses_beside_another_torch(no_torch: None, monkeypatch: pytest.MonkeyPatch):
    other = types.ModuleType("torch")
    monkeypatch.setitem(sys.modules, "torch", other)
    with pytest.warns(RuntimeWarning, match="another torch .* is already imported"):
        assert not hook.install()
    assert sys.modules["torch"] is other
    assert not hook.is_installed()


def test_missing_name_of_torch():
    with pytest.raises(NotImplementedInFlambeau) as caught:
        missing("flambeau.fft", "rfft")
    assert str(caught.value) == "torch.fft.rfft is not implemented in flambeau 0.1"
    assert isinstance(caught.value, AttributeError)
    assert isinstance(caught.value, NotImplementedError)
    assert caught.value.name == "rfft"


def test_missing_name_that_torch_lacks_too():
    with pytest.raises(AttributeError) as caught:
        missing("flambeau", "rftt")
    assert not isinstance(caught.value, NotImplementedError)
    assert str(caught.value) == "module 'torch' has no attribute 'rftt'"


def test_missing_from_tensor():
    with pytest.raises(NotImplementedInFlambeau, match=r"^torch\.Tensor\.lu_solve is not impl"):
        missing_from_tensor("lu_solve")
    with pytest.raises(AttributeError, match="^'Tensor' object has no attribute 'lu_sovle'$"):
        missing_from_tensor("lu_sovle")


def test_module_getattr_that_uses_missing():
    module = types.ModuleType("flambeau.fft")
    module.__getattr__ = lambda name: missing(module.__name__, name)
    assert not hasattr(module, "rfft")
    assert getattr(module, "rfft", None) is None
    with pytest.raises(NotImplementedError, match=r"torch\.fft\.rfft"):
        module.rfft([1.0])


def test_import_stays_light():
    """The hook brings in neither multiprocessing nor importlib.metadata."""
    program = (
        "import sys; before = set(sys.modules); import flambeau.hook; flambeau.hook.install();"
        "import torch; print(*set(sys.modules) - before)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = set(result.stdout.decode().split())
    assert not loaded & {"multiprocessing", "llvmlite", "torch._core.distribution"}


def test_the_module_is_called_torch_while_the_hook_is_installed() -> None:
    """Libraries that take arrays of many kinds tell modules apart by their names."""
    program = (
        "import flambeau, flambeau.hook\n"
        "assert flambeau.__name__ == 'flambeau'\n"
        "flambeau.hook.install()\n"
        "import torch, torch.nn.functional as F\n"
        "from torch import fft, linalg\n"
        "assert torch.__name__ == 'torch' and torch is flambeau\n"
        "import importlib, copy, pickle\n"
        "assert pickle.loads(pickle.dumps(torch.ones(2))).tolist() == [1, 1]\n"
        "def f(x: torch.Tensor): return torch.ops.aten.relu(x)\n"
        "from flambeau import special\n"
        "import flambeau.sparse, torch.sparse\n"
        "assert torch.sparse is flambeau.sparse\n"
        "flambeau.hook.uninstall()\n"
        "assert flambeau.__name__ == 'flambeau'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_types_of_classes_are_read_under_the_hook() -> None:
    """Libraries read the annotations of subclasses, by the names of the module a class names."""
    program = """if True:
        import typing
        from flambeau import hook
        hook.install()
        import torch

        class Net(torch.nn.Sequential):
            config: "int | None"

        told = typing.get_type_hints(Net)
        assert told["config"] == int | None and told["training"] is bool
        for place in (torch.nn, torch.optim, torch.optim.lr_scheduler, torch.distributions,
                      torch.utils.data, torch.fx, torch.autograd, torch.distributions.transforms):
            for name in dir(place):
                kind = getattr(place, name, None)
                if isinstance(kind, type):
                    typing.get_type_hints(kind)
    """
    subprocess.run([sys.executable, "-c", program], check=True)
