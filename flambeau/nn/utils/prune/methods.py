"""The ways of pruning: at random, by magnitude, by slices, by a given mask."""

from __future__ import annotations

import numbers
from typing import Any

from flambeau._core.layout import contiguous_format
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn.module import Module
from flambeau.nn.utils.prune.base import BasePruningMethod


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask as it was."""
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> BasePruningMethod:  # type: ignore[override]
        """Prune a parameter; see `identity`."""
        return super().apply(module, name)


def _validate_pruning_amount_init(amount: Any) -> None:
    """Raise unless an amount is a count or a fraction in [0, 1]."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    is_count = isinstance(amount, numbers.Integral)
    if amount < 0 or (not is_count and amount > 1):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    """Raise if a count is more than there is."""
    if isinstance(amount, numbers.Integral) and amount > tensor_size:  # type: ignore[operator]
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to "
            f"prune={tensor_size}"
        )


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    """How many an amount is of `tensor_size`."""
    if isinstance(amount, numbers.Integral):
        return amount  # type: ignore[return-value]
    return round(amount * tensor_size)


def _validate_structured_pruning(t: Tensor) -> None:
    """Raise unless a tensor has slices."""
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor "
            f"of shape {t.shape} with {t.dim()} dims"
        )


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    """Raise if a tensor has no such dim."""
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    """The norms of order `n` of the slices along a dim."""
    dims = [d for d in range(t.dim()) if d != (dim + t.dim() if dim < 0 else dim)]
    return ops.norm(t, p=n, dim=dims)  # type: ignore[no-any-return]


class _WithAmount(BasePruningMethod):
    """`amount`: how many to prune, as a number or as a fraction of all in [0, 1]."""

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, size: int) -> int:
        """How many of `size` are pruned."""
        _validate_pruning_amount(self.amount, size)
        return _compute_nparams_toprune(self.amount, size)


def _without(mask: Tensor, indices: Tensor) -> Tensor:
    """A copy of a mask with 0 at places of its flat form."""
    mask = mask.clone(memory_format=contiguous_format)
    mask.view(-1)[indices] = 0
    return mask


class _Unstructured(_WithAmount):
    """Prunes elements, wherever they are."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """0 at `amount` places."""
        count = self._count(t.nelement())
        if count == 0:
            return default_mask.clone(memory_format=contiguous_format)  # type: ignore[no-any-return]
        return _without(default_mask, self._chosen(t, count))

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        """The flat indices of those that go."""
        raise NotImplementedError


class RandomUnstructured(_Unstructured):
    """Prunes elements at random."""

    def __init__(self, amount: float) -> None:  # Python's errors name the class that has it
        super().__init__(amount)

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return ops.topk(ops.rand_like(t).view(-1), k=count).indices  # type: ignore[no-any-return]

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float
    ) -> BasePruningMethod:
        """Prune a parameter; see `random_unstructured`."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the elements with the smallest absolute values."""

    def __init__(self, amount: float) -> None:  # Python's errors name the class that has it
        super().__init__(amount)

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return ops.topk(t.abs().view(-1), k=count, largest=False).indices  # type: ignore[no-any-return]

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float, importance_scores: Tensor | None = None
    ) -> BasePruningMethod:
        """Prune a parameter; see `l1_unstructured`."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(_WithAmount):
    """Prunes whole slices along `dim`."""

    PRUNING_TYPE = "structured"

    dim: int

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """0 in `amount` slices along the dim."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = self._count(size)
        if count == 0:
            return default_mask
        before = (slice(None),) * (self.dim % t.dim())
        mask = ops.zeros_like(t)
        mask[(*before, self._slices_to_keep(t, size, count))] = 1
        return mask * default_mask.to(dtype=mask.dtype)  # type: ignore[no-any-return]

    def _slices_to_keep(self, t: Tensor, size: int, count: int) -> Tensor:
        """Which of the `size` slices stay, as a mask or as indices, if `count` go."""
        raise NotImplementedError


class RandomStructured(_Structured):
    """Prunes slices at random."""

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _slices_to_keep(self, t: Tensor, size: int, count: int) -> Tensor:
        drawn = ops.rand(size)
        return drawn > ops.kthvalue(drawn, k=count).values  # type: ignore[no-any-return]

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float, dim: int = -1
    ) -> BasePruningMethod:
        """Prune a parameter; see `random_structured`."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the slices with the smallest norms of order `n`."""

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n, self.dim = n, dim

    def _slices_to_keep(self, t: Tensor, size: int, count: int) -> Tensor:
        norms = _compute_norm(t, self.n, self.dim)
        return ops.topk(norms, k=size - count, largest=True).indices  # type: ignore[no-any-return]

    @classmethod
    def apply(  # type: ignore[override]
        cls,
        module: Module,
        name: str,
        amount: float,
        n: Any,
        dim: int,
        importance_scores: Tensor | None = None,
    ) -> BasePruningMethod:
        """Prune a parameter; see `ln_structured`."""
        options: dict[str, Any] = {"amount": amount, "n": n, "dim": dim}
        return super().apply(module, name, importance_scores=importance_scores, **options)


class CustomFromMask(BasePruningMethod):
    """Prunes what a given mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Both masks together."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape "
                f"{self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)  # type: ignore[no-any-return]

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, mask: Tensor
    ) -> BasePruningMethod:
        """Prune a parameter; see `custom_from_mask`."""
        return super().apply(module, name, mask=mask)
