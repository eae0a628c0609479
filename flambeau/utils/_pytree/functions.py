"""Functions of all leaves of a tree."""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType
from typing import Any

from flambeau.utils._pytree.spec import tree_flatten, tree_iter
from flambeau.utils._pytree.types import IsLeaf, PyTree

Kinds = Any
"""A type, a tuple or union of types, or a predicate."""


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """The tree of what a function makes of its leaves, and of what other trees have in their place.

    >>> tree_map(lambda a, b: a + b, [1, (2, 3)], [10, (20, 30)])
    [11, (22, 33)]
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(func(*values) for values in zip(leaves, *others, strict=True))


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Call a function with every leaf, and return the tree as it was."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(type_or_types_or_pred: Kinds, /) -> Callable[[Any], Any]:
    """A decorator: the function is for values of such types, others stay as they are."""
    fits = _test(type_or_types_or_pred)

    def decorator(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda value: func(value) if fits(value) else value

    return decorator


def _test(kinds: Kinds) -> Callable[[Any], bool]:
    if isinstance(kinds, (type, tuple, UnionType)):
        return lambda value: isinstance(value, kinds)
    if callable(kinds):
        return kinds
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def tree_map_only(
    type_or_types_or_pred: Kinds,
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> PyTree:
    """`tree_map` for leaves of such types."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Kinds,
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> PyTree:
    """`tree_map_` for leaves of such types."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Do all leaves fulfil a condition?"""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Does any leaf fulfil a condition?"""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: Kinds, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Do all leaves of such types?"""
    leaves = tree_iter(tree, is_leaf)
    return all(pred(leaf) for leaf in leaves if isinstance(leaf, type_or_types))


def tree_any_only(
    type_or_types: Kinds, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Does any leaf of such types?"""
    leaves = tree_iter(tree, is_leaf)
    return any(pred(leaf) for leaf in leaves if isinstance(leaf, type_or_types))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of the arguments of a call."""
    return list(tree_iter((args, kwargs)))
