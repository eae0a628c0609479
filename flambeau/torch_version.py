"""`torch.torch_version`: a version that is text, and that compares as a version."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeAlias

from ._version import TORCH_VERSION

Key: TypeAlias = tuple[tuple[int, ...], tuple[int, int], tuple[tuple[int, str], ...]]

# Order of what may follow the release number; a final release stands at (0, 0).
_STAGE_RANK = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "post": 1}

_PATTERN = re.compile(
    r"\s*v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<stage>dev|alpha|beta|post|rc|a|b|c)[-_.]?(?P<number>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*",
    re.IGNORECASE,
)


def _local_part(text: str) -> tuple[int, str]:
    """Numbers stand after words, as in PEP 440."""
    if text.isdigit():
        return (int(text), "")
    return (-1, text.lower())


def _key(text: str) -> Key | None:
    """What a version sorts by, or None where the text is no version."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        return None
    release = [int(part) for part in match["release"].split(".")]
    while release and release[-1] == 0:
        release.pop()
    stage = (0, 0)
    if match["stage"]:
        stage = (_STAGE_RANK[match["stage"].lower()], int(match["number"] or 0))
    local = re.split(r"[-_.]", match["local"]) if match["local"] else []
    return tuple(release), stage, tuple(_local_part(part) for part in local)


def _as_text(other: object) -> str | None:
    """A version given as text or as a tuple such as `(2, 4)`."""
    if isinstance(other, str):
        return other
    if isinstance(other, Iterable):
        return ".".join(str(part) for part in other)
    return None


class TorchVersion(str):
    """A version string: `TorchVersion("2.13.0") >= "2.4"` and `>= (2, 4)` are true.

    Text that is no version compares as text, as PyTorch's class does.
    """

    __slots__ = ()

    def _pair(self, other: object) -> tuple[Any, Any] | None:
        text = _as_text(other)
        if text is None:
            return None
        mine, theirs = _key(self), _key(text)
        if mine is None or theirs is None:
            return str(self), text
        return mine, theirs

    def __eq__(self, other: object) -> bool:
        pair = self._pair(other)
        return pair is not None and pair[0] == pair[1]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        pair = self._pair(other)
        if pair is None:
            return NotImplemented
        return bool(pair[0] < pair[1])

    def __le__(self, other: Any) -> bool:
        return self == other or self < other

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    __hash__ = str.__hash__


__version__ = TorchVersion(TORCH_VERSION)
