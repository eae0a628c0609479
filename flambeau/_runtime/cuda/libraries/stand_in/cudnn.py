"""cuDNN's graph interface: descriptors that are checked when they are finalized, three engines that
differ in their notes, and the operations themselves."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flambeau._runtime.cuda.libraries import cudnn_numbers as numbers
from flambeau._runtime.cuda.libraries.cudnn_numbers import KINDS, WIDTHS
from flambeau._runtime.cuda.libraries.stand_in import cudnn_operations
from flambeau._runtime.cuda.libraries.stand_in.memory import (
    Handles,
    Refusal,
    device_array,
    guarded,
    host_value,
    numpy_type,
    put,
)

NAMES = {number: name for name, number in numbers.TYPES.items()}
KIND_NAMES = {number: name for name, (number, _) in KINDS.items()}
OPTIONAL = frozenset({"virtual", "by_value", "axis", "b", "t"})
READ_ONLY = frozenset({"results", "notes", "engine"})
ENGINES = ((numbers.TENSOR_CORE,), (), (numbers.NONDETERMINISTIC,))
"""The notes of the engines that are proposed. The first one computes float32 in TF32."""
WORKSPACE = 4096
VERSION = 91900
RESULTS = {"forward": "y", "data": "x", "filter": "w", "apply": "y", "reduce": "y", "multiply": "c",
           "reshape": "y"}  # fmt: skip
"""Which attribute of an operation is its result."""
function = guarded(numbers.INTERNAL_ERROR)


@dataclass
class Node:
    """A descriptor."""

    kind: str
    values: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    finalized: bool = False

    def __getitem__(self, name: str) -> Any:
        """The one element of an attribute."""
        (value,) = self.values[name]
        return value


class StandIn:
    """The library."""

    def __init__(self) -> None:
        self.handles = Handles()
        self.stream = 0

    def cudnnGetVersion(self) -> int:
        return VERSION

    @function
    def cudnnCreate(self, target: int) -> None:
        self.handles.give(target, self)

    @function
    def cudnnSetStream(self, handle: int, stream: int | None) -> None:
        self.stream = stream or 0

    @function
    def cudnnBackendCreateDescriptor(self, kind: int, target: int) -> None:
        self.handles.give(target, Node(KIND_NAMES[kind]))

    @function
    def cudnnBackendDestroyDescriptor(self, node: int) -> None:
        self.handles.objects[node] = None

    @function
    def cudnnBackendSetAttribute(self, node: int, number: int, form: int, count: int,
                                 source: int) -> None:  # fmt: skip
        held = self.handles[node]
        name, wanted = _named(held, number)
        doubled = wanted == numbers.FLOAT and form == numbers.DOUBLE
        if held.finalized or (form != wanted and not doubled):
            raise Refusal(numbers.BAD_PARAM)
        elements = (WIDTHS[form] * count).from_address(source)
        held.values[name] = tuple(element or 0 for element in elements)

    @function
    def cudnnBackendGetAttribute(self, node: int, number: int, form: int, most: int, count: int,
                                 target: int) -> None:  # fmt: skip
        held = self.handles[node]
        name, wanted = _named(held, number)
        if not held.finalized or form != wanted:
            raise Refusal(numbers.BAD_PARAM)
        found = held.values[name]
        ctypes.c_int64.from_address(count).value = len(found)
        places = (WIDTHS[form] * most).from_address(target)
        for place, value in enumerate(found[:most]):
            if form == numbers.DESCRIPTOR:  # what is asked for is written into descriptors given
                self.handles.objects[places[place]] = value
            else:
                places[place] = value

    @function
    def cudnnBackendFinalize(self, node: int) -> None:
        held = self.handles[node]
        wanted = set(KINDS[held.kind][1]) - OPTIONAL - READ_ONLY
        if held.kind == "plan":
            wanted.discard("workspace")
        if wanted - set(held.values) or held.finalized:
            raise Refusal(numbers.BAD_PARAM)
        self._complete(held)
        held.finalized = True

    def _complete(self, node: Node) -> None:
        """What a descriptor knows once it is finalized; refuse what does not fit together."""
        if node.kind == "tensor" and len(node.values["dims"]) != len(node.values["strides"]):
            raise Refusal(numbers.BAD_PARAM)
        if node.kind == "convolution" and {
            len(node.values[name]) for name in ("dilations", "strides", "pre", "post")
        } != {node["dims"]}:
            raise Refusal(numbers.BAD_PARAM)
        if node.kind in ("forward", "data", "filter"):
            tensors = [self.handles[node[name]].values["dims"] for name in "xwy"]
            cudnn_operations.check_convolution(self.handles[node["conv"]], *tensors)
        if node.kind == "heuristic" and node["mode"] == numbers.MODE_A:
            node.values["results"] = tuple(_config(node["graph"], notes) for notes in ENGINES)
        if node.kind == "heuristic" and node["mode"] == numbers.FALLBACK:
            node.values["results"] = (_config(node["graph"], ()),)
        if node.kind == "plan":
            node.values["workspace"] = (WORKSPACE,)

    @function
    def cudnnBackendExecute(self, handle: int, plan: int, pack: int) -> None:
        held, addresses = self.handles[plan], self.handles[pack]
        if not held.finalized or not addresses.finalized or not addresses["workspace"]:
            raise Refusal(numbers.BAD_PARAM)
        config = self.handles[held["config"]]
        places = dict(zip(addresses.values["numbers"], addresses.values["pointers"], strict=True))
        graph = self.handles[config.values["graph"][0]]
        notes = config.values["engine"][0].values["notes"]
        operations = [self.handles[one] for one in graph.values["operations"]]
        run = Run(self.handles, places, numbers.TENSOR_CORE in notes)
        put(self.stream, lambda: run.all(operations), *run.touched(operations))


def _named(node: Node, number: int) -> tuple[str, int]:
    """An attribute of a kind of descriptor, and the type of its elements."""
    for name, (known, form) in KINDS[node.kind][1].items():
        if known == number:
            return name, form
    raise Refusal(numbers.BAD_PARAM)


def _config(graph: int, notes: tuple[int, ...]) -> Node:
    engine = Node("engine", {"notes": notes}, finalized=True)
    return Node("config", {"engine": (engine,), "graph": (graph,)}, finalized=True)


class Run:
    """One execution: operations in order, tensors in memory or, virtual ones, in a dict."""

    def __init__(self, handles: Handles, places: dict[int, int], tf32: bool) -> None:
        self.handles, self.places, self.tf32 = handles, places, tf32
        self.between: dict[int, Any] = {}

    def touched(self, operations: list[Node]) -> tuple[list[int], list[int]]:
        """The addresses that operations read, and those that they write."""
        reads: set[int] = set()
        writes: set[int] = set()
        for operation in operations:
            result = RESULTS[operation.kind]
            for name, (_, form) in KINDS[operation.kind][1].items():
                tensors = operation.values.get(name, ()) if form == numbers.DESCRIPTOR else ()
                for tensor in (self.handles[one] for one in tensors):
                    inside = tensor.kind == "tensor" and not {"virtual", "by_value"} & set(
                        tensor.values
                    )
                    if inside:
                        place = self.places[tensor["number"]]
                        (writes if name == result else reads).add(place)
        return sorted(reads), sorted(writes)

    def all(self, operations: list[Node]) -> None:
        """Run them."""
        self.between.clear()
        for operation in operations:
            if operation.kind == "apply":
                self._apply(operation)
            elif operation.kind == "reduce":
                how = self.handles[operation["reduction"]]["operator"]
                function = np.add if how == numbers.SUM else np.maximum
                x, shape = self.read(operation["x"]), self._shape(operation["y"])
                dims = tuple(d for d, n in enumerate(shape) if n == 1 < x.shape[d])
                self.write(operation["y"], function.reduce(x, dims, keepdims=True))
            elif operation.kind == "multiply":
                left, right = self.read(operation["a"]), self.read(operation["b"])
                group = left.shape[1] // right.shape[1] if left.ndim == 4 else 1
                right = np.repeat(right, group, 1) if group > 1 else right
                self.write(operation["c"], np.matmul(left, right))
            elif operation.kind == "reshape":
                self.write(operation["y"], self._turned(operation))
            else:
                self._convolve(operation)

    def _apply(self, operation: Node) -> None:
        how = self.handles[operation["pointwise"]]
        mode = next(name for name, number in numbers.MODES.items() if number == how["mode"])
        x = self.read(operation["x"])
        if mode == "index":
            axis = how["axis"]
            sizes = [-1 if dim == axis else 1 for dim in range(x.ndim)]
            result: Any = np.broadcast_to(np.arange(x.shape[axis]).reshape(sizes), x.shape)
        elif mode == "select":
            result = np.where(self.read(operation["t"]), x, self.read(operation["b"]))
        else:
            second = self.read(operation["b"]) if "b" in operation.values else None
            result = cudnn_operations.POINTWISE[mode](x, second)
        self.write(operation["y"], result)

    def _turned(self, operation: Node) -> Any:
        """A tensor with its last two dims exchanged: the view that attention asks for."""
        x, shape = self.read(operation["x"]), self._shape(operation["y"])
        if shape != (*x.shape[:-2], x.shape[-1], x.shape[-2]):
            raise Refusal(numbers.NOT_SUPPORTED)
        kind = numpy_type(NAMES[self.handles[operation["y"]]["dtype"]])
        return x.swapaxes(-2, -1).astype(kind).astype(x.dtype)

    def _convolve(self, operation: Node) -> None:
        how = self.handles[operation["conv"]]
        result = "ywx"[("forward", "filter", "data").index(operation.kind)]
        given = [None if name == result else self.read(operation[name]) for name in "xwy"]
        shape = self._shape(operation[result])
        padding, stride, dilation = (how.values[name] for name in ("pre", "strides", "dilations"))
        computed = cudnn_operations.convolve(operation.kind, given, shape, padding, stride,
                                             dilation, self.tf32)  # fmt: skip
        self.write(operation[result], computed)

    def _shape(self, node: int) -> tuple[int, ...]:
        return self.handles[node].values["dims"]  # type: ignore[no-any-return]

    def _memory(self, node: Node) -> Any:
        address = self.places[node["number"]]
        if address % node["alignment"]:
            raise Refusal(numbers.BAD_PARAM)
        kind = numpy_type(NAMES[node["dtype"]])
        return device_array(address, node.values["dims"], node.values["strides"], kind)

    def read(self, tensor: int) -> Any:
        """A tensor's elements, half types in float32."""
        node = self.handles[tensor]
        if "virtual" in node.values:
            return self.between[node["number"]]
        if "by_value" in node.values:
            return host_value(self.places[node["number"]], numpy_type(NAMES[node["dtype"]]))
        values = self._memory(node)
        return values.astype(np.float32) if values.dtype.itemsize == 2 else values

    def write(self, tensor: int, values: Any) -> None:
        """Write a tensor, rounded to its type if it is in memory."""
        node = self.handles[tensor]
        if "virtual" in node.values:
            self.between[node["number"]] = values
            return
        target = self._memory(node)
        target[...] = values.astype(target.dtype)
