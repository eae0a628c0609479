"""The strict zip reader against honest, damaged and hostile archives; zipfile as the oracle."""

import io
import mmap
import random
import struct
import zipfile
import zlib
from contextlib import suppress

import pytest

from flambeau.serialization.archive import ArchiveError, ArchiveReader, map_file
from flambeau.serialization.archive_writer import CHUNK, ArchiveWriter

RECORDS = {"data.pkl": b"\x80\x02N.", "data/0": bytes(range(200)), "data/1": b"", "data/2": b"x"}


def written(records=RECORDS, **options):
    sink = io.BytesIO()
    writer = ArchiveWriter(sink, "model", **options)
    for name, content in records.items():
        writer.write(name, content)
    writer.finish()
    return sink.getvalue()


def zipped(records, method=zipfile.ZIP_STORED, folder="model"):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        for name, content in records.items():
            archive.writestr(f"{folder}/{name}", content)
    return sink.getvalue()


def replaced(data, old, new, count=-1):
    assert old in data
    assert len(old) == len(new)
    return data.replace(old, new, count)


def test_round_trip():
    reader = ArchiveReader(written())
    assert reader.folder == "model"
    assert reader.names()[:4] == list(RECORDS)
    for name, content in RECORDS.items():
        assert reader.read(name) == content
    assert reader.read("version") == b"3\n"
    assert len(reader.read(".data/serialization_id")) == 40


def test_records_are_aligned():
    reader = ArchiveReader(written())
    assert all(reader.offset(name) % 64 == 0 for name in reader.names())


def test_zipfile_reads_what_we_write():
    with zipfile.ZipFile(io.BytesIO(written())) as archive:
        assert archive.testzip() is None
        for name, content in RECORDS.items():
            assert archive.read(f"model/{name}") == content


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_reads_what_zipfile_writes(method):
    reader = ArchiveReader(zipped(RECORDS, method))
    for name, content in RECORDS.items():
        assert reader.read(name) == content


def test_reads_streamed_zip64_and_comments():
    sink = io.BytesIO()
    sink.seekable = lambda: False
    with zipfile.ZipFile(sink, "w") as archive:
        with archive.open("model/data.pkl", "w", force_zip64=True) as record:
            record.write(b"abc")
        archive.writestr("model/folder/", b"")
        archive.comment = b"a comment"
    reader = ArchiveReader(sink.getvalue())
    assert reader.names() == ["data.pkl"]
    assert reader.read("data.pkl") == b"abc"


class SparseFile:
    """A file in which whole chunks of zeros become a hole."""

    def __init__(self, file):
        self.file = file

    def write(self, data):
        if len(data) == CHUNK:
            return self.file.seek(len(data), 1) and None
        return self.file.write(data)


def test_records_beyond_4_gib(tmp_path):
    path = tmp_path / "large.pt"
    size = (1 << 32) + 100
    with path.open("wb") as file, mmap.mmap(-1, size) as zeros:
        writer = ArchiveWriter(SparseFile(file), "large", compute_crc32=False)
        writer.write("data/0", zeros)
        writer.write("data/1", b"behind")
        writer.finish()
    reader = ArchiveReader(map_file(str(path)))
    assert reader.size("data/0") == size
    assert reader.offset("data/1") > size
    assert reader.offset("data/1") % 64 == 0
    assert reader.read("data/1") == b"behind"
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("large/data/0").file_size == size


def test_same_content_gives_same_file():
    assert written() == written()


def test_without_crc32():
    data = written(compute_crc32=False)
    reader = ArchiveReader(data)
    assert reader.read("data/0") == RECORDS["data/0"]


def test_missing_record():
    with pytest.raises(RuntimeError, match="failed locating file data/9: file not found"):
        ArchiveReader(written()).read("data/9")


def test_a_repeated_name_cannot_be_written():
    writer = ArchiveWriter(io.BytesIO(), "model")
    writer.write("a", b"")
    with pytest.raises(ValueError, match="already has a record a"):
        writer.write("a", b"")


def test_partial_writes():
    class Slow(io.BytesIO):
        def write(self, data):
            return super().write(bytes(data[:7]))

    sink = Slow()
    writer = ArchiveWriter(sink, "model")
    writer.write("data/0", bytes(100))
    writer.finish()
    assert ArchiveReader(sink.getvalue()).read("data/0") == bytes(100)


def test_a_flipped_byte_names_its_record():
    data = bytearray(written())
    data[ArchiveReader(bytes(data)).offset("data/0") + 5] ^= 1
    reader = ArchiveReader(data)
    with pytest.raises(RuntimeError, match="failed reading file data/0: CRC-32 check failed"):
        reader.read("data/0")
    assert reader.read("data/2") == b"x"


def test_every_flipped_byte_is_found_or_harmless():
    """Whatever byte is flipped: an ArchiveError, or every record that is still there is right."""
    good = written()
    for position in range(len(good)):
        data = bytearray(good)
        data[position] ^= 0x55
        try:
            reader = ArchiveReader(data)
            found = {name: reader.read(name) for name in reader.names()}
        except ArchiveError:
            continue
        for name, content in RECORDS.items():
            assert found.get(name, content) == content, position


def test_every_truncation_is_an_error():
    good = written()
    for length in range(len(good)):
        with pytest.raises(ArchiveError):
            ArchiveReader(good[:length])


def test_random_damage_never_escapes():
    generator = random.Random(0)
    for good in (written(), zipped(RECORDS, zipfile.ZIP_DEFLATED)):
        for _ in range(1500):
            data = bytearray(good)
            for _ in range(generator.randint(1, 6)):
                data[generator.randrange(len(data))] = generator.choice((0, 1, 0x50, 0xFF))
            with suppress(ArchiveError):
                reader = ArchiveReader(data)
                for name in reader.names():
                    reader.read(name)


