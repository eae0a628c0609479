"""What is saved for backward and written to before it: in which way, and who still holds it.

Each function is a scenario; `t` is the library. Random programs of this kind: `test_versions.py`.
"""

from __future__ import annotations


def _leaf(t):
    return t.tensor([[0.5, 1.25, 2.0], [1.5, 0.75, 0.25]], requires_grad=True)


def _told(t, total, *inputs):
    """The gradients, or the error."""
    try:
        return t.autograd.grad(total, inputs, retain_graph=True)
    except RuntimeError as error:
        return str(error)


RESULTS = {
    "exp": lambda t, x: x.exp(), "tanh": lambda t, x: x.tanh(),
    "softmax": lambda t, x: x.softmax(0),
    "sigmoid": lambda t, x: x.sigmoid(), "sqrt": lambda t, x: x.sqrt(),
    "norm": lambda t, x: x.norm(dim=0), "cumprod": lambda t, x: x.cumprod(1),
    "max": lambda t, x: x.max(1)[0], "std": lambda t, x: x.std(0), "pow": lambda t, x: 2**x,
    "exp_": lambda t, x: (x * 1).exp_(), "of a view": lambda t, x: (x * 1)[0].tanh_(),
}  # fmt: skip
WRITES = {
    "mul_": lambda t, v: v.mul_(3), "detach": lambda t, v: v.detach().mul_(3),
    "data": lambda t, v: v.data.mul_(3), "view": lambda t, v: v.view(-1).mul_(3),
    "setitem": lambda t, v: v.__setitem__(0, 1.0), "part": lambda t, v: v.detach()[0].zero_(),
    "numpy": lambda t, v: v.detach().numpy().fill(1.0),
    "storage": lambda t, v: v.untyped_storage().fill_(0), "copy_": lambda t, v: v.copy_(v * 2),
    "zero_": lambda t, v: v.zero_(), "cumsum_": lambda t, v: v.cumsum_(0),
}  # fmt: skip


def results_written_to(t):
    """The result is dropped after the write, or is held: that makes no difference."""
    seen = []
    for result in RESULTS.values():
        for write in WRITES.values():
            for quiet in (False, True):
                for held in (False, True):
                    x = _leaf(t)
                    v = result(t, x)
                    total = (v * 0.1).tanh().sum() if held else v.sum()
                    with t.set_grad_enabled(not quiet):
                        write(t, v)
                    version = v._version
                    keep = [v] if held else []
                    del v
                    seen.append((version, _told(t, total, x), len(keep)))
    return seen


def inputs_written_to(t):
    seen = []
    for write in WRITES.values():
        for quiet in (False, True):
            x = _leaf(t)
            v = x * 2
            total = (v * v).sum() + v.sin().sum()
            with t.set_grad_enabled(not quiet):
                write(t, v)
            version = v._version
            del v
            seen.append((version, _told(t, total, x)))
    return seen


def the_issue(t):
    def program(h):
        v = t.exp(h)
        v.mul_(3)
        return t.tanh(v * 0.1).sum()

    h = _leaf(t)
    return _told(t, program(h), h)


def written_through_an_alias_that_outlives_it(t):
    x = _leaf(t)
    v = x.exp()
    total, alias = v.sum(), v.detach()
    del v
    alias.add_(1)
    return _told(t, total, x), alias._version


def written_by_a_sibling(t):
    x = _leaf(t)
    base = x * 1
    first, second = base[0], base[1]
    total = first.tanh().sum() + (second * second).sum()
    first.mul_(2)
    return _told(t, total, x)


def detached_in_place_then_written(t):
    x = _leaf(t)
    v = x.exp()
    total = v.sum()
    v.detach_()
    v.add_(1)
    return v._version, _told(t, total, x)


def detached_in_place_after_custom_functions_saved_it(t):
    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = _leaf(t)
    v = x * 3
    total = Square.apply(v).sum()
    v.detach_()
    return _told(t, total, x)


def alias_with_a_history_of_its_own(t):
    base, x = t.ones(2, 3), _leaf(t)
    alias = base.detach()
    alias.mul_(x)
    alias.exp_()
    total = alias.sum()
    del alias
    base.add_(1)
    return base._version, _told(t, total, x)


