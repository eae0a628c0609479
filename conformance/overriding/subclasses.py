"""Subclasses of Tensor: what becomes of their class, and which functions they are asked for.

Each function is a scenario; `t` is the library.
"""

from __future__ import annotations

import copy
import pickle

from conformance.overriding.classes import logged
from conformance.side_by_side import attempt


def _kinds(*values):
    return [type(value).__name__ for value in values]


def _plain_class(t):
    return type("Plain", (t.Tensor,), {})


def class_is_kept_by_operators(t):
    x = t.arange(6.0).reshape(2, 3).as_subclass(_plain_class(t))
    found = [x * 2, 2 * x, -x, x + x, x**2, 2**x, x / 2, 1 / x, x // 2, x % 2, x @ x.T, x > 1,
             x == x, abs(x), ~(x > 1), x - t.ones(3), t.ones(3) - x]  # fmt: skip
    return _kinds(*found), found[0], found[10], found[-1]


def class_is_kept_by_functions(t):
    x = t.arange(6.0).reshape(2, 3).as_subclass(_plain_class(t))
    return _kinds(
        t.tanh(x), t.sum(x), t.mean(x, 0), t.softmax(x, 0), t.cat([x, x]), t.stack((x, x)),
        t.where(x > 1, x, 0.0), t.zeros_like(x), t.matmul(x, x.T), t.reshape(x, (3, 2)),
        t.nn.functional.relu(x), t.nn.functional.linear(x, t.ones(4, 3)),
        t.nn.functional.dropout(x), t.nn.functional.softmax(x, dim=1), t.linalg.norm(x),
        t.einsum("ij->i", x), t.einsum(x, [0, 1]), t.einsum(x, [0, 1], [0]), t.argmax(x),
        t.clamp(x, 0, 1), t.nn.Linear(3, 2)(x),
    )  # fmt: skip


def class_is_kept_by_methods(t):
    x = t.arange(6.0).reshape(2, 3).as_subclass(_plain_class(t))
    return _kinds(
        x.sum(), x.view(6), x.reshape(3, 2), x.t(), x.T, x.mT, x.clone(), x.detach(), x.data,
        x.to(t.float64), x.double(), x.new_zeros(2), x.expand(2, 2, 3), x.float(), x.cpu(),
        x.contiguous(), x.squeeze(), x.unsqueeze(0), x.transpose(0, 1), x.add_(1), x.zero_(),
    )  # fmt: skip


def class_is_kept_by_indexing(t):
    x = t.arange(6.0).reshape(2, 3).as_subclass(_plain_class(t))
    row = t.tensor([1, 0])
    found = [x[0], x[0, 1], x[:, 1:], x[None], x[..., 0], x[x > 2], x[row], x[[1, 0]]]
    return _kinds(*found, *x, *x.unbind(1)), found


def several_results(t):
    x = t.arange(6.0).reshape(2, 3).as_subclass(_plain_class(t))
    most = t.max(x, dim=0)
    parts = x.split(1)
    return (
        _kinds(*most, *parts, *t.chunk(x, 2), *t.sort(x), *t.linalg.svd(x), *t.topk(x, 1)),
        type(most).__name__, type(parts).__name__, type(x.chunk(2)).__name__,
    )  # fmt: skip


def results_that_are_no_tensors(t):
    x = t.arange(6.0).reshape(2, 3).as_subclass(_plain_class(t))
    return (
        tuple(x.shape), str(x.dtype), x.size(0), x.stride(), x.numel(), x.dim(), x.ndim, len(x),
        x[0, 1].item(), x.tolist(), float(x[1, 1]), int(x[1, 1]), bool(x[1, 1]), x.is_leaf,
        x.is_contiguous(), x.requires_grad, x.grad, type(x.numpy()).__name__, t.equal(x, x),
        t.allclose(x, x), t.is_tensor(x), x.element_size(), 3.0 in x, str(x.device),
        t.is_floating_point(x), x.is_floating_point(), type(x.shape).__name__,
    )  # fmt: skip


