"""Modules against PyTorch: the same weights from the same seed, the same keys, the same text."""

import io
import warnings

import numpy as np
import pytest
import torch

import flambeau

EXPRESSIONS = """
nn.Identity(3, foo=1)
nn.Linear(3, 4)
nn.Linear(3, 4, bias=False)
nn.Bilinear(1, 2, 3)
nn.LazyLinear(3)
nn.Conv1d(2, 4, 3)
nn.Conv2d(2, 4, 3, stride=2, padding=1, dilation=2, groups=2, bias=False, padding_mode="reflect")
nn.Conv2d(2, 4, (3, 5), padding="same")
nn.Conv3d(2, 4, (1, 2, 3))
nn.ConvTranspose1d(2, 4, 3)
nn.ConvTranspose2d(2, 4, 3, output_padding=1, stride=2)
nn.ConvTranspose3d(4, 2, 3, groups=2)
nn.LazyConv2d(4, 3)
nn.LazyConvTranspose3d(4, 3)
nn.MaxPool1d(2, stride=3)
nn.MaxPool2d(2)
nn.AvgPool1d(2)
nn.AvgPool2d(3, 2)
nn.AvgPool3d(3)
nn.MaxUnpool2d(2)
nn.LPPool2d(2, 3)
nn.FractionalMaxPool2d(3, output_ratio=0.5)
nn.AdaptiveAvgPool2d((1, None))
nn.AdaptiveMaxPool1d(3)
nn.ZeroPad2d(1)
nn.ConstantPad1d(2, 3.5)
nn.ReflectionPad2d((1, 2, 3, 4))
nn.CircularPad3d(1)
nn.BatchNorm2d(3)
nn.BatchNorm1d(3, momentum=None, affine=False)
nn.BatchNorm1d(3, bias=False)
nn.LazyBatchNorm1d()
nn.LazyInstanceNorm2d()
nn.InstanceNorm1d(3)
nn.InstanceNorm3d(3, affine=True, track_running_stats=True)
nn.LayerNorm(3)
nn.LayerNorm((2, 3), bias=False)
nn.GroupNorm(1, 3)
nn.RMSNorm(3)
nn.LocalResponseNorm(2)
nn.CrossMapLRN2d(2)
nn.ELU()
nn.ELU(1.0, True)
nn.Hardshrink()
nn.Hardsigmoid(True)
nn.Hardtanh()
nn.Hardtanh(-2.0, 2.0, True)
nn.Hardswish(True)
nn.LeakyReLU(0.1, True)
nn.LogSigmoid()
nn.PReLU(3)
nn.ReLU()
nn.ReLU(True)
nn.ReLU6(True)
nn.RReLU(inplace=True)
nn.SELU(True)
nn.CELU(inplace=True)
nn.GELU("tanh")
nn.GLU()
nn.Mish(True)
nn.SiLU()
nn.Softplus()
nn.Softshrink()
nn.Softsign()
nn.Softmin(1)
nn.Softmax(1)
nn.LogSoftmax(1)
nn.Softmax2d()
nn.Threshold(1, 2, True)
nn.Tanhshrink()
nn.MultiheadAttention(4, 2)
nn.MultiheadAttention(4, 2, kdim=3, vdim=5, add_bias_kv=True)
nn.MultiheadAttention(4, 2, bias=False, batch_first=True)
nn.Dropout()
nn.Dropout2d(0.2, True)
nn.FeatureAlphaDropout()
nn.Embedding(3, 4)
nn.Embedding(30, 4, padding_idx=-1, max_norm=1.0, scale_grad_by_freq=True, sparse=True)
nn.Embedding(3, 4, norm_type=1.0)
nn.EmbeddingBag(3, 4)
nn.EmbeddingBag(3, 4, mode="sum", padding_idx=0, max_norm=2.0, include_last_offset=True)
nn.MSELoss()
nn.CrossEntropyLoss()
nn.BCEWithLogitsLoss()
nn.TripletMarginWithDistanceLoss()
nn.AdaptiveLogSoftmaxWithLoss(16, 10, [2, 5], div_value=2)
nn.PairwiseDistance()
nn.CosineSimilarity()
nn.Upsample(scale_factor=2)
nn.Upsample(size=(2, 3), mode="bilinear", align_corners=True)
nn.UpsamplingNearest2d(2)
nn.UpsamplingBilinear2d(scale_factor=2)
nn.PixelShuffle(2)
nn.PixelUnshuffle(2)
nn.ChannelShuffle(2)
nn.Fold((2, 3), 2)
nn.Unfold(2)
nn.Flatten()
nn.Unflatten(1, (2, 3))
nn.RNN(2, 3)
nn.RNN(2, 3, 2, "relu", False)
nn.LSTM(2, 3, num_layers=2, batch_first=True, dropout=0.1, bidirectional=True, proj_size=1)
nn.GRU(2, 3, bias=False)
nn.RNNCell(2, 3, bias=False, nonlinearity="relu")
nn.LSTMCell(2, 3, False)
nn.GRUCell(2, 3)
nn.TransformerEncoderLayer(4, 2, 8)
nn.TransformerDecoderLayer(4, 2, 8, norm_first=True, bias=False)
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, activation=nn.GELU()), 2)
nn.Transformer(4, 2, 1, 2, 8, batch_first=True)
nn.Sequential()
nn.Sequential(nn.Linear(1, 2), nn.Sequential(nn.ReLU(), nn.BatchNorm1d(2)))
nn.ModuleList([nn.Linear(1, 2), nn.Linear(1, 2), nn.ReLU(), nn.Sequential(nn.ReLU())])
nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(1, 1)})
nn.ParameterList([nn.Parameter(torch.ones(2)), torch.ones(3, 4), 5, "x"])
nn.ParameterDict({"a": nn.Parameter(torch.ones(2)), "b": 3})
nn.Module()
""".strip().splitlines()


