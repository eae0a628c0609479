"""Arguments that once were taken and ignored: results, errors and warnings are PyTorch's."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.side_by_side import compare

MATRIX = "torch.tensor([[0.0, 1.0]])"
GROWN = "torch.arange(3.0, requires_grad=True)"
PACKED = "torch.nn.utils.rnn.pack_sequence([torch.ones(2)])"
FILE = "torch.save([1], b) or b.seek(0) or "

EXPRESSIONS = (
    # sparse
    f"{MATRIX}.to_sparse(blocksize=(1, 1))",
    f"{MATRIX}.to_sparse(dense_dim=1).sparse_dim()",
    f"{MATRIX}.to_sparse(dense_dim=1).to_dense()",
    f"{MATRIX}.to_sparse(dense_dim=5)",
    f"{MATRIX}.to_sparse(dense_dim=2)",
    f"{MATRIX}.to_sparse(layout=torch.strided)",
    f"{MATRIX}.to_sparse().to_sparse(layout=torch.strided)",
    f"{MATRIX}.to_sparse().to_sparse(blocksize=(1, 1))",
    f"{MATRIX}.to_sparse().to_sparse(dense_dim=0)",
    # tensors from elsewhere
    f"torch.asarray({GROWN}, requires_grad=False)",
    f"torch.asarray({GROWN} * 1, requires_grad=False)",
    f"torch.asarray({GROWN}, copy=True, requires_grad=False)",
    f"torch.asarray({GROWN}, dtype=torch.float64, requires_grad=True)",
    "torch.asarray(torch.arange(3.0), requires_grad=True)",
    "torch.from_dlpack(torch.arange(3.0), device='cuda')",
    "torch.from_dlpack(torch.arange(3.0), device='cpu')",
    "torch.from_dlpack(torch.arange(3.0), device='nope')",
    "torch.from_dlpack(torch.arange(3.0), device='meta')",
    "torch.from_dlpack(torch.arange(3.0).__dlpack__(), device='cpu')",
    "torch.from_dlpack(torch.arange(3.0).__dlpack__(), copy=True)",
    "torch.ones(1, 2, 3, 4).permute(0, 2, 3, 1).cpu(memory_format=torch.contiguous_format)",
    "torch.ones(1, 2, 3, 4).permute(0, 2, 3, 1).type("
    "torch.float32, memory_format=torch.contiguous_format)",
    "torch.ones(2).type(torch.float64, nope=True)",
    "torch.ones(2).type(torch.float64, 'a')",
    # storages
    "torch.UntypedStorage(3, device='cuda')",
    "torch.UntypedStorage([1, 2], device='cuda')",
    "torch.UntypedStorage(3, device='nope')",
    "torch.UntypedStorage(3, device='mps')",
    "torch.UntypedStorage(3, device='xpu')",
    "torch.UntypedStorage(3, device='cpu').nbytes()",
    "torch.ones(2).untyped_storage().type(torch.UntypedStorage).tolist()",
    # what is switched off
    "torch.compile(abs, disable=True) is abs",
    "torch.compile(disable=True, fullgraph=True)(abs) is abs",
    "torch.compile(3, disable=True)",
    "torch.nn.Linear(1, 1).compile(disable=True)",
    "isinstance(torch.compile(torch.nn.Linear(1, 1), disable=True), torch.nn.Linear)",
    # numbers beyond a type
    "torch.full((2,), 1e6, dtype=torch.float16)",
    "torch.full((1,), 1e6, dtype=torch.float16)",
    "torch.full((0,), 1e6, dtype=torch.float16)",
    "torch.zeros(2, dtype=torch.bfloat16).fill_(1e39)",
    "torch.zeros((), dtype=torch.bfloat16).fill_(1e39).float()",
    "torch.full_like(torch.zeros(2, 2, dtype=torch.float16), 65519.0)",
    *(
        f"torch.nn.functional.hinge_embedding_loss(torch.tensor([2, 3, 1], dtype=torch.{kind}), "
        f"torch.tensor([1, -1, 1]), margin={margin}, reduction='none')"
        for kind in ("uint8", "int8", "float16")
        for margin in (0.0, -1.5, 1.5, -1, 300.0, 1e6)
    ),
    *(
        f"torch.nn.functional.instance_norm(torch.ones(2, 2, 3, dtype=torch.{kind}), eps={eps})"
        for kind in ("float32", "float16", "float64")
        for eps in (0.0, -1.5)
    ),
    # autograd
    "torch.autograd.functional.jacobian(lambda x: x, torch.ones(2), strategy='forward-mode')",
    "torch.autograd.functional.jacobian(lambda x: x, torch.ones(2), strict=True, vectorize=True)",
    "torch.autograd.functional.hessian(lambda x: x.sum(), torch.ones(2), "
    "outer_jacobian_strategy='nope')",
    "torch.autograd.Variable(torch.ones(2), False, None)",
    "torch.autograd.Variable(torch.ones(2), False, True)",
    "torch.autograd.Variable(torch.ones(2), 1)",
    "torch.autograd.Variable(3)",
    # lists where numbers stand, and tensors where lists do
    *[f"torch.gradient(torch.ones(2, 3), dim={dim})" for dim in (
        "3", "-3", "(0, 3)", "1", "torch.tensor(1)", "[0, 1]")],
    *[f"torch.cat({view}(torch.ones(2, 3)))" for view in ("torch._neg_view", "")],
    "torch.stack(torch._neg_view(torch.ones(2, 3)))",
    "torch.cat(torch.ones(2, 3, dtype=torch.complex64).conj())",
    # files
    f"{FILE}torch.load(b, nope=1)",
    f"{FILE}torch.load(b, errors='ignore')",
    f"{FILE}torch.load(b, encoding='latin1')",
    # without a GPU
    "torch.cuda.device('cpu')",
    "torch.cuda.device('nope')",
    "torch.cuda.device('cuda:1').idx",
    "torch.cuda.device(3).idx",
    # numbers
    "torch.cosine_similarity(torch.ones(2), torch.ones(2), dim=0, eps=-1.0)",
    "torch.fft.fftfreq(-1)",
    "torch.fft.rfftfreq(-3)",
    "torch.histogramdd(torch.ones(2, 3), 1, weight=torch.ones(2, 1))",
    "torch.histogramdd(torch.ones(2, 2, 3), 1, weight=torch.ones(4))",
    "torch.histogramdd(torch.ones(2, 3), 1, weight=torch.ones(2).double())",
    "torch.histogram(torch.ones(3), 2, weight=torch.ones(2))",
    "torch.isin(torch.ones(2), 1j)",
    "torch.isin(1j, torch.ones(2))",
    "torch.searchsorted(torch.ones(2), 1j)",
    "torch.bucketize(torch.ones(2) + 1j, torch.ones(2))",
    "torch.searchsorted(torch.ones(2) > 0, torch.ones(2) > 1)",
    *[f"torch.cdist(torch.ones(2, 2), torch.ones(2, 2), compute_mode={mode})"
      for mode in ("False", "None", "0", "'nope'")],
    "torch.binary_cross_entropy_with_logits(torch.ones(2), torch.ones(2), reduction=7)",
    *[f"torch.binary_cross_entropy_with_logits({given})" for given in (
        "torch.ones(3), torch.ones(3), torch.ones(2, 3)",
        "torch.ones(3), torch.ones(3), pos_weight=torch.ones(1, 3)",
        "torch.ones(2, 3), torch.ones(3)", "torch.ones(3), torch.ones(3), torch.ones(4)",
        "torch.ones(3), torch.ones(2, 3), torch.ones(2, 1), torch.ones(3)")],
    "torch.unravel_index(torch.ones(2, dtype=torch.uint8), [0])",
    *[f"torch.ones(3).{call}" for call in (
        "clamp_max_(torch.ones(1, 3))", "clamp_(torch.ones(1, 3))", "lerp_(torch.ones(1, 3), 0.5)",
        "addcmul_(torch.ones(1, 3), torch.ones(3))", "pow_(torch.ones(1, 3))")],
    # modules
    "torch.nn.utils.convert_conv2d_weight_memory_format("
    "torch.nn.Conv2d(2, 2, 3), torch.preserve_format)",
    "torch.nn.FractionalMaxPool3d(0, output_size=2)",
    "torch.nn.FractionalMaxPool3d((1, 0, 1), output_size=2)",
    *[f"str(torch.nn.LinearCrossEntropyOptions({given}))" for given in (
        "batch_chunk_size=0", "batch_chunk_size=2.5", "chunking_method='nope'",
        "chunking_method='aspect_ratio:0'", "chunking_method='aspect_ratio:2'",
        "acc_policy='nope'", "acc_dtype=torch.int64")],
    f"{PACKED}.cpu(torch.float64)[0]",
    f"{PACKED}.cpu('cuda')",
    f"{PACKED}.cpu(copy=True)",
    # `out=` beside options that it has to fit
    *[f"torch.{call}, out=torch.ones(2), {option})" for option in (
        "device='meta'", "device='cuda'", "device='cpu:3'", "dtype=torch.double, device='meta'",
        "layout=torch.sparse_coo, device='meta'") for call in (
        "zeros((2,)", "ones((2,)", "full((2,), 1.0", "rand((2,)", "randn((2,)",
        "randint(3, (2,)", "arange(2.0", "linspace(0, 1, 2", "logspace(0, 1, 2", "eye(1",
        "randperm(2", "normal(0.0, 1.0, (2,)", "fft.fftfreq(2")],
    "torch.empty((2,), out=torch.ones(2), device='meta')",
    "(lambda b: torch.stack([b[0], torch.ones(2)], out=b))(torch.zeros(2, 2))",
    "(lambda b: torch.stack([torch.ones(2)], out=b))(torch.zeros(2).expand(1, 2))",
    # where a tensor lies
    *[f"torch.{name}_indices(2, 2, {option}).device" for name in ("tril", "triu") for option in (
        "device='meta'", "device='cpu'", "device='meta', dtype=torch.int32")],
    *[f"torch.{call}, device={device}).device" for call in (
        "Tensor(2", "Tensor([1.0]", "FloatTensor(2", "Tensor(torch.ones(2)", "ones(2).new(2",
        "ones(2).new([1.0]", "ones(2).new(torch.ones(2)", "ones(2, device='meta').new(2")
      for device in ("'meta'", "'cpu'", "'cuda'", "None")],
    # switches and types that are none
    *[f"torch.autocast('cpu', enabled={given})(torch.is_autocast_enabled)('cpu')"
      for given in ("3", "0", "None", "True")],
    *[f"torch.asarray([1.0], requires_grad={given})" for given in ("1", "'a'", "0", "True")],
    "torch.tril_indices(2, 2, requires_grad=True)",
)  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_arguments_act(expression: str) -> None:
    def scenario(t: Any) -> Any:
        return eval(expression, {"torch": t, "b": io.BytesIO()})

    compare(scenario, strides=True)


REFUSED = (
    # words that nothing takes, beside a list of sizes
    *[f"torch.ones(2).{call}, nonsense=3)" for call in (
        "view(-1", "view((1, 2)", "view(torch.int32", "expand((1, 2)", "broadcast_to((1, 2)",
        "permute(0", "flip(0", "repeat(1", "tile((2,)", "tile(2", "reshape(-1", "random_(3",
        "random_(0, 3")],
    *[f"torch.{call}, nonsense=3)" for call in (
        "broadcast_to(torch.ones(2), (1, 2)", "permute(torch.ones(2), (0,)",
        "flip(torch.ones(2), (0,)", "view_copy(torch.ones(2), (2, 1)",
        "expand_copy(torch.ones(2), (2, 2)", "permute_copy(torch.ones(2), (0,)")],
    "torch.ones(2).view((2,), size=(2,))",
    "torch.ones(2).random_(nonsense=3)",
    "torch.ones(2).random_(**{'from': 3})",
    "torch.ones(2).random_(3, **{'from': 3})",
    "torch.ones(2).random_(0, 1, 2)",
    # switches that are no bools
    *[f"torch.sparse_coo_tensor([[0]], [1.0], (2,), pin_memory={given})"
      for given in ("None", "1", "'a'")],
    "torch.device(True)",
    *[f"torch.{call}, dtype='float32')" for call in (
        "tensor([1.0]", "as_tensor([1.0]", "asarray([1.0]", "ones(2", "tril_indices(2, 2")],
    *[f"torch.{name}_like(torch.ones(2){more}, memory_format=3)" for name, more in (
        ("empty", ""), ("zeros", ""), ("full", ", 1"), ("rand", ""), ("randint", ", 3"))],
    "torch.empty(2, memory_format=3)",
    "torch.sparse_coo_tensor([[0]], [1.0], (2,), requires_grad=1)",
    # `out=`, which only the form along a dim has
    *[f"torch.prod(torch.ones(2, 3), {given}out=torch.ones(()))"
      for given in ("", "None, ", "dim=None, ", "keepdim=True, ", "dtype=torch.float32, ")],
)  # fmt: skip


@pytest.mark.parametrize("expression", REFUSED)
def test_arguments_are_refused(expression: str) -> None:
    """In the words of each library: PyTorch lists all forms of a call."""
    for library in (reference, flambeau):
        with pytest.raises(TypeError):
            eval(expression, {"torch": library})


@pytest.mark.parametrize("given", ["3", "1, 5", "1, to=3", "**{'from': 1, 'to': 3}", "to=2", ""])
def test_bounds_of_random_integers(given: str) -> None:
    def scenario(t: Any) -> Any:
        t.manual_seed(4)
        return eval(f"torch.ones(4).random_({given})", {"torch": t})

    compare(scenario)


@pytest.mark.parametrize("weight", ["int32", "float64", "bfloat16", "float32"])
def test_weights_of_other_types_are_warned_of(weight: str) -> None:
    """`rms_norm`, once in a process unless asked for each time."""

    def told(t: Any) -> list[str]:
        kind = getattr(t, weight)
        t.set_warn_always(True)
        try:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                t.rms_norm(t.ones(2, 3), (3,), t.ones(3, dtype=kind))
        finally:
            t.set_warn_always(False)
        return [str(one.message).partition(" (Triggered")[0] for one in seen]

    assert told(flambeau) == told(reference)
