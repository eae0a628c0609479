"""`gradcheck` and `gradgradcheck`: formulas against central finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from flambeau._core.layout import strided
from flambeau._tensor.sparse import SparseTensor
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.backward import grad
from flambeau.autograd.backward_checks import (
    GradcheckError,
    check_is_linear,
    check_without_gradients,
)
from flambeau.autograd.batched_checks import check_batched
from flambeau.autograd.deprecated_jacobians import (
    get_analytical_jacobian,
    get_numerical_jacobian,
    get_numerical_jacobian_wrt_specific_input,
)
from flambeau.autograd.forward_check import (
    check_batched_forward,
    check_forward,
    check_without_tangents,
)
from flambeau.autograd.grad_mode import enable_grad
from flambeau.autograd.graph import tools
from flambeau.autograd.jacobians import (
    analytical,
    analytical_along,
    directions,
    numerical,
    numerical_along,
    outputs_of,
    stored,
)

__all__ = [
    "GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input", "gradcheck", "gradgradcheck",
]  # fmt: skip


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
    With `fast_mode`, each Jacobian is seen from one random direction only, by one backward pass and
    two calls of `func`; where that differs, the whole of it is compared. Sparse inputs are
    perturbed in their entries if `masked`, else at every place. `check_undefined_grad`: backward
    does without gradients; `check_batched_grad`: it could run for several at once;
    `check_forward_ad`: forward mode gives the same numbers, of inputs without a tangent too if
    `check_undefined_grad`, and for two directions at once if `check_batched_forward_grad`.

    >>> import flambeau as torch
    >>> x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(torch.sin, (x,))
    True
    """
    require_one(check_forward_ad=check_forward_ad, check_backward_ad=check_backward_ad)
    require(check_backward_ad or not check_batched_grad, "check_batched_grad", "check_backward_ad")
    require(check_forward_ad or not check_batched_forward_grad, "check_batched_forward_grad",
            "check_forward_ad")  # fmt: skip
    given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    try:
        limits = Limits(eps, atol, rtol, nondet_tol, bool(masked))
        outputs, wanted = _check(func, tuple(given), limits, fast_mode, check_backward_ad)
        if check_forward_ad and (outputs or not check_backward_ad):
            for message in check_forward(func, tuple(given), wanted, limits):
                raise GradcheckError(message)
            if check_undefined_grad:
                check_without_tangents(func, tuple(given), wanted)
            if check_batched_forward_grad:
                check_batched_forward(func, tuple(given), wanted)
        if outputs and check_batched_grad:
            check_batched(outputs, wanted)
        if outputs:
            check_is_linear(outputs, wanted)
        if outputs and check_undefined_grad:
            check_without_gradients(outputs, wanted)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def require_one(**checks: bool) -> None:
    """One of two checks is asked for; AssertionError otherwise."""
    if not any(checks.values()):
        raise AssertionError(f"Expected at least one of {' or '.join(checks)} to be True")


def require(holds: bool, option: str, of: str) -> None:
    """An option belongs to a check that is asked for; AssertionError otherwise."""
    if not holds:
        raise AssertionError(f"Setting {option}=True requires {of} to be True")


SPARSE_OUTPUT = (
    "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the "
    "output of fn for gradcheck."
)


