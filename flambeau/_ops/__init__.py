"""The operator table. Importing this package gives Tensor its attributes; rows come when used."""

from flambeau._ops import graph_tools, loading, namespace, operators  # noqa: F401

loading.attach_all()
namespace.attach_operators()
