"""Kill a program that loads data with workers, or one of its workers, at random moments.

    python fuzz/kill_while_loading.py --kills 200

The program iterates over a DataLoader with workers for ever. Where the program is killed, its
workers must end by themselves and leave nothing in shared memory; where a worker is killed, the
program must say so with an error, soon, and not wait.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
import flambeau
from flambeau.utils.data import DataLoader, Dataset

SHARED = Path("/dev/shm")  # noqa: S108  # where shared memory shows
PATIENCE = 20.0
SAID, SILENT, WRONG = 3, 4, 5
"""How a program ends whose worker was killed: with an error that says so; without one; wrongly."""


class Numbers(Dataset[Any]):
    """Tensors that show their index everywhere."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        return flambeau.full((50_000,), float(index)), index


def load_forever(chance: random.Random) -> None:
    """The program: in a session of its own, by which it and its workers are found."""
    os.setsid()
    options: dict[str, Any] = {"persistent_workers": True} if chance.random() < 0.5 else {}
    loader = DataLoader(
        Numbers(), batch_size=4, num_workers=chance.randint(1, 2), shuffle=True, **options
    )
    code = SILENT
    try:
        while True:
            for values, indices in loader:
                if not (values == indices[:, None]).all():
                    os._exit(WRONG)
    except RuntimeError as error:
        code = SAID if "worker" in str(error) else WRONG
    finally:
        os._exit(code)


def members(session: int) -> list[int]:
    """The processes of a session that still run."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                fields = (place / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended since
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(place.name))
    return found


def wait_until(is_so: Any) -> bool:
    end = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def kill_once(chance: random.Random, longest: float) -> str:
    """Start a program, kill it or a worker, and see what comes of it."""
    before = _left(set())
    program = os.fork()
    if program == 0:
        load_forever(chance)
    time.sleep(chance.uniform(0.0, longest))
    workers = [one for one in members(program) if one != program]
    is_whole = not workers or chance.random() < 0.5
    os.kill(program if is_whole else chance.choice(workers), signal.SIGKILL)
    if not is_whole:
        ended: list[int] = []
        assert wait_until(lambda: _has_ended(program, ended)), "the program waits for its worker"
        assert ended == [SAID], f"the program ended with {ended}"
    else:
        os.waitpid(program, 0)
    assert wait_until(lambda: not members(program)), f"still there: {members(program)}"
    # others may use shared memory, too, for a while
    assert wait_until(lambda: not _left(before)), f"left in shared memory: {_left(before)}"
    return "program" if is_whole else "worker"


def _left(known: set[Path]) -> set[Path]:
    return set(SHARED.iterdir()) - known if SHARED.is_dir() else set()


def _has_ended(program: int, codes: list[int]) -> bool:
    found, status = os.waitpid(program, os.WNOHANG)
    if found:
        codes.append(os.waitstatus_to_exitcode(status))
    return bool(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--longest", type=float, default=0.8, help="seconds until a kill")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    kinds: Counter[str] = Counter()
    for _ in range(options.kills):
        kinds[kill_once(chance, options.longest)] += 1
    print(f"{options.kills} kills {dict(kinds)}: nothing left behind, every lost worker told")


if __name__ == "__main__":
    main()
