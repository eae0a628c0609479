"""What an explained difference of drawn programs is."""

from __future__ import annotations

import re
from typing import Any, NamedTuple


class Explained(NamedTuple):
    """A difference that stays: what both libraries do, and patterns of its findings."""

    what: str
    torch: str
    flambeau: str
    group: str = ""
    case: str = ""
    detail: str = ""

    def fits(self, finding: dict[str, Any]) -> bool:
        """Whether a finding is one of these."""
        patterns = ("group", self.group), ("case", self.case), ("detail", self.detail)
        return all(re.search(pattern, finding.get(key, ""), re.DOTALL) for key, pattern in patterns)
