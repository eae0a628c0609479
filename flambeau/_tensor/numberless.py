"""Arrays that have a shape, strides and a type, but no numbers that anyone may look at.

Tensors over them stand for something else: one example of a batch (`examples`), or a tensor without
memory (`meta`). Views of such an array are of its class, too.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import numpy as np

from flambeau._core.device import CPU, device

MEMORY_ONLY = (np.may_share_memory, np.shares_memory)
"""Functions that look at where arrays lie, not at what they hold."""
VIEWS = (np.transpose, np.squeeze, np.moveaxis, np.swapaxes, np.expand_dims, np.broadcast_to,
         np.diagonal, np.lib.stride_tricks.as_strided)  # fmt: skip
"""Functions that make views."""


class Numberless(np.ndarray):
    """An array that refuses whoever asks it for numbers. Each kind brings its errors."""

    place: device = CPU
    """The device of the tensor."""
    views_as: ClassVar[Any]
    """The class of arrays over the same memory."""
    no_numbers: ClassVar[Exception]
    no_item: ClassVar[Exception]
    no_branch: ClassVar[Exception]
    no_memory: ClassVar[Exception]

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        cls.views_as = cls

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _again(self.no_numbers)

    def item(self, *args: Any) -> NoReturn:
        """Refused, in torch's words."""
        raise _again(self.no_item)

    def tolist(self) -> NoReturn:
        """Refused, in torch's words."""
        raise _again(self.no_memory)

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _again(self.no_numbers)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in VIEWS:
            return super().__array_function__(function, types, args, kwargs)
        if function not in MEMORY_ONLY:
            raise _again(self.no_numbers)
        plain = [a.view(np.ndarray) if isinstance(a, Numberless) else a for a in args]
        return function(*plain, **kwargs)

    def view(self, *args: Any) -> Any:  # type: ignore[override]
        """Of the memory as an array: refused, but under another class."""
        if not args:
            raise _again(self.no_memory)
        return super().view(*args)

    def __setitem__(self, *args: Any) -> NoReturn:
        raise _again(self.no_numbers)

    def __bool__(self) -> NoReturn:
        raise _again(self.no_branch)

    __float__ = __int__ = __complex__ = __index__ = item  # type: ignore[assignment]


def _again(error: Exception) -> Exception:
    return type(error)(*error.args)


LOOKS = (
    "all any argmax argmin argsort astype byteswap choose clip compress conj conjugate cumprod "
    "cumsum dot dump dumps fill flatten max mean min nonzero partition prod put ravel repeat round "
    "searchsorted sort std sum take tobytes trace var"
)
"""Methods of arrays that look at numbers."""
for _name in LOOKS.split():
    setattr(Numberless, _name, Numberless._refuse)


def as_array(data: Any) -> np.ndarray:
    """An ndarray of a NumPy scalar; an array without numbers says itself what it is."""
    return data if isinstance(data, Numberless) else np.asarray(data)
