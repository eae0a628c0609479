"""Algorithms: clustering, roots, cellular automata, paths, sorting."""

from typing import Dict, List, Tuple

import torch
from torch import Tensor


def kmeans(points: Tensor, k: int, most: int = 20) -> Tuple[Tensor, Tensor, int]:
    centres = points[:k].clone()
    labels = torch.zeros(points.size(0), dtype=torch.long)
    for step in range(most):
        distances = torch.cdist(points, centres)
        new_labels = distances.argmin(1)
        if step > 0 and torch.equal(new_labels, labels):
            return centres, labels, step
        labels = new_labels
        for c in range(k):
            chosen = points[labels == c]
            if chosen.size(0) > 0:
                centres[c] = chosen.mean(0).detach()
    return centres, labels, most


def newton(c: Tensor, start: float = 1.0, tolerance: float = 1e-6) -> Tuple[Tensor, int]:
    """Roots of x^3 = c; the gradient goes through all steps."""
    x = torch.full_like(c, start)
    steps = 0
    while steps < 50:
        update = (x**3 - c) / (3 * x**2)
        x = x - update
        steps += 1
        if update.abs().max().item() < tolerance:
            break
    return x, steps


def life(board: Tensor, steps: int) -> Tensor:
    for _ in range(steps):
        neighbours = torch.zeros_like(board)
        for di in range(-1, 2):
            for dj in range(-1, 2):
                if di != 0 or dj != 0:
                    neighbours += torch.roll(board, [di, dj], [0, 1])
        board = ((neighbours == 3) | ((board == 1) & (neighbours == 2))).to(board.dtype)
    return board


def shortest_paths(edges: List[Tuple[str, str, float]], start: str) -> Dict[str, float]:
    """Bellman and Ford."""
    distance: Dict[str, float] = {start: 0.0}
    for _ in range(len(edges)):
        changed = False
        for source, target, length in edges:
            if source not in distance:
                continue
            through = distance[source] + length
            if target not in distance or through < distance[target]:
                distance[target] = through
                changed = True
        if not changed:
            break
    return distance


def bubble_sort(values: List[float]) -> Tuple[List[float], int]:
    swaps = 0
    n = len(values)
    while n > 1:
        last = 0
        for i in range(1, n):
            if values[i - 1] > values[i]:
                values[i - 1], values[i] = values[i], values[i - 1]
                swaps += 1
                last = i
        n = last
    return values, swaps


def edit_distance(a: str, b: str) -> int:
    row = [j for j in range(len(b) + 1)]
    for i in range(len(a)):
        new_row = [i + 1]
        for j in range(len(b)):
            change = row[j] + (0 if a[i] == b[j] else 1)
            new_row.append(min(change, min(row[j + 1], new_row[j]) + 1))
        row = new_row
    return row[-1]


def batch_gather(tensor: Tensor, indices: Tensor) -> Tensor:
    output = []
    for i in range(tensor.size(0)):
        output += [tensor[i][indices[i]]]
    return torch.stack(output)


def running_mean(x: Tensor, decay: float) -> Tensor:
    """A loop whose steps depend on one another."""
    state = torch.zeros(x.size(1))
    out: List[Tensor] = []
    for row in x.unbind(0):
        state = decay * state + (1 - decay) * row
        out.append(state)
    return torch.stack(out)


def gradient_descent(a: Tensor, b: Tensor, steps: int, rate: float) -> Tuple[Tensor, List[float]]:
    x = torch.zeros(a.size(1))
    errors: List[float] = []
    for i in range(steps):
        residual = a @ x - b
        errors.append(float(residual.pow(2).sum()))
        x = x - rate * (a.t() @ residual)
    return x, errors


PROGRAMS = {
    "kmeans": (kmeans, [(torch.randn(20, 2), 3), (torch.randn(5, 2), 2, 1)]),
    "newton": (newton, [(torch.tensor([8.0, 27.0]),), (torch.tensor([2.0]), 0.5, 1e-3)]),
    "life": (life, [(torch.tensor([[0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [1, 1, 1, 0, 0], [0] * 5, [0] * 5]), n) for n in (0, 4)]),
    "shortest_paths": (
        shortest_paths,
        [([("a", "b", 2.0), ("b", "c", -1.0), ("a", "c", 5.0)], "a"), ([("b", "c", 1.0)], "z")],
    ),
    "bubble_sort": (bubble_sort, [([3.0, 1.0, 2.0],), ([],)]),
    "edit_distance": (edit_distance, [("kitten", "sitting"), ("", "ab"), ("same", "same")]),
    "batch_gather": (batch_gather, [(torch.randn(4, 5, 2), torch.randint(0, 5, (4, 3)))]),
    "running_mean": (running_mean, [(torch.randn(6, 2), 0.5)]),
    "gradient_descent": (gradient_descent, [(torch.randn(4, 2), torch.randn(4), 5, 0.1)]),
}
