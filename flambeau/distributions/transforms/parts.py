"""Transforms made of transforms: one after another, side by side, of many dims at once."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from math import prod
from typing import Any

from flambeau._core.layout import Size
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.transforms.base import FEW_DIMS, Transform
from flambeau.distributions.utils import _sum_rightmost


class ComposeTransform(Transform):
    """One transform after another."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment]

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        if not self.parts:
            return constraints.real
        needed = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            grown = part.domain.event_dim - part.codomain.event_dim
            needed = max(needed + grown, part.domain.event_dim)
        return _of_event_dim(self.parts[0].domain, needed)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        if not self.parts:
            return constraints.real
        needed = self.parts[0].domain.event_dim
        for part in self.parts:
            grown = part.codomain.event_dim - part.domain.event_dim
            needed = max(needed + grown, part.codomain.event_dim)
        return _of_event_dim(self.parts[-1].codomain, needed)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return prod((part.sign for part in self.parts), start=1)

    @property
    def inv(self) -> Transform:
        known = None if self._inv is None else self._inv()
        return self._turned() if known is None else known

    def _turned(self) -> Transform:
        """The way back, as long as somebody keeps it."""
        inverse = ComposeTransform([part.inv for part in self.parts[::-1]])
        self._inv, inverse._inv = weakref.ref(inverse), weakref.ref(self)
        return inverse

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return ops.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        event_dim = self.domain.event_dim
        total: Any = 0
        for part, before, after in zip(self.parts, values, values[1:], strict=False):
            slope = part.log_abs_det_jacobian(before, after)
            total = total + _sum_rightmost(slope, event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        inside = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {inside}\n)"


def _of_event_dim(constraint: constraints.Constraint, event_dim: int) -> constraints.Constraint:
    missing = event_dim - constraint.event_dim
    return constraints.independent(constraint, missing) if missing > 0 else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last batch dims count as dims of the event: Jacobians are summed."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        ndims = self.reinterpreted_batch_ndims
        return IndependentTransform(self.base_transform, ndims, cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        base = self.base_transform.domain
        return constraints.independent(base, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        base = self.base_transform.codomain
        return constraints.independent(base, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        if x.dim() < self.domain.event_dim:
            raise ValueError(FEW_DIMS)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        if y.dim() < self.codomain.event_dim:
            raise ValueError(FEW_DIMS)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slope = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(slope, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        inside = f"{self.base_transform!r}, {self.reinterpreted_batch_ndims}"
        return f"{type(self).__name__}({inside})"


class ReshapeTransform(Transform):
    """Events of one shape into events of another, of as many numbers."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        if prod(in_shape) != prod(out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(_batch_of(x, self.in_shape) + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(_batch_of(y, self.out_shape) + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(_batch_of(x, self.in_shape))

    def forward_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.out_shape, self.in_shape)


def _batch_of(value: Tensor, event: Size) -> Size:
    return value.shape[: value.dim() - len(event)]


def _reshaped(shape: Any, old: Size, new: Size) -> Any:
    if len(shape) < len(old):
        raise ValueError(FEW_DIMS)
    start = len(shape) - len(old)
    if shape[start:] != old:
        raise ValueError(f"Shape mismatch: expected {shape[start:]} but got {old}")
    return shape[:start] + new


class _Parts(Transform):
    """Transforms side by side along a dim."""

    transforms: list[Transform]

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        super().__init__(cache_size)
        self.dim = dim
        self.transforms = [_as_part(part, cache_size) for part in tseq]

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.transforms)

    def _check(self, value: Tensor, name: str, wanted: int, what: str) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for tensor with {value.dim()} dimensions"
            )
        size = value.size(self.dim)
        if size != wanted:
            raise AssertionError(f"{name}.size({self.dim}) = {size} must equal {what} {wanted}")


def _as_part(part: Any, cache_size: int) -> Transform:
    if not isinstance(part, Transform):
        raise AssertionError("All elements of tseq must be Transform instances")
    return part.with_cache(cache_size) if cache_size else part


class CatTransform(_Parts):
    """Each transform for a piece of a given length along a dim."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            sizes = f"({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            raise AssertionError(f"lengths {sizes}")

    @property
    def event_dim(self) -> int:
        return max(part.event_dim for part in self.transforms)

    @property
    def length(self) -> int:
        """The size along the dim."""
        return sum(self.lengths)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _pieces(self, value: Tensor, name: str) -> tuple[Tensor, ...]:
        self._check(value, name, self.length, "length")
        return value.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        pieces = zip(self.transforms, self._pieces(x, "x"), strict=True)
        return ops.cat([part(piece) for part, piece in pieces], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = zip(self.transforms, self._pieces(y, "y"), strict=True)
        return ops.cat([part.inv(piece) for part, piece in pieces], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self._pieces(x, "x"), self._pieces(y, "y"), strict=True)
        slopes = []
        for part, (before, after) in zip(self.transforms, pairs, strict=True):
            slope = part.log_abs_det_jacobian(before, after)
            slopes.append(_sum_rightmost(slope, self.event_dim - part.event_dim))
        from_end = self.dim - x.dim() if self.dim >= 0 else self.dim
        from_end += self.event_dim
        return ops.cat(slopes, from_end) if from_end < 0 else sum(slopes)


class StackTransform(_Parts):
    """Each transform for a slice along a dim."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.stack([part.domain for part in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.stack([part.codomain for part in self.transforms], self.dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, value: Tensor, name: str) -> tuple[Tensor, ...]:
        self._check(value, name, len(self.transforms), "len(transforms)")
        return value.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        slices = zip(self.transforms, self._slices(x, "x"), strict=True)
        return ops.stack([part(piece) for part, piece in slices], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        slices = zip(self.transforms, self._slices(y, "y"), strict=True)
        return ops.stack([part.inv(piece) for part, piece in slices], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self._slices(x, "x"), self._slices(y, "y"), strict=True)
        slopes = [
            part.log_abs_det_jacobian(before, after)
            for part, (before, after) in zip(self.transforms, pairs, strict=True)
        ]
        return ops.stack(slopes, self.dim)
