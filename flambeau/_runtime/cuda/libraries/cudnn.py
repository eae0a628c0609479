"""cuDNN's graph interface: operations on tensors, and plans that run them.

A graph is made of descriptors; heuristics propose engines for it, of which plans are made that
take addresses. `Graph` makes the descriptors, `Plan` runs what came of it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from ctypes import byref, c_double, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from functools import cache
from typing import Any

from flambeau._runtime.cuda import launch
from flambeau._runtime.cuda.libraries import cudnn_numbers as numbers
from flambeau._runtime.cuda.libraries import finding
from flambeau._runtime.cuda.libraries.cublaslt import Unsupported
from flambeau._runtime.cuda.libraries.cudnn_numbers import KINDS, MODES, TYPES, WIDTHS
from flambeau._runtime.cuda.libraries.foreign import Foreign, LibraryError, opened
from flambeau._runtime.cuda.libraries.matrices import Array
from flambeau._runtime.cuda.libraries.timing import fastest
from flambeau._runtime.cuda.libraries.workspaces import capturing, workspace
from flambeau._runtime.cuda.memory import Block, Current

PROPOSALS = 24
"""Engines that a heuristic is asked for."""
WORKSPACE = 1 << 30
PACKS = 128
"""Sets of addresses that a plan keeps: programs come back to the same memory."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """Which engines will do. `limit`: how many are measured; 1: the first is taken."""

    tf32: bool = True
    deterministic: bool = False
    limit: int = 1


class Dnn:
    """The library on a device."""

    def __init__(self, foreign: Foreign) -> None:
        self.foreign = foreign
        held = c_void_p()
        foreign.call("cudnnCreate", byref(held))
        self.handle = int(held.value or 0)
        self.version = int(foreign.functions["cudnnGetVersion"]())
        self.stream: int | None = None
        self.lock = threading.RLock()
        self.execute = foreign.functions["cudnnBackendExecute"]

    def made(self, kind: str) -> int:
        """An empty descriptor."""
        held = c_void_p()
        self.foreign.call("cudnnBackendCreateDescriptor", KINDS[kind][0], byref(held))
        return int(held.value or 0)

    def node(self, kind: str, /, **values: Any) -> int:
        """A descriptor with these attributes, each a number or several."""
        node = self.made(kind)
        for name, value in values.items():
            number, form = KINDS[kind][1][name]
            items = tuple(value) if isinstance(value, (tuple, list)) else (value,)
            if isinstance(items[0], c_double):
                form = numbers.DOUBLE
            held = (WIDTHS[form] * len(items))(*items)
            self.foreign.call("cudnnBackendSetAttribute", node, number, form, len(items), held)
        self.foreign.call("cudnnBackendFinalize", node)
        return node

    def read(self, node: int, kind: str, name: str, held: Any, most: int) -> int:
        """Read an attribute of up to `most` elements into memory; how many there are."""
        number, form = KINDS[kind][1][name]
        count = c_int64()
        self.foreign.call("cudnnBackendGetAttribute", node, number, form, most, byref(count), held)
        return min(count.value, most)

    def launch(self, plan: int, pack: int) -> None:
        """Put a plan into the current stream."""
        with self.lock:
            if self.stream != Current.stream:
                self.foreign.call("cudnnSetStream", self.handle, Current.stream)
                self.stream = Current.stream
            status = self.execute(self.handle, plan, pack)
        if status:
            raise self.foreign.error("cudnnBackendExecute", status)


@cache
def library(device: int) -> Dnn:
    """The library on a device, which is the current one.

    Raises:
        MissingLibrary: it is not installed.
    """
    from flambeau._runtime.cuda.libraries.stand_in.cudnn import StandIn

    return Dnn(opened("cuDNN", StandIn, numbers.SIGNATURES, numbers.WORDS))


def version() -> int | None:
    """The version of the library that is installed; None where none is."""
    try:
        function = finding.load("cuDNN").cudnnGetVersion
    except finding.MissingLibrary:
        return None
    function.restype = c_size_t
    return int(function())


class Graph:
    """Operations in the making. Tensors are numbered in the order in which they are asked for;
    those that are not virtual are the plan's arguments, in that order."""

    def __init__(self, dtype: str, alignment: int = 16) -> None:
        self.dnn = library(Current.device)
        self.dtype, self.alignment = dtype, alignment
        self.compute = TYPES["float64" if dtype == "float64" else "float32"]
        self.tensors = 0
        self.arguments: list[int] = []
        self.operations: list[int] = []

    def tensor(self, array: Array, dtype: str = "", *, virtual: bool = False,
               by_value: bool = False) -> int:  # fmt: skip
        """A tensor of a shape and strides."""
        self.tensors += 1
        given: dict[str, Any] = {"virtual": True} if virtual else {}
        if by_value:
            given["by_value"] = True
        if not virtual:
            self.arguments.append(self.tensors)
        return self.dnn.node(
            "tensor", dtype=TYPES[dtype or self.dtype], dims=array.shape, strides=array.strides,
            number=self.tensors, alignment=self.alignment, **given,
        )  # fmt: skip

    def virtual(self, array: Array, dtype: str = "float32") -> int:
        """A tensor between operations, which is never in memory."""
        wide = self.dtype == "float64" and dtype == "float32"
        return self.tensor(array, self.dtype if wide else dtype, virtual=True)

    def add(self, kind: str, **values: Any) -> None:
        """An operation."""
        self.operations.append(self.dnn.node(kind, **values))

    def pointwise(self, mode: str, y: int, *, axis: int | None = None, compute: str = "",
                  **tensors: int) -> None:  # fmt: skip
        """An operation on elements."""
        given = {} if axis is None else {"axis": axis}
        kind = TYPES[compute] if compute else self.compute
        how = self.dnn.node("pointwise", mode=MODES[mode], compute=kind, **given)
        self.add("apply", pointwise=how, y=y, **tensors)

    def reduce(self, operator: int, x: int, y: int) -> None:
        """A reduction over the dims in which `y` is 1 long."""
        how = self.dnn.node("reduction", operator=operator, compute=self.compute)
        self.add("reduce", reduction=how, x=x, y=y)

    def multiply(self, a: int, b: int, c: int) -> None:
        """A product of matrices."""
        self.add("multiply", matmul=self.dnn.node("matmul", compute=self.compute), a=a, b=b, c=c)

    def turn(self, x: int, y: int) -> None:
        """A tensor with its last two dims exchanged."""
        self.add("reshape", x=x, y=y)

    def plan(self, wishes: Wishes) -> Plan:
        """The plan of all that was added.

        Raises:
            Unsupported: there is no engine for it.
        """
        dnn = self.dnn
        try:
            graph = dnn.node("graph", handle=dnn.handle, operations=tuple(self.operations))
        except LibraryError as error:
            raise _unsupported(error) from None
        found: list[tuple[int, int]] = []
        for mode in (numbers.MODE_A, numbers.FALLBACK):
            for config in self._configs(graph, mode):
                self._consider(config, wishes, found)
                if len(found) >= wishes.limit:
                    break
            if found:
                return Plan(dnn, tuple(self.arguments), found)
        raise Unsupported("cuDNN has no engine for this")

    def _configs(self, graph: int, mode: int) -> list[int]:
        """What a heuristic proposes, best first."""
        dnn = self.dnn
        try:
            heuristic = dnn.node("heuristic", graph=graph, mode=mode)
            held = (c_void_p * PROPOSALS)(*[dnn.made("config") for _ in range(PROPOSALS)])
            count = dnn.read(heuristic, "heuristic", "results", held, PROPOSALS)
        except LibraryError as error:
            if error.status in numbers.REFUSALS:
                return []
            raise
        return [config for config in held[:count] if config]

    def _consider(self, config: int, wishes: Wishes, found: list[tuple[int, int]]) -> None:
        """Add the plan of an engine, with the bytes that it works in, if it will do."""
        dnn = self.dnn
        if not self._suits(self._notes(config), wishes):
            return
        try:
            plan = dnn.node("plan", handle=dnn.handle, config=config)
            size = c_int64()
            dnn.read(plan, "plan", "workspace", byref(size), 1)
        except LibraryError:
            return
        if size.value <= WORKSPACE:
            found.append((plan, size.value))

    def _notes(self, config: int) -> list[int]:
        """The numerical notes of an engine."""
        dnn = self.dnn
        engine = (c_void_p * 1)(dnn.made("engine"))
        notes = (c_int * 16)()
        try:
            dnn.read(config, "config", "engine", engine, 1)
            count = dnn.read(engine[0] or 0, "engine", "notes", notes, 16)
        except LibraryError:
            return []
        return list(notes[:count])

    def _suits(self, notes: list[int], wishes: Wishes) -> bool:
        if wishes.deterministic and numbers.NONDETERMINISTIC in notes:
            return False
        if self.dtype != "float32":
            return True
        if numbers.DOWN_CONVERT in notes:
            return False
        return wishes.tf32 or numbers.TENSOR_CORE not in notes


