"""Programs in TorchScript whose graphs and code, as torch prints them, are compared."""

# ruff: noqa: B007, B905, C416

from enum import Enum
from typing import Any, NamedTuple  # noqa: UP035

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def arithmetic(x: Tensor, n: int, a: float):
    y = x + n * 2 - a
    z = (y / 3) ** 2 // 1 % 5
    k = n // 2 + n % 3 - -n
    return y * z @ z.t(), k, a / n, n / 2, a**2, n**2, n << 1, n & 3 | 1 ^ 2


def comparisons(x: Tensor, n: int, a: float, s: str):
    return x > n, x == 1, n != 3, not (n < 4), n >= 1 and a <= 2.0, s == "a" or n == 1


def numbers():
    return 1, 1.0, 2.5, 1e-5, 1e10, 1e9, 123456789.125, -0.0, 3 + 4j, float("inf"), -1, -2.5


def texts(s: str):
    return "a'b\"c\n\t\\", s + "x", s[0], s[1:], s.upper(), f"{s}-{1}", f"{s} {2}"


def long_text(x: Tensor):
    assert x.dim() == 2, "a message that is so long that it does not fit into the expression"
    return x


def branches(x: Tensor, n: int):
    if n > 3:
        y = x + 1
    elif n > 1:
        y = torch.relu(x)
    else:
        y = x.sum()
        n = 5
    return y, n


def early_return(x: Tensor, n: int) -> Tensor:
    if n > 3:
        return x
    for i in range(n):
        x = x + i
        if i > 2:
            return x * 2
    return x - 1


def loops(x: Tensor, n: int):
    total = 0
    for i in range(n):
        total += i
        for j in range(1, 10, 2):
            x = x + j
    while total > 3:
        total = total - 1
    return x, total


def broken_loops(x: Tensor, n: int):
    i = 0
    for k in range(n):
        if i > 3:
            continue
        i += k
        if i > 10:
            break
        x = x + k
    while True:
        i += 1
        if i > 20:
            break
    return x, i


def over_lists(xs: list[Tensor], names: list[str], d: dict[str, Tensor]):
    out: list[Tensor] = []
    for x in xs:
        out.append(x + 1)
    for i, (x, name) in enumerate(zip(xs, names)):
        out.append(d[name] * x + i)
    for key, value in d.items():
        if key in names:
            out.append(value)
    for x in torch.ones(3):
        out.append(x)
    return torch.stack(out), len(out), out[0], out[-1], out[1:], [x.sum() for x in xs]


def list_methods(xs: list[int]):
    ys = [1, 2, 3]
    ys.append(xs[0])
    ys.extend(xs)
    ys.insert(0, 5)
    ys[0] = 7
    ys.sort()
    ys += [1]
    del ys[0]
    return ys.pop(), ys, ys.index(3), ys.count(3), ys + xs, sorted(ys), max(ys), sum(ys), 3 in ys


def dictionaries(d: dict[str, int]):
    e: dict[str, int] = {}
    e["a"] = 1
    e.update({"b": 2})
    f = {1: 2.5, 3: 4.0}
    keys = list(e.keys())
    return e, d.get("x"), d.get("x", 3), "a" in d, f, len(d), keys, d.pop("a"), list(d.values())


def empty_things():
    a: list[int] = []
    b: dict[int, Tensor] = {}
    c: list[int | None] = [None, 1]
    d = torch.jit.annotate(list[list[str]], [])
    e: Tensor | None = None
    return a, b, c, d, e


def optionals(x: Tensor | None, n: int | None = None):
    if x is None:
        y = torch.zeros(2)
    else:
        y = x
    if n is not None and n > 3:
        y = y + n
    z: Tensor | None = None
    if y.sum() > 0:
        z = y
    assert z is not None
    return z


def unions(x: int | str | list[int]):
    if isinstance(x, int):
        return x + 1
    if isinstance(x, str):
        return len(x)
    return x[0]


def tuples(x: tuple[int, Tensor, str]):
    a, b, c = x
    d = (a, b)
    e = x[1:]
    (f,) = (c,)
    return d[0], e, x[-1], (a,), ((1, 2), 3), f


def indexing(x: Tensor, i: Tensor):
    y = x[0]
    z = x[:, 1:3]
    w = x[..., None, ::2]
    x[0] = 1.0
    x[:, 1] += 2
    x[i] = z[0, 0]
    return y, z, w, x[i], x[i, 0], x[1, 2:, None]


def operators(x: Tensor):
    a = torch.cat([x, x], dim=1)
    b = torch.zeros([2, 3], dtype=torch.float64, device=x.device)
    c = x.view(-1, 2).permute(1, 0).to(torch.float32).contiguous()
    d = x.sum(dim=[0, 1], keepdim=True), x.mean(), x.max(1), torch.add(x, x, alpha=2)
    e = torch.arange(0, 10, 2), torch.full([2], 1.0), torch.ones_like(x), x.size(0), x.shape
    f = x.type_as(a), x.float(), x.new_zeros([2]), torch.empty(2, 3), x.dtype == torch.float32
    values, indices = x.topk(2)
    return a, b, c, d, e, f, values, indices, x.device, x.is_cuda, x.requires_grad, x.T, x.item()


def in_place(x: Tensor):
    y = x.clone()
    y.add_(1).mul_(2)
    y += x
    y *= 2
    torch.add(x, 1, out=y)
    y.zero_()
    return y


def conversions(x: Tensor, n: int, s: str):
    return int(x), float(x), bool(x), int(2.5), float(n), str(n), int(s), bool(n), complex(n, 2.0)


