"""What zip files can pretend, beyond `test_archive.py`: every trick an error in clear words."""

import io
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

from flambeau.serialization.archive import ArchiveError, ArchiveReader
from flambeau.serialization.archive_writer import ArchiveWriter
from flambeau.serialization.zip_format import (
    CENTRAL_HEADER,
    CENTRAL_SIGNATURE,
    END_RECORD,
    END_SIGNATURE,
    LOCAL_HEADER,
    LOCAL_SIGNATURE,
    ZIP64_END_RECORD,
    ZIP64_END_SIGNATURE,
    ZIP64_LOCATOR,
    ZIP64_LOCATOR_SIGNATURE,
)

ROOT = Path(__file__).parents[2]
ZIP64 = struct.Struct("<HHQQ")


class Record:
    """One record with every field of both headers open to lies."""

    def __init__(self, name, content=b"", *, method=0, **lies):
        self.name = name if isinstance(name, bytes) else name.encode()
        self.content = content
        if method == zipfile.ZIP_DEFLATED:
            compressor = zlib.compressobj(9, wbits=-15)
            self.content = compressor.compress(content) + compressor.flush()
        flags = 0 if self.name.isascii() else 0x800
        self.fields = {
            "needed": 20, "flags": flags, "method": method, "time": 0, "date": 33,
            "crc": zlib.crc32(content), "packed": len(self.content), "size": len(content),
            "extra": b"",
        }  # fmt: skip
        self.local = {**self.fields, "name": self.name}
        self.central = {**self.fields, "name": self.name, "maker": 20, "comment": b"",
                        "disk": 0, "internal": 0, "external": 0, "offset": None}  # fmt: skip
        for key, value in lies.items():
            side, _, field = key.rpartition("_")
            for fields in {"local": [self.local], "central": [self.central]}.get(
                side, [self.local, self.central]
            ):
                fields[field] = value

    def local_bytes(self):
        f = self.local
        head = LOCAL_HEADER.pack(
            f.get("signature", LOCAL_SIGNATURE), f["needed"], f["flags"], f["method"], f["time"],
            f["date"], f["crc"], f["packed"], f["size"], len(f["name"]), len(f["extra"]),
        )  # fmt: skip
        return head + f["name"] + f["extra"] + self.content + f.get("tail", b"")

    def central_bytes(self, offset):
        f = self.central
        offset = offset if f["offset"] is None else f["offset"]
        head = CENTRAL_HEADER.pack(
            CENTRAL_SIGNATURE, f["maker"], f["needed"], f["flags"], f["method"], f["time"],
            f["date"], f["crc"], f["packed"], f["size"], len(f["name"]), len(f["extra"]),
            len(f["comment"]), f["disk"], f["internal"], f["external"], offset,
        )  # fmt: skip
        return head + f["name"] + f["extra"] + f["comment"]


def archive(*records, before=b"", between=b"", end=(), comment=b"", zip64=None):
    """The bytes of an archive; `end` replaces fields of the end record by their place."""
    body, central = before, b""
    for record in records:
        offset = len(body)
        body += record.local_bytes()
        central += record.central_bytes(offset)
    body += between
    tail = b""
    if zip64 is not None:
        values = [ZIP64_END_SIGNATURE, 44, 45, 45, 0, 0, len(records), len(records), len(central),
                  len(body)]  # fmt: skip
        locator = [ZIP64_LOCATOR_SIGNATURE, 0, len(body) + len(central), 1]
        for place, value in zip64.items():
            (values if place < 10 else locator)[place % 10] = value
        tail = ZIP64_END_RECORD.pack(*values) + ZIP64_LOCATOR.pack(*locator)
    values = [END_SIGNATURE, 0, 0, len(records), len(records), len(central), len(body)]
    for place, value in dict(end).items():
        values[place] = value
    return body + central + tail + END_RECORD.pack(*values, len(comment)) + comment


A = Record("m/a", b"content")


def test_the_honest_archive():
    assert ArchiveReader(archive(A, Record("m/b", b"x" * 99, method=8))).read("b") == b"x" * 99
    assert ArchiveReader(archive(A, zip64={})).read("a") == b"content"
    assert ArchiveReader(archive(A, comment=b"hello")).read("a") == b"content"
    assert ArchiveReader(archive(Record("m/é", b"1"))).read("é") == b"1"


