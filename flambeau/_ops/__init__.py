"""The operator table: importing this package fills it and gives Tensor its methods."""

from flambeau._ops import (  # noqa: F401
    advanced,
    arithmetic,
    comparison,
    conv,
    copying,
    counting,
    extrema,
    factories,
    indexing,
    joining,
    linear,
    loss,
    norms,
    random,
    reductions,
    scan,
    softmax,
    sort,
    statistics,
    variance,
    splitting,
    storage_views,
    view_methods,
    views,
)
from flambeau._ops import graph_tools, namespace, operators  # noqa: F401  isort: skip

namespace.attach_all()
