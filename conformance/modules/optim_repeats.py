"""A parameter twice in one group; gradients that are NaN or infinite."""

from __future__ import annotations

import warnings
from typing import Any

CASES = (
    ("SGD", {"lr": 0.1, "momentum": 0.9}), ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.5, "momentum": 0.5, "maximize": True}),
    ("SGD", {"lr": 0.1}), ("Adam", {}), ("AdamW", {"amsgrad": True}), ("Adamax", {}),
    ("Adadelta", {"lr": 0.5}), ("Adagrad", {"lr_decay": 0.1}), ("ASGD", {"t0": 1}), ("NAdam", {}),
    ("RAdam", {}), ("RMSprop", {"momentum": 0.9}), ("Rprop", {}), ("Adafactor", {}), ("Muon", {}),
)  # fmt: skip
BAD = (float("nan"), float("inf"), -float("inf"))


def _twice(torch: Any, name: str, options: dict[str, Any], size: int) -> Any:
    a, b = torch.full((size, 2), 1.0), torch.full((2, size), 2.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer = getattr(torch.optim, name)([a, b, a], **options)
    for step in (1, 2, 3):
        a.grad, b.grad = torch.full_like(a, 1.0 / step), torch.full_like(b, -0.5)
        optimizer.step()
    saved = optimizer.state_dict()
    kept = {
        number: {key: value.reshape(-1)[:3] for key, value in state.items()}
        for number, state in saved["state"].items()
    }
    numbers = saved["param_groups"][0]["params"]
    return [str(w.message) for w in caught], a[0], b[:, 0], kept, numbers


def a_parameter_twice(torch: Any) -> Any:
    return [_twice(torch, name, options, 2) for name, options in CASES]


def a_large_parameter_twice(torch: Any) -> Any:
    """So large that all are stepped by one kernel; sums of so many are rounded otherwise."""
    cases = [case for case in CASES if case[0] not in ("Muon", "Adafactor")]
    return [_twice(torch, name, options, 5000) for name, options in cases]


def numbers_of_groups(torch: Any) -> Any:
    a, b, c = (torch.zeros(2) for _ in range(3))
    optimizer = torch.optim.SGD([a, a, b], lr=0.1)
    optimizer.add_param_group({"params": [c, c]})
    saved = optimizer.state_dict()
    optimizer.load_state_dict(saved)
    return [group["params"] for group in saved["param_groups"]], optimizer.param_groups


def twice_and_sparse(torch: Any) -> Any:
    a = torch.zeros(2, 2)
    optimizer = torch.optim.SparseAdam([a, a], lr=0.1)
    for _ in range(2):
        a.grad = torch.eye(2).to_sparse()
        optimizer.step()
    return a, optimizer.state_dict()


def gradients_that_are_not_finite(torch: Any) -> Any:
    seen = []
    for name, options in CASES:
        if name == "Muon":
            continue
        for bad in BAD:
            for foreach in (None, name != "ASGD"):  # which computes another sum for lists
                p = torch.tensor([1.0, 2.0, 3.0])
                optimizer = getattr(torch.optim, name)([p], foreach=foreach, **options)
                for grad in ([0.5, bad, 0.0], [0.5, 0.25, bad], [-1.0, 1.0, 1.0]):
                    p.grad = torch.tensor(grad)
                    optimizer.step()
                    seen.append(p.clone())
                seen.append(optimizer.state_dict()["state"])
    return seen


def signs_of_nan(torch: Any) -> Any:
    """Rprop goes by signs: that of nan is 0, in small parameters and in large ones."""
    seen = []
    for size in (3, 20000):
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            p = torch.ones(size, dtype=dtype)
            optimizer = torch.optim.Rprop([p], lr=0.25)
            for value in (1.0, float("nan"), 1.0, -1.0):
                p.grad = torch.full_like(p, value)
                optimizer.step()
                seen += [p[:2], optimizer.state[p]["prev"][:2], optimizer.state[p]["step_size"][:2]]
    return seen