def two_unrelated_classes(t):
    x = t.ones(2).as_subclass(type("A", (t.Tensor,), {}))
    y = t.ones(2).as_subclass(type("B", (t.Tensor,), {}))
    return attempt(lambda: x + y), attempt(t.add, x, y), attempt(t.cat, [x, y])


def subclass_of_a_subclass_wins(t):
    base = type("A", (t.Tensor,), {})
    x, y = t.ones(2).as_subclass(base), t.ones(2).as_subclass(type("B", (base,), {}))
    return _kinds(x + y, y + x, t.add(x, y), t.cat([x, y]), x - t.ones(2))


def order_of_calls(t):
    log = []
    x = t.arange(6.0).reshape(2, 3).as_subclass(logged(t, log))
    x + 1
    1 + x
    x.add(1)
    x.sum(dim=0)
    t.tanh(x)
    t.cat([x, x])
    t.nn.functional.relu(x)
    t.nn.functional.linear(x, x)
    x[0]
    x[0] = 1.0
    x += 1
    return log


def plain_operand_first(t):
    log = []
    x, y = t.ones(2).as_subclass(logged(t, log)), t.ones(2)
    y + x
    y - x
    y * x
    t.add(y, x, alpha=2)
    y.add_(x)
    t.stack([y, x])
    t.where(y > 0, y, x)
    return log


def items_and_properties(t):
    log = []
    x = t.arange(4.0).as_subclass(logged(t, log))
    len(x)
    x[1].item()
    x.tolist()
    bool(x[1])
    float(x[2])
    repr(x)
    x.numpy()
    x.size()
    x.dim()
    return [entry[:2] for entry in log]


def getters(t):
    found = []

    def note(cls, func, types, args=(), kwargs=None):
        found.append((func == t.Tensor.shape.__get__, func == t.Tensor.requires_grad.__set__))
        return super(kind, cls).__torch_function__(func, types, args, kwargs)

    kind = type("Noting", (t.Tensor,), {"__torch_function__": classmethod(note)})
    x = t.ones(2, 3).as_subclass(kind)
    x.shape  # noqa: B018
    x.requires_grad = True
    x.T  # noqa: B018
    return found


def identity_of_functions(t):
    seen = []

    def note(cls, func, types, args=(), kwargs=None):
        seen.append(func)
        return super(kind, cls).__torch_function__(func, types, args, kwargs)

    kind = type("Noting", (t.Tensor,), {"__torch_function__": classmethod(note)})
    x = t.ones(2, 2).as_subclass(kind)
    t.add(x, 1)
    x.add(1)
    x + 1
    x[0]
    t.nn.functional.gelu(x)
    t.matmul(x, x)
    x.sum()
    wanted = [t.add, t.Tensor.add, t.Tensor.add, t.Tensor.__getitem__, t.nn.functional.gelu,
              t.matmul, t.Tensor.sum]  # fmt: skip
    return [func is want or func == want for func, want in zip(seen, wanted, strict=True)]


def disabled_region(t):
    x = t.ones(2).as_subclass(_plain_class(t))
    with t._C.DisableTorchFunctionSubclass():
        inside = _kinds(x + 1, t.tanh(x), x[0], x.sum(), x.T)
    return inside, _kinds(x + 1)


def class_that_opts_out(t):
    made = {"__torch_function__": t._C._disabled_torch_function_impl}
    x = t.ones(2).as_subclass(type("Out", (t.Tensor,), made))
    return _kinds(x, x + 1, t.tanh(x), x[0], x.sum())


def with_attributes(t):
    kind = _plain_class(t)
    x = t.ones(2).as_subclass(kind)
    x.note = "mine"
    y = copy.copy(x)
    return x.note, hasattr(x + 1, "note"), y.note, type(y).__name__, isinstance(x, t.Tensor)


def metadata(t):
    def carry(cls, func, types, args=(), kwargs=None):
        result = super(kind, cls).__torch_function__(func, types, args, kwargs)
        if isinstance(result, kind):
            result.tags = [tag for value in args for tag in getattr(value, "tags", ())]
        return result

    kind = type("Tagged", (t.Tensor,), {"__torch_function__": classmethod(carry)})
    x, y = t.ones(2).as_subclass(kind), t.ones(2).as_subclass(kind)
    x.tags, y.tags = ["x"], ["y"]
    return (x + y).tags, (x * 2).tags, (t.ones(2) * y).tags, t.tanh(x).tags, (x + y)[0].tags


