"""The table of explained differences is the one that the script writes, and its patterns work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance import explained


def test_the_page_has_the_table_of_now() -> None:
    page = explained.PAGE.read_text("utf-8")
    assert page.count(explained.BEGIN) == page.count(explained.END) == 1
    assert explained.with_table(page) == page, "python -m conformance.explained --write"


@pytest.mark.parametrize("entry", explained.EXPLAINED, ids=lambda entry: entry.what[:40])
def test_every_entry_says_what_it_is_about(entry: explained.Explained) -> None:
    assert entry.group or entry.case or entry.detail
    assert not entry.fits({"group": "", "case": "", "detail": ""}), "it would explain everything"


def test_findings_are_counted_by_explanations(tmp_path: Path) -> None:
    findings = [
        {"group": "values | airy_ai", "case": "torch.special.airy_ai(x1)", "detail": "1 for 2"},
        {"group": "values | cumsum", "case": "torch.cumsum(x1, 0)", "detail": "1 for 2"},
    ]
    file = tmp_path / "found.jsonl"
    file.write_text("\n".join(map(json.dumps, findings)), "utf-8")
    fitting, left = explained.counted([file])
    assert sum(fitting.values()) == 1
    assert left == {"values | cumsum": 1}
    assert explained.main([str(file)]) == 1
