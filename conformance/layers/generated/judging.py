"""What a process does with a drawn program."""

from __future__ import annotations

import functools

from conformance.autograd.generated import judging

from . import checking, programs
from .words import LayerWords

drawn = programs.case
written = judging.written
judged = functools.partial(judging.judged, language=LayerWords, check=checking.check)
