"""Ctrl-C while a module of rows is imported, which happens when one of its names is first used."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest

import flambeau as torch
from flambeau._ops.table import namespace
from flambeau._ops.table.op import REGISTRY, register

SCRIPT = """
import flambeau as torch
from flambeau._ops.table.op import BY_NAME, LISTENERS

stopped = []

def interrupt(op):
    if op.public == "softmax" and not stopped:
        stopped.append(op)
        raise KeyboardInterrupt

LISTENERS.append(interrupt)
try:
    torch.softmax
except KeyboardInterrupt:
    LISTENERS.remove(interrupt)
assert torch.softmax(torch.ones(2), 0).tolist() == [0.5, 0.5]
assert stopped and stopped[0] not in BY_NAME["softmax"] and len(BY_NAME["softmax"]) == 1
"""


def test_an_interrupted_import_can_be_tried_again() -> None:
    """The rows of the first try make way; nothing is left half made."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True,
                          timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr


FIRST_TIMES = """
import flambeau as torch
from flambeau._core import modes
from flambeau._ops.table import gates
from flambeau._ops.table.redirection import Redirection

def interrupted(owner, name, count, work):
    plain, calls = getattr(owner, name), []
    def call(*arguments, **options):
        calls.append(name)
        if len(calls) == count:
            raise KeyboardInterrupt
        return plain(*arguments, **options)
    setattr(owner, name, call)
    try:
        work()
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError(f"{name} was called {len(calls)} times")
    finally:
        setattr(owner, name, plain)

seen = []

def make_class():
    class Named(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs or {})
    return Named

interrupted(gates, "add", 10, make_class)
named = torch.ones(2, 2).as_subclass(make_class())
seen.clear()
torch.matmul(named, named)
torch.einsum("ij,jk->ik", named, named)
assert seen == ["matmul", "einsum"], seen

from flambeau.func import vmap
from flambeau.overrides import TorchFunctionMode
from flambeau.utils._python_dispatch import TorchDispatchMode

class Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        seen.append(function.__name__)
        return function(*args, **(kwargs or {}))

class Operators(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        seen.append(str(function))
        return function(*args, **(kwargs or {}))

def run(mode):
    seen.clear()
    with mode:
        torch.rand(2).sigmoid().tolist()
    return list(seen)

def draw(function):
    try:
        vmap(lambda x: function() + x)(torch.ones(3))
    except RuntimeError as error:
        assert "random" in str(error)
    else:
        raise AssertionError(f"{function} was not asked")

before = modes.watch.active
interrupted(Redirection, "add", 40, lambda: run(Functions()))
assert run(Functions()) == ["rand", "sigmoid", "tolist"], seen
interrupted(gates, "add", 5, lambda: run(Operators()))
assert run(Operators()) == ["aten.rand.default", "aten.sigmoid.default"], seen
interrupted(gates, "add", 3, lambda: vmap(torch.sin)(torch.ones(3)))
for function in (lambda: torch.rand(2), lambda: torch.randn(2), lambda: torch.randperm(2)):
    draw(function)
assert modes.watch.active == before
"""


def test_what_begins_with_the_first_mode_batch_or_class_is_begun_wholly() -> None:
    """A handler raises while functions get what stands at their entrances: those that have nothing
    there yet would be passed by in silence from then on."""
    done = subprocess.run([sys.executable, "-c", FIRST_TIMES], capture_output=True, text=True,
                          timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr


class Imports(str):
    """A name at whose sight another thread's import registers rows."""

    __slots__ = ()

    def startswith(self, *given: Any) -> bool:
        namespace.BY_NAME["another"] = []
        return super().startswith(*given)


def test_rows_may_be_registered_while_a_name_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names that there are were run through while they became more: RuntimeError."""
    names = {Imports("first"): [], "linalg.inv": []}
    monkeypatch.setattr(namespace, "BY_NAME", names)
    assert isinstance(namespace.Namespace().linalg, namespace.Namespace)


def test_two_rows_of_one_name_are_still_refused() -> None:
    assert torch.exp
    with pytest.raises(ValueError, match="two rows for exp"):
        register(copy.copy(REGISTRY["exp"]))
