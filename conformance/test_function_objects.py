"""Which public names are one object: `torch.unbind` and `torch.Tensor.unbind` are two, and a class
with `__torch_function__` is told which of them was called."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau

torch = pytest.importorskip("torch")

METHODS = sorted(
    name
    for name in dir(torch.Tensor)
    if not name.startswith("__")
    and callable(getattr(torch.Tensor, name))
    and callable(getattr(torch, name, None))
    and hasattr(flambeau.Tensor, name)
    and hasattr(flambeau, name)
)


def test_there_are_many() -> None:
    assert len(METHODS) > 350


def test_functions_and_methods_are_as_different_as_in_torch() -> None:
    def same(library: Any) -> list[str]:
        return [n for n in METHODS if getattr(library, n) is getattr(library.Tensor, n)]

    assert same(flambeau) == same(torch)


def test_aliases_are_as_different_as_in_torch() -> None:
    from flambeau._ops.table.op import ALIASES

    def same(library: Any) -> list[str]:
        pairs = [(new, old) for new, old in ALIASES.items() if "." not in new + old]
        return [new for new, old in pairs if getattr(library, new) is getattr(library, old)]

    assert same(flambeau) == same(torch)


def test_methods_have_the_names_that_torch_gives_them() -> None:
    for name in METHODS:
        ours, theirs = getattr(flambeau.Tensor, name), getattr(torch.Tensor, name)
        assert ours.__name__ == theirs.__name__
        if ours.__module__.startswith("torch"):
            assert ours.__qualname__ == theirs.__qualname__, name


CALLS: dict[str, tuple[Any, ...]] = {
    "add": (1,), "multiply": (2,), "reshape": ((3, 2),), "permute": ((1, 0),), "softmax": (0,),
    "select": (0, 1), "clamp": (0, 1), "clip": (0, 1), "unbind": (), "sum": (), "relu": (),
    "abs": (), "absolute": (), "chunk": (2,), "is_floating_point": (), "matmul": (), "transpose":
    (0, 1), "max": (), "cumsum": (0,), "abs_": (), "square_": (), "swapaxes": (0, 1), "t": (),
}  # fmt: skip


def _told(library: Any, call: Any) -> tuple[list[str], str]:
    """What a class is told of a call, and what is said if it declines."""
    names: list[str] = []

    def told(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        names.append(library.overrides.resolve_name(func))
        return NotImplemented

    kind = type("Told", (library.Tensor,), {"__torch_function__": classmethod(told)})
    with pytest.raises(TypeError) as error:
        call(library, library.ones(2, 3).as_subclass(kind))
    return names, str(error.value).partition(";")[0]


@pytest.mark.parametrize("name", CALLS)
def test_classes_are_told_the_same_name(name: str) -> None:
    args = CALLS[name]

    def by_function(library: Any, x: Any) -> Any:
        return getattr(library, name)(x, *(args if name != "matmul" else (x,)))

    def by_method(library: Any, x: Any) -> Any:
        return getattr(x, name)(*(args if name != "matmul" else (x,)))

    def by_class(library: Any, x: Any) -> Any:
        return getattr(library.Tensor, name)(x, *(args if name != "matmul" else (x,)))

    for call in (by_function, by_method, by_class):
        assert _told(flambeau, call) == _told(torch, call), call.__name__
