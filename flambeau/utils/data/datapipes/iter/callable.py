"""`Mapper` and `Collator`: a function of each item."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flambeau.utils.data.collate import default_collate
from flambeau.utils.data.datapipes._decorator import functional_datapipe
from flambeau.utils.data.datapipes.datapipe import IterDataPipe
from flambeau.utils.data.datapipes.utils.common import _check_unpickable_fn, validate_input_col

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


def _one_column(output_col: Any, input_col: Any) -> Any:
    """Where a result goes: a column, or the only one of a list."""
    if output_col is None:
        return None
    if input_col is None:
        raise ValueError("`output_col` must be None when `input_col` is None.")
    if not isinstance(output_col, (list, tuple)):
        return output_col
    first, *others = output_col
    if others:
        raise ValueError("`output_col` must be a single-element list or tuple")
    return first


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """A function of each item, or of some of its columns.

    Args:
        input_col: the column, or columns, that the function gets; the item by default.
        output_col: where the result goes: in the column's place by default, -1 appends it.
    """

    def __init__(self, datapipe: IterDataPipe, fn: Callable[..., Any], input_col: Any = None,
                 output_col: Any = None) -> None:  # fmt: skip
        super().__init__()
        _check_unpickable_fn(fn)
        self.datapipe, self.fn = datapipe, fn
        self.input_col, self.output_col = input_col, _one_column(output_col, input_col)
        validate_input_col(fn, input_col)

    def _apply(self, data: Any) -> Any:
        if self.input_col is None:
            return self.fn(data)
        several = isinstance(self.input_col, (list, tuple))
        columns = list(self.input_col) if several else [self.input_col]
        result = self.fn(*[data[column] for column in columns])
        as_tuple = isinstance(data, tuple)
        data = list(data) if as_tuple else data
        if self.output_col is None:
            data[columns[0]] = result
            for column in sorted(columns[1:], reverse=True):
                del data[column]
        elif self.output_col == -1:
            data.append(result)
        else:
            data[self.output_col] = result
        return tuple(data) if as_tuple else data

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield self._apply(data)

    def __len__(self) -> int:
        return len(self.datapipe)  # type: ignore[arg-type]


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches as tensors, by `default_collate` or a function of one's own."""

    def __init__(self, datapipe: IterDataPipe, conversion: Any = default_collate,
                 collate_fn: Callable[..., Any] | None = None) -> None:  # fmt: skip
        chosen = conversion if collate_fn is None else collate_fn
        if not callable(chosen):
            raise NotImplementedError(
                "collate: conversions of columns of data frames are not there"
            )
        super().__init__(datapipe, fn=chosen)
