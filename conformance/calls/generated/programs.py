"""Whole programs."""

from __future__ import annotations

from .drawing import case

__all__ = ["case"]
