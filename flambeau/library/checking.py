"""`torch.library.opcheck`: whether an operator does what it was registered to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._ops.table.outputs import tensors_in
from flambeau._tensor.tensor import Tensor, storage_of
from flambeau.autograd.backward import grad
from flambeau.library import overloads
from flambeau.library.libraries import operator_of
from flambeau.utils._pytree import tree_map

TESTS = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_dynamic",
)


class OpCheckError(Exception):
    """What `opcheck` raises."""


def opcheck(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *,
            test_utils: str | Sequence[str] = TESTS, raise_exception: bool = True,
            atol: float | None = None, rtol: float | None = None) -> dict[str, str]:  # fmt: skip
    """Check an operator with given arguments.

    `test_schema`: it writes to and shares memory with no other arguments than its schema says.
    `test_autograd_registration`: gradients are registered as an operator's, not recorded within.
    `test_faketensor`: its fake kernel gives results of the shapes and types of the real one's.
    `test_aot_dispatch_dynamic`: gradients are the same whether it runs once or again.

    Returns:
        For each test "SUCCESS", or with `raise_exception=False` the exception.

    Raises:
        OpCheckError: a test failed.
    """
    overload = getattr(op, "_opoverload", op)
    if isinstance(overload, overloads.OpOverloadPacket):
        overload = overload.default
    wanted = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    unknown = [name for name in wanted if name not in CHECKS]
    if unknown:
        raise ValueError(f"opcheck: there are no tests {', '.join(unknown)}; there are "
                         f"{', '.join(CHECKS)}")  # fmt: skip
    close = {"atol": 1e-5 if atol is None else atol, "rtol": 1.3e-6 if rtol is None else rtol}
    found: dict[str, Any] = {}
    for name in wanted:
        try:
            CHECKS[name](overload, args, kwargs or {}, close)
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error} (scroll up for "
                                   "stack trace)") from error  # fmt: skip
            found[name] = error
    return found


def _copies(value: Any) -> Any:
    """The arguments with memory of their own."""

    def copy(leaf: Any) -> Any:
        if not is_tensor(leaf):
            return leaf
        return leaf.detach().clone().requires_grad_(leaf.requires_grad)

    return tree_map(copy, value)


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor."""
    return isinstance(value, Tensor)


def _numbers(values: Any) -> list[np.ndarray]:
    tensors: list[Any] = tensors_in(values)
    return [tensor.detach().cpu()._data.copy() for tensor in tensors]


def _check_schema(overload: Any, args: Any, kwargs: dict[str, Any], close: Any) -> None:
    given = overload.binder.bind(_copies(args), _copies(kwargs))
    before = [_numbers([value]) for value in given]
    result = overload(*given)
    results = tensors_in([result])
    for parameter, value, kept in zip(overload._schema.arguments, given, before, strict=True):
        same = all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
                   for a, b in zip(kept, _numbers([value]), strict=True))  # fmt: skip
        if not (same or parameter.written):
            raise RuntimeError(
                f"Argument {parameter.name} is not defined as mutable but was mutated"
            )
        memory = {id(storage_of(tensor)) for tensor in tensors_in([value])}
        shared = any(id(storage_of(tensor)) in memory for tensor in results)
        if shared and not parameter.alias:
            raise RuntimeError(
                f"Argument {parameter.name} is not defined to alias output but was aliasing"
            )


def _check_registration(overload: Any, args: Any, kwargs: dict[str, Any], close: Any) -> None:
    if not any(tensor.requires_grad for tensor in tensors_in((*args, *kwargs.values()))):
        return
    operator = operator_of(overload)
    keys = ("Autograd", "AutogradCPU", "AutogradCUDA", "CompositeImplicitAutograd")
    if operator.backward or operator.is_custom or any(key in operator.kernels for key in keys):
        return
    raise AssertionError(
        "Operator has no autograd registered: please use register_autograd, or a kernel for the "
        "key Autograd, so that its gradients are its own, not those of what its kernel calls."
    )


def _check_fake(overload: Any, args: Any, kwargs: dict[str, Any], close: Any) -> None:
    real: list[Any] = tensors_in([overload(*_copies(args), **_copies(kwargs))])
    fake: list[Any] = tensors_in([overload(*_on_meta(args), **_on_meta(kwargs))])
    if len(real) != len(fake):
        raise AssertionError(f"the fake kernel gives {len(fake)} tensors, the real one {len(real)}")
    for one, other in zip(real, fake, strict=True):
        for fact in ("shape", "dtype"):
            if getattr(one, fact) != getattr(other, fact):
                raise AssertionError(
                    f"the fake kernel gives {fact} {getattr(other, fact)}, the real one "
                    f"{getattr(one, fact)}"
                )
        if one.stride() != other.stride():
            raise AssertionError(
                f"the fake kernel gives strides {other.stride()}, the real one {one.stride()}"
            )


def _on_meta(value: Any) -> Any:
    def moved(leaf: Any) -> Any:
        if not is_tensor(leaf):
            return leaf
        return leaf.detach().to("meta").requires_grad_(leaf.requires_grad)

    return tree_map(moved, value)


def _check_gradients(overload: Any, args: Any, kwargs: dict[str, Any], close: Any) -> None:
    operator = operator_of(overload)
    if operator.schema.is_mutable:
        return
    first, second = (_outcome(overload, _copies(args), _copies(kwargs)) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        if not np.allclose(one, other, **close, equal_nan=True):
            raise AssertionError("results or gradients differ between two calls")


def _outcome(overload: Any, args: Any, kwargs: dict[str, Any]) -> list[np.ndarray]:
    """The results and the gradients of their sum."""
    leaves = [t for t in tensors_in((*args, *kwargs.values())) if t.requires_grad]
    results: list[Any] = tensors_in([overload(*args, **kwargs)])
    found = _numbers(results)
    sums = [result.sum() for result in results if result.requires_grad]
    if leaves and sums:
        total = sums[0]
        for one in sums[1:]:
            total = total + one
        found += _numbers([g for g in grad(total, leaves, allow_unused=True) if g is not None])
    return found


CHECKS: dict[str, Callable[..., None]] = {
    "test_schema": _check_schema,
    "test_autograd_registration": _check_registration,
    "test_faketensor": _check_fake,
    "test_aot_dispatch_dynamic": _check_gradients,
}
