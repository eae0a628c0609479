"""Rows: one operator each, and the registry that holds them.

    @kernel("mm(Tensor self, Tensor mat2) -> Tensor", backward={...})
    def mm(self, mat2): ...

Kinds differ in what the body gets:

* `pointwise`: expressions (`flambeau._compiler.expr`), traced once and rendered for each dtype;
* `kernel`, `reduction` and `internal`: ndarrays in, new ndarrays out (a tuple for several results);
* `rows`: a formula over the rows along a dim (`_ops/table/rows.py`);
* `view`: an ndarray in, a view of it out;
* `composite`: tensors and public operators; without `backward` it needs no recording of its own;
* `factory`: no tensors; an ndarray out.

`backward` maps a parameter (or a tuple of parameters that share work) to its formula. A formula's
own parameters say what is saved: parameters of the row, `result` or the results' names, `x_shape`
and `x_dtype` for a tensor x, `grad` (or, for several results, `grads` with zeros where none came
back, or `given` with None there), and `wanted`, a tuple of bools for formulas of several
parameters. Forward mode turns these formulas round (`tangents`); a row may say `linear="self"` or
give a formula of its own, `tangent=lambda tangent, self, result: ...`. `batch=` says how `vmap`
works on many examples at once, `shape=` what comes of tensors without memory.
"""

from __future__ import annotations

import copy
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

from flambeau._ops.table import loading
from flambeau._ops.table.schema import Schema, parse, schema_of

Body = Callable[..., Any]
Backward = dict[Any, Callable[..., Any]]


class Folded(NamedTuple):
    """Items of so many dims, with one dim of items before them at most (-1: with one in any case);
    `kept` are tensors that belong to all items, such as weights."""

    dims: int
    kept: tuple[str, ...] = ()


