"""Tools for finding out what went wrong in a program, and where."""

from __future__ import annotations

from flambeau.debug.advise import Report, advise
from flambeau.debug.check_optimised import check_optimised
from flambeau.debug.kernel_text import kernel_text
from flambeau.debug.nan_guard import NonFiniteError, NonFiniteWarning, nan_guard
from flambeau.debug.profile import profile
from flambeau.debug.show import show

__all__ = [
    "NonFiniteError", "NonFiniteWarning", "Report", "advise", "check_optimised", "kernel_text",
    "nan_guard", "profile", "show",
]  # fmt: skip
