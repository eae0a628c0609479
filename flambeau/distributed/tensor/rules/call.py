"""A call of an operator on distributed tensors, as rules see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from flambeau.distributed.device_mesh import DeviceMesh
from flambeau.distributed.placements import Placement, Replicate, Shard
from flambeau.distributed.tensor.dtensor import DTensor
from flambeau.distributed.tensor.spec import Sizes, Spec
from flambeau.utils._pytree import tree_map


class Choice(NamedTuple):
    """Where the tensors among the arguments lie, and where the results do then."""

    inputs: tuple[Placement, ...]
    outputs: tuple[Placement, ...]


Rule = Callable[["Call"], list[Choice]]


class Call:
    """A call: its operator, its arguments, and the tensors among them in their order.

    `outputs` says what the results are as wholes; rules are asked for one dim of the mesh after
    another (`mesh_dim`), which has `parts` processes.
    """

    outputs: list[Spec]
    mesh_dim = 0
    parts = 1

    def __init__(self, overload: Any, name: str, args: Any, kwargs: dict[str, Any]) -> None:
        self.overload, self.name, self.args, self.kwargs = overload, name, args, kwargs
        self.is_in_place = name.endswith("_") and not name.endswith("__")
        self.base = name.rstrip("_") if self.is_in_place else name
        self.tensors: list[DTensor] = []
        self._collect()

    def _collect(self) -> None:
        def note(value: Any) -> None:
            if isinstance(value, DTensor):
                self.tensors.append(value)

        tree_map(note, (self.args, self.kwargs))

    @property
    def mesh(self) -> DeviceMesh:
        """The mesh of all of them."""
        return self.tensors[0]._spec.mesh

    def placement(self, place: int) -> Placement:
        """Where one of the tensors lies along the dim of the mesh that is asked for."""
        return self.tensors[place]._spec.placements[self.mesh_dim]

    def kinds(self) -> list[Placement]:
        """All placements of the tensors, each once, in the same order in every process."""
        return list(dict.fromkeys(map(self.placement, range(len(self.tensors)))))

    def shape(self, place: int) -> Sizes:
        """The shape of one of the tensors as a whole."""
        return self.tensors[place]._spec.shape

    def argument(self, name: str, default: Any = None) -> Any:
        """An argument by its name in the operator's schema."""
        if name in self.kwargs:
            return self.kwargs[name]
        for place, parameter in enumerate(self.overload._schema.arguments):
            if parameter.name == name:
                if place < len(self.args):
                    return self.args[place]
                return default if parameter.default_value is None else parameter.default_value
        return default

    def everywhere(self) -> Choice:
        """Copies of everything."""
        return Choice((Replicate(),) * len(self.tensors), (Replicate(),) * len(self.outputs))

    def alike(self, dim: int) -> Choice:
        """Everything in parts along the same dim."""
        return Choice((Shard(dim),) * len(self.tensors), (Shard(dim),) * len(self.outputs))


def positive(dim: int, ndim: int) -> int:
    """A dim counted from the front."""
    return dim % max(ndim, 1)
