"""Training under bfloat16 autocast against float32, and against PyTorch's autocast.

Usage: `python benchmarks/autocast.py [checkerboard|gpt|gpt_fused] [--rounds N] [--no-torch]`

Steps of the libraries and precisions alternate; the figure is the quickest of each. PyTorch has no
quick bfloat16 convolution for processors without the instructions: a checkerboard step takes it
seconds, so it is run once.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings

from drawing import Step
from models import board, character_model

WARM_UP = 2
SLOW = 6.0  # seconds: a step that takes longer, kernels made, is not repeated


MODELS = {
    "checkerboard": lambda torch, half: board(torch, half),
    "gpt": lambda torch, half: character_model(torch, fused=False, half=half),
    "gpt_fused": lambda torch, half: character_model(torch, fused=True, half=half),
}


def timed(step: Step) -> float:
    """Seconds of one step."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def quickest(steps: list[Step], rounds: int) -> list[float]:
    """The quickest run of each step, taken in turns."""
    found = []
    for step in steps:
        found.append(timed(step))
        if found[-1] < SLOW:
            for _ in range(WARM_UP):
                step()
    for _ in range(rounds):
        for place, step in enumerate(steps):
            if found[place] < SLOW:
                found[place] = min(found[place], timed(step))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-torch", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    names = ["flambeau"] if given.no_torch else ["flambeau", "torch"]
    libraries = [importlib.import_module(name) for name in names]
    for name in given.models:
        build = MODELS[name]
        kinds = [(library, half) for library in libraries for half in (False, True)]
        seconds = quickest([build(*kind) for kind in kinds], given.rounds)
        for (library, half), taken in zip(kinds, seconds, strict=True):
            precision = "bfloat16 autocast" if half else "float32"
            print(f"{name:14} {library.__name__:9} {precision:18} {taken * 1e3:9.1f} ms")
        print(f"{name:14} float32 / bfloat16 of flambeau: {seconds[0] / seconds[1]:.2f}")
        if len(seconds) > 2:
            print(f"{name:14} torch's bfloat16 / flambeau's:  {seconds[3] / seconds[1]:.2f}")


if __name__ == "__main__":
    main()
