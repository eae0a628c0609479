"""Lists and dicts that arguments of nodes are made of: they refuse to be written to.

A node keeps count of who uses it; a write to its arguments would go past that count.
"""

from __future__ import annotations

from typing import Any, NoReturn

from flambeau.utils._pytree import register_pytree_node

WRITERS = {
    list: (
        "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse "
        "sort"
    ).split(),
    dict: "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update".split(),
}


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    name = type(self).__name__
    raise TypeError(
        f"'{name}' object does not support mutation. If you are attempting to modify the kwargs or "
        "args of a torch.fx.Node object,\ninstead create a new copy of it and assign the copy to "
        "the node:\n\n    new_args = ...  # copy and mutate args\n    node.args = new_args"
    )


class immutable_list(list):  # noqa: N801  PyTorch's name
    """A list that cannot be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (list(self),)


class immutable_dict(dict):  # noqa: N801  PyTorch's name
    """A dict that cannot be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (dict(self),)


for kind, base in ((immutable_list, list), (immutable_dict, dict)):
    for writer in WRITERS[base]:
        setattr(kind, writer, _refuse)

register_pytree_node(
    immutable_list,
    lambda value: (list(value), None),
    lambda children, _: immutable_list(children),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
)
register_pytree_node(
    immutable_dict,
    lambda value: (list(value.values()), list(value)),
    lambda children, keys: immutable_dict(zip(keys, children, strict=True)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
)
