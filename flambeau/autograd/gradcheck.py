"""`gradcheck` and `gradgradcheck`: formulas against central finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flambeau._tensor.sparse import SparseTensor
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.backward import grad
from flambeau.autograd.backward_checks import (
    GradcheckError,
    check_is_linear,
    check_perturbed,
    check_without_gradients,
)
from flambeau.autograd.grad_mode import enable_grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether `func`'s gradients by every input that requires grad are right.

    Each entry of each Jacobian is compared with (f(x + eps) - f(x - eps)) / (2 eps), within
    atol + rtol * |numerical|; complex inputs are perturbed in both parts. Use float64 inputs.
    `fast_mode` changes nothing, and batched gradients are found one by one here. Sparse inputs are
    perturbed in their entries, whatever `masked` says.
    """
    if check_forward_ad:
        raise NotImplementedError("check_forward_ad is not implemented in flambeau 0.1")
    given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    try:
        outputs, wanted = _check(func, tuple(given), eps, atol, rtol, nondet_tol)
        if outputs:
            check_is_linear(outputs, wanted)
        if outputs and check_undefined_grad:
            check_without_gradients(outputs, wanted)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func: Any, inputs: tuple[Any, ...], eps: float, atol: float, rtol: float,
           nondet_tol: float) -> tuple[list[Tensor], list[Tensor]]:  # fmt: skip
    """Compare numbers; the outputs that have gradients, and the inputs that want them."""
    wanted = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but "
                         "none of them have requires_grad=True.")  # fmt: skip
    _warn_precision(wanted)
    _check_overlap(inputs)
    outputs = _outputs(func(*inputs))
    if not any(output.requires_grad for output in outputs):
        _check_no_gradient(func, inputs, wanted, eps, atol, rtol)
        return [], wanted
    for output_index, output in enumerate(outputs):
        if not output.requires_grad:
            continue
        analytical = _analytical(output, wanted)
        again = _analytical(output, wanted)
        for input_index, x in enumerate(wanted):
            where = (output_index, input_index)
            numerical = _numerical(func, inputs, x, output_index, eps)
            is_complex = output._data.dtype.kind == "c"
            _compare(analytical[input_index], numerical, atol, rtol, where, is_complex)
            if not np.allclose(analytical[input_index], again[input_index], 0, nondet_tol,
                               equal_nan=True):  # fmt: skip
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    "grad_output multiple times gives different values, although analytical "
                    f"gradient matches numerical gradient. The tolerance for nondeterminism was "
                    f"{nondet_tol}."
                )
    return [output for output in outputs if output.requires_grad], wanted


def _check_overlap(inputs: tuple[Any, ...]) -> None:
    for position, x in enumerate(inputs):
        if not isinstance(x, Tensor) or isinstance(x, SparseTensor) or not x.requires_grad:
            continue
        sizes_and_strides = zip(x.shape, x.stride(), strict=True)
        if any(size > 1 and not stride for size, stride in sizes_and_strides):
            raise RuntimeError(
                f"The {position}th input has a dimension with stride 0. gradcheck only supports "
                "inputs that are non-overlapping to be able to compute the numerical gradients "
                "correctly. You should call .contiguous on the input before passing it to "
                "gradcheck."
            )


def _warn_precision(wanted: list[Tensor]) -> None:
    for position, x in enumerate(wanted):
        if _stored(x).dtype not in (np.float64, np.complex128):
            warnings.warn(
                f"Input #{position} requires gradient and is not a double precision floating point "
                "or complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                UserWarning,
                stacklevel=4,
            )


def _outputs(value: Any) -> list[Tensor]:
    items = value if isinstance(value, (tuple, list)) else (value,)
    return [item for item in items if isinstance(item, Tensor)]


def _entries(data: np.ndarray) -> Iterator[tuple[tuple[int, ...], complex]]:
    """Every element, and for complex types both of its parts."""
    for index in np.ndindex(data.shape):
        yield index, 1.0
        if data.dtype.kind == "c":
            yield index, 1j


def _analytical(output: Tensor, inputs: list[Tensor]) -> list[np.ndarray]:
    """Jacobians by backward: rows are real output parts, columns real input parts."""
    rows: list[list[np.ndarray]] = [[] for _ in inputs]
    for index, part in _entries(output._data):
        start = np.zeros(output._data.shape, output._data.dtype)
        start[index] = part
        found = grad(output, inputs, wrap(start), retain_graph=True, allow_unused=True)
        for row, x, g in zip(rows, inputs, found, strict=True):
            data = np.zeros_like(_stored(x)) if g is None else _gradient(g, x)
            row.append(_real_parts(data))
    return [np.stack(row) if row else np.zeros((0, 0)) for row in rows]


