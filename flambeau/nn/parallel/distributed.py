"""Training in several processes needs `torch.distributed`, which is not there."""

from __future__ import annotations

from typing import Any, NoReturn

from flambeau._core.missing import NotImplementedInFlambeau, not_implemented_text
from flambeau.nn.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A module trained by several processes. It cannot be made; `isinstance` can ask for it."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedInFlambeau(
            not_implemented_text("torch.nn.parallel.DistributedDataParallel")
            + ": it needs torch.distributed"
        )
