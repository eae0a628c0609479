"""Layers with logic of their own: laziness, running statistics, recurrence, packing, clipping."""

import math

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils import (
    clip_grad_norm_,
    clip_grad_value_,
    parameters_to_vector,
    rnn,
    vector_to_parameters,
)


def test_lazy_linear_becomes_linear():
    layer = nn.LazyLinear(3)
    assert repr(layer.weight) == "<UninitializedParameter>"
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        layer.weight + 1
    assert layer(torch.ones(2, 5)).shape == (2, 3)
    assert type(layer) is nn.Linear
    assert type(layer.weight) is nn.Parameter
    assert layer.in_features == 5


def test_lazy_modules_load_states():
    layer = nn.LazyLinear(3)
    layer.load_state_dict(nn.Linear(2, 3).state_dict())
    assert layer.weight.shape == (3, 2)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        nn.Linear(2, 3).load_state_dict(nn.LazyLinear(3).state_dict())


def test_batch_norm_statistics():
    layer = nn.BatchNorm1d(1, momentum=0.5)
    x = torch.tensor([[0.0], [2.0]])
    layer(x)
    assert layer.running_mean.item() == 0.5
    assert layer.running_var.item() == 0.5 + 0.5 * 2.0
    assert layer.num_batches_tracked.item() == 1
    layer.eval()(x)
    assert layer.num_batches_tracked.item() == 1
    average = nn.BatchNorm1d(1, momentum=None)
    average(x)
    average(x + 3)
    assert average.running_mean.item() == 2.5


def test_transposed_convolution_output_size():
    layer = nn.ConvTranspose2d(2, 4, 3, stride=2)
    assert layer(torch.ones(1, 2, 3, 3), (8, 7)).shape == (1, 4, 8, 7)
    with pytest.raises(ValueError, match="requested an output size of"):
        layer(torch.ones(1, 2, 3, 3), output_size=(20, 20))


def sequences():
    torch.manual_seed(0)
    return [torch.randn(length, 2) for length in (2, 4, 3)]


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences_give_what_single_ones_give(kind, bidirectional):
    layer = kind(2, 3, num_layers=2, bidirectional=bidirectional)
    packed = rnn.pack_sequence(sequences(), enforce_sorted=False)
    output, last = layer(packed)
    hidden = last[0] if kind is nn.LSTM else last
    for place, (sequence, found) in enumerate(
        zip(sequences(), rnn.unpack_sequence(output), strict=True)
    ):
        alone, alone_last = layer(sequence)
        alone_hidden = alone_last[0] if kind is nn.LSTM else alone_last
        assert torch.allclose(found, alone, atol=1e-6)
        assert torch.allclose(hidden[:, place], alone_hidden, atol=1e-6)


def test_layers_and_cells_agree():
    layer, cell = nn.LSTM(2, 3), nn.LSTMCell(2, 3)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        setattr(cell, name, getattr(layer, f"{name}_l0"))
    x = sequences()[1]
    state = None
    for step in x:
        state = cell(step, state)
    output, (hidden, memory) = layer(x)
    assert torch.allclose(output[-1], state[0], atol=1e-6)
    assert torch.allclose(memory[0], state[1], atol=1e-6)


def test_padding_round_trip():
    padded = rnn.pad_sequence(sequences(), batch_first=True, padding_value=7.0)
    assert padded.shape == (3, 4, 2)
    assert padded[0, 3].tolist() == [7.0, 7.0]
    packed = rnn.pack_padded_sequence(padded, [2, 4, 3], batch_first=True, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 3, 2, 1]
    again, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=7.0)
    assert torch.equal(again, padded)
    assert lengths.tolist() == [2, 4, 3]


def test_clipping():
    x = torch.ones(1, requires_grad=True)
    x.grad = torch.tensor([3.0])
    y = torch.ones(1, requires_grad=True)
    y.grad = torch.tensor([4.0])
    assert clip_grad_norm_([x, y], 1.0).item() == 5.0
    assert math.isclose(x.grad.item(), 0.6, rel_tol=1e-5)
    clip_grad_value_([x, y], 0.5)
    assert y.grad.item() == 0.5


def test_parameters_as_a_vector():
    layer = nn.Linear(2, 1)
    vector = parameters_to_vector(layer.parameters())
    assert vector.shape == (3,)
    vector_to_parameters(torch.arange(3.0), layer.parameters())
    assert layer.weight.tolist() == [[0.0, 1.0]]
    assert layer.bias.tolist() == [2.0]


def test_initialisation_repeats():
    torch.manual_seed(1)
    first = nn.Linear(3, 4)
    torch.manual_seed(1)
    second = nn.Linear(3, 4)
    assert torch.equal(first.weight, second.weight)
    assert first.weight.abs().max().item() <= 1 / math.sqrt(3)


def test_every_name_is_there():
    for name in nn.__all__:
        assert isinstance(getattr(nn, name), type)
    import flambeau.nn.modules.batchnorm as batchnorm

    assert issubclass(nn.BatchNorm2d, batchnorm._BatchNorm)
    assert nn.modules.conv.Conv2d is nn.Conv2d


def test_lazy_parameters_that_an_inference_shapes_are_its():
    layer = nn.LazyLinear(3)
    with torch.inference_mode():
        layer(torch.ones(2, 3))
    assert layer.weight.is_inference() and layer.weight.requires_grad and layer.weight.is_leaf
    assert layer(torch.ones(2, 3)).requires_grad
