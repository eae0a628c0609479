"""The operator table: importing this package fills it and gives Tensor its methods."""

from flambeau._ops import (  # noqa: F401
    arithmetic,
    copying,
    factories,
    joining,
    random,
    reductions,
    comparison,
    views,
)
from flambeau._ops import graph_tools, namespace, operators  # noqa: F401  isort: skip

namespace.attach_all()
