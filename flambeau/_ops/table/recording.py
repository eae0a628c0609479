"""From a row's formulas to a graph node: what is saved, and the class whose `apply` runs them.

Both functions are generated as text, once per row when it is first recorded, so that recording
does only what this row needs. The text is in `linecache`: tracebacks show it.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from typing import Any

from flambeau._core import modes
from flambeau._core.device import CPU
from flambeau._ops.table import unformulated
from flambeau._ops.table.formulas import LargeFormula
from flambeau._ops.table.op import Op
from flambeau._ops.table.schema import Argument
from flambeau._runtime import choice
from flambeau._tensor.sparse import NotStrided
from flambeau._tensor.tensor import Tensor, new
from flambeau.autograd import graph
from flambeau.autograd.engine import wanted_edges
from flambeau.autograd.graph import (
    Node,
    next_sequence_number,
    save_input,
    save_part,
    save_result,
    tools,
)
from flambeau.autograd.history import Nowhere, bump, edge_of, rebase
from flambeau.autograd.notes import note
from flambeau.autograd.saved_fields import fields

LIMIT = choice.limit("formula")
"""Elements from which on a formula is one kernel."""


class RowNode(Node):
    """A node made from a row: besides tensors it keeps plain values and the inputs' metadata."""

    __slots__ = ("metas", "values")
    operands: tuple[int, ...] = ()
    """The places of the parameters that its edges belong to."""
    listed: tuple[tuple[int, int], ...] = ()
    """Where the edges of lists begin, and how many edges follow them."""

    def lists(self) -> list[slice]:
        return [slice(start, len(self.edges) - after) for start, after in self.listed]


class SparingNode(RowNode):
    """A node for which nothing may have been saved. It can then be run again."""

    __slots__ = ()

    def release(self) -> None:
        """Forget what was saved, if anything was."""
        for kept in self.saved or ():
            if kept is not None:
                self.saved = None
                return


class Formula:
    """One formula: the parameters that it differentiates and the names that it uses."""

    def __init__(self, key: Any, function: Callable[..., Any]) -> None:
        self.targets: tuple[str, ...] = key if isinstance(key, tuple) else (key,)
        self.joint = isinstance(key, tuple)
        self.function = function
        self.names = list(inspect.signature(function).parameters)


def shown_type(argument: Argument) -> str:
    """The type of a plain argument, with the length of a list that a number may stand for."""
    return f"{argument.type}[{argument.length}]" if argument.length else argument.type


