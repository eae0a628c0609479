"""The safe interpreter: what it understands, and what it refuses."""

import pickle
import pickletools
import random
import struct
import time
from collections import Counter, OrderedDict
from contextlib import suppress

import pytest

from flambeau.serialization.allowed import (
    AllowedGlobals,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from flambeau.serialization.opcodes import HANDLERS
from flambeau.serialization.unpickler import SafeUnpickler

PROTOCOLS = [2, 3, 4, 5]


def refuse_storage(identity):
    raise pickle.UnpicklingError("no storages here")


def run(content, **options):
    return SafeUnpickler(content, AllowedGlobals({}), refuse_storage, **options).load()


@pytest.fixture(autouse=True)
def no_user_globals():
    clear_safe_globals()
    yield
    clear_safe_globals()


class Point:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return type(other) is Point and self.x == other.x

    __hash__ = object.__hash__


class Slotted:
    __slots__ = ("x",)


def double(value):
    return 2 * value


VALUES = [
    None, True, False, 0, 1, -1, 255, 256, 65536, -(2**31), 2**31, 2**80, -(2**3000), 1.5, 1e308,
    "", "text", "\ud800", "ü" * 300, b"", b"bytes", b"b" * 300, bytearray(b"ab"), 1j, (), (1,),
    (1, 2), (1, 2, 3), (1, 2, 3, 4), [], [1], [1, 2], {}, {"a": 1}, {"a": 1, (1, "b"): [2]}, set(),
    {1, 2}, OrderedDict(), OrderedDict([("b", 1), ("a", 2)]), Counter("aab"), [[[[]]]],
]  # fmt: skip


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_plain_values(value, protocol):
    found = run(pickle.dumps(value, protocol))
    assert found == value
    assert type(found) is type(value)


def test_sharing_and_cycles():
    inner = [1]
    found = run(pickle.dumps([inner, inner], 2))
    assert found[0] is found[1]
    cycle = []
    cycle.append(cycle)
    found = run(pickle.dumps(cycle, 2))
    assert found[0] is found
    found.clear()
    cycle.clear()


def test_attributes_of_ordered_dicts():
    value = OrderedDict(a=1)
    value._metadata = {"": {"version": 1}}
    assert run(pickle.dumps(value, 2))._metadata == {"": {"version": 1}}


def test_deep_nesting_needs_no_recursion():
    depth = 200_000
    found = run(b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b".")
    count = 0
    while found:
        found = found.pop()
        count += 1
    assert count == depth - 1


def test_python_2_strings():
    content = b"\x80\x02U\x03abc."
    assert run(content) == "abc"
    assert run(content, encoding="bytes") == b"abc"
    with pytest.raises(pickle.UnpicklingError, match="cannot be decoded"):
        run(b"\x80\x02U\x01\xff.")


def test_position_after_a_pickle():
    first = pickle.dumps([1], 2)
    machine = SafeUnpickler(first + b"rest", AllowedGlobals({}), refuse_storage)
    machine.load()
    assert machine.position == len(first)


def test_blocked_global_names_the_way_out():
    with pytest.raises(pickle.UnpicklingError) as caught:
        run(pickle.dumps(Point(1), 2))
    name = f"{__name__}.Point"
    assert f"Unsupported global: GLOBAL {name} was not an allowed global" in str(caught.value)
    assert f"torch.serialization.add_safe_globals([{name}])" in str(caught.value)


def test_builtins_go_by_their_bare_name():
    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[eval\]\)"):
        run(b"\x80\x02c__builtin__\neval\n.")


@pytest.mark.parametrize("module", ["os", "sys", "posix", "nt"])
def test_blocked_modules(module):
    add_safe_globals([(double, f"{module}.system")])
    with pytest.raises(pickle.UnpicklingError, match=f"whose module {module} is blocked"):
        run(f"\x80\x02c{module}\nsystem\n.".encode("latin1"))


