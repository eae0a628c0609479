"""Images in one folder per class."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from flambeau.utils.data import DataLoader, ImageFolder
from flambeau.utils.data.transforms import ToTensor

PLACES = ("dog/b.png", "dog/a.JPG", "cat/deep/er.png", "cat/x.png", "cat/notes.txt")


def made(root: Path) -> Path:
    for number, place in enumerate(PLACES):
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".txt":
            path.write_text("no image")
        else:
            Image.fromarray(np.full((4, 6), number * 10, np.uint8)).save(path)
    (root / "beside.png").write_bytes(b"")
    return root


def test_samples_in_order(tmp_path: Path):
    data = ImageFolder(made(tmp_path))
    assert data.classes == ["cat", "dog"]
    assert data.class_to_idx == {"cat": 0, "dog": 1}
    places = [str(Path(path).relative_to(tmp_path)) for path, _ in data.samples]
    assert places == ["cat/x.png", "cat/deep/er.png", "dog/a.JPG", "dog/b.png"]
    assert data.targets == [0, 0, 1, 1]
    assert data.imgs is data.samples
    image, target = data[1]
    assert (image.mode, image.size, target) == ("RGB", (6, 4), 0)
    assert repr(data).startswith("Dataset ImageFolder\n    Number of datapoints: 4\n")


def test_transforms_and_batches(tmp_path: Path):
    data = ImageFolder(made(tmp_path), ToTensor(), lambda target: target + 5)
    images, targets = next(iter(DataLoader(data, 4, num_workers=2)))
    assert images.shape == (4, 3, 4, 6)
    assert targets.tolist() == [5, 5, 6, 6]
    assert images[0].unique().tolist() == pytest.approx([30 / 255])


def test_which_files_count(tmp_path: Path):
    made(tmp_path)
    assert len(ImageFolder(tmp_path, extensions=".png", allow_empty=True)) == 3
    assert len(ImageFolder(tmp_path, is_valid_file=lambda p: not p.endswith("x.png"))) == 4
    with pytest.raises(ValueError, match="Both extensions and is_valid_file"):
        ImageFolder(tmp_path, is_valid_file=bool, extensions=".png")


def test_no_classes_and_empty_classes(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="Couldn't find any class folder in"):
        ImageFolder(tmp_path)
    (tmp_path / "none").mkdir()
    text = r"Found no valid file for the classes none\. Supported extensions are: \.jpg, \.jpeg"
    with pytest.raises(FileNotFoundError, match=text):
        ImageFolder(tmp_path)
    assert len(ImageFolder(tmp_path, allow_empty=True)) == 0


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(("size", "text"), [(45, "damaged or cut short"), (4, "no image")])
def test_a_cut_image_is_named(tmp_path: Path, workers: int, size: int, text: str):
    data = ImageFolder(made(tmp_path), ToTensor())
    path = tmp_path / "dog/b.png"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(OSError, match=rf"dog/b\.png .*{text}"):
        list(DataLoader(data, num_workers=workers))
