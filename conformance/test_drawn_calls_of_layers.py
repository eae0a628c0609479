"""What drawn calls of functions, layers and factories found: types of losses, pools, options."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="conformance compares with PyTorch itself")

import flambeau  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
TYPES = ("float16", "float32", "float64", "int64", "bool")
PAIRS = (
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "kl_div",
    "poisson_nll_loss", "hinge_embedding_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
)  # fmt: skip


def said(run: Any, library: Any) -> Any:
    """The type and the numbers of a result; the kind and first line of an error."""
    try:
        result = run(library, library.nn.functional)
    except Exception as error:
        return type(error).__name__, str(error).splitlines()[0]
    numbers = result.detach().double().flatten().tolist()
    return str(result.dtype).rpartition(".")[2], tuple(result.shape), *numbers


def agree(run: Any, about: Any = None) -> None:
    expected, actual = said(run, torch), said(run, flambeau)
    assert actual[:2] == expected[:2], about
    assert actual[2:] == pytest.approx(expected[2:], rel=2e-3, nan_ok=True), about


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", PAIRS)
def test_types_of_losses(name: str, reduction: str) -> None:
    for first, second in itertools.product(TYPES, repeat=2):

        def run(library: Any, functional: Any) -> Any:
            one = library.tensor([[1], [0]], dtype=getattr(library, first))  # noqa: B023
            other = library.tensor([[1], [1]], dtype=getattr(library, second))  # noqa: B023
            return getattr(functional, name)(one, other, reduction=reduction)

        agree(run, (first, second))


@pytest.mark.parametrize("which", ["weight", "pos_weight"])
def test_types_with_weights(which: str) -> None:
    """Weights of another type do not change the result's."""
    for types in itertools.product(TYPES[:3], repeat=3):

        def run(library: Any, functional: Any) -> Any:
            kinds = [getattr(library, name) for name in types]  # noqa: B023
            one, other = (library.tensor([[2.0], [0.5]], dtype=kind) for kind in kinds[:2])
            weight = library.tensor([[3.0], [0.5]], dtype=kinds[2])
            return functional.binary_cross_entropy_with_logits(one, other, **{which: weight})

        agree(run, types)


def test_gradients_have_the_types_of_their_tensors() -> None:
    for library in (torch, flambeau):
        x = library.tensor([1.0, 2.0], dtype=library.float64, requires_grad=True)
        y = library.tensor([0.5, 0.5], requires_grad=True)
        loss = library.nn.functional.binary_cross_entropy_with_logits(x, y)
        loss.backward()
        assert str(loss.dtype).endswith("float32")
        assert str(x.grad.dtype).endswith("float64") and str(y.grad.dtype).endswith("float32")
        assert x.grad.tolist() == pytest.approx([0.115529, 0.190399], abs=1e-5)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_weighted_losses(name: str, reduction: str) -> None:
    """The mean of Huber's is by the number of elements, that of others by the weights' sum."""

    def run(library: Any, functional: Any) -> Any:
        x, weight = library.tensor([1.0, 2.0, 4.0]), library.tensor([1.0, 2.0, 3.0])
        return getattr(functional, name)(x, x * 0, reduction=reduction, weight=weight)

    agree(run)


@pytest.mark.parametrize("margin", [0, 0.5, 3])
def test_rankings_of_whole_numbers(margin: float) -> None:
    for reduction in ("none", "mean", "sum"):

        def run(library: Any, functional: Any) -> Any:
            x, signs = library.tensor([1, 5, 2]), library.tensor([1, -1, 1])
            return functional.margin_ranking_loss(
                x, x.flip(0), signs, margin=margin, reduction=reduction  # noqa: B023
            )  # fmt: skip

        agree(run, reduction)


NORMS = [float("inf"), -float("inf"), 2.0, 1, 3.5, 0.5]
WINDOWS: dict[str, tuple[Any, ...]] = {
    "one": (2,), "steps": (2, 1), "rest": (2, 2, True), "list": ([2, 2],), "short": ([2],),
    "long": ([1, 2, 3],), "none": ([],),
}  # fmt: skip


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("window", WINDOWS)
def test_power_pools(norm: float, window: str) -> None:
    def run(library: Any, functional: Any) -> Any:
        x = library.arange(30.0).reshape(1, 5, 6) % 7 - (0 if norm in (3.5, 0.5) else 3)
        return functional.lp_pool2d(x, norm, *WINDOWS[window])

    agree(run)


