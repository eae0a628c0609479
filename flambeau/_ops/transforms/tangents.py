"""What operators do with tangents: derivatives in forward mode, from the formulas of backward.

A row states how a gradient g of the result becomes one of each operand, a linear map of g. What
forward mode needs is that map turned round, applied to the operands' tangents:

* of a view, the same view of the tangent;
* of what is linear in each of some operands (`linear=` on the row), the operator of the tangent;
* of elementwise operators of real numbers the map is its own transpose;
* of all others, the derivative of the map by g, which backward finds by the same rows
  ("double backward", J. Townsend, 2017).

Values keep their history, so that derivatives can be differentiated again, in both modes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from flambeau._core import modes
from flambeau._ops.table import dispatch, pointwise, unformulated
from flambeau._ops.table.op import Op
from flambeau._ops.table.outputs import tensors_in
from flambeau._ops.table.recording import Formula, Plan, fit
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.backward import grad as gradients_of
from flambeau.autograd.batches import inside, learning
from flambeau.autograd.grad_mode import enable_grad, set_grad_enabled
from flambeau.autograd.tangents import Level, Transform, without_graph

NOT_THERE = (
    "Trying to use forward AD with {} that does not support it because it has not been implemented "
    "yet."
)


def run(level: Level, op: Op, plain: Callable[..., Any], values: tuple[Any, ...],
        functional: bool | None) -> Any:  # fmt: skip
    """A row's call where an operand carries a tangent; NotImplemented where none does."""
    if modes.grad.enabled is None:
        return NotImplemented
    if any(level.tangent(tensor) is not None for tensor in tensors_in(values)):
        return _carried(level, op, plain, values, functional)
    return NotImplemented


def _carried(level: Level, op: Op, plain: Callable[..., Any], values: tuple[Any, ...],
             functional: bool | None) -> Any:  # fmt: skip
    """Run the operator, and let what it gives carry a tangent."""
    with level.apart():
        before = values if functional else (values[0].clone(), *values[1:])
        if not functional:
            with set_grad_enabled(level.is_recorded or bool(modes.grad.enabled)):
                _hand_over(level, values[0], before[0])
        result = dispatch.watched(op, plain, values, functional)
        call = Call(level, op, plain, before, result, functional)
        with set_grad_enabled(level.is_recorded or bool(modes.grad.enabled)):
            found = _tangents_of(call)
        if not functional:
            level.overwrite(values[0], found[0])
            return result
        for tensor, tangent in zip(call.results, found, strict=True):
            if tangent is not None and not any(tensor is value for value in values):
                level.put(tensor, tangent)
    return result


def _tangents_of(call: Call) -> list[Any]:
    try:
        return call.tangents()
    except NotImplementedError as error:  # of a formula that stands for none
        if not str(error).startswith(unformulated.DECLARED.partition("{")[0]):
            raise
        raise NotImplementedError(NOT_THERE.format(call.op.public)) from None


def _hand_over(level: Level, tensor: Tensor, copied: Tensor) -> None:
    """A copy of a tensor from before a write carries a copy of its tangent."""
    tangent: Any = level.tangent(tensor)
    if tangent is not None:
        level.put(copied, tangent.clone())


