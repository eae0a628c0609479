"""Operations of stores as bytes."""

from __future__ import annotations

from flambeau.distributed.wire import pack, unpack


def pack_request(operation: str, keys: list[str], values: list[bytes]) -> bytes:
    """An operation, its keys and its values in one byte string."""
    return pack(operation.encode(), pack(*(key.encode() for key in keys)), pack(*values))


def unpack_request(record: bytes) -> tuple[str, list[str], list[bytes]]:
    """What `pack_request` packed.

    Raises:
        ValueError: it is something else.
    """
    operation, keys, values = unpack(record)
    return operation.decode(), [key.decode() for key in unpack(keys)], unpack(values)
