"""A link between two network namespaces that has a rate and a delay: a process carries each packet.

    python scripts/delayed_link.py A B 10.199.7.1 10.199.7.2 --rate 200mbit --delay 10ms

For kernels without netem. Each namespace gets a TUN device, whose packets this process reads,
keeps for as long as the link would take, and writes into the other. What does not fit into the
queue of a direction is lost, as on a real link. It prints "ready", and runs until it is ended.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import select
import struct
import subprocess
import time
from collections import deque
from dataclasses import dataclass, field

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
LARGEST = 9000
"""Bytes of a packet, as in networks of computing centres; fewer packets are less work."""
QUEUE = 0.2
"""Seconds that a packet may wait for those before it, as `latency 200ms` of tbf."""
RATES = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def number_of(text: str, units: dict[str, float]) -> float:
    """A number with a unit, as `tc` writes them."""
    found = re.fullmatch(r"([0-9.]+)([a-z]+)", text)
    if found is None or found[2] not in units:
        raise SystemExit(f"{text!r}: expected a number and one of {', '.join(units)}")
    return float(found[1]) * units[found[2]]


@dataclass
class Direction:
    """What is on its way from one device to the other."""

    source: int
    target: int
    bytes_per_second: float
    delay: float
    is_free_at: float = 0.0
    waiting: deque[tuple[float, bytes]] = field(default_factory=deque)
    carried: int = 0
    lost: int = 0

    def take(self) -> None:
        """Read what is there."""
        while True:
            try:
                packet = os.read(self.source, LARGEST + 64)
            except BlockingIOError:
                return
            now = time.monotonic()
            begin = max(now, self.is_free_at)
            if begin - now > QUEUE:
                self.lost += 1
                continue
            self.is_free_at = begin + len(packet) / self.bytes_per_second
            self.waiting.append((self.is_free_at + self.delay, packet))

    def give(self) -> None:
        """Write what has been on its way for long enough."""
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            _, packet = self.waiting.popleft()
            os.write(self.target, packet)
            self.carried += 1

    def seconds_left(self) -> float:
        """Seconds until the next packet arrives."""
        if not self.waiting:
            return 1.0
        return max(self.waiting[0][0] - time.monotonic(), 0.0)


def device(name: str, namespace: str, host: str) -> int:
    """A TUN device in a namespace that has an address; its packets come and go by a descriptor."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    request = struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI)
    fcntl.ioctl(descriptor, TUNSETIFF, request)
    inside = ("ip", "netns", "exec", namespace)
    for words in (
        ("ip", "link", "set", name, "netns", namespace),
        (*inside, "ip", "addr", "add", f"{host}/24", "dev", name),
        (*inside, "ip", "link", "set", name, "mtu", str(LARGEST), "up"),
        (*inside, "ip", "link", "set", "lo", "up"),
    ):
        subprocess.run(words, check=True)
    return descriptor


def carry(directions: list[Direction]) -> None:
    """Carry packets for ever."""
    of_source = {each.source: each for each in directions}
    while True:
        left = min(each.seconds_left() for each in directions)
        readable, _, _ = select.select(list(of_source), [], [], left)
        for source in readable:
            of_source[source].take()
        for each in directions:
            each.give()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("namespaces", nargs=2)
    parser.add_argument("hosts", nargs=2)
    parser.add_argument("--rate", default="200mbit")
    parser.add_argument("--delay", default="10ms")
    options = parser.parse_args()
    rate, delay = number_of(options.rate, RATES) / 8, number_of(options.delay, UNITS)
    here, there = (
        device(f"fb-{end}", namespace, host)
        for end, namespace, host in zip("ab", options.namespaces, options.hosts, strict=True)
    )
    directions = [Direction(here, there, rate, delay), Direction(there, here, rate, delay)]
    print("ready", flush=True)
    try:
        carry(directions)
    except KeyboardInterrupt:
        for each, name in zip(directions, options.namespaces, strict=True):
            print(f"from {name}: {each.carried} packets, {each.lost} lost", flush=True)


if __name__ == "__main__":
    main()
