"""Random programs of collectives and groups beside PyTorch's gloo, as many as one likes.

    python -m conformance.distributed.many_drawn --programs 300
    python -m conformance.distributed.many_drawn --programs 300 --first 5000 --processes 4

Half of them run in 2 processes, half in 4, if nothing else is said; ten of one seed share a start
of the processes, or a hundred.
"""

from __future__ import annotations

import argparse
import sys
import time

from conformance.distributed.test_collectives import compare

SHARED = {10: "many", 100: "hundred"}
"""Functions of `drawn`, and how many programs they run in one start of the processes."""


def main() -> int:
    """Compare, and say which seeds differ or do not end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4], help="in turns")
    parser.add_argument("--share", type=int, choices=list(SHARED), default=10, help="a start")
    options = parser.parse_args()
    starts = -(-options.programs // options.share)
    bad = []
    for number in range(starts):
        seed = options.first + number
        size = options.processes[number % len(options.processes)]
        begin = time.monotonic()
        try:
            compare(SHARED[options.share], size, seed)
        except Exception as error:
            bad.append((seed, size))
            print(f"seed {seed}, {size} processes: {type(error).__name__}: {error}", flush=True)
        else:
            print(f"seed {seed}, {size} processes: {options.share} programs the same, "
                  f"{time.monotonic() - begin:.1f} s", flush=True)  # fmt: skip
    print(f"{options.share * starts} programs; seeds that differ: {bad or 'none'}")
    return len(bad)


if __name__ == "__main__":
    sys.exit(main())
