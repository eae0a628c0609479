"""Modules of a user's. All take batches of rows of three numbers."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

Pair = namedtuple("Pair", ("first", "second"))


def classes(torch: Any, note: Callable[..., None]) -> dict[str, Any]:
    """The classes of a library by name."""
    found: dict[str, Any] = {"Pair": Pair}
    for family in (_plain, _several, _holding, _containing, _rules):
        found |= family(torch, note)
    return found


def _plain(torch: Any, note: Callable[..., None]) -> dict[str, Any]:
    nn = torch.nn

    class Net(nn.Module):
        """Two layers."""

        def __init__(self, hidden: int = 2) -> None:
            super().__init__()
            self.first = nn.Linear(3, hidden)
            self.second = nn.Linear(hidden, 3)

        def forward(self, x: Any) -> Any:
            return self.second(torch.tanh(self.first(x)))

    class Tied(nn.Module):
        """A layer that is used twice."""

        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Linear(3, 3)
            self.two = self.one
            self.three = nn.Linear(3, 3)
            self.three.weight = self.one.weight

        def forward(self, x: Any) -> Any:
            return self.three(self.two(self.one(x)))

    class Lonely(nn.Module):
        """Has parts that are not used."""

        def __init__(self) -> None:
            super().__init__()
            self.used = nn.Linear(3, 3, bias=False)
            self.unused = nn.Linear(3, 3)
            self.alone = nn.Parameter(torch.ones(2))

        def forward(self, x: Any) -> Any:
            self.unused(x)
            return self.used(x)

    class Same(nn.Module):
        """Gives what it gets."""

        def forward(self, x: Any) -> Any:
            return x

    return {c.__name__: c for c in (Net, Tied, Lonely, Same)}


def _several(torch: Any, note: Callable[..., None]) -> dict[str, Any]:
    nn = torch.nn

    class Two(nn.Module):
        """Two inputs, of which the first may have no gradient."""

        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.full((3,), 0.5))

        def forward(self, x: Any, y: Any = None) -> Any:
            return self.scale * (2 if y is None else y) + x.detach()

    class Many(nn.Module):
        """Several results, in a container of some kind."""

        def __init__(self, kind: str = "tuple") -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)
            self.kind = kind

        def forward(self, x: Any) -> Any:
            one, two = self.inner(x), x * 2
            return {"tuple": (one, two), "list": [one, two], "dict": {"a": one, "b": two},
                    "pair": Pair(one, two), "mixed": (one, None, 3)}[self.kind]  # fmt: skip

    class Words(nn.Module):
        """Takes words."""

        def forward(self, x: Any, *, factor: float = 1.0, other: Any = None) -> Any:
            return x * factor if other is None else x * factor + other

    class Written(nn.Module):
        """Writes to what it gets or gives."""

        def __init__(self, when: str = "after") -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)
            self.when = when

        def forward(self, x: Any) -> Any:
            if self.when == "before":
                x.mul_(2)
            result = self.inner(x)
            return result.mul_(2) if self.when == "after" else result

    return {c.__name__: c for c in (Two, Many, Words, Written)}


def _holding(torch: Any, note: Callable[..., None]) -> dict[str, Any]:
    nn = torch.nn

    class Counted(nn.Module):
        """Has buffers, one of which is not kept, and a state of its own."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.tensor(0))
            self.register_buffer("mean", torch.zeros(3))
            self.register_buffer("hidden", torch.ones(1), persistent=False)
            self.register_buffer("missing", None)
            self.register_parameter("nothing", None)

        def forward(self, x: Any) -> Any:
            self.calls += 1
            self.mean = self.mean * 0.5 + x.detach().mean(0)
            return x - self.mean * self.hidden

    class Extra(nn.Module):
        """Has extra state."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)
            self.extra = 1

        def get_extra_state(self) -> Any:
            return {"extra": self.extra}

        def set_extra_state(self, state: Any) -> None:
            self.extra = state["extra"] + 1
            note("extra", self.extra)

        def forward(self, x: Any) -> Any:
            return self.inner(x) * self.extra

    return {c.__name__: c for c in (Counted, Extra)}


def _containing(torch: Any, note: Callable[..., None]) -> dict[str, Any]:
    nn = torch.nn

    class Slots(nn.Module):
        """Parameters in containers."""

        def __init__(self) -> None:
            super().__init__()
            self.items = nn.ParameterList([torch.ones(3), torch.full((3,), 2.0)])
            self.table = nn.ParameterDict({"b": torch.ones(3), "a": nn.Parameter(torch.ones(3))})
            self.parts = nn.ModuleDict({"z": nn.Linear(3, 3), "y": nn.Identity()})

        def forward(self, x: Any) -> Any:
            for item in self.items:
                x = x * item
            for name in self.table:
                x = x + self.table[name]
            return self.parts["z"](self.parts["y"](x))

    return {"Slots": Slots}


def _rules(torch: Any, note: Callable[..., None]) -> dict[str, Any]:
    nn = torch.nn

    class Doubled(nn.Module):
        """A parametrization that may be assigned to."""

        def forward(self, x: Any) -> Any:
            return x * 2

        def right_inverse(self, x: Any) -> Any:
            return x / 2

    class Squared(nn.Module):
        """A parametrization that may not."""

        def forward(self, x: Any) -> Any:
            return x * x

    class Symmetric(nn.Module):
        """Of a square matrix."""

        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).mT

    class Split(nn.Module):
        """Of two tensors."""

        def forward(self, x: Any, y: Any) -> Any:
            return x + y

        def right_inverse(self, x: Any) -> Any:
            return x * 0.5, x * 0.5

    class Longer(nn.Module):
        """Gives another shape."""

        def forward(self, x: Any) -> Any:
            return torch.cat([x, x])

    return {c.__name__: c for c in (Doubled, Squared, Symmetric, Split, Longer)}
