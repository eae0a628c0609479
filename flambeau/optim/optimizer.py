"""The base of all optimizers: parameter groups, state, hooks, checkpoints.

A subclass steps the parameters of a group that have gradients (`step_group`); those that change
every element by itself are `elementwise.Elementwise`. A class of the user's may override `step`
instead: hooks are called around it all the same.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from copy import deepcopy
from types import FunctionType
from typing import Any, ClassVar, TypeAlias

import numpy as np

from flambeau._core import modes
from flambeau._core.class_homes import own_module
from flambeau._core.dtype import Defaults, float32
from flambeau._runtime.cpu import quiet
from flambeau._tensor.bits import Bits, among, reading, writing
from flambeau._tensor.sparse import SparseTensor
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.grad_mode import set_grad_enabled
from flambeau.autograd.handles import RemovableHandle
from flambeau.optim.options import Group, State

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
"""What an optimizer takes: parameters, groups, or names and parameters."""


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Kinds of devices on which a step can be part of a graph of launches."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether a step is one kernel for each parameter ("fused"), or one call for all of them.

    On the CPU calls for all are not the default, nor are they where the step is derived.
    """
    if differentiable:
        return False, False
    fused = use_fused and all(p.is_floating_point() for p in params)  # type: ignore[attr-defined]
    on_gpu = bool(params) and all(p.is_cuda for p in params)  # type: ignore[attr-defined]
    return fused, on_gpu and not fused


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step that records what it does where the optimizer is `differentiable`, and only then."""

    @functools.wraps(step)
    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(self.defaults["differentiable"]):
            return step(self, *args, **kwargs)

    return recorded


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()

HOOKS = tuple(f"_optimizer_{when}_hooks" for when in (
    "step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_state_dict_pre",
    "load_state_dict_post",
))  # fmt: skip
LATER_OPTIONS = {
    "momentum": 0, "nesterov": False, "centered": False, "amsgrad": False, "maximize": False,
    "foreach": None, "capturable": False, "differentiable": False, "fused": None,
    "decoupled_weight_decay": False,
}  # fmt: skip
"""Options that came after the first release of an optimizer, and what they stood for."""


ONLY_AT_FIRST = ("initial_accumulator_value",)


class Optimizer:
    """Groups of parameters with their options (`param_groups`) and per-parameter `state`.

    >>> import flambeau as torch
    >>> class Plain(torch.optim.Optimizer):
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p.data -= group["lr"] * p.grad
    >>> x = torch.nn.Parameter(torch.tensor([1.0]))
    >>> x.square().sum().backward()
    >>> Plain([x], {"lr": 0.25}).step()
    >>> x.detach()
    tensor([0.5000])
    """

    options: ClassVar[tuple[str, ...]] = ()
    """Options of the class that a step looks at."""
    reads_first: ClassVar[bool] = False
    """Whether it does so before state is there."""
    later: ClassVar[Group] = {}
    """Options of the class that old checkpoints lack, and what they stood for."""

    def __init_subclass__(cls, generic: bool = False) -> None:
        """Each optimizer of the library has a `step` under its own name, which messages show."""
        super().__init_subclass__()
        ours = cls.__module__.startswith("flambeau.optim.")
        if ours:
            code = cls.__init__.__code__
            options = code.co_varnames[2 : code.co_argcount + code.co_kwonlyargcount]
            cls.options = tuple(name for name in options if name not in ONLY_AT_FIRST)
            if "later" not in vars(cls):
                cls.later = {name: LATER_OPTIONS[name] for name in LATER_OPTIONS if name in options}
        if ours and not generic and cls.step is Optimizer.step:
            cls.step = _renamed(cls.step, cls)  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: Group) -> None:
        self.defaults = defaults
        self._prepare()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {_type_name(params)}"
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

    def _prepare(self) -> None:
        """Tables for hooks, and hooks around the `step` of this class."""
        for name in HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self._patch_step_function()

    def _patch_step_function(self) -> None:
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = self.profile_hook_step(cls.step)  # type: ignore[method-assign]
            cls.step.hooked = True  # type: ignore[attr-defined]

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """A `step` with the hooks called before and after it."""

        @functools.wraps(func)
        def step(*args: Any, **kwargs: Any) -> Any:
            self = args[0]
            label = self._label("step") if modes.watch.active else None
            try:
                if _global_pre_hooks or self._optimizer_step_pre_hooks:
                    args, kwargs = self._through_hooks(func, args, kwargs)
                result = func(*args, **kwargs)
                for table in (self._optimizer_step_post_hooks, _global_post_hooks):
                    for hook in table.values():
                        hook(self, args, kwargs)
                return result
            finally:
                if label is not None:
                    label.__exit__()

        return step

    def _through_hooks(self, func: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments of a step as the hooks before it leave them."""
        for table in (_global_pre_hooks, self._optimizer_step_pre_hooks):
            for hook in table.values():
                changed = hook(self, args, kwargs)
                if changed is None:
                    continue
                if not isinstance(changed, tuple) or len(changed) != 2:  # noqa: PLR2004
                    raise RuntimeError(
                        f"{func} must return None or a tuple of (new_args, "
                        f"new_kwargs), but got {changed}."
                    )
                args, kwargs = changed
        return args, kwargs

    def _label(self, method: str) -> modes.labelled:
        """Tell observers, such as profilers, that a method begins."""
        label = modes.labelled(f"Optimizer.{method}#{type(self).__name__}.{method}")
        label.__enter__()
        return label

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
        self._check_beside_others(group)
        self.param_groups.append(group)

    def _take_names(self, group: Group) -> None:
        """Split pairs (name, parameter); either all parameters have names or none has."""
        params = self._listed(group["params"])
        names = [item[0] for item in params if isinstance(item, tuple)]
        if names and len(names) != len(params):
            raise ValueError("all optimizer params should be with/without names. Some param names "
                             "are missing")  # fmt: skip
        group["params"] = params
        if names:
            group["params"] = [item[1] for item in params]
            group["param_names"] = names

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
                            f"{_type_name(parameter)}")  # fmt: skip
        leaf = parameter.is_leaf or parameter._retain is not None
        if not self.defaults.get("differentiable") and not leaf:
            raise ValueError("can't optimize a non-leaf Tensor")

    def _check_beside_others(self, group: Group) -> None:
        params = set(group["params"])
        if len(params) != len(group["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                UserWarning,
                stacklevel=4,
            )
        for other in self.param_groups:
            if ("param_names" in other) != ("param_names" in group):
                state = "with" if "param_names" in group else "without"
                raise ValueError("all optimizer param groups should be with/without names. cannot "
                                 f"add param group {state} names to the optimizer")  # fmt: skip
        if any(not params.isdisjoint(other["params"]) for other in self.param_groups):
            raise ValueError("some parameters appear in more than one parameter group")

    # ---- stepping

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient; returns what `closure` returned."""
        with set_grad_enabled(self.defaults.get("differentiable", False)):
            loss = None
            if closure is not None:
                with set_grad_enabled(True):
                    loss = closure()
            self._step_groups()
        return loss

    def _step_groups(self) -> None:
        with quiet(), self._opened():
            for group in self.param_groups:
                params = [
                    p for p in group["params"] if p._grad is not None or p.grad is not None
                ]  # a non-leaf may warn
                if self.reads_first:
                    self._check_options(group)
                states = self.collected(params, group)
                self._check_options(group)
                self.step_group(params, states, group)

    def _opened(self) -> AbstractContextManager[Any]:
        """What parameters and gradients with a bit need, of which steps take the arrays."""
        opened = ExitStack()
        if Bits.exist:
            params = [parameter for group in self.param_groups for parameter in group["params"]]
            opened.enter_context(writing(params))
            opened.enter_context(reading(among([parameter._grad for parameter in params])))
        return opened

    def _check_options(self, group: Group) -> None:
        """What was deleted from a group is an error."""
        for name in self.options:
            group[name]

    def collected(self, params: list[Any], group: Group) -> list[State]:
        """The states of parameters, filled. What cannot be stepped is refused here, before any
        parameter moves; those before it have their states by then, as in torch."""
        if not SparseTensor.exists:
            return [self.prepared(parameter, group) for parameter in params]
        states = []
        for parameter in params:
            self.check_layout(parameter._grad)
            states.append(self.prepared(parameter, group))
        return states

    def check_layout(self, grad: Any) -> None:
        """Refuse a gradient that the optimizer is not for: a sparse one, unless told otherwise."""
        if grad.is_sparse:
            raise RuntimeError(f"{self.own_name} does not support sparse gradients")

    @property
    def own_name(self) -> str:
        """The optimizer that a subclass of the user's derives from, as errors name it."""
        classes = type(self).__mro__
        return next(c.__name__ for c in classes if own_module(c).startswith("flambeau.optim."))

    def prepared(self, parameter: Any, group: Group) -> State:
        """The state of a parameter, filled."""
        state = self.state[parameter]
        if not state:
            self.start(parameter, parameter._grad, state, group)
        return state

    def step_group(self, params: list[Any], states: list[State], group: Group) -> None:
        """One step of those parameters of a group that have gradients, maybe of none."""
        for parameter, state in zip(params, states, strict=True):
            grad = parameter._grad
            self.update(parameter, -grad if group.get("maximize") else grad, state, group)

    def start(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        """Fill the empty state of a parameter before its first step."""

    def update(self, parameter: Any, grad: Any, state: State, group: Group) -> None:
        """One step of one parameter; what it keeps in `state` it changes in place."""
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or with `set_to_none=False` fill them with zeros."""
        label = self._label("zero_grad") if modes.watch.active else None
        for group in self.param_groups:
            for parameter in group["params"]:
                grad = parameter._grad
                if grad is None:
                    parameter.grad  # noqa: B018 - warns of what is not a leaf
                    continue
                if set_to_none:
                    parameter._grad = None
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()
        if label is not None:
            label.__exit__()

    # ---- checkpoints

    def state_dict(self) -> Group:
        """State by parameter number, and the groups with parameter numbers."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            places = {id(parameter): n for n, parameter in enumerate(group["params"], start)}
            numbers = {**places, **numbers}  # one that a group holds twice has its last place
            packed["params"] = [numbers[id(parameter)] for parameter in group["params"]]
            start += len(group["params"])
            groups.append(packed)
        state = {
            (numbers[id(key)] if isinstance(key, Tensor) else key): value
            for key, value in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, result)
            result = result if replaced is None else replaced
        return result

    def load_state_dict(self, state_dict: Group) -> None:
        """Take over state and options: the tensors themselves where they have the parameter's
        type, else cast to it. `step` keeps its type, but for a fused step, which counts in
        float32."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        groups = deepcopy(state_dict["param_groups"])
        self._check_groups(groups)
        places: dict[Any, tuple[Tensor, Group]] = {}
        for mine, loaded in zip(self.param_groups, groups, strict=True):
            for number, parameter in zip(loaded["params"], mine["params"], strict=True):
                places[number] = (parameter, loaded)
            loaded["params"] = mine["params"]
            if "param_names" in mine and "param_names" not in loaded:
                loaded["param_names"] = mine["param_names"]
        state: defaultdict[Any, State] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in places:
                parameter, group = places[key]
                state[parameter] = _cast(parameter, group, value, None)
            else:
                state[key] = value
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
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
        self._prepare()
        for group in self.param_groups:
            for name, value in self.later.items():
                group.setdefault(name, value)
        self.defaults.setdefault("differentiable", False)

    # ---- hooks

    def register_step_pre_hook(self, hook: Any) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return others."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Any) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return another."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Any,
                                          prepend: bool = False) -> RemovableHandle:  # fmt: skip
        """Call `hook(optimizer, state_dict)` before loading; it may return another."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Any,
                                           prepend: bool = False) -> RemovableHandle:  # fmt: skip
        """Call `hook(optimizer)` after loading."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            gap = "\n" if number else ""
            lines.append(f"{gap}Parameter Group {number}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines) + "\n)"


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


def _renamed(function: Any, owner: type) -> Any:
    """A copy of a method under the name of another class."""
    copy = FunctionType(function.__code__, function.__globals__, function.__name__,
                        function.__defaults__)  # fmt: skip
    functools.update_wrapper(copy, function)
    del copy.__wrapped__  # type: ignore[attr-defined]
    copy.__qualname__ = f"{owner.__qualname__}.{function.__name__}"
    copy.__module__ = owner.__module__
    return copy


def _type_name(value: Any) -> str:
    """The type as torch names it in errors."""
    if isinstance(value, Tensor):
        return str(value.type())  # type: ignore[attr-defined]
    kind = type(value)
    module = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"


def _cast(parameter: Tensor, group: Group, value: Any, name: str | None) -> Any:
    """Loaded state with tensors of its parameter's type."""
    if isinstance(value, Tensor):
        if name == "step":
            counts_in_single = group.get("fused") or group.get("capturable")
            return value.to(float32) if counts_in_single else value  # type: ignore[attr-defined]
        floats = parameter._data.dtype.kind not in "ciub"
        return value.to(parameter.dtype) if floats else value  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return {key: _cast(parameter, group, item, key) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(_cast(parameter, group, item, None) for item in value)  # type: ignore[call-arg]
    return value


def count_in_tensors(optimizer: Optimizer) -> None:
    """Make tensors of the counters of old checkpoints."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            kept = optimizer.state.get(parameter)
            if kept and isinstance(kept["step"], (int, float)):
                kept["step"] = scalar_state(float(kept["step"]))


def scalar_state(value: float, exact: bool | None = None) -> Tensor:
    """A number as torch keeps it in `state`: float32, or float64 where that is the default."""
    if exact is None:
        exact = Defaults.numpy_dtype.itemsize == 8  # noqa: PLR2004
    return wrap(np.array(value, np.float64 if exact else np.float32))
