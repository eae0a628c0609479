"""A call written by hand: one parameter of it, and the values that it is given."""

from __future__ import annotations

from typing import NamedTuple


class Program(NamedTuple):
    """A call, one parameter of it, and the values that it is given."""

    path: str
    parameter: str
    values: tuple[str, ...]
    text: str

    def texts(self) -> list[str]:
        return [NAMED + self.text.replace("VALUE", value) for value in self.values]


NAMED = "__name__ = 'programs'\n"
"""Scripts ask in which module a function was made."""


SWITCH = ("False", "True")
LAYOUTS = ("torch.strided", "torch.sparse_coo", "torch.sparse_csr")
FORMATS = ("torch.contiguous_format", "torch.preserve_format", "torch.channels_last")
PLACES = ("'cpu'", "'cuda'", "'cpu:0'")
MODEL = "m = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))\n"
