"""complex32 as PyTorch's processors have it: what works, what is refused, files."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau
from conformance.side_by_side import attempt, compare

torch = pytest.importorskip("torch")

VALUES = [1.5 + 2j, -0.25 - 1j, 3 - 0.5j, 0.125 + 0j]
pytestmark = [
    pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental"),
    pytest.mark.filterwarnings("ignore:Casting complex values to real"),
]

WORKING = {
    "sums": "x + y, x - y, x + 1, 2 - x, x.clone().add_(y)",
    "products": "x * y, x * 2, x * 2j, torch.outer(x, y)",
    "signs": "-x, x.abs(), x.sgn(), x.positive(), x.norm()",
    "conjugates": "x.conj(), x.conj() + 1, x.conj().imag, x.conj_physical(), -x.conj()",
    "comparisons": "x == y, x != x, torch.isclose(x, x), x.isnan(), x.isfinite(), x.isreal()",
    "parts": "x.real, x.imag, torch.view_as_real(x), torch.view_as_complex(h)",
    "views": "x.view(torch.float16), x.view(torch.int32), x.reshape(2, 2).t(), x[::2]",
    "joined": "torch.cat([x, y]), torch.stack([x, y]), torch.complex(h[:, 0], h[:, 1])",
    "indices": "x[[0, 2]], x[x == x], x.index_select(0, i), x.index_fill(0, i, 2j), x.roll(1)",
    "writes": "x.clone().index_put_((i,), y[:2], True), x.masked_fill(x == x, 1), x.fill_(2j)",
    "casts": "x.cfloat(), x.half(), x.int(), x.bool(), h.chalf(), i.to(torch.complex32)",
    "promoted": "x + h[:, 0], x + h[:, 0].float(), x + h[:, 0].bfloat16(), h * 1j, x + x.cdouble()",
    "made": "torch.zeros(2, dtype=c), torch.ones(2, dtype=c), torch.full((2,), 1j, dtype=c)",
    "numbers": "x[0].item(), x.tolist(), x.dtype, x.type(), x.element_size(), str(x)",
    "types": "c.to_real(), torch.half.to_complex(), c.is_complex, torch.promote_types(c, i.dtype)",
    "triangles": "x.reshape(2, 2).tril(), torch.diag(x), torch.where(x == x, x, y)",
    "summed": "x.sum(dtype=torch.complex64), x.count_nonzero(), x.any()",
}
REFUSED = (
    "x / y", "x.exp()", "x.sqrt()", "x.sum()", "x.mean()", "x.prod()", "x @ y", "x.cumsum(0)",
    "x.pow(2)", "x.square()", "x.reciprocal()", "x.angle()", "x.gather(0, i)", "x.take(i)",
    "x.scatter(0, i, y)", "x.flip(0)", "x.sort()", "x < y", "x.max()", "x.clamp(0, 1)",
    "x.reshape(2, 2) @ x.reshape(2, 2)", "x.logical_not()", "x.equal(x)", "x.numpy()",
    "torch.eye(2, dtype=c)", "torch.arange(3, dtype=c)", "torch.linspace(0, 1, 3, dtype=c)",
    "torch.fft.fft(x)", "torch.full((1,), 70000.0, dtype=c)", "x.masked_scatter(x == x, y)",
    "torch.nn.functional.linear(x.reshape(2, 2), x.reshape(2, 2))", "x.tanh()", "x.sigmoid()",
)  # fmt: skip


def names(module: Any) -> dict[str, Any]:
    """Tensors of a module that the texts are about."""
    x = module.tensor(VALUES, dtype=module.complex32)
    parts = module.tensor([[1.0, 2.0], [0.5, -3.0], [2.0, 4.0], [-1.0, 0.25]]).half()
    return {"torch": module, "x": x, "y": module.tensor(VALUES[::-1], dtype=module.complex32),
            "h": parts, "i": module.tensor([0, 2]), "c": module.complex32}  # fmt: skip


def shown(value: Any) -> Any:
    """A value without the module that it comes from."""
    if hasattr(value, "resolve_conj"):
        return value.dtype.__repr__(), value.resolve_conj().resolve_neg().tolist()
    return str(value) if type(value).__name__ == "dtype" else value


@pytest.mark.parametrize("topic", WORKING)
def test_results(topic: str) -> None:
    """The same results, types included."""
    found = [
        [shown(value) for value in eval(WORKING[topic], names(module))]
        for module in (flambeau, torch)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("text", REFUSED)
def test_refusals(text: str) -> None:
    """The same errors for what complex32 does not have."""
    errors = []
    for module in (flambeau, torch):
        with pytest.raises(Exception) as caught:  # noqa: PT011  (compared below)
            eval(text, names(module))
        errors.append((type(caught.value).__name__, str(caught.value).splitlines()[0]))
    assert errors[0] == errors[1]


def test_random_numbers() -> None:
    """The same numbers from the same seed."""
    drawn = []
    for module in (flambeau, torch):
        module.manual_seed(3)
        values = [module.randn(5, dtype=module.complex32), module.rand(20, dtype=module.complex32)]
        drawn.append([value.tolist() for value in values])
    assert drawn[0] == drawn[1]


GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "products": lambda m, x: x * x,
    "lengths": lambda m, x: x.abs(),
    "casts": lambda m, x: x.to(m.complex64) * 2,
    "parts": lambda m, x: x.real,
    "joined": lambda m, x: m.cat([x, x]),
}


@pytest.mark.parametrize("topic", GRADIENTS)
def test_gradients(topic: str) -> None:
    """The same gradients."""
    grads = []
    for module in (flambeau, torch):
        x = module.tensor(VALUES, dtype=module.complex32, requires_grad=True)
        result = GRADIENTS[topic](module, x)
        parts = module.view_as_real(result) if result.is_complex() else result
        parts.float().sum().backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1]


def test_files() -> None:
    """Either library reads what the other one wrote."""
    for writer, reader in ((flambeau, torch), (torch, flambeau)):
        file = io.BytesIO()
        writer.save({"x": names(writer)["x"]}, file)
        file.seek(0)
        assert reader.load(file)["x"].tolist() == VALUES


POWERS = (0, 1, 2, True, 1.0, 0.5, -0.5, -1, 1 + 0j, 2 + 0j, 0j)


@pytest.mark.parametrize("number", POWERS)
@pytest.mark.parametrize("kind", ["complex32", "float16", "bfloat16"])
def test_powers(kind: str, number: Any):
    """Those that are filled in or copied are there, no others."""

    def scenario(library: Any) -> Any:
        def made() -> Any:
            return library.tensor([2.0, 3.0]).to(getattr(library, kind))

        calls = [
            lambda: made() ** number, lambda: number ** made(),
            lambda: made().pow_(number.real if isinstance(number, complex) else number),
            lambda: made() ** library.tensor(number), lambda: library.square(made()),
            lambda: np.array(number, "complex128")[()] ** made(),
        ]  # fmt: skip
        if kind == "complex32":
            calls.append(lambda: library.pow(made(), number, out=made()))
        return [attempt(lambda call=call: told(library, call())) for call in calls]

    def told(library: Any, tensor: Any) -> Any:
        parts = library.view_as_real(tensor.to(library.complex128))
        return str(tensor.dtype), parts.tolist()

    compare(scenario, warned_once="ComplexHalf support is experimental")
