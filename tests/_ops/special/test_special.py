"""Known values, identities and the contract of the special-function kernels, without an oracle."""

import math

import ml_dtypes
import numpy as np
import pytest

from flambeau._ops.special import by_name as special

# Values printed in DLMF and Abramowitz and Stegun, or in closed form.
KNOWN = {
    "erf": (1.0, 0.8427007929497149),
    "erfc": (2.0, 0.004677734981047266),
    "erfcx": (10.0, 0.05614099274382259),
    "erfinv": (0.5, 0.4769362762044699),
    "lgamma": (0.5, 0.5 * math.log(math.pi)),
    "digamma": (1.0, -0.5772156649015329),
    "trigamma": (1.0, math.pi**2 / 6),
    "i0": (1.0, 1.2660658777520084),
    "i1": (1.0, 0.5651591039924850),
    "bessel_j0": (1.0, 0.7651976865579666),
    "bessel_j1": (10.0, 0.04347274616886144),
    "bessel_y0": (1.0, 0.08825696421567696),
    "bessel_y1": (10.0, 0.2490154242069539),
    "modified_bessel_k0": (1.0, 0.4210244382407083),
    "modified_bessel_k1": (1.0, 0.6019072301972346),
    "airy_ai": (0.0, 0.3550280538878172),
    "ndtr": (0.0, 0.5),
    "ndtri": (0.975, 1.959963984540054),
    "log_ndtr": (0.0, -math.log(2.0)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_value(name):
    x, expected = KNOWN[name]
    assert getattr(special, name)(np.array(x)) == pytest.approx(expected, rel=2e-15, abs=2e-16)


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_shape_and_dtype_stay_and_the_argument_too(name, dtype):
    x = np.linspace(0.1, 0.9, 12).astype(dtype).reshape(3, 4).T
    before = x.copy()
    result = getattr(special, name)(x)
    assert (result.shape, result.dtype) == (x.shape, x.dtype)
    assert not np.shares_memory(result, x)
    np.testing.assert_array_equal(x, before)
    assert getattr(special, name)(x[:0]).shape == (0, 3)


def test_other_dtypes_are_refused():
    with pytest.raises(TypeError, match="real floating dtype"):
        special.erf(np.arange(3))
    with pytest.raises(TypeError, match="real floating dtype"):
        special.lgamma(np.ones(3, complex))
    with pytest.raises(TypeError, match="one dtype"):
        special.zeta(np.ones(3), np.ones(3, np.float32))


def test_blocks_do_not_show():
    x = np.linspace(-6, 6, 40001)
    np.testing.assert_array_equal(special.erfc(x)[20000:20010], special.erfc(x[20000:20010]))


def test_complements_and_inverses():
    x = np.linspace(-3, 3, 301)
    np.testing.assert_allclose(special.erf(x) + special.erfc(x), 1.0, rtol=1e-15)
    np.testing.assert_allclose(special.erfinv(special.erf(x)), x, rtol=1e-11)
    np.testing.assert_allclose(special.ndtri(special.ndtr(x)), x, rtol=1e-12, atol=1e-15)
    a, x = np.meshgrid(np.geomspace(0.01, 500, 40), np.geomspace(0.01, 500, 40))
    np.testing.assert_allclose(special.gammainc(a, x) + special.gammaincc(a, x), 1.0, rtol=1e-13)


def test_recurrences():
    x = np.linspace(-7.93, 12.0, 400)
    np.testing.assert_allclose(special.digamma(x + 1) - special.digamma(x), 1 / x, rtol=1e-11)
    step = special.lgamma(x + 1) - special.lgamma(x)
    np.testing.assert_allclose(step, np.log(np.abs(x)), atol=1e-13)
    np.testing.assert_allclose(
        special.zeta(np.full(400, 3.0), x) - special.zeta(np.full(400, 3.0), x + 1),
        x**-3.0,
        atol=1e-10,
    )


def test_bessel_wronskians():
    """DLMF 10.5.2 and 10.28.2."""
    x = np.linspace(0.05, 40, 500)
    cross = special.bessel_j1(x) * special.bessel_y0(x)
    cross = cross - special.bessel_j0(x) * special.bessel_y1(x)
    np.testing.assert_allclose(cross, 2 / (np.pi * x), rtol=1e-13)
    modified = special.i0e(x) * special.scaled_modified_bessel_k1(x)
    modified = modified + special.i1e(x) * special.scaled_modified_bessel_k0(x)
    np.testing.assert_allclose(modified, 1 / x, rtol=1e-14)


def test_polynomials_of_low_degree():
    x = np.linspace(-1.5, 1.5, 7)
    rows = {
        "chebyshev_polynomial_t": 4 * x**3 - 3 * x,
        "chebyshev_polynomial_u": 8 * x**3 - 4 * x,
        "hermite_polynomial_h": 8 * x**3 - 12 * x,
        "hermite_polynomial_he": x**3 - 3 * x,
        "laguerre_polynomial_l": (-(x**3) + 9 * x**2 - 18 * x + 6) / 6,
        "legendre_polynomial_p": (5 * x**3 - 3 * x) / 2,
    }
    for name, expected in rows.items():
        actual = getattr(special, name)(x, np.array(3))
        np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=1e-13)
        mixed = getattr(special, name)(x[:3], np.array([-1, 0, 3]))
        np.testing.assert_allclose(mixed, [0.0, 1.0, expected[2]], rtol=1e-13)
