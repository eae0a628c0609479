"""One call of a module that has hooks, or while there are hooks on every module."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from flambeau.nn.every_module import Hook, global_hooks
from flambeau.nn.module_backward import BackwardHooks
from flambeau.nn.older_hooks import hook_last_node


class HookedCall:
    """One call of a module with all its hooks."""

    def __init__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.output: Any = None
        self.called: set[int] = set()

    def run(self) -> Any:
        """The whole call; hooks marked `always_call` run after an exception too."""
        try:
            return self._run()
        except Exception:
            if self.module._forward_hooks_always_called or global_hooks.forward_always_called:
                self._call_the_rest()
            raise

    def _run(self) -> Any:
        forward = self.module.forward
        full, older = self._backward_hooks()
        pre = [*global_hooks.backward_pre.values(), *self.module._backward_pre_hooks.values()]
        self._before_forward()
        around = BackwardHooks(self.module, full, pre) if full or pre else None
        if around is not None:
            self.args = around.watch_inputs(self.args)
        self.output = forward(*self.args, **self.kwargs)
        for key, hook, with_kwargs in self._forward_hooks():
            self.called.add(key)
            self._after_forward(hook, with_kwargs)
        if around is not None:
            self.output = around.watch_outputs(self.output)
        if older:
            hook_last_node(self.module, self.args, self.output, older)
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

    def _call_the_rest(self) -> None:
        """After an exception: the `always_call` hooks that have not run; their errors only warn."""
        always = {*self.module._forward_hooks_always_called, *global_hooks.forward_always_called}
        for key, hook, with_kwargs in self._forward_hooks():
            if key not in always or key in self.called:
                continue
            everywhere = key in global_hooks.forward
            try:
                self._after_forward(hook, with_kwargs and not everywhere)  # as torch has it
            except Exception as error:  # noqa: BLE001
                kind = "global module" if everywhere else "module"
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
        kind = self.module._is_full_backward_hook
        if kind is not None:  # a copy that shares the table may not have been told
            (full if kind else legacy).extend(self.module._backward_hooks.values())
        return full, legacy
