"""Embeddings as the files that TensorBoard's projector reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from PIL import Image

from flambeau.utils.tensorboard._convert_np import make_np
from flambeau.utils.tensorboard.pictures import as_bytes

CONFIG = "projector_config.pbtxt"


def write(log_dir: str, points: Any, metadata: Sequence[Any] | None, pictures: Any, step: Any,
          tag: str, header: Sequence[str] | None) -> None:  # fmt: skip
    """Points (number, size), what they are called, and what they look like.

    Raises:
        AssertionError: there are not as many names or pictures as points.
    """
    points = make_np(points)
    assert points.ndim == 2, "mat should be 2D, where mat.size(0) is the number of data points"
    folder = f"{0 if step is None else step:05}/{quote(tag, safe='')}"
    target = Path(log_dir, folder)
    target.mkdir(parents=True, exist_ok=True)
    lines = [f'  tensor_name: "{tag}:{0 if step is None else step:05}"']
    if metadata is not None:
        assert len(points) == len(metadata), "#labels should equal with #data points"
        _write_names(target / "metadata.tsv", metadata, header)
        lines.append(f'  metadata_path: "{folder}/metadata.tsv"')
    lines.append(f'  tensor_path: "{folder}/tensors.tsv"')
    if pictures is not None:
        assert len(points) == len(pictures), "#images should equal with #data points"
        height, width = _write_sprite(target / "sprite.png", make_np(pictures))
        sizes = f"    single_image_dim: {width}\n    single_image_dim: {height}"
        lines.append(f'  sprite {{\n    image_path: "{folder}/sprite.png"\n{sizes}\n  }}')
    _write_rows(target / "tensors.tsv", points.tolist())
    with Path(log_dir, CONFIG).open("a", encoding="utf-8") as file:
        file.write("embeddings {\n" + "\n".join(lines) + "\n}\n")


def _write_names(path: Path, names: Sequence[Any], header: Sequence[str] | None) -> None:
    if not header:
        path.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        return
    assert len(header) == len(names[0]), (
        "len of header must be equal to the number of columns in metadata"
    )
    _write_rows(path, [header, *names])


def _write_rows(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    text = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")


def _write_sprite(path: Path, pictures: np.ndarray) -> tuple[int, int]:
    """Pictures (number, colours, height, width) in a square of as many rows as columns."""
    number, colours, height, width = pictures.shape
    across = math.ceil(math.sqrt(number))
    whole = np.zeros((across * across, colours, height, width), np.uint8)
    whole[:number] = as_bytes(pictures)
    square = whole.reshape(across, across, colours, height, width).transpose(0, 3, 1, 4, 2)
    pixels = square.reshape(across * height, across * width, colours)
    Image.fromarray(pixels.squeeze(-1) if colours == 1 else pixels).save(path)
    return height, width
