"""Makes a finding small: whatever can be left out while forms still differ in the same way is."""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from .cases import After, Call, Case, TensorArgument

Wrong = Callable[[Case], bool]
"""Whether a case shows the finding."""


def shrunk(case: Case, wrong: Wrong, seconds: float = 40.0) -> Case:
    """A smaller case that still shows it; `seconds` of the processor are what it may take."""
    end = time.process_time() + seconds
    known: set[str] = {repr(case)}
    steps = (_calls, _results, _afters, _statements, _names, _expressions, _parameters, _arguments)
    before = None
    while case != before and time.process_time() < end:
        before = case
        for step in steps:
            case = _while_smaller(case, step, wrong, end, known)
    return case


def _while_smaller(case: Case, step: Callable[[Case], Iterator[Case]], wrong: Wrong,
                   end: float, known: set[str]) -> Case:  # fmt: skip
    """Take what a step offers for as long as something of it still shows the finding; nothing is
    tried twice."""
    found = True
    while found:
        found = False
        for smaller in step(case):
            if time.process_time() > end:
                return case
            if repr(smaller) in known:
                continue
            known.add(repr(smaller))
            if wrong(smaller):
                case, found = smaller, True
                break
    return case


# ---- calls


def _calls(case: Case) -> Iterator[Case]:
    """Without a call; all calls like the last."""
    for index in range(len(case.calls)):
        if len(case.calls) > 1:
            yield replace(case, calls=(*case.calls[:index], *case.calls[index + 1 :]))
    same = (case.calls[-1],) * len(case.calls)
    if same != case.calls:
        yield replace(case, calls=same)


def _afters(case: Case) -> Iterator[Case]:
    """Less to be done after a call."""
    for index, call in enumerate(case.calls):
        after = call.after
        for smaller in (
            replace(call, after=After()),
            replace(call, mode="grad"),
            replace(call, after=replace(after, writes=after.writes[:1])),
            replace(call, after=replace(after, writes=())),
            replace(call, after=replace(after, gradients="no")),
            replace(call, after=replace(after, seed=0)),
        ):
            if smaller != call:
                yield _with_call(case, index, smaller)
        if after.gradients in ("double", "backward"):
            yield _with_call(case, index, replace(call, after=replace(after, gradients="grad")))
        if after.gradients != "no" and after.picks != -1:
            yield _with_call(case, index, replace(call, after=replace(after, picks=-1)))


def _with_call(case: Case, index: int, call: Call) -> Case:
    return replace(case, calls=(*case.calls[:index], call, *case.calls[index + 1 :]))


# ---- the text


def _written(tree: ast.Module) -> str:
    """The text of a program, without `pass` where it is not needed."""
    for body in _bodies(tree):
        body[:] = [s for s in body if not isinstance(s, ast.Pass)] or [ast.Pass()]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _results(case: Case) -> Iterator[Case]:
    """With fewer results."""
    tree = ast.parse(case.text)
    returned = [node for node in ast.walk(tree) if isinstance(node, ast.Return)]
    for place, node in enumerate(returned):
        if not isinstance(node.value, ast.Tuple):
            continue
        for kept in (*([e] for e in node.value.elts), *_but_one(node.value.elts)):
            other = ast.parse(case.text)
            found = [node for node in ast.walk(other) if isinstance(node, ast.Return)][place]
            found.value = kept[0] if len(kept) == 1 else ast.Tuple(list(kept), ast.Load())
            yield replace(case, text=_written(other))


def _but_one(items: list[ast.expr]) -> Iterator[list[ast.expr]]:
    for index in range(len(items)):
        yield items[:index] + items[index + 1 :]


def _statements(case: Case) -> Iterator[Case]:
    """Without some statements; a block in the place of what holds it."""
    tree = ast.parse(case.text)
    count = len(_bodies(tree))
    for place in range(count):
        length = len(_bodies(tree)[place])
        size = length
        while size:
            for start in reversed(range(0, length, size)):
                yield from _without(case, place, start, start + size)
            size //= 2
    for place in range(count):
        for index in range(len(_bodies(tree)[place])):
            yield from _unwrapped(case, place, index)


def _bodies(tree: ast.AST) -> list[list[ast.stmt]]:
    """All lists of statements, inner ones last."""
    found = []
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body:
                found.append(body)
    return found


