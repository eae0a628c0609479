"""Programs that `torchscript.py` scripts. `torch` is the library that is timed: who imports this
module sets it.

Nothing is annotated: TorchScript reads annotations, and takes parameters without them as tensors.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

torch = None


def chain(x, y, weight, bias):
    """Six pointwise operators, then layer norm."""
    z = x * y + x
    z = torch.tanh(z) * torch.sigmoid(y)
    z = torch.relu(z - 0.5)
    return torch.nn.functional.layer_norm(z, [1024], weight, bias)


def lstm(x, h, c, w_ih, w_hh, b_ih, b_hh):
    """An LSTM cell over all steps, as one writes it by hand."""
    outputs = []
    for t in range(x.size(0)):
        gates = x[t] @ w_ih.t() + b_ih + h @ w_hh.t() + b_hh
        enter, forget, candidate, leave = gates.chunk(4, 1)
        c = torch.sigmoid(forget) * c + torch.sigmoid(enter) * torch.tanh(candidate)
        h = torch.sigmoid(leave) * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs)


def peephole(x, h, c, w_ih, w_hh, peep):
    """A cell that no library has: gates see the state (Gers and Schmidhuber 2000)."""
    outputs = []
    for t in range(x.size(0)):
        gates = x[t] @ w_ih.t() + h @ w_hh.t()
        enter, forget, candidate, leave = gates.chunk(4, 1)
        c = torch.sigmoid(forget + peep * c) * c + torch.sigmoid(enter) * torch.tanh(candidate)
        h = torch.sigmoid(leave + peep * c) * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs)


def gated(x, h, c, w_ih, w_hh, peep):
    """The simplest cell with a gate of its own: one state, one product, a few operators."""
    outputs = []
    gate = torch.sigmoid(peep)
    w, u = w_ih[: h.size(1)], w_hh[: h.size(1)]
    for t in range(x.size(0)):
        h = torch.tanh(x[t] @ w + h @ u) * gate + h * (1 - gate)
        outputs.append(h)
    return torch.stack(outputs) + c


def minimal_gru(x, h, c, w_ih, w_hh, peep):
    """A GRU variant with one gate and two products in a row (Zhou et al. 2016, Minimal gated unit
    for recurrent neural networks)."""
    outputs = []
    u_gate, u_new = w_hh.chunk(4, 0)[0].t(), w_hh.chunk(4, 0)[1].t()
    for t in range(x.size(0)):
        from_input, new, _, _ = (x[t] @ w_ih.t()).chunk(4, 1)
        gate = torch.sigmoid(from_input + h @ u_gate + peep)
        h = (1 - gate) * h + gate * torch.tanh(new + (gate * h) @ u_new)
        outputs.append(h)
    return torch.stack(outputs) + c


def batch_gather(tensor, indices):
    """`tensor[i][indices[i]]` for every i."""
    output = []
    for i in range(tensor.size(0)):
        output += [tensor[i][indices[i]]]
    return torch.stack(output)


def vectorised_gather(tensor, indices):
    """The same without a loop."""
    shape = list(tensor.shape)
    flat = torch.reshape(tensor, [shape[0] * shape[1], *shape[2:]])
    starts = torch.arange(shape[0]) * shape[1]
    offset = torch.reshape(starts, [shape[0]] + [1] * (len(indices.shape) - 1))
    return flat[indices + offset]
