"""A group of operators as one callable: kernels where there are some, its operators otherwise.

What kernels a call takes is settled by its key: types, shapes and strides of tensors, the values of
numbers, and which gradients are wanted. The first call with a key runs the operators; from the
second on there is a form, if one can be made. So nothing is compiled for what happens once; and
where shapes change all the time, each further form is made only after twice as many calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau._compiler.expr import Expr
from flambeau._compiler.kernel_source import NoForm
from flambeau._core import modes, settings
from flambeau._runtime import choice
from flambeau._tensor.sparse import NotStrided
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.jit.ir.graph import Graph
from flambeau.jit.optimise.fusion import node as nodes
from flambeau.jit.optimise.fusion.forms import Form
from flambeau.jit.optimise.fusion.lowering import scheduled, sources_of, worth_saving
from flambeau.jit.optimise.fusion.symbols import (
    NotFusible,
    Source,
    Whole,
    parameter,
)
from flambeau.jit.optimise.fusion.tracing import COMPUTED, Computed, Tracer, tracing
from flambeau.jit.optimise.subgraphs import runner
from flambeau.nn.parameter import Parameter

FREE_FORMS = 3
"""Forms of one group that are made at the second call already."""
MOST_FORMS = 64
"""Forms of one group; then its operators run."""
FEW = 4
"""Operators that are quicker one by one than as a kernel, on at most `SMALL` elements:
finding and launching a kernel takes about as long as four of them."""
SMALL = 1024
DENSE = frozenset((Tensor, Parameter))
NUMBERS = (int, float, bool, type(None), str)


class Group:
    """Operators that are computed together. `plain` runs them one by one."""

    calls_before = 1
    """Calls with a key before its form is made, as long as there are few forms."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.operators: Callable[..., Any] = self._first_call
        self.forms: dict[Any, Any] = {}  # int: calls so far; False: there is no form
        self.patience = self.calls_before  # calls with a key before a form is made for it
        self.few = sum(node.schema is not None for node in graph) <= FEW

    def plain(self, *values: Any) -> Any:
        """The operators, one by one."""
        return self.operators(*values)

    def _first_call(self, *values: Any) -> Any:
        self.operators = runner(self.graph)
        return self.operators(*values)

    def __call__(self, *values: Any) -> Any:
        """The results: one, or a tuple."""
        if self.few:
            for value in values:
                if value.__class__ in DENSE and value._data.size > SMALL:
                    break
            else:
                return self.operators(*values)
        if modes.watch.interferes():
            return self.plain(*values)
        return self._by_form(values)

    def _by_form(self, values: tuple[Any, ...]) -> Any:
        """By the kernels for arguments like these, if there are some, or some are made now."""
        key = self.key_of(values)
        if key is None:
            return self.plain(*values)
        form = self.forms.get(key, 0)
        if form.__class__ is int:
            if form < self.patience:
                if form or len(self.forms) < MOST_FORMS:
                    self.forms[key] = form + 1
                return self.plain(*values)
            form = self.forms[key] = self.form_for(values) or False
            made = sum(isinstance(known, Form) for known in self.forms.values())
            few = made < FREE_FORMS
            self.patience = self.calls_before if few else 2 ** (made - FREE_FORMS + 1)
        if form is False:
            return self.plain(*values)
        try:
            return self.fused(form, values)
        except (NotFusible, NoForm) as error:  # found only now, by how memory lies
            self.forms[key], self.reason = False, str(error)
            return self.plain(*values)

    def fused(self, form: Form, values: Sequence[Any]) -> Any:
        """The results by kernels."""
        store = form.run(values)
        pairs = zip(form.results, form.constants, strict=True)
        results = [constant if place is None else wrap(store[place]) for place, constant in pairs]
        if form.wanted:
            nodes.record(self, form, values, store, results)
        return results[0] if len(results) == 1 else tuple(results)

    def key_of(self, values: Sequence[Any]) -> Any:
        """What the form for these arguments depends on; None where there is none."""
        return key_of(values)

    def form_for(self, values: Sequence[Any]) -> Form | None:
        """Kernels for arguments like these; None if there are none."""
        if not choice.available():
            return None
        try:
            return Maker(self, values).form
        except NotFusible as error:
            self.reason = str(error)
            return None

    def __repr__(self) -> str:
        return f"<fused group of {sum(1 for _ in self.graph)}>"


def key_of(values: Sequence[Any]) -> Any:
    """What the form of a call depends on; None where there is no form."""
    grad = modes.grad.enabled
    key: list[Any] = [settings.get_num_threads()]
    for value in values:
        if isinstance(value, Tensor):
            if not (value.__class__ is Tensor or getattr(value, "_is_param", False)):
                return None
            try:
                data = value._data
            except NotStrided:
                return None
            wanted = grad and (value._requires_grad or value._base is not None
                               and value.requires_grad)  # fmt: skip
            if grad and value._inference:  # it must not be saved, and its operators say so
                return None
            key += [data.shape, data.strides, data.dtype.num, wanted]
        elif value.__class__ in NUMBERS:
            key += [value.__class__, value]
        elif value.__class__ is list and all(v.__class__ in NUMBERS for v in value):
            key.append(tuple(value))
        else:
            return None
    return tuple(key)


