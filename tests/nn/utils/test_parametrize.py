"""Parametrized modules: laws that hold without PyTorch at hand."""

import copy
import pickle

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils import parametrizations, parametrize


class Scale(nn.Module):
    def forward(self, x):
        return x * 2

    def right_inverse(self, x):
        return x / 2


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
@pytest.mark.parametrize("chosen", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal_stays_orthogonal(shape, chosen, trivial):
    module = nn.Module()
    module.w = nn.Parameter(torch.randn(shape, dtype=torch.float64))
    parametrizations.orthogonal(module, "w", chosen, use_trivialization=trivial)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(3):
        (module.w * torch.randn(shape, dtype=torch.float64)).sum().backward()
        optimizer.step()
    w = module.w if shape[-2] >= shape[-1] else module.w.mT
    assert torch.allclose(w.mT @ w, torch.eye(min(shape[-2:]), dtype=torch.float64))


@pytest.mark.parametrize("chosen", ["matrix_exp", "cayley", "householder"])
def test_an_orthogonal_matrix_can_be_assigned(chosen):
    wanted = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64))[0]
    module = parametrizations.orthogonal(nn.Linear(4, 4, dtype=torch.float64), "weight", chosen)
    module.weight = wanted
    assert torch.allclose(module.weight, wanted)


@pytest.mark.parametrize("make", [parametrizations.spectral_norm, nn.utils.spectral_norm])
def test_spectral_norm_is_one(make):
    module = make(nn.Linear(6, 5), n_power_iterations=60)
    module(torch.randn(2, 6))
    largest = torch.linalg.svdvals(module.weight)[0]
    assert largest.item() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_keeps_the_weight_and_its_length_is_g(dim):
    plain = nn.Conv1d(3, 4, 2)
    module = parametrizations.weight_norm(copy.deepcopy(plain), dim=dim)
    assert torch.allclose(module.weight, plain.weight)
    with torch.no_grad():
        module.parametrizations.weight.original0.mul_(3)
    assert torch.allclose(module.weight, 3 * plain.weight)


def test_a_copy_is_independent_of_its_source():
    module = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Scale())
    twin = copy.deepcopy(module)
    before = twin.weight.clone()
    parametrize.remove_parametrizations(module, "weight")
    assert type(module) is nn.Linear
    assert torch.equal(twin.weight, before)
    parametrize.register_parametrization(twin, "bias", Scale())
    assert isinstance(module.bias, nn.Parameter)
    with parametrize.cached():
        other = copy.deepcopy(twin)
        other.weight = torch.zeros(2, 2)
        assert not torch.equal(other.weight, twin.weight)


def test_a_missing_function_in_right_inverse_is_no_identity():
    class Broken(Scale):
        def right_inverse(self, x):
            return torch.func.debug_unwrap(x)

    with pytest.raises(NotImplementedError, match=r"torch\.func\.debug_unwrap is not implemented"):
        parametrize.register_parametrization(nn.Linear(2, 2), "weight", Broken())


def test_pickling_is_refused():
    module = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Scale())
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(module)


def test_older_norms_load_after_removal():
    for add, remove in (
        (nn.utils.spectral_norm, nn.utils.remove_spectral_norm),
        (nn.utils.weight_norm, nn.utils.remove_weight_norm),
    ):
        with pytest.warns(FutureWarning) if add is nn.utils.weight_norm else _nothing():
            module = add(nn.Linear(3, 2))
        expected = module.eval()(torch.ones(1, 3))
        remove(module)
        assert str(module.load_state_dict(module.state_dict())) == "<All keys matched successfully>"
        assert torch.allclose(module(torch.ones(1, 3)), expected, atol=1e-6)


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None
