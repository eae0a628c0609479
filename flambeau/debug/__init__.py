"""Tools for finding out what went wrong in a program, and where."""

from __future__ import annotations

from flambeau.debug.nan_guard import NonFiniteError, NonFiniteWarning, nan_guard

__all__ = ["NonFiniteError", "NonFiniteWarning", "nan_guard"]
