"""Elementary functions as kernels: for numbers and vectors of f32 and f64, by LLVM.

`VECTOR_MATH["exp"]` is the kernel of the primitive `exp`; kernels import the functions themselves:
`from flambeau._compiler.vector_math import exp`. Half types are converted by the callers.
Errors, in units of the last place: `benchmarks/vector_math.py`. No scalar library is called, and
the functions have no branches, save for huge arguments of sin, cos and tan.
"""

from __future__ import annotations

from flambeau._compiler.native import Native
from flambeau._compiler.vector_math.bessel import (
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    i0,
    i0e,
    i1,
    i1e,
)
from flambeau._compiler.vector_math.division import (
    floor_divide,
    fmod,
    hypot,
    remainder,
    trunc_divide,
)
from flambeau._compiler.vector_math.error import erf, erfc, erfinv
from flambeau._compiler.vector_math.exponential import exp, exp2, expm1, tanh
from flambeau._compiler.vector_math.hyperbolic import (
    arccosh,
    arcsinh,
    arctanh,
    cosh,
    logaddexp,
    logaddexp2,
    sinh,
)
from flambeau._compiler.vector_math.inverse import arccos, arcsin, arctan, arctan2
from flambeau._compiler.vector_math.logarithm import log, log1p, log2, log10
from flambeau._compiler.vector_math.normal import erfcx, log_ndtr
from flambeau._compiler.vector_math.power import power
from flambeau._compiler.vector_math.simple import (
    absolute,
    ceil,
    copysign,
    floor,
    inverse_root,
    nextafter,
    reciprocal,
    rint,
    sign,
    sign_of,
    signbit,
    sqrt,
    square,
    trunc,
)
from flambeau._compiler.vector_math.trigonometric import cos, sin, tan

_FUNCTIONS: tuple[Native, ...] = (
    exp, exp2, expm1, log, log2, log10, log1p, tanh, erf, erfc, sin, cos, tan, power,
    sqrt, square, reciprocal, inverse_root, floor, ceil, trunc, rint, absolute, copysign, sign,
    sign_of, signbit, arcsin, arccos, arctan, arctan2, sinh, cosh, arcsinh, arccosh, arctanh,
    erfinv, erfcx, log_ndtr, i0, i0e, i1, i1e, bessel_j0, bessel_j1, bessel_y0, bessel_y1,
    nextafter, logaddexp, logaddexp2, hypot, fmod, remainder, floor_divide, trunc_divide,
)  # fmt: skip

VECTOR_MATH: dict[str, Native] = {function.name: function for function in _FUNCTIONS}
"""Name of the primitive -> kernel."""

# Primitives of rows, which differ from these for integers or complex numbers only.
_OTHER_NAMES: dict[str, Native] = {
    "inverse": reciprocal, "checked_power": power, "complex_logaddexp": logaddexp,
    "special_erf": erf, "special_erfc": erfc, "special_erfinv": erfinv,
    "checked_fmod": fmod, "checked_remainder": remainder, "floor_division": floor_divide,
    "trunc_division": trunc_divide,
}  # fmt: skip
VECTOR_MATH |= _OTHER_NAMES
VECTOR_MATH |= {f"modified_bessel_{function.name}": function for function in (i0, i1)}
