"""Which function is for which pair of classes: the nearest one, as `isinstance` sees it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.distributions.distribution import Distribution

Pair = tuple[type, type]
Divergence = Callable[[Any, Any], Tensor]

_KL_REGISTRY: dict[Pair, Divergence] = {}
_KL_MEMOIZE: dict[Pair, Any] = {}


def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Any:
    """A decorator: the function is the divergence of such distributions.

    >>> class Mine(Distribution): pass
    >>> @register_kl(Mine, Mine)
    ... def kl_of_mine(p, q):
    ...     return torch.zeros(())
    >>> kl_divergence(Mine(validate_args=False), Mine(validate_args=False))
    tensor(0.)
    """
    pair = type_p, type_q
    if not all(isinstance(kind, type) for kind in pair):
        raise TypeError("issubclass() arg 1 must be a class")
    return partial(_register, pair)


def _register(pair: Pair, function: Divergence) -> Divergence:
    _KL_REGISTRY[pair] = function
    _KL_MEMOIZE.clear()
    return function


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """The function of the nearest registered pair; the first distribution's class goes first."""
    fits = [pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0])]
    fits = [pair for pair in fits if issubclass(type_q, pair[1])]
    if not fits:
        return NotImplemented

    def distances(pair: Pair) -> tuple[int, int]:
        return type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1])

    by_p = min(fits, key=distances)
    by_q = min(fits, key=lambda pair: distances(pair)[::-1])
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        names = f"{type_p.__name__}, {type_q.__name__}"
        way_out = f"{by_p[0].__name__}, {by_q[1].__name__}"
        warnings.warn(
            f"Ambiguous kl_divergence({names}). Please register_kl({way_out})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[by_p]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """How many nats more it takes to tell samples of `p` in the code of `q`.

    Errors: NotImplementedError if no function is registered for such distributions.
    """
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _dispatch_kl(*pair)
    function = _KL_MEMOIZE[pair]
    if function is NotImplemented:
        names = [kind.__name__ for kind in pair]
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {names[0]} and q type {names[1]}"
        )
    return function(p, q)
