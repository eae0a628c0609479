"""A module called with other parameters and buffers than its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flambeau._core.missing import lazily
from flambeau._tensor.tensor import Tensor
from flambeau.nn.module import Module
from flambeau.nn.parallel.data_parallel import DataParallel
from flambeau.nn.utils._named_member_accessor import NamedMemberAccessor

__all__ = ["functional_call"]

DEPRECATED = (
    "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be "
    "removed in a future version of PyTorch. Please use `torch.func.functional_call` instead which "
    "is a drop-in replacement."
)
Tensors = dict[str, Tensor]


def _tied_names(module: Module) -> dict[str, set[str]]:
    """For each name of a tensor that goes by several, all of them."""
    by_tensor: dict[int, set[str]] = {}
    for name, tensor in NamedMemberAccessor(module).named_tensors(remove_duplicate=False):
        by_tensor.setdefault(id(tensor), set()).add(name)
    return {name: names for names in by_tensor.values() if len(names) > 1 for name in names}


def _untied(module: Module, tensors: Tensors) -> Tensors:
    """What is given for one name of a tensor, for its other names too."""
    tied = _tied_names(module)
    result = dict(tensors)
    for given in tensors.keys() & tied.keys():
        names = tied[given]
        values = {id(tensors[name]) for name in names if name in tensors}
        if len(values) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. "
                "Consider using tie_weights=False"
            )
        result.update(dict.fromkeys(names, tensors[given]))
    return result


def _check_keys(module: Module, accessor: NamedMemberAccessor, tensors: Tensors) -> None:
    lacking, unexpected = accessor.check_keys(tensors)
    lines = [
        f"{what} key(s): {', '.join(map(repr, keys))}."
        for what, keys in (("Unexpected", unexpected), ("Missing", lacking))
        if keys
    ]
    if lines:
        text = "\n\t".join(lines)
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{text}")


@contextmanager
def _reparametrize_module(
    module: Module, tensors: Tensors, tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """In the block, a module has other tensors; what it has put in their place goes to the dict."""
    given = _untied(module, tensors) if tie_weights else tensors
    accessor = NamedMemberAccessor(module)
    if strict:
        _check_keys(module, accessor, given)
    own, _ = accessor.swap_tensors_dict(given, allow_missing=True)
    try:
        yield
    finally:
        try:
            used, _ = accessor.swap_tensors_dict(own, allow_missing=True)
        except BaseException:  # a signal's handler, which left all that was given in its place
            accessor.swap_tensors_dict(own, allow_missing=True)
            raise
        tensors.update((name, used[name]) for name in list(tensors) if name in used)


def _functional_call(
    module: Module,
    parameters_and_buffers: Tensors,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    if isinstance(module, DataParallel):
        raise RuntimeError("The stateless API can't be used with nn.DataParallel module")
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def functional_call(
    module: Module,
    parameters_and_buffers: Tensors,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The deprecated form of `torch.func.functional_call`, for one dict."""
    warnings.warn(DEPRECATED, FutureWarning, stacklevel=2)
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


__getattr__ = lazily(__name__)
