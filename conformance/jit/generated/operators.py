"""Everything that a program may call, by the types that it takes and gives.

Nearly all of it comes from the table of operators; beside that stand Python's own operators, and
functions of `torch.nn.functional` that are programs themselves, each with a signature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import flambeau
from flambeau.jit.frontend.builtins import builtin_name
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, FunctionSchema, Parameter
from flambeau.jit.operators import table

SPACES = {"linalg_": "linalg", "special_": "special", "fft_": "fft", "": ""}
UNWANTED = frozenset(
    """empty empty_like empty_strided empty_permuted new_empty new_empty_strided resize_ resize_as_
    seed initial_seed manual_seed id hash cuda cpu to_sparse sparse_coo_tensor sparse_mask
    sparse_resize_ to_dense set_ set_data data retain_grad backward grad requires_grad_ is_pinned
    get_device is_distributed output_nr storage_offset element_size set_grad_enabled warn save
    wait Generator as_strided as_strided_ _version is_set_to to_padded_tensor coalesce indices
    values crow_indices col_indices ccol_indices row_indices _nested_tensor_from_mask
    _native_multi_head_attention _transformer_encoder_layer_fwd is_inference is_leaf retains_grad
    has_torch_function is_scripting _lu_with_info
    is_coalesced sparse_dim dense_dim device get_autocast_dtype _no_grad_fill_ _no_grad_normal_
    _no_grad_uniform_ _no_grad_zero_ histogramdd stft istft ctc_loss _ctc_loss hash_tensor
    is_nested""".split()
)
"""Operators whose results are not settled (memory as it is found, seeds, identities), that need
another device or layout, or that programs use by statements of their own."""

GIVEN = frozenset(
    ("Tensor", "int", "float", "bool", "complex", "Tensor[]", "int[]", "float[]", "bool[]", "str")
)
"""Types of results that programs go on with."""

PYTHON = {
    "(Tensor a, Tensor b) -> Tensor":
        "{} + {}|{} - {}|{} * {}|{} / {}|{} @ {}|{} < {}|{} > {}|{} == {}|{} != {}|{} & {}|{} | {}|"
        "{} ** {}|{} // {}|{} % {}|{} <= {}|{} >= {}|{} ^ {}",
    "(Tensor a, Scalar b) -> Tensor":
        "{} + {}|{} - {}|{} * {}|{} / {}|{} ** {}|{} > {}|{} < {}|{} == {}|{} // {}|{} % {}",
    "(Scalar a, Tensor b) -> Tensor": "{} + {}|{} - {}|{} * {}|{} / {}|{} > {}|{} < {}",
    "(Tensor a) -> Tensor": "-{}|~{}|abs({})|{}.T|{}.mT|{}.t()|{}.clone()|{}.contiguous()",
    "(Tensor self, int index) -> Tensor":
        "{}[{}]|{}[:, {}]|{}[..., {}]|{}[{}:]|{}[:{}]|{}[:, {}:]|{}[..., :{}]|{}[:, None, {}]",
    "(Tensor self, int start, int end) -> Tensor":
        "{}[{}:{}]|{}[:, {}:{}]|{}[..., {}:{}]|{}[{}, {}]|{}[{}:, {}:]",
    "(Tensor self) -> Tensor":
        "{}[None]|{}[:, None]|{}[..., None]|{}[::2]|{}[:, ::2]|{}[:]|{}[1:]|{}[:-1]|{}[-1]|{}[0]",
    "(Tensor self, Tensor index) -> Tensor": "{}[{}]|{}[:, {}]",
    "(Tensor self, Tensor mask) -> Tensor": "{}[{}]",
    "(int a, int b) -> int": "{} + {}|{} - {}|{} * {}|{} // {}|{} % {}|min({}, {})|max({}, {})",
    "(float a, float b) -> float": "{} + {}|{} - {}|{} * {}|{} / {}|min({}, {})|max({}, {})",
    "(int a, float b) -> float": "{} + {}|{} * {}|{} / {}",
    "(int a, int b) -> float": "{} / {}",
    "(int a, int b) -> bool": "{} < {}|{} > {}|{} == {}|{} != {}|{} <= {}|{} >= {}",
    "(float a, float b) -> bool": "{} < {}|{} > {}|{} == {}",
    "(bool a, bool b) -> bool": "({} and {})|({} or {})",
    "(bool a) -> bool": "not {}",
    "(int a) -> int": "-{}|abs({})",
    "(float a) -> float": "-{}|abs({})|math.sin({})|math.exp(min({}, 3.0))",
    "(int a) -> float": "float({})",
    "(bool a) -> int": "int({})",
    "(int a) -> bool": "bool({})",
    "(Tensor self) -> int": "{}.size(0)|{}.dim()|{}.numel()|len({})|{}.shape[-1]|{}.size(-1)",
    "(Tensor self) -> int[]": "{}.shape|{}.size()|{}.stride()",
    "(Tensor self) -> bool":
        "bool({}.any())|bool({}.all())|{}.is_floating_point()|{}.requires_grad|{}.is_contiguous()|"
        "float({}.sum()) > 0.0",
    "(Tensor self) -> float": "float({}.sum())|float({}.mean())|float({}.mean().item())",
    "(Tensor one) -> float": "float({})",
    "(Tensor one) -> int": "int({})",
    "(Tensor one) -> bool": "bool({})",
    "(Tensor[] self) -> int": "len({})",
    "(Tensor[] self, int index) -> Tensor": "{}[{}]",
    "(Tensor[] self) -> Tensor": "{}[0]|{}[-1]",
    "(Tensor[] self) -> Tensor[]": "{}[1:]|{}[::-1]|list({})",
    "(Tensor[] a, Tensor[] b) -> Tensor[]": "{} + {}",
    "(Tensor a, Tensor b) -> Tensor[]": "[{}, {}]",
    "(Tensor a) -> Tensor[]": "[{}]|list({}.unbind(0))|{}.split(1)|{}.chunk(2, -1)",
    "(int[] self) -> int": "len({})|{}[0]|{}[-1]",
    "(int a, int b) -> int[]": "[{}, {}]",
    "(bool a, Tensor b, Tensor c) -> Tensor": "({1} if {0} else {2})",
    "(bool a, int b, int c) -> int": "({1} if {0} else {2})",
    "(bool a, float b, float c) -> float": "({1} if {0} else {2})",
}  # fmt: skip
"""Python's operators and the like, by signature."""

