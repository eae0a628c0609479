"""Each operator of schemas.txt against PyTorch's: a graph of that one operator, random arguments.

Arguments are made by type and by the parameter's name. What torch refuses must be refused; where it
gives values, they must agree, in type and shape, too.
"""

from __future__ import annotations

import math
import random
from functools import cache
from typing import Any

import pytest
import torch

import flambeau
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, FunctionSchema
from flambeau.jit.operators import calls, table
from flambeau.jit.operators.conversions import without_none

ATTEMPTS = 12

RANDOM = (
    "aten::rand aten::randn aten::randint aten::randperm aten::bernoulli aten::multinomial "
    "aten::normal aten::poisson aten::binomial aten::dropout aten::alpha_dropout "
    "aten::feature_dropout aten::feature_alpha_dropout aten::native_dropout aten::rrelu "
    "aten::rrelu_with_noise aten::fractional_max_pool2d aten::fractional_max_pool3d aten::empty "
    "aten::empty_like aten::new_empty aten::empty_strided aten::new_empty_strided "
    "aten::empty_permuted aten::rand_like aten::randn_like aten::randint_like aten::seed "
    "aten::resize_ aten::resize_as_ aten::resize aten::set_ aten::hash prim::TimePoint prim::id "
    "aten::initial_seed aten::gumbel_softmax aten::_standard_gamma aten::_no_grad_normal "
    "aten::_sample_dirichlet aten::binomial "
    "aten::_no_grad_uniform aten::cauchy aten::exponential aten::geometric aten::log_normal "
    "aten::uniform aten::random aten::as_strided aten::max_unpool2d "
    "aten::scaled_dot_product_attention aten::_weight_norm aten::_weight_norm_interface "
    "aten::grid_sampler_2d"
).split()
"""Results that chance or old memory decides."""

CRASHES = (
    "aten::floordiv aten::remainder aten::floordiv.int aten::remainder.int aten::divmod.int "
    "aten::__round_to_zero_floordiv.int "
    "aten::__range_length aten::count prim::rangelist aten::lu_unpack aten::embedding_bag "
    "aten::_embedding_bag aten::_pack_padded_sequence aten::set_data aten::_pad_packed_sequence "
    "aten::center aten::ljust aten::rjust aten::replace aten::split.str aten::rsplit "
    "aten::expandtabs aten::zfill"
).split()
"""Arguments that end torch's process, or keep it for ever: division by 0, empty texts."""

UNLIKE = (
    "aten::as_tensor.bool aten::as_tensor.float aten::as_tensor.int aten::as_tensor.complex "
    "aten::divmod.float aten::divmod.int_float aten::divmod.float_int aten::to.prim_other "
    "aten::div.complex aten::log.int_complex aten::log.complex_int aten::log.float_complex "
    "aten::log.complex_float aten::log.complex_complex aten::pow.Scalar_Scalar aten::dict.Tensor "
    "aten::dict.Dict_Tensor aten::__is__ aten::__isnot__ aten::_local_scalar_dense "
    "aten::_neg_view "
    "aten::fft_rfftfreq aten::fft_fftfreq aten::linalg_eig aten::linalg_lstsq aten::kthvalue "
    "aten::copy.Dict_Tensor aten::_adaptive_avg_pool2d aten::_adaptive_avg_pool3d "
    "aten::_infer_size aten::broadcast_shapes aten::broadcast_to aten::can_cast "
    "aten::promote_types aten::pow.float_complex aten::set_.source_Tensor_storage_offset "
    "aten::_pad_circular aten::_pdist_forward aten::__interpolate aten::reflection_pad2d "
    "aten::as_strided_ aten::gradient.scalararray aten::hinge_embedding_loss "
    "aten::sparse_csr_tensor.crow_col_value_size aten::sparse_csc_tensor.ccol_row_value_size "
    "aten::sparse_bsr_tensor.crow_col_value_size aten::sparse_bsc_tensor.ccol_row_value_size"
).split()
"""Where torch's answer is no model: a number from `as_tensor`, `divmod` in single precision, parts
of complex infinities, tensors as keys, negative sizes, negated bools, indices that are none; and
where several are right: eigenvectors, ties."""

EVERYWHERE = (
    "prim::Print aten::warn aten::manual_seed aten::set_grad_enabled aten::Generator aten::wait "
    "prim::RaiseException aten::is_scripting aten::backward aten::retain_grad aten::_version "
    "aten::set_num_threads aten::format aten::percentFormat aten::einsum aten::cuda"
).split()
"""What changes the session, or has no fixed arguments: tested by themselves."""


