"""Facts about programs on two GPUs; `test_emulation` runs them on two emulated ones."""

from __future__ import annotations

import json
import threading
import traceback
from typing import Any

import flambeau as torch

cuda = torch.cuda
TWO = ("cuda:0", "cuda:1")


def operators_work_where_their_tensors_lie() -> None:
    for place in TWO:
        x = torch.arange(6.0, device=place).view(2, 3)
        found = [x + 1, x.sum(0), x @ x.T, x[0], torch.randn(3, device=place), x.half()]
        assert {str(t.device) for t in found} == {place} and cuda.current_device() == 0
        assert found[2].tolist() == [[5, 14], [14, 50]]
    with cuda.device(1):
        assert torch.ones(1, device="cuda").device == torch.device("cuda:1")
    assert cuda.device_count() == 2 and cuda.can_device_access_peer(0, 1)


def each_has_its_own_memory_and_streams() -> None:
    before = [cuda.memory_allocated(place) for place in TWO]
    x = torch.ones(1000, device="cuda:1")
    assert [cuda.memory_allocated(place) for place in TWO] == [before[0], before[1] + 4096]
    assert cuda.current_stream(1).device_index == 1 != cuda.current_stream().device_index
    s = cuda.Stream(device="cuda:1")
    s.wait_stream(cuda.current_stream(1))
    with cuda.stream(s):
        assert cuda.current_device() == 1
        y = x * 2
        event = s.record_event()
    assert cuda.current_device() == 0
    event.synchronize()
    assert y.sum().item() == 2000


def copies_go_across() -> None:
    x = torch.randn(5, 6, device="cuda:1").t()
    y = x.to("cuda:0")
    assert y.stride() == x.stride() and torch.equal(y.cpu(), x.cpu())
    assert torch.equal(x[:, ::2].to("cuda:0").cpu(), x[:, ::2].cpu())
    z = torch.zeros(6, 5, device="cuda:0", dtype=torch.float64)
    z.copy_(x)
    z[:, 1:3] = x[:, :2].double().to("cuda:0")
    assert torch.equal(z[:, 1:3].float().cpu(), x[:, :2].cpu())
    leaf = torch.ones(3, device="cuda:1", requires_grad=True)
    (leaf.to("cuda:0") * 2).sum().backward()
    assert leaf.grad.tolist() == [2, 2, 2] and leaf.grad.device == torch.device("cuda:1")


def modules_learn_on_the_second() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
    net.to("cuda:1")
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    x = torch.randn(16, 4, device="cuda:1")
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (net(x) - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    assert {str(p.grad.device) for p in net.parameters()} == {"cuda:1"}


def mixtures_are_refused() -> None:
    try:
        torch.ones(2, device="cuda:0") + torch.ones(2, device="cuda:1")
    except RuntimeError as error:
        assert "at least two devices, cuda:0 and cuda:1!" in str(error)
    else:
        raise AssertionError("no error")


def threads_have_a_current_device_of_their_own() -> None:
    seen: list[Any] = []
    cuda.set_device(1)
    thread = threading.Thread(target=lambda: seen.append(torch.ones(1, device="cuda").device))
    thread.start()
    thread.join()
    assert seen == [torch.device("cuda:0")] and cuda.current_device() == 1
    cuda.set_device(0)


FACTS = {
    name: value for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__
}  # fmt: skip


def main() -> None:
    failures = {}
    for name, fact in FACTS.items():
        try:
            fact()
        except Exception:
            failures[name] = traceback.format_exc(limit=-4)
    print(json.dumps(failures))


if __name__ == "__main__":
    main()
