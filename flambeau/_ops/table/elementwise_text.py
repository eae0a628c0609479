"""Source text of the call path of pointwise rows: one short function for the usual case of each."""

from __future__ import annotations

from flambeau._ops.table import binder, earlier_forms
from flambeau._ops.table import pointwise as kind
from flambeau._ops.table.call_text import result_lines
from flambeau._ops.table.op import Op


def takes_numbers(op: Op) -> bool:
    """Whether a row is a function of tensors and then numbers: `leaky_relu(x, 0.01)`."""
    rest = op.schema.arguments[leading_tensors(op) :]
    return leading_tensors(op) > 0 and all(
        a.type in ("Scalar", "float") and not a.optional and not a.is_list for a in rest
    )  # fmt: skip


def leading_tensors(op: Op) -> int:
    """How many tensors a row begins with."""
    count = 0
    for argument in op.schema.arguments:
        if not argument.is_tensor or argument.is_list or argument.optional:
            break
        count += 1
    return count


def has_alpha(op: Op) -> bool:
    """Whether a row multiplies its second operand by `alpha`."""
    return kind.is_factor(op.schema.arguments[-1])


def _head(op: Op) -> str:
    extra = "out=None" if op.out else ""
    return f"def {op.public.rpartition('.')[2]}({binder.signature_text(op, extra)}):"


def _handed_on(op: Op, *names: str) -> str:
    """The arguments of a longer way."""
    return ", ".join([*names, "out=out"] if op.out else names)


def _watched(op: Op) -> str:
    """The test for what the short way leaves to the general one, whatever the layouts."""
    return "watch.active or out is not None" if op.out else "watch.active"


def unary(op: Op, names: list[str]) -> str:
    """One tensor."""
    (x,) = names
    lines = [
        _head(op),
        "    try:",
        f"        a = {x}._data",
        "    except AttributeError:",
        f"        return foreign({_handed_on(op, x)})",
        *_array_lines(
            op,
            ["a"],
            _watched(op),
            [irregular("a")],
            f"general({_handed_on(op, x)})",
            f"{chosen(op, ['a'], 'a.dtype')}(a, out=...)",
            "raise",
        ),
        *_record(op, f"{x}._requires_grad", x),
        "    return result",
    ]
    return "\n".join(lines) + "\n"


def irregular(array: str, dims: str = "") -> str:
    """The test for layouts that the general rules have to hand on."""
    return (f"(({dims}) > 1" if dims else f"({array}.ndim > 1") + (
        f" and (not {array}.flags.c_contiguous or {array}.base is not None and 1 in {array}.shape))"
    )  # fmt: skip


def _scaling_lines(op: Op, x: str, y: str, out: str, inplace: bool) -> list[str]:
    """`alpha`: the operand times it. Where a node is made, that is told what it was."""
    target = x if inplace else out
    name = op.public.rpartition(".")[2] + "_" * inplace
    again = f"{name}({x}, {y})" if inplace else f"{name}({_handed_on(op, x, y)})"
    return [
        "    if alpha is not one:  # True and 1.0 are looked at, too",
        f"        result = with_factor({x}, {y}, alpha, {out}, {inplace})",
        "        if result is not None:",
        "            return result",
        f"        {y} = scaled({x}, {y}, alpha, op, {target})",
        f"        return tell_factor({again}, {y}, alpha)",
    ]


def chosen(op: Op, arrays: list[str], dtype: str) -> str:
    """The kernel for operands of these sizes: NumPy's, or for large ones a compiled one."""
    limit = _limit(op)
    small = " and ".join([f"{array}.size < {limit}" for array in arrays])
    return f"(kernels if {small} else large)[{dtype}]"


def _limit(op: Op) -> int:
    return kind.limit_of(op, [a.name for a in op.schema.arguments if kind.is_operand(a)])


def _chosen_of_two(op: Op) -> str:
    """One attribute is read for small vectors: a vector beside a small one that has several
    elements is no larger (benchmarks/op_overhead.py, "add")."""
    limit = _limit(op)
    return (f"(kernels if (size := a.size) < {limit} "
            f"and (size > 1 and dims < 2 or b.size < {limit}) else large)[dtype]")  # fmt: skip


