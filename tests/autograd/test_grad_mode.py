"""no_grad, enable_grad, set_grad_enabled and inference_mode: regions, decorators, threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau as torch
from flambeau._core import modes


def test_regions_nest_and_end_with_errors() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(KeyError), torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
        raise KeyError
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("decorator", [torch.no_grad, torch.no_grad(), torch.inference_mode()])
def test_decorators(decorator: Any) -> None:
    @decorator
    def named() -> bool:
        """Kept."""
        return torch.is_grad_enabled()

    assert not named()
    assert torch.is_grad_enabled()
    assert named.__doc__ == "Kept."


def test_a_decorated_generator_has_the_mode_while_it_runs() -> None:
    @torch.no_grad()
    def numbers() -> Iterator[Any]:
        got = yield torch.is_grad_enabled()
        try:
            yield got
        except ValueError:
            yield torch.is_grad_enabled()
        return torch.is_grad_enabled()

    generator = numbers()
    assert next(generator) is False
    assert torch.is_grad_enabled()
    assert generator.send("sent") == "sent"
    assert generator.throw(ValueError()) is False
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value is False


def test_the_mode_belongs_to_a_thread() -> None:
    found: list[bool] = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: found.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert found == [True]


def test_inference_tensors_stay_outside_autograd() -> None:
    with torch.inference_mode():
        x = torch.ones(2)
        y = x + 1
        x.add_(1)
    assert x.is_inference()
    assert y.is_inference()
    grad = torch.ones(2, requires_grad=True)
    assert (grad + x).requires_grad
    with pytest.raises(RuntimeError, match="cannot be saved for backward"):
        grad * x
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="do not track version counter"):
        x._version
    assert (grad * x.clone()).requires_grad


def test_a_normal_tensor_written_to_in_inference_mode_stays_normal() -> None:
    x = torch.ones(2)
    with torch.inference_mode():
        x.add_(1)
    assert not x.is_inference()
    x.add_(1)
    assert x.tolist() == [3.0, 3.0]


def test_inference_mode_stands_in_nobodys_way() -> None:
    with torch.inference_mode():
        assert modes.watch.active == 0
        assert modes.watch.results == 1
    assert modes.watch.results == 0


def test_regions_inside_of_inference_mode_record_nothing() -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        with torch.no_grad():
            assert (x * 2).is_inference()
        with torch.enable_grad():
            y = x * 2
        with torch.set_grad_enabled(True):
            z = x > 1
        with torch.inference_mode(False):
            w = x * 2
    assert y.is_inference()
    assert not y.requires_grad
    assert z.is_inference()
    assert w.requires_grad
    assert torch.is_grad_enabled()


def test_other_threads_are_not_in_inference_mode() -> None:
    x, found = torch.ones(2, requires_grad=True), []

    def work() -> None:
        y = x * 2
        found.extend((y.requires_grad, y.is_inference(), (x > 1).is_inference()))

    with torch.inference_mode():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found == [True, False, False]
