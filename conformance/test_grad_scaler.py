"""GradScaler: random programs of good and overflowing gradients, step by step as PyTorch's.

A program is a list of actions that a seed gives; both libraries run it, and after every action
scale, growth tracker, states of the optimizers, parameters and gradients have to be the same, or
the error.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch as reference

import flambeau
from tests.random_seeds import generator

SEEDS = 1000
STEPS = 12
SIZES = ((3,), (2, 3), (5000,))
EXTREMES = (1.0, 2.0**-20, 2.0**16, 2.0**100, 3e38, 1e-40)
BAD = (float("inf"), float("-inf"), float("nan"), 3.4e38)
Action = tuple[Any, ...]
BY_ACCIDENT = ("AttributeError", "'int' object has no attribute 'device'")
"""Gradients that come after `unscale_` has found none: a fused step of torch trips over its 0."""


def options_of(rng: random.Random) -> dict[str, Any]:
    return {
        "init_scale": rng.choice(EXTREMES),
        "growth_factor": rng.choice((2.0, 1.5, 1.0001, 1e10)),
        "backoff_factor": rng.choice((0.5, 0.3, 0.9, 1e-10)),
        "growth_interval": rng.choice((1, 2, 3, 2000)),
        "enabled": rng.random() > 0.05,
    }


def program_of(rng: random.Random) -> list[Action]:
    """Actions: mostly whole iterations, in between anything at any place."""
    actions: list[Action] = [("optimizers", rng.randrange(len(OPTIMIZERS)))]
    for _ in range(STEPS):
        kind = rng.random()
        which = rng.choice(((0,), (1,), (0, 1)))
        if kind < 0.75:
            for _ in range(rng.choice((1, 1, 2))):  # gradients add up
                bad = rng.choice(BAD) if rng.random() < 0.25 else rng.uniform(0.5, 2)
                actions.append(("backward", rng.randrange(len(SIZES)), bad))
            for one in which:
                if rng.random() < 0.4:
                    actions.append(("unscale_", one))
                    actions += [("clip", one, rng.uniform(0.1, 3))] * (rng.random() < 0.5)
                actions.append(("step", one))
            actions.append(("update",))
            actions += [("zero_grad",)] * (rng.random() < 0.9)
            continue
        actions.append(rng.choice((
            ("unscale_", 0), ("unscale_", 1), ("step", 0), ("step", 1), ("update",),
            ("update", rng.choice((4.0, 1e-3))), ("update to a tensor", 8.0),
            ("update to a wrong tensor",), ("state_dict",), ("reload",), ("scale a list",),
            ("set", "growth_factor", 3.0), ("set", "backoff_factor", 0.25),
            ("set", "growth_interval", 1), ("step with a closure", 0), ("scale nonsense",),
            ("check", 0), ("check", 1), ("share", 0), ("share", 1), ("give", 0, 4.0),
        )))  # fmt: skip
    return actions


OPTIMIZERS: tuple[Any, ...] = (
    lambda o, a, b: (o.SGD(a, lr=0.5, momentum=0.5), o.Adam(b, lr=0.01)),
    lambda o, a, b: (o.SGD(a, lr=0.5, fused=True), o.Adam(b, lr=0.01, fused=True)),
    lambda o, a, b: (o.Adagrad(a, lr=0.5, fused=True), o.AdamW(b, lr=0.01, fused=True)),
    lambda o, a, b: (o.Adam(a, lr=0.5, fused=True, amsgrad=True), o.SGD(b, lr=0.01, nesterov=True,
                                                                     momentum=0.5)),
)  # fmt: skip
"""Fused ones divide their gradients themselves. (A fused SGD with momentum that skips its first
step starts from uninitialised memory in torch.)"""


class World:
    """One library's parameters, optimizers and scaler."""

    def __init__(self, library: Any, options: dict[str, Any]) -> None:
        self.library = library
        self.options = options
        numbers = (library.arange(1, 1 + reference.Size(s).numel()).float() for s in SIZES)
        self.weights = [
            (n.reshape(s) / 1000).requires_grad_() for n, s in zip(numbers, SIZES, strict=True)
        ]
        self.scaler = library.amp.GradScaler("cpu", **options)

    def do(self, action: Action) -> Any:
        """What an action gives, or its error."""
        name, *args = action
        try:
            return getattr(self, name.replace(" ", "_"))(*args)
        except (RuntimeError, AssertionError, ValueError, AttributeError) as error:
            return type(error).__name__, str(error)

    def optimizers(self, which: int) -> None:
        made = OPTIMIZERS[which](self.library.optim, self.weights[:2], self.weights[2:])
        self.optimizers = list(made)  # type: ignore[assignment,method-assign]

    def check(self, which: int) -> Any:
        return [
            v.item() for v in self.scaler._check_inf_per_device(self.optimizers[which]).values()
        ]

    def share(self, which: int) -> Any:
        """A step by hand, as scalers for distributed training make it."""
        optimizer = self.optimizers[which]
        state = self.scaler._per_optimizer_states[id(optimizer)]
        return self.scaler._maybe_opt_step(optimizer, state)

    def give(self, which: int, scale: float) -> None:
        """Gradients that were multiplied by a further scale."""
        if self.options["enabled"] and hasattr(
            self.optimizers[which], "_step_supports_amp_scaling"
        ):
            self.optimizers[which].grad_scale = self.library.tensor(scale)

    def backward(self, which: int, factor: float) -> None:
        self.scaler.scale((self.weights[which] * factor).sum()).backward()

    def clip(self, which: int, norm: float) -> float:
        own = [p for g in self.optimizers[which].param_groups for p in g["params"]]
        return self.library.nn.utils.clip_grad_norm_(own, norm).item()  # type: ignore[no-any-return]

    def unscale_(self, which: int) -> Any:
        return self.scaler.unscale_(self.optimizers[which])

    def step(self, which: int) -> Any:
        return self.scaler.step(self.optimizers[which])

    def step_with_a_closure(self, which: int) -> Any:
        return self.scaler.step(self.optimizers[which], closure=lambda: None)

    def update(self, *scale: float) -> None:
        self.scaler.update(*scale)

    def update_to_a_tensor(self, scale: float) -> None:
        self.scaler.update(self.library.tensor(scale))

    def update_to_a_wrong_tensor(self) -> None:
        self.scaler.update(self.library.ones(2))

    def zero_grad(self) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def set(self, what: str, value: float) -> None:
        getattr(self.scaler, f"set_{what}")(value)

    def state_dict(self) -> Any:
        return self.scaler.state_dict()

    def reload(self) -> None:
        state = self.scaler.state_dict()
        self.scaler = self.library.amp.GradScaler("cpu", **self.options)
        self.scaler.load_state_dict(state)

    def scale_a_list(self) -> Any:
        ones = self.library.ones
        one, (two, three) = self.scaler.scale([ones(1), (ones(1), ones(2))])
        return one.tolist(), two.tolist(), three.tolist()

    def scale_nonsense(self) -> None:
        self.scaler.scale(3)

    def look(self) -> list[Any]:
        """All that there is to compare."""
        scaler = self.scaler
        states = []
        for optimizer in self.optimizers if self.options["enabled"] else []:
            state = scaler._per_optimizer_states[id(optimizer)]
            found = [value.item() for value in state["found_inf_per_device"].values()]
            states.append((state["stage"].name, found))
        grads = [None if w.grad is None else w.grad.flatten()[-3:].tolist() for w in self.weights]
        values = [w.detach().flatten()[-3:].tolist() for w in self.weights]
        return [scaler.get_scale(), scaler._get_growth_tracker(), states, grads, values]


