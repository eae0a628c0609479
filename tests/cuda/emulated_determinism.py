"""What PyTorch refuses on GPUs under `use_deterministic_algorithms(True)`, as PyTorch 2.11 answered
on an H200. `test_emulation` runs the facts in a process of their own."""

from __future__ import annotations

import json
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import flambeau as torch

F = torch.nn.functional
Call = Callable[[], Any]


def learning(*shape: int) -> Any:
    return torch.rand(*shape, device="cuda", requires_grad=True)


def numbers(*shape: int) -> Any:
    return torch.rand(*shape, device="cuda")


def places(values: Any) -> Any:
    return torch.tensor(values, device="cuda")


def planes(spatial: int, size: int = 4) -> Any:
    return learning(1, 1, *[size] * spatial)


def resized(mode: str, spatial: int, **options: Any) -> Call:
    return lambda: F.interpolate(planes(spatial), size=[8] * spatial, mode=mode, **options)


def padded(mode: str, spatial: int) -> Call:
    return lambda: F.pad(planes(spatial), [1] * 2 * spatial, mode=mode)


def pooled(name: str, spatial: int, *arguments: Any, **options: Any) -> Call:
    return lambda: getattr(F, f"{name}{spatial}d")(planes(spatial, 5), *arguments, **options)


def sampled(mode: str) -> Call:
    grid = torch.zeros(1, 2, 2, 2, device="cuda")
    return lambda: F.grid_sample(planes(2), grid, mode=mode, align_corners=False)


def aligned(targets: Any) -> Call:
    return lambda: F.ctc_loss(learning(4, 1, 3).log_softmax(2), targets, [4], [1])


def bags(mode: str) -> Call:
    return lambda: F.embedding_bag(places([[1, 2]]), learning(4, 2), mode=mode)


def classified(reduction: str) -> Call:
    target = places([[[0, 1], [1, 0]]])
    return lambda: F.nll_loss(learning(1, 3, 2, 2), target, reduction=reduction)


def written(name: str, *arguments: Any, **options: Any) -> Call:
    return lambda: getattr(torch.zeros(4, device="cuda"), name)(*arguments, **options)


