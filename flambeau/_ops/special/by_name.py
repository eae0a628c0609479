"""The special functions' kernels by torch's names, gathered from their families.

Arrays in, new arrays out.  ``polygamma(n, x)`` takes an int first; the polynomials take (x, n).
"""

from flambeau._ops.special.bessel import *  # noqa: F403
from flambeau._ops.special.error_functions import *  # type: ignore[no-redef] # noqa: F403
from flambeau._ops.special.gamma import *  # type: ignore[no-redef] # noqa: F403
from flambeau._ops.special.incomplete_gamma import *  # type: ignore[no-redef] # noqa: F403
from flambeau._ops.special.incomplete_gamma import gammainc as igamma  # noqa: F401
from flambeau._ops.special.incomplete_gamma import gammaincc as igammac  # noqa: F401
from flambeau._ops.special.polynomials import *  # noqa: F403
