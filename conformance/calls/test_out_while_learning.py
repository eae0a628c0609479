"""`out=` while gradients are recorded: which operator refuses it and under which name, which copies
its result into it, and which gives it a history that no gradient gets past."""

from __future__ import annotations

from typing import Any

import pytest
import torch as reference

import flambeau

pytestmark = pytest.mark.filterwarnings("ignore")
CALLS = (
    "t.add(x, x, out=o)", "t.alias_copy(x, out=o)", "t.clamp(x, 0, out=o)",
    "t.conj_physical(x, out=o)", "t.cross(x, x, dim=0, out=o)", "t.diff(x, out=o)",
    "t.expand_copy(x, (3, 3), out=o)", "t.fft.fft(x, out=c)", "t.fft.fft2(x, out=c)",
    "t.fft.fftfreq(3, out=o)", "t.fft.hfft(x, out=o)", "t.fft.ifft(x, out=c)",
    "t.fft.irfftn(x, out=o)", "t.fft.rfft2(x, out=c)", "t.float_power(x, 2, out=d)",
    "t.floor_divide(x, 2, out=o)", "t.frobenius_norm(x, 0, out=o)", "t.inner(x, x, out=q)",
    "t.inverse(x, out=o)", "t.kron(x, x, out=o)", "t.linalg.cross(x, x, out=o)",
    "t.linalg.det(x, out=o)", "t.linalg.eigvals(x, out=c)", "t.linalg.eigvalsh(x, out=o)",
    "t.linalg.inv(x, out=o)", "t.linalg.matrix_norm(x, out=o)", "t.linalg.multi_dot([x, x], out=o)",
    "t.linalg.norm(x, out=o)", "t.linalg.pinv(x, out=o)", "t.linalg.solve(x, x, out=o)",
    "t.linalg.svdvals(x, out=o)", "t.linalg.vecdot(x, x, out=o)",
    "t.linalg.vector_norm(x, out=o)", "t.log_softmax(x, 0, out=o)", "t.logit(x, 0.1, out=o)",
    "t.mm(x, x, out=o)", "t.msort(x, out=o)", "t.nanmean(x, 0, out=o)", "t.norm(x, 2, out=o)",
    "t.outer(x[0], x[0], out=o)", "t.permute_copy(x, (1, 0), out=o)", "t.polygamma(1, x, out=o)",
    "t.quantile(x, 0.5, out=o)", "t.select_copy(x, 0, 0, out=o)", "t.slice_copy(x, 0, 1, out=o)",
    "t.slice_scatter(x, x[:1], 0, 0, 1, out=o)", "t.softmax(x, 1, out=o)",
    "t.special.entr(x, out=o)", "t.special.i0e(x, out=o)", "t.special.ndtr(x, out=o)",
    "t.special.xlog1py(x, x, out=o)", "t.square(x, out=o)", "t.t_copy(x, out=o)",
    "t.tensordot(x, x, 1, out=q)", "t.unfold_copy(x, 0, 1, 1, out=o)",
    "t.view_copy(x, (9,), out=o)",
)  # fmt: skip


@pytest.mark.parametrize("text", CALLS)
def test_who_refuses(text: str) -> None:
    for source, target in ((True, False), (False, True)):
        here, there = (_told(t, text, source, target) for t in (flambeau, reference))
        assert here == there, (source, target)


def _told(t: Any, text: str, source: bool, target: bool) -> list[str]:
    """The error, or the history of what was written to and what backward says."""
    x = (t.eye(3) * 0.25 + 0.5).requires_grad_(source)
    makes = {"o": t.float32, "c": t.complex64, "d": t.float64}
    square = t.zeros(3, 3).requires_grad_(target)
    names = {n: t.zeros(0, dtype=kind).requires_grad_(target) for n, kind in makes.items()}
    try:
        result = eval(text, {"t": t, "x": x, "q": square, **names})  # noqa: S307
        told = [str(result.requires_grad), type(result.grad_fn).__name__]
        if result.requires_grad:
            result.abs().sum().backward()
            told.append(str(x.grad is None))
    except (RuntimeError, NotImplementedError) as error:
        return [type(error).__name__, str(error).partition("\n")[0]]
    return told


SCATTERS = (
    "t.scatter(x, 0, i, s, out=o)", "t.scatter(x, 0, i, 1.0, out=o)",
    "t.scatter_add(x, 0, i, s, out=o)", "t.scatter_reduce(x, 0, i, s, 'sum', out=o)",
    "t.index_add(x, 0, i, s, out=o)", "t.index_copy(x, 0, i, s, out=o)",
    "t.index_reduce(x, 0, i, s, 'prod', out=o)", "t.clamp(x, 0, 1, out=o)",
    "t.clamp_min(x, 0, out=o)", "t.argsort(x, stable=True, out=o)", "t.isin(x, s, out=o)",
    "t.isin(2.0, s, out=o)", "t.fft.fft(s.float(), out=o)", "t.fft.fft2(s.float()[None], out=o)",
    "t.fft.irfft(s.float(), n=2, out=o.to(t.complex64))", "t.fft.fftfreq(2, out=i)",
    "t.topk(x, 1, out=o)", "t.cummax(x, 0, out=o)", "t.nansum(x, 0, dtype=t.int64)",
    "t.nansum(t.tensor([1.5, float('nan'), -2]), dtype=t.int64)",
)  # fmt: skip


@pytest.mark.parametrize("text", SCATTERS)
def test_types_of_out(text: str) -> None:
    said = []
    for t in (flambeau, reference):
        names = {
            "x": t.ones(2, dtype=t.float16), "s": t.ones(1, dtype=t.float16),
            "i": t.zeros(1, dtype=t.int64), "o": t.zeros(2),
        }  # fmt: skip
        try:
            result = eval(text, {"t": t, **names})  # noqa: S307
            said.append([str(result.dtype), str(result.tolist())])
        except (RuntimeError, TypeError, NotImplementedError) as error:
            said.append([type(error).__name__, str(error).partition("\n")[0]])
    assert said[0] == said[1]
