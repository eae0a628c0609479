"""`GlobGroup`: patterns of module names."""

from __future__ import annotations

import re
from collections.abc import Iterable

GlobPattern = str | Iterable[str]


class GlobGroup:
    """Patterns that a name has to match, and others that it must not.

    `*` stands for part of a name between separators, `**` for any number of whole names.

    Args:
        include: a pattern, or several.
        exclude: those whose names are left out.
        separator: what stands between names.

    >>> import flambeau as torch
    >>> group = torch.package.GlobGroup("models.**", exclude="models.old.*")
    >>> [group.matches(name) for name in ("models", "models.net", "models.old.net", "data")]
    [True, True, False, False]
    """

    def __init__(
        self, include: GlobPattern, *, exclude: GlobPattern = (), separator: str = "."
    ) -> None:
        self._shown = f"GlobGroup(include={include}, exclude={exclude})"
        self.separator = separator
        self.include = [_pattern(part, separator) for part in _several(include)]
        self.exclude = [_pattern(part, separator) for part in _several(exclude)]

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return self._shown

    def matches(self, candidate: str) -> bool:
        """Whether a name is included, and not excluded."""
        text = self.separator + candidate
        included = any(pattern.fullmatch(text) for pattern in self.include)
        return included and not any(pattern.fullmatch(text) for pattern in self.exclude)


def _several(patterns: GlobPattern) -> Iterable[str]:
    return [patterns] if isinstance(patterns, str) else patterns


def _pattern(text: str, separator: str) -> re.Pattern[str]:
    return re.compile("".join(_part(part, separator) for part in text.split(separator)))


def _part(part: str, separator: str) -> str:
    between = re.escape(separator)
    if part == "**":
        return f"(?:{between}[^{between}]+)*"
    if "**" in part:
        raise ValueError("** can only appear as an entire path segment")
    return between + f"[^{between}]*".join(map(re.escape, part.split("*")))