def binary(op: Op, names: list[str], *, operator: bool = False) -> str:
    """Two tensors of one type, or a tensor and a number."""
    x, y = names
    scaling = has_alpha(op) and not operator
    out = "out" if op.out else ""
    general = f"general({x}, {y})" if operator else f"general({_handed_on(op, x, y)})"
    foreign = f"foreign_operator({x}, {y})" if operator else f"foreign({_handed_on(op, x, y)})"
    watched = "watch.active" if operator else _watched(op)
    lines = [
        f"def {op.public.rpartition('.')[2]}({x}, {y}):" if operator else _head(op),
        *([] if operator else earlier_forms.lines(op, out)),
        *(_scaling_lines(op, x, y, out or "None", False) if scaling else []),
        *_operand_lines(op, x, y, general, foreign),
        *_array_lines(
            op,
            ["a", "b"],
            watched,
            ["dtype is not b.dtype", irregular("a"), irregular("b", "dims := b.ndim")],
            general,
            f"{_chosen_of_two(op)}(a, b, out=...)",
            "raise broadcast_error(a, b, error)",
        ),
        *_record(op, f"{x}._requires_grad or {y}._requires_grad", f"{x}, {y}"),
        "    return result",
    ]
    return "\n".join(lines) + "\n"


def _operand_lines(op: Op, x: str, y: str, general: str, foreign: str) -> list[str]:
    """The arrays of two operands; a number beside a tensor becomes a cached 0-dim tensor."""
    number = [
        "        if kind is not Tensor:",
        "            if kind is float or kind is int:",
        f"                number = scalars.get(({y}, kind, dtype))",
        "                if number is None:",
        f"                    number = scalar_tensor({y}, dtype)",
        "                if number is None:",
        f"                    return {general}",
        f"                {y} = number",
        f"            elif not isinstance({y}, Tensor):  # it may hand on what a tensor has",
        f"                return {foreign}",
    ]
    return [
        *([f"    kind = {y}.__class__"] if op.numbers != "none" else []),
        "    try:",
        f"        a = {x}._data",
        "        dtype = a.dtype",
        *(number if op.numbers != "none" else []),
        f"        b = {y}._data",
        "    except AttributeError:",
        f"        return {foreign}",
    ]


def _mixed_lines(names: list[str], count: int, general: str, foreign: str) -> list[str]:
    """The arrays of `count` tensors of one type, and 0-dim arrays of the numbers that follow."""
    lines = ["    try:", f"        a = {names[0]}._data", "        dtype = a.dtype"]
    lines += [f"        a{i} = {names[i]}._data" for i in range(1, count)]
    lines += ["    except AttributeError:", f"        return {foreign}"]
    for number in names[count:]:
        lines += [
            f"    kind = {number}.__class__",
            "    if kind is not float and kind is not int:",
            f"        return {general}",
            f"    n_{number} = scalars.get(({number}, kind, dtype))",
            f"    if n_{number} is None:",
            f"        n_{number} = scalar_tensor({number}, dtype)",
            f"        if n_{number} is None:",
            f"            return {general}",
        ]
    return lines


def _mixed_arrays(names: list[str], count: int) -> list[str]:
    arrays = ["a", *[f"a{i}" for i in range(1, count)]]
    return [*arrays, *[f"n_{number}._data" for number in names[count:]]]


def numbers(op: Op, names: list[str]) -> str:
    """Tensors and then numbers."""
    general = f"general({_handed_on(op, *names)})"
    count = leading_tensors(op)
    flags = " or ".join([f"{tensor}._requires_grad" for tensor in names[:count]])
    sized = ["a", *[f"a{i}" for i in range(1, count)]]
    kernel = f"{chosen(op, sized, 'dtype')}({', '.join(_mixed_arrays(names, count))}, out=...)"
    odd = [irregular(a) if k else "(a.ndim > 1 and not a.flags.c_contiguous)"
           for k, a in enumerate(sized)]  # fmt: skip
    odd[1:1] = [f"{array}.dtype is not dtype" for array in sized[1:]]
    lines = [
        _head(op),
        *earlier_forms.lines(op, "out" if op.out else ""),
        *_mixed_lines(names, count, general, general.replace("general", "foreign")),
        *_array_lines(
            op,
            _mixed_arrays(names, count),
            _watched(op),
            odd,
            general,
            kernel,
            f"return {general}",
        ),
        *_record(op, flags, ", ".join(names)),
        "    return result",
    ]
    return "\n".join(lines) + "\n"


NEXT = "\n                "


def _array_lines(op: Op, arrays: list[str], watched: str, odd: list[str], general: str, call: str,
                 failure: str) -> list[str]:  # fmt: skip
    """The result's array: from the row's inline cache, or else from a kernel, unless the layouts
    are odd."""
    return [
        f"    if {watched}:",
        f"        return {general}",
        f"    data = inline({', '.join(arrays)})",
        "    if data is None:",
        "        if (" + f"{NEXT}or ".join(odd) + "):",
        f"            return {general}",
        "        token = enter_quiet(QUIET)",
        "        try:",
        f"            data = {call}",
        "        except ValueError as error:",
        f"            {failure}",
        "        finally:",
        "            leave_quiet(token)",
        "    result = new(Tensor)",
        "    result._data = data",
    ]


