"""What code that runs in a worker can find out about it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, repr=False)
class WorkerInfo:
    """A worker of a DataLoader, as `get_worker_info` describes it.

    id: 0 to num_workers - 1. num_workers: of the same loader. seed: the worker's own, from the
    loader's. dataset: the worker's copy of the dataset (of thread workers: the dataset itself).
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any

    def __repr__(self) -> str:
        parts = (f"{name}={value}" for name, value in vars(self).items())
        return f"WorkerInfo({', '.join(parts)})"


_CURRENT = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """The worker in which the caller runs; None outside of workers.

    >>> import flambeau as torch
    >>> torch.utils.data.get_worker_info() is None
    True
    """
    return getattr(_CURRENT, "info", None)


def set_worker_info(info: WorkerInfo | None) -> None:
    """Say which worker the calling thread is."""
    _CURRENT.info = info
