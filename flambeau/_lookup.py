"""Names of the package `flambeau` itself that are made or imported when first used."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from typing import Any

from flambeau._core.absent import absent_class
from flambeau._core.absent_modules import find_absent
from flambeau._core.missing import missing
from flambeau._ops.table.loading import announce
from flambeau._ops.table.namespace import get, get_inplace
from flambeau._ops.table.op import BY_NAME
from flambeau._ops.table.twins import twin
from flambeau._tensor.tensor import Tensor, provides

MODULES = frozenset((
    "_guards", "_functorch", "_higher_order_ops", "_subclasses",
    "amp", "autograd", "cuda", "fft", "func", "hook", "jit", "linalg", "nn", "optim", "random",
    "serialization", "special", "testing", "utils", "version", "types", "return_types",
    "torch_version", "masked", "nested", "signal", "distributions", "backends", "cpu", "overrides",
    "_C", "__config__", "accelerator", "functional", "mps", "mtia", "sparse", "xpu", "debug",
    "profiler", "storage", "quasirandom", "__future__", "futures", "multiprocessing",
    "distributed", "fx", "hub", "compiler", "library", "_dynamo", "_tensor_str", "_utils",
    "onnx", "ao", "package",
))  # fmt: skip
"""Submodules that `import torch` alone makes usable."""

FILES = {
    "_core.settings": (
        "get_num_threads set_num_threads get_num_interop_threads set_num_interop_threads "
        "use_deterministic_algorithms are_deterministic_algorithms_enabled "
        "is_deterministic_algorithms_warn_only_enabled get_deterministic_debug_mode "
        "set_deterministic_debug_mode "
        "set_warn_always is_warn_always_enabled "
        "has_lapack has_mkl has_openmp has_spectral"
    ),
    "_runtime.denormals": "set_flush_denormal",
    "_core.precision": "get_float32_matmul_precision set_float32_matmul_precision",
    "random": "manual_seed seed initial_seed get_rng_state set_rng_state default_generator",
    "_core.device": "AcceleratorError OutOfMemoryError",
    "_core.streams": "Stream Event",
    "_ops.random.draws": "Generator",
    "_tensor.interop": "from_dlpack to_dlpack",
    "_tensor.typed_storage": (
        "TypedStorage FloatStorage DoubleStorage HalfStorage BFloat16Storage LongStorage "
        "IntStorage ShortStorage CharStorage ByteStorage BoolStorage ComplexFloatStorage "
        "ComplexDoubleStorage"
    ),
    "_ops.factories.typed": (
        "FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor "
        "CharTensor ByteTensor BoolTensor ComplexFloatTensor ComplexDoubleTensor "
        "set_default_tensor_type"
    ),
    "amp.autocast_mode": "autocast",
    "amp.grad_scaler": "GradScaler",
    "amp.unscaled": "_amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_",
    "amp.settings": (
        "is_autocast_enabled set_autocast_enabled get_autocast_dtype set_autocast_dtype "
        "is_autocast_cache_enabled set_autocast_cache_enabled clear_autocast_cache "
        "autocast_increment_nesting autocast_decrement_nesting is_autocast_cpu_enabled "
        "set_autocast_cpu_enabled get_autocast_cpu_dtype set_autocast_cpu_dtype "
        "is_autocast_ipu_enabled set_autocast_ipu_enabled get_autocast_ipu_dtype "
        "set_autocast_ipu_dtype is_autocast_xla_enabled set_autocast_xla_enabled "
        "get_autocast_xla_dtype set_autocast_xla_dtype get_autocast_gpu_dtype "
        "set_autocast_gpu_dtype"
    ),
    "_C": "DisableTorchFunction DisableTorchFunctionSubclass",
    "autograd.saved": "is_anomaly_enabled is_anomaly_check_nan_enabled set_anomaly_enabled",
    "hook": "install uninstall",
    "_notebook": "load_ipython_extension unload_ipython_extension",
    "_tensor.assertions": (
        "_assert _check _check_index _check_value _check_type _check_not_implemented "
        "_check_is_size "
        "_check_with _check_tensor_all _check_tensor_all_with _assert_async"
    ),
    "_tensor.symbolic_numbers": "SymBool SymFloat SymInt",
    "_tensor.symbols": "sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum",
    "sparse.functions": "spmm dsmm hspmm smm sspaddmm",
    "func.batched": "vmap",
    "_higher_order_ops.cond": "cond",
    "library.overloads": "ops Tag",
    "serialization": "save load",
    "_utils": "get_device_module _has_compatible_shallow_copy_type",
    "jit": "ScriptModule ScriptFunction Future",
    "serialization.file_reader": "PyTorchFileReader",
}
"""File below `flambeau` and the names in it."""

HOME = {name: file for file, names in FILES.items() for name in names.split()}


TYPES = frozenset(
    f"{name}Type"
    for name in "Any Bool Class Complex DeviceObj Dict Enum Float Future Int Interface List None "
    "Number Optional PyObject StreamObj String Tensor Tuple Union".split()
)
"""Classes of TorchScript's types, which libraries name in annotations; ours are in `jit.ir`."""


def find(name: str) -> Any:
    """`flambeau.<name>`, if it was not imported with the package.

    Raises:
        NotImplementedInFlambeau: PyTorch has the name.
        AttributeError: PyTorch has no such name either.
    """
    if _is_function(name):
        return get(name)
    if name in HOME:
        return getattr(importlib.import_module(f"flambeau.{HOME[name]}"), name)
    if name in MODULES and importlib.util.find_spec(f"flambeau.{name}"):
        return importlib.import_module(f"flambeau.{name}")
    if name == "compile":  # libraries take it before they know whether they will call it
        return importlib.import_module("flambeau.compiler").compile
    if name in TYPES:
        return absent_class(f"torch.{name}")
    absent = find_absent(f"flambeau.{name}")
    if absent is not None:
        return absent
    if name == "torch":  # libraries say torch.torch by accident, and PyTorch answers
        return importlib.import_module("flambeau")
    if _is_inplace_function(name):
        return _inplace_function(name)
    return missing("flambeau", name)


def default_storage_class() -> Any:
    """`torch.Storage`."""
    from flambeau._tensor.typed_storage import default_class

    return default_class()


@provides("operator_of_aten")
def operator_of_aten(name: str) -> Any:
    """The operator of `torch.ops.aten` of a name, with all of its overloads, or None; those that
    raise when they are called are none."""
    from flambeau.library.overloads import can_run, ops

    return getattr(ops.aten, name, None) if can_run(f"aten::{name}") else None


@provides("names_of_ops")
def name_of_ops(name: str) -> Any:
    """A name of `torch._ops`: the classes of operators."""
    from flambeau.library import overloads

    return getattr(overloads, name) if name in overloads.OF_OPS else missing("flambeau._ops", name)


def names() -> Iterator[str]:
    """Everything that `find` finds, except functions that work in place."""
    yield from (name for name in list(BY_NAME) if "." not in name and _is_function(name))
    yield from HOME
    yield from MODULES
    yield "Storage"


def _is_function(name: str) -> bool:
    return name in BY_NAME and any(op.function for op in BY_NAME[name])


def _is_inplace_function(name: str) -> bool:
    """`torch.relu_(x)` does what `x.relu_()` does."""
    return name.endswith("_") and name[:-1] in BY_NAME and hasattr(Tensor, name)


@cache
def _inplace_function(name: str) -> Any:
    """The function beside a method that works in place."""
    if any(op.inplace for op in BY_NAME[name[:-1]]):
        return get_inplace(name[:-1])
    function = twin(getattr(Tensor, name), name)
    announce(name, function)
    return function
