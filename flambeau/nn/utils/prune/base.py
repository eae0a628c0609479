"""What all ways of pruning share: the hook that masks a parameter, and chains of such hooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from flambeau._core.layout import contiguous_format
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn.module import Module


class BasePruningMethod(ABC):
    """A way of pruning; as a forward pre-hook it sets `<name>` to `<name>_mask * <name>_orig`.

    A subclass defines `compute_mask` and `PRUNING_TYPE`: what a further pruning of the same tensor
    may still choose from, "unstructured" (elements that are left), "structured" (slices along
    `dim` of which anything is left) or "global" (everything).
    """

    _tensor_name: str
    PRUNING_TYPE: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of a tensor's importance, 0 where it is pruned, of the shape of `t`.

        `default_mask`: what earlier prunings have left.
        """

    def apply_mask(self, module: Module) -> Tensor:
        """The masked parameter."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original  # type: ignore[no-any-return]

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prune a parameter: it becomes `<name>_orig`, with a buffer `<name>_mask` beside it.

        A parameter that is pruned already is pruned further, by a `PruningContainer`.

        Args:
            args, kwargs: for the constructor.
            importance_scores: what the mask is computed from; by default the parameter itself.
        """
        earlier = _take_hook(module, name)
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        if earlier is not None:
            method = _chained(earlier, method)
        current = getattr(module, name)
        scores = current if importance_scores is None else importance_scores
        if scores is not current and scores.shape != current.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"got {scores.shape} vs {current.shape}"
            )
        if isinstance(method, PruningContainer):
            mask = getattr(module, name + "_mask").detach()
            mask = mask.clone(memory_format=contiguous_format)
            _attach(method, module, scores, mask)
        else:
            _attach_first(method, module, scores, current)
        return method

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """A pruned copy of a tensor, apart from any module."""
        scores = t if importance_scores is None else importance_scores
        if scores is not t and scores.shape != t.shape:
            raise AssertionError(
                "importance_scores should have the same shape as tensor t, "
                f"got {scores.shape} vs {t.shape}"
            )
        mask = ops.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)  # type: ignore[no-any-return]

    def remove(self, module: Module) -> None:
        """Make the pruned values permanent: the parameter has its old name again."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        pruned = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original: Any = module._parameters.pop(name + "_orig")
        original.data = pruned.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


def _take_hook(module: Module, name: str) -> BasePruningMethod | None:
    """Remove the hook that prunes a parameter already, and return it."""
    table = module._forward_pre_hooks
    found = {
        key: hook
        for key, hook in table.items()
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
    }
    if len(found) > 1:
        raise AssertionError(
            f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. "
            "Use a PruningContainer."
        )
    for key in found:
        del table[key]
    return next(iter(found.values()), None)


def _chained(earlier: BasePruningMethod, method: BasePruningMethod) -> PruningContainer:
    container = earlier if isinstance(earlier, PruningContainer) else PruningContainer(earlier)
    container.add_pruning_method(method)
    return container


def _attach(method: BasePruningMethod, module: Module, scores: Tensor, mask: Tensor) -> None:
    name = method._tensor_name
    module.register_buffer(name + "_mask", method.compute_mask(scores, default_mask=mask))
    setattr(module, name, method.apply_mask(module))
    module.register_forward_pre_hook(method)


def _attach_first(method: BasePruningMethod, module: Module, scores: Tensor, original: Any) -> None:
    """Set the original aside; put it back if the mask cannot be made."""
    name = method._tensor_name
    module.register_parameter(name + "_orig", original)
    del module._parameters[name]
    mask = ops.ones_like(original)
    try:
        _attach(method, module, scores, mask)
    except Exception:
        module.register_parameter(name, original)
        del module._parameters[name + "_orig"]
        raise


class PruningContainer(BasePruningMethod):
    """Several prunings of one parameter, each of what the ones before have left."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Add one more, of the parameter that this container prunes."""
        if method is not None:
            if not isinstance(method, BasePruningMethod):
                raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
            if self._tensor_name != method._tensor_name:
                raise ValueError(
                    "Can only add pruning methods acting on the parameter named "
                    f"'{self._tensor_name}' to PruningContainer {self}. "
                    f"Found '{method._tensor_name}'"
                )
        self._pruning_methods += (method,)  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The earlier mask with the part changed that the latest method chooses from."""
        latest = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        part = _open_part(latest, t, default_mask)
        chosen = latest.compute_mask(t[part], default_mask=default_mask[part])
        mask[part] = chosen.to(dtype=mask.dtype)
        return mask  # type: ignore[no-any-return]


def _open_part(method: Any, t: Tensor, mask: Tensor) -> Any:
    """The index of what a pruning type may still choose from."""
    if method.PRUNING_TYPE == "unstructured":
        return mask.eq(1)
    if method.PRUNING_TYPE == "global":
        return (slice(None),) * t.dim()
    if method.PRUNING_TYPE != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise AttributeError(
            'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
        )
    dim = method.dim + t.dim() if method.dim < 0 else method.dim
    if dim < 0:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
    is_left = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
    return (*[slice(None)] * dim, is_left)
