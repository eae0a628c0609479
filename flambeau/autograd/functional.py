"""Derivatives of functions: `jacobian`, `hessian`, `vjp`, `jvp`, `vhp`, `hvp`.

Every function takes `func` and its inputs (a tensor or a tuple of tensors) and returns results in
the same structure. `create_graph` makes the results differentiable; `strict` raises where an
output does not depend on an input, instead of giving zeros. Forward products use the double
backward identity: the vector-Jacobian product, differentiated by its vector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.backward import grad
from flambeau.autograd.grad_mode import enable_grad
from flambeau.autograd.graph import tools

Tensors = Any
OUTPUTS = "outputs of the user-provided function"
ONLY = {
    "vjp": "the user-provided function returns",
    **dict.fromkeys(("jvp", "vhp", "hvp"), "the input to the user-provided function is"),
}  # fmt: skip
"""What has to be one number, so that no vector is needed."""


def _as_tuple(value: Any, role: str, function: str) -> tuple[bool, tuple[Tensor, ...]]:
    """(whether it was a tuple, the tensors); TypeError for anything else."""
    many = isinstance(value, tuple)
    items = value if many else (value,)
    for position, item in enumerate(items):
        if isinstance(item, Tensor):
            continue
        where = f"value at index {position}" if many else f"given {role}"
        raise TypeError(
            f"The {role} given to {function} must be either a Tensor or a tuple of Tensors but the "
            f"{where} has type {type(item)}."
        )
    return many, tuple(items)


def _prepare(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Inputs to differentiate by: views of the given ones, or fresh leaves."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_()
        for x in inputs
    )


def _finish(value: Any, create_graph: bool) -> Any:
    if isinstance(value, tuple):
        return tuple(_finish(part, create_graph) for part in value)
    return value if create_graph else value.detach()


def _zeros_like(tensor: Tensor) -> Tensor:
    return tools.zeros(tensor._data.shape, tensor._data.dtype, tensor.device)  # type: ignore[no-any-return]


def _check_outputs(outputs: tuple[Tensor, ...]) -> None:
    for position, output in enumerate(outputs):
        if not output.requires_grad:
            raise RuntimeError(f"Output {position} of the user-provided function does not require "
                               "gradients. The outputs must be computed in a differentiable manner "
                               "from the input when running in strict mode.")  # fmt: skip


APART = "The output of the user-provided function is independent of input {}."
APART_FROM_VECTOR = ("The gradient with respect to the input is independent of entry {} in the "
                     "grad_outputs when using the double backward trick to compute forward mode "
                     "gradients.")  # fmt: skip
CONSTANT_JACOBIAN = "The jacobian of the user-provided function is independent of input {}."
APART_FROM_ENTRY = ("The hessian of the user-provided function is independent of entry {} in the "
                    "grad_jacobian.")  # fmt: skip
CONSTANT_HESSIAN = "The hessian of the user-provided function is independent of input {}."
STRICT = " This is not allowed in strict mode"
NO_TRICK = " as it prevents from using the double backward trick to replace forward mode AD"


def _gradients(outputs: Any, inputs: Any, starts: Any, create_graph: bool,
               refused: str | None = None) -> Any:  # fmt: skip
    """Gradients with zeros for what is not reached; RuntimeError if `refused` has words for it."""
    reached = [(o, s) for o, s in zip(outputs, starts, strict=True) if o.requires_grad]
    found: Any = [None] * len(inputs)
    if reached:
        found = grad([o for o, _ in reached], inputs, [s for _, s in reached], retain_graph=True,
                     create_graph=create_graph, allow_unused=True)  # fmt: skip
    for position, gradient in enumerate(found):
        if gradient is None and refused is not None:
            why = NO_TRICK if refused is APART_FROM_ENTRY else ""
            raise RuntimeError(f"{refused.format(position)}{STRICT}{why}.")
    return tuple(_zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True))


def _check_learning(results: tuple[Tensor, ...], words: str) -> None:
    """What `create_graph` promises can be differentiated: strictly, all of it."""
    for position, result in enumerate(results):
        if not result.requires_grad:
            raise RuntimeError(f"{words.format(position)}{STRICT} when create_graph=True.")


def _vectors(v: Any, outputs: tuple[Tensor, ...], function: str, many: bool) -> tuple[Tensor, ...]:
    if v is None:
        if len(outputs) != 1 or outputs[0]._data.size != 1:
            raise RuntimeError(
                f"The vector v can only be None if {ONLY[function]} a single Tensor with a single "
                "element."
            )
        return (tools.ones_like(outputs[0].detach()),)  # type: ignore[attr-defined]
    vectors = _as_tuple(v, "v", function)[1]
    if len(vectors) != len(outputs) and not many:
        raise RuntimeError("The given v should contain a single Tensor.")
    if len(vectors) != len(outputs):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(outputs)} but got "
                           f"{len(vectors)}.")  # fmt: skip
    for position, (vector, output) in enumerate(zip(vectors, outputs, strict=True)):
        if vector._data.shape != output._data.shape:
            prefix = f"Entry {position} in " if len(vectors) > 1 else ""
            raise RuntimeError(f"{prefix}v has invalid size: should be {output.shape} but got "
                               f"{vector.shape}.")  # fmt: skip
    return vectors


def vjp(func: Callable[..., Any], inputs: Tensors, v: Tensors = None, create_graph: bool = False,
        strict: bool = False) -> tuple[Tensors, Tensors]:  # fmt: skip
    """(outputs, vᵀ·J): the vector-Jacobian product, one tensor per input.

    >>> import flambeau as torch
    >>> torch.autograd.functional.vjp(lambda x: x ** 2, torch.tensor([1., 2.]), torch.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        many, given = _as_tuple(inputs, "inputs", "vjp")
        prepared = _prepare(given, create_graph)
        output = func(*prepared)
        many_out, outputs = _as_tuple(output, OUTPUTS, "vjp")
        if strict:
            _check_outputs(outputs)
        vectors = _vectors(v, outputs, "vjp", many_out)
        found = _gradients(outputs, prepared, vectors, create_graph, APART if strict else None)
        if strict and create_graph:
            _check_learning(found, CONSTANT_JACOBIAN)
    result = found if many else found[0]
    return _finish(output, create_graph), _finish(result, create_graph)


def jvp(func: Callable[..., Any], inputs: Tensors, v: Tensors = None, create_graph: bool = False,
        strict: bool = False) -> tuple[Tensors, Tensors]:  # fmt: skip
    """(outputs, J·v): the Jacobian-vector product, one tensor per output.

    >>> import flambeau as torch
    >>> torch.autograd.functional.jvp(lambda x: x ** 2, torch.tensor([1., 2.]), torch.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        many_in, given = _as_tuple(inputs, "inputs", "jvp")
        vectors = _vectors(v, given, "jvp", many_in)
        prepared = _prepare(given, create_graph)
        output = func(*prepared)
        many, outputs = _as_tuple(output, OUTPUTS, "jvp")
        if strict:
            _check_outputs(outputs)
        refused = (APART, APART_FROM_VECTOR) if strict else (None, None)
        products = _forward_products(outputs, prepared, vectors, create_graph, refused)
        if strict and create_graph:
            _check_learning(products, CONSTANT_JACOBIAN)
    result = products if many else products[0]
    return _finish(output, create_graph), _finish(result, create_graph)


def _forward_products(outputs: Any, inputs: Any, vectors: Any, create_graph: bool,
                      refused: tuple[str | None, str | None]) -> tuple[Tensor, ...]:  # fmt: skip
    """J·v by differentiating vᵀ·J by v; `refused`: words for either step in strict mode."""
    dummies = tuple(_zeros_like(o).requires_grad_() for o in outputs)  # type: ignore[attr-defined]
    rows = _gradients(outputs, inputs, dummies, True, refused[0])
    return _gradients(rows, dummies, vectors, create_graph, refused[1])  # type: ignore[no-any-return]


def jacobian(func: Callable[..., Any], inputs: Tensors, create_graph: bool = False,
             strict: bool = False, vectorize: bool = False,
             strategy: str = "reverse-mode") -> Any:  # fmt: skip
    """The Jacobian: for each output and input a tensor of output.shape + input.shape.

    >>> import flambeau as torch
    >>> torch.autograd.functional.jacobian(lambda x: x ** 2, torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    _check_ways(strict, vectorize, strategy)
    with enable_grad():
        many_in, given = _as_tuple(inputs, "inputs", "jacobian")
        prepared = _prepare(given, create_graph)
        output = func(*prepared)
        many_out, outputs = _as_tuple(output, OUTPUTS, "jacobian")
        if not vectorize:
            _check_real(outputs)
        if strict:
            _check_outputs(outputs)
        blocks = tuple(
            _rows_at_once(output, prepared, create_graph)
            if vectorize
            else _jacobian_of(output, prepared, create_graph, position if strict else None)
            for position, output in enumerate(outputs)
        )
    result = tuple(block if many_in else block[0] for block in blocks)
    return _finish(result if many_out else result[0], create_graph)


def _check_ways(strict: bool, vectorize: bool, strategy: str) -> None:
    """Which ways exclude each other; results are the same in all."""
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is"
            "only implemented for `vectorize=True`."
        )
    if strict and vectorize:
        raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and "
                           "`vectorized=True` are not supported together. Please either set "
                           "`strict=False` or `vectorize=False`.")  # fmt: skip


