"""The integrals behind the implicit derivatives of gamma and beta numbers.

Formulas are those of `implicit_gradients`, which explains them; both ends of a distribution are one
formula here, whose signs say from which end it runs. An integrand falls off from its beginning on:
what is below exp(least) of it is left out. All arrays are f64 of a multiple of W elements.
"""

from __future__ import annotations

from flambeau._compiler.language import (
    absolute,
    any_lane,
    f64,
    i64,
    load,
    maximum,
    minimum,
    pointer,
    select,
    sqrt,
    static,
    store,
)
from flambeau._compiler.native import native
from flambeau._compiler.vector_math import exp, expm1, log, log1p
from flambeau._compiler.vector_math.parts import INFINITY


@native
def counted(total, term):
    """A sum with one term more, if that is a finite number."""
    return total + select(absolute(term) < INFINITY, term, 0.0)


@native
def gamma_integral(a, z, centre, nodes, weights, count, least):
    """What the numbers z move with their concentrations a; centre is log(z) - digamma(a)."""
    below = z < a
    gap = absolute(a - z)
    root = sqrt(z)
    width_below = 1.0 / (gap + minimum(root, a))
    width_above = minimum(1.0 / (gap + root), 1.0 + log1p(1.0 / z))
    width = select(below, width_below, width_above)
    offset = select(below, -centre, centre)
    total = z * 0.0
    for k in range(count):
        s = width * nodes[k]
        t = select(below, -s, s)
        exponent = a * t - z * expm1(t)
        total = counted(total, (s + offset) * exp(exponent) * weights[k])
        if any_lane(exponent >= least) == False:  # noqa: E712
            break
    return z * (total * width)


@native
def gamma_slopes(a: pointer(f64), z: pointer(f64), digamma: pointer(f64), out: pointer(f64),
                 n: i64, nodes: pointer(f64), weights: pointer(f64), count: i64, least: f64,
                 task: i64, tasks: i64, W: static):  # fmt: skip
    """W numbers at a time."""
    for group in range(n // W * task // tasks, n // W * (task + 1) // tasks):
        i = group * W
        number = load(z + i, W)
        centre = log(number) - load(digamma + i, W)
        store(out + i, gamma_integral(load(a + i, W), number, centre, nodes, weights, count,
                                      least))  # fmt: skip


@native
def beta_integral(x, a, b, centre, nodes, weights, count, least):
    """What shares x move with their concentrations a, over 1 - x; b is that of the other shares,
    centre is log(x) - digamma(a) + digamma(a + b)."""
    below = x * (a + b) < a
    rest = 1.0 - x
    start = select(below, x, rest)
    end = select(below, rest, x)
    odds = start / end
    power = select(below, a, b)
    other = select(below, b, a) - 1.0
    curve = minimum(sqrt(maximum(other, other.type(0.0)) * odds / end), power)
    width = 1.0 / (maximum(power - other * odds, power.type(0.0)) + curve)
    total = x * 0.0
    for k in range(count):
        s = width * nodes[k]
        rise = log1p(-odds * expm1(-s))
        exponent = other * rise - power * s
        factor = select(below, s - centre, centre + rise)
        total = counted(total, factor * exp(exponent) * weights[k])
        if any_lane(exponent >= least) == False:  # noqa: E712
            break
    return start * (total * width) / rest


@native
def beta_slopes(x: pointer(f64), a: pointer(f64), b: pointer(f64), digammas: pointer(f64),
                out: pointer(f64), n: i64, nodes: pointer(f64), weights: pointer(f64), count: i64,
                least: f64, task: i64, tasks: i64, W: static):  # fmt: skip
    """W numbers at a time; `digammas` are digamma(a) - digamma(a + b)."""
    for group in range(n // W * task // tasks, n // W * (task + 1) // tasks):
        i = group * W
        share = load(x + i, W)
        centre = log(share) - load(digammas + i, W)
        store(out + i, beta_integral(share, load(a + i, W), load(b + i, W), centre, nodes, weights,
                                     count, least))  # fmt: skip
