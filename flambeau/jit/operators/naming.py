"""How operators of aten and public names of torch are spelled: linalg_inv is torch.linalg.inv."""

from __future__ import annotations

from collections.abc import Iterator

PREFIXES = {"linalg_": "linalg.", "special_": "special.", "fft_": "fft.", "": ""}
"""How the names of operators begin, and the namespaces that they are in."""


def public_names(name: str) -> Iterator[str]:
    """The public names that an operator of aten may have, most likely first."""
    for prefix, namespace in PREFIXES.items():
        if name.startswith(prefix):
            for space in ("", "nn.functional."):
                yield f"{namespace}{space}{name.removeprefix(prefix)}"
