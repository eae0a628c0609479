"""Operators of ATen on distributed tensors.

A rule says which placements of the arguments give which placements of the results, along one dim
of the mesh; the choice that costs the least communication is taken for each dim. Then arguments
are moved there, every process runs the operator on its parts, and the results are put under their
shapes as wholes, which the device "meta" tells. What has no rule is done on copies by everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributed.placements import Partial, Placement, Replicate, Shard
from flambeau.distributed.tensor.dtensor import DTensor, at
from flambeau.distributed.tensor.rules import RULES, class_parts, special
from flambeau.distributed.tensor.rules.call import Call, Choice
from flambeau.distributed.tensor.rules.pointwise import is_pointwise, pointwise
from flambeau.distributed.tensor.spec import Spec, local_shape_and_offset
from flambeau.utils._pytree import tree_map

MIXED = (
    "{} got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before "
    "calling distributed operators!"
)
IN_PLACE = (
    "{}: in-place operations that require placement changes are not supported. The input has "
    "placement {}, but no valid strategy preserves this placement. Please use the out-of-place "
    "version of this operation instead."
)
SIZES = frozenset(
    "view _unsafe_view reshape expand new_zeros new_empty new_ones new_full slice_backward "
    "select_backward".split()
)
"""Operators whose first argument after the tensor is the shape of the result or of the input."""


def run(overload: Any, args: Any, kwargs: Any) -> Any:
    """An operator on distributed tensors.

    Raises:
        RuntimeError: other tensors are among them, or meshes differ, or what is written would have
            to lie elsewhere.
    """
    name = overload._schema.name.partition("::")[2]
    handler = special.HANDLERS.get(name)
    if handler is None:
        return run_by_rule(overload, args, kwargs)
    args, kwargs = _distributed(overload, args, kwargs)
    return handler(overload, *args, **kwargs)


def run_by_rule(overload: Any, args: Any, kwargs: Any) -> Any:
    """An operator on parts, by the rule of its family."""
    name = overload._schema.name.partition("::")[2]
    args, kwargs = _distributed(overload, args, kwargs)
    call = Call(overload, name, args, kwargs)
    _check_mesh(call)
    results = _on_meta(call)
    call.outputs = _specs(call, results)
    chosen = _chosen(call)
    return _carried_out(call, chosen, results)


def _distributed(overload: Any, args: Any, kwargs: Any) -> Any:
    """Arguments in which plain tensors that are the same everywhere are distributed, too: single
    numbers, and all under `implicit_replication` and, for its labels and weights and for what the
    gradient makes of them, under `loss_parallel`."""
    are_copies = Implicit.allowed or class_parts.Active.now
    known = next(t for t in _tensors((args, kwargs)) if isinstance(t, DTensor))

    def one(value: Any) -> Any:
        if not isinstance(value, Tensor) or isinstance(value, DTensor):
            return value
        if value.numel() != 1 and not are_copies:
            raise RuntimeError(MIXED.format(overload))
        mesh = known._spec.mesh
        placed = (Replicate(),) * mesh.ndim
        spec = Spec(mesh, placed, tuple(value.shape), tuple(value.stride()), value.dtype)
        return DTensor(value, spec)

    return tree_map(one, args), tree_map(one, kwargs)


class Implicit:
    """Whether tensors that are not distributed are taken for copies: `implicit_replication`."""

    allowed = False


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Inside of it plain tensors, given along with distributed ones, are taken for copies that all
    processes have.

    >>> import flambeau as torch
    >>> from flambeau.distributed.tensor.experimental import implicit_replication
    >>> with implicit_replication():
    ...     pass  # y = distributed + torch.ones(3)
    """
    before, Implicit.allowed = Implicit.allowed, True
    try:
        yield
    finally:
        Implicit.allowed = before


def _tensors(values: Any) -> list[Any]:
    found: list[Any] = []
    tree_map(lambda value: found.append(value) if isinstance(value, Tensor) else None, values)
    return found


def _check_mesh(call: Call) -> None:
    first = call.tensors[0]._spec.mesh
    for tensor in call.tensors[1:]:
        if tensor._spec.mesh != first:
            raise RuntimeError(
                f"Cannot run {call.overload} on inputs with different meshes: got {first} and "
                f"{tensor._spec.mesh}"
            )


# ---- what the results are as wholes


def _on_meta(call: Call) -> Any:
    """What the operator gives on tensors without numbers."""

    def shadow(value: Any) -> Any:
        if not isinstance(value, DTensor):
            return value
        spec = value._spec
        return ops.empty_strided(spec.shape, spec.stride, dtype=spec.dtype, device="meta")

    return call.overload(*tree_map(shadow, call.args), **tree_map(shadow, call.kwargs))


