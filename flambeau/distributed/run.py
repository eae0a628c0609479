"""`torchrun`, `python -m torch.distributed.run`: start a script in many processes.

Each child runs `flambeau run SCRIPT`, so that its `import torch` gives flambeau.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau.distributed.launcher.agent import Interrupted, Job, launch, new_identity

BACKENDS = ("static", "c10d")
NOT_HERE = ("log_dir", "redirects", "tee", "rdzv_conf", "run_path", "virtual_local_rank")


def get_args_parser() -> argparse.ArgumentParser:
    """The options of `torchrun`."""
    parser = argparse.ArgumentParser("torchrun", description="start a script in many processes")

    def add(name: str, default: object, text: str, **more: object) -> None:
        names = dict.fromkeys((name, "--" + name[2:].replace("-", "_")))
        parser.add_argument(*names, default=default, help=text, **more)  # type: ignore[arg-type]

    add("--nnodes", "1", "how many machines")
    add("--nproc-per-node", "1", "how many processes on each: a number, or auto, cpu")
    add("--node-rank", 0, "the rank of this machine, with --rdzv-backend=static", type=int)
    add("--max-restarts", 0, "how often all are started again when one fails", type=int)
    add("--monitor-interval", 0.1, "seconds between looks at the processes", type=float)
    add("--rdzv-backend", "static", "how machines find one another: static or c10d")
    add("--rdzv-endpoint", "", "host:port where they meet")
    add("--rdzv-id", "none", "a name for the job")
    add("--master-addr", "127.0.0.1", "the host of machine 0, with --rdzv-backend=static")
    add("--master-port", 29500, "its port", type=int)
    add("--role", "default", "a name for the processes")
    add("--shutdown-timeout", 30.0, "seconds that processes have to end", type=float)
    for name in NOT_HERE:
        add("--" + name.replace("_", "-"), None, "not implemented")
    parser.add_argument("--standalone", action="store_true", help="one machine, a free port")
    parser.add_argument("-m", "--module", action="store_true", help="the script is a module")
    parser.add_argument("--no-python", "--no_python", action="store_true", help="run it as it is")
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line; None: of this process."""
    return get_args_parser().parse_args(args)


def run(args: argparse.Namespace) -> None:
    """Run what a command line says.

    Raises:
        ChildFailedError: a process failed.
        ValueError: the options do not fit together.
        NotImplementedInFlambeau: an option is not implemented.
    """
    for name in NOT_HERE:
        if getattr(args, name) is not None:
            option = "--" + name.replace("_", "-")
            raise NotImplementedInFlambeau(f"torchrun {option} is not implemented")
    launch(_job(args))


def _job(args: argparse.Namespace) -> Job:
    host, port = _endpoint(args)
    is_static = args.rdzv_backend == "static" and not args.standalone
    identity = args.rdzv_id if args.rdzv_id != "none" and not args.standalone else None
    return Job(
        name=args.training_script, command=_command(args), nodes=_nodes(args),
        processes=_processes(args.nproc_per_node), node=args.node_rank if is_static else -1,
        host=host, port=port, identity=identity or (new_identity() if args.standalone else "none"),
        max_restarts=args.max_restarts, interval=args.monitor_interval,
        grace=args.shutdown_timeout, role=args.role,
    )  # fmt: skip


def _nodes(args: argparse.Namespace) -> int:
    fewest, _, most = args.nnodes.partition(":")
    if args.standalone:
        return 1
    if most and most != fewest:
        raise NotImplementedInFlambeau("torchrun --nnodes MIN:MAX is not implemented: MIN is MAX")
    return int(fewest)


def _processes(asked: str) -> int:
    if asked in {"auto", "cpu"}:
        return os.cpu_count() or 1
    try:
        return int(asked)
    except ValueError:
        raise ValueError(f"Unsupported nproc_per_node value: {asked}") from None


def _endpoint(args: argparse.Namespace) -> tuple[str, int]:
    if args.standalone:
        return "127.0.0.1", 0
    if args.rdzv_backend not in BACKENDS:
        raise NotImplementedInFlambeau(f"torchrun --rdzv-backend={args.rdzv_backend}")
    if not args.rdzv_endpoint:
        return args.master_addr, args.master_port
    host, _, port = args.rdzv_endpoint.rpartition(":")
    return (host, int(port)) if host else (args.rdzv_endpoint, args.master_port)


def _command(args: argparse.Namespace) -> list[str]:
    script = [args.training_script, *args.training_script_args]
    if args.no_python:
        return script
    how = ["-m"] if args.module else []
    return [sys.executable, "-u", "-m", "flambeau", "run", *how, *script]


def main(args: Sequence[str] | None = None) -> None:
    """The command `torchrun`."""
    try:
        run(parse_args(args))
    except Interrupted as interrupted:
        sys.exit(f"torchrun: {interrupted}")


if __name__ == "__main__":
    main()
