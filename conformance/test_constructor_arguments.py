"""Arguments of layers whose odd values PyTorch takes or refuses in its own way."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.side_by_side import attempt, compare


@pytest.mark.parametrize("smoothing", [-1.0, -0.1, 0.0, 0.3, 1.0, 1.1])
def test_label_smoothing(smoothing: float) -> None:
    def scenario(t: Any) -> Any:
        x = t.arange(6.0).view(2, 3)
        loss = t.nn.CrossEntropyLoss(label_smoothing=smoothing)
        targets = (t.tensor([0, 1]), x.softmax(-1))
        return [attempt(loss, x, target) for target in targets]

    compare(scenario)


@pytest.mark.parametrize("wrong", [0, 1, 2, None])
@pytest.mark.parametrize("size", [(2, 1), (3, 2), None])
def test_projections_of_attention(wrong: int | None, size: tuple[int, int] | None) -> None:
    def scenario(t: Any) -> Any:
        x, square = t.ones(3, 1, 2), t.eye(2)
        weights = [square, square, square]
        if wrong is not None:
            weights[wrong] = None if size is None else t.ones(size)
        names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        return attempt(
            t.nn.functional.multi_head_attention_forward, x, x, x, 2, 1, None, None, None, None,
            False, 0.0, square, None, use_separate_proj_weight=True,
            **dict(zip(names, weights, strict=True)),
        )  # fmt: skip

    compare(scenario)


def test_even_kernels_of_the_same_size_warn_once() -> None:
    def warned(t: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                t.nn.functional.conv1d(t.ones(1, 1, 8), t.ones(1, 1, 2), padding="same")
        return [str(w.message).partition(" (Triggered")[0] for w in caught]

    for library in (reference, flambeau):
        warned(library)  # perhaps another test has been warned
        assert warned(library) == []
        library.set_warn_always(True)
    try:
        assert warned(flambeau)[0] == warned(reference)[0]
    finally:
        for library in (reference, flambeau):
            library.set_warn_always(False)


SPACES = ("nn", "optim", "optim.lr_scheduler", "optim.swa_utils", "utils.data", "amp")


@pytest.mark.parametrize("space", SPACES)
def test_every_documented_argument_is_there(space: str) -> None:
    """The constructors of both libraries have the same parameters, or ours takes all."""
    theirs, ours = reference, flambeau
    for part in space.split("."):
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    for name, kind in vars(theirs).items():
        mine = getattr(ours, name, None)
        if not inspect.isclass(kind) or mine is None:
            continue
        known = _parameters(mine)
        missing = [p for p in _parameters(kind) if p not in known and not p.startswith("_")]
        assert not missing, f"{space}.{name}"


def _parameters(kind: type) -> list[str]:
    try:
        found = inspect.signature(kind.__init__).parameters.values()
    except ValueError:
        return []
    return [p.name for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
