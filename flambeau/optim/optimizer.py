"""The base of all optimizers: parameter groups, state, hooks, checkpoints.

A subclass says what it keeps of a parameter, `start(parameter, grad, state, group)`, and how one
parameter changes, `update(parameter, grad, state, group)`, written like the formula in its
docstring. The base walks the groups.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from flambeau._runtime.cpu import quiet
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import set_grad_enabled
from flambeau.autograd.graph import RemovableHandle
from flambeau.optim import fused
from flambeau.optim.formulas import Group, State, as_real, check_step, real_state


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()

COMMON = {"maximize": False, "foreach": None, "differentiable": False}


class Optimizer:
    """Groups of parameters with their options (`param_groups`) and per-parameter `state`."""

    paired = True
    """Whether a complex parameter is stepped as two real ones, as in torch."""
    counters = "params and state_steps"
    """What an error about `capturable` speaks of."""

    compiled: Callable[[State, Group], Any] | None = None
    """The formula as a kernel for all parameters at once, where there is one: see `fused`."""

    def __init__(self, params: Any, defaults: Group) -> None:
        self.defaults = defaults
        self._step_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._step_post_hooks: OrderedDict[int, Any] = OrderedDict()
        self._state_dict_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._state_dict_post_hooks: OrderedDict[int, Any] = OrderedDict()
        self._load_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._load_post_hooks: OrderedDict[int, Any] = OrderedDict()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {params.type()}"  # type: ignore[attr-defined]
            )
        self.state: defaultdict[Tensor, State] = defaultdict(dict)
        self.param_groups: list[Group] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    # ---- groups

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters with options of their own; missing options take the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = param_group
        self._take_names(group)
        for parameter in group["params"]:
            self._check_parameter(parameter)
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError("parameter group didn't specify a value of required optimization "
                                 f"parameter {name}")  # fmt: skip
            group.setdefault(name, default)
        self._check_unique(group["params"])
        self.param_groups.append(group)

    def _take_names(self, group: Group) -> None:
        """Split pairs (name, parameter); either all parameters have names or none has."""
        params = self._listed(group["params"])
        names = [item[0] for item in params if isinstance(item, tuple)]
        if names and len(names) != len(params):
            raise ValueError("all optimizer params should be with/without names. Some param names "
                             "are missing")  # fmt: skip
        if any(("param_names" in other) != bool(names) for other in self.param_groups):
            state = "with" if names else "without"
            raise ValueError("all optimizer param groups should be with/without names. cannot add "
                             f"param group {state} names to the optimizer")  # fmt: skip
        if names:
            group["param_names"] = names
            params = [item[1] for item in params]
        group["params"] = params

    @staticmethod
    def _listed(params: Any) -> list[Any]:
        if isinstance(params, Tensor):
            return [params]
        if isinstance(params, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but "
                            "the ordering of tensors in sets will change between runs. Please use "
                            "a list instead.")  # fmt: skip
        return list(params)

    def _check_parameter(self, parameter: Any) -> None:
        if not isinstance(parameter, Tensor):
            raise TypeError("optimizer can only optimize Tensors, but one of the params is "
                            f"{type(parameter).__name__}")  # fmt: skip
        leaf = parameter.is_leaf or parameter._retain is not None
        if not self.defaults.get("differentiable") and not leaf:
            raise ValueError("can't optimize a non-leaf Tensor")

    def _check_unique(self, params: list[Tensor]) -> None:
        if len(set(map(id, params))) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                UserWarning,
                stacklevel=4,
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if known & set(map(id, params)):
            raise ValueError("some parameters appear in more than one parameter group")

    # ---- stepping

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient; returns what `closure` returned."""
        for hook in (*_global_pre_hooks.values(), *self._step_pre_hooks.values()):
            hook(self, (closure,) if closure else (), {})
        loss = self._run(closure)
        for hook in (*self._step_post_hooks.values(), *_global_post_hooks.values()):
            hook(self, (closure,) if closure else (), {})
        self._opt_called = True
        return loss

    def _run(self, closure: Callable[[], Any] | None) -> Any:
        loss = None
        if closure is not None:
            with set_grad_enabled(True):
                loss = closure()
        with set_grad_enabled(bool(self.defaults.get("differentiable"))), quiet():
            for group in self.param_groups:
                params = [p for p in group["params"] if p._grad is not None]
                if params:
                    check_step(group, self.counters)
                    self._step_group(params, group)
        return loss

    def _step_group(self, params: list[Any], group: Group) -> None:
        if self.compiled is not None and not group.get("differentiable"):
            params = fused.step(self, params, group)
        for parameter in params:
            self._step_parameter(parameter, parameter._grad, group)

    def _step_parameter(self, parameter: Any, grad: Any, group: Group) -> None:
        state = self.state_of(parameter, group)
        if not state:
            self.start(parameter, grad, state, group)
        if group.get("maximize"):
            grad = -grad
        if self.paired and parameter._data.dtype.kind == "c":
            parameter, grad = as_real(parameter), as_real(grad)
            state = real_state(state)
        self.update(parameter, grad, state, group)

    def state_of(self, parameter: Any, group: Group) -> State:
        """What is kept from step to step for a parameter."""
        return self.state[parameter]

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        """Fill the empty state of a parameter before its first step."""

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        """One step of one parameter; what it keeps in `state` it changes in place."""
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or with `set_to_none=False` fill them with zeros."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    parameter._grad = None
                elif parameter._grad is not None:
                    parameter._grad = parameter._grad.detach()
                    parameter._grad.zero_()

    # ---- checkpoints

    def state_dict(self) -> Group:
        """State by parameter number, and the groups with parameter numbers."""
        for hook in self._state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
            packed["params"] = [numbers[id(parameter)] for parameter in group["params"]]
            groups.append(packed)
        state = {
            (numbers[id(key)] if isinstance(key, Tensor) else key): value
            for key, value in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in self._state_dict_post_hooks.values():
            replaced = hook(self, result)
            result = result if replaced is None else replaced
        return result

    def load_state_dict(self, state_dict: Group) -> None:
        """Take over state and options; tensors are copied, floats cast to the parameter's type."""
        state_dict = dict(state_dict)
        for hook in self._load_pre_hooks.values():
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        saved = deepcopy(state_dict["param_groups"])
        self._check_groups(saved)
        numbers = chain.from_iterable(group["params"] for group in saved)
        mine = chain.from_iterable(group["params"] for group in self.param_groups)
        parameters = dict(zip(numbers, mine, strict=True))
        self.state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in parameters:
                self.state[parameters[key]] = _cast(parameters[key], value, None)
            else:
                self.state[key] = value
        for group, loaded in zip(self.param_groups, saved, strict=True):
            loaded["params"] = group["params"]
            if "param_names" in group and "param_names" not in loaded:
                loaded["param_names"] = group["param_names"]
        self.param_groups = saved
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)
        for hook in self._load_post_hooks.values():
            hook(self)

    def _check_groups(self, saved: list[Group]) -> None:
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        pairs = zip(self.param_groups, saved, strict=True)
        if any(len(mine["params"]) != len(theirs["params"]) for mine, theirs in pairs):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the "
                             "size of optimizer's group")  # fmt: skip

    def __getstate__(self) -> Group:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: Group) -> None:
        self.__dict__.update(state)
        for name in ("_step_pre_hooks", "_step_post_hooks", "_state_dict_pre_hooks",
                     "_state_dict_post_hooks", "_load_pre_hooks", "_load_post_hooks"):  # fmt: skip
            self.__dict__.setdefault(name, OrderedDict())

    # ---- hooks

    def register_step_pre_hook(self, hook: Any) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step."""
        return _register(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Any) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return _register(self._step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return _register(self._state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return another."""
        return _register(self._state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Any, prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; it may return another."""
        return _register(self._load_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Any,
                                           prepend: bool = False) -> RemovableHandle:  # fmt: skip
        """Call `hook(optimizer)` after loading."""
        return _register(self._load_post_hooks, hook, prepend)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


_global_pre_hooks: OrderedDict[int, Any] = OrderedDict()
_global_post_hooks: OrderedDict[int, Any] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Any) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of every optimizer."""
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Any) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of every optimizer."""
    return _register(_global_post_hooks, hook)


def _register(table: OrderedDict[int, Any], hook: Any, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def _cast(parameter: Tensor, value: Any, name: str | None) -> Any:
    """Loaded state as tensors of its parameter's type; `step` keeps its own."""
    if isinstance(value, Tensor):
        if name == "step" or parameter._data.dtype.kind != "f":
            return value.detach().clone()  # type: ignore[attr-defined]
        return value.detach().to(parameter.dtype, copy=True)  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return {key: _cast(parameter, item, key) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(_cast(parameter, item, None) for item in value)  # type: ignore[call-arg]
    return value
