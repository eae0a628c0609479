"""Autocast regions: where they begin and end, what they warn of, custom functions in them."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import pytest

import flambeau as torch
from flambeau import amp


def product_type() -> torch.dtype:
    x = torch.ones(2, 2)
    return (x @ x).dtype


def test_regions_within_regions() -> None:
    assert product_type() is torch.float32
    with torch.autocast("cpu"):
        assert product_type() is torch.bfloat16
        with torch.autocast("cpu", enabled=False):
            assert product_type() is torch.float32
            with torch.autocast("cpu", dtype=torch.float16):
                assert product_type() is torch.float16
        assert product_type() is torch.bfloat16
    assert product_type() is torch.float32


def test_a_decorator() -> None:
    assert torch.autocast("cpu")(product_type)() is torch.bfloat16
    assert torch.autocast("cpu")(product_type).__name__ == "product_type"
    with pytest.raises(TypeError, match="requires a callable, but got int"):
        torch.autocast("cpu")(3)


def test_an_error_ends_a_region() -> None:
    with pytest.raises(ZeroDivisionError), torch.autocast("cpu", cache_enabled=False):
        1 / 0  # noqa: B018
    assert not torch.is_autocast_enabled("cpu") and torch.is_autocast_cache_enabled()


def test_a_thread_has_regions_of_its_own() -> None:
    found = []
    with torch.autocast("cpu", dtype=torch.float16):
        thread = threading.Thread(target=lambda: found.append(product_type()))
        thread.start()
        thread.join()
        assert torch.get_autocast_dtype("cpu") is torch.float16
    assert found == [torch.float32]


def test_settings_without_a_region() -> None:
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", torch.float16)
    try:
        assert torch.is_autocast_enabled("cpu") and product_type() is torch.float16
    finally:
        torch.set_autocast_enabled("cpu", False)
        torch.set_autocast_dtype("cpu", torch.bfloat16)
    torch.set_autocast_enabled(False)  # of old: CUDA
    assert not torch.is_autocast_enabled()


def test_regions_that_can_do_nothing_warn() -> None:
    with pytest.warns(UserWarning, match="CUDA is not available"):
        region = torch.autocast("cuda")
    with region:
        assert product_type() is torch.float32 and not torch.is_autocast_enabled("cuda")
    with pytest.warns(UserWarning, match="supports dtypes of torch.bfloat16, torch.float16"):
        region = torch.autocast("cpu", dtype=torch.float32)
    with region:
        assert product_type() is torch.float32


def test_devices_without_autocast() -> None:
    assert amp.is_autocast_available("cpu") and not amp.is_autocast_available("meta")
    with pytest.raises(RuntimeError, match="unsupported scalarType"):
        torch.autocast("meta")
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        torch.autocast("meta", dtype=torch.bfloat16)
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.autocast(3)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_old_spellings(device: str) -> None:
    package = getattr(torch, device).amp
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        region = package.autocast()
    assert isinstance(region, torch.autocast)
    assert f"torch.{device}.amp.autocast(args...)` is deprecated" in str(caught[0].message)
    assert caught[0].category is FutureWarning
    with region:
        assert product_type() is (torch.bfloat16 if device == "cpu" else torch.float32)
    with pytest.warns(DeprecationWarning, match=r"torch\.is_autocast_enabled\('cpu'\)"):
        assert not torch.is_autocast_cpu_enabled()


def test_training_in_a_region() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv1d(2, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LayerNorm(16),
        torch.nn.Linear(16, 3),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, target = torch.randn(8, 2, 6), torch.randint(0, 3, (8,))
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        with torch.autocast("cpu"):
            scores = model(x)
            loss = torch.nn.functional.cross_entropy(scores, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert scores.dtype is torch.bfloat16 and loss.dtype is torch.float32
    assert all(p.grad.dtype is torch.float32 for p in model.parameters())
    assert losses[-1] < losses[0] / 2


# ---- custom autograd functions


class Product(torch.autograd.Function):
    """x @ w, and the types that its parts saw."""

    seen: list[Any] = []

    @staticmethod
    @amp.custom_fwd(device_type="cpu")
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x.mm(w)

    @staticmethod
    @amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, grad: Any) -> Any:
        x, w = ctx.saved_tensors
        Product.seen.append((torch.is_autocast_enabled("cpu"), grad.mm(w.t()).dtype))
        return grad.mm(w.t()).to(x.dtype), x.t().mm(grad).to(w.dtype)


def test_backward_runs_in_the_region_of_forward() -> None:
    for enabled in (True, False):
        Product.seen.clear()
        x, w = torch.ones((2, 2), requires_grad=True), torch.ones((2, 2), requires_grad=True)
        with torch.autocast("cpu", enabled=enabled):
            y = Product.apply(x, w)
        y.sum().backward()
        wanted = torch.bfloat16 if enabled else torch.float32
        assert y.dtype is wanted and Product.seen == [(enabled, wanted)]
        assert x.grad.dtype is torch.float32


class InFloat32(torch.autograd.Function):
    @staticmethod
    @amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx: Any, x: Any, table: Any) -> Any:
        ctx.types = (x.dtype, table["y"].dtype, table["n"].dtype, x.mm(x).dtype)
        return x * 2

    @staticmethod
    @amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2, None


def test_inputs_cast_for_a_function() -> None:
    x = torch.ones((2, 2), dtype=torch.bfloat16, requires_grad=True)
    table = {"y": x.detach(), "n": torch.ones(1, dtype=torch.int64)}
    with torch.autocast("cpu"):
        inside = InFloat32.apply(x, table)
    outside = InFloat32.apply(x.detach(), table)
    assert inside.dtype is torch.float32 and outside.dtype is torch.bfloat16
    assert inside.grad_fn.types == (torch.float32, torch.float32, torch.int64, torch.float32)
