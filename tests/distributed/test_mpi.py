"""All collectives over MPI, in four processes that mpiexec starts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SIZE = 4
START = """
import json, sys
from pathlib import Path
import torch
import torch.distributed as dist
dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()
seen = {}
def tell(name, *tensors):
    seen[name] = [x.double().tolist() for x in tensors]
"""
END = """
Path(sys.argv[1], f"{rank}.json").write_text(json.dumps(seen))
dist.destroy_process_group()
"""
COLLECTIVES = """
def own(dtype=torch.float32, count=3):
    return torch.full((count,), rank + 1).to(dtype)
for dtype in (torch.uint8, torch.int64, torch.float32, torch.float64, torch.bfloat16):
    for count in (0, 3, 30_000):
        x = own(dtype, count)
        dist.all_reduce(x)
        tell(f"all_reduce {dtype} {count}", x[:3])
x = own()
dist.broadcast(x, 2)
tell("broadcast", x)
x = own()
dist.reduce(x, 1, dist.ReduceOp.MAX)
tell("reduce", *([x] if rank == 1 else []))
outputs = [torch.zeros(3) for _ in range(size)]
dist.all_gather(outputs, own())
tell("all_gather", *outputs)
whole = torch.zeros(3 * size)
dist.all_gather_into_tensor(whole, own())
tell("all_gather_into_tensor", whole)
outputs = [torch.zeros(3) for _ in range(size)] if rank == 0 else None
dist.gather(own(), outputs, 0)
tell("gather", *(outputs or []))
x = torch.zeros(2)
dist.scatter(x, [torch.full((2,), float(each)) for each in range(size)] if rank == 3 else None, 3)
tell("scatter", x)
x = torch.zeros(2)
dist.reduce_scatter(x, [torch.full((2,), float(each)) for each in range(size)])
tell("reduce_scatter", x)
x = torch.zeros(1)
dist.reduce_scatter_tensor(x, torch.arange(4.0))
tell("reduce_scatter_tensor", x)
outputs = [torch.zeros(1) for _ in range(size)]
dist.all_to_all(outputs, [torch.tensor([rank * 10.0 + each]) for each in range(size)])
tell("all_to_all", *outputs)
x = torch.zeros(4)
dist.all_to_all_single(x, torch.arange(4.0) + 10 * rank)
tell("all_to_all_single", x)
x = torch.zeros(3)
receive = dist.irecv(x, (rank - 1) % size)
dist.isend(own(), (rank + 1) % size).wait()
receive.wait()
tell("ring", x)
listed = [None] * size
dist.all_gather_object(listed, {"rank": rank})
seen["objects"] = listed
work = dist.all_reduce(y := own(), async_op=True)
work.wait()
tell("asynchronous", y)
group = dist.new_group([1, 3])
if rank in (1, 3):
    x = own()
    dist.all_reduce(x, group=group)
    tell("group", x)
dist.barrier()
dist.monitored_barrier()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
model(torch.full((1, 2), float(rank))).sum().backward()
tell("gradient", model.module.weight.grad)
"""


def expected(rank: int) -> dict[str, object]:
    """What a rank should see."""
    ones = [[float(each)] * 3 for each in range(1, 5)]
    seen: dict[str, object] = {
        f"all_reduce torch.{dtype} {count}": [[10.0] * min(count, 3)]
        for dtype in ("uint8", "int64", "float32", "float64", "bfloat16")
        for count in (0, 3, 30_000)
    }
    return seen | {
        "broadcast": [[3.0] * 3],
        "reduce": [[4.0] * 3] if rank == 1 else [],
        "all_gather": ones,
        "all_gather_into_tensor": [[each for part in ones for each in part]],
        "gather": ones if rank == 0 else [],
        "scatter": [[float(rank)] * 2],
        "reduce_scatter": [[4.0 * rank] * 2],
        "reduce_scatter_tensor": [[4.0 * rank]],
        "all_to_all": [[each * 10.0 + rank] for each in range(4)],
        "all_to_all_single": [[each * 10.0 + rank for each in range(4)]],
        "ring": [[float((rank - 1) % 4 + 1)] * 3],
        "objects": [{"rank": each} for each in range(4)],
        "asynchronous": [[10.0] * 3],
        **({"group": [[6.0] * 3]} if rank in (1, 3) else {}),
        "gradient": [[[1.5, 1.5]]],
    }


def run(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run a program under mpiexec; skipped where there is no MPI."""
    pytest.importorskip("mpi4py")
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("there is no mpiexec")
    script = tmp_path / "program.py"
    script.write_text(START + text + END)
    command = [mpiexec, "-n", str(SIZE), sys.executable, "-m", "flambeau", "run", str(script)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False,
                          timeout=300, env=environment)  # fmt: skip


