"""Functions of plain tensors, called with distributed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.distributed.device_mesh import DeviceMesh
from flambeau.distributed.placements import Placement
from flambeau.distributed.tensor.dtensor import DTensor
from flambeau.utils._pytree import tree_flatten, tree_unflatten

Placed = Sequence[Placement] | None
"""How one argument or result lies; None where it is no distributed tensor."""


def local_map(func: Callable[..., Any] | None = None,
              out_placements: Placed | tuple[Placed, ...] = None,
              in_placements: tuple[Placed, ...] | None = None,
              in_grad_placements: tuple[Placed, ...] | None = None,
              device_mesh: DeviceMesh | None = None, *,
              redistribute_inputs: bool = False) -> Callable[..., Any]:  # fmt: skip
    """A function that gives `func` this process's parts, and makes distributed tensors of what it
    returns.

    >>> import flambeau as torch
    >>> from flambeau.distributed.tensor import Shard
    >>> from flambeau.distributed.tensor.experimental import local_map
    >>> twice = local_map(lambda x: x * 2, out_placements=[Shard(0)])
    >>> twice(torch.ones(2))  # without distributed tensors it is the function itself
    tensor([2., 2.])

    Args:
        func: the function; without it, this is a decorator.
        out_placements: how the result lies; a tuple of such for each of several results, None for
            what is no tensor.
        in_placements: how each positional argument has to lie; None for what is no distributed
            tensor. Without it arguments lie as they do.
        in_grad_placements: how the gradients of all processes lie, for each positional argument.
        device_mesh: of the results; that of the first distributed argument by default.
        redistribute_inputs: whether arguments that lie in another way are moved.

    Raises:
        ValueError: an argument lies in another way. AssertionError: something has placements that
            is no tensor, or has none that is one, or their number is wrong.
    """
    if func is None:
        return partial(local_map, out_placements=out_placements, in_placements=in_placements,
                       in_grad_placements=in_grad_placements, device_mesh=device_mesh,
                       redistribute_inputs=redistribute_inputs)  # fmt: skip

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        flat, tree = tree_flatten(args)
        if in_placements is not None and len(in_placements) != len(flat):
            raise AssertionError(
                f"in_placements length {len(in_placements)} does not match the number of input "
                f"args {len(flat)}!"
            )
        mesh, is_distributed, given = device_mesh, False, []
        for place, value in enumerate(flat):
            if isinstance(value, DTensor):
                is_distributed = True
                mesh = mesh or value.device_mesh
                wanted = None if in_placements is None else (in_placements[place],)
                kept = _of(in_grad_placements, place)
                given.append(_part(value, mesh, wanted, kept, redistribute_inputs))
                continue
            if in_placements is not None and not isinstance(value, Tensor):
                _refuse_placed(value, in_placements[place], "Non-Tensor input")
            given.append(value)
        result = func(*tree_unflatten(given, tree), **kwargs)
        return _placed(result, out_placements, mesh) if is_distributed else result

    return wrapped


def _of(placements: tuple[Placed, ...] | None, place: int) -> Placed:
    return None if placements is None else placements[place]


def _part(value: DTensor, mesh: DeviceMesh, wanted: tuple[Placed] | None, grad: Placed,
          moves: bool) -> Tensor:  # fmt: skip
    """What the function is given of a distributed tensor."""
    if wanted is not None:
        target = wanted[0]
        if target is None:
            raise AssertionError(f"DTensor input {value} expects placements but received None!")
        target = tuple(target)
        if value.placements != target:
            if not moves:
                raise ValueError(
                    f"arg {value} in local_map has a mismatched placements: arg placements is "
                    f"{value.placements} but the input placements is {target}! If "
                    "redistribute_inputs is wanted, set redistribute_inputs=True to local_map."
                )
            value = value.redistribute(mesh, target)
    return value.to_local(grad_placements=grad)


def _refuse_placed(value: Any, placements: Placed, what: str) -> None:
    if placements is not None:
        raise AssertionError(f"{what} {value} expects None placements but received {placements}!")


def _placed(result: Any, placements: Any, mesh: Any) -> Any:
    """The results as distributed tensors."""
    flat, tree = tree_flatten(result)
    of_each = placements if isinstance(placements, tuple) else (placements,)
    if len(of_each) != len(flat):
        raise AssertionError(
            "local_map requires one PlacementType be provided for each output value, received "
            f"{len(of_each)} out_placements but {len(flat)} is expected!"
        )
    made = []
    for value, placed in zip(flat, of_each, strict=True):
        if isinstance(value, DTensor):
            raise AssertionError(
                f"torch.Tensor output expected but received {type(value)}: {value}"
            )
        if isinstance(value, Tensor):
            made.append(DTensor.from_local(value, mesh, placed, run_check=False))
            continue
        _refuse_placed(value, placed, "Non-tensor output")
        made.append(value)
    return tree_unflatten(made, tree)
