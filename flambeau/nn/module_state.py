"""The state of a module: `state_dict` and `load_state_dict`."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flambeau.__future__ import get_swap_module_params_on_conversion
from flambeau._tensor.swapping import swap_tensors
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad
from flambeau.autograd.handles import RemovableHandle
from flambeau.nn.parameter import Parameter, is_lazy
from flambeau.nn.wrapped_hook import _WrappedHook

EXTRA_STATE = _EXTRA_STATE_KEY_SUFFIX = "_extra_state"
UNREACHABLE = (
    "Reached a code path in Module.{}() that should never be called. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
)
POSITIONAL = (
    "Positional args are being deprecated, use kwargs instead. Refer to "
    "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for "
    "details."
)


class _IncompatibleKeys(
    namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])  # noqa: PYI024
):
    """What `load_state_dict` found missing in, and left over from, a state."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class ModuleState:
    """The part of Module that saves and loads."""

    _version: int
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]

    def get_extra_state(self) -> Any:
        """What else belongs in the state; overridden together with `set_extra_state`."""
        raise RuntimeError(UNREACHABLE.format("get_extra_state"))

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` returned."""
        raise RuntimeError(UNREACHABLE.format("set_extra_state"))

    # ---- saving

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` is made."""
        return _add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` on the finished state."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return _add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The private form, whose result replaces the state."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return _add(self._state_dict_hooks, hook)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put this module's own parameters, buffers and extra state in `destination`."""
        for name, value in _own_state(self):
            if value is not None:
                destination[prefix + name] = value if keep_vars else value.detach()
        if _has_extra(self, "get_extra_state"):
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Parameters and persistent buffers by name, as an OrderedDict of detached tensors.

        They share memory with the module. `keep_vars`: the Parameters themselves.
        """
        if args:
            warnings.warn(POSITIONAL, FutureWarning, stacklevel=2)
            given: tuple[Any, ...] = (destination, prefix, keep_vars)
            destination, prefix, keep_vars = (*args, *given[len(args) :])[:3]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        return self._after_saving(destination, prefix, local_metadata)

    def _after_saving(self, destination: Any, prefix: str, local_metadata: Any) -> Any:
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if not getattr(hook, "_from_public_api", False):
                destination = destination if result is None else result
            elif result is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    # ---- loading

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` before a state is loaded."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return _add(
            self._load_state_dict_pre_hooks, _WrappedHook(hook, self) if with_module else hook
        )

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after a state was loaded; it may change them."""
        return _add(self._load_state_dict_post_hooks, hook)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own entries; append to the three lists what does not fit."""
        reports = (missing_keys, unexpected_keys, error_msgs)
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, *reports)
        assign = local_metadata.get("assign_to_params_buffers", False)
        local = {name: value for name, value in _own_state(self) if value is not None}
        for name, current in local.items():
            key = prefix + name
            if key in state_dict:
                _load_entry(self, name, current, state_dict[key], key, assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        self._load_extra(state_dict, prefix + EXTRA_STATE, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys.extend(_unexpected(self, state_dict, prefix, local))

    def _load_extra(
        self, state_dict: Any, key: str, strict: bool, missing: list[str], unexpected: list[str]
    ) -> None:
        if _has_extra(self, "set_extra_state"):
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing.append(key)
        elif strict and key in state_dict:
            unexpected.append(key)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Copy parameters and buffers from a state; returns the missing and unexpected keys.

        `strict`: raise RuntimeError unless the keys match exactly. `assign`: take the tensors of
        the state instead of copying from them, keeping their dtypes.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        entries: Any = OrderedDict(state_dict)
        if metadata is not None:
            entries._metadata = metadata
        loading = _Loading(metadata, assign)
        loading.load(self, entries, "")
        if strict:
            loading.report_keys()
        if loading.errors:
            lines = "\n\t".join(loading.errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}"
            )
        return _IncompatibleKeys(loading.missing, loading.unexpected)


class _Loading:
    """One call of `load_state_dict`."""

    def __init__(self, metadata: Any, assign: bool) -> None:
        self.metadata = metadata
        self.assign = assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []

    def load(self, module: Any, state_dict: Any, prefix: str) -> None:
        """A module and, below it, its children, each with the entries under its prefix."""
        local = {} if self.metadata is None else self.metadata.get(prefix[:-1], {})
        if self.assign:
            local["assign_to_params_buffers"] = True
        module._load_from_state_dict(
            state_dict, prefix, local, True, self.missing, self.unexpected, self.errors
        )
        for name, child in module._modules.items():
            if child is None:
                continue
            below = f"{prefix}{name}."
            self.load(child, {k: v for k, v in state_dict.items() if k.startswith(below)}, below)
        keys = _IncompatibleKeys(self.missing, self.unexpected)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                    "expected to return new values, if incompatible_keys need to be modified, "
                    "it should be done inplace."
                )

    def report_keys(self) -> None:
        """Make errors of the keys that do not match."""
        for what, keys in (("Unexpected", self.unexpected), ("Missing", self.missing)):
            if keys:
                listed = ", ".join(f'"{key}"' for key in keys)
                self.errors.insert(0, f"{what} key(s) in state_dict: {listed}. ")


def _add(table: Any, hook: Any) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle


def _own_state(module: Any) -> Iterator[tuple[str, Any]]:
    """Parameters, then persistent buffers."""
    yield from module._parameters.items()
    for name, buffer in module._buffers.items():
        if name not in module._non_persistent_buffers_set:
            yield name, buffer


def _has_extra(module: Any, method: str) -> bool:
    return getattr(type(module), method) is not getattr(ModuleState, method)


def _unexpected(module: Any, state_dict: Any, prefix: str, local: Any) -> Iterator[str]:
    for key in state_dict:
        if not key.startswith(prefix) or key == prefix + EXTRA_STATE:
            continue
        first, dot, _ = key[len(prefix) :].partition(".")
        known = module._modules if dot else local
        if first not in known:
            yield key


def _load_entry(
    module: Any, name: str, current: Any, value: Any, key: str, assign: bool, errors: list[str]
) -> None:
    """Bring one tensor of a state into a module, or say in `errors` why it does not fit."""
    if not isinstance(value, Tensor):
        errors.append(
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
            f"object from checkpoint but received {type(value)}"
        )
        return
    lazy = is_lazy(current)
    # PyTorch 0.3 had no 0-dim tensors.
    if not lazy and current.ndim == 0 and not is_lazy(value) and value.shape == (1,):
        value = value[0]
    if not lazy and value.shape != current.shape:
        errors.append(
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
            f"the shape in current model is {current.shape}."
        )
        return
    try:
        with no_grad():
            _take(module, name, current, value, assign)
    except Exception as error:  # noqa: BLE001
        action = "swapping" if get_swap_module_params_on_conversion() else "copying"
        errors.append(
            f'While {action} the parameter named "{key}", whose dimensions in the model are '
            f"{current.size()} and whose dimensions in the checkpoint are {value.size()}, an "
            f"exception occurred : {error.args}."
        )


def _take(module: Any, name: str, current: Any, value: Any, assign: bool) -> None:
    if not assign and current.is_meta and not value.is_meta:
        warnings.warn(f"for {name}: copying from a non-meta parameter in the checkpoint to a "
                      "meta parameter in the current model, which is a no-op. (Did you mean to "
                      "pass `assign=True` to assign items in the state dictionary to their "
                      "corresponding key in the module instead of copying them in place?)",
                      stacklevel=2)  # fmt: skip
    if get_swap_module_params_on_conversion():
        _swap_in(current, value, assign)
        return
    if not assign:
        current.copy_(value)
        return
    if isinstance(current, Parameter):
        value = _as_parameter_like(current, value)
    setattr(module, name, value)


def _swap_in(current: Any, value: Any, assign: bool) -> None:
    """Swap a tensor of a module with what its class makes of it and the new value."""
    loaded = current.module_load(value, assign=assign)
    if loaded is value or loaded is current:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning "
            "one of the inputs in module_load"
        )
    if isinstance(current, Parameter):
        loaded = _as_parameter_like(current, loaded)
    swap_tensors(current, loaded)


def _as_parameter_like(current: Any, value: Any) -> Any:
    """A value as a Parameter that wants gradients if the current one does."""
    if isinstance(value, Parameter):
        return value.requires_grad_(current.requires_grad)
    return Parameter(value, requires_grad=current.requires_grad)