def devices():
    return (
        torch.device("cpu"),
        torch.zeros(1, device="cpu").device.type,
        torch.float16,
        torch.strided,
    )


def functional(x: Tensor, w: Tensor, b: Tensor | None):
    y = F.relu(F.linear(x, w, b))
    y = F.dropout(y, 0.5, True)
    y = F.softmax(y, dim=-1)
    y = F.group_norm(y, 2, eps=1e-5)
    return F.cross_entropy(y, torch.zeros(2, dtype=torch.long)), F.gelu(y)


def callee(x: Tensor, n: int = 3) -> Tensor:
    return x * n


def calls(x: Tensor):
    a = callee(x)
    b = callee(x, 4) + callee(x, n=callee(x).dim())
    print("value", b, 3)
    return a, b


def many_names(x: Tensor):
    x = x + 1
    x = x * 2
    x0 = x - 1
    x = torch.relu(x)
    float1 = x0 + x
    return x, x0, float1


def long_expression(x: Tensor, y: Tensor):
    a = torch.sigmoid(
        torch.tanh(torch.relu(x + y) * torch.exp(x - y)) + torch.log(torch.abs(x) + 1)
    )
    return a.sum() + torch.sin(x).cos().tan().exp().sqrt().rsqrt().abs().neg().floor().ceil()


def reordered(x: Tensor, y: Tensor):
    a = x.add_(1)
    b = torch.sigmoid(torch.tanh(torch.relu(x + y) * torch.exp(x - y)))
    return torch.add(a.mul_(2), b) + y.sub_(x)


def raises(n: int):
    if n < 0:
        raise ValueError(f"negative: {n}")
    if n > 5:
        raise RuntimeError("large")
    return n


def comprehensions(xs: list[int], n: int):
    return [x * 2 for x in xs], [i for i in range(n)], {x: x + 1 for x in xs}


def ternary(x: Tensor, n: int):
    a = x if n > 2 else -x
    return a, 1 if n > 1 else 0, None if n > 3 else 2


def forked(x: Tensor):
    future = torch.jit.fork(callee, x, 2)
    y = x + 1
    return torch.jit.wait(future) + y


def lists_of_lists(n: int):
    grid = [[0, 1], [2, 3]]
    grid[0][1] = n
    rows = torch.jit.annotate(list[tuple[int, list[float]]], [])
    rows.append((n, [1.0, 2.0]))
    return grid, rows, [(1, "a"), (2, "b")], {"k": [1]}


def no_grad_block(x: Tensor):
    with torch.no_grad():
        y = x * 2
    return y + 1


def nested_branches(x: Tensor, n: int, flag: bool):
    if flag:
        if n > 1:
            x = x + 1
        else:
            pass
    else:
        for i in range(n):
            if i % 2 == 0:
                x = x - i
    return x


def anything(x: Any, y: list[Any]):
    if isinstance(x, (int, float)):
        return 1
    if torch.jit.isinstance(x, list[int]):
        return x[0]
    return len(y)


class Point(NamedTuple):
    x: Tensor
    label: int = 3


def named_tuples(p: Point):
    q = Point(p.x + 1, p.label)
    a, b = q
    return q, a, b, q.label


class Color(Enum):
    RED = 1
    GREEN = 2


def enums(c: Color):
    if c == Color.RED:
        return c.value, c.name
    return Color.GREEN.value, Color.GREEN.name


class Counter:
    def __init__(self, start: int):
        self.count = start
        self.seen: list[int] = []

    def step(self, by: int = 1) -> int:
        self.count += by
        self.seen.append(self.count)
        return self.count


def classes(n: int):
    counter = Counter(n)
    counter.step()
    return counter.step(by=2), counter.count, counter


FUNCTIONS = (
    arithmetic, comparisons, numbers, texts, long_text, branches, early_return, loops,
    broken_loops, over_lists, list_methods, dictionaries, empty_things, optionals, unions, tuples,
    indexing, operators, in_place, conversions, devices, functional, calls, many_names,
    long_expression, reordered, raises, comprehensions, ternary, forked, lists_of_lists,
    no_grad_block, nested_branches, anything, named_tuples, enums, classes,
)  # fmt: skip


class Block(nn.Module):
    __constants__ = ("scale",)

    def __init__(self, size: int):
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size)
        self.scale = 0.5
        self.count = 3
        self.register_buffer("mean", torch.zeros(size))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        y = self.norm(F.relu(self.linear(x))) * self.scale + self.mean
        if mask is not None:
            y = y.masked_fill(mask, float("-inf"))
        self.count += 1
        return self.helper(y)

    def helper(self, x: Tensor) -> Tensor:
        return x * self.count

    @torch.jit.export
    def other(self, n: int = 3) -> int:
        return n + self.count


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(4), Block(4)])
        self.named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        self.net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(0.5))
        self.names = ["a", "b"]
        self.table = {"x": 1}
        self.pair = (1, 2.5)

    def forward(self, x: Tensor):
        for block in self.blocks:
            x = block(x)
        for name, module in self.named.items():
            x = module(x)
        return self.net(x), self.names, self.table["x"], self.pair, self.training


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)
        self.attention = nn.MultiheadAttention(4, 2)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor] | None):
        y, state = self.lstm(x, state)
        z, _ = self.attention(y, y, y)
        return z, state


MODULES = (Block(4), Net(), Recurrent(), nn.TransformerEncoderLayer(4, 2), nn.Embedding(3, 4),
           nn.CrossEntropyLoss(), nn.MaxPool2d(2), nn.GRUCell(2, 3))  # fmt: skip