class Maker:
    """Makes a form: traces the group forward and backward, and lowers what was noted."""

    def __init__(self, group: Group, values: Sequence[Any]) -> None:
        self.group = group
        self.values = values
        self.form = Form()
        tensors = [value for value in values if isinstance(value, Tensor)]
        compute = {t._data.dtype for t in tensors if t._data.dtype in COMPUTED}
        if len(compute) != 1 or not all(t._data.size for t in tensors):
            raise NotFusible("operands of several types, or without elements")
        self.tracer = Tracer(compute.pop())
        self.aliases: dict[int, Tensor] = {}
        self._forward()
        if self.form.wanted:
            self._backward()
        self.form.forward = scheduled(self.tracer, self.steps)
        self.form.places = self.tracer.places

    def _alias(self, tensor: Tensor) -> Tensor:
        """A leaf over the same memory."""
        alias = wrap(tensor._data)
        if modes.grad.enabled and tensor.requires_grad:
            alias.requires_grad_()  # type: ignore[attr-defined]
        return alias

    def _forward(self) -> None:
        form, tracer = self.form, self.tracer
        given: list[Any] = []
        for position, value in enumerate(self.values):
            if isinstance(value, Tensor):
                alias = self._alias(value)
                place = tracer.place()
                tracer.source(alias, place)
                form.given.append((position, place))
                self.aliases[position] = alias
                if alias.requires_grad:
                    form.wanted.append(position)
                value = alias
            given.append(value)
        with tracing(tracer):
            results = self.group.plain(*given)
        self.results = results if isinstance(results, tuple) else (results,)
        for result in self.results:
            self._result(result)
        if not any(form.recorded):
            form.wanted = []
        if form.wanted:
            self.candidates = worth_saving(tracer)
        self.steps = tracer.steps

    def _result(self, result: Any) -> None:
        form, tracer = self.form, self.tracer
        if not isinstance(result, Tensor):
            if result.__class__ not in NUMBERS:
                raise NotFusible("a result that is no tensor and no number")
            form.results.append(None)
            form.constants.append(result)
            form.recorded.append(False)
            return
        symbol = tracer.symbol(result)
        if isinstance(symbol, Whole) and getattr(symbol.expr, "op", "") in (
            "parameter",
            "constant",
        ):
            raise NotFusible("a result that is an argument")
        if result._base is not None or not result._data.flags.c_contiguous:
            raise NotFusible("a result that is a view, or not row-major")
        form.results.append(tracer.placed(symbol).place)
        form.constants.append(None)
        form.recorded.append(bool(result.requires_grad))

    def _backward(self) -> None:
        from flambeau.autograd import grad

        form, tracer = self.form, self.tracer
        ahead = dict.fromkeys(range(tracer.places), 0)
        tracer.levels.update(ahead)
        tracer.steps, tracer.computed = [], {}
        outputs = [r for r, has in zip(self.results, form.recorded, strict=True) if has]
        grads = []
        for output in outputs:
            slope = wrap(output._data.copy())
            place = tracer.place()
            tracer.source(slope, place)
            form.grads.append(place)
            grads.append(slope)
        wanted = [self.aliases[position] for position in form.wanted]
        with tracing(tracer):
            found = grad(outputs, wanted, grads, allow_unused=True)
        inputs = {place for _, place in form.given}
        for slope in found:
            source = None if slope is None else tracer.placed(tracer.symbol(slope))
            if source is not None and source.place in inputs:
                raise NotFusible("a gradient that is an argument")
            form.slopes.append(source)
        ahead.update(self._save())
        form.backward = scheduled(tracer, tracer.steps)
        self._find_kept(ahead)

    def _save(self) -> dict[int, int]:
        """Let the forward pass store what is worth it, where the backward pass reads it; the new
        places.
        """
        tracer, made = self.tracer, {}

        def change(node: Expr) -> Any:
            found = self.candidates.get(id(node))
            if found is None:
                return None
            place = tracer.place()
            source = Source(place, found.symbol.shape)
            tracer.sources[source.name] = source
            self.steps.append(Computed(place, found.symbol, found.level))
            made[place] = 0
            return parameter(source.name)

        tracer.rebuild(change)
        return made

    def _find_kept(self, ahead: dict[int, int]) -> None:
        """What the backward pass reads of the forward pass."""
        form = self.form
        inputs = {place: position for position, place in form.given}
        read = {source.place for source in sources_of(form.backward)}
        read |= {source.place for source in form.slopes if source is not None}
        for place in sorted(read):
            if place in inputs:
                form.kept_inputs.append((inputs[place], place))
            elif place in ahead:
                form.kept.append(place)