@cache
def oracle(schema: FunctionSchema, arguments: tuple[str, ...], results: tuple[str, ...]) -> Any:
    """A function of torch with just this operator."""
    inputs = ", ".join(f"%a{i} : {t}" for i, t in enumerate(arguments))
    outputs = ", ".join(f"%r{i} : {t}" for i, t in enumerate(results))
    names = ", ".join(f"%r{i}" for i in range(len(results)))
    call = f"{schema.name}({', '.join(f'%a{i}' for i in range(len(arguments)))})"
    lines = [f"graph({inputs}):", f"  {outputs} = {call}"]
    if len(results) > 1:
        lines.append(f"  %all : ({', '.join(results)}) = prim::TupleConstruct({names})")
        names = "%all"
    text = "\n".join([*lines, f"  return ({names})"])
    return torch._C._create_function_from_graph("f", torch._C.parse_ir(text))


class Maker:
    """Makes arguments of one operator."""

    def __init__(self, schema: FunctionSchema, seed: int) -> None:
        self.schema = schema
        self.random = random.Random(f"{schema.full_name} {seed}")
        self.rank = self.random.choice((1, 2, 2, 3, 4))
        self.shape = [self.random.choice((1, 2, 3)) for _ in range(self.rank)]
        if self.random.random() < 0.5:
            self.shape = [self.shape[0]] * self.rank
        self.element = self.random.choice(["float32"] * 4 + ["float64", "int64", "bool"])
        self.bound = self.random.choice((T.INT, T.STRING, T.FLOAT))

    def all(self) -> list[Any]:
        """One value for each parameter."""
        return [self.value(p.name, p.type, p.default, p.length) for p in self.schema.arguments]

    def value(self, name: str, type: T.Type, default: Any = REQUIRED, length: Any = None) -> Any:
        """A value of a type."""
        if default is not REQUIRED and self.random.random() < 0.6:
            return list(default) if isinstance(default, tuple) else default
        if isinstance(type, T.OptionalType):
            named = ("dtype", "layout", "device", "pin_memory", "memory_format", "generator")
            if name in named or self.random.random() < 0.3:
                return None
            return self.value(name, type.inner, length=length)
        if isinstance(type, T.ListType):
            count = length or self.random.choice((1, 2, 2, 3))
            return [self.value(name, type.element) for _ in range(count)]
        if isinstance(type, T.TupleType):
            return tuple(self.value(name, part) for part in type.elements)
        if isinstance(type, T.DictType):
            keys = [self.value(name, type.key) for _ in range(2)]
            return {key: self.value(name, type.value) for key in keys}
        if isinstance(type, T.VariableType):
            return self.value(name, self.bound)
        return getattr(self, SIMPLE[type])(name)

    def tensor(self, name: str) -> torch.Tensor:
        shape = self.shape
        if name in ("weight", "bias", "target", "index", "indices") and self.random.random() < 0.4:
            shape = shape[: self.random.randint(0, len(shape))]
        element = self.element
        if name in ("index", "indices", "target", "offsets", "counts"):
            element = "int64" if self.random.random() < 0.8 else element
        if name in ("mask", "condition"):
            element = "bool"
        generator = torch.Generator().manual_seed(self.random.randrange(2**31))
        if element == "int64":
            return torch.randint(0, 3, shape, generator=generator)
        if element == "bool":
            return torch.rand(shape, generator=generator) < 0.5
        return torch.rand(shape, generator=generator, dtype=getattr(torch, element))

    def int(self, name: str) -> int:
        if name == "dtype":
            return self.random.choice((6, 7, 4, 11))
        if name == "reduction":
            return self.random.randint(0, 2)
        if name in ("layout", "memory_format"):
            return 0
        return self.random.choice((-2, -1, 0, 0, 1, 1, 2, 2, 3))

    def float(self, name: str) -> float:
        return self.random.choice((0.0, 0.5, 1.0, 0.1, 2.5, -1.5))

    def number(self, name: str) -> Any:
        return self.random.choice((0, 1, 2, 0.5, 1.5, -1.0))

    def complex(self, name: str) -> complex:
        return complex(self.float(name), self.float(name))

    def bool(self, name: str) -> bool:
        return self.random.random() < 0.5

    def string(self, name: str) -> str:
        words = {"mode": ["bilinear", "nearest"], "approximate": ["none", "tanh"],
                 "rounding_mode": ["floor", "trunc"], "reduce": ["sum", "amax"],
                 "UPLO": ["L", "U"], "padding": ["same", "valid"], "fillchar": ["*"],
                 "separator": [",", " "]}  # fmt: skip
        return self.random.choice(words.get(name, ["a", "ab", "Ab a", "12", " x,y ", "l"]))

    def device(self, name: str) -> torch.device:
        return torch.device("cpu")

    def none(self, name: str) -> None:
        return None


