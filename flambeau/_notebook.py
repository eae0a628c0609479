"""`%load_ext flambeau`: `import torch` is flambeau, and tensors are shown as pictures."""

from __future__ import annotations

import os
from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """What IPython calls: the import hook, and HTML for tensors and modules.

    `FLAMBEAU_HTML=0`, or `%unload_ext flambeau`, leaves them plain text. In a terminal they are
    text in any case.
    """
    from flambeau import hook

    hook.install()
    if os.environ.get("FLAMBEAU_HTML", "1") != "0":
        _show_html(shell)


def unload_ipython_extension(shell: Any) -> None:
    """The hook and the HTML are taken away; modules that have imported torch keep it."""
    from flambeau import hook

    hook.uninstall()
    formatter = _formatter(shell)
    for shown in _shown() if formatter is not None else ():
        formatter.pop(shown, None)


def _show_html(shell: Any) -> None:
    formatter = _formatter(shell)
    if formatter is not None:
        for shown, function in _shown().items():
            formatter.for_type(shown, function)


def _formatter(shell: Any) -> Any:
    display = getattr(shell, "display_formatter", None)
    return None if display is None else display.formatters.get("text/html")


def _shown() -> dict[type, Any]:
    from flambeau._tensor.tensor import Tensor
    from flambeau.debug.html import module_html, tensor_html
    from flambeau.nn import Module

    return {Tensor: tensor_html, Module: module_html}
