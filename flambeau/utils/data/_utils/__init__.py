"""Where PyTorch keeps collating, pinning and what workers know: programs import from there, too."""

from flambeau.utils.data._utils import collate, pin_memory, worker

MP_STATUS_CHECK_INTERVAL = 5.0
"""Seconds; flambeau's loaders hear of dead workers at once and don't use it."""

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "pin_memory", "worker"]
