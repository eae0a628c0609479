"""Errors of running programs are PyTorch's: each frame, also those that were inlined, and for
archives the serialized code and the original.
"""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
import torch

import flambeau

pytestmark = pytest.mark.filterwarnings("ignore")


def programs(torch: Any) -> dict[str, Any]:
    """Functions and modules over one of the two libraries; all fail."""

    def inner(x):
        return x.view(7)

    def middle(x):
        y = x + 1
        return inner(y) * 2

    def nested(x):
        for i in range(2):
            if i == 1:
                x = middle(x)
        return x

    def boom(x):
        if x.sum() > 0:
            raise ValueError("bad " + str(x.size(0)))
        return x

    def raises(x):
        return boom(boom(x - 1) + 5)

    def seven(x):
        return torch.ones(7)

    def fused(x):
        a = (x + seven(x)) * 3
        return a * 2

    def listed(x):
        numbers = [1, 2]
        return x + numbers[5]

    def asserts(x):
        assert x.size(0) == 5, "wrong size"
        return x

    def looped(x):
        while bool(x.sum() < 100):
            x = x + torch.mm(x, x)
        return x

    def ünïcode(x):
        größe = x + 1  # ß and ü have two bytes
        return größe.view(5)

    class Sub(torch.nn.Module):
        def forward(self, x):
            return torch.mm(x, x)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.sub = Sub()

        def helper(self, x):
            return self.sub(x)

        def forward(self, x):
            return self.helper(x)

    found = (nested, raises, fused, listed, asserts, looped, ünïcode)
    return {**{function.__name__: function for function in found}, "Net": Net()}


THEIRS, OURS = programs(torch), programs(flambeau)


def said(library: Any, called: Any) -> list[str]:
    """What three calls say: not optimised yet, and optimised."""
    found = []
    for _ in range(3):
        with pytest.raises((RuntimeError, library.jit.Error)) as caught:
            called(library.ones(2, 3))
        found.append(str(caught.value))
    return found


@pytest.mark.parametrize("name", THEIRS)
def test_frames(name: str) -> None:
    expected = said(torch, torch.jit.script(THEIRS[name]))
    assert said(flambeau, flambeau.jit.script(OURS[name])) == expected[:1] * 3


def without_widths(text: str) -> str:
    """C++ underlines `(self).method`, Python's parser knows no bracket there."""
    return re.sub(r"~+ <---", "~ <---", text)


@pytest.mark.parametrize("name", THEIRS)
def test_archives_of_pytorch(name: str) -> None:
    """Both tracebacks: of the archive's code, and of what it was made from."""
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(THEIRS[name]), file)
    file.seek(0)
    expected = said(torch, torch.jit.load(file))
    file.seek(0)
    found = said(flambeau, flambeau.jit.load(file))
    assert "original code" in found[0]
    assert [*map(without_widths, found)] == [*map(without_widths, expected[:1] * 3)]


@pytest.mark.parametrize("name", THEIRS)
def test_archives_of_flambeau(name: str) -> None:
    """PyTorch says of our archives what it says of its own: the same lines, the same marks; and so
    it does when flambeau has written again what PyTorch wrote.
    """
    theirs = written(torch, torch.jit.script(THEIRS[name]))
    expected = said(torch, torch.jit.load(io.BytesIO(theirs)))[0]
    ours = written(flambeau, flambeau.jit.script(OURS[name]))
    again = written(flambeau, flambeau.jit.load(io.BytesIO(theirs)))
    assert "original code" in expected
    shown = (
        str if name.isascii() else without_widths
    )  # torch counts bytes up to it, then characters
    for content in (ours, again):
        assert shown(said(torch, torch.jit.load(io.BytesIO(content)))[0]) == shown(expected)
    assert without_widths(said(flambeau, flambeau.jit.load(io.BytesIO(ours)))[0]) == (
        without_widths(expected))  # fmt: skip


def written(library: Any, compiled: Any) -> bytes:
    """An archive."""
    sink = io.BytesIO()
    library.jit.save(compiled, sink)
    return sink.getvalue()
