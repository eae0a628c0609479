"""Operators, literals, tensors, indexing, text."""

# ruff: noqa

import math
from typing import Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


def tensor_properties(x, i: int, m):
    a = x.shape
    b = x.size()
    c = x.dtype
    d = x.device
    e = x.T
    f = x[i, 1:3]
    g = x[m]
    h = x[..., None, 0]
    x[0] = 3
    x[m > 0] = 1.5
    x[1:, 0] += 2
    x[i] = f
    k = x.view(-1, 3).float().to(torch.float64)
    return a, b, c, d, e, f, g, h, k, x.ndim, x.is_cuda, -x, ~m, x @ e, x.item()


def scalar_operators(x: int, y: float):
    a = x / 2
    b = x // 2
    c = x ** 2
    d = x % 3
    e = -x
    f = not x
    g = x & 3 | 4 ^ 1
    h = x << 2 >> 1
    i = float(x) + int(y) + bool(x)
    j = min(x, 3) + max(y, 2.) + abs(x)
    k = 1 < x < 4
    l = math.sqrt(y) + math.pi + math.floor(y)
    m = x == 3 or y > 2 and not (x < 1)
    n = round(y)
    o = divmod(x, 2)
    p = str(x)
    return a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p


def ternary(x: int, y: Optional[int]):
    z = x if y is None else y
    return z if z > 2 else -1


def multiple_assignment(x):
    a = b = x + 1
    c, (d, e) = 1, (2, 3)
    f, *g = 1, 2, 3
    h, = [x]
    return a, b, c, d, e, f, g, h


def torch_calls(x):
    a = torch.cat([x, x], dim=1)
    b = torch.zeros(2, 3, dtype=torch.float32, device="cpu")
    c = torch.ones([2, 3])
    d = F.relu(x)
    e = F.linear(x, x)
    g = torch.nn.functional.softmax(x, dim=-1)
    h, i = torch.max(x, 0)
    j = x.max(dim=0)
    k = torch.tensor([1, 2, 3])
    l = torch.arange(3)
    return a, b, c, d, e, g, h, i, j.values, k, l


def formatted_strings(s: str, n: int):
    t = f"{s} and {n}"
    u = "a {} b {}".format(s, n)
    v = "%s %d" % (s, n)
    if s in ["a", "b"] and n not in [1, 2]:
        print(s, n)
    return t + u + v


def augmented_tensors(x, y):
    x += 1
    x -= y
    x *= y
    x /= 2
    x %= 2
    x **= 2
    x |= y
    x &= y
    x <<= 1
    x[0] += 1
    x[y] *= 2
    x[y, 0] = y
    return x


def augmented_scalars(y: int, z: float, l: List[int], d: Dict[str, int], b: bool):
    y += 1
    y %= 2
    z *= 2
    l += [2]
    l[0] += 2
    d["a"] -= 1
    b |= True
    return y, z, l, d, b


def indices(x, i: int, t, l: List[int]):
    a = x[i]
    b = x[i, 0]
    c = x[:, i]
    d = x[t]
    e = x[:, t]
    f = x[t, i, None]
    g = x[l]
    h = x[[0, 1]]
    j = x[..., -1]
    k = x[::2]
    m = x[1:, :-1, 2:3]
    n = x[None]
    o = x[t > 0, 0]
    p = x[-1]
    return a, b, c, d, e, f, g, h, j, k, m, n, o, p


def assigned_indices(x, i: int, t, l: List[int]):
    x[i] = 0
    x[:, 1] = t
    x[t] = 1.0
    x[t, i] = t
    x[1:3] = x[0:2]
    x[...] = 1
    x[None, 0] = 2
    x[l] = 4
    return x


def truth_of_values(x, i: int, f: float, s: str, l: List[int]):
    if x:
        i += 1
    if i:
        i += 2
    if f:
        i += 3
    if s:
        i += 4
    if l:
        i += 5
    return int(x), float(x), bool(x), int(f), float(i), str(i), int("3"), bool(i)


def math_functions(x: float, i: int):
    return math.sin(x), math.ceil(x), math.pow(x, 2), math.gcd(i, 4), math.inf, math.e, math.isnan(x), math.factorial(i), math.log(x, 2) if False else math.log(x)


def literals():
    return float('inf'), -float('inf'), float('nan'), 1e10, 1e-5, 3, -3, -3.5


