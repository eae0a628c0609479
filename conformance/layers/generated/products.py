"""Products of matrices, and distances."""

from __future__ import annotations

from typing import Any

from .drawing import Drawing, called


def drawn(p: Drawing) -> None:
    if p.chance(0.1):
        p.dtype = p.one("complex64", "complex128", "int64")
    p.one(_einsum, _tensordot, _batched, _sums, _matmul, _matmul, _cdist, _similar, _linear,
          _others)(p)  # fmt: skip


def _einsum(p: Drawing) -> None:
    letters = "ijklm"[: p.size(1, 5)]
    sizes = {letter: p.size(1, 4) for letter in letters}
    words = []
    for _ in range(p.size(1, 3)):
        words.append("".join(p.random.choices(letters, k=p.size(1, 3))))
    used = sorted({letter for word in words for letter in word})
    out = "".join(p.random.sample(used, p.size(0, len(used))))
    equation = ",".join(words) + p.one("->" + out, "->" + out, "")
    tensors = [p.tensor(tuple(sizes[letter] for letter in word)) for word in words]
    p.gradients(p.result(called("torch.einsum", equation, *tensors)))


def _tensordot(p: Drawing) -> None:
    shape, other = p.sizes(p.size(1, 3), 1, 4), p.sizes(p.size(1, 3), 1, 4)
    count = p.size(0, min(len(shape), len(other)))
    if p.chance(0.5):
        mine = p.random.sample(range(len(shape)), count)
        theirs = p.random.sample(range(len(other)), count)
    else:
        mine = list(range(len(shape) - count, len(shape)))
        theirs = list(range(count))
    sizes = list(other)
    for one, two in zip(mine, theirs, strict=True):
        sizes[two] = shape[one]
    words = [p.tensor(shape), p.tensor(tuple(sizes))]
    p.gradients(p.result(called("torch.tensordot", *words, dims=(mine, theirs))))


def _batched(p: Drawing) -> None:
    batch, n, m, k = p.size(1, 3), p.size(1, 5), p.size(1, 5), p.size(0 if p.chance(0.1) else 1, 5)
    a, b = p.tensor((batch, n, k)), p.tensor((batch, k, m))
    if p.chance(0.4):
        p.gradients(p.result(called("torch.bmm", a, b)))
        return
    add = p.tensor(p.one((batch, n, m), (n, m), (1, n, 1), (m,)))
    options = p.some(0.4, beta=p.one(0, 2), alpha=p.one(3, 0))
    name = p.one("baddbmm", "baddbmm", "addbmm")
    if name == "addbmm":
        add = p.tensor(p.one((n, m), (1, m), (m,)))
    p.gradients(p.result(called(f"torch.{name}", add, a, b, **options)))


def _sums(p: Drawing) -> None:
    n, m, k = p.size(1, 5), p.size(1, 5), p.size(0 if p.chance(0.1) else 1, 5)
    options = p.some(0.4, beta=p.one(0, 2), alpha=p.one(3, 0))
    name = p.one("addmm", "addmv", "addr")
    shapes = {
        "addmm": [p.one((n, m), (m,), (n, 1), ()), (n, k), (k, m)],
        "addmv": [p.one((n,), (1,), ()), (n, k), (k,)],
        "addr": [p.one((n, m), (m,)), (n,), (m,)],
    }[name]
    words = [p.tensor(shape) for shape in shapes]
    p.gradients(p.result(called(f"torch.{name}", *words, **options)))


def _matmul(p: Drawing) -> None:
    n, m, k = p.size(1, 5), p.size(1, 5), p.size(0 if p.chance(0.1) else 1, 5)
    batch = p.sizes(p.size(0, 3), 1, 3)
    one = p.one((k,), (n, k), (*batch, n, k), (*[p.one(1, s) for s in batch], n, k))
    two = p.one((k,), (k, m), (*batch, k, m), (*[p.one(1, s) for s in batch], k, m))
    p.gradients(p.result(called("torch.matmul", p.tensor(one), p.tensor(two))))


