"""`__torch_function__`: what it costs plain tensors, and what torch cannot be asked about.

The behaviour is compared with torch in `conformance/test_torch_function.py`.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import flambeau as torch
from flambeau._core import modes


class Plain(torch.Tensor):
    """It takes part, with the implementation of Tensor."""


class Noting(torch.Tensor):
    """It remembers what it was asked for."""

    asked: list[str] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.asked.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


def test_plain_tensors_take_the_short_way_beside_subclasses() -> None:
    assert modes.watch.overriding
    assert modes.watch.active == 0
    x = torch.ones(3)
    Noting.asked.clear()
    torch.matmul(x, x)
    torch.nn.functional.relu(x + 1)[0].item()
    assert Noting.asked == []


def test_composites_are_asked_as_a_whole() -> None:
    Noting.asked.clear()
    result = torch.nn.functional.linear(torch.ones(2, 3).as_subclass(Noting), torch.ones(4, 3))
    assert Noting.asked == ["linear"]
    assert type(result) is Noting


def test_recording_is_that_of_plain_tensors() -> None:
    x = torch.arange(3.0, requires_grad=True)
    (x.as_subclass(Plain) ** 3).sum().backward()
    assert x.grad.tolist() == [0.0, 3.0, 12.0]
    assert type(x.grad) is torch.Tensor


def test_backward_takes_saved_tensors_for_plain_ones() -> None:
    leaf = torch.Tensor._make_subclass(Noting, torch.arange(3.0), True)
    total = (leaf * leaf).sum()
    Noting.asked.clear()
    total.backward()
    assert Noting.asked == ["backward"]


def test_threads_have_their_own_region() -> None:
    import threading

    x = torch.ones(2).as_subclass(Plain)
    found = []
    with torch._C.DisableTorchFunctionSubclass():
        thread = threading.Thread(target=lambda: found.append(type(x + 1)))
        thread.start()
        thread.join()
        assert type(x + 1) is torch.Tensor
    assert found == [Plain]


def test_a_mode_leaves_functions_as_they_were() -> None:
    code = torch.exp.__code__
    with torch.overrides.BaseTorchFunctionMode():
        assert torch.exp.__code__ is not code
    assert torch.exp.__code__ is code


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(NotImplementedError, match="torch.overrides.enable_reentrant_dispatch"):
        _ = torch.overrides.enable_reentrant_dispatch


def test_without_such_classes_nothing_is_redirected() -> None:
    program = (
        "import flambeau as torch\n"
        "from flambeau._core import modes\n"
        "torch.nn.functional.linear(torch.ones(1, 1), torch.ones(1, 1))\n"
        "class Parameters(torch.nn.Parameter): pass\n"
        "assert not modes.watch.overriding\n"
        "class Sub(torch.Tensor): pass\n"
        "assert modes.watch.overriding and not modes.watch.active\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