class Plan:
    """What recording and backward of a row have to do."""

    def __init__(self, op: Op) -> None:
        op.check()
        self.op = op
        self.arguments = {argument.name: argument for argument in op.schema.arguments}
        self.types = {argument.name: shown_type(argument) for argument in op.schema.arguments}
        self.results = result_names(op)
        self.formulas = [Formula(key, f) for key, f in (op.backward or {}).items()]
        wanted = {name for formula in self.formulas for name in formula.targets}
        self.targets = [a for a in op.schema.arguments if a.name in wanted]
        self.edges = {a.name: f"e{i}" for i, a in enumerate(self.targets)}
        self.saved: dict[str, str] = {}  # name -> the condition under which it is saved
        self.values: list[str] = []
        for formula in self.formulas:
            for name in formula.names:
                self._classify(name, formula)
        for name in op.also_saved:
            self._classify_shown(name)
        # torch's order, which decides of which changed tensor the error speaks
        self.saved = dict(sorted(self.saved.items(), key=lambda s: (s[0] in self.results, s[0])))

    def _classify(self, name: str, formula: Formula) -> None:
        if name in ("grad", "grads", "given", "wanted"):
            return
        is_result = name in self.results
        if is_result or (name in self.arguments and self.arguments[name].is_tensor):
            self.saved[name] = self._condition(name, formula)
        elif name not in self.values:
            self.values.append(name)

    def _classify_shown(self, name: str) -> None:
        """What no formula needs, but is kept as PyTorch keeps it: a tensor while its own gradient
        is wanted, or the one that `saved_for` names."""
        is_tensor = name in self.arguments and self.arguments[name].is_tensor
        if name in self.saved or name in self.values:
            return
        if name in self.results:
            self.saved[name] = "True"
        elif is_tensor:
            target = self.op.saved_for.get(name, name)
            self.saved[name] = self.has_edge(target) if target in self.edges else "True"
        else:
            self.values.append(name)

    def _condition(self, name: str, formula: Formula) -> str:
        """When it is saved: where the one formula that names it is wanted. As in torch, what
        several formulas name is saved in any case, and so are results."""
        users = [formula for formula in self.formulas if name in formula.names]
        if len(users) > 1 or name in self.results:
            return "True"
        only = self.op.saved_for.get(name)
        targets = formula.targets if only is None else (only,)
        return " or ".join(self.has_edge(target) for target in targets)

    def has_edge(self, name: str) -> str:
        """The test whether gradients of a parameter are wanted."""
        edge = self.edges[name]
        return f"any({edge})" if self.arguments[name].is_list else f"{edge} is not None"

    @property
    def lists(self) -> bool:
        """Whether the result is a list of tensors."""
        return self.op.schema.return_types[0].endswith("[]")

    @property
    def differentiable_results(self) -> list[str]:
        """Results that gradients come back for."""
        return [name for name in self.results if name not in self.op.nondifferentiable]

    def may_save_nothing(self) -> bool:
        """Whether there is a parameter whose gradient alone needs nothing that is saved."""
        conditions = self.saved.values()
        if not conditions or "True" in conditions:
            return False
        tests = [self.has_edge(argument.name) for argument in self.targets]
        return any(all(test not in condition for condition in conditions) for test in tests)

    def uses_self(self) -> bool:
        """Whether a formula needs the first parameter's value from before an in-place write."""
        return self.op.schema.arguments[0].name in self.saved


def result_names(op: Op) -> list[str]:
    """The results' names for formulas: `result`, or the schema's, or result0, result1, ..."""
    returns = op.schema.returns
    if len(returns) == 1:
        return ["result"]
    return [name or f"result{i}" for i, name in enumerate(returns)]


def build(op: Op, *, inplace: bool = False) -> Callable[..., None]:
    """The function that records one call: `record(*arguments, *results)`."""
    if op.underived:
        return unformulated.recorder(op, inplace=inplace)
    plan = Plan(op)
    made = node_class(plan, inplace)
    scope: dict[str, Any] = {
        "new": new, "next_sequence_number": next_sequence_number, "edge_of": edge_of,
        "save_input": save_input, "save_result": save_result, "save_part": save_part,
        "watch": modes.watch,
        "note": _note, "bump": bump, "Nowhere": Nowhere, "rebase": rebase,
        "output_node": graph.output_node,
        "Node": made, "WholeNode": _of_all_dims(made, op.node_whole),
        "any": _any_edge, "meta": _meta,
        "link_outputs": _link_outputs, "link_list": _link_list, "integers_error": _integers_error,
        "constant_error": _constant_error, "is_number": tools.is_number,
        **{f"beside_{name}": _beside(op, name, inplace) for name in op.number_nodes},
    }  # fmt: skip
    return compile_function(f"record {op.full_name}", _record_text(plan, inplace), scope, "record")


def _beside(op: Op, name: str, inplace: bool) -> Callable[..., None]:
    """What records calls with a number for a parameter, made when there is one."""
    made: list[Callable[..., None]] = []

    def record(*values: Any) -> None:
        if not made:
            made.append(build(op.beside_number(name), inplace=inplace))
        made[0](*values)

    return record


def compile_function(title: str, text: str, scope: dict[str, Any], name: str) -> Any:
    """Compile generated text; tracebacks show it under `<flambeau title>`."""
    filename = f"<flambeau {title}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), scope)
    return scope[name]


def _any_edge(edges: list[Any]) -> bool:
    return any(edge is not None for edge in edges)


def _meta(tensor: Any) -> Any:
    return None if tensor is None else (tensor._data.shape, tensor._data.dtype)