def packed(count=5):
    return Record("m/a", bytes(count), method=8)


wide = ZIP64.pack(1, 16, 7, 7)
TRICKS = {
    "twice": (archive(A, A), "holds this name twice"),
    "one record under two names": (
        archive(A, Record("m/b", b"", central_offset=0)), "overlaps|another name"),
    "many names for the same data": (
        archive(A, *[Record("m/a", b"content", central_offset=0, local_signature=b"")] * 3),
        "overlaps|belong to no record|holds this name twice"),
    "a central directory that repeats": (archive(A, end={3: 2, 4: 2}), "do not fit"),
    "fewer records than announced": (archive(A, A, end={3: 1, 4: 1}), "holds more than"),
    "counts that differ": (archive(A, end={3: 2}), "multi-disk"),
    "65535 records": (archive(A, end={3: 65535, 4: 65535}), "65535 entries do not fit"),
    "another local name": (archive(Record("m/a", b"1", local_name=b"m/b")), "another name"),
    "another local CRC": (archive(Record("m/a", b"1", local_crc=7)), "other sizes or another CRC"),
    "another local size": (archive(Record("m/a", b"1", local_size=7)), "other sizes"),
    "another local method": (archive(Record("m/a", b"1", local_method=8)), "another method"),
    "other local flags": (archive(Record("m/a", b"1", local_flags=0x800)), "other flags"),
    "another local version": (archive(Record("m/a", b"1", local_needed=10)), "another version"),
    "another local date": (archive(Record("m/a", b"1", local_date=34)), "another version or time"),
    "another local time": (archive(Record("m/a", b"1", local_time=34)), "another version or time"),
    "no local signature": (archive(A, Record("m/b", local_signature=b"PK\3\5")), "damaged"),
    "overlap by size": (
        archive(Record("m/a", b"12345678", size=30, packed=30), Record("m/b", b"1" * 40)),
        "overlaps another record"),
    "a gap": (archive(Record("m/a", b"1", local_tail=b"hidden"), A), "belong to no record"),
    "bytes before the directory": (archive(A, between=b"hidden"), "belong to no record"),
    "bytes before the archive": (archive(A, before=b"#!/bin/sh\n"), "not a ZIP archive"),
    "an archive before the archive": (archive(A) + archive(A), "does not end where"),
    "a script before it": (archive(A, before=b"PK\3\4hidden"), "belong to no record"),
    "bytes behind the archive": (archive(A) + b"hidden", "failed finding central directory"),
    "two end records": (
        archive(A, comment=archive(A)[-END_RECORD.size:]), "two end records"),
    "an end record in the comment": (
        archive(A, comment=b"x" * 9 + END_RECORD.pack(END_SIGNATURE, *[0] * 6, 3) + b"yyy"),
        "two end records"),
    "a cut end record": (archive(A)[:-1], "failed finding central directory"),
    "no end record": (archive(A)[: -END_RECORD.size], "failed finding central directory"),
    "the signature of an end record": (b"PK\3\4PK\5\6" + bytes(7), "failed finding central"),
    "only an end record": (END_RECORD.pack(END_SIGNATURE, *[0] * 7), "not a ZIP archive"),
    "data past the end": (archive(Record("m/a", b"1", size=99, packed=99)), "past the end"),
    "a header past the end": (archive(A, Record("m/b", central_offset=9999)), "past the end"),
    "a header in the directory": (
        archive(A, Record("m/b", central_offset=len(A.local_bytes()) + 33)), "past the end"),
    "a size of 2**32 - 2": (archive(Record("m/a", b"1", size=2**32 - 2, packed=2**32 - 2)), "past"),
    "a directory past the end": (archive(A, end={6: 9999}), "does not end where"),
    "a directory of 2**32 - 2 bytes": (archive(A, end={5: 2**32 - 2}), "does not end where"),
    "encrypted": (archive(Record("m/a", b"1", flags=1)), "encrypted records"),
    "strongly encrypted": (archive(Record("m/a", b"1", flags=0x41)), "encrypted records"),
    "masked headers": (archive(Record("m/a", b"1", flags=0x2000)), "flags 0x2000 are not"),
    "patched data": (archive(Record("m/a", b"1", flags=0x20)), "flags 0x0020 are not"),
    "bzip2": (archive(Record("m/a", b"1", method=12)), "compression method 12"),
    "a stored record of two sizes": (archive(Record("m/a", b"1", size=2)), "two different sizes"),
    "another disk": (archive(Record("m/a", b"1", central_disk=1)), "multi-disk"),
    "a needed version of 63": (archive(Record("m/a", b"1", needed=63)), "needs version 63"),
    "a comment past the directory": (
        archive(Record("m/a", b"1", central_comment=b""), end={5: 60}), "does not end where"),
    # ---- data descriptors
    "no descriptor": (archive(Record("m/a", b"1", flags=8)), "descriptor contradicts"),
    "a descriptor that lies": (
        archive(Record("m/a", b"1", flags=8,
                       local_tail=struct.pack("<4sIII", b"PK\7\x08", 1, 1, 1))),
        "descriptor contradicts"),
    "half-open sizes": (
        archive(Record("m/a", b"1", flags=8, local_crc=0, local_packed=0,
                       local_tail=struct.pack("<4sIII", b"PK\7\x08", zlib.crc32(b"1"), 1, 1))),
        "other sizes or another CRC"),
    # ---- zip64
    "no zip64 field": (archive(Record("m/a", b"1", size=2**32 - 1, packed=2**32 - 1)), "missing"),
    "a short zip64 field": (
        archive(Record("m/a", b"1", size=2**32 - 1, packed=2**32 - 1,
                       extra=struct.pack("<HHQ", 1, 8, 1))), "too short"),
    "two zip64 fields": (archive(Record("m/a", b"content", extra=wide + wide)), "two zip64"),
    "a zip64 field that lies": (
        archive(Record("m/a", b"content", extra=ZIP64.pack(1, 16, 7, 2**40))), "contradicts"),
    "zip64 sizes of 2**60": (
        archive(Record("m/a", b"1", size=2**32 - 1, packed=2**32 - 1,
                       extra=ZIP64.pack(1, 16, 2**60, 2**60))), "past the end"),
    "zip64 sizes of 2**64 - 1": (
        archive(Record("m/a", b"1", size=2**32 - 1, packed=2**32 - 1,
                       extra=ZIP64.pack(1, 16, 2**64 - 1, 2**64 - 1))), "past the end"),
    "a zip64 end that lies": (archive(A, zip64={6: 2, 7: 2}), "contradict each other"),
    "a zip64 end of 2**60": (archive(A, zip64={8: 2**60}, end={5: 2**32 - 1}), "does not end"),
    "a zip64 count of 2**60": (
        archive(A, zip64={6: 2**60, 7: 2**60}, end={3: 65535, 4: 65535}), "do not fit"),
    "a zip64 locator that lies": (archive(A, zip64={12: 5}), "not where its locator points"),
    "a zip64 locator of two disks": (archive(A, zip64={13: 2}), "not where its locator points"),
    "a zip64 end of another size": (archive(A, zip64={1: 45}), "zip64 end record is damaged"),
    "a zip64 end of another version": (archive(A, zip64={3: 46}), "unknown version"),
    # ---- extra fields
    "a second name": (
        archive(Record("m/a", b"1", central_extra=struct.pack("<HHBI", 0x7075, 8, 1, 0) + b"b/a")),
        "extra field 0x7075 is not supported"),
    "an extra field past its header": (
        archive(Record("m/a", b"1", extra=struct.pack("<HH", 0x5455, 9) + b"1")), "runs past"),
    "loose bytes behind extra fields": (archive(Record("m/a", b"1", extra=b"abc")), "loose bytes"),
    "hidden padding": (
        archive(Record("m/a", b"1", extra=b"FB" + struct.pack("<H", 4) + b"ZZaZ")), "padding"),
    # ---- headers that contradict themselves
    "torch's maker with attributes": (
        archive(Record("m/a", b"1", central_maker=0, central_external=1)), "contradicts itself"),
    "another maker without a version": (
        archive(Record("m/a", b"1", central_maker=3 << 8)), "contradicts itself"),
    # ---- bombs
    "a bomb": (archive(packed(10_000_000)), "claim to inflate to 10000000"),
    "many small bombs": (
        archive(*[Record(f"m/{n}", bytes(65_000), method=8) for n in range(50)]),
        "claim to inflate to 3250000"),
    "a pickle that grows": (archive(Record("m/data.pkl", b"\x8f" * 90_000, method=8)), "claim to"),
    "folders with data": (archive(A, Record("m/b/", b"1")), "a folder cannot hold data"),
    "outside the folder": (archive(A, Record("n/b", b"1")), "outside the archive's folder"),
    "an empty central directory": (archive(before=b"PK\3\4" + bytes(30)), "belong to no record"),
}  # fmt: skip
NAMES = [
    "../a", "m/../a", "/m/a", "m//a", "m/./a", "./m/a", "m\\a", "C:/a", "m/a\0.pkl", "m/\na",
    "m/\x1ba", "m/a\x7f", "", "..", "m/..", "~/../a", b"m/\xff\xfe", b"m/\xc0\xae\xc0\xae/a",
]  # fmt: skip


