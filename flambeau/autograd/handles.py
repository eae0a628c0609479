"""What registration of a hook returns: something that takes the hook away again."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any


class RemovableHandle:
    """What hook registration returns: `remove()` takes the hook away.

    It keeps neither the table of hooks alive nor tables of marks that go with it (`extra_dict`).

    >>> import flambeau as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> handle.remove()
    >>> x.sum().backward()
    >>> x.grad
    tensor([1.])
    """

    next_id = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.extra_dict_ref = _references(extra_dict)

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = reference()
            if table is not None:
                table.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.hooks_dict_ref(), self.id, tuple([table() for table in self.extra_dict_ref])

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """What files hold: the table of hooks, the number, and perhaps tables of marks."""
        hooks, self.id, *more = state
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = _references(more[0] if more else None)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def _references(tables: Any) -> tuple[Any, ...]:
    """To one table, to several, or to none."""
    several = tables if isinstance(tables, (list, tuple)) else (tables,)
    return tuple([weakref.ref(table) for table in several if table is not None])
