"""`torch.__config__`: what flambeau is made of, as text."""

import os


def show() -> str:
    """The versions of what it stands on, and what the processor has."""
    from flambeau._environment import report

    return report()


def parallel_info() -> str:
    """How many threads there are, and which variables say so."""
    from flambeau._core.settings import get_num_interop_threads, get_num_threads
    from flambeau._environment import THREAD_VARIABLES

    lines = [f"torch.get_num_threads() : {get_num_threads()}",
             f"torch.get_num_interop_threads() : {get_num_interop_threads()}",
             f"processors : {os.cpu_count()}", "Environment variables:"]  # fmt: skip
    lines += [f"\t{name} : {os.environ.get(name, '[not set]')}" for name in THREAD_VARIABLES]
    return "\n".join(lines) + "\n"
