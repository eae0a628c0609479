"""`torch.distributed.algorithms`: communication hooks, joins, averages of parameters."""

from __future__ import annotations

from flambeau.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
