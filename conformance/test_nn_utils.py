"""`nn.utils.parametrize`, its parametrizations and their older forms, beside PyTorch's."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.side_by_side import attempt, compare

LAYERS = {
    "Linear": ("nn.Linear(3, 4)", (5, 3)),
    "Square": ("nn.Linear(4, 4, bias=False)", (2, 4)),
    "Bilinear": ("nn.Bilinear(3, 3, 2)", (5, 3)),
    "Conv1d": ("nn.Conv1d(2, 4, 3)", (2, 2, 7)),
    "Conv2d": ("nn.Conv2d(2, 4, (2, 3), groups=2)", (2, 2, 5, 6)),
    "Conv3d": ("nn.Conv3d(2, 3, 2)", (1, 2, 3, 4, 3)),
    "ConvTranspose1d": ("nn.ConvTranspose1d(2, 4, 3)", (2, 2, 5)),
    "ConvTranspose2d": ("nn.ConvTranspose2d(2, 3, 2)", (2, 2, 4, 3)),
    "ConvTranspose3d": ("nn.ConvTranspose3d(2, 3, 2)", (1, 2, 3, 2, 3)),
    "Embedding": ("nn.Embedding(6, 4)", None),
    "RNN": ("nn.RNN(3, 4)", (5, 2, 3)),
    "LSTM": ("nn.LSTM(3, 4, 2, bidirectional=True)", (5, 2, 3)),
    "GRU": ("nn.GRU(3, 4, batch_first=True)", (2, 5, 3)),
    "LSTMCell": ("nn.LSTMCell(3, 4)", (2, 3)),
    "MultiheadAttention": ("nn.MultiheadAttention(4, 2)", (5, 2, 4)),
    "LayerNorm": ("nn.LayerNorm(4)", (3, 4)),
}
WEIGHTS = {
    "RNN": "weight_hh_l0",
    "LSTM": "weight_hh_l1_reverse",
    "GRU": "weight_ih_l0",
    "LSTMCell": "weight_hh",
    "MultiheadAttention": "in_proj_weight",
}


def layer_of(torch: Any, kind: str) -> Any:
    return eval(LAYERS[kind][0], {"nn": torch.nn})


def weight_of(kind: str) -> str:
    return WEIGHTS.get(kind, "weight")


def call(torch: Any, kind: str, module: Any) -> Any:
    """The module's output for drawn inputs."""
    shape = LAYERS[kind][1]
    if shape is None:
        return module(torch.tensor([[0, 2], [5, 2]]))
    dtype = next(module.parameters()).dtype
    inputs = torch.randn(shape, dtype=dtype)
    if kind == "Bilinear":
        return module(inputs, inputs.flip(0))
    if kind == "MultiheadAttention":
        return module(inputs, inputs, inputs)
    return module(inputs)


def first_of(output: Any) -> Any:
    return output if not isinstance(output, tuple) else first_of(output[0])


def trained(torch: Any, kind: str, module: Any, steps: int = 3) -> list[Any]:
    """Losses and gradients of some steps of SGD, then the state, in training and in evaluation."""
    results: list[Any] = []
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        output = first_of(call(torch, kind, module))
        loss = (output * output).sum()
        loss.backward()
        results.append({name: p.grad for name, p in module.named_parameters()})
        optimizer.step()
        results.append(loss)
    module.eval()
    results.append(first_of(call(torch, kind, module)))
    results.append(module.state_dict())
    results.append(str(module))
    return results


def still_where_reads_differ(module: Any) -> None:
    """Stop power iterations where torch reads a weight more often per forward, 3 or 4 times."""
    if type(module).__name__.endswith(("MultiheadAttention", "RNN", "LSTM", "GRU")):
        module.parametrizations.eval()


# ---- the three parametrizations over kinds of layers

