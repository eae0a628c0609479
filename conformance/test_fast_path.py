"""Attention layers in eval mode without gradients, where PyTorch takes its fast path for inference:
eager and scripted layers give what PyTorch's give, with all kinds of masks.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

import flambeau

from .module_samples import assert_near

LENGTHS = np.array([5, 3, 0])
PADDINGS = {
    "none": None,
    "behind": np.arange(5) >= LENGTHS[:, None],
    "gaps": np.array([[0, 1, 0, 0, 1], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]], bool),
}
MASKS = {
    "none": None,
    "causal": np.triu(np.ones((5, 5), bool), 1),
    "infinite": np.triu(np.full((5, 5), -np.inf, np.float32), 1),
    "numbers": np.where(np.eye(5) > 0, 0, 1.5).astype(np.float32),
}


@pytest.fixture(autouse=True)
def _quiet():
    """Both warn of masks of different types; torch of nested tensors and of TorchScript."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def both(make: Any) -> tuple[Any, Any]:
    """A layer of both libraries with the same parameters, in eval mode."""
    theirs, mine = make(torch.nn).eval(), make(flambeau.nn).eval()
    state = {k: flambeau.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()}
    mine.load_state_dict(state)
    return theirs, mine


def called(library: Any, layer: Any, grad: bool, *arrays: Any, **options: Any) -> Any:
    """What a layer gives for arrays, or the last line of its error."""
    given = {k: library.from_numpy(v) if isinstance(v, np.ndarray) else v
             for k, v in options.items()}  # fmt: skip
    first = library.from_numpy(arrays[0])
    with library.set_grad_enabled(grad):
        try:
            return layer(*[first] * len(arrays), **given)
        except (AssertionError, RuntimeError, torch.jit.Error) as error:
            return str(error).strip().splitlines()[-1].removeprefix("RuntimeError: ")


def compare(layers: tuple[Any, Any], x: Any, grad: bool, *, times: int = 1, **options: Any) -> None:
    """Call both and compare values and strides."""
    expected = called(torch, layers[0], grad, *[x] * times, **options)
    found = called(flambeau, layers[1], grad, *[x] * times, **options)
    if isinstance(expected, str):
        assert found == expected
        return
    assert_near(found, expected, 1e-5)
    pairs = [(found, expected)] if times == 1 else zip(found, expected, strict=True)
    for one, other in pairs:
        assert one is None or one.stride() == other.stride()


def encoder(nn: Any, norm_first: bool, activation: str, layers: int = 2) -> Any:
    layer = nn.TransformerEncoderLayer(
        8, 2, 12, batch_first=True, norm_first=norm_first, activation=activation
    )
    return nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(8))


@pytest.mark.parametrize(
    ("norm_first", "activation", "grad", "scripted"),
    [(False, "relu", False, False), (True, "gelu", False, False), (False, "gelu", True, False),
     (False, "relu", False, True), (False, "gelu", True, True)],
)  # fmt: skip
def test_encoder(norm_first, activation, grad, scripted):
    """Padded positions are zeros in the end; numbers in masks block."""
    layers = both(lambda nn: encoder(nn, norm_first, activation, 1 if scripted else 2))
    if scripted:
        layers = torch.jit.script(layers[0]), flambeau.jit.script(layers[1])
    x = np.random.default_rng(1).normal(size=(3, 5, 8)).astype(np.float32)
    for padding in PADDINGS.values():
        for mask in MASKS.values():
            compare(layers, x, grad, mask=mask, src_key_padding_mask=padding)


@pytest.mark.parametrize("scripted", [False, True])
def test_attention(scripted):
    """Weights are given by head or averaged, or not at all: as an undefined tensor in torch's
    scripts, which then fail, so that these are left out.
    """
    wanted = [(True, True), (True, False), (False, True)][: 2 if scripted else 3]
    layers = both(lambda nn: nn.MultiheadAttention(8, 2, batch_first=True))
    if scripted:
        layers = torch.jit.script(layers[0]), flambeau.jit.script(layers[1])
    x = np.random.default_rng(2).normal(size=(3, 5, 8)).astype(np.float32)
    for padding in PADDINGS.values():
        for mask in MASKS.values():
            for need, average in wanted:
                compare(layers, x, False, times=3, attn_mask=mask, key_padding_mask=padding,
                        need_weights=need, average_attn_weights=average)  # fmt: skip


def test_what_only_the_fast_path_takes():
    """In PyTorch, a layer that leaves the fast path cannot take what has been packed for it. Here
    nothing is packed, and scripts compute what the module does."""
    layers = both(lambda nn: encoder(nn, False, "relu"))
    for layer in layers:
        layer.layers[0].requires_grad_(False)  # the second one wants gradients
    scripts = torch.jit.script(layers[0]), flambeau.jit.script(layers[1])
    x = np.random.default_rng(3).normal(size=(3, 5, 8)).astype(np.float32)
    padding = {"src_key_padding_mask": np.arange(5) >= np.array([[5], [3], [1]])}
    assert "does not support NestedTensor" in called(torch, scripts[0], True, x, **padding)
    found = [called(flambeau, one, True, x, **padding) for one in (layers[1], scripts[1])]
    assert flambeau.equal(*found)


def test_switch():
    """The fast path can be forbidden."""
    layers = both(lambda nn: encoder(nn, False, "relu"))
    x = np.random.default_rng(4).normal(size=(3, 5, 8)).astype(np.float32)
    mhas = torch.backends.mha, flambeau.backends.mha
    try:
        for mha in mhas:
            mha.set_fastpath_enabled(False)
            assert not mha.get_fastpath_enabled()
        compare(layers, x, False, src_key_padding_mask=PADDINGS["behind"])
    finally:
        for mha in mhas:
            mha.set_fastpath_enabled(True)


@pytest.mark.parametrize("options", [{"norm_first": True}, {"bias": False}, {"batch_first": False},
                                     {"nhead": 3}, {"activation": torch.tanh}])  # fmt: skip
def test_reasons_are_told(options):
    """Why an encoder packs nothing is said when it is made."""
    texts = []
    for library in (torch, flambeau):
        given = {"nhead": 2, "batch_first": True, **options}
        if "activation" in given:
            given["activation"] = library.tanh
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            library.nn.TransformerEncoder(library.nn.TransformerEncoderLayer(6, **given), 1)
        texts.append([str(w.message) for w in caught])
    assert texts[0] == texts[1]
