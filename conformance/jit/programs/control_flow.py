"""Branches, loops, early exits, calls."""

# ruff: noqa

import math
from typing import Any, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


def batch_gather(tensor, indices):
    output = []
    for i in range(tensor.size(0)):
        output += [tensor[i][indices[i]]]
    return torch.stack(output)


def loops_and_returns(x, n: int, o: Optional[int] = None):
    y = x + 1
    z = 0
    for i in range(n):
        if i > 3:
            y = y + i
            w = 3
        else:
            w = 4
            a = 2
        y += w
        z = z + 1
    while z < 10:
        z += 1
        if z == 7:
            break
        if z == 5:
            return y
    if o is not None:
        z = z + o
    s = x[1:, None, ..., 0]
    b = [i + 1 for i in range(3)]
    return s + z + b[0]


def iterations(x: List[int], y, z: Tuple[int, int]):
    s = 0
    for a, b in zip(x, [1, 2, 3]):
        s += a * b
    for i, a in enumerate(x):
        s += i * a
    for t in y:
        s += int(t)
    for q in z:
        s += q
    for i, q in enumerate(z):
        s += i * q
    for c in "abc":
        s += len(c)
    d = {"a": 1}
    for k in d:
        s += d[k]
    for k, v in d.items():
        s += v
    for i in range(1, 10, 2):
        s += i
    return s


def exceptions(x: int):
    if x > 3:
        raise ValueError("bad", x)
    elif x < 0:
        raise RuntimeError
    assert x != 2, "two"
    assert x != 1
    return x


def continue_and_return(x, n: int):
    for i in range(n):
        if i == 3:
            continue
        if i == 4:
            return x
        x = x + i
    return x * 2


def nested_loops(n: int):
    r = 0
    for i in range(n):
        for j in range(i):
            if j == 2:
                break
            if j == 1:
                continue
            r += j
        while r > 10:
            r -= 3
    return r


def _scaled(x, y: int = 2, z: float = 3.):
    return x * y + z


def calls(x):
    return _scaled(x) + _scaled(x, 3) + _scaled(x, z=2.)


def no_return(x):
    y = x + 1


def docstring(x):
    """doc"""
    "another"
    3
    pass
    return x


def is_scripting(x):
    if torch.jit.is_scripting():
        return x + 1
    else:
        return foo(x)


def while_loops(x, n: int):
    i = 0
    while True:
        i += 1
        if i > n:
            break
        if i % 2 == 0:
            continue
        x = x + i
    while i > 0 and x.sum() > 0:
        i -= 1
    while bool((x > 0).any()):
        x = x - 1
    return x, i


def early_returns(x, a: int):
    if a == 1:
        return x
    elif a == 2:
        return x + 1
    if a == 3:
        if x.sum() > 1:
            return x + 2
        x = x * 2
    return x


class Ctx:
    def __init__(self):
        self.n = 0
    def __enter__(self):
        self.n += 1
        return self.n
    def __exit__(self, a: Any, b: Any, c: Any):
        self.n -= 1


def no_grad(x):
    with torch.no_grad():
        y = x + 1
    return y


def with_object(x):
    c = Ctx()
    with c as n:
        x = x + n
    with Ctx():
        x = x + 1
    return x


def _callee(x, n: int = 3):
    for i in range(n):
        x = x + i
    return x


def calls_with_defaults(x):
    return _callee(x) + _callee(x, 2) + _callee(n=4, x=x)


def fork_and_wait(x):
    f = torch.jit.fork(_callee, x, 2)
    y = _callee(x)
    return torch.jit.wait(f) + y


def futures(x, l: List[torch.jit.Future[Tensor]]):
    return [torch.jit.wait(q) for q in l]


def python_functions(x):
    return F.relu(x) + torch.relu(x) + F.dropout(x, 0.5, training=True)


def raise_in_branch(x: bool):
    if x:
        y = 1
    else:
        raise Exception("a")
    return y


def optional_in_while(x: Optional[int]):
    y = 5 if x is None else x
    while x is None and y > 3:
        y = y - 1
    return y


def static_branches(x):
    if 1 > 2:
        return x
    if math.pi == 3:
        x = x + 1
    while False:
        x = x + 3
    return x * (2 + 3)


def loops_in_a_row(x):
    y = x
    for i in range(3):
        y = y + i
    for i in range(3):
        y = y * i
    i = 4
    return y, i


def return_in_loop(l: List[int]):
    for i in l:
        if i > 3:
            return i
    return -1


def return_in_nested_loop(l: List[int]) -> Optional[int]:
    for i in l:
        for j in l:
            if i * j > 3:
                return i
        if i == 3:
            break
    else_ = 1
    return None


def returns_in_branches(x, a: bool, b: bool):
    if a:
        if b:
            return x
        x = x + 1
    else:
        x = x + 2
        if b:
            return x * 3
    x = x * 4
    return x