def tensor_methods(x, y):
    a = x.add(y, alpha=2)
    b = x.sum(dim=[0, 1], keepdim=True)
    c = x.transpose(0, 1).contiguous()
    d = x.reshape(2, -1)
    e = x.expand(2, 3)
    f = x.permute(1, 0)
    g = x.split(2)
    h = x.chunk(2, dim=0)
    i, j = x.topk(2)
    k = x.unsqueeze(0).squeeze()
    l = x.masked_fill(y > 0, 1.0)
    m = x.type_as(y)
    n = x.to("cpu")
    o = x.to(y.dtype)
    p = x.to(device="cpu", dtype=torch.float64)
    q = x.new_zeros(2, 3)
    r = x.detach().cpu()
    s = x.requires_grad
    t = x.dim()
    u = x.size(-1)
    v = x.numel()
    return a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v


def tensor_functions(x, y):
    a = torch.add(x, y)
    b = torch.cat((x, y), 0)
    c = torch.stack([x, y])
    d = torch.where(x > 0, x, y)
    e = torch.full([2], 3.0)
    f = torch.full((2, 2), 1)
    g = torch.rand(2, 3)
    h = torch.arange(0, 10, 2, device=x.device)
    i = torch.empty_like(x)
    j = torch.einsum("ij,jk->ik", [x, y])
    k = torch.bmm(x, y)
    l = torch.matmul(x, y)
    m = torch.nn.functional.conv2d(x, y)
    n = torch.sort(x)
    o = torch.unbind(x)
    p = torch.linalg.norm(x)
    q = torch.fft.fft(x)
    r = torch.clamp(x, min=0)
    s = torch.clamp(x, 0, 1)
    t = torch.tensor(3.0)
    u = torch.tensor([[1, 2], [3, 4]], dtype=torch.long)
    v = torch.zeros([], dtype=torch.int)
    w = torch.finfo if False else 3
    return a, b, c, d


def numbers_with_tensors(x, n: int):
    a = 2 - x
    b = 2.5 * x
    c = 1 / x
    d = n + x
    e = n < x
    f = 2 == x
    g = 2 ** x
    h = x // 2
    i = x % 3
    j = ~x
    k = x & 1
    return a, b, c, d, e, f, g, h, i, j, k


def keyword_calls(x):
    return torch.sum(x, dim=0, keepdim=False), torch.cumsum(input=x, dim=1), x.mean(-1), torch.zeros((2, 3))


def module_constants(x):
    return x + math.pi, x.to(torch.int64)


def getattr_literal(x):
    return getattr(x, "shape")


def printing(x, n: int):
    print(x, n, "a")
    print()


def generator(x):
    return torch.rand(2, generator=None)


def slices(x, l: List[int], s: str, i: int):
    return x[i:], x[:i], x[i::2], l[:-1], l[::2], s[i:], s[:2], s[-1], x[..., :2], x[:, None, i:]


def tolist(x):
    y: List[int] = x.tolist()
    z: List[List[float]] = x.tolist()
    return y, z


def starred_arguments(t: Tuple[Tensor, Tensor]):
    return torch.add(*t), torch.cat([*t])


def nested_ternary(x, n: int):
    a = x if n > 2 else x + 1
    b = (a if n > 3 else None) is None
    c = 1.5 if n > 2 else 2.5 if n > 1 else 3.0
    return a, b, c


def boolean_operators(a: bool, b: bool, c: int):
    return a and b or not a, a or b and c > 2, (a, b), not (a and b)


def comparisons(a: int, b: float, s: str, l: List[int], t: Tuple[int, int], x):
    return a < b, a == b, s == "x", l == [1], a in l, s != "q", x == 1, x is None, a is not None, s < "b", t[0] >= a


def devices(x):
    if x.device.type == "cuda":
        return x
    d = torch.device("cpu")
    return torch.zeros(2, device=d).to(x.device)


def shapes(x):
    b, c, h, w = x.shape
    n = x.shape[0]
    m = len(x.shape)
    s = list(x.shape)
    t = x.size()[1:]
    k = x.reshape(b, -1).view([b, c * h * w]).view(x.size(0), -1)
    return n, m, s, t, k


def percent_format(s: str, x, f: float):
    return "{}{}".format(s, f) + "%s" % s + "%d:%s" % (3, s) + f"{x}{f}"


def functional_calls(x):
    return torch.add(x, other=x, alpha=2), F.softmax(x, -1), F.relu(x), F.linear(x, x, None)


def in_place_methods(x):
    x.add_(1).mul_(2)
    x.zero_()
    torch.relu_(x)
    return x