PARAMETRIZATIONS = {
    "weight_norm": [{}, {"dim": None}, {"dim": 1}],
    "spectral_norm": [{}, {"n_power_iterations": 3, "eps": 1e-3}, {"dim": -1}],
    "orthogonal": [
        {"orthogonal_map": chosen, "use_trivialization": trivial}
        for chosen in (None, "matrix_exp", "cayley", "householder")
        for trivial in (True, False)
    ],
}
CASES = [
    (kind, name, options)
    for kind in LAYERS
    for name, many in PARAMETRIZATIONS.items()
    for options in many
]


@pytest.mark.parametrize(("kind", "name", "options"), CASES)
def test_parametrization(kind: str, name: str, options: dict[str, Any]):
    def scenario(torch: Any) -> Any:
        module, weight = layer_of(torch, kind).double(), weight_of(kind)
        made = getattr(torch.nn.utils.parametrizations, name)(module, weight, **options)
        still_where_reads_differ(module)
        results = [made is module, type(module), *trained(torch, kind, module)]
        module.train()
        value = torch.randn(getattr(module, weight).shape, dtype=getattr(module, weight).dtype)
        results.append(attempt(setattr, module, weight, value))
        still_where_reads_differ(module)
        results.append(getattr(module, weight))
        torch.nn.utils.parametrize.remove_parametrizations(module, weight)
        results += [type(module), module.state_dict(), first_of(call(torch, kind, module))]
        return results

    compare(scenario, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["spectral_norm", "weight_norm"])
@pytest.mark.parametrize("kind", LAYERS)
def test_first_values_in_single_precision(kind: str, name: str):
    def scenario(torch: Any) -> Any:
        module, weight = layer_of(torch, kind), weight_of(kind)
        getattr(torch.nn.utils.parametrizations, name)(module, weight)
        still_where_reads_differ(module)
        return module.state_dict(), getattr(module, weight), first_of(call(torch, kind, module))

    compare(scenario, rtol=1e-4, atol=2e-6)


# torch has no complex weight_norm
@pytest.mark.parametrize("name", ["orthogonal", "spectral_norm"])
def test_complex(name: str):
    def scenario(torch: Any) -> Any:
        module = torch.nn.Linear(3, 3, dtype=torch.complex128)
        getattr(torch.nn.utils.parametrizations, name)(module)
        weight = module.weight
        (weight.real**2 * 3 + weight.imag).sum().backward()
        grads = [p.grad for p in module.parameters() if p.grad is not None]
        householder = attempt(
            torch.nn.utils.parametrizations.orthogonal,
            torch.nn.Linear(3, 3, dtype=torch.complex64), "weight", "householder",
        )  # fmt: skip
        return weight, grads, module.state_dict(), householder

    compare(scenario, rtol=1e-6, atol=1e-9)


def test_batches_of_matrices():
    def scenario(torch: Any) -> Any:
        results = []
        for shape in ((2, 3, 3), (2, 4, 2), (2, 2, 4)):
            for chosen in ("matrix_exp", "cayley", "householder"):
                module = torch.nn.Module()
                value = torch.randn(shape, dtype=torch.float64)
                module.register_parameter("w", torch.nn.Parameter(value))
                torch.nn.utils.parametrizations.orthogonal(module, "w", chosen)
                (module.w**3).sum().backward()
                results += [module.w, module.parametrizations.w.original.grad]
        return results

    compare(scenario, rtol=1e-6, atol=1e-9)


def test_errors_of_the_parametrizations():
    def scenario(torch: Any) -> Any:
        nn, p = torch.nn, torch.nn.utils.parametrizations
        linear = nn.Linear(2, 3)
        return [
            attempt(p.orthogonal, linear, "nothing"),
            attempt(p.orthogonal, linear, "bias"),
            attempt(p.orthogonal, linear, "weight", "polar"),
            attempt(p.spectral_norm, linear, "nothing"),
            attempt(p.spectral_norm, linear, dim=2),
            attempt(p.spectral_norm, linear, dim=-3),
            attempt(p.spectral_norm, linear, n_power_iterations=0),
            attempt(p.weight_norm, linear, "nothing"),
            attempt(setattr, p.orthogonal(nn.Linear(2, 3)), "weight", torch.ones(2, 2)),
            attempt(p.orthogonal, linear, "weight", "cayley", use_trivialization=False)(
                torch.ones(2)
            ),
            attempt(setattr, linear, "weight", torch.ones(3, 2)),
            p.spectral_norm(nn.Linear(2, 3), "bias").bias,
        ]

    compare(scenario)


