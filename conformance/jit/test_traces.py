"""Traces are PyTorch's: the same code, and the same results for inputs of other sizes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from conformance.jit.traced_functions import FUNCTIONS
from conformance.module_samples import MODULES, assert_near, ours, samples

pytestmark = pytest.mark.filterwarnings("ignore")
rng = np.random.default_rng(5)
MOST = 4  # samples of a module


def renamed(code: str) -> str:
    """The code with temporaries numbered in the order in which they appear."""
    names: dict[str, str] = {}
    return re.sub(r"\b_\d+\b", lambda found: names.setdefault(found[0], f"_{len(names)}"), code)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    """Equal code; equal results and gradients for more rows than the trace has seen."""
    function = FUNCTIONS[name]

    def traced(library: Any, x: Any) -> Any:
        return library.jit.trace(lambda x: function(x, library), (x,), check_trace=False)

    example = rng.standard_normal((2, 3)).astype(np.float32)
    other = rng.standard_normal((2 if name == "factories" else 4, 3)).astype(np.float32)
    theirs, mine = (traced(lib, lib.from_numpy(example.copy())) for lib in (torch, flambeau))
    assert renamed(mine.code) == renamed(theirs.code)
    x, y = torch.from_numpy(other.copy()), flambeau.from_numpy(other.copy())
    try:
        expected = theirs(x)
    except RuntimeError:
        with pytest.raises(RuntimeError):
            mine(y)
        return
    assert_near(mine(y), expected, 1e-5)
    if _is_float(expected):
        x.requires_grad_()
        y.requires_grad_()
        expected, found = theirs(x), mine(y)
        if expected.requires_grad:
            expected.sum().backward()
            found.sum().backward()
            assert_near(y.grad, x.grad, 1e-5)


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


OTHER_CODE = frozenset(
    "BCELoss GRU GRUCell GaussianNLLLoss LPPool1d LPPool2d LPPool3d LSTM LinearCrossEntropyLoss "
    "LocalResponseNorm MultiLabelSoftMarginLoss RNN RNNCell TransformerDecoderLayer "
    "TransformerEncoder TransformerEncoderLayer".split()
)
"""Layers that in flambeau are made of other operators; what they compute is the same."""


def traces(name: str) -> Iterator[tuple[Any, Any, dict[str, Any], Any, Any]]:
    """For each sample: arguments and both modules' traces, where PyTorch can trace it."""
    for sample in list(samples(name, torch.float32))[:MOST]:
        if sample.inputs is None:
            continue
        args, kwargs = tuple(sample.inputs.args), dict(sample.inputs.kwargs)
        if args and kwargs or not all(isinstance(a, torch.Tensor) for a in args):
            continue
        theirs, mine = sample.both()
        options: dict[str, Any] = {"check_trace": False, "strict": False}
        key = "example_kwarg_inputs" if kwargs else "example_inputs"
        given = kwargs or args
        try:
            traced = torch.jit.trace(theirs, **{key: given}, **options)
        except Exception:  # noqa: BLE001 - whatever PyTorch cannot trace
            continue
        yield (
            args,
            kwargs,
            options,
            traced,
            flambeau.jit.trace(mine, **{key: ours(given)}, **options),
        )


@pytest.mark.parametrize("name", sorted(MODULES))
def test_modules(name: str) -> None:
    """Every module of PyTorch's database: code, results, gradients of parameters."""
    for args, kwargs, _, theirs, mine in traces(name):
        if name not in OTHER_CODE:
            assert renamed(mine.code) == renamed(theirs.code)
        torch.manual_seed(1)
        flambeau.manual_seed(1)
        expected = theirs(*args, **kwargs)
        found = mine(*ours(args), **ours(kwargs))
        assert_near(found, expected, 1e-5)
        if _is_float(expected) and expected.requires_grad:
            expected.sum().backward()
            found.sum().backward()
            parameters = dict(mine.named_parameters())
            for key, parameter in theirs.named_parameters():
                if parameter.grad is not None:
                    assert_near(parameters[key].grad, parameter.grad, 1e-4)


class Branch:
    """Programs that a trace cannot follow."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def truth(self, x: Any) -> Any:
        return x if x.sum() > 0 else -x

    def number(self, x: Any) -> Any:
        return x * x.sum().item()

    def length(self, x: Any) -> Any:
        return x * len(x)

    def rows(self, x: Any) -> Any:
        return sum(row for row in x)

    def constant(self, x: Any) -> Any:
        return x + self.torch.tensor([1.0])

    def converted(self, x: Any) -> Any:
        return x + int(x.sum()) + float(x.sum())

    def sizes(self, x: Any) -> Any:
        return x if x.size(0) > 1 else -x

    def listed(self, x: Any) -> Any:
        return x + x.tolist()[0][0]

    def listed_result(self, x: Any) -> Any:
        return [x, x + 1]

    def array(self, x: Any) -> Any:
        return x + self.torch.from_numpy(x.numpy())


@pytest.mark.parametrize("name", [name for name in vars(Branch) if not name.startswith("_")])
def test_warnings(name: str) -> None:
    """What cannot be followed is warned of, in PyTorch's words, at the same line."""
    seen = []
    for library in (torch, flambeau):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            library.jit.trace(getattr(Branch(library), name), (library.ones(2, 3),),
                              check_trace=False)  # fmt: skip
        seen.append([(str(w.message), w.filename, w.lineno) for w in caught
                     if w.category.__name__ == "TracerWarning"])  # fmt: skip
    theirs, mine = seen
    assert [text for text, _, _ in mine] == [text for text, _, _ in theirs]
    if name != "listed_result":  # torch names a line of its own there
        assert [place[1:] for place in mine] == [place[1:] for place in theirs]


@pytest.mark.parametrize("function", [
    lambda x, w: {"a": x}, lambda x, w: (x, 3), lambda x, w: 3, lambda x, w: x * (w * 2),
    lambda x, w: "text", lambda x, w: None,
])  # fmt: skip
def test_refusals(function: Any) -> None:
    """What torch refuses as a result, in the same words."""
    said = []
    for library in (torch, flambeau):
        weight = library.ones(3, requires_grad=True)
        with pytest.raises(RuntimeError) as caught:
            library.jit.trace(lambda x: function(x, weight), (library.ones(3),))  # noqa: B023
        said.append(str(caught.value).split("\nTensor:")[0].strip())
    assert said[0] == said[1]
