"""The fast path of attention layers for inference: what it changes, and when it is taken."""

from __future__ import annotations

import math
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn

LENGTHS = (4, 2)


def encoder() -> Any:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
    return nn.TransformerEncoder(layer, 2).eval()


def padding() -> Any:
    return torch.arange(4) >= torch.tensor(LENGTHS).unsqueeze(1)


def test_padded_positions_are_zeros() -> None:
    """Valid positions are those of the same encoder with gradients, which takes the long way."""
    model, x = encoder(), torch.randn(2, 4, 8)
    slow = model(x, src_key_padding_mask=padding())
    with torch.no_grad():
        fast = model(x, src_key_padding_mask=padding())
    for row, length in enumerate(LENGTHS):
        torch.testing.assert_close(fast[row, :length], slow[row, :length].detach())
        assert not fast[row, length:].any()
    assert slow[1, 2:].any()


def test_scripted_and_eager_agree() -> None:
    model, x = encoder(), torch.randn(2, 4, 8)
    scripted = torch.jit.script(model)
    with torch.no_grad():
        for mask in (None, padding()):
            torch.testing.assert_close(
                scripted(x, src_key_padding_mask=mask), model(x, src_key_padding_mask=mask)
            )


@pytest.mark.parametrize("switched", [True, False])
def test_a_query_that_may_look_nowhere(switched: bool) -> None:
    """The fast path gives nan, the long way zeros before the last projection."""
    attention = nn.MultiheadAttention(4, 2, batch_first=True).eval()
    x = torch.randn(1, 2, 4)
    mask = torch.tensor([[True, True], [False, True]])
    torch.backends.mha.set_fastpath_enabled(switched)
    try:
        with torch.no_grad():
            result, _ = attention(x, x, x, attn_mask=mask, need_weights=False)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    assert math.isnan(result[0, 0, 0]) is switched
    assert not result[0, 1].isnan().any()


def test_hooks_within_a_layer_are_called() -> None:
    """A layer with hooks inside goes the long way."""
    model, seen = encoder(), []
    model.layers[0].linear1.register_forward_hook(lambda *_: seen.append(1))
    with torch.no_grad():
        model(torch.randn(2, 4, 8))
    assert seen == [1]
