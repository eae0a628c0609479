"""Special functions: error, gamma, Bessel, and orthogonal polynomials.

The kernels are in `_ops/special/by_name.py`; here are their types, gradients and names.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._compiler import expr as E
from flambeau._compiler.primitives import add_primitive
from flambeau._core.doc_text import with_example
from flambeau._ops.elementwise import transcendental, trigonometry  # noqa: F401  aliased below
from flambeau._ops.elementwise.arithmetic import underived
from flambeau._ops.table.namespace import get_inplace, ops
from flambeau._ops.table.op import InAten, alias, composite, pointwise
from flambeau._tensor.tensor import Tensor, method

ROOT_PI = math.sqrt(math.pi)


def _lazy_kernel(name: str) -> Any:
    """A kernel of the templates, imported when it first runs."""

    def run(*arrays: np.ndarray) -> np.ndarray:
        from flambeau._ops.special import by_name as special

        kernel = getattr(special, name)
        return kernel(*arrays)  # type: ignore[no-any-return]

    return run


def _primitive(name: str) -> str:
    key = f"special_{name}"
    add_primitive(key, _lazy_kernel(name))
    return key


def _normal_density(x: Any) -> Any:
    return ops.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _i1_grad(grad: Any, self: Any, result: Any) -> Any:
    tiny = ops.logical_not(ops.abs(self) > np.finfo(self._data.dtype).eps)
    safe = ops.where(tiny, 1.0, self)
    return ops.where(tiny, 0.5 * grad, grad * (ops.i0(safe) - result / safe))


def _i1e_grad(grad: Any, self: Any, result: Any) -> Any:
    tiny = ops.logical_not(ops.abs(self) > np.finfo(self._data.dtype).eps)
    safe = ops.where(tiny, 1.0, self)
    slope = ops.special.i0e(safe) - result * (ops.sgn(safe) + 1 / safe)
    return ops.where(tiny, 0.5 * grad, grad * slope)


def _log_ndtr_grad(grad: Any, self: Any) -> Any:
    return grad / ops.special.erfcx(self * -math.sqrt(0.5)) * math.sqrt(2 / math.pi)


ROOT_ROWS: dict[str, tuple[str, str, Any]] = {
    "erf": ("The error function.", "erf_vml_cpu",
            lambda grad, self: 2 / ROOT_PI * ops.exp(-self * self) * grad),
    "erfc": ("`1 - erf(input)`, exact for large inputs.", "erfc_vml_cpu",
             lambda grad, self: -2 / ROOT_PI * ops.exp(-self * self) * grad),
    "erfinv": ("The inverse of `erf` on -1 to 1.", "erfinv_vml_cpu",
               lambda grad, self: ROOT_PI / 2 * ops.exp(ops.erfinv(self) ** 2) * grad),
    "lgamma": ("The logarithm of the absolute value of the gamma function.", "lgamma_vml_cpu",
               lambda grad, self: grad * ops.digamma(self)),
    "digamma": ("The derivative of `lgamma`.", "digamma",
                lambda grad, self: grad * ops._polygamma(self, 1)),
    "i0": ("The modified Bessel function of the first kind, of order 0.", "i0_vml_cpu",
           lambda grad, self: grad * ops.special.i1(self)),
}  # fmt: skip
"""name -> (what it is, the word in errors about types, the gradient)"""

ROOT_EXAMPLES = {
    "erf": ("[0.0, 1.0]", "tensor([0.0000, 0.8427])"),
    "erfc": ("[0.0, 3.0]", "tensor([1.0000e+00, 2.2090e-05])"),
    "erfinv": ("[0.0, 0.5]", "tensor([0.0000, 0.4769])"),
    "lgamma": ("[1.0, 5.0]", "tensor([0.0000, 3.1781])"),
    "digamma": ("[1.0]", "tensor([-0.5772])"),
    "i0": ("[0.0, 1.0]", "tensor([1.0000, 1.2661])"),
}
"""name -> (what it is given, what that prints)"""

NAMED_ROWS: dict[str, tuple[str, str, Any]] = {
    "i0e": ("`exp(-abs(x)) * i0(x)`.", "SpecialI0EBackward0",
            lambda grad, self, result: grad * (ops.special.i1e(self) - ops.sgn(self) * result)),
    "i1": ("The modified Bessel function of the first kind, of order 1.", "SpecialI1Backward0",
           _i1_grad),
    "i1e": ("`exp(-abs(x)) * i1(x)`.", "SpecialI1EBackward0", _i1e_grad),
    "ndtr": ("The normal distribution function.", "MulBackward1",
             lambda grad, self: grad * _normal_density(self)),
    "ndtri": ("The inverse of `ndtr`.", "SpecialNdtriBackward0",
              lambda grad, result: grad * math.sqrt(2 * math.pi) * ops.exp(result * result / 2)),
    "log_ndtr": ("The logarithm of `ndtr`.", "SpecialLogNdtrBackward0", _log_ndtr_grad),
    "erfcx": ("`exp(x * x) * erfc(x)`.", "SpecialErfcxBackward0",
              lambda grad, self, result: (2 * self * result - 2 / ROOT_PI) * grad),
}  # fmt: skip
"""name -> (what it is, the node's name, the gradient)"""

BARE_ROWS: dict[str, str] = {
    "airy_ai": "The Airy function Ai.",
    "bessel_j0": "The Bessel function of the first kind, of order 0.",
    "bessel_j1": "The Bessel function of the first kind, of order 1.",
    "bessel_y0": "The Bessel function of the second kind, of order 0.",
    "bessel_y1": "The Bessel function of the second kind, of order 1.",
    "modified_bessel_i0": "The modified Bessel function of the first kind, of order 0.",
    "modified_bessel_i1": "The modified Bessel function of the first kind, of order 1.",
    "modified_bessel_k0": "The modified Bessel function of the second kind, of order 0.",
    "modified_bessel_k1": "The modified Bessel function of the second kind, of order 1.",
    "scaled_modified_bessel_k0": "`exp(x) * modified_bessel_k0(x)`.",
    "scaled_modified_bessel_k1": "`exp(x) * modified_bessel_k1(x)`.",
    "spherical_bessel_j0": "The spherical Bessel function of the first kind, of order 0.",
}
"""Functions that torch has no gradient for: name -> what it is"""

NAMED_X = ("airy_ai", "spherical_bessel_j0", "scaled_modified_bessel_k0",
           "scaled_modified_bessel_k1")  # fmt: skip
"""Those whose argument is called `x`, not `input`."""

POLYNOMIAL_ROWS: dict[str, str] = {
    "chebyshev_polynomial_t": "Chebyshev's polynomial of the first kind",
    "chebyshev_polynomial_u": "Chebyshev's polynomial of the second kind",
    "chebyshev_polynomial_v": "Chebyshev's polynomial of the third kind",
    "chebyshev_polynomial_w": "Chebyshev's polynomial of the fourth kind",
    "hermite_polynomial_h": "The physicist's Hermite polynomial",
    "hermite_polynomial_he": "The probabilist's Hermite polynomial",
    "laguerre_polynomial_l": "Laguerre's polynomial",
    "legendre_polynomial_p": "Legendre's polynomial",
    "shifted_chebyshev_polynomial_t": "Chebyshev's polynomial of the first kind on 0 to 1",
    "shifted_chebyshev_polynomial_u": "Chebyshev's polynomial of the second kind on 0 to 1",
    "shifted_chebyshev_polynomial_v": "Chebyshev's polynomial of the third kind on 0 to 1",
    "shifted_chebyshev_polynomial_w": "Chebyshev's polynomial of the fourth kind on 0 to 1",
}

SINGLE_DOUBLE = "bool int float32 float64"
NOT_HALF = frozenset(("erfcx", "log_ndtr", "ndtri"))


def _unary(name: str, text: str) -> Any:
    key = _primitive(name)

    def body(self: Any) -> Any:
        return getattr(E, key)(self)

    body.__doc__ = text
    return body


def _binary(name: str, text: str) -> Any:
    key = _primitive(name)

    def body(self: Any, other: Any) -> Any:
        return getattr(E, key)(self, other)

    body.__doc__ = text
    return body


def _shown(name: str, text: str) -> str:
    numbers, printed = ROOT_EXAMPLES[name]
    return with_example(text, f"torch.{name}(torch.tensor({numbers}))", printed)


def _register() -> None:
    for name, (text, label, formula) in ROOT_ROWS.items():
        pointwise(f"{name}(Tensor self) -> Tensor", promote="float", dtypes="bool int float",
                  autocast="cuda=float32" if name == "erfinv" else None,
                  label=label, backward={"self": formula}, fused=name == "erf",
                  sparse_entries="distinct" if name in ("erf", "erfinv") else "",
                  )(_unary(name, _shown(name, text)))  # fmt: skip
    special: dict[str, Any] = {"promote": "float", "namespace": "special", "method": False,
                               "inplace": False}  # fmt: skip
    for name, (text, node, formula) in NAMED_ROWS.items():
        pointwise(f"special_{name}(Tensor self) -> Tensor", public=name, label=f"{name}_cpu",
                  dtypes=SINGLE_DOUBLE if name in NOT_HALF else "bool int float", node=node,
                  out_writer="copy_" if name == "ndtr" else "",
                  saved_names={"self": None} if name == "ndtr" else {},
                  saved_facts={"other": 0.5} if name == "ndtr" else {},
                  also_saved=("result",) if name == "log_ndtr" else (),
                  backward={"self": formula}, **special)(_unary(name, text))  # fmt: skip
    for name, text in BARE_ROWS.items():
        pointwise(f"special_{name}(Tensor self) -> Tensor", public=name, label=f"{name}_cpu",
                  python_names={"self": "x"} if name in NAMED_X else {},
                  dtypes=SINGLE_DOUBLE, **special)(_unary(name, text))  # fmt: skip
    for name, text in POLYNOMIAL_ROWS.items():
        pointwise(f"special_{name}(Tensor x, Tensor n) -> Tensor", public=name, numbers="both",
                  label=f"{name}_cpu", dtypes=SINGLE_DOUBLE, **special,
                  )(_binary(name, f"{text} of degree n at x."))  # fmt: skip


_register()


_primitive("zeta")


@pointwise(
    "special_zeta(Tensor self, Tensor other) -> Tensor",
    promote="float",
    numbers="both",
    dtypes=SINGLE_DOUBLE,
    namespace="special",
    public="zeta",
    method=False,
    inplace=False,
    label="zeta_cpu",
    node="SpecialZetaBackward0",
    number_nodes={"self": "SpecialZetaBackward1", "other": "SpecialZetaBackward2"},
    backward={
        "self": underived("zeta"),
        "other": lambda grad, self, other: grad * -self * ops.special.zeta(self + 1, other),
    },
)
def zeta(self: Any, other: Any) -> Any:
    """Hurwitz' zeta function: the sum of `(k + other) ** -input` over k = 0, 1, ...

    >>> import flambeau as torch
    >>> torch.special.zeta(torch.tensor([2.0]), torch.tensor([1.0]))
    tensor([1.6449])
    """
    return E.special_zeta(self, other)


def _entr(x: np.ndarray) -> Any:
    inside = np.where(x > 0, -x * np.log(np.where(x > 0, x, 1)), np.where(x == 0, 0, -np.inf))
    return np.where(np.isnan(x), x, inside).astype(x.dtype)


add_primitive("entr", _entr)


@pointwise(
    "special_entr(Tensor self) -> Tensor",
    promote="float",
    dtypes="bool int float",
    namespace="special",
    public="entr",
    method=False,
    inplace=False,
    label="entr_cpu",
    node="SpecialEntrBackward0",
    backward={
        "self": lambda grad, self: grad * -(1 + ops.log(self)),
    },
)
def entr(self: Any) -> Any:
    """`-input * log(input)`; 0 at 0 and -inf below.

    >>> import flambeau as torch
    >>> torch.special.entr(torch.tensor([0.0, 0.5]))
    tensor([0.0000, 0.3466])
    """
    return E.entr(self)


# ---- gamma functions with an order


def _igamma_grad(grad: Any, self: Any, other: Any) -> Any:
    return grad * ops.exp((self - 1) * ops.log(other) - other - ops.lgamma(self))


_primitive("igamma")
_primitive("igammac")


@pointwise(
    "igamma(Tensor self, Tensor other) -> Tensor",
    dtypes="float",
    numbers="none",
    label="igamma_cpu",
    backward={
        "self": underived("igamma: input"),
        "other": _igamma_grad,
    },
)
def igamma(self: Any, other: Any) -> Any:
    """The regularized lower incomplete gamma function P(input, other).

    >>> import flambeau as torch
    >>> torch.igamma(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([0.6321])
    """
    return E.special_igamma(self, other)


@pointwise(
    "igammac(Tensor self, Tensor other) -> Tensor",
    dtypes="float",
    numbers="none",
    label="igammac_cpu",
    backward={
        "self": underived("igammac: input"),
        "other": lambda grad, self, other: -_igamma_grad(grad, self, other),
    },
)
def igammac(self: Any, other: Any) -> Any:
    """The regularized upper incomplete gamma function Q(input, other).

    >>> import flambeau as torch
    >>> torch.igammac(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([0.3679])
    """
    return E.special_igammac(self, other)


def _polygamma_kernel(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    from flambeau._ops.special.by_name import polygamma as kernel

    return kernel(int(n.item()), x)


add_primitive("polygamma", _polygamma_kernel)


@pointwise(
    "_polygamma(Tensor self, int n) -> Tensor",
    out_writer="polygamma",
    aten=lambda self, n: InAten("polygamma", (n, self)),
    promote="float",
    dtypes="bool int float",
    method=False,
    label="polygamma",
    node="PolygammaBackward0",
    backward={
        "self": lambda grad, self, n: grad * ops._polygamma(self, n + 1),
    },
)
def polygamma_of(self: Any, n: Any) -> Any:
    """The n-th derivative of `digamma`."""
    return E.polygamma(self, n)


def _check_order(n: int) -> None:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")


@composite("polygamma(int n, Tensor self) -> Tensor", method=False)
def polygamma(n: int, input: Tensor, *, out: Any = None) -> Any:
    """The n-th derivative of `digamma`.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.polygamma(1, torch.tensor([1.0]))
    tensor([1.6449])
    """
    _check_order(n)
    return ops._polygamma(input, n, out=out)


def polygamma_method(self: Tensor, n: int) -> Any:
    """The n-th derivative of `digamma`, element by element.

    >>> import flambeau as torch
    >>> torch.tensor([1.0]).polygamma(1)
    tensor([1.6449])
    """
    return polygamma.body(n, self)


polygamma_method.__name__ = "polygamma"
Tensor.polygamma = polygamma_method  # type: ignore[attr-defined]


@method
def polygamma_(self: Tensor, n: int) -> Tensor:
    """`polygamma` in place, element by element.

    >>> import flambeau as torch
    >>> torch.tensor([1.0]).polygamma_(1)
    tensor([1.6449])
    """
    _check_order(n)
    return get_inplace("_polygamma")(self, n)  # type: ignore[no-any-return]


def _mvlgamma_grad(grad: Any, self: Any, p: int) -> Any:
    slope = ops.digamma(self)
    for j in range(1, p):
        slope = slope + ops.digamma(self - j / 2)
    return grad * slope


@composite(
    "mvlgamma(Tensor self, int p) -> Tensor",
    inplace=True,
    out=True,
    backward={"self": _mvlgamma_grad},
)
def mvlgamma(input: Tensor, p: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension p.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.mvlgamma(torch.tensor([2.0]), 2)
    tensor([0.4516])
    """
    if input._data.dtype.kind == "b":
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    result = ops.lgamma(input)
    for j in range(1, p):
        result = result + ops.lgamma(input - j / 2)
    return result + p * (p - 1) / 4 * math.log(math.pi)


for _new, _old in (
    ("special.erf", "erf"), ("special.erfc", "erfc"), ("special.erfinv", "erfinv"),
    ("special.i0", "i0"), ("special.gammaln", "lgamma"), ("special.digamma", "digamma"),
    ("special.psi", "digamma"), ("special.polygamma", "polygamma"),
    ("special.multigammaln", "mvlgamma"), ("special.gammainc", "igamma"),
    ("special.gammaincc", "igammac"), ("special.expit", "sigmoid"), ("special.logit", "logit"),
    ("special.exp2", "exp2"), ("special.expm1", "expm1"), ("special.log1p", "log1p"),
    ("special.sinc", "sinc"), ("special.xlogy", "xlogy"),
):  # fmt: skip
    alias(_new, _old)
