"""`grad`, `vjp`, `jacrev`: derivatives of functions backwards, in any nesting.

A function's inputs are replaced by views of them that learn. What is computed from these is
differentiated with a graph, so that a transform further out can differentiate the derivative. At
the end the graph is cut off, unless it leads to tensors from outside that learn, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.backward import grad as gradients_of
from flambeau.autograd.batches import inside, learning
from flambeau.autograd.grad_mode import enable_grad
from flambeau.autograd.tangents import Transform, without_graph
from flambeau.func.batched import vmap
from flambeau.utils._pytree import (
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
    treespec_pprint,
)

AUX = "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True"  # fmt: skip  # noqa: E501


class Backwards(Transform):
    """One use of a transform: the inputs that it lets learn, from its beginning to its end."""

    def __enter__(self) -> Backwards:
        self.is_open = True
        self.depth = len(modes.stacks.levels)  # how many uses of `vmap` and `jvp` it is inside of
        return self

    def __exit__(self, *exc: object) -> None:
        self.is_open = False

    def learning(self, value: Any) -> Any:
        """A view of an input that gradients are wanted for."""
        if not isinstance(value, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
        if value._data.dtype.kind not in "fcVW":
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        with enable_grad():
            view: Any = inside(value).view_as(value)
        if not view.requires_grad:
            learning(view)._stands_for = self
        return view

    def inputs(self, args: Sequence[Any], numbers: Sequence[int]) -> tuple[Any, list[Any], Any]:
        """The arguments, with those of some positions learning; their leaves and structure."""
        given = [tree_map(self.learning, v) if i in numbers else v for i, v in enumerate(args)]
        return given, *tree_flatten([given[number] for number in numbers])

    def cut_off(self, tree: Any) -> Any:
        """Results without the graph of this transform, where nothing but its own inputs learns."""
        leaves, structure = tree_flatten(tree)
        return tree_unflatten(map(self._cut, leaves), structure)

    def _cut(self, value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.requires_grad:
            return value
        if modes.grad.enabled and self._leads_outside(value):
            return value
        return without_graph(value, self._cut)

    def _leads_outside(self, value: Any) -> bool:
        """Whether history leads to a leaf that somebody waits for outside of this transform."""
        makers = (leaf._stands_for for leaf in leaves_of(value))
        return any(made_by is None or (made_by is not self and made_by.is_open)
                   for made_by in makers)  # fmt: skip


def leaves_of(value: Any) -> Iterator[Any]:
    """The leaves that a tensor's history leads to; itself, if it has none.

    >>> import flambeau as torch
    >>> from flambeau.func.reverse import leaves_of
    >>> x = torch.ones(2, requires_grad=True)
    >>> [leaf is x for leaf in leaves_of(2 * x + x)]
    [True]
    """
    seen, waiting = set(), [value if value._node is None else value._node]
    while waiting:
        at = waiting.pop()
        if at is None or id(at) in seen:
            continue
        seen.add(id(at))
        if isinstance(at, Tensor):
            yield at
        else:
            waiting += [getattr(edge, "node", edge) for edge in at.edges]


# ---- which arguments


Argnums = int | tuple[int, ...]


def chosen(argnums: Argnums, count: int) -> tuple[int, ...]:
    """The positions that derivatives are asked for, checked."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if argnums == ():
        raise RuntimeError("argnums must be non-empty")
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    for number in numbers:
        if not isinstance(number, int):
            raise RuntimeError(f"argnums elements must be int, got {type(number)}")
        if not -count <= number < count:
            raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
    found = tuple(number % count for number in numbers)
    if len(set(found)) < len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


def of_argnums(argnums: Argnums, values: Sequence[Any]) -> Any:
    """What was found for the chosen arguments: a tuple where a tuple was asked for."""
    return tuple(values) if isinstance(argnums, tuple) else values[0]


# ---- grad


def grad(func: Callable[..., Any], argnums: Argnums = 0,
         has_aux: bool = False) -> Callable[..., Any]:  # fmt: skip
    """The function that gives the gradient of `func`, a number, by some of its arguments.

    With `has_aux`, `func` gives (number, anything), and the new function (gradient, anything).

    >>> import flambeau as torch
    >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(0.5))
    tensor(-0.4794)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapper


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0,
                   has_aux: bool = False) -> Callable[..., Any]:  # fmt: skip
    """As `grad`, for (gradient, value), or (gradient, (value, aux))."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = chosen(argnums, len(args))
        with Backwards() as transform, enable_grad():
            given, leaves, structure = transform.inputs(args, numbers)
            output = func(*given, **kwargs)
            aux = None
            if has_aux:
                if not (isinstance(output, tuple) and len(output) == 2):  # noqa: PLR2004
                    raise RuntimeError(AUX)
                output, aux = output
                _check_aux(aux)
            _check_number(output)
            found = gradients(output, leaves)
        result = of_argnums(argnums, tree_unflatten(found, structure))
        return transform.cut_off((result, (output, aux) if has_aux else output))

    return wrapper


