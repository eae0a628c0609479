"""Random index expressions against torch: values, shapes, strides, gradients, aliasing, errors."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

import flambeau
from tests.random_seeds import generator

SHAPES = [(5,), (3, 4), (2, 3, 4), (4, 1, 3), (1, 3), (2, 3, 2, 2), (), (3, 1, 1, 2)]
ROUNDS = 400
DOTS = ("plain", ...)


class Library:
    """Makes one library's tensors and indices from the same recipe."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def tensor(self, array: np.ndarray) -> Any:
        return self.module.tensor(array)

    def source(self, shape: tuple[int, ...], order: list[int], requires_grad: bool) -> Any:
        """A tensor of running numbers, its dims permuted in memory."""
        moved = [shape[dim] for dim in order]
        count = int(np.prod(shape, dtype=int))
        data = np.arange(count, dtype=np.float64).reshape(moved)
        leaf = self.module.tensor(data)
        leaf.requires_grad = requires_grad
        inverse = [order.index(dim) for dim in range(len(shape))]
        return leaf, leaf.permute(inverse)

    def item(self, recipe: Any) -> Any:
        kind, value = recipe
        if kind == "tensor":
            return self.tensor(value)
        return value


def random_item(rng: random.Random, shape: tuple[int, ...]) -> Any:
    size = rng.choice(shape) if shape else 1
    kind = rng.choice(["int", "int", "slice", "slice", "none", "dots", "list", "tensor", "tensor",
                       "mask", "bool", "mask2", "zero_dim", "int32"])  # fmt: skip
    if kind == "int":
        return ("plain", rng.randint(-size, size - (rng.random() < 0.9)))
    if kind == "slice":
        ends = [None, *range(-size - 1, size + 2)]
        return ("plain", slice(rng.choice(ends), rng.choice(ends), rng.choice([None, 1, 2, 3])))
    if kind in ("none", "dots", "bool"):
        return ("plain", {"none": None, "dots": ..., "bool": rng.random() < 0.7}[kind])
    if kind == "list":
        return ("plain", [rng.randint(-size, size - 1) for _ in range(rng.randint(0, 3))])
    return ("tensor", _random_array(rng, kind, size, shape))


def _random_array(rng: random.Random, kind: str, size: int, shape: tuple[int, ...]) -> np.ndarray:
    numbers = np.random.RandomState(rng.randint(0, 10**6))
    if kind == "mask":
        return numbers.rand(size) < 0.6
    if kind == "mask2":
        start = rng.randint(0, max(len(shape) - 2, 0))
        return numbers.rand(*shape[start : start + 2]) < 0.6
    if kind == "zero_dim":
        return np.array(numbers.randint(-size, size))
    form = rng.choice([(2,), (1,), (3,), (2, 1), (1, 2), (2, 2), (0,), (1, 3)])
    high = size + (rng.random() < 0.05)
    return numbers.randint(-size, high, form).astype(np.int32 if kind == "int32" else np.int64)


def outcome(action: Any) -> Any:
    try:
        return action()
    except Exception as error:
        return (type(error).__name__, str(error).split("\n")[0])


def described(result: Any) -> Any:
    if isinstance(result, tuple):
        return result
    strides = result.stride() if result.numel() else None
    return (tuple(result.shape), strides, result.tolist(), str(result.dtype))


def random_case(seed: int) -> Any:
    rng = generator(seed)
    shape = rng.choice(SHAPES)
    order = list(range(len(shape)))
    if rng.random() < 0.5:
        rng.shuffle(order)
    items = [random_item(rng, shape) for _ in range(rng.randint(1, max(len(shape), 1) + 1))]
    while items.count(DOTS) > 1:
        items.remove(DOTS)
    single = len(items) == 1 and rng.random() < 0.5
    return rng, shape, order, items, single


def index_of(library: Library, items: list[Any], single: bool) -> Any:
    made = tuple(library.item(item) for item in items)
    return made[0] if single else made


@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize("grad", [False, True])
def test_reading(block: int, grad: bool) -> None:
    for seed in range(block * ROUNDS, (block + 1) * ROUNDS):
        _, shape, order, items, single = random_case(seed)
        seen = []
        for module in (torch, flambeau):
            library = Library(module)
            leaf, source = library.source(shape, order, grad)
            index = index_of(library, items, single)
            result = outcome(lambda source=source, index=index: source[index])
            facts = [described(result)]
            if not isinstance(result, tuple):
                facts.append(result.data_ptr() - leaf.data_ptr() == 0 or result._base is not None)
                if grad:
                    facts += _gradient(leaf, result)
            seen.append(facts)
        assert seen[0] == seen[1], (seen, seed, shape, order, items, single)


def _gradient(leaf: Any, result: Any) -> list[Any]:
    names = []
    node = result.grad_fn
    while node is not None and node.next_functions:
        names.append(node.name())
        node = node.next_functions[0][0]
    (result * result).sum().backward()
    return [names, leaf.grad.tolist()]


@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize("grad", [False, True])
def test_writing(block: int, grad: bool) -> None:
    for seed in range(block * ROUNDS, (block + 1) * ROUNDS):
        rng, shape, order, items, single = random_case(seed)
        recipe = rng.choice(["number", "scalar", "full", "broken", "ones", "double"])
        seen = []
        for module in (torch, flambeau):
            library = Library(module)
            leaf, source = library.source(shape, order, grad)
            target = source * 1
            index = index_of(library, items, single)
            part = outcome(lambda target=target, index=index: target.detach()[index])
            value = _value(library, recipe, part)
            result = outcome(lambda t=target, i=index, v=value: t.__setitem__(i, v) or t)
            facts = [result if isinstance(result, tuple) else None, target._version]
            if result is target:
                facts.append(target.tolist())
            elif module is flambeau:  # torch may have written a part of the values
                assert target.tolist() == source.tolist()
            if grad and not isinstance(result, tuple):
                (target * target).sum().backward()
                facts.append(leaf.grad.tolist())
            seen.append(facts)
        assert seen[0] == seen[1], (seen, seed, shape, order, items, single, recipe)


def _value(library: Library, recipe: str, part: Any) -> Any:
    if recipe == "number" or isinstance(part, tuple):
        return 7
    shape = tuple(part.shape)
    forms = {"scalar": (), "full": shape, "broken": (*shape, 2), "ones": (1, *shape[-1:]),
             "double": shape[1:]}  # fmt: skip
    count = int(np.prod(forms[recipe], dtype=int))
    return library.tensor(-1.0 - np.arange(count, dtype=np.float64).reshape(forms[recipe]))
