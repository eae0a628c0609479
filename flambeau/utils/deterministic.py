"""`torch.utils.deterministic`: whether memory that nothing is written to is filled.

`fill_uninitialized_memory` acts while `use_deterministic_algorithms(True)` holds: `torch.empty` and
`resize_` then write NaN, or the largest number of the type.
"""

from __future__ import annotations

import sys
import types

from flambeau._core.settings import Determinism, set_fill_uninitialized_memory


class _Deterministic(types.ModuleType):
    """The module, whose one attribute is a setting."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether it is filled."""
        return Determinism.fill_uninitialized_memory

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, fill: bool) -> None:
        set_fill_uninitialized_memory(fill)


sys.modules[__name__].__class__ = _Deterministic
