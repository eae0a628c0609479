"""`torchrun`: start a script as the only process of its kind.

More than one process needs process groups, which are missing: such a call is refused. What the
script reads from its environment (RANK, WORLD_SIZE, LOCAL_RANK, ...) is set for one process.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

from flambeau._core.missing import NotImplementedInFlambeau

ONE = ("1", "1:1", "auto", "cpu")


def get_args_parser() -> argparse.ArgumentParser:
    """The options of `torchrun` that mean something to a single process."""
    parser = argparse.ArgumentParser("torchrun", description="start a script in one process")
    add = parser.add_argument
    for name in ("--nnodes", "--nproc-per-node", "--node-rank", "--max-restarts"):
        default = "0" if name in {"--node-rank", "--max-restarts"} else "1"
        add(name, "--" + name[2:].replace("-", "_"), default=default)
    add("--rdzv-backend", "--rdzv_backend", default="static")
    add("--rdzv-endpoint", "--rdzv_endpoint", default="")
    add("--rdzv-id", "--rdzv_id", default="none")
    add("--master-addr", "--master_addr", default="127.0.0.1")
    add("--master-port", "--master_port", type=int, default=29500)
    add("--standalone", action="store_true")
    add("-m", "--module", action="store_true", help="the script is the name of a module")
    add("training_script")
    add("training_script_args", nargs=argparse.REMAINDER)
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line; None: of this process."""
    return get_args_parser().parse_args(args)


def run(args: argparse.Namespace) -> None:
    """Run the script here.

    Raises:
        NotImplementedInFlambeau: it asks for more than one process.
    """
    if args.nnodes not in ONE or args.nproc_per_node not in ONE:
        raise NotImplementedInFlambeau(
            f"torchrun with {args.nnodes} nodes of {args.nproc_per_node} processes: flambeau has "
            "no process groups, so a program runs in one process"
        )
    os.environ.update(_environment(args))
    sys.argv = [args.training_script, *args.training_script_args]
    if args.module:
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(args.training_script, run_name="__main__", alter_sys=True)
        return
    sys.path.insert(0, str(Path(args.training_script).resolve().parent))
    runpy.run_path(args.training_script, run_name="__main__")


def _environment(args: argparse.Namespace) -> dict[str, str]:
    """What torchrun tells each process; an id tells that it was started in this way."""
    identity = str(uuid.uuid4()) if args.standalone else args.rdzv_id
    zeros = ("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "TORCHELASTIC_RESTART_COUNT")
    ones = ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE")
    return {
        **dict.fromkeys(zeros, "0"),
        **dict.fromkeys(ones, "1"),
        "ROLE_NAME": "default",
        "MASTER_ADDR": args.master_addr,
        "MASTER_PORT": str(args.master_port),
        "TORCHELASTIC_RUN_ID": identity,
        "TORCHELASTIC_MAX_RESTARTS": args.max_restarts,
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }


def main(args: Sequence[str] | None = None) -> None:
    """The command `torchrun`, and `python -m torch.distributed.run`."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
