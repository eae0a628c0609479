"""Operators that torchvision asks for by name."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch

vision = torch.ops.torchvision


def doubles(*sizes: int):
    return torch.rand(*sizes, dtype=torch.float64)


def test_aligned_regions_of_whole_pixels_are_means_of_pixels():
    x = torch.arange(36.0).reshape(1, 1, 6, 6)
    found = vision.roi_align(x, torch.tensor([[0.0, 1, 2, 5, 6]]), 1.0, 2, 2, 2, True)
    expected = torch.nn.functional.avg_pool2d(x[:, :, 2:6, 1:5], 2)
    assert torch.allclose(found, expected)


def test_what_lies_outside_counts_as_zero():
    x = torch.ones(1, 1, 4, 4)
    regions = torch.tensor([[0.0, -20, -20, -10, -10], [0, -4, 0, 4, 4]])
    outside, half = vision.roi_align(x, regions, 1.0, 1, 2, 4, True)
    assert outside.abs().sum() == 0
    assert half[0, 0, 0] < 0.5 and half[0, 0, 1] == 1


def test_points_follow_the_size_of_regions_where_none_are_told():
    x = doubles(1, 2, 8, 8)
    region = torch.tensor([[0, 1.0, 1, 7, 4]], dtype=torch.float64)
    found = vision.roi_align(x, region, 1.0, 1, 2, 0, False)  # three points in each direction
    assert torch.allclose(found, vision.roi_align(x, region, 1.0, 1, 2, 3, False))


def test_regions_have_gradients():
    x = doubles(2, 4, 5, 6).requires_grad_()
    regions = torch.tensor([[0, 0.3, 0.2, 4.1, 3.7], [1, -1, 1, 5.5, 6]], dtype=torch.float64)

    def aligned(x):
        return vision.roi_align(x, regions, 0.8, 2, 2, 2, True)

    def by_channels(x):
        return vision.ps_roi_align(x, regions, 0.8, 2, 2, 2)[0]

    def pooled(x):
        return vision.roi_pool(x, regions, 0.8, 2, 2)[0]

    for function in (aligned, by_channels, pooled):
        assert torch.autograd.gradcheck(function, (x,))


def test_each_bin_has_channels_of_its_own():
    x, region = doubles(1, 8, 6, 6), torch.tensor([[0, 0.5, 1, 5, 5.5]], dtype=torch.float64)
    found, mapping = vision.ps_roi_align(x, region, 1.0, 2, 2, 2)
    whole = vision.roi_align(x, region, 1.0, 2, 2, 2, True)
    assert mapping.flatten().tolist() == list(range(8))
    assert found[0, 1, 1, 0] == whole[0, 6, 1, 0]


def test_pooled_regions_are_maxima():
    x = doubles(1, 3, 4, 6)
    found, places = vision.roi_pool(x, torch.tensor([[0, 0, 0, 5, 3]]).double(), 1.0, 2, 3)
    assert torch.equal(found, torch.nn.functional.max_pool2d(x, 2))
    assert torch.equal(x.flatten(2).gather(2, places.flatten(2).long()).reshape(found.shape), found)


def test_no_regions():
    x, none = doubles(1, 4, 3, 3), torch.zeros(0, 5, dtype=torch.float64)
    assert vision.roi_align(x, none, 1.0, 2, 2, 2, True).shape == (0, 4, 2, 2)
    assert vision.roi_pool(x, none, 1.0, 2, 2)[0].shape == (0, 4, 2, 2)


def test_regions_of_another_shape():
    with pytest.raises(RuntimeError, match=r"Tensor\[K, 5\]"):
        vision.roi_align(torch.ones(1, 1, 2, 2), torch.ones(1, 4), 1.0, 2, 2, 2, True)


def convolved(x, weight, offset, mask, groups=1, offset_groups=1):
    return vision.deform_conv2d(
        x, weight, offset, mask, torch.zeros(len(weight), dtype=x.dtype), 1, 2, 1, 0, 1, 1,
        groups, offset_groups, True,
    )  # fmt: skip


def test_without_offsets_it_is_a_convolution():
    x, weight = doubles(2, 4, 5, 7), doubles(6, 2, 3, 3)
    offset, mask = torch.zeros(2, 36, 5, 3, dtype=x.dtype), torch.ones(2, 18, 5, 3, dtype=x.dtype)
    found = convolved(x, weight, offset, mask, 2, 2)
    expected = torch.nn.functional.conv2d(x, weight, stride=(1, 2), padding=(1, 0), groups=2)
    assert torch.allclose(found, expected)


def test_whole_offsets_move_the_taps():
    x, weight = doubles(1, 1, 5, 7), doubles(1, 1, 1, 1)
    offset = torch.zeros(1, 2, 7, 4, dtype=x.dtype)
    offset[:, 0], offset[:, 1] = -1, 1  # up, and to the right
    found = convolved(x, weight, offset, torch.ones(1, 1, 7, 4, dtype=x.dtype))
    expected = np.zeros((7, 4))
    padded = np.pad(x.numpy()[0, 0], ((2, 0), (0, 2)))
    expected[:] = padded[:7, 1::2][:, :4] * weight.item()
    assert np.allclose(found.numpy()[0, 0], expected)


def test_every_argument_of_a_deformable_convolution_has_a_gradient():
    given = (doubles(1, 2, 4, 5), doubles(2, 2, 3, 3), 0.8 * doubles(1, 18, 4, 2) + 0.1,
             doubles(1, 9, 4, 2))  # fmt: skip
    assert torch.autograd.gradcheck(convolved, tuple(x.requires_grad_() for x in given))


def test_the_compiled_part_of_torchvision_is_not_needed(tmp_path):
    torch.ops.load_library(str(tmp_path / "torchvision" / "_C.so"))
    for other in ("torchvision/image.so", "elsewhere/_C.so"):
        with pytest.raises(OSError, match="Could not load this library"):
            torch.ops.load_library(str(tmp_path / other))


def test_what_has_no_kernel_says_so():
    with pytest.raises(NotImplementedError, match="ps_roi_pool"):
        vision.ps_roi_pool(torch.ones(1, 4, 2, 2), torch.ones(1, 5), 1.0, 2, 2)
