"""`torch.testing`: comparing what a test got with what it expected, and tensors to test with."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import lazily
from flambeau.testing._comparison import assert_allclose, assert_close
from flambeau.testing._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]


__getattr__ = lazily(__name__)