ONLY_REAL = "grad can be implicitly created only for real scalar outputs but got {}"


def _check_real(outputs: Any) -> None:
    for output in outputs:
        if output.is_complex() and output._data.size:
            raise RuntimeError(ONLY_REAL.format(output.dtype))


def _rows_at_once(output: Any, inputs: Any, create_graph: bool) -> tuple[Tensor, ...]:
    """One output's derivatives, all rows as a batch."""
    shape, count = tuple(output.shape), output.numel()
    if not count or not output.requires_grad:
        return tuple(tools.zeros((*shape, *x.shape), x._data.dtype, x.device) for x in inputs)
    units = tools.zeros((count, count), output._data.dtype, output.device)
    units.fill_diagonal_(1)
    found = grad(output, inputs, units.view(count, *shape), True, create_graph,
                 allow_unused=True, is_grads_batched=True)  # fmt: skip
    return tuple(
        tools.zeros((*shape, *x.shape), x._data.dtype, x.device) if rows is None
        else rows.reshape((*shape, *x.shape))
        for rows, x in zip(found, inputs, strict=True)
    )  # fmt: skip


def _jacobian_of(output: Tensor, inputs: Any, create_graph: bool,
                 place: int | None) -> tuple[Tensor, ...]:  # fmt: skip
    """One output's derivatives, row by row. `place`: in strict mode, which output it is."""
    refused = None if place is None else (
        f"Output {place} of the user-provided function is independent of input {{}}."
    )  # fmt: skip
    flat = output.reshape(-1)  # type: ignore[attr-defined]
    rows = []
    for position in range(flat._data.shape[0]):
        start = tools.ones_like(flat[position].detach())
        rows.append(_gradients((flat[position],), inputs, (start,), create_graph, refused))
        if refused is not None and create_graph:
            _check_learning(rows[-1], CONSTANT_JACOBIAN)
    if not rows:
        return tuple(
            tools.zeros((*output.shape, *x.shape), output._data.dtype, output.device)
            for x in inputs
        )
    columns = zip(*rows, strict=True)
    return tuple(
        tools.stack(list(column)).view(tuple(output.shape) + tuple(x.shape))
        for column, x in zip(columns, inputs, strict=True)
    )


