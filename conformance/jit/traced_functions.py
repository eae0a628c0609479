"""Functions that both libraries trace: each gets a matrix x of two or more rows and the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "view by sizes": lambda x, torch: x.view(x.shape[0] * 2 // 2, -1),
    "view as row": lambda x, torch: x.view(-1, x.size(0), x.size(1)),
    "select": lambda x, torch: x[0],
    "select last": lambda x, torch: x[-1, 0],
    "slices": lambda x, torch: x[:, 1:],
    "steps": lambda x, torch: x[::2, 0:2],
    "mask": lambda x, torch: x[x > 0],
    "new dims": lambda x, torch: x[None, ..., [0, 1]],
    "dims in the middle": lambda x, torch: x[:, None, 1],
    "index tensors": lambda x, torch: x[x.argmax(0), x.argmin(0)],
    "conversions": lambda x, torch: (
        x.float().double().to(torch.float32).to("cpu").cpu().contiguous()
    ),
    "integers": lambda x, torch: x.long() % 3 + x.int() // 2,
    "minus reflected": lambda x, torch: 1 - x,
    "division reflected": lambda x, torch: 1 / x,
    "powers": lambda x, torch: x**2 + 2**x,
    "numbers": lambda x, torch: (x * 2 + 1.5) / 3 - 1,
    "alpha": lambda x, torch: torch.add(x, x, alpha=2).sub(x, alpha=0.5),
    "where": lambda x, torch: torch.where(x > 0, x, torch.zeros_like(x)),
    "activations": lambda x, torch: (
        torch.nn.functional.relu(x) + torch.nn.functional.softmax(x, -1)
    ),
    "more activations": lambda x, torch: (
        torch.nn.functional.gelu(x) + torch.nn.functional.leaky_relu(x, 0.2)
    ),
    "silu and friends": lambda x, torch: (
        torch.nn.functional.silu(x)
        + torch.nn.functional.hardswish(x)
        + torch.sigmoid(x)
        + torch.nn.functional.log_softmax(x, dim=1)
    ),
    "interpolate": lambda x, torch: torch.nn.functional.interpolate(x[None, None], scale_factor=2),
    "interpolate to size": lambda x, torch: torch.nn.functional.interpolate(
        x[None, None], size=(4, 5), mode="bilinear", align_corners=False
    ),
    "einsum": lambda x, torch: torch.einsum("ij,kj->ik", x, x),
    "factories": lambda x, torch: (
        torch.full((2, 3), 1.5) + torch.ones(3) + torch.tensor([1.0, 2, 3])
    ),
    "sizes in factories": lambda x, torch: x + torch.zeros(x.shape) + torch.ones(x.size(1)),
    "range": lambda x, torch: torch.arange(x.size(0), device=x.device).float(),
    "size as a number": lambda x, torch: x + x.size(0),
    "size divided": lambda x, torch: x / x.size(1),
    "rows": lambda x, torch: [t + 1 for t in x][0],
    "cross entropy": lambda x, torch: torch.nn.functional.cross_entropy(
        x[:2], torch.tensor([0, 1])
    ),
    "mse": lambda x, torch: torch.nn.functional.mse_loss(x, x * 2),
    "pad": lambda x, torch: torch.nn.functional.pad(x, (1, 1)),
    "normalize": lambda x, torch: torch.nn.functional.normalize(x),
    "layer norm": lambda x, torch: torch.nn.functional.layer_norm(x, (x.shape[-1],)),
    "views": lambda x, torch: (
        x.flatten()
        .unsqueeze(0)
        .squeeze()
        .expand(2, -1)
        .repeat(2, 1)
        .transpose(0, 1)
        .permute(1, 0)
        .t()
    ),
    "reductions": lambda x, torch: (
        x.chunk(2, 1)[0] + x.std(dim=1, keepdim=True) + x.var() + x.norm()
    ),
    "means": lambda x, torch: x.mean() + x.mean(1).sum() + x.mean((0, 1), keepdim=True),
    "clamp": lambda x, torch: torch.clamp(x, 0, 1).clamp(min=0) + x.masked_fill(x > 0, -1.0),
    "several results": lambda x, torch: (
        torch.max(x) + torch.argmax(x, 1).sum() + x.topk(2)[0].sum()
    ),
    "sort": lambda x, torch: x.sort(1)[0] + x.argsort(0),
    "cat and stack": lambda x, torch: torch.cat([x, x], 1).sum() + torch.stack([x, x]).sum(0),
    "split": lambda x, torch: torch.split(x, 1, 1)[0] + x.unbind(1)[1].unsqueeze(1),
    "in place": lambda x, torch: (x * 1).add_(1).mul_(2).relu_(),
    "operators in place": lambda x, torch: _in_place(x * 1),
    "writes": lambda x, torch: _writes(x.clone()),
    "matmul": lambda x, torch: x @ x.t() + torch.mm(x, x.t()) + x.matmul(x.t()),
    "logic": lambda x, torch: (x > 0) & (x < 1) | ~(x == 0),
    "comparison": lambda x, torch: (x >= 0.5).float() + x.ne(1) + torch.le(x, x),
    "cumulative": lambda x, torch: x.cumsum(0) + torch.cumprod(x, 1),
    "gather": lambda x, torch: x.gather(1, x.argmax(1, keepdim=True)),
    "scatter": lambda x, torch: torch.zeros_like(x).scatter_(1, x.argmax(1, keepdim=True), 1.0),
    "meshgrid": lambda x, torch: torch.meshgrid(x[0], x[1], indexing="ij")[0],
    "broadcast": lambda x, torch: torch.broadcast_tensors(x, x[0])[1],
    "lists and tuples": lambda x, torch: (x + 1, (x * 2, x[0])),
    "detach": lambda x, torch: x.detach() * x,
    "type of another": lambda x, torch: x.type_as(x.double()) + x.new_zeros(x.shape[1]),
}


def _in_place(y: Any) -> Any:
    y += 1
    y *= 2
    y -= y.sum()
    return y


def _writes(y: Any) -> Any:
    y[0] = 1
    y[:, 1] = y[:, 0]
    y[y > 2] = 0.0
    return y
