"""`torch.utils._pytree` against PyTorch's: drawn trees, specs, paths, JSON, registration, words."""

from __future__ import annotations

import importlib
import pickle
import random
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from typing import Any

import pytest

import flambeau
from conformance.side_by_side import Raised, attempt, compare
from tests.random_seeds import generator

Point = namedtuple("Point", "x y")


@dataclass
class Fields:
    first: Any
    second: Any = None
    third: int = field(default=4, init=False)


class Pair:
    """A container of a user."""

    def __init__(self, left: Any, right: Any, tag: str = "plain") -> None:
        self.left, self.right, self.tag = left, right, tag

    def __repr__(self) -> str:
        return f"Pair({self.left!r}, {self.right!r}, {self.tag})"

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def pytree(library: Any) -> Any:
    return importlib.import_module(f"{library.__name__}.utils._pytree")


def shown(value: Any) -> Any:
    """Results as text: containers keep their types."""
    return value if isinstance(value, Raised) else repr(value)


CONTAINERS = [
    lambda children, draw: children,
    lambda children, draw: tuple(children),
    lambda children, draw: {f"k{draw.randrange(9)}{i}": c for i, c in enumerate(children)},
    lambda children, draw: OrderedDict((i, c) for i, c in enumerate(children)),
    lambda children, draw: defaultdict(list, dict(enumerate(children))),
    lambda children, draw: deque(children, maxlen=draw.choice([None, 9])),
    lambda children, draw: Point(children, draw.random()),
]


def drawn_tree(draw: random.Random, depth: int = 4) -> Any:
    if depth == 0 or draw.random() < 0.25:
        return draw.choice([None, 1, 2.5, "text", draw.randrange(100)])
    children = [drawn_tree(draw, depth - 1) for _ in range(draw.randrange(4))]
    return draw.choice(CONTAINERS)(children, draw)


TREES = range(40)


@pytest.mark.parametrize("number", TREES)
def test_drawn_trees(number: int):
    draw = generator("pytree", number)
    tree, other = drawn_tree(draw), drawn_tree(draw)
    size = draw.randrange(12)

    def scenario(library: Any) -> Any:
        P = pytree(library)
        leaves, spec = P.tree_flatten(tree)
        answers = [
            leaves, spec, P.tree_leaves(tree), list(P.tree_iter(tree)), spec.unflatten(leaves),
            spec.num_leaves, spec.num_nodes, spec.num_children, spec == P.tree_structure(tree),
            spec == P.tree_structure(other), P.tree_map(lambda leaf: [leaf], tree),
            attempt(spec.flatten_up_to, other), attempt(spec.unflatten, range(size)),
            attempt(P.tree_map, lambda *values: values, tree, tree),
            attempt(P.tree_map, lambda *values: values, tree, other),
            attempt(P._broadcast_to_and_flatten, other, spec),
            P._broadcast_to_and_flatten(3, spec), P.treespec_pprint(spec),
            P.tree_flatten_with_path(tree), hash(spec) == hash(P.tree_structure(tree)),
            P.tree_map_with_path(lambda path, leaf: (P.keystr(path), leaf), tree),
            [P.key_get(tree, path) for path, _ in P.tree_leaves_with_path(tree)],
            P.tree_flatten(tree, is_leaf=lambda node: isinstance(node, (dict, type(None)))),
            P.tree_map_only(int, lambda leaf: -leaf, tree), P.arg_tree_leaves(tree, b=other),
            P.tree_map_only((int, str), str, tree), P.tree_map_only(int | float, str, tree),
            P.tree_any(lambda leaf: leaf is None, tree), P.tree_all(bool, tree),
            P.tree_any_only(int, lambda leaf: leaf > 50, tree), P.tree_is_leaf(tree),
            P.tree_all_only(int, lambda leaf: leaf > 50, tree),
        ]  # fmt: skip
        dumped = attempt(P.treespec_dumps, spec)
        if isinstance(dumped, str):
            answers += [dumped, attempt(P.treespec_loads, dumped)]
        else:
            answers.append(dumped)
        return [shown(answer) for answer in answers]

    compare(scenario)


def registered(P: Any, **options: Any) -> None:
    P.register_pytree_node(
        Pair,
        lambda pair: ([pair.left, pair.right], pair.tag),
        lambda children, tag: Pair(*children, tag),
        **options,
    )