def _specs(call: Call, results: Any) -> list[Spec]:
    mesh = call.mesh
    placed = (Replicate(),) * mesh.ndim
    return [Spec(mesh, placed, tuple(t.shape), tuple(t.stride()), t.dtype)
            for t in _tensors(results)]  # fmt: skip


# ---- where everything has to lie


def _chosen(call: Call) -> list[Choice]:
    """The cheapest choice for each dim of the mesh."""
    rule = rule_of(call)
    chosen = []
    for dim in range(call.mesh.ndim):
        call.mesh_dim, call.parts = dim, call.mesh.size(dim)
        choices = [c for c in rule(call) if _can_be(call, c)]
        if call.is_in_place:
            choices = _that_stay(call, choices)
        chosen.append(min(choices, key=lambda choice: _cost(call, choice)))
    return chosen


def rule_of(call: Call) -> Callable[[Call], list[Choice]]:
    """The rule of an operator; copies where there is none."""
    rule = RULES.get(call.base)
    if rule is None:
        rule = pointwise if is_pointwise(call) else copies
    return rule


def copies(call: Call) -> list[Choice]:
    """Everything is there on all processes; what is written is divided again."""
    replicated = tuple([Replicate() for _ in call.tensors])
    if call.is_in_place:
        own = call.placement(0)
        return [Choice((own, *replicated[1:]), (own,))] if own == Replicate() else []
    return [Choice(replicated, tuple([Replicate() for _ in call.outputs]))]


def _can_be(call: Call, choice: Choice) -> bool:
    """Whether each process would get a part of each tensor that is to be divided, or the tensor is
    divided like this already."""
    for place, placement in enumerate(choice.inputs):
        if isinstance(placement, Shard) and placement != call.placement(place):
            shape = call.tensors[place]._spec.shape
            if placement.dim >= len(shape) or shape[placement.dim] < call.parts:
                return False
    return True


def _that_stay(call: Call, choices: list[Choice]) -> list[Choice]:
    own = call.placement(0)
    kept = [c for c in choices if c.inputs[0] == own and c.outputs[0] == own]
    if not kept:
        raise RuntimeError(IN_PLACE.format(call.overload, call.tensors[0]._spec.placements))
    return kept


def _cost(call: Call, choice: Choice) -> float:
    pairs = zip(call.tensors, choice.inputs, strict=True)
    return sum(_cost_of(tensor, call.mesh_dim, wanted) for tensor, wanted in pairs)


def _cost_of(tensor: DTensor, mesh_dim: int, wanted: Placement) -> float:
    """What it takes to move a tensor along a dim of the mesh: a start, and its size."""
    now = tensor._spec.placements[mesh_dim]
    if now == wanted:
        return 0.0
    size = 1.0 + tensor.numel() * 1e-6
    if isinstance(now, Replicate):
        return 1e-3
    if isinstance(now, Partial):
        return size if isinstance(wanted, Shard) else 2 * size
    if isinstance(wanted, Partial):
        return 4 * size
    return 1.5 * size if isinstance(wanted, Shard) else size


# ---- carrying it out


def _carried_out(call: Call, chosen: list[Choice], results: Any) -> Any:
    """Move arguments, run the operator on parts, and wrap what it gives."""
    moved = {}
    for place, tensor in enumerate(call.tensors):
        wanted = tuple([choice.inputs[place] for choice in chosen])
        moved[id(tensor)] = at(tensor, wanted)._local_tensor
    placed = [tuple([choice.outputs[place] for choice in chosen])
              for place in range(len(call.outputs))]  # fmt: skip
    specs = [spec.placed(where) for spec, where in zip(call.outputs, placed, strict=True)]
    args = tree_map(lambda v: moved[id(v)] if isinstance(v, DTensor) else v, call.args)
    kwargs = tree_map(lambda v: moved[id(v)] if isinstance(v, DTensor) else v, call.kwargs)
    if call.name in SIZES:
        args = (args[0], _local_sizes(call, args[1], chosen, specs), *args[2:])
    local = call.overload(*args, **kwargs)
    if call.is_in_place:
        return call.args[0]
    return _wrapped(results, local, specs)


def _local_sizes(call: Call, sizes: Any, chosen: list[Choice], specs: list[Spec]) -> list[int]:
    """The shape that an operator is given, as this process's part has it."""
    return list(local_shape_and_offset(specs[0].shape, call.mesh, specs[0].placements)[0])


def _wrapped(results: Any, local: Any, specs: list[Spec]) -> Any:
    """Results of parts, as the parts of results."""
    if isinstance(results, Tensor):
        return DTensor(local, specs[0])
    if not isinstance(results, (tuple, list)):
        return local
    left = iter(specs)
    made = [DTensor(mine, next(left)) if isinstance(shape, Tensor) else mine
            for shape, mine in zip(results, local, strict=True)]  # fmt: skip
    return tuple(made) if isinstance(results, tuple) else made
