"""Files of distributed checkpoints: what is read, what is refused, what a killed rank leaves."""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path

import pytest

import flambeau as torch
import flambeau.distributed.checkpoint as dcp
from flambeau.distributed.checkpoint import format_utils, metadata_file
from flambeau.distributed.checkpoint.metadata import MetadataIndex
from tests.distributed.processes import Processes, run

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")


class Runs:
    """A pickle that makes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return (os.mkdir, (str(self.path),))


def failure(function, *args, **kwargs) -> Exception:
    """What went wrong on rank 0."""
    with pytest.raises(dcp.CheckpointException) as caught:
        function(*args, **kwargs)
    assert str(caught.value).startswith("CheckpointException ranks:dict_keys([0])")
    return caught.value.failures[0][0]


def test_metadata_that_run_something(tmp_path: Path):
    dcp.save({"a": torch.ones(2)}, checkpoint_id=tmp_path)
    (tmp_path / ".metadata").write_bytes(pickle.dumps(Runs(tmp_path / "made")))
    error = failure(dcp.load, {"a": torch.zeros(2)}, checkpoint_id=tmp_path)
    assert isinstance(error, pickle.UnpicklingError)
    assert "mkdir" in str(error)
    assert not (tmp_path / "made").exists()


def test_objects_that_run_something(tmp_path: Path):
    dcp.save({"a": Runs(tmp_path / "made")}, checkpoint_id=tmp_path / "ck")
    error = failure(dcp.load, {"a": 1}, checkpoint_id=tmp_path / "ck")
    assert isinstance(error, pickle.UnpicklingError)
    assert not (tmp_path / "made").exists()


def changed(folder: Path, change) -> None:
    """Write other metadata into a folder."""
    metadata = metadata_file.read((folder / ".metadata").read_bytes())
    change(metadata)
    (folder / ".metadata").write_bytes(metadata_file.write(metadata))


def rename_all(metadata: dcp.Metadata, name: str) -> None:
    """Say that all data lie in one file."""
    for place in metadata.storage_data.values():
        place.relative_path = name


def test_files_outside_of_the_folder(tmp_path: Path):
    secret, folder = tmp_path / "secret", tmp_path / "ck"
    torch.save(torch.ones(2), secret)
    dcp.save({"a": torch.zeros(2)}, checkpoint_id=folder)
    for name in ("../secret", str(secret)):
        changed(folder, lambda told, name=name: rename_all(told, name))
        error = failure(dcp.load, {"a": torch.zeros(2)}, checkpoint_id=folder)
        assert "outside of" in str(error)


def test_damaged_files(tmp_path: Path):
    dcp.save({"a": torch.ones(20)}, checkpoint_id=tmp_path)
    content = (tmp_path / ".metadata").read_bytes()
    for length in range(0, len(content), 7):
        with pytest.raises((pickle.UnpicklingError, UnicodeDecodeError)):
            metadata_file.read(content[:length])
    data = tmp_path / "__0_0.distcp"
    data.write_bytes(data.read_bytes()[:-50])
    assert isinstance(failure(dcp.load, {"a": torch.ones(20)}, checkpoint_id=tmp_path), EOFError)


def test_a_piece_that_is_not_what_the_metadata_say(tmp_path: Path):
    dcp.save({"a": torch.ones(20)}, checkpoint_id=tmp_path)
    changed(tmp_path, lambda told: told.state_dict_metadata.update(
        a=type(told.state_dict_metadata["a"])(
            told.state_dict_metadata["a"].properties, torch.Size([40]),
            [dcp.ChunkStorageMetadata(torch.Size([0]), torch.Size([40]))])))  # fmt: skip
    assert failure(dcp.load, {"a": torch.ones(40)}, checkpoint_id=tmp_path) is not None


def test_again_into_the_same_folder(tmp_path: Path):
    for number in range(4):
        (tmp_path / "notes.txt").write_text("mine")
        dcp.save({"a": torch.full((3,), float(number))}, checkpoint_id=tmp_path)
        state = {"a": torch.zeros(3)}
        dcp.load(state, checkpoint_id=tmp_path)
        assert state["a"].tolist() == [number] * 3
        assert len(list(tmp_path.glob("*.distcp"))) == 1
    writer = dcp.FileSystemWriter(tmp_path, overwrite=False)
    assert "already exists" in str(failure(dcp.save, {"a": torch.ones(1)}, storage_writer=writer))
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("options", [{"thread_count": 3}, {"single_file_per_rank": False},
                                     {"sync_files": False}])  # fmt: skip
def test_ways_to_write(options: dict, tmp_path: Path):
    saved = {str(number): torch.arange(number) for number in range(9)}
    writer = dcp.FileSystemWriter(tmp_path, **options)
    metadata = dcp.save({**saved, "x": [1], "y": "z"}, storage_writer=writer)
    assert MetadataIndex("3", [0]) in metadata.storage_data
    state = {name: torch.zeros_like(tensor) for name, tensor in saved.items()} | {"x": 0, "y": 0}
    dcp.load(state, storage_reader=dcp.FileSystemReader(tmp_path))
    assert state.pop("x") == [1] and state.pop("y") == "z"
    assert all(torch.equal(state[name], tensor) for name, tensor in saved.items())


def test_into_one_file_and_back(tmp_path: Path):
    state = {"model": {"w": torch.ones(2)}, "list": [torch.ones(1), {"x": 3}], "epoch": 4}
    torch.save(state, tmp_path / "one.pt")
    format_utils.torch_save_to_dcp(tmp_path / "one.pt", tmp_path / "many")
    format_utils.dcp_to_torch_save(tmp_path / "many", tmp_path / "again.pt")
    again = torch.load(tmp_path / "again.pt")
    assert repr(again) == repr(state)


def test_states_of_objects_and_partial_loads(tmp_path: Path):
    class Counter:
        def __init__(self, count: int) -> None:
            self.count = count

        def state_dict(self) -> dict:
            return {"count": self.count, "tensor": torch.full((2,), float(self.count))}

        def load_state_dict(self, state: dict) -> None:
            self.count = state["count"] + state["tensor"].sum().item()

    dcp.save({"app": Counter(3)}, checkpoint_id=tmp_path)
    counter, planner = Counter(0), dcp.DefaultLoadPlanner(allow_partial_load=True)
    dcp.load({"app": counter, "other": 1}, checkpoint_id=tmp_path, planner=planner)
    assert counter.count == 9


def test_async_save(tmp_path: Path):
    x = torch.ones(1000)
    future = dcp.async_save({"x": x}, checkpoint_id=tmp_path)
    x.zero_()
    assert future.result(100).version == "1.0.0"
    dcp.load({"x": x}, checkpoint_id=tmp_path)
    assert x.sum().item() == 1000


KILLED = """
import flambeau.distributed.checkpoint as dcp
folder = os.environ["CHECKPOINT"]
x = torch.full((1000,), float(RANK))
dcp.save({"x": torch.ones(4), f"of {RANK}": x}, checkpoint_id=folder)
class Dies(dcp.DefaultSavePlanner):
    def resolve_data(self, item):
        if RANK == 1:
            tell("writes")
            time.sleep(1000)
        return super().resolve_data(item)
