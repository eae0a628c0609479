"""Specs: what a tree is without its leaves."""

from __future__ import annotations

import warnings
from collections import defaultdict, namedtuple
from collections.abc import Iterable, Iterator
from typing import Any

from flambeau.utils._pytree.nodes import (
    BUILTIN_TYPES,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    _get_node_type,
)
from flambeau.utils._pytree.types import Context, IsLeaf, PyTree


class TreeSpec:
    """A node: its type, a context (keys, for one), and the specs of its children.

    The spec of a leaf has no type; it is shown as `*`.
    """

    __slots__ = ("_children", "_context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Context, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self._context = context
        self._children = children_specs
        self.num_children = len(children_specs)
        self.num_nodes: int = 1 + sum(child.num_nodes for child in children_specs)
        leaf = int(type is None)
        self.num_leaves: int = leaf or sum(child.num_leaves for child in children_specs)

    @property
    def context(self) -> Context:
        """What the container needs beside its children to be made again."""
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        """An older form of `children()`."""
        warnings.warn(
            "`treespec.children_specs` is deprecated. Use `treespec.child(index)` to access a "
            "single child, or `treespec.children()` to get all children.",
            FutureWarning,
            stacklevel=2,
        )
        return self._children

    def children(self) -> list[TreeSpec]:
        """The specs of the children."""
        return self._children.copy()

    def child(self, index: int) -> TreeSpec:
        """The spec of one child."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Is it the spec of a leaf?"""
        return self.type is None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        mine, others = (
            (spec.type, spec._context, spec._children, spec.num_leaves) for spec in (self, other)
        )
        return mine == others

    def __hash__(self) -> int:
        kind = self.type
        known = isinstance(self._context, list) or kind in STANDARD_DICT_TYPES
        context = str(self._context) if known else self._context
        return hash((kind, context, tuple(self._children)))

    def __reduce__(self) -> Any:
        return TreeSpec, (self.type, self._context, self._children)

    def __repr__(self, indent: int = 0) -> str:
        if self.is_leaf():
            return "*"
        shown = [child.__repr__(indent + 2) for child in self._children]
        children = f",\n{' ' * (indent + 2)}".join(shown)
        return f"TreeSpec({self.type.__name__}, {self._context}, [{children}])"

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree of such leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec "
                f"refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._made_of(iter(leaves))

    def _made_of(self, leaves: Iterator[Any]) -> PyTree:
        if self.is_leaf():
            return next(leaves)
        children = [child._made_of(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self._context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The parts of another tree that stand where this one has leaves.

        Errors: ValueError where a node of the other tree is of another kind.
        """
        if self.is_leaf():
            return [tree]
        parts: list[PyTree] = []
        for spec, child in zip(self._children, self._same_children(tree), strict=True):
            parts += spec.flatten_up_to(child)
        return parts

    def _same_children(self, tree: PyTree) -> list[PyTree]:
        kind = _get_node_type(tree)
        mappings = kind in STANDARD_DICT_TYPES and self.type in STANDARD_DICT_TYPES
        if kind != self.type and not mappings:
            what = "Node type" if self.type in BUILTIN_TYPES else "Type"
            raise ValueError(f"{what} mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        if mappings:
            return self._in_own_order(tree)
        # which named tuple it is, and what a user's container says of itself
        counts = kind not in BUILTIN_TYPES or kind is namedtuple
        if counts and context != self._context:
            raise ValueError(self._other_context(context))
        return children

    def _other_context(self, context: Any) -> str:
        if self.type is not namedtuple:
            return f"Node context mismatch for custom node type {self.type!r}."
        return (
            f"Node context mismatch for node type {self.type!r}; "
            f"expected {self._context!r}, but got {context!r}."
        )

    def _keys(self) -> list[Any]:
        """The keys of a mapping."""
        return self._context[1] if self.type is defaultdict else self._context

    def _in_own_order(self, tree: Any) -> list[PyTree]:
        keys = self._keys()
        expected, got = set(keys), set(tree)
        if expected == got:
            return [tree[key] for key in keys]
        words = [("missing", expected - got), ("extra", got - expected)]
        told = "; ".join(f"{word} key(s): {keys}" for word, keys in words if keys)
        raise ValueError(f"Node keys mismatch; {told}.")


class _OfLeaves(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TreeSpec) and instance.is_leaf()


class LeafSpec(TreeSpec, metaclass=_OfLeaves):
    """An older name of the spec of a leaf."""

    def __new__(cls) -> Any:
        warnings.warn(
            "`isinstance(treespec, LeafSpec)` is deprecated, use "
            "`isinstance(treespec, TreeSpec) and treespec.is_leaf()` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return treespec_leaf()


_LEAF_SPEC = TreeSpec(None, None, [])


def treespec_leaf() -> TreeSpec:
    """The spec of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The spec of a tuple of trees."""
    children = list(iterable)
    if any(not isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The spec of a dict of trees."""
    children = dict(mapping, **kwargs)
    if any(not isinstance(child, TreeSpec) for child in children.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {children!r}.")
    return TreeSpec(dict, list(children), list(children.values()))


def treespec_pprint(treespec: TreeSpec) -> str:
    """The tree, with `*` for its leaves."""
    return repr(treespec.unflatten([_Star()] * treespec.num_leaves))


class _Star:
    def __repr__(self) -> str:
        return "*"


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Is it a leaf: not a container, or one that `is_leaf` takes for a leaf?"""
    if is_leaf is not None and is_leaf(tree):
        return True
    return _get_node_type(tree) not in SUPPORTED_NODES


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree, and its spec."""
    leaves: list[Any] = []
    return leaves, _collect(tree, leaves, is_leaf)


def _collect(tree: PyTree, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF_SPEC
    kind = _get_node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_collect(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of such leaves and such a spec."""
    return expect_spec(treespec).unflatten(leaves)


def expect_spec(treespec: Any) -> TreeSpec:
    """A spec, checked."""
    if isinstance(treespec, TreeSpec):
        return treespec
    raise TypeError(
        "Expected `treespec` to be an instance of PyTreeSpec but got item of type "
        f"{type(treespec)}."
    )


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves of a tree, one after another."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The spec of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None
) -> list[Any] | None:
    """Leaves for a spec, where one leaf may stand for a whole subtree; None if they don't fit."""
    expect_spec(treespec)
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    below_spec = _specs_for(tree, treespec)
    if below_spec is None:
        return None
    leaves: list[Any] = []
    children, _ = SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)
    for child, spec in zip(children, below_spec, strict=True):
        below = _broadcast_to_and_flatten(child, spec, is_leaf)
        if below is None:
            return None
        leaves += below
    return leaves


def _specs_for(tree: PyTree, treespec: TreeSpec) -> list[TreeSpec] | None:
    """The specs of a node's children, in its order; None if it is another node."""
    try:
        treespec._same_children(tree)
    except ValueError:
        return None
    if treespec.type not in STANDARD_DICT_TYPES:
        return treespec.children()
    by_key = dict(zip(treespec._keys(), treespec.children(), strict=True))
    return [by_key[key] for key in tree]
