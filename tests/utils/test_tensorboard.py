"""Logs for TensorBoard, read back by the package `tensorboard`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau as torch

loading = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")


def events(folder: Path) -> list[Any]:
    """What the only file of a folder holds, but for its first event, which names the format."""
    (path,) = (p for p in folder.iterdir() if "tfevents" in p.name)
    return list(loading.LegacyEventFileLoader(str(path)).Load())[1:]


def values(folder: Path) -> dict[str, Any]:
    return {value.tag: value for event in events(folder) for value in event.summary.value}


def writer(folder: Path, **options: Any) -> Any:
    from flambeau.utils.tensorboard import SummaryWriter

    return SummaryWriter(folder, **options)


def test_numbers_with_their_steps(tmp_path: Path):
    with writer(tmp_path) as log:
        log.add_scalar("loss", torch.tensor(0.5), 3, walltime=12.0)
        log.add_scalar("exact", 0.1, new_style=True, double_precision=True)
    first, second = events(tmp_path)
    assert (first.step, first.wall_time) == (3, 12.0)
    assert first.summary.value[0].simple_value == 0.5
    assert second.summary.value[0].tensor.double_val == [0.1]


def test_several_numbers_in_one_chart_have_folders_of_their_own(tmp_path: Path):
    with writer(tmp_path) as log:
        log.add_scalars("a/b", {"x": 1, "y": 2}, 0)
    assert values(tmp_path / "a_b_y")["a/b"].simple_value == 2


def test_histograms_count_every_number(tmp_path: Path):
    numbers = torch.cat([torch.linspace(-2, 3, 40), torch.zeros(2)])
    with writer(tmp_path) as log:
        log.add_histogram("all", numbers)
        log.add_histogram("few", numbers, max_bins=10)
        log.add_histogram("halves", numbers.bfloat16())
    for found in values(tmp_path).values():
        assert sum(found.histo.bucket) == found.histo.num == 42
        assert found.histo.bucket_limit[0] <= -2 and found.histo.bucket_limit[-1] >= 3
    assert len(values(tmp_path)["few"].histo.bucket) <= 12


def test_nothing_has_no_histogram(tmp_path: Path):
    with writer(tmp_path) as log, pytest.raises(ValueError, match="no element"):
        log.add_histogram("none", torch.zeros(0))


def test_pictures_keep_their_pixels(tmp_path: Path):
    images = pytest.importorskip("PIL.Image")
    import io

    pixels = torch.randint(0, 256, (5, 3, 4, 6), dtype=torch.uint8)
    with writer(tmp_path) as log:
        log.add_images("grid", pixels)
        log.add_image("one", pixels[0].float() / 255)
    found = values(tmp_path)
    shown = np.asarray(images.open(io.BytesIO(found["grid"].image.encoded_image_string)))
    assert shown.shape == (4, 30, 3)
    assert (shown[:, 12:18] == pixels[2].permute(1, 2, 0).numpy()).all()
    one = np.asarray(images.open(io.BytesIO(found["one"].image.encoded_image_string)))
    assert abs(one.astype(int) - shown[:, :6]).max() <= 1


def test_letters_that_do_not_fit_the_dims(tmp_path: Path):
    with writer(tmp_path) as log, pytest.raises(AssertionError, match="input_format: CHW"):
        log.add_image("wrong", torch.zeros(4, 4))


def test_a_curve_counts_what_is_above_each_threshold(tmp_path: Path):
    with writer(tmp_path) as log:
        log.add_pr_curve("curve", torch.tensor([0, 1, 1]), torch.tensor([0.1, 0.6, 0.4]),
                         num_thresholds=3)  # fmt: skip
    numbers = np.reshape(values(tmp_path)["curve"].tensor.float_val, (6, 3))
    assert numbers[0].tolist() == [2, 1, 0] and numbers[1].tolist() == [1, 0, 0]


def test_a_run_that_is_taken_up_again_purges_later_steps(tmp_path: Path):
    with writer(tmp_path, purge_step=7) as log:
        log.add_scalar("x", 1, 7)
    assert [event.step for event in events(tmp_path)] == [7, 7, 7]


def test_embeddings_are_files(tmp_path: Path):
    pytest.importorskip("PIL")
    with writer(tmp_path) as log:
        log.add_embedding(torch.eye(2), ["a", "b"], torch.rand(2, 3, 4, 4), 5, "tag/x")
    folder = tmp_path / "00005" / "tag%2Fx"
    assert (folder / "tensors.tsv").read_text() == "1.0\t0.0\n0.0\t1.0\n"
    assert {path.name for path in folder.iterdir()} == {"metadata.tsv", "sprite.png", "tensors.tsv"}
    assert "sprite {" in (tmp_path / "projector_config.pbtxt").read_text()


def test_what_is_missing_says_so(tmp_path: Path):
    with writer(tmp_path) as log, pytest.raises(NotImplementedError, match="add_graph"):
        log.add_graph(torch.nn.Linear(1, 1))
