"""The .safetensors format: tensors under names, and no code at all.

The same faces as the package `safetensors`, whose place it takes under `flambeau run` where that
package is not installed: `safe_open` and `SafetensorError` here, `load_file`, `save_file` and their
kin in `.torch` (tensors) and `.numpy` (arrays).

    from flambeau.serialization.safetensors import safe_open
    from flambeau.serialization.safetensors.torch import load_file, save_file
"""

from flambeau.serialization.safetensors.header import SafetensorError
from flambeau.serialization.safetensors.reader import safe_open

__all__ = ["SafetensorError", "safe_open"]
