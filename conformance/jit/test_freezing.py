"""Frozen modules: what stays of them, and what they compute, in both implementations."""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from conformance.jit import both

SEQUENCES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "conv": (lambda nn: (nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU()), (2, 1, 5, 5)),
    "conv1d": (lambda nn: (nn.Conv1d(2, 3, 2, bias=False), nn.BatchNorm1d(3)), (2, 2, 4)),
    "linear": (lambda nn: (nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.9)), (2, 4)),
    "nested": (lambda nn: (nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)), nn.GELU()), (2, 4)),
}
"""Layers one after the other, and the shape of an input."""


def frozen(library: Any, name: str, state: Any = None, **options: Any) -> tuple[Any, Any]:
    """A module with settled statistics, and its frozen form."""
    build, _ = SEQUENCES[name]
    module = library.nn.Sequential(*build(library.nn))
    for key, value in module.state_dict().items():
        if state is not None:
            value.copy_(library.from_numpy(state[key].detach().numpy().copy()))
        elif "running" in key:
            value.uniform_(0.5, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return module, library.jit.freeze(library.jit.script(module.eval()), **options)


@pytest.mark.parametrize("name", SEQUENCES)
def test_results(name: str) -> None:
    """The frozen module computes the same, and has no parameters any more."""
    original, theirs = frozen(torch, name)
    _, ours = frozen(flambeau, name, original.state_dict())
    x = np.random.default_rng(0).standard_normal(SEQUENCES[name][1], dtype=np.float32)
    expected = theirs(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(
        ours(flambeau.from_numpy(x)).detach().numpy(), expected, rtol=1e-5, atol=1e-6
    )
    assert list(ours.state_dict()) == list(theirs.state_dict()) == []
    assert hasattr(ours, "training") == hasattr(theirs, "training")


@pytest.mark.parametrize("name", ["conv", "conv1d", "linear"])
def test_folding(name: str) -> None:
    """Batch normalization and dropout are gone, unless rounding must not change."""
    for library in (torch, flambeau):
        _, folded = frozen(library, name)
        assert "batch_norm" not in folded.code
        assert "dropout" not in folded.code
        _, exact = frozen(library, name, optimize_numerics=False)
        assert "batch_norm" in exact.code


def test_training_mode() -> None:
    """Modules in training mode are refused with the same words."""
    words = []
    for library in (torch, flambeau):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scripted = library.jit.script(library.nn.Sequential(library.nn.ReLU()))
            with pytest.raises(RuntimeError) as raised:
                library.jit.freeze(scripted)
        words.append(str(raised.value))
    assert words[0] == words[1]


MODULES = Path(__file__).with_name("frozen_modules.py")
VISION = Path(__file__).with_name("whole_programs") / "vision.py"
RESNET = "make_small_resnet"
INPUTS = {RESNET: (2, 3, 16, 16), "Net": (2, 3, 6, 6), "Counter": (3, 2), "Assigned": (3, 2),
          "Looped": (3, 2), "ConvAdd": (2, 3, 6, 6), "ConvMul": (2, 3, 6, 6),
          "TransBN": (2, 3, 6, 6), "Heads": (3, 4), "LinearAdd": (3, 4)}  # fmt: skip
"""Modules, and the shape of an input."""
CASES: list[tuple[str, str, dict[str, Any]]] = [
    *((name, "script", {}) for name in INPUTS),
    *((name, "trace", {}) for name in INPUTS if name not in ("Counter", "Assigned")),
    ("Net", "script", {"preserved_attrs": ["also", "bump", "count"]}),
    ("Counter", "script", {"preserved_attrs": ["version"]}),
    (RESNET, "script", {"optimize_numerics": False}),
    (RESNET, "trace", {"optimize_numerics": False}),
]
ATTRIBUTES = "n t version training seen count names scale table sub inner stem".split()


def both_frozen(name: str, how: str, options: dict[str, Any]) -> list[tuple[Any, Any, Any]]:
    """The frozen module, its input and its library, of both."""
    found = []
    state = None
    shape = INPUTS[name]
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    for key, library in both.LIBRARIES.items():
        programs = both.load(VISION if name == RESNET else MODULES, key)
        with both.entered(programs), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library.manual_seed(0)
            module = getattr(programs, name)().eval()
            for place, value in module.state_dict().items():
                if state is not None:
                    value.copy_(library.from_numpy(state[place]))
                elif "running" in place:
                    value.uniform_(0.5, 2.0)
            state = state or {k: v.numpy().copy() for k, v in module.state_dict().items()}
            sample = library.from_numpy(x.copy())
            made = library.jit.script(module) if how == "script" else (
                library.jit.trace(module, sample))  # fmt: skip
            found.append((library.jit.freeze(made, **options), sample, library))
    return found


def flat(output: Any) -> list[np.ndarray]:
    """The tensors of nested tuples."""
    if isinstance(output, tuple):
        return [array for part in output for array in flat(part)]
    return [output.detach().numpy().copy()]


def assert_same(one: Any, other: Any) -> None:
    """Results agree but for rounding."""
    for first, second in zip(flat(one), flat(other), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-5)


def operators(code: str) -> list[str]:
    """The operators of a text, in order, but for those that only look at sizes, as checks do: each
    library's layers have their own.
    """
    found = re.findall(r"(?:torch|ops\.prim)\.(\w+)\(", code)
    return [name for name in found if name not in CHECKS]


CHECKS = frozenset("size dim len ne __not__ __contains__ RaiseException format str".split())


@pytest.mark.parametrize(
    ("name", "how", "options"), CASES, ids=[f"{n}-{h}-{'-'.join(o)}" for n, h, o in CASES]
)
def test_frozen_modules(name: str, how: str, options: dict[str, Any]) -> None:
    """Results twice, what stays, the operators of each method, and archives both ways."""
    (theirs, their_x, _), (ours, our_x, _) = both_frozen(name, how, options)
    for _ in range(2):
        assert_same(ours(our_x), theirs(their_x))
    kept = [[a for a in ATTRIBUTES if hasattr(module, a)] for module in (ours, theirs)]
    assert kept[0] == kept[1]
    methods = ["forward", *(p for p in options.get("preserved_attrs", ()) if p in ("also", "bump"))]
    for method in methods:
        codes = [m.code if method == "forward" else getattr(m, method).code for m in (ours, theirs)]
        if name != "Counter":  # we also compute what is looked up in a constant dictionary
            assert sorted(operators(codes[0])) == sorted(operators(codes[1])), "\n".join(codes)
    files = io.BytesIO(), io.BytesIO()
    flambeau.jit.save(ours, files[0])
    torch.jit.save(theirs, files[1])
    for file in files:
        file.seek(0)
    expected = theirs(their_x)
    assert_same(torch.jit.load(files[0])(their_x), expected)
    assert_same(flambeau.jit.load(files[1])(our_x), expected)


@pytest.mark.parametrize("name", ["nope", "sub.nope", "nope.weight", "version.x"])
@pytest.mark.parametrize("library", both.LIBRARIES)
def test_unknown_names(library: str, name: str) -> None:
    """What should stay has to be there."""
    programs = both.load(MODULES, library)
    torch = both.LIBRARIES[library]
    with both.entered(programs), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(programs.Counter().eval())
        with pytest.raises(RuntimeError, match=rf"^Unknown name: {re.escape(name)}$"):
            torch.jit.freeze(scripted, preserved_attrs=[name])


def test_optimize_for_inference() -> None:
    """A module is frozen, unless it is, and computes the same; one without `forward` is refused."""
    (theirs, their_x, _), (ours, our_x, _) = both_frozen("Net", "script", {})
    expected = theirs(their_x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = flambeau.jit.optimize_for_inference(ours)
        assert_same(again(our_x), torch.jit.optimize_for_inference(theirs)(their_x))
    assert_same(again(our_x), expected)
