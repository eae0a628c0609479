"""Normalisations, in training and after it."""

from __future__ import annotations

from typing import Any

from .drawing import Drawing, Text, called


def drawn(p: Drawing) -> None:
    p.one(_batch, _batch_layer, _instance, _instance_layer, _layer, _group, _rms, _local, _vectors,
          _weight)(p)  # fmt: skip


def _image(p: Drawing, low: int = 0, high: int = 3) -> tuple[int, ...]:
    dims = p.size(low, high)
    batch = p.one(1, 2, 3, 4, 0 if p.chance(0.2) else 3)
    return (batch, p.size(1, 6), *p.sizes(dims, 1, 5))


def _running(p: Drawing, channels: int) -> list[Any]:
    mean = p.tensor((channels,), learns=False, layout="rows")
    var = p.tensor((channels,), learns=False, layout="rows", after=".abs()")
    return [mean, var]


def _affine(p: Drawing, shape: tuple[int, ...], share: float = 0.6) -> dict[str, Text]:
    return {name: p.tensor(shape) for name in ("weight", "bias") if p.chance(share)}


def _eps(p: Drawing) -> dict[str, Any]:
    return p.some(0.3, eps=p.one(1e-3, 1e-5, 0.1))


def _batch(p: Drawing) -> None:
    shape = _image(p)
    x = p.tensor(shape)
    running = _running(p, shape[1]) if p.chance(0.7) else [None, None]
    options: dict[str, Any] = _affine(p, shape[1:2]) | _eps(p)
    options.update(p.some(0.6, training=p.one(True, True, False), momentum=p.one(0.3, 0.0, 1.0)))
    y = p.result(called("F.batch_norm", x, *running, **options))
    _told(p, running)
    p.gradients(y)


def _told(p: Drawing, running: list[Any]) -> None:
    if running[0] is not None:
        p.let("r", f"[{running[0]}.clone(), {running[1]}.clone()]")


def _batch_layer(p: Drawing) -> None:
    dims = p.one(1, 2, 2, 3)
    shape = _image(p, dims if dims > 1 else p.one(0, 1), dims if dims > 1 else 1)
    x = p.tensor(shape)
    options = _eps(p) | p.some(
        0.3, momentum=p.one(0.5, None), affine=False, track_running_stats=False
    )
    m = p.module(called(f"nn.BatchNorm{dims}d", shape[1], **options))
    _used(p, m, x)


def _used(p: Drawing, m: Text, x: Text) -> None:
    """Once or twice, in training or not."""
    results = [p.result(called(m, x))]
    if p.chance(0.4):
        p.let("t", f"{m}.eval().training")
        results.append(p.result(called(m, x)))
    p.gradients(*results)
    p.let("r", f"state({m})")


def _instance(p: Drawing) -> None:
    shape = _image(p, 1, 3)
    x = p.tensor(shape)
    running = _running(p, shape[1]) if p.chance(0.5) else [None, None]
    options: dict[str, Any] = _affine(p, shape[1:2]) | _eps(p)
    options.update(p.some(0.4, use_input_stats=p.one(True, False), momentum=p.one(0.3, 1.0)))
    y = p.result(called("F.instance_norm", x, *running, **options))
    _told(p, running)
    p.gradients(y)


def _instance_layer(p: Drawing) -> None:
    dims = p.one(1, 2, 2, 3)
    shape = _image(p, dims, dims)
    x = p.tensor(shape[p.one(0, 0, 0, 1) :])
    options = _eps(p) | p.some(0.4, affine=True, track_running_stats=True, momentum=0.4)
    m = p.module(called(f"nn.InstanceNorm{dims}d", shape[1], **options))
    _used(p, m, x)


def _layer(p: Drawing) -> None:
    shape = p.sizes(p.size(1, 4), 1, 6)
    inner = shape[p.random.randrange(len(shape)) :]
    x = p.tensor(shape if p.chance(0.9) else (0, *shape))
    if p.chance(0.5):
        p.gradients(p.result(called("F.layer_norm", x, inner, **_affine(p, inner), **_eps(p))))
        return
    options = _eps(p) | p.some(0.3, elementwise_affine=False, bias=False)
    p.gradients(p.result(called(p.module(called("nn.LayerNorm", inner, **options)), x)))


def _group(p: Drawing) -> None:
    shape = _image(p)
    divisors = [n for n in range(1, shape[1] + 1) if shape[1] % n == 0]
    groups = p.one(*divisors)
    x = p.tensor(shape)
    if p.chance(0.6):
        options = _affine(p, shape[1:2]) | _eps(p)
        p.gradients(p.result(called("F.group_norm", x, groups, **options)))
        return
    options = _eps(p) | p.some(0.3, affine=False)
    m = p.module(called("nn.GroupNorm", groups, shape[1], **options))
    p.gradients(p.result(called(m, x)))


def _rms(p: Drawing) -> None:
    shape = p.sizes(p.size(1, 4), 1, 6)
    inner = shape[p.random.randrange(len(shape)) :]
    x = p.tensor(shape)
    if p.chance(0.6):
        options = _eps(p)
        if p.chance(0.6):
            options["weight"] = p.tensor(inner)
        p.gradients(p.result(called("F.rms_norm", x, inner, **options)))
        return
    options = _eps(p) | p.some(0.3, elementwise_affine=False)
    p.gradients(p.result(called(p.module(called("nn.RMSNorm", inner, **options)), x)))


def _local(p: Drawing) -> None:
    x = p.tensor(_image(p, 1, 3))
    options = p.some(0.4, alpha=p.one(0.1, 1.0), beta=p.one(0.5, 1.0), k=p.one(1.0, 2.0))
    p.gradients(p.result(called("F.local_response_norm", x, p.size(1, 5), **options)))


def _vectors(p: Drawing) -> None:
    shape = p.sizes(p.size(1, 4), 1, 5)
    x = p.tensor(shape)
    options = p.some(0.5, p=p.one(1, 2, 3.0, 0.5),
                     dim=p.dim(len(shape)), eps=p.one(1e-3, 0.5))  # fmt: skip
    p.gradients(p.result(called("F.normalize", x, **options)))


def _weight(p: Drawing) -> None:
    """Norms as reductions."""
    shape = p.sizes(p.size(1, 4), 1, 5)
    x = p.tensor(shape)
    dims = p.random.sample(range(len(shape)), p.size(1, len(shape)))
    options = p.some(0.5, dim=p.one(dims, dims[0]), keepdim=True)
    options["p"] = p.one(1, 2, 3, 0.5, 0, "fro", 2.5)
    p.gradients(p.result(called("torch.norm", x, **options)))
