"""`jvp`, `jacfwd`, `hessian`, `linearize`: derivatives of functions forwards, in any nesting."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.batches import inside, learning
from flambeau.autograd.forward_ad import OTHER_SIZE
from flambeau.autograd.grad_mode import enable_grad
from flambeau.autograd.tangents import Level, new_level
from flambeau.func.batched import vmap
from flambeau.func.reverse import (
    Argnums,
    Backwards,
    check_tensors,
    chosen,
    gradients,
    jacrev,
    of_argnums,
    units,
)
from flambeau.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

NAME = "jvp(f, primals, tangents)"


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False,
        has_aux: bool = False) -> Any:  # fmt: skip
    """(func(*primals), the derivative of that along `tangents`), in one pass.

    With `strict`, a result that does not depend on the inputs is an error; with `has_aux` there is
    a third result, what `func` gives beside its value.

    >>> import flambeau as torch
    >>> torch.func.jvp(torch.sin, (torch.tensor(0.),), (torch.tensor(2.),))
    (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{NAME}: Expected primals to be a tuple. E.g. it should be valid to "
                           "call f(*primals).")  # fmt: skip
    values, form = tree_flatten(primals)
    directions, other = tree_flatten(tangents)
    if form != other:
        raise RuntimeError(
            f"{NAME}: Expected primals and tangents to have the same python structure. For "
            "example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            f"structure {form} and tangents with structure {other}"
        )
    for what, given in (("primals", values), ("tangents", directions)):
        _check_given(what, given)
    level = new_level()
    level.is_transform = True
    try:
        duals = [_dual(level, x, t) for x, t in zip(values, directions, strict=True)]
        output = func(*tree_unflatten(duals, form))
        aux = None
        if has_aux:
            output, aux = output
        results, result_form = tree_flatten(output)
        check_tensors(results, NAME)
        found = [_tangent_of(level, result, strict) for result in results]
        apart = [_without(level, leaf) for leaf in (*results, *tree_leaves(aux))]
    finally:
        level.end()
    value = tree_unflatten(apart[: len(results)], result_form)
    derivative = tree_unflatten(found, result_form)
    if not has_aux:
        return value, derivative
    return value, derivative, tree_unflatten(apart[len(results) :], tree_flatten(aux)[1])


def _check_given(what: str, given: Sequence[Any]) -> None:
    if not given:
        raise RuntimeError(f"{NAME}: Expected {what} to contain at least one Tensor.")
    for value in given:
        if not isinstance(value, Tensor):
            raise RuntimeError(
                f"{NAME}: Expected {what} to only contain Tensors, got {type(value)}"
            )


def _dual(level: Level, value: Any, tangent: Any) -> Any:
    for name, given in (("primal", value), ("tangent", tangent)):
        if given._data.dtype.kind not in "fcVW":
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {given.dtype}"
            )
    if value.shape != tangent.shape:
        raise RuntimeError(OTHER_SIZE.format(list(value.shape), list(tangent.shape)))
    with level.apart():
        dual = value.view_as(value)
    level.put(dual, tangent)
    return dual


def _tangent_of(level: Level, result: Any, strict: bool) -> Any:
    tangent = level.tangent(result)
    if tangent is None and strict:
        raise RuntimeError(f"{NAME[:-1]}, strict=True): The output of f is independent of the "
                           "inputs. This is not allowed with strict=True.")  # fmt: skip
    return result.detach().new_zeros(result.shape) if tangent is None else tangent


def _without(level: Level, value: Any) -> Any:
    """A result without its tangent: an input that was handed back keeps its own."""
    if not isinstance(value, Tensor) or level.tangent(value) is None:
        return value
    with level.apart():
        plain = value.view_as(value)  # type: ignore[attr-defined]
    level.put(plain, None)
    return plain


