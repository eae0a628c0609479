"""Values for one parameter: what PyTorch's answer may depend on."""

from __future__ import annotations

import re

from conformance.calls.generated.signatures import Parameter
from conformance.calls.generated.sources import value_at
from conformance.calls.generated.values import WORDS, Context

from .bases import SMALL, is_large

BY_KIND = {
    "bool": ("True", "False"),
    "int": ("0", "1", "-1", "2", "3"),
    "int or ints": ("0", "1", "2", "3", "(1, 2)", "(2, 1)"),
    "ints": ("[0]", "[1]", "[0, 1]", "[1, 0]", "[2, 3]", "[3, 2]", "[]"),
    "float": ("0.0", "0.5", "1.0", "2.0", "-1.5"),
    "floats": ("[0.5, 0.5]", "[1.0, 2.0]"),
    "number": ("0", "1", "2.5", "-1", "1j"),
    "operand": ("2", "0.5", "-1"),
    "dtype": ("torch.float32", "torch.float64", "torch.int64", "torch.complex64", "torch.bool"),
    "device": ("'cpu'", "'cuda'", "torch.device('cpu')"),
    "layout": ("torch.strided", "torch.sparse_coo", "torch.sparse_csr"),
    "memory_format": ("torch.contiguous_format", "torch.preserve_format", "torch.channels_last",
                      "torch.channels_last_3d"),
    "generator": ("torch.Generator().manual_seed(3)", "torch.Generator().manual_seed(4)"),
}  # fmt: skip
ANYTHING = ("True", "False", "0", "1", "2", "0.5")
"""For parameters of which nothing is known."""
QUOTED = re.compile(r"""['"`]+([a-zA-Z_]+)['"`]+""")


def candidates(path: str, asked: Parameter, context: Context) -> list[str]:
    """The values to try, as text; tensors are drawn in the context."""
    found = ["None"] if asked.optional else []
    if is_large(asked):
        found.append(SMALL)
    if isinstance(asked.default, bool | int | float | str | tuple) and not is_large(asked):
        found.append(repr(asked.default))
    if asked.kind == "str":
        found += [repr(word) for word in _words(path)]
    elif asked.kind in ("tensor", "tensors"):
        found += [context.right(asked) for _ in range(3)]
    else:
        found += BY_KIND.get(asked.kind, ANYTHING)
    return list(dict.fromkeys(found))


def _words(path: str) -> list[str]:
    """The words that documentation quotes, or those that calls often take."""
    import torch

    described = getattr(value_at(path, torch), "__doc__", None) or ""
    found = list(dict.fromkeys(QUOTED.findall(described)))
    return found[:12] or list(WORDS[:12])
