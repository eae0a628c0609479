"""flambeau: PyTorch's API and semantics, written from scratch in Python.

    import flambeau as torch
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from flambeau import _ops, autograd
from flambeau._tensor import interop as _interop, queries as _queries
from flambeau._core import dtype as _dtype
from flambeau._core import layout as _layout
from flambeau._core.device import device, get_default_device, set_default_device
from flambeau._core.dtype import dtype, finfo, iinfo, set_default_dtype
from flambeau._core.dtype import default_dtype as get_default_dtype
from flambeau._core.layout import Size, layout, memory_format
from flambeau._core.promotion import promote_types
from flambeau._ops.namespace import get as _operator
from flambeau._ops.op import BY_NAME as _OPERATORS
from flambeau._tensor.conversion import from_numpy, tensor
from flambeau._tensor.printing import set_printoptions
from flambeau._tensor.storage import Storage as UntypedStorage
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from flambeau.torch_version import __version__

globals().update(_dtype.BY_NAME)
globals().update(_dtype.ALIASES)
globals().update(_layout.layout.table)
globals().update(_layout.memory_format.table)

_LAZY_MODULES = frozenset((
    "amp", "autograd", "cuda", "fft", "func", "hook", "jit", "linalg", "nn", "optim", "random",
    "serialization", "special", "testing", "utils", "version", "types", "return_types",
    "torch_version", "masked", "signal", "distributions", "backends", "cpu", "overrides",
))  # fmt: skip
_LAZY_NAMES = {
    "manual_seed": "flambeau.random", "seed": "flambeau.random", "initial_seed": "flambeau.random",
    "get_rng_state": "flambeau.random", "set_rng_state": "flambeau.random",
    "default_generator": "flambeau.random", "Generator": "flambeau._ops.random",
    "from_dlpack": "flambeau._tensor.interop", "to_dlpack": "flambeau._tensor.interop",
    **dict.fromkeys((
        "FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "LongTensor", "IntTensor",
        "ShortTensor", "CharTensor", "ByteTensor", "BoolTensor", "ComplexFloatTensor",
        "ComplexDoubleTensor",
    ), "flambeau._ops.typed"),
    "is_anomaly_enabled": "flambeau.autograd.saved",
    "is_anomaly_check_nan_enabled": "flambeau.autograd.saved",
    "install": "flambeau.hook", "uninstall": "flambeau.hook",
    "save": "flambeau.serialization", "load": "flambeau.serialization",
}  # fmt: skip


def _has_function(name: str) -> Any:
    # neither any() nor bool(): in this module these names are torch's
    return len([op for op in _OPERATORS[name] if op.function]) > 0


def __getattr__(name: str) -> Any:
    """Operators, submodules and rarely used names, made or imported when first used."""
    if name in _OPERATORS and _has_function(name):
        found = _operator(name)
    elif name in _LAZY_NAMES:
        found = getattr(importlib.import_module(_LAZY_NAMES[name]), name)
    elif name in _LAZY_MODULES and importlib.util.find_spec(f"flambeau.{name}"):
        found = importlib.import_module(f"flambeau.{name}")
    elif name.endswith("_") and f"{name[:-1]}" in _OPERATORS:
        found = getattr(Tensor, name, None)
        if found is None:
            raise AttributeError(name)
    else:
        from flambeau._core.missing import missing

        return missing(__name__, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    rows = [name for name in _OPERATORS if "." not in name and _has_function(name)]
    return sorted({*globals(), *rows, *_LAZY_NAMES, *_LAZY_MODULES})
