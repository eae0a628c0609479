"""`torch.nn.functional`'s activation functions: the rows with torch's `inplace` parameter."""

from __future__ import annotations

from typing import Any

from flambeau._core.doc_text import with_example
from flambeau._core.dtype import finfo
from flambeau._core.programs import EAGER
from flambeau._ops.activations import pointwise as act
from flambeau._ops.activations.pointwise import inplace as in_place
from flambeau._ops.table.binder import explained, without_public_attribute
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import alias, composite
from flambeau._ops.table.outputs import FOUND, write_out
from flambeau._ops.table.scalars import real
from flambeau._tensor.tensor import Tensor

SPACE = "nn.functional"
NO_BOOL = "Bool inputs not supported for hardtanh"


@composite("relu(Tensor self, bool inplace=False) -> Tensor", namespace=SPACE)
def relu(input: Tensor, inplace: bool = False) -> Any:
    """`max(input, 0)`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.relu(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return ops.relu_(input) if inplace else ops.relu(input)


@composite("relu6(Tensor self) -> Tensor", fused=True, method=False, function=False)
def relu6(input: Tensor) -> Any:
    """The input kept from 0 to 6."""
    if input._data.dtype.kind == "b":
        raise RuntimeError(NO_BOOL)
    return ops.hardtanh(input, 0, 6)


@composite("relu6_(Tensor self) -> Tensor", method=False, function=False)
def relu6_(input: Tensor) -> Any:
    """The input kept from 0 to 6, in place."""
    if input._data.dtype.kind == "b":
        raise RuntimeError(NO_BOOL)
    return ops.hardtanh_(input, 0, 6)


@composite("relu6(Tensor self, bool inplace=False) -> Tensor", namespace=SPACE, elementwise=True)
def functional_relu6(input: Tensor, inplace: bool = False) -> Any:
    """The input kept from 0 to 6.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.relu6(torch.tensor([-1., 2., 8.]))
    tensor([0., 2., 6.])
    """
    try:
        return relu6_.body(input) if inplace else relu6.body(input)
    except AttributeError as error:
        raise explained(functional_relu6, (input, inplace), error) from None


@composite("hardtanh(Tensor self, float min_val=-1.0, float max_val=1.0, bool inplace=False)"
           " -> Tensor", namespace=SPACE)  # fmt: skip
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Any:
    """The input kept from `min_val` to `max_val`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.hardtanh(torch.tensor([-2., 0.5, 2.]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if EAGER:
        try:
            _check_bounded(input, min_val)
        except AttributeError as error:
            raise explained(hardtanh, (input, min_val, max_val), error) from None
    if inplace:
        return ops.hardtanh_(input, min_val, max_val)
    return ops.hardtanh(input, min_val, max_val)


def _check_bounded(input: Tensor, low: float) -> None:
    kind = input._data.dtype.kind
    if kind == "b":
        raise RuntimeError(NO_BOOL)
    if kind == "u" and low < 0:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")


@composite("threshold(Tensor self, float threshold, float value, bool inplace=False) -> Tensor",
           namespace=SPACE)  # fmt: skip
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Any:
    """The input where it is above the threshold, else `value`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.threshold(torch.tensor([-1., 2.]), 0., -5.)
    tensor([-5.,  2.])
    """
    if inplace:
        return ops.threshold_(input, threshold, value)
    return ops.threshold(input, threshold, value)


@composite("leaky_relu(Tensor self, float negative_slope=0.01, bool inplace=False) -> Tensor",
           namespace=SPACE)  # fmt: skip
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """The input where it is positive, else `negative_slope * input`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.leaky_relu(torch.tensor([-1.0]), 0.1)
    tensor([-0.1000])
    """
    if inplace:
        return ops.leaky_relu_(input, negative_slope)
    return ops.leaky_relu(input, negative_slope)


@composite("elu(Tensor self, float alpha=1.0, bool inplace=False) -> Tensor", namespace=SPACE)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """The input where it is positive, else `alpha * (exp(input) - 1)`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.elu(torch.tensor([-1.0]))
    tensor([-0.6321])
    """
    return ops.elu_(input, alpha) if inplace else ops.elu(input, alpha)


@composite("selu(Tensor self, bool inplace=False) -> Tensor", namespace=SPACE)
def selu(input: Tensor, inplace: bool = False) -> Any:
    """`elu` with the constants that keep mean 0 and variance 1.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.selu(torch.tensor([-1., 1.]))
    tensor([-1.1113,  1.0507])
    """
    return ops.selu_(input) if inplace else ops.selu(input)


@composite("celu(Tensor self, float alpha=1.0, bool inplace=False) -> Tensor", namespace=SPACE)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """`max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.celu(torch.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
    return ops.celu_(input, alpha) if inplace else ops.celu(input, alpha)


@composite("rrelu(Tensor self, float lower=0.125, float upper=0.3333333333333333, "
           "bool training=False, bool inplace=False) -> Tensor", namespace=SPACE)  # fmt: skip
def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
          inplace: bool = False) -> Any:  # fmt: skip
    """Leaky ReLU with random slopes; their mean when not training.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.rrelu(torch.tensor([-1., 1.]), 0.1, 0.3)
    tensor([-0.2000,  1.0000])
    """
    if inplace:
        return ops.rrelu_(input, lower, upper, training)
    return ops.rrelu(input, lower, upper, training)


@composite("silu(Tensor self, bool inplace=False) -> Tensor", namespace=SPACE)
def silu(input: Tensor, inplace: bool = False) -> Any:
    """`input * sigmoid(input)`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.silu(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    return ops.silu_(input) if inplace else ops.silu(input)


@composite("mish(Tensor self, bool inplace=False) -> Tensor", namespace=SPACE)
def mish(input: Tensor, inplace: bool = False) -> Any:
    """`input * tanh(softplus(input))`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.mish(torch.tensor([0., 1.]))
    tensor([0.0000, 0.8651])
    """
    return ops.mish_(input) if inplace else ops.mish(input)


@composite("hardsigmoid(Tensor self, bool inplace=False) -> Tensor", namespace=SPACE)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Any:
    """`(input + 3) / 6`, kept from 0 to 1.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.hardsigmoid(torch.tensor([-4., 0., 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """
    return ops.hardsigmoid_(input) if inplace else ops.hardsigmoid(input)


@composite("hardswish(Tensor self, bool inplace=False) -> Tensor", namespace=SPACE)
def hardswish(input: Tensor, inplace: bool = False) -> Any:
    """`input * hardsigmoid(input)`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.hardswish(torch.tensor([1., 4.]))
    tensor([0.6667, 4.0000])
    """
    return ops.hardswish_(input) if inplace else ops.hardswish(input)


@composite("gelu(Tensor self, *, str approximate='none') -> Tensor", builtin=True,
           regular=True, fused=True, namespace=SPACE,
           elementwise=True, out_type=FOUND)  # fmt: skip
def gelu(input: Tensor, *, approximate: str = "none", out: Any = None) -> Any:
    """`x * Phi(x)`; with `approximate="tanh"`, by the tanh formula.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.gelu(torch.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """
    if approximate == "none":
        result = ops._gelu(input)
    elif approximate == "tanh":
        result = ops._gelu_tanh(input)
    else:
        raise RuntimeError("approximate argument must be either none or tanh.")
    return result if out is None else write_out(gelu, out, result, (input,))


@composite("softshrink(Tensor self, float lambd=0.5) -> Tensor", builtin=True, namespace=SPACE)
def softshrink(input: Tensor, lambd: float = 0.5, *, out: Any = None) -> Any:
    """The input moved towards 0 by `lambd`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.softshrink(torch.tensor([-1., 0.2, 1.]))
    tensor([-0.5000,  0.0000,  0.5000])
    """
    _check_shrinkage(input, lambd)
    return ops.softshrink(input, lambd, out=out)


def _check_shrinkage(input: Tensor, lambd: Any) -> None:
    if input.dtype.is_floating_point:
        limit = finfo(input.dtype).max
        if not 0 <= real(lambd) <= limit:
            raise RuntimeError(f"lambda must be in range [0, {limit:g}] for input dtype "
                               f"{input.dtype.scalar_name}, but found {lambd:g}")  # fmt: skip


@composite("glu(Tensor self, int dim=-1) -> Tensor", namespace=SPACE)
def glu(input: Tensor, dim: int = -1) -> Any:
    """The first half along a dim times the sigmoid of the second.

    >>> import flambeau as torch
    >>> torch.nn.functional.glu(torch.ones(2, 6)).shape
    torch.Size([2, 3])
    """
    try:
        ndim = input._data.ndim
    except AttributeError:
        without_public_attribute("dim", input)
        raise
    if ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return ops.glu(input, dim)


@composite("tanh(Tensor self) -> Tensor", namespace=SPACE)
def tanh(input: Tensor) -> Any:
    """The hyperbolic tangent.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.tanh(torch.tensor([0., 1.]))
    tensor([0.0000, 0.7616])
    """
    return input.tanh()  # type: ignore[attr-defined]


@composite("sigmoid(Tensor self) -> Tensor", namespace=SPACE)
def sigmoid(input: Tensor) -> Any:
    """`1 / (1 + exp(-input))`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.sigmoid(torch.tensor([0., 2.]))
    tensor([0.5000, 0.8808])
    """
    return input.sigmoid()  # type: ignore[attr-defined]


@composite("hardshrink(Tensor self, float lambd=0.5) -> Tensor", builtin=True, namespace=SPACE)
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Any = None) -> Any:
    """The input, and 0 from `-lambd` to `lambd`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.nn.functional.hardshrink(torch.tensor([-1., 0.2, 1.]))
    tensor([-1.,  0.,  1.])
    """
    return ops.hardshrink(input, lambd, out=out)


alias("nn.functional.prelu", "prelu")


for _name, _function in (("selu_", act.selu_), ("celu_", act.celu_), ("rrelu_", act.rrelu_)):
    composite(f"{_name}(Tensor self) -> Tensor", method=False)(_function)
    composite(f"{_name}.functional(Tensor self) -> Tensor", method=False, namespace=SPACE,
              public=_name)(_function)  # fmt: skip


def _inplace_function(row: str, given: str, printed: str) -> Any:
    def run(*arguments: Any, **options: Any) -> Any:
        return in_place(row)(*arguments, **options)

    run.__doc__ = with_example(
        f"`{row}` in place: the shape stays.",
        f"torch.nn.functional.{row}_(torch.tensor([-2.0, 3.0]){given})", printed,
    )  # fmt: skip
    return run


for _name, _given, _printed in (
    ("relu", "", "tensor([0., 3.])"), ("elu", "", "tensor([-0.8647,  3.0000])"),
    ("leaky_relu", "", "tensor([-0.0200,  3.0000])"), ("hardtanh", "", "tensor([-1.,  1.])"),
    ("threshold", ", 0.0, 5.0", "tensor([5., 3.])"),
):  # fmt: skip
    _function = _inplace_function(_name, _given, _printed)
    composite(f"{_name}_(Tensor self) -> Tensor", namespace=SPACE)(_function)
composite("threshold_(Tensor self) -> Tensor", method=False)(_function)
