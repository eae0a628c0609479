"""Source text of the call path of rows that are not pointwise: one template for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._ops.table import (
    binder,
    earlier_forms,
    inline_calls,
)
from flambeau._ops.table.op import Op
from flambeau._ops.table.schema import REQUIRED
from flambeau._tensor.tensor import Tensor


def call_text(op: Op, *, plain: bool = False) -> str:
    """The text of a row's function."""
    names = [binder.python_name(op, a) for a in op.schema.arguments]
    listed = ", ".join(names)
    name = "plain" if plain else op.public.rpartition(".")[2]
    sizes = binder.takes_size_list(op) and not plain
    lines = [f"def {name}({_parameters(op, sizes, plain)}):"]
    if sizes:
        name_ = size_name(op)
        lines += [
            f"    if named or not {name_}:",
            f"        {name_} = named_sizes(op, {name_}, named)",
            f"    elif len({name_}) == 1:",
            f"        {name_} = only_size({name_})",
        ]
    elif not plain:
        lines += numpy_name_lines(op) + earlier_forms.lines(op, "out" if op.out else "")
    if not plain:
        functional = ", out is None or None" if op.out else ""
        lines += ["    if watch.active:",
                  f"        result = watched(op, plain, ({listed},){functional})",
                  *(["        return result if out is None else "
                     f"write_out(op, out, result, ({listed},))"]
                    if op.out else ["        return result"])]  # fmt: skip
    for argument in op.schema.arguments:
        if argument.is_tensor and argument.is_list and op.kind != "composite":
            # a tensor iterates over its rows: it would pass for a list
            lines += [f"    if {argument.name}.__class__ is Tensor:",
                      f"        raise explain(op, ({listed},), None)"]  # fmt: skip
    lines += _run_lines(op, listed, bool(op.out) and not plain, not plain)
    lines += _record_lines(op, listed)
    if op.turn is not None:
        lines += [
            "    if result._stored is None:",  # it was recorded without them
            f"        set_bits(result, *op.turn({names[0]}))",
        ]
    if op.out and not plain:
        lines += ["    if out is not None:",
                  f"        return write_out(op, out, result, ({listed},))"]  # fmt: skip
    lines.append("    return result")
    return "\n".join(lines) + "\n"


def size_name(op: Op) -> str:
    """The parameter that sizes are given for, loose or in a list."""
    return next(binder.python_name(op, a) for a in op.schema.arguments if a.is_list)


def _parameters(op: Op, sizes: bool, plain: bool) -> str:
    if not (plain or sizes):
        return public_parameters(op, "out=None" if op.out else "")
    extra = "out=None" if op.out and not plain else ""
    text = binder.signature_text(op, extra, earlier=not plain)
    if sizes:
        name = size_name(op)
        head, _, tail = text.partition(name)
        tail = tail.removeprefix(f"=default_{name}")
        return f"{head}*{name}{tail.replace(', *,', ',')}, **named"
    return text.replace("*, ", "") if plain else text


def public_parameters(op: Op, last: str = "") -> str:
    """The parameter list of a function that takes NumPy's names, too. Where one of those may stand
    for a parameter that has to be given, what has to be given after it has a default as well."""
    extra = [f"{binder.NUMPY_NAMES[name]}=None" for name in _numpy_names(op)]
    text = binder.signature_text(op, ", ".join([*extra, last] if last else extra))
    if not _required_dim(op):
        return text
    head, _, tail = text.partition("dim,")
    positional, star, named = tail.partition(" *,")
    given = [p if "=" in p or not p else f"{p}=None" for p in positional.split(", ")]
    given = [p.replace(",=None", "=None,") for p in given]
    return f"{head}dim=None,{', '.join(given)}{star}{named}"


def _numpy_names(op: Op) -> list[str]:
    """Parameters that also go by NumPy's names."""
    names = [argument.name for argument in op.schema.arguments]
    return [name for name in binder.NUMPY_NAMES if name in names]


def _required_dim(op: Op) -> bool:
    """Whether `dim` has no default, so that `axis` has to stand in."""
    return any(a.name == "dim" and a.default is REQUIRED for a in op.schema.arguments)


