"""Losses, as functions and as layers."""

from __future__ import annotations

from typing import Any

from .drawing import Drawing, Text, called


def drawn(p: Drawing) -> None:
    p.one(_classes, _classes, _chances, _pairs, _pairs, _binary, _binary, _margins, _triplets, _ctc,
          _kl, _gaussian, _adaptive)(p)  # fmt: skip


def _reduction(p: Drawing) -> dict[str, Any]:
    return p.some(0.7, reduction=p.one("none", "mean", "sum"))


def _apply(p: Drawing, function: str, layer: str, /, *words: Any, **options: Any) -> None:
    if not layer or p.chance(0.7):
        text = called(f"F.{function}", *words, **options)
    else:
        text = called(called(f"nn.{layer}", **options), *words)
    p.gradients(p.result(text))


def _scores(p: Drawing) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of scores and of classes."""
    batch, count = p.one(1, 2, 3, 0 if p.chance(0.1) else 4), p.size(1, 5)
    inner = p.sizes(p.one(0, 0, 1, 2, 3), 1, 4)
    if not inner and p.chance(0.2):
        return (count,), ()
    return (batch, count, *inner), (batch, *inner)


def _classes(p: Drawing) -> None:
    shape, target = _scores(p)
    count = shape[0] if len(shape) == 1 else shape[1]
    options = _reduction(p)
    if p.chance(0.4):
        options["weight"] = p.tensor((count,), learns=False, after=".abs()")
    options.update(p.some(0.3, ignore_index=p.size(0, count - 1)))
    x, y = p.tensor(shape), p.indices(target, count, dtype="int64")
    if p.chance(0.6):
        options.update(p.some(0.4, label_smoothing=p.one(0.1, 0.5)))
        _apply(p, "cross_entropy", "CrossEntropyLoss", x, y, **options)
    else:
        _apply(p, "nll_loss", "NLLLoss", x, y, **options)


def _chances(p: Drawing) -> None:
    shape, _ = _scores(p)
    count = shape[0] if len(shape) == 1 else shape[1]
    options = _reduction(p) | p.some(0.4, label_smoothing=p.one(0.1, 0.5))
    if p.chance(0.4):
        options["weight"] = p.tensor((count,), learns=False, after=".abs()")
    x, y = p.tensor(shape), p.tensor(shape, learns=p.chance(0.3), after=".abs()")
    _apply(p, "cross_entropy", "CrossEntropyLoss", x, y, **options)


PAIRS = {
    "mse_loss": "MSELoss", "l1_loss": "L1Loss", "smooth_l1_loss": "SmoothL1Loss",
    "huber_loss": "HuberLoss", "poisson_nll_loss": "PoissonNLLLoss",
    "soft_margin_loss": "SoftMarginLoss",
}  # fmt: skip


def _pairs(p: Drawing) -> None:
    shape = p.sizes(p.size(0, 4), 1, 5)
    other = shape if p.chance(0.85) else tuple(p.one(1, size) for size in shape)
    name = p.one(*PAIRS)
    options = _reduction(p)
    if name == "smooth_l1_loss":
        options.update(p.some(0.5, beta=p.one(0.5, 2.0, 0.0)))
    if name == "huber_loss":
        options.update(p.some(0.5, delta=p.one(0.5, 2.0)))
    if name == "poisson_nll_loss":
        options.update(p.some(0.4, log_input=False, full=True, eps=1e-3))
    x, y = p.tensor(shape), p.tensor(other)
    if name in ("mse_loss", "l1_loss") and p.chance(0.1):
        options["weight"] = p.tensor(shape)
        _apply(p, name, "", x, y, **options)
        return
    _apply(p, name, PAIRS[name], x, y, **options)


def _binary(p: Drawing) -> None:
    shape = p.sizes(p.size(0, 4), 1, 5)
    options = _reduction(p)
    if p.chance(0.4):
        options["weight"] = p.tensor(p.one(shape, shape[-1:]), learns=p.chance(0.2))
    y = p.tensor(shape, learns=p.chance(0.3), after=".sigmoid()")
    if p.chance(0.4):
        x = p.tensor(shape, after=".sigmoid()")
        _apply(p, "binary_cross_entropy", "BCELoss", x, y, **options)
        return
    if p.chance(0.4):
        options["pos_weight"] = p.tensor(p.one(shape, shape[-1:]), learns=False, after=".abs()")
    x = p.tensor(shape)
    _apply(p, "binary_cross_entropy_with_logits", "BCEWithLogitsLoss", x, y, **options)


def _margins(p: Drawing) -> None:
    batch, count = p.size(1, 4), p.size(1, 5)
    rows = () if p.chance(0.2) else (batch,)
    x = p.tensor((*rows, count))
    options = _reduction(p)
    name = p.one("multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
                 "hinge_embedding_loss", "margin_ranking_loss")  # fmt: skip
    if name == "multi_margin_loss":
        options.update(p.some(0.4, p=2, margin=p.one(0.5, 2.0)))
        if p.chance(0.3):
            options["weight"] = p.tensor((count,), learns=False, after=".abs()")
        _apply(p, name, "MultiMarginLoss", x, p.indices(rows, count, dtype="int64"), **options)
    elif name == "multilabel_margin_loss":
        y = p.indices((*rows, count), count + 1, -1, "int64")
        _apply(p, name, "MultiLabelMarginLoss", x, y, **options)
    elif name == "multilabel_soft_margin_loss":
        y = p.let("y", f"bits({p.seed()}, {(*rows, count)}).to(torch.{p.dtype})")
        _apply(p, name, "MultiLabelSoftMarginLoss", x, y, **options)
    elif name == "hinge_embedding_loss":
        options.update(p.some(0.4, margin=p.one(0.5, 2.0)))
        _apply(p, name, "HingeEmbeddingLoss", x, _signs(p, (*rows, count)), **options)
    else:
        options.update(p.some(0.4, margin=p.one(0.5, 2.0)))
        words = [x, p.tensor((*rows, count)), _signs(p, p.one((*rows, count), (count,)))]
        _apply(p, name, "MarginRankingLoss", *words, **options)


def _signs(p: Drawing, shape: tuple[int, ...]) -> Text:
    return p.let("y", f"bits({p.seed()}, {shape}).to(torch.{p.dtype}) * 2 - 1")


def _triplets(p: Drawing) -> None:
    batch, inner = p.size(1, 4), p.size(1, 5)
    shape = (inner,) if p.chance(0.2) else (batch, inner)
    options = _reduction(p)
    if p.chance(0.5):
        options.update(p.some(0.4, margin=p.one(0.2, -0.3)))
        words = [p.tensor(shape), p.tensor(shape), _signs(p, shape[:-1])]
        _apply(p, "cosine_embedding_loss", "CosineEmbeddingLoss", *words, **options)
        return
    options.update(p.some(0.4, margin=p.one(0.5, 2.0), p=p.one(1.0, 3.0), swap=True, eps=1e-3))
    words = [p.tensor(shape) for _ in range(3)]
    _apply(p, "triplet_margin_loss", "TripletMarginLoss", *words, **options)


def _ctc(p: Drawing) -> None:
    p.dtype = p.one("float32", "float64")
    steps, batch, count = p.size(2, 8), p.size(1, 3), p.size(2, 5)
    rows = () if p.chance(0.2) else (batch,)
    x = p.let("x", p.tensor((steps, *rows, count)) + ".log_softmax(-1)")
    longest = p.size(1, 3)
    blank = p.one(0, 0, count - 1)
    y = p.indices((*rows, longest), count if blank == 0 else blank, 1 if blank == 0 else 0, "int64")
    into = [p.size(1, steps) for _ in rows * batch] or [steps]
    targets = [p.size(0, longest) for _ in rows * batch] or [longest]
    options = _reduction(p) | p.some(0.3, zero_infinity=True) | ({"blank": blank} if blank else {})
    lengths = p.one([tuple(into), tuple(targets)],
                    [Text(f"torch.tensor({into})"), Text(f"torch.tensor({targets})")])  # fmt: skip
    _apply(p, "ctc_loss", "CTCLoss", x, y, *lengths, **options)


def _kl(p: Drawing) -> None:
    shape = p.sizes(p.size(1, 3), 1, 5)
    options = p.some(0.8, reduction=p.one("none", "mean", "sum", "batchmean"))
    options.update(p.some(0.4, log_target=True))
    x, y = p.tensor(shape), p.tensor(shape, after=".softmax(-1)")
    _apply(p, "kl_div", "KLDivLoss", x, y, **options)


def _gaussian(p: Drawing) -> None:
    shape = p.sizes(p.size(1, 3), 1, 5)
    options = _reduction(p) | p.some(0.3, full=True, eps=1e-3)
    var = p.tensor(p.one(shape, shape[:-1], (*shape[:-1], 1)), after=".abs()")
    words = [p.tensor(shape), p.tensor(shape), var]
    _apply(p, "gaussian_nll_loss", "GaussianNLLLoss", *words, **options)


def _adaptive(p: Drawing) -> None:
    count = p.size(4, 8)
    into, cut = p.size(2, 5), p.size(1, 3)
    options = p.some(0.4, div_value=2.0, head_bias=True)
    m = p.module(called("nn.AdaptiveLogSoftmaxWithLoss", into, count, [cut], **options))
    batch = p.size(1, 4)
    x, y = p.tensor((batch, into)), p.indices((batch,), count, dtype="int64")
    p.gradients(p.result(f"tuple({called(m, x, y)})"))
