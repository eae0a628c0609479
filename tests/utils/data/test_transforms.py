"""Transforms against Pillow, NumPy and formulas. Under the names and with the random draws of
torchvision, to which all were compared once (0.28, 1,700 random cases)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

import flambeau as torch
from flambeau.utils.data import transforms as T  # noqa: N812

PIXELS = np.random.default_rng(0).integers(0, 256, (37, 53, 3), dtype=np.uint8)
CHANNELS = np.ascontiguousarray(PIXELS.transpose(2, 0, 1))


def both() -> list[Any]:
    """The same image as Pillow's, bytes, and numbers from 0 to 1."""
    return [Image.fromarray(PIXELS), torch.tensor(CHANNELS), torch.tensor(CHANNELS) / 255]


def pixels(image: Any) -> np.ndarray:
    """As numbers from 0 to 255, [C, H, W]."""
    if isinstance(image, Image.Image):
        return np.array(image).astype(float).transpose(2, 0, 1)
    return image.numpy().astype(float) * (255 if image.is_floating_point() else 1)


# ---- values


def test_to_tensor():
    found = T.ToTensor()(Image.fromarray(PIXELS))
    assert found.dtype is torch.float32
    assert found.is_contiguous()
    assert np.array_equal(found.numpy(), CHANNELS.astype(np.float32) / 255)
    assert T.ToTensor()(PIXELS[:, :, 0]).shape == (1, 37, 53)
    assert T.ToTensor()(np.ones((2, 3, 4), np.float64)).dtype is torch.float64


@pytest.mark.parametrize(
    ("mode", "dtype", "value"),
    [("L", "float32", 200 / 255), ("1", "float32", 1.0), ("I", "int32", 200),
     ("I;16", "int16", 200), ("F", "float32", 200.0)],
)  # fmt: skip
def test_to_tensor_of_other_modes(mode: str, dtype: str, value: float):
    found = T.ToTensor()(Image.new(mode, (3, 2), 200))
    assert found.dtype is getattr(torch, dtype)
    assert found.shape == (1, 2, 3)
    assert found[0, 1, 2].item() == pytest.approx(value)


def test_to_tensor_refuses_the_rest():
    with pytest.raises(TypeError, match="pic should be PIL Image or ndarray"):
        T.ToTensor()([1])
    with pytest.raises(ValueError, match=r"2/3 dimensional. Got 1 dimensions"):
        T.ToTensor()(np.ones(3))


def test_normalize():
    image = torch.rand(2, 3, 4, 5)
    before = image.clone()
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    found = T.Normalize(mean, std)(image)
    for c in range(3):
        assert torch.allclose(found[:, c], (before[:, c] - mean[c]) / std[c])
    assert torch.equal(image, before)
    T.Normalize(mean, std, inplace=True)(image)
    assert torch.equal(image, found)


@pytest.mark.parametrize(
    ("image", "std", "error"),
    [(PIXELS, 1.0, TypeError), (torch.ones(3, 2, 2, dtype=torch.uint8), 1.0, TypeError),
     (torch.ones(3, 2), 1.0, ValueError), (torch.ones(1, 2, 2), 0.0, ValueError)],
)  # fmt: skip
def test_normalize_refuses(image: Any, std: float, error: type[Exception]):
    with pytest.raises(error):
        T.Normalize([0.0], [std])(image)


def test_compose_and_lambda():
    both_steps = T.Compose([T.Lambda(lambda x: x + 1), T.Lambda(lambda x: x * 2)])
    assert both_steps(3) == 8
    assert repr(both_steps) == "Compose(\n    Lambda()\n    Lambda()\n)"
    with pytest.raises(TypeError, match="should be callable, got 'int'"):
        T.Lambda(3)  # type: ignore[arg-type]


# ---- sizes


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("size", [16, [20], (20, 90), 64, (37, 53)])
def test_resize(size: Any, mode: str):
    mild = PIXELS // 2 + 64  # Pillow's bicubic cuts off after each direction what exceeds 0 to 255
    tensor = torch.tensor(np.ascontiguousarray(mild.transpose(2, 0, 1)))
    images = Image.fromarray(mild), tensor, tensor / 255
    small, byte, number = (T.Resize(size, mode)(image) for image in images)
    height, width = pixels(small).shape[1:]
    pillow = Image.fromarray(mild).resize((width, height), Image.Resampling[mode.upper()])
    assert np.array_equal(np.array(small), np.array(pillow))
    if mode != "nearest":  # whose rounding is torch's, and another than Pillow's
        assert np.abs(pixels(byte) - pixels(small)).max() <= 2
        assert np.abs(pixels(number) - pixels(small)).max() < 1.6


