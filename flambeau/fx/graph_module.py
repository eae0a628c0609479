"""`torch.fx.graph_module`: a module whose `forward` is written from a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
from pathlib import Path
from types import FunctionType
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.fx.graph import Graph, PythonCode
from flambeau.nn.module import Module

__all__ = ["GraphModule", "reduce_graph_module"]

numbers = itertools.count()


def _compiled(code: PythonCode) -> Any:
    """The function `forward`; a traceback through it shows its lines."""
    filename = f"<eval_with_key>.{next(numbers)}"
    lines = code.src.splitlines(keepends=True)
    linecache.cache[filename] = (len(code.src), None, lines, filename)
    bound = dict(code.globals)
    exec(compile(code.src, filename, "exec"), bound)
    return bound["forward"]


def _copy_attribute(source: Any, target: Module, dotted: str) -> None:
    """Put what a path leads to at the same path of another module."""
    *folders, last = dotted.split(".")
    for folder in folders:
        source = getattr(source, folder)
        if not hasattr(target, folder):
            setattr(target, folder, Module())
        target = getattr(target, folder)
    _put(target, last, getattr(source, last), source)


def _put(target: Module, name: str, value: Any, source: Any = None) -> None:
    is_tensor = isinstance(value, Tensor) and name not in getattr(source, "_parameters", ())
    if is_tensor and type(value).__name__ != "Parameter":
        persistent = name not in getattr(source, "_non_persistent_buffers_set", ())
        target.register_buffer(name, value, persistent)
    else:
        setattr(target, name, value)


class GraphModule(Module):
    """A module whose `forward` is the code of its `graph`.

    root: a module, or a dict from paths to objects, that has what `get_attr` and `call_module`
    speak of; only that is taken over. Assigning to `graph` writes the code anew; after changes
    to nodes call `recompile()`.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # `forward` belongs to the class, so that each instance has a class of its own.
        base = next(kind for kind in cls.__mro__ if kind.__qualname__ != IMPLEMENTATION)
        made = type(IMPLEMENTATION.rpartition(".")[2], (base,), {"__module__": __name__})
        made.__qualname__ = IMPLEMENTATION
        return super().__new__(made)

    def __init__(
        self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            self.training = root.training
            self._take_from(root, graph)
        else:
            self._take_from_dict(root, graph)
        self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = dict(getattr(root, "meta", {}) or {})
        self.graph = graph

    def _take_from(self, root: Module, graph: Graph) -> None:
        for node in graph.nodes:
            if node.op in {"get_attr", "call_module"}:
                _copy_attribute(root, self, str(node.target))

    def _take_from_dict(self, root: dict[str, Any], graph: Graph) -> None:
        wanting = [node for node in graph.nodes if node.op in {"get_attr", "call_module"}]
        names = {str(node.target): node.name for node in wanting}
        wanted = list(names)
        for path in wanted:
            if path not in root:
                raise RuntimeError(
                    f"Node {names[path]} referenced target {path} but that target was not "
                    "provided in ``root``!"
                )
        for path in sorted(wanted, key=lambda name: name.count(".")):
            *folders, last = path.split(".")
            target: Module = self
            for folder in folders:
                if not hasattr(target, folder):
                    setattr(target, folder, Module())
                target = getattr(target, folder)
            _put(target, last, root[path])

    # ---- the graph and its code

    @property
    def graph(self) -> Graph:
        """The graph that `forward` is written from."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        if g.owning_module is not None and g.owning_module is not self:
            g = copy.deepcopy(g)
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of `forward`."""
        return self._code

    def recompile(self) -> PythonCode:
        """Write `forward` from the graph as it is now."""
        python_code = self._graph.python_code(root_module="self")
        self._code = python_code.src
        type(self).forward = _compiled(python_code)  # type: ignore[method-assign]
        return python_code

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The code as part of a class, printed and returned.

        Raises:
            NotImplementedError: strides, devices or colours are asked for.
        """
        asked = [name for name, value in options.items() if value]
        if asked:
            raise NotImplementedError(f"print_readable({asked[0]}=True) is not implemented")
        code = self._graph.python_code("self", verbose=True).src
        body = "\n".join(f"    {line}".rstrip() for line in code.strip().split("\n"))
        text = f"class {self._get_name()}(torch.nn.Module):\n{body}\n"
        if print_output:
            print(text)
        return text

    def _get_name(self) -> str:
        return type(self).__name__

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{super().__repr__()}\n{self._code}\n{hint}"

    def __repr__(self) -> str:
        return super().__repr__()

    # ---- submodules

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a path, with plain modules on the way; False if that cannot be."""
        way, _, last = target.rpartition(".")
        chain: list[Any] = [self]
        for folder in way.split(".") if way else ():
            if not hasattr(chain[-1], folder):
                chain[-1].add_module(folder, Module())
            chain.append(getattr(chain[-1], folder))
            if not isinstance(chain[-1], Module):
                return False
        chain[-1].add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take the module at a path away; False if there is none."""
        *folders, last = target.split(".")
        place: Any = self
        for folder in folders:
            place = getattr(place, folder, None)
            if not isinstance(place, Module):
                return False
        if not isinstance(getattr(place, last, None), Module):
            return False
        delattr(place, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take every module away that no node speaks of, nor of anything in it."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in {"call_module", "get_attr"}:
                continue
            path = str(node.target)
            parts = path.split(".")
            used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
            if node.op == "call_module":
                called = self.get_submodule(path)
                used.update(f"{path}.{name}" for name, _ in called.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ---- copies and files

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph)
        made.meta = dict(self.meta)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        Module.__init__(made)
        type(made).__name__ = "GraphModule"  # as PyTorch's copies are called
        state = {name: value for name, value in self.__dict__.items() if name != "_graph"}
        made.__dict__.update(copy.deepcopy(state, memo))
        made.graph = copy.deepcopy(self._graph, memo)
        return made

    def __reduce__(self) -> Any:
        state = {name: value for name, value in self.__dict__.items() if name != "_graph"}
        code = self._graph.python_code("self")
        return reduce_graph_module, (state, _imports(code.globals))

    def to_folder(self, folder: str | Path, module_name: str = "FxModule") -> None:
        """Write a package with the code and the state of the module."""
        from flambeau.serialization import save

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        save(self.state_dict(), place / "state_dict.pt")
        save(dict(self.named_children()), place / "children.pt")
        code = self._graph.python_code("self")
        body = "".join(f"    {line}\n" for line in code.src.strip("\n").split("\n"))
        (place / "module.py").write_text(
            f"{_imports(code.globals)}\n\n\nclass {module_name}(torch.nn.Module):\n{body}"
        )
        (place / "__init__.py").write_text("from .module import *\n")


IMPLEMENTATION = "GraphModule.__new__.<locals>.GraphModuleImpl"
PLAIN_IMPORTS = {
    "inf": "from math import inf",
    "nan": "from math import nan",
    "NoneType": "NoneType = type(None)",
    "torch": "import torch",
    "device": "from torch import device",
    "pytree": "import torch.utils._pytree as pytree",
}


def _imports(names: dict[str, Any]) -> str:
    """Statements that bind again what generated code uses."""
    return "\n".join(sorted(_import(name, value) for name, value in names.items()))


def _import(name: str, value: Any) -> str:
    if name in PLAIN_IMPORTS:
        return PLAIN_IMPORTS[name]
    if isinstance(value, str):  # an annotation that is a text
        return f"{name} = {value!r}"
    module, original = getattr(value, "__module__", ""), getattr(value, "__name__", "")
    if module is None or not original:
        raise NotImplementedError(f"cannot write an import of {value!r}")
    if module.startswith("flambeau"):
        module = "torch" + module.removeprefix("flambeau")
    return f"from {module} import {original} as {name}"


def reduce_graph_module(body: dict[str, Any], import_block: str) -> GraphModule:
    """Make a module from its state and code: what `pickle` calls."""
    from flambeau.fx._symbolic_trace import Tracer

    bound: dict[str, Any] = {}
    exec(_of_ours(import_block), bound)
    imported = [value for value in bound.values() if isinstance(value, FunctionType)]
    exec(body["_code"], bound)

    class CodeOnly(Module):
        """The state, and the function that the code says."""

        def __init__(self) -> None:
            super().__init__()
            self.__dict__.update(body)

    CodeOnly.forward = bound["forward"]  # type: ignore[method-assign]

    class KeepModules(Tracer):
        """Calls no submodule: the code speaks of leaves alone."""

        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return True

    module = CodeOnly()
    tracer = KeepModules(autowrap_functions=tuple(imported))
    made = GraphModule(module, tracer.trace(module))
    made._tracer_cls = body.get("_tracer_cls")
    for key, value in body.items():
        if not hasattr(made, key):
            setattr(made, key, value)
    return made


def _of_ours(import_block: str) -> str:
    """Where no hook is installed, `import torch` has to name flambeau itself."""
    lines = import_block.replace("import torch.fx._pytree as fx_pytree", "fx_pytree = None")
    text = []
    for line in lines.split("\n"):
        if line == "import torch":
            text.append("import flambeau as torch")
        else:
            text.append(line.replace("from torch", "from flambeau", 1).replace(
                "import torch.", "import flambeau.", 1))  # fmt: skip
    return "\n".join(text)
