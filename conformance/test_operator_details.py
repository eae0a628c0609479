"""Details of operators that programs drawn at random found: overlap of `out`, rounding, arguments,
which error comes first."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest
import torch

import flambeau
from conformance.side_by_side import Raised, attempt, compare

# ---- memory that is read and written

PLACES = {
    "rows": "x[1:], x[:-1]", "shifted": "x[0, 1:], x[0, :-1]", "transposed": "s, s.T",
    "reshaped": "x[0, :3], x[0, :3].reshape(1, 3)", "same": "x, x.detach()",
    "flattened": "x.view(-1)[:4], x[0]", "unsqueezed": "x.unsqueeze(0)[0], x",
    "every other": "x[:, ::2], x[:, 1::2]", "element": "x, x[0, 0]", "row": "x, x[0]",
}  # fmt: skip
"""What is written to, and what is read."""
WRITES = {
    "add": "t.add(b, b, out=a)", "maximum": "t.maximum(a, b, out=a)", "exp": "t.exp(b, out=a)",
    "clamp": "t.clamp(b, 1.0, 5.0, out=a)", "where": "t.where(a > 0, b, a, out=a)",
    "sigmoid": "t.sigmoid(b, out=a)", "addcdiv": "t.addcdiv(a, b, b, out=a)", "add_": "a.add_(b)",
    "lerp_": "a.lerp_(b, 0.5)",
}  # fmt: skip


@pytest.mark.parametrize("places", sorted(PLACES))
@pytest.mark.parametrize("write", sorted(WRITES))
@pytest.mark.filterwarnings("ignore")
def test_shared_memory(write: str, places: str) -> None:
    def scenario(t: Any) -> Any:
        x, s = t.arange(12.0).reshape(3, 4) + 1, t.arange(9.0).reshape(3, 3) + 1
        names = {"t": t, "x": x, "s": s}
        names["a"], names["b"] = eval(PLACES[places], names)  # noqa: S307
        found = attempt(lambda: eval(WRITES[write], names))  # noqa: S307
        return found if isinstance(found, Raised) else (found, x, s)

    compare(scenario)


@pytest.mark.parametrize("name", ["add_", "copy_", "maximum", "atan2_", "masked_fill_"])
def test_shape_before_type(name: str) -> None:
    def scenario(t: Any) -> Any:
        target = t.ones(3, dtype=t.int64)
        if name == "maximum":
            return attempt(lambda: t.maximum(target, t.ones(2, 4), out=target))
        arguments = (t.ones(2, 3) > 0, 2.5) if name == "masked_fill_" else (t.ones(2, 3),)
        return attempt(lambda: getattr(target, name)(*arguments))

    compare(scenario)


# ---- rounding and types


PAIRS = list(itertools.product(("float64", "float32", "float16"), repeat=2))


@pytest.mark.parametrize("types", PAIRS)
def test_cosine_of_two_types(types: tuple[str, str]) -> None:
    def scenario(t: Any) -> Any:
        first, second = (getattr(t, name) for name in types)
        x = (t.arange(12).double() * 1.37).sin().reshape(4, 3).to(first).requires_grad_()
        y = (t.arange(12).double() * 0.77).cos().reshape(4, 3).to(second).requires_grad_()
        found = t.cosine_similarity(x, y, -1)
        found.sum().backward()
        return found, x.grad.dtype == x.dtype, y.grad.dtype == y.dtype

    compare(scenario, rtol=1e-6)


def test_cosine_of_other_types() -> None:
    def scenario(t: Any) -> Any:
        x = t.arange(6).reshape(2, 3) + 1
        y = (t.arange(6).double() * 0.77).cos().reshape(2, 3)
        pairs = ((x, y), (y, x), (x, x), (y * 1j, y), (y, y[:1]), (y, y.float()[:, :1]))
        return [attempt(lambda p=pair: t.cosine_similarity(*p, -1)) for pair in pairs]

    compare(scenario, rtol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_result_of_wider_input(name: str, half: str) -> None:
    """The input is rounded first: as if it had come in the half type."""

    def scenario(t: Any) -> Any:
        kind, function = getattr(t, half), getattr(t, name)
        x = (t.arange(600).double() * 1.37).sin().reshape(200, 3)
        found = function(x, 1, kind)
        return found.dtype == kind, t.equal(found, function(x.to(kind), 1)), found.double()

    compare(scenario, rtol=2e-2)


# ---- arguments


def test_arguments() -> None:
    def scenario(t: Any) -> Any:
        x = (t.arange(6).double() * 1.37).sin().reshape(2, 3)
        factors, pivots = t.linalg.lu_factor(x @ x.T)
        calls = (
            lambda: t.nuclear_norm(x, True), lambda: t.nuclear_norm(x, False),
            lambda: t.nuclear_norm(x[None], True), lambda: t.nuclear_norm(x, (0, 1), True),
            lambda: t.nuclear_norm(x, 1), lambda: t.special.softmax(x, 1, t.float32),
            lambda: t.fft.rfftfreq(1, 0.0), lambda: t.fft.fftfreq(4, 0.0),
            lambda: t.fft.rfftfreq(0), lambda: t.fft.fftfreq(4, -2.0),
            lambda: t.lu_unpack(factors, pivots.double(), unpack_pivots=False)[1:],
        )  # fmt: skip
        with warnings.catch_warnings():  # torch speaks of `nuclear_norm` once in a process
            warnings.simplefilter("ignore")
            return [attempt(call) for call in calls]

    compare(scenario)


# ---- gradients


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_norms_of_older_days(order: int) -> None:
    def scenario(t: Any) -> Any:
        seen = []
        calls = [lambda x, d=dim: t.norm_except_dim(x, order, d) for dim in (-1, 0, 1, 2, -2)]
        calls.append(lambda x: t.nn.functional.pairwise_distance(x[0], x[1].detach(), order))
        calls.append(lambda x: t.frobenius_norm(x, (0, 1)))
        calls.append(lambda x: t.frobenius_norm(x, 1, True))
        for call in calls:
            x = ((t.arange(12).double() * 1.37).sin() + 2).reshape(2, 3, 2).requires_grad_()
            with warnings.catch_warnings():  # torch speaks of `frobenius_norm` once in a process
                warnings.simplefilter("ignore")
                found = attempt(call, x)
            if not isinstance(found, Raised):
                found.sum().backward()
                found = found, found.grad_fn.name(), x.grad
            seen.append(found)
        return seen

    compare(scenario)


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
def test_one_of_two_results(name: str) -> None:
    """Where no gradient comes to the variance, that of the mean is constant."""

    def scenario(t: Any) -> Any:
        x = (t.arange(12).double() * 1.37).sin().reshape(3, 4).requires_grad_()
        seen = []
        for dim, factors in itertools.product((None, 1), ((1, 0), (0, 1), (1, 2))):
            parts = getattr(t, name)(x, dim)
            chosen = [part * factor for part, factor in zip(parts, factors, strict=True) if factor]
            (grad,) = t.autograd.grad(sum(chosen).sum(), x, create_graph=True)
            second = t.autograd.grad(grad.sin().sum(), x)[0] if grad.requires_grad else None
            seen.append((grad, second))
        return seen

    compare(scenario)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 0), (0, 2, 2), (2, 0, 3)])
@pytest.mark.parametrize("order", [1, float("inf"), 2, "nuc", "fro"])
def test_norms_of_empty_matrices(order: Any, shape: tuple[int, ...]) -> None:
    def scenario(t: Any) -> Any:
        x = t.ones(shape, requires_grad=True)
        seen = []
        for keepdim in (False, True):
            found = attempt(lambda k=keepdim: t.linalg.matrix_norm(x, order, keepdim=k))
            known = isinstance(found, Raised)
            seen.append((found.kind if known else found, known or found.requires_grad))
        seen.append(attempt(lambda: t.linalg.cond(x, order)))
        return seen

    compare(scenario)


def test_count_has_no_gradient() -> None:
    def scenario(t: Any) -> Any:
        x = t.tensor([[1.0, 0.0], [2.0, 3.0]], requires_grad=True)
        seen = []
        for found in (t.linalg.vector_norm(x, 0), t.norm(x, 0), t.linalg.norm(x, 0, 1).sum()):
            found.backward()
            seen.append((found, x.grad))
        return seen

    compare(scenario)


@pytest.mark.parametrize("dim", [0, -1, (), None])
def test_masked_product_of_one_element(dim: Any) -> None:
    """Whether the result is the input itself, to which a write would go through."""

    def scenario(t: Any) -> Any:
        x = t.tensor(2.0, requires_grad=True)
        found = t.masked.prod(x) if dim is None else t.masked.prod(x, dim)
        return found is x, found.is_leaf

    compare(scenario)


INTEGERS = ("uint8", "int8", "int16", "int64")


@pytest.mark.parametrize("of_bounds", INTEGERS)
@pytest.mark.parametrize("kind", ["number", *INTEGERS])
def test_single_values_are_searched_for_in_the_type_of_the_bounds(of_bounds: str, kind: str):
    def scenario(t: Any) -> Any:
        bounds = t.tensor([0, 1, 2], dtype=getattr(t, of_bounds))
        found = []
        for value in (-200, -1, 1, 300):
            one = value if kind == "number" else t.tensor(value).to(getattr(t, kind))
            found += [t.searchsorted(bounds, one), t.bucketize(one, bounds)]
        return found

    compare(scenario)


# ---- what writes leave, and what they refuse


def _moved(t: Any, alias: Any) -> list[int]:
    """Versions of a tensor and of what detach() gave, which lies elsewhere since."""
    source = t.ones(3)
    other = source.detach()
    other.data = alias(t, other)
    other.add_(1)
    return [source._version, other._version]


def _refused_write(t: Any) -> Any:
    """A write that cannot be recorded has not been made."""
    target = t.ones(3).requires_grad_() * 1
    with t.inference_mode():
        factor = target + 1
    return attempt(lambda: target.mul_(factor)), target


def _below_u(t: Any) -> Any:
    """Infinite gradients of the zeros below U."""
    matrix = t.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]], dtype=t.float64).requires_grad_()
    inverse = 1.0 / t.linalg.lu(matrix)[2]
    inverse.backward(inverse)
    return matrix.grad


def _far(t: Any) -> Any:
    """Orders, and arguments so large that their powers overflow."""
    orders = t.tensor([0.5, 2.5, 9.0, 100.0], dtype=t.float64)
    return orders, t.full((4,), 1e300, dtype=t.float64)


def _onto_itself(t: Any) -> Any:
    """Nothing changes, so that elements may share their memory."""
    repeated = t.ones(1).expand(3)
    return repeated.copy_(repeated), repeated.copy_(repeated[:])


def _lobpcg(t: Any) -> Any:
    """A matrix that is not symmetric, as finite differences make it."""
    matrix = t.arange(36.0, dtype=t.float64).reshape(6, 6).sin()
    matrix = matrix @ matrix.mT
    matrix[0, 1] += 0.5
    first = t.eye(6, 1, dtype=t.float64)
    values, _ = t.lobpcg(matrix.requires_grad_(), k=1, X=first)
    return values, t.autograd.grad(values.sum(), matrix)


def _biased(t: Any, shape: tuple[int, ...], bias: Any, turned: bool) -> Any:
    """A bias of another type than the weight."""
    given = t.ones(shape, dtype=t.float64)
    given = given.transpose(0, 1) if turned else given
    weight = t.ones(4, 3, dtype=t.float64)
    return attempt(lambda: t.nn.functional.linear(given, weight, bias))


SMALL = {
    "linspace of no bool": lambda t: t.linspace(-1, 1, 0, dtype=t.bool),
    "linspace of one bool": lambda t: t.linspace(-1, 1, 1, dtype=t.bool),
    "linspace of bools": lambda t: attempt(lambda: t.linspace(-1, 1, 2, dtype=t.bool)),
    "logspace of one bool": lambda t: t.logspace(-1, 1, 1, dtype=t.bool),
    "powers of bools": lambda t: attempt(lambda: t._foreach_powsum([t.ones(2) > 0], 2.0)),
    "powers of ints": lambda t: t._foreach_powsum([t.tensor([3, -2])], 3.0, t.float64),
    "half complex times": lambda t: t.ones(3).chalf().mul_(2).to(t.complex64),
    "half complex plus": lambda t: t.ones(3).chalf().add_(1j).to(t.complex64),
    "copy to itself": _onto_itself,
    "copy to what repeats": lambda t: attempt(lambda: t.ones(1).expand(3).copy_(t.ones(3))),
    "data of an alias": lambda t: _moved(t, lambda t, other: other),
    "other data of an alias": lambda t: _moved(t, lambda t, other: t.ones(3)),
    "a write with inference": _refused_write,
    "lobpcg": _lobpcg,
    "histc by tensors": lambda t: t.ones(3).histc(t.tensor(2), t.tensor(0), t.tensor(3)),
    "gradients below U": _below_u,
    "igamma far out": lambda t: t.igamma(*_far(t)),
    "igammac far out": lambda t: t.igammac(*_far(t)),
    "bias, turned": lambda t: _biased(t, (2, 2, 3), t.ones(4).half(), True),
    "bias, rows": lambda t: _biased(t, (2, 2, 3), t.ones(4).half(), False),
    "bias, one number": lambda t: _biased(t, (3,), t.ones(()), False),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.filterwarnings("ignore")
def test_small_findings(name: str) -> None:
    compare(SMALL[name], warned_once="ComplexHalf")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", [(2, 0), (0,), (2, 3)])
def test_covariance_of_integers(shape: tuple[int, ...]) -> None:
    def covariance(t: Any) -> Any:
        x = t.ones(shape, dtype=t.int32)
        return t.cov(x), t.cov(x, correction=0), t.corrcoef(x)

    assert str(covariance(flambeau)) == str(covariance(torch))
