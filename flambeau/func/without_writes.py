"""`functionalize`: a function without its in-place operators.

The function gets tensors of a class of their own. Each is a view, by a chain of steps, of a *cell*
that holds a value; a write computes a new value without writing, carries it back along the chain
(`select_scatter` for `select`, ...) into the cell, and the other views of the cell are computed
anew when they are next asked for. What was written to an argument is copied to it at the end.

How such tensors are laid out, the fake tensors know that they are (`_subclasses/fake_tensor.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from flambeau._core import modes
from flambeau._core.missing import NotImplementedInFlambeau
from flambeau._ops.table.outputs import tensors_in
from flambeau._subclasses.fake_tensor import FakeTensor, FakeTensorMode, layout_of, written_by
from flambeau._tensor.tensor import Tensor, constructors
from flambeau._tensor.wrappers import Wrapped
from flambeau.utils._pytree import tree_map

WAYS = ("mutations", "mutations_and_views")
WRONG_WAY = (
    "functionalize(f, remove='mutations'): received invalid argument for remove={}. Valid options "
    "are:\n     remove='mutations': all inplace and out= operators will be removed from the "
    "program, and replaced with their out-of-place equivalents.\n     remove='mutations_and_views':"
    " In addition to the above, all aliasing operators {{view}} will be replaced with their "
    "non-aliasing counterparts, {{view}}_copy.\n"
)
FOREIGN = (
    "mutating a non-functional tensor with a functional tensor is not allowed. Please ensure that "
    "all of your inputs are wrapped inside of a functionalize() call."
)
LAYOUT = "functionalize: writes that give a tensor another layout: resize_, set_, ..."
NORMAL_FORMS = {"normal": "normal_functional"}
"""Operators whose form without a write has a name of its own."""


class Step(NamedTuple):
    """From a tensor to a view of it."""

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    number: int | None
    """Which of several results it is."""

    def forward(self, value: Any) -> Any:
        """The view."""
        result = self.func(value, *self.args, **self.kwargs)
        return result if self.number is None else result[self.number]

    def back(self, whole: Any, part: Any) -> Any:
        """`whole` with another part where the view is.

        Raises:
            NotImplementedInFlambeau: for views that have no way back.
        """
        name = self.func._opname
        if name not in BACK:
            raise NotImplementedInFlambeau(f"functionalize: writes through {self.func}")
        return BACK[name](self, whole, part)


def _reshaped(step: Step, whole: Any, part: Any) -> Any:
    return part.reshape(whole.shape)


def _scattered(name: str) -> Callable[..., Any]:
    def back(step: Step, whole: Any, part: Any) -> Any:
        packet = constructors["operator_of_aten"](name)
        return packet.default(whole, part, *step.args, **step.kwargs)

    return back


def _permuted_back(step: Step, whole: Any, part: Any) -> Any:
    dims = [dim % part.dim() for dim in step.args[0]]
    return part.permute([dims.index(dim) for dim in range(len(dims))])


def _part_of_split(step: Step, whole: Any, part: Any) -> Any:
    sizes, dim = step.args[0], (*step.args[1:], *step.kwargs.values(), 0)[0]
    number = step.number or 0
    start = sizes * number if isinstance(sizes, int) else sum(sizes[:number])
    return whole.slice_scatter(part, dim, start, start + part.shape[dim])


def _part_of_unbind(step: Step, whole: Any, part: Any) -> Any:
    dim = (*step.args, *step.kwargs.values(), 0)[0]
    return whole.select_scatter(part, dim, step.number)


BACK: dict[str, Callable[[Step, Any, Any], Any]] = {
    **dict.fromkeys(("view", "_unsafe_view", "squeeze", "unsqueeze", "expand"), _reshaped),
    **dict.fromkeys(("detach", "alias", "view_as"), lambda step, whole, part: part),
    **dict.fromkeys(("t", "transpose", "_conj", "_neg_view"),
                    lambda step, whole, part: step.forward(part)),
    **dict.fromkeys(("split", "split_with_sizes"), _part_of_split),
    **{name: _scattered(f"{name}_scatter") for name in ("select", "slice", "diagonal",
                                                        "as_strided")},
    "permute": _permuted_back,
    "unbind": _part_of_unbind,
    "view_as_real": lambda step, whole, part: part.contiguous().view_as_complex(),
    "view_as_complex": lambda step, whole, part: part.view_as_real(),
}  # fmt: skip
"""How what was written through a view gets into what it is a view of."""


class Cell:
    """What tensors that share memory are views of."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.version = 0


