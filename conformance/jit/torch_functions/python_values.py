"""Python's own values and functions. Each program gets a tensor of 4 by 4."""

# ruff: noqa: B905, C416, B009

from typing import List

import torch


def reversed_in_place(x):
    r = [1, 2]
    r.reverse()
    return r


def loops(x):
    for i, (a, b) in enumerate(zip([1, 2], x)):
        x = x + i * a * b.sum()
    return x


def python_builtins(x):
    values = [3, 1, 2]
    return (
        sorted(values),
        sorted(["b", "a"]),
        max(values),
        min(values),
        sum(values),
        any([True]),
        all([False]),
        abs(-2),
        round(2.5),
        divmod(7, 2),
    )


def strings(x):
    return (
        "a,b".split(","),
        "x".join(["a", "b"]),
        "AbC".lower(),
        " a ".strip(),
        "abc".find("c"),
        f"{1}-{'z'}",
        "%d" % 3,
        "a" in "abc",
        str(3),
        ord("a"),
        chr(97),
        hex(10),
        bin(5),
        oct(9),
    )


def number_texts(x):
    return float("inf"), -float("inf"), float("3.5"), int("7"), bool(0)


def lists(x):
    a = [1, 2, 3]
    a.extend([4])
    a.insert(0, 9)
    a.pop()
    a.remove(2)
    b = a.copy()
    b.clear()
    return a, len(a), a.index(3), a.count(1), a + [7], a * 2, a[-1], a[::2], 3 in a


def dictionaries(x):
    d = {"a": x, "b": x * 2}
    d["c"] = x
    k = list(d.keys())
    v = list(d.values())
    d.pop("a")
    e = d.get("z")
    del d["b"]
    return k, v, len(d), "c" in d, e, d.setdefault("q", x)


def comprehensions(x):
    return [i for i in range(3)], [i * 2 for i in [1, 2]], {i: i * 2 for i in range(3)}


def tolist(x):
    values: List[List[float]] = x.tolist()
    return values, x[0, 0].item(), float(x[0, 0]), int(x[0, 0])


def attribute_by_name(x):
    return getattr(x, "dtype") == torch.float32
