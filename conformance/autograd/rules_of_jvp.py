"""What `jvp` of a custom function may return, for each kind of output that `forward` gives.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

FORWARD: dict[str, Callable[..., Any]] = {
    "new": lambda ctx, x: x * 2,
    "input": lambda ctx, x: x,
    "part": lambda ctx, x: x[:2],
    "written": lambda ctx, x: (ctx.mark_dirty(x), x.mul_(2))[1],
    "unmarked": lambda ctx, x: _without_gradient(ctx, x),
    "integers": lambda ctx, x: (x * 1, x > 0),
    "word": lambda ctx, x: (x * 1, "word"),
    "pair": lambda ctx, x: (x * 2, x[1:]),
}  # fmt: skip
JVP: dict[str, Callable[..., Any]] = {
    "same": lambda g: g,
    "new": lambda g: g * 2,
    "view": lambda g: g.view_as(g),
    "part": lambda g: g[:2],
    "copied part": lambda g: g[:2].clone(),
    "part of another": lambda g: g.clone()[:2],
    "written": lambda g: g.mul_(2),
    "pair": lambda g: (g * 2, g[1:]),
    "one of two": lambda g: (g, None),
    "both": lambda g: (g, g.clone()),
    "number": lambda g: 3,
    "list": lambda g: [g],
    "wider": lambda g: g.double(),
}


def _without_gradient(ctx: Any, x: Any) -> Any:
    other = x * 3
    ctx.mark_non_differentiable(other)
    return x * 1, other


def _tried(t: Any, forward: Any, jvp: Any, of_view: bool) -> Any:
    ad = t.autograd.forward_ad
    made = type("Made", (t.autograd.Function,), {
        "forward": staticmethod(forward),
        "jvp": staticmethod(lambda ctx, g: jvp(g)),
    })  # fmt: skip
    with warnings.catch_warnings(), ad.dual_level():
        warnings.simplefilter("ignore")  # PyTorch imports more of itself when one is first called
        x = ad.make_dual(t.arange(4.0) + 1, t.ones(4))
        try:
            found = made.apply(x.view_as(x) if of_view else x)
        except RuntimeError as error:
            return str(error).partition("\n")[0]
        results = found if isinstance(found, tuple) else (found,)
        return [ad.unpack_dual(r).tangent if isinstance(r, t.Tensor) else r for r in results]


def jvp_of_all_kinds(t):
    ways = [(kind, way) for kind in FORWARD for way in JVP]
    ways.remove(("pair", "one of two"))  # PyTorch's own words for a view without a tangent
    return {
        f"{kind}, {way}": _tried(t, FORWARD[kind], JVP[way], of_view=False) for kind, way in ways
    }


def jvp_of_views(t):
    return {
        f"{kind}, {way}": _tried(t, FORWARD[kind], JVP[way], of_view=True)
        for kind in ("input", "part", "written") for way in JVP
    }  # fmt: skip


def _function(t: Any, calls: list[Any], jvp: Any) -> Any:
    def counted(ctx: Any, *tangents: Any) -> Any:
        calls.append(len(tangents))
        return jvp(*tangents)

    def forward(ctx: Any, x: Any, y: Any) -> Any:
        inside = t.autograd.forward_ad._current_level >= 0
        calls.append(inside and (x.requires_grad or y.requires_grad))
        ctx.set_materialize_grads(False)
        return x * 2 + y * 3

    return type("Made", (t.autograd.Function,), {
        "forward": staticmethod(forward),
        "jvp": staticmethod(counted),
    })  # fmt: skip


def _sum(one: Any, other: Any) -> Any:
    if one is None:
        return other * 3
    return one * 2 if other is None else one * 2 + other * 3


def _wrong_alone(one: Any, other: Any) -> Any:
    return other * 4 if one is None else _sum(one, other)


def gradcheck_forward_counts(t):
    found = []
    for undefined in (False, True):
        for batched in (False, True):
            for jvp in (_sum, _wrong_alone):
                calls: list[Any] = []
                x = t.ones(1, dtype=t.float64, requires_grad=True)
                y = t.ones(1, dtype=t.float64, requires_grad=True)
                try:
                    t.autograd.gradcheck(
                        _function(t, calls, jvp).apply, (x, y), check_forward_ad=True,
                        check_backward_ad=False, check_undefined_grad=undefined,
                        check_batched_grad=False, check_batched_forward_grad=batched,
                    )  # fmt: skip
                    said = ""
                except RuntimeError as error:
                    said = str(error)
                found.append(
                    (undefined, batched, said, calls.count(2), any(c is True for c in calls))
                )
    return found


def _bits(t: Any, kind: str) -> Any:
    z = t.ones(2, dtype=t.complex128)
    return {"plain": z, "conj": z.conj(), "neg": z._neg_view()}[kind]


def dual_tangents_lie_as_their_tensors(t):
    found = {}
    ad = t.autograd.forward_ad
    kinds = ("plain", "conj", "neg")
    for kind, other in [(kind, other) for kind in kinds for other in kinds]:
        given = _bits(t, other)
        with ad.dual_level():
            tangent = ad.unpack_dual(ad.make_dual(_bits(t, kind), given)).tangent
            told = tangent is given, tangent.is_conj(), tangent.is_neg(), tangent.resolve_conj()
            found[f"{kind}, {other}"] = told
    for start in (0, 1):
        part = t.arange(5.0)[start : start + 4].detach()
        with ad.dual_level():
            dual = ad.make_dual(part, t.ones(4))
            tangent = ad.unpack_dual(dual).tangent
            size = tangent.untyped_storage().nbytes()
            whole = ad.unpack_dual(dual.as_strided((5,), (1,), 0)).tangent
            found[f"part from {start}"] = size, tangent.storage_offset(), whole
    return found


def dual_tangent_that_is_dual(t):
    ad = t.autograd.forward_ad
    with ad.dual_level():
        try:
            ad.make_dual(t.ones(2), ad.make_dual(t.ones(2), t.ones(2)))
        except RuntimeError as error:
            return str(error)


def detach_takes_the_tangent(t):
    ad = t.autograd.forward_ad
    with ad.dual_level():
        x = ad.make_dual(t.ones(2), t.ones(2)).clone()
        x.detach_()
        return ad.unpack_dual(x).tangent, ad.unpack_dual(x * 2).tangent


def is_view_of_inference_tensors(t):
    found = []
    for requires_grad in (True, False):
        with t.inference_mode():
            x = t.ones(2, 3, requires_grad=requires_grad)
            inner = x[0]
        found += [
            v._is_view() for v in (inner, x.view(-1), x[0], x.detach(), x.t(), x.expand(2, 3))
        ]
    return found