FUNCTIONAL = """
softmax(Tensor input, int dim) -> Tensor
log_softmax(Tensor input, int dim) -> Tensor
relu(Tensor input) -> Tensor
relu6(Tensor input) -> Tensor
gelu(Tensor input) -> Tensor
silu(Tensor input) -> Tensor
elu(Tensor input, float alpha=1.0) -> Tensor
leaky_relu(Tensor input, float negative_slope=0.01) -> Tensor
hardtanh(Tensor input) -> Tensor
hardsigmoid(Tensor input) -> Tensor
softsign(Tensor input) -> Tensor
tanhshrink(Tensor input) -> Tensor
logsigmoid(Tensor input) -> Tensor
normalize(Tensor input, float p=2.0, int dim=1) -> Tensor
dropout(Tensor input, float p=0.5, bool training=True) -> Tensor
layer_norm(Tensor input, int[] normalized_shape) -> Tensor
linear(Tensor input, Tensor weight) -> Tensor
mse_loss(Tensor input, Tensor other) -> Tensor
l1_loss(Tensor input, Tensor other) -> Tensor
smooth_l1_loss(Tensor input, Tensor other) -> Tensor
cross_entropy(Tensor input, Tensor target) -> Tensor
nll_loss(Tensor input, Tensor target) -> Tensor
binary_cross_entropy_with_logits(Tensor input, Tensor other) -> Tensor
kl_div(Tensor input, Tensor other) -> Tensor
one_hot(Tensor index) -> Tensor
embedding(Tensor index, Tensor weight) -> Tensor
pad(Tensor input, int[] pad) -> Tensor
glu(Tensor input, int dim=-1) -> Tensor
cosine_similarity(Tensor a, Tensor b, int dim=1) -> Tensor
"""

EVERYDAY = frozenset(
    """abs add addmm amax arange argmax bernoulli bmm cat ceil chunk clamp clone contiguous cos
    cumsum detach div dropout eq exp expand expand_as fill_ flatten flip float gather gelu gt
    index_select l1_loss layer_norm lerp linear log log_softmax logsumexp lt masked_fill matmul max
    maximum mean min mm mse_loss mul mv narrow ne neg norm ones_like outer permute pow prod rand
    rand_like randn randn_like reciprocal relu repeat reshape round rsqrt select sigmoid sign silu
    sin size slice softmax softplus split sqrt square squeeze stack std sub sum t tanh to topk
    transpose tril triu type_as unbind unsqueeze var view view_as where zero_ zeros zeros_like
    full full_like ones sort softmax add_ mul_ sub_ div_ copy_ clamp_ masked_fill_ tanh_ relu_
    sigmoid_ exp_ addcmul addcdiv baddbmm einsum dot erf log1p expm1 hardtanh leaky_relu elu
    argsort isnan isfinite any all floor trunc atan2 fmod remainder logical_and logical_not
    scatter index_add cumprod median nan_to_num minimum new_zeros new_ones new_full
    item is_floating_point numel dim""".split()
)
"""What people write most; drawn as often as all the others together."""


@dataclass(frozen=True)
class Operator:
    """Something to call. `texts` are ways to write it: `{}` are positional arguments, `{more}` all
    the rest."""

    name: str
    schema: FunctionSchema
    texts: tuple[str, ...]
    weight: float = 1.0

    @cached_property
    def result(self) -> T.Type:
        types = [returned.type for returned in self.schema.returns]
        return types[0] if len(types) == 1 else T.TupleType(tuple(types))

    @cached_property
    def writes(self) -> bool:
        return any(p.written for p in self.schema.arguments)


