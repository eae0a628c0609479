"""What each opcode of a pickle does to the safe interpreter."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from struct import Struct
from typing import TYPE_CHECKING, Any

from flambeau._core.tables import entering
from flambeau.serialization.allowed import COPYING
from flambeau.serialization.checks import Keys, decode

if TYPE_CHECKING:
    from flambeau.serialization.unpickler import SafeUnpickler

MAX_NAME = 4096
UINT8 = Struct("<B")
UINT32 = Struct("<I")
UINT64 = Struct("<Q")

Handler = Callable[["SafeUnpickler"], None]
HANDLERS: dict[int, Handler] = {}


opcode = entering(HANDLERS, lambda code: code[0])
"""Register a handler for one or more opcodes."""


# ---- the frame of a pickle


@opcode(b"\x80")
def _protocol(machine: SafeUnpickler) -> None:
    machine.protocol = machine.take(1)[0]
    if machine.protocol > 5:
        raise UnpicklingError(f"unsupported pickle protocol: {machine.protocol}")


@opcode(b"\x95")
def _frame(machine: SafeUnpickler) -> None:
    length = machine.unpack(UINT64)
    if length > len(machine.data) - machine.position:
        raise UnpicklingError("pickle data was truncated")


@opcode(b".")
def _stop(machine: SafeUnpickler) -> None:
    machine.finished = True


@opcode(b"(")
def _mark(machine: SafeUnpickler) -> None:
    machine.marks.append(len(machine.stack))


@opcode(b"0")
def _pop(machine: SafeUnpickler) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.marks.pop()
        return
    machine.pop()


@opcode(b"1")
def _pop_mark(machine: SafeUnpickler) -> None:
    machine.pop_mark()


@opcode(b"2")
def _duplicate(machine: SafeUnpickler) -> None:
    machine.push(machine.top())


# ---- numbers, strings and bytes

CONSTANTS = {b"N": None, b"\x88": True, b"\x89": False}
NUMBERS = {b"J": Struct("<i"), b"K": UINT8, b"M": Struct("<H"), b"G": Struct(">d")}
LENGTHS = {1: UINT8, 4: UINT32, 8: UINT64}
TEXTS = {b"\x8c": 1, b"X": 4, b"\x8d": 8}
BYTES = {b"C": 1, b"B": 4, b"\x8e": 8}
OLD_STRINGS = {b"U": 1, b"T": 4}
LONGS = {b"\x8a": 1, b"\x8b": 4}


def _register_constant(code: bytes, value: Any) -> None:
    opcode(code)(lambda machine: machine.push(value))


def _register_number(code: bytes, layout: Struct) -> None:
    opcode(code)(lambda machine: machine.push(machine.unpack(layout)))


def _register_sized(
    code: bytes, width: int, convert: Callable[[SafeUnpickler, bytes], Any]
) -> None:
    def handler(machine: SafeUnpickler) -> None:
        raw = bytes(machine.take(machine.unpack(LENGTHS[width])))
        machine.push(convert(machine, raw))

    opcode(code)(handler)


def _old_string(machine: SafeUnpickler, raw: bytes) -> str | bytes:
    return raw if machine.encoding == "bytes" else decode(raw, machine.encoding)


for _code, _value in CONSTANTS.items():
    _register_constant(_code, _value)
for _code, _layout in NUMBERS.items():
    _register_number(_code, _layout)
for _code, _width in TEXTS.items():
    _register_sized(_code, _width, lambda machine, raw: decode(raw, "utf-8"))
for _code, _width in BYTES.items():
    _register_sized(_code, _width, lambda machine, raw: raw)
for _code, _width in OLD_STRINGS.items():
    _register_sized(_code, _width, _old_string)
for _code, _width in LONGS.items():
    _register_sized(_code, _width, lambda machine, raw: int.from_bytes(raw, "little", signed=True))
_register_sized(b"\x96", 8, lambda machine, raw: bytearray(raw))


# ---- containers


@opcode(b")")
def _empty_tuple(machine: SafeUnpickler) -> None:
    machine.push(())


@opcode(b"]")
def _empty_list(machine: SafeUnpickler) -> None:
    machine.push([])


@opcode(b"}")
def _empty_dict(machine: SafeUnpickler) -> None:
    machine.push({})


@opcode(b"\x8f")
def _empty_set(machine: SafeUnpickler) -> None:
    machine.push(set())


@opcode(b"t")
def _tuple(machine: SafeUnpickler) -> None:
    machine.push(tuple(machine.pop_mark()))


@opcode(b"l")
def _list(machine: SafeUnpickler) -> None:
    machine.push(machine.pop_mark())


@opcode(b"d")
def _dict(machine: SafeUnpickler) -> None:
    items = machine.pop_mark()
    machine.push({})
    _set_items(machine, items)


@opcode(b"\x85", b"\x86", b"\x87")
def _short_tuple(machine: SafeUnpickler) -> None:
    count = machine.data[machine.position - 1] - 0x84
    items = [machine.pop() for _ in range(count)]
    machine.push(tuple(reversed(items)))


@opcode(b"a")
def _append(machine: SafeUnpickler) -> None:
    _extend(machine, [machine.pop()], "append to")


@opcode(b"e")
def _appends(machine: SafeUnpickler) -> None:
    _extend(machine, machine.pop_mark(), "extend")


def _extend(machine: SafeUnpickler, items: list[Any], verb: str) -> None:
    target = machine.top()
    if type(target) is not list:
        raise UnpicklingError(f"Can only {verb} lists, but got {type(target)}")
    target.extend(items)


@opcode(b"s")
def _set_item(machine: SafeUnpickler) -> None:
    value = machine.pop()
    key = machine.pop()
    _set_items(machine, [key, value])


@opcode(b"u")
def _set_all_items(machine: SafeUnpickler) -> None:
    _set_items(machine, machine.pop_mark())


def _set_items(machine: SafeUnpickler, items: list[Any]) -> None:
    target = machine.top()
    if type(target) not in (dict, OrderedDict, Counter):
        raise UnpicklingError(
            f"Can only set items of dict, OrderedDict or Counter, but got {type(target)}"
        )
    if len(items) % 2:
        raise UnpicklingError("odd number of items for SETITEMS")
    for key, value in zip(items[::2], items[1::2], strict=True):
        if type(key) is not str:
            machine.keys_of(target).checked(key)
        target[key] = value


@opcode(b"\x90")
def _add_items(machine: SafeUnpickler) -> None:
    items = machine.pop_mark()
    target = machine.top()
    if type(target) is not set:
        raise UnpicklingError(f"Can only add items to sets, but got {type(target)}")
    target.update(map(machine.keys_of(target).checked, items))


@opcode(b"\x91")
def _frozenset(machine: SafeUnpickler) -> None:
    machine.push(frozenset(map(Keys().checked, machine.pop_mark())))


# ---- the memo


@opcode(b"q", b"r", b"\x94")
def _put(machine: SafeUnpickler) -> None:
    code = machine.data[machine.position - 1]
    index = len(machine.memo) if code == 0x94 else machine.unpack(UINT8 if code == 0x71 else UINT32)
    machine.memo[index] = machine.top()


@opcode(b"h", b"j")
def _get(machine: SafeUnpickler) -> None:
    code = machine.data[machine.position - 1]
    index = machine.unpack(UINT8 if code == 0x68 else UINT32)
    if index not in machine.memo:
        raise UnpicklingError(f"Memo value not found at index {index}")
    machine.push(machine.memo[index])


# ---- globals, calls and storages


@opcode(b"c")
def _global(machine: SafeUnpickler) -> None:
    module = machine.take_line()
    name = machine.take_line()
    machine.push(machine.allowed.find(module, name, old_names=machine.protocol < 3))


@opcode(b"\x93")
def _stack_global(machine: SafeUnpickler) -> None:
    name = machine.pop()
    module = machine.pop()
    if type(name) is not str or type(module) is not str:
        raise UnpicklingError("STACK_GLOBAL requires str")
    if len(module) + len(name) > MAX_NAME:
        raise UnpicklingError(f"a global's name has over {MAX_NAME} characters")
    machine.push(machine.allowed.find(module, name, old_names=False))


@opcode(b"R")
def _reduce(machine: SafeUnpickler) -> None:
    arguments = _pop_arguments(machine)
    function = machine.pop()
    if id(function) in COPYING:
        machine.spend(arguments)
    machine.push(machine.allowed.call(function, arguments))


@opcode(b"\x81")
def _new_object(machine: SafeUnpickler) -> None:
    arguments = _pop_arguments(machine)
    machine.push(machine.allowed.create(machine.pop(), arguments, {}))


@opcode(b"\x92")
def _new_object_with_keywords(machine: SafeUnpickler) -> None:
    keywords = machine.pop()
    arguments = _pop_arguments(machine)
    if type(keywords) is not dict or not all(type(key) is str for key in keywords):
        raise UnpicklingError("keyword arguments in a pickle must be a dict with str keys")
    machine.push(machine.allowed.create(machine.pop(), arguments, keywords))


@opcode(b"b")
def _build(machine: SafeUnpickler) -> None:
    state = machine.pop()
    machine.spend(state)
    machine.allowed.build(machine.top(), state)


def _pop_arguments(machine: SafeUnpickler) -> tuple[Any, ...]:
    arguments = machine.pop()
    if type(arguments) is not tuple:
        raise UnpicklingError(f"arguments in a pickle must be a tuple, got {type(arguments)}")
    return arguments


@opcode(b"Q")
def _persistent(machine: SafeUnpickler) -> None:
    identity = machine.pop()
    if type(identity) is not tuple:
        raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(identity)}")
    machine.push(machine.persistent_load(identity))
