"""`RoutedDecoder`: files decoded by the endings of their names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from flambeau.utils.data.datapipes._decorator import functional_datapipe
from flambeau.utils.data.datapipes.datapipe import IterDataPipe
from flambeau.utils.data.datapipes.utils.decoder import (
    Decoder,
    basichandlers,
    extension_extract_fn,
)

__all__ = ["RoutedDecoderIterDataPipe"]

DEPRECATED = (
    "`RoutedDecoderIterDataPipe()` and its functional API `.routed_decode()` are deprecated since "
    "1.12 and will be removed in 1.13.\n"
    "See https://github.com/pytorch/data/issues/163 for details."
)


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe):
    """Pairs of a name and what its file means; `basichandlers` without handlers of one's own."""

    def __init__(self, datapipe: Any, *handlers: Callable[..., Any],
                 key_fn: Callable[[str], str] = extension_extract_fn) -> None:  # fmt: skip
        super().__init__()
        warnings.warn(DEPRECATED, FutureWarning, stacklevel=3)
        self.datapipe = datapipe
        self.decoder = Decoder(*(handlers or (basichandlers,)), key_fn=key_fn)

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        """Add handlers, to be asked first."""
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for data in self.datapipe:
            yield self.decoder(data)

    def __len__(self) -> int:
        return len(self.datapipe)
