"""Whole training steps on a GPU beside PyTorch's: the same models, the same first weights.

    python scripts/gpu_check/training.py --out FILE.json [--quick] [--only REGEX]

Each line: milliseconds of a step here and under PyTorch (medians between events), the losses of the
first steps of both, and which rows the host computed. `--quick` takes small sizes; `--profile F`
writes into the folder F for each case which functions of Python its steps here take their time in.
"""

from __future__ import annotations

import argparse
import cProfile
import faulthandler
import json
import os
import pstats
import re
import statistics
import sys
import time
import traceback
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import flambeau
from flambeau._ops.cuda import host


def filled(torch, module, seed):
    """The same weights in both libraries."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            shape = tuple(parameter.shape)
            scale = 0.6 / max(np.prod(shape[1:]), 1) ** 0.5 if len(shape) > 1 else 0.05
            numbers = rng.standard_normal(shape, dtype=np.float32) * scale
            parameter.copy_(torch.from_numpy(numbers.astype(np.float32)))
    return module.cuda()


def mlp(torch, small):
    nn = torch.nn
    width, batch = (64, 8) if small else (512, 256)
    layers = []
    for _ in range(6):
        layers += [nn.Linear(width, width), nn.GELU()]
    model = filled(torch, nn.Sequential(*layers, nn.Linear(width, 10)), 1)
    rng = np.random.default_rng(2)
    x = torch.from_numpy(rng.standard_normal((batch, width), dtype=np.float32)).cuda()
    y = torch.from_numpy(rng.integers(0, 10, batch)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    return model, optimizer, lambda: nn.functional.cross_entropy(model(x), y)


def checkerboard(torch, small):
    """1x1 convolutions over an image of coordinates, as in the documents on mixed precision."""
    nn = torch.nn
    size, width = (16, 16) if small else (512, 256)
    layers = [nn.Conv2d(2, width, 1), nn.ReLU()]
    for _ in range(3):
        layers += [nn.Conv2d(width, width, 1), nn.ReLU()]
    model = filled(torch, nn.Sequential(*layers, nn.Conv2d(width, 1, 1)), 3)
    ticks = np.linspace(-1, 1, size, dtype=np.float32)
    grid = np.stack(np.meshgrid(ticks, ticks))[None]
    board = (np.indices((size, size)) // max(size // 8, 1)).sum(0) % 2
    x = torch.from_numpy(grid).cuda()
    y = torch.from_numpy(board.astype(np.float32)[None, None]).cuda()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    loss = nn.functional.binary_cross_entropy_with_logits
    return model, optimizer, lambda: loss(model(x), y)


def gpt(layers, width, heads, batch, length, vocabulary):
    def made(torch, small):
        nn, functional = torch.nn, torch.nn.functional
        n, w, h, b, t, v = (2, 32, 2, 2, 16, 64) if small else (
            layers, width, heads, batch, length, vocabulary)  # fmt: skip

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm1, self.norm2 = nn.LayerNorm(w), nn.LayerNorm(w)
                self.qkv, self.out = nn.Linear(w, 3 * w), nn.Linear(w, w)
                self.up, self.down = nn.Linear(w, 4 * w), nn.Linear(4 * w, w)

            def forward(self, x):
                parts = self.qkv(self.norm1(x)).view(x.shape[0], x.shape[1], 3, h, w // h)
                q, k, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
                a = functional.scaled_dot_product_attention(q, k, value, is_causal=True)
                x = x + self.out(a.transpose(1, 2).reshape(x.shape))
                return x + self.down(functional.gelu(self.up(self.norm2(x))))

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.places = nn.Embedding(v, w), nn.Embedding(t, w)
                self.blocks = nn.Sequential(*[Block() for _ in range(n)])
                self.norm, self.head = nn.LayerNorm(w), nn.Linear(w, v, bias=False)

            def forward(self, tokens):
                places = torch.arange(tokens.shape[1], device=tokens.device)
                return self.head(self.norm(self.blocks(self.words(tokens) + self.places(places))))

        model = filled(torch, Net(), 4)
        rng = np.random.default_rng(5)
        tokens = torch.from_numpy(rng.integers(0, v, (b, t + 1))).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), 3e-4)

        def loss():
            logits = model(tokens[:, :-1])
            return functional.cross_entropy(logits.view(-1, v), tokens[:, 1:].reshape(-1))

        return model, optimizer, loss

    return made


def convnet(torch, small):
    """A small residual network: convolutions, batch norm, pooling."""
    nn, functional = torch.nn, torch.nn.functional
    width, batch, size = (8, 2, 16) if small else (64, 64, 32)

    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.a, self.b = (nn.Conv2d(c, c, 3, padding=1, bias=False) for _ in range(2))
            self.n, self.m = nn.BatchNorm2d(c), nn.BatchNorm2d(c)

        def forward(self, x):
            return functional.relu(x + self.m(self.b(functional.relu(self.n(self.a(x))))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(3, width, 3, padding=1)
            self.blocks = nn.Sequential(*[Block(width) for _ in range(4)])
            self.head = nn.Linear(width, 10)

        def forward(self, x):
            x = functional.max_pool2d(self.blocks(self.first(x)), 2)
            return self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1))

    model = filled(torch, Net(), 6)
    rng = np.random.default_rng(7)
    x = torch.from_numpy(rng.standard_normal((batch, 3, size, size), dtype=np.float32)).cuda()
    y = torch.from_numpy(rng.integers(0, 10, batch)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    return model, optimizer, lambda: functional.cross_entropy(model(x), y)


def resnet(torch, small):
    """ResNet-50 (He et al. 2015) on images of 224 x 224."""
    nn, functional = torch.nn, torch.nn.functional
    width, batch, size, depths = (4, 2, 32, (1, 1)) if small else (64, 32, 224, (3, 4, 6, 3))

    class Bottleneck(nn.Module):
        def __init__(self, before, inner, stride):
            super().__init__()
            self.convs = nn.ModuleList([
                nn.Conv2d(before, inner, 1, bias=False),
                nn.Conv2d(inner, inner, 3, stride, 1, bias=False),
                nn.Conv2d(inner, 4 * inner, 1, bias=False),
            ])  # fmt: skip
            self.norms = nn.ModuleList([nn.BatchNorm2d(n) for n in (inner, inner, 4 * inner)])
            self.other = None
            if stride != 1 or before != 4 * inner:
                self.other = nn.Sequential(nn.Conv2d(before, 4 * inner, 1, stride, bias=False),
                                           nn.BatchNorm2d(4 * inner))  # fmt: skip

        def forward(self, x):
            y = functional.relu(self.norms[0](self.convs[0](x)))
            y = functional.relu(self.norms[1](self.convs[1](y)))
            y = self.norms[2](self.convs[2](y))
            return functional.relu(y + (x if self.other is None else self.other(x)))

    layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
              nn.MaxPool2d(3, 2, 1)]  # fmt: skip
    before = width
    for stage, depth in enumerate(depths):
        for block in range(depth):
            stride = 2 if stage and not block else 1
            layers.append(Bottleneck(before, width << stage, stride))
            before = 4 * (width << stage)
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000)]
    model = filled(torch, nn.Sequential(*layers), 8)
    rng = np.random.default_rng(9)
    x = torch.from_numpy(rng.standard_normal((batch, 3, size, size), dtype=np.float32)).cuda()
    y = torch.from_numpy(rng.integers(0, 1000, batch)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    return model, optimizer, lambda: functional.cross_entropy(model(x), y)


CASES = {
    "mlp": (mlp, None),
    "gpt 4x128": (gpt(4, 128, 4, 8, 128, 512), None),
    "checkerboard 512 float32": (checkerboard, None),
    "checkerboard 512 float16": (checkerboard, "float16"),
    "convnet 32x32": (convnet, None),
    "gpt 12x768 bfloat16": (gpt(12, 768, 12, 8, 512, 50304), "bfloat16"),
    "gpt 12x768 float32": (gpt(12, 768, 12, 8, 512, 50304), None),
    "resnet 50 float32": (resnet, None),
    "resnet 50 float16": (resnet, "float16"),
}


GRAPHS = {f"{name}, graph": CASES[name] for name in CASES}
CASES |= GRAPHS


def stepper(torch, case, kind, small, graph=False):
    """A function that makes one training step and gives the loss. Graphs have no scaler: its steps
    ask the host whether to be made."""
    model, optimizer, loss_of = case(torch, small)
    if graph:  # numbers of its steps do not change
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda") if kind == "float16" and not graph else None

    def step():
        optimizer.zero_grad(set_to_none=True)
        if kind is None:
            loss = loss_of()
        else:
            with torch.autocast("cuda", dtype=getattr(torch, kind)):
                loss = loss_of()
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        return loss

    return step


def captured(torch, step):
    """A function that replays a step, which a graph has recorded; it gives the loss."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay():
        graph.replay()
        return loss

    return replay