SIMPLE = {
    T.TENSOR: "tensor", T.INT: "int", T.FLOAT: "float", T.NUMBER: "number", T.COMPLEX: "complex",
    T.BOOL: "bool", T.STRING: "string", T.DEVICE: "device", T.NONE: "none", T.GENERATOR: "none",
}  # fmt: skip


def spelled(type: T.Type, value: Any, bound: T.Type) -> str:
    """The type of an argument in a graph's text."""
    if isinstance(type, T.OptionalType) and value is None:
        return "NoneType"
    if isinstance(type, T.VariableType):
        return str(bound)
    if type.parts:
        type = without_none(type)
        return str(type.with_parts([_bound(part, bound) for part in type.parts]))
    return str(type)


def _bound(type: T.Type, bound: T.Type) -> T.Type:
    if isinstance(type, T.VariableType):
        return bound
    return type.with_parts([_bound(part, bound) for part in type.parts]) if type.parts else type


def ours(value: Any) -> Any:
    """A value of torch as one of flambeau."""
    if isinstance(value, torch.Tensor):
        return flambeau.from_numpy(value.detach().numpy().copy())
    if isinstance(value, torch.device):
        return flambeau.device(str(value))
    if isinstance(value, list):
        return [ours(item) for item in value]
    if isinstance(value, tuple):
        return tuple(ours(item) for item in value)
    if isinstance(value, dict):
        return {ours(key): ours(item) for key, item in value.items()}
    return value