def test_registered_classes():
    def scenario(library: Any) -> Any:
        P = pytree(library)
        registered(P)
        tree = [Pair(1, (2, 3)), Pair(4, 5, "other")]
        spec = P.tree_structure(tree)
        answers = [
            P.tree_flatten(tree), P.tree_map(str, tree), attempt(P.treespec_dumps, spec),
            attempt(P.tree_flatten_with_path, tree), attempt(registered, P),
            attempt(P.tree_map, lambda a, b: a, Pair(1, 2), Pair(1, 2, "other")),
            attempt(P.tree_map, lambda a, b: a, Pair(1, 2), [1, 2]), P.treespec_pprint(spec),
        ]  # fmt: skip
        P._deregister_pytree_node(Pair)
        registered(
            P, serialized_type_name="tests.Pair",
            flatten_with_keys_fn=lambda pair: ([(P.GetAttrKey("left"), pair.left),
                                                (P.GetAttrKey("right"), pair.right)], pair.tag),
        )  # fmt: skip
        dumped = P.treespec_dumps(spec)
        answers += [dumped, P.treespec_loads(dumped) == spec, P.tree_leaves_with_path(tree)]
        P._deregister_pytree_node(Pair)
        answers += [P.tree_leaves(tree), attempt(P._deregister_pytree_node, Pair).kind]
        answers.append(attempt(registered, P, to_dumpable_context=str))
        attempt(P._deregister_pytree_node, Pair)  # PyTorch's refusal comes half-way
        return [shown(answer) for answer in answers]

    compare(scenario)


def test_dataclasses_and_constants():
    def scenario(library: Any) -> Any:
        P = pytree(library)
        P.register_dataclass(Fields)
        tree = Fields(1, [2, 3])
        answers = [P.tree_flatten(tree), P.tree_map(str, tree), P.tree_leaves_with_path(tree)]
        answers += [P.tree_flatten(Fields(1)), P.tree_map(str, Fields(1))]
        P._deregister_pytree_node(Fields)
        answers += [attempt(P.register_dataclass, Pair)]
        P.register_dataclass(Pair, field_names=["left", "right"])
        answers += [P.tree_flatten(Pair(1, 2)), P.tree_map(str, Pair(1, 2))]
        P.register_constant(Pair)
        answers += [P.tree_flatten([Pair(1, 2), 3]), P.tree_map(str, [Pair(1, 2), 3])]
        answers += [P.is_constant_class(Pair), attempt(P.register_constant, Fields)]
        P._deregister_pytree_node(Pair)
        answers.append(P.is_constant_class(Pair))
        return [shown(answer) for answer in answers]

    compare(scenario)


def test_pickled_specs():
    P = pytree(flambeau)
    spec = P.tree_structure([1, {"a": Point(1, None)}])
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_words_and_older_forms():
    def scenario(library: Any) -> Any:
        P = pytree(library)
        spec = P.tree_structure([1, (2, 3)])
        leaf = P.treespec_leaf()
        answers = [
            P.LeafSpec(), isinstance(leaf, P.LeafSpec), isinstance(spec, P.LeafSpec),
            spec.children_specs, spec.children(), spec.child(1), spec.is_leaf(), leaf.is_leaf(),
            P.TreeSpec(list, None, [leaf]) == P.tree_structure([1]), P.treespec_tuple([leaf, spec]),
            P.treespec_dict({"a": spec}, b=leaf), attempt(P.treespec_tuple, [1]),
            attempt(P.treespec_dict, {"a": 1}), attempt(P.tree_unflatten, [1], 3),
            attempt(P.treespec_dumps, 3), attempt(P.treespec_dumps, spec, protocol=2),
            attempt(P.treespec_loads, "[2, {}]"), attempt(P.tree_map_only, 3, str, [1]),
            attempt(P.treespec_loads, '[1, {"type": "x", "context": "1", "children_spec": []}]'),
            P.pytree_to_str(spec), P.str_to_pytree(P.pytree_to_str(spec)), P.tree_map_(str, [1]),
            P.is_namedtuple(Point), P.is_namedtuple(Point(1, 2)), P.is_namedtuple((1,)),
            P.is_structseq(library.max(library.ones(2, 2), 0)), P.is_structseq(Point),
            P.tree_structure(library.max(library.ones(2, 2), 0)),
            P.tree_structure(library.Size([1])),
            sorted(P.__all__), [type(key).__module__.partition(".")[2] for key in
                                (spec, P.SequenceKey(0), P.MappingKey(1), P.GetAttrKey("a"))],
        ]  # fmt: skip
        P._register_namedtuple(Point, serialized_type_name="tests.Point")
        dumped = P.treespec_dumps(P.tree_structure(Point(1, [2])))
        answers += [dumped, P.treespec_loads(dumped)]
        return [shown(answer) for answer in answers]

    compare(scenario)


def test_functions_of_containers_by_name():
    """Libraries take these for their own containers: transformers' caches are dicts to them."""
    containers = {
        "tuple": (1, 2), "list": [1, 2], "dict": OrderedDict(b=1, a=2),
        "ordereddict": OrderedDict(b=1, a=2), "defaultdict": defaultdict(list, {1: 2}),
        "deque": deque([1, 2], maxlen=4), "namedtuple": Point(1, 2),
    }  # fmt: skip

    def scenario(library: Any) -> Any:
        P = pytree(library)
        answers = []
        for kind, value in containers.items():
            leaves, context = getattr(P, f"_{kind}_flatten")(value)
            answers += [leaves, context, getattr(P, f"_{kind}_unflatten")(leaves, context)]
            answers.append(getattr(P, f"_{kind}_flatten_with_keys")(value))
        return [shown(answer) for answer in answers]

    compare(scenario)
