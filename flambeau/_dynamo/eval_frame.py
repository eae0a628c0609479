"""`torch._dynamo.eval_frame`: the class of compiled modules, of which there are none."""

from __future__ import annotations

from typing import Any

from flambeau._core.absent import absent_class
from flambeau._core.missing import lazily

OptimizedModule: Any = absent_class("torch._dynamo.eval_frame.OptimizedModule")


__getattr__ = lazily(__name__)