def numpy_name_lines(op: Op) -> list[str]:
    """The text that reads NumPy's names."""
    lines = []
    for name in _numpy_names(op):
        given = binder.NUMPY_NAMES[name]
        if name == "dim" and _required_dim(op):
            lines += ["    if dim is None:", "        dim = required(op, axis)"]
        else:
            lines += [f"    if {given} is not None:", f"        {name} = {given}"]
    return lines


def required(op: Op, axis: Any) -> Any:
    """`dim` given by NumPy's name, or torch's error that it is missing."""
    if axis is None:
        raise TypeError(f'{op.public}() missing 1 required positional arguments: "dim"')
    return axis


def _run_lines(op: Op, listed: str, takes_out: bool, inline: bool) -> list[str]:
    call = f"body({', '.join(argument_text(op, a) for a in op.schema.arguments)})"
    if op.kind == "composite":
        return [
            f"    recorded = wants_grad(({listed},))",
            "    if recorded:",
            "        grad_state.enabled = False",
            "    try:",
            f"        result = {call}",
            "    except Exception as error:",
            f"        raise explain(op, ({listed},), error)",
            "    finally:",
            "        if recorded:",
            "            grad_state.enabled = True",
        ]
    if op.kind == "view":
        return _view_lines(op, call, listed)
    errors = [
        "    except (AttributeError, TypeError) as error:",
        f"        return otherwise(op, ({listed},), error{', out' if takes_out else ''})",
        "    except Exception as error:",
        f"        raise explain(op, ({listed},), error)",
        "    finally:",
    ]
    if inline and inline_calls.serve(op):
        lines = [
            "    token = None",
            "    try:",
            f"        computed = inline({', '.join(inline_calls.texts_of(op))})",
            "        if computed is None:",
            "            token = enter_quiet(QUIET)",
            f"            computed = {call}",
            *errors,
            "        if token is not None:",
            "            leave_quiet(token)",
        ]
    else:
        lines = [
            "    token = enter_quiet(QUIET)",
            "    try:",
            f"        computed = {call}",
            *errors,
            "        leave_quiet(token)",
        ]
    return lines + _wrap_lines(op)


def _view_lines(op: Op, call: str, listed: str) -> list[str]:
    """Run a view: nothing is computed, so NumPy's warnings are no matter."""
    lines = [
        "    try:",
        f"        computed = {call}",
        "    except (AttributeError, TypeError) as error:",
        *(
            [f"        return fallback(op, ({listed},), error)"]
            if op.fallback
            else [f"        return otherwise(op, ({listed},), error)"]
        ),
        "    except Exception as error:",
        f"        raise explain(op, ({listed},), error)",
    ]
    source = binder.python_name(op, op.schema.arguments[0])
    if op.schema.return_types[0].endswith("[]"):
        return [*lines, f"    result = views_of({source}, computed)"]
    if op.turn:
        lines.append(f"    result = turned(op, {source}, computed)")
    else:
        lines += ["    result = new(Tensor)", "    result._data = computed"]
    if not op.backward:  # no gradient is defined: as `detach`, another tensor over the same memory
        root = f"{source} if {source}._root is None else {source}._root"
        return [*lines, f"    result._root = {root}"]
    return [
        *lines,
        f"    if {source}._root is None:",
        f"        result._root = result._base = {source}",
        f"        if {source}._version_count:",
        f"            result._view_version = {source}._version_count",
        "    else:",
        f"        join_family({source}, result)",
    ]


def _wrap_lines(op: Op) -> list[str]:
    if len(op.schema.returns) > 1:
        return ["    result = results([None if part is None else wrap(part) for part in computed])"]
    if op.schema.return_types[0] == "Tensor":
        found = "computed if computed.__class__ is ndarray else asarray(computed)"
        return ["    result = new(Tensor)", f"    result._data = {found}"]
    if op.schema.return_types[0].endswith("[]"):
        return ["    result = tuple([wrap(part) for part in computed])"]
    return ["    result = computed"]


