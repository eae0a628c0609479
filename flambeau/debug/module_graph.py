"""What a model does with its inputs: calls of modules and functions, and what goes where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.autograd import no_grad
from flambeau.nn import Module, ModuleDict, ModuleList, Sequential
from flambeau.overrides import TorchFunctionMode

CONTAINERS = (Sequential, ModuleList, ModuleDict)


@dataclass(eq=False)
class Call:
    """One call of a module or of a function: a box of the drawing."""

    title: str
    kind: str
    """"input", "module", "function" or "output"."""
    path: str = ""
    before: list[Call] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    parameters: int = 0
    seconds: float = 0.0


class Recorder(TorchFunctionMode):
    """Notes calls while a model runs. Calls within a module that is shown whole are not noted."""

    def __init__(self, model: Module) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.names = {id(part): name for name, part in model.named_modules()}
        self.makers: dict[int, tuple[Tensor, Call]] = {}  # keeps tensors: ids stay theirs
        self.open: list[tuple[Module, Call, float]] = []

    def made(self, call: Call, results: Any) -> None:
        """Note what a call gives."""
        for tensor in tensors(results):
            call.shapes.append(tuple(tensor.shape))
            self.makers[id(tensor)] = tensor, call

    def add(self, call: Call, arguments: Any) -> Call:
        """Note a call, and where its arguments come from."""
        sources = [self.makers[id(t)][1] for t in tensors(arguments) if id(t) in self.makers]
        call.before = list(dict.fromkeys(source for source in sources if source is not call))
        self.calls.append(call)
        return call

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.open:
            return func(*args, **kwargs)
        start = perf_counter()
        result = func(*args, **kwargs)
        took = perf_counter() - start
        given = [t for t in tensors((args, kwargs)) if id(t) in self.makers]
        if given and any(True for _ in tensors(result)):
            name = getattr(func, "__name__", "function").strip("_")
            call = self.add(Call(name, "function", seconds=took), given)
            self.made(call, result)
        return result

    def enter(self, module: Module, args: Any, kwargs: Any) -> None:
        """A hook before a module's forward."""
        if self.open:
            return
        parameters: Any = module.parameters()
        own = sum(parameter.numel() for parameter in parameters)
        title, path = type(module).__name__, self.names.get(id(module), "")
        call = self.add(Call(title, "module", path, parameters=own), (args, kwargs))
        self.open.append((module, call, perf_counter()))

    def leave(self, module: Module, args: Any, kwargs: Any, result: Any) -> None:
        """A hook after it."""
        if not self.open or self.open[-1][0] is not module:
            return
        _, call, start = self.open.pop()
        call.seconds = perf_counter() - start
        self.made(call, result)


def tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in containers of Python."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def is_whole(module: Module, model: Module) -> bool:
    """Whether a module is one box: layers of `torch.nn`, and modules without modules that are not
    the model itself."""
    if isinstance(module, CONTAINERS):
        return False
    in_nn = type(module).__module__.partition(".")[2].startswith("nn.")
    return in_nn or (module is not model and not any(True for _ in module.children()))


def record(model: Module, inputs: tuple[Any, ...]) -> list[Call]:
    """The calls of `model(*inputs)`, from its inputs to its outputs, in order."""
    recorder = Recorder(model)
    for number, tensor in enumerate(tensors(inputs)):
        title = "input" if number == 0 else f"input {number + 1}"
        recorder.made(recorder.add(Call(title, "input"), ()), tensor)
    with ExitStack() as stack:
        for part in model.modules():
            if is_whole(part, model):
                enter = part.register_forward_pre_hook(recorder.enter, with_kwargs=True)
                stack.callback(enter.remove)
                leave = part.register_forward_hook(recorder.leave, with_kwargs=True)
                stack.callback(leave.remove)
        stack.enter_context(no_grad())
        with recorder:
            result = model(*inputs)
    output = recorder.add(Call("output", "output"), result)
    output.shapes = [tuple(tensor.shape) for tensor in tensors(result)]
    return reaching(output, recorder.calls)


def reaching(output: Call, calls: list[Call]) -> list[Call]:
    """The calls that an output depends on, in their order; inputs in any case."""
    needed, waiting = {output}, [output]
    while waiting:
        for source in waiting.pop().before:
            if source not in needed:
                needed.add(source)
                waiting.append(source)
    return [call for call in calls if call in needed or call.kind == "input"]
