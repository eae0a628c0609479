"""Values that may be None or of several types."""

from typing import Any, Dict, List, Optional, Tuple, Union

import torch
from torch import Tensor, nn


def masked_mean(x: Tensor, mask: Optional[Tensor] = None, dim: Optional[int] = None) -> Tensor:
    if mask is not None:
        x = x * mask
    if dim is None:
        total = x.sum()
        count = x.numel() if mask is None else int(mask.sum())
        return total / count
    return x.mean(dim)


def either(value: Union[int, float, str, Tensor]) -> Union[str, float, Tensor]:
    if isinstance(value, str):
        return "text " + value
    if isinstance(value, int):
        return value / 2
    elif isinstance(value, float):
        return value * 2
    else:
        return value.sum() * 3


def several(a: Optional[int], b: Optional[int], table: Dict[str, Optional[Tensor]]) -> int:
    """Refinement through `and`, `or`, `not`, assert and early returns."""
    if a is not None and a > 2:
        return a
    if a is None or b is None:
        missing = 0
        for key, value in table.items():
            if value is None:
                missing += 1
            else:
                missing += value.numel() * 10
        return -missing
    assert b is not None
    c: Optional[int] = None
    if not (b < 0):
        c = a * b
    return c if c is not None else 7


def unwrapped(items: List[Optional[Tensor]]) -> Tensor:
    result = torch.zeros(2)
    for item in items:
        if item is not None:
            result = result + item
    last = items[-1]
    if last is None:
        last = torch.ones(2)
    return result * last


def anything(value: Any) -> int:
    if isinstance(value, int):
        return value + 1
    if isinstance(value, (float, str)):
        return -1
    if isinstance(value, List[int]):
        return len(value) * 100
    if torch.jit.isinstance(value, Dict[str, Tensor]):
        total = 0
        for name, tensor in value.items():
            total += len(name) * tensor.numel()
        return total
    return 0


class Cache(nn.Module):
    """An attribute that is None at first."""

    last: Optional[Tensor]
    sizes: List[int]

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.norm: Optional[nn.Linear] = None
        self.last = None
        self.sizes = torch.jit.annotate(List[int], [])

    def forward(self, x: Tensor) -> Tuple[Tensor, int]:
        y = self.linear(x)
        last = self.last
        if last is not None:
            y = y + last.sum()
        self.last = y.detach()
        if self.norm is not None:
            y = self.norm(y)
        self.sizes.append(x.size(0))
        return y, sum(self.sizes)


PROGRAMS = {
    "masked_mean": (
        masked_mean,
        [
            (torch.arange(6.0).reshape(2, 3),),
            (torch.arange(6.0).reshape(2, 3), torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])),
            (torch.arange(6.0).reshape(2, 3), None, 1),
            (torch.arange(6.0).reshape(2, 3), torch.ones(2, 3), 0),
        ],
    ),
    "either": (either, [(3,), (2.5,), ("s",), (torch.ones(3),)]),
    "several": (
        several,
        [
            (3, None, {}),
            (None, 2, {"a": torch.ones(2), "b": None}),
            (1, None, {"c": None}),
            (2, 5, {}),
            (2, -5, {}),
        ],
    ),
    "unwrapped": (
        unwrapped,
        [([torch.ones(2), None, torch.arange(2.0)],), ([torch.ones(2), None],), ([None],)],
    ),
    "anything": (anything, [(3,), (2.5,), ("s",), ([1, 2],), ({"ab": torch.ones(3)},), (None,)]),
    "cache": (Cache, [(torch.randn(3, 2),), (torch.randn(1, 2),)]),
}
