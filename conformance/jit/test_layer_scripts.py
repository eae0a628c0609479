"""Recurrent layers, cells, attention and transformers in scripts: both kinds of input, with and
without states and masks, in both modes; right and wrong. Compared: our script and PyTorch's, and
our archive in PyTorch.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .both import LIBRARIES, entered, load

Arrays = list[np.ndarray]
PROGRAMS = Path(__file__).with_name("layer_holders.py")
RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


STEPS, STATE = floats(5, 2, 3), floats(1, 2, 4)
RECURRENT = {
    "batch": (STEPS,), "one sequence": (STEPS[:, 0],), "state": (STEPS, STATE),
    "one with state": (STEPS[:, 0], STATE[:, 0]), "four dims": (STEPS[None],),
    "state of one": (STEPS, STATE[:, 0]), "batch of states": (STEPS[:, 0], STATE),
    "state of three": (STEPS, floats(1, 3, 4)), "features": (STEPS[..., :2],),
}  # fmt: skip
ROWS, HIDDEN = floats(2, 3), floats(2, 4)
CELLS = {
    "batch": (ROWS,), "one": (ROWS[0],), "state": (ROWS, HIDDEN), "one state": (ROWS[0], HIDDEN[0]),
    "features": (ROWS[:, :2],), "states": (ROWS, floats(3, 4)), "size": (ROWS, floats(2, 3)),
    "one of many": (ROWS[0], HIDDEN), "many of one": (ROWS, HIDDEN[0]), "three dims": (ROWS[None],),
}  # fmt: skip
KINDS = [
    pytest.param(name, samples, options, id=f"{name} {options}")
    for names, samples in ((("RNN", "GRU", "LSTM"), RECURRENT),
                           (("RNNCell", "GRUCell", "LSTMCell"), CELLS))
    for name in names
    for options in ({}, {"bias": False})
]  # fmt: skip


def made(library: str, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A layer whose parameters are the same in both libraries."""
    torch = LIBRARIES[library]
    layer = getattr(torch.nn, name)(*arguments, **options)
    values = np.random.default_rng(1)
    with torch.no_grad():
        for parameter in layer.parameters():
            drawn = 0.3 * values.standard_normal(tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(drawn.astype(np.float32)))
    return layer


def outcome(module: Any, library: str, inputs: Any, options: dict[str, Any]) -> Arrays | str:
    """The results of a call, or why it has none."""
    torch = LIBRARIES[library]
    turned = [with_tensors(value, torch) for value in inputs]
    named = {name: with_tensors(value, torch) for name, value in options.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(leaves(module(*turned, **named)))
    except Exception as error:  # noqa: BLE001
        return str(error).strip().splitlines()[-1].replace("builtins.", "")


def with_tensors(value: Any, torch: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(with_tensors(part, torch) for part in value)
    return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value


def leaves(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, tuple):
        for part in value:
            yield from leaves(part)
    elif value is not None:
        yield value.detach().numpy()


def scripted(library: str, module: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LIBRARIES[library].jit.script(module)


def assert_same(found: Arrays | str, wanted: Arrays | str) -> None:
    if isinstance(wanted, str) or isinstance(found, str):
        assert found == wanted
        return
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-5)


def compiled(modules: dict[str, Any]) -> list[tuple[Any, str]]:
    """PyTorch's script of a module, ours, and our archive in PyTorch; with the library of each."""
    theirs, ours = (scripted(library, modules[library]) for library in ("torch", "flambeau"))
    archive = io.BytesIO()
    LIBRARIES["flambeau"].jit.save(ours, archive)
    archive.seek(0)
    return [(theirs, "torch"), (ours, "flambeau"), (LIBRARIES["torch"].jit.load(archive), "torch")]


def check(scripts: list[tuple[Any, str]], inputs: Any, options: dict[str, Any]) -> None:
    """All have the same outcome."""
    wanted, *others = (outcome(script, lib, inputs, options) for script, lib in scripts)
    for found in others:
        assert_same(found, wanted)


@pytest.mark.parametrize(("name", "samples", "options"), KINDS)
def test_recurrent(name: str, samples: dict[str, Any], options: dict[str, Any]) -> None:
    scripts = compiled({lib: held(lib, made(lib, name, (3, 4), options)) for lib in LIBRARIES})
    for inputs in samples.values():
        if name.startswith("LSTM") and len(inputs) == 2:
            inputs = (inputs[0], (inputs[1], inputs[1]))
        check(scripts, inputs, {})


def held(library: str, layer: Any) -> Any:
    """A module that calls a layer: of a recurrent one itself, a script has no `forward`."""
    if type(layer).__name__ not in ("RNN", "GRU", "LSTM"):
        return layer
    programs = load(PROGRAMS, library)
    with entered(programs):
        kind = programs.HolderOfPair if type(layer).__name__ == "LSTM" else programs.Holder
        return kind(layer)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2}], ids=str)
