"""`map_location` and the registry of devices."""

import io

import numpy as np
import pytest

from flambeau._core import dtype as dt
from flambeau._core.device import device
from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.tensor import wrap
from flambeau._tensor.typed_storage import wrap_typed
from flambeau.serialization import (
    default_restore_location,
    load,
    location_tag,
    locations,
    register_package,
)
from flambeau.serialization.archive import ArchiveReader
from tests.serialization.checkpoints import FORMATS, archive_of, round_trip, saved


@pytest.mark.parametrize("place", [None, "cpu", device("cpu"), {"cpu": "cpu"}, lambda s, p: s])
@pytest.mark.parametrize("zip_format", FORMATS)
def test_map_location(place, zip_format):
    found = round_trip(wrap(np.ones(2, np.float32)), zip_format=zip_format, map_location=place)
    assert found._data.tolist() == [1, 1]


def on_cuda(content):
    return content.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")


def test_storages_of_missing_devices():
    tensor = wrap(np.ones(2, np.float32))
    content = on_cuda(ArchiveReader(saved(tensor)).read("data.pkl"))
    archive = archive_of(content, {"0": tensor._data}).getvalue()
    with pytest.raises(RuntimeError, match="deserialize object on a CUDA device but"):
        load(io.BytesIO(archive))
    for place in ("cpu", {"cuda:0": "cpu"}, lambda storage, name: storage):
        found = load(io.BytesIO(archive), map_location=place)
        assert found._data.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match=r"don't know how to restore .* \(tagged with tpu\)"):
        load(io.BytesIO(archive), map_location="tpu")
    with pytest.raises(TypeError, match="must return a storage or None, got int"):
        load(io.BytesIO(archive), map_location=lambda storage, name: 3)


def test_what_a_callable_may_return():
    content = saved(wrap(np.arange(3, dtype=np.int16)))
    other = UntypedStorage(np.array([7, 0, 8, 0, 9, 0], np.uint8))
    found = load(io.BytesIO(content), map_location=lambda storage, name: other)
    assert found.tolist() == [7, 8, 9]
    assert found.untyped_storage() is other
    typed = wrap_typed(other, dt.int16)
    assert load(io.BytesIO(content), map_location=lambda s, n: typed).tolist() == [7, 8, 9]
    asked = []
    load(io.BytesIO(content), map_location=lambda s, n: asked.append((s.nbytes(), n)))
    assert asked == [(6, "cpu")]


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(locations, "packages", list(locations.packages))


@pytest.mark.usefixtures("registry")
def test_packages_of_users():
    seen = []

    def bring(storage, location):
        if location.startswith("toaster"):
            seen.append(location)
            return storage
        return None

    register_package(11, lambda storage: None, bring)
    content = saved(wrap(np.ones(2)))
    assert load(io.BytesIO(content), map_location="toaster:1").tolist() == [1, 1]
    assert seen == ["toaster:1"]
    assert location_tag(UntypedStorage(3)) == "cpu"
    register_package(1, lambda storage: "oven", bring)
    assert location_tag(UntypedStorage(3)) == "oven"


def test_devices_that_are_not_there():
    for kind in ("cuda", "cuda:3", "xpu:0", "mtia"):
        with pytest.raises(RuntimeError, match=r"is_available\(\) is False"):
            default_restore_location(UntypedStorage(1), kind)
    with pytest.raises(RuntimeError, match="The HPU device module is not registered"):
        default_restore_location(UntypedStorage(1), "hpu")
    with pytest.raises(RuntimeError, match="UntypedStorage .tagged with cudaa"):
        default_restore_location(UntypedStorage(1), "cudaa")
    assert default_restore_location(UntypedStorage(1), "meta").device.type == "meta"
