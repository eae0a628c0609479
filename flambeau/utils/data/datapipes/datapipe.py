"""The base classes of data pipes, and their methods: `pipe.batch(3)` is `Batcher(pipe, 3)`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from flambeau.utils.data.dataset import Dataset, IterableDataset

TAKEN = "Unable to add DataPipe function name {} as it is already taken"
INVALID = (
    "This iterator has been invalidated because another iterator has been created from the same "
    "IterDataPipe: {}\nThis may be caused by multiple references to the same IterDataPipe. We "
    "recommend using `.fork()` if that is necessary."
)
FEEDBACK = (
    "\nFor feedback regarding this single iterator per IterDataPipe constraint, feel free to "
    "comment on this issue: https://github.com/pytorch/data/issues/45."
)
THROWN = "thrown by __iter__ of"


class _WithMethods:
    """Steps as methods, by the names that `functional_datapipe` gave them."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        if name in type(self).functions:
            return functools.partial(type(self).functions[name], self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}")

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Make a function of a pipe a method of all pipes."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Make a class of pipes a method of all pipes.

        Raises:
            Exception: the name is taken.
        """
        if function_name in cls.functions:
            raise Exception(TAKEN.format(function_name))  # noqa: TRY002

        @functools.wraps(cls_to_register, updated=())
        def step(source: Any, *args: Any, **kwargs: Any) -> Any:
            return cls_to_register(source, *args, **kwargs)

        cls.functions[function_name] = step

    def __repr__(self) -> str:
        return type(self).__qualname__

    def __str__(self) -> str:
        return type(self).__qualname__

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *type(self).functions]


class IterDataPipe(IterableDataset, _WithMethods):
    """A dataset that is read from front to back, one reader at a time.

    A new iterator makes the one before it invalid. Before each pass, `reset` is called, if a class
    has it.

    >>> import flambeau as torch
    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(range(5)).filter(bool).batch(2))
    [[1, 2], [3, 4]]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _valid_iterator_id: int | None = None
    is_pipe = True  # loaders set how it shuffles, and who reads which part

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls).get("__iter__")
        if own is not None and not getattr(own, "of_one_reader", False):
            cls.__iter__ = _one_reader(own)  # type: ignore[method-assign]

    def __iter__(self) -> Iterator[Any]:
        return self  # type: ignore[return-value]  # for classes that are iterators themselves

    def reset(self) -> None:
        """What is done before each pass; nothing by default."""


def _one_reader(own: Any) -> Any:
    """An `__iter__` whose iterator ends where another one begins: a generator with its first
    item, others when they are made."""
    waits = inspect.isgeneratorfunction(own)

    @functools.wraps(own)
    def start(self: Any) -> Iterator[Any]:
        reader = Reader(self, own)
        if not waits:
            reader.begin()
        return reader

    start.of_one_reader = True  # type: ignore[attr-defined]
    return start


class Reader:
    """One pass over a pipe."""

    def __init__(self, pipe: Any, own: Any) -> None:
        self.pipe = pipe
        self.own = own
        self.source: Any = None
        self.number = 0

    def begin(self) -> None:
        """Be the one reader of the pipe."""
        pipe = self.pipe
        pipe._valid_iterator_id = self.number = (pipe._valid_iterator_id or 0) + 1
        pipe.reset()
        self.source = self.own(pipe)

    def __iter__(self) -> Reader:
        return self

    def __next__(self) -> Any:
        pipe = self.pipe
        if self.source is None:
            self.begin()
        if pipe._valid_iterator_id != self.number:
            raise RuntimeError(INVALID.format(text_of(pipe)) + FEEDBACK)
        try:
            return next(self.source)
        except StopIteration:
            raise
        except Exception as error:
            _tell_where(error, pipe)
            raise


def _tell_where(error: Exception, pipe: Any) -> None:
    """Add the pipe to the words of an error that happened in it."""
    words = error.args[0] if error.args and isinstance(error.args[0], str) else None
    if words is None or THROWN in words or isinstance(error, BufferError):
        return
    error.args = (f"{words}\nThis exception is {THROWN} {text_of(pipe)}", *error.args[1:])


def text_of(pipe: Any) -> str:
    """A pipe with the arguments it was made of, as far as it keeps them."""
    parts = []
    for name in sorted(inspect.signature(type(pipe)).parameters):
        if name in vars(pipe):
            value = vars(pipe)[name]
            text = value.__name__ if inspect.isfunction(value) else repr(value)
            parts.append(f"{name}={text}")
    return f"{type(pipe).__name__}({', '.join(parts)})"


class MapDataPipe(Dataset, _WithMethods):
    """A dataset that is read by key.

    >>> import flambeau as torch
    >>> from flambeau.utils.data.datapipes.map import SequenceWrapper
    >>> SequenceWrapper("abc").map(str.upper)[1]
    'B'
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


class DFIterDataPipe(IterDataPipe):
    """A pipe of data frames; `collate` and the like are not made for them here.

    >>> import flambeau as torch
    >>> issubclass(torch.utils.data.DFIterDataPipe, torch.utils.data.IterDataPipe)
    True
    """

    def _is_dfpipe(self) -> bool:
        return True


class DataChunk(list[Any]):
    """A batch: a list that knows what it was made of.

    >>> import flambeau as torch
    >>> torch.utils.data.DataChunk([1, 2]).as_str("> ")
    '> [1, 2]'
    """

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """Its items in brackets."""
        return f"{indent}[{', '.join(str(item) for item in iter(self))}]"

    def __iter__(self) -> Iterator[Any]:
        yield from super().__iter__()

    def raw_iterator(self) -> Iterator[Any]:
        """Its items as they are."""
        yield from self.items