def _scalar(output: Any, function: str, strict: bool) -> Tensor:
    _, outputs = _as_tuple(output, OUTPUTS, function)
    if strict:
        _check_outputs(outputs)
    if len(outputs) != 1:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0]._data.size != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {function} should contain a single "
            "element"
        )
    return outputs[0].squeeze() if outputs[0]._data.ndim else outputs[0]  # type: ignore[attr-defined, no-any-return]


def _need_second_order(gradients: Any) -> None:
    for position, gradient in enumerate(gradients):
        if not gradient.requires_grad:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided "
                f"function with respect to input {position} is independent of the input. This is "
                "not allowed in strict mode. You should ensure that your function is twice "
                "differentiable and that the jacobian depends on the inputs (this would be "
                "violated by a linear function for example)."
            )


def hessian(func: Callable[..., Any], inputs: Tensors, create_graph: bool = False,
            strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode") -> Any:  # fmt: skip
    """The matrix of second derivatives of a function of one value.

    >>> import flambeau as torch
    >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    many, given = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def gradient(*parts: Tensor) -> Any:
        found = jacobian(lambda *xs: _scalar(func(*xs), "hessian", strict), parts, True)
        if strict:
            _need_second_order(found)
        return tuple(found)

    result = jacobian(gradient, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return result if many else result[0][0]


def _of_hessian(function: str, func: Callable[..., Any], inputs: Tensors, v: Tensors,
                create_graph: bool, strict: bool, product: Callable[..., tuple[Tensor, ...]],
                refused: Any) -> tuple[Tensors, Tensors]:  # fmt: skip
    """(output, the product of the Hessian and a vector), from first derivatives."""
    with enable_grad():
        many, given = _as_tuple(inputs, "inputs", function)
        vectors = _vectors(v, given, function, many)
        prepared = _prepare(given, create_graph)
        output = func(*prepared)
        scalar = _scalar(output, function, strict)
        start = tools.ones_like(scalar.detach())  # type: ignore[attr-defined]
        first = _gradients((scalar,), prepared, (start,), True, APART if strict else None)
        if strict:
            _need_second_order(first)
        found = product(first, prepared, vectors, create_graph, refused)
        if strict and create_graph:
            _check_learning(found, CONSTANT_HESSIAN)
    return _finish(output, create_graph), _finish(found if many else found[0], create_graph)


def vhp(func: Callable[..., Any], inputs: Tensors, v: Tensors = None, create_graph: bool = False,
        strict: bool = False) -> tuple[Tensors, Tensors]:  # fmt: skip
    """(output, vᵀ·H) for a function of one value.

    >>> import flambeau as torch
    >>> x, v = torch.tensor([1., 2.]), torch.ones(2)
    >>> torch.autograd.functional.vhp(lambda x: (x ** 3).sum(), x, v)
    (tensor(9.), tensor([ 6., 12.]))
    """

    refused = CONSTANT_JACOBIAN if strict else None
    return _of_hessian("vhp", func, inputs, v, create_graph, strict, _gradients, refused)


def hvp(func: Callable[..., Any], inputs: Tensors, v: Tensors = None, create_graph: bool = False,
        strict: bool = False) -> tuple[Tensors, Tensors]:  # fmt: skip
    """(output, H·v) for a function of one value.

    >>> import flambeau as torch
    >>> x, v = torch.tensor([1., 2.]), torch.ones(2)
    >>> torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), x, v)
    (tensor(9.), tensor([ 6., 12.]))
    """

    refused = (None, APART_FROM_ENTRY if strict else None)
    return _of_hessian("hvp", func, inputs, v, create_graph, strict, _forward_products, refused)
