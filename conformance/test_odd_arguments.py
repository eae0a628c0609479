"""Numbers, types and words where arguments are odd: empty, endless, shared, of another kind."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.side_by_side import Raised, attempt, compare

INF, NAN = float("inf"), float("nan")


def told(calls: list[Callable[[], Any]]) -> list[Any]:
    """Results, or the class and the first line of what was raised."""
    found = []
    for call in calls:
        answer = attempt(call)
        if isinstance(answer, Raised):
            line = answer.text.split("\n")[0].replace("flambeau._tensor.tensor", "torch")
            answer = (answer.kind, line)
        found.append(answer)
    return found


def backwards(t: Any) -> Any:
    return [reversed(t.arange(24).view(n, -1)) for n in (1, 2, 3, 24)], reversed(t.tensor(4))


def sparse_differences_of_types(t: Any) -> Any:
    """Unsigned numbers have no negative: they are converted first."""
    found = []
    names = ("uint8", "int8", "int16", "int64", "float32", "float64")
    values = t.tensor([[1, 2], [3, 4]]), t.tensor([[2, 0], [0, 4]])
    for one in names:
        for other in names:
            x, y = (
                v.to(getattr(t, name)).to_sparse()
                for v, name in zip(values, (one, other), strict=True)
            )
            calls = [
                lambda x=x, y=y: (x - y).to_dense(), lambda x=x, y=y: (x + y).to_dense(),
                lambda x=x, y=y: t.sub(x, y, alpha=2).to_dense(),
                lambda x=x, y=y: t.add(x, y, alpha=-1).to_dense(),
                lambda x=x, y=y: x.clone().sub_(y).to_dense(),
            ]  # fmt: skip
            found += told(calls)
    x = t.tensor([1.0, 0]).to_sparse()
    return found, told([lambda: x - 1, lambda: x.clone().sub_(1), lambda: t.sub(x, 1, alpha=2)])


def bounds_of_random_slopes(t: Any) -> Any:
    bounds = [(NAN, 0.3), (0.1, INF), (-INF, 0.3), (0.5, NAN), (0.5, 0.1), (0.2, 0.2)]
    return told([
        lambda low=low, high=high, training=training: t.rrelu(t.ones(3), low, high, training)
        for low, high in bounds for training in (True, False)
    ])  # fmt: skip


def shifts_by_places(t: Any) -> Any:
    """Whole exponents leave the type as it is, and halves do not overflow on the way."""

    def shown(x: Any, n: Any) -> Any:
        found = t.ldexp(x, n)
        return str(found.dtype), found.to(t.complex128)

    calls = []
    for name in ("float16", "bfloat16", "float32", "float64", "int32", "complex64"):
        for places in ("int64", "int8", "uint8", "bool", "float32"):
            for one, other in (((2,), (2,)), ((2,), ()), ((), ())):
                x = t.full(one, 3, dtype=getattr(t, name))
                n = t.ones(other, dtype=getattr(t, places))
                calls.append(lambda x=x, n=n: shown(x, n))
    small = t.tensor([2.0**-14], dtype=t.float16)
    calls += [lambda: t.ldexp(small, t.tensor([20])), lambda: small.clone().ldexp_(t.tensor([3]))]
    x = t.ones(2, dtype=t.float16, requires_grad=True)
    calls.append(lambda: t.autograd.grad(t.ldexp(x, t.tensor([2, 3])).sum(), x))
    return told(calls)


def new_tensors_of_tensors(t: Any) -> Any:
    """They have the type of the tensor that makes them, also where others are copied."""
    found = []
    for name in ("int8", "float32", "complex64"):
        for other in ("uint8", "float64", "float16"):
            data = t.tensor([1.5, 2]).to(getattr(t, other))
            made = t.ones(2, dtype=getattr(t, name)).new_tensor(data)
            found.append((str(made.dtype), made.clone()))
    return found, t.ones(2).new_tensor(t.tensor([1.5]), dtype=t.float64)


def tensors_of_tensors(t: Any) -> Any:
    one, two = t.tensor([1]), t.tensor(2.0)
    itself: list[Any] = [0]
    itself.append(itself)

    class NoItems:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            raise TypeError

    return told([
        lambda: t.tensor([one, one]), lambda: t.tensor([[one, two]]), lambda: t.tensor([two, one]),
        lambda: t.tensor([(one, two), (two, one)]), lambda: t.tensor([t.ones(2), t.ones(2)]),
        lambda: t.tensor([0, "text"]), lambda: t.tensor(itself), lambda: t.tensor([[1, 2], itself]),
        lambda: t.tensor(NoItems()), lambda: t.tensor([[t.ones(1, 1)]]),
    ])  # fmt: skip


def endless_parameters(t: Any) -> Any:
    def drawn(name: str, dtype: str, *arguments: float) -> Any:
        t.manual_seed(1)
        return getattr(t.zeros(3, dtype=getattr(t, dtype)), name)(*arguments)

    return told([
        lambda n=name, d=dtype, m=middle: drawn(n, d, m, 0.5)
        for name in ("cauchy_", "normal_", "log_normal_")
        for dtype in ("float32", "float64", "float16")
        for middle in (INF, -INF, NAN)
    ])  # fmt: skip


def memory_that_overlaps(t: Any) -> Any:
    index, mask = t.tensor([2, 1, 0]), t.tensor([True, False, True])
    return told([
        lambda: index.index_fill_(0, index, 0), lambda: mask[1:].masked_fill_(mask[:-1], False),
        lambda: t.tensor([True, False]).masked_fill_(t.tensor([True, False]), False),
        lambda: mask.masked_fill_(mask, False), lambda: t.ones(3).index_fill_(0, index, 2),
    ])  # fmt: skip


def empty_vectors_joined(t: Any) -> Any:
    nothing, some = t.zeros(0), t.ones(2, 3, 2)
    return told([
        lambda: t.cat([nothing, nothing], 1), lambda: t.cat([nothing], 5),
        lambda: t.cat([some, nothing], 1), lambda: t.cat([nothing, some], 2),
        lambda: t.cat([nothing, nothing]), lambda: t.cat([nothing, some], 3),
    ])  # fmt: skip


def sizes_beyond_memory(t: Any) -> Any:
    return told([
        lambda: t.empty([2, 4, 2**29, 2**29], dtype=t.float64),
        lambda: t.zeros([8, 8, 2**29, 2**29], dtype=t.float64), lambda: t.ones([2**62, 8]),
        lambda: t.empty_strided([8, 8], [2**61, 1], dtype=t.float64),
        lambda: t.empty([0, 4, 2**61]), lambda: t.empty(()).resize_([0, 4, 2**61]),
        lambda: t.empty((), dtype=t.float64).resize_([2, 4, 2**29, 2**29]),
        lambda: t.set_num_threads(-1), lambda: t.zeros(2, 3, 4, 5).resize_as_(t.ones(2)).stride(),
        lambda: t.zeros(120).resize_as_(
            t.ones(2, 3, 4, 5).contiguous(memory_format=t.channels_last),
            memory_format=t.preserve_format).stride(),
    ])  # fmt: skip


def refused_words(t: Any) -> Any:
    x, number = t.arange(4), t.tensor(1.5j)

    def delete() -> None:
        del x[0]

    def write(values: list[float]) -> None:
        x[x > -1] = t.tensor(values)

    shapes = (t.tensor([1, 2]), (1, 2, 2.0), (2, -3), 2.0, "a", [3, 2], 4)
    return told([
        delete, lambda: write([]), lambda: write([1, 2, 3]), lambda: float(number),
        lambda: int(number), lambda: float(t.tensor(1.5 + 0j)), lambda: complex(number),
        lambda: t.nonzero(x, as_tuple=True, out=t.zeros(1, 1, dtype=t.int64)),
        *[lambda shape=shape: t.unravel_index(t.tensor([1]), shape) for shape in shapes],
        lambda: t.asarray(np.float64(1), copy=False), lambda: t.asarray(np.float64(1)),
        lambda: t.asarray(t.ones(2), dtype=t.float64, copy=False),
        lambda: t.linspace(0, 1j, 5, dtype=t.float32), lambda: t.linspace(0, 1j, 3),
        lambda: t.logspace(0j, 1, 5, dtype=t.float32), lambda: x.unflatten("A", (2, 2)),
        lambda: t.tensor(1.0).cummax(3), lambda: t.tensor(1.0).cummin(-3),
        lambda: t.from_dlpack(3), lambda: type("A", (t.FloatTensor,), {}),
        lambda: t.ones(3).new(size=(2, 2)).shape,
        lambda: t.ones(1).set_(t.ones(1).untyped_storage(), 99, (1,), (1,)),
        lambda: t.Size([1]) + [2], lambda: t.asarray(t.to_dlpack(t.ones(2))),
    ])  # fmt: skip


def capsules_share_memory(t: Any) -> Any:
    found = []
    for name in ("float32", "float64", "int64", "int32", "uint8", "complex64"):
        x = t.ones(2, 3, dtype=getattr(t, name)).t()
        for read in (t.from_dlpack, t.utils.dlpack.from_dlpack, t.asarray):
            y = read(t.utils.dlpack.to_dlpack(x))
            y[0, 1] = 5
            found += [y.data_ptr() == x.data_ptr(), y.stride()]
        capsule = t.to_dlpack(x)
        t.from_dlpack(capsule)
        found += [x, told([lambda c=capsule: t.from_dlpack(c)])]
    return found


def masks_of_bytes(t: Any) -> Any:
    x, mask = t.arange(10.0).reshape(5, 2), t.tensor([1, 0, 1, 1, 0], dtype=t.uint8)
    calls = (
        lambda: x[mask], lambda: x[mask, 0], lambda: x[mask.bool()],
        lambda: t.ones(5, 5)[mask, mask],
        lambda: x.index_put((mask,), t.tensor(1.0), accumulate=True),
        lambda: x.index_put((mask,), t.tensor([1.0, 2.0])), lambda: x[t.tensor(1, dtype=t.uint8)],
    )  # fmt: skip
    plain = [with_warnings(call) for call in calls]
    watched = t.empty(1, device="meta")  # while one lives, calls take a longer way
    return plain, [with_warnings(call) for call in calls], watched.shape


def with_warnings(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        result = call()
    return result, [(str(w.message).split(" (Trig")[0], w.filename == __file__) for w in heard]


def copies_of_sparse_leaves(t: Any) -> Any:
    found = []
    for values in ([0.0] * 4, [0.0, 1.0, 2.0, 0.0]):
        x = t.tensor(values).to_sparse()
        x.grad = t.ones(4).to_sparse()
        one, (two, grad) = copy.deepcopy(x), copy.deepcopy([x, x.grad])
        found += [one.grad.to_dense(), two.grad is grad, one.to_dense(), grad is x.grad]
    return found


def sizes_beside_other_classes(t: Any) -> Any:
    class Added:
        def __add__(self, other: Any) -> str:
            return "left"

        def __radd__(self, other: Any) -> str:
            return "right"

    return t.Size([1]) + Added(), Added() + t.Size([1])


def tensors_that_learn_as_numbers(t: Any) -> Any:
    """Their gradient would be lost: a number is a tensor without dims that does not learn."""
    found = []
    x, matrix = t.ones(2), t.ones(2, 2)
    for number in (t.tensor(2.0), t.tensor(1.5, requires_grad=True), t.ones(2), t.ones(1)):
        calls = [
            lambda v=number: x.addcmul(x, x, value=v), lambda v=number: t.addcdiv(x, x, x, value=v),
            lambda v=number: t.add(x, x, alpha=v), lambda v=number: t.sub(x, x, alpha=v),
            lambda v=number: t.isclose(x, x, v, 0.0), lambda v=number: t.isclose(x, x, 0.0, v),
            lambda v=number: t.addr(matrix, x, x, alpha=v),
            lambda v=number: t.nn.functional.leaky_relu(x, v),
            lambda v=number: t.nn.functional.softplus(x, v), lambda v=number: t.nan_to_num(x, v),
            lambda v=number: t.dist(x, x, v),
            lambda v=number: t.nn.functional.elu(x, v), lambda v=number: t.hardshrink(x, v),
            lambda v=number: t.index_add(x, 0, t.tensor([0]), x[:1], alpha=v),
        ]  # fmt: skip
        answers = told(calls)
        found += [answer[0] if isinstance(answer, tuple) else answer for answer in answers]
    return found


def dims_that_are_no_ints(t: Any) -> Any:
    x = t.arange(12.0).reshape(4, 3)
    dims = [(0, 1.0), (None,), [0, 1.5], 1.0, ("a",), (0, True), (0, None), [0, "b"]]
    calls = [
        lambda f=f, dim=dim: f(x, dim)
        for f in (t.sum, t.mean, t.amax, t.logsumexp, t.flip)
        for dim in dims
    ]
    words = [
        lambda f=f, dim=dim: f(x, dim)
        for f in (t.sum, t.amax, t.flip)
        for dim in ((0, 1.0), [0, 1.5])
    ]
    words.append(lambda: t.linalg.vector_norm(x, dim=(0, 1.0)))
    kinds = [answer[0] if isinstance(answer, tuple) else answer for answer in told(calls)]
    return kinds, told(words)


def pivots_that_name_no_row(t: Any) -> Any:
    a, b = t.tensor([[4.0, 1.0], [2.0, 3.0]]), t.ones(2, 2)
    factors, pivots = t.linalg.lu_factor(a)
    calls = []
    for value in (0, -1, 3, 10**6, 2):
        wrong = pivots.clone()
        wrong[0] = value
        calls += [
            lambda p=wrong: t.linalg.lu_solve(factors, p, b),
            lambda p=wrong: t.linalg.lu_solve(factors, p, b, left=False),
            lambda p=wrong: t.linalg.lu_solve(factors, p, b, adjoint=True),
            lambda p=wrong: t.lu_unpack(factors, p),
        ]
    return told(calls)


def put_from_its_own_memory(t: Any) -> Any:
    x, index = t.arange(6.0), t.tensor([2, 1, 0])
    return told([
        lambda: x.put_(index, x[:3]), lambda: x.put_(index[0], x[0]),
        lambda: index.put_(index, index), lambda: index.put_(index.clone(), index),
        lambda: x[:3].put_(index, x[3:]), lambda: t.put(x, index, x[:3]),
        lambda: t.ones(1).expand(6).put_(index, t.ones(3)),
    ])  # fmt: skip


def nothing_to_contract(t: Any) -> Any:
    return told([lambda: t.einsum("", []), lambda: t.einsum("i"), lambda: t.einsum("i", [])])


def several_dims_where_one_belongs(t: Any) -> Any:
    x = t.arange(8.0).reshape(2, 2, 2)
    return told([
        lambda: x.prod([0, 2]), lambda: t.prod(x, [0, 2]), lambda: x.prod((0,)),
        lambda: x.argmax([0, 1]), lambda: x.cumsum((0, 1)), lambda: x.prod(-1),
        lambda: x.prod(t.tensor(1)), lambda: x.sum([0, 2]), lambda: x.all((0, 1)),
    ])  # fmt: skip


def methods_by_the_class_of_tensors_with_entries(t: Any) -> Any:
    """`torch.Tensor.to_dense(x)` is what `x.to_dense()` is, whatever the layout."""
    x = t.eye(3)
    x[1, 2] = 4
    with warnings.catch_warnings(action="ignore"):  # compressed layouts are new, says PyTorch
        tensors = [x, x.to_sparse(), x.to_sparse_csr(), x.to_sparse_csc(),
                   x.to_sparse_bsr((1, 1)), x.to_sparse_bsc((3, 3)),
                   t.ones(2, 0, 3).to_sparse(1)]  # fmt: skip
        return [answers_of(t, tensor, name) for tensor in tensors for name in METHODS_OF_ENTRIES]


METHODS_OF_ENTRIES = """
to_dense sparse_dim dense_dim coalesce indices is_coalesced values crow_indices col_indices
ccol_indices row_indices
""".split()


def answers_of(t: Any, tensor: Any, name: str) -> Any:
    """What a method answers by the class and by the tensor; what is sparse as a dense tensor."""
    found = []
    for answer in told([lambda: getattr(t.Tensor, name)(tensor), lambda: getattr(tensor, name)()]):
        found.append(answer.to_dense() if isinstance(answer, t.Tensor) else answer)
    return name, found


SCENARIOS: list[Callable[[Any], Any]] = [
    backwards, sparse_differences_of_types, bounds_of_random_slopes, shifts_by_places,
    new_tensors_of_tensors, tensors_of_tensors,
    endless_parameters,
    memory_that_overlaps, empty_vectors_joined, sizes_beyond_memory, refused_words,
    sizes_beside_other_classes, capsules_share_memory, masks_of_bytes,
    copies_of_sparse_leaves, tensors_that_learn_as_numbers, dims_that_are_no_ints,
    pivots_that_name_no_row, put_from_its_own_memory, nothing_to_contract,
    several_dims_where_one_belongs, methods_by_the_class_of_tensors_with_entries,
]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.filterwarnings("ignore")
def test_both_do_the_same(scenario: Callable[[Any], Any]) -> None:
    compare(scenario)
