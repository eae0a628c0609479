"""Zip files that lie, forged from an honest one by the bytes of an input.

Records are renamed, doubled, left out, compressed, cut, given other contents; the fields of their
two headers, and those of the end record, say what is not so; bytes stand where none belong; at last
pieces of the whole file are overwritten, moved and cut off. The CRCs are those of the contents as
they are then, so that most changes get behind the first check.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fuzz.choices import Choices
from tests.serialization.test_zip_tricks import Record, archive

NUMBERS = (0, 1, 2, 7, 8, 10, 12, 20, 33, 45, 63, 0x20, 0x41, 0x800, 0x7FFF, 0xFFFE, 0xFFFF,
           0x10000, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF, 1 << 60, (1 << 64) - 1)  # fmt: skip
SHORT = ("needed", "flags", "method", "time", "date", "disk", "internal", "maker")
FIELDS = (*SHORT, "crc", "packed", "size", "offset", "external")
SIDES = (("local", "central"), ("local",), ("central",))
NAMES = ("archive/../data.pkl", "/data.pkl", "archive\\data.pkl", "archive/", "other/data.pkl", "",
         "archive/data.pkl", "archive/constants.pkl", "archive/version", "archive/.data/version",
         "archive/byteorder", "archive/data/0", "archive/code/__torch__.py", "archive/code/x.py",
         "archive/code/__torch__.py.debug_pkl", "archive/DATA.PKL", "archive/é",
         "archive/a\0b")  # fmt: skip
CONTENTS = (b"", b"0", b"2", b"3\n", b"11", b"-1", b"9" * 40, b"big", b"little", b"\x80\x02).",
            b"\x80\x02N.", b"\x80\x02}.", b"\xff" * 9, bytes(1 << 17), b"PK\3\4" * 9)  # fmt: skip
EXTRAS = (b"", b"FB\2\0ZZ", b"\1\0\0\0", b"\1\0\x10\0" + bytes(16), b"\1\0\x10\0" + b"\xff" * 16,
          b"\x75\x70\6\0\1" + b"abcde", b"UT\5\0\3abcd", b"xx\xff\xff")  # fmt: skip
END_WIDTHS = (0, 16, 16, 16, 16, 32, 32)
ZIP64_WIDTHS = (0, 64, 16, 16, 32, 32, 64, 64, 64, 64, 0, 32, 64, 32)
"""Bits of the fields of the end records, and of the locator; 0 for a signature."""
SIGNATURES = (b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\7\x08")


@dataclass
class Plan:
    """A record that is going to be written."""

    name: str
    content: bytes
    method: int = 0
    lies: dict[str, object] = field(default_factory=dict)

    def record(self) -> Record:
        """The record with its lies."""
        return Record(self.name, self.content, method=self.method, **self.lies)


# ---- changes of one record


def rename(choices: Choices, plan: Plan, plans: list[Plan]) -> None:
    names = [*NAMES, *(other.name for other in plans)]
    plan.name = choices.one(names)


def double(choices: Choices, plan: Plan, plans: list[Plan]) -> None:
    plans.insert(choices.number(len(plans)), plan)


def leave_out(choices: Choices, plan: Plan, plans: list[Plan]) -> None:
    plans.remove(plan)


def exchange(choices: Choices, plan: Plan, plans: list[Plan]) -> None:
    other = choices.one(plans)
    plan.content, other.content = other.content, plan.content


def compress(choices: Choices, plan: Plan, plans: list[Plan]) -> None:
    plan.method = 8 - plan.method


def replace(choices: Choices, plan: Plan, plans: list[Plan]) -> None:
    plan.content = choices.one(CONTENTS)


def edit(choices: Choices, plan: Plan, plans: list[Plan]) -> None:
    plan.content = edited(choices, plan.content)


def lie(choices: Choices, plan: Plan, plans: list[Plan]) -> None:
    name = choices.one(FIELDS)
    width = 16 if name in SHORT else 32
    tell(choices, plan, name, choices.one(NUMBERS) % (1 << width))


def extra(choices: Choices, plan: Plan, plans: list[Plan]) -> None:
    tell(choices, plan, "extra", choices.one(EXTRAS))


def tell(choices: Choices, plan: Plan, name: str, value: object) -> None:
    """Write a value into a field of both headers of a record, or of one."""
    for side in choices.one(SIDES):
        plan.lies[f"{side}_{name}"] = value


def tail(choices: Choices, plan: Plan, plans: list[Plan]) -> None:
    plan.lies["local_tail"] = choices.one(SIGNATURES) + choices.text(choices.number(20))


CHANGES: tuple[Callable[[Choices, Plan, list[Plan]], None], ...] = (
    edit, edit, rename, double, leave_out, exchange, compress, replace, lie, lie, extra, tail,
)  # fmt: skip


# ---- changes of bytes

EDITS = (0, 0, 0, 0, 0, 1, 1, 3)
"""How often the whole file is edited: seldom, since little gets past the headers afterwards."""


def edited(choices: Choices, content: bytes) -> bytes:
    """A content of which one piece is overwritten, cut, doubled or moved, or all from there."""
    start = choices.number(len(content) + 1)
    stop = min(len(content), start + choices.number(40))
    piece, rest = content[start:stop], content[stop:]
    way = choices.number(6)
    if way == 0:
        rest = choices.text(len(piece)) + rest
    elif way == 1:
        rest = choices.text(choices.number(12)) + piece + rest
    elif way == 2:
        rest = piece + piece + rest
    elif way == 3:
        rest = choices.one(SIGNATURES) + content[start + 4 :]
    elif way == 4:
        rest = b""
    return content[:start] + rest


def forged(data: bytes, records: dict[str, bytes]) -> bytes:
    """The zip file that stands for an input. records: those of the honest archive, by name."""
    choices = Choices(data)
    plans = [Plan(f"archive/{name}", content) for name, content in records.items()]
    for _ in range(choices.number(4)):
        if plans:
            choices.one(CHANGES)(choices, choices.one(plans), plans)
    around: dict[str, object] = {}
    if choices.number(4) == 3:
        around = _around(choices)
    content = archive(*(plan.record() for plan in plans), **around)
    for _ in range(choices.one(EDITS)):
        content = edited(choices, content)
    return content


def _around(choices: Choices) -> dict[str, object]:
    """What stands around the records, and lies of the end records."""
    if choices.number(2):
        where = choices.one(("before", "between", "comment"))
        return {where: choices.text(choices.number(60))}
    record, widths = choices.one((("end", END_WIDTHS), ("zip64", ZIP64_WIDTHS)))
    place = choices.number(len(widths))
    width = widths[place]
    wrong = choices.one(NUMBERS) % (1 << width) if width else choices.one(SIGNATURES)
    return {record: {place: wrong}}
