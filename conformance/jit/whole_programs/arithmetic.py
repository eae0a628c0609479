"""Numbers, `math`, and conversions."""

import math
from typing import List, Tuple

import torch
from torch import Tensor

def integers(a: int, b: int) -> List[int]:
    return [
        a + b, a - b, a * b, a // b, a % b, -a, b, abs(a), a & b, a | b, a ^ b, a << 2, a >> 1,
        min(a, b), max(a, b), divmod(a, b)[0], divmod(a, b)[1], int(a / b), int(round(a / b)),
    ]  # fmt: skip


def floats(x: float, y: float) -> List[float]:
    return [
        x + y, x - y, x * y, x / y, x // y, x % y, x**2, x**y, -x, abs(y), float(int(x)),
        float(round(x)), min(x, y), max(x, y), 2**x, float(math.floor(x)), float(math.ceil(y)),
    ]  # fmt: skip


def functions(x: float) -> Tuple[List[float], List[bool], Tuple[float, int], Tuple[float, float]]:
    values = [
        math.sqrt(x), math.exp(x), math.log(x), math.log1p(x), math.log10(x), math.sin(x),
        math.cos(x), math.tan(x), math.atan(x), math.atan2(x, 2.0), math.sinh(x), math.tanh(x), math.pow(x, 3),
        math.fabs(-x), math.fmod(x, 0.3), math.copysign(x, -1.0), math.erf(x), math.gamma(x), math.lgamma(x),
        math.degrees(x), math.radians(x), math.ldexp(x, 2), math.pi, math.e, math.inf,
    ]  # fmt: skip
    kinds = [math.isnan(x), math.isinf(x), math.isfinite(x)]
    return values, kinds, math.frexp(x), math.modf(x)


def conversions(x: Tensor, n: int, y: float, flag: bool) -> Tuple[List[int], List[float], List[bool], complex]:
    first = x[0]
    whole = [int(first), int(y), int(flag), n + int(True), int("7"), math.gcd(n, 12)]
    if n >= 0:
        whole.append(math.factorial(n))
    real = [float(first), float(n), float(flag), float(first.item()) + 1.0 if y > 0 else y]
    truth = [bool(first), bool(n), bool(y), not n, flag and n > 2, flag or y > 2.0]
    return whole, real, truth, complex(y, float(n))


def complexes(z: complex, x: float) -> Tuple[complex, float, bool, complex]:
    w = z * z + x
    return w / (1 + 2j), abs(z), z == w, -z - 3


def mixed(x: Tensor, n: int, y: float) -> List[Tensor]:
    return [
        x + n, n - x, x * y, y / x, x**n, n**x, x % n, -x, x > n, y >= x, x == n, (x > 1) & (x < 3),
        x.to(torch.int32) * y, x.to(torch.int32) + n, torch.tensor(n) / 2, torch.add(x, x, alpha=n),
    ]  # fmt: skip


def power_series(x: Tensor, terms: int) -> Tensor:
    """exp(x), by Horner's rule."""
    result = torch.ones_like(x)
    for k in range(terms, 0, -1):
        result = 1 + x * result / k
    return result


PROGRAMS = {
    "integers": (integers, [(7, 3), (-7, 3), (7, -3), (0, 5), (1, 0)]),
    "floats": (floats, [(2.5, 1.5), (-2.0, 3.0), (0.5, -0.25), (1.0, 0.0)]),
    "functions": (functions, [(0.5,), (2.0,), (10.25,), (-1.5,)]),
    "conversions": (
        conversions,
        [(torch.tensor([2.7, 1.0]), 4, 1.5, True), (torch.tensor([-3]), -2, -0.5, False)],
    ),
    "complexes": (complexes, [(1 + 2j, 0.5), (-1j, 2.0)]),
    "mixed": (mixed, [(torch.tensor([0.5, 2.0, 3.0]), 2, 1.5), (torch.tensor([1.0]), 3, -1.0)]),
    "power_series": (power_series, [(torch.linspace(-1, 1, 5), 12), (torch.ones(2, 2), 0)]),
}