def counts_by_function(t):
    counts = {}

    def count(cls, func, types, args=(), kwargs=None):
        counts[func.__name__] = counts.get(func.__name__, 0) + 1
        return super(kind, cls).__torch_function__(func, types, args, kwargs)

    kind = type("Counting", (t.Tensor,), {"__torch_function__": classmethod(count)})
    model = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.ReLU(), t.nn.Linear(4, 2))
    result = model(t.ones(2, 3).as_subclass(kind))
    return counts, type(result).__name__


def method_of_the_class_itself(t):
    class Doubling(t.Tensor):
        def add(self, other):
            return "mine", super().add(other)

        def __mul__(self, other):
            return "product", super().__mul__(other)

    x = t.ones(2).as_subclass(Doubling)
    word, total = x.add(1)
    other, product = x * 3
    return word, type(total).__name__, total, other, type(product).__name__, type(x + 1).__name__


def making_them(t):
    kind = _plain_class(t)
    made = [kind([1.0, 2.0]), t.ones(2).as_subclass(kind), t.Tensor._make_subclass(kind, t.ones(2))]
    leaf = t.Tensor._make_subclass(kind, t.ones(2), True)
    x = t.ones(2)
    shared = x.as_subclass(kind)
    shared.add_(1)
    return (
        _kinds(*made), leaf.requires_grad, leaf.is_leaf, x, x._version, type(shared._base).__name__,
        attempt(t.ones(2).as_subclass, int), attempt(t.ones(2).as_subclass, 3),
        type(t.tensor(shared)).__name__, type(t.as_tensor(shared)).__name__,
    )  # fmt: skip


# ---- autograd


def gradients(t):
    kind = _plain_class(t)
    x = t.arange(3.0, requires_grad=True)
    y = (x.as_subclass(kind) * 2).square().sum()
    y.backward()
    return type(y).__name__, type(x.grad).__name__, x.grad, type(y.grad_fn).__name__


def gradient_of_a_leaf(t):
    leaf = t.Tensor._make_subclass(_plain_class(t), t.arange(3.0), True)
    (leaf * leaf).sum().backward()
    (found,) = t.autograd.grad((leaf * 3).sum(), leaf)
    return type(leaf.grad).__name__, leaf.grad, type(found).__name__, found


def backward_asks_nobody(t):
    log = []
    x = t.arange(3.0).as_subclass(logged(t, log)).requires_grad_()
    y = (x * x).sum()
    del log[:]
    with t._C.DisableTorchFunctionSubclass():
        y.backward()
    return log, x.grad