@dataclass(frozen=True)
class Limits:
    """How inputs are perturbed, and what may differ."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    masked: bool


def _check(func: Any, inputs: tuple[Any, ...], limits: Limits, fast: bool,
           backward: bool) -> tuple[list[Tensor], list[Tensor]]:  # fmt: skip
    """Compare numbers; the outputs that have gradients, and the inputs that want them."""
    wanted = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but "
                         "none of them have requires_grad=True.")  # fmt: skip
    _warn_precision(wanted)
    _check_overlap(inputs)
    compare = _compare_along if fast else _compare_whole
    outputs = outputs_of(func(*inputs))
    if any(output.layout is not strided for output in outputs):
        raise ValueError(SPARSE_OUTPUT)
    if not any(output.requires_grad for output in outputs):
        _check_no_gradient(func, inputs, wanted, limits)
        return [], wanted
    for position, output in enumerate(outputs if backward else ()):
        if output.requires_grad:
            compare(func, inputs, (output, position), wanted, limits)
    return [output for output in outputs if output.requires_grad and backward], wanted


def _compare_whole(func: Any, inputs: tuple[Any, ...], about: tuple[Tensor, int],
                   wanted: list[Tensor], limits: Limits) -> None:  # fmt: skip
    """Each entry of the Jacobians of an output."""
    output, position = about
    found, again = analytical(output, wanted), analytical(output, wanted)
    for index, x in enumerate(wanted):
        differences = numerical(func, inputs, x, position, limits.eps, limits.masked)
        is_complex = output._data.dtype.kind in "cW"
        _compare(found[index], differences, limits, (position, index), is_complex)
        if not np.allclose(found[index], again[index], 0, limits.nondet_tol, equal_nan=True):
            raise GradcheckError(NOT_REENTRANT.format(limits.nondet_tol))


NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
    "times gives different values, although analytical gradient matches numerical gradient."
    "The tolerance for nondeterminism was {}."
)


def _compare_along(func: Any, inputs: tuple[Any, ...], about: tuple[Tensor, int],
                   wanted: list[Tensor], limits: Limits) -> None:  # fmt: skip
    """The Jacobians of an output, each seen from one direction."""
    output, position = about
    parts = PARTS if output._data.dtype.kind in "cW" else (("", slice(None)),)
    for text, rows in parts:
        for index, x in enumerate(wanted):
            along = directions(output, x, rows)
            found, again = (analytical_along(output, x, along) for _ in range(2))
            difference = numerical_along(func, inputs, x, position, limits.eps, along)
            # an error of atol in each entry adds up to this
            allowed = limits.atol * float(np.abs(along[0]).sum() * np.abs(along[1]).sum())
            if not np.allclose(found, difference, limits.rtol, allowed):
                _explain(func, inputs, about, (x, index), limits, (text, difference, found))
            if not np.allclose(found, again, 0, limits.nondet_tol, equal_nan=True):
                raise GradcheckError(NOT_REENTRANT.format(limits.nondet_tol))


FAST = (
    "{}Jacobian mismatch for output {} with respect to input {},\nnumerical:{}\nanalytical:{}\n\n"
    "The above quantities relating the numerical and analytical jacobians are computed \n"
    "in fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background \n"
    "about fast mode. Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
    "Numerical:\n {}\nAnalytical:\n{}\n\n"
    "The max per-element difference (slow mode) is: {}.\n"
)


def _explain(func: Any, inputs: tuple[Any, ...], about: tuple[Tensor, int], of: tuple[Tensor, int],
             limits: Limits, seen: tuple[str, float, float]) -> NoReturn:  # fmt: skip
    """Raise with the whole Jacobians that differ from one direction."""
    (output, position), (x, index) = about, of
    (found,) = analytical(output, [x])
    differences = numerical(func, inputs, x, position, limits.eps, limits.masked)
    largest = float(np.abs(found - differences).max(initial=0.0))
    whole = (wrap(differences.T.copy()), wrap(found.T.copy()))
    text, *sums = seen
    raise GradcheckError(FAST.format(text, position, index, *sums, *whole, largest))


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
        if stored(x).dtype not in (np.float64, np.complex128):
            warnings.warn(
                f"Input #{position} requires gradient and is not a double precision floating point "
                "or complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                UserWarning,
                stacklevel=4,
            )


PARTS = (
    ("While considering the imaginary part of complex outputs only, ", slice(1, None, 2)),
    ("While considering the real part of complex outputs only, ", slice(0, None, 2)),
)


def _compare(found: np.ndarray, wanted: np.ndarray, limits: Limits,
             where: tuple[int, int], is_complex: bool) -> None:  # fmt: skip
    if found.size == 0 or np.allclose(found, wanted, limits.rtol, limits.atol):
        return
    prefix = ""
    for text, rows in PARTS if is_complex else ():
        if not np.allclose(found[rows], wanted[rows], limits.rtol, limits.atol):
            prefix, found, wanted = text, found[rows], wanted[rows]
            break
    raise GradcheckError(
        f"{prefix}Jacobian mismatch for output {where[0]} with respect to input {where[1]},\n"
        f"numerical:{wrap(wanted.T.copy())}\nanalytical:{wrap(found.T.copy())}\n"
    )


def _check_no_gradient(func: Any, inputs: Any, wanted: list[Tensor],
                       limits: Limits) -> None:  # fmt: skip
    for x in wanted:
        for index, output in enumerate(outputs_of(func(*inputs))):
            if output._data.dtype.kind not in "fc":
                continue
            differences = numerical(func, inputs, x, index, limits.eps, limits.masked)
            if not np.allclose(differences, 0, limits.rtol, limits.atol):
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
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """`gradcheck` of the gradients themselves, by the inputs and by the output gradients.

    `gen_non_contig_grad_outputs`: output gradients that are made here have gaps between elements.

    >>> import flambeau as torch
    >>> x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(lambda x: x ** 3, x)
    True
    """
    require_one(check_fwd_over_rev=check_fwd_over_rev, check_rev_over_rev=check_rev_over_rev)
    for name, asked in (("check_undefined_grad", check_undefined_grad),
                        ("check_batched_grad", check_batched_grad)):  # fmt: skip
        require(check_rev_over_rev or not asked, name, "check_rev_over_rev")
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if grad_outputs is None:
        outputs = [o for o in outputs_of(func(*given)) if o.requires_grad]
        starts = tuple(_random_start(o, gen_non_contig_grad_outputs) for o in outputs)
    else:
        starts = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,)
    count = len(starts)

    @enable_grad()
    def gradients(*args: Any) -> Any:
        xs, gs = args[: len(args) - count], args[len(args) - count :]
        for x, one in zip(xs, given, strict=True):  # forward mode hands on what does not learn
            if isinstance(one, Tensor) and one.requires_grad and not x.requires_grad:
                x.requires_grad_()
        outputs = [o for o in outputs_of(func(*xs)) if o.requires_grad]
        wanted = [x for x in xs if isinstance(x, Tensor) and x.requires_grad]
        found = grad(outputs, wanted, gs, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(gradients, (*given, *starts), eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception, nondet_tol=nondet_tol,
                     check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
                     check_batched_grad=check_batched_grad, fast_mode=fast_mode,
                     check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
                     masked=masked)  # fmt: skip


def _random_start(output: Tensor, with_gaps: bool) -> Tensor:
    """Numbers of the global generator, as many as PyTorch takes of it."""
    start: Any = output.detach()
    with_gaps = with_gaps and start.numel() > 1
    shape = (*start.shape[:-1], 2 * start.shape[-1]) if with_gaps else start.shape
    start = start.new_empty(shape)
    (tools.view_as_real(start) if start.is_complex() else start).uniform_(-1, 1)
    return start[..., 1::2].requires_grad_() if with_gaps else start.requires_grad_()  # type: ignore[no-any-return]
