"""`torch.storage`: the classes of storages."""

from flambeau._tensor.storage import UntypedStorage
from flambeau._tensor.typed_storage import TypedStorage, _LegacyStorage

__all__ = ["TypedStorage", "UntypedStorage", "_LegacyStorage"]