def out_writes(t):
    x = _leaf(t)
    v = x.exp()
    total = v.sum()
    with t.no_grad():
        t.mul(x.detach(), 2, out=v)
        t.add(x.detach(), 2, out=x)
    return v._version, x._version, _told(t, total, x)


def parameters_count_with_what_they_are_made_of(t):
    seen = []
    for source in (lambda w: w, lambda w: w.detach(), lambda w: w.data, lambda w: w[0]):
        w, x = t.ones(2, 3), _leaf(t)
        total = (x * w).sum()
        p = t.nn.Parameter(source(w))
        with t.no_grad():
            p.mul_(2)
        seen.append((w._version, p._version, _told(t, total, x)))
    return seen


def optimizers(t):
    seen = []
    for kind in ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "ASGD", "RMSprop", "Adagrad", "Rprop"):
        x = _leaf(t)
        total = (x * x).sum()
        x.grad = t.ones_like(x)
        getattr(t.optim, kind)([x], lr=0.1).step()
        seen.append((kind, x._version, _told(t, total, x)))
    return seen


def set_data_keeps_the_count(t):
    x = _leaf(t)
    v = x.exp()
    v.add_(1)
    v.data = t.zeros(2, 3)
    return v._version, x.data._version, x.detach()._version


def a_result_keeps_its_values_when_data_is_set(t):
    x = _leaf(t)
    v = x.exp()
    v.data = t.zeros(2, 3)
    return t.autograd.grad(v.sum(), x)


def resize_and_set(t):
    seen = []
    for act in (lambda v: v.resize_(1), lambda v: v.resize_(2, 3), lambda v: v.set_(t.ones(3)),
                lambda v: v.detach().resize_(1), lambda v: v.detach().set_(t.ones(3))):  # fmt: skip
        v = t.ones(2, 3)
        act(v)
        seen.append(v._version)
        x = _leaf(t)
        try:
            act(x)
        except RuntimeError as error:
            seen.append(str(error))
        seen.append(x._version)
    return seen


def indices_are_kept_as_they_are(t):
    x = _leaf(t)
    values, indices = (x * 1).max(1)
    indices.zero_()
    return _told(t, values.sum(), x)


def kinds_of_tensors_in_errors(t):
    x, seen = _leaf(t), []
    for kind in (t.float64, t.int64, t.uint8, t.bfloat16, t.float16, t.bool):
        w = t.ones(2, 3, dtype=kind)
        total = (x * w).sum()
        w.zero_()
        seen.append(_told(t, total, x))
    return seen


def names_of_overloads_in_errors(t):
    seen = []
    for make in (lambda x: x.sum(0), lambda x: x.sum(), lambda x: x**2, lambda x: x**x,
                 lambda x: t.zeros(2, 3).copy_(x), lambda x: (x * 1).fill_(2.0)):  # fmt: skip
        x = _leaf(t)
        v = make(x)
        total = (v * v).sum()
        with t.no_grad():
            v.add_(1)
        seen.append(_told(t, total, x))
    return seen


def the_first_of_several(t):
    """Which of two changed tensors the error speaks of."""
    x, seen = _leaf(t), []
    for make in (t.atan2, t.mul, t.div, t.hypot):
        a, b = x * 1, x * 2
        total = make(a, b).sum()
        a.sign_()
        b.sub_(1)
        seen.append(_told(t, total, x))
    return seen


def linear_saves_what_it_needs(t):
    seen = []
    for learns, changed in ((0, 0), (0, 1), (1, 0), (1, 1)):
        x, w = t.ones(2, 3), t.ones(4, 3)
        learner = (x, w)[learns].requires_grad_()
        total = t.nn.functional.linear(x, w, t.zeros(4)).sum()
        with t.no_grad():
            (x, w)[changed].mul_(2)
        told = _told(t, total, learner)
        seen.append("modified" if isinstance(told, str) else told)
    return seen


