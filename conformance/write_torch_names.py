"""Write the public names of PyTorch, by namespace, for `flambeau/_core/missing.py`.

    python conformance/write_torch_names.py            # rewrites flambeau/_core/torch_names.txt

Needs the pinned PyTorch: `pip install '.[conformance]'`.
"""

from __future__ import annotations

import importlib
import pkgutil
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

NAMES_FILE = Path(__file__).parents[1] / "flambeau" / "_core" / "torch_names.txt"

# The modules and classes whose names are listed.
NAMESPACES = """
torch torch.Tensor torch.Generator torch.amp torch.autograd torch.autograd.functional
torch.autograd.forward_ad torch.autograd.graph torch.autograd.profiler torch.backends
torch.backends.cpu torch.backends.cuda torch.backends.cudnn torch.backends.mkl
torch.backends.mkldnn torch.backends.mps torch.backends.openmp torch.compiler torch.cpu
torch.cpu.amp torch.cuda torch.cuda.amp torch.cuda.comm torch.cuda.nvtx torch.cuda.random
torch.distributed torch.distributions torch.export torch.fft torch.func torch.functional
torch.futures torch.fx torch.hub torch.jit torch.library torch.linalg torch.masked
torch.multiprocessing torch.nested torch.nn torch.nn.attention torch.nn.functional torch.nn.init
torch.nn.modules torch.nn.parallel torch.nn.parameter torch.nn.utils
torch.nn.utils.parametrizations torch.nn.utils.parametrize torch.nn.utils.prune
torch.nn.utils.rnn torch.nn.utils.stateless torch.onnx torch.optim torch.optim.lr_scheduler
torch.optim.swa_utils torch.overrides torch.profiler torch.quantization torch.random
torch.serialization torch.signal torch.signal.windows torch.sparse torch.special torch.testing
torch.types torch.utils torch.utils.benchmark torch.utils.checkpoint torch.utils.data
torch.utils.dlpack torch.utils.hooks torch.version
""".split()

HEADER = """\
# Public names of PyTorch {version}: a namespace, then the names in it.
# Written by conformance/write_torch_names.py; not edited by hand.
"""


def is_torch(module_name: object) -> bool:
    text = str(module_name)
    return text == "torch" or text.startswith("torch.")


def belongs(name: str, value: object, declared: frozenset[str]) -> bool:
    """Is this a name of PyTorch, rather than one that a module happens to import?"""
    if name.startswith("_") or name == "torch":
        return False
    if name in declared:
        return True
    if isinstance(value, ModuleType):
        return is_torch(value.__name__)
    origin = getattr(value, "__module__", None)
    if origin is not None:
        return is_torch(origin)
    return is_torch(type(value).__module__) or callable(value)


def submodules(owner: object) -> list[str]:
    if not isinstance(owner, ModuleType):
        return []
    found = pkgutil.iter_modules(getattr(owner, "__path__", []))
    return [module.name for module in found if not module.name.startswith("_")]


def public_names(namespace: str) -> list[str]:
    owner = pkgutil.resolve_name(namespace)
    if isinstance(owner, type):
        return sorted(name for name in dir(owner) if not name.startswith("_"))
    declared = frozenset(getattr(owner, "__all__", []))
    names = {name for name, value in vars(owner).items() if belongs(name, value, declared)}
    return sorted(names.union(submodules(owner)))


def lines() -> Iterator[str]:
    for namespace in sorted(NAMESPACES):
        yield namespace
        body = " ".join(public_names(namespace))
        yield textwrap.fill(body, 100, initial_indent=" ", subsequent_indent=" ")


def text() -> str:
    """The whole file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        version = importlib.import_module("torch").__version__.partition("+")[0]
        return HEADER.format(version=version) + "\n".join(lines()) + "\n"


if __name__ == "__main__":
    NAMES_FILE.write_text(text(), encoding="utf-8")
