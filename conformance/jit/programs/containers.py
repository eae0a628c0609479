"""Lists, dictionaries, tuples, comprehensions."""

# ruff: noqa

from typing import Dict, List, Tuple

import torch
from torch import Tensor


def lists_and_dictionaries(x: List[int], y: Dict[str, int]):
    a = x[0] + y["a"]
    b = x[1:]
    b.append(3)
    del b[0]
    y["q"] = 4
    x[2] += 3
    c = {"a": 1, "b": 2}
    d = [1.0, 2.0]
    e = len(x) + len(y)
    t = (a, b, "s")
    u, v, w = t
    return u, v, w, c, d, e, t[1], t[0:2]


def comprehensions(x: List[int], n: int):
    a = [i * 2 for i in x]
    b = {i: str(i) for i in x}
    c = [i for i in range(n)]
    d = list(range(3))
    e = list(x)
    f: List[str] = []
    g: Dict[str, int] = {}
    h = torch.jit.annotate(List[float], [])
    h.append(3.)
    f.append("a")
    return a, b, c, d, e, f, g, h


def tuples(x: Tuple[int, str, Tensor]):
    a, b, c = x
    d = x[0]
    e = x[-1]
    f = x[1:]
    g = len(x)
    h = x + (1, 2)
    i = (1,) 
    for j in (1, 2, 3):
        a += j
    return a, b, c, d, e, f, g, h, i


def dictionary_methods(d: Dict[str, Tensor]):
    e: Dict[int, List[str]] = {}
    e[1] = ["a"]
    e[1].append("b")
    if "a" in d:
        d["b"] = d["a"]
    x = d.get("q", torch.zeros(2))
    y = d.pop("b")
    k = list(d.keys())
    v = d.values()
    d.update({"z": y})
    z = d.copy()
    d.clear()
    f = {k2: v2 for k2, v2 in z.items()}
    g = dict(a=1, b=2)
    h = dict([("a", 1)])
    i = dict()
    j = {}
    return e, x, y, k, v, len(d), f, g, h, i, j


def list_methods(l: List[int], t: List[Tensor]):
    l.append(1)
    l.extend([2, 3])
    l.insert(0, 4)
    a = l.pop()
    b = l.pop(0)
    l.reverse()
    l.sort()
    l.remove(4)
    c = l.index(3)
    d = l.count(3)
    e = l.copy()
    f = l + [4]
    g = l * 2
    h = sorted(l)
    i = sum(l) + max(l) + min(l)
    j = any([True, False])
    k = 3 in l
    m = l == [1, 2]
    n = t[0]
    o = l[-1]
    p = [0] * 4
    q = [x + 1 for x in l]
    l.clear()
    return a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q


def nested_containers(x: List[Tuple[int, Dict[str, List[Tensor]]]]):
    s = 0
    for a, d in x:
        for k, v in d.items():
            s += a * len(v)
    return s


def nested_comprehension(x, l: List[List[int]]):
    s = [[i + j for i in r] for j, r in enumerate(l)]
    return s
