"""`@native`: a Python function as a kernel.

    @native
    def scale(x: pointer(T), n: i64, factor: T, T: static):
        for i in range(n):
            x[i] = x[i] * factor

Parameters with the annotation `static` are constants while compiling; `T` may stand in the other
annotations. A parameter without an annotation takes the type of its argument (for kernels that
kernels call). `task` and `tasks` say which part of the work a thread does. Names that are assigned
more than once are variables of one type; names in capitals are constants.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import re
import textwrap
import threading
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from types import CodeType, FunctionType
from typing import Any

from flambeau._compiler import language
from flambeau._compiler.emitter import CompileError
from flambeau._compiler.types import Pointer, Scalar, Vector

NOTHING: Any = object()
IDENTIFIER = re.compile(r"[^\W\d]\w*")
HEAD = re.compile(r"def .*?\):$", re.DOTALL | re.MULTILINE)
"""A function's text up to its body."""
COMPILER = __name__.rpartition(".")[0] + "."


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel; `annotation` is its text."""

    name: str
    annotation: str | None
    static: bool
    default: Any


class Native:
    """A kernel: its text as a tree, and the names that it may use."""

    def __init__(self, function: Callable[..., Any], source: str = "", *, apart: bool = False,
                 outline: bool = False, vectorize: bool = False) -> None:  # fmt: skip
        self.function = function
        self.apart = apart  # whether its pointers never reach the same memory
        self.outline = outline  # whether callers jump to it instead of taking it in
        self.vectorize = vectorize  # whether LLVM may turn its plain loops into vectors
        self.name = function.__name__
        self._source = source
        self._generated = bool(source)
        self.parts = ""  # generated functions that it is made of, for those who watch
        self.first_line = 1 if source else function.__code__.co_firstlineno
        self.scope = {**vars(language), **function.__globals__, **_closure(function)}
        self._tree: ast.FunctionDef | None = None
        self._assigned: set[str] = set()
        self._digest = ""
        self.__doc__ = function.__doc__

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def __call__(self, *arguments: Any) -> Any:
        raise TypeError(f"{self.name} is a kernel; compile it first (flambeau._runtime.launch)")

    @cached_property
    def parameters(self) -> list[Parameter]:
        """In order; read when first needed, as most kernels that are imported are not compiled."""
        found = []
        for name, parameter in inspect.signature(self.function).parameters.items():
            annotation = parameter.annotation
            if annotation is parameter.empty:
                annotation = None
            elif not isinstance(annotation, str):
                annotation = repr(annotation) if annotation is not language.static else "static"
            default = NOTHING if parameter.default is parameter.empty else parameter.default
            found.append(Parameter(name, annotation, annotation == "static", default))
        return found

    @property
    def source(self) -> str:
        """The text of the function, read when first needed."""
        if not self._source:
            self._source = textwrap.dedent(_text_of(self.function))
        return self._source

    @property
    def tree(self) -> ast.FunctionDef:
        """The function as a syntax tree, parsed when first needed."""
        if self._tree is None:
            found = ast.parse(self.source).body[0]
            if not isinstance(found, ast.FunctionDef):
                raise CompileError(f"{self.name} is not a function")
            self._assigned = _assigned_often(found)
            self._tree = found
        return self._tree

    @property
    def assigned_often(self) -> set[str]:
        """Names that are assigned more than once: variables."""
        _ = self.tree
        return self._assigned

    def lookup(self, name: str) -> Any:
        """What a name of the module means."""
        if name in self.scope:
            return self.scope[name]
        found = self.function.__globals__.get(name, NOTHING)
        if found is NOTHING:
            builtins = self.function.__globals__["__builtins__"]
            table = builtins if isinstance(builtins, dict) else vars(builtins)
            if name not in table:
                raise CompileError(f"{self.name}: no name {name!r}")
            return table[name]
        return found

    def bind(self, arguments: list[Any], named: dict[str, Any]) -> dict[str, Any]:
        """Arguments by name; an error where they do not fit the parameters."""
        bound = {}
        rest = dict(named)
        for position, parameter in enumerate(self.parameters):
            if position < len(arguments):
                bound[parameter.name] = arguments[position]
            elif parameter.name in rest:
                bound[parameter.name] = rest.pop(parameter.name)
            elif parameter.default is not NOTHING:
                bound[parameter.name] = parameter.default
            else:
                raise CompileError(f"{self.name}(): no argument for {parameter.name!r}")
        if rest or len(arguments) > len(self.parameters):
            raise CompileError(f"{self.name}(): too many arguments {arguments} {rest}")
        return bound

    def type_of(self, parameter: Parameter, names: dict[str, Any]) -> Any:
        """The type that an annotation means where `names` are known."""
        if parameter.annotation is None:
            raise CompileError(f"{self.name}(): what type has {parameter.name!r}?")
        found = eval(parameter.annotation, self.scope, dict(names))
        if not isinstance(found, (Scalar, Vector, Pointer)):
            raise CompileError(f"{self.name}(): {parameter.annotation} is no type")
        return found

    def digest(self) -> str:
        """A hash of the text, of the kernels and of the constants that it uses."""
        if self._digest:
            return self._digest
        before = under_way.natives
        if self in before:  # a kernel that calls itself
            return "..."
        try:
            under_way.natives = (*before, self)
            parts = [self.source, str((self.apart, self.outline, self.vectorize))]
            # what stands below the kernel in its module is in the globals only
            scope = ChainMap(self.scope, self.function.__globals__)
            parts += _stamps_of_names(self._names_read(), scope)
            self._digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        finally:
            under_way.natives = before
        return self._digest

    def _names_read(self) -> set[str]:
        if self._generated:
            return {*IDENTIFIER.findall(self._source)} - {self.function.__name__}
        return _names_in(self.function.__code__)


class _UnderWay(threading.local):
    """Of which kernels this thread makes digests, the outermost first. No kernel notes that itself:
    it would be left noted by an error, and seen by other threads, whose keys would lack its text.
    """

    natives: tuple[Native, ...] = ()


under_way = _UnderWay()


def stamp(value: Any) -> str:
    """A text that changes when what a constant means to a kernel changes."""
    if isinstance(value, Native):
        return value.digest()
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(stamp, value))})"
    if isinstance(value, dict):
        return f"{{{','.join(f'{stamp(k)}:{stamp(v)}' for k, v in value.items())}}}"
    if isinstance(value, FunctionType):
        return _stamp_of_function(value)
    return repr(value)


@cache
def _stamp_of_function(function: FunctionType) -> str:
    """The text of a function that runs while a kernel is compiled, and of what that one uses.

    Functions of the compiler are left out: the fingerprint holds their files.
    """
    if function.__module__.startswith(COMPILER):
        return function.__qualname__
    used = {**function.__globals__, **_closure(function)}
    used.pop(function.__name__, None)  # it calls itself
    is_lambda = function.__name__ == "<lambda>"
    text = inspect.getsource(function) if is_lambda else _text_of(function)
    return "\0".join([text, *_stamps_of_names(_names_in(function.__code__), used)])


def _stamps_of_names(names: set[str], scope: Mapping[str, Any]) -> list[str]:
    found = []
    for name in sorted(names):
        value = scope.get(name, NOTHING)
        if value is not NOTHING and vars(language).get(name) is not value:
            found.append(f"{name}={stamp(value)}")
    return found


def native(function: Any = None, **options: Any) -> Any:
    """Make a function a kernel. `apart=True`: its pointers never overlap; `outline=True`: it is
    called, not taken in by its callers; `vectorize=True`: LLVM may vectorise its plain loops."""
    if function is None:
        return lambda found: Native(found, **options)
    return Native(function, **options)


def from_source(name: str, source: str, scope: dict[str, Any], **options: Any) -> Native:
    """A kernel from generated text; tracebacks and debug output show it as `<kernel name>`.

    Python compiles its head only, for the parameters: the rest is parsed where no cache has the
    machine code.
    """
    filename = f"<kernel {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    found = dict(scope)
    head = HEAD.search(source)
    text = source if head is None else f"{source[: head.end()]} pass\n"
    exec(compile(f"from __future__ import annotations\n{text}", filename, "exec"), found)
    return Native(found[name], source, **options)


def _closure(function: Any) -> dict[str, Any]:
    names = function.__code__.co_freevars
    cells = function.__closure__ or ()
    return {name: cell.cell_contents for name, cell in zip(names, cells, strict=True)}


def _text_of(function: Any) -> str:
    """What `inspect.getsource` finds, in a fiftieth of its time (1 ms a function)."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        return inspect.getsource(function)
    first = head = code.co_firstlineno - 1
    while not lines[head].lstrip().startswith("def "):  # decorators
        head += 1
    last = max(line for _, _, line in code.co_lines() if line is not None)
    last = max(last, head + 1)
    margin = _indent(lines[first])
    while last < len(lines) and (
        _indent(lines[last]) > margin or lines[last].lstrip()[:1] in (")", "]", "}")
    ):
        last += 1
    return "".join(lines[first:last])


def _indent(line: str) -> int:
    """The column of the first character; -1 for empty lines."""
    text = line.lstrip()
    return len(line) - len(text) if text else -1


def _names_in(code: CodeType) -> set[str]:
    """The names that a function may read, also inside its comprehensions and lambdas."""
    inner = [_names_in(value) for value in code.co_consts if isinstance(value, CodeType)]
    return {*code.co_names, *code.co_freevars}.union(*inner)


def _assigned_often(tree: ast.FunctionDef) -> set[str]:
    counts: dict[str, int] = {argument.arg: 1 for argument in tree.args.args}
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.AugAssign):
            targets = [node.target, node.target]
        for target in targets:
            for name in _target_names(target):
                counts[name] = counts.get(name, 0) + 1
    return {name for name, count in counts.items() if count > 1}


def _target_names(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for element in target.elts for name in _target_names(element)]
    return []
