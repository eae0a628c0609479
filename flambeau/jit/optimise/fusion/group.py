"""A group of operators as one callable: kernels where there are some, its operators otherwise.

What kernels a call takes is settled by its key: types, shapes and strides of tensors, the values of
numbers, and which gradients are wanted. The first call with a key runs the operators; from the
second on there is a form, if one can be made. So nothing is compiled for what happens once; and
where shapes change all the time, each further form is made only after twice as many calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._compiler.expr import Expr
from flambeau._compiler.kernel_source import NoForm
from flambeau._core import modes, settings
from flambeau._core.dtype import Defaults
from flambeau._runtime import choice
from flambeau._tensor.sparse import NotStrided
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.jit.ir.graph import Graph
from flambeau.jit.optimise import faults
from flambeau.jit.optimise.exact import exact
from flambeau.jit.optimise.fusion import node as nodes
from flambeau.jit.optimise.fusion import saving
from flambeau.jit.optimise.fusion.forms import Form
from flambeau.jit.optimise.fusion.lowering import scheduled, sources_of, worth_saving
from flambeau.jit.optimise.fusion.symbols import (
    NotFusible,
    Parts,
    Source,
    Whole,
    leaves,
    parts_of,
)
from flambeau.jit.optimise.fusion.tracing import COMPUTED, Called, Computed, Fault, Tracer, tracing
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

    part = "fusion"
    """What its faults are counted under."""
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
            form = self.forms[key] = self._made(values)
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
        except Exception as error:
            self.forms[key], self.reason = False, repr(error)
            return faults.plainly(self.part, error, self.plain, *values)

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

    def _made(self, values: Sequence[Any]) -> Form | bool:
        """The form for arguments like these; False if there is none."""
        if not choice.available():
            return False
        try:
            return self.form_for(values) or False
        except (NotFusible, NoForm) as error:
            self.reason = str(error)
        except Fault as error:
            self.reason = repr(error.__cause__)
            faults.note(self.part, error.__cause__)  # type: ignore[arg-type]
        except Exception as error:
            # No error of the program: its operators have run with arguments like these.
            self.reason = repr(error)
            faults.note(self.part, error)
        return False

    def form_for(self, values: Sequence[Any]) -> Form:
        """Kernels for arguments like these; NotFusible if there are none."""
        return Maker(self, values).form

    def __repr__(self) -> str:
        return f"<fused group of {sum(1 for _ in self.graph)}>"


def key_of(values: Sequence[Any]) -> Any:
    """What the form of a call depends on; None where there is no form."""
    grad = modes.grad.enabled
    key: list[Any] = [settings.get_num_threads(), Defaults.dtype]
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
            # Of numbers only floats may be equal and differ; most are neither 0 nor nan.
            odd = value.__class__ is float and not (value < 0 or value > 0)
            key += [value.__class__, exact(value) if odd else value]
        elif value.__class__ is list and all(v.__class__ in NUMBERS for v in value):
            key.append(exact(value))
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
        if len({id(result) for result in self.results}) < len(self.results):
            raise NotFusible("two results that are one tensor")
        if not any(form.recorded):
            form.wanted = []
        if form.wanted:
            self._find_saved()
        self.steps = tracer.steps

    def _find_saved(self) -> None:
        """What operators save is what the backward kernels read."""
        form, tracer = self.form, self.tracer
        self.candidates = worth_saving(tracer)
        self.saved = saving.saved_by(self.results, self.aliases)
        form.checked, form.saved = self.saved.titles, sorted(self.saved.arguments)
        self.slots = saving.slots_of(self.results)
        form.needed = [saving.saved_by(self.results, self.aliases, [result])
                       for result, has in zip(self.results, form.recorded, strict=True)
                       if has]  # fmt: skip
        form.reached = [saving.reached(result, self.aliases)
                        for result, has in zip(self.results, form.recorded, strict=True)
                        if has]  # fmt: skip
        form.wanted = sorted(frozenset().union(*form.reached))
        self.own: dict[int, Source] = {}  # by ids of expressions: results that are saved
        for number in form.checked:
            symbol, place = tracer.symbol(self.results[number]), form.results[number]
            if isinstance(symbol, Whole) and place is not None and tracer.covers(symbol):
                self.own[id(symbol.expr)] = Source(place, symbol.shape)

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
        if not isinstance(symbol, (Whole, Parts)):
            raise NotFusible("a result that is a number")
        if isinstance(symbol, Whole) and getattr(symbol.expr, "op", "") in (
            "parameter",
            "constant",
        ):
            raise NotFusible("a result that is an argument")
        if (
            result._base is not None
            or result._data.strides != np.empty_like(result._data, order="C").strides
        ):
            raise NotFusible("a result that is a view, or not row-major")
        place = tracer.placed(symbol).place
        if place in form.results:
            raise NotFusible("two results in one memory")
        form.results.append(place)
        form.constants.append(None)
        form.recorded.append(bool(result.requires_grad))

    def _backward(self) -> None:
        from flambeau.autograd import grad

        form, tracer = self.form, self.tracer
        ahead = dict.fromkeys(range(tracer.places), 0)
        tracer.levels.update(ahead)
        tracer.steps, tracer.computed = [], {}
        tracer.asked.clear()
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
        inputs = {place: position for position, place in form.given}
        for slope in found:
            symbol = None if slope is None else tracer.symbol(slope)
            if symbol is not None and not isinstance(symbol, (Whole, Parts)):
                raise NotFusible("a gradient that is a number")
            source = None if symbol is None else tracer.placed(symbol)
            if source is not None and source.place in inputs:
                raise NotFusible("a gradient that is an argument")
            form.slopes.append(source)
        free = {place for place, position in inputs.items()
                if position not in self.saved.arguments}  # fmt: skip
        self._store_instead(free)
        ahead.update(self._save())
        form.backward = scheduled(tracer, tracer.steps)
        self._find_kept(ahead)
        if any(place in free for _, place in form.kept_inputs):
            raise NotFusible("gradients that need an argument which no operator saves")
        self._find_slots({place: inputs[place] for place in free})

    def _find_slots(self, free: dict[int, int]) -> None:
        """Where what operators save of arguments that they do not save is kept."""
        form, tracer = self.form, self.tracer
        for slot, array in self.slots:
            symbol = tracer.of_arrays.get(id(array))
            if symbol is None or id(array) not in tracer.asked:
                continue
            read = self._origins([symbol]) & set(free)
            place = self._place_of(symbol)
            if read and place in form.kept:
                form.slots[slot] = place
            elif read:
                form.lost |= {free[place] for place in read}

    def _place_of(self, symbol: Whole | Parts) -> int | None:
        """Where the forward pass has left a symbol's values, if it has."""
        if not isinstance(symbol, Whole):
            return None
        if not isinstance(symbol.expr, Expr) or symbol.expr.op != "parameter":
            return self.stored.get(id(symbol.expr))
        source = self.tracer.sources[symbol.expr.args[0]]
        return source.place if source == Source(source.place, symbol.shape) else None

    def _origins(self, symbols: Sequence[Any]) -> set[int]:
        """The places that symbols are computed from, and those that these are computed from."""
        made: dict[int | None, Computed | Called] = {}
        for step in self.steps:
            places = step.places if isinstance(step, Called) else [step.place]
            made.update(dict.fromkeys(places, step))
        waiting, found = list(self._places_of(symbols)), set()
        while waiting:
            place = waiting.pop()
            if place in found:
                continue
            found.add(place)
            maker = made.get(place)
            if isinstance(maker, Called):
                waiting += [value.place for value in maker.values if isinstance(value, Source)]
            elif maker is not None:
                waiting += self._places_of([maker.symbol])
        return found

    def _store_instead(self, free: set[int]) -> None:
        """Let the forward pass store what operators save and have computed from arguments that
        they do not save, if the backward pass would read these."""
        tracer = self.tracer
        symbols = [step.symbol for step in tracer.steps if isinstance(step, Computed)]
        if free.isdisjoint(self._places_of(symbols)):
            return
        for array in self.saved.arrays:
            symbol = tracer.of_arrays.get(id(array))
            for part in [] if symbol is None else parts_of(symbol):
                expr = part.expr
                whole = isinstance(expr, Expr) and expr.op != "parameter"
                if whole and not free.isdisjoint(self._places_of([part])):
                    made = Whole(expr, tracer.shape_of(expr), part.dtype)
                    self.candidates[id(expr)] = Computed(-1, made, tracer.level(made))

    def _places_of(self, symbols: Sequence[Any]) -> set[int]:
        """The places that symbols are computed from."""
        names = {name for s in symbols for part in parts_of(s) for name in leaves(part.expr)}
        return {self.tracer.sources[name].place for name in names}

    def _save(self) -> dict[int, int]:
        """Let the forward pass store what is worth it, where the backward pass reads it; the new
        places.
        """
        tracer, made = self.tracer, {}
        self.stored: dict[int, int] = {}  # by ids of expressions

        def change(node: Expr) -> Any:
            result = self.own.get(id(node))
            if result is not None:
                made[result.place] = 0
                self.stored[id(node)] = result.place
                return tracer.enter(result)
            found = self.candidates.get(id(node))
            if found is None:
                return None
            place = tracer.place()
            self.steps.append(Computed(place, found.symbol, found.level))
            made[place] = 0
            self.stored[id(node)] = place
            if found.symbol.dtype == bool:
                tracer.booleans.add(place)
            return tracer.enter(Source(place, found.symbol.shape))

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
