"""Imported last by the server that forks workers, which is started with SIGINT blocked: from here
on the signal arrives again, and one that came during the imports is forgotten. The loader's own
process has it, too, and ends the server.
"""

from __future__ import annotations

import signal


def let_through() -> None:
    """Unblock SIGINT, if it is blocked."""
    if not hasattr(signal, "pthread_sigmask"):
        return
    if signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # drops the one that waits
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, handler)


let_through()
