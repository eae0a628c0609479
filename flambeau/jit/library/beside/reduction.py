"""`torch.nn._reduction`: the numbers that operators know reductions by."""

from __future__ import annotations


def get_enum(reduction: str) -> int:
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead."
        )
        reduction = "mean"
    if reduction != "none" and reduction != "mean" and reduction != "sum":
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return 0 if reduction == "none" else 1 if reduction == "mean" else 2


def legacy_get_string(size_average: Optional[bool], reduce: Optional[bool],
                      emit_warning: bool = True) -> str:  # fmt: skip
    name = "none"
    if reduce is None or reduce:
        name = "mean" if size_average is None or size_average else "sum"
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, "
            f"please use reduction='{name}' instead."
        )
    return name


def legacy_get_enum(size_average: Optional[bool], reduce: Optional[bool],
                    emit_warning: bool = True) -> int:  # fmt: skip
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def _name_of(reduction: str, size_average: Optional[bool], reduce: Optional[bool]) -> str:
    if size_average is None and reduce is None:
        return reduction
    return legacy_get_string(size_average, reduce)


def _number_of(reduction: str, size_average: Optional[bool], reduce: Optional[bool]) -> int:
    return get_enum(_name_of(reduction, size_average, reduce))