def _without(case: Case, place: int, start: int, end: int) -> Iterator[Case]:
    tree = ast.parse(case.text)
    body = _bodies(tree)[place]
    if any(isinstance(s, ast.Return) for s in body[start:end]):
        return
    if start == 0 and end < len(body) and _is_counter(tree, body):
        return  # what ends a `while` goes last
    if len(body) == 1 and isinstance(body[0], ast.Pass):
        return
    if place == 0 and end - start == len(body):
        return
    del body[start:end]
    if not body:
        body.append(ast.Pass())
    yield replace(case, text=_written(tree))


def _is_counter(tree: ast.AST, body: list[ast.stmt]) -> bool:
    return any(isinstance(node, ast.While) and node.body is body for node in ast.walk(tree))


def _unwrapped(case: Case, place: int, index: int) -> Iterator[Case]:
    for part in ("body", "orelse"):
        tree = ast.parse(case.text)
        body = _bodies(tree)[place]
        inner = getattr(body[index], part, None)
        if isinstance(inner, list) and inner and not isinstance(body[index], DEFINITIONS):
            body[index : index + 1] = inner
            yield replace(case, text=_written(tree))


def _names(case: Case) -> Iterator[Case]:
    """What a name stands for in the place of the name."""
    count = sum(isinstance(node, ast.Assign) for node in ast.walk(ast.parse(case.text)))
    for place in range(count):
        tree = ast.parse(case.text)
        node = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)][place]
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id not in _counted(tree):
            Replaced(target.id, node).visit(tree)
            yield replace(case, text=_written(tree))


def _counted(tree: ast.AST) -> set[str]:
    """Names that are added to: a loop may wait for one of them."""
    found = [node.target for node in ast.walk(tree) if isinstance(node, ast.AugAssign)]
    return {target.id for target in found if isinstance(target, ast.Name)}


class Replaced(ast.NodeTransformer):
    """Puts an expression in the place of a name, and takes the assignment away."""

    def __init__(self, name: str, assignment: ast.Assign) -> None:
        self.name = name
        self.assignment = assignment

    def visit_Assign(self, node: ast.Assign) -> Any:
        return ast.Pass() if node is self.assignment else self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        found = node.id == self.name and isinstance(node.ctx, ast.Load)
        return copy.deepcopy(self.assignment.value) if found else node


DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


def _expressions(case: Case) -> Iterator[Case]:
    """With simpler expressions: a part for the whole, a constant, fewer arguments."""
    tree = ast.parse(case.text)
    count = sum(1 for _ in _places(tree))
    for place in range(count):
        node, owner, _ = _nth(tree, place)
        if isinstance(owner, (ast.While, ast.AugAssign)):
            continue  # a loop might not end
        for option in _simpler(node):
            other = ast.parse(case.text)
            _, parent, (name, index) = _nth(other, place)
            if index is None:
                setattr(parent, name, copy.deepcopy(option))
            else:
                getattr(parent, name)[index] = copy.deepcopy(option)
            try:
                text = _written(other)
            except Exception:  # noqa: BLE001, S112  # what cannot be written is no option
                continue
            if text != case.text and len(text) <= len(case.text):
                yield replace(case, text=text)


def _places(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.AST, tuple[str, int | None]]]:
    """All expressions with where they stand."""
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if name in ("annotation", "func", "target", "targets", "ctx"):
                continue
            if isinstance(value, ast.expr):
                yield value, parent, (name, None)
            if isinstance(value, list):
                for index, item in enumerate(value):
                    if isinstance(item, ast.expr):
                        yield item, parent, (name, index)


def _nth(tree: ast.AST, place: int) -> tuple[ast.expr, ast.AST, tuple[str, int | None]]:
    for index, found in enumerate(_places(tree)):
        if index == place:
            return found
    raise IndexError(place)


def _simpler(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) > 1:
        yield from node.elts
        for index in range(len(node.elts)):
            kind = type(node)
            yield kind(elts=node.elts[:index] + node.elts[index + 1 :], ctx=ast.Load())
        return
    if isinstance(node, (ast.Name, ast.Slice, ast.Starred)):
        return
    if isinstance(node, ast.Constant):
        if type(node.value) is float and node.value not in (1.0, 0.5):
            yield ast.Constant(1.0)
        if type(node.value) is int and node.value not in (0, 1):
            yield ast.Constant(1)
        return
    for child in ast.walk(node):
        if child is not node and isinstance(child, (ast.Name, ast.Call, ast.BinOp, ast.Subscript)):
            yield child
    yield from _constants(node)
    if isinstance(node, ast.Call):
        yield from _fewer_arguments(node)


