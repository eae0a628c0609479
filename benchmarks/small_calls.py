"""What a call on small tensors costs, for 150 operators.

Usage: python benchmarks/small_calls.py [words that choose calls]

Both libraries in one process, one thread, alternating rounds, the fastest of seven. The ratio is
PyTorch's time over flambeau's: above 1, flambeau is faster.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from typing import Any

from harness import once, show, steps_for

OPERANDS = """
x = torch.randn(32, 64); y = torch.randn(32, 64); v = torch.randn(64); d = torch.randn(10, 10)
b = torch.randn(4, 8, 16); s = torch.randn(()); o = torch.zeros(32, 64); m = x > 0
i = torch.randint(0, 64, (32, 5)); t = torch.randint(0, 64, (32,)); k = torch.randint(0, 10, (100,))
e = torch.randint(0, 32, (8,)); w = torch.randn(16, 3, 3, 3); im = torch.randn(1, 3, 16, 16)
"""

CASES = """
x.to(torch.float64) | x.half() | x.int() | k.float() | m.float() | torch.cat([x,y]) |
torch.cat([x,y],1) | torch.stack([x,y]) | x.gather(1,i) | x.topk(3) | x.sort() | x.argsort() |
x.cumsum(1) | x.cumprod(0) | o.scatter(1,i,x[:,:5]) | o.scatter_add(1,i,x[:,:5]) | F.softmax(x,1)
| F.log_softmax(x,1) | x.std() | x.var(1) | x.mean(0) | x.sum() | x.sum(1) | x.max() | x.max(1) |
x.argmax(1) | x.amax(1) | x.norm() | x.prod() | x.any() | x.all() | m.sum() |
torch.linspace(0,1,100) | torch.arange(100) | torch.zeros(32,64) | torch.ones(3) | torch.eye(10) |
torch.full((3,3),1.5) | torch.randn(32,64) | torch.rand(10) | torch.randint(0,10,(10,)) |
torch.randperm(100) | x.flip(0) | x.roll(1,0) | torch.equal(x,y) | torch.allclose(x,x) |
F.cross_entropy(x,t) | F.mse_loss(x,y) | F.nll_loss(x,t) | F.layer_norm(x,(64,)) | F.gelu(x) |
F.relu(x) | x.clamp(0,1) | torch.where(m,x,y) | x.masked_fill(m,0.) | x[m] | x[e] | x[:,0] |
x[1:5] | x[...,None] | x.view(64,32) | x.reshape(-1) | x.t() | x.permute(1,0) | x.contiguous() |
x.t().contiguous() | x.clone() | x.expand(2,32,64) | x.unsqueeze(0) | x.squeeze() | x.split(8) |
x.chunk(4) | x.unbind() | x.repeat(2,1) | x.tile(2) | x.diff() | x@y.t() | d@d |
torch.bmm(b,b.transpose(1,2)) | torch.einsum('ij,kj->ik',x,y) | torch.outer(v,v) | v.dot(v) |
torch.addmm(d,d,d) | x+y | x*2 | x+v | x**2 | x.exp() | x.sqrt() | x.abs() | x.neg() | x.tanh() |
x.sigmoid() | x>0 | x==y | x.isnan() | s.item() | x.tolist() | k.unique() | k.bincount() |
torch.histc(x) | x.nonzero() | torch.tril(d) | d.diag() | d.trace() | torch.inverse(d) |
torch.linalg.det(d) | torch.linalg.solve(d,d) | F.conv2d(im,w) | F.max_pool2d(im,2) |
F.avg_pool2d(im,2) | F.interpolate(im,scale_factor=2) | F.pad(im,(1,1,1,1)) | F.one_hot(k) |
F.embedding(e,x) | F.dropout(x) | F.normalize(x) | F.cosine_similarity(x,y) | torch.cdist(x,y) |
x.logsumexp(1) | x.quantile(0.5) | x.median() | x.round() | x.floor() | torch.maximum(x,y) |
torch.lerp(x,y,0.5) | torch.addcmul(x,x,y) | torch.tensor([1.,2.,3.]) | torch.tensor(1.0) |
torch.as_tensor(x) | x.numpy() | x.requires_grad | x.shape | x.add_(0.) | o.zero_() | o.fill_(1.)
| o.copy_(x) | torch.meshgrid(v,v,indexing='ij') | torch.searchsorted(v,x) | x.index_select(0,e) |
o.index_add(0,e,x[:8]) | torch.take_along_dim(x,i,1) | torch.logical_and(m,m) | ~m |
torch.bitwise_and(k,k) | k//3 | k%3 | x.long() | torch.cross(torch.ones(3),torch.ones(3),dim=0) |
torch.kron(d,d) | x.bool()
"""


def build(library: Any, case: str) -> Callable[[], Any]:
    """A function that makes the call."""
    names: dict[str, Any] = {"torch": library, "F": library.nn.functional}
    library.manual_seed(0)
    exec(OPERANDS, names)
    exec(f"def call():\n    return {case}", names)
    return names["call"]  # type: ignore[no-any-return]


def fastest(calls: list[Callable[[], Any]], rounds: int = 7) -> list[float]:
    """Seconds per call, alternating."""
    for call in calls:
        once(call, 30)
    count = steps_for(calls[0], 0.004)
    found = [min(once(call, count) for _ in range(2)) for call in calls]
    for _ in range(rounds - 2):
        for position, call in enumerate(calls):
            found[position] = min(found[position], once(call, count))
    return found


def main(words: list[str]) -> None:
    """Print the cases, the slowest first, and the geometric mean."""
    import torch

    import flambeau

    torch.set_num_threads(1)
    flambeau.set_num_threads(1)
    rows = []
    for case in " ".join(CASES.split()).split(" | "):
        if words and not any(word in case for word in words):
            continue
        theirs, ours = fastest([build(library, case) for library in (torch, flambeau)])
        rows.append((theirs / ours, case, theirs, ours))
    print("| call | PyTorch | flambeau | ratio |\n|---|---|---|---|")
    for ratio, case, theirs, ours in sorted(rows):
        print(f"| `{case}` | {show(theirs)} | {show(ours)} | {ratio:.2f} |")
    mean = statistics.geometric_mean([row[0] for row in rows])
    print(f"| geometric mean of {len(rows)} | | | **{mean:.2f}** |")


if __name__ == "__main__":
    main(sys.argv[1:])
