"""Errors and warnings of the running and tracing of programs."""

from __future__ import annotations

import sys
import warnings


class Error(RuntimeError):
    """What a program raises when it runs: the Python exception's name and message, and where."""

    __module__ = "flambeau.jit"


class OptimisedDifference(RuntimeError):
    """An optimised call has not given what the plain program gives (`optimise/shadow`)."""


class ScriptWarning(Warning):
    """A warning about a program."""


class TracerWarning(Warning):
    """A trace may not hold for other inputs."""


GRAPHS_DIFFER = "Graphs differed across invocations!"
VALUES_DIFFER = (
    "Tensor-valued Constant nodes differed in value across invocations. "
    "This often indicates that the tracer has encountered untraceable code."
)


class TracingCheckError(Exception):
    """A trace differs from the program that it was made of."""

    def __init__(self, graph_diff_error: str, tensor_compare_error: str,
                 extra_msg: str | None = None) -> None:  # fmt: skip
        lines = ["Tracing failed sanity checks!"]
        if extra_msg is not None:
            lines.append(extra_msg)
        for title, found in (
            (GRAPHS_DIFFER, graph_diff_error),
            (VALUES_DIFFER, tensor_compare_error),
        ):
            if found:
                lines += [f"ERROR: {title}", _indented(found)]
        self.message = "".join(f"{line}\n" for line in lines)
        super().__init__(self.message)


def _indented(text: str) -> str:
    return "\n".join("\t" + line for line in text.splitlines())


def warn_of_age(name: str, instead: str = "`torch.compile` or `torch.export`") -> None:
    """Say that a function of TorchScript is deprecated, in the line that calls it."""
    later = sys.version_info >= (3, 14)
    state = "not supported in Python 3.14+ and may break" if later else "deprecated"
    warnings.warn(f"`{name}` is {state}. Please switch to {instead}.", DeprecationWarning,
                  stacklevel=3)  # fmt: skip
