"""`torch.storage`: the classes of storages."""

from flambeau._tensor.storage import Storage as UntypedStorage
from flambeau._tensor.typed_storage import TypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
