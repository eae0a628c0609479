"""Scripted layers against PyTorch: outputs, gradients, archives, with PyTorch's own samples."""

import io
import re
import warnings

import numpy as np
import pytest
import torch

import flambeau
from conformance.module_samples import MODULES, assert_near, ours, samples

RANDOM = frozenset(("FractionalMaxPool2d", "FractionalMaxPool3d"))
"""Layers that draw numbers by torch's generator in their own way."""
SKIPPED_SAMPLES = 6
"""Of long lists of samples, every second, third, … is taken, so that about this many are."""


def thinned(name: str) -> list:
    """Some of the samples of a module."""
    found = list(samples(name, torch.float32))
    return found[:: max(1, len(found) // SKIPPED_SAMPLES)]


def scripted(sample):
    """The module scripted in both libraries, with the same parameters; None if torch refuses."""
    theirs, mine = sample.both()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reference = torch.jit.script(theirs)
        except Exception:  # noqa: BLE001 - whatever torch says, it cannot script this one
            return None
        return reference, flambeau.jit.script(mine)


def called(module, arguments, keywords):
    """The outputs as a list of tensors, and the gradients of the parameters."""
    output = module(*arguments, **keywords)
    flat = list(tensors_of(output))
    real = [t for t in flat if t.requires_grad]
    if real:
        sum(t.double().abs().sum() for t in real).backward()
    gradients = {n: p.grad for n, p in module.named_parameters()}
    return flat, gradients


def tensors_of(output):
    """The tensors in nested tuples."""
    if isinstance(output, (tuple, list)):
        for part in output:
            yield from tensors_of(part)
    elif output is not None:
        yield output


def overloaded(module) -> bool:
    """Recurrent layers have variants of `forward` and cannot be called from Python."""
    return "forward__0" in getattr(module, "_type", module).methods


@pytest.mark.parametrize("name", sorted(set(MODULES) - RANDOM))
def test_outputs_and_gradients_agree(name):
    """The scripted module gives what torch's gives."""
    for sample in thinned(name):
        pair = scripted(sample) if sample.inputs is not None else None
        if pair is None or overloaded(pair[1]):
            continue
        for one in pair:
            one.eval()  # dropout and the like draw from different streams
        arguments, keywords = tuple(sample.inputs.args), dict(sample.inputs.kwargs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected, their_gradients = called(pair[0], arguments, keywords)
            except RuntimeError as error:
                first_line = re.escape(str(error).splitlines()[0])
                with pytest.raises(RuntimeError, match=first_line):
                    called(pair[1], ours(arguments), ours(keywords))
                continue
            found, our_gradients = called(pair[1], ours(arguments), ours(keywords))
        for one, other in zip(found, expected, strict=True):
            assert_near(one, other, 1e-4)
        for path, gradient in their_gradients.items():
            mine = our_gradients[path]
            assert (mine is None) == (gradient is None), path
            if gradient is not None:
                scale = max(1.0, float(gradient.abs().max()))
                np.testing.assert_allclose(
                    mine.numpy(), gradient.to_dense().numpy(), rtol=1e-3, atol=1e-4 * scale
                )


@pytest.mark.parametrize("name", sorted(set(MODULES) - RANDOM))
def test_archives_run_in_torch(name):
    """What our script of a layer says, torch reads and runs, with the same outputs."""
    for sample in thinned(name):
        pair = scripted(sample) if sample.inputs is not None else None
        if pair is None or overloaded(pair[1]):
            continue
        archive = io.BytesIO()
        flambeau.jit.save(pair[1].eval(), archive)
        archive.seek(0)
        loaded, reference = torch.jit.load(archive), pair[0].eval()
        arguments, keywords = tuple(sample.inputs.args), dict(sample.inputs.kwargs)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            try:
                expected = list(tensors_of(reference(*arguments, **keywords)))
            except RuntimeError:  # the test above compares errors
                continue
            found = list(tensors_of(loaded(*arguments, **keywords)))
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.fixture(autouse=True)
def _deprecated():
    """Torch says of every call that TorchScript is deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


class Wrapped(torch.nn.Module):
    """A recurrent layer, called from a script."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True},
                                     {"batch_first": True, "bias": False}])  # fmt: skip
def test_recurrent_layers_in_scripts(kind, options):
    """The overload for tensors is chosen, and gives what torch's gives."""

    class OurWrapped(flambeau.nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(x)

    torch.manual_seed(1)
    flambeau.manual_seed(1)
    theirs = torch.jit.script(Wrapped(getattr(torch.nn, kind)(3, 4, **options)))
    mine = flambeau.jit.script(OurWrapped(getattr(flambeau.nn, kind)(3, 4, **options)))
    x = torch.randn(5, 2, 3)
    expected, their_gradients = called(theirs, (x,), {})
    found, our_gradients = called(mine, (ours(x),), {})
    for one, other in zip(found, expected, strict=True):
        assert_near(one, other, 1e-5)
    for path, gradient in their_gradients.items():
        np.testing.assert_allclose(our_gradients[path].numpy(), gradient.numpy(), atol=1e-4)
