"""A program that grows, and the state in which PyTorch is after it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch as reference

from conformance.autograd.generated.running import UNSEEN, quiet

from .words import ModuleWords

KEPT_ERRORS = 0.2
"""The share of statements that raise an error in PyTorch which are kept."""
nn = reference.nn
CONTAINERS = (nn.ParameterList, nn.ParameterDict)


class Refused(Exception):
    """Nothing of the kind could be drawn here."""


class Drawing:
    """Statements, and the names that they have given."""

    def __init__(self, drawn: random.Random) -> None:
        self.random = drawn
        self.words = ModuleWords(reference)
        self.env = self.words.names()
        self.hidden = {*self.env, *UNSEEN}
        self.written: list[str] = []
        self.ended = False
        self.count = 0

    def add(self, text: str, always: bool = False) -> bool:
        """Run a statement, and keep it if it passes; sometimes if it does not."""
        self.words.notes = []
        try:
            with quiet():
                exec(compile(text, "<drawing>", "exec"), self.env)  # noqa: S102
        except Exception:  # noqa: BLE001  # whatever PyTorch refuses
            if not always and not self.chance(KEPT_ERRORS):
                return False
            self.ended = any(word in text for word in self.words.ends)
        self.written.append(text)
        return True

    # ---- choices

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def one(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def seed(self) -> int:
        return self.random.randrange(100)

    def new_name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def names(self, fits: Callable[[Any], bool]) -> list[str]:
        """The names that the program has given to what fits, the last ones last."""
        found = [(name, value) for name, value in self.env.items() if name not in self.hidden]
        return [name for name, value in found if not isinstance(value, type) and fits(value)]

    def named(self, fits: Callable[[Any], bool]) -> str:
        """One of them, rather a late one."""
        found = self.names(fits)
        if not found:
            raise Refused("there is none")
        return found[-1] if self.chance(0.4) else self.random.choice(found)

    # ---- kinds of things

    def module(self, *kinds: type) -> str:
        return self.named(lambda v: isinstance(v, kinds or nn.Module))

    def optimizer(self) -> str:
        return self.named(lambda v: isinstance(v, reference.optim.Optimizer))

    def scheduler(self) -> str:
        return self.named(lambda v: hasattr(v, "get_last_lr"))

    def scaler(self) -> str:
        return self.named(lambda v: hasattr(v, "get_scale"))

    def tensor(self, fits: Callable[[Any], bool] = lambda value: True) -> str:
        return self.named(lambda v: isinstance(v, reference.Tensor) and fits(v))

    def state(self) -> str:
        """A state dict."""
        return self.named(lambda v: isinstance(v, dict))

    # ---- parts of modules

    def part(self) -> str:
        """The text of a module or of one in it."""
        name = self.module()
        inner = [n for n, _ in self.env[name].named_modules() if n and "parametriz" not in n]
        if not inner or self.chance(0.5):
            return name
        return f"{name}.get_submodule({self.random.choice(inner)!r})"

    def of_part(self, text: str) -> Any:
        return eval(text, self.env)  # noqa: S307

    def tensor_of(self) -> str:
        """The text of a parameter."""
        return dotted(*self.parameter())

    def parameter(self, dims: int = 0) -> tuple[str, str]:
        """The text of a module, and the name of a parameter of it."""
        for _ in range(4):
            text = self.part()
            found = [
                name
                for name, value in self.of_part(text)._parameters.items()
                if value is not None and _dims(value) >= dims
            ]
            if found:
                return text, self.random.choice(found)
        raise Refused("no parameter")

    def distinct(self) -> tuple[str, str]:
        """A parameter whose numbers are of different sizes, so that they have one order."""
        text, name = self.parameter()
        value = getattr(self.of_part(text), name)
        if _dims(value) == 0:
            raise Refused("nothing there")
        sizes = value.detach().abs().flatten().tolist()
        if len(set(sizes)) < len(sizes) or isinstance(self.of_part(text), CONTAINERS):
            raise Refused("no order")
        return text, name

    def attribute(self) -> tuple[str, str]:
        """The text of a module, and the name of something that it has, or of nothing."""
        text = self.part()
        value = self.of_part(text)
        has = [*value._parameters, *value._buffers, *value._modules]
        return text, self.random.choice([*has, *has, "weight", "bias", "extra", "new", "1"])

    def input(self) -> str:
        """The text of a batch."""
        if self.chance(0.6):
            found = self.names(lambda v: _is_batch(v))
            if found:
                return self.random.choice(found)
        return f"batch({self.seed()})" + self.one("", ".requires_grad_()")


def dotted(text: str, name: str) -> str:
    """The text of an attribute."""
    return f"{text}.{name}" if name.isidentifier() else f"getattr({text}, {name!r})"


def _dims(value: Any) -> int:
    return 0 if hasattr(type(value), "materialize") else int(value.dim())


def _is_batch(value: Any) -> bool:
    plain = isinstance(value, reference.Tensor) and not hasattr(type(value), "materialize")
    return plain and value.is_floating_point() and value.shape[-1:] == (3,) and value.dim() == 2