# ---- the older forms


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
@pytest.mark.parametrize("kind", [kind for kind in LAYERS if kind != "LayerNorm"])
def test_older_form(kind: str, name: str):
    def scenario(torch: Any) -> Any:
        module, weight = layer_of(torch, kind).double(), weight_of(kind)
        made = getattr(torch.nn.utils, name)(module, weight)
        results = [made is module, getattr(module, weight), module.state_dict()._metadata]
        results += trained(torch, kind, module)
        results += [attempt(getattr(torch.nn.utils, name), module, weight)]
        removed = getattr(torch.nn.utils, f"remove_{name}")(module, weight)
        results += [removed is module, module.state_dict(), len(module._forward_pre_hooks)]
        results += [attempt(getattr(torch.nn.utils, f"remove_{name}"), module, weight)]
        results += [first_of(call(torch, kind, module))]
        return results

    compare(scenario, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("options", [{"dim": None}, {"dim": 1}, {"dim": 2}])
def test_older_weight_norm_over_dims(options: dict[str, Any]):
    def scenario(torch: Any) -> Any:
        module = torch.nn.utils.weight_norm(torch.nn.Conv2d(2, 3, 2), **options)
        return trained(torch, "Conv2d", module)

    compare(scenario, rtol=1e-3)


def test_older_spectral_norm_reads_states_without_v():
    def scenario(torch: Any) -> Any:
        module = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 4))
        module(torch.randn(2, 3))
        state = module.state_dict()
        old = {key: value.clone() for key, value in state.items() if not key.endswith("_v")}
        old["weight"] = module.weight.detach().clone()
        fresh = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 4))
        fresh.load_state_dict(old)
        fresh.eval()
        fresh(torch.randn(2, 3))
        del old["weight_u"]
        return fresh.weight, fresh.state_dict(), attempt(fresh.load_state_dict, old)

    compare(scenario, rtol=1e-3, atol=1e-5)


def test_newer_weight_norm_reads_states_of_the_older():
    def scenario(torch: Any) -> Any:
        old = torch.nn.Sequential(torch.nn.utils.weight_norm(torch.nn.Linear(3, 2)))
        new = torch.nn.Sequential(
            torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
        )
        return new.load_state_dict(old.state_dict()), new.state_dict(), new[0].weight

    compare(scenario)


def make(torch: Any, form: str) -> Any:
    module = torch.nn.Conv2d(2, 3, 2)
    if form.startswith("older"):
        return getattr(torch.nn.utils, form.split()[1])(module)
    if form.startswith("prune"):
        return torch.nn.utils.prune.l1_unstructured(module, "weight", 0.3)
    return getattr(torch.nn.utils.parametrizations, form)(module)


