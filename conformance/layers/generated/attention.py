"""Attention: the operator, the layer, and transformers."""

from __future__ import annotations

from typing import Any

from .drawing import Drawing, Text, called


def drawn(p: Drawing) -> None:
    p.one(_operator, _operator, _heads, _heads_function, _encoder_layer, _decoder_layer, _stack)(p)


def _operator(p: Drawing) -> None:
    batch = p.one((), (1,), (2,), (2, 3), (2, 4), (1, 2), (0, 2) if p.chance(0.1) else (2, 2))
    long, other, inner = p.size(1, 6), p.size(1, 6), p.size(1, 8)
    value = inner if p.chance(0.7) else p.size(1, 8)
    keys = batch
    options: dict[str, Any] = {}
    if len(batch) == 2 and batch[1] == 4 and p.chance(0.6):
        keys = (batch[0], p.one(1, 2))
        options["enable_gqa"] = True
    words = [p.tensor((*batch, long, inner)), p.tensor((*keys, other, inner)),
             p.tensor((*keys, other, value))]  # fmt: skip
    if p.chance(0.4):
        options["attn_mask"] = _mask(p, batch, long, other)
    options.update(p.some(0.25, is_causal=True, scale=p.one(0.5, 1.0), dropout_p=0.0))
    p.gradients(p.result(called("F.scaled_dot_product_attention", *words, **options)))


def _mask(p: Drawing, batch: tuple[int, ...], long: int, other: int) -> Text:
    shape = p.one((long, other), (*batch, long, other), (1, other), (*(1 for _ in batch), long, 1))
    if p.chance(0.5):
        return p.let("k", f"bits({p.seed()}, {shape})")
    return p.tensor(shape, learns=p.chance(0.3))


def _sequences(p: Drawing, first: bool, width: int) -> tuple[Any, ...]:
    """Shapes of a target and of what it looks at, and their lengths."""
    batch = p.one(None, 1, 2, 3)
    long, other = p.size(1, 5), p.size(1, 5)

    def shape(length: int, wide: int = width) -> tuple[int, ...]:
        if batch is None:
            return (length, wide)
        return (batch, length, wide) if first else (length, batch, wide)

    return batch, long, other, shape


def _masks(p: Drawing, batch: Any, long: int, other: int, heads: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if p.chance(0.3):
        found["key_padding_mask"] = _padding(p, batch, other)
    if p.chance(0.3):
        shape: tuple[int, ...] = (long, other)
        if p.chance(0.3):
            shape = (heads * (batch or 1), long, other)
        found["attn_mask"] = _weights(p, shape)
    found.update(p.some(0.3, need_weights=False, average_attn_weights=False))
    return found


def _weights(p: Drawing, shape: tuple[int, ...]) -> Text:
    if p.chance(0.5):
        return p.let("k", f"torch.triu(bits({p.seed()}, {shape}), 1)")
    return p.tensor(shape, learns=False)


def _padding(p: Drawing, batch: Any, length: int) -> Text:
    shape = (length,) if batch is None else (batch, length)
    name = p.let("k", f"bits({p.seed()}, {shape})")
    p.written.append(f"{name}[..., 0] = False")
    return name


def _heads(p: Drawing) -> None:
    heads = p.one(1, 2, 3)
    width = heads * p.size(1, 4)
    first = p.chance(0.5)
    batch, long, other, shape = _sequences(p, first, width)
    options = p.some(0.25, bias=False, add_bias_kv=True, add_zero_attn=True)
    key, value = width, width
    if p.chance(0.2):
        key, value = options["kdim"], options["vdim"] = p.size(1, 6), p.size(1, 6)
    options["batch_first"] = first
    m = p.module(called("nn.MultiheadAttention", width, heads, **options))
    if p.chance(0.3):
        p.let("t", f"{m}.eval().training")
    x = p.tensor(shape(long))
    words = [x, x, x]
    if key != width or p.chance(0.6):
        words = [x, p.tensor(shape(other, key)), p.tensor(shape(other, value))]
    else:
        other = long
    p.gradients(p.result(called(m, *words, **_masks(p, batch, long, other, heads))))


def _heads_function(p: Drawing) -> None:
    heads = p.one(1, 2)
    width = heads * p.size(1, 3)
    batch, long, other, shape = _sequences(p, False, width)
    words = [p.tensor(shape(long)), p.tensor(shape(other)), p.tensor(shape(other))]
    into, bias = p.tensor((3 * width, width)), p.tensor((3 * width,))
    out = p.tensor((width, width))
    options = _masks(p, batch, long, other, heads)
    options["training"] = p.one(True, False)
    text = called("F.multi_head_attention_forward", *words, width, heads, into, bias, None, None,
                  p.one(False, True), 0.0, out, None, **options)  # fmt: skip
    p.gradients(p.result(text))


def _layer_options(p: Drawing) -> dict[str, Any]:
    found = p.some(0.3, norm_first=True, bias=False, layer_norm_eps=1e-3, activation=p.one(
        "gelu", "relu", Text("F.silu")))  # fmt: skip
    return {"dropout": 0.0, **found}


def _encoder_layer(p: Drawing) -> None:
    heads = p.one(1, 2)
    width = heads * p.size(1, 3)
    first = p.chance(0.5)
    batch, long, _, shape = _sequences(p, first, width)
    options = _layer_options(p) | {"batch_first": first, "dim_feedforward": p.size(1, 6)}
    m = p.module(called("nn.TransformerEncoderLayer", width, heads, **options))
    masks: dict[str, Any] = {}
    if p.chance(0.3):
        masks["src_mask"] = _weights(p, (long, long))
    if p.chance(0.3):
        masks["src_key_padding_mask"] = _padding(p, batch, long)
    if p.chance(0.4):
        p.let("t", f"{m}.eval().training")
    p.gradients(p.result(called(m, p.tensor(shape(long)), **masks)))


def _decoder_layer(p: Drawing) -> None:
    heads = p.one(1, 2)
    width = heads * p.size(1, 3)
    first = p.chance(0.5)
    batch, long, other, shape = _sequences(p, first, width)
    options = _layer_options(p) | {"batch_first": first, "dim_feedforward": p.size(1, 6)}
    m = p.module(called("nn.TransformerDecoderLayer", width, heads, **options))
    masks: dict[str, Any] = {}
    if p.chance(0.3):
        masks["tgt_mask"] = _weights(p, (long, long))
    if p.chance(0.3):
        masks["memory_key_padding_mask"] = _padding(p, batch, other)
    x, memory = p.tensor(shape(long)), p.tensor(shape(other))
    p.gradients(p.result(called(m, x, memory, **masks)))


def _stack(p: Drawing) -> None:
    width = 2 * p.size(1, 2)
    first = p.chance(0.5)
    _, long, other, shape = _sequences(p, first, width)
    options = {"num_encoder_layers": 1, "num_decoder_layers": 1, "dim_feedforward": 3,
               "dropout": 0.0, "batch_first": first} | p.some(0.3, norm_first=True)  # fmt: skip
    m = p.module(called("nn.Transformer", width, 2, **options))
    p.gradients(p.result(called(m, p.tensor(shape(other)), p.tensor(shape(long)))))
