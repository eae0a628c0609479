"""The operator table. Importing this package gives Tensor its attributes; rows come when used."""

from typing import Any

from flambeau._ops.table import graph_tools, loading, namespace, operators  # noqa: F401
from flambeau._tensor.tensor import constructors

loading.attach_all()
namespace.attach_operators()

from flambeau._ops.table import bit_methods  # noqa: E402, F401  (it is made of the above)


def __getattr__(name: str) -> Any:
    """The names of `torch._ops`: the classes of what `torch.ops` holds."""
    return constructors["names_of_ops"](name)
