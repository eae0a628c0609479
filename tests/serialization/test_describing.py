"""`describe` and `verify`: what they find, and that no file makes them do anything else."""

from __future__ import annotations

import io
import random
import sys
import time
import tracemalloc
from contextlib import contextmanager
from pickle import UnpicklingError

import pytest

import flambeau as torch
from flambeau.serialization.description import describe, tree_of
from flambeau.serialization.safetensors import SafetensorError
from flambeau.serialization.safetensors import torch as of_safetensors
from flambeau.serialization.verification import verify
from tests.serialization.attack_files import PICKLES, STREAMS, archive_of

REFUSALS = (UnpicklingError, RuntimeError, SafetensorError)
FORBIDDEN = ("exec", "compile", "import", "open", "os.", "subprocess.", "socket.", "ctypes.")


class Watch:
    """Notes what Python is asked to do while it is on; audit hooks cannot be taken away."""

    on = False
    installed = False
    seen: list[str] = []

    @classmethod
    def hook(cls, event, arguments):
        if cls.on and event.startswith(FORBIDDEN):
            cls.seen.append(f"{event} {arguments}"[:200])


@contextmanager
def nothing_happens():
    """The block neither runs, imports nor opens anything, and ends within five seconds."""
    if not Watch.installed:
        sys.addaudithook(Watch.hook)
        Watch.installed = True
    Watch.seen = []
    start = time.perf_counter()
    Watch.on = True
    try:
        yield
    finally:
        Watch.on = False
    assert Watch.seen == []
    assert time.perf_counter() - start < 5


def look_at(content):
    """All that the commands ask of a file."""
    found = describe(memoryview(content))
    tree = tree_of(found.content)
    return found, list(tree.tensors()), verify(memoryview(content))


def saved(obj, **options):
    sink = io.BytesIO()
    torch.save(obj, sink, **options)
    return sink.getvalue()


HONEST = {
    "zip": saved({"a": torch.ones(2, 3), "b": [torch.zeros(1)], "c": 3}),
    "legacy": saved({"a": torch.ones(2, 3)}, _use_new_zipfile_serialization=False),
    "safetensors": of_safetensors.save({"a": torch.ones(2, 3)}, {"k": "v"}),
}


@pytest.fixture(autouse=True, scope="module")
def warm():
    """What is imported when first used is imported before anything is watched."""
    for content in HONEST.values():
        look_at(content)


@pytest.mark.parametrize("kind", list(HONEST))
def test_honest_files(kind):
    with nothing_happens():
        found, tensors, verdict = look_at(HONEST[kind])
    assert tensors[0][0] == "a" and tensors[0][1].shape == (2, 3)
    assert tensors[0][1].dtype == "float32" and found.refused == []
    assert verdict.problems == [] and "tensor" in verdict.checked


@pytest.mark.parametrize("name", [*PICKLES, *STREAMS])
def test_attacks_are_described_or_refused(name):
    content = archive_of(PICKLES[name]) if name in PICKLES else STREAMS[name]
    tracemalloc.start()
    with nothing_happens():
        try:
            look_at(content)
        except REFUSALS as error:
            assert len(str(error)) < 60_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < (8 << 20) + 300 * len(content)


@pytest.mark.parametrize("kind", list(HONEST))
def test_random_damage(kind):
    rng = random.Random(kind)
    good = HONEST[kind]
    for _ in range(1500):
        damaged = bytearray(good)
        for _ in range(rng.choice((1, 1, 2, 8))):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        cut = rng.randrange(len(good)) if rng.random() < 0.2 else len(good)
        try:
            look_at(bytes(damaged[:cut]))
        except REFUSALS:
            continue


def test_every_flipped_byte_of_a_record_is_a_problem_that_names_it():
    good = HONEST["zip"]
    place = good.index(torch.ones(6).numpy().tobytes())
    for offset in range(24):
        damaged = good[: place + offset] + bytes([good[place + offset] ^ 4])
        damaged += good[place + offset + 1 :]
        (problem,) = verify(memoryview(damaged)).problems
        assert "data/0" in problem and "CRC-32" in problem
