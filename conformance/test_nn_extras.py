"""`torch.nn.grad`, `torch.nn.attention` and `F.grouped_mm` against PyTorch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
import torch.nn.attention.bias

import flambeau

LIBRARIES = (torch, flambeau)
GRADIENTS = [
    (spatial, stride, padding, dilation, groups)
    for spatial in (1, 2, 3)
    for stride, padding, dilation, groups in (
        (1, 0, 1, 1),
        (2, 1, 1, 1),
        (1, 2, 2, 2),
        (2, 1, 1, 4),
    )
]


@pytest.mark.parametrize(("spatial", "stride", "padding", "dilation", "groups"), GRADIENTS)
def test_gradients_of_convolutions(spatial, stride, padding, dilation, groups):
    sizes = tuple(range(7, 7 + spatial))
    options = {"stride": stride, "padding": (padding,) * spatial, "dilation": dilation}
    found = []
    for library in LIBRARIES:
        library.manual_seed(0)
        input, weight = library.randn(2, 4, *sizes), library.randn(8, 4 // groups, *(3,) * spatial)
        convolution = getattr(library.nn.functional, f"conv{spatial}d")
        grad_output = library.randn(convolution(input, weight, groups=groups, **options).shape)
        grad_output.requires_grad_()
        of_input = getattr(library.nn.grad, f"conv{spatial}d_input")
        of_weight = getattr(library.nn.grad, f"conv{spatial}d_weight")
        first = of_input(input.shape, weight, grad_output, groups=groups, **options)
        second = of_weight(input, weight.shape, grad_output, groups=groups, **options)
        (first.square().sum() + second.square().sum()).backward()
        found.append([part.detach().numpy() for part in (first, second, grad_output.grad)])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-3)


# ---- which implementation of attention is permitted


def outcome(library, function):
    try:
        return function(library)
    except (RuntimeError, AssertionError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("shape", [(2, 2, 4, 8), (2, 4, 8)])
@pytest.mark.parametrize(
    "names", ["MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "OVERRIDEABLE",
              "ERROR", "", "EFFICIENT_ATTENTION MATH", "FLASH_ATTENTION CUDNN_ATTENTION"]
)  # fmt: skip
def test_permitted_kernels(names, shape):
    def attend(library):
        backends = [getattr(library.nn.attention.SDPBackend, name) for name in names.split()]
        chosen = backends[0] if len(backends) == 1 else backends
        library.manual_seed(0)
        x = library.randn(shape)
        with library.nn.attention.sdpa_kernel(chosen):
            flags = library.backends.cuda
            enabled = (flags.flash_sdp_enabled(), flags.math_sdp_enabled())
            enabled += (flags.mem_efficient_sdp_enabled(), flags.cudnn_sdp_enabled())
            result = library.nn.functional.scaled_dot_product_attention(x, x, x)
        assert flags.math_sdp_enabled()
        return enabled, result.sum().item()

    theirs, ours = (outcome(library, attend) for library in LIBRARIES)
    if isinstance(theirs, str):
        assert ours == theirs
    else:
        assert ours[0] == theirs[0]
        assert ours[1] == pytest.approx(theirs[1], abs=1e-5)


@pytest.mark.parametrize("wrong", ["'MATH'", "(1, 2)", "None"])
def test_wrong_kernels(wrong):
    theirs, ours = (
        outcome(library, lambda library: library.nn.attention.sdpa_kernel(eval(wrong)).__enter__())
        for library in LIBRARIES
    )
    assert ours == theirs


def test_the_kinds_of_kernels():
    theirs, ours = (library.nn.attention.SDPBackend for library in LIBRARIES)
    for name, member in theirs.__members__.items():
        assert int(getattr(ours, name)) == int(member)
        assert repr(getattr(ours, name)) == repr(member)
        assert str(getattr(ours, name)) == str(member)


def test_flags_and_the_older_context():
    for library in LIBRARIES:
        flags = library.backends.cuda
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with flags.sdp_kernel(enable_math=False, enable_cudnn=False):
                assert (flags.math_sdp_enabled(), flags.cudnn_sdp_enabled()) == (False, False)
                assert flags.flash_sdp_enabled()
        flags.enable_math_sdp(False)
        assert not flags.math_sdp_enabled()
        flags.enable_math_sdp(True)
        assert flags.math_sdp_enabled()


@pytest.mark.parametrize("lengths", [(4, 6), (4, 4), (3, 8)])
@pytest.mark.parametrize("kind", ["causal_upper_left", "causal_lower_right"])
def test_causal_biases(kind, lengths):
    found = []
    for library in LIBRARIES:
        library.manual_seed(0)
        query, key = library.randn(2, 2, lengths[0], 8), library.randn(2, 2, lengths[1], 8)
        mask = getattr(library.nn.attention.bias, kind)(*lengths)
        attended = library.nn.functional.scaled_dot_product_attention(query, key, key, mask)
        found.append((repr(mask), attended.numpy()))
    assert found[1][0] == found[0][0]
    np.testing.assert_allclose(found[1][1], found[0][1], atol=1e-5)


# ---- products in groups

SHAPES = [((16, 16), (3, 16, 24)), ((8, 16), (16, 24)), ((3, 8, 16), (16, 24)),
          ((3, 8, 16), (3, 16, 24))]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_grouped_products(shapes, dtype):
    left_shape, right_shape = shapes
    split = right_shape[-1] if len(left_shape) == 3 else left_shape[0]
    split = left_shape[1] if len(left_shape) == len(right_shape) == 2 else split
    found = []
    for library in LIBRARIES:
        library.manual_seed(0)
        element = getattr(library, dtype)
        left, right = (library.randn(shape).to(element) for shape in shapes)
        ends = library.tensor([4, 4, split], dtype=library.int32)
        offs = None if len(left_shape) == len(right_shape) == 3 else ends
        result = library.nn.functional.grouped_mm(left, right, offs=offs)
        found.append((str(result.dtype), result.stride(), result.float().numpy()))
    assert found[1][:2] == found[0][:2]
    tolerance = 1e-4 if dtype == "float32" else 5e-2
    np.testing.assert_allclose(found[1][2], found[0][2], rtol=tolerance, atol=tolerance)


WRONG = """
F.grouped_mm(a, b)
F.grouped_mm(b, b.mT.contiguous(), offs=offs)
F.grouped_mm(a, b, offs=offs.long())
F.grouped_mm(a[:, :8], b, offs=offs)
F.grouped_mm(a.bfloat16(), b, offs=offs)
F.grouped_mm(a, b, offs=offs, out_dtype=torch.bfloat16)
F.grouped_mm(a, b, offs=offs, bias=a)
F.grouped_mm(a[0], b, offs=offs)
F.grouped_mm(a, b, offs=offs[:2])
F.grouped_mm(b[:2], b.mT.contiguous())
F.grouped_mm(a.double(), b, offs=offs)
""".strip().splitlines()


@pytest.mark.parametrize("call", WRONG)
def test_wrong_grouped_products(call):
    def run(library):
        scope = {"torch": library, "F": library.nn.functional}
        scope |= {"a": library.ones(16, 16), "b": library.ones(3, 16, 24)}
        scope["offs"] = library.tensor([4, 8, 16], dtype=library.int32)
        return eval(call, scope)

    theirs, ours = (outcome(library, run) for library in LIBRARIES)
    assert isinstance(theirs, str)
    assert ours == theirs


def test_grouped_products_have_gradients():
    flambeau.manual_seed(0)
    left = flambeau.randn(6, 4, requires_grad=True)
    right = flambeau.randn(2, 4, 5, requires_grad=True)
    ends = flambeau.tensor([2, 6], dtype=flambeau.int32)
    flambeau.nn.functional.grouped_mm(left, right, offs=ends).square().sum().backward()
    theirs = [torch.tensor(part.detach().numpy(), requires_grad=True) for part in (left, right)]
    groups = [theirs[0][:2] @ theirs[1][0], theirs[0][2:] @ theirs[1][1]]
    torch.cat(groups).square().sum().backward()
    for ours, expected in zip((left, right), theirs, strict=True):
        np.testing.assert_allclose(ours.grad.numpy(), expected.grad.numpy(), rtol=1e-4, atol=1e-5)
