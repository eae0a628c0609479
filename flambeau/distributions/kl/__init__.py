"""Divergences of Kullback and Leibler, by the classes of the two distributions."""

from __future__ import annotations

from flambeau.distributions.kl import across, alike, exp_families, infinite
from flambeau.distributions.kl.registry import (
    _KL_MEMOIZE,
    _KL_REGISTRY,
    _dispatch_kl,
    kl_divergence,
    register_kl,
)

__all__ = ["register_kl", "kl_divergence"]