def _unsupported(error: LibraryError) -> Exception:
    return Unsupported(str(error)) if error.status in numbers.REFUSALS else error


class Plan:
    """Something that runs on addresses."""

    def __init__(self, dnn: Dnn, arguments: Sequence[int], found: list[tuple[int, int]]) -> None:
        self.dnn, self.arguments, self.found = dnn, arguments, found
        self.plan, self.workspace = found[0]
        self.settled = len(found) == 1
        self.packs: dict[tuple[int, ...], int] = {}

    def run(self, *addresses: int, scratch: tuple[int, int] | None = None) -> None:
        """Run on addresses, one for each tensor of the graph that is none in between.

        `scratch`: the place of the result among them and its bytes, for measuring.
        """
        launch.unseen()
        if not self.settled and scratch is not None and not capturing():
            self._settle(addresses, *scratch)
        self._launch(addresses)

    def _launch(self, addresses: tuple[int, ...]) -> None:
        space = workspace(self.workspace) if self.workspace else 0
        key = (*addresses, space)
        pack = self.packs.get(key)
        if pack is None:
            pack = self._pack(addresses, space)
            if len(self.packs) >= PACKS:
                self._forget()
            self.packs[key] = pack
        self.dnn.launch(self.plan, pack)

    def _pack(self, addresses: tuple[int, ...], space: int) -> int:
        return self.dnn.node("pack", numbers=self.arguments, pointers=addresses, workspace=space)

    def _forget(self) -> None:
        for pack in self.packs.values():
            self.dnn.foreign.call("cudnnBackendDestroyDescriptor", pack)
        self.packs.clear()

    def _settle(self, addresses: tuple[int, ...], place: int, nbytes: int) -> None:
        """Choose the fastest engine; its results go into memory of its own."""
        self.settled = True
        scratch = Block(nbytes, Current.device)
        aside = (*addresses[:place], scratch.address, *addresses[place + 1 :])

        def attempt(plan: int, space: int) -> None:
            self.plan, self.workspace = plan, space
            self._launch(aside)
            self._forget()

        number = fastest([lambda one=one: attempt(*one) for one in self.found])  # type: ignore[misc]
        self.plan, self.workspace = self.found[number]


