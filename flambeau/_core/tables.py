"""Tables of functions, each under one name or several."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def entering(
    table: MutableMapping[Any, Any], key: Callable[[Any], Any] | None = None
) -> Callable[..., Callable[[Function], Function]]:
    """A decorator that enters functions into a table, under the names that it is given.

    key: what the table has for a name.

    >>> from flambeau._core.tables import entering
    >>> rule = entering(rules := {})
    >>> @rule("relu", "relu_")
    ... def of_relu(): ...
    >>> list(rules)
    ['relu', 'relu_']
    """

    def under(*names: Any) -> Callable[[Function], Function]:
        keys = names if key is None else [key(name) for name in names]

        def enter(function: Function) -> Function:
            table.update(dict.fromkeys(keys, function))
            return function

        return enter

    return under
