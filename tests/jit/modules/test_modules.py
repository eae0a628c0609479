"""Modules as programs: methods, attributes, types, containers, hooks."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Iterator
from typing import Any, Final

import pytest

import flambeau as torch
from flambeau import nn


@pytest.fixture(autouse=True)
def _deprecated() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Scaled(nn.Module):
    """A parameter, a buffer, a constant, attributes."""

    times: Final[int]

    def __init__(self, times: int = 2) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("shift", torch.zeros(2))
        self.times = times
        self.sizes = [1, 2]
        self.strange = object()

    def forward(self, x):
        return self.helper(x) * self.times + self.shift

    def helper(self, x):
        return x * self.weight

    def unused(self, x):
        return self.strange(x)

    @torch.jit.export
    def count(self) -> int:
        return len(self.sizes)


class Layers(nn.Module):
    """Containers of layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.ReLU()])
        self.named = nn.ModuleDict({"a": nn.Tanh()})

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        for name, layer in self.named.items():
            if name == "a":
                x = layer(x)
        return self.layers[0](x)


class Switched(nn.Module):
    """A mode that changes while the module lives."""

    def forward(self, x):
        return x * 2 if self.training else x


class Sometimes(nn.Module):
    """Methods that the compiler leaves out."""

    def forward(self, x: int) -> int:
        return self.seen(x)

    @torch.jit.ignore
    def seen(self, x: int) -> int:
        return x + 1

    @torch.jit.unused
    def never(self, x: int) -> int:
        return object()  # type: ignore[return-value]


class Broken(nn.Module):
    """An attribute that means nothing to programs."""

    def __init__(self) -> None:
        super().__init__()
        self.strange = object()

    def forward(self, x):
        return self.strange(x)


def script(module: Any) -> Any:
    return torch.jit.script(module)


def test_forward_and_what_it_calls_are_compiled() -> None:
    scripted = script(Scaled())
    assert set(scripted._type.methods) == {"forward", "helper", "count"}
    assert scripted(torch.ones(2)).tolist() == [2.0, 2.0]
    assert scripted.count() == 2


def test_a_scripted_module_is_a_module_over_the_same_parameters() -> None:
    original = Scaled()
    scripted = script(original)
    assert isinstance(scripted, nn.Module)
    assert scripted.weight is original.weight
    assert list(scripted.state_dict()) == ["weight", "shift"]
    scripted(torch.ones(2)).sum().backward()
    assert original.weight.grad.tolist() == [2.0, 2.0]


def test_equal_modules_share_a_type() -> None:
    first, second, other = script(Scaled()), script(Scaled()), script(Scaled(3))
    assert first._type is second._type
    assert first._type is not other._type  # a constant belongs to the type


def test_constants_stand_in_the_graph() -> None:
    kinds = [node.attributes.get("name") for node in script(Scaled(7)).graph.walk()]
    assert "times" not in kinds
    assert script(Scaled(7))(torch.ones(2)).tolist() == [7.0, 7.0]


def test_attributes_keep_their_type() -> None:
    scripted = script(Scaled())
    scripted.sizes = [1, 2, 3]
    assert scripted.count() == 3
    with pytest.raises(RuntimeError, match=r"Could not cast attribute 'sizes' to type List\[int\]"):
        scripted.sizes = "text"
    scripted.strange = 1  # of no meaning to the program: an ordinary attribute
    assert scripted.strange == 1


def test_modes_are_those_of_modules() -> None:
    scripted = script(Switched())
    assert scripted(torch.ones(1)).item() == 2
    assert scripted.eval()(torch.ones(1)).item() == 1
    assert not scripted.training


def test_containers_are_unrolled() -> None:
    original = Layers()
    scripted = script(original)
    x = torch.ones(1, 2)
    assert scripted(x).tolist() == original(x).tolist()
    assert "prim::Loop" not in str(scripted.graph)
    assert [name for name, _ in scripted.named_modules()] == [
        name for name, _ in original.named_modules()
    ]


def test_ignored_methods_run_in_python_and_unused_ones_raise() -> None:
    assert script(Sometimes())(2) == 3

    class Calling(Sometimes):
        def forward(self, x: int) -> int:
            return self.never(x)

    with pytest.raises(RuntimeError):
        script(Calling())(1)


def test_what_cannot_be_compiled_is_named_where_it_stands() -> None:
    with pytest.raises(RuntimeError, match="strange") as raised:
        script(Broken())
    assert "return self.strange(x)" in str(raised.value)
    assert "<--- HERE" in str(raised.value)


def test_hooks_are_compiled() -> None:
    def doubled(self: Any, input: tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
        return output * 2

    module = Switched().eval()
    module.register_forward_hook(doubled)
    assert script(module)(torch.ones(1)).item() == 2


def test_deepcopy_has_parameters_of_its_own() -> None:
    scripted = script(Scaled())
    copied = copy.deepcopy(scripted)
    with torch.no_grad():
        copied.weight.zero_()
    assert scripted(torch.ones(2)).tolist() == [2.0, 2.0]
    assert copied(torch.ones(2)).tolist() == [0.0, 0.0]
    assert copied.code == scripted.code


def test_scripting_again_gives_the_same_module() -> None:
    scripted = script(Scaled())
    assert script(scripted) is scripted


def test_only_saving_carries_a_module_away() -> None:
    with pytest.raises(RuntimeError, match="does not have a __getstate__ method defined"):
        pickle.dumps(script(Scaled()))
