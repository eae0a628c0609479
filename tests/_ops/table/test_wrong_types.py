"""What is no tensor is named where it was given, by operators that are made of others, too."""

from __future__ import annotations

import re
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional
SCORES = torch.ones(2, 2)
CASES = [
    (F.cross_entropy, (SCORES, 3),
     "cross_entropy_loss(): argument 'target' (position 2) must be Tensor, not int"),
    (F.cross_entropy, (SCORES, torch.tensor([0, 1]), [1, 2]),
     "cross_entropy_loss(): argument 'weight' (position 3) must be Tensor, not list"),
    (F.nll_loss, (SCORES, None),
     "nll_loss_nd(): argument 'target' (position 2) must be Tensor, not NoneType"),
    (torch.kron, (SCORES, 3), "kron(): argument 'other' (position 2) must be Tensor, not int"),
    (torch.inner, (SCORES, "a"), "inner(): argument 'other' (position 2) must be Tensor, not str"),
    (torch.flatten, (3,), "flatten(): argument 'input' (position 1) must be Tensor, not int"),
    (torch.ravel, ("a",), "ravel(): argument 'input' (position 1) must be Tensor, not str"),
    (torch.meshgrid, (SCORES[0], 3), "expected Tensor as element 1 in argument 0, but got int"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "given", "text"), CASES)
def test_the_error_names_it(function: Any, given: Any, text: str) -> None:
    named = {"indexing": "ij"} if function is torch.meshgrid else {}
    with pytest.raises(TypeError) as error:
        function(*given, **named)
    assert str(error.value) == text


def test_methods_count_from_what_follows_the_tensor() -> None:
    for call, text in (
        (lambda: SCORES.matmul(3), "matmul(): argument 'other' (position 1) must be Tensor"),
        (lambda: SCORES.kron("a"), "kron(): argument 'other' (position 1) must be Tensor"),
        (lambda: SCORES.flatten("a"), "flatten(): argument 'start_dim' (position 1) must be int"),
        (
            lambda: SCORES.expand("a"),
            "expand(): argument 'size' (position 1) must be tuple of ints",
        ),
        (lambda: SCORES.is_same_size(3), "is_same_size(): argument 'other' (position 1) must be"),
        (lambda: SCORES.renorm("a", 0, 1), "renorm(): argument 'p' (position 1) must be Number"),
    ):
        with pytest.raises(TypeError, match=re.escape(text)):
            call()


def test_operators_of_several_forms_speak_of_all() -> None:
    for call, given in (
        (lambda: torch.std(SCORES, "a"), "std() received an invalid combination of arguments - got "
                                         "(Tensor, str)"),
        (lambda: SCORES.sum("a"), "sum() received an invalid combination of arguments - got (str)"),
        (lambda: SCORES.view("a"),
         "view() received an invalid combination of arguments - got (str)"),
        (lambda: torch.quantile(SCORES, "a"),
         "quantile() received an invalid combination of arguments - got (Tensor, str)"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=re.escape(given)):
            call()


SPACES = ("", "nn.functional", "linalg", "fft", "special", "Tensor")
INNER = re.compile(r"attribute '_[a-z]|(?<![\w.])_(?!to_dlpack|grouped_mm)[a-z]\w*\(\)|<locals>")
"""What no message says: names of our own attributes and rows. Two are PyTorch's own."""
UNTRIED = re.compile(
    r"_|set_|use_|init|manual_seed|seed|load|save|compile|share_memory|from_file|register_|"
    r"get_file_path|prepare_multiprocessing|fork|wait|import_|backward|cuda|xpu|mtia|ipu|unravel_"
)
"""What changes the process, or looks for devices."""
WRONG: tuple[Any, ...] = (3, "a", None, [1.0], np.ones(2), {})


def _public(space: str) -> list[tuple[str, Any]]:
    holder: Any = torch
    for part in filter(None, space.split(".")):
        holder = getattr(holder, part)
    found = [(name, getattr(holder, name, None)) for name in dir(holder) if not UNTRIED.match(name)]
    return [(f"{space}.{name}", it) for name, it in found
            if callable(it) and not isinstance(it, (type, types.ModuleType))]  # fmt: skip


@pytest.mark.parametrize("space", SPACES)
def test_no_message_speaks_of_inner_names(space: str) -> None:
    tried, found = 0, []
    for name, function in _public(space):
        for given in _wrong_arguments(as_method=space == "Tensor"):
            tried += 1
            said = _said(function, given)
            if INNER.search(said):
                found.append(f"{name}{given}: {said}")
    assert tried > 100
    assert not found, "\n".join(found)


def _wrong_arguments(*, as_method: bool) -> Iterator[tuple[Any, ...]]:
    for value in WRONG:
        x = torch.ones(2, 2)
        if not as_method:
            yield (value,)
            yield value, x
        yield x, value
        yield x, x, value
        yield x, 1, value


def _said(function: Any, given: tuple[Any, ...]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*given)
        except Exception as error:  # noqa: BLE001  # whatever it is
            return str(error).partition("\n")[0]
    return ""
