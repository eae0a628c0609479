"""`torch.ops` and `torch.library` beside PyTorch's: calls, errors, gradients, schemas.

Annotations are no texts here: operators are made of them.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.side_by_side import attempt, compare


def _overloads(t: Any) -> Any:
    add = t.ops.aten.add
    one = add.Tensor
    return (str(add), repr(add), str(one), repr(one), one.__name__, one.name(), one.namespace,
            one.overloadpacket is add, str(one._schema), one._schema.name,
            one._schema.overload_name, one._schema.is_mutable, one.is_view,
            t.ops.aten.view.default.is_view, add.overloads()[:2], one is add.Tensor)  # fmt: skip


def _schemas(t: Any) -> Any:
    def told(schema: Any) -> Any:
        return [(a.name, a.has_default_value(), a.default_value, a.kwarg_only, a.N,
                 a.is_out, a.is_write,
                 a.alias_info and (sorted(a.alias_info.before_set), a.alias_info.is_write))
                for a in schema.arguments]  # fmt: skip

    ops = t.ops.aten
    return [told(one._schema) for one in (ops.add.Tensor, ops.add_.Tensor, ops.view.default,
                                          ops.add.out, ops.softmax.int)]  # fmt: skip


def _calls(t: Any) -> Any:
    ops, x = t.ops.aten, t.arange(6.0).reshape(2, 3)
    found = [ops.add.Tensor(x, x, alpha=2), ops.add(x, 2), ops.add.Tensor(x, 2)]
    found += [ops.sub.Tensor(2, 3), ops.sum.dim_IntList(x, [0]), ops.sum(x), ops.split.Tensor(x, 1)]
    found += [ops.max.dim(x, 1), ops._softmax.default(x, 1, False), ops.mm.default(x, x.t())]
    found += [ops.add_.Tensor(x, 1), x, ops.zeros.default([2], dtype=t.int64)]
    found += [ops.native_layer_norm(x, [3], None, None, 1e-5)[0]]
    found += [ops.threshold_backward(x, x - 2, 0)]
    return found, ops.nll_loss_forward(x, t.tensor([0, 2]), t.ones(3), 1, 0)


def _convolution_backward(t: Any) -> Any:
    x, w = t.randn(2, 3, 5, 5), t.randn(4, 3, 3, 3)
    grad = t.randn(2, 4, 3, 3)
    numbers = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    return t.ops.aten.convolution_backward(grad, x, w, [4], *numbers, [True, True, True])


def _refusals(t: Any) -> Any:
    ops = t.ops.aten
    return [attempt(call) for call in (
        lambda: ops.nothing, lambda: t.ops.nowhere.nothing, lambda: ops.add.nothing,
        lambda: ops.mm.default(t.ones(2, 2)), lambda: ops.mm.default(1, 2), lambda: ops.mm("a", 1),
        lambda: ops.add.Tensor(t.ones(2), t.ones(2), alphas=1),
        lambda: ops.add.Tensor("a", t.ones(2)),
        lambda: hasattr(t.ops.nowhere, "nothing"), lambda: t.ops.load_library("/nowhere.so"),
    )]  # fmt: skip


def _library(t: Any) -> Any:
    with t.library._scoped_library("flambeau_one", "DEF") as library:
        found = [library.define("double(Tensor x, int n=2, *, float add=0.5) -> Tensor"),
                 attempt(library.impl, "double", lambda x: x, "Nowhere"),
                 attempt(t.library.Library, "prim", "DEF"), attempt(t.library.Library, "a", "X"),
                 attempt(t.library.define, "double", "(Tensor x) -> Tensor")]  # fmt: skip
        library.impl("double", lambda x, n=2, *, add=0.5: x * n + add, "CPU")
        ops, x = t.ops.flambeau_one, t.ones(2, requires_grad=True)
        found += [ops.double(x.detach()), ops.double(x.detach(), 3, add=1.0), ops.double(x, n=4)]
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            ops.double(x).sum().backward()
        found.append([str(w.message).split(" (Triggered")[0] for w in heard])
        found += [x.grad, str(ops.double.default._schema), attempt(ops.double, "a"), repr(library),
                  attempt(ops.double, x, 1, 2, 3), attempt(ops.double, x, m=1)]  # fmt: skip
    return found, attempt(lambda: ops.double(x))


def _composite(t: Any) -> Any:
    with t.library._scoped_library("flambeau_two", "FRAGMENT") as library:
        library.define("sine(Tensor x) -> Tensor")
        library.impl("sine", lambda x: x.sin() * 2, "CompositeImplicitAutograd")
        x = t.ones(2, requires_grad=True)
        y = t.ops.flambeau_two.sine(x)
        (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
        return y, g, t.autograd.grad(g.sum(), x), type(y.grad_fn).__name__


def _waits(t: Any) -> Any:
    """A kernel may come before the operator is defined."""
    with t.library._scoped_library("flambeau_three", "FRAGMENT") as library:
        library.impl("later", lambda x: x + 1, "CPU")
        library.define("later(Tensor x) -> Tensor")
        return t.ops.flambeau_three.later(t.ones(2))


def _custom(t: Any) -> Any:
    @t.library.custom_op("flambeau_four::scale", mutates_args=())
    def scale(x: t.Tensor, n: float = 2.0) -> t.Tensor:
        return x * n

    x = t.ones(2, requires_grad=True)
    meta = t.ones(2, device="meta")
    found = [repr(scale), scale._qualname, scale(t.ones(2)), scale(x), attempt(scale, meta),
             attempt(lambda: scale(x).sum().backward())]  # fmt: skip
    scale.register_fake(lambda x, n=2.0: t.empty_like(x))
    found += [scale(meta).shape, scale(meta).device]

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.n = inputs[1]

    scale.register_autograd(lambda ctx, grad: (grad * ctx.n, None), setup_context=setup)
    scale(x, 3.0).sum().backward()
    found += [x.grad, scale(x).grad_fn.name(), t.vmap(scale)(t.ones(3, 2)),
              t.library.opcheck(scale, (x,))]  # fmt: skip
    scale.register_vmap(lambda info, in_dims, x, n=2.0: (x * n + info.batch_size, in_dims[0]))
    found.append(t.vmap(scale)(t.ones(3, 2)))
    scale.register_kernel("cpu")(lambda x, n=2.0: x * n + 100)
    return [*found, scale(t.ones(2)), t.ops.flambeau_four.scale(t.ones(2), 1.0)]


def _lists(t: Any) -> Any:
    @t.library.custom_op("flambeau_five::many", mutates_args=())
    def many(x: t.Tensor, ys: list[t.Tensor], n: int, *, k: float = 2.0
             ) -> tuple[t.Tensor, t.Tensor]:  # fmt: skip
        return x * n, ys[0] * k

    def setup(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        ctx.told = inputs[2], keyword_only_inputs["k"], len(inputs[1]), len(output)

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        n, k, count, _ = ctx.told
        return g * n, [h * k, *[None] * (count - 1)], None

    many.register_autograd(backward, setup_context=setup)

    @t.library.custom_op("flambeau_five::several", mutates_args=())
    def several(x: t.Tensor) -> list[t.Tensor]:
        return [x * 1, x * 2]

    several.register_autograd(lambda ctx, grads: grads[0] + 2 * grads[1])
    x, y = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    a, b = many(x, [y, y], 3, k=5.0)
    (a + b).sum().backward()
    c, d = several(x)
    (c + d).sum().backward()
    return x.grad, y.grad, a, b, type(several(x)).__name__


def _written(t: Any) -> Any:
    @t.library.custom_op("flambeau_six::increase", mutates_args={"x"})
    def increase(x: t.Tensor) -> None:
        x.add_(1)

    @t.library.custom_op("flambeau_six::sly", mutates_args=())
    def sly(x: t.Tensor) -> t.Tensor:
        x.add_(1)
        return x.clone()

    @t.library.custom_op("flambeau_six::same", mutates_args=())
    def same(x: t.Tensor) -> t.Tensor:
        return x

    y = t.ones(2)
    found = [increase(y), y, y._version, str(increase._opoverload._schema),
             attempt(t.library.opcheck, sly, (t.ones(2),))]  # fmt: skip
    refused = attempt(same, y)
    return [*found, refused.kind, refused.text.rpartition("): ")[2]]


def _cast(t: Any) -> Any:
    @t.library.custom_op("flambeau_seven::twice", mutates_args=())
    def twice(x: t.Tensor, kind: t.dtype = t.float64) -> t.Tensor:
        return (x * 2).to(kind, copy=True)

    twice.register_autocast("cpu", t.bfloat16)
    with t.autocast("cpu"):
        low = twice(t.tensor([1.001]))
    return low, twice(t.tensor([1.001])), twice(t.ones(1), t.int32)


def _inferred(t: Any) -> Any:
    def all_types(x: t.Tensor, a: t.Tensor | None, b: list[t.Tensor], c: Sequence[int], d: bool,
                  e: str, f: int | None = None, *, g: t.dtype, h: t.device = None,
                  i: int | float | bool = 1, j: list[float] | None = None
                  ) -> tuple[t.Tensor, int]: ...  # fmt: skip

    def defaults(x: t.Tensor, y: float = 1.5, s: str = "a", d: t.dtype = t.float32, z: bool = True
                 ) -> None: ...  # fmt: skip

    infer = t.library.infer_schema
    return [infer(all_types, mutates_args=()), infer(all_types, mutates_args=("x", "b")),
            infer(all_types, mutates_args="unknown", op_name="foo"),
            infer(defaults, mutates_args=("x",))]  # fmt: skip


def _in_scripts(t: Any) -> Any:
    with t.library._scoped_library("flambeau_eight", "FRAGMENT") as library:
        library.define("plus(Tensor x, int n) -> Tensor")
        library.impl("plus", lambda x, n: x + n, "CPU")
        function = _ours if t is flambeau else _theirs
        return t.jit.script(function)(t.ones(2))


def _ours(x):  # noqa: ANN001, ANN202
    return flambeau.ops.flambeau_eight.plus(x, 3) * 2


def _theirs(x):  # noqa: ANN001, ANN202
    return reference.ops.flambeau_eight.plus(x, 3) * 2


def _by_function_modes(t: Any) -> Any:
    seen: list[str] = []

    class Mode(t.overrides.TorchFunctionMode):
        def __torch_function__(self, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(f))
            return f(*args, **(kwargs or {}))

    x = t.ones(2)
    with Mode():
        y = t.ops.aten.add.Tensor(x, x)
    return y, seen


SCENARIOS = [
    _overloads, _schemas, _calls, _convolution_backward, _refusals, _library, _composite, _waits,
    _custom, _lists, _written, _cast, _inferred, _in_scripts, _by_function_modes,
]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.filterwarnings("ignore")
def test_both_do_the_same(scenario: Callable[[Any], Any]) -> None:
    compare(scenario)
