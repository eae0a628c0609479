"""`torch._higher_order_ops`: operators that take functions, where libraries import them from."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import lazily
from flambeau._higher_order_ops.associative_scan import associative_scan
from flambeau._higher_order_ops.cond import cond

__all__ = ["associative_scan", "cond"]


__getattr__ = lazily(__name__)
