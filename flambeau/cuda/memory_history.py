"""Where a GPU's memory went: the segments with their blocks, and who took them when."""

from __future__ import annotations

import json
import pickle
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from flambeau._core.device import Cuda
from flambeau._runtime.cuda import memory as runtime
from flambeau._runtime.cuda.allocator import Arena, Piece, PoolId, Segment
from flambeau._runtime.cuda.memory import Block
from flambeau._runtime.cuda.statistics import MASK
from flambeau.cuda.devices import index_of
from flambeau.cuda.started import init, unbound

Frame = dict[str, Any]
KINDS = (None, "state", "all")


class History:
    """What happened to the memory of a device, from the moment it was asked for."""

    def __init__(self, device: int, stacks: bool, most: int) -> None:
        self.device, self.stacks = device, stacks
        self.events: deque[dict[str, Any]] = deque(maxlen=most)
        self.frames: dict[int, list[Frame]] = {}
        """Address -> where in the program a block that is in use was taken."""

    def note(self, action: str, address: int, size: int, stream: int) -> list[Frame]:
        """Write an event down."""
        frames = stack() if self.stacks else []
        self.events.append({"action": action, "addr": address, "size": size, "stream": stream,
                            "time_us": time.time_ns() // 1000, "frames": frames})  # fmt: skip
        return frames

    def taken(self, block: Block) -> None:
        """A block was taken."""
        frames = self.note("alloc", block.address, block.nbytes, block.arena.stream)
        self.frames[block.address] = frames

    def given(self, block: Block) -> None:
        """A block was given back."""
        stream = block.arena.stream
        self.note("free_requested", block.address, block.nbytes, stream)
        self.frames.pop(block.address, None)

    def freed(self, block: Any) -> None:
        """A block was given back, and no stream uses it any more."""
        self.note("free_completed", block.address, block.nbytes, block.arena.stream)

    def grown(self, segment: Segment) -> None:
        """The driver gave memory."""
        self.note("segment_alloc", segment.address, segment.size, segment.arena.stream)

    def dropped(self, segment: Segment) -> None:
        """The driver got memory back."""
        self.note("segment_free", segment.address, segment.size, segment.arena.stream)


histories: dict[int, History] = {}
"""Device -> its history, while one is written."""


def stack() -> list[Frame]:
    """The program's frames, the innermost first, without flambeau's own."""
    frame: Any = sys._getframe(1)
    found = []
    while frame is not None:
        code = frame.f_code
        if "flambeau/" not in code.co_filename:
            found.append({"filename": code.co_filename, "line": frame.f_lineno,
                          "name": code.co_name})  # fmt: skip
        frame = frame.f_back
    return found


def _record_memory_history(enabled: Any = "all", context: Any = "all", stacks: str = "all",
                           max_entries: int = sys.maxsize, device: Any = None,
                           clear_history: bool = False, compile_context: bool = False,
                           global_record_annotations: bool = False) -> None:  # fmt: skip
    """Begin to write down what is taken and given back, or stop.

    Args:
        enabled: "all" for events too, "state" for the blocks in use alone, None to stop.
        context: None for no frames.
        stacks: taken for PyTorch's sake; frames are those of Python.
        max_entries: how many events are kept.
        device: which device, by default all.
        clear_history: forget what was written before.
        compile_context: taken for PyTorch's sake, as the next one is.
        global_record_annotations: names of stretches are not written down.
    """
    if not Cuda.devices():
        unbound("record_memory_history")
    init()
    if enabled is False:
        enabled = None
    if enabled is True:
        enabled = "all"
    if enabled not in KINDS:
        raise RuntimeError("expected state to be 'state', 'all', or None")
    devices = range(Cuda.devices()) if device is None else [index_of(device)]
    for index in devices:
        before = histories.pop(index, None)
        if before is not None:
            runtime.unwatch(index, before)
        if enabled is not None:
            most = min(max_entries, sys.maxsize) if enabled == "all" else 0
            made = History(index, context is not None, most)
            if before is not None and not clear_history:
                made.events.extend(before.events)
            histories[index] = made
            runtime.watch(index, made)


STATES = {True: "inactive", False: "active_allocated"}


def _block(piece: Piece, codes: dict[int, int], pending: dict[int, int], frames: Any) -> Frame:
    """A piece of a segment, as `memory_snapshot` lists it."""
    state = "active_pending_free" if piece.address in pending else STATES[piece.is_hole]
    code = codes.get(piece.address, pending.get(piece.address, 0))
    return {"address": piece.address, "size": piece.size, "requested_size": code & MASK,
            "state": state, "frames": frames.get(piece.address, [])}  # fmt: skip


def _pieces(segment: Segment) -> list[Piece]:
    found: list[Piece] = []
    piece: Piece | None = segment.piece
    while piece is not None:
        found.append(piece)
        piece = piece.after
    return found


def _segment(device: int, segment: Segment, codes: Any, pending: Any) -> dict[str, Any]:
    frames = histories[device].frames if device in histories else {}
    blocks = [_block(piece, codes, pending, frames) for piece in _pieces(segment)]
    where: Arena = segment.arena
    active = [block for block in blocks if block["state"] != "inactive"]
    allocated = [block for block in blocks if block["state"] == "active_allocated"]
    return {
        "device": device, "address": segment.address, "total_size": segment.size,
        "allocated_size": sum(block["size"] for block in allocated),
        "active_size": sum(block["size"] for block in active),
        "requested_size": sum(block["requested_size"] for block in active),
        "stream": where.stream, "segment_type": "small" if segment.small else "large",
        "segment_pool_id": where.pool or (0, 0), "is_expandable": False, "frames": [],
        "blocks": blocks,
    }  # fmt: skip


def memory_snapshot(mempool_id: PoolId | None = None) -> list[dict[str, Any]]:
    """All segments with their blocks, sorted by address.

    Args:
        mempool_id: only those of this private pool.

    Raises:
        AttributeError: there is no GPU.
    """
    if not Cuda.devices():
        unbound("memorySnapshot")
    found = []
    with runtime.lock:
        codes = {block.address: block.code for block in runtime.blocks()}
        for device, owner in runtime.allocators.items():
            owner.settle()
            pending = {block.address: block.code for block in runtime.waiting.get(device, [])}
            for segment in owner.segments.values():
                if mempool_id is None or segment.arena.pool == mempool_id:
                    found.append(_segment(device, segment, codes, pending))
    return sorted(found, key=lambda segment: segment["address"])


def _snapshot(device: Any = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """The segments, the events of each device, and the allocator's settings. Raises AttributeError
    without a GPU."""
    if not Cuda.devices():
        unbound("memorySnapshot")
    chosen = runtime.allocator(index_of(device)).settings
    traces = [list(histories[index].events) if index in histories else []
              for index in range(Cuda.devices())]  # fmt: skip
    settings = {
        "PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": chosen.max_split_size or -1,
        "garbage_collection_threshold": chosen.garbage_collection_threshold,
        "expandable_segments": chosen.expandable_segments,
        "roundup_power2_divisions": {str(1 << power): steps for power, steps
                                     in chosen.roundup_power2_divisions.items()},
    }  # fmt: skip
    return {"segments": memory_snapshot(), "device_traces": traces,
            "allocator_settings": settings, "external_annotations": []}  # fmt: skip


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """Write `_snapshot()` to a file, for https://pytorch.org/memory_viz; JSON where it ends so."""
    found = _snapshot()
    path = Path(filename)
    if path.suffix == ".json":
        path.write_text(json.dumps(found), encoding="utf-8")
    else:
        path.write_bytes(pickle.dumps(found))
