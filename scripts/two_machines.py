"""Two machines on one: two network namespaces, a shaped link, and `torchrun --nnodes 2` in them.

    python scripts/two_machines.py                     # as root, on Linux, with iproute2
    python scripts/two_machines.py --delay 10ms        # each way, one process carrying packets
                                                       # where the kernel has no netem
    python scripts/two_machines.py --same-network      # two agents side by side, without root

In each namespace an agent of torchrun starts two processes, which train a small model with
DistributedDataParallel. All four have to end with the parameters that one process with the whole
batch has. Then a process of the second machine is killed: both agents start all again, and the
training goes on from its checkpoint.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from delayed_link import UNITS, number_of

ROOT = Path(__file__).parents[1]
NAMES = ("flambeau-a", "flambeau-b")
HOSTS = ("10.199.7.1", "10.199.7.2")
INSIDE = ("ip", "netns", "exec")
APART = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Without processes in common: the two would find that they can share memory."""
ECHO = """
import socket, sys
listener = socket.create_server((sys.argv[1], 0))
print(listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
while data := connection.recv(1):
    connection.sendall(data)
"""
ASK = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
times = []
for _ in range(10):
    start = time.monotonic()
    connection.sendall(b"?")
    connection.recv(1)
    times.append(time.monotonic() - start)
print(min(times))
"""
TRAINING = r"""
import json, os, signal, sys, time
from pathlib import Path
import torch, torch.distributed as dist
import torch.distributed.checkpoint as dcp
folder, dies = Path(sys.argv[1]), sys.argv[2] == "dies"
alone = "RANK" not in os.environ
if alone:
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
else:
    dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(50, 400), torch.nn.Tanh(), torch.nn.Linear(400, 5))
inputs, targets = torch.randn(64, 50), torch.randn(64, 5)
ddp = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
state = {"model": model.state_dict(), "steps": 0}
kept = folder / "checkpoint"
if (kept / ".metadata").exists():
    dcp.load(state, checkpoint_id=kept)
    model.load_state_dict(state["model"])
share = 64 // size
mine = slice(rank * share, (rank + 1) * share)
for step in range(state["steps"], 10):
    if dies and step == 6 and rank == size - 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(ddp(inputs[mine]), targets[mine]).backward()
    optimizer.step()
    if dies:
        dcp.save({"model": model.state_dict(), "steps": step + 1}, checkpoint_id=kept)
