"""Facts about calls that are made again and again on a GPU, where only addresses change;
`test_emulation` runs them as it does those of `emulated.py`."""

from __future__ import annotations

import gc
import json
import traceback
import warnings
from typing import Any

import numpy as np

import flambeau as torch
from flambeau._runtime.cuda import launch, new_arrays
from flambeau._runtime.cuda.memory import Block
from flambeau._tensor import device_array

F = torch.nn.functional
F32 = np.dtype(np.float32)


def a_new_array_holds_its_block() -> None:
    torch.zeros(1, device="cuda")
    kind = device_array.class_of(0)
    for make in (new_arrays.maker, new_arrays._in_python):
        block = Block(4096, 0)
        array = make(kind, (2, 3), F32, (4, 8), 77)(block, block.address)
        assert type(array) is kind and array.shape == (2, 3) and array.strides == (4, 8)
        assert array.dtype == F32 and array.layout == 77 and not array.is_view
        assert array.block is block and device_array.block_of(array[0]) is block
        assert array[0].layout is None and array[0].is_view
        before = torch.cuda.memory_allocated()
        del block
        gc.collect()
        assert torch.cuda.memory_allocated() == before
        del array
        gc.collect()
        assert torch.cuda.memory_allocated() == before - 4096


def layouts_have_numbers() -> None:
    a, b = (device_array.empty((4, 4), (4, 1), F32, 0) for _ in range(2))
    of = device_array.layout_of
    assert of(a) == of(b) and of(a[1:]) == of(b[1:])
    assert of(a[1:]) != of(b[:3])  # libraries may be told that addresses are multiples of 256
    assert of(a[:, 1]) != of(a[:, 2])  # accesses of 16 bytes may begin at neither, but at 0
    assert len({of(a), of(a.T), of(a[1:]), of(a.view("i4"))}) == 4


def slices_of_one_array_are_told_apart_in_later_calls() -> None:
    x = torch.arange(16.0, device="cuda")
    numbers = np.arange(16.0, dtype=np.float32)
    for low, other in ((0, 1), (3, 2), (8, 0), (0, 8), (5, 5)):
        parts = [x[low : low + 8], x[other : other + 8]]
        wanted = [numbers[low : low + 8], numbers[other : other + 8]]
        assert torch.stack(parts).tolist() == np.stack(wanted).tolist()
        assert torch.cat(parts).tolist() == np.concatenate(wanted).tolist()
        chosen = torch.where(parts[0] > 6, parts[0], parts[1]).tolist()
        assert chosen == np.where(wanted[0] > 6, *wanted).tolist()


def writes_see_what_they_share() -> None:
    for start in (0, 4, 0, 4):
        x, y = torch.arange(12.0, device="cuda"), torch.ones(12, device="cuda")
        part = x[start : start + 8]
        part.add_(y[:8]).mul_(2).add_(part)
        wanted = np.arange(12.0)
        wanted[start : start + 8] = (wanted[start : start + 8] + 1) * 4
        assert x.tolist() == wanted.tolist()
    x = torch.arange(4.0, device="cuda")
    for factor in (2, 0.5, True, torch.tensor(3.0), torch.tensor(2)):
        before = x.tolist()
        x.mul_(factor)
        assert x.tolist() == [n * float(factor) for n in before]


def optimizers_notice_what_has_moved() -> None:
    def stepped(place: str) -> list[Any]:
        torch.manual_seed(3)
        params = [torch.nn.Parameter(torch.randn(n, generator=torch.Generator().manual_seed(n))
                                     .to(place)) for n in (5, 40)]  # fmt: skip
        optimizers = [torch.optim.AdamW(params, 0.1), torch.optim.AdamW(params, 0.02)]
        for k in range(8):
            for parameter in params:
                parameter.grad = torch.full_like(parameter, k - 3.5)
            if k == 3:
                params[0].grad = None
            if k == 4:
                optimizers[0].load_state_dict(optimizers[0].state_dict())
            if k == 5:
                params[1].data = params[1].data.clone()
            if k == 6:
                optimizers[1].param_groups[0]["lr"] = 0.3
            version = params[1]._version
            for optimizer in optimizers:
                optimizer.step()
            assert params[1]._version > version
        return [parameter.detach().cpu() for parameter in params]

    for mine, wanted in zip(stepped("cuda"), stepped("cpu"), strict=True):
        torch.testing.assert_close(mine, wanted)


