"""Keys and values that processes share: what they need to find one another."""

from __future__ import annotations

from flambeau.distributed.stores.base import HashStore, PrefixStore, Store
from flambeau.distributed.stores.file import FileStore
from flambeau.distributed.stores.tcp import TCPStore

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]