def _record(op: Op, flags: str, arguments: str) -> list[str]:
    call = f"recorder.call({arguments}{', 1' if has_alpha(op) else ''}, result)"
    return result_lines(call if op.backward else None, [flags])


def long(op: Op, names: list[str]) -> str:
    """No short way: every call is general."""
    return f"{_head(op)}\n    return foreign({_handed_on(op, *names)})\n"


def inplace_numbers(op: Op, head: str, names: list[str]) -> str:
    """Short path: float tensors that need no recording, and numbers."""
    x, count = names[0], leading_tensors(op)
    general = f"inplace({', '.join(names)})"
    if op.promote == "bool":
        return f"{head}\n    return {general}\n"
    views = "".join([f" or {tensor}._root is not None or {tensor}._storage is not None"
                     for tensor in names[:count]])  # fmt: skip
    anywhere = "(root is not None or not a.flags.c_contiguous)"
    if op.name not in WRONG_IN_STEPS:
        anywhere += f" and not apart({x})"
    elsewhere = anywhere if count == 1 else f"not a.flags.c_contiguous{views}"
    wanted = " or ".join([f"{tensor}._requires_grad" for tensor in names[:count]])
    lines = [
        head,
        *earlier_forms.lines(op, inplace=True),
        *_mixed_lines(names, count, general, f"foreign_inplace({', '.join(names)})"),
        *[
            f"    if a{i}.dtype is not dtype or {irregular(f'a{i}')}:\n        return {general}"
            for i in range(1, count)
        ],
        f"    root = {x}._root",
        "    if (watch.active or dtype.kind != 'f' or rewritten.count",
        f"            or {x}._inference or {elsewhere}",
        f"            or (({wanted} or {x}._creation)",
        f"                and (grad_state.enabled or {x}._counter is not None))):",
        f"        return {general}",
        *_writing_lines(op, _mixed_arrays(names, count), general),
        *_bump_lines(x),
    ]
    return "\n".join(lines) + "\n"


def _writing_lines(op: Op, arrays: list[str], general: str) -> list[str]:
    """Write a result to the first array: by the form's inline cache, or else by a kernel."""
    listed = ", ".join(arrays)
    return [
        f"    if inline({listed}) is None:",
        "        token = enter_quiet(QUIET)",
        "        try:",
        f"            {chosen(op, ['a'], 'dtype')}({listed}, out=a)",
        "        except ValueError:",
        f"            return {general}",
        "        finally:",
        "            leave_quiet(token)",
    ]


WRONG_IN_STEPS = ("neg",)
"""NumPy 2.4's `negative` reads other elements where it writes over an array of certain steps (16
bytes for float32)."""


def _bump_lines(x: str) -> list[str]:
    """Count a write, and return what was written to."""
    return [
        "    if root is None:",
        f"        {x}._version_count += 1",
        "    else:",
        "        root._version_count += 1",
        f"    return {x}",
    ]


def inplace_binary(op: Op, head: str, x: str, y: str, *, operator: bool = False) -> str:
    """Short path: tensors of one type that need no recording, result of the same shape."""
    foreign = "foreign_inplace_operator" if operator else "foreign_inplace"
    lines = [
        head,
        *([] if operator else earlier_forms.lines(op, inplace=True)),
        *(_scaling_lines(op, x, y, "None", True) if has_alpha(op) and not operator else []),
        *_operand_lines(op, x, y, f"inplace({x}, {y})", f"{foreign}({x}, {y})"),
        f"    root = {x}._root",
        "    if (watch.active or dtype is not b.dtype or promote_bool or rewritten.count",
        f"            or {x}._inference or {y}._root is {x}",
        f"            or (root is not None or {x}._storage is not None",
        "                or not a.flags.c_contiguous)",
        f"            and not apart({x}, {y})",
        f"            or (({x}._requires_grad or {y}._requires_grad or {x}._creation)",
        f"                and (grad_state.enabled or {x}._counter is not None))):",
        f"        return inplace({x}, {y})",
        *_writing_lines(op, ["a", "b"], f"inplace({x}, {y})"),
        *_bump_lines(x),
    ]
    text = "\n".join(lines) + "\n"
    return text.replace("promote_bool or ", "True or " if op.promote != "default" else "")