class Call:
    """A call of a row whose operands carry tangents."""

    def __init__(self, level: Level, op: Op, plain: Callable[..., Any], values: tuple[Any, ...],
                 result: Any, functional: bool | None) -> None:  # fmt: skip
        self.level, self.op, self.plain, self.values = level, op, plain, values
        self.functional = functional
        self.results = list(result) if isinstance(result, (tuple, list)) else [result]
        self.named = dict(zip([a.name for a in op.schema.arguments], values, strict=False))

    def tangents(self) -> list[Any]:
        """The tangents of the results, None for those that have none."""
        op = self.op
        if op.kind == "view":
            return self._of_view()
        if op.underived:
            raise NotImplementedError(NOT_THERE.format(op.public))
        if not op.backward:
            return [None] * len(self.results)
        if op.linear and self.functional:
            return self._linear(op.linear)
        plan = plan_of(op, self.functional)
        if op.kind == "pointwise":
            self._with_tensors()
        self.named.update(zip(plan.results, self.results, strict=True) if not plan.lists else ())
        if op.tangent is not None:
            return self._by_own_formula(op.tangent)
        formulas = [f for f in plan.formulas if any(map(self._carries, f.targets))]
        if op.kind == "pointwise" and self._is_real():
            return [self._elementwise(formulas)]
        return self._turned(plan, formulas)

    def _carries(self, name: str) -> bool:
        value = self.named[name]
        given = value if isinstance(value, (list, tuple)) else [value]
        return any(isinstance(v, Tensor) and self.level.tangent(v) is not None for v in given)

    def _of_view(self) -> list[Any]:
        tangent = self.level.tangent(self.values[0])
        if tangent is None or not self.op.backward:
            return [None] * len(self.results)
        found = self._again((tangent, *self.values[1:]))
        return list(found) if isinstance(found, (tuple, list)) else [found]

    def _again(self, values: tuple[Any, ...]) -> Any:
        """The operator of other operands, which may carry tangents of levels further out."""
        return dispatch.watched(self.op, self.plain, values)

    def _is_real(self) -> bool:
        tensors = [*tensors_in(self.values), *self.results]
        return all(tensor._data.dtype.kind not in "cW" for tensor in tensors)

    def _linear(self, names: Sequence[str]) -> list[Any]:
        """The sum of what the operator makes of each tangent in its operand's place."""
        total = None
        for name in names:
            tangent = self.level.tangent(self.named[name])
            if tangent is not None:
                cast = tangent.to(self.named[name].dtype)
                part = self._again(tuple((self.named | {name: cast}).values()))
                total = part if total is None else total + part
        return [total]

    def _by_own_formula(self, function: Callable[..., Any]) -> list[Any]:
        """What the row's own formula makes of the first operand's tangent."""
        formula = Formula("tangent", function)
        first = next(iter(self.named.values()))
        known = {"tangent": self.level.tangent(first)}
        values = [known[n] if n in known else self._value(n) for n in formula.names]
        found = function(*values)
        return list(found) if isinstance(found, tuple) else [found]

    def _with_tensors(self) -> None:
        """Numbers in the place of tensors become tensors, as formulas expect."""
        operands = [v for v in self.values if isinstance(v, (Tensor, int, float, complex))]
        element = pointwise.compute_dtype(self.op, operands)
        values = pointwise.as_tensors(self.op, list(self.values), element)
        self.named = dict(zip([a.name for a in self.op.schema.arguments], values, strict=True))

    # ---- elementwise

    def _elementwise(self, formulas: Sequence[Formula]) -> Any:
        """The sum of what each operand's tangent contributes."""
        (result,) = self.results
        total = None
        for formula, name, tangent in self._contributions(formulas):
            wanted = tuple(name == target for target in formula.targets)
            found = self._applied(formula, [tangent.to(result.dtype)], wanted)
            part = found[formula.targets.index(name)]
            if part is not None:
                total = part if total is None else total + part
        return None if total is None else self._own(total, result)

    def _contributions(self, formulas: Sequence[Formula]) -> Iterator[tuple[Formula, str, Any]]:
        for formula in formulas:
            for name in formula.targets:
                value = self.named[name]
                tangent = self.level.tangent(value) if isinstance(value, Tensor) else None
                if tangent is not None:
                    yield formula, name, tangent

    def _applied(self, formula: Formula, grads: list[Any], wanted: tuple[bool, ...]) -> Any:
        """What a formula makes of gradients of the results: one value for each target."""
        known = {"grad": grads[0], "grads": grads, "given": grads, "wanted": wanted}
        values = [known[n] if n in known else self._value(n) for n in formula.names]
        found = formula.function(*values)
        return found if formula.joint else (found,)

    def _value(self, name: str) -> Any:
        """What formulas call by a name: an argument, a result, or what is known of one."""
        if name in self.named:
            return self.named[name]
        base, _, what = name.rpartition("_")
        value = self.named[base]
        if isinstance(value, (list, tuple)):
            return [getattr(v._data, what) for v in value]
        return None if value is None else getattr(value._data, what)

    # ---- any other

    def _turned(self, plan: Plan, formulas: Sequence[Formula]) -> list[Any]:
        """The derivative of the formulas by the gradients, in the direction of the tangents."""
        shown = set(plan.differentiable_results) if not plan.lists else None
        grads = [
            _dummy(r) if shown is None or name in shown else None
            for name, r in zip(plan.results * (len(self.results) if plan.lists else 1),
                               self.results, strict=True)
        ]  # fmt: skip
        asked = [grad for grad in grads if grad is not None]
        if not asked:
            return grads
        maps, directions, is_flat = [], [], False
        with enable_grad():
            for formula in formulas:
                wanted = tuple(map(self._carries, formula.targets))
                found = self._applied(formula, grads, wanted)
                for name, one in zip(formula.targets, found, strict=True):
                    for operand, part in _pairs(self.named[name], one):
                        tangent = self.level.tangent(operand)
                        if tangent is None or part is None:
                            continue
                        fitted = fit(part, operand._data.shape, operand._data.dtype)
                        if fitted.requires_grad:
                            maps.append(fitted)
                            directions.append(tangent.to(fitted.dtype))
                        else:
                            is_flat = True  # no gradient gets through, whatever it is
        if not maps:
            return [_zeros(r) if is_flat and g is not None else None
                    for g, r in zip(grads, self.results, strict=True)]  # fmt: skip
        found = iter(gradients_of(maps, asked, directions, allow_unused=True,
                                  create_graph=bool(modes.grad.enabled)))  # fmt: skip
        tangents = [None if grad is None else next(found) for grad in grads]
        return [
            None if t is None else self._own(self._cut_off(t), result)
            for t, result in zip(tangents, self.results, strict=True)
        ]

    def _own(self, tangent: Any, result: Any) -> Any:
        """A tangent in the shape of the result, with memory of its own."""
        if tangent._data.shape != result._data.shape:
            tangent = tangent.expand(result.shape)
        given = [self.level.tangent(tensor) for tensor in tensors_in(self.values)]
        is_shared = tangent._root is not None or any(tangent is one for one in given)
        return tangent.clone() if is_shared else tangent

    def _cut_off(self, tangent: Any) -> Any:
        """The tangent, without a graph where nothing that it was made of has one."""
        sources = [*tensors_in(self.values), *self.results]
        tangents = [self.level.tangent(tensor) for tensor in tensors_in(self.values)]
        learns = any(t is not None and t.requires_grad for t in [*sources, *tangents])
        return tangent if learns and modes.grad.enabled else without_graph(tangent)


def _dummy(result: Any) -> Any:
    """What stands for a gradient; None for results that have none. The map is linear: its
    derivative is the same everywhere."""
    if result is None or result._data.dtype.kind not in "fcVW":
        return None
    with enable_grad():
        made = learning(inside(result.detach().new_zeros(()).expand_as(result).clone()))
    made._stands_for = Transform
    return made


def _zeros(result: Any) -> Any:
    """The tangent of what changes with nothing."""
    return result.detach().new_zeros(result.shape)


def _pairs(operand: Any, found: Any) -> Iterator[tuple[Tensor, Any]]:
    """Each tensor of an operand with what the formula gives for it."""
    if isinstance(operand, (list, tuple)):
        yield from ((o, f) for o, f in zip(operand, found or (), strict=False) if o is not None)
    elif isinstance(operand, Tensor):
        yield operand, found


@cache
def plan_of(op: Op, functional: bool | None) -> Plan:
    """The formulas of a row, or of its in-place form, and what they need."""
    return Plan(op if functional else op.written)
