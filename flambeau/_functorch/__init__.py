"""`torch._functorch`: where libraries look for `vmap` and for modules as functions."""

from __future__ import annotations

import sys
from typing import Any

from flambeau._core.missing import lazily
from flambeau.func import batched as vmap

# Who changes a function of this module changes how vmap works, so it has to be the very module.
sys.modules[f"{__name__}.vmap"] = vmap


__getattr__ = lazily(__name__)
