"""`torch.masked`: reductions over the elements that a mask lets through."""

from __future__ import annotations

from flambeau._ops.namespace import get
from flambeau._ops.op import BY_NAME

globals().update(
    {name.removeprefix("masked."): get(name) for name in BY_NAME if name.startswith("masked.")}
)