def saved_by_several_formulas(t):
    x, seen = _leaf(t), []
    for make in (lambda c: t.addcdiv(x, c, c), lambda c: t.addcmul(x, c, c),
                 lambda c: t.lerp(x, c, c), lambda c: t.where(c > 1, x, c),
                 lambda c: x.masked_fill(c > 1, 0.0)):  # fmt: skip
        c = t.full((2, 3), 0.5)
        total = make(c).sum()
        c.mul_(2)
        seen.append(_told(t, total, x))
    return seen


def pools_do_without_their_result(t):
    x = t.arange(16.0).reshape(1, 1, 4, 4).requires_grad_()
    v = t.nn.functional.max_pool2d(x, 2)
    t.relu_(v)
    return t.autograd.grad(v.sum(), x)


def comparisons_in_place(t):
    seen = []
    for name in ("eq_", "ne_", "lt_", "le_", "gt_", "ge_", "logical_not_"):
        x = _leaf(t)
        v = x * 1
        getattr(v, name)(*(() if name == "logical_not_" else (1.0,)))
        seen.append((name, v._version, t.autograd.grad(v.sum(), x)))
    x.logical_not_()
    return seen, x, x._version


def functions_of_stale_views(t):
    """A view whose base was written to gets a node when it is asked for one: before the node of
    the operator that asks."""

    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = _leaf(t)
    v = x * 1
    view, other = v.view_as(v), v.view(-1)
    v.mul_(3)
    first = t.autograd.grad(Double.apply(view).sum(), x, retain_graph=True)
    layer = t.nn.Identity()
    layer.register_full_backward_hook(lambda module, into, out: None)
    second = t.autograd.grad(layer(other).sum(), x, retain_graph=True)
    return first, second


def dirty_inputs_count_twice(t):
    class Tripled(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(3)
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 3 + 0 * ctx.saved_tensors[0]

    x = _leaf(t)
    v = x * 1
    total = Tripled.apply(v).sum()
    plain = t.ones(2, 3)
    Tripled.apply(plain)
    with t.no_grad():
        quiet = Tripled.apply(x)
    first = _told(t, total, x)
    v.add_(1)
    return v._version, plain._version, x._version, quiet.requires_grad, first, _told(t, total, x)


def checkpoints_check_their_inputs(t):
    x = _leaf(t)
    v = x * 1
    total = t.utils.checkpoint.checkpoint(lambda z: z.exp().sin(), v, use_reentrant=False).sum()
    v.mul_(2)
    return _told(t, total, x)


def hooks_see_no_versions(t):
    x = _leaf(t)
    with t.autograd.graph.saved_tensors_hooks(lambda s: s.clone(), lambda s: s):
        v = x.exp()
        total = v.sum() + (v * v).sum()
    v.mul_(2)
    return _told(t, total, x)


def gradients_of_gradients_through_saved_results(t):
    seen = []
    for held in (False, True):
        x = _leaf(t)
        v = x.exp()
        values, _ = (x * 2).max(1)
        total = v.sum() + (values * v[:, 0]).sum()
        keep = [v, values] if held else []
        del v, values
        (first,) = t.autograd.grad(total, x, create_graph=True)
        seen.append((len(keep) // 2 * 0, first.detach(), t.autograd.grad(first.sum(), x)))
    return seen


def views_of_unrecorded_views(t):
    x = _leaf(t)
    v = x * 1
    with t.no_grad():
        part = v[0]
    pieces, seen = t.ones(2, 3).unbind(0), []
    for write in (lambda: part[0].mul_(2), lambda: part.mul_(2), lambda: pieces[0].mul_(x[0])):
        try:
            write()
        except RuntimeError as error:
            seen.append(str(error))
    return seen


def alpha_of_another_kind(t):
    seen = []
    for kind in (t.bool, t.int64, t.float32):
        for alpha in (True, False, 1, 1.0, 2, 1.5, 1j):
            for name in ("add", "sub", "rsub", "add_", "sub_"):
                for other in (t.ones(2, dtype=kind), t.ones(2), 2, True):
                    x = t.ones(2, dtype=kind)
                    call = getattr(t, name) if name[-1] != "_" else getattr(t.Tensor, name)
                    try:
                        seen.append(call(x, other, alpha=alpha))
                    except RuntimeError as error:
                        seen.append(str(error))
    return seen
