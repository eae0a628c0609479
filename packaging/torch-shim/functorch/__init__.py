"""`import functorch` gives flambeau's: the module goes, once the import hook is there."""

import importlib
import sys

del sys.modules[__name__]
import torch  # noqa: E402, F401

importlib.import_module("functorch")
