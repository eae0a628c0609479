"""`torch.serialization`: reading and writing PyTorch's files."""

from collections.abc import Callable
from typing import Any

from flambeau._core.device import device as _device
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.typed_storage import TypedStorage
from flambeau.serialization.allowed import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from flambeau.serialization.api import get_unsafe_globals_in_checkpoint, load, save
from flambeau.serialization.helpers import (
    SourceChangeWarning,
    check_module_version_greater_or_equal,
    mkdtemp,
    normalize_storage_type,
    storage_to_tensor_type,
)
from flambeau.serialization.legacy import MAGIC_NUMBER, PROTOCOL_VERSION
from flambeau.serialization.locations import (
    location_tag,
    register_package,
    validate_cuda_device,
    validate_hpu_device,
)
from flambeau.serialization.locations import restore_default as default_restore_location
from flambeau.serialization.options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from flambeau.serialization.storages import StorageType

DEFAULT_PROTOCOL = 2
"""The version of pickles that `save` writes."""
MAP_LOCATION = (
    Callable[[Any, str], UntypedStorage | TypedStorage] | _device | str | dict[str, str] | None
)
"""What `load` takes as `map_location`."""

__all__ = [
    "DEFAULT_PROTOCOL",
    "MAGIC_NUMBER",
    "MAP_LOCATION",
    "PROTOCOL_VERSION",
    "SourceChangeWarning",
    "StorageType",
    "check_module_version_greater_or_equal",
    "mkdtemp",
    "normalize_storage_type",
    "storage_to_tensor_type",
    "LoadEndianness",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "validate_cuda_device",
    "validate_hpu_device",
]
