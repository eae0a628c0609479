"""Full backward hooks around layers, and with tensors of other types.

Each function is a scenario; `t` is the library, `see` makes hooks that note what they are given.
"""

from __future__ import annotations

from .hooks_modules import hooked, leaf, tensors


def anomaly_mode_blames_whose_hook_it_was(t, see):
    found = []
    for looked_at in (False, True):
        x = leaf(t)
        w = t.ones(3, 3, requires_grad=True)
        y = t.nn.functional.linear(x.exp(), w, t.zeros(3))
        node = y.grad_fn
        if looked_at:
            node = node.next_functions[0][0]
        node.register_hook(lambda into, out: _nan(into))
        with t.autograd.detect_anomaly():
            try:
                y.sum().backward()
            except RuntimeError as error:
                found.append(str(error))
    return found


def _nan(grads):
    return tuple(None if grad is None else grad * float("nan") for grad in grads)


def subclasses_stay(t, see):
    kind = type("Kind", (t.Tensor,), {})
    found = []
    for forward in (lambda x: x * 2, lambda x: x, lambda x: (x, x * 2)):
        x = t.ones(3).as_subclass(kind).requires_grad_()
        inside = []

        def forwarded(x, inside=inside, forward=forward):
            inside.append(type(x).__name__)
            return forward(x)

        out = hooked(t, see, forwarded)(x)
        parts = tensors(out)
        sum(part.sum() for part in parts).backward()
        found.append((inside, [type(part).__name__ for part in parts], x.grad))
    return found


def parameters_become_plain_tensors(t, see):
    inside = []

    def forward(x, y):
        inside.append((type(x).__name__, type(y).__name__))
        return x * y

    hooked(t, see, forward)(t.nn.Parameter(t.ones(3)), t.nn.Buffer(t.ones(3))).sum().backward()
    return inside


def types_of_numbers(t, see):
    for kind in (t.float16, t.bfloat16, t.float64, t.complex64):
        x = t.ones(2, dtype=kind, requires_grad=True)
        out = hooked(t, see, lambda x, y: x * 2)(x, t.ones(2, dtype=t.bool))
        out.abs().sum().backward()


def sparse_tensors_are_refused(t, see):
    found = []
    for wanted in (False, True):
        x = t.eye(3).to_sparse().requires_grad_(wanted)
        try:
            hooked(t, see, t.sparse.mm)(x, t.ones(3, 3, requires_grad=True))
        except NotImplementedError as error:
            found.append(str(error).split(". ")[0])
    return found


def layers(t, see):
    nn = t.nn
    cases = [
        (nn.Linear(3, 2), (2, 3)), (nn.Conv1d(3, 2, 2), (2, 3, 4)), (nn.Embedding(4, 2), None),
        (nn.LSTM(3, 2), (2, 1, 3)), (nn.MultiheadAttention(2, 1), (2, 1, 2)),
        (nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1)), (2, 3)),
        (nn.MaxPool1d(2, return_indices=True), (1, 2, 4)), (nn.Dropout(0.0), (2,)),
        (nn.TransformerEncoderLayer(2, 1, 4, dropout=0.0), (2, 1, 2)),
    ]  # fmt: skip
    found = []
    for layer, shape in cases:
        for number, parameter in enumerate(layer.parameters()):
            parameter.data.copy_(t.arange(parameter.numel()).reshape(parameter.shape) % 3 - number)
        for inner in layer.modules():
            inner.register_full_backward_hook(_shapes(see, type(inner).__name__))
            inner.register_full_backward_pre_hook(_shapes(see, "pre"))
        x = t.tensor([0, 1]) if shape is None else t.ones(shape, requires_grad=True)
        out = layer(*[x] * (3 if isinstance(layer, nn.MultiheadAttention) else 1))
        tensors(out)[0].sum().backward()
        found.append([parameter.grad is not None for parameter in layer.parameters()])
    return found


def _shapes(see, name):
    def hook(module, *grads):
        see(name)([[None if g is None else list(g.shape) for g in side] for side in grads])

    return hook
