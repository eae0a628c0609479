"""Loops over everything that can be looped over."""

from typing import Dict, List, Tuple

import torch
from torch import Tensor, nn


def ranges(n: int, step: int) -> List[int]:
    seen: List[int] = []
    for i in range(n):
        seen.append(i)
    for i in range(n, 2 * n, 2):
        seen.append(i)
    for i in range(2 * n, n, step):
        seen.append(i)
    return seen


def pairs(names: List[str], x: Tensor, weights: List[float]) -> Tuple[Dict[str, Tensor], Tensor]:
    """zip, enumerate, and a tensor's rows."""
    parts: Dict[str, Tensor] = {}
    total = torch.zeros(x.size(1))
    for i, (name, weight) in enumerate(zip(names, weights)):
        parts[name] = x[i] * weight
    for row, weight in zip(x, weights):
        total = total + row * weight
    for i, row in enumerate(x, 1):
        total = total - row / i
    return parts, total


def backwards(values: List[int], x: Tensor) -> Tuple[List[int], Tensor]:
    out: List[int] = []
    values.reverse()
    for i, v in enumerate(values[::-1]):
        out.append(i * v)
    y = x
    for i in range(len(values) - 1, -1, -1):
        y = torch.cat([y[1:], y[:1]]) * values[i]
    return out, y


def over_dictionaries(table: Dict[str, int]) -> Tuple[str, int, List[str], List[int]]:
    words = ""
    total = 0
    for key in table:
        words += key
    for key, value in table.items():
        total += value * len(key)
    for value in table.values():
        total -= value
    for key in table.keys():
        words += "-" + key
    return words, total, list(table.keys()), list(table.values())


def over_tuples(point: Tuple[int, float, str], x: Tensor) -> Tuple[Tensor, str]:
    text = ""
    for part in point:
        text += str(part) + ";"
    for a, b in ((1, 2), (3, 4)):
        x = x * a + b
    for letter in "abc":
        text += letter + "."
    return x, text


class Tower(nn.Module):
    """Loops over lists and dictionaries of modules are unrolled."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.heads = nn.ModuleDict({"mean": nn.Linear(3, 1), "scale": nn.Linear(3, 1)})
        self.chain = nn.Sequential(nn.Linear(3, 3), nn.Tanh())

    def forward(self, x: Tensor) -> Tuple[Tensor, Dict[str, Tensor], int]:
        count = 0
        for i, layer in enumerate(self.layers):
            x = torch.relu(layer(x)) + i
        for layer, other in zip(self.layers, (1, 2, 3)):
            x = layer(x) * other
        for layer in self.chain:
            x = layer(x)
            count += 1
        results: Dict[str, Tensor] = {}
        for name, head in self.heads.items():
            results[name] = head(x)
        for name in self.heads.keys():
            count += len(name)
        for head in self.heads.values():
            x = x + head(x)
        first: Tensor = self.layers[0](x)
        return first + self.layers[-1](x), results, count + len(self.layers)


PROGRAMS = {
    "ranges": (ranges, [(0, -1), (5, -2), (4, 3)]),
    "pairs": (
        pairs,
        [
            (["a", "b"], torch.arange(6.0).reshape(2, 3), [0.5, 2.0]),
            (["c", "d"], torch.ones(2, 1), [1.0, 2.0, 3.0]),
        ],
    ),
    "backwards": (backwards, [([3, 1, 2], torch.arange(4.0)), ([], torch.ones(1))]),
    "over_dictionaries": (over_dictionaries, [({"one": 1, "three": 3},), ({"z": 1, "a": 2, "m": 3},)]),
    "over_tuples": (over_tuples, [((1, 2.5, "x"), torch.ones(2))]),
    "tower": (Tower, [(torch.randn(2, 3),), (torch.randn(3),)]),
}
