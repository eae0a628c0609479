"""Programs that write and read distributed checkpoints, in the folder that FOLDER names."""

from __future__ import annotations

import importlib
import os
from typing import Any

FOLDER = "CHECKPOINT_FOLDER"
SHAPE = (13, 5)
"""Of the tensor that is in pieces: its rows do not divide evenly."""


def _module(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.distributed.{name}")


def _state(torch: Any, rank: int, filled: bool) -> dict[str, Any]:
    """A model, an optimizer, numbers, texts, and what only this rank has; or an empty one."""
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.25 if filled else 0.5)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 0.5 if filled else 0.0)
    optimizer.step()
    if not filled:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
    value = 1 if filled else 0
    return {
        "model": model.state_dict(), "optimizer": optimizer.state_dict(),
        "epoch": 3 * value, "name": "text" * value, "pair": (1 * value, "x"),
        "list": [torch.ones(2) * value, [7 * value]], "flag": bool(value),
        "half": torch.arange(6).to(torch.bfloat16) * value,
        "complex": torch.ones(3, dtype=torch.complex64) * value * 2j,
        "strided": (torch.arange(12.0).reshape(3, 4) * value)[:, ::2],
        "empty": torch.ones(0, 3), "number": torch.tensor(4) * value,
        f"of rank {rank}": torch.full((3,), float(rank)) * value,
    }  # fmt: skip


def _flat(torch: Any, value: Any, name: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        parts = [(f"{name}.{key}", inner) for key, inner in value.items()]
    elif isinstance(value, list):
        parts = [(f"{name}.{number}", inner) for number, inner in enumerate(value)]
    else:
        return [(name, value)]
    return [found for key, inner in parts for found in _flat(torch, inner, key)]


def write(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Save, after an older checkpoint in the same folder."""
    dcp = _module(torch, "checkpoint")
    state = {**_state(torch, rank, filled=True), "parts": _in_parts(torch, rank, size, True)}
    dcp.save({"old": torch.zeros(1)}, checkpoint_id=os.environ[FOLDER])
    metadata = dcp.save(state, checkpoint_id=os.environ[FOLDER])
    for name, saved in metadata.state_dict_metadata.items():
        record(name, lambda saved=saved: [type(saved).__name__, str(getattr(saved, "size", None))])


def read(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Load what `write` saved, perhaps in another number of processes."""
    dcp = _module(torch, "checkpoint")
    state = {**_state(torch, 0, filled=False), "parts": _in_parts(torch, rank, size, False)}
    dcp.load(state, checkpoint_id=os.environ[FOLDER])
    parts = state.pop("parts")
    for name, value in _flat(torch, state):
        record(name, lambda value=value: value)
    record("parts", lambda: _local(torch, parts).sum())
    whole = {"parts": torch.zeros(SHAPE)}
    dcp.load(whole, checkpoint_id=os.environ[FOLDER])
    record("whole", lambda: whole["parts"])


def missing(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """What is not there, or is something else."""
    dcp = _module(torch, "checkpoint")
    for name, value in (("nothing", torch.ones(1)), ("epoch", torch.ones(2)), ("half", 3),
                        ("half", torch.ones(7)), ("list", (torch.ones(2), 1))):  # fmt: skip
        state = {name: value}
        record(name, lambda state=state: _failures(dcp.load, state))
        record(f"{name} after", lambda state=state: _flat(torch, state))
    states = ({"a.b": 1, "a": {"b": 2}}, {"same": torch.ones(2 + rank)})
    for state in states:
        record(f"save {list(state)}", lambda state=state: _failures(dcp.save, state))


def _failures(function: Any, state: Any) -> Any:
    try:
        function(state, checkpoint_id=os.environ[FOLDER])
    except BaseException as error:  # PyTorch's is no Exception
        failures = error.failures
        return [
            type(error).__name__,
            *([rank, type(each).__name__, str(each)] for rank, (each, _) in failures.items()),
        ]
    return "no error"


def _in_parts(torch: Any, rank: int, size: int, filled: bool) -> Any:
    numbers = torch.arange(65.0).reshape(SHAPE) if filled else torch.zeros(SHAPE)
    if torch.__name__ == "flambeau":
        return Rows(torch, numbers, rank, size)
    tensors, meshes = _module(torch, "tensor"), _module(torch, "device_mesh")
    mesh = meshes.init_device_mesh("cpu", (size,))
    return tensors.distribute_tensor(numbers, mesh, [tensors.Shard(0)])


def _local(torch: Any, parts: Any) -> Any:
    return parts.rows if torch.__name__ == "flambeau" else parts.to_local()


class Rows:
    """The rows of a tensor that one rank has, as distributed tensors divide them."""

    def __init__(self, torch: Any, numbers: Any, rank: int, size: int) -> None:
        share = -(-len(numbers) // size)
        self.first, self.whole = min(share * rank, len(numbers)), numbers
        self.rows = numbers[self.first : self.first + share].clone()
        self.dcp = importlib.import_module(f"{torch.__name__}.distributed.checkpoint")

    def size(self) -> Any:
        return self.whole.size()

    def __create_chunk_list__(self) -> list[Any]:
        metadata = importlib.import_module(f"{self.dcp.__name__}.metadata")
        offsets = type(self.size())((self.first, 0))
        return [metadata.ChunkStorageMetadata(offsets, self.rows.size())]

    def __create_write_items__(self, name: str, value: Any) -> list[Any]:
        planner = importlib.import_module(f"{self.dcp.__name__}.planner")
        metadata = importlib.import_module(f"{self.dcp.__name__}.metadata")
        (chunk,) = self.__create_chunk_list__()
        properties = metadata.TensorProperties.create_from_tensor(self.rows)
        data = planner.TensorWriteData(chunk, properties, self.size())
        index = metadata.MetadataIndex(name, chunk.offsets)
        kind = planner.WriteItemType.SHARD
        return [planner.WriteItem(index, kind, tensor_data=data)]

    def __get_tensor_shard__(self, index: Any) -> Any:
        return self.rows
