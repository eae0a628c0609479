"""Draws loops that collect what one operator gives for each row: all overloads that a rule takes.

A program is a function of tensors `x`, `y` [rounds, *], a list `rows`, tensors `w` and `q`, which
are the same in all rounds, a mask and indices of the rounds, `j` [rounds, *].
"""

from __future__ import annotations

import random
from typing import Any

from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, FunctionSchema, Parameter
from flambeau.jit.operators import table
from flambeau.jit.optimise.batching.program import rule_for

HEAD = ("def loop(x: Tensor, y: Tensor, j: Tensor, w: Tensor, q: Tensor, rows: List[Tensor], "
        "numbers: List[int]):")  # fmt: skip
DTYPES = ("float32", "float32", "float32", "float64", "int64", "bool")
KINDS = (T.TENSOR, T.optional(T.TENSOR))
WORDS = {"rounding_mode": ("'floor'", "'trunc'", "None"), "approximate": ("'none'", "'tanh'")}
FIRST = ("x[i]", "x[i]", "x[i]", "rows[i]", "x[x.size(0) - 1 - i]", "x[i].transpose(0, -1)",
         "x[i].clone()", "w", "x[numbers[i]]")  # fmt: skip
OTHERS = (*FIRST, "y[i]", "y[i]", "y[i]", "w", "q", "q", "j[i]", "x[i] > 0")


def overloads() -> list[FunctionSchema]:
    """What can be called on tensors, among all that has a rule."""
    found = []
    for name in table.names():
        if name.startswith("aten::") and name not in ("aten::__getitem__", "aten::len"):
            found += [schema for schema in table.overloads(name)
                      if _is_wanted(schema) and rule_for(schema) is not None]  # fmt: skip
    return found


def _is_wanted(schema: FunctionSchema) -> bool:
    arguments = schema.arguments
    if not arguments or any(argument.written for argument in arguments):
        return False
    return arguments[0].type in (*KINDS, T.ListType(T.TENSOR)) or arguments[-1].type in KINDS


RANKS = {"mm": 2, "mv": 2, "dot": 1, "addmm": 2, "bmm": 3, "linear": 2, "matmul": 2, "t": 2}
"""Dims that an operator wants of its first argument."""
WANTED = {"index": ("j[i]", "j[i]", "j[0]"), "mask": ("x[i] > 0", "y[i] > 0"), "weight": ("w", "q"),
          "condition": ("x[i] > 0", "y[i] > 0"), "vec": ("x[i][0]", "y[i]", "w[0]"),
          "mat2": ("x[i]", "w", "y[i]"), "mat1": ("x[i]", "w", "y[i]")}  # fmt: skip
"""Tensors that a parameter probably means; but it may get any."""
WANTED["indices"] = WANTED["index"]