class InAten(NamedTuple):
    """A call as ATen has it: the operator, its arguments, and which of its results is the row's
    (None: all of them)."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = {}  # noqa: RUF012
    pick: int | None = None


SELF_FIRST = re.compile(r"Tensor(\([^)]*\))?\s+self\b")


UNKNOWN = "unknown"
"""What `shape=` says where numbers decide on the shape of a result."""


class Further:
    """What few rows say, by further words, with what holds for the others."""

    # What PyTorch calls its kernel on GPUs where that is not deterministic, and a condition on the
    # arguments if it is for some only: see `_ops/cuda/deterministic.py`.
    nondeterministic: str | tuple[str, Callable[[tuple[Any, ...]], bool]] = ""
    # Tensors of several devices in one call: "any" for rows that copy, or ask for sizes alone;
    # "numbers" for those that, like the pointwise ones, read 0-dim CPU tensors on a GPU as numbers;
    # "asked" for composites whose tensors PyTorch looks at before any kernel does; "attention",
    # "mask", "first factor" and "bounds" where errors are worded otherwise: see
    # `_ops/cuda/mismatch.py`.
    devices: str = ""
    device_check: str = ""  # the kernel in which PyTorch looks at devices, where not of the name
    complex_half: bool = False  # whether PyTorch has it for complex32 on processors
    bare: bool = False  # of composites: whether the function is the body itself: see `renamed`
    earlier: bool = False  # whether its numbers may be given by position, as they once were
    python_names: dict[str, str] = {}  # noqa: RUF012  (parameters called otherwise than in schemas)
    # Who writes to `out=` in PyTorch, and refuses operands that require grad: the name of an
    # operator, after "aten::" where that has no formula for writing elsewhere; "copy_" where the
    # result is computed first and then copied: see `out_learning`.
    out_writer: str = ""
    # Whether PyTorch's function of `nn.functional` is the operator itself, no program in Python.
    builtin: bool = False
    # Whether PyTorch's function of `torch` is no operator but a program, of `torch.functional`.
    program: bool = False
    shown: str = ""  # what errors call it, where that is not its name
    several: bool = False  # whether PyTorch has several forms of it, and says so of wrong arguments
    # Of composites: what arguments may be, by position, besides what the one schema says that they
    # have, or what they refuse in words of their own.
    takes: dict[int, tuple[type, ...]] = {}  # noqa: RUF012
    # What PyTorch calls the nodes of its form with a number for a parameter: these have no edge for
    # it, where those of its other numbers, which become tensors, have one that leads nowhere.
    number_nodes: dict[str, str] = {}  # noqa: RUF012
    # Whether types, layouts and the arguments that are no tensors decide alone what is launched:
    # such calls come into an inline cache. All rows of the kinds `pointwise` and `rows` are so.
    # "alike": and NumPy's results are those of kernels to the last bit, see `choice.Learning`.
    inline: bool | str = False
    # What the optimiser of scripts asks:
    fused: bool = False  # whether kernels of several operators may hold it
    regular: bool = False  # whether its slope is finite where its operands are: see `is_regular`
    undetermined: bool = False  # whether operands leave results open, though nothing is drawn
    may_give_input: bool = False  # whether it may give an operand back, unlike what its schema says
    between_kernels: bool = False  # of rows that are not fused: whether they may run between
    # Of functions that are 0 at 0: whether PyTorch has them for sparse tensors, whose entries they
    # change: in place of "distinct" entries only, or of "any", as it is linear.
    sparse_entries: str = ""


class Op(Further):
    """One row of the operator table."""

    module: str  # the module of rows that it stands in
    home: dict[str, Any]  # that module's globals
    formula: Any = None  # of the kind `rows`: the formula over a row, see `_ops/table/rows.py`
    reduces = False  # of the kind `rows`: whether there is one result a row
    in_place: Any = None  # its in-place form, where that is no write of the result
    bits: Any = (
        None  # what it makes of tensors with a bit, where that is not as in `_ops.table.bits`
    )
    write: Any = None  # a function: writes the result into the first argument: see `writers.writer`

    def __init__(self, schema: str, kind: str, body: Body, *, backward: Backward | None = None,
                 node: str | None = None, node_whole: str | None = None,
                 node_inplace: str | None = None, backward_inplace: Backward | None = None,
                 dispensable: tuple[str, ...] = (), saved_for: dict[str, str] | None = None,
                 also_saved: tuple[str, ...] = (), saved_facts: dict[str, Any] | None = None,
                 saved_names: dict[str, str | None] | None = None,
                 underived: bool = False, composed: bool = False,
                 public_node: Callable[[Any], Any] | None = None,
                 constants: dict[str, str] | None = None,
                 inplace: bool = False, out: bool = False,
                 out_type: str | Callable[[Any], str] = "",
                 out_apart: bool = False, follows_out: bool = False,
                 turn: Callable[[Any], tuple[bool, bool]] | None = None,
                 elementwise: bool = False, row_major: bool = False,
                 factors: tuple[str, ...] = (), linear: str = "",
                 tangent: Callable[..., Any] | None = None,
                 method: bool | None = None, function: bool = True, namespace: str = "",
                 public: str | None = None, promote: str = "default", autocast: str | None = None,
                 nondifferentiable: tuple[str, ...] = (), dtypes: str = "",
                 order: int = 0, label: str = "", fallback: str = "", numbers: str = "",
                 exact_number: bool | None = None,
                 refusals: dict[str, Exception] | None = None,
                 check: Callable[[Any], None] | None = None,
                 batch: str | tuple[int | None, ...] | Folded | Callable[..., Any] | None = None,
                 shape: str | Callable[..., Any] | None = None,
                 decomposition: Callable[..., Any] | None = None,
                 aten: Callable[..., InAten] | None = None,
                 choices: dict[str, tuple[str, ...]] | None = None, **further: Any
                 ) -> None:  # fmt: skip
        self.text = schema
        head = schema[: schema.index("(")]
        self.name, _, self.overload = head.partition(".")
        self.kind = kind
        self.body = body
        self.composed = composed  # whether torch records several operators instead
        self.public_node = public_node  # what makes torch's nodes of its node, once a user looks
        self.underived = underived  # no derivative is defined: see `unformulated`
        self.backward = self._refusals() if underived else backward
        self.constants = constants or {}  # what may not require grad -> the function that says so
        self.node = node or default_title(self.name)
        self.node_whole = node_whole  # the node's name where `dim` is None: torch has two overloads
        self.node_inplace = node_inplace  # the node's name after an in-place call, if another
        self.backward_inplace = backward_inplace  # formulas that only the in-place form has
        self.dispensable = dispensable  # results that formulas get as None once they were changed
        self.saved_for = saved_for or {}  # argument of a joint formula -> whose gradient needs it
        self.also_saved = also_saved  # values that no formula needs, but users see: `_saved_eps`
        self.saved_facts = saved_facts or {}  # the same for what is so for the row as a whole
        self.saved_names = saved_names or {}  # what is shown under another name, or (None) not
        self.inplace = inplace
        self.out = out
        self.out_type = out_type  # the error for `out=` of another type: see `outputs.check_type`
        self.follows_out = follows_out  # whether it computes in the type of `out`
        # whether it goes over elements as rows of the pointwise kind do: see `outputs.write_out`
        self.elementwise = elementwise or kind == "pointwise"
        self.row_major = row_major  # of the pointwise kind: its result is, whatever the operands
        # For views: the conjugate and negative bits of the result, from those of the tensor.
        self.turn = turn
        # Arguments that are nothing but factors: of conjugate views, products take the memory.
        self.factors = factors
        self.declared_linear = tuple(linear.split())  # see `linear`
        self.tangent = tangent  # forward mode's formula, where backward's cannot be turned round
        self.out_apart = out_apart  # whether `out=` may lie nowhere in the inputs' memory
        starts_with_self = SELF_FIRST.match(schema, schema.index("(") + 1) is not None
        self.method = starts_with_self if method is None else method
        self.function = function
        self.namespace = namespace
        self.public = public or self.name
        self.promote = promote
        self.autocast = autocast  # the precision it chooses in a region: see `_ops.table.autocast`
        self.nondifferentiable = nondifferentiable
        self.dtypes = dtypes
        self.order = order
        self.label = label or self.name
        self.fallback = fallback  # the public name to try with arguments of other types
        self.check_operands = check  # raises for combinations of types that torch refuses
        self.refusals = refusals or {}  # errors of their own for "bool", "int", "float", "complex"
        # Which tensor operands may be numbers: "none", "other" (all but the first), "both" (but not
        # all at once) or "all".
        self.numbers = numbers or ("other" if kind == "pointwise" else "none")
        # How it works on a batch, where that does not follow from the kind: "elements", "dims",
        # "new dim", "index", "examples" (one by one), the number of dims of an item of each tensor
        # (None: is not batched), `Folded`, or a function of operators: see `transforms/batching`.
        self.batch = batch
        # What comes of tensors without memory where it does not follow from the kind: UNKNOWN where
        # numbers decide on the shape (or a function of the arguments that says so), "ones" where
        # zeros are refused, "zeros" for a composite that looks at numbers: see `transforms/meta`.
        self.shape = shape
        # The public operators that a call is made of in ATen, for those who look on below
        # autograd (`transforms/dispatching`).
        self.decomposition = decomposition
        self.aten = aten  # or, of a call's arguments: the call that it is there
        # Of a composite that is a program: the types of parameters that scripts give in several,
        # in the order in which they are tried.
        self.choices = choices or {}
        # Whether a number or a 0-dim tensor as the second operand keeps its float32 value beside
        # tensors of half types, as in products and quotients, or is rounded to the half type. By
        # default what the schema calls a Tensor is rounded, and a Scalar is not.
        self.exact_number = exact_number
        for word, value in further.items():
            if word not in Further.__annotations__:
                raise TypeError(f"{schema}: no word {word!r} for a row")
            setattr(self, word, value)

    def _refusals(self) -> Backward:
        """Where formulas would be: an operator without derivative records its calls, too."""
        return dict.fromkeys([a.name for a in self.schema.arguments if a.is_tensor], _no_formula)

    @cached_property
    def rounds(self) -> tuple[bool, ...]:
        """For each argument: whether a single number is rounded to the half type of tensors."""
        arguments = self.schema.arguments
        if self.exact_number is False:
            return (True,) * len(arguments)
        tensors = [argument.type == "Tensor" for argument in arguments]
        if self.exact_number:
            tensors[1] = False
        return tuple(tensors)

    @cached_property
    def linear(self) -> tuple[str, ...]:
        """Operands in each of which the result is linear: those that the row names, or its factors
        if it has no other operands, as the addend of `addmm`."""
        tensors = tuple(a.name for a in self.schema.arguments if a.is_tensor)
        return self.declared_linear or (self.factors if tensors == self.factors else ())

    @property
    def is_regular(self) -> bool:
        """Whether its slope is finite where its operands are: views, and what has no slope, too."""
        return self.regular or self.kind == "view" or self.promote == "bool"

    def check(self) -> None:
        """Formulas may only name what exists; called when the operator is first built."""
        if not self.backward:
            return
        known = {argument.name for argument in self.schema.arguments}
        if "result" in known:
            raise ValueError(f"{self.text}: 'result' is what formulas call the result")
        for key in self.backward:
            for name in key if isinstance(key, tuple) else (key,):
                if name not in known:
                    raise ValueError(f"{self.text}: no parameter {name!r} for a formula")

    @property
    def written(self) -> Op:
        """The row as its in-place form is recorded."""
        if self.backward_inplace is None:
            return self
        op = copy.copy(self)
        op.backward = self.backward_inplace
        return op

    def beside_number(self, name: str) -> Op:
        """The row as calls are recorded that give a number for a parameter."""
        op = copy.copy(self)
        op.node = op.node_inplace = self.number_nodes[name]
        op.backward = {key: f for key, f in (self.backward or {}).items() if key != name}
        op.number_nodes = {}
        return op

    @property
    def schema(self) -> Schema:
        """The parsed schema."""
        return parse(self.text)

    @property
    def full_name(self) -> str:
        """`sum.dim_IntList`."""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def doc(self) -> str:
        """The docstring of the row; before its example, what follows from the row about shapes."""
        text = inspect.getdoc(self.body) or ""
        if not (self.elementwise and text):
            return text
        prose, example, rest = text.partition("\n>>>")
        return f"{prose.rstrip()}\n\n{self.words_about_shapes}{example and chr(10) + example}{rest}"

    @property
    def words_about_shapes(self) -> str:
        """What a row that goes over elements makes of shapes."""
        names = [f"`{'input' if argument.name == 'self' else argument.name}`"
                 for argument in self.schema.arguments if argument.is_tensor]  # fmt: skip
        if len(names) == 1:
            return f"Element by element: the result has the shape of {names[0]}."
        return f"Element by element: {' and '.join(names)} broadcast to one shape."

    def __repr__(self) -> str:
        return f"<Op {self.full_name}>"


def _no_formula(grad: Any) -> Any:
    raise NotImplementedError("an operator without derivative has no formula to call")


REGISTRY: dict[str, Op] = {}
"""Every row, by full name."""
NOWHERE: dict[str, Any] = {}
"""The home of rows that no module of rows has made."""
LISTENERS: list[Callable[[Op], None]] = []
"""Who wants to be told of each further row."""
ALIASES: dict[str, str] = {}
"""Further public names of operators: {"absolute": "abs"}."""
ALIAS_MODULES: dict[str, str] = {}
"""The module that each alias was declared in."""


class Table(dict[str, list[Op]]):
    """Public name -> its rows. A name's modules are imported when it is first asked for."""

    def __missing__(self, name: str) -> list[Op]:
        loading.load(name)
        return dict.__getitem__(self, name) if dict.__contains__(self, name) else _absent(name)

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or loading.is_indexed(str(name))

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401  (dict's get would not load)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*loading.indexed_names(), *dict.keys(self)]))


def _absent(name: str) -> list[Op]:
    raise KeyError(name)


BY_NAME = Table()
"""The overloads of each public name ("softmax", "linalg.inv", "nn.functional.gelu")."""


def default_title(name: str) -> str:
    """The node's name as users see it: masked_fill gives MaskedFillBackward0."""
    words = [word[:1].upper() + word[1:] for word in name.split("_") if word]
    return "".join(words) + "Backward0"


def register(op: Op) -> Op:
    """Add a row to the table. Where an import was interrupted (Ctrl-C), the rows that it had made
    make way for those of the next try."""
    key = f"{op.namespace}.{op.full_name}" if op.namespace else op.full_name
    public = f"{op.namespace}.{op.public}" if op.namespace else op.public
    op.module, op.home = _module_of_rows()
    before = REGISTRY.get(key)
    if before is not None:
        if before.module != op.module or before.home is op.home:
            raise ValueError(f"two rows for {key}")
        _forget(key, public)
    REGISTRY[key] = op
    BY_NAME.setdefault(public, []).append(op)
    for listener in LISTENERS:
        listener(op)
    return op


def _forget(key: str, public: str) -> None:
    op = REGISTRY.pop(key)
    same = BY_NAME[public]
    if op in same:
        same.remove(op)


def _module_of_rows() -> tuple[str, dict[str, Any]]:
    """The module of rows that is being imported, as the index calls it, and its globals."""
    frame = sys._getframe(2)
    while frame is not None:
        name = loading.module_of_rows(frame.f_globals["__name__"])
        if name:
            return name, frame.f_globals
        frame = frame.f_back  # type: ignore[assignment]
    return "", NOWHERE


def alias(new: str, old: str) -> None:
    """A further public name for an operator: its function, method and in-place form."""
    ALIASES[new] = old
    ALIAS_MODULES[new] = _module_of_rows()[0]
    BY_NAME[new] = BY_NAME[old]


def _kind(kind: str, **defaults: Any) -> Callable[..., Callable[[Body], Op]]:
    def row(schema: str, **options: Any) -> Callable[[Body], Op]:
        def add(body: Body) -> Op:
            return register(Op(schema, kind, body, **{**defaults, **options}))

        return add

    return row


pointwise = _kind("pointwise", inplace=True, out=True)
reduction = _kind("kernel", out=True)
kernel = _kind("kernel")
internal = _kind("kernel", method=False, function=False)
"""Kernels that have no public name: what others are made of, and gradients."""
view = _kind("view")
factory = _kind("factory", method=False)
composite = _kind("composite")


def functional(**options: Any) -> Callable[[Body], Op]:
    """A composite of `nn.functional` whose schema is the signature of its body: what is annotated
    with `Any` is a tensor. Where a row has the name already, the body's begins with `functional_`.
    """

    def add(body: Body) -> Op:
        schema = schema_of(body, body.__name__.removeprefix("functional_"))
        return composite(schema, namespace="nn.functional", method=False, **options)(body)

    return add