@pytest.mark.parametrize("norm", NORMS[:2])
def test_gradients_of_infinite_norms(norm: float) -> None:
    def run(library: Any, functional: Any) -> Any:
        x = library.tensor([[[-2.0, -1.0, 1.0, 3.0, -5.0]]], requires_grad=True)
        functional.lp_pool1d(x, norm, 2, 1).sum().backward()
        return x.grad

    agree(run)


SHAPES = [(2, 3), (2, 3, 3), (1, 2, 3, 3), (1, 3, 3, 3), (2, 3, 1, 1), (2, 3, 1, 1, 1)]
FAULTS: list[dict[str, Any]] = [
    {}, {"stride": ()}, {"stride": 0}, {"stride": (1, 2, 3)}, {"groups": -1}, {"padding": -1},
    {"padding": (1, 2, 3)}, {"dilation": -1}, {"dilation": ()}, {"dilation": (1,)},
]  # fmt: skip


@pytest.mark.parametrize("name", ["conv1d", "conv2d", "conv3d", "conv_transpose2d"])
def test_what_is_wrong_first_with_a_convolution(name: str) -> None:
    """Pairs of faults: one is named, PyTorch's."""
    for shapes in itertools.product(SHAPES, repeat=2):
        for first, second in itertools.combinations(FAULTS, 2):
            options = {**first, **second}

            def run(library: Any, functional: Any) -> Any:
                input, weight = (library.zeros(shape) for shape in shapes)  # noqa: B023
                return getattr(functional, name)(input, weight, **options)  # noqa: B023

            agree(run, (shapes, options))


@pytest.mark.parametrize("dtype", ["float64", "float16", "bool", "uint8", "int64"])
def test_bernoulli_into_tensors_of_every_type(dtype: str) -> None:
    for shape in ((0,), (2, 3), (5,)):

        def run(library: Any, functional: Any) -> Any:
            stream = library.Generator().manual_seed(3)
            chances = library.rand(2, 3, generator=stream)
            out = library.zeros(shape, dtype=getattr(library, dtype))  # noqa: B023
            assert library.bernoulli(chances, generator=stream, out=out) is out
            return out

        agree(run, shape)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (3, 1), (2, 3, 1), (2,), (2, 2, 3, 3)])
def test_bernoulli_of_chances_that_broadcast(shape: tuple[int, ...]) -> None:
    for name in ("float32", "float64"):

        def run(library: Any, functional: Any) -> Any:
            stream = library.Generator().manual_seed(3)
            chances = library.rand(shape, generator=stream).to(getattr(library, name))  # noqa: B023
            return library.zeros(2, 3, 3).bernoulli_(chances, generator=stream)

        agree(run, name)


def test_one_chance_as_a_tensor_is_a_number() -> None:
    def run(library: Any, functional: Any) -> Any:
        stream = library.Generator().manual_seed(3)
        return library.ones(5, 7).bernoulli(library.tensor(0.5), generator=stream)

    agree(run)


@pytest.mark.parametrize("lengths", [[1, 2], [3, 0], [1.5, 2.0], [-1, 2], [4, 1], [1], [1, 2, 3]])
def test_sequences_without_their_padding(lengths: list[float]) -> None:
    def run(library: Any, functional: Any) -> Any:
        padded = library.arange(6).reshape(2, 3)
        parts = library.nn.utils.rnn.unpad_sequence(padded, library.tensor(lengths), True)
        sizes = library.tensor([len(part) for part in parts])
        assert all(part.stride() == (1,) for part in parts)
        return library.cat([*parts, sizes])

    agree(run)


MAKERS = {
    "ones": "t.ones(2, requires_grad=g)", "out": "t.ones(2, out=t.empty(2), requires_grad=g)",
    "eye": "t.eye(2, out=t.empty(2, 2), requires_grad=g)",
    "full": "t.full((2,), 1.0, requires_grad=g)",
    "arange": "t.arange(2.0, out=t.empty(2), requires_grad=g)",
    "randn": "t.randn((0,), requires_grad=g)", "tensor": "t.tensor([1.0], requires_grad=g)",
    "like": "t.zeros_like(t.ones(2), requires_grad=g)",
    "new": "t.ones(1).new_zeros(2, requires_grad=g)",
    "linspace": "t.linspace(0, 1, 2, out=t.empty(2), requires_grad=g)",
    "window": "t.hann_window(3, requires_grad=g)",
}  # fmt: skip