def _note(node: Node) -> None:
    """In anomaly mode: remember where the operator was called."""
    if modes.watch.anomaly:
        note(node, 3)


def _link_outputs(node: RowNode, results: tuple[Any, ...]) -> None:
    for index, result in enumerate(results):
        if result is not None and result._data.dtype.kind in "fcVW":
            result._node = graph.output_node(node, index)
            result._requires_grad = True


def _link_list(node: RowNode, results: tuple[Any, ...]) -> None:
    """As above for a result that is a list: how many outputs there are shows only now."""
    node.outputs = len(results)
    node.result_metas = [(result._data.shape, result._data.dtype) for result in results]
    _link_outputs(node, results)


def _version(name: str) -> str:
    return f"({name}._version_count if {name}._root is None else {name}._root._version_count)"


def _record_text(plan: Plan, inplace: bool) -> str:
    parameters = [argument.name for argument in plan.op.schema.arguments]
    lines = [f"def record({', '.join([*parameters, *plan.results])}):"]
    handed = ", ".join([*parameters, *plan.results])
    for name in plan.op.number_nodes:
        lines += [f"    if is_number({name}):", f"        return beside_{name}({handed})"]
    for name, function in plan.op.constants.items():
        lines += [f"    if {name} is not None and {name}._requires_grad:",
                  f"        raise constant_error({function!r}, {name!r})"]  # fmt: skip
    if plan.op.name == "_to_copy":  # nothing flows back through integers, so nobody asks
        lines += ["    if result._data.dtype.kind in 'biu':", "        return"]
    for position, argument in enumerate(plan.targets):
        source = "result" if inplace and position == 0 else argument.name
        lines.append(f"    {plan.edges[argument.name]} = {_edge_text(source, argument)}")
    wanted = " or ".join(plan.has_edge(argument.name) for argument in plan.targets)
    lines.append(f"    if not ({wanted}):")
    lines += ["        bump(result)"] if inplace else []
    lines.append("        return")
    if any(argument.type == "ScalarType" for argument in plan.op.schema.arguments):
        lines += [
            "    if result._data.dtype.kind in 'biu':",
            "        raise integers_error(result)",
        ]
    for argument in plan.targets if len(plan.targets) > 1 else ():
        if not argument.is_list:
            edge = plan.edges[argument.name]
            lines += [f"    if {edge}.__class__ is Nowhere:", f"        {edge} = None"]
    lines += _node_text(plan, inplace)
    if inplace:
        lines += ["    bump(result)", "    rebase(result, node)"]
    elif plan.lists:
        lines.append("    link_list(node, result)")
    elif len(plan.results) > 1:
        names = [n if n in plan.differentiable_results else "None" for n in plan.results]
        lines.append(f"    link_outputs(node, ({', '.join(names)},))")
    else:
        lines += ["    result._node = node", "    result._requires_grad = True"]
    return "\n".join(lines) + "\n"


def _integers_error(result: Tensor) -> RuntimeError:
    return RuntimeError(f"Autograd not support dtype: {result.dtype.scalar_name}")


def _constant_error(function: str, argument: str) -> RuntimeError:
    return RuntimeError(
        f"The function '{function}' is not differentiable with respect to argument '{argument}'. "
        "This input cannot have requires_grad True."
    )


def _edge_text(source: str, argument: Argument) -> str:
    if argument.is_list:
        return f"[None if t is None else edge_of(t) for t in {source}]"
    if argument.optional:
        return f"None if {source} is None else edge_of({source})"
    fast = f"({source} if {source}._node is None else {source}._node)"
    return (
        f"edge_of({source}) if {source}._base is not None else "
        f"{fast} if {source}._requires_grad else None"
    )