def jacfwd(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Callable[..., Any]:  # fmt: skip
    """The function that gives the Jacobian of `func`, all columns at once as a batch, forwards.

    As `jacrev`; it computes less where there are more results than arguments. `randomness` is what
    `vmap` is told: whether `func` may draw random numbers, the same or others for each column.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError("Only allowed values for randomness are 'error', 'different', or "
                           f"'same'. Got {randomness}")  # fmt: skip

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = chosen(argnums, len(args))
        leaves, structure = tree_flatten([args[number] for number in numbers])
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise RuntimeError(
                    f"{NAME}: Expected primals to only contain Tensors, got {type(leaf)}"
                )

        def of_leaves(*given: Any) -> Any:
            replaced = list(args)
            for number, tree in zip(numbers, tree_unflatten(given, structure), strict=True):
                replaced[number] = tree
            return func(*replaced, **kwargs)

        def column(*tangents: Any) -> Any:
            found = jvp(of_leaves, tuple(leaves), tangents, has_aux=has_aux)
            return found[1], found[2] if has_aux else None

        sizes = [leaf.numel() for leaf in leaves]
        firsts = [sum(sizes[:k]) for k in range(len(sizes))]
        directions = [units(leaf, sum(sizes), first)
                      for leaf, first in zip(leaves, firsts, strict=True)]  # fmt: skip
        columns, aux = vmap(column, out_dims=(-1, None), randomness=randomness)(*directions)
        moving, form = tree_flatten(columns)
        blocks = [_blocks(each, sizes, leaves) for each in moving]
        result = tree_unflatten(
            [of_argnums(argnums, tree_unflatten(block, structure)) for block in blocks], form
        )
        return (result, aux) if has_aux else result

    return wrapper


def _blocks(columns: Any, sizes: list[int], leaves: Sequence[Any]) -> list[Any]:
    """The Jacobians of a result by each leaf, of those by their elements, which lie last."""
    shape = columns.shape[:-1]
    parts = columns.split(sizes, -1)
    return [part.reshape((*shape, *leaf.shape)) for part, leaf in zip(parts, leaves, strict=True)]


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The function that gives the second derivatives of `func`: forwards over backwards.

    >>> import flambeau as torch
    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(func(*primals), the derivative there as a linear function of tangents).

    The function is run once, with tangents that learn; what it makes of them is linear, and the
    graph of that gives the derivative as often as it is asked for.
    """
    leaves, form = tree_flatten(primals)
    inputs: list[Any] = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    with Backwards() as transform, enable_grad():
        unknown = [transform.learning(x.detach().new_ones(x.shape)) for x in inputs]
        values, outcome, results_form = _outcome(func, leaves, form, unknown)
        moving = [t for t in outcome if t is not None and t.requires_grad]
        dummies = [learning(inside(t.detach().new_zeros(t.shape))) for t in moving]
        rows = gradients(moving, unknown, dummies)

    def derivative(*tangents: Any) -> Any:
        directions, other = tree_flatten(tangents)
        if other != form:
            raise RuntimeError(f"Expected the tangents {other} to have the same argspec as "
                               f"the primals {form}")  # fmt: skip
        _check_alike(directions, leaves)
        found: Any = iter(gradients(rows, dummies, directions))
        return tree_unflatten(
            [v.new_zeros(v.shape) if t is None or not t.requires_grad else next(found).detach()  # type: ignore[attr-defined]
             for v, t in zip(values, outcome, strict=True)], results_form,
        )  # fmt: skip

    return tree_unflatten(values, results_form), derivative


def _outcome(func: Callable[..., Any], leaves: Sequence[Any], form: Any,
             unknown: Sequence[Any]) -> tuple[list[Any], list[Any], Any]:  # fmt: skip
    """The values of a function's results, their tangents or None, and their structure."""
    tangents = iter(unknown)
    level = new_level()
    level.is_transform = True
    level.is_recorded = True
    try:
        given = [_dual(level, v, next(tangents)) if isinstance(v, Tensor) else v for v in leaves]
        results, structure = tree_flatten(func(*tree_unflatten(given, form)))
        found = [level.tangent(r) if isinstance(r, Tensor) else None for r in results]
    finally:
        level.end()
    values: list[Any] = [r.detach() if isinstance(r, Tensor) else r for r in results]  # type: ignore[attr-defined]
    return values, found, structure


def _check_alike(directions: Sequence[Any], leaves: Sequence[Any]) -> None:
    for i, (tangent, primal) in enumerate(zip(directions, leaves, strict=True)):
        for what in ("shape", "dtype"):
            have, want = getattr(tangent, what), getattr(primal, what)
            if have != want:
                raise RuntimeError(
                    f"tangent:{i} with {what} {have} in flattened pytree doesn't match the {what} "
                    f"{want} of the corresponding primal."
                )
