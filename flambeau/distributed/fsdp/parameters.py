"""A parameter of which each process keeps a part, and which is gathered where it is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau._tensor.wrappers import wrapped
from flambeau.autograd.grad_mode import no_grad
from flambeau.distributed.device_mesh import DeviceMesh
from flambeau.distributed.fsdp.policies import MixedPrecisionPolicy
from flambeau.distributed.placements import Partial, Placement, Replicate, Shard
from flambeau.distributed.tensor.distributing import distribute_tensor
from flambeau.distributed.tensor.dtensor import DTensor, at
from flambeau.distributed.tensor.moving import moved
from flambeau.distributed.tensor.spec import Placements, Spec
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
        self.homes, self.policy = homes, policy
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

    @no_grad()
    def gather(self) -> None:
        """Let the modules hold all of it."""
        if self.is_gathered:
            return
        local = self.sharded._local_tensor.detach().to(self.dtype)
        everywhere = (Replicate(),) * len(self.placements)
        self._own()._data = moved(local, self.inside, everywhere)._data
        self.is_gathered = True
        self._hold(self.whole)

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

    @no_grad()
    def reduce(self, divisor: float | None, is_synchronised: bool) -> None:
        """Average the gradient of the whole over all processes, and add this process's part to that
        of the part.

        Args:
            divisor: what sums are divided by, instead of the number of processes.
            is_synchronised: whether anything is sent; if not, the gradient waits for the next time.
        """
        grad = self.whole._grad
        self.whole._grad = None
        if grad is None:
            return
        if self.kept is not None:
            grad, self.kept = grad + self.kept, None
        if not is_synchronised:
            self.kept = grad
            return
        self._add(grad, divisor)

    def _add(self, grad: Any, divisor: float | None) -> None:
        if self.around is not None:
            grad = at(grad, self.around.placements)._local_tensor
        grad = grad.to(self.policy.reduce_dtype or self.dtype)
        kind: Placement = Partial("avg" if divisor is None else "sum")
        spec = self.inside.placed((kind,) * len(self.placements))
        part = moved(grad, spec, self.placements)
        if divisor is not None:
            part = part / divisor
        part = part.to(self.sharded.dtype)
        known = self.sharded._grad
        if known is None:
            self.sharded._grad = DTensor(part, self.sharded._spec)
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
