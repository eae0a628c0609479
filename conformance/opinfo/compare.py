"""What counts as the same result: structure, tolerances, and freedoms that torch leaves open."""

import torch
from bridge import short_name
from torch.testing._comparison import default_tolerances
from torch.testing._internal.common_device_type import precisionOverride, toleranceOverride

SCALARS = (bool, int, float, complex, str, type(None))
# Test classes of torch whose tolerance overrides compare against an independent reference.
TOLERANCE_FROM = {
    None,
    "TestCommon",
    "TestUnaryUfuncs",
    "TestBinaryUfuncs",
    "TestBinaryUfuncsDevice",
    "TestReductions",
    "TestMasked",
    "TestFFT",
    "TestModule",
}


class Void(Exception):
    """This case measures nothing here; it leaves the count."""


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def mirror(want, got, leaf, where="output"):
    """leaf(w, g, where) over two like-shaped trees, in want's container types."""
    if isinstance(want, dict):
        expect(isinstance(got, dict) and list(got) == list(want), f"{where}: keys differ")
        return {k: mirror(want[k], got[k], leaf, f"{where}[{k!r}]") for k in want}
    if isinstance(want, (list, tuple)):
        expect(
            isinstance(got, (list, tuple)),
            f"{where}: {type(got).__name__} instead of {type(want).__name__}",
        )
        expect(len(got) == len(want), f"{where}: length {len(got)} instead of {len(want)}")
        for name in getattr(type(want), "__match_args__", ()):
            expect(hasattr(got, name), f"{where}: no field .{name}")
        items = [mirror(w, g, leaf, f"{where}[{i}]") for i, (w, g) in enumerate(zip(want, got))]
        if isinstance(want, torch.Size):
            return tuple(items)
        return type(want)(*items) if hasattr(want, "_fields") else type(want)(items)
    return leaf(want, got, where)


def flatten(tree):
    if isinstance(tree, dict):
        tree = tree.values()
    elif not isinstance(tree, (list, tuple)):
        return [tree]
    return [leaf for branch in tree for leaf in flatten(branch)]


def bits_of(want, got):
    """Whether results are views with a conjugate or negative bit."""
    return [
        ("is_conj()", got.is_conj(), want.is_conj()),
        ("is_neg()", got.is_neg(), want.is_neg()),
    ]


def check_structure(bridge, want, got):
    def leaf(w, g, where):
        if isinstance(w, torch.Tensor):
            expect(
                isinstance(g, bridge.get("Tensor")),
                f"{where}: {type(g).__name__} instead of Tensor",
            )
            facts = [
                ("shape", tuple(g.shape), tuple(w.shape)),
                ("dtype", short_name(g.dtype), short_name(w.dtype)),
                ("requires_grad", bool(g.requires_grad), w.requires_grad),
                *(bits_of(w, g) if bridge.compares_bits else ()),
            ]
            for fact, have, need in facts:
                expect(have == need, f"{where}: {fact} {have} instead of {need}")
        elif isinstance(w, SCALARS):
            expect(type(g) is type(w), f"{where}: {type(g).__name__} instead of {type(w).__name__}")
        else:
            expect(short_name(g) == short_name(w), f"{where}: {g!r} instead of {w!r}")

    mirror(want, got, leaf)


def to_torch(bridge, want, got):
    return mirror(
        want, got, lambda w, g, where: bridge.fetch(g) if isinstance(w, torch.Tensor) else g
    )


def check_close(want, got, rtol, atol, where):
    if want.dtype == torch.complex32:  # torch itself cannot compare these
        want, got = want.to(torch.complex64), got.to(torch.complex64)
    if not torch.equal(want, got):
        torch.testing.assert_close(
            got,
            want,
            rtol=rtol,
            atol=atol,
            equal_nan=True,
            msg=lambda text: f"{where}: {' '.join(text.split())}",
        )


def check_values(want, got, tolerance, what="output"):
    """Both trees hold torch tensors by now, of the same shapes and dtypes."""
    for i, (w, g) in enumerate(zip(flatten(want), flatten(got), strict=True)):
        if isinstance(w, (float, complex)):
            w, g = torch.tensor(w, dtype=torch.complex128), torch.tensor(g, dtype=torch.complex128)
            check_close(w, g, *tolerance(torch.float32), f"{what} {i}")
        elif isinstance(w, torch.Tensor):
            check_close(w, g, *tolerance(w.dtype), f"{what} {i}")
        elif isinstance(w, SCALARS):
            expect(w == g, f"{what} {i}: {g!r} instead of {w!r}")