@pytest.mark.parametrize("name", TRICKS)
def test_tricks(name):
    content, message = TRICKS[name]
    with pytest.raises(ArchiveError, match=message):
        ArchiveReader(content)


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_names(name):
    with pytest.raises(ArchiveError, match="not a safe relative path|not UTF-8"):
        ArchiveReader(archive(Record("m/x", b"1"), Record(name, b"1", flags=0x800)))


def test_a_name_in_an_unknown_encoding():
    with pytest.raises(ArchiveError, match="neither ASCII nor marked as UTF-8"):
        ArchiveReader(archive(Record("m/é", b"1", flags=0)))


def test_names_that_look_alike_are_different_records():
    composed, decomposed = "m/\u00e9", "m/e\u0301"
    reader = ArchiveReader(archive(Record(composed, b"1"), Record(decomposed, b"2")))
    assert reader.read("\u00e9") + reader.read("e\u0301") == b"12"


def test_deflate_streams_that_lie():
    for change in (1, -1):
        record = packed(500)
        for fields in (record.local, record.central):
            fields["size"] += change
        with pytest.raises(ArchiveError, match="does not inflate to"):
            ArchiveReader(archive(record)).read("a")
    record = packed(500)
    record.content += b"hidden"
    for fields in (record.local, record.central):
        fields["packed"] += 6
    with pytest.raises(ArchiveError, match="does not inflate to 500 bytes"):
        ArchiveReader(archive(record)).read("a")


