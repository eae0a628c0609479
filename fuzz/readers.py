"""Coverage-guided fuzzing of everything that reads files: `python fuzz/readers.py TARGET CORPUS`.

What follows CORPUS goes to libFuzzer, such as `-max_total_time=60`. An input that is refused by one
of the documented exceptions is fine. Any other exception, more than a few seconds, or more than a
gigabyte of memory is a finding; libFuzzer then keeps the input in a file.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))
with atheris.instrument_imports(include=["flambeau.serialization"]):
    from flambeau.serialization import api, description, loader
    from flambeau.serialization.archive import ArchiveReader
    from flambeau.serialization.checksums import Workers
    from flambeau.serialization.inspection import globals_in_pickle
    from flambeau.serialization.locations import restore_default
    from flambeau.serialization.safetensors import SafetensorError, safe_open
    from flambeau.serialization.safetensors import torch as safetensors
    from flambeau.serialization.storages import ArchiveStorages
import flambeau
from flambeau import nn
from tests.serialization import attack_files

REFUSALS = (pickle.UnpicklingError, RuntimeError, EOFError)
SPARE_MEMORY = 1 << 30
HONEST = ArchiveReader(attack_files.archive_of(b"\x80\x02N.", **{"data/1": bytes(4096)}))


def unpickle(data: bytes) -> None:
    """The safe interpreter, with storages "0" of 24 bytes and "1" of 4,096."""
    with Workers(0) as workers:
        storages = ArchiveStorages(HONEST, restore_default, foreign=False, workers=workers)
        touch(loader._interpret(memoryview(data), storages, {"encoding": "utf-8"}))


def stream(data: bytes) -> None:
    """Files from before PyTorch 1.6, and whatever else is no zip archive."""
    touch(api.load(io.BytesIO(data)))


def archive(data: bytes) -> None:
    """The zip reader alone; CRCs are left out, since no mutation gets past them."""
    reader = ArchiveReader(data, verify_crc32=False)
    for name in reader.names():
        assert len(reader.read(name)) == reader.size(name)


def inspect(data: bytes) -> None:
    """What `flambeau inspect` runs, on a pickle inside an honest archive, and on the raw bytes."""
    try:
        for _ in globals_in_pickle(data):
            pass
    except ValueError:
        pass
    found = description.describe(memoryview(data))
    for _ in description.tree_of(found.content).tensors():
        pass


def safe(data: bytes) -> None:
    """The reader of .safetensors files: from memory, and lazily from a file."""
    for tensor in safetensors.load(data).values():
        touch(tensor)
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with safe_open(file.name, "pt") as opened:
            for name in opened.keys():  # noqa: SIM118
                touch(opened.get_tensor(name))


def touch(value: object) -> None:
    """Read the elements of the tensors in a small result, as the first use of them would."""
    pending, seen = [value], 0
    while pending and seen < 1000:
        part = pending.pop()
        seen += 1
        if isinstance(part, flambeau.Tensor) and part.numel() <= 1 << 16:
            part.detach().clone() if part.layout is flambeau.strided else part.coalesce()
        elif isinstance(part, dict):
            pending.extend(part.values())
        elif isinstance(part, list | tuple):
            pending.extend(part)


def seeds_of_pickles() -> list[bytes]:
    value = {"model": nn.Linear(2, 3).state_dict(), "p": nn.Parameter(flambeau.ones(2)),
             "other": [1, 2.5, "x", b"y", {3}, (4,), flambeau.float32, flambeau.Size((1,)),
                       flambeau.device("cpu"), 1j, bytearray(b"z")]}  # fmt: skip
    honest = []
    for protocol in (2, 3, 4, 5):
        sink = io.BytesIO()
        api.save(value, sink, pickle_protocol=protocol)
        honest.append(ArchiveReader(sink.getvalue()).read("data.pkl"))
    return [*honest, *attack_files.PICKLES.values()]


def seeds_of_streams() -> list[bytes]:
    sink = io.BytesIO()
    api.save(nn.Linear(2, 3).state_dict(), sink, _use_new_zipfile_serialization=False)
    return [sink.getvalue(), *attack_files.STREAMS.values()]


def seeds_of_archives() -> list[bytes]:
    from tests.serialization import test_zip_tricks

    honest = attack_files.archive_of(b"\x80\x02N.")
    return [honest, *(content for content, _ in test_zip_tricks.TRICKS.values())]


def seeds_of_safetensors() -> list[bytes]:
    tensors = {"a": flambeau.ones(2, 3), "b": flambeau.zeros(0), "c": flambeau.tensor(1.5)}
    hostile = [b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', b'{"__metadata__":{}}']
    return [safetensors.save(tensors, {"format": "pt"}),
            *(len(text).to_bytes(8, "little") + text + bytes(8) for text in hostile)]  # fmt: skip


TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], list[bytes]]]] = {
    "unpickler": (unpickle, seeds_of_pickles),
    "stream": (stream, seeds_of_streams),
    "zip": (archive, seeds_of_archives),
    "inspect": (inspect, lambda: seeds_of_pickles()[:40] + seeds_of_streams()),
    "safetensors": (safe, seeds_of_safetensors),
}


def limit_memory() -> None:
    """Let no allocation go far beyond what is in use now: MemoryError is no documented refusal."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGESIZE") + SPARE_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> None:
    target, seeds = TARGETS[sys.argv.pop(1)]
    corpus = Path(sys.argv[1])
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in seeds():
        (corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)

    def one_input(data: bytes) -> None:
        try:
            target(data)
        except (*REFUSALS, SafetensorError):
            pass

    atheris.Setup(sys.argv, one_input)
    limit_memory()
    atheris.Fuzz()


if __name__ == "__main__":
    main()
