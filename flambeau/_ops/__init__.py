"""The operator table. Importing this package gives Tensor its attributes; rows come when used."""

from flambeau._ops.table import graph_tools, loading, namespace, operators  # noqa: F401

loading.attach_all()
namespace.attach_operators()

from flambeau._ops.table import bit_methods  # noqa: E402, F401  (it is made of the above)
