"""Hooks of modules: one scenario, two libraries, the same calls with the same arguments.

A scenario (one of `hooks_*.py`) gets the library and `see`, which makes hooks that note what they
are given. Its result, its error, its warnings and what hooks have seen are compared.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch as reference

import flambeau

from . import (
    hooks_calls,
    hooks_gradients,
    hooks_handles,
    hooks_older,
    hooks_passes,
    hooks_results,
    hooks_types,
    hooks_writes,
)
from .hooks_modules import shown

TOPICS = (
    hooks_gradients, hooks_passes, hooks_types, hooks_results, hooks_writes, hooks_older,
    hooks_calls, hooks_handles,
)  # fmt: skip


class Log(list[Any]):
    """What hooks have seen, in order."""

    def __call__(self, name: str, answer: Any = None) -> Any:
        """A hook of any kind. `answer`: a function of its arguments that makes its result."""

        def hook(*arguments: Any) -> Any:
            self.append((name, [shown(argument) for argument in arguments]))
            return None if answer is None else answer(*arguments)

        return hook


def observe(scenario: Any, library: Any) -> Any:
    """What comes of a scenario."""
    log = Log()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = shown(scenario(library, log))
        except NameError:  # a mistake in the scenario itself
            raise
        except Exception as error:
            result = type(error).__name__, words(error)
    return result, list(log), [(w.category.__name__, words(w.message)) for w in caught]


def words(message: Any) -> str:
    """The first line without what differs between two runs."""
    first = str(message).split("\n")[0].split(" (Triggered internally")[0]
    return re.sub(r"0x[0-9a-f]+", "0x", first)


def scenarios() -> Iterator[Any]:
    """All functions of the topics that are no helpers: those that take `t` and `see`."""
    for topic in TOPICS:
        for name, found in vars(topic).items():
            if _is_scenario(found, topic):
                yield pytest.param(found, id=f"{topic.__name__.rpartition('_')[2]}-{name}")


def _is_scenario(found: Any, topic: ModuleType) -> bool:
    if not inspect.isfunction(found) or found.__module__ != topic.__name__:
        return False
    return list(inspect.signature(found).parameters) == ["t", "see"]


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Some warnings are given once per process; global hooks must not stay."""
    for library in (reference, flambeau):
        library.set_warn_always(True)
    yield
    for library in (reference, flambeau):
        library.set_warn_always(False)
    reference.nn.modules.module._global_is_full_backward_hook = None
    flambeau.nn.modules.module.global_hooks.is_full_backward = None


@pytest.mark.parametrize("scenario", list(scenarios()))
def test_scenario(scenario: Any) -> None:
    assert observe(scenario, flambeau) == observe(scenario, reference)