def _cdist(p: Drawing) -> None:
    batch = p.sizes(p.size(0, 2), 1, 3)
    inner = p.size(1, 4)
    if p.chance(0.2):
        x = p.tensor((p.size(1, 5), inner))
        p.gradients(p.result(called("F.pdist", x, **p.some(0.6, p=p.one(1, 2, 3.0, 0.0)))))
        return
    a, b = p.tensor((*batch, p.size(1, 5), inner)), p.tensor((*batch, p.size(1, 5), inner))
    options: dict[str, Any] = p.some(0.6, p=p.one(1, 2.0, 3.0, 0.5, 0.0))
    modes = ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    options.update(p.some(0.3, compute_mode=p.one(*modes)))
    p.gradients(p.result(called("torch.cdist", a, b, **options)))


def _similar(p: Drawing) -> None:
    shape = p.sizes(p.size(1, 4), 1, 5)
    other = shape if p.chance(0.7) else tuple(p.one(1, size) for size in shape)
    a, b = p.tensor(shape), p.tensor(other)
    if p.chance(0.6):
        options = p.some(0.5, dim=p.dim(len(shape)), eps=p.one(1e-3, 0.5))
        p.gradients(p.result(called("F.cosine_similarity", a, b, **options)))
        return
    options = p.some(0.4, p=p.one(1, 3.0), eps=1e-3, keepdim=True)
    p.gradients(p.result(called("F.pairwise_distance", a, b, **options)))


def _linear(p: Drawing) -> None:
    n, m = p.size(1, 5), p.size(1, 5)
    batch = p.sizes(p.size(0, 3), 1, 3)
    if p.chance(0.6):
        words = [p.tensor((*batch, n)), p.tensor((m, n))]
        if p.chance(0.6):
            words.append(p.tensor((m,)))
        p.gradients(p.result(called("F.linear", *words)))
        return
    k = p.size(1, 4)
    words = [p.tensor((*batch, n)), p.tensor((*batch, k)), p.tensor((m, n, k))]
    if p.chance(0.6):
        words.append(p.tensor((m,)))
    p.gradients(p.result(called("F.bilinear", *words)))


def _others(p: Drawing) -> None:
    n, m, k = p.sizes(3, 1, 4)
    text = p.one(
        lambda: called("torch.mm", p.tensor((n, k)), p.tensor((k, m))),
        lambda: called("torch.mv", p.tensor((n, k)), p.tensor((k,))),
        lambda: called("torch.outer", p.tensor((n,)), p.tensor((m,))),
        lambda: called("torch.dot", p.tensor((n,)), p.tensor((n,))),
        lambda: called("torch.kron", p.tensor((n, k)), p.tensor((m, n))),
        lambda: called("torch.linalg.multi_dot", [p.tensor((n, k)), p.tensor((k, m)),
                                                  p.tensor((m, n))]),
        lambda: called("torch.chain_matmul", p.tensor((n, k)), p.tensor((k, m))),
        lambda: called("torch.cross", p.tensor((n, 3)), p.tensor((n, 3)), dim=1),
        lambda: called("torch.inner", p.tensor((n, k)), p.tensor((m, k))),
        lambda: called("torch.vdot", p.tensor((n,)), p.tensor((n,))),
        lambda: called("torch.trapezoid", p.tensor((n, k)), dim=p.dim(2)),
        lambda: called("torch.block_diag", p.tensor((n, k)), p.tensor((m,))),
        lambda: called("torch.cartesian_prod", p.tensor((n,)), p.tensor((m,))),
        lambda: called("torch.cov", p.tensor((n, k))),
        lambda: called("torch.corrcoef", p.tensor((n + 1, k + 2))),
        lambda: called("torch.vander", p.tensor((n,)), **p.some(0.5, N=k, increasing=True)),
    )()  # fmt: skip
    p.gradients(p.result(text))