def _check_aux(aux: Any) -> None:
    for value in tree_leaves(aux):
        if not isinstance(value, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(value)}")


def _check_number(output: Any) -> None:
    name = "grad_and_value(f)(*args)"
    if not isinstance(output, Tensor):
        raise RuntimeError(f"{name}: Expected f(*args) to return a Tensor, got {type(output)}")
    if output._data.ndim:
        raise RuntimeError(f"{name}: Expected f(*args) to return a scalar Tensor, got tensor with "
                           f"{output._data.ndim} dims. Maybe you wanted to use the vjp or jacrev "
                           "APIs instead?")  # fmt: skip


def gradients(outputs: Any, inputs: Sequence[Any], vectors: Any = None) -> list[Any]:
    """Gradients with a graph, zeros where there are none."""
    many = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    given = [None] * len(many) if vectors is None else list(vectors)
    pairs = [(o, v) for o, v in zip(many, given, strict=True) if o.requires_grad]
    found: Sequence[Any] = [None] * len(inputs)
    if pairs and inputs:
        kept, of_kept = zip(*pairs, strict=True)
        found = gradients_of(kept, inputs, of_kept, create_graph=True, allow_unused=True)
    return [x.detach().new_zeros(x.shape) if g is None else g
            for x, g in zip(inputs, found, strict=True)]  # fmt: skip


# ---- vjp


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """(func(*primals), a function of cotangents that gives their products with the Jacobians).

    With `has_aux` also what `func` gives beside its results.

    >>> import flambeau as torch
    >>> value, pull = torch.func.vjp(torch.square, torch.tensor([1., 2.]))
    >>> pull(torch.tensor([1., 1.]))
    (tensor([2., 4.]),)
    """
    with Backwards() as transform, enable_grad():
        given, leaves, structure = transform.inputs(primals, range(len(primals)))
        output = func(*given)
        output, aux = _parted(output, "vjp(f, *primals)") if has_aux else (output, None)
        outputs, form = tree_flatten(output)
        check_tensors(outputs, "vjp(f, *primals)")

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        vectors, vector_form = tree_flatten(cotangents)
        if vector_form != form:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {treespec_pprint(vector_form)}, "
                f"primal output: {treespec_pprint(form)}"
            )
        with transform, enable_grad():
            found = gradients(outputs, leaves, vectors)
        return transform.cut_off(tuple(tree_unflatten(found, structure)))

    values = transform.cut_off(output)
    return (values, pull, transform.cut_off(aux)) if has_aux else (values, pull)


def _parted(output: Any, name: str) -> tuple[Any, Any]:
    if not (isinstance(output, tuple) and len(output) == 2):  # noqa: PLR2004
        raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if "
                           "has_aux is True")  # fmt: skip
    _check_aux(output[1])
    return output


def check_tensors(values: Sequence[Any], name: str) -> None:
    """Results that can be differentiated are tensors."""
    for value in values:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"{name}: expected f(*primals) to return only tensors, got "
                               f"unsupported type {type(value)}")  # fmt: skip


# ---- jacrev


def jacrev(func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False,
           chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable[..., Any]:  # fmt: skip
    """The function that gives the Jacobian of `func`, all rows at once as a batch, backwards.

    A tensor of output.shape + input.shape for each result, and in that for each chosen argument.
    `chunk_size`: how many rows are computed at a time; without it all are.

    >>> import flambeau as torch
    >>> torch.func.jacrev(torch.square)(torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = chosen(argnums, len(args))
        with Backwards() as transform, enable_grad():
            given, leaves, structure = transform.inputs(args, numbers)
            output = func(*given, **kwargs)
            output, aux = _parted(output, "vjp(f, *primals)") if has_aux else (output, None)
            outputs, form = tree_flatten(output)
            check_tensors(outputs, "vjp(f, *primals)")
            blocks = [
                of_argnums(argnums, tree_unflatten(_rows(one, leaves, chunk_size), structure))
                for one in outputs
            ]
        result = tree_unflatten(blocks, form)
        return transform.cut_off((result, aux) if has_aux else result)

    return wrapper


def _rows(output: Any, inputs: Sequence[Any], chunk_size: int | None) -> list[Any]:
    """The Jacobians of an output by each input."""
    shape, count = tuple(output.shape), output.numel()
    if not count:
        return [x.detach().new_zeros((*shape, *x.shape)) for x in inputs]

    def row(unit: Any) -> list[Any]:
        return gradients(output, inputs, [unit])

    rows = vmap(row, chunk_size=chunk_size)(units(output, count, 0))
    return [found.reshape((*shape, *x.shape)) for x, found in zip(inputs, rows, strict=True)]


def units(tensor: Any, count: int, first: int) -> Any:
    """A batch of `count` tensors like this one, zeros but for a 1: the first element's comes at the
    position `first`, the others' follow."""
    batch = tensor.detach().new_zeros((count, tensor.numel()))
    batch[first : first + tensor.numel()].fill_diagonal_(1)
    return batch.reshape((count, *tensor.shape))