def functions_of_the_user(t):
    log = []
    kind = logged(t, log)

    class Cube(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x * x

    x = t.arange(3.0, requires_grad=True)
    y = Cube.apply(x.as_subclass(kind))
    y.sum().backward()
    return type(y).__name__, x.grad


def parameters(t):
    kind = _plain_class(t)
    parameter = t.nn.Parameter(t.ones(2).as_subclass(kind))
    module = t.nn.Module()
    module.weight = parameter
    optimizer = t.optim.SGD([parameter], lr=0.5)
    (module.weight * 2).sum().backward()
    optimizer.step()
    return (
        type(parameter).__name__, isinstance(parameter, t.nn.Parameter), parameter.requires_grad,
        list(dict(module.named_parameters())), type(module.weight * 2).__name__, parameter,
        type(parameter.grad).__name__, type(module.state_dict()["weight"]).__name__,
    )  # fmt: skip


def inference_mode(t):
    kind = _plain_class(t)
    with t.inference_mode():
        x = t.ones(2).as_subclass(kind)
        y = x * 2
    return type(y).__name__, y.is_inference(), x.is_inference()


def pickled(t):
    kind = type("Pickled", (t.Tensor,), {"__module__": __name__})
    globals()["Pickled"] = kind
    x = t.ones(2).as_subclass(kind)
    x.note = 3
    back = pickle.loads(pickle.dumps(x))
    return type(back).__name__, back, back.note


def copied_deeply(t):
    class Deep(t.Tensor):
        def new_empty(self, *size, **options):
            return super().new_empty(*size, **options).as_subclass(type(self))

    x = t.ones(2).as_subclass(Deep)
    x.note = [3]
    back = copy.deepcopy(x)
    return type(back).__name__, back, back.note == [3] and back.note is not x.note


def texts(t):
    kind = type("Quantity", (t.Tensor,), {})
    x = t.ones(2).as_subclass(kind)
    grown = t.ones(2, requires_grad=True).as_subclass(kind)
    return repr(x), str(x * 2), repr(grown), repr(x.double())


def history_of_what_a_class_is_called_with(t):
    """`Subclass(x)` and `torch.Tensor(x)` are views that hand gradients on."""
    kind = _plain_class(t)
    found = []
    for make in (
        lambda: t.ones(2, requires_grad=True),
        lambda: t.ones(2, requires_grad=True) * 2,
        lambda: t.ones(2),
        lambda: t.nn.Parameter(t.ones(2)),
        lambda: t.ones(2, dtype=t.complex64).conj(),
        lambda: t.ones(2).add_(1),
    ):
        for constructor in (kind, t.Tensor, t.ones(1).new):
            x = make()
            y = attempt(lambda constructor=constructor, x=x: constructor(x))
            if isinstance(y, t.Tensor):
                found.append((type(y).__name__, y.requires_grad, y.is_leaf, y._is_view(),
                              y._base is x, y._version, y.is_conj()))  # fmt: skip
                found.append(attempt(lambda x=x, y=y: _gradient_through(t, x, y)))
                found.append(attempt(lambda x=x, y=y: (y.mul_(2), x._version)[1]))
    return found


def _gradient_through(t, x, y):
    return t.autograd.grad((y * 3).sum(), x)[0].tolist()


def methods_called_by_their_class(t):
    """`torch.Tensor.size(x)` asks as `x.size()` does."""
    log = []
    x = logged(t, log)([[1.0, 2.0], [3.0, 4.0]])
    kind = t.Tensor
    for call in (
        lambda: kind.size(x), lambda: kind.dim(x), lambda: kind.numel(x), lambda: kind.stride(x),
        lambda: kind.is_conj(x), lambda: kind.is_complex(x), lambda: kind.tolist(x),
        lambda: kind.data_ptr(x), lambda: kind.element_size(x), lambda: kind.detach(x),
        lambda: kind.cpu(x), lambda: kind.double(x), lambda: kind.item(x[0, 0]),
        lambda: kind.__len__(x), lambda: kind.clamp_(x, 1, 2), lambda: kind.squeeze_(x),
        lambda: kind.register_hook(x, print), lambda: kind.requires_grad_(x), lambda: kind.type(x),
        lambda: kind.contiguous(x), lambda: kind.fill_diagonal_(x.detach(), 1),
        lambda: kind.get_device(x), lambda: kind.is_floating_point(x), lambda: kind.__repr__(x),
    ):  # fmt: skip
        attempt(call)
    return [entry[0] for entry in log]


def methods_that_are_first_used_now(t):
    """Also those whose code was not there when the first class took part."""
    log = []
    x = logged(t, log)([[1.0, 2.0], [3.0, 4.0]])
    t.Tensor.index_fill_(x, 0, t.tensor([0]), 5.0)
    t.Tensor.masked_scatter_(x, x > 2, t.ones(4))
    t.Tensor.erfinv_(x)
    return [entry[0] for entry in log]


def in_place_functions(t):
    log = []
    x = logged(t, log)([1.0, -2.0])
    for function in (t.relu_, t.nn.functional.relu_, t.celu_, t.nn.functional.elu_, t.dropout_,
                     t.nn.functional.leaky_relu_, t.nn.functional.hardtanh_):  # fmt: skip
        attempt(lambda function=function: function(x, 0.5, True) if "dropout" in function.__name__
                else function(x))  # fmt: skip
    return [entry[0] for entry in log]
