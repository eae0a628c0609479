"""Hooks on every module there is, and what all tables of hooks have in common."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from flambeau.autograd.handles import RemovableHandle

Hook = Callable[..., Any]

MIXED_GLOBALLY = (
    "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
    "Please use only one of them."
)


class GlobalHooks:
    """Hooks on every module there is; `active` says whether a call must look at them."""

    active = False

    def __init__(self) -> None:
        self.forward_pre: OrderedDict[int, Hook] = OrderedDict()
        self.forward: OrderedDict[int, Hook] = OrderedDict()
        self.forward_with_kwargs: OrderedDict[int, bool] = OrderedDict()
        self.forward_always_called: OrderedDict[int, bool] = OrderedDict()
        self.backward_pre: OrderedDict[int, Hook] = OrderedDict()
        self.backward: OrderedDict[int, Hook] = OrderedDict()
        self.is_full_backward: bool | None = None
        self.buffer_registration: OrderedDict[int, Hook] = OrderedDict()
        self.module_registration: OrderedDict[int, Hook] = OrderedDict()
        self.parameter_registration: OrderedDict[int, Hook] = OrderedDict()

    def any_around_calls(self) -> bool:
        """Whether hooks stand around forward or backward."""
        return bool(self.forward_pre or self.forward or self.backward_pre or self.backward)


global_hooks = GlobalHooks()

# The tables by torch's names.
_global_forward_pre_hooks = global_hooks.forward_pre
_global_forward_hooks = global_hooks.forward
_global_forward_hooks_with_kwargs = global_hooks.forward_with_kwargs
_global_forward_hooks_always_called = global_hooks.forward_always_called
_global_backward_pre_hooks = global_hooks.backward_pre
_global_backward_hooks = global_hooks.backward
_global_buffer_registration_hooks = global_hooks.buffer_registration
_global_module_registration_hooks = global_hooks.module_registration
_global_parameter_registration_hooks = global_hooks.parameter_registration


class _GlobalHandle(RemovableHandle):
    """Also tells calls to stop looking once the last global hook is gone."""

    def remove(self) -> None:
        super().remove()
        GlobalHooks.active = global_hooks.any_around_calls()


def add_hook(table: Any, hook: Hook, prepend: bool = False, marks: Any = ()) -> RemovableHandle:
    """Put a hook in a table, and its number in the tables of marks that apply to it."""
    return _insert(RemovableHandle(table, extra_dict=marks), table, hook, prepend, marks)


def _insert(handle: Any, table: Any, hook: Hook, prepend: bool, marks: Any) -> Any:
    table[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def _add_global(table: Any, hook: Hook, marks: Any = ()) -> RemovableHandle:
    handle = _insert(_GlobalHandle(table, extra_dict=marks), table, hook, False, marks)
    GlobalHooks.active = global_hooks.any_around_calls()
    return handle  # type: ignore[no-any-return]


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, name, buffer)` on every `register_buffer`; what it returns is used instead."""
    return add_hook(global_hooks.buffer_registration, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, name, submodule)` on every `register_module`; its result is used instead."""
    return add_hook(global_hooks.module_registration, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, name, parameter)` on every `register_parameter`; its result replaces it."""
    return add_hook(global_hooks.parameter_registration, hook)


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, args)` before the forward of every module."""
    return _add_global(global_hooks.forward_pre, hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """`hook(module, args, output)` after the forward of every module."""
    marks = []
    if with_kwargs:
        marks.append(global_hooks.forward_with_kwargs)
    if always_call:
        marks.append(global_hooks.forward_always_called)
    return _add_global(global_hooks.forward, hook, marks)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, grad_output)` before the backward of every module."""
    return _add_global(global_hooks.backward_pre, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, grad_input, grad_output)` after the backward of every module."""
    return _add_global_backward(hook, full=True)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """The older kind, which sees the last operator of the forward only."""
    return _add_global_backward(hook, full=False)


def _add_global_backward(hook: Hook, full: bool) -> RemovableHandle:
    if global_hooks.is_full_backward is (not full):
        raise RuntimeError(MIXED_GLOBALLY)
    global_hooks.is_full_backward = full
    return _add_global(global_hooks.backward, hook)