FORMS = ["older weight_norm", "older spectral_norm", "weight_norm", "spectral_norm", "orthogonal",
         "prune"]  # fmt: skip


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("writer", ["torch", "flambeau"])
def test_checkpoints_interchange(form: str, writer: str):
    """A state saved by one library loads in the other and gives the same outputs."""
    libraries = [reference, flambeau] if writer == "torch" else [flambeau, reference]
    outputs = []
    buffer = io.BytesIO()
    modules = [make(torch, form) for torch in libraries]
    libraries[0].save(modules[0].state_dict(), buffer)
    buffer.seek(0)
    modules[1].load_state_dict(libraries[1].load(buffer))
    for torch, module in zip(libraries, modules, strict=True):
        torch.manual_seed(1)
        outputs.append(module.eval()(torch.randn(1, 2, 4, 4)).detach().numpy())
    assert abs(outputs[0] - outputs[1]).max() < 1e-5


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("form", ["older weight_norm", "older spectral_norm", "prune"])
@pytest.mark.parametrize("writer", ["torch", "flambeau"])
def test_whole_modules_interchange(form: str, writer: str):
    """Modules with hooks are saved whole, under names that both libraries have."""
    libraries = [reference, flambeau] if writer == "torch" else [flambeau, reference]
    buffer = io.BytesIO()
    module = make(libraries[0], form)
    module(libraries[0].randn(1, 2, 4, 4))
    for hidden in ("weight",):
        # A computed weight is no leaf: torch cannot copy or save it, so it is left out.
        vars(module).pop(hidden, None)
    libraries[0].save(module, buffer)
    buffer.seek(0)
    loaded = libraries[1].load(buffer, weights_only=False)
    outputs = []
    for torch, one in zip(libraries, (module, loaded), strict=True):
        torch.manual_seed(1)
        outputs.append(one.eval()(torch.randn(1, 2, 4, 4)).detach().numpy())
    assert abs(outputs[0] - outputs[1]).max() < 1e-5


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm", "orthogonal"])
def test_copies_and_pickles(name: str):
    def scenario(torch: Any) -> Any:
        module = getattr(torch.nn.utils.parametrizations, name)(torch.nn.Linear(3, 3))
        twin = copy.deepcopy(torch.nn.Sequential(module, module))
        with torch.no_grad():
            module.bias.fill_(7)
        return [
            type(twin[0]),
            twin[0] is twin[1],
            twin[0].bias,
            twin.eval()(torch.ones(1, 3)),
            type(twin[0]) is type(module),
            attempt(pickle.dumps, module),
            attempt(torch.save, module, io.BytesIO()),
        ]

    compare(scenario, rtol=1e-3, atol=1e-5)


def test_conversions_and_walks():
    def scenario(torch: Any) -> Any:
        U, results = torch.nn.utils, []
        for name in ("weight_norm", "spectral_norm", "orthogonal"):
            net = torch.nn.Sequential(torch.nn.Linear(3, 3))
            getattr(U.parametrizations, name)(net[0]).double()
            results += [net(torch.ones(1, 3).double()), net.state_dict()]
            results += [[key for key, _ in net.named_modules()], net.half()[0].weight.dtype]
            net.float().requires_grad_(False)
            results += [net[0].weight.requires_grad, dict(net.named_parameters())]
            key = next(key for key, _ in net.named_parameters() if "original" in key)
            results += [net.get_parameter(key), attempt(net.get_parameter, "0.weight")]
            state = {key: value.clone() for key, value in net.state_dict().items()}
            other = torch.nn.Sequential(getattr(U.parametrizations, name)(torch.nn.Linear(3, 3)))
            results += [other.load_state_dict(state, assign=True), other.state_dict()]
            results += [other.eval()(torch.ones(1, 3)), other[0]._get_name()]
        return results

    compare(scenario, rtol=1e-3, atol=1e-5)


def test_lazy_modules_and_copies_of_the_older_forms():
    def scenario(torch: Any) -> Any:
        U, P, nn = torch.nn.utils, torch.nn.utils.parametrizations, torch.nn
        results = [attempt(U.weight_norm, nn.LazyLinear(2)),
                   attempt(U.spectral_norm, nn.LazyLinear(2)),
                   attempt(U.spectral_norm, nn.Linear(2, 2, bias=False), "bias"),
                   attempt(U.weight_norm, nn.Linear(2, 2), "nothing"),
                   attempt(U.spectral_norm, nn.Linear(2, 2), "nothing"),
                   attempt(U.spectral_norm, nn.Linear(2, 2), n_power_iterations=0),
                   attempt(U.spectral_norm, nn.Linear(2, 2), "bias")]  # fmt: skip
        for name in ("weight_norm", "spectral_norm"):
            module = getattr(U, name)(nn.Linear(2, 2))
            module(torch.ones(1, 2))
            results.append(attempt(copy.deepcopy, module))
            both = getattr(U, name)(module, "bias") if name == "weight_norm" else module
            results += [both(torch.ones(1, 2)), both.state_dict()]
        lazy = nn.LazyLinear(2)
        results.append(attempt(P.weight_norm, lazy))
        return results

    compare(scenario, rtol=1e-3, atol=1e-5)
