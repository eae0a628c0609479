"""The steps that make one parametrized tensor, and the tensors that they start from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.nn.containers import ModuleList
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter

CHANGES = (
    "Registering a parametrization may not change the {what} of the tensor, unless {the}`unsafe` "
    "flag is enabled.\n{before}: {old}\n{after}: {new}"
)
SINGLE_INVERSE_CHANGES = (
    "When `right_inverse` outputs one tensor, it may not change the {what}.\n"
    "original.{what}: {old}\nright_inverse(original).{what}: {new}"
)


class ParametrizationList(ModuleList):
    """The steps that make one tensor, and what they start from.

    `original` is the tensor that the first step takes, or `original0`, `original1`, ... if its
    `right_inverse` returns several. Made by `register_parametrization`, not by users.

    Args:
        modules: the steps, in the order in which they are applied; at least one.
        original: the parameter or buffer as it is now. `right_inverse` of the steps, where they
            have it, is applied to it.
        unsafe: steps may change shape and dtype, and nothing is checked.
    """

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        start = self._first_inverse(original)
        self.is_tensor = isinstance(start, Tensor)
        self.ntensors = 1 if self.is_tensor else len(start)
        if self.is_tensor:
            self._keep_single(original, start)
        else:
            self._keep_several(original, start)
        if not unsafe:
            self._check_result(shape, dtype)

    @no_grad()
    def _first_inverse(self, value: Any) -> Any:
        """What the first step starts from; a step without `right_inverse` counts as identity."""
        for step in reversed(self._steps()):
            if not hasattr(step, "right_inverse"):
                continue
            try:
                value = step.right_inverse(value)
            except NotImplementedInFlambeau:
                raise
            except NotImplementedError:
                pass
        if not isinstance(value, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(value).__name__}"
            )
        return value

    def _keep_single(self, original: Tensor, start: Tensor) -> None:
        for what in ("dtype", "device"):
            old, new = getattr(original, what), getattr(start, what)
            if old != new:
                raise ValueError(SINGLE_INVERSE_CHANGES.format(what=what, old=old, new=new))
        # The object stays the same, so that optimizers need not be told.
        with no_grad():
            original.set_(start)
        register_tensor(self, "original", original)

    def _keep_several(self, original: Tensor, starts: Sequence[Any]) -> None:
        for i, start in enumerate(starts):
            if not isinstance(start, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                    f"tuple...). Got element {i} of the sequence with type {type(start).__name__}."
                )
            if isinstance(original, Parameter):
                start = Parameter(start, original.requires_grad)
            start.requires_grad_(original.requires_grad)
            register_tensor(self, f"original{i}", start)

    def _check_result(self, shape: Any, dtype: Any) -> None:
        result = self()
        check_is_tensor(result)
        for what, old in (("dtype", dtype), ("shape", shape)):
            check_same(what, old, result, "", f"unparametrized {what}", f"parametrized {what}")

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals such that the parametrized tensor becomes `value`.

        Raises:
            RuntimeError: a step has no `right_inverse`.
        """
        with no_grad():
            for step in reversed(self._steps()):
                if not hasattr(step, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(step).__name__} does not implement right_inverse."
                    )
                value = step.right_inverse(value)
            if self.is_tensor:
                self._set_single(value)
            else:
                self._set_several(value)

    def _set_single(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
        if value.dtype != self.original.dtype:
            raise ValueError(
                f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` "
                f"has dtype {self.original.dtype}"
            )
        self.original.set_(value)

    def _set_several(self, values: Any) -> None:
        if not isinstance(values, Sequence):
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors. Got {type(values).__name__}."
            )
        if len(values) != self.ntensors:
            raise ValueError(
                "'right_inverse' must return a sequence of tensors of length "
                f"{self.ntensors}. Got a sequence of length {len(values)}."
            )
        for i, (original, value) in enumerate(zip(self._originals(), values, strict=True)):
            if not isinstance(value, Tensor):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors or reference-type opaques. "
                    f"Got element {i} of type {type(value).__name__}."
                )
            if original.dtype != value.dtype:
                raise ValueError(
                    f"Tensor {i} returned by `right_inverse` has dtype {value.dtype} while "
                    f"`original{i}` has dtype {original.dtype}"
                )
            original.set_(value)

    def _steps(self) -> list[Any]:
        # Not all modules: an original may be parametrized itself, and the list of that is here too.
        return [module for name, module in self._modules.items() if name.isdigit()]

    def _names(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]

    def _originals(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._names()]

    def forward(self) -> Any:
        """The parametrized tensor."""
        first, *others = self._steps()
        value = first(*self._originals())
        for step in others:
            value = step(value)
        return value


def register_tensor(module: Module, name: str, tensor: Tensor) -> None:
    """Give a module a parameter or a buffer, whichever the tensor is."""
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def check_is_tensor(value: Any) -> None:
    """Raise ValueError for the result of a step that is no tensor."""
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")


def check_same(what: str, old: Any, result: Tensor, the: str, before: str, after: str) -> None:
    """Raise ValueError if a step has changed the dtype or shape, `what`, from `old`."""
    new = getattr(result, what)
    if new != old:
        raise ValueError(
            CHANGES.format(what=what, the=the, before=before, old=old, after=after, new=new)
        )
