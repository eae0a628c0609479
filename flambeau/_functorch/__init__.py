"""`torch._functorch`: where libraries look for `vmap` and for modules as functions."""

from __future__ import annotations

import sys
from typing import Any

from flambeau._core.missing import missing
from flambeau.func import batched as vmap

# Who changes a function of this module changes how vmap works, so it has to be the very module.
sys.modules[f"{__name__}.vmap"] = vmap


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