def argument_text(op: Op, argument: Any) -> str:
    """The text that hands one argument to the row's body: ndarrays for tensors."""
    name = binder.python_name(op, argument)
    if argument.is_tensor and op.kind != "composite":
        if argument.is_list:
            return f"[None if t is None else t._data for t in {name}]"
        return f"None if {name} is None else {name}._data" if argument.optional else f"{name}._data"
    if argument.type in ("Scalar", "float") and not argument.is_list and op.kind != "composite":
        return f"number_in({name}) if isinstance({name}, Tensor) else {name}"
    if argument.is_list and argument.length and argument.type in ("int", "float", "bool"):
        absent = f"{name} is None or " if argument.optional else ""
        several = f"({name},) * {argument.length} if {name}.__class__ is int else "
        return (f"{name} if {absent}{name}.__class__ is tuple else "
                f"{several if argument.type == 'int' else ''}"
                f"repeated({name}, {argument.length})")  # fmt: skip
    if argument.type == "int" and not argument.is_list:
        if op.kind == "view" and name.startswith("dim"):
            return name  # few numbers, which no type is too small for
        absent = f"{name} is None or " if argument.optional else ""
        return f"{name} if {absent}{name}.__class__ is int else plain_integer({name})"
    return name


def number_in(tensor: Any) -> Any:
    """The number of a tensor that stands for one. TypeError if it has dims, or learns."""
    if not binder.fits_number(tensor):
        raise TypeError("a tensor that is no number")
    return tensor.item()


def plain_integer(value: Any) -> Any:
    """NumPy's integers as Python's, which don't wrap around; anything else as it is, but for truth
    values and sequences, which are no integers."""
    if isinstance(value, (bool, np.bool_, list, tuple)):
        raise TypeError(f"not an integer: {value}")
    return int(value) if isinstance(value, np.integer) else value


def repeated(value: Any, length: int) -> Any:
    """A list of numbers from one number, which may be NumPy's or a tensor's; lists as they are."""
    if isinstance(value, (int, float, np.integer)):
        return (value if value.__class__ is float else plain_integer(value),) * length
    if isinstance(value, Tensor) and binder.is_integer(value):
        return (int(value.item()),) * length
    return value


def _record_lines(op: Op, listed: str) -> list[str]:
    if op.kind == "view":
        return _view_record_lines(op, listed)
    results = "*result" if len(op.schema.returns) > 1 else "result"
    call = f"recorder.call({listed}, {results})"
    if op.kind == "composite":
        return ["    if recorded:", f"        {call}"] if op.backward else []
    flags = [flag_text(op, a) for a in op.schema.arguments if a.is_tensor]
    return result_lines(call if op.backward else None, flags, op.schema.return_types == ("Tensor",))


def result_lines(call: str | None, flags: list[str], is_tensor: bool = True) -> list[str]:
    """What is done with a result of inputs that have one of `flags`: `call` records it, or it
    becomes an inference tensor. Outside of inference mode the latter costs nothing."""
    mark = "    result._inference = True"
    if call is None:
        test = "    if watch.results and grad_state.enabled is None:"
        return [test, f"    {mark}"] if is_tensor else []
    return [
        f"    if {' or '.join([*flags, 'watch.results'])}:",
        "        enabled = grad_state.enabled",
        "        if enabled:",
        f"            {call}",
        *(["        elif enabled is None:", f"        {mark}"] if is_tensor else []),
    ]


def _view_record_lines(op: Op, listed: str) -> list[str]:
    """Record a view, and note why in-place writes to it may be limited."""
    source = binder.python_name(op, op.schema.arguments[0])
    several = op.schema.return_types[0].endswith("[]")
    if not op.backward:
        return []
    lines = [f"    if {source}._requires_grad or {source}._creation or rewritten.count "
             "or not grad_state.enabled:"]  # fmt: skip
    known = f"not {source}._inference" if several else f"limit_view({source}, result)"
    return [*lines, f"        if {known} and grad_state.enabled:",
            f"            recorder.call({listed}, result)"]  # fmt: skip


def flag_text(op: Op, argument: Any) -> str:
    """The text that asks whether an argument learns."""
    name = binder.python_name(op, argument)
    if argument.is_list:
        return f"any([t is not None and t._requires_grad for t in {name}])"
    if argument.optional:
        return f"({name} is not None and {name}._requires_grad)"
    return f"{name}._requires_grad"