def _constants(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, (ast.Compare, ast.BoolOp)) or _named(node) == "bool":
        yield ast.Constant(True)
        yield ast.Constant(False)
    elif isinstance(node, (ast.Call, ast.BinOp, ast.Attribute, ast.Subscript)):
        yield ast.Constant(2)
        yield ast.Constant(1.0)


def _named(node: ast.expr) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _fewer_arguments(node: ast.Call) -> Iterator[ast.expr]:
    for index in range(len(node.keywords)):
        keywords = node.keywords[:index] + node.keywords[index + 1 :]
        yield ast.Call(func=node.func, args=node.args, keywords=keywords)
    if len(node.args) > 1:
        yield ast.Call(func=node.func, args=node.args[:-1], keywords=node.keywords)


# ---- parameters and arguments


def _parameters(case: Case) -> Iterator[Case]:
    """Without a parameter."""
    tree = ast.parse(case.text)
    main = _main(tree)
    names = [argument.arg for argument in main.args.args]
    skipped = names[:1] == ["self"]
    for index in range(len(names) - skipped):
        other = ast.parse(case.text)
        del _main(other).args.args[index + skipped]
        calls = tuple(_without_argument(call, index) for call in case.calls)
        yield replace(case, text=_written(other), calls=calls)


def _main(tree: ast.Module) -> ast.FunctionDef:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return next(node for node in functions if node.name in ("f", "forward"))


def _without_argument(call: Call, index: int) -> Call:
    arguments = []
    for place, argument in enumerate(call.arguments):
        if place == index:
            continue
        if isinstance(argument, TensorArgument) and argument.same_as >= index:
            gone = argument.same_as == index
            argument = replace(argument, same_as=-1 if gone else argument.same_as - 1)
        arguments.append(argument)
    return replace(call, arguments=tuple(arguments))


def _arguments(case: Case) -> Iterator[Case]:
    """With plainer arguments, in all calls or in one."""
    for index in range(max(len(call.arguments) for call in case.calls)):
        yield from _with_options(case, index)
    sizes = {size for call in case.calls for a in call.arguments for size in _sizes(a)}
    for size in sorted(sizes, reverse=True):
        for smaller in (1, 2, 3):
            if smaller < size:
                yield _changed(case, lambda a, s=size, t=smaller: _resized(a, s, t))
    if case.small_kernels:
        yield replace(case, small_kernels=False)


def _with_options(case: Case, index: int) -> Iterator[Case]:
    simple = TensorArgument()
    for name in ("layout", "learns", "fill", "dtype", "same_as"):

        def plain(argument: Any, name: str = name) -> Any:
            if not isinstance(argument, TensorArgument):
                return argument
            return replace(argument, **{name: getattr(simple, name)})

        yield _changed(case, plain, index)
        for place in range(len(case.calls)):
            yield _changed(case, plain, index, place)
    yield _changed(case, lambda a: replace(a, seed=index) if _is_tensor(a) else a, index)
    yield _changed(case, lambda a: type(a)(1) if type(a) in (int, float) else a, index)


def _is_tensor(argument: Any) -> bool:
    return isinstance(argument, TensorArgument)


def _sizes(argument: Any) -> tuple[int, ...]:
    return argument.shape if isinstance(argument, TensorArgument) else ()


def _resized(argument: Any, size: int, smaller: int) -> Any:
    if not isinstance(argument, TensorArgument):
        return argument
    return replace(argument, shape=tuple(smaller if s == size else s for s in argument.shape))


def _changed(case: Case, change: Callable[[Any], Any], index: int = -1, place: int = -1) -> Case:
    calls = []
    for number, call in enumerate(case.calls):
        given = tuple(
            change(a) if index in (-1, i) and place in (-1, number) else a
            for i, a in enumerate(call.arguments)
        )
        calls.append(replace(call, arguments=given))
    return replace(case, calls=tuple(calls))