def test_packed(name: str, options: dict[str, Any]) -> None:
    modules = {}
    for library in LIBRARIES:
        programs = load(PROGRAMS, library)
        with entered(programs):
            module = programs.Packer(made(library, name, (3, 4), options))
            modules[library] = scripted(library, module)
    check(compiled(modules), (floats(8, 3), np.array([2, 2, 2, 1, 1])), {})


X, Y = floats(2, 5, 8), floats(2, 3, 8)
PADDING = np.array([[False] * 5, [False] * 3 + [True] * 2])
INSIDE = np.array([[False] * 5, [True] + [False] * 4])
LATER = np.triu(np.ones((5, 5)), 1) > 0
MINUS = np.where(LATER, -np.inf, 0).astype(np.float32)
EIGHT: dict[str, Any] = {"batch_first": True, "dropout": 0.0}
ATTENTION: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    (name, arguments, {**EIGHT, **more}, calls)
    for name, arguments, variants, calls in (
        ("MultiheadAttention", (8, 2),
         ({}, {"add_bias_kv": True, "add_zero_attn": True}, {"batch_first": False}),
         (((X, X, X), {}), ((X, Y, Y), {}), ((X[0], X[0], X[0]), {}),
          ((X, X, X), {"average_attn_weights": False}), ((X, X, X), {"is_causal": True}))),
        ("MultiheadAttention", (8, 2), ({},),
         (((X, X, X), {"key_padding_mask": PADDING}), ((X, X, X), {"attn_mask": LATER}),
          ((X, X, X), {"attn_mask": MINUS, "key_padding_mask": PADDING}),
          ((X, X, X), {"attn_mask": LATER, "key_padding_mask": PADDING}),
          ((X, X, X), {"attn_mask": MINUS, "is_causal": True, "need_weights": False}))),
        ("MultiheadAttention", (8, 2), ({"kdim": 4, "vdim": 3},),
         (((X, Y[..., :4], Y[..., :3]), {}),)),
        ("TransformerEncoderLayer", (8, 2, 16), ({}, {"norm_first": True}, {"activation": "gelu"}),
         (((X,), {}), ((X,), {"src_key_padding_mask": PADDING}), ((X,), {"src_mask": MINUS}),
          ((X[0],), {}), ((X,), {"src_mask": MINUS, "is_causal": True}))),
        ("TransformerDecoderLayer", (8, 2, 16), ({}, {"norm_first": True}),
         (((Y, X), {}), ((Y, X), {"memory_key_padding_mask": PADDING}),
          ((X, X), {"tgt_mask": MINUS, "memory_mask": LATER}))),
    )
    for more in variants
]  # fmt: skip


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize(("name", "arguments", "made_with", "calls"), ATTENTION)
def test_attention(name: str, arguments: Any, made_with: Any, calls: Any, training: bool) -> None:
    modules = {lib: made(lib, name, arguments, made_with).train(training) for lib in LIBRARIES}
    scripts = compiled(modules)
    for inputs, options in calls:
        check(scripts, inputs, options)
        with LIBRARIES["torch"].no_grad(), LIBRARIES["flambeau"].no_grad():
            check(scripts, inputs, options)


MASKS: list[dict[str, Any]] = [
    {}, {"src_key_padding_mask": PADDING}, {"src_key_padding_mask": INSIDE}, {"mask": MINUS},
    {"mask": LATER, "src_key_padding_mask": PADDING}, {"mask": MINUS, "is_causal": True},
]  # fmt: skip


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_encoder(training: bool) -> None:
    modules = {}
    for library in LIBRARIES:
        layer = made(library, "TransformerEncoderLayer", (8, 2, 16), EIGHT)
        modules[library] = made(library, "TransformerEncoder", (layer, 2), {}).train(training)
    scripts = compiled(modules)
    with LIBRARIES["torch"].no_grad(), LIBRARIES["flambeau"].no_grad():
        for options in MASKS:
            check(scripts, (X,), options)


def test_whole_transformer() -> None:
    made_with = {"batch_first": True}
    scripts = compiled(
        {lib: made(lib, "Transformer", (8, 2, 1, 1, 16, 0.0), made_with) for lib in LIBRARIES}
    )
    check(scripts, (Y, X), {})
    check(scripts, (X, X), {"src_mask": MINUS, "tgt_mask": MINUS, "src_key_padding_mask": PADDING})
    check(scripts, (Y, X[:1]), {})
    check(scripts, (Y[..., :4], X), {})
