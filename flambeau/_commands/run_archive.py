"""`flambeau run-archive FILE`: run a method of a TorchScript archive on inputs from files."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from flambeau._commands.common import Refused, about, in_units, make_parser, run

DESCRIPTION = "Run a TorchScript archive. Its code runs in flambeau's own executor, within limits."
EPILOG = """\
Inputs are given in the order of the method's parameters: --input for tensors (.npy, or .pt as
torch.save writes it), --value for numbers, text and lists, as JSON.

  flambeau run-archive model.pt --input x.npy
  flambeau run-archive tagger.pt --input words.npy --value 5 --output tags.npy
"""


class _Append(argparse.Action):
    """Keep the order of --input and --value."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        given = [*getattr(namespace, "given", []), (option, values)]
        namespace.given = given


def main(words: list[str]) -> int:
    """Carry out the command; the exit code is 1 if something cannot be read or the run fails."""
    parser = make_parser("run-archive", DESCRIPTION, EPILOG)
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--input", action=_Append, metavar="FILE", help="a tensor: .npy or .pt")
    parser.add_argument("--value", action=_Append, metavar="JSON", help="another value")
    parser.add_argument("--method", default="forward", metavar="NAME")
    parser.add_argument("--output", metavar="FILE", help="write the result: .npy, .npz or .pt")
    parser.add_argument("--steps", type=_count, metavar="N", help="stop after N operators")
    parser.add_argument("--memory", type=_count, metavar="BYTES", help="memory of results")
    parser.add_argument("--seconds", type=_count, metavar="S", help="stop after S seconds")
    parser.add_argument("--repeat", type=_count, default=1, metavar="N", help="run N times, timed")
    return run(parser, words, _run)


def _count(text: str) -> int:
    count = int(float(text))
    if count < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return count


def _run(options: argparse.Namespace) -> int:
    import flambeau

    warnings.simplefilter("ignore", DeprecationWarning)
    with about(options.file):
        limits = None
        if options.steps or options.memory or options.seconds:
            limits = flambeau.jit.Limits(
                steps=options.steps, memory=options.memory, seconds=options.seconds
            )
        module = flambeau.jit.load(options.file, limits=limits)
        module.eval()
    method = getattr(module, options.method, None)
    if method is None:
        names = ", ".join(module._type.methods)
        raise Refused(f"{options.file}: no method {options.method!r}; there are {names}")
    inputs = [_read(word, value) for word, value in getattr(options, "given", [])]
    times = []
    try:
        with flambeau.no_grad():
            for _ in range(options.repeat):
                start = time.perf_counter()
                result = method(*inputs)
                times.append(time.perf_counter() - start)
    except (RuntimeError, TypeError, ValueError) as error:
        sys.stderr.write(f"flambeau run-archive: {options.file}: {error}\n")
        return 1
    sys.stdout.write(_shown(result) + "\n")
    if options.repeat > 1:
        first, best = times[0] * 1e3, min(times[1:]) * 1e3
        sys.stderr.write(f"first call {first:.2f} ms, best of the others {best:.2f} ms\n")
    if options.output:
        _write(options.output, result)
    return 0


def _read(word: str, value: str) -> Any:
    import flambeau

    if word == "--value":
        try:
            return json.loads(value)
        except json.JSONDecodeError as error:
            raise Refused(f"--value {value}: {error}") from None
    with about(value):
        if value.endswith(".npy"):
            return flambeau.from_numpy(np.load(value, allow_pickle=False))
        return flambeau.load(value)


def _shown(value: Any, level: int = 0) -> str:
    """A result as text: tensors with type and shape, long ones shortened."""
    pad = "  " * level
    if _is_tensor(value):
        shape = list(value.shape)
        size = in_units(value.numel() * value.element_size())
        text = "\n".join(pad + line for line in repr(value).splitlines())
        return f"{pad}{value.dtype} {shape} ({size})\n{text}"
    if isinstance(value, (tuple, list)):
        return "\n".join([f"{pad}{type(value).__name__} of {len(value)}:",
                          *(_shown(item, level + 1) for item in value)])  # fmt: skip
    if isinstance(value, dict):
        return "\n".join([f"{pad}dict of {len(value)}:",
                          *(f"{pad}  {key!r}:\n{_shown(item, level + 2)}"
                            for key, item in value.items())])  # fmt: skip
    return f"{pad}{value!r}"


def _is_tensor(value: Any) -> bool:
    import flambeau

    return isinstance(value, flambeau.Tensor)


def _write(path: str, result: Any) -> None:
    import flambeau
    from flambeau.serialization.atomic import atomic_write

    if path.endswith(".npy"):
        if not _is_tensor(result):
            raise Refused(f"{path}: the result is no tensor; .pt takes any")
        with about(path), atomic_write(path) as sink:
            np.save(sink, result.numpy())
    elif path.endswith(".npz"):
        named = dict(_named(result, "result"))
        with about(path), atomic_write(path) as sink:
            np.savez(sink, **named)
    elif Path(path).suffix in (".pt", ".pth"):
        with about(path):
            flambeau.save(result, path)
    else:
        raise Refused(f"{path}: results are written as .npy, .npz or .pt")


def _named(value: Any, name: str) -> Any:
    """The tensors of a result by where they are in it."""
    if _is_tensor(value):
        yield name, value.numpy()
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _named(item, f"{name}.{index}")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _named(item, f"{name}.{key}")
