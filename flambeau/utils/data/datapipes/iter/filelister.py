"""`FileLister`: the names of files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flambeau.utils.data.datapipes._decorator import functional_datapipe
from flambeau.utils.data.datapipes.datapipe import IterDataPipe
from flambeau.utils.data.datapipes.iter.utils import IterableWrapperIterDataPipe
from flambeau.utils.data.datapipes.utils.common import get_file_pathnames_from_root

__all__ = ["FileListerIterDataPipe"]


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe):
    """The files of a folder, of several, or of those that a pipe names.

    Args:
        masks: patterns of names, such as "*.txt"; all files by default.
        recursive: whether folders in the folder are looked into.
        length: what `len` says.
    """

    def __init__(self, root: Any = ".", masks: str | list[str] = "", *, recursive: bool = False,
                 abspath: bool = False, non_deterministic: bool = False,
                 length: int = -1) -> None:  # fmt: skip
        super().__init__()
        listed = [root] if isinstance(root, str) else root
        if not isinstance(listed, IterDataPipe):
            listed = IterableWrapperIterDataPipe(listed)
        self.datapipe = listed
        self.masks = masks
        self.recursive = recursive
        self.abspath = abspath
        self.non_deterministic = non_deterministic
        self.length = length

    def __iter__(self) -> Iterator[str]:
        for folder in self.datapipe:
            yield from get_file_pathnames_from_root(
                folder, self.masks, self.recursive, self.abspath, self.non_deterministic
            )

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length