class Drawn:
    """One program, and arguments for it."""

    def __init__(self, schema: FunctionSchema, seed: int) -> None:
        self.random = random.Random(seed)
        self.schema = schema
        name = schema.name.partition("::")[2]
        self.rank = self.random.choice((0, 1, 1, 2, 2, 3))
        if self.mostly():
            self.rank = RANKS.get(name, self.rank)
        call = f"torch.ops.aten.{name}({', '.join(self.given())})"
        self.join = self.random.choice((
            "torch.stack(out)", "torch.stack(out, -1)", "torch.cat(out)", "torch.stack(out, 1)",
            "torch.cat(out, -1)"))  # fmt: skip
        picked = f"r[{self.random.randrange(2)}]" if self.gives_several() else "r"
        changed = self.random.choice(("{}", "{}", "{}", "{} + y[i]", "{}.detach()", "{} * i"))
        self.lines = [
            HEAD, "    out: List[Tensor] = []", "    for i in range(x.size(0)):",
            f"        r = {call}", f"        out.append({changed.format(picked)})",
            f"    return {self.join}", "",
        ]  # fmt: skip

    def mostly(self) -> bool:
        """Whether to draw what the operator probably takes."""
        return self.random.random() < 0.75  # noqa: PLR2004

    @property
    def text(self) -> str:
        """The program."""
        return "\n".join(self.lines)

    def gives_several(self) -> bool:
        """Whether a round gets a list or a tuple."""
        returns = self.schema.returns
        return len(returns) > 1 or isinstance(returns[0].type, T.ListType)

    def given(self) -> list[str]:
        """The arguments, some defaults left out."""
        texts, named = [], False
        for parameter in self.schema.arguments:
            optional = parameter.default is not REQUIRED
            if optional and self.random.random() < 0.35:  # noqa: PLR2004
                named = True
                continue
            text = self.value(parameter, not texts)
            named = named or parameter.keyword_only
            texts.append(f"{parameter.name}={text}" if named else text)
        return texts

    def value(self, parameter: Parameter, first: bool) -> str:  # noqa: PLR0911, PLR0912, C901
        """The text of one argument."""
        kind, choice = parameter.type, self.random.choice
        if isinstance(kind, T.OptionalType):
            if not first and choice((True, False, False)):
                return "None"
            kind = kind.inner
        if kind == T.TENSOR:
            if parameter.name in WANTED and self.mostly():
                return choice(WANTED[parameter.name])
            return choice(FIRST if first else OTHERS)
        if isinstance(kind, T.ListType):
            return self.list_of(kind.element, parameter)
        if parameter.name in ("dtype", "out_dtype"):
            return choice(("torch.float32", "torch.float64", "torch.int64"))
        if parameter.name in WORDS:
            return choice(WORDS[parameter.name])
        if parameter.name == "memory_format":
            return choice(("torch.contiguous_format", "torch.preserve_format",
                           "torch.channels_last"))  # fmt: skip
        if parameter.name == "device":
            return "'cpu'"
        if parameter.name.startswith("dim") and self.rank and self.mostly():
            return str(choice(range(-self.rank, self.rank)))
        return self.number(kind)

    def number(self, kind: T.Type) -> str:
        """A number, perhaps that of the round."""
        choice = self.random.choice
        if kind == T.BOOL:
            return choice(("True", "False"))
        if kind == T.FLOAT:
            return choice(("0.5", "1.0", "-2.0"))
        if kind == T.INT:
            return choice(("0", "1", "-1", "2", "-2", "3", "0", "1", "-1", "i"))
        if kind in (T.NUMBER, T.SIMPLE.get("Scalar")):
            return choice(("0", "1", "2", "0.5", "-1.5", "i", "i - 1", "3"))
        return "None"

    def list_of(self, kind: T.Type, parameter: Parameter) -> str:
        """A list of tensors or of numbers."""
        choice = self.random.choice
        if kind in KINDS:
            pool = ("j[i]", "j[i]", "x[i]", "j[0]") if "ind" in parameter.name else OTHERS
            return f"[{', '.join(choice(pool) for _ in range(choice((1, 2, 2))))}]"
        if parameter.name == "normalized_shape" and self.mostly():
            return "[x.size(-1)]"
        if parameter.name == "dims" and self.mostly():
            return str(self.random.sample(range(self.rank), self.rank))
        if parameter.name.startswith("dim") and self.rank and self.mostly():
            return str(self.random.sample(range(-self.rank, 0), choice(range(self.rank + 1))))
        if parameter.name in ("size", "shape"):
            pool = ("-1", "2", "3", "4", "6", "1")
        else:
            pool = ("0", "1", "-1", "2", "-2")
        count = choice((0, 1, 1, 2, 2, 3))
        return f"[{', '.join(choice(pool) for _ in range(count))}]"

    # ---- arguments

    def arguments(self, torch: Any, call: int) -> list[Any]:
        """Tensors for one call; those of the first two are of one kind."""
        draw = random.Random(self.random.random() if call else 0)
        plan = random.Random(f"{self.text}{max(call, 1)}")
        rounds, size = plan.choice((2, 3, 4)), plan.choice((2, 3))
        shape = [size if plan.random() < 0.85 else 1 for _ in range(self.rank)]  # noqa: PLR2004
        other = plan.choice((shape, shape, shape[1:], shape[:-1], [2, *shape], []))
        kinds = [plan.choice(DTYPES)] * 4
        if plan.random() < 0.3:  # noqa: PLR2004
            kinds = [plan.choice(DTYPES) for _ in kinds]
        shapes = [[rounds, *shape], [rounds, *other], shape, [size, *shape]]
        tensors = [
            self.tensor(torch, draw, plan, *both) for both in zip(shapes, kinds, strict=True)
        ]
        x, y, w, q = tensors
        lead = plan.choice(([], [2], [2, 2], shape))
        low = plan.choice((0, 0, -1))
        j = torch.tensor([draw.randint(low, max(size - 1, 0)) for _ in range(rounds * numel(lead))])
        rows = (
            list(x.unbind(0))
            if plan.random() < 0.5
            else [  # noqa: PLR2004
                self.tensor(torch, draw, plan, shape, kinds[0]) for _ in range(rounds)
            ]
        )
        numbers = [draw.randint(-1, rounds - 1) for _ in range(rounds)]
        return [x, y, j.reshape(rounds, *lead), w, q, rows, numbers]

    def tensor(self, torch: Any, draw: Any, plan: Any, shape: list[int], kind: str) -> Any:
        """Numbers of a type, some of them the same; perhaps one that learns."""
        count = numel(shape)
        if kind.startswith("float"):
            values = [draw.choice((draw.uniform(-2, 2), 0.5)) for _ in range(count)]
        else:
            values = [draw.randint(0, 1 if kind == "bool" else 3) for _ in range(count)]
        made = torch.tensor(values, dtype=getattr(torch, kind)).reshape(shape)
        learns = kind.startswith("float") and plan.random() < 0.5  # noqa: PLR2004
        return made.requires_grad_() if learns else made


def numel(shape: list[int]) -> int:
    """How many elements a shape has."""
    count = 1
    for size in shape:
        count *= size
    return count
