"""What classes of pipes are marked with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau, not_implemented_text
from flambeau.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe


class functional_datapipe:
    """Make a class of pipes a method of all pipes of its kind.

    >>> import flambeau as torch
    >>> @torch.utils.data.functional_datapipe("doubled")
    ... class Doubler(torch.utils.data.IterDataPipe):
    ...     def __init__(self, source):
    ...         self.source = source
    ...
    ...     def __iter__(self):
    ...         for x in self.source:
    ...             yield 2 * x
    >>> list(torch.utils.data.datapipes.iter.IterableWrapper([1, 2]).doubled())
    [2, 4]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        if enable_df_api_tracing:
            raise NotImplementedInFlambeau(
                not_implemented_text("functional_datapipe(enable_df_api_tracing=True)")
            )
        self.name = name

    def __call__(self, cls: Any) -> Any:
        """The class itself, registered; TypeError if it is none of pipes."""
        for kind in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, kind):
                kind.register_datapipe_as_function(self.name, cls)
                return cls
        raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")


class guaranteed_datapipes_determinism:
    """In this region, pipes that are not deterministic cannot be made.

    >>> import flambeau as torch
    >>> with torch.utils.data.guaranteed_datapipes_determinism():
    ...     pass
    """

    _asked = False

    def __enter__(self) -> None:
        self.before = guaranteed_datapipes_determinism._asked
        guaranteed_datapipes_determinism._asked = True

    def __exit__(self, *exc: object) -> None:
        guaranteed_datapipes_determinism._asked = self.before


class non_deterministic:
    """Mark a class of pipes whose order is not always the same.

    `arg`: the class, or a function of the arguments of a new pipe that says whether it is so.

    >>> import flambeau as torch
    >>> class Wild(torch.utils.data.IterDataPipe):
    ...     pass
    >>> make = torch.utils.data.non_deterministic(Wild)
    >>> isinstance(make(), Wild)
    True
    """

    def __init__(self, arg: Any) -> None:
        if not callable(arg):
            raise TypeError(f"{arg} can not be decorated by non_deterministic")
        self.cls = arg if isinstance(arg, type) else None
        if self.cls is not None and not issubclass(self.cls, IterDataPipe):
            raise TypeError("Only `IterDataPipe` can be decorated with `non_deterministic`, but "
                            f"{self.cls.__name__} is found")  # fmt: skip
        self.wild: Callable[..., bool] = (lambda *a, **k: True) if self.cls else arg

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A pipe of the marked class, or a class to be marked.

        Raises:
            TypeError: it is not deterministic, and that was asked for.
        """
        if self.cls is not None:
            self._check(self.cls)
            return self.cls(*args, **kwargs)
        (cls,) = args
        before = cls.__init__

        @functools.wraps(before)
        def init(pipe: Any, *values: Any, **named: Any) -> None:
            if self.wild(*values, **named):
                self._check(cls)
            before(pipe, *values, **named)

        cls.__init__ = init
        return cls

    @staticmethod
    def _check(kind: Any) -> None:
        if guaranteed_datapipes_determinism._asked:
            raise TypeError(f"{kind.__name__} is non-deterministic, but you set "
                            "'guaranteed_datapipes_determinism'. You can turn off determinism for "
                            "this DataPipe if that is acceptable for your application")  # fmt: skip
