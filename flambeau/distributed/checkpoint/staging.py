"""Copies of state dicts, which are written while the program goes on."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from flambeau._tensor.tensor import Tensor


@runtime_checkable
class AsyncStager(Protocol):
    """Makes the copy of a state dict that `async_save` writes."""

    def stage(self, state_dict: dict[str, Any]) -> Any:
        """The copy, or a Future of it."""

    def synchronize_staging(self) -> None:
        """Wait until the copy is made."""

    def close(self) -> None:
        """Free what the copies take."""


def copied(value: Any, into: Any = None) -> Any:
    """A copy of nested dicts, lists and tuples with copies of the tensors in the computer's memory.

    `into`: an earlier copy, whose memory is used where the tensors are alike.
    """
    if isinstance(value, Tensor):
        return _copied_tensor(value, into)
    if isinstance(value, Mapping):
        old = into if isinstance(into, Mapping) else {}
        return {key: copied(inner, old.get(key)) for key, inner in value.items()}
    if type(value) in (list, tuple):
        known: Any = into if isinstance(into, list | tuple) and len(into) == len(value) else None
        pairs = zip(value, known or [None] * len(value), strict=True)
        return type(value)(copied(*pair) for pair in pairs)
    return value


def _copied_tensor(tensor: Any, into: Any) -> Any:
    is_alike = isinstance(into, Tensor) and into.shape == tensor.shape
    if not is_alike or into.dtype != tensor.dtype:
        return tensor.detach().clone().cpu()
    into.copy_(tensor.detach())
    return into


class BlockingAsyncStager:
    """Copies at once.

    Args:
        cache_staged_state_dict: whether the memory of the copy is used again.
        type_check: without meaning here.
    """

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict = cache_staged_state_dict
        self._kept: Any = None

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """The copy."""
        made: dict[str, Any] = copied(state_dict, self._kept)
        if self.cache_staged_state_dict:
            self._kept = made
        return made

    def synchronize_staging(self) -> None:
        """The copy is made when `stage` returns."""

    def close(self) -> None:
        """Forget the copy."""
        self._kept = None


@dataclass
class StagingOptions:
    """How `DefaultStager` copies; only `use_async_staging` has a meaning without GPUs."""

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager:
    """Copies in a thread of its own, unless `use_async_staging` is False."""

    def __init__(self, config: StagingOptions | None = None) -> None:
        self._config = config or StagingOptions()
        self._pool = ThreadPoolExecutor(1) if self._config.use_async_staging else None
        self._running: Future[Any] | None = None
        self._kept: Any = None

    def _stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        self._kept = copied(state_dict, self._kept)
        return self._kept  # type: ignore[no-any-return]

    def stage(self, state_dict: dict[str, Any],
              **kwargs: Any) -> dict[str, Any] | Future[dict[str, Any]]:  # fmt: skip
        """The copy, or a Future of it; do not change tensors before it is done."""
        if self._pool is None:
            return self._stage(state_dict)
        self._running = self._pool.submit(self._stage, state_dict)
        return self._running

    def synchronize_staging(self) -> None:
        """Wait until the copy is made."""
        if self._running is not None:
            self._running.result()

    def close(self) -> None:
        """End the thread and forget the copy."""
        if self._pool is not None:
            self._pool.shutdown()
        self._kept = None
