"""`torch._dynamo.exc`: errors of the compiler of Python, for `except`: nothing raises them."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import missing


class TorchDynamoException(RuntimeError):
    """Any of these."""


class InternalTorchDynamoError(TorchDynamoException):
    """A fault of the compiler."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend failed."""


class Unsupported(TorchDynamoException):
    """Something that cannot be compiled."""


class TorchRuntimeError(TorchDynamoException):
    """An operator failed while it was compiled."""


class RecompileError(TorchDynamoException):
    """Something was compiled once more."""


class UserError(Unsupported):
    """A fault of the program."""


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
