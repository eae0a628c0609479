"""Runs a case: compiled once, called as the case says; what came of each call.

There are forms: `optimised` and `plain` here, `script` and `eager` for PyTorch (or ours eagerly).
"""

from __future__ import annotations

import io
import linecache
import math
import typing
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

import flambeau
from flambeau.jit.optimise import settings
from flambeau.jit.optimise.fusion import group

from .cases import Call, Case, Write
from .filling import Eager
from .making import Made, made
from .observing import Outcome, flattened, seen, shared_memory, values_of

_numbers = count(1)


class NotCompiled(Exception):
    """A program that the compiler does not take."""


@contextmanager
def source(text: str, torch: Any) -> Iterator[dict[str, Any]]:
    """The names that a text defines. It can be read by the compiler for as long as this lasts."""
    filename = f"<generated {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    names: dict[str, Any] = {
        "torch": torch, "F": torch.nn.functional, "math": math, "Tensor": torch.Tensor,
        "__name__": "generated", **{n: getattr(typing, n) for n in TYPING},
    }  # fmt: skip
    try:
        exec(compile(text, filename, "exec", dont_inherit=True), names)  # noqa: S102
        yield names
    finally:
        del linecache.cache[filename]


TYPING = ("List", "Dict", "Tuple", "Optional")


@dataclass
class Program:
    """A case's program in one library; made anew with `fresh` where it has a state."""

    case: Case
    torch: Any
    scripted: bool = True

    def subject(self) -> Any:
        """What is called."""
        self.torch.manual_seed(11)
        space = self.torch if self.scripted else Eager(self.torch)
        with source(self.case.text, space) as names, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made_here = names["f"] if "f" in names else names["M"]()
            if not self.scripted:
                return made_here
            try:
                return self.torch.jit.script(made_here)
            except Exception as error:
                raise NotCompiled(f"{type(error).__name__}: {error}") from error


def outcomes(subject: Any, case: Case, torch: Any) -> list[Outcome]:
    """What comes of all calls."""
    with quiet():
        return [outcome(subject, call, index, torch) for index, call in enumerate(case.calls)]


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def optimised(case: Case, **switches: bool) -> Iterator[None]:
    """The optimiser on, its faults raised; kernels for small tensors, if the case wants them."""
    few = group.FEW
    group.FEW = 0 if case.small_kernels else few
    try:
        with settings.using(**{"raise_faults": True, **switches}):
            yield
    finally:
        group.FEW = few


def plainly() -> Any:
    """The optimiser off."""
    return flambeau.jit.optimized_execution(False)


# ---- one call


def outcome(subject: Any, call: Call, index: int, torch: Any) -> Outcome:
    """What comes of one call."""
    found = Outcome()
    arguments = made(call.arguments, torch)
    torch.manual_seed(100 + index)
    results = _staged(found, "call", lambda: _called(subject, call, arguments, found, torch))
    if not found.raised:
        _observe(found, results, arguments, subject, call, torch)
    return found


def _staged(found: Outcome, stage: str, action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:  # noqa: BLE001  # compared, whatever it is
        found.raised = f"{stage}: {type(error).__name__}"
        found.text = str(error)
        return None


def _called(subject: Any, call: Call, arguments: Made, found: Outcome, torch: Any) -> Any:
    output = io.StringIO()
    try:
        with ExitStack() as stack:
            stack.enter_context(redirect_stdout(output))
            if call.mode == "no_grad":
                stack.enter_context(torch.no_grad())
            if call.mode == "inference":
                stack.enter_context(torch.inference_mode())
            return subject(*arguments.values)
    finally:
        found.printed = output.getvalue()
        found.random = torch.get_rng_state().numpy().tobytes()


def _observe(found: Outcome, results: Any, arguments: Made, subject: Any, call: Call,
             torch: Any) -> None:  # fmt: skip
    structure, tensors, found.others = flattened(results, torch.Tensor)
    found.kinds = [structure]
    _, given, _ = flattened([arguments.values, state_of(subject, torch)], torch.Tensor)
    found.results = [seen(tensor) for tensor in tensors]
    found.arguments = [seen(tensor) for tensor in given]
    everything = [*given, *tensors]
    found.shared = shared_memory(everything)
    for write in call.after.writes:
        target = everything[write.place % len(everything)]
        _staged(found, "write", lambda target=target, write=write: _write(target, write, torch))
    if call.after.writes and not found.raised:
        found.written = [values_of(tensor) for tensor in everything]
    if call.after.gradients != "no" and not found.raised:
        leaves = [*arguments.leaves, *parameters_of(subject, torch)]
        _staged(found, "gradients", lambda: _learn(found, tensors, leaves, call, torch))


def state_of(subject: Any, torch: Any) -> list[Any]:
    """The tensors of a module."""
    if not isinstance(subject, torch.nn.Module):
        return []
    return [*subject.parameters(), *subject.buffers()]


def parameters_of(subject: Any, torch: Any) -> list[Any]:
    if not isinstance(subject, torch.nn.Module):
        return []
    return [parameter for parameter in subject.parameters() if parameter.requires_grad]


def _write(target: Any, write: Write, torch: Any) -> None:
    with torch.no_grad():
        if write.form == "first" and target.dim() and target.shape[0]:
            target[0] = 1
        elif write.form == "nan" and target.is_floating_point():
            target.fill_(float("nan"))
        elif write.form == "add_":
            target.add_(target)
        else:
            target.zero_()


# ---- gradients


def _learn(found: Outcome, results: list[Any], leaves: list[Any], call: Call, torch: Any) -> None:
    """Gradients of the leaves by some of the results."""
    ends = [r for r in results if r.requires_grad and (r.is_floating_point() or r.is_complex())]
    ends = [end for i, end in enumerate(ends) if call.after.picks >> (i % 6) & 1]
    if not ends or not leaves:
        return
    drawn = np.random.default_rng(call.after.seed)
    total = sum(_weighted(end, drawn, torch) for end in ends)
    if call.after.gradients == "backward":
        total.backward()  # type: ignore[union-attr]
        found.gradients = [None if leaf.grad is None else seen(leaf.grad) for leaf in leaves]
        return
    double = call.after.gradients == "double"
    grads = torch.autograd.grad(total, leaves, allow_unused=True, create_graph=double)
    found.gradients = [None if grad is None else seen(grad) for grad in grads]
    ends = [grad for grad in grads if grad is not None and grad.requires_grad]
    if double and ends:
        total = sum(_weighted(end, drawn, torch) for end in ends)
        grads = torch.autograd.grad(total, leaves, allow_unused=True)
        found.second = [None if grad is None else seen(grad) for grad in grads]


def _weighted(end: Any, drawn: np.random.Generator, torch: Any) -> Any:
    """A number that depends on all of a tensor."""
    if end.is_complex():
        end = torch.view_as_real(end)
    weights = torch.from_numpy(np.array(drawn.standard_normal(tuple(end.shape)), np.float32))
    kept = end.dtype if end.dtype == torch.float64 else torch.float32
    return (end.to(kept) * weights.to(kept)).sum()
