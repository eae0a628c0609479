"""Recurrent layers and cells."""

from __future__ import annotations

from typing import Any

from .drawing import Drawing, Text, called


def drawn(p: Drawing) -> None:
    p.one(_layer, _layer, _packed, _cell)(p)


def _made(p: Drawing, kind: str) -> tuple[Text, dict[str, Any], int, int]:
    into, hidden = p.size(1, 5), p.size(1, 5)
    options = p.some(0.35, num_layers=2, bidirectional=True, batch_first=True)
    options.update(p.some(0.2, bias=False))
    if kind == "LSTM" and hidden > 1 and p.chance(0.3):
        options["proj_size"] = p.size(1, hidden - 1)
    if kind == "RNN" and p.chance(0.4):
        options["nonlinearity"] = "relu"
    return p.module(called(f"nn.{kind}", into, hidden, **options)), options, into, hidden


def _layer(p: Drawing) -> None:
    kind = p.one("RNN", "LSTM", "GRU")
    m, options, into, hidden = _made(p, kind)
    length = p.size(1, 5)
    batch = p.one(None, 1, 2, 3)
    shape: tuple[int, ...] = (length, into)
    if batch is not None:
        first = options.get("batch_first")
        shape = (batch, length, into) if first else (length, batch, into)
    words: list[Any] = [p.tensor(shape)]
    if p.chance(0.4):
        words.append(_state(p, kind, options, hidden, batch))
    p.gradients(p.result(called(m, *words)))


def _state(p: Drawing, kind: str, options: dict[str, Any], hidden: int, batch: Any) -> Any:
    layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    rows = () if batch is None else (batch,)
    h = p.tensor((layers, *rows, options.get("proj_size", hidden)))
    if kind != "LSTM":
        return h
    return (h, p.tensor((layers, *rows, hidden)))


def _packed(p: Drawing) -> None:
    kind = p.one("RNN", "LSTM", "GRU")
    m, options, into, hidden = _made(p, kind)
    first = bool(options.get("batch_first"))
    batch, length = p.size(1, 4), p.size(1, 5)
    x = p.tensor((batch, length, into) if first else (length, batch, into))
    lengths = [p.size(1, length) for _ in range(batch)]
    ordered = p.chance(0.4)
    if ordered:
        lengths.sort(reverse=True)
    packed = p.let("q", called("rnn.pack_padded_sequence", x, lengths, batch_first=first,
                               enforce_sorted=ordered))  # fmt: skip
    words: list[Any] = [packed]
    if p.chance(0.4):
        words.append(_state(p, kind, options, hidden, batch))
    y = p.result(called(m, *words))
    options = p.some(0.3, total_length=length, padding_value=0.5)
    z = p.result(called("rnn.pad_packed_sequence", Text(f"{y}[0]"), batch_first=first, **options))
    p.gradients(z, f"{y}[1]")


def _cell(p: Drawing) -> None:
    kind = p.one("RNNCell", "LSTMCell", "GRUCell")
    into, hidden = p.size(1, 5), p.size(1, 5)
    m = p.module(called(f"nn.{kind}", into, hidden, **p.some(0.3, bias=False)))
    batch = p.one((), (1,), (2,), (3,))
    words: list[Any] = [p.tensor((*batch, into))]
    if p.chance(0.5):
        h = p.tensor((*batch, hidden))
        words.append((h, p.tensor((*batch, hidden))) if kind == "LSTMCell" else h)
    p.gradients(p.result(called(m, *words)))