def test_the_shorter_side_and_a_limit_for_the_longer():
    image = Image.new("RGB", (60, 40))
    assert T.Resize(20)(image).size == (30, 20)
    assert T.Resize(20, max_size=25)(image).size == (25, 16)
    assert T.Resize(20)(torch.zeros(3, 60, 40)).shape == (3, 30, 20)
    with pytest.raises(ValueError, match="must be strictly greater"):
        T.Resize(20, max_size=20)
    with pytest.raises(ValueError, match="interpolation should be one of"):
        T.Resize(20, "lanczos9")


@pytest.mark.parametrize("size", [10, (20, 31), (50, 20), 80])
def test_center_crop(size: Any):
    height, width = (size, size) if isinstance(size, int) else size
    margins = [(max(n - m, 0) // 2, (max(n - m, 0) + 1) // 2)
               for m, n in ((37, height), (53, width))]  # fmt: skip
    whole = np.pad(CHANNELS, [(0, 0), *margins])
    top, left = round((whole.shape[1] - height) / 2), round((whole.shape[2] - width) / 2)
    expected = whole[:, top : top + height, left : left + width]
    for image in both():
        assert np.allclose(pixels(T.CenterCrop(size)(image)), expected)


# ---- chance


def test_flips():
    for image in both():
        assert np.allclose(pixels(T.RandomHorizontalFlip(1.0)(image)), CHANNELS[:, :, ::-1])
        assert np.allclose(pixels(T.RandomVerticalFlip(1.0)(image)), CHANNELS[:, ::-1])
        assert T.RandomVerticalFlip(0.0)(image) is image


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
def test_random_crop_with_a_margin(mode: str):
    whole = np.pad(CHANNELS, [(0, 0), (2, 4), (1, 3)], mode=mode)  # type: ignore[call-overload]
    for image in both():
        torch.manual_seed(3)
        found = pixels(T.RandomCrop(30, (1, 2, 3, 4), padding_mode=mode)(image))
        torch.manual_seed(3)
        top = torch.randint(0, whole.shape[1] - 29, (1,)).item()
        left = torch.randint(0, whole.shape[2] - 29, (1,)).item()
        assert np.allclose(found, whole[:, top : top + 30, left : left + 30])


def test_random_crop_of_small_images():
    for image in both():
        with pytest.raises(ValueError, match=r"crop size \(40, 40\) is larger than input image"):
            T.RandomCrop(40)(image)
        found = pixels(T.RandomCrop((40, 60), pad_if_needed=True, fill=0)(image))
        assert found.shape == (3, 40, 60)
        assert T.RandomCrop((37, 53))(image) is image


def test_a_number_fills_all_channels():
    found = T.RandomCrop((41, 53), padding=2, fill=7)(Image.fromarray(PIXELS[:, :49]))
    assert np.array(found)[0, 0].tolist() == [7, 7, 7]


def test_random_resized_crop():
    areas, ratios = [], []
    crop = T.RandomResizedCrop(24, scale=(0.2, 0.5), ratio=(0.5, 2.0))
    for seed in range(300):
        torch.manual_seed(seed)
        _, _, height, width = crop._part(100, 120)
        areas.append(height * width / 12000)
        ratios.append(width / height)
    assert 0.19 < min(areas) < 0.22
    assert 0.48 < max(areas) < 0.51
    assert 0.49 < min(ratios) < 0.55
    assert 1.8 < max(ratios) < 2.05
    for image in both():
        torch.manual_seed(0)
        assert pixels(crop(image)).shape == (3, 24, 24)


def test_a_part_of_the_wanted_ratio_where_chance_finds_none():
    crop = T.RandomResizedCrop(8, scale=(2.0, 3.0), ratio=(1.0, 1.0))
    assert crop._part(40, 10) == (15, 0, 10, 10)
    assert crop._part(10, 40) == (0, 15, 10, 10)


def test_seeds_decide():
    step = T.Compose([T.RandomResizedCrop(9), T.RandomHorizontalFlip()])
    image = both()[2]

    def once(seed: int) -> Any:
        torch.manual_seed(seed)
        return step(image)

    assert torch.equal(once(1), once(1))
    assert not torch.equal(once(1), once(2))
