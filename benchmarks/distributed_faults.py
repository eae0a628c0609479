"""How long it takes until a process learns what has happened to another one, and what is left.

    python benchmarks/distributed_faults.py                 # the table, each row `--times` times
    python benchmarks/distributed_faults.py --leaks 50      # jobs of torchrun that fail in all ways

A row: rank 1 of 2 meets with its fate while rank 0 waits for it; the time runs from the fate to
the error that rank 0 sees. After a job of torchrun, nothing of it may be left: no process, no port
that listens, no name of shared memory.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.distributed.processes import LIMIT, Processes  # noqa: E402

SOCKETS = {"FLAMBEAU_DISTRIBUTED_SHARED_MEMORY": "0"}
WAIT = "tell('ready')\nwhile True:\n    time.sleep(0.01)\n"
"""What rank 1 does until its fate comes."""
COLLECTIVE = f"""
dist.barrier()
if RANK == 1:
    {WAIT.replace(chr(10), chr(10) + "    ").rstrip()}
tell('ready')
tell(error_of(lambda: dist.all_reduce(torch.ones(300_000))))
"""
BUCKET = """
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(
    torch.nn.Linear(200, 200), torch.nn.Linear(200, 200)), bucket_cap_mb=0.1)
def waits(grad):
    if RANK == 1:
        tell('ready')
        time.sleep(1000)
model.module[0].weight.register_hook(waits)
dist.barrier()
if RANK == 0:
    tell('ready')
tell(error_of(lambda: model(torch.ones(4, 200)).sum().backward()))
"""
CHECKPOINT = """
import flambeau.distributed.checkpoint as dcp
class Waits(dcp.DefaultSavePlanner):
    def resolve_data(self, item):
        if RANK == 1:
            tell('ready')
            time.sleep(1000)
        return super().resolve_data(item)
dist.barrier()
if RANK == 0:
    tell('ready')
state = {f'of {RANK}': torch.ones(1000)}
tell(error_of(lambda: dcp.save(state, checkpoint_id=FOLDER + '/ck', planner=Waits())))
"""
ENDS = {
    "an exception": "raise ValueError('of rank 1')",
    "sys.exit()": "sys.exit()",
    "os._exit()": "os._exit(3)",
}
"""How rank 1 ends by itself, a moment after it has said when."""
BY_ITSELF = """
dist.barrier()
if RANK == 1:
    time.sleep(0.5)
    tell(['at', time.time()])
    END
failed = error_of(lambda: dist.all_reduce(torch.ones(3)))
tell(['seen', time.time(), failed[0]])
time.sleep(1000)
"""
ALONE = """
import os, sys, time, json
from datetime import timedelta
from flambeau import distributed as dist
from flambeau.distributed.transport.mesh import Mesh
rank, folder = int(sys.argv[1]), sys.argv[2]
if rank == 1:
    Mesh._add = lambda *a: (print(json.dumps('ready'), flush=True), time.sleep(1000))
else:
    print(json.dumps('ready'), flush=True)
start = time.monotonic()
try:
    dist.init_process_group('gloo', init_method=f'file://{folder}/meet', rank=rank, world_size=2,
                            timeout=timedelta(seconds=60))
except Exception as error:
    print(json.dumps([str(error).splitlines()[0], time.monotonic() - start]), flush=True)
"""


def after_signal(text: str, number: signal.Signals, **environment: str) -> tuple[float, str]:
    """Seconds from a signal to rank 1 until rank 0 sees an error, and its text."""
    with Processes(text, 2, **environment) as processes:
        for rank in range(2):
            assert processes.line(rank) == "ready"
        time.sleep(0.5)
        start = time.perf_counter()
        processes.signal(1, number)
        error, _ = processes.line(0)
        return time.perf_counter() - start, error


def by_itself(end: str, **environment: str) -> tuple[float, str]:
    """The same for a rank that ends by itself."""
    with Processes(BY_ITSELF.replace("END", end), 2, **environment) as processes:
        _, begin = processes.line(1)
        _, seen, error = processes.line(0)
        return seen - begin, error


def in_the_rendezvous(number: signal.Signals) -> tuple[float, str]:
    """Rank 1 has said where it is, and does not connect."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        all_of = [
            subprocess.Popen([sys.executable, "-c", ALONE, str(rank), folder], env=environment,
                             stdout=subprocess.PIPE, text=True)
            for rank in range(2)
        ]  # fmt: skip
        try:
            for process in all_of:
                assert json.loads(process.stdout.readline()) == "ready"
            time.sleep(1)
            start = time.perf_counter()
            all_of[1].send_signal(number)
            error, _ = json.loads(all_of[0].stdout.readline())
            return time.perf_counter() - start, error
        finally:
            for process in all_of:
                process.kill()
                process.communicate()


STORE = """
import sys, time
from datetime import timedelta
from flambeau.distributed import TCPStore
store = TCPStore('127.0.0.1', 0, None, True, timedelta(seconds=9), wait_for_workers=False)
print(store.port, flush=True)
time.sleep(1000)
"""


def store_killed() -> tuple[float, str]:
    """A process waits for a key while the process that has the store is killed."""
    import threading

    from flambeau.distributed import TCPStore

    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    server = subprocess.Popen([sys.executable, "-c", STORE], env=environment,
                              stdout=subprocess.PIPE, text=True)  # fmt: skip
    store = TCPStore("127.0.0.1", int(server.stdout.readline()), None, False)
    begin: list[float] = []

    def kill() -> None:
        begin.append(time.perf_counter())
        server.kill()

    threading.Timer(0.5, kill).start()
    try:
        store.get("a key that nobody sets")
    except Exception as error:
        return time.perf_counter() - begin[0], str(error).splitlines()[0]
    finally:
        server.kill()
        server.communicate()
    raise AssertionError("the store answered")


