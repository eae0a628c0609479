"""Where leaves are: the steps that lead to each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flambeau.utils._pytree.keys import KeyPath
from flambeau.utils._pytree.nodes import SUPPORTED_NODES, _get_node_type
from flambeau.utils._pytree.spec import TreeSpec, tree_is_leaf, tree_structure
from flambeau.utils._pytree.types import IsLeaf, PyTree

WITHOUT_KEYS = (
    "Did not find a flatten_with_keys_fn for type: {kind}. "
    "Please pass a flatten_with_keys_fn argument to register_pytree_node."
)


def _walk(path: KeyPath, tree: PyTree, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    kind = _get_node_type(tree)
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(WITHOUT_KEYS.format(kind=kind))
    for key, child in with_keys(tree)[0]:
        yield from _walk((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree, each with the steps to it."""
    return list(_walk((), tree, is_leaf))


def tree_flatten_with_path(
    tree: PyTree, is_leaf: IsLeaf = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The same, and the spec."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """`tree_map` with the steps as first argument."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    rows = zip(found, *others, strict=True)
    return spec.unflatten(func(path, leaf, *values) for (path, leaf), *values in rows)


def keystr(kp: KeyPath) -> str:
    """The steps as they are written in Python: `[0]['a'].x`."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What the steps lead to."""
    for key in kp:
        obj = key.get(obj)
    return obj
