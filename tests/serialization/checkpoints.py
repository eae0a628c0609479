"""Checkpoints in memory, for the tests of saving and loading."""

import io

import numpy as np

from flambeau.serialization import load, save
from flambeau.serialization.archive_writer import ArchiveWriter

FORMATS = [True, False]


def saved(obj, **options):
    sink = io.BytesIO()
    save(obj, sink, **options)
    return sink.getvalue()


def round_trip(obj, *, zip_format=True, **options):
    content = saved(obj, _use_new_zipfile_serialization=zip_format)
    return load(io.BytesIO(content), **options)


def elements(numpy_dtype):
    return np.array([0, 1, 1, 3, 2, 5, 7, 6], np.float32).astype(numpy_dtype)


def archive_of(content, storages, **records):
    """A checkpoint with a hand-written pickle."""
    sink = io.BytesIO()
    writer = ArchiveWriter(sink, "archive")
    writer.write("data.pkl", content)
    for name, record in records.items():
        writer.write(name, record)
    for key, array in storages.items():
        writer.write(f"data/{key}", array)
    writer.finish()
    return io.BytesIO(sink.getvalue())