class State:
    """What the array of a tensor of the function stands for."""

    def __init__(self, value: Any, cell: Cell | None = None, steps: tuple[Step, ...] = ()) -> None:
        self.cell = Cell(value) if cell is None else cell
        self.steps = steps
        self.value = value
        self.version = self.cell.version

    def current(self) -> Any:
        """The value, after all writes."""
        if self.version != self.cell.version:
            value = self.cell.value
            for step in self.steps:
                value = step.forward(value)
            self.value, self.version = value, self.cell.version
        return self.value

    def write(self, value: Any) -> None:
        """Another value, also for the views that share memory with this one."""
        wholes = [self.cell.value]
        for step in self.steps[:-1]:
            wholes.append(step.forward(wholes[-1]))
        for step, whole in zip(reversed(self.steps), reversed(wholes), strict=False):
            value = step.back(whole, value)
        self.cell.value = value
        self.cell.version += 1


class Standing(Wrapped):
    """The array of a tensor of the function."""

    state: State

    def copy(self, order: Any = "C") -> Any:
        """What was there before a write, for the formulas of backward."""
        return standing(self, State(self.state.current()))


def standing(data: Any, state: State) -> Any:
    """Another array of the same layout, with a state."""
    result: Any = np.ndarray.view(data, Standing)
    result.place, result.state = data.place, state
    return result


def state_of(tensor: Any) -> State | None:
    """What a tensor of the function stands for; None for those of the program around it."""
    return getattr(tensor._data, "state", None)


