"""The link of `scripts/two_machines.py`: packets come late, in order, no faster than the rate."""

from __future__ import annotations

import importlib.util
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "scripts/delayed_link.py"
PAIR = tuple[socket.socket, socket.socket]


@pytest.fixture(scope="module")
def link() -> Any:
    if sys.platform != "linux":
        pytest.skip("TUN devices are Linux's")
    spec = importlib.util.spec_from_file_location("delayed_link", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["delayed_link"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ends() -> Iterator[tuple[PAIR, PAIR]]:
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
    for pair in pairs:
        for end in pair:
            end.setblocking(False)
    yield pairs[0], pairs[1]
    for pair in pairs:
        for end in pair:
            end.close()


def direction(link: Any, ends: tuple[PAIR, PAIR], rate: float, delay: float) -> Any:
    (_, source), (target, _) = ends
    return link.Direction(source.fileno(), target.fileno(), rate, delay)


def test_packets_come_after_the_delay_and_in_order(link: Any, ends: tuple[PAIR, PAIR]):
    way = direction(link, ends, 1e6, 0.03)
    begin = time.monotonic()
    for number in range(3):
        ends[0][0].send(bytes([number]) * 1000)
    way.take()
    way.give()
    with pytest.raises(BlockingIOError):
        ends[1][1].recv(2000)
    while way.waiting:
        time.sleep(way.seconds_left())
        way.give()
    assert time.monotonic() - begin >= 0.03 + 3 * 1000 / 1e6
    assert [ends[1][1].recv(2000)[0] for _ in range(3)] == [0, 1, 2]
    assert (way.carried, way.lost) == (3, 0)


def test_what_does_not_fit_into_the_queue_is_lost(link: Any, ends: tuple[PAIR, PAIR]):
    way = direction(link, ends, 1000 / link.QUEUE / 2, 0)  # two packets fill it
    for _ in range(8):
        ends[0][0].send(bytes(1000))
    way.take()
    assert len(way.waiting) + way.lost == 8
    assert len(way.waiting) <= 4
    assert way.lost >= 4


@pytest.mark.parametrize(("text", "units", "number"), [
    ("200mbit", "RATES", 2e8), ("1.5gbit", "RATES", 1.5e9), ("10ms", "UNITS", 0.01),
    ("50us", "UNITS", 5e-5), ("2s", "UNITS", 2.0),
])  # fmt: skip
def test_numbers_are_written_as_tc_writes_them(link: Any, text: str, units: str, number: float):
    assert link.number_of(text, getattr(link, units)) == pytest.approx(number)


def test_a_number_without_a_unit_is_refused(link: Any):
    with pytest.raises(SystemExit, match="expected a number"):
        link.number_of("10", link.UNITS)
