"""Options that all functions have that make tensors: `names=`, which is gone, and `pin_memory=`."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from conformance.side_by_side import attempt, compare, plain

MAKE = """
torch.empty(2) torch.empty((2,)) torch.ones(2) torch.zeros(2) torch.full((2,),1.0) torch.rand(2)
torch.randn(2) torch.randint(3,(2,)) torch.randperm(3) torch.arange(3) torch.linspace(0,3,3)
torch.logspace(0,3,3) torch.eye(3) torch.tensor([1.0]) torch.empty_strided((2,),(1,))
torch.empty_permuted((2,),(0,)) torch.scalar_tensor(1.0) torch.normal(0.0,1.0,(2,))
torch.tril_indices(3,3) torch.triu_indices(3,3) torch.fft.fftfreq(3) torch.fft.rfftfreq(3)
torch.hann_window(3) torch.hamming_window(3) torch.blackman_window(3) torch.bartlett_window(3)
torch.kaiser_window(3) torch.empty_like(x) torch.zeros_like(x) torch.ones_like(x)
torch.full_like(x,1) torch.rand_like(x) torch.randn_like(x) torch.randint_like(x,3)
x.new_empty(2) x.new_ones(2) x.new_zeros(2) x.new_full((2,),1) x.new_empty_strided((2,),(1,))
x.new_tensor([2.0]) torch.range(0,2) torch.asarray([1.0]) torch.as_tensor([1.0])
""".split()
"""Calls, to which an option is added."""


def said(t: Any, call: str, option: str) -> Any:
    """The class of the error and, unless several forms are listed, its words; else the shape."""
    found = attempt(lambda: eval(f"{call[:-1]},{option})", {"torch": t, "x": t.ones(2)}))  # noqa: S307
    if not hasattr(found, "kind"):
        return list(found.shape)
    listed = "invalid combination" in found.text or "unexpected keyword" in found.text
    return [found.kind, "no such option" if listed else found.text]


@pytest.mark.parametrize("call", MAKE)
def test_names_are_gone(call: str) -> None:
    compare(lambda t: [said(t, call, f"names={value}") for value in ("('N',)", "None", "'N'")])


@pytest.mark.parametrize("call", MAKE)
def test_memory_cannot_be_pinned(call: str) -> None:
    values = ["True", "False"] if call in FORMS else ["True", "False", "None", "1", "'yes'"]
    compare(lambda t: [said(t, call, f"pin_memory={value}") for value in values])


FORMS = {call for call in MAKE if call.split("(")[0].removeprefix("torch.") in (
    "arange", "linspace", "logspace", "eye", "normal", "rand", "randn", "randint", "randperm",
    "hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window",
    "randint_like", "rand_like", "randn_like")}  # fmt: skip
"""Functions of several forms: of wrong types their errors say in PyTorch which forms there are."""


def pinned(t: Any) -> Any:
    x = t.ones(2)
    packed = t.nn.utils.rnn.pack_sequence([x])
    asked = [x.is_pinned, packed.is_pinned, x.untyped_storage().is_pinned, x.storage().is_pinned]
    told = [
        x.pin_memory, packed.pin_memory, x.storage().pin_memory,
        x.untyped_storage().pin_memory, x.to_sparse().pin_memory,
        lambda: t.utils.data._utils.pin_memory.pin_memory([x]),
    ]  # fmt: skip
    loaded = list(t.utils.data.DataLoader([1.0, 2.0], pin_memory=True))
    return [[plain(attempt(f)) for f in (*asked, *told)], loaded]


def test_pinned_memory() -> None:
    compare(pinned)


@pytest.mark.parametrize("call", ["pin_memory('cpu')", "is_pinned('cpu')", "is_pinned('cuda')"])
def test_the_device_of_pinned_memory(call: str) -> None:
    """Naming it is deprecated."""

    def scenario(t: Any) -> Any:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = plain(attempt(lambda: eval(f"t.ones(2).{call}", {"t": t})))  # noqa: S307
        return found, sorted(str(one.message).partition(" (Trigg")[0] for one in told)

    compare(scenario)


def default_devices(t: Any) -> Any:
    """Whatever is the default, what is there already says where it lies."""
    x, found = t.ones(2), []
    with t.device("cuda"):
        for make in (lambda: x.new_zeros(2), lambda: t.zeros_like(x), lambda: x.new_tensor([1.0]),
                     lambda: t.empty_like(x.t()).shape, lambda: x + 1, lambda: t.ones(2),
                     lambda: t.tensor([1.0]), lambda: t.nn.Linear(2, 2), lambda: t.rand(2),
                     lambda: t.ones(2, device="cpu"), t.get_default_device):  # fmt: skip
            found.append(plain(attempt(make)))
    return found


def test_a_default_device_that_is_not_there() -> None:
    compare(default_devices)


C = "torch.ones(4, device='cpu')"
M = "torch.eye(4, device='cpu')"
BESIDE_A_DEFAULT = (
    # not made on the default device
    "torch.Tensor()", "torch.Tensor(2)", "torch.Tensor([1.0])", f"torch.Tensor({C})",
    "torch.FloatTensor(2)", "torch.BoolTensor([1])", "torch.normal(0.0, 1.0, (2,))",
    "torch.range(0, 2)", "torch.Generator()", "torch.get_rng_state()",
    "torch.frombuffer(bytearray(8), dtype=torch.float32)",
    # made on it
    "torch.nn.Parameter()", "torch.nn.Buffer()", "torch.utils.data.default_collate([1, 2])",
    "torch.utils.data.default_collate([1.0, 2.0])", "torch.scalar_tensor(1.0)",
    "torch.as_tensor([1.0])",
    # beside tensors that lie elsewhere
    f"{C}.new(2)", f"{C}.new([1.0])", f"{C}.new(size=(2,))",
    f"torch.stft({C}, 4, return_complex=True, window={C}[:3], win_length=3)",
    f"torch.stft({C}, 4, return_complex=True, window={C})",
    "torch.testing.make_tensor(2, dtype=torch.float32, device='cpu')",
    "torch.testing.make_tensor(2, dtype=torch.int8, device='cpu')",
    "torch.testing.make_tensor(2, dtype=torch.complex64, device='cpu')",
    f"torch.nn.init.orthogonal_({M})",
    "torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(2, 2, device='cpu')).weight",
    "torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(2, 3, device='cpu'), "
    "orthogonal_map='cayley').weight",
    "torch.nn.utils.prune.random_structured(torch.nn.Linear(2, 2, device='cpu'), 'weight', 1, 0)"
    ".weight",
    "torch.nn.utils.rnn.pack_padded_sequence(torch.ones(2, 2, 1, device='cpu'), "
    "torch.tensor([1, 2], device='cpu'), enforce_sorted=False).data",
    f"torch.svd_lowrank({M}, 2)[0]", f"torch.pca_lowrank({M}, 2)[0]",
    "torch.lobpcg(torch.eye(9, device='cpu'), 2)[0]", f"torch.linalg.matrix_exp({M})",
    f"torch.linalg.matrix_power({M}, 0)", f"torch.cov({C}[None])",
    f"torch.linalg.householder_product({M}, {C})", f"torch.ormqr({M}, {C}, {M})",
    f"torch.sparse.softmax({M}.to_sparse(), 1)", f"torch.sparse.log_softmax({M}.to_sparse(), 1)",
    f"{M}.to_sparse().new_zeros(2, 2)", f"torch.zeros_like({M}.to_sparse())",
    f"torch.sparse.spdiags({C}[None], torch.tensor([0], device='cpu'), (4, 4))",
    "torch.nn.functional.fractional_max_pool2d(torch.ones(1, 1, 4, 4, device='cpu'), 2, 2)",
    "torch.nn.functional.embedding_bag(torch.tensor([[0, 1]], device='cpu'), "
    "torch.ones(2, 2, device='cpu'))",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", BESIDE_A_DEFAULT)
def test_what_the_default_device_is_for(expression: str) -> None:
    """Functions that take tensors need none but those; a few constructors know of no default."""

    def scenario(t: Any) -> Any:
        with t.device("cuda"):
            found = attempt(lambda: eval(expression, {"torch": t}))  # noqa: S307
        return getattr(found, "kind", None) or str(found.device)

    compare(scenario)
