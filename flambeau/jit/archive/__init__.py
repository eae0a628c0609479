"""TorchScript archives: `torch.jit.save`, `torch.jit.load`.

An archive is a zip file with the records

    data.pkl         the module: its attributes, those of its submodules, …
    data/0, …        the bytes of tensors
    code/__torch__/  the code of its classes and functions, as text
    constants.pkl    tensors that the code names
    version          how far operators had come

`reader` and `writer` go through them; `importer` compiles the code, `upgraders` lets older code
mean what it meant, `pickle_reader` and `pickle_writer` carry values.
"""

from __future__ import annotations

from flambeau.jit.archive.reader import load
from flambeau.jit.archive.writer import save

__all__ = ["load", "save"]
