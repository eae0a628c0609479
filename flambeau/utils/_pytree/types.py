"""What the functions of trees take and return."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Context = Any
PyTree = Any
DumpableContext = Any
FlattenFn = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = Callable[[Iterable[Any], Context], PyTree]
FlattenWithKeysFn = Callable[[PyTree], tuple[list[tuple[Any, Any]], Any]]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
FlattenFunc = FlattenFn
UnflattenFunc = UnflattenFn
FlattenWithKeysFunc = FlattenWithKeysFn
IsLeaf = Callable[[PyTree], bool] | None
