"""What Python code holds of a compiled function or method."""

from __future__ import annotations

import pickle
from typing import Any, NoReturn

from flambeau.jit.ir.function import Function, FunctionSchema
from flambeau.jit.ir.graph import Graph


class ConstantMap:
    """The constants that the text of a function names: `CONSTANTS.c0` is `.c0`."""

    def __init__(self, const_mapping: dict[str, Any]) -> None:
        self.const_mapping = const_mapping

    def __getattr__(self, name: str) -> Any:
        return self.const_mapping[name]


class Compiled:
    """What functions and methods have in common: their schema, and how they are shown."""

    _function: Function

    @property
    def graph(self) -> Graph:
        """The graph, calls of other functions not inlined."""
        return self._function.graph

    @property
    def inlined_graph(self) -> Graph:
        """The graph with the graphs of called functions and methods in it."""
        from flambeau.jit.passes import inline

        graph = self._function.graph.copy()
        inline(graph)
        return graph

    @property
    def code(self) -> str:
        """The function as Python text."""
        return self.code_with_constants[0]

    @property
    def code_with_constants(self) -> tuple[str, ConstantMap]:
        """The text, and the tensors that it names: `CONSTANTS.c0`."""
        from flambeau.jit.printing.code_text import code_with_constants

        text, constants = code_with_constants(self._function)
        return text, ConstantMap(constants)

    @property
    def schema(self) -> FunctionSchema:
        """Parameters and results."""
        return self._function.schema

    @property
    def name(self) -> str:
        """The name without the path."""
        return self._function.name

    @property
    def qualified_name(self) -> str:
        """The name with the path: `__torch__.module.function`."""
        return self._function.qualified_name

    def graph_for(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph that runs for these arguments: the optimised one."""
        self(*args, **kwargs)  # type: ignore[operator]
        from flambeau.jit.optimise import optimised

        return optimised(self._function)

    def get_debug_state(self) -> NoReturn:
        """Torch's executor shows its plans; ours has none of that form."""
        from flambeau._core.missing import NotImplementedInFlambeau, not_implemented_text

        raise NotImplementedInFlambeau(not_implemented_text("get_debug_state"))


class ScriptFunction(Compiled):
    """A compiled function: called like the Python function that it was made from.

    >>> import flambeau as torch
    >>> def twice(x):
    ...     return x * 2
    >>> twice = torch.jit.trace(twice, torch.ones(3))
    >>> isinstance(twice, torch.jit.ScriptFunction), twice(torch.ones(1))
    (True, tensor([2.]))
    """

    __module__ = "flambeau.jit"

    def __init__(self, function: Function, original: Any = None) -> None:
        self._function = function
        self.__name__ = "ScriptFunction"
        self.__qualname__ = "torch.jit.ScriptFunction"
        self.__doc__ = getattr(original, "__doc__", None)
        if original is not None:
            self.__wrapped__ = original
            self._torchdynamo_inline = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        """Write an archive; see `torch.jit.save`."""
        from flambeau.jit import save

        save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        """The bytes of an archive."""
        return bytes_of(self, _extra_files)

    def __reduce__(self) -> NoReturn:
        raise pickle.PickleError("ScriptFunction cannot be pickled")

    def __repr__(self) -> str:
        return f"<torch.jit.ScriptFunction object at {id(self):#x}>"


class ScriptMethod(Compiled):
    """A compiled method of a module or object."""

    __module__ = "flambeau.jit"

    def __init__(self, owner: Any, function: Function, original: Any = None) -> None:
        self.owner = owner
        self._function = function
        self.__doc__ = getattr(original, "__doc__", None)
        self.__name__ = function.name
        if original is not None:
            self.__wrapped__ = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(self.owner, *args, **kwargs)

    def __reduce__(self) -> NoReturn:
        raise pickle.PickleError("ScriptMethod cannot be pickled")

    def __repr__(self) -> str:
        return f"<torch.ScriptMethod object at {id(self):#x}>"


def bytes_of(scripted: Any, extra_files: dict[str, Any] | None = None) -> bytes:
    """The archive of a scripted function or module."""
    import io

    from flambeau.jit import save

    buffer = io.BytesIO()
    save(scripted, buffer, extra_files)
    return buffer.getvalue()
