"""What is seen of a scenario: its result as plain data, or its error; and its warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

OWN_SCRIPTS = "`torch.jit.script` is deprecated"
"""PyTorch compiles scripts of its own at the first forward mode through gradients."""


def observe(scenario: Callable[[Any], Any], library: Any) -> Any:
    """What a scenario returns, or its error, and the warnings of the way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(scenario(library))
        except NameError:  # a mistake in the scenario itself
            raise
        except Exception as error:
            result = (type(error).__name__, str(error).split("\n")[0])
    heard = [w for w in caught if not str(w.message).startswith(OWN_SCRIPTS)]
    return result, sorted({w.category.__name__ for w in heard})


def plain(value: Any) -> Any:
    """Tensors as nested lists with their types; everything else as it is."""
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if hasattr(value, "detach"):
        numbers = [f"{number:.5g}" for number in value.detach().resolve_conj().reshape(-1).tolist()]
        return [str(value.dtype).removeprefix("torch."), list(value.shape), numbers]
    if hasattr(value, "name") and hasattr(value, "next_functions"):
        return value.name()
    if isinstance(value, (type(None), bool, int, float, complex, str)):
        return value
    return type(value).__name__
