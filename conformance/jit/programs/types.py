"""Optional, Union, Any, classes, enumerations, NamedTuples."""

# ruff: noqa

import enum
from typing import Any, List, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor


def optional_or(x: Optional[Tensor], y: Optional[int]):
    if x is None or y is None:
        return 3
    return y + 2


def optional_and_assert(x: Optional[Tensor], y: Optional[int]):
    if x is not None and y is not None:
        z = x + y
    else:
        z = torch.zeros(3)
    assert y is not None
    return z + y


def isinstance_chain(x: Union[int, str, float], y: Any):
    if isinstance(x, int):
        return x + 1
    elif isinstance(x, (str, float)):
        if isinstance(x, str):
            return len(x)
        else:
            return int(x)
    if isinstance(y, torch.Tensor):
        return 4
    return 0


def any_result(x: int) -> Any:
    if x > 2:
        return "s"
    return 3


def union_result(x: int) -> Union[int, str]:
    if x > 2:
        return "s"
    return 3


def type_comment(x, y):
    # type: (int, List[float]) -> float
    return x + y[0]


def optional_result(x, a: int) -> Optional[Tensor]:
    if a == 1:
        return None
    return x


def inferred_optional_result(x, a: int):
    if a == 1:
        return None
    return x


def optional_in_loop(l: List[Optional[Tensor]], x: Optional[int] = None):
    s = 0
    for t in l:
        if t is not None:
            s += int(t.sum())
    if x is None:
        x = 3
    return s + x


def optional_and_or(x: Optional[int], y: Optional[int]):
    if not (x is None or y is None):
        return x + y
    if x is not None:
        return x
    elif y is not None:
        return y
    return 0


def unwrap_optional(x: Optional[Tensor]):
    y = torch.jit._unwrap_optional(x)
    return y + 1


def union_refined(x: Union[int, None, str]):
    if x is None:
        return 1
    if isinstance(x, int):
        return x
    return len(x)


def union_of_list(x: Union[List[int], Tensor]):
    if isinstance(x, List[int]):
        return x[0]
    return x.size(0)


def any_refined(x: Any):
    if isinstance(x, (int, float)):
        return 1
    elif isinstance(x, Tensor):
        return 2
    elif isinstance(x, List[int]):
        return 3
    return 4


def jit_isinstance(x: Any):
    if torch.jit.isinstance(x, List[int]):
        return x[0]
    return 0


class Pt(NamedTuple):
    x: int
    y: Tensor


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Acc:
    def __init__(self, n: int):
        self.n = n
        self.l: List[int] = []
    def add(self, k: int) -> int:
        self.n += k
        self.l.append(k)
        return self.n
    def __len__(self) -> int:
        return len(self.l)
    def __add__(self, o: int) -> int:
        return self.n + o


def named_tuples(x: Pt, y):
    p = Pt(1, y)
    q = Pt(x=2, y=y)
    a, b = p
    return p.x + x.x + q.x, p.y, x, b


def enumerations(c: Color):
    if c == Color.RED:
        return c.name
    return str(c.value)


def class_objects(n: int):
    a = Acc(n)
    a.add(3)
    b = a + 2
    a.n = 5
    a.n += 1
    return a.n + len(a) + b


def hasattr_literal(x: Acc):
    if hasattr(x, "n"):
        return x.n
    else:
        return x.foo


def union_variable(x: bool):
    if x:
        y = 1
    else:
        y = 2
    z: Union[int, str] = 1
    z = "a"
    return z


def optional_asserted(x: Optional[Tensor], y: Optional[Tensor]):
    assert x is not None and y is not None, "need"
    return x + y


def empty_list_result() -> List[int]:
    return []


def optional_list_result(x: int) -> Optional[List[int]]:
    if x > 2:
        return []
    return None


def tuple_of_literals() -> Tuple[List[int], Optional[int]]:
    return [], None
