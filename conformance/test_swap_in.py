"""Parameters and state swapped into an optimizer: torch's numbers and words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau

LIBRARIES = (flambeau, reference)


def trained(library: Any, name: str, seed: int, steps: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    params = [library.tensor(rng.normal(size=size)).requires_grad_() for size in (3, 2)]
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.3}]
    optimizer = getattr(library.optim, name)(groups, lr=0.1)
    for _ in range(steps):
        descend(optimizer, params)
    return params, optimizer


def descend(optimizer: Any, params: list[Any]) -> None:
    optimizer.zero_grad()
    sum((parameter**4).sum() for parameter in params).backward()
    optimizer.step()


def tensors_of(state: Any) -> list[Any]:
    found = [(key, name, value.tolist() if hasattr(value, "tolist") else value)
             for key, entry in state["state"].items() for name, value in entry.items()]  # fmt: skip
    return [found, state["param_groups"]]


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adagrad"])
def test_swapped_in(name: str) -> None:
    results = []
    for library in LIBRARIES:
        params, optimizer = trained(library, name, 0, 2)
        others, donor = trained(library, name, 1, 4)
        donor.param_groups[0]["lr"] = 0.7
        state, groups = donor.state_dict(), optimizer.param_groups
        lists = [group["params"] for group in groups]
        swap = library.optim.swap_in_optimizer_params_and_state
        with swap(optimizer, dict(zip("ab", others, strict=True)), state):
            inside = [group["lr"] for group in optimizer.param_groups]
            descend(optimizer, others)
        assert all(mine is group["params"] for mine, group in zip(lists, groups, strict=True))
        descend(optimizer, params)
        values = [parameter.tolist() for parameter in (*params, *others)]
        results.append((inside, values, tensors_of(state), tensors_of(optimizer.state_dict())))
    ours, theirs = results
    assert ours[0] == theirs[0]
    for mine, their in zip(ours[1], theirs[1], strict=True):
        np.testing.assert_allclose(mine, their, rtol=1e-12)
    for mine, their in zip(ours[2:], theirs[2:], strict=True):
        assert mine[1] == their[1]
        for (*place, value), (*their_place, expected) in zip(mine[0], their[0], strict=True):
            assert place == their_place
            np.testing.assert_allclose(value, expected, rtol=1e-12)


def swap_with(change: Any, steps: int = 1) -> Any:
    """A story that swaps in a changed state dict."""

    def story(library: Any) -> Any:
        params, optimizer = trained(library, "Adam", 0, steps)
        state = optimizer.state_dict()
        named: dict[str, Any] = dict(zip("ab", params, strict=True))
        state = change(library, state, named) or state
        with library.optim.swap_in_optimizer_params_and_state(optimizer, named, state):
            return "swapped"

    return story


def change_group(**options: Any) -> Any:
    return lambda t, state, named: state["param_groups"][1].update(options)


WORDS: dict[str, Any] = {
    "nothing changed": swap_with(lambda t, state, named: None),
    "no state": swap_with(lambda t, state, named: None, steps=0),
    "no dict": swap_with(lambda t, state, named: [1]),
    "state no dict": swap_with(lambda t, state, named: state.update(state=[])),
    "no groups": swap_with(lambda t, state, named: state.pop("param_groups") and None),
    "fewer groups": swap_with(lambda t, state, named: state["param_groups"].pop() and None),
    "state by tensors": swap_with(lambda t, state, named: state.update(state={t.ones(1): {}})),
    "state of numbers": swap_with(lambda t, state, named: state.update(state={0: 1})),
    "state of others": swap_with(lambda t, state, named: state["state"].update({5: {}, "x": 1})),
    "fewer parameters": swap_with(lambda t, state, named: named.pop("b") is None or None),
    "group no dict": swap_with(lambda t, state, named: state.update(param_groups=[1, 2])),
    "names in a group": swap_with(change_group(params=["a"])),
    "more in a group": swap_with(change_group(params=[1, 2])),
    "another option": swap_with(change_group(speed=3)),
    "an option less": swap_with(
        lambda t, state, named: state["param_groups"][0].pop("eps") and None
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_words(name: str) -> None:
    results = []
    for library in LIBRARIES:
        try:
            results.append(WORDS[name](library))
        except Exception as error:
            results.append((type(error).__name__, str(error)))
    assert results[0] == results[1]
