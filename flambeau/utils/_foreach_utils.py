"""`torch.utils._foreach_utils`: lists of tensors, sorted by device and dtype."""

from __future__ import annotations

from typing import TypeAlias

from flambeau._core.device import device
from flambeau._core.dtype import dtype
from flambeau._core.missing import lazily
from flambeau._tensor.tensor import Tensor

Lists: TypeAlias = list[list[Tensor | None]]
Groups: TypeAlias = dict[tuple[device, dtype], tuple[Lists, list[int]]]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Kinds of devices on which an optimizer's step may be one kernel."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Kinds of devices on which many tensors go through one kernel, beside the CPU."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _group_tensors_by_device_and_dtype(tensorlistlist: Lists, with_indices: bool = False) -> Groups:
    """Lists of equal lengths, split by the devices and dtypes of the first one's tensors.

    An empty list stays empty in each group. `with_indices`: places in the given lists, too.

    Raises:
        RuntimeError: there are no lists or no tensors, lengths differ, or the first list has None.
    """
    _check(tensorlistlist)
    first = tensorlistlist[0]
    places: dict[tuple[device, dtype], list[int]] = {}
    for index, tensor in enumerate(first):
        assert tensor is not None  # checked
        places.setdefault((tensor.device, tensor.dtype), []).append(index)
    return {
        key: (
            [[each[index] for index in indices] if each else [] for each in tensorlistlist],
            indices if with_indices else [],
        )
        for key, indices in places.items()
    }


def _check(lists: Lists) -> None:
    if not lists or not lists[0]:
        what = "nested_tensorlist[0]" if lists else "nested_tensorlist"
        raise RuntimeError(f"Expected !{what}.empty() to be true, but got false.")
    if any(len(each) not in (0, len(lists[0])) for each in lists):
        raise RuntimeError(f"The lists have {[len(each) for each in lists]} tensors: not as many")
    for index, tensor in enumerate(lists[0]):
        if tensor is None:
            raise RuntimeError(
                "Tensors of the first list of nested Tensor lists are supposed to be defined but "
                f"the {index}-th Tensor is not."
            )


def _device_has_foreach_support(place: device) -> bool:
    """Whether many tensors on this device go through one kernel, or at least one call."""
    return place.type in [*_get_foreach_kernels_supported_devices(), "cpu"]


def _has_foreach_support(tensors: list[Tensor | None], device: device) -> bool:
    """The same, for these tensors; None among them is passed over."""
    return _device_has_foreach_support(device) and all(
        tensor is None or isinstance(tensor, Tensor) for tensor in tensors
    )


__getattr__ = lazily(__name__)