def both(expression):
    results = []
    for library in (torch, flambeau):
        library.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.append(eval(expression, {"torch": library, "nn": library.nn}))
    return results


def array_of(tensor):
    if not hasattr(tensor, "detach") or type(tensor).__name__.startswith("Uninitialized"):
        return type(tensor).__name__
    return tensor.detach().numpy()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_text_state_and_first_weights(expression):
    theirs, ours = both(expression)
    assert repr(ours) == repr(theirs)
    expected, found = theirs.state_dict(), ours.state_dict()
    assert list(found) == list(expected)
    assert found._metadata == expected._metadata
    for key, value in expected.items():
        np.testing.assert_array_equal(array_of(found[key]), array_of(value), err_msg=key)
    assert [name for name, _ in ours.named_parameters()] == [
        name for name, _ in theirs.named_parameters()
    ]
    # the streams are at the same place afterwards
    assert flambeau.rand(1).item() == torch.rand(1).item()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_public_attributes(expression):
    theirs, ours = both(expression)
    for name, value in vars(theirs).items():
        if not name.startswith("_") and isinstance(value, (int, float, str, tuple, type(None))):
            assert getattr(ours, name) == value, name
    assert getattr(type(ours), "__constants__", None) is None or set(ours.__constants__) == set(
        getattr(theirs, "__constants__", ours.__constants__)
    )


@pytest.mark.parametrize("name", [*flambeau.nn.init.GAINS, "leaky_relu"])
def test_gains(name):
    assert flambeau.nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)


@pytest.mark.parametrize("name", sorted(flambeau.nn.HOME))
def test_signatures(name):
    """Constructors take the same parameters in the same order, with the same defaults."""
    import inspect

    theirs = inspect.signature(getattr(torch.nn, name)).parameters
    ours = inspect.signature(getattr(flambeau.nn, name)).parameters
    # decorated in torch, or not implemented
    if name in ("SyncBatchNorm", "Container", "NLLLoss2d"):
        return
    assert list(ours) == list(theirs)
    for key, parameter in theirs.items():
        assert ours[key].kind == parameter.kind, key
        if not callable(parameter.default):
            assert ours[key].default == parameter.default, key


def saved(library, module):
    sink = io.BytesIO()
    library.save(module, sink)
    sink.seek(0)
    return sink


@pytest.mark.parametrize("expression", [text for text in EXPRESSIONS if "Lazy" not in text])
def test_whole_modules_cross_over(expression):
    theirs, ours = both(expression)
    assert repr(flambeau.load(saved(torch, theirs), weights_only=False)) == repr(theirs)
    assert repr(torch.load(saved(flambeau, ours), weights_only=False)) == repr(ours)
