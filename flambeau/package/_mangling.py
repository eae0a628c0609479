"""Names of modules that come from packages: each package has a prefix of its own."""

from __future__ import annotations

import itertools
import re

PREFIX = re.compile(r"<torch_package_\d+>")
_numbers = itertools.count()


class PackageMangler:
    """Puts the prefix of one package before names of modules, and takes it away.

    >>> from flambeau.package._mangling import PackageMangler
    >>> mangler = PackageMangler()
    >>> mangler.demangle(mangler.mangle("models.net"))
    'models.net'
    """

    def __init__(self) -> None:
        self._prefix = f"<torch_package_{next(_numbers)}>"

    def mangle(self, name: str) -> str:
        """The name with the prefix."""
        return f"{self._prefix}.{name}"

    def demangle(self, mangled: str) -> str:
        """The name without the prefix, if it is that of this package."""
        if mangled.startswith(f"{self._prefix}."):
            return mangled.partition(".")[2]
        return mangled

    def parent_name(self) -> str:
        """The prefix."""
        return self._prefix


def is_mangled(name: str) -> bool:
    """Whether a module comes from a package.

    >>> from flambeau.package._mangling import is_mangled
    >>> is_mangled("models.net")
    False
    """
    return PREFIX.match(name) is not None


def demangle(name: str) -> str:
    """The name without the prefix of any package.

    >>> from flambeau.package._mangling import demangle
    >>> demangle("<torch_package_0>.models.net")
    'models.net'
    """
    return name.partition(".")[2] if is_mangled(name) else name


def get_mangle_prefix(name: str) -> str:
    """The prefix of a name; the name itself, if it has none.

    >>> from flambeau.package._mangling import get_mangle_prefix
    >>> get_mangle_prefix("<torch_package_0>.models.net")
    '<torch_package_0>'
    """
    return name.partition(".")[0] if is_mangled(name) else name