class Waits(dcp.FileSystemWriter):
    def finish(self, metadata, results):
        super().finish(metadata, results)
        sys.exit("a checkpoint without one of its ranks")
tell("begins")
tell(error_of(lambda: dcp.save({"x": torch.zeros(4), f"of {RANK}": x * 0 - 1},
                               storage_writer=Waits(folder), planner=Dies())))
time.sleep(1000)
"""


def test_a_rank_is_killed_while_it_writes(tmp_path: Path):
    with Processes(KILLED, 2, CHECKPOINT=str(tmp_path)) as processes:
        assert [processes.line(rank) for rank in range(2)] == ["begins", "begins"]
        assert processes.line(1) == "writes"
        processes.signal(1, signal.SIGKILL)
        text, _ = processes.line(0)
        assert "rank 1 has died" in text
    state = {"x": torch.zeros(4), "of 0": torch.ones(1000), "of 1": torch.zeros(1000)}
    dcp.load(state, checkpoint_id=tmp_path)
    assert [state["x"].sum(), state["of 0"].sum(), state["of 1"].sum()] == [4, 0, 1000]
    dcp.save({"y": torch.ones(1)}, checkpoint_id=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_many_processes(tmp_path: Path):
    text = """
import flambeau.distributed.checkpoint as dcp
folder = os.environ["CHECKPOINT"]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
first = dcp.async_save({"m": model.state_dict(), "own %d" % RANK: RANK}, checkpoint_id=folder)
dist.all_reduce(torch.ones(3))
first.result()
try:
    dcp.load({"none": 1} if RANK else {}, checkpoint_id=folder)
except dcp.CheckpointException as error:
    seen = [[rank, str(each)] for rank, (each, _) in error.failures.items()]
state = {"own %d" % (1 - RANK): None}
dcp.load(state, checkpoint_id=folder)
tell([seen, state, len(list(os.scandir(folder)))])
"""
    seen = run(text, 2, CHECKPOINT=str(tmp_path))
    failures = [[1, "Missing key in checkpoint state_dict: none."]]
    assert seen == [[failures, {"own 1": 1}, 3], [failures, {"own 0": 0}, 3]]
