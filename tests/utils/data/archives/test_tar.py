"""Samples of tar files: decoded, chosen from, transformed, and what can be wrong with them."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.serialization.safetensors.torch import save
from flambeau.utils.data import DataLoader, TarDataset
from flambeau.utils.data.archives.sources import SourceError
from flambeau.utils.data.archives.stream import expanded
from tests.utils.data.archives.making import image_bytes, numbered, tar_of

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def npy(array: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


def only(tmp_path: Path, field: str, data: bytes, **options: Any) -> Any:
    path = tar_of(tmp_path / "t.tar", [(f"1.{field}", data)])
    (sample,) = TarDataset(path, fields=(field.lower(),), **options)
    return sample[0]


# ---- decoding


def test_images_are_bytes_of_red_green_blue(tmp_path: Path):
    found = only(tmp_path, "png", image_bytes("PNG", PIXELS))
    assert found.dtype is torch.uint8
    assert (found.numpy() == PIXELS.transpose(2, 0, 1)).all()
    assert only(tmp_path, "JPG", image_bytes("JPEG", PIXELS)).shape == (3, 5, 7)


def test_values_by_extension(tmp_path: Path):
    table = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert only(tmp_path, "npy", npy(table)).tolist() == table.tolist()
    assert only(tmp_path, "json", json.dumps({"a": [1]}).encode()) == {"a": [1]}
    assert only(tmp_path, "cls", b" 12\n") == 12
    assert only(tmp_path, "txt", "zwölf".encode()) == "zwölf"
    assert only(tmp_path, "bin", b"\0\1") == b"\0\1"
    saved = save({"w": torch.ones(2)})
    assert only(tmp_path, "safetensors", saved)["w"].tolist() == [1.0, 1.0]


def test_decoders_of_ones_own_and_none(tmp_path: Path):
    assert only(tmp_path, "cls", b"12", decode=False) == b"12"
    assert only(tmp_path, "cls", b"12", decode={"cls": len}) == 2
    assert only(tmp_path, "seg.png", b"12", decode={"seg.png": len}) == 2
    assert only(tmp_path, "seg.png", image_bytes("PNG", PIXELS)).shape == (3, 5, 7)


def test_fields_of_a_sample(tmp_path: Path):
    path = tar_of(tmp_path / "t.tar", [("1.png", image_bytes("PNG", PIXELS)), ("1.cls", b"1"),
                                       ("2.txt", b"text"), ("2.cls", b"2")])  # fmt: skip
    first, second = TarDataset(path)
    assert sorted(first) == ["__key__", "cls", "png"]
    assert second == {"__key__": "2", "txt": "text", "cls": 2}
    pairs = list(TarDataset(path, fields=("png;txt", "cls", "__key__")))
    assert pairs[1] == ("text", 2, "2")
    assert pairs[0][1:] == (1, "1")


def test_fields_that_nobody_wants_are_not_decoded(tmp_path: Path):
    path = tar_of(tmp_path / "t.tar", [("1.png", b"no image"), ("1.cls", b"1")])
    assert list(TarDataset(path, fields=("cls",))) == [(1,)]


def test_transform(tmp_path: Path):
    (path,) = numbered(tmp_path, [3])
    assert list(TarDataset(path, ("cls",), transform=lambda s: s[0] * 10)) == [0, 10, 20]


# ---- faults


@pytest.mark.parametrize(
    ("field", "data", "text"),
    [
        ("png", image_bytes("PNG", PIXELS)[:60], "truncated"),
        ("jpg", b"no image", "cannot identify"),
        ("npy", npy(np.array([{}], object), allow_pickle=True), "Object arrays"),
        ("npy", npy(np.arange(99))[:200], "t.tar, sample 0"),
        ("cls", b"cat", "invalid literal"),
        ("json", b"{", "Expecting"),
        ("txt", b"\xff", "utf-8"),
        ("safetensors", b"\0", "t.tar, sample 0"),
    ],
)
def test_a_bad_field_names_file_member_and_offset(
    tmp_path: Path, field: str, data: bytes, text: str
):
    with pytest.raises(SourceError) as caught:
        only(tmp_path, field, data)
    assert text in str(caught.value)
    assert f"t.tar, sample 0: member '1.{field}' at offset 512" in str(caught.value)
    assert caught.value.__cause__ is not None


def test_a_missing_or_double_field(tmp_path: Path):
    path = tar_of(tmp_path / "t.tar", [("1.cls", b"1"), ("1.txt", b"1")])
    with pytest.raises(SourceError, match=r"sample '1' has no field 'jpg;png', but cls"):
        list(TarDataset(path, ("jpg;png", "cls")))
    path = tar_of(tmp_path / "u.tar", [("1.cls", b"1"), ("1.CLS", b"1")])
    with pytest.raises(SourceError, match="two members for the field 'cls'"):
        list(TarDataset(path))


def test_an_error_of_the_transform_keeps_its_type(tmp_path: Path):
    (path,) = numbered(tmp_path, [1])
    with pytest.raises(KeyError) as caught:
        list(TarDataset(path, transform=lambda sample: sample["none"]))
    assert "0.tar, sample 0" in caught.value.__notes__[0]


def test_an_archive_that_shrinks_while_it_is_read(tmp_path: Path):
    (path,) = numbered(tmp_path, [3])
    samples = iter(TarDataset(path, ("cls",)))
    next(samples)
    Path(path).write_bytes(Path(path).read_bytes()[:1600])
    with pytest.raises(SourceError, match=r"0\.tar ends at byte 1600, in the middle of"):
        list(samples)


@pytest.mark.parametrize(("workers", "kind"), [(0, "process"), (2, "process"), (2, "thread")])
@pytest.mark.parametrize("bad", [{0}, {3, 4, 8}, {9}])
def test_bad_samples_left_out_and_counted(tmp_path: Path, workers: int, kind: str, bad: set[int]):
    members = [(f"{k}.cls", b"?" if k in bad else b"%d" % k) for k in range(10)]
    dataset = TarDataset(tar_of(tmp_path / "t.tar", members), ("cls",), on_error="skip")
    loader = DataLoader(dataset, 2, num_workers=workers, worker_type=kind)
    found = [k for (batch,) in loader for k in batch.tolist()]
    assert sorted(found) == sorted(set(range(10)) - bad)
    assert dataset.skipped == len(bad)


def test_an_error_in_a_worker_names_the_place(tmp_path: Path):
    members = [(f"{k}.cls", b"?" if k == 3 else b"0") for k in range(6)]
    dataset = TarDataset(tar_of(tmp_path / "t.tar", members), ("cls",))
    with pytest.raises(SourceError, match=r"t\.tar, sample 3: member '3\.cls' at offset"):
        list(DataLoader(dataset, 2, num_workers=1))


@pytest.mark.parametrize(
    "options", [{"on_error": "ignore"}, {"rank": 2, "world_size": 2}, {"shuffle": -1}]
)
def test_wrong_options(tmp_path: Path, options: dict[str, Any]):
    (path,) = numbered(tmp_path, [1])
    with pytest.raises(ValueError, match=r"should be|Invalid rank"):
        TarDataset(path, **options)


# ---- paths


def test_ranges_of_paths(tmp_path: Path):
    numbered(tmp_path, [2, 3, 1])
    assert len(TarDataset(tmp_path / "{0..2}.tar")) == 6
    assert len(TarDataset([tmp_path / "{1..2}.tar", f"file://{tmp_path}/0.tar"])) == 6
    assert expanded("a{08..10}-{0..1}.tar")[::5] == ["a08-0.tar", "a10-1.tar"]
    with pytest.raises(ValueError, match="at least one path"):
        TarDataset([])


def test_a_dataset_can_be_pickled_while_it_is_read(tmp_path: Path):
    dataset = TarDataset(numbered(tmp_path, [4]), ("cls",))
    next(iter(dataset))
    assert len(list(pickle.loads(pickle.dumps(dataset)))) == 4
