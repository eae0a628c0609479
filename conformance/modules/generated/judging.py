"""What a process does with a drawn program."""

from __future__ import annotations

import functools

from conformance.autograd.generated import judging

from . import programs
from .words import ModuleWords

drawn = programs.case
written = judging.written
judged = functools.partial(judging.judged, language=ModuleWords)
