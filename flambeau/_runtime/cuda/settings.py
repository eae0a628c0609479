"""The words of PYTORCH_CUDA_ALLOC_CONF (or PYTORCH_ALLOC_CONF): how the allocator shall behave."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MIB = 1 << 20
SMALLEST_SPLIT_LIMIT = 20
"""MiB; below it segments of the large pool could not be split at all."""


@dataclass
class Settings:
    """What PyTorch's variable can say, with its defaults."""

    max_split_size: int | None = None
    """Bytes; larger holes are not split, so that large requests find them whole."""
    max_non_split_rounding: int = 20 * MIB
    """Bytes that an unsplit hole may be larger than a large request that it serves."""
    garbage_collection_threshold: float = 0.0
    """Above this share of the memory limit, unused segments are given back first."""
    roundup_power2_divisions: dict[int, int] = field(default_factory=dict)
    """Power of two -> into how many steps sizes from it to the next one are rounded up."""
    expandable_segments: bool = False
    per_process_memory_fraction: float = 1.0
    throw_on_cudamalloc_oom: bool = False
    pinned_use_cuda_host_register: bool = False
    others: dict[str, str] = field(default_factory=dict)
    """Words that are taken and change nothing here: they choose how PyTorch does a thing, not
    what it does."""


def _flag(text: str, name: str) -> bool:
    if text not in ("True", "False"):
        raise ValueError(f"Expected 'True' or 'False' for {name} in ConfigTokenizer but got "
                         f"'{text}'")  # fmt: skip
    return text == "True"


def _limit(name: str) -> Callable[[Settings, str], None]:
    """What reads a limit of splitting, in MiB."""

    def read(settings: Settings, text: str) -> None:
        wanted = int(text)
        if wanted < SMALLEST_SPLIT_LIMIT:
            raise ValueError(f"CachingAllocator option {name}_mb too small, must be >= "
                             f"{SMALLEST_SPLIT_LIMIT}")  # fmt: skip
        setattr(settings, name, wanted * MIB)

    return read


def _threshold(settings: Settings, text: str) -> None:
    share = float(text)
    if not 0 < share < 1:
        raise ValueError("garbage_collect_threshold is invalid, set it in (0.0, 1.0)")
    settings.garbage_collection_threshold = share


def _fraction(settings: Settings, text: str) -> None:
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError(f"per_process_memory_fraction is invalid, set it in [0.0, 1.0]: {text}")
    settings.per_process_memory_fraction = share


def _divisions(settings: Settings, text: str) -> None:
    """`4`, or `[256:1,512:2,>:8]`, sizes in MiB."""
    if not text.startswith("["):
        settings.roundup_power2_divisions = dict.fromkeys(range(64), _power_of_two(text))
        return
    last = 20
    for entry in text.strip("[]").split(","):
        size, _, steps = entry.partition(":")
        end = 64 if size == ">" else (_power_of_two(size) * MIB).bit_length()
        for power in range(last if size == ">" else end - 1, end):
            settings.roundup_power2_divisions[power] = _power_of_two(steps)
        last = end


def _power_of_two(text: str) -> int:
    number = int(text)
    if number & (number - 1):
        raise ValueError("For roundups, the divisions has to be power of 2 or 0 to disable "
                         "roundup ")  # fmt: skip
    return number


def _backend(settings: Settings, text: str) -> None:
    if text != "native":
        raise ValueError(f"Unknown allocator backend, options are native and cudaMallocAsync: "
                         f"{text} is not available in flambeau")  # fmt: skip


def _expandable(settings: Settings, text: str) -> None:
    if _flag(text, "expandable_segments"):
        warnings.warn("expandable_segments not supported on this platform", stacklevel=2)


def _sets_flag(name: str) -> Callable[[Settings, str], None]:
    def read(settings: Settings, text: str) -> None:
        setattr(settings, name, _flag(text, name))

    return read


def _changes_nothing(name: str) -> Callable[[Settings, str], None]:
    def read(settings: Settings, text: str) -> None:
        settings.others[name] = text

    return read


WORDS: dict[str, Callable[[Settings, str], None]] = {
    "max_split_size_mb": _limit("max_split_size"),
    "max_non_split_rounding_mb": _limit("max_non_split_rounding"),
    "garbage_collection_threshold": _threshold,
    "roundup_power2_divisions": _divisions,
    "backend": _backend,
    "expandable_segments": _expandable,
    "per_process_memory_fraction": _fraction,
    "throw_on_cudamalloc_oom": _sets_flag("throw_on_cudamalloc_oom"),
    "pinned_use_cuda_host_register": _sets_flag("pinned_use_cuda_host_register"),
    **{name: _changes_nothing(name) for name in (
        "pinned_num_register_threads", "pinned_use_background_threads",
        "pinned_reserve_segment_size_mb", "release_lock_on_cudamalloc",
        "release_lock_on_hipmalloc", "graph_capture_record_stream_reuse",
    )},
}  # fmt: skip
WORD = re.compile(r"\s*(\w+)\s*:\s*(\[[^\]]*\]|[^,\s]+)\s*(?:,|$)")


def read(text: str) -> Settings:
    """The settings that a text of words says.

    Raises:
        ValueError: a word is not known, or what follows it makes no sense.
    """
    settings = Settings()
    place = 0
    while text[place:].strip():
        found = WORD.match(text, place)
        if found is None:
            raise ValueError(f"Error parsing CachingAllocator settings, expected ':' in: {text}")
        name, value = found.groups()
        if name not in WORDS:
            raise ValueError(f"Unrecognized key '{name}' in CUDA allocator config.")
        WORDS[name](settings, value)
        place = found.end()
    return settings


class Chosen:
    """The settings of this process, read when the first allocator is made."""

    settings: Any = None


def chosen() -> Settings:
    """The settings of this process."""
    if Chosen.settings is None:
        names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
        text = next((os.environ[name] for name in names if name in os.environ), "")
        Chosen.settings = read(text)
    return Chosen.settings


def caches() -> bool:
    """Whether memory that is given back is kept for reuse."""
    return os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING") != "1"