def tolerance_of(info, sample_dtype, scale):
    """dtype of an output -> (rtol, atol): torch's default, widened by the database's overrides."""
    overrides = []
    for entry in info.decorators or ():
        if (
            getattr(entry, "device_type", None) in (None, "cpu")
            and getattr(entry, "cls_name", None) in TOLERANCE_FROM
        ):
            for d in getattr(entry, "decorators", [entry]):
                if isinstance(d, precisionOverride):
                    overrides.append({dtype: (0, atol) for dtype, atol in d.d.items()})
                elif isinstance(d, toleranceOverride):
                    overrides.append({dtype: (t.rtol, t.atol) for dtype, t in d.d.items()})

    def tolerance(dtype):
        pairs = [default_tolerances(dtype)] + [
            o[d] for o in overrides for d in {dtype, sample_dtype} if d in o
        ]
        exact = not (dtype.is_floating_point or dtype.is_complex)
        return (0, 0) if exact else tuple(scale * max(column) for column in zip(*pairs))

    return tolerance


# ---- Results that torch documents as not unique. Each function maps (args, kwargs, output) to
# ---- quantities that every right answer shares; they are compared instead of the raw output.


def _svd(u, s, vh):
    k = s.shape[-1]
    return s, (u[..., :k] * s[..., None, :]) @ vh[..., :k, :], u.mH @ u, vh @ vh.mH


def _qr(args, kwargs, out):
    q, r = out
    k = min(r.shape[-2:])
    phase = r.detach().diagonal(dim1=-2, dim2=-1).sgn()
    phase = torch.where(phase == 0, 1, phase)
    fixed = (phase.conj()[..., None] * r[..., :k, :], r[..., k:, :])
    if q.dim() < 2:  # mode="r"
        return fixed
    return *fixed, q[..., :k] * phase[..., None, :], q[..., k:] @ q[..., k:].mH


def _power_sums(values):
    return [(values**n).sum(-1) for n in range(1, values.shape[-1] + 1)]


def _eig(args, kwargs, out):
    values, vectors = out
    rebuilt = (vectors * values[..., None, :]) @ torch.linalg.inv(vectors)
    return rebuilt, vectors.abs().square().sum(-2), _power_sums(values)


def _eigh(args, kwargs, out):
    values, vectors = out
    return values, (vectors * values[..., None, :]) @ vectors.mH, vectors.mH @ vectors


def _index_of_value(dim_position, permutation=False, bare=False):
    """Outputs (values, indices), or bare indices, where ties leave the index open: look up what it points at."""

    def canonical(args, kwargs, out):
        if kwargs.get("stable") or not (bare or isinstance(out, tuple)):
            return out
        values, indices = (None, out) if bare else out
        x, dim = args[0], args[dim_position] if len(args) > dim_position else kwargs.get("dim", -1)
        found = x.gather(dim, indices.unsqueeze(dim) if indices.dim() < x.dim() else indices)
        if not kwargs.get("sorted", True):
            found, values = found.sort(dim)[0], values.sort(dim)[0]
        return values, found, indices.sort(dim)[0] if permutation else None

    return canonical


CANONICAL = {
    "svd": lambda a, k, o: _svd(o[0], o[1], o[2].mH),
    "svd_lowrank": lambda a, k, o: _svd(o[0], o[1], o[2].mH),
    "pca_lowrank": lambda a, k, o: _svd(o[0], o[1], o[2].mH),
    "linalg.svd": lambda a, k, o: _svd(*o),
    "qr": _qr,
    "linalg.qr": _qr,
    "linalg.eig": _eig,
    "linalg.eigh": _eigh,
    "linalg.eigvals": lambda a, k, o: _power_sums(o),
    "topk": _index_of_value(2),
    "kthvalue": _index_of_value(2),
    "mode": _index_of_value(1),
    "median": _index_of_value(1),
    "nanmedian": _index_of_value(1),
    "sort": _index_of_value(1, permutation=True),
    "argsort": _index_of_value(1, permutation=True, bare=True),
}
CANONICAL_SLACK = 10  # those quantities cost a few more roundings than the raw output
# For gradients the database's samples bring such a function of their own, except here.
CANONICAL_GRAD = {"qr": _qr, "linalg.qr": _qr}