def test_records_that_nobody_reads_are_verified():
    content = bytearray(archive(A, Record("m/b", b"unused")))
    content[content.index(b"unused")] ^= 1
    reader = ArchiveReader(content)
    reader.read("a")
    reader.verify_rest(leave_out="b")
    with pytest.raises(ArchiveError, match="failed reading file b: CRC-32 check failed"):
        reader.verify_rest()


LIMITED = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from flambeau.serialization.archive import ArchiveReader
from pathlib import Path
contents = [path.read_bytes() for path in sorted(Path(sys.argv[2]).iterdir())]
free = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for number, content in enumerate(contents):
    try:
        reader = ArchiveReader(content)
        for name in reader.names():
            reader.read(name)
    except RuntimeError:
        pass
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - free
    if grown > 8_000:  # KiB
        print(number, grown)
        break
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts resident pages")
def test_no_trick_takes_memory(tmp_path):
    for number, (content, _) in enumerate(TRICKS.values()):
        (tmp_path / f"{number:03}").write_bytes(content)
    command = [sys.executable, "-c", LIMITED, str(ROOT), str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout) == (0, ""), result.stderr


def test_ours_and_zipfiles_archives_pass():
    sink = io.BytesIO()
    writer = ArchiveWriter(sink, "m")
    writer.write("a", b"1")
    writer.finish()
    assert ArchiveReader(sink.getvalue()).read("a") == b"1"
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as file:
        file.writestr(zipfile.ZipInfo("m/a", (2024, 2, 29, 12, 30, 58)), b"1")
        file.mkdir("m/b")
    assert ArchiveReader(sink.getvalue()).read("a") == b"1"