start = time.monotonic()
x = torch.ones(1 << 18)
dist.all_reduce(x)
seconds = time.monotonic() - start
total = sum(p.double().sum().item() for p in model.parameters())
seen = {"rank": rank, "size": size, "total": total, "first": state["steps"], "seconds": seconds}
(folder / f"rank{rank}.json").write_text(json.dumps(seen))
dist.destroy_process_group()
"""


def command(*words: str) -> None:
    """Run a command of the system."""
    subprocess.run(words, check=True)


@contextlib.contextmanager
def two_networks(rate: str, delay: str) -> Iterator[None]:
    """Two namespaces, and a link between them that has a rate and a delay."""
    made = []
    try:
        for name in NAMES:
            command("ip", "netns", "add", name)
            made.append(name)
        if can_delay():
            _wire(rate, delay)
            yield
        else:
            with _carried(rate, delay):
                yield
    finally:
        for name in made:
            command("ip", "netns", "del", name)
        left = nothing_left()
        if left:
            print("left behind:", *left, file=sys.stderr)
    assert not left, left


def can_delay() -> bool:
    """Whether the kernel has netem."""
    words = (*INSIDE, NAMES[0], "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
    if subprocess.run(words, check=False, capture_output=True).returncode != 0:
        return False
    command(*INSIDE, NAMES[0], "tc", "qdisc", "del", "dev", "lo", "root")
    return True


def _wire(rate: str, delay: str) -> None:
    """A wire whose ends the kernel slows down."""
    command("ip", "link", "add", "fb-a", "netns", NAMES[0], "type", "veth", "peer", "name",
            "fb-b", "netns", NAMES[1])  # fmt: skip
    for name, host, end in zip(NAMES, HOSTS, ("fb-a", "fb-b"), strict=True):
        command(*INSIDE, name, "ip", "addr", "add", f"{host}/24", "dev", end)
        command(*INSIDE, name, "ip", "link", "set", end, "up")
        command(*INSIDE, name, "ip", "link", "set", "lo", "up")
        command(*INSIDE, name, "tc", "qdisc", "add", "dev", end, "root", "netem", "rate", rate,
                "delay", delay)  # fmt: skip
    print(f"netem: {rate}, {delay} each way")


@contextlib.contextmanager
def _carried(rate: str, delay: str) -> Iterator[None]:
    """A wire that is a process."""
    words = [str(ROOT / "scripts/delayed_link.py"), *NAMES, *HOSTS]
    carrier = subprocess.Popen(
        [sys.executable, *words, "--rate", rate, "--delay", delay], stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert carrier.stdout is not None
    try:
        assert carrier.stdout.readline() == "ready\n"
        print(f"a process carries packets: {rate}, {delay} each way")
        yield
    finally:
        carrier.send_signal(signal.SIGINT)
        print(carrier.communicate()[0], end="")


def round_trip() -> float:
    """Seconds from one namespace to the other and back: the shortest of several."""
    there = [*INSIDE, NAMES[1], sys.executable, "-c", ECHO, HOSTS[1]]
    here = [*INSIDE, NAMES[0], sys.executable, "-c", ASK, HOSTS[1]]
    with subprocess.Popen(there, stdout=subprocess.PIPE, text=True) as answers:
        assert answers.stdout is not None
        port = answers.stdout.readline().strip()
        done = subprocess.run([*here, port], check=True, capture_output=True, text=True)
        return float(done.stdout)


def nothing_left() -> list[str]:
    """Namespaces of ours, and processes of this run, that are still there; none is right."""
    known = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True)
    left = [line for line in known.stdout.splitlines() if line.split()[0] in NAMES]
    mark = os.environ["FLAMBEAU_DISTRIBUTED_SECRET"].encode()
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            is_other = folder.name.isdigit() and int(folder.name) != os.getpid()
            if is_other and mark in (folder / "environ").read_bytes():
                left.append(f"process {folder.name}")
    return left


def agent(node: int, host: str, port: int, script: Path, words: list[str],
          inside: list[str]) -> subprocess.Popen[str]:  # fmt: skip
    """An agent of torchrun, and what it runs, in a namespace if there is one."""
    launcher = [
        sys.executable, "-m", "flambeau.distributed.run", "--nnodes=2", f"--node-rank={node}",
        f"--master-addr={host}", f"--master-port={port}", "--nproc-per-node=2", "--max-restarts=1",
    ]  # fmt: skip
    return subprocess.Popen(
        [*inside, *launcher, str(script), *words], stderr=subprocess.PIPE, text=True
    )


def run(host: str, insides: list[list[str]], port: int, mode: str) -> list[dict[str, float]]:
    """What the four processes have seen."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(TRAINING)
        agents = [
            agent(node, host, port, script, [folder, mode], insides[node]) for node in range(2)
        ]
        try:
            errors = [each.communicate(timeout=240)[1] for each in agents]
        finally:
            for each in agents:
                each.kill()
                each.wait()
        assert [each.returncode for each in agents] == [0, 0], "\n".join(errors)
        if mode == "dies":
            assert all("rest" in error for error in errors), errors
        return [json.loads(Path(folder, f"rank{rank}.json").read_text()) for rank in range(4)]


def alone() -> float:
    """The sum of the parameters that one process has in the end."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(TRAINING)
        words = [sys.executable, "-m", "flambeau", "run", str(script), folder, "alone"]
        environment = {name: value for name, value in os.environ.items() if name != "RANK"}
        subprocess.run(words, check=True, env=environment)
        return float(json.loads(Path(folder, "rank0.json").read_text())["total"])


def check(host: str, insides: list[list[str]], delay: float) -> None:
    """Train in four processes, without and with a death.

    Sums are made of what everybody sent after the call began: they take twice the delay at least.
    """
    expected = alone()
    for mode in ("lives", "dies"):
        start = time.monotonic()
        seen = run(host, insides, _free_port(), mode)
        assert [each["size"] for each in seen] == [4] * 4
        assert len({each["total"] for each in seen}) == 1, seen
        assert min(each["seconds"] for each in seen) >= 2 * delay, (seen, "data took another way")
        assert abs(seen[0]["total"] - expected) < 1e-3 * abs(expected) + 1e-4, (seen, expected)
        print(
            f"{mode}: the parameters of one process; {time.monotonic() - start:.1f} s, from step "
            f"{seen[0]['first']} on; all_reduce of 1 MB {seen[0]['seconds'] * 1000:.1f} ms"
        )


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--same-network", action="store_true")
    parser.add_argument("--rate", default="200mbit")
    parser.add_argument("--delay", default="1ms")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ["FLAMBEAU_DISTRIBUTED_SECRET"] = secrets.token_hex(32)
    if options.same_network:
        check("127.0.0.1", [[], []], 0)
        return
    with two_networks(options.rate, options.delay):
        seconds, delay = round_trip(), number_of(options.delay, UNITS)
        print(f"there and back: {seconds * 1000:.2f} ms")
        assert seconds >= 2 * delay, "the link has no such delay"
        check(HOSTS[0], [[*INSIDE, name, *APART] for name in NAMES], delay)


if __name__ == "__main__":
    main()