def test_duplicate_names():
    with pytest.warns(UserWarning, match="Duplicate name"):
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w") as archive:
            archive.writestr("model/a", b"1")
            archive.writestr("model/a", b"2")
    with pytest.raises(ArchiveError, match="holds this name twice"):
        ArchiveReader(sink.getvalue())


@pytest.mark.parametrize(
    "name", ["model/../b", "../model/b", "/model/b", "model//b", "model/./b", "model\\b", "C:/b"]
)
def test_unsafe_names(name):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr(zipfile.ZipInfo("x" * len(name)), b"1")
    data = replaced(sink.getvalue(), b"x" * len(name), name.encode())
    with pytest.raises(ArchiveError, match="not a safe relative path"):
        ArchiveReader(data)


def test_records_outside_the_folder():
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("model/a", b"1")
        archive.writestr("other/data.pkl", b"2")
    with pytest.raises(ArchiveError, match="outside the archive's folder"):
        ArchiveReader(sink.getvalue())


def test_local_header_with_another_name():
    data = replaced(zipped({"aaa": b"1"}), b"model/aaa", b"model/bbb", 1)
    with pytest.raises(ArchiveError, match="another name"):
        ArchiveReader(data)


def test_local_header_with_another_size():
    data = bytearray(zipped({"a": b"12345"}))
    struct.pack_into("<I", data, 22, 4)
    with pytest.raises(ArchiveError, match="other sizes or another CRC"):
        ArchiveReader(data)


def test_descriptor_with_another_size():
    data = bytearray(written({"a": b"12345"}))
    position = data.index(b"PK\x07\x08")
    struct.pack_into("<I", data, position + 8, 4)
    with pytest.raises(ArchiveError, match="data descriptor contradicts"):
        ArchiveReader(data)


def test_overlapping_records():
    data = bytearray(zipped({"a": b"1", "b": b"2"}))
    central = [i for i in range(len(data)) if data[i : i + 4] == b"PK\x01\x02"]
    second = bytearray(data)
    second[central[1] + 46 : central[1] + 53] = b"model/c"
    struct.pack_into("<I", second, central[1] + 42, 0)
    with pytest.raises(ArchiveError, match="another name"):
        ArchiveReader(second)
    # A whole archive inside a stored record: its header is honest, its place is not.
    inner = zipped({"b": b"2"})
    inner_local = inner[: inner.index(b"PK\x01\x02")]
    outer = bytearray(zipped({"a": inner_local, "b": b"2"}))
    start = bytes(outer).index(inner_local)
    central = [i for i in range(len(outer)) if outer[i : i + 4] == b"PK\x01\x02"]
    struct.pack_into("<I", outer, central[1] + 42, start)
    with pytest.raises(ArchiveError, match="overlaps another record"):
        ArchiveReader(outer)


def test_records_past_the_end():
    data = bytearray(zipped({"a": b"1"}))
    central = bytes(data).index(b"PK\x01\x02")
    struct.pack_into("<I", data, central + 42, 0xFFFFFF00)
    with pytest.raises(ArchiveError, match="past the end"):
        ArchiveReader(data)


def test_encrypted_and_unknown_methods():
    data = bytearray(zipped({"a": b"1"}))
    central = bytes(data).index(b"PK\x01\x02")
    encrypted, unknown = bytearray(data), bytearray(data)
    encrypted[central + 8] |= 1
    unknown[central + 10] = 12
    with pytest.raises(ArchiveError, match="encrypted"):
        ArchiveReader(encrypted)
    with pytest.raises(ArchiveError, match="compression method 12"):
        ArchiveReader(unknown)


def test_bombs_are_refused_before_they_inflate():
    with pytest.raises(ArchiveError, match="claim to inflate to 50000000"):
        ArchiveReader(zipped({"a": bytes(50_000_000)}, zipfile.ZIP_DEFLATED))


def test_a_lying_size_does_not_inflate_further():
    content = bytes(5000)
    data = zipped({"a": content}, zipfile.ZIP_DEFLATED)
    for wrong in (4000, 6000):
        lie = data.replace(struct.pack("<I", 5000), struct.pack("<I", wrong))
        with pytest.raises(ArchiveError, match=f"does not inflate to {wrong} bytes"):
            ArchiveReader(lie).read("a")


def test_damaged_deflate_data():
    data = bytearray(zipped({"a": b"hello" * 50}, zipfile.ZIP_DEFLATED))
    compressed = zlib.compressobj(wbits=-15)
    stream = compressed.compress(b"hello" * 50) + compressed.flush()
    start = bytes(data).index(stream)
    data[start] = 0x07  # block type 3 does not exist
    with pytest.raises(ArchiveError, match="compressed data is damaged"):
        ArchiveReader(data).read("a")


def test_huge_counts_are_refused():
    data = bytearray(zipped({"a": b"1"}))
    end = bytes(data).index(b"PK\x05\x06")
    struct.pack_into("<HH", data, end + 8, 60000, 60000)
    with pytest.raises(ArchiveError, match="60000 entries do not fit"):
        ArchiveReader(data)


def test_not_an_archive():
    for data in (b"", b"PK", b"hello world, this is no archive at all"):
        with pytest.raises(RuntimeError, match="PytorchStreamReader failed reading zip archive"):
            ArchiveReader(data)


def test_mapped_files(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(written())
    assert ArchiveReader(map_file(str(path))).read("data/2") == b"x"
    path.write_bytes(b"")
    assert map_file(str(path)) == b""
