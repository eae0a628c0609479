"""Small functions that `torch.serialization` exports and programs may have found there."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flambeau._tensor.typed_storage import CLASS_NAMES, LEGACY_CLASSES
from flambeau.serialization.names import resolve


class SourceChangeWarning(Warning):
    """PyTorch's warning about a class that has changed since its file was written."""


@contextmanager
def mkdtemp() -> Iterator[str]:
    """A temporary folder that is gone after the `with` block."""
    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


def normalize_storage_type(storage_type: Any) -> Any:
    """The storage class of the same name: `torch.FloatStorage` for any `FloatStorage`."""
    return LEGACY_CLASSES[storage_type.__name__]


def storage_to_tensor_type(storage: Any) -> Any:
    """The tensor class for a typed storage: `torch.FloatTensor`. KeyError where there is none."""
    return resolve("torch", CLASS_NAMES[storage.dtype].replace("Storage", "Tensor"))


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[Any, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's `__version__` is at least the given one.

    A version that cannot be compared is a RuntimeError, or a warning and True.
    """
    parts = module.__version__.split(".")
    try:
        version = tuple(type(n)(parts[i]) for i, n in enumerate(req_version_tuple))
    except (ValueError, IndexError, TypeError) as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and "
            f"cannot be compared with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}, but continuing assuming that requirement is met", stacklevel=2)
        return True
    return version >= req_version_tuple
