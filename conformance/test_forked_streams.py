"""`fork_rng`, generators and states beside PyTorch's: for which devices, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.side_by_side import Raised, attempt, compare

FORKS: list[dict[str, Any]] = [
    {}, {"devices": []}, {"enabled": False}, {"devices": [], "enabled": False}, {"devices": [0]},
    {"devices": ["cpu"]}, {"devices": "cpu"}, {"devices": 3}, {"enabled": 0}, {"unknown": 1},
    {"_caller": "a", "_devices_kw": "b"},
    *({"device_type": kind, "devices": devices}
      for kind in ("cpu", "cuda", "xpu", "meta", "mps", "hpu", "ipu", "elsewhere")
      for devices in (None, [], [0])),
]  # fmt: skip


def first_sentence(result: Any) -> Any:
    """Errors up to PyTorch's explanations."""
    return (
        [result.kind, result.text.partition(". ")[0].rstrip(".")]
        if isinstance(result, Raised)
        else result
    )


@pytest.mark.parametrize("options", FORKS, ids=str)
def test_forks(options: dict[str, Any]) -> None:
    """The number that is drawn after the block, or the error."""
    if options.get("device_type") in ("xpu", "mps") and options["devices"]:
        pytest.skip("flambeau.xpu and flambeau.mps have no get_rng_state, and say so")

    def after(t: Any) -> Any:
        t.manual_seed(1)

        def block() -> Any:
            with t.random.fork_rng(**options):
                t.rand(3)
            return t.rand(1)

        found = first_sentence(attempt(block))
        return [part.replace("flambeau", "torch") for part in found] if isinstance(
            found, list) else found  # fmt: skip

    compare(after)


def test_forks_as_decorators_nested_and_left_by_errors() -> None:
    def scenario(t: Any) -> Any:
        t.manual_seed(0)

        @t.random.fork_rng()
        def draws() -> Any:
            with t.random.fork_rng():
                t.rand(2)
            return t.rand(2)

        def fails() -> None:
            with t.random.fork_rng():
                t.randn(3)
                raise ValueError("left")

        return [draws(), attempt(fails), t.rand(1), t.random.thread_safe_generator()]

    compare(scenario)


@pytest.mark.parametrize(
    "device",
    ["cpu", "cpu:0", "cuda", "cuda:0", "meta", "mps", "xpu", "mtia", "hpu", "ipu", "vulkan", "lazy",
     "privateuseone", "elsewhere", None, 3],
)  # fmt: skip
def test_generators(device: Any) -> None:
    def made(t: Any) -> Any:
        found = attempt(t.Generator, device)
        return first_sentence(found) if isinstance(found, Raised) else repr(found.device)

    compare(made)


def test_states_and_seeds() -> None:
    def scenario(t: Any) -> Any:
        state = t.get_rng_state()
        calls = [
            lambda: t.set_rng_state(state.float()), lambda: t.set_rng_state(state[:10]),
            lambda: t.set_rng_state([1]), lambda: t.manual_seed("a"), lambda: t.manual_seed(2**64),
        ]  # fmt: skip
        found = [first_sentence(attempt(call)) for call in calls]
        t.manual_seed(-1)
        return [*found, t.rand(1), t.initial_seed(), list(state.shape), str(state.dtype)]

    compare(scenario)