def _stored(x: Any) -> Any:
    """The numbers of a tensor; of a sparse one, its entries."""
    return x._entries._data if isinstance(x, SparseTensor) else x._data


def _gradient(grad: Any, x: Any) -> Any:
    """A gradient in the form of the numbers that it belongs to."""
    if isinstance(grad, SparseTensor) and not isinstance(x, SparseTensor):
        return grad.to_dense()._data  # type: ignore[attr-defined]
    return _stored(grad)


def _real_parts(data: np.ndarray) -> np.ndarray:
    flat = np.ascontiguousarray(data).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _numerical(func: Any, inputs: tuple[Any, ...], x: Tensor, output_index: int,
               eps: float) -> np.ndarray:  # fmt: skip
    """The same Jacobian by central differences; `x` is changed in place and put back."""
    columns = []
    data = _stored(x)
    for index, part in _entries(data):
        before = data[index]
        step = eps * (part if data.dtype.kind == "c" else 1)
        try:
            data[index] = before + step
            above = _outputs(func(*inputs))
            value = _values(above[output_index])
            data[index] = before - step
            below = _outputs(func(*inputs))
            check_perturbed(below, above, index, eps)
            difference = value - _values(below[output_index])
        finally:
            data[index] = before
        columns.append(difference / (2 * eps))
    return np.stack(columns, axis=1) if columns else np.zeros((0, 0))


def _values(output: Tensor) -> np.ndarray:
    """A copy of an output's values: it may be a view of the input that is changed."""
    return _real_parts(output._data).copy()


PARTS = (
    ("While considering the imaginary part of complex outputs only, ", slice(1, None, 2)),
    ("While considering the real part of complex outputs only, ", slice(0, None, 2)),
)


def _compare(analytical: np.ndarray, numerical: np.ndarray, atol: float, rtol: float,
             where: tuple[int, int], is_complex: bool) -> None:  # fmt: skip
    if analytical.size == 0 or np.allclose(analytical, numerical, rtol, atol):
        return
    prefix = ""
    for text, rows in PARTS if is_complex else ():
        if not np.allclose(analytical[rows], numerical[rows], rtol, atol):
            prefix, analytical, numerical = text, analytical[rows], numerical[rows]
            break
    raise GradcheckError(
        f"{prefix}Jacobian mismatch for output {where[0]} with respect to input {where[1]},\n"
        f"numerical:{wrap(numerical.T.copy())}\nanalytical:{wrap(analytical.T.copy())}\n"
    )


def _check_no_gradient(func: Any, inputs: Any, wanted: list[Tensor], eps: float, atol: float,
                       rtol: float) -> None:  # fmt: skip
    for x in wanted:
        for index, output in enumerate(_outputs(func(*inputs))):
            if output._data.dtype.kind not in "fc":
                continue
            numerical = _numerical(func, inputs, x, index, eps)
            if not np.allclose(numerical, 0, rtol, atol):
                raise GradcheckError("Numerical gradient for function expected to be zero")


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    **options: Any,
) -> bool:
    """`gradcheck` of the gradients themselves, by the inputs and by the output gradients."""
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if grad_outputs is None:
        starts = tuple(_random_start(o) for o in _outputs(func(*given)) if o.requires_grad)
    else:
        starts = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,)
    count = len(starts)

    @enable_grad()
    def gradients(*args: Any) -> Any:
        xs, gs = args[: len(args) - count], args[len(args) - count :]
        outputs = [o for o in _outputs(func(*xs)) if o.requires_grad]
        wanted = [x for x in xs if isinstance(x, Tensor) and x.requires_grad]
        found = grad(outputs, wanted, gs, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(gradients, (*given, *starts), eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception, nondet_tol=nondet_tol,
                     check_undefined_grad=check_undefined_grad)  # fmt: skip


def _random_start(output: Tensor) -> Tensor:
    generator = np.random.default_rng(0)
    values: Any = generator.random(output._data.shape) + 0.1
    if output._data.dtype.kind == "c":
        values = values + 1j * generator.random(output._data.shape)
    result = wrap(np.asarray(values, output._data.dtype))
    result._requires_grad = True
    return result
