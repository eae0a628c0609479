"""`__torch_dispatch__` beside PyTorch: what modes see, and classes that wrap other tensors."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from conformance.side_by_side import attempt, compare
from flambeau._core import modes

CALLS: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda t: (t.ones(2) + t.ones(2), t.ones(2) + 1, 1 - t.ones(2), t.ones(2) / 2,
                             2 ** t.ones(2), t.ones(2) ** 2, -t.ones(2), t.ones(3).mul_(2),
                             t.ones(2) > 0.5, t.ones(2) == 1),
    "linear": lambda t: (_f(t).linear(t.ones(2, 3), t.ones(4, 3), t.ones(4)),
                         _f(t).linear(t.ones(2, 3), t.ones(4, 3)),
                         _f(t).linear(t.ones(5, 2, 3), t.ones(4, 3), t.ones(4)),
                         _f(t).linear(t.ones(5, 2, 3), t.ones(4, 3))),
    "matmul": lambda t: (t.ones(2, 3) @ t.ones(3, 4), t.ones(2, 3) @ t.ones(3),
                         t.ones(3) @ t.ones(3), t.ones(2, 3, 4) @ t.ones(2, 4, 5),
                         t.ones(2, 3, 4) @ t.ones(4, 5)),
    "layers": lambda t: (_f(t).relu(t.ones(2)), _f(t).gelu(t.ones(2)), _f(t).silu(t.ones(2)),
                         _f(t).softmax(t.ones(2), 0), _f(t).log_softmax(t.ones(2), 0),
                         _f(t).layer_norm(t.ones(2, 3), (3,), t.ones(3), t.ones(3)),
                         _f(t).conv2d(t.ones(1, 2, 4, 4), t.ones(3, 2, 2, 2)),
                                          _f(t).avg_pool2d(t.ones(1, 1, 4, 4), 2)),
    "losses": lambda t: (_f(t).mse_loss(t.ones(2), t.zeros(2)),
                         _f(t).cross_entropy(t.ones(2, 3), t.zeros(2, dtype=t.int64)),
                         _f(t).binary_cross_entropy_with_logits(t.ones(2), t.ones(2))),
    "views": lambda t: (t.ones(6).view(2, 3), t.ones(2, 3).t(), t.ones(2, 3).transpose(0, 1),
                        t.ones(2, 3).permute(1, 0), t.ones(2).unsqueeze(0), t.ones(2, 3)[0],
                        t.ones(2, 3)[:, 1:], t.ones(2, 1).expand(2, 3), t.ones(2, 3).split(1)),
    "reductions": lambda t: (t.ones(2).sum(), t.ones(2, 3).sum(1), t.ones(2, 3).mean(1),
                             t.ones(2, 3).max(1), t.ones(2).max(), t.ones(2, 3).var(1)),
    "factories": lambda t: (t.ones(2), t.zeros(2, 3), t.rand(2), t.randn((2,)), t.arange(3),
                            t.empty(2), t.full((2,), 1.0), t.full(size=(2,), fill_value=1.0),
                            t.randint(3, (2,)), t.eye(2), t.linspace(0, 1, 3),
                            t.ones_like(t.zeros(2))),
    "numbers": lambda t: (t.ones(1).item(), bool(t.ones(1) > 0), float(t.ones(1))),
    "writes": lambda t: (t.ones(2).copy_(t.zeros(2)), t.ones(2).fill_(3), t.ones(2).zero_(),
                         t.empty(2).uniform_().shape, t.ones(2).detach()),
    "geometry": lambda t: (t.ones(2, 3).unsqueeze_(1), t.ones(2, 1).squeeze_(),
                           t.ones(2, 1).squeeze_(1), t.ones(1, 2, 1).squeeze_((0, 2)),
                           t.ones(2, 3).transpose_(0, -1), t.ones(2, 3).swapaxes_(0, 1),
                           t.ones(2, 3).swapdims_(dim0=0, dim1=1), t.ones(2, 3).t_(),
                           t.ones(4).as_strided_((2, 2), (1, 1)), t.ones(4).resize_(2, 1),
                           t.ones(4).resize_((2, 2)), t.ones(4).resize_as_(t.ones(2)),
                           t.ones(4).set_(t.ones(2))),
    "joins": lambda t: (t.cat([t.ones(2), t.zeros(2)]), t.stack([t.ones(2), t.zeros(2)]),
                        t.where(t.ones(2) > 0, t.ones(2), t.zeros(2)), t.ones(2).to(t.float64),
                        t.ones(2).clamp(0, 1), t.ones(2).argmax()),
}  # fmt: skip
"""Calls whose operators are those of PyTorch, one for one."""


def _f(t: Any) -> Any:
    return t.nn.functional


def logging(t: Any) -> Any:
    """A mode that notes what it sees."""
    from importlib import import_module

    dispatch = import_module(f"{t.__name__}.utils._python_dispatch")

    class Logging(dispatch.TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        def __torch_dispatch__(self, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            told = sorted(
                set(kwargs or {}) - {"device", "pin_memory"}
            )  # factories have them, there
            self.seen.append(f"{f} {len(args)} {told} {len(types)}")
            return f(*args, **(kwargs or {}))

    return Logging()


@pytest.mark.parametrize("name", list(CALLS))
def test_modes_see_the_same_operators(name: str) -> None:
    def scenario(t: Any) -> Any:
        with logging(t) as mode:
            result = CALLS[name](t)
        random = name == "factories"
        return [[r.shape for r in result] if random else result, mode.seen]

    compare(scenario)


def wrapping(t: Any) -> Any:
    """A class of tensors without memory that hold another tensor."""
    tree_map = t.utils._pytree.tree_map

    class Wrapper(t.Tensor):
        log: list[str] = []  # noqa: RUF012
        __torch_function__ = t._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls: Any, inner: Any, requires_grad: Any = None) -> Any:
            told = inner.requires_grad if requires_grad is None else requires_grad
            made = t.Tensor._make_wrapper_subclass(
                cls, inner.size(), strides=inner.stride(), dtype=inner.dtype,
                device=inner.device, requires_grad=told)  # fmt: skip
            made.inner = inner
            return made

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            pass

        def __repr__(self) -> str:
            return f"Wrapper({self.inner})"

        @classmethod
        def __torch_dispatch__(cls, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            cls.log.append(f"{f} {[kind.__name__ for kind in types]}")
            args, kwargs = tree_map(cls.unwrap, args), tree_map(cls.unwrap, kwargs or {})
            return tree_map(cls.wrap, f(*args, **kwargs))

        @staticmethod
        def unwrap(value: Any) -> Any:
            return value.inner if isinstance(value, Wrapper) else value

        @staticmethod
        def wrap(value: Any) -> Any:
            return Wrapper(value) if isinstance(value, t.Tensor) else value

    return Wrapper


def _wrapped(t: Any) -> Any:
    return wrapping(t)(t.arange(6.0).reshape(2, 3))


def _facts(t: Any) -> Any:
    w = _wrapped(t)
    return (w.shape, w.dtype, w.device, w.stride(), w.requires_grad, type(w).__name__,
            w.is_contiguous(), w.numel(), w.dim(), w.layout, repr(w), str(w))  # fmt: skip


def _operators(t: Any) -> Any:
    w, f = _wrapped(t), t.nn.functional
    made = (w + 1, t.ones(2, 3) + w, w * w, w @ w.t(), f.relu(w), w.sum(), w[0], w.view(3, 2),
            w.transpose(0, 1), t.cat([w, w]), w.split(1), w.max(1), w.softmax(1),
            f.layer_norm(w, (3,)), f.linear(w, t.ones(4, 3), t.ones(4)), t.zeros_like(w),
            w.new_zeros(2), w.clone(), w.detach(), w.to(t.float64))  # fmt: skip
    return [repr(part) for part in made], w.float() is w, type(w).log


def _written(t: Any) -> Any:
    w, found = _wrapped(t), []
    for write in (lambda: w.add_(1), lambda: w.copy_(t.zeros(2, 3)), lambda: w.fill_(3),
                  lambda: w.zero_(), lambda: w.__setitem__(0, 2.0)):  # fmt: skip
        write()
        found += [w.inner.clone(), w._version > 0]
    return found, type(w.uniform_()).__name__


def _numbers(t: Any) -> Any:
    w = _wrapped(t)
    refused = attempt(t.Tensor._make_wrapper_subclass, t.Tensor, (2,))
    return (w.sum().item(), bool(w.sum() > 0), float(w[0, 1]), attempt(w.numpy), attempt(w.tolist),
            refused.kind)  # fmt: skip


def _gradients(t: Any) -> Any:
    kind = wrapping(t)
    p = kind(t.arange(6.0).reshape(2, 3), requires_grad=True)
    (p * p).sum().backward()
    once = p.grad
    (p * 2).sum().backward()
    (g,) = t.autograd.grad(t.nn.functional.linear(t.ones(1, 3), p).relu().sum(), p)
    return (type(p.grad).__name__, repr(once), repr(p.grad), repr(g), (p * 2).grad_fn.name())


def _training(t: Any) -> Any:
    kind = wrapping(t)
    found = []
    for make in (lambda p: t.optim.SGD(p, lr=0.5, momentum=0.9, foreach=False),
                 lambda p: t.optim.AdamW(p, lr=0.1)):  # fmt: skip
        layer = t.nn.Linear(3, 2)
        layer.weight = t.nn.Parameter(kind(t.linspace(0, 1, 6).reshape(2, 3)))
        with t.no_grad():
            layer.bias.fill_(0.1)
        optimizer = make(layer.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            loss = t.nn.functional.cross_entropy(layer(t.ones(4, 3)), t.tensor([0, 1, 0, 0]))
            loss.backward()
            optimizer.step()
        weight = layer.weight
        found += [weight.inner, type(weight).__name__, layer.bias, repr(loss)[:8],
                  isinstance(weight, t.nn.Parameter), type(weight.grad).__name__]  # fmt: skip
    return found


def _modes_and_classes(t: Any) -> Any:
    w = _wrapped(t)
    with logging(t) as outer, logging(t) as inner:
        y = w * 2
    refusing = type(outer)()
    type(refusing).__torch_dispatch__ = lambda *args, **kwargs: NotImplemented
    with refusing:
        refused = attempt(lambda: t.ones(2) + 1)
    return repr(y), outer.seen, inner.seen, refused.kind, refused.text.splitlines()[0]


def _history(t: Any) -> Any:
    """What a mode gives is recorded as what the operator would have given."""
    mode = logging(t)
    plain = type(mode).__torch_dispatch__

    def tenfold(self: Any, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return plain(self, f, types, args, kwargs) * 10

    type(mode).__torch_dispatch__ = tenfold
    x = t.ones(2, requires_grad=True)
    with mode:
        y = x * 3
        z = y.view(1, 2)
    (g,) = t.autograd.grad(z.sum(), x)
    return y, z, g, y.grad_fn.name(), z.grad_fn.name()


def _geometry_is_recorded(t: Any) -> Any:
    """Tensors that become views of themselves, and writes, below a mode: history, versions."""
    found = []
    for change in (
        lambda y: y.unsqueeze_(1), lambda y: y.t_(), lambda y: y.unsqueeze_(0).squeeze_(0),
        lambda y: y[:].t_(), lambda y: y.as_strided_((3, 2), (2, 1)), lambda y: y.t_().mul_(2),
        lambda y: y.zero_(), lambda y: y[0].add_(1), lambda y: y.unsqueeze_(0).squeeze_((0, 1)),
    ):  # fmt: skip
        x = t.arange(6.0).reshape(2, 3).requires_grad_()
        y = x * 2
        with logging(t) as mode:
            changed = change(y)
        weights = t.arange(float(changed.numel())).reshape(changed.shape)
        (grad,) = t.autograd.grad((changed * weights).sum(), x)
        found.append([mode.seen, grad, y._version, changed.grad_fn.name(), changed.stride()])
    x = t.ones(2, 3)
    with logging(t):
        x.resize_(2, 3)
    return [*found, x._version]


def _backward_is_seen(t: Any) -> Any:
    x, w = t.ones(2, 3, requires_grad=True), t.ones(4, 3, requires_grad=True)
    y = t.nn.functional.linear(x, w).relu()
    with logging(t) as mode:
        y.sum().backward()
    names = [text.partition(" ")[0] for text in mode.seen]
    return x.grad, w.grad, [name for name in ("aten.mm.default", "aten.threshold_backward.default")
                            if name in names]  # fmt: skip


SCENARIOS = [_facts, _operators, _written, _numbers, _gradients, _training, _modes_and_classes,
             _history, _backward_is_seen, _geometry_is_recorded]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.filterwarnings("ignore")
def test_both_do_the_same(scenario: Callable[[Any], Any]) -> None:
    compare(scenario)
    gc.collect()  # optimizers and parameters hold each other, and calls are watched meanwhile


def test_nothing_is_watched_afterwards() -> None:
    import flambeau

    gc.collect()
    before = modes.watch.active, modes.watch.results
    wrapped = _wrapped(flambeau)
    assert modes.watch.active > before[0]
    del wrapped
    gc.collect()
    assert (modes.watch.active, modes.watch.results) == before
