"""Random damage: an error or the truth, and never much memory."""

import io
import pickle
import random
import tracemalloc
from collections import OrderedDict
from contextlib import suppress

import numpy as np

from flambeau._core.layout import Size
from flambeau._tensor.tensor import wrap
from flambeau.serialization import load
from flambeau.serialization.archive import ArchiveReader
from tests.serialization.checkpoints import archive_of, saved


def damaged_files(count):
    tensor = wrap(np.arange(20, dtype=np.float32).reshape(4, 5))
    value = {"a": tensor, "b": [wrap(tensor._data[1:]), Size((1,))], "c": OrderedDict(d=1.5)}
    files = [saved(value), saved(value, _use_new_zipfile_serialization=False)]
    pickled = ArchiveReader(files[0]).read("data.pkl")
    generator = random.Random(2)
    for step in range(count):
        data = bytearray((*files, pickled)[step % 3])
        for _ in range(generator.randint(1, 3)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        yield io.BytesIO(data) if step % 3 < 2 else archive_of(bytes(data), {"0": tensor._data})


def test_random_damage_never_escapes_and_never_allocates():
    tracemalloc.start()
    try:
        for file in damaged_files(1500):
            with suppress(pickle.UnpicklingError, RuntimeError, EOFError):
                load(file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 << 20