@pytest.mark.parametrize("given", [None, True, False, 0, 1, 0.0, "a", []])
@pytest.mark.parametrize("name", MAKERS)
def test_requires_grad_is_a_bool(name: str, given: Any) -> None:
    found = []
    for library in (torch, flambeau):
        try:
            found.append(eval(MAKERS[name], {"t": library, "g": given}).requires_grad)
        except TypeError:
            found.append("TypeError")
    assert found[0] == found[1]


TRANSPOSED = "t.zeros(0, 2, 3), t.zeros(2, 1, 2)"
EDGES = {
    "transposed, no images": f"F.conv_transpose1d({TRANSPOSED}, output_padding=1)",
    "transposed, no images, no size": f"F.conv_transpose1d({TRANSPOSED}, padding=2)",
    "transposed, no images, less than none": f"F.conv_transpose1d({TRANSPOSED}, padding=5)",
    "softmax of no bools": "F.softmax(t.zeros(2, 0, dtype=t.bool), 1)",
    "log_softmax of no integers": "F.log_softmax(t.zeros(0, 2, dtype=t.int64), 1)",
    "less than nothing": "F.pad(t.zeros(1, 3, 1, 2), (1, 0, -1, -1, -1, 2), 'reflect')",
    "histogram below bytes": "t.histc(t.zeros(3, dtype=t.uint8), min=-1)",
    "histogram of bools": "t.histc(t.zeros(3, dtype=t.bool))",
    "window of half a signal": "F.max_pool1d(t.ones(1, 2, 5).requires_grad_(), 1, padding=1)",
    "window beyond a signal": "F.max_pool1d(t.ones(1, 2, 2).requires_grad_(), 3)",
    "random windows, too wide": "F.fractional_max_pool3d(t.ones(3, 6, 4, 4), (1, 3, 3), 3)",
    "norms of integers": "F.embedding(t.tensor(0), t.ones(3, 1, dtype=t.int64), max_norm=0.5)",
    "mask and causal, rows": "attend(t.ones(1, 2, 3, 4), t.ones(3, 3))",
    "mask and causal, columns": "attend(t.ones(1, 2, 4, 3).mT, t.ones(3, 3))",
    "mask of three dims and causal": "attend(t.ones(1, 2, 3, 4), t.ones(2, 3, 3))",
}


@pytest.mark.parametrize("name", sorted(EDGES))
def test_edges(name: str) -> None:
    def run(library: Any, functional: Any) -> Any:
        def attend(x: Any, mask: Any) -> Any:
            return functional.scaled_dot_product_attention(x, x, x, mask, is_causal=True)

        names = {"t": library, "F": functional, "attend": attend}
        return eval(EDGES[name], names)  # noqa: S307

    agree(run)


STRIDES = {
    "attention, heads side by side": "attend(t.ones(2, 6, 4, 5).permute(0, 2, 1, 3))",
    "attention, columns": "attend(t.ones(1, 2, 4, 3).mT)",
    "attention, kernel": "attend(t.ones(2, 64, 4, 16).transpose(1, 2))",
    "attention, whole": "attend(t.ones(2, 4, 64, 16))",
    "hfft of an expanded signal": "t.fft.hfft(signal)",
    "hfftn of an expanded signal": "t.fft.hfftn(signal, dim=1)",
    **{f"one channel, {mode}": f"F.pad(pixels, (1, 1, 1, 1), '{mode}')"
       for mode in ("constant", "reflect", "replicate", "circular")},
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(STRIDES))
def test_strides(name: str) -> None:
    def strides(library: Any) -> Any:
        pixels = library.ones(1, 1, 7, 8).to(memory_format=library.channels_last)
        signal = library.ones(1, 2, 3, dtype=library.complex64).expand(3, 2, 3)

        def attend(x: Any) -> Any:
            return library.nn.functional.scaled_dot_product_attention(x, x, x)

        names = {"t": library, "F": library.nn.functional, "pixels": pixels, "attend": attend,
                 "signal": signal}  # fmt: skip
        return eval(STRIDES[name], names).stride()  # noqa: S307

    assert strides(flambeau) == strides(torch)