def test_collectives(tmp_path: Path):
    done = run(tmp_path, COLLECTIVES)
    assert done.returncode == 0, done.stderr
    for rank in range(SIZE):
        seen = json.loads((tmp_path / f"{rank}.json").read_text())
        assert seen == expected(rank)


def test_a_process_that_does_not_come(tmp_path: Path):
    done = run(tmp_path, """
from datetime import timedelta
group = dist.new_group(timeout=timedelta(seconds=1))
if rank:
    try:
        dist.all_reduce(torch.ones(3), group=group)
    except RuntimeError as error:
        seen["error"] = str(error).splitlines()[0]
Path(sys.argv[1], f"{rank}.json").write_text(json.dumps(seen))
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
MPI.COMM_WORLD.Abort(0)
""")  # fmt: skip
    assert (tmp_path / "1.json").exists(), done.stderr
    error = json.loads((tmp_path / "1.json").read_text())["error"]
    assert error == (
        "Timed out waiting 1000ms for all_reduce operation to complete: rank 0 has not come"
    )


PIPELINES = """
from torch.distributed import pipelining
WIDTH, LOSS = 300, torch.nn.functional.mse_loss
torch.manual_seed(2)
blocks = [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh())
          for _ in range(2 * size)]
data, target = torch.randn(256, WIDTH), torch.randn(256, WIDTH)

def near(mine, whole, run):
    for block in blocks:
        block.zero_grad()
    run()
    found = [p.grad.clone() for block in mine for p in block.parameters()]
    for block in blocks:
        block.zero_grad()
    LOSS(torch.nn.Sequential(*whole)(data), target).backward()
    wanted = [p.grad for block in mine for p in block.parameters()]
    return all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, wanted, strict=True))

def batch(schedule):
    given = dict(target=target) if rank == size - 1 else {}
    return lambda: schedule.step(*([data] if rank == 0 else []), **given)

for name in ("ScheduleGPipe", "Schedule1F1B"):
    stage = pipelining.PipelineStage(blocks[rank], rank, size, "cpu")
    made = getattr(pipelining, name)(stage, n_microbatches=8, loss_fn=LOSS)
    seen[name] = near([blocks[rank]], blocks[:size], batch(made))
places = [rank, rank + size]
stages = [pipelining.PipelineStage(blocks[n], n, 2 * size, "cpu") for n in places]
made = pipelining.ScheduleInterleaved1F1B(stages, n_microbatches=8, loss_fn=LOSS)
seen["interleaved"] = near([blocks[n] for n in places], blocks, batch(made))
dist.isend(torch.ones(100_000), (rank + 1) % size)
x = torch.zeros(100_000)
dist.recv(x, (rank - 1) % size)
seen["forgotten"] = x.sum().item()
"""


def test_pipelines_of_messages_that_mpi_does_not_buffer(tmp_path: Path):
    """Each microbatch is 38 kB or more; neighbours send to one another at once."""
    done = run(tmp_path, PIPELINES)
    assert done.returncode == 0, done.stderr
    for rank in range(SIZE):
        seen = json.loads((tmp_path / f"{rank}.json").read_text())
        assert seen == {"ScheduleGPipe": True, "Schedule1F1B": True, "interleaved": True,
                        "forgotten": 100_000.0}  # fmt: skip
