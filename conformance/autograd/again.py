"""Backward a second time: it fails where something was saved, and only there. Copies of views.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations


def _twice(t, *calls):
    """For each operator: its node, those before it, and what two backward passes say."""
    seen = []
    for call in calls:
        x = (t.arange(12).reshape(4, 3).double().sin() + 2).requires_grad_()
        y = (t.arange(12).reshape(4, 3).double().cos() + 2).requires_grad_()
        result = call(x, y)
        result = result[0] if isinstance(result, (tuple, list)) else result
        seen.append((result.grad_fn.name().rstrip("0123456789"), [_pass(result), _pass(result)],
                     x.grad, y.grad))  # fmt: skip
    return seen


def _pass(result):
    try:
        result.sum().backward()
    except RuntimeError as error:
        return str(error)[:40]
    return "taken"


def one_operand_learns(t):
    return _twice(
        t,
        lambda x, y: x.fmod(2.0), lambda x, y: x.fmod(y.detach()), lambda x, y: x.remainder(2.0),
        lambda x, y: x % y.detach(), lambda x, y: x.detach().fmod(y), lambda x, y: x * 2.0,
        lambda x, y: x * y.detach(), lambda x, y: t.lerp(x, y.detach(), 0.5),
        lambda x, y: t.addcmul(x, y.detach(), y.detach(), value=2),
        lambda x, y: t.addcdiv(x, y.detach(), y.detach(), value=2),
        lambda x, y: t.addmm(x[:3], y.T.detach(), y.detach()),
        lambda x, y: t.addmm(x[:3], y.T, y.detach()),
        lambda x, y: t.addmv(x[0], y.T.detach(), y[:, 0].detach(), beta=2.0),
        lambda x, y: t.addr(x, y[:, 0].detach(), y[0].detach()),
        lambda x, y: t.baddbmm(x[None], x[None].detach(), y[None, :3].detach()),
        lambda x, y: t.addbmm(x, x[None].detach(), y[None, :3].detach()),
        lambda x, y: x.clone().fmod_(2.0),
        lambda x, y: x.clone().addmm_(y.detach(), y[:3].detach()),
    )  # fmt: skip


def factors(t):
    return _twice(
        t,
        lambda x, y: t.add(x, y, alpha=2), lambda x, y: t.add(x.detach(), y, alpha=2),
        lambda x, y: t.sub(x, y, alpha=0.5), lambda x, y: t.rsub(x, y, alpha=2),
        lambda x, y: t.rsub(x, 2.0, alpha=2), lambda x, y: x.clone().add_(y, alpha=3),
        lambda x, y: x.clone().sub_(y, alpha=3), lambda x, y: t.add(x.float(), y, alpha=2),
        lambda x, y: t.add(x * 1j, y, alpha=2 - 1j).abs(),
    )  # fmt: skip


def integrals_and_differences(t):
    places = t.arange(4).double().cumsum(0)
    return _twice(
        t,
        lambda x, y: t.trapezoid(x), lambda x, y: t.trapezoid(x, dx=2.0),
        lambda x, y: t.trapezoid(x, dim=0), lambda x, y: t.trapezoid(x, y),
        lambda x, y: t.trapezoid(x, places, dim=0), lambda x, y: t.trapezoid(x[:, :1]),
        lambda x, y: t.cumulative_trapezoid(x), lambda x, y: t.cumulative_trapezoid(x, dx=2.0),
        lambda x, y: t.cumulative_trapezoid(x, y, dim=0), lambda x, y: t.gradient(x),
        lambda x, y: t.gradient(x, spacing=2.0), lambda x, y: t.gradient(x, spacing=-1, dim=(1, 0)),
        lambda x, y: t.gradient(x, spacing=2.0, edge_order=2),
        lambda x, y: t.gradient(x, spacing=(places,), dim=0),
        lambda x, y: t.gradient(x, spacing=(places,), dim=0, edge_order=2),
    )  # fmt: skip


def second_order_of_factors(t):
    x = t.tensor([1.0, 2.0], dtype=t.float64, requires_grad=True)
    y = t.add(x * x, x.sin(), alpha=3)
    (first,) = t.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = t.autograd.grad(first.sum(), x)
    return first, second, first.requires_grad


def copies_of_views(t):
    def names(results):
        results = results if isinstance(results, (tuple, list)) else [results]
        return [(r.grad_fn.name(), r.is_contiguous(), r._is_view(), r.output_nr) for r in results]

    x = (t.arange(12).reshape(4, 3).double().sin() + 2).requires_grad_()
    z = t.view_as_complex(t.cat([x[:, :2], x[:, 1:]], 0))
    copies = [
        t.t_copy(x), t.slice_copy(x, 0, 1, 3), t.select_copy(x, 0, 1), t.expand_copy(x, (2, 4, 3)),
        t.permute_copy(x, (1, 0)), t.view_copy(x, (6, 2)), t.unsqueeze_copy(x, 0),
        t.squeeze_copy(x[:, :1]), t.transpose_copy(x, 0, 1), t.diagonal_copy(x),
        t.alias_copy(x), t.as_strided_copy(x, (2, 2), (1, 3)), t.unfold_copy(x, 0, 2, 1),
        t.narrow_copy(x, 0, 1, 2), t.unbind_copy(x), t.split_copy(x, 2), t.view_as_real_copy(z),
        t.split_with_sizes_copy(x, [1, 3]),
    ]  # fmt: skip
    total = 0
    for number, copy in enumerate(copies):
        for part in copy if isinstance(copy, (tuple, list)) else [copy]:
            part = t.view_as_real(part) if part.is_complex() else part
            total = total + (number + 1) * (part * part).sum()
    total.backward()
    with t.no_grad():
        quiet = t.t_copy(x).requires_grad
    return [names(copy) for copy in copies], x.grad, quiet


def copy_is_apart(t):
    x = t.ones(2, 2, requires_grad=True)
    y = t.t_copy(x)
    y.mul_(2)
    y.sum().backward()
    return y.grad_fn, x.grad, x


def names_of_views_and_products(t):
    x = (t.arange(24).reshape(4, 6).double().sin() + 2).requires_grad_()
    results = [
        x[:, :3].reshape(2, 2, 3), x.reshape(24), x.T.reshape(24), x[:, :3].flatten(1),
        x[:, 0].reshape(2, 2), x[::2].flatten(), x[1:].reshape(-1), x.view(-1)[::2].ravel(),
        x[:1].expand(4, 6).reshape(2, 2, 6), t.kron(x[0], x[1]), t.kron(x, x[:1]),
        t.fft.ifft(x).abs(), t.fft.ihfft(x).abs(), t.fft.rfft(x).abs(),
    ]  # fmt: skip
    total = sum((number + 1) * (part * part).sum() for number, part in enumerate(results))
    total.backward()
    names = [(part.grad_fn, part._is_view()) for part in results]
    inner = [t.fft.ifft(x).grad_fn, t.fft.ihfft(x).grad_fn, t.fft.ihfftn(x).grad_fn]
    return names, inner, x.grad


def rounded_division_in_place(t):
    x = t.tensor([5.0, -7.0, 9.0], requires_grad=True)
    seen = []
    for mode in ("trunc", "floor"):
        base = x * 1
        whole, part = (x * 1).div_(x / 2, rounding_mode=mode), base[1:].div_(2, rounding_mode=mode)
        (whole.sum() + base.sum() + part.sum()).backward()
        seen.append((whole, whole.grad_fn, whole._version, part, base, x.grad))
    exact = [(x * 1).div_(2.0, rounding_mode=None).grad_fn]
    exact += [
        t.div(x, 2.0, rounding_mode=None).grad_fn,
        (x * 1)[1:].div_(x[1:], rounding_mode=None),
    ]
    integers = t.tensor([5, -7, 9]).div_(2, rounding_mode="floor")
    return seen, exact, integers, t.tensor([5, -7]).divide_(2, rounding_mode="trunc")


def rounded_division_in_place_of_a_leaf(t):
    t.ones(3, requires_grad=True).div_(2, rounding_mode="floor")


def rounded_division_to_what_mode(t):
    t.ones(3).div_(2, rounding_mode="up")


def nothing_to_clamp_of_a_leaf(t):
    t.ones(3, requires_grad=True).clamp_()


def nothing_to_clamp(t):
    t.ones(3).clamp_()


def scans_in_place(t):
    seen = []
    for name in ("cumsum_", "cumprod_"):
        for kind in (None, t.float64, t.float32, t.int64):
            x = t.full((3,), 1.5, dtype=t.float64, requires_grad=True)
            try:
                result = getattr(x * 1, name)(0, dtype=kind)
            except RuntimeError as error:
                seen.append(str(error))
                continue
            result.sum().backward()
            seen.append((result, x.grad))
        for kind in (t.int32, t.uint8, t.float16):
            seen.append(getattr(t.full((3,), 3).to(kind), name)(0))
    return seen


def scan_of_truth_in_place(t):
    t.ones(3).bool().cumsum_(0)


def scan_in_place_of_a_leaf(t):
    t.ones(3, requires_grad=True).cumprod_(0, dtype=t.int64)


def derivative_by_steps_of_zero(t):
    x = t.tensor([1.0, 3.0, 2.0], requires_grad=True)
    return t.gradient(x, spacing=0), t.gradient(x, spacing=0, edge_order=2)
