"""What programs do now and then: ways of calling, errors for what cannot be, copies, queries."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest

from conformance.side_by_side import attempt, compare


def losses_without_a_target(t: Any) -> Any:
    found = []
    for reduction in ("mean", "sum", "none"):
        scores = t.arange(6.0).reshape(2, 3).requires_grad_()
        loss = t.nn.functional.nll_loss(scores, t.tensor([-100, -100]), reduction=reduction)
        loss.sum().backward()
        found += [loss, scores.grad]
    return found


def rows_of_which_all_are_padding(t: Any) -> Any:
    scores = t.arange(12.0).reshape(2, 3, 2).requires_grad_()
    target = t.tensor([[0, 7], [7, 1]])
    t.nn.functional.nll_loss(scores, target, ignore_index=7).backward()
    return scores.grad


def random_numbers_into_strides(t: Any) -> Any:
    t.manual_seed(3)
    chances = t.full((4, 3), 0.5)
    found = [t.bernoulli(chances.t()), t.bernoulli(chances.t(), 0.5)]
    return [(x, x.stride()) for x in found]


def division_of_a_number(t: Any) -> Any:
    x = t.tensor([3, -3])
    return [t.div(4, x, rounding_mode=mode) for mode in ("floor", "trunc", None)], attempt(
        lambda: t.div(4.5, x, rounding_mode="floor")
    )


def shapes_and_lists(t: Any) -> Any:
    one = t.Size([1])
    return one + (2,), (2,) + one, [attempt(lambda o=o: one + o) for o in ([2], 2, "a", None)]


def devices_that_cannot_be(t: Any) -> Any:
    places: list[Any] = [(-1,), ("cuda", -1), ("cpu", -1), ("cpu", 1), ("cuda:-1",), (0,)]
    return [attempt(lambda p=p: str(t.device(*p))) for p in places]


def lengths_below_zero(t: Any) -> Any:
    def loss(inputs: list[int], targets: list[int]) -> Any:
        scores = t.zeros(3, 1, 2).log_softmax(2)
        return t.nn.functional.ctc_loss(scores, t.tensor([[1]]), inputs, targets)

    return [attempt(lambda p=p: loss(*p)) for p in (([3], [-1]), ([-1], [1]), ([-1], [-1]))]


def copies_that_share(t: Any) -> Any:
    x = t.ones(3)
    y, storage = copy.deepcopy((x, x.untyped_storage()))
    z, typed = copy.deepcopy([x, x.view(-1).untyped_storage()])
    storage[3] = 0
    return y, y.untyped_storage().data_ptr() == storage.data_ptr(), x, z, len(typed)


def generators_in_files(t: Any) -> Any:
    one = t.Generator()
    one.manual_seed(4)
    t.rand(3, generator=one)
    other = pickle.loads(pickle.dumps(one))  # noqa: S301
    return t.rand(5, generator=other), t.randn(3, generator=other), other.initial_seed()


def sizes_of_storages(t: Any) -> Any:
    sizes = [sys.getsizeof(t.ones(n).untyped_storage()) for n in (0, 1, 100)]
    return [size - sizes[0] for size in sizes]


def names_of_modules(t: Any) -> Any:
    return t.backends.cpu.get_cpu_capability(), "rfft" in t.fft.__all__


def python_types_for_dtypes(t: Any) -> Any:
    def told(kind: type) -> list[Any]:
        x = t.ones(2, 3)
        calls = (
            lambda: t.zeros(2, dtype=kind), lambda: t.tensor([1], dtype=kind),
            lambda: x.sum(dtype=kind), lambda: t.sum(x, 0, dtype=kind), lambda: x.to(kind),
            lambda: x.to(dtype=kind), lambda: x.type(kind), lambda: x.cumsum(0, dtype=kind),
            lambda: t.as_tensor([1], dtype=kind), lambda: x.new_zeros(2, dtype=kind),
            lambda: t.empty_like(x, dtype=kind), lambda: t.full((1,), 1, dtype=kind),
            lambda: t.nn.Linear(1, 1, dtype=kind).weight, lambda: x.double().view(kind),
            lambda: t.eye(2, dtype=kind), lambda: t.randint(2, (2,), dtype=kind),
            lambda: t.frombuffer(bytearray(16), dtype=kind), lambda: x.prod(dtype=kind),
            lambda: t.linalg.vector_norm(x, dtype=kind),
        )  # fmt: skip
        return [attempt(lambda call=call: str(call().dtype)) for call in calls]

    return [told(kind) for kind in (float, int, bool, complex)]


def losses_without_classes(t: Any) -> Any:
    found = []
    for reduction in ("mean", "sum", "none"):
        for name in ("cross_entropy", "nll_loss"):
            loss = getattr(t.nn.functional, name)
            scores = t.zeros(2, 0).requires_grad_()
            ignored = loss(scores, t.full((2,), -100), reduction=reduction)
            ignored.sum().backward()
            found += [ignored, scores.grad, attempt(loss, scores, t.zeros(2).long())]
    return found


def softmax_lies_in_rows(t: Any) -> Any:
    x = t.randn(2, 3, 4, 4)
    orders = [x.permute(2, 0, 3, 1), x.to(memory_format=t.channels_last), x[:, ::2], x[0, 0].t()]
    names = ("softmax", "log_softmax")
    return [
        (result := getattr(each, name)(dim), result.stride())
        for each in orders for name in names for dim in range(each.dim())
    ]  # fmt: skip


def samples_of_classes_that_lie_in_columns(t: Any) -> Any:
    logits = t.arange(24.0).reshape(4, 6).sin().t()
    t.manual_seed(1)
    return t.distributions.Categorical(logits=logits).sample((3,))


def layers_without_channels(t: Any) -> Any:
    found = []
    for rank in (1, 2, 3):
        x = t.ones(2, 0, *(5,) * rank).requires_grad_()
        weight = t.ones(3, 0, *(3,) * rank).requires_grad_()
        bias = t.ones(3).requires_grad_()
        result = getattr(t.nn.functional, f"conv{rank}d")(x, weight, bias)
        result.sum().backward()
        found += [result, x.grad, weight.grad, bias.grad]
    return found


def learning_views_of_inference_tensors(t: Any) -> Any:
    with t.inference_mode():
        made = t.ones(3)
    views = [made, made[1:], made.view(3, 1), made[0], made[1:].unsqueeze(0)]
    return [(v.is_inference(), v.requires_grad, attempt(v.requires_grad_)) for v in views]


def words_of_functional_derivatives(t: Any) -> Any:
    functions = (lambda x: 1, lambda x: (x.sum(), 1), lambda x: [x.sum()], lambda x: x * 2,
                 lambda x: (2 * x).sum(), lambda x: (x**2).sum(),
                 lambda x: x.detach().sum())  # fmt: skip
    found = []
    for function in functions:
        for name in ("jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"):
            derive = getattr(t.autograd.functional, name)
            found += [attempt(derive, function, t.ones(2), strict=strict) for strict in (0, 1)]
    return found


def generators_as_they_are(t: Any) -> Any:
    one = t.Generator().manual_seed(5)
    t.rand(3, generator=one)
    other = one.clone_state()
    return t.rand(2, generator=other), t.rand(2, generator=one), other.initial_seed()


def sizes_one_by_one(t: Any) -> Any:
    x = t.zeros(2, 3)
    functions = (t.permute, t.flip, t.tile, t.reshape, t.broadcast_to)
    methods = (x.permute, x.flip, x.tile, x.reshape, x.broadcast_to)
    found = [attempt(call, x, 0, 1) for call in functions]
    found += [attempt(call, x[0], 0) for call in functions]
    found += [attempt(call, x, (1, 0)) for call in functions[:3]]
    sizes = ((1, 0), (0, 1), (2, 2), (6, 1), (2, 3))
    found += [attempt(call, *given) for call, given in zip(methods, sizes, strict=True)]
    return found, attempt(x.sum_to_size), attempt(t.linalg.multi_dot, t.ones(2, 2, 2))


def bins_of_a_histogram(t: Any) -> Any:
    found = [t.histc(t.zeros(5)), t.histc(t.full((3,), 2.0), 7)]
    for dtype in (t.float32, t.float64, t.float16, t.bfloat16):
        x = t.linspace(-3, 7, 41, dtype=t.float64).to(dtype)
        found += [t.histc(x, bins, low, high).double() for bins in (3, 10, 41, 97)
                  for low, high in ((0, 0), (-2, 5))]  # fmt: skip
    return found


def operands_that_are_too_small_for_the_result(t: Any) -> Any:
    def written(name: str) -> Any:
        x, y = t.ones(3), t.ones(2, 3)
        return getattr(t, name)(x, y, out=x)

    return [attempt(written, name) for name in ("add", "pow", "maximum", "eq", "clamp_max")]


def refusals_in_order(t: Any) -> Any:
    x, square = t.ones(3), t.ones(2, 2, 3, 4)
    calls: list[Callable[[], Any]] = [
        lambda: t.broadcast_shapes(2, 3),
        lambda: x.nonzero_static(size=-1),
        lambda: t.segment_reduce(x, "linear"),
        lambda: t.take_along_dim(x, x),
        lambda: t.linalg.svd(x, driver="a"),
        lambda: t.max_pool1d(square, (1, 2)),
        lambda: t.max_pool1d_with_indices(x[None], (1,), padding=(1, 2)),
        lambda: t.max_pool1d(x[None], (1,), padding=(1, 2)),
        lambda: t.range(float("nan"), 2),
        lambda: x.clone().cumsum_(0, dtype=int),
        lambda: t.kaiser_window(1, dtype=t.complex64),
        lambda: t.nn.GRUCell(1, True).weight_hh.shape,
        lambda: t.jit.fork(3),
        lambda: t.nn.utils.convert_conv3d_weight_memory_format(t.nn.ReLU(), t.preserve_format),
        lambda: t.addr(x.bfloat16(), x, x).stride(),
    ]
    return [attempt(call) for call in calls]


SCENARIOS: list[Callable[[Any], Any]] = [
    losses_without_a_target, rows_of_which_all_are_padding, random_numbers_into_strides,
    division_of_a_number, shapes_and_lists, devices_that_cannot_be, lengths_below_zero,
    copies_that_share, generators_in_files, sizes_of_storages, names_of_modules,
    python_types_for_dtypes, losses_without_classes, softmax_lies_in_rows,
    samples_of_classes_that_lie_in_columns, layers_without_channels,
    learning_views_of_inference_tensors, words_of_functional_derivatives, generators_as_they_are,
    sizes_one_by_one, bins_of_a_histogram, operands_that_are_too_small_for_the_result,
    refusals_in_order,
]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.filterwarnings("ignore")
def test_both_do_the_same(scenario: Callable[[Any], Any]) -> None:
    compare(scenario)


@pytest.mark.parametrize("name", ["mul", "matmul", "sin"])
def test_where_a_resized_out_is_warned_of(name: str) -> None:
    import flambeau

    x = flambeau.ones(3)
    operands = (x[:2],) if name == "sin" else (x, x)
    function = flambeau.mv if name == "matmul" else getattr(flambeau, name)
    if name == "matmul":
        operands = (flambeau.ones(2, 3), x)
    with pytest.warns(UserWarning, match="was resized") as caught:
        function(*operands, out=flambeau.ones(1))
    assert caught[0].filename == __file__


def test_memory_formats_are_given_by_name() -> None:
    import flambeau

    for method in (flambeau.ones(3).contiguous, flambeau.ones(3).is_contiguous):
        with pytest.raises(TypeError, match="positional argument"):
            method(flambeau.contiguous_format)


def test_negative_offsets_of_bags_are_refused() -> None:
    """PyTorch reads what is not its own there."""
    import flambeau

    with pytest.raises(IndexError, match="index out of range in self"):
        flambeau.nn.functional.embedding_bag(
            flambeau.tensor([0, 1]), flambeau.ones(3, 2), flambeau.tensor([0, -1, 2])
        )
