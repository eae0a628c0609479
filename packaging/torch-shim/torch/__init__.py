"""`import torch` gives flambeau: this module installs its import hook, and goes."""

import sys

del sys.modules[__name__]
from flambeau import hook  # noqa: E402

if not hook.install():
    raise ImportError("flambeau's hook is not installed: another torch is imported already")
