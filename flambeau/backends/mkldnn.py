"""`torch.backends.mkldnn`: not there; its flags can be set and are kept."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from typing import Any

from flambeau._core.missing import lazily
from flambeau.backends import _flags

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2

matmul = _flags.OperatorPrecision("mkldnn", "matmul")
conv = _flags.OperatorPrecision("mkldnn", "conv")
rnn = _flags.OperatorPrecision("mkldnn", "rnn")


def _only_on_a_gpu(value: Any) -> None:
    """TF32 in oneDNN is for GPUs: a warning that there is none."""
    _flags.expect_bool("_set_onednn_allow_tf32", value)
    warnings.warn(
        "TF32 acceleration on top of oneDNN is available for Intel GPUs. The current Torch version "
        "does not have Intel GPU Support.",
        UserWarning, stacklevel=3,
    )  # fmt: skip


_enabled = _flags.kept(True, "set_enabled_mkldnn")
_deterministic = _flags.kept(False, "set_deterministic_mkldnn")
_allow_tf32 = _flags.Flag(lambda: None, _only_on_a_gpu)
_fp32_precision = _flags.of_precision("mkldnn", "all")
# Setting the attribute sets that of all libraries, as in torch; `flags` sets oneDNN's own.
_of_all = _flags.Flag(_fp32_precision.get, _flags.of_precision("generic", "all").set)

_ALL = _enabled, _deterministic, _allow_tf32, _fp32_precision


def is_available() -> bool:
    """Whether oneDNN is used: no."""
    return False


def is_acl_available() -> bool:
    """Whether the ARM Compute Library is used: no."""
    return False


class verbose:
    """A block in which oneDNN would tell what it does; there is nothing to tell."""

    def __init__(self, level: int) -> None:
        self.level = level

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *exc: object) -> None:
        """Nothing was changed."""


def set_flags(_enabled: bool | None = None, _deterministic: bool | None = None,
              _allow_tf32: bool | None = None,
              _fp32_precision: str | None = "none") -> tuple[Any, ...]:  # fmt: skip
    """Set what is given; what all flags were."""
    return _flags.written(_ALL, (_enabled, _deterministic, _allow_tf32, _fp32_precision))


def flags(enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True,
          fp32_precision: str = "none") -> AbstractContextManager[None]:  # fmt: skip
    """Other flags within a `with`."""
    return _flags.within(_ALL, (enabled, deterministic, allow_tf32, fp32_precision))


__getattr__ = lazily(__name__)


_flags.give(__name__, enabled=_enabled, deterministic=_deterministic, allow_tf32=_allow_tf32,
            fp32_precision=_of_all)  # fmt: skip
