"""Dual tensors beside PyTorch's: what is shown, carried, refused and forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch as reference
import torch.autograd.forward_ad

import flambeau
import flambeau.autograd.forward_ad


class Maker:
    """Tensors and dual tensors of one library."""

    def __init__(self, library: Any) -> None:
        self.torch, self.forward = library, library.autograd.forward_ad
        self.x, self.t = library.tensor([1.0, 2.0]), library.tensor([3.0, 4.0])
        self.function, self.mute = functions(library)

    def dual(self, x: Any = None, t: Any = None) -> Any:
        return self.forward.make_dual(self.x if x is None else x, self.t if t is None else t)

    def zeros(self) -> Any:
        return self.torch.zeros(4)


def functions(library: Any) -> tuple[Any, Any]:
    """A custom Function with a `jvp`, and one without."""

    class Scaled(library.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, factor: Any) -> Any:
            ctx.factor = factor
            ctx.save_for_forward(x)
            return x * factor

        @staticmethod
        def jvp(ctx: Any, x_t: Any, factor_t: Any) -> Any:
            assert factor_t is None
            (x,) = ctx.saved_tensors
            return x_t * ctx.factor + 0 * x

    class Mute(library.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    return Scaled, Mute


def written(m: Maker) -> Any:
    y = m.zeros()
    view = y[:2]
    view.add_(m.dual())
    return y, view


def assigned(m: Maker) -> Any:
    y = m.zeros()
    y[1:3] = m.dual()
    y[3:].copy_(m.dual()[:1])
    return y


def through_views(m: Maker) -> Any:
    dual = m.dual(m.x.clone(), m.t.clone())
    view = dual.view(2, 1)
    view.mul_(2)
    seen = str(dual), str(view)
    dual.zero_()
    return seen, dual, view


def in_regions(m: Maker) -> Any:
    with m.torch.no_grad():
        one = m.dual() * 2
    with m.torch.inference_mode():
        other = m.dual(m.x.clone(), m.t.clone()) * 2
    return one, other


def again(m: Maker) -> Any:
    m.forward.enter_dual_level()


def forgotten(m: Maker) -> Any:
    dual = m.dual()
    m.forward.exit_dual_level()
    found = str(dual), m.forward.unpack_dual(dual)
    m.forward.enter_dual_level()
    return found, m.forward.unpack_dual(dual)


def second_order(m: Maker) -> Any:
    a = m.torch.tensor([1.0, 2.0], requires_grad=True)
    tangent = m.forward.unpack_dual((m.dual(a) ** 3).sum()).tangent
    return m.forward.unpack_dual(m.torch.autograd.grad(tangent, a)[0]).primal


CASES: dict[str, Callable[[Maker], Any]] = {
    "dual": lambda m: m.dual(),
    "unpacked": lambda m: m.forward.unpack_dual(m.dual()),
    "same tangent": lambda m: m.forward.unpack_dual(m.dual()).tangent is m.t,
    "flags": lambda m: (m.dual().requires_grad, m.dual().is_leaf, m.dual()._is_view()),
    "plain": lambda m: m.forward.unpack_dual(m.x),
    "other size": lambda m: m.dual(t=m.torch.ones(3)),
    "integers": lambda m: m.dual(m.torch.tensor([1, 2])),
    "integer tangent": lambda m: m.dual(t=m.torch.tensor([1, 2])),
    "other type": lambda m: m.dual(t=m.t.double()),
    "number": lambda m: m.forward.make_dual(1.0, m.t),
    "twice": lambda m: m.dual(m.dual()),
    "level": again,
    "left": lambda m: m.forward.exit_dual_level(level=3),
    "detached": lambda m: (m.dual().detach(), m.dual().data, m.dual().clone()),
    "types": lambda m: (m.dual() > 1, m.dual().long(), m.dual().double(), m.dual().sum()),
    "no numbers": lambda m: (m.dual().tolist(), m.dual().numpy()),
    "regions": in_regions,
    "written": written,
    "assigned": assigned,
    "views": through_views,
    "in place": lambda m: (m.dual(m.x.clone(), m.t.clone()).exp_(), m.x, m.t),
    "random": lambda m: m.dual(m.x.clone(), m.t.clone()).bernoulli_(1.0),
    "without formula": lambda m: m.torch.igamma(m.dual(), m.x),
    "out": lambda m: m.torch.add(m.dual(), 1, out=m.torch.empty(2)),
    "function": lambda m: m.function.apply(m.dual(), 3),
    "function without jvp": lambda m: m.mute.apply(m.dual()),
    "forgotten": forgotten,
    "second order": second_order,
    "split": lambda m: m.torch.split(m.dual(), 1),
    "unsafe": lambda m: m.torch.unsafe_split(m.dual(), 1),
    "unsqueeze_": lambda m: m.dual(m.x.clone(), m.t.clone()).unsqueeze_(0),
    "names": lambda m: m.forward.UnpackedDualTensor._fields,
}


def told(library: Any, name: str) -> str:
    maker = Maker(library)
    maker.forward.enter_dual_level()
    try:
        return str(CASES[name](maker))
    except Exception as error:  # noqa: BLE001  # compared, whatever it is
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    finally:
        maker.forward._set_fwd_grad_enabled(True)
        maker.forward.exit_dual_level()


@pytest.mark.parametrize("name", sorted(CASES))
def test_dual_tensors(name: str) -> None:
    assert told(flambeau, name) == told(reference, name)


def test_there_is_a_level_first() -> None:
    for library in (flambeau, reference):
        forward = library.autograd.forward_ad
        with pytest.raises(RuntimeError, match="no level exists"):
            forward.make_dual(library.ones(1), library.ones(1))
        with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
            forward.exit_dual_level()


def test_tangents_are_not_carried_where_it_is_switched_off() -> None:
    for library in (flambeau, reference):
        forward = library.autograd.forward_ad
        with forward.dual_level():
            dual = forward.make_dual(library.ones(2), library.ones(2))
            with forward._set_fwd_grad_enabled(False):
                plain = dual * 2
            assert forward.unpack_dual(plain).tangent is None
            assert forward.unpack_dual(dual * 2).tangent is not None


@pytest.mark.parametrize("library", [flambeau, reference])
def test_gradcheck_in_forward_mode(library: Any) -> None:
    scaled, _ = functions(library)

    class Wrong(scaled):  # type: ignore[misc,valid-type]
        @staticmethod
        def jvp(ctx: Any, x_t: Any, factor_t: Any) -> Any:
            return x_t * 7

    x = library.tensor([1.0, 2.0], dtype=library.float64, requires_grad=True)
    options = {"check_forward_ad": True, "check_backward_ad": False, "check_undefined_grad": False}
    check = library.autograd.gradcheck
    assert check(lambda x: scaled.apply(x, 3), (x,), **options)
    assert not check(lambda x: Wrong.apply(x, 3), (x,), raise_exception=False, **options)
    with pytest.raises(RuntimeError, match="computed with forward mode mismatch for output 0"):
        check(lambda x: Wrong.apply(x, 3), (x,), **options)
    assert check(lambda x: x.sin() * x, (x,), check_forward_ad=True)


DRAWN = {
    "poisson": lambda t, x: t.poisson(x),
    "bernoulli": lambda t, x: t.bernoulli(x),
    "normal of means": lambda t, x: t.normal(x, 1.0),
    "normal of deviations": lambda t, x: t.normal(0.5, x),
    "normal of both": lambda t, x: t.normal(x, x * x),
    "means alone": lambda t, x: t.normal(x, t.ones(2)),
    "behind": lambda t, x: t.bernoulli(x) * 3,
    "beside": lambda t, x: t.bernoulli(x) * x.sin() - t.bernoulli(x) * x.sin(),
    "of no learner": lambda t, x: t.bernoulli(x.detach()),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=list(DRAWN))
def test_drawn_numbers_have_tangents_of_zeros(draw: Callable[[Any, Any], Any]) -> None:
    found = []
    for library in (flambeau, reference):
        library.manual_seed(3)
        forward = library.autograd.forward_ad
        with forward.dual_level():
            dual = forward.make_dual(library.tensor([0.2, 0.7]), library.tensor([3.0, 4.0]))
            primal, tangent = forward.unpack_dual(draw(library, dual))
        value = library.tensor([0.2, 0.7])
        _, pushed = library.func.jvp(lambda x: draw(library, x), (value,), (value,))  # noqa: B023
        told = tangent if tangent is None else tangent.tolist()
        found.append((list(primal.shape), told, pushed.shape == value.shape))
    assert found[0] == found[1]
