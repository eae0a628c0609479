"""Which pipes a pipe reads."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

OLD = (
    "`traverse` function is deprecated and will be removed after 1.13. Please use `traverse_dps` "
    "instead."
)
CHANGES = " And, the behavior will be changed to the equivalent of `only_datapipe=True`."
PIPES = (IterDataPipe, MapDataPipe)
Graph = dict[int, tuple[Any, Any]]


def traverse_dps(datapipe: Any) -> Graph:
    """The graph of a pipe: {id: (pipe, graph of those that it reads)}.

    >>> import flambeau as torch
    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> pipe = IterableWrapper([1]).batch(1)
    >>> ((found, sources),) = torch.utils.data.graph.traverse_dps(pipe).values()
    >>> found is pipe, len(sources)
    (True, 1)
    """
    if not isinstance(datapipe, PIPES):
        raise RuntimeError(
            f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found"
        )
    return _graph(datapipe, set())


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> Graph:
    """The older name of `traverse_dps`, which warns.

    >>> import flambeau as torch
    >>> import warnings
    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     len(torch.utils.data.graph.traverse(IterableWrapper([1])))
    1
    """
    words = OLD if only_datapipe is not None else OLD + CHANGES
    warnings.warn(words, FutureWarning, stacklevel=2)
    return traverse_dps(datapipe)


def _graph(pipe: Any, seen: set[int]) -> Graph:
    if id(pipe) in seen:
        return {}
    seen = {*seen, id(pipe)}
    below: Graph = {}
    for value in vars(pipe).values():
        for source in _pipes_in(value):
            below.update(_graph(source, seen))
    return {id(pipe): (pipe, below)}


def _pipes_in(value: Any) -> list[Any]:
    if isinstance(value, PIPES):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple, set)):
        return [pipe for one in value for pipe in _pipes_in(one)]
    return []
