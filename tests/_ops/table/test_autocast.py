"""Rows keep the words that they have for the CPU; gradients have the types of the inputs."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._core import modes
from flambeau._core.autocast import LOWER_TYPES, settings
from flambeau._ops.table import loading
from flambeau._ops.table.autocast import POLICIES, word_for
from flambeau._ops.table.op import REGISTRY
from tests._ops.sample_values import differentiable_call
from tests._ops.samples import TABLE, need_kernels
from tests._ops.table.test_registry import function_of

loading.load_all()
WORDS = {
    name: word_for(op.autocast, "cpu") for name, op in REGISTRY.items() if op.autocast is not None
}
RESULTS = {
    ("lower", torch.float32): torch.bfloat16, ("lower", torch.float16): torch.bfloat16,
    ("float32", torch.float32): torch.float32, ("float32", torch.bfloat16): torch.float32,
    ("widest", torch.float32): torch.float32, ("widest", torch.bfloat16): torch.bfloat16,
}  # fmt: skip
"""(the word of a row, the type of its tensors) -> the type of its results."""


@pytest.mark.parametrize("name", WORDS)
def test_words_are_known(name: str) -> None:
    text = REGISTRY[name].autocast
    pairs = [part.split("=") for part in text.split()] if "=" in text else [["cpu", text]]
    assert {device for device, _ in pairs} <= set(LOWER_TYPES)
    assert {word for _, word in pairs} <= set(POLICIES)


DOUBLES = frozenset(("soft_margin_loss", "fractional_max_pool2d", "fractional_max_pool3d"))
"""Rows whose samples hold constants in float64."""

CASES = [
    (name, given)
    for name, word in WORDS.items()
    if name in TABLE and name not in DOUBLES
    for known, given in RESULTS
    if known == word
]


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize(("name", "given"), CASES, ids=str)
def test_types_of_results_and_gradients(name: str, given: torch.dtype) -> None:
    need_kernels(name)
    op = REGISTRY[name]
    run, inputs = differentiable_call(op, function_of(name), TABLE[name][0], 0)
    inputs = [x.detach().to(given).requires_grad_() for x in inputs]
    with torch.autocast("cpu"):
        result = run(*inputs)
    results = result if isinstance(result, tuple) else (result,)
    expected = RESULTS[WORDS[name], given]
    complex_one = {torch.float32: torch.complex64}.get(expected)
    for item in results:
        if item.requires_grad:
            assert item.dtype in (expected, complex_one)
    total = sum((item.abs() if item.is_complex() else item).sum() for item in results
                if item.requires_grad)  # fmt: skip
    total.backward()
    assert {x.grad.dtype for x in inputs if x.grad is not None} == {given}


def test_operators_are_watched_only_in_a_region() -> None:
    before = modes.watch.active
    with torch.autocast("cpu"):
        assert modes.watch.active == before + 1
        with torch.autocast("cpu", enabled=False):
            assert modes.watch.active == before
        assert modes.watch.active == before + 1
    assert modes.watch.active == before


def test_double_precision_integers_and_complex_numbers_stay() -> None:
    for dtype in (torch.float64, torch.int64, torch.complex64):
        x = torch.ones((2, 2), dtype=dtype)
        with torch.autocast("cpu"):
            assert (x @ x).dtype is dtype


def test_what_is_written_in_place_or_to_out_has_no_choice() -> None:
    x, out = torch.ones(2, 2), torch.empty(2, 2)
    with torch.autocast("cpu"):
        assert torch.mm(x, x, out=out) is out and out.dtype is torch.float32
        assert torch.zeros(2, 2).addmm_(x, x).dtype is torch.float32
        prelu = torch.nn.functional.prelu(x, torch.ones(1))
        assert prelu.dtype is torch.bfloat16


def test_a_row_inside_a_row_does_not_choose() -> None:
    """The distance of a loss is computed in the loss's float32, whatever its parts say."""
    x, y = torch.rand(3, 4), torch.rand(3, 4)
    plain = torch.nn.functional.cosine_embedding_loss(x, y, torch.ones(3))
    with torch.autocast("cpu"):
        inside = torch.nn.functional.cosine_embedding_loss(x, y, torch.ones(3))
        assert torch.bilinear(x, y, torch.rand(2, 4, 4)).dtype is torch.float32
        assert settings.enabled["cpu"]
    assert inside.item() == plain.item()


def test_an_error_leaves_the_region_on() -> None:
    with torch.autocast("cpu"):
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            torch.ones(2, 3) @ torch.ones(2, 3)
        assert torch.is_autocast_enabled("cpu")


def test_halves_that_do_not_go_together() -> None:
    bfloat, half = torch.ones(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.float16)
    with torch.autocast("cpu"), pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
        torch.cat([bfloat, half])


# ---- weights


def weight_and_input() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones((3, 3), requires_grad=True), torch.ones(2, 3)


def test_a_weight_is_cast_once() -> None:
    weight, x = weight_and_input()
    with torch.autocast("cpu"):
        first, second = x @ weight, x @ weight
        casts = [y.grad_fn.next_functions[1][0] for y in (first, second)]
        assert casts[0] is casts[1] and "ToCopy" in casts[0].name()
    assert not settings.cache
    (first.sum() + second.sum()).backward()
    assert weight.grad.dtype is torch.float32 and weight.grad.tolist() == [[4.0] * 3] * 3


def test_the_outermost_region_forgets() -> None:
    weight, x = weight_and_input()
    with torch.autocast("cpu"):
        y = x @ weight
        with torch.autocast("cpu"):
            pass
        with torch.no_grad():
            weight.add_(1)
        assert (x @ weight).tolist() == y.tolist()  # the weight as it was
        torch.clear_autocast_cache()
        assert (x @ weight).tolist() != y.tolist()


def test_a_cast_without_recording_is_no_use_for_gradients() -> None:
    weight, x = weight_and_input()
    with torch.autocast("cpu"):
        with torch.no_grad():
            assert not (x @ weight).requires_grad
        assert (x @ weight).requires_grad


@pytest.mark.parametrize("kind", ["no gradient", "half", "not a leaf", "no cache"])
def test_what_is_cast_every_time(kind: str) -> None:
    weight, x = weight_and_input()
    if kind == "no gradient":
        weight = weight.detach()
    if kind == "half":
        weight = weight.detach().half().requires_grad_()
    used = weight * 1 if kind == "not a leaf" else weight
    with torch.autocast("cpu", cache_enabled=kind != "no cache"):
        x @ used
        assert not settings.cache


def test_one_cast_is_kept_for_a_weight() -> None:
    weight, x = weight_and_input()
    with torch.autocast("cpu"):
        assert (x @ weight).dtype is torch.bfloat16
        with torch.autocast("cpu", dtype=torch.float16):
            assert (weight @ weight).dtype is torch.bfloat16
            torch.clear_autocast_cache()
            assert (x @ weight).dtype is torch.float16


def test_slow_precision_names_the_line_of_the_program(monkeypatch):
    from flambeau._ops.products import tiles
    from flambeau._ops.table import autocast

    monkeypatch.setattr(autocast.Told, "done", False)
    monkeypatch.setattr(tiles, "bfloat16_dots", lambda: False)
    layer, x = torch.nn.Linear(256, 4), torch.ones(256, 256)
    with torch.autocast("cpu"), pytest.warns(autocast.SlowPrecision) as warned:
        layer(x)
    assert [warning.filename for warning in warned] == [__file__]
