"""What a process does with a drawn program."""

from __future__ import annotations

import functools

from conformance.autograd.generated import judging

from . import drawing
from .children import check, in_a_child
from .words import SettingsWords

in_a_child(int)  # the server begins before programs have so many seconds each

drawn = drawing.case
written = judging.written
judged = functools.partial(judging.judged, language=SettingsWords, check=check)