def port_in_use() -> tuple[float, str]:
    """A store wants a port on which somebody listens."""
    from flambeau.distributed import TCPStore

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        return timed(lambda: TCPStore("127.0.0.1", other.getsockname()[1], None, True))


def wrong_secret() -> tuple[float, str]:
    """A store is asked by somebody who has another secret."""
    from flambeau.distributed import TCPStore

    variable = "FLAMBEAU_DISTRIBUTED_SECRET"
    os.environ[variable] = "00" * 32
    server = subprocess.Popen([sys.executable, "-c", STORE], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    port = int(server.stdout.readline())
    os.environ[variable] = "11" * 32
    try:
        return timed(lambda: TCPStore("127.0.0.1", port, None, False))
    finally:
        del os.environ[variable]
        server.kill()
        server.communicate()


def timed(function: Callable[[], object]) -> tuple[float, str]:
    """Seconds until a function raises, and what."""
    start = time.perf_counter()
    try:
        function()
    except Exception as error:
        return time.perf_counter() - start, str(error).splitlines()[0]
    raise AssertionError("no error")


def rows() -> dict[str, Callable[[], tuple[float, str]]]:
    """The rows of the table."""
    kill, stop = signal.SIGKILL, signal.SIGSTOP
    table: dict[str, Callable[[], tuple[float, str]]] = {}
    for where, how in (("memory", {}), ("sockets", SOCKETS)):
        table[f"kill -9, {where}"] = lambda how=how: after_signal(COLLECTIVE, kill, **how)
        table[f"SIGSTOP, {where}"] = lambda how=how: after_signal(COLLECTIVE, stop, **how)
        for name, end in ENDS.items():
            table[f"{name}, {where}"] = lambda end=end, how=how: by_itself(end, **how)
        table[f"kill -9 in a bucket, {where}"] = lambda how=how: after_signal(BUCKET, kill, **how)
        table[f"SIGSTOP in a bucket, {where}"] = lambda how=how: after_signal(BUCKET, stop, **how)
        table[f"kill -9 in a checkpoint, {where}"] = (
            lambda how=how: after_signal(CHECKPOINT, kill, **how)
        )  # fmt: skip
    table["kill -9 in the rendezvous"] = lambda: in_the_rendezvous(kill)
    table["store killed"] = store_killed
    table["port in use"] = port_in_use
    table["wrong secret"] = wrong_secret
    return table


# ----- What is left -----

MARK = "FLAMBEAU_FAULTS_MARK"
JOB = """
import os, signal, sys, time, threading
import torch, torch.distributed as dist
dist.init_process_group()
if dist.get_rank() == 0:
    print(os.environ['MASTER_PORT'], flush=True)
fate = sys.argv[1]
for step in range(1000):
    if dist.get_rank() == 1 and step == 3:
        if fate == 'kill': os.kill(os.getpid(), signal.SIGKILL)
        if fate == 'stop': os.kill(os.getpid(), signal.SIGSTOP)
        if fate == 'raise': raise ValueError('fate')
        if fate == 'exit': os._exit(3)
        if fate == 'end': break
    if step == 4 and fate == 'launcher':
        os.kill(os.getppid(), signal.SIGKILL)
    dist.all_reduce(torch.ones(100_000))
"""
FATES = ("kill", "stop", "raise", "exit", "end", "launcher")


def job_with(fate: str) -> list[str]:
    """Run a job of torchrun that fails; what is left of it."""
    mark = str(uuid.uuid4())
    before = set(Path("/dev/shm").iterdir())
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "job.py")
        script.write_text(JOB)
        words = ["--standalone", "--nproc-per-node=2", "--shutdown-timeout=1", str(script), fate]
        done = subprocess.run(
            [sys.executable, "-m", "flambeau.distributed.run", *words], capture_output=True,
            text=True, check=False, timeout=LIMIT,
            env={**os.environ, "PYTHONPATH": str(ROOT), MARK: mark},
        )  # fmt: skip
    assert done.returncode != 0, fate
    time.sleep(0.3)
    left = [f"process {pid}" for pid in _marked(mark)]
    left += [f"shared memory {name}" for name in set(Path("/dev/shm").iterdir()) - before
             if not _is_in_use(name)]  # fmt: skip
    port = int(done.stdout.split()[0])
    with socket.socket() as probe, contextlib.suppress(ConnectionRefusedError):
        probe.connect(("127.0.0.1", port))
        left.append(f"port {port}")
    return left


def _is_in_use(name: Path) -> bool:
    """Whether a process maps a file: it is another program's, since none of the job is left."""
    try:
        found = name.stat()
    except FileNotFoundError:
        return True  # its owner, who was alive, took it away
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}"
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and f" {device} {found.st_ino} " in (
                folder / "maps"
            ).read_text("utf-8"):
                return True
    return False


def _marked(mark: str) -> list[int]:
    """Processes that have a mark in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--leaks", type=int, default=0)
    options = parser.parse_args()
    for number in range(options.leaks):
        fate = FATES[number % len(FATES)]
        print(f"{number + 1:3d} {fate:9s} left: {job_with(fate) or 'nothing'}", flush=True)
    if options.leaks:
        return
    print(f"{'':35s} median    most  what rank 0 sees")
    for name, run in rows().items():
        seen = [run() for _ in range(options.times)]
        seconds = [each for each, _ in seen]
        print(f"{name:35s} {statistics.median(seconds):5.2f} s {max(seconds):5.2f} s  {seen[0][1]}",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
