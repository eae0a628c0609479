"""Programs that train modules divided among processes, under PyTorch and flambeau."""

from __future__ import annotations

import importlib
from typing import Any

from conformance.distributed.placed import close, numbers, tools

STEPS = 3


def filled(torch: Any, module: Any) -> Any:
    """A module with parameters that both libraries make alike."""
    with torch.no_grad():
        for place, parameter in enumerate(module.parameters()):
            values = torch.arange(parameter.numel()) * (37 + 2 * place) % 101
            parameter.copy_((values.to(torch.float32) / 101 - 0.5).reshape(parameter.shape))
    return module


def whole(tensor: Any) -> Any:
    """All of a tensor, distributed or not."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def trained(torch: Any, module: Any, inputs: Any, target: Any, record: Any, label: str,
            kind: str = "AdamW") -> None:  # fmt: skip
    """Losses and norms of gradients of some steps, and the parameters after them."""
    optimizer = getattr(torch.optim, kind)(module.parameters(), lr=0.01)
    for step in range(STEPS):
        optimizer.zero_grad()
        output = whole(module(inputs))
        loss = ((output - target) ** 2).mean()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        record(f"{label} {step}", lambda x=loss, n=norm: [close(x), close(whole(n))])
    for name, parameter in module.named_parameters():
        record(f"{label} {name}", lambda p=parameter: [
            list(map(str, getattr(p, "placements", ()))), close(whole(p))])  # fmt: skip


def parallel(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """All that follows, in the same processes."""
    for program in (perceptron, sequences, block, losses, styles):
        program(torch, dist, rank, size, record, seed)


def _tensor_parallel(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.distributed.tensor.parallel")


def _perceptron(torch: Any) -> Any:
    nn = torch.nn
    return filled(torch, nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)))


def perceptron(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """Two linear layers, by columns and by rows."""
    meshes, dt = tools(torch)
    tp = _tensor_parallel(torch)
    mesh = meshes.init_device_mesh("cpu", (size,))
    model = _perceptron(torch)
    plan = {"0": tp.ColwiseParallel(), "2": tp.RowwiseParallel()}
    tp.parallelize_module(model, mesh, plan)
    record("placements", lambda: [repr(p.placements) for p in model.parameters()])
    record("inside", lambda: list(model[0](numbers(torch, 4, 8)).shape))
    trained(torch, model, numbers(torch, 4, 8), numbers(torch, 4, 8), record, "mlp", "SGD")


def sequences(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """The same with normalisation on parts of the sequence."""
    meshes, dt = tools(torch)
    tp = _tensor_parallel(torch)
    nn = torch.nn
    mesh = meshes.init_device_mesh("cpu", (size,))
    model = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
    plan = {
        "": tp.PrepareModuleInput(input_layouts=dt.Replicate(), desired_input_layouts=dt.Shard(1)),
        "0": tp.SequenceParallel(),
        "1": tp.ColwiseParallel(input_layouts=dt.Shard(1)),
        "3": tp.RowwiseParallel(output_layouts=dt.Shard(1), use_local_output=False),
    }
    tp.parallelize_module(filled(torch, model), mesh, plan)
    trained(torch, model, numbers(torch, 2, 8, 8), numbers(torch, 2, 8, 8), record, "sequence")


def _block(torch: Any, size: int) -> Any:
    """A block of a transformer whose attention takes as many heads as it is given."""
    nn = torch.nn

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wq, self.wk, self.wv, self.wo = (nn.Linear(16, 16, bias=False) for _ in range(4))

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            q, k, v = (w(x).view(batch, length, -1, 4).transpose(1, 2)
                       for w in (self.wq, self.wk, self.wv))  # fmt: skip
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.wo(mixed.transpose(1, 2).reshape(batch, length, -1))

    class FeedForward(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w1, self.w3 = nn.Linear(16, 32, bias=False), nn.Linear(16, 32, bias=False)
            self.w2 = nn.Linear(32, 16, bias=False)

        def forward(self, x: Any) -> Any:
            return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(32, 16)
            self.attention_norm, self.ffn_norm = nn.LayerNorm(16), nn.LayerNorm(16)
            self.attention, self.feed_forward = Attention(), FeedForward()
            self.output = nn.Linear(16, 8)

        def forward(self, indices: Any) -> Any:
            x = self.tokens(indices)
            x = x + self.attention(self.attention_norm(x))
            x = x + self.feed_forward(self.ffn_norm(x))
            return self.output(x)

    return filled(torch, Block())


def block(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """A block of a transformer, with tensor and sequence parallelism."""
    meshes, dt = tools(torch)
    tp = _tensor_parallel(torch)
    mesh = meshes.init_device_mesh("cpu", (size,))
    part = dt.Shard(1)
    model = _block(torch, size)
    plan = {
        "tokens": tp.RowwiseParallel(input_layouts=dt.Replicate(), output_layouts=part,
                                     use_local_output=False),
        "attention_norm": tp.SequenceParallel(),
        "attention": tp.PrepareModuleInput(input_layouts=(part,),
                                           desired_input_layouts=(dt.Replicate(),)),
        "attention.w[qkv]": tp.ColwiseParallel(),
        "attention.wo": tp.RowwiseParallel(output_layouts=part, use_local_output=False),
        "ffn_norm": tp.SequenceParallel(),
        "feed_forward": tp.PrepareModuleInput(input_layouts=(part,),
                                              desired_input_layouts=(dt.Replicate(),)),
        "feed_forward.w[13]": tp.ColwiseParallel(),
        "feed_forward.w2": tp.RowwiseParallel(output_layouts=part, use_local_output=False),
        "output": tp.ColwiseParallel(input_layouts=part, output_layouts=dt.Replicate()),
    }  # fmt: skip
    tp.parallelize_module(model, mesh, plan)
    indices = (torch.arange(16) * 7 % 32).reshape(2, 8)
    trained(torch, model, indices, numbers(torch, 2, 8, 8), record, "block")


def losses(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """The loss of classes of which each process has some; labels and weights distributed or not."""
    meshes, dt = tools(torch)
    tp = _tensor_parallel(torch)
    mesh = meshes.init_device_mesh("cpu", (size,))
    for reduction in ("mean", "sum", "none"):
        for weight in (None, torch.arange(8) / 4 + 0.5):
            for plain in ("none", "labels", "weight", "both"):
                target = torch.tensor([1, 0, 7, -100 if weight is None else 2, 3, 6])
                scores = dt.distribute_tensor(numbers(torch, 6, 8), mesh, [dt.Shard(1)])
                scores.requires_grad_()
                weights, labels = weight, target
                if weight is not None and plain not in ("weight", "both"):
                    weights = dt.distribute_tensor(weight, mesh)
                if plain not in ("labels", "both"):
                    labels = dt.distribute_tensor(target, mesh)
                with tp.loss_parallel():
                    loss = torch.nn.functional.cross_entropy(
                        scores, labels, weights, reduction=reduction
                    )
                    loss.sum().backward()
                record(f"loss {reduction} {weight is None} {plain}", lambda x=scores, y=loss: [
                    repr(y.placements), repr(x.grad.placements), close(whole(y)),
                    close(whole(x.grad))])  # fmt: skip
    scores = dt.distribute_tensor(numbers(torch, 6, 8), mesh, [dt.Shard(1)])
    record("plain labels", lambda: torch.nn.functional.cross_entropy(scores, target))
    implicit = importlib.import_module(f"{torch.__name__}.distributed.tensor.experimental")
    with implicit.implicit_replication():
        record("implicit", lambda: close(whole(scores + numbers(torch, 6, 8))))
        record("implicit loss", lambda: close(
            whole(torch.nn.functional.cross_entropy(scores, target.abs() % 8))))  # fmt: skip
    record("no more", lambda: scores + numbers(torch, 6, 8))
    whole_scores = dt.distribute_tensor(numbers(torch, 6, 8), mesh)
    record("whole", lambda: _parallel_loss(torch, tp, whole_scores, target))


def _parallel_loss(torch: Any, tp: Any, scores: Any, labels: Any) -> Any:
    with tp.loss_parallel():
        return torch.nn.functional.cross_entropy(scores, labels)


def styles(torch: Any, dist: Any, rank: int, size: int, record: Any, seed: int) -> None:
    """What styles say, and refuse."""
    meshes, dt = tools(torch)
    tp = _tensor_parallel(torch)
    mesh = meshes.init_device_mesh("cpu", (size,))
    nn = torch.nn
    prepared = {"input_layouts": dt.Shard(0), "desired_input_layouts": dt.Replicate()}
    for style in (tp.ColwiseParallel(), tp.RowwiseParallel(), tp.SequenceParallel(),
                  tp.PrepareModuleInput(**prepared)):  # fmt: skip
        record(type(style).__name__, lambda s=style: repr(s))
    record("kind", lambda: tp.parallelize_module(nn.Conv1d(2, 2, 1), mesh, tp.ColwiseParallel()))
    record("plan", lambda: tp.parallelize_module(nn.Linear(8, 8), mesh, 3))
    record("desired", lambda: tp.PrepareModuleInput(input_layouts=dt.Shard(0)))
    record("lengths", lambda: tp.PrepareModuleInput(
        input_layouts=(dt.Shard(0), None), desired_input_layouts=(dt.Replicate(),)))  # fmt: skip
    record(
        "none", lambda: tp.parallelize_module(nn.Linear(8, 8), mesh, {"x": 3})._parameters.keys()
    )
    for name in ("ColwiseParallel", "RowwiseParallel"):
        made = tp.parallelize_module(nn.Embedding(8, 8), mesh, getattr(tp, name)())
        record(f"embedding {name}", lambda m=made: repr(m.weight.placements))