def copied(value: Any) -> Any:
    """A value that the other implementation does not write to."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, (list, tuple)):
        return type(value)(copied(item) for item in value)
    return dict(value) if isinstance(value, dict) else value


def assert_same(mine: Any, theirs: Any) -> None:
    """Equal values of equal types; floats up to rounding."""
    if isinstance(theirs, torch.Tensor):
        assert isinstance(mine, flambeau.Tensor), (mine, theirs)
        assert str(mine.dtype) == str(theirs.dtype)
        assert list(mine.shape) == list(theirs.shape)
        if theirs.layout is not torch.strided:
            return
        if theirs.dtype == torch.complex32:  # which PyTorch has no arrays for
            mine, theirs = mine.to(flambeau.complex64), theirs.to(torch.complex64)
        wanted = theirs.detach().resolve_conj().resolve_neg().numpy()
        pytest.importorskip("numpy").testing.assert_allclose(
            mine.detach().resolve_conj().resolve_neg().numpy(), wanted, rtol=2e-4, atol=2e-5
        )
    elif isinstance(theirs, (list, tuple)):
        assert isinstance(mine, (list, tuple)), (mine, theirs)
        assert len(mine) == len(theirs), (mine, theirs)
        for a, b in zip(mine, theirs, strict=True):
            assert_same(a, b)
    elif isinstance(theirs, float):
        assert type(mine) is float, (mine, theirs)
        assert (math.isnan(mine) and math.isnan(theirs)) or mine == pytest.approx(theirs, rel=1e-6)
    elif isinstance(theirs, complex):
        assert complex(mine) == pytest.approx(theirs, nan_ok=True)
    elif isinstance(theirs, torch.device):
        assert str(mine) == str(theirs)
    else:
        assert type(mine) is type(theirs), (mine, theirs)
        assert mine == theirs


def all_schemas() -> list[FunctionSchema]:
    """The schemas that are compared."""
    found = []
    for name in table.names():
        if name in EVERYWHERE or name.rstrip("_") in RANDOM or "backward" in name:
            continue
        for schema in table.overloads(name):
            has_out = any(p.keyword_only and p.written for p in schema.arguments)
            skipped = schema.full_name in CRASHES or name in CRASHES or schema.full_name in UNLIKE
            if not has_out and not schema.vararg and not skipped and _is_made(schema):
                found.append(schema)
    return found


def _is_made(schema: FunctionSchema) -> bool:
    def known(type: T.Type) -> bool:
        if isinstance(type, T.VariableType):
            return True
        return all(map(known, type.parts)) if type.parts else type in SIMPLE

    if calls.find(schema) is None or not schema.returns or schema.varret:
        return False
    return all(known(p.type) for p in (*schema.arguments, *schema.returns))


def compare(schema: FunctionSchema, seed: int) -> str:
    """Both implementations on the same arguments: "same", "refused", or an AssertionError."""
    maker = Maker(schema, seed)
    try:
        values = maker.all()
    except TypeError:  # a list as a key
        return "refused"
    pairs = zip(schema.arguments, values, strict=True)
    arguments = tuple(spelled(p.type, v, maker.bound) for p, v in pairs)
    results = tuple(str(_bound(r.type, maker.bound)) for r in schema.returns)
    theirs = mine = failure = None
    try:
        function = oracle(schema, arguments, results)
        theirs = function(*copied(values))
    except Exception:  # noqa: BLE001  (whatever it refuses)
        return "refused"
    try:
        mine = calls.implementation(schema)(*ours(values))
    except Exception as error:  # noqa: BLE001  (reported below)
        failure = error
    assert failure is None, f"{values}: torch gives {theirs}, flambeau {failure!r}"
    try:
        assert_same(mine, theirs)
    except AssertionError as error:
        raise AssertionError(f"{values}: torch {theirs}, flambeau {mine}: {error}") from None
    return "same"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("schema", all_schemas(), ids=lambda schema: schema.full_name)
def test_operator(schema: FunctionSchema) -> None:
    for seed in range(ATTEMPTS):
        compare(schema, seed)


# ---- operators whose arguments chance does not find


def check(name: str, types: str, results: str, *values: Any) -> None:
    """Compare one call; `types` and `results` as graphs write them, separated by bars."""
    arguments, outputs = tuple(types.split("|")), tuple(results.split("|"))
    fitting = [s for s in table.overloads(name) if s.full_name.partition(".")[0] == name]
    theirs = oracle(fitting[0], arguments, outputs)(*copied(list(values)))
    node_types = [t.removesuffix("?") for t in arguments]
    for schema in fitting:
        if len(schema.arguments) == len(values) and all(
            without_none(p.type) == T.NONE or str(without_none(p.type)) == t or t == "NoneType"
            for p, t in zip(schema.arguments, node_types, strict=True)
        ):
            assert_same(calls.implementation(schema)(*ours(list(values))), theirs)
            return
    raise AssertionError(f"no overload of {name} for {types}")


LSTM = "Tensor|Tensor[]|Tensor[]|bool|int|float|bool|bool|bool"
RNN = "Tensor|Tensor|Tensor[]|bool|int|float|bool|bool|bool"


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_recurrent_layers(layers: int, both: bool, batch_first: bool) -> None:
    torch.manual_seed(layers)
    x = torch.rand(3, 4, 5)
    sides, batch = 1 + both, 3 if batch_first else 4
    for kind, name in ((torch.nn.LSTM, "lstm"), (torch.nn.GRU, "gru"), (torch.nn.RNN, "rnn_tanh")):
        module = kind(5, 2, layers, bidirectional=both)
        params = [p.detach() for p in module._flat_weights]
        state = torch.rand(layers * sides, batch, 2)
        rest = (params, True, layers, 0.0, False, both, batch_first)
        if name == "lstm":
            check("aten::lstm", LSTM, "Tensor|Tensor|Tensor", x, [state, state], *rest)
        else:
            check(f"aten::{name}", RNN, "Tensor|Tensor", x, state, *rest)


def test_packed_lstm() -> None:
    module = torch.nn.LSTM(5, 2, 2, bidirectional=True)
    params = [p.detach() for p in module._flat_weights]
    types = "Tensor|Tensor|Tensor[]|Tensor[]|bool|int|float|bool|bool"
    state = torch.rand(4, 3, 2)
    sizes = torch.tensor([3, 2, 2, 1])
    check("aten::lstm", types, "Tensor|Tensor|Tensor", torch.rand(8, 5), sizes, [state, state],
          params, True, 2, 0.0, False, True)  # fmt: skip


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_cells(name: str) -> None:
    gates = {"lstm": 4, "gru": 3}.get(name, 1)
    hidden = torch.rand(3, 2)
    weights = (torch.rand(gates * 2, 5), torch.rand(gates * 2, 2), torch.rand(gates * 2),
               torch.rand(gates * 2))  # fmt: skip
    if name == "lstm":
        check("aten::lstm_cell", "Tensor|Tensor[]|Tensor|Tensor|Tensor?|Tensor?", "Tensor|Tensor",
              torch.rand(3, 5), [hidden, hidden], *weights)  # fmt: skip
    else:
        check(f"aten::{name}_cell", "Tensor|Tensor|Tensor|Tensor|Tensor?|Tensor?", "Tensor",
              torch.rand(3, 5), hidden, *weights)  # fmt: skip


def test_convolution_with_flags() -> None:
    types = "Tensor|Tensor|Tensor?|int[]|int[]|int[]|bool|int[]|int|bool|bool|bool|bool"
    x, weight = torch.rand(2, 3, 5, 5), torch.rand(4, 3, 3, 3)
    check("aten::_convolution", types, "Tensor", x, weight, torch.rand(4), [2, 2], [1, 1], [1, 1],
          False, [0, 0], 1, False, False, True, True)  # fmt: skip
    check("aten::_convolution", types, "Tensor", torch.rand(2, 4, 5, 5), weight, None, [2, 2],
          [1, 1], [1, 1], True, [1, 1], 1, False, False, True, True)  # fmt: skip


@pytest.mark.parametrize("name", ["upsample_bilinear2d", "upsample_bicubic2d"])
def test_resizing(name: str) -> None:
    image = torch.rand(1, 2, 4, 5)
    check(f"aten::{name}", "Tensor|int[]|bool|float[]?", "Tensor", image, [7, 3], True, None)
    check(f"aten::{name}", "Tensor|NoneType|bool|float[]", "Tensor", image, None, False, [1.5, 2.0])
    check(f"aten::{name}", "Tensor|int[]|bool|float?|float?", "Tensor", image, [6, 10], False, None,
          None)  # fmt: skip


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool) -> None:
    types = "Tensor|Tensor|Tensor|Tensor?|float|bool|float?|bool"
    q, k, v = torch.rand(3, 2, 4, 5, 6).unbind(0)
    check("aten::scaled_dot_product_attention", types, "Tensor", q, k, v, None, 0.0, causal, None,
          False)  # fmt: skip


def test_indexing() -> None:
    x = torch.rand(3, 4)
    rows = torch.tensor([2, 0])
    check("aten::index", "Tensor|Tensor?[]", "Tensor", x, [None, rows])
    check("aten::index", "Tensor|Tensor?[]", "Tensor", x, [rows, rows])
    check(
        "aten::index_put_", "Tensor|Tensor?[]|Tensor|bool", "Tensor", x, [rows], torch.ones(4), True
    )


@pytest.mark.parametrize("text", ["{} {}", "{{}}", "{0}"])
def test_format(text: str) -> None:
    values = (1.5, [1, 2])
    wanted = oracle(table.overloads("aten::format")[0], ("str", "float", "int[]"), ("str",))
    try:
        theirs = wanted(text, *values)
    except RuntimeError:
        with pytest.raises(RuntimeError, match="Too few arguments"):
            calls.implementation(table.overloads("aten::format")[0])(text, *values)
        return
    assert calls.implementation(table.overloads("aten::format")[0])(text, *values) == theirs


VALUES = [
    ("float", 1.0), ("float", 1e20), ("float", 1e-7), ("float", math.inf), ("bool", True),
    ("int[]", [1, 2]), ("str[]", ["a", "b"]), ("Dict(str, float)", {"a": 0.1}), ("complex", 1 - 2j),
    ("(int, str)", (1, "a")), ("(int)", (1,)), ("Tensor", torch.tensor([1.0, 2.5])),
    ("Tensor", torch.tensor([[1, 2], [-3, 4]])), ("Tensor", torch.tensor(3)),
    ("Tensor", torch.tensor([True, False])),
]  # fmt: skip


@pytest.mark.parametrize(("type", "value"), VALUES, ids=lambda v: str(v)[:20])
def test_text(type: str, value: Any) -> None:
    (schema,) = table.overloads("aten::str")
    theirs = oracle(schema, (type,), ("str",))(value)
    assert calls.implementation(schema)(ours(value)) == theirs
