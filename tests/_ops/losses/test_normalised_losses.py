"""Softmax, cross-entropy, CTC, norms, dropout and attention against independent formulas."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import flambeau as torch
import flambeau.nn.functional as F


def leaf(values: Any) -> Any:
    tensor = torch.tensor(values, dtype=torch.float64)
    tensor.requires_grad = True
    return tensor


def test_softmax_of_large_and_infinite_scores() -> None:
    scores = torch.tensor([[1e4, 1e4, -1e4], [-math.inf, 0.0, 0.0]])
    assert torch.softmax(scores, 1).tolist() == [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    assert F.log_softmax(scores, 1)[0, 0].item() == pytest.approx(-math.log(2))


def test_cross_entropy_keeps_digits_of_large_scores() -> None:
    scores = leaf([[1e6, 1e6 + 1.0]])
    loss = F.cross_entropy(scores, torch.tensor([0]))
    loss.backward()
    assert loss.item() == pytest.approx(math.log(1 + math.e), rel=1e-9)
    share = math.e / (1 + math.e)
    assert scores.grad.tolist()[0] == pytest.approx([-share, share], rel=1e-9)


def test_ignored_targets_do_not_count_even_where_scores_are_infinite() -> None:
    scores = leaf([[0.0, 0.0], [math.inf, -math.inf]])
    loss = F.cross_entropy(scores, torch.tensor([1, -100]))
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert scores.grad[1].tolist() == [0.0, 0.0]


def test_target_out_of_bounds_is_named() -> None:
    with pytest.raises(IndexError, match="Target -1 is out of bounds"):
        F.nll_loss(torch.zeros(2, 3), torch.tensor([0, -1]))


def collapse(path: tuple[int, ...]) -> list[int]:
    return [label for label, _ in itertools.groupby(path) if label != 0]


def test_ctc_is_the_sum_over_all_alignments() -> None:
    steps, classes, target = 4, 3, [1, 1]
    probabilities = np.random.default_rng(0).dirichlet(np.ones(classes), steps)
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        if collapse(path) == target:
            total += math.prod(probabilities[t, label] for t, label in enumerate(path))
    log_probs = torch.from_numpy(np.log(probabilities)[:, None])
    loss = F.ctc_loss(log_probs, torch.tensor([target]), (steps,), (2,), reduction="sum")
    assert loss.item() == pytest.approx(-math.log(total), rel=1e-12)


def test_batch_norm_keeps_the_unbiased_variance() -> None:
    data = torch.tensor([[1.0], [3.0], [5.0]])
    mean, variance = torch.zeros(1), torch.ones(1)
    result = F.batch_norm(data, mean, variance, training=True, momentum=0.5, eps=0.5)
    assert mean.item() == 1.5
    assert variance.item() == 0.5 + 0.5 * 4
    assert result.tolist()[2][0] == pytest.approx(2 / math.sqrt(8 / 3 + 0.5))


@pytest.mark.parametrize("norm", [
    lambda x: F.layer_norm(x, (4,)),
    lambda x: F.batch_norm(x, None, None, training=True),
    lambda x: F.group_norm(x, 2),
    lambda x: torch.softmax(x, 1),
    lambda x: F.cross_entropy(x, torch.tensor([0, 3, 1])),
])  # fmt: skip
def test_second_derivatives_agree_with_differences(norm: Any) -> None:
    values = np.random.default_rng(1).normal(size=(3, 4))
    weights = torch.from_numpy(np.random.default_rng(2).normal(size=(3, 4)))

    def slope(data: np.ndarray) -> Any:
        x = leaf(data.tolist())
        total = (norm(x) ** 2).sum()
        return x, torch.autograd.grad(total, x, create_graph=True)[0]

    x, first = slope(values)
    (second,) = torch.autograd.grad((first * weights).sum(), x)
    step = np.zeros_like(values)
    step[1, 2] = 1e-5
    ahead, behind = slope(values + step)[1], slope(values - step)[1]
    numeric = ((ahead - behind) * weights).sum().item() / 2e-5
    assert second[1, 2].item() == pytest.approx(numeric, rel=1e-5, abs=1e-7)


def test_dropout_draws_the_stream_of_bernoulli() -> None:
    torch.manual_seed(3)
    dropped = F.dropout(torch.ones(50), 0.25)
    torch.manual_seed(3)
    noise = torch.empty(50).bernoulli_(0.75)
    assert torch.equal(dropped, noise / 0.75)


def test_attention_of_a_row_without_keys_is_zero() -> None:
    mask = torch.tensor([[True, True], [False, False]])
    query, key, value = (leaf(np.ones((1, 1, 2, 3)).tolist()) for _ in range(3))
    result = F.scaled_dot_product_attention(query, key, value, mask)
    result.sum().backward()
    assert result[0, 0].tolist() == [[1.0] * 3, [0.0] * 3]
    assert not query.grad.isnan().any()
