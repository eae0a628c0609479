"""Where torch defines the classes that it exports from a package; ours may be defined elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

PACKAGES_OF_HOMES = {
    "torch._tensor": "torch",
    "torch.nn.modules": "torch.nn",
    "torch.nn.parameter": "torch.nn",
    "torch.optim": "torch.optim",
    "torch.utils.data": "torch.utils.data",
    "torch.storage": "torch",
    "torch.utils.hooks": "torch.autograd.graph",
}


def public_packages(module: str) -> Iterator[str]:
    """The packages that export what torch defines in `module`."""
    for home, package in PACKAGES_OF_HOMES.items():
        if module == home or module.startswith(f"{home}."):
            yield package
