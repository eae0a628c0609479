"""Arguments as text: what a parameter asks for, and sometimes something else."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from .signatures import Parameter

SHAPES = ((), (1,), (3,), (2, 3), (2, 3), (3, 3), (3, 3), (2, 2, 3), (2, 3, 3), (0,), (0, 3),
          (2, 0), (1, 3), (2, 1), (2, 3, 4, 4), (1, 2, 4), (2, 2, 3, 4, 4))  # fmt: skip
FLOATING = ("float32", "float32", "float32", "float64", "float16", "bfloat16")
TYPES = (*FLOATING, "int64", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64",
         "complex128")  # fmt: skip
LAYOUTS = ("rows", "rows", "rows", "transposed", "sliced", "expanded", "offset")
FILLS = ("normal", "normal", "normal", "special", "small", "ones", "zeros", "large")
INDICES = ("index", "indices", "idx", "target", "tensor_indices", "tril_indices", "lengths",
           "repeats", "offsets", "batch_sizes", "sequence_length", "LU_pivots",
           "pivots")  # fmt: skip
MASKS = ("mask", "condition", "attn_mask")
WORDS = ("mean", "sum", "none", "zeros", "constant", "reflect", "replicate", "circular", "nearest",
         "bilinear", "floor", "trunc", "amax", "prod", "fro", "nuc", "tanh", "ij", "xy", "left",
         "right", "relu", "reduced", "complete", "r", "L", "U", "border", "ortho", "forward",
         "backward", "same", "valid", "fan_in", "linear", "min", "max", "ij->ji", "ij,jk->ik",
         "i,i", "linear", "midpoint", "nearest-exact")  # fmt: skip
LAYERS = ("torch.nn.Linear(3, 3)", "torch.nn.Conv2d(2, 2, 3)", "torch.nn.ReLU()")
PRESETS = {
    "dtype": ("torch.float32", "torch.float64", "torch.int64", "torch.bool", "torch.float16",
              "torch.complex64", "torch.uint8", "float", "int", "bool", "complex"),
    "device": ("'cpu'", "torch.device('cpu')", "'meta2'", "'cpu:0'", "0"),
    "layout": ("torch.strided",) * 3,
    "memory_format": ("torch.contiguous_format", "torch.preserve_format", "torch.channels_last"),
    "generator": ("torch.Generator().manual_seed(3)",),
    "bool": ("True", "False"),
    "module": LAYERS,
    "optimizer": ("torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.5)",),
}  # fmt: skip
FLOATS = ("0.5", "0.0", "1.0", "2.0", "-1.5", "0.1", "1e-5", "3.7", "float('inf')", "float('nan')",
          "1e20", "2", "1", "0", "-1")  # fmt: skip
NUMBERS = (*FLOATS, "2", "3", "True", "1j", "0", "1.5+2j", "255", "-300")
WRONG = ("'a'", "None", "[1, 2]", "1.5", "1j", "True", "3", "(1,)", "torch.float32", "[]", "()",
         "float", "np.float32(1.5)", "np.int64(2)", "np.bool_(True)", "np.array([1.0, 2.0, 3.0])",
         "np.float64(0.5)", "{}", "torch.strided", "2**70", "[1.5]", "['a']", "-1", "range(2)",
         "torch.Size([2, 3])", "b'a'", "np.array(2)", "(True,)")  # fmt: skip


@dataclass
class Context:
    """What the arguments of one call have in common, and the tensors made so far."""

    random: random.Random
    made: list[str] = field(default_factory=list)
    """The lines that make them."""

    def __post_init__(self) -> None:
        self.shape = self.random.choice(SHAPES)
        mostly = self.random.random() < 0.7
        self.dtype = self.random.choice(FLOATING if mostly else TYPES)
        self.plain = self.random.random() < 0.6
        """Whether nothing unusual is given."""

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def name(self) -> str:
        return f"x{len(self.made) + 1}"

    # ---- tensors

    def tensor(self, named: str = "", learns: float = 0.12) -> str:
        """A tensor of its own line, for a parameter of this name."""
        name = self.name()
        dtype, shape, fill = self._type(named), self._shape(named), self.random.choice(FILLS)
        if named in INDICES:
            fill = "small"
        layout = "rows" if self.plain else self.random.choice(LAYOUTS)
        text = f"make({self.random.randrange(99)}, {shape}, {dtype!r}, {layout!r}, {fill!r})"
        if dtype.startswith(("float", "bfloat", "complex")) and self.chance(learns):
            text += ".requires_grad_()"
        self.made.append(f"{name} = {text}")
        return name

    def _type(self, named: str) -> str:
        if named in INDICES and self.chance(0.85):
            return "int64"
        if named in MASKS and self.chance(0.85):
            return "bool"
        return self.dtype if self.chance(0.85) else self.random.choice(TYPES)

    def _shape(self, named: str) -> tuple[int, ...]:
        draw, shape = self.random.random(), self.shape
        if draw < 0.65 or named in ("input", "self"):
            return shape
        if draw < 0.85 and shape:
            return self.random.choice((shape[1:], (1, *shape[1:]), shape[::-1], shape[:1],
                                       (*shape[:-1], 1), shape[-1:]))  # fmt: skip
        return self.random.choice(SHAPES)

    # ---- anything

    def value(self, asked: Parameter) -> str:
        """A value for a parameter, as text; now and then one that does not fit."""
        if asked.optional and self.chance(0.15):
            return "None"
        draw = 0.0 if self.plain else self.random.random()
        if draw > 0.93:
            return self.random.choice(WRONG)
        if draw > 0.87:
            return self._in_disguise(asked)
        return self.right(asked)

    def right(self, asked: Parameter) -> str:
        kind = asked.kind
        if kind in PRESETS:
            return self.random.choice(PRESETS[kind])
        if kind in ("tensor", "tensors", "operand"):
            return self._tensors(asked)
        if kind in ("int", "int or ints", "ints"):
            return self._integers(asked)
        if kind == "floats":
            return f"[{', '.join(self.random.choice(FLOATS) for _ in range(2))}]"
        if kind == "float":
            return self.random.choice(FLOATS)
        if kind == "str":
            return repr(asked.default if isinstance(asked.default, str) and self.chance(0.4)
                        else self.random.choice(WORDS))  # fmt: skip
        if kind == "number":
            return self.random.choice(NUMBERS)
        return self._unknown(asked)

    def _unknown(self, asked: Parameter) -> str:
        if isinstance(asked.default, (bool, int, float, str)) and self.chance(0.6):
            return repr(asked.default)
        return self.random.choice((self.tensor, self._number, self._sizes))()

    def _number(self) -> str:
        return self.random.choice(NUMBERS)

    def _tensors(self, asked: Parameter) -> str:
        if asked.kind == "operand" and self.chance(0.3):
            return self._number()
        if asked.kind == "tensors":
            listed = [self.tensor(asked.name) for _ in range(self.random.choice((1, 2, 2, 3)))]
            return f"[{', '.join(listed)}]" if self.chance(0.8) else f"({', '.join(listed)},)"
        if self.made and self.chance(0.08):
            return self.random.choice([line.partition(" ")[0] for line in self.made])
        return self.tensor(asked.name)

    def _integers(self, asked: Parameter) -> str:
        single = asked.kind == "int" or (asked.kind == "int or ints" and self.chance(0.5))
        if not single:
            return self._sizes(asked.name)
        if asked.name.startswith("dim"):
            return str(self.random.choice((0, 0, 1, -1, -1, -2, 2, len(self.shape))))
        return str(self.random.choice((0, 1, 1, 2, 2, 3, 4, -1)))

    def _sizes(self, named: str = "") -> str:
        pool = (0, 1, -1, 2) if named.startswith("dim") else (1, 2, 3, 0, 2, -1)
        listed = [str(self.random.choice(pool)) for _ in range(self.random.choice((0, 1, 2, 2, 3)))]
        if self.chance(0.3):
            listed = [str(size) for size in self.shape]
        inner = ", ".join(listed)
        return self.random.choice((f"[{inner}]", f"({inner}{',' if len(listed) == 1 else ''})"))

    def _in_disguise(self, asked: Parameter) -> str:
        """A number as a tensor or as one of NumPy's, an array for a tensor."""
        if asked.kind in ("tensor", "operand", "tensors"):
            return self.random.choice((
                f"array({self.random.randrange(99)}, {self.shape}, {self.dtype!r})",
                "np.float32(1.5)", "np.int64(2)", "2", "0.5", "1j", "True",
            ))  # fmt: skip
        if asked.kind in ("int", "int or ints"):
            return self.random.choice((
                "np.int64(1)", "torch.tensor(1)", "np.int32(0)", "1.0", "torch.tensor(1.0)", "True",
                "torch.tensor([1])",
            ))  # fmt: skip
        if asked.kind in ("float", "number"):
            return self.random.choice((
                "np.float32(0.5)", "np.int64(2)", "torch.tensor(0.5)", "torch.tensor(2)", "True",
                "np.float64(1.5)", "torch.tensor(0.5, requires_grad=True)", "torch.tensor([2.0])",
                "np.bool_(True)", "np.complex64(1j)",
            ))  # fmt: skip
        if asked.kind in ("ints", "floats"):
            return self.random.choice((
                "torch.tensor([1, 2])", "np.array([1, 2])", "[np.int64(1), 2]", "(1.0, 2)", "2",
                "[torch.tensor(1)]", "torch.Size([1])", "[True]", "[None]",
            ))  # fmt: skip
        if asked.kind == "bool":
            return self.random.choice(("1", "0", "np.bool_(True)", "torch.tensor(True)", "0.0"))
        return self.random.choice(WRONG)
