"""What recordings share: the recorder of each thread."""

from __future__ import annotations

import threading
from typing import Any


class Active(threading.local):
    """The innermost recorder that was started in this thread and not stopped."""

    recorder: Any = None


active = Active()
