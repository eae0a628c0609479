"""What a node does beside computing its results."""

from __future__ import annotations

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Node

SIDE_EFFECTS = frozenset((
    "prim::PythonOp", "prim::IgnoredPythonOp", "prim::Print", "prim::RaiseException",
    "prim::SetAttr", "prim::TimePoint", "prim::CallFunction", "prim::CallMethod", "prim::Enter",
    "prim::Exit", "aten::warn", "aten::save", "aten::manual_seed", "flambeau::Call",
    "aten::_assert", "aten::_assert_async", "aten::_assert_scalar", "aten::is_grad_enabled",
    "aten::set_grad_enabled", "aten::_set_grad_enabled", "aten::backward", "aten::grad",
    "aten::is_autocast_enabled", "aten::is_autocast_cpu_enabled", "aten::get_autocast_dtype",
    "aten::initial_seed", "aten::seed", "aten::autocast_increment_nesting", "prim::TimePoint",
))  # fmt: skip
"""Operators that act on, or depend on, something that is no value of the graph."""

RANDOM = frozenset(
    "dropout dropout_ feature_dropout feature_dropout_ alpha_dropout alpha_dropout_ "
    "feature_alpha_dropout feature_alpha_dropout_ native_dropout _fused_dropout bernoulli "
    "bernoulli_ multinomial normal normal_ poisson rand rand_like randint randint_like randn "
    "randn_like randperm rrelu rrelu_ rrelu_with_noise uniform_ random_ cauchy_ exponential_ "
    "geometric_ log_normal_ binomial _standard_gamma _sample_dirichlet gaussian "
    "fractional_max_pool2d fractional_max_pool3d scaled_dot_product_attention lstm gru rnn_tanh "
    "rnn_relu".split()
)
"""Operators that draw random numbers, some of them only if they train."""
MAYBE_RANDOM = {
    "dropout": "train", "feature_dropout": "train", "alpha_dropout": "train",
    "feature_alpha_dropout": "train", "native_dropout": "train", "rrelu": "training",
    "lstm": "train", "gru": "train", "rnn_tanh": "train", "rnn_relu": "train",
}  # fmt: skip
"""Those that do so only if the parameter of this name is true."""


def has_side_effects(node: Node) -> bool:
    """Whether the node has to run though nothing uses its results; writes apart."""
    if node.kind in SIDE_EFFECTS:
        return True
    return node.kind.startswith("^")


def contains_side_effects(node: Node) -> bool:
    """The same, of the node and all within its blocks."""
    if has_side_effects(node):
        return True
    return any(contains_side_effects(inner) for block in node.blocks for inner in block)


def is_random(node: Node) -> bool:
    """Whether two runs of the node may differ."""
    name = node.kind.removeprefix("aten::")
    if name not in RANDOM:
        return False
    switch = MAYBE_RANDOM.get(name)
    if switch is None or node.schema is None:
        return True
    try:
        value = node.named(switch)
    except KeyError:
        return True
    return not (value.is_constant and value.constant is False)


def writes_inputs(node: Node) -> bool:
    """Whether the node's schema says that it writes to an input."""
    return node.schema is not None and any(p.written for p in node.schema.arguments)


def is_mutable(type: T.Type) -> bool:
    """Whether values of a type can be written to, or hold such values."""
    if type is T.TENSOR:  # most are
        return True
    if isinstance(type, (T.OptionalType, T.UnionType, T.TupleType)):
        return any(map(is_mutable, type.parts))
    if type in IMMUTABLE:
        return False
    return not isinstance(type, (T.FunctionType, T.EnumType))


IMMUTABLE = frozenset((T.INT, T.FLOAT, T.COMPLEX, T.BOOL, T.STRING, T.NONE, T.NUMBER, T.DEVICE,
                       T.STREAM, T.QSCHEME, T.NO_RETURN, T.ANY_ENUM))  # fmt: skip


def has_mutable_values(node: Node) -> bool:
    """Whether an input or a result of the node is of a mutable type."""
    return any(is_mutable(value.type) for value in (*node.inputs, *node.outputs))
