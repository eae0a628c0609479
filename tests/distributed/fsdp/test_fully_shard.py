"""Divided modules against the same training in one process, and what they keep in memory."""

from __future__ import annotations

from tests.distributed.processes import run

START = """
import gc, weakref
from flambeau.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from flambeau.distributed.tensor import Shard
nn, F = torch.nn, torch.nn.functional

def numbers(*shape):
    count = int(np.prod(shape))
    return (((torch.arange(count) * 37) % 101).float() / 16 - 3).reshape(shape)

def made(divided):
    torch.manual_seed(3)
    layers = [nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
              for _ in range(2)]
    model = nn.Sequential(nn.Linear(8, 16), *layers, nn.Linear(16, 5))
    if divided:
        for layer in list(model)[1:3]:
            fully_shard(layer)
        fully_shard(model)
    return model
"""
TRAINING = """
def trained(divided, kind):
    model = made(divided)
    optimizer = kind(model.parameters(), lr=0.01)
    seen = []
    for step in range(3):
        x, y = numbers(8, 6, 8) + step, numbers(8, 6, 5)
        if divided:
            x, y = (t.chunk(SIZE)[RANK] for t in (x, y))
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total = loss.detach().clone()
        if divided:
            norm = norm.full_tensor()
            dist.all_reduce(total, dist.ReduceOp.AVG)
        seen += [total.item(), norm.item()]
    state = {name: t.full_tensor() if divided else t for name, t in model.state_dict().items()}
    return seen, state

same = []
for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
    (one, first), (many, second) = trained(False, kind), trained(True, kind)
    same.append(bool(np.allclose(one, many, rtol=1e-3)))
    same.append(all(torch.allclose(first[n], second[n], atol=3e-3) for n in first))
tell(same)
"""


def test_training_is_that_of_one_process():
    assert run(START + TRAINING, 2) == [[True] * 6] * 2


MEMORY = """
model = made(True)
layer = model[1]
parameters = layer._fsdp_state.parameters
gathered = []
layer.register_forward_pre_hook(
    lambda *_: gathered.extend(weakref.ref(p.whole._data) for p in parameters))
output = model(numbers(8, 6, 8))
gc.collect()
after_forward = sum(each() is not None for each in gathered)
output.sum().backward()
del output
gc.collect()
after_backward = sum(each() is not None for each in gathered)
kept = sum(p.to_local().numel() for p in model.parameters())
whole = sum(p.numel() for p in model.parameters())
grads = all(p.grad.shape == p.shape and p.grad.placements == (Shard(0),)
            for p in model.parameters())
rest = [kept * SIZE >= whole, kept < whole * 0.6, grads]
tell([len(gathered), after_forward, after_backward, *rest])
"""


def test_gathered_parameters_are_given_back():
    count, after_forward, after_backward, *rest = run(START + MEMORY, 2)[0]
    assert count
    assert after_forward <= count // 2  # autograd may have kept views of some until backward
    assert after_backward == 0
    assert rest == [True, True, True]


OTHERS = """
from flambeau._core.missing import NotImplementedInFlambeau
def sums(factor):
    torch.manual_seed(3)
    model = fully_shard(nn.Linear(4, 4))
    if factor is not None:
        model.set_gradient_divide_factor(factor)
    model(numbers(2, 4) + RANK).sum().backward()
    return model.weight.grad.full_tensor()
def refused(function):
    try:
        function()
    except NotImplementedError as error:
        return type(error).__name__
tell([
    torch.allclose(sums(1.0), sums(None) * SIZE),
    refused(lambda: fully_shard([nn.Linear(2, 2)])),
    refused(lambda: torch.distributed.fsdp.FullyShardedDataParallel(nn.Linear(2, 2))),
])
"""


def test_factors_and_what_is_not_there():
    names = ["NotImplementedError", "NotImplementedInFlambeau"]
    assert run(START + OTHERS, 2) == [[True, *names]] * 2


OUTSIDE = """
try:
    made(True)[0](numbers(8, 6, 8))
    outside = "no error"
except Exception as error:
    outside = type(error).__name__
tell(outside)
"""


def test_calls_around_the_outermost_module_are_refused():
    """A plain layer whose parameters are in parts takes no plain tensor."""
    assert run(START + OUTSIDE, 2) == ["RuntimeError"] * 2
