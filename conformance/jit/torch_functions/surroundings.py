"""What stands around operators: contexts, marks, checks, tasks.

Each program gets a tensor of 4 by 4.
"""

from typing import List, Tuple

import torch


def autocast_region(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return torch.mm(x, x)


def labelled(x):
    with torch.profiler.record_function("a"):
        y = x * 2
    return y


def labelled_with_arguments(x):
    with torch.autograd.profiler.record_function("a", "b"):
        y = x * 2
    return y


def tracing(x):
    if torch.jit.is_tracing():
        return x
    return x * 2


def scripting(x):
    if torch.jit.is_scripting():
        return x
    return x * 2


def compiling(x):
    if torch.compiler.is_compiling():
        return x
    return x * 2


def asserted(x):
    torch._assert(x.sum() < 100, "big")
    return x


def asserted_dims(x):
    torch._assert(x.dim() == 2, "dims")
    return x


def _product_and_sum(x, y: int):
    return x * y, x + y


def forks_in_a_loop(x):
    fs = torch.jit.annotate(List[torch.jit.Future[Tuple[torch.Tensor, torch.Tensor]]], [])
    for i in range(3):
        fs.append(torch.jit.fork(_product_and_sum, x, i))
    out = []
    for f in fs:
        out.append(torch.jit.wait(f)[0])
    return torch.stack(out)


def _inner(x):
    return torch.jit.wait(torch.jit.fork(_one, x))


def _one(x):
    return x + 1


def forks_in_forks(x):
    return torch.jit.wait(torch.jit.fork(_inner, x))
