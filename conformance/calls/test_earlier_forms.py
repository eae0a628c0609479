"""Calls with numbers before tensors, which old optimizers make: results, warnings, refusals."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch as reference

import flambeau

Call = Callable[[Any, Any], Any]


class Given:
    """Tensors of one library."""

    def __init__(self, torch: Any) -> None:
        self.x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        self.y = torch.tensor([[0.5, -2.0], [7.0, 1.5]])
        self.v, self.w = torch.tensor([2.0, 5.0]), torch.tensor([-1.0, 3.0])
        self.b = torch.stack([self.x, self.y])
        self.two = torch.tensor(2.0)


FORMS: dict[str, Call] = {
    "add": lambda t, g: t.add(g.x, 2, g.y),
    "add out": lambda t, g: t.add(g.x, 2.5, g.y, out=g.b[0]),
    "add a 0-dim number": lambda t, g: t.add(g.x, g.two, g.y),
    "add_": lambda t, g: g.x.add_(2, g.y),
    "add_ that learns": lambda t, g: g.x.requires_grad_().mul(1).add_(-0.5, g.y),
    "sub": lambda t, g: t.sub(g.x, 2, g.y),
    "sub_": lambda t, g: g.x.sub_(0.1, g.y),
    "addcmul": lambda t, g: t.addcmul(g.x, 3, g.x, g.y),
    "addcmul_": lambda t, g: g.x.addcmul_(3, g.y, g.y),
    "addcdiv": lambda t, g: t.addcdiv(g.x, -1, g.x, g.y),
    "addcdiv_": lambda t, g: g.x.addcdiv_(-0.1, g.y, g.y + 1),
    "addcdiv out": lambda t, g: t.addcdiv(g.x, 2, g.x, g.y, out=g.b[1]),
    "addmm": lambda t, g: t.addmm(2, g.x, 3, g.y, g.y),
    "addmm beta": lambda t, g: t.addmm(2, g.x, g.y, g.y),
    "addmm method": lambda t, g: g.x.addmm(2, 3, g.y, g.y),
    "addmm method beta": lambda t, g: g.x.addmm(2, g.y, g.y),
    "addmm out": lambda t, g: t.addmm(2, g.x, 3, g.y, g.y, out=g.b[0]),
    "addmm_": lambda t, g: g.x.addmm_(2, 3, g.y, g.y),
    "addmv": lambda t, g: t.addmv(2, g.v, 3, g.x, g.w),
    "addmv_": lambda t, g: g.v.addmv_(2, 3, g.x, g.w),
    "addr": lambda t, g: t.addr(2, g.x, 3, g.v, g.w),
    "addr_": lambda t, g: g.x.addr_(0, g.v, g.w),
    "addbmm": lambda t, g: t.addbmm(2, g.x, 3, g.b, g.b),
    "addbmm_": lambda t, g: g.x.addbmm_(2, 3, g.b, g.b),
    "baddbmm": lambda t, g: t.baddbmm(2, g.b, 3, g.b, g.b),
    "baddbmm_": lambda t, g: g.b.baddbmm_(2, 3, g.b.clone(), g.b.clone()),
    # refused
    "alpha behind": lambda t, g: t.add(g.x, g.y, 2),
    "three tensors": lambda t, g: t.add(g.x, g.y, g.y),
    "an alpha that learns": lambda t, g: t.add(g.x, g.two.requires_grad_(), g.y),
    "text": lambda t, g: g.x.add_("2", g.y),
    "shapes": lambda t, g: t.addmm(1, g.x, 1, g.v, g.y),
}  # fmt: skip


def told(torch: Any, call: Call) -> tuple[Any, list[tuple[str, str]]]:
    """The result or the class of the error, and the warnings; those of products into another type,
    which are there for CUDA, are left out."""
    torch.set_warn_always(True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(torch, Given(torch))
            found = (result.tolist(), result.requires_grad, result._version)
        except Exception as error:  # noqa: BLE001  # compared, whatever it is
            found = type(error).__name__
    torch.set_warn_always(False)
    return found, [(entry.category.__name__, _kept(str(entry.message))) for entry in caught]


def _kept(text: str) -> str:
    lines = text.partition(" (Triggered")[0].splitlines()
    return "\n".join(line for line in lines if "out_dtype" not in line)


@pytest.mark.parametrize("name", FORMS)
def test_numbers_before_tensors(name: str) -> None:
    mine, other = (told(torch, FORMS[name]) for torch in (flambeau, reference))
    assert mine == other


def test_warned_once() -> None:
    """Unless `set_warn_always` says otherwise, as in PyTorch."""
    x = flambeau.ones(2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            x.addcdiv_(1, x, x)
    assert len(caught) <= 1


REMOVED = ("torch.symeig(x)", "x.symeig()", "torch.eig(x, True)", "x.eig()", "torch.lstsq(x, x)",
           "x.solve(x)", "torch.solve(x, x)", "torch.matrix_rank(x, symmetric=True)")  # fmt: skip


@pytest.mark.parametrize("call", REMOVED)
def test_what_was_removed(call: str) -> None:
    said = []
    for torch in (flambeau, reference):
        with pytest.raises(RuntimeError) as found:
            eval(call, {"torch": torch, "x": torch.eye(2)})  # noqa: S307
        said.append(str(found.value).splitlines()[0])
    assert said[0] == said[1]
