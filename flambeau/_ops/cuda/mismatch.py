"""Tensors of several devices in one call: who may mix them, and torch's errors for others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flambeau._ops.table.op import Op
from flambeau._tensor.tensor import Tensor

LINEAR = {"bias": "self", "input": "mat1", "weight": "mat2"}

Asked = Callable[[Tensor], str]


def check(op: Op, values: tuple[Any, ...], place_of: Asked) -> None:
    """Raise torch's RuntimeError where tensors of several devices may not meet."""
    given = list(_named(op, values))
    places = [place_of(tensor) for _, tensor in given]
    if len(set(places)) < 2 or op.devices == "any":
        return
    if op.devices in WORDED:
        WORDED[op.devices](dict(given), place_of)
    if op.name in ("index", "index_put"):
        _check_indices(op, values, place_of)
    elif op.name.startswith(("conv", "_convolution")):
        _check_weights(given, places)
    elif op.kind == "pointwise" or op.devices in ("numbers", "mask"):
        _check_iterated(given, places)
    elif op.kind != "composite" or op.backward or op.devices == "asked":
        _check_all(op, given, place_of)


def _check_attention(given: dict[str, Tensor], place_of: Asked) -> None:
    query, key, value = (place_of(given[name]) for name in ("query", "key", "value"))
    if not query == key == value:
        raise RuntimeError(
            f"Expected query, key, and value to have the same device type, but got query.device: "
            f"{query} key.device: {key} and value.device: {value} instead."
        )


def _check_mask(given: dict[str, Tensor], place_of: Asked) -> None:
    place, mask = place_of(given["self"]), place_of(given["mask"])
    if place != mask:
        raise RuntimeError("expected self and mask to be on the same device, but got mask on "
                           f"{mask} and self on {place}")  # fmt: skip


def _check_first_factor(given: dict[str, Tensor], place_of: Asked) -> None:
    factor = given["tensor1"]
    if place_of(factor) == "cpu" and factor.ndim == 0:
        raise RuntimeError(
            "CPU Scalar support for tensor1 argument is not supported when calling addcmul on CUDA "
            "tensors. However, CPU Scalar support for tensor2 is supported, please swap your "
            "tensor1 and tensor2 terms."
        )


def _check_bounds(given: dict[str, Tensor], place_of: Asked) -> None:
    common = place_of(given["self"])
    for name in ("min", "max"):
        if name in given and place_of(given[name]) != common:
            raise _apart(name, place_of(given[name]), common, "clamp_Tensor")


WORDED: dict[str, Callable[[dict[str, Tensor], Asked], None]] = {
    "attention": _check_attention, "mask": _check_mask, "first factor": _check_first_factor,
    "bounds": _check_bounds,
}  # fmt: skip
"""What rows may say (`devices=`) whose tensors are looked at in words of their own."""


def _named(op: Op, values: tuple[Any, ...]) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a call with the names of their parameters."""
    for argument, value in zip(op.schema.arguments, values, strict=False):
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, Tensor):
                yield argument.name, item


def _check_iterated(given: list[tuple[str, Tensor]], places: list[str]) -> None:
    """Element by element: 0-dim CPU tensors are numbers, all others lie on one device."""
    common = next(place for place in places if place != "cpu")
    for (_, tensor), place in zip(given, places, strict=True):
        if place != common and not (place == "cpu" and tensor.ndim == 0):
            raise RuntimeError("Expected all tensors to be on the same device, but found at least "
                               f"two devices, {common} and {place}!")  # fmt: skip


def _check_all(op: Op, given: list[tuple[str, Tensor]], place_of: Asked) -> None:
    """The first tensor says the device, in the order of the kernel that PyTorch calls."""
    method = op.device_check or op.full_name.replace(".", "_")
    if op.name in ("linear", "_linear", "_linear_nd", "_linear_nd_no_bias"):
        given = sorted(
            ((LINEAR[name], tensor) for name, tensor in given),
            key=lambda pair: ("self", "mat1", "mat2").index(pair[0]),
        )
        method = "addmm" if len(given) == 3 else "mm"
        if method == "mm":
            given = [("self", given[0][1]), given[1]]
    elif op.name == "matmul":
        given = [(name, tensor) for name, (_, tensor) in zip(("self", "mat2"), given, strict=True)]
    elif op.name == "embedding":
        given = [("self" if name == "weight" else "index", tensor) for name, tensor in given]
    common = place_of(given[0][1])
    for name, tensor in given:
        place = place_of(tensor)
        if place != common:
            raise _apart(name, place, common, method)


def _apart(name: str, place: str, common: str, method: str) -> RuntimeError:
    return RuntimeError(
        f"Expected all tensors to be on the same device, but got {name} is on {place}, "
        f"different from other tensors on {common} (when checking argument in method "
        f"wrapper_CUDA_{method})"
    )


OR_ELSE = " or input should be a MKLDNN tensor and weight is a dense tensor"


def _check_weights(given: list[tuple[str, Tensor]], places: list[str]) -> None:
    """Convolutions name the types of input and weight."""
    kinds = [tensor.type() for _, tensor in given]  # type: ignore[attr-defined]
    for (name, _), kind, place in zip(given[1:], kinds[1:], places[1:], strict=True):
        if place != places[0]:
            more = "" if name != "weight" or places[0] != "cpu" else OR_ELSE
            raise RuntimeError(f"Input type ({kinds[0]}) and {name} type ({kind}) should be the "
                               f"same{more}")  # fmt: skip


def _check_indices(op: Op, values: tuple[Any, ...], place_of: Asked) -> None:
    """Indices lie on the CPU or where the tensor lies; values to write may be 0-dim CPU tensors."""
    target, indices = values[0], values[1]
    place = place_of(target)
    for index in indices:
        if index is not None and place_of(index) not in ("cpu", place):
            raise RuntimeError(f"indices should be either on {place} or on the same device as the "
                               f"indexed tensor ({place})")  # fmt: skip
    source = place_of(values[2]) if op.name == "index_put" else place
    if source != place:
        _check_iterated([("self", target), ("values", values[2])], [place, source])