def test_nothing_is_imported():
    import sys

    sys.modules.pop("this", None)
    with pytest.raises(pickle.UnpicklingError):
        run(b"\x80\x02cthis\ns\n.")
    assert "this" not in sys.modules


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_allowed_classes_and_functions(protocol):
    content = pickle.dumps(Point([1]), protocol)
    with safe_globals([Point]):
        assert run(content) == Point([1])
        assert get_safe_globals() == [Point]
    assert get_safe_globals() == []
    slotted = Slotted()
    slotted.x = 3
    add_safe_globals([Slotted, (double, "somewhere.twice")])
    assert run(pickle.dumps(slotted, protocol)).x == 3
    assert run(b"\x80\x02csomewhere\ntwice\nK\x15\x85R.") == 42


def test_malformed_user_entries():
    add_safe_globals([(double, "a", "b")])
    with pytest.raises(ValueError, match="tuple of length 2"):
        run(b"N.")
    clear_safe_globals()
    add_safe_globals([(double, 3)])
    with pytest.raises(TypeError, match="to be str"):
        run(b"N.")


HOSTILE = {
    "empty": b"",
    "no stop": b"\x80\x02N",
    "stack underflow": b"\x80\x02.",
    "pop below mark": b"\x80\x02N(\x85.",
    "mark without mark": b"\x80\x02Nt.",
    "two results": b"\x80\x02NN.",
    "open mark": b"\x80\x02(N.",
    "protocol 9": b"\x80\x09N.",
    "unknown opcode": b"\x80\x02\xff.",
    "instance opcode": b"\x80\x02(ios\nsystem\n.",
    "extension opcode": b"\x80\x02\x82\x01.",
    "text persistent id": b"\x80\x02Pabc\n.",
    "text int": b"I1\n.",
    "frame too long": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.",
    "string too long": b"\x80\x02X\xff\xff\xff\x7fabc.",
    "8-byte string too long": b"\x80\x04\x8d" + b"\xff" * 8 + b".",
    "bytearray too long": b"\x80\x05\x96" + b"\xff" * 8 + b".",
    "long too long": b"\x80\x02\x8b\xff\xff\xff\xff.",
    "bad utf-8": b"\x80\x02X\x01\x00\x00\x00\xff.",
    "missing memo": b"\x80\x02h\x05.",
    "append to dict": b"\x80\x02}Na.",
    "append to tuple": b"\x80\x02)Na.",
    "set item of list": b"\x80\x02]NNs.",
    "odd items": b"\x80\x02}(NNNu.",
    "unhashable key": b"\x80\x02}]Ns.",
    "add to list": b"\x80\x04](N\x90.",
    "call a string": b"\x80\x02X\x01\x00\x00\x00a)R.",
    "call a dict": b"\x80\x02})R.",
    "arguments no tuple": b"\x80\x02ccollections\nOrderedDict\n]R.",
    "create a builtin": b"\x80\x02c__builtin__\nset\n)\x81.",
    "build a list": b"\x80\x02]}b.",
    "build with a list": b"\x80\x02ccollections\nOrderedDict\n)R]b.",
    "build with int keys": b"\x80\x02ccollections\nOrderedDict\n)R}K\x01Nsb.",
    "ordered dict of ints": b"\x80\x02ccollections\nOrderedDict\nK\x01\x85R.",
    "set of an int": b"\x80\x02c__builtin__\nset\nK\x01\x85R.",
    "bytearray bomb": b"\x80\x02c__builtin__\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
    "bytes bomb": b"\x80\x02c__builtin__\nbytes\nJ\xff\xff\xff\x7f\x85R.",
    "complex of text": b"\x80\x02c__builtin__\ncomplex\nX\x01\x00\x00\x001N\x86R.",
    "encode elsewhere": b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00rot\x86R.",
    "encode once": b"\x80\x02c_codecs\nencode\n)R.",
    "stack global of ints": b"\x80\x04K\x01K\x02\x93.",
    "persistent id no tuple": b"\x80\x02K\x01Q.",
    "endless name": b"\x80\x02c" + b"a" * 10_000 + b".",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_pickles(content):
    with pytest.raises(pickle.UnpicklingError):
        run(content)


def test_a_key_that_takes_years_to_hash():
    doubled = b"\x80\x02}K\x01\x85" + b"2\x86" * 60 + b"Ns."
    start = time.perf_counter()
    with pytest.raises(pickle.UnpicklingError, match="parts"):
        run(doubled)
    assert time.perf_counter() - start < 1


def test_an_error_about_an_endless_value_is_short():
    doubled = b"\x80\x02K\x01\x85" + b"2\x86" * 60 + b")R."
    with pytest.raises(pickle.UnpicklingError) as caught:
        run(doubled)
    assert len(str(caught.value)) < 200


def test_random_damage_never_escapes():
    generator = random.Random(1)
    good = [pickle.dumps({"a": [1, 2.5, "x", (3,), b"y", {4}], "o": OrderedDict(b=1)}, p)
            for p in PROTOCOLS]  # fmt: skip
    for _ in range(4000):
        data = bytearray(generator.choice(good))
        for _ in range(generator.randint(1, 4)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        with suppress(pickle.UnpicklingError):
            run(bytes(data))


def test_opcodes_are_those_of_pickletools():
    known = {ord(entry.code): entry.name for entry in pickletools.opcodes}
    assert set(HANDLERS) <= set(known)
    missing = {known[code] for code in set(known) - set(HANDLERS)}
    # What stays out: text forms of protocol 0, instances of protocol 0 and 1, extensions, buffers.
    assert missing == {
        "INT", "LONG", "STRING", "UNICODE", "FLOAT", "PERSID", "GET", "PUT", "INST", "OBJ",
        "EXT1", "EXT2", "EXT4", "NEXT_BUFFER", "READONLY_BUFFER",
    }  # fmt: skip


def test_numbers_are_little_endian():
    assert run(b"\x80\x02J" + struct.pack("<i", -5) + b".") == -5


MODULUS = 2**61 - 1
ALIKE = [MODULUS * (number + 1) for number in range(20_000)]
"""Numbers with the hash 0."""


def _listed(kind: str) -> bytes:
    """A pickle of a container whose keys have one hash, or parts that have."""
    numbers = [b"\x8a\x0c" + number.to_bytes(12, "little") for number in ALIKE]
    if kind == "tuples":
        numbers = [number + b"\x85" for number in numbers]
    if kind in ("dict", "tuples"):
        return b"}(" + b"".join(number + b"N" for number in numbers) + b"u"
    if kind == "one by one":
        return b"}" + b"".join(number + b"Ns" for number in numbers)
    if kind == "ordered":
        pairs = b"".join(number + b"N\x86" for number in numbers)
        return b"ccollections\nOrderedDict\n](" + pairs + b"e\x85R"
    if kind == "set":
        return b"\x8f(" + b"".join(numbers) + b"\x90"
    return b"(" + b"".join(numbers) + b"\x91"


@pytest.mark.parametrize("kind", ["dict", "one by one", "tuples", "ordered", "set", "frozenset"])
def test_keys_that_were_made_to_collide(kind: str) -> None:
    """Half a megabyte would keep Python comparing for minutes."""
    begin = time.process_time()
    with pytest.raises(pickle.UnpicklingError, match="keys of a dict or set have the same hash"):
        run(b"\x80\x04" + _listed(kind) + b".")
    assert time.process_time() - begin < 5


def test_many_honest_keys_of_any_kind() -> None:
    for keys in (range(5000), [(n, n + 1) for n in range(5000)], [n / 7 for n in range(5000)],
                 ALIKE[:100], [2**63 + n for n in range(5000)]):  # fmt: skip
        honest = dict.fromkeys(keys)
        assert run(pickle.dumps(honest, 4)) == honest
        assert run(pickle.dumps([{0: 1, -1: 2}] * 3 + [{(0,): n} for n in range(1000)], 4))