def same(mine: Any, theirs: Any) -> bool:
    """Equal, numbers to five digits (norms of 5000 float32 numbers have no more), nan like nan."""
    if isinstance(mine, float) and isinstance(theirs, float):
        if mine != mine or theirs != theirs:
            return mine != mine and theirs != theirs
        return mine == theirs or abs(mine - theirs) <= 1e-5 * abs(theirs) + 1e-44
    if isinstance(mine, (list, tuple)):
        return len(mine) == len(theirs) and all(map(same, mine, theirs))
    if isinstance(mine, dict):
        return list(mine) == list(theirs) and all(same(mine[k], theirs[k]) for k in mine)
    return bool(mine == theirs)


@pytest.mark.parametrize("block", range(20))
def test_random_programs(block: int) -> None:
    count = SEEDS // 20
    for seed in range(block * count, (block + 1) * count):
        rng = generator(seed)
        options, actions = options_of(rng), program_of(rng)
        mine, theirs = World(flambeau, options), World(reference, options)
        for position, action in enumerate(actions):
            context = (seed, position, action, options)
            found, wanted = mine.do(action), theirs.do(action)
            if wanted == BY_ACCIDENT:
                break
            assert same(found, wanted), (context, found, wanted)
            mine_now, theirs_now = mine.look(), theirs.look()
            assert mine_now[:3] == theirs_now[:3], (context, mine_now, theirs_now)
            assert same(mine_now, theirs_now), (context, mine_now, theirs_now)


def test_sparse_gradients() -> None:
    def outcome(library: Any, bad: float) -> Any:
        table = library.nn.Embedding(5, 2, sparse=True)
        with library.no_grad():
            table.weight.fill_(1.0)
        optimizer = library.optim.SGD(table.parameters(), lr=0.5)
        scaler = library.amp.GradScaler("cpu", init_scale=4.0)
        scaler.scale((table(library.tensor([1, 1, 3])) * bad).sum()).backward()
        scaler.unscale_(optimizer)
        grad = table.weight.grad.to_dense().tolist()
        scaler.step(optimizer)
        scaler.update()
        return grad, table.weight.tolist(), scaler.get_scale()

    for bad in (1.0, float("inf"), float("nan")):
        assert same(outcome(flambeau, bad), outcome(reference, bad))


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_gradients_of_other_types(dtype: str) -> None:
    def outcome(library: Any, bad: float) -> Any:
        weight = library.ones(9000, dtype=getattr(library, dtype)).requires_grad_()
        optimizer = library.optim.SGD([weight], lr=0.5)
        scaler = library.amp.GradScaler("cpu", init_scale=8.0)
        scaler.scale((weight[:7] * bad).sum()).backward()
        try:
            scaler.unscale_(optimizer)
        except ValueError as error:
            return str(error)
        grad = weight.grad[5:9].tolist()
        scaler.step(optimizer)
        scaler.update()
        return grad, weight[5:9].tolist(), scaler.get_scale()

    for bad in (1.0, float("-inf"), float("nan")):
        assert same(outcome(flambeau, bad), outcome(reference, bad))