def cases() -> list[tuple[str, Call]]:
    """(the kernel that the error names, "" where there is none; a call, of which the sum of the
    result is differentiated)"""
    twice, ones = places([0, 0]), torch.ones(2, device="cuda")
    return [
        ("upsample_linear1d_backward_out_cuda", resized("linear", 1)),
        ("upsample_bicubic2d_backward_out_cuda", resized("bicubic", 2)),
        ("upsample_bilinear2d_aa_backward_out_cuda", resized("bilinear", 2, antialias=True)),
        ("upsample_bicubic2d_aa_backward_out_cuda", resized("bicubic", 2, antialias=True)),
        ("adaptive_avg_pool2d_backward_cuda", resized("area", 1)),
        ("adaptive_avg_pool3d_backward_cuda", resized("area", 3)),
        ("", resized("bilinear", 2)), ("", resized("trilinear", 3)), ("", resized("nearest", 2)),
        ("reflection_pad1d_backward_out_cuda", padded("reflect", 1)),
        ("reflection_pad3d_backward_out_cuda", padded("reflect", 3)),
        ("", padded("reflect", 2)), ("", padded("replicate", 3)), ("", padded("circular", 2)),
        ("max_pool3d_with_indices_backward_cuda", pooled("max_pool", 3, 2)),
        ("avg_pool3d_backward_cuda", pooled("avg_pool", 3, 2)),
        ("avg_pool3d_backward_cuda", pooled("lp_pool", 3, 2.0, 2)),
        ("", pooled("max_pool", 2, 2)), ("", pooled("avg_pool", 2, 2)),
        ("adaptive_max_pool2d_backward_cuda", pooled("adaptive_max_pool", 1, 3)),
        ("adaptive_max_pool2d_backward_cuda", pooled("adaptive_max_pool", 2, 3)),
        ("adaptive_avg_pool2d_backward_cuda", pooled("adaptive_avg_pool", 1, 3)),
        ("adaptive_avg_pool2d_backward_cuda", pooled("adaptive_avg_pool", 2, 3)),
        ("", pooled("adaptive_max_pool", 3, 3)),
        ("fractional_max_pool2d_backward_cuda", pooled("fractional_max_pool", 2, 2, output_size=2)),
        ("fractional_max_pool3d_backward_cuda", pooled("fractional_max_pool", 3, 2, output_size=2)),
        ("grid_sampler_2d_backward_cuda", sampled("bilinear")),
        ("grid_sampler_2d_backward_cuda", sampled("nearest")),
        ("nll_loss2d_forward_out_cuda_template", classified("mean")),
        ("nll_loss2d_forward_out_cuda_template", classified("sum")), ("", classified("none")),
        ("nll_loss2d_forward_out_cuda_template",
         lambda: F.cross_entropy(learning(1, 3, 2, 2), places([[[0, 1], [1, 0]]]))),
        ("", lambda: F.cross_entropy(learning(2, 3), places([0, 1]))),
        ("embedding_bag_backward_cuda_max", bags("max")), ("", bags("sum")), ("", bags("mean")),
        ("ctc_loss_backward_gpu", aligned(places([[1]]))),
        ("ctc_loss_backward_gpu", aligned(torch.tensor([[1]]))),
        ("_histc_cuda with floating point input", lambda: torch.histc(numbers(4), 4)),
        ("", lambda: torch.histc(places([1, 2]), 4)),
        ("_bincount_cuda", lambda: torch.bincount(twice, ones)),
        ("", lambda: torch.bincount(twice)),
        ("median CUDA with indices output", lambda: torch.median(numbers(4), 0)),
        ("median CUDA with indices output", lambda: torch.nanmedian(numbers(4), 0)),
        ("", lambda: torch.median(numbers(4))), ("", lambda: torch.kthvalue(numbers(4), 2)),
        ("put_", written("put_", twice, ones)),
        ("put_", written("put_", twice, ones, accumulate=True)),
        ("put_", lambda: learning(4).take(twice)),
        ("index_reduce_cuda", written("index_reduce_", 0, twice, ones, "prod")),
        ("scatter_reduce_cuda_kernel", written("scatter_", 0, twice, ones, reduce="multiply")),
        ("", written("scatter_", 0, twice, ones, reduce="add")),
        ("scatter_reduce_cuda_prod_", written("scatter_reduce_", 0, twice, ones, "prod")),
        ("", written("scatter_reduce_", 0, twice, ones, "amax")),
        ("", written("index_add_", 0, twice, ones)), ("", written("scatter_add_", 0, twice, ones)),
        ("", lambda: learning(4)[twice]), ("", lambda: learning(4).gather(0, twice)),
        ("", lambda: numbers(4).resize_(8)),
    ]  # fmt: skip


def refused(call: Call) -> str:
    """The kernel that is named by the error of a call and its gradient; "" where all goes well."""
    try:
        with warnings.catch_warnings(action="ignore"):
            result = call()
        if isinstance(result, torch.Tensor) and result.requires_grad:
            result.sum().backward()
    except RuntimeError as error:
        name, found, _ = str(error).partition(" does not have a deterministic implementation")
        assert found, error
        return name
    return ""


def kernels_that_depend_on_chance_in_pytorch_are_named() -> None:
    torch.use_deterministic_algorithms(True)
    found = [(name, refused(call)) for name, call in cases()]
    torch.use_deterministic_algorithms(False)
    assert [ours for _, ours in found] == [theirs for theirs, _ in found], found


def nothing_is_refused_where_nobody_asked() -> None:
    assert {refused(call) for _, call in cases()} == {""}


def main() -> None:
    failures = {}
    for fact in (kernels_that_depend_on_chance_in_pytorch_are_named,
                 nothing_is_refused_where_nobody_asked):  # fmt: skip
        try:
            fact()
        except Exception:
            failures[fact.__name__] = traceback.format_exc()
    print(json.dumps(failures))


if __name__ == "__main__":
    main()