def measured(torch, step, seconds):
    """(the losses of 3 steps, median milliseconds of a step, host milliseconds of one)."""
    start = time.perf_counter()
    losses = [step().item() for _ in range(3)]
    torch.cuda.synchronize()
    first = time.perf_counter() - start
    times, host = [], []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end and len(times) < 30 or len(times) < 3:
        begin, done = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        at = time.perf_counter()
        step()
        host.append((time.perf_counter() - at) * 1e3)
        done.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(done))
    return {"losses": losses, "ms": statistics.median(times), "host ms": statistics.median(host),
            "first 3 steps s": first}  # fmt: skip


def profiled(torch, step, path, steps=5):
    """Writes which functions the host's time of some steps goes to."""
    profile = cProfile.Profile()
    torch.cuda.synchronize()
    profile.enable()
    for _ in range(steps):
        step()
    profile.disable()
    torch.cuda.synchronize()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as text:
        statistics_of = pstats.Stats(profile, stream=text)
        statistics_of.sort_stats("tottime").print_stats(60)
        statistics_of.sort_stats("cumulative").print_stats(60)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=os.devnull)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--profile", metavar="FOLDER")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        torch = None
    if torch is not None and not torch.cuda.is_available():
        torch = None
    faulthandler.enable()
    results = {}
    for name in CASES:
        if not re.search(options.only, name):
            continue
        found = results[name] = {}
        for who, library in (("flambeau", flambeau), ("torch", torch)):
            if library is not None:
                found[who] = tried(name, library, options)
        found["computed by the host"] = dict(host.CALLS.most_common(12))
        Path(options.out).write_text(json.dumps(results, indent=1))
        print(name, json.dumps(found)[:1500], flush=True)


def tried(name, library, options):
    """What a case takes with a library, or how it fails."""
    case, kind = CASES[name]
    try:
        if library is flambeau:
            host.CALLS.clear()
        library.backends.cuda.matmul.allow_tf32 = True
        step = stepper(library, case, kind, options.quick, name in GRAPHS)
        if name in GRAPHS:
            step = captured(library, step)
        found = measured(library, step, 0.01 if options.quick else options.seconds)
        if options.profile and library is flambeau:
            name = re.sub(r"\W+", "_", name)
            profiled(library, step, Path(options.profile) / f"{name}.txt")
        del step
        library.cuda.empty_cache()
        return found
    except Exception as error:
        lines = traceback.format_exc().strip().splitlines()
        return {"error": f"{error!r}"[:300], "at": lines[-6:]}


if __name__ == "__main__":
    main()
