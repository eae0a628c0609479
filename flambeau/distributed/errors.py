"""What goes wrong between processes."""

from __future__ import annotations


class DistError(RuntimeError):
    """Something went wrong between processes."""


class DistBackendError(DistError):
    """A collective failed: a process has died, left or hung, or calls do not match."""


class DistNetworkError(DistError):
    """A connection could not be made, or broke."""


class DistStoreError(DistError):
    """A store did not answer as it should: a key did not come in time."""


class QueueEmptyError(DistStoreError):
    """A queue of a store has nothing to give."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = "torch.distributed"
