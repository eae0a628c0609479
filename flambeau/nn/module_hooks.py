"""Hooks around a module's forward and backward: registration, and calls while any is set."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.graph import RemovableHandle
from flambeau.autograd.history import edge_of
from flambeau.nn.module_backward import BackwardHooks, Hook

MIXED = (
    "Cannot use both regular backward hooks and full backward hooks on a single Module. "
    "Please use only one of them."
)
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
        self.forward_with_kwargs: dict[int, bool] = {}
        self.forward_always_called: dict[int, bool] = {}
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


class _GlobalHandle(RemovableHandle):
    """Also tells calls to stop looking once the last global hook is gone."""

    def remove(self) -> None:
        super().remove()
        GlobalHooks.active = global_hooks.any_around_calls()


def _add(table: Any, hook: Hook, prepend: bool = False, marks: Any = ()) -> RemovableHandle:
    """Put a hook in a table, and its number in the tables of marks that apply to it."""
    handle = RemovableHandle(table)
    return _insert(handle, table, hook, prepend, marks)


def _insert(handle: Any, table: Any, hook: Hook, prepend: bool, marks: Any) -> Any:
    table[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def _add_global(table: Any, hook: Hook, marks: Any = ()) -> RemovableHandle:
    handle = _insert(_GlobalHandle(table), table, hook, False, marks)
    GlobalHooks.active = global_hooks.any_around_calls()
    return handle  # type: ignore[no-any-return]


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, name, buffer)` on every `register_buffer`; what it returns is used instead."""
    return _add(global_hooks.buffer_registration, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, name, submodule)` on every `register_module`; its result is used instead."""
    return _add(global_hooks.module_registration, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """`hook(module, name, parameter)` on every `register_parameter`; its result replaces it."""
    return _add(global_hooks.parameter_registration, hook)


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


class ModuleHooks:
    """The part of Module that deals with hooks."""

    _backward_pre_hooks: OrderedDict[int, Hook]
    _backward_hooks: OrderedDict[int, Hook]
    _is_full_backward_hook: bool | None
    _forward_hooks: OrderedDict[int, Hook]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, Hook]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    forward: Callable[..., Any]

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before each forward; what it returns replaces the args.

        `with_kwargs`: `hook(module, args, kwargs)`, which returns None or both.
        """
        marks = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return _add(self._forward_pre_hooks, hook, prepend, marks)

    def register_forward_hook(
        self,
        hook: Hook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after each forward; its result replaces the output.

        `with_kwargs`: `hook(module, args, kwargs, output)`. `always_call`: also when the forward
        raises.
        """
        marks = []
        if with_kwargs:
            marks.append(self._forward_hooks_with_kwargs)
        if always_call:
            marks.append(self._forward_hooks_always_called)
        return _add(self._forward_hooks, hook, prepend, marks)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the gradients of the inputs are computed."""
        return _add(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` once the inputs' gradients are known.

        What it returns replaces `grad_input`.
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError(MIXED)
        self._is_full_backward_hook = True
        return _add(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """The older form of `register_full_backward_hook`; it sees the last operator only."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(MIXED)
        self._is_full_backward_hook = False
        return _add(self._backward_hooks, hook)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # benchmarks/module_call.py: this test is all that a module without hooks pays.
        if (
            self._backward_hooks
            or self._backward_pre_hooks
            or self._forward_hooks
            or self._forward_pre_hooks
            or global_hooks.active
        ):
            return _HookedCall(self, args, kwargs).run()
        return self.forward(*args, **kwargs)

    _call_impl = __call__


class _HookedCall:
    """One call of a module with all its hooks."""

    def __init__(self, module: ModuleHooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.output: Any = None
        self.called: set[int] = set()

    def run(self) -> Any:
        """The whole call; hooks marked `always_call` run after an exception too."""
        always = {*self.module._forward_hooks_always_called, *global_hooks.forward_always_called}
        if not always:
            return self._run()
        try:
            return self._run()
        except Exception:
            self._call_the_rest(always)
            raise

    def _run(self) -> Any:
        self._before_forward()
        full, legacy = self._backward_hooks()
        pre = [*global_hooks.backward_pre.values(), *self.module._backward_pre_hooks.values()]
        around = BackwardHooks(self.module, full, pre) if full or pre else None
        if around is not None:
            self.args = around.watch_inputs(self.args)
        self.output = self.module.forward(*self.args, **self.kwargs)
        for key, hook, with_kwargs in self._forward_hooks():
            self.called.add(key)
            self._after_forward(hook, with_kwargs)
        if around is not None:
            self.output = around.watch_outputs(self.output)
        if legacy:
            _hook_last_node(self.module, self.args, self.output, legacy)
        return self.output

    def _before_forward(self) -> None:
        module = self.module
        for hook in list(global_hooks.forward_pre.values()):
            self._replace_args(hook(module, self.args))
        for key, hook in list(module._forward_pre_hooks.items()):
            if key not in module._forward_pre_hooks_with_kwargs:
                self._replace_args(hook(module, self.args))
                continue
            replaced = hook(module, self.args, self.kwargs)
            if replaced is None:
                continue
            if not (isinstance(replaced, tuple) and len(replaced) == 2):
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {replaced}."
                )
            self.args, self.kwargs = replaced

    def _replace_args(self, replaced: Any) -> None:
        if replaced is None:
            return
        self.args = replaced if isinstance(replaced, tuple) else (replaced,)

    def _forward_hooks(self) -> Iterator[tuple[int, Hook, bool]]:
        for key, hook in list(global_hooks.forward.items()):
            yield key, hook, key in global_hooks.forward_with_kwargs
        for key, hook in list(self.module._forward_hooks.items()):
            yield key, hook, key in self.module._forward_hooks_with_kwargs

    def _after_forward(self, hook: Hook, with_kwargs: bool) -> None:
        if with_kwargs:
            replaced = hook(self.module, self.args, self.kwargs, self.output)
        else:
            replaced = hook(self.module, self.args, self.output)
        if replaced is not None:
            self.output = replaced

    def _call_the_rest(self, always: set[int]) -> None:
        """After an exception: the `always_call` hooks that have not run; their errors only warn."""
        for key, hook, with_kwargs in self._forward_hooks():
            if key not in always or key in self.called:
                continue
            try:
                self._after_forward(hook, with_kwargs)
            except Exception as error:  # noqa: BLE001
                kind = "global module" if key in global_hooks.forward else "module"
                warnings.warn(
                    f"{kind} forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {error}",
                    stacklevel=2,
                )

    def _backward_hooks(self) -> tuple[list[Hook], list[Hook]]:
        """Full and older backward hooks, the global ones first."""
        full: list[Hook] = []
        legacy: list[Hook] = []
        (full if global_hooks.is_full_backward else legacy).extend(global_hooks.backward.values())
        own = full if self.module._is_full_backward_hook else legacy
        own.extend(self.module._backward_hooks.values())
        return full, legacy


def _tensors_in(output: Any) -> Iterator[Tensor]:
    """The tensors of a module's output."""
    if isinstance(output, Tensor):
        yield output
        return
    values = output.values() if isinstance(output, dict) else output
    for value in values if isinstance(values, (list, tuple)) or values is not output else ():
        yield from _tensors_in(value)


def _hook_last_node(module: Any, args: Any, output: Any, hooks: list[Hook]) -> None:
    first = next(_tensors_in(output), None)
    node = None if first is None else first.grad_fn
    if node is None:
        return
    _warn_if_partial(args, output, node)
    for hook in hooks:
        node.register_hook(functools.partial(hook, module))


def _warn_if_partial(args: Any, output: Any, node: Any) -> None:
    """The older hooks see all gradients only if one operator leads from inputs to outputs."""
    outputs = output if isinstance(output, tuple) else (output,)
    if not all(isinstance(part, Tensor) for part in outputs):
        _warn_partial("that do not return a single Tensor or a tuple of Tensors")
    elif not all(isinstance(part, Tensor) for part in args):
        _warn_partial("that do not take as input a single Tensor or a tuple of Tensors")
    elif len({part.grad_fn for part in outputs}) > 1:
        _warn_partial("when outputs are generated by different autograd Nodes")
    else:
        inputs = {edge_of(part) for part in args} - {None}
        if not inputs <= set(node.edges):
            _warn_partial("when the forward contains multiple autograd Nodes")


def _warn_partial(when: str) -> None:
    if when.startswith("when"):
        start, lost = "Using a non-full backward hook", "grad_input"
    else:
        start, lost = "Using non-full backward hooks on a Module", "grad_output"
    warnings.warn(
        f"{start} {when} is deprecated and will be removed in future versions. This hook will be "
        f"missing some {lost}. Please use register_full_backward_hook to get the documented "
        "behavior.",
        FutureWarning,
        stacklevel=7,
    )
