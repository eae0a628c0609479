"""What a file holds, found without running any of it: for people, and for `flambeau inspect`.

with Path("model.pth").open("rb") as file:
    found = describe(memoryview(file.read()))
for name, tensor in tree_of(found.content).tensors():
    print(name, tensor.dtype, tensor.shape)
"""

from flambeau.serialization.description.entries import (
    Description,
    StorageEntry,
    TensorEntry,
)
from flambeau.serialization.description.files import describe
from flambeau.serialization.description.tree import tree_of

__all__ = ["Description", "StorageEntry", "TensorEntry", "describe", "tree_of"]