@cache
def catalogue() -> tuple[Operator, ...]:
    """All operators of the table that have a way to be written."""
    found = []
    for name in table.names():
        for schema in table.overloads(name):
            if _usable(schema):
                texts = _texts(schema)
                if texts:
                    found.append(Operator(name.partition("::")[2], schema, texts))
    return (*found, *functional())


@cache
def writing() -> tuple[Operator, ...]:
    """Those that write to their first argument."""
    return tuple(op for op in catalogue() if op.writes and op.result == T.TENSOR)


@cache
def filling() -> tuple[Operator, ...]:
    """Those that write their results to tensors given by name (`out=`), instead of making them."""
    found = []
    for name in table.names():
        for schema in table.overloads(name):
            texts = _texts(schema) if _fills(schema) else ()
            texts = tuple(text for text in texts if text.startswith("torch."))
            if texts:
                found.append(Operator(name.partition("::")[2], schema, texts))
    return tuple(found)


def _fills(schema: FunctionSchema) -> bool:
    targets = outputs(schema)
    if not targets or any(str(p.type) != "Tensor" for p in targets):
        return False
    others = tuple(p for p in schema.arguments if p not in targets)
    returned = [r for r in schema.returns if r.alias]
    return len(returned) == len(targets) and _usable(replace(schema, arguments=others))


def outputs(schema: FunctionSchema) -> tuple[Parameter, ...]:
    """The parameters that results are written to."""
    return tuple(p for p in schema.arguments if p.keyword_only and p.written)


@cache
def views() -> tuple[Operator, ...]:
    """Those whose result shares memory with an argument."""
    kinds = (T.TENSOR, T.ListType(T.TENSOR))
    return tuple(op for op in catalogue() if op.name in VIEWS and op.result in kinds)


VIEWS = frozenset(
    """select slice chunk split t transpose view reshape expand unbind squeeze unsqueeze permute
    narrow diagonal flatten view_as expand_as movedim swapaxes unfold detach contiguous to type_as
    alias tensor_split split_with_sizes""".split()
)


@cache
def functional() -> tuple[Operator, ...]:
    """Functions of `torch.nn.functional` that are programs."""
    found = []
    for line in FUNCTIONAL.split("\n"):
        if line:
            schema = table.schema(f"functional::{line}")
            name = schema.name.partition("::")[2]
            found.append(Operator(name, schema, (f"F.{name}({{more}})",)))
    return tuple(found)


@cache
def python() -> tuple[Operator, ...]:
    """Python's operators."""
    found = []
    for signature, texts in PYTHON.items():
        schema = table.schema(f"python::op{signature}")
        found += [Operator("python", schema, (t,), _weight(t)) for t in texts.split("|")]
    return tuple(found)


WEIGHTS = {"{} + {}": 4.0, "{} - {}": 4.0, "{} * {}": 4.0, "{} / {}": 4.0, "{}[{}]": 3.0,
           "{} @ {}": 12.0}  # fmt: skip
"""Plain arithmetic is what programs consist of; of products only those with sizes that fit pass."""


def _weight(text: str) -> float:
    return WEIGHTS.get(text, 1.0)


def _usable(schema: FunctionSchema) -> bool:
    short = schema.name.partition("::")[2]
    if short in UNWANTED or schema.vararg or schema.varret or short.endswith("_backward"):
        return False
    if any(p.keyword_only and p.written for p in schema.arguments):
        return False
    if any(str(p.type) not in _DRAWN for p in schema.arguments if p.default is REQUIRED):
        return False
    returned = [str(r.type) for r in schema.returns]
    if len(returned) == 1 and returned[0] == "Scalar":
        return False
    return bool(returned) and all(r in GIVEN for r in returned)


_DRAWN = frozenset(
    """Tensor int float bool Scalar Tensor? int? float? bool? Scalar? Tensor[] int[] int[]? float[]
    float[]? bool[] str str? complex Tensor?[]""".split()
)


def _texts(schema: FunctionSchema) -> tuple[str, ...]:
    namespace, _, short = schema.name.partition("::")
    found = []
    for prefix, space in SPACES.items():
        if short.startswith(prefix) and _is_function(schema.name, space, short, prefix):
            dotted = f"torch.{space}." if space else "torch."
            found.append(f"{dotted}{short.removeprefix(prefix)}({{more}})")
            break
    first = schema.arguments[0] if schema.arguments else None
    if first is not None and first.type == T.TENSOR and first.name in ("self", "input"):
        member: Any = getattr(flambeau.Tensor, short, None)
        if member is not None and callable(member):
            found.append(f"{{}}.{short}({{more}})")
    return tuple(found)


def _is_function(name: str, space: str, short: str, prefix: str) -> bool:
    try:
        module = getattr(flambeau, space) if space else flambeau
        function = getattr(module, short.removeprefix(prefix), None)
    except NotImplementedError:
        return False
    return function is not None and builtin_name(function) == name
