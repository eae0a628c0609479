"""flambeau: PyTorch's API and semantics, written from scratch in Python.

Use it as `import flambeau as torch`. What a program uses first of all is imported here; operators,
submodules and rarely used names are found by `_lookup` when first asked for.
"""

from __future__ import annotations

import os as _os
from math import e, inf, nan, pi
from typing import Any

from flambeau import _lookup, _ops, autograd
from flambeau._core import dtype as _dtype
from flambeau._core import layout as _layout
from flambeau._core.device import device, get_default_device, set_default_device
from flambeau._core.dtype import default_dtype as get_default_dtype
from flambeau._core.dtype import dtype, finfo, iinfo, set_default_dtype
from flambeau._core.layout import Size, layout, memory_format
from flambeau._core.promotion import promote_types
from flambeau._tensor import interop as _interop  # attaches methods to Tensor
from flambeau._tensor import queries as _queries  # attaches methods to Tensor
from flambeau._tensor.conversion import from_numpy, tensor
from flambeau._tensor.printing import set_printoptions
from flambeau._tensor.storage import StorageBase, UntypedStorage
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

newaxis = None

if _os.environ.get("FLAMBEAU_EMULATE_CUDA", "0") not in ("", "0"):
    _lookup.find("cuda").emulate()

globals().update(_dtype.BY_NAME)
globals().update(_dtype.QUANTIZED)
globals().update(_dtype.ALIASES)
globals().update(_layout.layout.table)
globals().update(_layout.memory_format.table)


def __getattr__(name: str) -> Any:
    if name == "Storage":  # not kept: it is of the default type
        return _lookup.default_storage_class()
    found = globals()[name] = _lookup.find(name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_lookup.names()})
