"""Some four hundred operators where they take a time, forward and backward, beside torch.

Usage: python benchmarks/wide.py [patterns of groups or names] [--threads N] [--below RATIO]

Not what is fastest, but what nobody has looked at: a case with a ratio far below 1 lacks a kernel.
A case is a line of a table: `arguments -> call`, where the arguments are named a, b, c, d. Both
libraries run it in processes of their own, one after the other; a time is the best of some. Shown
are torch's time over ours (above 1: ours is faster), the worst first, and the geometric mean.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from harness import show

BUDGET = 0.2
"""Seconds for the repetitions of a case, of which the best counts."""

TABLES = {
    "linear algebra": """
        randn(256, 256) -> linalg.{inv det svdvals}(a)
        randn(2000, 8, 8) -> linalg.{inv det svdvals matrix_exp}(a)
        definite(256, 256) -> linalg.{cholesky eigvalsh}(a)
        definite(2000, 8, 8) -> linalg.{cholesky eigvalsh}(a)
        randn(128, 128) -> linalg.{pinv matrix_exp}(a)
        randn(96, 96) -> linalg.eigvals(a)
        randn(256, 256), randn(256, 32) -> linalg.solve(a, b)
        randn(2000, 8, 8), randn(2000, 8, 1) -> linalg.solve(a, b)
        triangle(256), randn(256, 64) -> linalg.solve_triangular(a, b, upper=True)
        randn(256, 8), triangle(256) -> torch.cholesky_solve(a, b, upper=True)
        randn(256, 256) -> linalg.lu_factor(a)[0]
        randn(128, 64), rand(64) -> linalg.householder_product(a, b)
        randn(300, 50), randn(300, 4) -> linalg.lstsq(a, b)[0]
        randn(128, 128) -> linalg.matrix_power(a, 5)
        randn(100000, 3) -> linalg.cross(a, a.flip(0))
        randn(10000) -> linalg.vander(a, N=6)
    """,
    "products": """
        randn(512, 256), randn(256, 256) -> a @ b
        randn(64, 64, 64), randn(64, 64, 64) -> torch.bmm(a, b)
        randn(4096, 8, 8), randn(4096, 8, 8) -> torch.bmm(a, b)
        randn(1024, 1024), randn(1024) -> torch.{mv inner}(a, b)
        randn(1024, 1024), randn(1024), randn(1024) -> torch.addr(a, b, c)
        randn(1024), randn(1024) -> torch.outer(a, b)
        randn(32, 32), randn(32, 32) -> torch.kron(a, b)
        randn(16, 1, 64, 64), randn(1, 8, 64, 64) -> a @ b
        randn(64, 32, 32), randn(32, 32, 64) -> torch.tensordot(a, b, 2)
        randn(32, 64, 64), randn(32, 64, 64) -> torch.einsum('bij,bkj->bik', a, b)
        numbers(0, 9, 128, 128), numbers(0, 9, 128, 128) -> a @ b
    """,
    "distances": """
        randn(512, 64), randn(512, 64) -> torch.cdist(a, b)
        randn(256, 64), randn(256, 64) -> torch.cdist(a, b, 1)
        randn(512, 32) -> F.pdist(a)
        randn(2048, 256), randn(2048, 256) -> F.{cosine_similarity pairwise_distance}(a, b)
        randn(1000, 3) -> a[:, None] - a
    """,
    "Fourier": """
        randn(256, 512) -> fft.{fft rfft ifft hfft fft2 rfft2}(a)
        randn(1048576) -> fft.rfft(a)
        randn(64, 1009) -> fft.fft(a)
        randn(8, 16000) -> torch.stft(a, 400, 160, window=torch.ones(400), return_complex=True)
    """,
    "order": """
        randn(1048576) -> torch.sort(a)[0]
        randn(4096, 256) -> torch.sort(a)[0]
        randn(256, 4096) -> a.topk(10)[0]
        randn(256, 4096) -> a.{median nanmedian}(1)[0]
        randn(256, 1024) -> a.quantile(0.3, 1)
        numbers(0, 5000, 524288) -> torch.{unique unique_consecutive bincount}(a)
        numbers(0, 3, 20000, 6) -> torch.unique(a, dim=0)
        numbers(0, 50, 256, 1024) -> torch.mode(a)
        randn(10000).sort()[0], randn(262144) -> torch.searchsorted(a, b)
        randn(262144) -> torch.{histc histogram}(a, 100)
        numbers(0, 5000, 262144), numbers(0, 5000, 1000) -> torch.isin(a, b)
    """,
    "scans": """
        rand(1024, 1024) -> torch.{cumsum cumprod logcumsumexp}(a, 1)
        rand(1024, 1024) -> torch.{cumsum cumprod logcumsumexp}(a, 0)
        randn(1024, 1024) -> torch.{cummax cummin}(a, 1)[0]
        randn(1024, 1024) -> torch.{diff trapezoid cumulative_trapezoid}(a)
        randn(1024, 1024) -> torch.gradient(a)[0]
    """,
    "indexing": """
        randn(1024, 1024), numbers(0, 1024, 1024, 512) -> a.gather(1, b)
        randn(1024, 1024), numbers(0, 1024, 1024, 512), randn(1024, 512) -> a.{scatter scatter_add}(1, b, c)
        randn(5000), numbers(0, 5000, 524288), randn(524288) -> a.scatter_add(0, b, c)
        randn(1024, 256), numbers(0, 1024, 2048, 256), randn(2048, 256) -> a.scatter_reduce(0, b, c, 'amax')
        randn(1024, 256), numbers(0, 1024, 2048, 256), randn(2048, 256) -> a.scatter_reduce(0, b, c, 'mean')
        randn(10000, 128), numbers(0, 10000, 5000) -> a.index_select(0, b)
        randn(1000, 128), numbers(0, 1000, 5000), randn(5000, 128) -> a.index_add(0, b, c)
        randn(1000, 128), numbers(0, 1000, 5000), randn(5000, 128) -> a.index_reduce(0, b, c, 'amax')
        randn(5000, 64), numbers(0, 5000, 10000), randn(10000, 64) -> a.index_put((b,), c, accumulate=True)
        randn(10000, 128), numbers(0, 10000, 5000) -> a[b]
        randn(1024, 1024), numbers(0, 1024, 500) -> a[:, b]
        randn(1024, 1024) -> a[a > 0]
        randn(1024, 1024) -> (a > 0).nonzero()
        randn(1024, 1024) -> a.masked_fill(a > 0, 0.0)
        randn(1024, 1024), randn(1048576) -> a.masked_scatter(a > 0, b)
        randn(10000, 128), numbers(0, 10000, 64, 64) -> F.embedding(b, a)
        randn(10000, 128), numbers(0, 10000, 512, 16) -> F.embedding_bag(b, a, mode='{sum mean max}')
        randn(10000, 64) -> torch.segment_reduce(a, 'sum', lengths=torch.full((100,), 100))
    """,
    "arranging": """
        randn(8, 16, 64, 64) -> F.pad(a, (3, 2, 1, 2), mode='{constant reflect replicate circular}')
        randn(512, 512), randn(512, 512) -> torch.{cat stack}([a, b], 1)
        randn(256, 256) -> a.{repeat tile}(4, 4)
        randn(1024, 1024) -> a.roll((3, 5), (0, 1))
        randn(1024, 1024) -> a.flip(1)
        randn(1024, 1024) -> torch.{tril rot90 t_copy}(a)
        randn(1024, 256) -> a.repeat_interleave(4, 0)
        randn(8, 16, 64, 64) -> a.permute(0, 2, 3, 1).contiguous()
        randn(256, 1024) -> a.unfold(1, 16, 8).contiguous()
        randn(1024, 1024) -> a.as_strided((512, 512), (1, 1024)).contiguous()
        randn(8, 16, 64, 64) -> F.{pixel_shuffle pixel_unshuffle}(a, 2)
        randn(8, 16, 64, 64) -> F.channel_shuffle(a, 4)
        randn(300) -> torch.combinations(a)
        randn(64, 256) -> torch.diag_embed(a)
    """,
    "pools": """
        randn(8, 16, 64, 64) -> F.{max_pool2d avg_pool2d}(a, 2)
        randn(8, 16, 64, 64) -> F.{max_pool2d avg_pool2d}(a, 3, 1, 1)
        randn(2, 8, 16, 32, 32) -> F.{max_pool3d avg_pool3d}(a, 2)
        randn(16, 32, 2048) -> F.{max_pool1d avg_pool1d}(a, 3, 2)
        randn(8, 16, 64, 64) -> F.{adaptive_avg_pool2d adaptive_max_pool2d}(a, 7)
        randn(2, 8, 16, 32, 32) -> F.{adaptive_avg_pool3d adaptive_max_pool3d}(a, 5)
        rand(8, 16, 64, 64) -> F.lp_pool2d(a, 2, 3)
        randn(8, 16, 64, 64) -> F.fractional_max_pool2d(a, 2, output_size=20)
    """,
    "convolutions": """
        randn(8, 32, 1024), randn(64, 32, 5) -> F.conv1d(a, b)
        randn(8, 32, 32, 32), randn(64, 32, 3, 3) -> F.conv2d(a, b)
        randn(2, 8, 16, 16, 16), randn(16, 8, 3, 3, 3) -> F.conv3d(a, b)
        randn(8, 64, 32, 32), randn(64, 1, 3, 3) -> F.conv2d(a, b, groups=64, padding=1)
        randn(8, 64, 32, 32), randn(64, 16, 3, 3) -> F.conv2d(a, b, groups=4, padding=1)
        randn(8, 32, 32, 32), randn(32, 32, 3, 3) -> F.conv2d(a, b, dilation=2, padding=2)
        randn(8, 32, 16, 16), randn(32, 32, 4, 4) -> F.conv_transpose2d(a, b, stride=2, padding=1)
        randn(8, 64, 1024), randn(64, 1, 7) -> F.conv1d(a, b, groups=64, padding=3)
        randn(8, 16, 64, 64) -> F.unfold(a, 3, padding=1)
        randn(8, 144, 4096) -> F.fold(a, (64, 64), 3, padding=1)
    """,
    "images": """
        randn(8, 16, 64, 64) -> F.interpolate(a, scale_factor=2, mode='{nearest bilinear bicubic area}')
        randn(8, 16, 64, 64) -> F.interpolate(a, size=(37, 41), mode='{nearest bilinear bicubic area}')
        last(8, 16, 64, 64) -> F.interpolate(a, scale_factor=2, mode='bilinear')
        randn(8, 16, 64, 64) -> F.interpolate(a, size=(37, 41), mode='bilinear', antialias=True)
        randn(2, 4, 16, 32, 32) -> F.interpolate(a, scale_factor=2, mode='{nearest trilinear}')
        randn(16, 32, 1024) -> F.interpolate(a, scale_factor=2, mode='linear')
        randn(4, 3, 128, 128), positions(4, 128) -> F.grid_sample(a, b, mode='{bilinear nearest bicubic}', align_corners=False)
        randn(4, 3, 128, 128), positions(4, 128) -> F.grid_sample(a, b, padding_mode='border', align_corners=False)
        randn(4, 2, 3) -> F.affine_grid(a, (4, 3, 128, 128), align_corners=False)
    """,
    "norms": """
        randn(8, 16, 64, 64) -> F.batch_norm(a, None, None, training=True)
        last(8, 16, 64, 64) -> F.batch_norm(a, None, None, training=True)
        randn(2048, 512) -> F.{layer_norm rms_norm}(a, (512,))
        randn(8, 16, 64, 64) -> F.group_norm(a, 4)
        randn(8, 16, 64, 64) -> F.instance_norm(a)
        randn(8, 16, 64, 64) -> F.local_response_norm(a, 5)
        randn(2048, 512) -> F.normalize(a, dim=1)
        randn(1024, 256) -> a.renorm(2, 0, 1.0)
    """,
    "losses": """
        randn(4096, 256), numbers(0, 256, 4096) -> F.{cross_entropy nll_loss multi_margin_loss}(a, b)
        randn(4, 20, 64, 64), numbers(0, 20, 4, 64, 64) -> F.cross_entropy(a, b)
        randn(2048, 256), rand(2048, 256) -> F.{cross_entropy mse_loss l1_loss huber_loss}(a, b)
        rand(2048, 256), rand(2048, 256) -> F.{binary_cross_entropy poisson_nll_loss}(a, b)
        randn(2048, 256), rand(2048, 256) -> F.binary_cross_entropy_with_logits(a, b)
        rand(2048, 256), rand(2048, 256) -> F.kl_div(a.log(), b)
        randn(2048, 128), randn(2048, 128), randn(2048, 128) -> F.triplet_margin_loss(a, b, c)
        randn(512, 64), numbers(0, 64, 512, 64) -> F.multilabel_margin_loss(a, b)
        randn(100, 16, 30), numbers(1, 30, 16, 20) -> F.ctc_loss(a.log_softmax(2), b, [100] * 16, [20] * 16)
    """,
    "layers": """
        randn(32, 16, 64) -> {LSTM GRU RNN}(64, 128)(a)[0]
        randn(8, 64, 128) -> TransformerEncoderLayer(128, 8, 256, 0.0, batch_first=True)(a)
        randn(4, 8, 256, 32) -> F.scaled_dot_product_attention(a, a, a, is_causal=True)
        randn(256, 32), randn(256, 32) -> Bilinear(32, 32, 32)(a, b)
    """,
    "functions": """
        rand(262144) -> torch.{exp log erf erfinv lgamma digamma expm1 tan sinh atanh i0 sinc logit}(a)
        rand(65536) -> special.{i0e i1 i1e ndtri log_ndtr erfcx entr bessel_j0 bessel_y1 airy_ai}(a)
        rand(65536) -> torch.polygamma(2, a)
        rand(524288), rand(524288) -> torch.{atan2 pow fmod hypot logaddexp xlogy nextafter copysign}(a, b)
        rand(524288), rand(524288) -> special.gammainc(a, b)
        randn(524288) -> F.{gelu mish selu hardswish softplus silu}(a)
        randn(1024, 1024) -> torch.{softmax log_softmax}(a, 1)
        randn(1024, 1024) -> torch.{softmax log_softmax}(a, 0)
        randn(1024, 1024) -> F.glu(a)
        complexes(512, 512), complexes(512, 512) -> torch.{mul add div matmul}(a, b)
        complexes(512, 512) -> torch.{abs angle exp log sqrt tanh reciprocal}(a)
    """,
    "whole numbers": """
        numbers(1, 1000, 512, 512), numbers(1, 50, 512, 512) -> torch.{bitwise_and floor_divide remainder gcd lcm mul eq}(a, b)
        numbers(1, 1000, 1024, 1024) -> a.{sum cumsum}(1)
        numbers(1, 1000, 1024, 1024) -> a.{sort max}(1)[0]
        numbers(1, 100, 1024, 1024) -> a.to(torch.{float32 float16 bfloat16 bool int8})
        randn(1024, 1024) -> a.to(torch.{float64 float16 bfloat16 int64})
    """,
    "reductions": """
        rand(1024, 1024) -> torch.{sum mean std prod logsumexp amax norm}(a, dim=1)
        rand(1024, 1024) -> torch.{sum mean std prod logsumexp amax norm}(a, dim=0)
        rand(1024, 1024) -> torch.{sum mean std prod amax norm argmin}(a)
        rand(1024, 1024) -> torch.{max min}(a, 1)[0]
        rand(1024, 1024) -> torch.{argmax count_nonzero any}(a, 0)
        randn(64, 2048) -> torch.{cov corrcoef}(a)
        randn(64, 256, 64) -> a.sum(1)
    """,
    "random": """
        zeros(524288) -> a.{normal_ uniform_ exponential_ cauchy_ log_normal_}()
        rand(524288) -> torch.bernoulli(a)
        rand(64, 1000) -> torch.multinomial(a, 100)
        rand(64, 1000) -> torch.multinomial(a, 100, True)
        rand(131072) + 0.5 -> torch._standard_gamma(a)
        rand(131072) * 10 -> torch.poisson(a)
        torch.full((65536,), 20.0), rand(65536) -> torch.binomial(a, b)
        randn(1048576) -> F.{dropout alpha_dropout}(a, 0.3, True)
        zeros(1) -> torch.randperm(524288)
    """,
    "half types": """
        randn(512, 512).bfloat16() -> torch.{exp tanh}(a)
        randn(512, 512).bfloat16() -> torch.{softmax sum cumsum}(a, 1)
        randn(512, 512).bfloat16() -> torch.sort(a)[0]
        randn(512, 512).half() -> F.{gelu softplus}(a)
        randn(256, 256).bfloat16() -> a @ a
        randn(4, 32, 32, 32).bfloat16(), randn(32, 32, 3, 3).bfloat16() -> F.conv2d(a, b)
        randn(8, 16, 64, 64).bfloat16() -> F.max_pool2d(a, 2)
    """,
    "transforms": """
        randn(64, 32) -> func.vmap(func.grad(lambda x: (x.sin() * x).sum()))(a)
        randn(64) -> func.{jacrev jacfwd}(lambda x: x.sin() * x.sum())(a)
        randn(24) -> func.hessian(lambda x: (x.sin() * x).sum())(a)
    """,
    "Python": """
        randn(200) -> [x.item() for x in a]
        randn(65536) -> a.tolist()
        randn(1024, 64) -> a.unbind(0)
        randn(30, 30) -> repr(a)
        zeros(1) -> torch.tensor(list(range(20000)))
    """,
}


def cases() -> Iterator[tuple[str, str, str, str]]:
    """Group, name, arguments, call: a line with words in braces is one case for each word."""
    for group, table in TABLES.items():
        for line in filter(None, map(str.strip, table.splitlines())):
            arguments, call = line.split(" -> ")
            choice = re.search(r"\{([^}]*)\}", call)
            words = choice[1].split() if choice else [""]
            for word in words:
                one = call if choice is None else call.replace(choice[0], word)
                yield group, f"{one} of {arguments}", arguments, one


def names(torch: Any) -> dict[str, Any]:
    """What the tables speak of."""

    def definite(*shape: int) -> Any:
        a = torch.randn(*shape)
        return a @ a.mT + torch.eye(shape[-1]) * shape[-1]

    def positions(images: int, size: int) -> Any:
        theta = torch.eye(3)[:2] + torch.rand(images, 2, 3) / 20
        shape = (images, 1, size, size)
        return torch.nn.functional.affine_grid(theta, shape, align_corners=False)

    return {
        "torch": torch, "F": torch.nn.functional, "linalg": torch.linalg, "fft": torch.fft,
        "special": torch.special, "func": torch.func, "rand": torch.rand, "randn": torch.randn,
        "zeros": torch.zeros, "definite": definite, "positions": positions,
        "numbers": lambda low, high, *shape: torch.randint(low, high, shape),
        "complexes": lambda *shape: torch.complex(torch.randn(*shape), torch.randn(*shape)),
        "triangle": lambda n: torch.randn(n, n).triu() / n + torch.eye(n),
        "last": lambda *shape: torch.randn(*shape).contiguous(memory_format=torch.channels_last),
        **{name: getattr(torch.nn, name)
           for name in ("LSTM", "GRU", "RNN", "TransformerEncoderLayer", "Bilinear")},
    }  # fmt: skip


def best(step: Callable[[], Any]) -> float:
    """The best of as many repetitions as fit in the budget."""
    step()
    start = time.perf_counter()
    step()
    count = max(3, min(30, int(BUDGET / max(time.perf_counter() - start, 1e-6))))
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    return min(taken)


def times(torch: Any, arguments: str, call: str) -> dict[str, float]:
    """Seconds of a call and, where its result has a gradient, of that of the floating arguments."""
    known = names(torch)
    torch.manual_seed(0)
    given = eval(f"[{arguments}]", known)
    known |= dict(zip("abcd", given, strict=False))
    called = re.match(r"(LSTM|GRU|RNN|TransformerEncoderLayer|Bilinear)\([^()]*\)", call)
    if called:  # a layer is made once
        known["layer"] = eval(called[0], known)
        call = call.replace(called[0], "layer")
    step = eval(f"lambda: {call}", known)
    with torch.no_grad():
        found = {"forward": best(step)}
    learning = [x for x in given if x.is_floating_point() or x.is_complex()]
    if not learning or call.endswith("_()"):
        return found
    for x in learning:
        x.requires_grad_()
    result = step()
    if isinstance(result, torch.Tensor) and result.requires_grad:
        slope = torch.ones_like(result)
        options = {"retain_graph": True, "allow_unused": True}
        with contextlib.suppress(RuntimeError):  # what has no derivative says so
            found["backward"] = best(
                lambda: torch.autograd.grad(result, learning, slope, **options)
            )
    return found


def measure(package: str, words: list[str], threads: int) -> None:
    """In a process of its own: a line of JSON for each case."""
    import importlib

    torch = importlib.import_module(package)
    torch.set_num_threads(threads)
    warnings.simplefilter("ignore")
    for group, name, arguments, call in cases():
        if any(re.search(word, f"{group}: {name}") for word in words or [""]):
            try:
                print(json.dumps([name, times(torch, arguments, call)]), flush=True)
            except Exception as error:
                raise RuntimeError(f"{name} under {package}") from error


def measured(package: str, words: list[str], threads: int) -> dict[tuple[str, str], float]:
    """Seconds by case and direction."""
    command = [sys.executable, __file__, "--measure", package, "--threads", str(threads), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    lines = map(json.loads, done.stdout.splitlines())
    return {(name, part): taken for name, parts in lines for part, taken in parts.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="*", help="regular expressions that choose")
    parser.add_argument("--threads", type=int, default=1, help="of both sides")
    parser.add_argument("--below", type=float, default=math.inf, help="show ratios below this only")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.words, options.threads)
        return
    theirs, ours = (measured(p, options.words, options.threads) for p in ("torch", "flambeau"))
    ratios = {key: theirs[key] / ours[key] for key in theirs if key in ours}
    print("| case | | torch | flambeau | torch / flambeau |\n|---|---|---|---|---|")
    for key in sorted(ratios, key=ratios.__getitem__):
        if ratios[key] < options.below:
            name, part = key
            cells = [f"`{name}`", part, show(theirs[key]), show(ours[key]), f"{ratios[key]:.2f}"]
            print(f"| {' | '.join(cells)} |")
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    below = [sum(ratio < limit for ratio in ratios.values()) for limit in (1, 0.5, 0.2)]
    print(f"\n{len(ratios)} times, geometric mean {mean:.2f}; below 1: {below[0]}, below 0.5: "
          f"{below[1]}, below 0.2: {below[2]}")  # fmt: skip


if __name__ == "__main__":
    main()
