"""`torch._dynamo.exc`: errors of the compiler of Python, for `except`: nothing raises them."""

from __future__ import annotations

from flambeau._core.missing import lazily


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


__getattr__ = lazily(__name__)
