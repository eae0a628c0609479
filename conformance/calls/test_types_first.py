"""Arguments of wrong types to functions that are made of others: a TypeError, as in PyTorch, and
not what happens to fail inside. Also names of parameters, and forms by position."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.autograd.generated.running import outcome
from tests.random_seeds import generator

from .generated import drawing
from .generated.signatures import Parameter, Target
from .generated.sources import targets
from .generated.values import Context
from .generated.words import CallWords

WRONG = ("'a'", "1j", "{}", "object", "None", "['a']")
SPACES = ("torch.linalg.", "torch.fft.", "torch.special.", "torch.")
PYTHONS_OWN = frozenset("torch.split torch.norm torch.meshgrid".split())
"""Functions that PyTorch writes in Python and that fail inside, with errors of other classes."""
BARE = frozenset(
    """torch.as_strided_ torch.clamp torch.clamp_ torch.clip torch.clip_ torch.flatten
    torch.mvlgamma torch.ravel torch.real torch.imag torch.renorm
    torch.special.multigammaln""".split()
)
"""Functions without a guard, for their speed: they fail with what happens inside."""


def test_wrong_types_are_type_errors() -> None:
    rng: random.Random = generator("types")
    tried, wrong = 0, []
    for target in rng.sample(_functions(), 150):
        text = _spoiled(target, target.signatures[0], rng)
        if _error(text, reference) != "TypeError":
            continue
        tried += 1
        found = _error(text, flambeau)
        if found in ("AttributeError", "KeyError", "AssertionError", "UnboundLocalError"):
            wrong.append((found, text))
    assert tried > 60
    assert not wrong, "\n".join(f"{found}: {text}" for found, text in wrong)


def _functions() -> list[Target]:
    found = []
    for target in targets():
        space = target.path.rpartition(".")[0] + "."
        if space in SPACES and target.path not in PYTHONS_OWN | BARE:
            found.append(target)
    return found


def _spoiled(target: Target, signature: tuple[Parameter, ...], rng: random.Random) -> str:
    """A call whose first argument is none that any function takes."""
    context = Context(rng)
    context.plain = True
    call = drawing.Call(target.path)
    given = [p for p in signature if p.required and p.kind != "out" and not p.variadic]
    call.positional = [context.value(p) for p in given if not p.keyword_only]
    call.named = [(p.name, context.value(p)) for p in given if p.keyword_only]
    if call.positional:
        call.positional[0] = rng.choice(WRONG)
    return drawing.joined(context.made, call)


def _error(text: str, torch: Any) -> str:
    return str(outcome(text, torch, language=CallWords).lines[-1].error)


NAMES = (
    "torch.linalg.cholesky(input=s)", "torch.linalg.cond(input=s)", "torch.linalg.pinv(input=s)",
    "torch.linalg.matrix_rank(input=s)", "torch.linalg.norm(input=s)",
    "torch.linalg.vector_norm(x=s)", "torch.linalg.eigvalsh(input=s)",
    "torch.linalg.ldl_factor(input=s)[0]", "torch.linalg.lstsq(input=s, b=s)[0]",
    "torch.linalg.matrix_norm(s)", "torch.linalg.tensorinv(input=s, ind=1)",
    "torch.linalg.tensorsolve(input=s, other=s[0])",
    "torch.linalg.solve_triangular(input=s, B=s, upper=True)",
    "torch.special.airy_ai(x=s)", "torch.frobenius_norm(input=s, dim=0)",
    "torch.nuclear_norm(input=s)", "torch.result_type(scalar=1, tensor=s)",
    "torch.result_type(scalar1=1, scalar2=2.0)", "torch.result_type(tensor=s, other=1)",
    "torch.repeat_interleave(repeats=torch.tensor([1, 2]), output_size=3)",
    "torch.split(tensor=s, split_size_or_sections=1)[1]", "s.split(split_size=1)[1]",
    "s.clone().copy_(other=s)", "s.size(dim=1)", "s.size(axis=1)", "s.stride(axis=0)",
    "s.new(other=s).shape", "torch.as_strided_(input=s.clone(), size=[1], stride=[1])",
    "torch.subtract(s, 1, 2)", "s.subtract(1, 2)", "torch.rsub(s, 1, 2)",
    "s.reshape(1, 2, 2).hsplit(1, 1)", "s.hsplit(2)[0]", "s.hsplit([1])[0]",
    "torch.nonzero_static(s, size=3, out=torch.empty(0, dtype=torch.int64))",
    "torch.slice_scatter(s, s, out=torch.empty(0))", "torch.tril_indices(2, 2, dtype=int)",
    "torch.normal(0.0, 1.0, (2, 0), requires_grad=None)", "torch.promote_types(complex, complex)",
    "torch.moveaxis(s, numpy.int32(0), 1)", "torch.unflatten(s, numpy.int32(0), (1, -1))",
    "torch.linalg.matrix_norm(s, dtype=float)",
)  # fmt: skip


@pytest.mark.parametrize("call", NAMES)
def test_names_and_forms(call: str) -> None:
    import numpy

    found = []
    for torch in (flambeau, reference):
        names = {"torch": torch, "s": torch.tensor([[2.0, 1.0], [1.0, 3.0]]), "numpy": numpy}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some of these are deprecated
            result = eval(call, names)  # noqa: S307
        if isinstance(result, torch.Tensor):
            result = (str(result.dtype), tuple(result.shape), result.detach().double().tolist())
        found.append(result)
    if isinstance(found[0], tuple) and len(found[0]) == 3 and isinstance(found[0][0], str):
        assert found[0][:2] == found[1][:2]
        here, there = (reference.tensor(one[2], dtype=reference.float64) for one in found)
        reference.testing.assert_close(here, there, rtol=1e-5, atol=1e-6)
    else:
        assert str(found[0]) == str(found[1])


SHAPES = ((), (3,), (3, 3), (2, 3, 3))


@pytest.mark.parametrize("name", ["addbmm", "baddbmm"])
def test_sizes_are_looked_at_in_torchs_order(name: str) -> None:
    for first in SHAPES:
        for second in SHAPES:
            for own in ((3, 3), (7,), (2, 2, 2, 2)):
                said = [
                    _said(lambda t: getattr(t, name)(t.ones(own), t.ones(first), t.ones(second)), t)  # noqa: B023
                    for t in (flambeau, reference)
                ]
                assert said[0] == said[1], (own, first, second)


@pytest.mark.parametrize("name, gates", [("gru_cell", 3), ("lstm_cell", 4), ("rnn_tanh_cell", 1)])
def test_sizes_of_cells(name: str, gates: int) -> None:
    rng: random.Random = generator(f"cells {name}")
    right = [(5, 3), (5, 2), (gates * 2, 3), (gates * 2, 2)]
    for _ in range(60):
        shapes: list[Any] = list(right)
        for place in rng.sample(range(4), rng.choice((0, 1, 1, 2))):
            shapes[place] = rng.choice([(), (2,), (3,), (5, 4), (4, 2), (6, 3), (7, 2), (gates, 2)])

        def call(torch: Any) -> Any:
            values = [torch.ones(shape) for shape in shapes]  # noqa: B023
            if name == "lstm_cell":
                values[1] = (values[1], values[1])
            return getattr(torch, name)(*values)

        said = [_said(call, torch) for torch in (flambeau, reference)]
        assert said[0] == said[1], shapes


def _said(call: Any, torch: Any) -> str:
    try:
        result = call(torch)
    except Exception as error:  # noqa: BLE001  # compared, whatever it is
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return str(tuple((result[0] if isinstance(result, tuple) else result).shape))