def _node_text(plan: Plan, inplace: bool) -> list[str]:
    """Make the node. In place, versions are taken before the write counts: an input that is also
    the target is then found to be changed, while a saved result is as the write left it."""
    saved, versions = [], []
    for name, condition in plan.saved.items():
        text, version = _saving_text(plan, name)
        if inplace and name in plan.results:
            version += " + 1"
        always = condition == "True"
        saved.append(text if always else f"({text}) if {condition} else None")
        versions.append(version if always else f"({version}) if {condition} else None")
    edges = [f"*{e}" if plan.arguments[n].is_list else e for n, e in plan.edges.items()]
    metas = [f"*[meta(t) for t in {a.name}]" if a.is_list else _meta_text(a) for a in plan.targets]
    values = [_value_text(plan, name) for name in plan.values]
    metas_of_results = []
    if _wants_all_grads(plan) and not plan.lists:
        listed = ", ".join(f"meta({name})" for name in plan.results)
        metas_of_results.append(f"    node.result_metas = ({listed},)")
    return [
        f"    node = new({_class_text(plan.op)})",
        "    node.sequence_number = next_sequence_number()",
        f"    node.edges = ({', '.join(edges)},)",
        "    node.hooks = None",
        f"    node.saved = ({', '.join(saved)}{',' if saved else ''})",
        f"    node.versions = ({', '.join(versions)}{',' if versions else ''})",
        f"    node.metas = ({', '.join(metas)},)",
        f"    node.values = ({', '.join(values)}{',' if values else ''})",
        "    if watch.saving:",
        "        note(node)",
        *metas_of_results,
    ]


def _class_text(op: Op) -> str:
    return "WholeNode if dim is None else Node" if op.node_whole else "Node"


def _meta_text(argument: Argument) -> str:
    if argument.optional:
        return f"meta({argument.name})"
    return f"({argument.name}._data.shape, {argument.name}._data.dtype)"


def _saving_text(plan: Plan, name: str) -> tuple[str, str]:
    if name in plan.results:
        return _saved_result_text(plan, name), _version(name)
    argument = plan.arguments[name]
    if argument.is_list:
        return (f"[None if t is None else save_input(t) for t in {name}]",
                f"[0 if t is None else {_version('t')} for t in {name}]")  # fmt: skip
    kept = f"{name} if not watch.saving else save_input({name})"
    if argument.optional:
        version = f"None if {name} is None else {_version(name)}"
        return f"None if {name} is None else {kept}", version
    return kept, _version(name)


def _saved_result_text(plan: Plan, name: str) -> str:
    """Only a result that has this node must not be kept by it."""
    if name in plan.op.nondifferentiable:
        return f"save_input({name})"
    if len(plan.results) == 1:
        return f"save_result({name})"
    return f"save_part({name}, {plan.results.index(name)})"


def _value_text(plan: Plan, name: str) -> str:
    for suffix, attribute in (("_shape", "shape"), ("_strides", "strides"), ("_dtype", "dtype")):
        base = name.removesuffix(suffix)
        if base == name or name in plan.arguments:
            continue
        if base in plan.results:
            return f"{base}._data.{attribute}"
        argument = plan.arguments[base]
        if argument.is_list:
            return f"[t._data.{attribute} for t in {base}]"
        text = f"{base}._data.{attribute}"
        return f"None if {base} is None else {text}" if argument.optional else text
    return name


# ---- backward


