"""The examples in docstrings of public names print in PyTorch what they print here.

Each example is PyTorch's program but for the name of the library, so that it is run with PyTorch
under that name. What flambeau alone has (its own words in errors, for one) has no place in them.
"""

from __future__ import annotations

import doctest
import random
import warnings

import pytest
import torch

from tests.test_public_names import EXAMPLES, NAMES

SAMPLE = sorted(random.Random(7).sample(sorted(EXAMPLES), 200))
"""What a test run takes; `python -m conformance.test_docstring_examples` takes all."""


def found(dotted: str) -> object:
    """PyTorch's object of a dotted name."""
    value: object = torch
    for part in dotted.split(".")[1:]:
        value = getattr(value, part)
    return value


def faults(dotted: str) -> str:
    """What PyTorch prints otherwise; "" if nothing."""
    text = EXAMPLES[dotted].replace("flambeau", "torch")
    last = dotted.rpartition(".")[2]
    names = {"torch": torch, "__name__": "examples", last: found(dotted)}
    test = doctest.DocTestParser().get_doctest(text, names, dotted, None, None)
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(
            test, out=said.append
        )
    return "".join(said)


@pytest.mark.parametrize("dotted", SAMPLE)
def test_example(dotted: str):
    assert not faults(dotted)


def main() -> int:
    """All examples; the exit status is the number of those that differ, 99 at most."""
    different = {dotted: text for dotted in EXAMPLES if (text := faults(dotted))}
    print(*different.values(), sep="\n")
    print(f"{len(EXAMPLES)} docstrings of {len(NAMES)} names, {len(different)} differ")
    return min(len(different), 99)


if __name__ == "__main__":
    raise SystemExit(main())
