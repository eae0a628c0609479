"""The same seed gives the same numbers: parameters, buffers, dropout, whatever else is drawn.

Over PyTorch's own samples for its 114 modules and over options that those leave out.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

import flambeau
from conformance.module_samples import MODULES, assert_near, bits, samples

pytestmark = pytest.mark.filterwarnings("ignore")

LIBRARIES = (torch, flambeau)


def assert_same_stream():
    assert flambeau.rand(1).item() == torch.rand(1).item()


def assert_same_state(ours, theirs):
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert ours.state_dict()._metadata == theirs.state_dict()._metadata
    for walk in ("named_parameters", "named_buffers"):
        found = {name: bits(tensor) for name, tensor in getattr(ours, walk)()}
        assert found == {name: bits(tensor) for name, tensor in getattr(theirs, walk)()}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_first_values(name, dtype):
    for sample in samples(name, dtype):
        theirs, ours = sample.both()
        assert_same_state(ours, theirs)
        assert_same_stream()


@pytest.mark.parametrize("name", MODULES)
def test_text_copies_and_outputs(name):
    for sample in samples(name, torch.float32):
        theirs, ours = sample.both()
        assert_same_state(ours, theirs)
        assert repr(ours) == repr(theirs)
        assert repr(copy.deepcopy(ours)) == repr(theirs)
        assert repr(pickle.loads(pickle.dumps(ours))) == repr(theirs)
        if sample.inputs is not None and "FractionalMaxPool" not in name:
            assert_same_training_step(theirs, ours, sample.inputs)
        assert_same_stream()


def assert_same_training_step(theirs, ours, inputs):
    from conformance.module_samples import ours as converted

    arguments, options = converted(tuple(inputs.args)), converted(inputs.kwargs)
    expected = theirs(*inputs.args, **inputs.kwargs)
    assert_near(ours(*arguments, **options), expected, 1e-4)


# ---- options that PyTorch's samples leave out

EXPRESSIONS = """
nn.Linear(5, 7)
nn.Linear(5, 7, bias=False)
nn.Linear(0, 7)
nn.Linear(1000, 3)
nn.Bilinear(3, 4, 5)
nn.Bilinear(3, 4, 5, bias=False)
nn.Conv1d(6, 8, 3, groups=2, bias=False)
nn.Conv2d(6, 9, (3, 2), groups=3, padding_mode="circular")
nn.Conv3d(2, 4, 3)
nn.ConvTranspose1d(6, 8, 3, groups=2)
nn.ConvTranspose2d(6, 9, 3, groups=3, bias=False)
nn.ConvTranspose3d(2, 4, (1, 2, 3))
nn.Embedding(11, 5)
nn.Embedding(11, 5, padding_idx=3)
nn.Embedding(11, 5, padding_idx=-1, max_norm=1.0)
nn.EmbeddingBag(11, 5)
nn.EmbeddingBag(11, 5, mode="max", padding_idx=2)
nn.RNN(3, 4, 2, bidirectional=True)
nn.RNN(3, 4, nonlinearity="relu", bias=False)
nn.LSTM(3, 4, 3, bidirectional=True, proj_size=2, dropout=0.2)
nn.LSTM(3, 4, 2, bias=False)
nn.LSTM(64, 128)
nn.GRU(3, 4, 2, bidirectional=True, batch_first=True)
nn.RNNCell(3, 4)
nn.LSTMCell(3, 4, bias=False)
nn.GRUCell(3, 4)
nn.MultiheadAttention(8, 2)
nn.MultiheadAttention(8, 2, bias=False)
nn.MultiheadAttention(8, 2, kdim=3)
nn.MultiheadAttention(8, 2, kdim=3, vdim=5, add_bias_kv=True)
nn.TransformerEncoderLayer(8, 2, 16)
nn.TransformerDecoderLayer(8, 2, 16, norm_first=True, bias=False)
nn.Transformer(8, 2, 2, 2, 16)
nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dtype=dtype), 2)
nn.PReLU(3, 0.1)
nn.GroupNorm(2, 6)
nn.LayerNorm((2, 3))
nn.RMSNorm(4)
nn.BatchNorm2d(5)
nn.BatchNorm1d(5, affine=False)
nn.BatchNorm1d(5, track_running_stats=False)
nn.InstanceNorm2d(3, affine=True, track_running_stats=True)
nn.AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10], div_value=2.0, head_bias=True)
nn.LazyLinear(3)
nn.LazyConv2d(4, 3)
nn.LazyBatchNorm1d()
""".strip().splitlines()
DTYPES = ["float32", "float64", "bfloat16", "float16"]


def both(expression, dtype, seed=0):
    """What an expression gives in both libraries, from one seed; modules with their dtype."""
    results = []
    for library in LIBRARIES:
        library.manual_seed(seed)
        scope = {"torch": library, "nn": library.nn, "F": library.nn.functional}
        scope["dtype"] = element = getattr(library, dtype)
        scope["x"] = library.arange(2 * 8 * 6 * 5).reshape(2, 8, 6, 5).to(element) / 100 - 2
        results.append(eval(expression, scope))
    return results


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_options(expression, dtype):
    if "dtype" not in expression:
        comma = "" if expression.endswith("()") else ", "
        expression = f"{expression[:-1]}{comma}dtype=dtype)"
    theirs, ours = both(expression, dtype, seed=11)
    assert_same_state(ours, theirs)
    assert_same_stream()


LAZY = {
    "nn.LazyLinear(3)": (4, 5),
    "nn.LazyLinear(3, bias=False)": (4, 5),
    "nn.LazyConv1d(4, 3)": (2, 3, 7),
    "nn.LazyConv2d(4, 3, groups=2)": (2, 6, 7, 7),
    "nn.LazyConv3d(4, 2, bias=False)": (1, 3, 4, 4, 4),
    "nn.LazyConvTranspose1d(4, 3)": (2, 3, 7),
    "nn.LazyConvTranspose2d(4, 3)": (2, 3, 7, 7),
    "nn.LazyConvTranspose3d(4, 2)": (1, 3, 4, 4, 4),
    "nn.LazyBatchNorm1d()": (4, 5),
    "nn.LazyBatchNorm2d(affine=False)": (2, 3, 4, 4),
    "nn.LazyInstanceNorm2d(affine=True)": (2, 3, 4, 4),
    "nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2))": (3, 5),
}


@pytest.mark.parametrize("expression", LAZY)
def test_lazy_modules_after_their_first_call(expression):
    theirs, ours = both(expression, "float32")
    outputs = [
        module(library.ones(LAZY[expression]))
        for library, module in zip(LIBRARIES, (theirs, ours), strict=True)
    ]
    assert_near(outputs[1], outputs[0], 1e-5)
    assert repr(ours) == repr(theirs)
    assert {name: bits(p) for name, p in ours.named_parameters()} == {
        name: bits(p) for name, p in theirs.named_parameters()
    }
    assert_same_stream()


# ---- nn.init

INITIALISERS = """
uniform_(t, -1, 2)
normal_(t, 1, 2)
constant_(t, 3)
zeros_(t)
ones_(t)
eye_(t[:, :, 0])
dirac_(t)
dirac_(t, groups=2)
xavier_uniform_(t, gain=2)
xavier_uniform_(t.transpose(0, 2))
xavier_normal_(t)
kaiming_uniform_(t)
kaiming_uniform_(t, a=0.1)
kaiming_uniform_(t, mode="fan_out", nonlinearity="relu")
kaiming_uniform_(t, nonlinearity="conv2d")
kaiming_normal_(t, nonlinearity="selu")
kaiming_normal_(t, mode="fan_out", nonlinearity="tanh")
trunc_normal_(t)
trunc_normal_(t, std=0.02)
trunc_normal_(t, 3.0, 1.0, 0.0, 1.0)
trunc_normal_(t, 0.0, 1.0, 2.5, 3.0)
sparse_(t[:, :, 0], 0.4)
""".strip().splitlines()


def both_filled(call, dtype, generator=False):
    results = []
    for library in LIBRARIES:
        library.manual_seed(5)
        own = library.Generator().manual_seed(9)
        scope = vars(library.nn.init) | {"g": own}
        scope["t"] = library.ones(6, 5, 4, dtype=getattr(library, dtype))
        given = f"{call[:-1]}, generator=g)" if generator else call
        results.append((eval(given, scope), library.rand(3, generator=own)))
    return results


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("call", INITIALISERS)
def test_initialisers(call, dtype):
    theirs, ours = both_filled(call, dtype)
    assert bits(ours[0]) == bits(theirs[0])
    assert_same_stream()


@pytest.mark.parametrize(
    "call",
    [
        call
        for call in INITIALISERS
        if not call.startswith(("const", "ones", "zeros", "eye", "dirac"))
    ],
)
def test_initialisers_with_a_generator(call):
    theirs, ours = both_filled(call, "float32", generator=True)
    assert bits(ours[0]) == bits(theirs[0])
    assert bits(ours[1]) == bits(theirs[1])
    assert_same_stream()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "call", ["orthogonal_(t)", "orthogonal_(t[0], gain=2)", "orthogonal_(t[:, 0])"]
)
def test_orthogonal(call, dtype):
    # The QR factorisations of two LAPACKs round differently.
    theirs, ours = both_filled(call, dtype)
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(ours[0].numpy(), theirs[0].numpy(), rtol=0, atol=tolerance)
    assert_same_stream()


# ---- what is drawn in training

DROPOUTS = """
F.dropout(x, 0.3)
F.dropout(x, 0.9)
F.dropout(x, 1.0)
F.dropout(x, 0.0)
F.dropout(x, 0.5, training=False)
F.dropout(x.transpose(0, 3), 0.3)
F.dropout(x[:, :, ::2], 0.3)
F.dropout(x[:1].expand(4, 8, 6, 5), 0.3)
F.dropout(x.contiguous(memory_format=torch.channels_last), 0.3)
F.dropout(x.clone(), 0.3, inplace=True)
F.dropout(x[:, :, ::2].clone().transpose(1, 2), 0.3, inplace=True)
F.dropout1d(x[0], 0.4)
F.dropout1d(x[0, 0], 0.4)
F.dropout1d(x[0, 0].t(), 0.4, inplace=True)
F.dropout2d(x, 0.4)
F.dropout2d(x.transpose(0, 1), 0.4)
F.dropout3d(x, 0.4)
F.dropout3d(x.clone().transpose(1, 2), 0.4, inplace=True)
F.dropout3d(x[None], 0.4)
torch.dropout(x, 0.3, True)
torch.feature_dropout(x, 0.3, True)
torch.native_dropout(x, 0.3, True)[1]
torch.bernoulli(torch.full_like(x, 0.3))
F.fractional_max_pool2d(x, 2, output_size=3)
F.fractional_max_pool2d(x, 2, output_ratio=(0.5, 0.6))
F.fractional_max_pool3d(x, 2, output_size=2)
nn.Dropout(0.3)(x)
nn.Dropout2d(0.3)(x)
""".strip().splitlines()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("expression", DROPOUTS)
def test_dropout_bit_for_bit(expression, dtype):
    theirs, ours = both(expression, dtype)
    assert bits(ours) == bits(theirs)
    assert_same_stream()


SINGLE = """
F.alpha_dropout(x, 0.3, True)
F.alpha_dropout(x.transpose(1, 2), 0.9, True)
F.feature_alpha_dropout(x, 0.3, True)
nn.AlphaDropout(0.2)(x)
nn.FeatureAlphaDropout(0.2)(x)
F.rrelu(x, 0.1, 0.3, True)
F.rrelu(x.transpose(0, 2), training=True)
F.rrelu_(x.clone()[:, :, ::2], 0.1, 0.3, True)
nn.RReLU()(x)
""".strip().splitlines()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("expression", SINGLE)
def test_noise_bit_for_bit(expression, dtype):
    """What is computed from noise; PyTorch rounds constants to half precision first."""
    theirs, ours = both(expression, dtype)
    assert bits(ours) == bits(theirs)
    assert_same_stream()


INSIDE = """
nn.LSTM(5, 6, 3, dropout=0.4)(x)[0]
nn.LSTM(5, 6, 2, dropout=0.4, bidirectional=True, batch_first=True)(x)[0]
nn.LSTM(5, 6, 2, dropout=0.4, proj_size=2)(x)[0]
nn.LSTM(5, 6, 2, dropout=0.4)(nn.utils.rnn.pack_sequence([x[0], x[1, :3]]))[0].data
nn.GRU(5, 6, 3, dropout=0.4)(x)[0]
nn.RNN(5, 6, 3, dropout=1.0)(x)[0]
nn.TransformerEncoderLayer(5, 1, 16, dropout=0.3)(x)
nn.TransformerEncoderLayer(5, 1, 16, dropout=0.3, batch_first=True, norm_first=True)(x)
nn.TransformerDecoderLayer(5, 1, 16, dropout=0.3)(x, x)
nn.Transformer(5, 1, 1, 1, 8)(x, x)
nn.MultiheadAttention(5, 1, dropout=0.4)(x, x, x)[0]
nn.MultiheadAttention(5, 1, dropout=0.4)(x, x, x, need_weights=False)[0]
nn.MultiheadAttention(5, 1, dropout=0.4, add_bias_kv=True, add_zero_attn=True)(x, x, x)[1]
F.scaled_dot_product_attention(x, x, x, dropout_p=0.4)
F.scaled_dot_product_attention(x, x, x, dropout_p=0.4, is_causal=True)
F.scaled_dot_product_attention(x, x, x, x @ x.mT, dropout_p=0.4)
F.gumbel_softmax(x, 0.7)
F.gumbel_softmax(x, 0.7, hard=True, dim=0)
nn.Sequential(nn.Linear(5, 9), nn.Dropout(), nn.ReLU(), nn.Linear(9, 2), nn.AlphaDropout())(x)
""".strip().splitlines()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("expression", INSIDE)
def test_dropout_inside(expression, dtype):
    """Layers that drop: sums round in another order than PyTorch's, masks are the same."""
    takes_sequences = expression.startswith("nn.") and "Sequential" not in expression
    chosen = f"(lambda x: {expression})(x[0] if {takes_sequences} else x)"
    try:
        theirs, ours = both(f"torch.set_default_dtype(dtype) or {chosen}", dtype)
    finally:
        torch.set_default_dtype(torch.float32)
        flambeau.set_default_dtype(flambeau.float32)
    assert_near(ours, theirs, 2e-5 if dtype == "float32" else 1e-12)
    assert_same_stream()
