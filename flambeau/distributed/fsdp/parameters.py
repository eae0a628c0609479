"""A parameter of which each process keeps a part, and which is gathered where it is needed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau._tensor.wrappers import wrapped
from flambeau.distributed.device_mesh import DeviceMesh
from flambeau.distributed.fsdp.policies import MixedPrecisionPolicy
from flambeau.distributed.placements import Replicate, Shard
from flambeau.distributed.tensor.distributing import distribute_tensor
from flambeau.distributed.tensor.dtensor import DTensor, at
from flambeau.distributed.tensor.moving import Line
from flambeau.distributed.tensor.spec import Placements, Spec, chunk_sizes
from flambeau.distributed.tensors import array_of
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter

Home = tuple[Module, str]
"""A module, and the name under which it holds a parameter."""


class ShardedParameter:
    """A parameter in parts (`sharded`), and the same gathered (`whole`), of which the modules hold
    the one or the other.

    `whole` stays the same tensor, and has memory only while it is gathered: what autograd has saved
    of it needs it gathered again.
    """

    def __init__(self, homes: list[Home], mesh: DeviceMesh, placement: Shard,
                 policy: MixedPrecisionPolicy) -> None:  # fmt: skip
        module, name = homes[0]
        given: Any = module._parameters[name]
        self.homes, self.policy, self.dim = homes, policy, placement.dim
        self.placements: Placements = (*(Replicate(),) * (mesh.ndim - 1), placement)
        self.around: Spec | None = None  # of what is divided in another way, too
        local = given.detach()
        if isinstance(given, DTensor):
            self.around, local = given._spec, given._local_tensor.detach()
        made = distribute_tensor(local, mesh, self.placements, src_data_rank=None)
        self.inside = made._spec
        if self.around is not None:
            made = DTensor(made._local_tensor, _of_both(self.around, self.inside))
        self.sharded: Any = Parameter(made, given.requires_grad)
        kind = policy.param_dtype if given.dtype.is_floating_point else None
        self.dtype = kind or given.dtype
        self.whole: Any = Parameter(given.detach().to(self.dtype).clone(), given.requires_grad)
        self.kept: Any = None
        self.is_gathered = True
        self.release()

    def _own(self) -> Any:
        """The plain tensor that holds what is gathered."""
        return self.whole if self.around is None else self.whole._local_tensor

    def _hold(self, parameter: Any) -> None:
        for module, name in self.homes:
            module._parameters[name] = parameter

    # ---- gathering

    def line(self) -> Line:
        """The processes that have parts of it: along the last dim of the mesh."""
        mesh = self.inside.mesh
        return Line(mesh, mesh.ndim - 1, list(self.inside.shape))

    def largest_part(self, count: int) -> int:
        """How many elements the first of so many processes has, which has as many as any."""
        sizes = list(self.inside.shape)
        sizes[self.dim] = chunk_sizes(sizes[self.dim], count)[0]
        return math.prod(sizes)

    def own_part(self) -> np.ndarray:
        """This process's part in the type in which it is gathered, without gaps."""
        local = self.sharded._local_tensor.detach().to(self.dtype)
        return np.ascontiguousarray(array_of(local))

    def put_together(self, everybody: np.ndarray) -> None:
        """Let the modules hold all of it.

        Args:
            everybody: the bytes of each process's part, with room behind them.
        """
        made: Any = ops.empty(self.inside.shape, dtype=self.dtype)
        for data, into in zip(everybody, self._pieces(array_of(made)), strict=True):
            into[...] = data[: into.nbytes].view(into.dtype).reshape(into.shape)
        self._own()._data = made._data
        self.is_gathered = True
        self._hold(self.whole)

    def _pieces(self, whole: np.ndarray) -> list[np.ndarray]:
        """Everybody's parts of an array, as views."""
        lengths = self.line().lengths(self.dim)
        return np.split(whole, np.cumsum(lengths)[:-1], axis=self.dim)

    def release(self) -> None:
        """Let the modules hold this process's part; give the memory of the whole back."""
        if not self.is_gathered:
            return
        own = self._own()
        data = own._data
        steps = tuple([step // data.itemsize for step in data.strides])
        own._data = wrapped(data.shape, steps, data.dtype, own.device)
        self.is_gathered = False
        self._hold(self.sharded)

    # ---- gradients

    def set_aside(self) -> None:
        """Let the gradient of the whole wait for a later time."""
        grad, self.whole._grad = self.whole._grad, None
        if grad is not None:
            self.kept = grad if self.kept is None else self.kept + grad

    def has_grad(self) -> bool:
        """Whether the whole has a gradient that was not averaged."""
        return self.whole._grad is not None or self.kept is not None

    def take_grad(self) -> Any:
        """The gradient of the whole, in the type in which it is averaged; None if there is none."""
        self.set_aside()
        grad, self.kept = self.kept, None
        if grad is not None and self.around is not None:
            grad = at(grad, self.around.placements)._local_tensor
        return None if grad is None else grad.to(self.policy.reduce_dtype or self.dtype)

    def take_apart(self, grad: np.ndarray, rows: np.ndarray) -> None:
        """Each process's part of a gradient into the beginning of its row."""
        for piece, row in zip(self._pieces(grad), rows, strict=True):
            row[: piece.size] = piece.reshape(-1)

    def groups_of_copies(self) -> list[Any]:
        """The groups of processes that have the same part."""
        mesh = self.inside.mesh
        return [mesh.get_group(dim) for dim in range(mesh.ndim - 1)]

    def add_to_grad(self, flat: Any) -> None:
        """Add what begins with this process's part of the gradient to that of the part."""
        local = self.sharded._local_tensor
        part = flat[: local.numel()].reshape(local.shape).to(self.sharded.dtype)
        known = self.sharded._grad
        if known is None:
            self.sharded._grad = DTensor(part.clone(), self.sharded._spec)
        else:
            known._local_tensor.add_(part)


def _of_both(around: Spec, inside: Spec) -> Spec:
    """A tensor whose part is divided again: on the dims of both meshes."""
    mesh = around.mesh._with(inside.mesh)
    return replace(around, mesh=mesh, placements=(*around.placements, *inside.placements))


def homes_of(modules: list[Module], ignored: set[int]) -> list[list[Home]]:
    """Where each parameter of some modules is held; those that several hold are one."""
    found: dict[int, list[Home]] = {}
    for module in modules:
        for name, parameter in module._parameters.items():
            if parameter is None or id(parameter) in ignored:
                continue
            found.setdefault(id(parameter), []).append((module, name))
    return list(found.values())


def placement_of(parameter: Tensor, chooses: Any) -> Shard:
    """Along which dim a parameter is divided."""
    chosen = chooses(parameter) if chooses is not None else None
    if chosen is None:
        return Shard(0)
    return Shard(chosen.dim % parameter.ndim)
