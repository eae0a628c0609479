"""`vmap`: a function of examples as a function of batches.

This is `torch._functorch.vmap`, too: libraries with containers of their own (tensordict) put other
functions in the place of `_process_batched_inputs`, `_create_batched_inputs`, `_unwrap_batched`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from flambeau._core import modes
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.batches import Batch, batched
from flambeau.utils._pytree import (
    TreeSpec,
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_map_,
    tree_unflatten,
)

Dims = Any
"""An int, None, or a structure of them like that of what they are about."""
RANDOMNESS = ("error", "different", "same")


def vmap(func: Callable[..., Any], in_dims: Dims = 0, out_dims: Dims = 0,
         randomness: str = "error", *,
         chunk_size: int | None = None) -> Callable[..., Any]:  # fmt: skip
    """The function that runs `func` for all examples of a batch at once.

    `in_dims` names the dim of each argument along which examples lie, None for arguments that are
    the same for all; `out_dims` where they shall lie in results. Keyword arguments are the same for
    all. `randomness`: "error" refuses random numbers, "same" draws them once for all
    examples, "different" for each. `chunk_size`: how many examples are worked on at a time.

    Raises ValueError for dims that do not fit, RuntimeError where one example's numbers are asked
    for.

    >>> import flambeau as torch
    >>> torch.vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2))
    tensor([2., 2., 2.])
    """
    _check_randomness(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, structure = _process_batched_inputs(in_dims, args, func)
        if chunk_size is None or chunk_size >= size:
            return _run(func, randomness, size, dims, leaves, structure, out_dims, kwargs)
        pieces = [
            _run(func, randomness, min(chunk_size, size - start), dims,
                 _piece(leaves, dims, start, chunk_size), structure, out_dims, kwargs)
            for start in range(0, size, chunk_size)
        ]  # fmt: skip
        return _joined(pieces, out_dims, func)

    return wrapper


def _get_name(func: Callable[..., Any]) -> str:
    """What errors call a function."""
    return getattr(func, "__name__", repr(func))


def _check_randomness(randomness: str) -> None:
    if randomness not in RANDOMNESS:
        raise RuntimeError("Only allowed values for randomness are 'error', 'different', or "
                           f"'same'. Got {randomness}")  # fmt: skip


# ---- inputs


Inputs = tuple[int, list[int | None], list[Any], TreeSpec]


def _process_batched_inputs(in_dims: Dims, args: Sequence[Any], func: Callable[..., Any]) -> Inputs:
    """The size of the batch; the dims, leaves and structure of the arguments."""
    name = _get_name(func)
    head = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(f"{head}: expected `in_dims` to be int or a (potentially nested) tuple "
                         f"matching the structure of inputs, got: {type(in_dims)}.")  # fmt: skip
    if not args:
        raise ValueError(f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, "
                         "or you are trying to vmap over a function with no inputs. The latter is "
                         "unsupported.")  # fmt: skip
    leaves, structure = tree_flatten(tuple(args))
    dims = _broadcast_to_and_flatten(in_dims, structure)
    if dims is None:
        raise ValueError(f"{head}: in_dims is not compatible with the structure of `inputs`. "
                         f"in_dims has structure {tree_flatten(in_dims)[1]} but "
                         f"inputs has structure {structure}.")  # fmt: skip
    dims = [_checked(head, leaf, dim) for leaf, dim in zip(leaves, dims, strict=True)]
    sizes = [leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError("vmap: Expected all tensors to have the same size in the mapped "
                         f"dimension, got sizes {sizes} for the mapped dimension")  # fmt: skip
    return sizes[0], dims, leaves, structure


def _checked(head: str, leaf: Any, dim: Any) -> int | None:
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(f"{head}: Got in_dim={dim} for an input but in_dim must be either an "
                         "integer dimension or None.")  # fmt: skip
    if not isinstance(leaf, Tensor):
        raise ValueError(f"{head}: Got in_dim={dim} for an input but the input is of type "
                         f"{type(leaf)}. We cannot vmap over non-Tensor arguments, please use None "
                         "as the respective in_dim")  # fmt: skip
    rank = leaf._data.ndim
    if not -rank <= dim < rank:
        raise ValueError(f"{head}: Got in_dim={dim} for some input, but that input is a Tensor of "
                         f"dimensionality {rank} so expected in_dim to satisfy {-rank} <= in_dim < "
                         f"{rank}.")  # fmt: skip
    return dim % rank


def _piece(leaves: list[Any], dims: list[int | None], start: int, count: int) -> list[Any]:
    """The leaves of the examples from `start` on."""
    return [leaf if dim is None else leaf.narrow(dim, start, min(count, leaf.shape[dim] - start))
            for leaf, dim in zip(leaves, dims, strict=True)]  # fmt: skip


# ---- a run


def _run(func: Callable[..., Any], randomness: str, size: int, dims: list[int | None],
         leaves: list[Any], structure: TreeSpec, out_dims: Dims, kwargs: Any) -> Any:  # fmt: skip
    with batched(size, randomness) as level:
        given = _create_batched_inputs(dims, leaves, level, structure)
        output = func(*given, **kwargs)
        return _unwrap_batched(output, out_dims, level, size, func)


def _create_batched_inputs(flat_in_dims: list[int | None], flat_args: list[Any],
                           vmap_level: Batch, args_spec: TreeSpec) -> Any:  # fmt: skip
    """The arguments of the function, whose tensors stand for the examples along their dims."""
    pairs = zip(flat_args, flat_in_dims, strict=True)
    given = [leaf if dim is None else _add_batch_dim(leaf, dim, vmap_level) for leaf, dim in pairs]
    return tree_unflatten(given, args_spec)


def _add_batch_dim(tensor: Tensor, in_dim: int, level: Batch) -> Tensor:
    """The tensor that stands for the examples along a dim."""
    with level.apart():
        whole = tensor if in_dim == 0 else ops.movedim(tensor, in_dim, 0)
        return level.standing_for(whole)


def _unwrap_batched(batched_outputs: Any, out_dims: Dims, vmap_level: Batch, batch_size: int,
                    func: Callable[..., Any]) -> Any:  # fmt: skip
    """What results stand for, with the examples along `out_dims`."""
    results, structure = tree_flatten(batched_outputs)
    places = _out_dims(func, out_dims, results, structure, batched_outputs)
    name = _get_name(func)
    return tree_unflatten(
        [
            _maybe_remove_batch_dim(name, result, vmap_level, batch_size, dim)
            for result, dim in zip(results, places, strict=True)
        ],
        structure,
    )


def _maybe_remove_batch_dim(name: str, batched_output: Any, vmap_level: Batch, batch_size: int,
                            out_dim: int | None) -> Any:  # fmt: skip
    """What one result stands for; without `out_dim` it must not differ between examples."""
    if not isinstance(batched_output, Tensor):
        if out_dim is None:
            return batched_output
        raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type "
                         f"{type(batched_output)}. Did you mean to set out_dims= to None for "
                         "output?")  # fmt: skip
    if out_dim is not None:
        return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)
    with vmap_level.apart():
        entry = vmap_level.example(batched_output)
        if entry is None:
            return batched_output
        if entry.is_batched:
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when "
                             "out_dim is None")  # fmt: skip
        return entry.value


def _remove_batch_dim(tensor: Tensor, level: Batch, batch_size: int, out_dim: int) -> Tensor:
    """What a tensor stands for, with the examples along a dim."""
    with level.apart():
        entry = level.example(tensor)
        whole: Any = tensor if entry is None else entry.value
        if entry is None or not entry.is_batched:
            whole = whole.unsqueeze(0).expand([batch_size, *whole.shape])
        if not modes.grad.enabled and whole.requires_grad:
            whole = whole.detach()
        return whole if out_dim == 0 else ops.movedim(whole, 0, out_dim)


def _out_dims(func: Callable[..., Any], out_dims: Dims, results: list[Any], structure: TreeSpec,
              output: Any) -> list[int | None]:  # fmt: skip
    name = _get_name(func)
    if isinstance(output, Tensor):  # the most frequent case
        if out_dims is None or isinstance(out_dims, int):
            return [out_dims]
        if isinstance(out_dims, tuple) and len(out_dims) == 1:
            return [out_dims[0]]

    def check(dim: Any) -> None:
        if dim is not None and not isinstance(dim, int):
            raise ValueError(f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, "
                             "None or a python collection of ints representing where in the "
                             "outputs the vmapped dimension should appear.")  # fmt: skip

    if out_dims is None:
        return [None] * len(results)
    tree_map_(check, out_dims)
    dims = _broadcast_to_and_flatten(out_dims, structure)
    if dims is None:
        raise ValueError(f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not "
                         "compatible with the structure of `outputs`. out_dims has structure "
                         f"{tree_flatten(out_dims)[1]} but outputs has structure "
                         f"{structure}.")  # fmt: skip
    return dims


def _joined(pieces: list[Any], out_dims: Dims, func: Callable[..., Any]) -> Any:
    """The results of all pieces of a batch, along the dims of their examples."""
    flat, structures = zip(*map(tree_flatten, pieces), strict=True)
    dims = _out_dims(func, out_dims, flat[0], structures[0], pieces[0])
    joined = [parts[0] if dim is None else ops.cat(list(parts), dim)
              for parts, dim in zip(zip(*flat, strict=True), dims, strict=True)]  # fmt: skip
    return tree_unflatten(joined, structures[0])
