"""The secret by which processes of one program know one another.

Launchers hand it to their children in the environment. Where there is none, it is a file that only
this user can read: processes of one user on one machine, or with one home folder, need no set-up.
"""

from __future__ import annotations

import functools
import hmac
import os
import secrets
from pathlib import Path

VARIABLE = "FLAMBEAU_DISTRIBUTED_SECRET"
NONCE = 32
"""Bytes of a number that is used once."""
PROOF = 32
"""Bytes of a proof."""


def hand_to_children() -> str:
    """The secret for processes that this one starts: its own, or a new one for them alone."""
    return os.environ.get(VARIABLE) or secrets.token_hex(32)


def secret() -> bytes:
    """This process's secret.

    Raises:
        RuntimeError: the file cannot be kept to this user.
    """
    given = os.environ.get(VARIABLE)
    return given.encode() if given else _of_user()


def nonce() -> bytes:
    """A number that is used once."""
    return secrets.token_bytes(NONCE)


def proof(role: bytes, challenge: bytes, own: bytes) -> bytes:
    """What only a process with the secret can answer to a challenge; `own` is its own nonce."""
    return hmac.digest(secret(), b"flambeau " + role + challenge + own, "sha256")


def proves(role: bytes, challenge: bytes, own: bytes, given: bytes) -> bool:
    """Whether an answer to a challenge is that of a process with the secret."""
    return hmac.compare_digest(proof(role, challenge, own), given)


def _file() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    folder = Path(state) if state else Path.home() / ".local" / "state"
    return folder / "flambeau" / "distributed-secret"


@functools.cache
def _of_user() -> bytes:
    path = _file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        _write(path)
    status = path.stat()
    if os.name == "posix" and (status.st_uid != os.getuid() or status.st_mode & 0o077):
        raise RuntimeError(f"{path} can be read by others: remove it, or set {VARIABLE}")
    return path.read_bytes()


def _write(path: Path) -> None:
    """Make the file whole or not at all; of several processes the first wins."""
    mine = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_hex(32).encode())
    try:
        os.link(mine, path)
    except FileExistsError:
        pass
    finally:
        mine.unlink()
