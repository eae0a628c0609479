"""Attention's gradients in half types on a GPU: through cuDNN, against their formula, and timed.

    python scripts/gpu_check/attention_gradients.py --out FILE.json [--quick] [--seconds N]

Each case says whether cuDNN computed it, or in its words why not, and how far the result and the
three gradients lie from those in double precision. Where it refuses, other ways of writing the
same graph are tried. Then microseconds of the backward pass of 8 x 12 heads of 512 x 64 in
bfloat16: every engine that is proposed, the whole row, PyTorch's. No case begins after `--seconds`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import flambeau
from flambeau._ops.cuda import attention as rows
from flambeau._runtime.cuda.libraries import cudnn_attention as graphs
from flambeau._runtime.cuda.libraries.cudnn import Wishes
from flambeau._runtime.cuda.libraries.matrices import contiguous
from scripts.gpu_check.libraries import timing

F = flambeau.nn.functional
LAYOUTS = {
    "slices": "queries, keys and values as a projection to all three leaves them",
    "behind": "heads behind tokens, tensors of their own",
    "rows": "heads in front",
}


def drawn(layout, sizes, kind, seed):
    """Queries, keys and values in half precision on the host, and what lies on the device."""
    batch, heads, queries, keys, width = sizes
    rng = np.random.default_rng(seed)

    def numbers(*shape):
        return flambeau.from_numpy(rng.standard_normal(shape, dtype=np.float32)).to(kind)

    if layout == "slices":
        x = numbers(batch, queries, 3, heads, width)
        return [x], lambda x: x.permute(2, 0, 3, 1, 4).unbind(0)
    lengths = queries, keys, keys
    if layout == "behind":
        given = [numbers(batch, length, heads, width) for length in lengths]
        return given, lambda *t: [one.transpose(1, 2) for one in t]
    return [numbers(batch, heads, length, width) for length in lengths], lambda *t: list(t)


def exact(leaves, cut, grad, causal):
    """The result and the gradients of leaves in double precision."""
    given = [leaf.double().requires_grad_() for leaf in leaves]
    q, k, v = cut(*given)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if causal:
        later = flambeau.arange(k.shape[2]) > flambeau.arange(q.shape[2])[:, None]
        scores = scores.masked_fill(later, float("-inf"))
    result = scores.softmax(-1) @ v
    result.backward(grad.double())
    return [result.detach(), *(leaf.grad for leaf in given)]


def checked(layout, sizes, kind, causal):
    """How far a case lies from its formula, and who computed it."""
    leaves, cut = drawn(layout, sizes, kind, 3)
    batch, heads, queries, _, width = sizes
    rng = np.random.default_rng(4)
    shape = batch, heads, queries, width
    grad = flambeau.from_numpy(rng.standard_normal(shape, dtype=np.float32)).to(kind)
    wanted = exact(leaves, cut, grad, causal)
    before, runs = dict(rows.REFUSED), graphs.Backward.run
    through = []

    def run(plan, *arguments):
        through.append(plan)
        runs(plan, *arguments)

    graphs.Backward.run = run
    try:
        given = [leaf.cuda().requires_grad_() for leaf in leaves]
        result = F.scaled_dot_product_attention(*cut(*given), is_causal=causal)
        result.backward(grad.cuda())
        found = [result.detach(), *(leaf.grad for leaf in given)]
    finally:
        graphs.Backward.run = runs
    errors = [
        float((one.cpu().double() - other).abs().max() / max(1e-9, float(other.abs().max())))
        for one, other in zip(found, wanted, strict=True)
    ]
    refused = [text for text in rows.REFUSED if rows.REFUSED[text] != before.get(text)]
    return {"cuDNN": len(through), "refused": refused, "errors": errors}


# ---- other ways of writing the graph


class MaskedFirst(graphs.SlopesGraph):
    """Later keys are blocked before the logarithms of sums are taken off."""

    def weights(self):
        graph, whole = self.graph, self.whole
        scores, scaled, below, weights = (graph.virtual(whole) for _ in range(4))
        graph.multiply(self.query, self.key, scores)
        graph.pointwise("mul", scaled, x=scores, b=self.scale)
        row = graph.tensor(self.row, "float32")
        if self.causal:
            scaled = graphs._later_keys_blocked(graph, scaled, whole)
        graph.pointwise("sub", below, x=scaled, b=row)
        graph.pointwise("exp", weights, x=below)
        return weights


class DirectQueries(graphs.SlopesGraph):
    """The gradient of queries without sums of single precision in memory."""

    def query_slopes(self, slopes):
        graph = self.graph
        keys = graph.virtual(self.asked.attention.key, self.dtype)
        graph.turn(self.key, keys)
        graph.multiply(slopes, keys, graph.tensor(self.asked.of_query))


WAYS = {"as it is": graphs.SlopesGraph, "masked first": MaskedFirst, "direct": DirectQueries}


def tried(sizes, causal):
    """What cuDNN says to each way."""
    batch, heads, queries, keys, width = sizes
    q, k = (contiguous((batch, heads, n, width)) for n in (queries, keys))
    asked = graphs.Attention("bfloat16", q, k, k, q, causal)
    found = {}
    for name, way in WAYS.items():
        try:
            plan = way(graphs.Slopes(asked, q, q, k, k)).made().plan(Wishes(limit=24))
            found[name] = f"{len(plan.found)} engines, {plan.workspace} bytes to work in"
        except Exception as error:
            found[name] = f"{error!r}"[:200]
    return found


# ---- times


def engines(shape):
    """us of each engine that is proposed for slices of one array."""
    x = flambeau.randn(shape[0], shape[2], 3, shape[1], shape[3], device="cuda").bfloat16()
    q, k, v = (one._data for one in x.permute(2, 0, 3, 1, 4).unbind(0))
    out, sums = rows.at_once(q, k, v, True, 0.125, None)
    arrays = [rows.as_array(one) for one in (q, k, v, out)]
    asked = graphs.Slopes(graphs.Attention("bfloat16", *arrays, True), arrays[3], *arrays[:3])
    plan = graphs.SlopesGraph(asked).made().plan(Wishes(limit=24))
    along, wide = flambeau.empty(shape[:3], device="cuda"), flambeau.empty(shape, device="cuda")
    results = flambeau.empty_like(x).permute(2, 0, 3, 1, 4).unbind(0)
    places = [rows.address(one) for one in (q, k, v, out, sums, out, along._data, wide._data)]
    targets = [rows.address(one._data) for one in results]
    found = []
    for handle, workspace in tuple(plan.found):
        plan._forget()
        plan.plan, plan.workspace = handle, workspace
        one = graphs.Backward(plan, True)
        found.append(timing.timed(lambda: one.run(*places, targets, 0.125)))  # noqa: B023
    return found


def times(shape):
    """us of forward and backward, here and under PyTorch."""
    found = {"engines": engines(shape)}
    try:
        import torch
    except ImportError:
        torch = None
    for who, library in (("ours", flambeau), ("torch", torch)):
        if library is None or not library.cuda.is_available():
            continue
        x = library.randn(shape[0], shape[2], 3, shape[1], shape[3], device="cuda").bfloat16()
        x.requires_grad_()
        attend = library.nn.functional.scaled_dot_product_attention
        result = attend(*x.permute(2, 0, 3, 1, 4).unbind(0), is_causal=True)
        grad = library.ones_like(result)
        timer = timing.timed if library is flambeau else partial(timing.torch_timed, torch)
        found[f"{who}, backward"] = timer(
            lambda: library.autograd.grad(result, x, grad, retain_graph=True)  # noqa: B023
        )
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=os.devnull)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=25)
    options = parser.parse_args()
    results = {"cuDNN": graphs.Graph("bfloat16").dnn.version, "cases": {}}
    lengths = ((512, 512), (128, 128), (200, 200), (100, 300))
    if options.quick:
        lengths = ((16, 16), (8, 24))
    widths = (8,) if options.quick else (64, 128)
    cases = product(("bfloat16", "float16"), lengths, LAYOUTS, widths, (True, False))
    end = time.monotonic() + options.seconds
    for kind, (queries, keys), layout, width, causal in cases:
        if time.monotonic() > end or (layout == "slices" and queries != keys):
            continue
        sizes = (2, 3, queries, keys, width)
        name = f"{layout} {queries}x{keys} {width} {kind}{' causal' * causal}"
        try:
            found = checked(layout, sizes, getattr(flambeau, kind), causal)
        except Exception:
            found = {"failed": traceback.format_exc()[-600:]}
        results["cases"][name] = found
        worst = max(found.get("errors", [9]))
        print(f"{name}: {'cuDNN' if found.get('cuDNN') else found} worst {worst:.1e}", flush=True)
    sizes = (2, 2, 16, 16, 8) if options.quick else (2, 4, 512, 512, 64)
    for causal in (True, False):
        results[f"ways, causal {causal}"] = found = tried(sizes, causal)
        print(json.dumps(found), flush=True)
    try:
        results["us"] = times((1, 2, 16, 8) if options.quick else (8, 12, 512, 64))
    except Exception:
        results["us"] = traceback.format_exc()[-600:]
    print(json.dumps(results["us"]), flush=True)
    Path(options.out).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
