"""The formats from before PyTorch 1.6."""

import io
import pickle
import struct
import tarfile

import numpy as np
import pytest

from flambeau._tensor.tensor import wrap
from flambeau.serialization import load, save
from tests.serialization.checkpoints import saved


def test_legacy_objects_in_a_row(tmp_path):
    path = tmp_path / "x.pt"
    with path.open("wb") as file:
        for number in range(3):
            save(wrap(np.full(2, number)), file, _use_new_zipfile_serialization=False)
    for weights_only in (True, False):
        with path.open("rb") as file:
            for number in range(3):
                assert load(file, weights_only=weights_only)._data.tolist() == [number, number]


def test_truncated_legacy_files():
    content = saved([wrap(np.ones(5, np.float32))], _use_new_zipfile_serialization=False)
    for length in range(1, len(content)):
        with pytest.raises((pickle.UnpicklingError, RuntimeError)):
            load(io.BytesIO(content[:length]))


def test_legacy_headers():
    for magic, version in ((1, 1001), (0x1950A86A20F9469CFC6C, 7)):
        content = pickle.dumps(magic, 2) + pickle.dumps(version, 2)
        with pytest.raises(RuntimeError, match=r"Invalid (magic number|protocol version)"):
            load(io.BytesIO(content))


def test_legacy_storages_cannot_outgrow_the_file():
    content = saved([wrap(np.ones(5, np.float32))], _use_new_zipfile_serialization=False)
    huge = content.replace(b"K\x05N", b"J\xff\xff\xff\x7fN")
    assert huge != content
    with pytest.raises(pickle.UnpicklingError, match="too short for storage"):
        load(io.BytesIO(huge))


# ---- the .tar files of PyTorch 0.1


def tar_of(**members):
    """A .tar file in memory; a member that is None is left out."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w:", format=tarfile.PAX_FORMAT) as archive:
        for name, content in members.items():
            if content is not None:
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return sink.getvalue()


def named(module, name):
    """The pickle of a name of torch's, as protocol 2 writes it, without its frame."""
    return f"c{module}\n{name}\n".encode()


def triple(key, second, name):
    """The pickle of (key, second, torch.<name>)."""
    return b"\x80\x02" + part(key) + part(second) + named("torch", name) + b"\x87."


def part(value):
    return pickle.dumps(value, 2)[2:-1]


def tar_file(**changes):
    """A storage of six floats, a view of its last four, and three tensors over both."""
    values = np.arange(6, dtype="<f4")
    members = {
        "storages": b"".join((
            pickle.dumps(1, 2), triple(10, "cpu", "FloatStorage"), struct.pack("<q", 6),
            values.tobytes(), pickle.dumps([(11, 10, 2, 4)], 2),
        )),
        "tensors": b"".join((
            pickle.dumps(3, 2),
            triple(20, 10, "FloatTensor"), struct.pack("<i4x5q", 2, 2, 3, 3, 1, 0),
            triple(21, 11, "FloatTensor"), struct.pack("<i4x3q", 1, 2, 2, 1),
            triple(22, 10, "FloatTensor"), struct.pack("<i4x1q", 0, 5),
        )),
        "pickle": b"\x80\x02](" + b"".join(part(key) + b"Q" for key in ("20", "21", "22")) + b"e.",
    }  # fmt: skip
    return tar_of(**{**members, **changes})


def test_tar_files():
    whole, part_of_view, scalar = load(io.BytesIO(tar_file()), weights_only=False)
    assert whole._data.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert part_of_view._data.tolist() == [3, 5]
    assert scalar._data.tolist() == 5
    whole._data[1, 0] = -1
    assert part_of_view._data[0] == -1


def test_tar_files_need_the_users_word():
    with pytest.raises(RuntimeError, match="Cannot use ``weights_only=True`` with files saved in"):
        load(io.BytesIO(tar_file()))


@pytest.mark.parametrize("name", ["storages", "tensors", "pickle"])
def test_broken_tar_files(name):
    for content in (None, b""):
        with pytest.raises((pickle.UnpicklingError, EOFError)):
            load(io.BytesIO(tar_file(**{name: content})), weights_only=False)


def test_tar_tensors_outside_their_storage():
    tensors = b"".join((
        pickle.dumps(1, 2), triple(20, 10, "FloatTensor"), struct.pack("<i4x3q", 1, 7, 1, 0)
    ))  # fmt: skip
    with pytest.raises(pickle.UnpicklingError, match="are out of bounds for storage of size 24"):
        load(io.BytesIO(tar_file(tensors=tensors)), weights_only=False)