# ---- convolutions


@dataclass(frozen=True, slots=True)
class Convolution:
    """One of the three maps of a convolution: `kind` is what is computed, "forward" (y of x and w),
    "data" (x of y and w) or "filter" (w of x and y). Numbers are one for each spatial dim."""

    kind: str
    dtype: str
    x: Array
    w: Array
    y: Array
    padding: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    biased: bool = False
    relu: bool = False
    alignment: int = 16


def _widened(array: Array) -> Array:
    """Signals are images one row high."""
    shape, strides = array.shape, array.strides
    if len(shape) != 3:
        return array
    return Array((*shape[:2], 1, shape[2]), (*strides[:2], shape[2] * strides[2], strides[2]))


def convolution(asked: Convolution, wishes: Wishes) -> Plan:
    """The plan of a convolution. Its arguments: x, w and y, then a bias [O].

    Raises:
        Unsupported: there is no engine for it.
    """
    graph = Graph(asked.dtype, asked.alignment)
    arrays = [_widened(array) for array in (asked.x, asked.w, asked.y)]
    x, w, y = (graph.tensor(array) for array in arrays)
    flat = len(asked.x.shape) == 3
    how = graph.dnn.node(
        "convolution", compute=graph.compute, mode=numbers.CROSS_CORRELATION,
        dims=2 if flat else len(asked.x.shape) - 2,
        dilations=(1, *asked.dilation) if flat else asked.dilation,
        strides=(1, *asked.stride) if flat else asked.stride,
        pre=(0, *asked.padding) if flat else asked.padding,
        post=(0, *asked.padding) if flat else asked.padding,
    )  # fmt: skip
    last = y
    if asked.biased or asked.relu:
        last = graph.virtual(arrays[2])
    factor = c_double if asked.dtype == "float64" else float
    graph.add(asked.kind, conv=how, x=x, w=w, y=last, alpha=factor(1), beta=factor(0))
    if asked.biased:
        before, last = last, graph.virtual(arrays[2]) if asked.relu else y
        channels, rank = arrays[2].shape[1], len(arrays[2].shape)
        apart = channels if arrays[2].strides[1] == 1 else 1
        shape, strides = (1, channels, *(1,) * (rank - 2)), (channels, 1, *(apart,) * (rank - 2))
        bias = graph.tensor(Array(shape, strides))
        graph.pointwise("add", last, x=before, b=bias)
    if asked.relu:
        graph.pointwise("relu", y, x=last)
    return graph.plan(wishes)
