"""Statements, drawn while PyTorch runs the program.

Expressions come from the drawing of scripts: every operator of the table, with arguments that fit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import torch as reference

from conformance.jit.generated import arguments, operators
from conformance.jit.generated.expressions import Expr, Expressions, Refused, Taste, _is_of, _part
from conformance.jit.generated.expressions import sane as _sane
from flambeau.jit.ir import types as T

from .observing import BACKWARD
from .running import UNSEEN, quiet
from .words import Words

LIST = T.ListType(T.TENSOR)
TRIES = 12
KEPT_ERRORS = 0.12
"""The share of statements that raise an error in PyTorch which are kept."""

LEFT_OUT = frozenset(
    """svd linalg_svd eigh linalg_eigh eig linalg_eig linalg_eigvals pca_lowrank svd_lowrank
    lobpcg linalg_lstsq histogram native_dropout _fused_dropout sort argsort kthvalue
    _weight_norm _weight_norm_interface unsafe_split unsafe_chunk unsafe_split_with_sizes
    topk remainder native_layer_norm native_batch_norm searchsorted bucketize range qr linalg_qr
    blackman_window as_strided _standard_gamma _standard_gamma_grad _dirichlet_grad""".split()
)
"""Operators whose results are not unique (signs of vectors, the order of equal elements), or do not
follow their own definition in PyTorch: the gradient of `native_dropout(x, p, None)` is not scaled,
`native_batch_norm` reads past weights that are too small (and crashes), `histogram` wants sorted
bins, `_weight_norm` another shape, `unsafe_split` makes views in inference mode,
`remainder(2.0, x)` has no derivative, what is behind gamma and Dirichlet distributions is meant for
positive numbers (conformance/distributions compares it there)."""


def is_left_out(operator: operators.Operator) -> bool:
    """Whether an operator is not drawn; those that copy views are several nodes here, and
    PyTorch's polynomials read what is not theirs where numbers are not finite."""
    name = operator.name
    return name in LEFT_OUT or name.endswith("_copy") or "_polynomial_" in name or "_fft_" in name


@cache
def _settled(source: str, type: T.Type) -> list[operators.Operator]:
    """The operators of a source that give a type; the same for all programs."""
    return _giving(operators.python() if source == "python" else operators.catalogue(), type)


def _giving(source: Iterable[operators.Operator], type: T.Type) -> list[operators.Operator]:
    found = [operator for operator in source if not operator.writes and operator.result == type]
    return [operator for operator in found if not is_left_out(operator)]


class Drawing(Expressions):
    """A program that grows, and the state in which PyTorch is after it."""

    def __init__(self, drawn: random.Random, taste: Taste) -> None:
        super().__init__(drawn, taste)
        self.words = Words(reference)
        self.env = self.words.names()
        self.hidden = {*self.env, *UNSEEN}
        self.handles: list[str] = []
        self.ended = False
        self.tame = 6

    def _pool(self, source: str, type: T.Type) -> list[operators.Operator]:
        if source == "vocabulary":
            return _giving(self.taste.vocabulary, type)
        return _settled(source, type)

    # ---- expressions, evaluated by PyTorch

    def evaluated(self, text: str, type: T.Type, given: Any = ()) -> Expr:
        """The expression `text`, whose placeholders are other expressions. It is evaluated as a
        whole: parts of it may have been drawn for another library's types."""
        full = text.format(*[_part(part.text, text) for part in given])
        try:
            value = eval(full, self.env)  # noqa: S307
        except Exception as error:  # noqa: BLE001  # whatever the library refuses
            raise Refused(str(error)) from None
        if not _sane(value) or not _is_of(value, type):
            raise Refused("not sane")
        return Expr(full, type, value)

    def picked(self, names: list[str], type: T.Type) -> Expr:
        """One of some variables, rather one that learns."""
        if type == T.TENSOR and self.chance(0.6):
            learning = [name for name in names if self.env[name].requires_grad]
            names = learning or names
        return super().picked(names, type)

    def tensor(self, fits: Callable[[Any], bool] | None = None) -> str:
        """The name of a tensor."""
        names = [n for n in self.names_of(T.TENSOR) if fits is None or _fits(self.env[n], fits)]
        if not names:
            raise Refused("no such tensor")
        return self.picked(names, T.TENSOR).text

    def learning(self) -> str:
        return self.tensor(lambda value: value.requires_grad)

    def result(self) -> str:
        return self.tensor(lambda value: value.requires_grad and not value.is_leaf)

    def leaf(self) -> str:
        return self.tensor(lambda value: value.requires_grad and value.is_leaf)

    def floats(self) -> str:
        return self.tensor(lambda value: value.is_floating_point() or value.is_complex())

    def _text(self, operator: operators.Operator, words: Any) -> str:
        return super()._text(_there(operator), words)

    def drawn(self, operator: operators.Operator) -> str:
        """The text of a call of an operator, which is not run."""
        given: list[Expr] = []
        words = []
        for parameter in operator.schema.arguments:
            if arguments.is_given(self, operator, parameter):
                found = arguments.argument(self, operator, parameter, given, 1)
                given.append(found)
                words.append((parameter, found))
        text = self._text(operator, words)
        return text.format(*[_part(part.text, text) for part in given])

    # ---- the program

    def add(self, text: str, always: bool = False) -> bool:
        """Run a statement, and keep it if it passes; sometimes if it does not."""
        self.words.notes = []
        try:
            with quiet():
                exec(compile(text, "<drawing>", "exec"), self.env)  # noqa: S102
        except NameError:  # a function that was given asks for what is gone
            self.ended = True
        except Exception:  # noqa: BLE001  # whatever PyTorch refuses
            if not always and not self.chance(KEPT_ERRORS):
                return False
            self.ended = any(word in text for word in BACKWARD)
        self.written.append(text)
        self._learn_names()
        return True

    def _learn_names(self) -> None:
        for name in [n for n in self.types if n not in self.env]:
            del self.types[name]
        for name, value in self.env.items():
            if name in self.hidden or name in self.types or name.startswith("_"):
                continue
            if arguments.is_tensor(value) and _sane(value):
                self.define(name, T.TENSOR, value)
            elif isinstance(value, (tuple, list)) and value and all(map(_plain_tensor, value)):
                self.define(name, LIST, list(value))


def _fits(value: Any, fits: Callable[[Any], bool]) -> bool:
    try:
        return fits(value)
    except RuntimeError:  # a stale view, which may not be asked
        return False


@cache
def _there(operator: operators.Operator) -> operators.Operator:
    """An operator with the texts that PyTorch knows, too."""
    texts = tuple(t for t in operator.texts if not t.startswith("torch.") or _is_there(t))
    if not texts:
        raise Refused("not in PyTorch")
    return replace(operator, texts=texts)


def _is_there(text: str) -> bool:
    found: Any = reference
    for name in text.partition("(")[0].split(".")[1:]:
        found = getattr(found, name, None)
    return found is not None


def _plain_tensor(value: Any) -> bool:
    return arguments.is_tensor(value) and _sane(value)
