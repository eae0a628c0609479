"""L-BFGS: what is kept, in which order, and when; groups; closures that raise half-way."""

from __future__ import annotations

import copy
from typing import Any


class _Bowl:
    """A loss of two parameters; its calls are counted, and one of them may raise."""

    def __init__(self, torch: Any, raises_at: int = -1, **options: Any) -> None:
        self.params = [torch.tensor([2.0, -1.0], requires_grad=True),
                       torch.tensor([[0.5]], requires_grad=True)]  # fmt: skip
        self.optimizer = torch.optim.LBFGS(self.params, **options)
        self.calls, self.raises_at = 0, raises_at

    def __call__(self) -> Any:
        self.calls += 1
        if self.calls == self.raises_at:
            raise ValueError("closure broke")
        self.optimizer.zero_grad()
        a, b = self.params
        loss = (a**2 * a.new_tensor([1.0, 3.0])).sum() + ((b - 1) ** 4).sum()
        loss.backward()
        return loss

    def step(self) -> Any:
        try:
            return self.optimizer.step(self).detach()
        except Exception as error:
            return type(error).__name__, str(error)

    def seen(self) -> Any:
        state = self.optimizer.state_dict()["state"]
        return self.calls, self.params, {n: list(kept.items()) for n, kept in state.items()}


OPTIONS = (
    {"max_iter": 5}, {"max_iter": 1}, {"max_iter": 3, "history_size": 1},
    {"lr": 0.1, "max_iter": 4}, {"line_search_fn": "strong_wolfe", "max_iter": 2},
    {"line_search_fn": "strong_wolfe", "max_iter": 4},
    {"tolerance_grad": 100.0}, {"max_eval": 3}, {"tolerance_change": 1.0, "max_iter": 4},
)  # fmt: skip


def what_is_kept(torch: Any) -> Any:
    seen = []
    for options in OPTIONS:
        bowl = _Bowl(torch, **options)
        seen += [bowl.step(), bowl.seen(), bowl.step(), list(bowl.optimizer.state[bowl.params[0]])]
    return seen


def closures_that_raise(torch: Any) -> Any:
    seen = []
    for search in (None, "strong_wolfe"):
        for at in (1, 2, 3, 5, 8):
            bowl = _Bowl(torch, raises_at=at, max_iter=4, line_search_fn=search)
            seen += [bowl.step(), bowl.seen(), bowl.step(), bowl.calls]
    return seen


def rates_that_are_tensors(torch: Any) -> Any:
    seen = []
    for search in (None, "strong_wolfe"):
        bowl = _Bowl(torch, lr=torch.tensor(0.5), max_iter=3, line_search_fn=search)
        seen += [bowl.step(), type(bowl.optimizer.state[bowl.params[0]]["t"]).__name__, bowl.params]
    return seen


def groups(torch: Any) -> Any:
    bowl = _Bowl(torch)
    bowl.optimizer.add_param_group({"params": [torch.zeros(2)]})
    seen = [bowl.step(), bowl.seen()]
    try:
        torch.optim.LBFGS([{"params": [torch.zeros(1)]}, {"params": [torch.zeros(1)]}])
    except ValueError as error:
        seen.append(str(error))
    return seen


def without_a_closure(torch: Any) -> Any:
    return _called(_Bowl(torch).optimizer.step), _called(_Bowl(torch).optimizer.step, None)[0]


def _called(call: Any, *values: Any) -> Any:
    try:
        return call(*values)
    except Exception as error:
        return type(error).__name__, str(error)


def other_searches(torch: Any) -> Any:
    bowl = _Bowl(torch, line_search_fn="weak")
    return bowl.step(), bowl.calls, list(bowl.optimizer.state[bowl.params[0]])


def parameters_without_elements(torch: Any) -> Any:
    parameter = torch.zeros(0, requires_grad=True)
    optimizer = torch.optim.LBFGS([parameter])
    return _called(optimizer.step, lambda: torch.zeros(()))


def halves(torch: Any) -> Any:
    parameter = torch.tensor([2.0, -1.0], dtype=torch.bfloat16, requires_grad=True)
    optimizer = torch.optim.LBFGS([parameter], lr=0.25, max_iter=3)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (parameter**2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    kept = optimizer.state[parameter]
    return {key: getattr(kept[key], "dtype", None) for key in kept}, kept["ro"][0].dtype


def a_saved_state_goes_on(torch: Any) -> Any:
    one, other = (_Bowl(torch, max_iter=3) for _ in range(2))
    one.step()
    saved = copy.deepcopy(one.optimizer.state_dict())
    for mine, theirs in zip(other.params, one.params, strict=True):
        mine.data.copy_(theirs.data)
    other.optimizer.load_state_dict(saved)
    return one.step(), other.step(), one.params, other.params
