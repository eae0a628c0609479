"""The linear algebra kernels by torch's names, gathered from their families.

Arrays in, new arrays out, batches over all dims but the last two.  float32, float64, complex64 and
complex128 keep their dtype; what other dtypes raise is torch's own refusal.
"""

from flambeau._ops.linalg.checks import *  # noqa: F403
from flambeau._ops.linalg.cholesky import *  # noqa: F403
from flambeau._ops.linalg.householder import *  # noqa: F403
from flambeau._ops.linalg.ldl import *  # noqa: F403
from flambeau._ops.linalg.lu import *  # noqa: F403
from flambeau._ops.linalg.matrix_functions import *  # noqa: F403
from flambeau._ops.linalg.numpy_spectral import *  # noqa: F403
from flambeau._ops.linalg.triangular import *  # noqa: F403
