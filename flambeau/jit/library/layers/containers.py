"""What all modules have."""

from __future__ import annotations


class Module:
    training: bool
    _is_full_backward_hook: Optional[bool]
