"""Methods are objects of their own: what they know of themselves, and who finds them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest

import flambeau as torch
from flambeau._ops.table.redirection import Redirection
from flambeau._ops.table.twins import twin

NAMES = ("unbind", "add", "sum", "relu", "reshape", "permute", "split", "multiply", "softmax")


class Told(torch.Tensor):
    """Keeps the functions that its objects were asked about."""

    functions: list[Any] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.functions.append(func)
        return super().__torch_function__(func, types, args, kwargs)


def told(call: Any, *args: Any) -> Any:
    Told.functions.clear()
    call(torch.ones(2, 3).as_subclass(Told), *args)
    (function,) = Told.functions
    return function


@pytest.mark.parametrize("name", NAMES)
def test_a_method_is_no_function_of_torch(name: str) -> None:
    function, method = getattr(torch, name), getattr(torch.Tensor, name)
    assert function is not method
    assert (method.__name__, function.__name__) == (name, name)
    assert list(inspect.signature(method).parameters)[0] in ("self", "input", "args", "tensor")
    assert torch.overrides.resolve_name(method) == f"torch.Tensor.{name}"


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "add": (1,), "mul": (2,), "multiply": (2,), "reshape": ((3, 2),), "permute": ((1, 0),),
    "split": (1,), "softmax": (0,), "select": (0, 1), "clamp": (0, 1), "addcmul": (
        torch.ones(3), torch.ones(3)), "index_add": (0, torch.tensor([0]), torch.ones(1, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", ["unbind", "sum", "relu", "abs", "logsumexp", *ARGUMENTS])
def test_classes_are_told_which_object_was_called(name: str) -> None:
    args = (0,) if name == "logsumexp" else ARGUMENTS.get(name, ())
    function, method = getattr(torch, name), getattr(torch.Tensor, name)
    assert told(function, *args) is function
    assert told(method, *args) is method
    assert told(lambda x: getattr(x, name)(*args)) is method


@pytest.mark.parametrize("name", ["abs_", "clamp_", "zero_", "relu_"])
def test_in_place(name: str) -> None:
    args = (0, 1) if name == "clamp_" else ()
    function, method = getattr(torch, name), getattr(torch.Tensor, name)
    assert function is not method
    assert told(function, *args) is function
    assert told(method, *args) is method


def test_functions_that_were_used_before_the_first_class() -> None:
    """Whatever was built by then has a gate from that class on, also what works in place."""
    program = """
import flambeau as torch
before = [torch.clamp_, torch.clamp, torch.relu_, torch.einsum, torch.Tensor.clamp_]
class Told(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        told.append(func)
        return super().__torch_function__(func, types, args, kwargs)
x = torch.ones(2).as_subclass(Told)
for function, args in zip(before, [(x, 0, 1), (x, 0, 1), (x,), ("i->", x), (x, 0, 1)]):
    told = []
    function(*args)
    assert told == [function], (function, told)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_operators_of_python_go_by_their_methods() -> None:
    assert told(lambda x: x + 1) is torch.Tensor.add
    assert told(lambda x: torch.ones(3) * x) is torch.Tensor.mul
    assert told(lambda x: x.__iadd__(1)) is torch.Tensor.add_


def test_a_class_that_calls_the_function_for_the_method_ends() -> None:
    class Again(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is torch.Tensor.unbind:
                return torch.unbind(*args, **(kwargs or {}))
            return super().__torch_function__(func, types, args, kwargs)

    assert len(torch.ones(3).as_subclass(Again).unbind()) == 3


def doubled(x: int) -> int:
    return 2 * x


def test_twins_of_redirected_functions_do_what_the_function_does() -> None:
    redirection, seen = Redirection(), []

    def through(before: Any, args: Any, kwargs: Any) -> Any:
        seen.append(args)
        return -before(*args, **kwargs)

    redirection.add(doubled, through)
    alone = twin(doubled, "doubled")
    assert (doubled(1), alone(1), seen) == (-2, 2, [(1,)])
    redirection.end()


def test_who_redirects_a_function_with_its_twins_gets_later_ones_too() -> None:
    early, redirection, seen = twin(doubled, "doubled"), Redirection(), []

    def through(before: Any, args: Any, kwargs: Any) -> Any:
        seen.append(args)
        return before(*args, **kwargs)

    redirection.add_with_twins(doubled, through)
    late = twin(doubled, "doubled")
    assert [f(n) for n, f in enumerate((doubled, early, late))] == [0, 2, 4]
    assert seen == [(0,), (1,), (2,)]
    redirection.end()
    after = twin(doubled, "doubled")
    assert [f(1) for f in (doubled, early, late, after)] == [2] * 4
    assert len(seen) == 3


PICKLED = """
import flambeau.hook
flambeau.hook.install()
import pickle, torch
for name in ("unbind", "add", "split", "mul_", "reshape", "sum"):
    method = getattr(torch.Tensor, name)
    assert pickle.loads(pickle.dumps(method)) is method, name
assert pickle.loads(pickle.dumps(torch.unbind)) is torch.unbind
"""


def test_pickles_of_methods_lead_back_to_them() -> None:
    subprocess.run([sys.executable, "-c", PICKLED], check=True)


def test_names_that_programs_print() -> None:
    assert torch.Tensor.unbind.__qualname__ == "TensorBase.unbind"
    assert repr(torch.Tensor.split).startswith("<function Tensor.split at ")
    assert torch._C.TensorBase.unbind is torch.Tensor.unbind