def scaled_losses_are_what_they_are_on_the_host() -> None:
    def trained(place: str) -> tuple[list[Any], list[Any]]:
        params = [torch.nn.Parameter(torch.full(shape, 0.5).to(place)) for shape in ((5,), (40, 3))]
        params.append(torch.nn.Parameter(torch.full((9,), 0.5, dtype=torch.float64).to(place)))
        params.append(torch.nn.Parameter(torch.full((4, 6), 0.5).to(place).t()))
        optimizer = torch.optim.SGD(params, 0.1)
        scaler = torch.amp.GradScaler(place, init_scale=1024.0, growth_interval=2)
        scales = []
        for k in range(9):
            for place_of, parameter in enumerate(params):
                parameter.grad = torch.full_like(parameter, 1024.0 * (place_of + k))
            if k in (2, 5, 7):
                params[k % 4].grad[2] = (float("inf"), float("nan"))[k % 2]
            scaler.scale(torch.ones((), device=place))
            if k % 3 == 0:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            scales += [scaler.get_scale(), scaler.state_dict()["_growth_tracker"]]
        return scales, [parameter.detach().cpu() for parameter in params]

    mine, wanted = trained("cuda"), trained("cpu")
    assert mine[0] == wanted[0] and wanted[0][4:6] == [1024.0, 0]
    for one, other in zip(mine[1], wanted[1], strict=True):
        torch.testing.assert_close(one, other)


def numbers_are_operands_of_what_learns() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        x = torch.ones(3, device="cuda", dtype=dtype, requires_grad=True)
        for _ in range(2):
            x.grad = None
            (2 * (x + 0.5) - 1).sum().backward()
            assert x.grad is not None and x.grad.tolist() == [2.0] * 3


def formulas_of_gradients_are_one_launch() -> None:
    launches: list[str] = []

    class Watch:
        @staticmethod
        def launched(kernel: Any, *_: Any) -> None:
            launches.append(kernel.native.name)

    functions = (F.gelu, torch.tanh, torch.sigmoid, F.silu, lambda x: x**3)
    for function in functions:
        host = torch.linspace(-3, 3, 40).reshape(5, 8).requires_grad_()
        function(host).backward(torch.full((5, 8), 0.3))
        for _ in range(3):
            x = host.detach().cuda().requires_grad_()
            y, given = function(x), torch.full((5, 8), 0.3, device="cuda")
            launches.clear()
            launch.watching = Watch
            try:
                y.backward(given)
            finally:
                launch.watching = None
            assert len(launches) <= 1
            torch.testing.assert_close(x.grad.cpu(), host.grad)


def gradients_of_one_launch_belong_to_their_leaves() -> None:
    norm = torch.nn.LayerNorm(8).cuda()
    for _ in range(3):
        norm.zero_grad()
        norm(torch.ones(4, 8, device="cuda")).sum().backward()
        weight, bias = norm.weight.grad, norm.bias.grad
        assert weight is not None and bias is not None
        bias.add_(1)
        assert bias.tolist() == [5.0] * 8 and weight.tolist() == [0.0] * 8


def loops_do_not_join_pieces_for_ever() -> None:
    def step() -> None:
        kept = [torch.empty(n << 12, device="cuda") for n in range(1, 40)]
        del kept[::2]
        torch.empty(30 << 18, device="cuda")

    for _ in range(40):
        step()
    reserved = torch.cuda.memory_reserved()
    for _ in range(5):
        step()
    assert torch.cuda.memory_reserved() == reserved


def out_is_resized_where_it_lies() -> None:
    x = torch.arange(24.0, device="cuda").reshape(2, 3, 4).permute(0, 2, 1)
    for size in (0, 2, 100):
        out = torch.empty(size, device="cuda")
        with warnings.catch_warnings(action="ignore"):
            result = torch.mul(x, 2, out=out)
        assert result is out and out.is_cuda and out.stride() == (12, 1, 4)
        assert out.cpu().tolist() == (x.cpu() * 2).tolist()


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
