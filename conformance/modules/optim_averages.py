"""Averages of weights whose types or shapes do not fit."""

from __future__ import annotations

import copy
from typing import Any

KINDS = ("none", "ema lists", "swa lists", "ema", "swa")
CHANGES = ("none", "weight in double", "model in double", "average in double", "bias in half",
           "another shape", "one more", "one less")  # fmt: skip


def _averaging(torch: Any, kind: str) -> dict[str, Any]:
    swa = torch.optim.swa_utils
    return {
        "none": dict, "ema lists": lambda: {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.5)},
        "swa lists": lambda: {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
        "ema": lambda: {"avg_fn": swa.get_ema_avg_fn(0.5)},
        "swa": lambda: {"avg_fn": swa.get_swa_avg_fn()},
    }[kind]()  # type: ignore[no-any-return]  # fmt: skip


def _changed(torch: Any, change: str, model: Any, average: Any) -> None:
    linear = model[0]
    if change == "weight in double":
        linear.weight.data = linear.weight.data.double()
    elif change == "model in double":
        model.double()
    elif change == "average in double":
        average.double()
    elif change == "bias in half":
        linear.bias.data = linear.bias.data.half()
    elif change == "another shape":
        linear.weight = torch.nn.Parameter(torch.ones(3, 2))
    elif change == "one more":
        model.add_module("more", torch.nn.Linear(1, 1))
    elif change == "one less":
        linear.bias = None


def _seen(torch: Any, kind: str, change: str, use_buffers: bool) -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.fill_(number + 1.0)
    average = torch.optim.swa_utils.AveragedModel(
        model, use_buffers=use_buffers, **_averaging(torch, kind)
    )
    average.update_parameters(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    _changed(torch, change, model, average)
    errors = []
    for _ in range(2):
        try:
            average.update_parameters(model)
        except Exception as error:
            errors.append((type(error).__name__, str(error).split(".")[0]))
    return errors, list(average.parameters()), list(average.buffers())


def what_does_not_fit(torch: Any) -> Any:
    return [
        _seen(torch, kind, change, use_buffers)
        for kind in KINDS
        for change in CHANGES
        for use_buffers in (False, True)
    ]


def mixtures_do_not_promote(torch: Any) -> Any:
    """`lerp`, by which averages and moments move."""
    ones = torch.ones(2)
    cases = (
        (ones, ones.double(), 0.5), (ones.double(), ones, 0.5), (ones, ones.long(), 0.5),
        (ones, ones, ones.double()), (ones, ones, torch.tensor(0.5).double()),
        (ones, torch.tensor(2.0).double(), 0.5), (ones.half(), ones.bfloat16(), 0.5),
        (ones, ones.to(torch.complex64), 0.5), (ones.long(), ones.long(), 0.5),
    )  # fmt: skip
    seen = []
    for name in ("lerp", "lerp_"):
        for start, end, weight in cases:
            target = copy.copy(start).clone()
            try:
                seen.append(getattr(target, name)(end, weight))
            except Exception as error:
                seen.append((type(error).__name__, str(error)))
            seen.append(target)
    return seen
