"""The kernel of the negative log-likelihood of small batches."""

from __future__ import annotations

from flambeau._compiler.language import f64, i64, pointer, static
from flambeau._compiler.native import native


@native
def likelihood(scores: pointer(T), target: pointer(I), out: pointer(T), bad: pointer(i64), n: i64,
               classes: i64, ignored: i64, mean: i64, T: static, I: static):  # fmt: skip
    """out: minus the sum of the scores [n, classes] at the targets [n] that are not ignored, or
    their mean, summed in float64. bad: 1 where a target is no class."""
    wrong = i64(0)
    total = f64(0)
    count = i64(0)
    for k in range(n):
        place = i64(target[k])
        if place != ignored:
            if (place < 0) | (place >= classes):
                wrong = i64(1)
            else:
                total -= f64(scores[k * classes + place])
                count += 1
    if mean != 0:
        total = total / f64(count)
    out[0] = T(total)
    bad[0] = wrong
