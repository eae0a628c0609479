"""A program that grows: tensors, one call, and gradients."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from conformance.autograd.generated.running import quiet

from .words import LayerWords

LAYOUTS = ("rows",) * 6 + ("transposed", "sliced", "expanded", "offset", "permuted", "last")
TYPES = ("float32",) * 11 + ("float64",) * 5 + ("bfloat16", "float16")
CHANNELS_LAST = {4: "channels_last", 5: "channels_last_3d"}


class Text(str):
    """Source text, which is written into a call as it is."""

    __slots__ = ()


class Drawing:
    """Statements, and choices among what may be in them."""

    def __init__(self, drawn: random.Random, library: Any) -> None:
        self.random = drawn
        self.words = LayerWords(library)
        self.env = self.words.names()
        self.dtype = drawn.choice(TYPES)
        self.written: list[str] = []
        self.learning: list[str] = []
        self.count = 0

    # ---- choices

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def one(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def size(self, low: int = 1, high: int = 9) -> int:
        return self.random.randint(low, high)

    def sizes(self, dims: int, low: int = 1, high: int = 9) -> tuple[int, ...]:
        return tuple(self.size(low, high) for _ in range(dims))

    def seed(self) -> int:
        return self.random.randrange(1000)

    def each(self, dims: int, make: Callable[[], Any]) -> Any:
        """One value for all dims, or one for each."""
        if self.chance(0.5):
            return make()
        return tuple(make() for _ in range(dims))

    def dim(self, dims: int) -> int:
        """A dimension, counted from either end."""
        return self.random.randint(-dims, dims - 1) if dims else self.one(0, -1)

    def some(self, share: float = 0.5, **options: Any) -> dict[str, Any]:
        """Some of the options."""
        return {name: value for name, value in options.items() if self.chance(share)}

    # ---- tensors

    def tensor(self, shape: tuple[int, ...], dtype: str = "", layout: str = "", fill: str = "",
               learns: bool | None = None, after: str = "") -> Text:  # fmt: skip
        """A statement that makes a tensor; `after`: what is done with it first."""
        dtype = dtype or self.dtype
        text = self.made(shape, dtype, layout or self.one(*LAYOUTS), fill) + after
        name = self._new("x")
        if learns is None:
            learns = self.chance(0.8)
        if learns and ("float" in dtype or "complex" in dtype):
            text += ".requires_grad_()"
            self.learning.append(name)
        self.written.append(f"{name} = {text}")
        return Text(name)

    def made(self, shape: tuple[int, ...], dtype: str, layout: str, fill: str = "") -> str:
        """The text of a tensor without a name."""
        words = [str(self.seed()), str(shape), repr(dtype)]
        if layout == "last":
            kind = CHANNELS_LAST.get(len(shape))
            rows = self.made(shape, dtype, "rows", fill)
            return f"{rows}.to(memory_format=torch.{kind})" if kind else rows
        if layout == "permuted":
            return self._permuted(shape, dtype, fill)
        if layout != "rows" or fill:
            words.append(repr(layout))
        if fill:
            words.append(repr(fill))
        return f"make({', '.join(words)})"

    def _permuted(self, shape: tuple[int, ...], dtype: str, fill: str) -> str:
        order = self.random.sample(range(len(shape)), len(shape))
        held = tuple(shape[place] for place in order)
        back = tuple(order.index(place) for place in range(len(shape)))
        return f"{self.made(held, dtype, 'rows', fill)}.permute({back})"

    def indices(self, shape: tuple[int, ...], high: int, low: int = 0, dtype: str = "") -> Text:
        """Whole numbers from `low` to below `high`."""
        text = self.made(shape, "int64", "rows") + f".abs() * {self.one(1, 3, 7)}"
        text = f"({text} % {max(high - low, 1)}" + (f" + {low})" if low else ")")
        kind = dtype or self.one("int64", "int64", "int64", "int32")
        return self.let("i", text + ("" if kind == "int64" else f".to(torch.{kind})"))

    def _new(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    # ---- calls

    def let(self, letter: str, text: str) -> Text:
        """A statement that gives a name to what a text is."""
        name = self._new(letter)
        self.written.append(f"{name} = {text}")
        return Text(name)

    def module(self, text: str) -> Text:
        """A module with drawn weights, which learn."""
        name = self.let("m", f"filled({text}, {self.seed()}, {self.dtype!r})")
        self.learning.append(f"*{name}.parameters()")
        return name

    def result(self, text: str) -> Text:
        return self.let("y", text)

    def gradients(self, *results: str) -> None:
        """A statement that takes gradients of all that learns."""
        if self.learning:
            held = ", ".join(self.learning)
            self.let("g", f"slopes([{', '.join(results)}], [{held}], {self.seed()})")

    def text(self) -> str:
        return "\n".join(self.written) + "\n"

    def run(self) -> bool:
        """Whether PyTorch runs it without an error."""
        self.words.notes = []
        try:
            with quiet(), self.words.apart():
                exec(compile(self.text(), "<drawing>", "exec"), self.env)  # noqa: S102
        except Exception:  # noqa: BLE001  # whatever PyTorch refuses
            return False
        return True


def called(function: str, *given: Any, **options: Any) -> str:
    """The text of a call."""
    words = [_told(value) for value in given]
    words += [f"{name}={_told(value)}" for name, value in options.items()]
    return f"{function}({', '.join(words)})"


def _told(value: Any) -> str:
    if isinstance(value, Text):
        return str(value)
    if isinstance(value, (list, tuple)) and any(isinstance(item, Text) for item in value):
        inner = ", ".join(_told(item) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)"
    return repr(value)