def node_class(plan: Plan, inplace: bool) -> type[RowNode]:
    """The node class of a row."""
    outputs = 1 if inplace else len(plan.results)
    scope: dict[str, Any] = {
        "unpack": graph.unpack, "unpack_unchanged": graph.unpack_unchanged,
        "FREED": graph.FREED, "fit": fit, "fill": fill_missing,
        "LIMIT": LIMIT, "RuntimeError": RuntimeError, "unpack_list": _unpack_list,
        "fit_many": _fit_many, "NotStrided": NotStrided, "watch": modes.watch,
        "wanted_edges": wanted_edges,
    }  # fmt: skip
    for position, formula in enumerate(plan.formulas):
        scope[f"f{position}"] = formula.function
        title = f"{plan.op.full_name} {', '.join(formula.targets)}"
        scope[f"large{position}"] = LargeFormula(title, formula.function, formula.names)
    apply = compile_function(
        f"backward {plan.op.full_name}", _apply_text(plan, outputs), scope, "apply"
    )
    title = plan.op.node_inplace if inplace and plan.op.node_inplace else plan.op.node
    lists = {name for name, argument in plan.arguments.items() if argument.is_list}
    places = list(plan.arguments)
    kind = SparingNode if plan.may_save_nothing() else RowNode
    return type(title, (kind,), {
        "__slots__": (), "apply": apply, "title": title, "outputs": outputs,
        "composed": plan.op.composed, "facts": plan.op.saved_facts,
        "listed": _listed(plan),
        "operands": tuple([places.index(argument.name) for argument in plan.targets]),
        "shown": None if inplace or plan.lists else _shown(plan),
        **({"public": plan.op.public_node} if plan.op.public_node else {}),
        **fields(list(plan.saved), lists, plan.values, plan.types, plan.op.saved_facts,
                 plan.op.saved_names, [argument.name for argument in plan.targets]),
    })  # fmt: skip


def _shown(plan: Plan) -> tuple[int, ...] | None:
    """The places of results that have gradients; None if all have."""
    found = plan.differentiable_results
    if len(found) == len(plan.results):
        return None
    return tuple(plan.results.index(name) for name in found)


def _of_all_dims(made: type[RowNode], title: str | None) -> type[RowNode]:
    """The node class of calls that name no dim: another title, and no dim is shown as saved."""
    if title is None:
        return made
    hidden = ("_saved_dim", "_saved_keepdim")
    body = {name: value for name, value in vars(made).items() if name not in hidden}
    return type(title, made.__bases__, {**body, "title": title})


def _apply_text(plan: Plan, outputs: int) -> str:
    lines = ["def apply(node, grad):"]
    if plan.saved:
        lines += ["    if node.saved is None:", "        raise RuntimeError(FREED)"]
    lines.append("    edges, metas = node.edges, node.metas")
    refuses = any(getattr(formula.function, "refuses", False) for formula in plan.formulas)
    if len(plan.targets) > 1 or plan.lists or refuses:
        lines += ["    if watch.partial:", "        edges = wanted_edges(node)"]
    if outputs > 1 or plan.lists:
        lines += ["    given = grads = grad", "    grad = grads[0]"]
        sees = any(getattr(formula.function, "sees_missing", False) for formula in plan.formulas)
        if _wants_all_grads(plan) and not sees:
            lines.append("    grads = fill(node, grads)")
    if plan.values:
        lines.append(f"    {', '.join(plan.values)}, = node.values")
    for position, name in enumerate(plan.saved):
        lines.append(f"    {name} = {_unpacking(plan, name)}(node, {position})")
    slots = _slots(plan)
    if plan.op.kind == "pointwise" and any(len(f.names) > 1 for f in plan.formulas):
        lines += ["    try:", "        small = grad._data.size < LIMIT and not watch.devices",
                  "    except NotStrided:", "        small = True"]  # fmt: skip
    names = []
    for position, formula in enumerate(plan.formulas):
        lines += _formula_lines(plan, formula, position, slots)
    names = [f"*g_{a.name}" if a.is_list else f"g_{a.name}" for a in plan.targets]
    lines.append(f"    return ({', '.join(names)},)")
    return "\n".join(lines) + "\n"


def _unpacking(plan: Plan, name: str) -> str:
    if name in plan.op.dispensable:
        return "unpack_unchanged"
    is_list = name in plan.arguments and plan.arguments[name].is_list
    return "unpack_list" if is_list else "unpack"


def _wants_all_grads(plan: Plan) -> bool:
    return any("grads" in formula.names for formula in plan.formulas)


def _slots(plan: Plan) -> dict[str, str]:
    """Where the edges of each parameter are in `node.edges`: an index or a slice."""
    slots, count, lists = {}, 0, 0
    for position, argument in enumerate(plan.targets):
        if argument.is_list:
            after = len(plan.targets) - position - 1
            slots[argument.name] = f"{count}:len(edges) - {after}"
            lists += 1
            count = -after
            continue
        slots[argument.name] = str(count)
        count += 1
    return slots


