"""The distribution `torch` that stands in for PyTorch: its files, as texts.

`flambeau provide-torch` writes them into an environment, and `packaging/torch-shim` builds a wheel
of the same. They hold a module that `import torch` finds, which installs the import hook, and one
for `import functorch`, a package that comes with PyTorch.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

from .._version import TORCH_VERSION

DIST_INFO = f"torch-{TORCH_VERSION}.dist-info"

MODULE = '''\
"""`import torch` gives flambeau: this module installs its import hook, and goes."""

import sys

del sys.modules[__name__]
from flambeau import hook  # noqa: E402

if not hook.install():
    raise ImportError("flambeau's hook is not installed: another torch is imported already")
'''

FUNCTORCH = '''\
"""`import functorch` gives flambeau's: the module goes, once the import hook is there."""

import importlib
import sys

del sys.modules[__name__]
import torch  # noqa: E402, F401

importlib.import_module("functorch")
'''

METADATA = f"""\
Metadata-Version: 2.4
Name: torch
Version: {TORCH_VERSION}
Summary: PyTorch's API, provided by flambeau
License-Expression: Apache-2.0
Requires-Python: >=3.11
"""

REQUIRES_FLAMBEAU = "Requires-Dist: flambeau\n"

WHEEL = """\
Wheel-Version: 1.0
Generator: flambeau provide-torch
Root-Is-Purelib: true
Tag: py3-none-any
"""

ENTRY_POINTS = """\
[console_scripts]
torchrun = torch.distributed.run:main
"""

SCRIPT = """\
#!{python}
import sys

from torch.distributed.run import main

if __name__ == "__main__":
    sys.exit(main())
"""


def files(requires_flambeau: bool) -> dict[str, str]:
    """Path below site-packages and text of every file but the script and RECORD."""
    metadata = METADATA + (REQUIRES_FLAMBEAU if requires_flambeau else "")
    return {
        "torch/__init__.py": MODULE,
        "functorch/__init__.py": FUNCTORCH,
        f"{DIST_INFO}/METADATA": metadata,
        f"{DIST_INFO}/WHEEL": WHEEL,
        f"{DIST_INFO}/INSTALLER": "flambeau\n",
        f"{DIST_INFO}/top_level.txt": "functorch\ntorch\n",
        f"{DIST_INFO}/entry_points.txt": ENTRY_POINTS,
    }


def record(texts: Mapping[str, str]) -> str:
    """The text of RECORD: path, checksum and size of each file, and RECORD itself without them."""
    rows = [_row(path, text.encode()) for path, text in texts.items()]
    return "".join([*rows, f"{DIST_INFO}/RECORD,,\n"])


def _row(path: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"{path},sha256={digest},{len(data)}\n"
