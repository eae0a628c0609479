"""Coverage-guided fuzzing of archives of samples: `python fuzz/datasets.py TARGET CORPUS`.

`tar` and `tfrecord`: files as they come; `example`: the payload of a sound record. A damaged file
is refused by a SourceError, a damaged sample by that too, both naming the file. What follows CORPUS
goes to libFuzzer; anything else than a refusal is a finding, as in `readers.py`.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))
with atheris.instrument_imports(include=["flambeau.utils.data.archives", "tarfile"]):
    from flambeau.utils.data import TarDataset, TFRecordDataset
    from flambeau.utils.data.archives.example import ExampleError, parse, serialized
    from flambeau.utils.data.archives.records import write_record
    from flambeau.utils.data.archives.sources import SourceError
import numpy as np

import flambeau
from flambeau.serialization.safetensors import torch as safetensors

EXAMPLE = serialized({"a": [1, -2], "b": [1.5], "c": [b"x", b""]})


def through(kind: Any, data: bytes, **options: Any) -> None:
    """Read every sample of a file that holds these bytes, and skip those that are damaged."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        for mode in ("raise", "skip"):
            try:
                for _ in kind(path, on_error=mode, **options):
                    pass
            except SourceError as error:
                assert str(path) in str(error), "the file is not named"


def tar(data: bytes) -> None:
    through(TarDataset, data)


def tfrecord(data: bytes) -> None:
    through(TFRecordDataset, data)
    through(TFRecordDataset, data, verify=False, parse_example=False)


def example(data: bytes) -> None:
    with contextlib.suppress(ExampleError):
        parse(data)
    file = io.BytesIO()
    write_record(file, data)
    through(TFRecordDataset, file.getvalue())


def seeds_of_tar() -> list[bytes]:
    array = io.BytesIO()
    np.save(array, np.arange(6.0).reshape(2, 3))
    fields = {"0.npy": array.getvalue(), "0.cls": b"3", "1.json": b'{"a": [1, 2]}', "1.txt": b"x",
              "2.safetensors": safetensors.save({"a": flambeau.ones(2)})}  # fmt: skip
    found = []
    for layout in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=layout) as archive:
            for name, data in fields.items():
                member = tarfile.TarInfo(("d" * 60 + "/") * (2 * (name == "1.txt")) + name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        found.append(file.getvalue())
    return found


def seeds_of_tfrecord() -> list[bytes]:
    file = io.BytesIO()
    for data in (EXAMPLE, b"", EXAMPLE):
        write_record(file, data)
    return [file.getvalue(), file.getvalue()[:-3]]


TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], list[bytes]]]] = {
    "tar": (tar, seeds_of_tar),
    "tfrecord": (tfrecord, seeds_of_tfrecord),
    "example": (example, lambda: [EXAMPLE, b"", EXAMPLE[:-1]]),
}


def main() -> None:
    from readers import limit_memory

    target, seeds = TARGETS[sys.argv.pop(1)]
    corpus = Path(sys.argv[1])
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in seeds():
        (corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    atheris.Setup(sys.argv, target)
    limit_memory()
    atheris.Fuzz()


if __name__ == "__main__":
    main()