def _listed(plan: Plan) -> tuple[tuple[int, int], ...]:
    """Where the edges of a parameter that is a list begin, and how many follow."""
    count = len(plan.targets)
    return tuple([(at, count - at - 1) for at, a in enumerate(plan.targets) if a.is_list])


def _formula_lines(plan: Plan, formula: Formula, position: int,
                   slots: dict[str, str]) -> list[str]:  # fmt: skip
    function = f"f{position}"
    if plan.op.kind == "pointwise" and len(formula.names) > 1:
        function = f"(f{position} if small else large{position})"
    call = f"{function}({', '.join(formula.names)})"
    if formula.joint:
        return _joint_lines(formula, call, slots)
    name = formula.targets[0]
    slot = slots[name]
    if plan.arguments[name].is_list:
        return [f"    g_{name} = fit_many({call}, metas[{slot}], edges[{slot}])"]
    return [
        f"    g_{name} = None",
        f"    if edges[{slot}] is not None:",
        f"        g_{name} = {call}",
        f"        if g_{name} is not None:",
        f"            shape, dtype = metas[{slot}]",
        "            try:",
        f"                data = g_{name}._data",
        "                if data.dtype is not dtype or data.shape != shape:",
        f"                    g_{name} = fit(g_{name}, shape, dtype)",
        "            except NotStrided:  # a sparse gradient, which has both",
        "                pass",
    ]


def _joint_lines(formula: Formula, call: str, slots: dict[str, str]) -> list[str]:
    wanted = ", ".join(f"edges[{slots[name]}] is not None" for name in formula.targets)
    lines = [f"    wanted = ({wanted},)",
             f"    {', '.join('g_' + name for name in formula.targets)}, = "
             f"{call} if any(wanted) else (None,) * {len(formula.targets)}"]  # fmt: skip
    for name in formula.targets:
        # formulas may give a gradient to an optional input that is not there
        slot = slots[name]
        lines += [f"    if g_{name} is not None and edges[{slot}] is not None:",
                  f"        g_{name} = fit(g_{name}, *metas[{slot}])"]  # fmt: skip
    return lines


def fit(grad: Tensor, shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Sum over broadcast dims, drop an imaginary part, and cast to the input's type.

    A sparse gradient is as it should be.
    """
    try:
        data = grad._data
    except NotStrided:
        return grad
    if data.shape != shape:
        if data.dtype is not dtype and data.dtype.itemsize < dtype.itemsize:
            grad = tools.to_dtype(grad, dtype)  # of a product that autocast rounded
        grad = tools.sum_to_size(grad, shape)
    if grad._data.dtype != dtype:
        if grad._data.dtype.kind in "cW" and dtype.kind not in "cW":
            grad = tools.real(grad)
        if grad._data.dtype != dtype:
            grad = tools.to_dtype(grad, dtype)
    return grad


def _fit_many(grads: Any, metas: Any, edges: Any) -> list[Any]:
    """Hooks see what the formula has made of those in the list, too, that want no gradient."""
    if not any(edge is not None for edge in edges):
        return [None] * len(edges)
    fitted = []
    for grad, meta, edge in zip(grads, metas, edges, strict=True):
        fits = grad is None or edge is None
        fitted.append(grad if fits else fit(grad, *meta))
    return fitted


def _unpack_list(node: Node, position: int) -> list[Any]:
    if node.saved[position] is None:
        return []
    kept, versions = node.saved[position], node.versions[position]
    single = Node()
    single.saved, single.versions = kept, versions
    return [graph.unpack(single, index) for index in range(len(kept))]


def fill_missing(node: Any, grads: list[Any]) -> list[Any]:
    """Zeros for outputs that no gradient came back for."""
    place = next((grad.device for grad in grads if grad is not None), CPU)
    return [
        tools.zeros(*meta, place) if grad is None and meta is not None else grad
        for grad, meta in zip(grads, node.result_metas, strict=True)
    ]