class FunctionalTensor(FakeTensor):
    """A tensor in a function that writes nowhere. Its array has a `State`: aliases that autograd
    keeps share it, and so does what `unsqueeze_` and the like make of a tensor."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Outside of the function.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(f"{func}: a tensor of functionalize() was used after its function")


class FunctionalMode(FakeTensorMode):
    """Runs the operators of one call of a function on values, and writes to none of them."""

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)

    # ---- tensors of the function

    def around(self, value: Any) -> FunctionalTensor:
        """A tensor of the function, with a value and memory of its own."""
        return _standing(FunctionalTensor(self, layout_of(value), value.device), State(value))

    def _fake_result(self, value: Any, place: Any, same: dict[int, Any]) -> Any:
        if not isinstance(value, Tensor):
            return value
        return same[id(value)] if id(value) in same else FunctionalTensor(self, value, place)

    # ---- calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """A call on values, and its results as tensors of the function.

        Raises:
            RuntimeError: one of its tensors is written into one that is none of them.
        """
        kwargs = kwargs or {}
        given = tensors_in((*args, *kwargs.values()))
        states = {id(tensor): state for tensor in given if (state := state_of(tensor))}
        written = written_by(func, args, kwargs)
        if any(id(tensor) not in states for tensor in written):
            if states:
                raise RuntimeError(FOREIGN)
            return func(*args, **kwargs)
        values = {key: state.current() for key, state in states.items()}
        replaced = tree_map(lambda leaf: values.get(id(leaf), leaf), (args, kwargs))
        if written:
            return self._write(func, written, *replaced)
        with recording():
            result = func(*replaced[0], **replaced[1])
        if func.is_view and id(args[0]) in states:
            layouts = super().__torch_dispatch__(func, types, args, kwargs)
            return _views(Step(func, args[1:], kwargs, None), states[id(args[0])], layouts, result)
        return tree_map(
            lambda leaf: self.around(leaf) if isinstance(leaf, Tensor) else leaf, result
        )

    def _write(self, func: Any, written: Any, args: Any, kwargs: Any) -> Any:
        with recording():
            if func._opname == "copy_":
                news: Any = [args[1]]
                result: Any = None
            else:
                news, result = _without_write(func, written, args, kwargs)
            for tensor, new in zip(written, news, strict=True):
                if new.dtype != tensor.dtype or new.device != tensor.device:
                    new = new.to(tensor.device, tensor.dtype)
                state: Any = state_of(tensor)
                state.write(new if new.shape == tensor.shape else new.expand(tensor.shape))
        if result is None:
            return written[0]
        return tree_map(
            lambda leaf: self.around(leaf) if isinstance(leaf, Tensor) else leaf, result
        )

    def run(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """A row that ATen has not.

        Raises:
            NotImplementedInFlambeau: always.
        """
        raise NotImplementedInFlambeau(f"functionalize: {op.public} is no operator of aten")


def _standing(tensor: Any, state: State) -> Any:
    tensor._data = standing(tensor._data, state)
    tensor._requires_grad = False
    return tensor


def _views(step: Step, base: State, layouts: Any, values: Any) -> Any:
    if isinstance(layouts, Tensor):
        return _standing(layouts, State(values, base.cell, (*base.steps, step)))
    pairs = enumerate(zip(layouts, values, strict=True))
    return [_views(step._replace(number=number), base, layout, value)
            for number, (layout, value) in pairs]  # fmt: skip


def _without_write(func: Any, written: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """What would be written, and the result where that is something else."""
    name = func._opname
    if name.endswith("_"):
        name = name[:-1]
        packet = constructors["operator_of_aten"](NORMAL_FORMS.get(name, name))
        known = packet.overloads() if packet is not None else ()
        for overload in sorted(known, key=lambda one: one != func._overloadname):
            form = getattr(packet, overload)
            if not overload.endswith("out") and form.fits(args, kwargs):
                return [form(*args, **kwargs)], None
    values = [state_of(tensor).current() for tensor in written]  # type: ignore[union-attr]
    copies = [value.clone() for value in values]
    swapped = {id(value): copy for value, copy in zip(values, copies, strict=True)}
    args, kwargs = tree_map(lambda leaf: swapped.get(id(leaf), leaf), (args, kwargs))
    result = func(*args, **kwargs)
    return copies, None if func._opname.endswith("_") else result


@contextmanager
def recording() -> Iterator[None]:
    """The values record for backward, as the program around the call has it."""
    before = modes.grad.enabled
    modes.grad.enabled = before if before is None else modes.grad.above
    try:
        yield
    finally:
        modes.grad.enabled = before


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function that does what another one does without writing in place.

    `make_fx(functionalize(f))` shows a program of operators that give new tensors; views of what
    was written to are made anew. Arguments that `func` writes to are written to once, at the end.

    Args:
        func: a function of tensors, and of lists, tuples and dicts of them.
        remove: "mutations", or "mutations_and_views"; views are values of their own in either.

    Raises:
        RuntimeError: `remove` is another word; `func` writes one of its tensors into one that it
            was not given.
        NotImplementedInFlambeau: `func` gives a tensor another layout in place, or uses an
            operator that is none of `aten`'s.

    >>> import flambeau as torch
    >>> from flambeau.fx.experimental.proxy_tensor import make_fx
    >>> def f(x):
    ...     y = x.clone()
    ...     y.view(-1).mul_(2)
    ...     return y
    >>> print(make_fx(torch.func.functionalize(f))(torch.ones(2, 2)).code.strip())
    def forward(self, x_1):
        clone = torch.ops.aten.clone.default(x_1);  x_1 = None
        view = torch.ops.aten.view.default(clone, [-1]);  clone = None
        mul = torch.ops.aten.mul.Tensor(view, 2);  view = None
        view_1 = torch.ops.aten.view.default(mul, [2, 2]);  mul = None
        return view_1
    """
    if remove not in WAYS:
        raise RuntimeError(WRONG_WAY.format(remove))

    @wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        mode = FunctionalMode()
        taken: dict[int, tuple[Any, FunctionalTensor]] = {}

        def wrap(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return leaf
            if id(leaf) not in taken:
                taken[id(leaf)] = leaf, mode.around(leaf)
            return taken[id(leaf)][1]

        args, kwargs = tree_map(wrap, (args, kwargs))
        with mode:
            result = func(*args, **kwargs)
        result = tree_map(_taken_out, result)
        for given, inside in taken.values():
            state: Any = state_of(inside)
            if inside.shape != given.shape:
                raise NotImplementedInFlambeau(LAYOUT)
            if state.cell.version:
                given.copy_(state.current())
        return result

    return wrapped


def _taken_out(leaf: Any) -> Any:
    """The value of a tensor of the function; else what it is."""
    if not isinstance(leaf, FunctionalTensor):
        return leaf
    state = state_of(leaf)
    if state is None:
        raise NotImplementedInFlambeau(LAYOUT)
    return state.current()
