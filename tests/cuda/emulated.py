"""Facts about programs on an emulated GPU. `test_emulation` runs them in a process of their own.

Each function is one fact; run as a script, the file prints the failures as JSON.
"""

from __future__ import annotations

import copy
import io
import json
import pickle
import traceback
import warnings
from typing import Any

import flambeau as torch

F = torch.nn.functional
CUDA = torch.device("cuda:0")


def message(error: type[BaseException], call: Any) -> str:
    """The text of the error that a call raises."""
    try:
        call()
    except error as found:
        return str(found)
    raise AssertionError("no error")


def devices(*tensors: Any) -> set[str]:
    return {str(tensor.device) for tensor in tensors}


def what_torch_cuda_answers() -> None:
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1
    assert torch.cuda.current_device() == 0 and torch.cuda.is_initialized()
    assert torch.version.cuda == "13.0"
    assert torch.backends.cudnn.is_available() and torch.backends.cudnn.version() > 0
    assert torch.backends.cuda.is_built() and torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    properties = torch.cuda.get_device_properties("cuda:0")
    assert properties.name == torch.cuda.get_device_name(0)
    assert (properties.major, properties.minor) == torch.cuda.get_device_capability() == (9, 0)
    assert properties.total_memory == torch.cuda.mem_get_info()[1] > 0
    torch.cuda.set_device(0)
    torch.cuda.synchronize()
    with torch.cuda.device(0), torch.cuda.device_of(torch.ones(1)):
        assert torch.cuda.current_device() == 0
    wrong = message(torch.AcceleratorError, lambda: torch.cuda.set_device(1))
    assert wrong.startswith("CUDA error: invalid device ordinal\n")
    assert message(AssertionError, lambda: torch.cuda.get_device_name(7)) == "Invalid device id"


def memory_of_others_is_described_and_taken() -> None:
    """The CUDA array interface and DLPack: one memory, kept by whoever uses it."""

    class Other:
        def __init__(self, tensor: Any) -> None:
            self.tensor, self.__cuda_array_interface__ = tensor, tensor.__cuda_array_interface__

    x = torch.arange(6.0, device="cuda").view(2, 3)
    assert x.__cuda_array_interface__ == {
        "typestr": "<f4", "shape": (2, 3), "strides": None, "data": (x.data_ptr(), False),
        "version": 2,
    }  # fmt: skip
    assert x.t().__cuda_array_interface__["strides"] == (4, 12)
    other = Other(x.t())
    shared = [torch.as_tensor(other), torch.asarray(other), torch.from_dlpack(x.t())]
    for y in shared:
        assert (y.data_ptr(), y.stride()) == (x.data_ptr(), (1, 3)) and y.is_cuda
    assert torch.as_tensor(other, dtype=torch.half).tolist() == x.t().tolist()
    assert torch.asarray(other, device="cpu").is_cpu
    shared[0].add_(1)
    assert x[1, 2] == 6 and shared[2].half()[2, 1] == 6
    del x, other, y
    assert shared.pop().mul(2).sum() == 42
    learning = torch.ones(2, device="cuda", requires_grad=True)
    wrong = message(RuntimeError, lambda: learning.__cuda_array_interface__)
    assert wrong.startswith("Can't get __cuda_array_interface__ on Variable that requires grad.")


def results_lie_where_their_operands_lie() -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    assert devices(x, x + 1, 2 - x, x[0], x.T, x.sum(), x.max(1)[1], x.detach(), x.data) == {
        "cuda:0"
    }
    assert devices(x.new_zeros(2), torch.zeros_like(x), x.half(), x > 1, x[x > 1]) == {"cuda:0"}
    assert devices(*x.unbind(), *x.split(1), x @ x.T, x.softmax(0), F.gelu(x)) == {"cuda:0"}
    assert devices(torch.rand(2, device=CUDA), torch.eye(2, device="cuda:0")) == {"cuda:0"}
    assert devices(torch.as_tensor([1.0], device="cuda"), torch.tensor(1, device=0)) == {"cuda:0"}
    assert devices(torch.ones(2), torch.zeros_like(x, device="cpu"), x.cpu()) == {"cpu"}
    assert x.is_cuda and not x.is_cpu and x.get_device() == 0 and not x.cpu().is_cuda
    assert x.device == CUDA and x.untyped_storage().device == CUDA


def moving_copies_once() -> None:
    x = torch.ones(3)
    y = x.cuda()
    assert y.cuda() is y and y.to("cuda") is y and y.to(CUDA, torch.float32) is y
    assert x.cpu() is x and x.to("cpu") is x
    assert y.data_ptr() != x.data_ptr()
    y += 1
    assert x.tolist() == [1, 1, 1] and y.cpu().tolist() == [2, 2, 2]
    assert y.to("cuda", copy=True) is not y
    assert y.to("cpu", torch.int64).dtype is torch.int64
    assert torch.ones(1).to(y).device == torch.ones(1).type_as(y).device == CUDA
    strided = torch.ones(2, 3).t().cuda()
    assert strided.stride() == (1, 3)
    z = torch.empty(3)
    assert z.copy_(y) is z and z.device.type == "cpu" and z.tolist() == [2, 2, 2]


def mixtures_are_refused_in_torch_words() -> None:
    x, y = torch.ones(3, 3, device="cuda"), torch.ones(3, 3)
    two = ("Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
           "and cpu!")  # fmt: skip
    for call in (lambda: x + y, lambda: y * x, lambda: x.add_(y), lambda: x == y,
                 lambda: torch.where(x > 0, x, y), lambda: F.mse_loss(x, y)):  # fmt: skip
        assert message(RuntimeError, call) == two
    start = "Expected all tensors to be on the same device, but got "
    assert message(RuntimeError, lambda: x @ y) == (
        f"{start}mat2 is on cpu, different from other tensors on cuda:0 (when checking argument in "
        "method wrapper_CUDA_mm)"
    )
    layer = torch.nn.Linear(3, 2).cuda()
    assert message(RuntimeError, lambda: layer(y)) == (
        f"{start}mat1 is on cpu, different from other tensors on cuda:0 (when checking argument in "
        "method wrapper_CUDA_addmm)"
    )
    assert message(RuntimeError, lambda: torch.cat([x, y])).startswith(f"{start}tensors is on cpu")
    assert message(RuntimeError, lambda: F.cross_entropy(x, torch.tensor([0, 1, 2]))) == (
        f"{start}target is on cpu, different from other tensors on cuda:0 (when checking argument "
        "in method wrapper_CUDA_nll_loss_forward)"
    )
    table = torch.nn.Embedding(3, 2).cuda()
    assert "index is on cpu" in message(RuntimeError, lambda: table(torch.tensor([1])))
    image = torch.ones(1, 1, 3, 3)
    assert message(RuntimeError, lambda: F.conv2d(image, image.cuda())) == (
        "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same"
        " or input should be a MKLDNN tensor and weight is a dense tensor"
    )
    assert message(RuntimeError, lambda: torch.nn.LSTM(2, 2).cuda()(torch.ones(1, 1, 2))) == (
        "Input and parameter tensors are not at the same device, found input tensor at cpu and "
        "parameter tensor at cuda:0"
    )
    x = torch.ones(2, device="cuda")
    assert message(RuntimeError, lambda: x.masked_fill(torch.tensor([True, False]), 1.0)) == (
        "expected self and mask to be on the same device, but got mask on cpu and self on cuda:0"
    )
    bounded = message(RuntimeError, lambda: x.clamp(max=torch.tensor(0.5)))
    assert "got max is on cpu" in bounded and bounded.endswith("wrapper_CUDA_clamp_Tensor)")
    assert message(RuntimeError, lambda: torch.addcmul(x, torch.tensor(2.0), x)).startswith(
        "CPU Scalar support for tensor1 argument is not supported when calling addcmul"
    )
    assert torch.addcmul(x, x, torch.tensor(2.0)).tolist() == [3, 3]
    assert "wrapper_CUDA_Tensor_searchsorted" in message(
        RuntimeError, lambda: torch.searchsorted(x, torch.ones(1))
    )


def numbers_and_indices_may_come_from_the_cpu() -> None:
    x = torch.arange(4.0, device="cuda")
    assert devices(x + torch.tensor(2.0), torch.tensor(2) * x, x[torch.tensor([0, 2])]) == {
        "cuda:0"
    }
    x[0] = 7
    x[torch.tensor([1])] = torch.tensor(8.0)
    x[2:] = torch.tensor([1.0, 2.0])
    assert x.tolist() == [7, 8, 1, 2]
    wrong = message(RuntimeError, lambda: torch.ones(3)[torch.tensor([0], device="cuda")])
    assert wrong.startswith("indices should be either on cpu or on the same device")


def numpy_is_refused() -> None:
    x = torch.ones(2, device="cuda")
    text = ("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
            "to host memory first.")  # fmt: skip
    import numpy as np

    assert message(TypeError, x.numpy) == message(TypeError, lambda: np.asarray(x)) == text
    assert x.numpy(force=True).tolist() == x.tolist() == [1, 1]
    assert x[0].item() == 1


def printing_names_the_device() -> None:
    x = torch.ones(2, device="cuda")
    assert repr(x) == "tensor([1., 1.], device='cuda:0')"
    assert repr(x.half()) == "tensor([1., 1.], device='cuda:0', dtype=torch.float16)"
    assert repr(x.requires_grad_()) == "tensor([1., 1.], device='cuda:0', requires_grad=True)"


def types_name_the_device() -> None:
    x = torch.cuda.FloatTensor(2, 3)
    assert x.device == CUDA and x.type() == "torch.cuda.FloatTensor"
    assert isinstance(x, torch.cuda.FloatTensor) and not isinstance(x, torch.FloatTensor)
    assert not isinstance(x.cpu(), torch.cuda.FloatTensor)
    assert torch.ones(1).type("torch.cuda.HalfTensor").device == CUDA
    assert torch.ones(1).type(torch.cuda.LongTensor).type() == "torch.cuda.LongTensor"


def gradients_cross_devices() -> None:
    weight = torch.ones(3, requires_grad=True)
    y = weight.cuda()
    assert y.grad_fn.name() == "ToCopyBackward0"
    (y * torch.arange(3.0, device="cuda")).sum().cpu().backward()
    assert weight.grad.tolist() == [0, 1, 2] and weight.grad.device.type == "cpu"
    leaf = torch.ones(3, device="cuda", requires_grad=True)
    seen: list[Any] = []
    leaf.register_hook(lambda grad: seen.append(grad.device))
    grad = torch.autograd.grad((leaf**3).sum(), leaf, create_graph=True)[0]
    grad.sum().backward()
    assert leaf.grad.tolist() == [6, 6, 6] and devices(leaf.grad, grad) == {"cuda:0"}
    assert set(seen) == {CUDA}


def custom_functions_see_devices() -> None:
    found = {}

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            found.update(grad=grad.device, saved=ctx.saved_tensors[0].device,
                         new=torch.ones(1).device)  # fmt: skip
            return grad * 2

    Double.apply(torch.ones(2, device="cuda", requires_grad=True)).sum().backward()
    assert found == {"grad": CUDA, "saved": CUDA, "new": torch.device("cpu")}


class Net(torch.nn.Module):
    """Most kinds of layers, small."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(11, 8)
        self.block = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.memory = torch.nn.LSTM(8, 8, batch_first=True)
        self.norm = torch.nn.BatchNorm1d(8)
        self.head = torch.nn.Linear(8, 11)

    def forward(self, text: Any) -> Any:
        x = self.memory(self.block(self.words(text)))[0].flatten(0, 1)
        return self.head(self.norm(x))


def modules_train_with_every_optimizer() -> None:
    text = torch.randint(0, 11, (4, 5), device="cuda")
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "Adadelta", "Rprop"):
        net = Net().cuda()
        assert devices(*net.parameters(), *net.buffers()) == {"cuda:0"}
        optimizer = getattr(torch.optim, name)(net.parameters(), lr=1e-3)
        scaler = torch.amp.GradScaler("cuda")
        for _ in range(2):
            optimizer.zero_grad()
            with torch.autocast("cuda"):
                out = net(text)
                loss = F.cross_entropy(out, text.flatten())
            assert out.dtype is torch.float16 and loss.dtype is torch.float32
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        assert scaler._scale.device == CUDA
        grads = [p.grad for p in net.parameters()]
        state = [v for s in optimizer.state.values() for v in s.values()
                 if isinstance(v, torch.Tensor) and v.ndim]  # fmt: skip
        assert devices(*grads, *state) == {"cuda:0"}, name


def float16_gradients_overflow_and_steps_are_skipped() -> None:
    weight = torch.full((4,), 300.0, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    with torch.autocast("cuda"):
        loss = torch.mv(weight[None], weight)[0]
    assert loss.dtype is torch.float16 and loss.isinf()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [300] * 4 and scaler.get_scale() == 2.0**15


def checkpoints_travel() -> None:
    x = torch.arange(3.0, device="cuda")
    for new_format in (True, False):
        file = io.BytesIO()
        torch.save({"x": x, "part": x[1:]}, file, _use_new_zipfile_serialization=new_format)
        file.seek(0)
        found = torch.load(file)
        assert found["x"].tolist() == [0, 1, 2] and devices(*found.values()) == {"cuda:0"}
        found["x"][1] = 9
        assert found["part"][0] == 9
        for where in ("cpu", {"cuda:0": "cpu"}, lambda storage, location: storage):
            file.seek(0)
            assert torch.load(file, map_location=where)["part"].device.type == "cpu"


def pickles_and_copies_keep_the_device() -> None:
    x = torch.arange(3.0, device="cuda", requires_grad=True)
    for found in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x.clone()):
        assert found.device == CUDA and found.tolist() == [0, 1, 2] and found.requires_grad
    layer = copy.deepcopy(torch.nn.Linear(2, 2).cuda())
    assert devices(*layer.parameters()) == {"cuda:0"}
    assert devices(*pickle.loads(pickle.dumps(layer)).parameters()) == {"cuda:0"}


def memory_is_counted() -> None:
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    x = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    ordinary = torch.empty(1 << 20)
    assert torch.cuda.memory_allocated() - before == 1 << 20
    del x, ordinary
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() == before + (1 << 20)
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.reset_max_memory_allocated()
    assert [w.category for w in caught] == [FutureWarning]
    assert torch.cuda.max_memory_allocated() == before
    stats = torch.cuda.memory_stats()
    assert stats["allocated_bytes.all.current"] == before
    assert torch.cuda.memory_stats_as_nested_dict()["allocation"]["all"]["current"] >= 0
    assert "Allocated memory" in torch.cuda.memory_summary()
    torch.cuda.empty_cache()


def streams_and_events() -> None:
    stream = torch.cuda.Stream()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream != torch.cuda.default_stream()
        start.record()
        torch.rand(100, 100, device="cuda").sum()
        end.record()
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    stream.wait_stream(torch.cuda.current_stream())
    end.synchronize()
    stream.synchronize()  # what it waits for came after `end`
    assert stream.query() and end.query() and 0 < start.elapsed_time(end) < 60_000
    assert "enable_timing=True" in message(
        ValueError, lambda: torch.cuda.Event().elapsed_time(torch.cuda.Event())
    )


def random_streams_are_the_devices_own() -> None:
    torch.manual_seed(5)
    first, host = torch.rand(3, device="cuda"), torch.rand(3)
    torch.manual_seed(5)
    assert torch.rand(3).tolist() == host.tolist()
    assert torch.rand(3, device="cuda").tolist() == first.tolist()
    state = torch.cuda.get_rng_state()
    a = F.dropout(torch.ones(50, device="cuda"))
    torch.cuda.set_rng_state(state)
    assert torch.equal(a, F.dropout(torch.ones(50, device="cuda")))
    torch.cuda.manual_seed_all(3)
    assert torch.cuda.initial_seed() == 3 and len(torch.cuda.get_rng_state_all()) == 1
    generator = torch.Generator(device="cuda").manual_seed(1)
    assert torch.randn(2, generator=generator, device="cuda").device == CUDA


def pinned_memory() -> None:
    x = torch.ones(4).pin_memory()
    assert x.is_pinned() and x[1:].is_pinned() and x.device.type == "cpu"
    assert not torch.ones(4).is_pinned() and x.pin_memory() is x
    assert x.to("cuda", non_blocking=True).device == CUDA
    assert "only dense CPU tensors can be pinned" in message(RuntimeError, x.cuda().pin_memory)
    data = torch.utils.data.TensorDataset(torch.rand(8, 2), torch.arange(8))
    for inputs, labels in torch.utils.data.DataLoader(data, 4, pin_memory=True):
        assert inputs.is_pinned() and labels.is_pinned()


def default_devices() -> None:
    torch.set_default_device("cuda")
    try:
        assert devices(torch.ones(2), torch.tensor(1.0), torch.nn.Linear(2, 2).weight) == {"cuda:0"}
        assert torch.ones(1, device="cpu").device.type == "cpu"
    finally:
        torch.set_default_device(None)
    with torch.device("cuda"):
        assert torch.rand(1).device == CUDA
        assert devices(torch.Tensor(2), torch.normal(0.0, 1.0, (2,))) == {"cpu"}
        x = torch.ones(8, device="cpu")
        assert devices(x.new(2), torch.linalg.matrix_power(x[:1, None], 0)) == {"cpu"}
    assert torch.rand(1).device.type == "cpu"


def checkpointing_runs_again_under_the_same_conditions() -> None:
    layer = torch.nn.Linear(3, 3).cuda()
    x = torch.rand(2, 3, device="cuda", requires_grad=True)

    def run(value: Any) -> Any:
        return F.dropout(layer(value).relu(), 0.5)

    for reentrant in (False, True):
        with torch.autocast("cuda"):
            y = torch.utils.checkpoint.checkpoint(run, x, use_reentrant=reentrant)
        assert y.dtype is torch.float16
        y.sum().backward()
        assert layer.weight.grad.dtype is torch.float32 and layer.weight.grad.device == CUDA


def autocast_regions_are_per_device() -> None:
    x, y = torch.ones(2, 2, device="cuda"), torch.ones(2, 2)
    with torch.autocast("cuda"):
        assert torch.is_autocast_enabled("cuda") and not torch.is_autocast_enabled("cpu")
        assert (x @ x).dtype is torch.float16 and (y @ y).dtype is torch.float32
        with torch.autocast("cpu"), torch.autocast("cuda", dtype=torch.bfloat16):
            assert torch.get_autocast_dtype("cuda") is torch.bfloat16
            assert (x @ x).dtype is (y @ y).dtype is torch.bfloat16
        with torch.autocast("cuda", enabled=False):
            assert (x @ x).dtype is torch.float32
    assert (x @ x).dtype is torch.float32


def weights_are_cast_once_a_region() -> None:
    def casts_of(product: Any) -> tuple[Any, Any]:
        """The nodes behind the bias and, past its transposition, behind the weight."""
        bias, _, turned = [node for node, _ in product.next_functions]
        return bias, turned.next_functions[0][0]

    layer = torch.nn.Linear(2, 2).cuda()
    x = torch.ones(1, 2, device="cuda")
    with torch.autocast("cuda"):
        with torch.no_grad():
            layer(x)
        first, second = layer(x), layer(x)
    casts = [casts_of(y.grad_fn) for y in (first, second)]
    assert casts[0] == casts[1] and None not in casts[0]  # the same nodes
    (first + second).sum().backward()
    assert layer.weight.grad.dtype is torch.float32


def custom_forward_and_backward_of_cuda() -> None:
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            seen.append((a.dtype, torch.is_autocast_enabled("cuda")))
            return a @ b

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx: Any, grad: Any) -> Any:
            a, b = ctx.saved_tensors
            seen.append((grad.dtype, torch.is_autocast_enabled("cuda")))
            return grad @ b.T, a.T @ grad

    a = torch.ones(2, 2, device="cuda", requires_grad=True)
    with torch.autocast("cuda"):
        Product.apply(a.half(), a).sum().backward()
    assert seen == [(torch.float32, False), (torch.float32, False)]
    assert a.grad.device == CUDA


def the_old_names_work() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        scaler = torch.cuda.amp.GradScaler()
        with torch.cuda.amp.autocast():
            assert (torch.ones(2, 2).cuda() @ torch.ones(2, 2).cuda()).dtype is torch.float16
    assert scaler.is_enabled() and scaler.get_scale() == 65536


def sparse_tensors_move() -> None:
    x = torch.eye(3).to_sparse().cuda()
    assert devices(x, x.indices(), x.values(), x.to_dense()) == {"cuda:0"}
    assert torch.eye(3, device="cuda").to_sparse().cpu().device.type == "cpu"


FACTS = {
    name: value for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__
    and not isinstance(value, type) and name not in ("message", "devices")
}  # fmt: skip


def random_numbers_are_those_of_an_h100() -> None:
    stream = torch.cuda.default_generators[0]

    def begun(seed: int, offset: int = 0) -> None:
        torch.manual_seed(seed)
        stream.set_offset(offset)

    begun(1, 8)
    assert torch.rand(3, device="cuda").tolist() == [
        0.24740147590637207, 0.4890846908092499, 0.5778692960739136,
    ]  # fmt: skip
    begun(3)
    assert torch.randperm(5, device="cuda").tolist() == [1, 3, 0, 4, 2]
    assert stream.get_offset() == 12
    begun(1234)
    half = torch.randn(5, device="cuda", dtype=torch.half)
    assert half.tolist() == [-1.6162109375, 0.568359375, -0.51025390625, -0.9111328125,
                             -1.1552734375]  # fmt: skip
    begun(1234)
    kept = F.dropout(torch.ones(1000, device="cuda", dtype=torch.float64), 0.4)[:6] > 0
    assert kept.tolist() == [True, False, False, True, True, False]
    begun(5)
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4], [1.0, 0.0, 0.0, 3.0]], device="cuda")
    assert torch.multinomial(weights, 6, replacement=True).tolist() == [
        [3, 2, 3, 1, 3, 2], [0, 3, 0, 3, 3, 0]
    ]  # fmt: skip
    assert torch.multinomial(weights[0], 3).tolist() == [3, 2, 1]
    begun(5)
    x = torch.zeros(6, 8, device="cuda")
    x[:, ::2].uniform_()
    assert x[0, :4].tolist() == [0.7659821510314941, 0.0, 0.3874756097793579, 0.0]
    begun(1234)
    drawn = torch.empty(5, device="cuda").cauchy_(0.5, 2.0).tolist()
    recorded = [-4.235254764556885, 3.581204652786255, 0.7782296538352966, 1.6001559495925903]
    assert all(abs(a - b) <= 1e-6 * abs(b) for a, b in zip(drawn, recorded, strict=False))


def states_of_random_streams() -> None:
    stream = torch.Generator("cuda")
    assert isinstance(stream, torch.Generator) and str(stream.device) == "cuda:0"
    assert stream.manual_seed(42).get_state().tolist() == [42, *[0] * 15]
    first = torch.rand(1000, device="cuda", generator=stream)
    assert stream.get_offset() == 4
    copied = pickle.loads(pickle.dumps(stream))
    assert copied.get_state().equal(stream.get_state()) and copied.device == stream.device
    stream.set_offset(0)
    assert torch.rand(1000, device="cuda", generator=stream).equal(first)
    wrong = message(RuntimeError, lambda: torch.rand(3, device="cuda", generator=torch.Generator()))
    assert wrong == "Expected a 'cuda' device type for generator but found 'cpu'"
    wrong = message(RuntimeError, lambda: torch.rand(3, generator=stream))
    assert wrong == "Expected a 'cpu' device type for generator but found 'cuda'"
    assert message(RuntimeError, lambda: torch.Generator().get_offset()).startswith("CPU Generator")


def graphs_go_on_where_the_stream_is() -> None:
    x, mask = torch.zeros(5, device="cuda"), torch.ones(400, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.uniform_()
        dropped = F.dropout(mask, 0.5)
    assert torch.cuda.default_generators[0].get_offset() % 4 == 0
    torch.manual_seed(7)
    wanted = [(torch.rand(5, device="cuda").tolist(), F.dropout(mask, 0.5).tolist())
              for _ in range(3)]  # fmt: skip
    torch.manual_seed(7)
    for numbers, kept in wanted:
        graph.replay()
        assert x.tolist() == numbers and dropped.tolist() == kept
    assert torch.cuda.default_generators[0].get_offset() == 24
    other = torch.cuda.CUDAGraph()
    with torch.cuda.graph(other):
        made_by_the_host = message(RuntimeError, lambda: torch.randperm(9, device="cuda"))
    assert made_by_the_host == "a graph cannot hold random numbers that the host makes"


def random_numbers_are_written_in_place() -> None:
    writers = {"uniform_": (2, 3), "normal_": (9, 0.5), "exponential_": (), "bernoulli_": (1.0,),
               "random_": (3, 5), "log_normal_": (), "geometric_": (0.5,),
               "cauchy_": (99, 0.01)}  # fmt: skip
    for name, given in writers.items():
        values = torch.zeros(1000, device="cuda")
        assert getattr(values, name)(*given) is values
        assert values.ne(0).sum() > 990, name
    assert torch.full((50,), 1.0, device="cuda").bernoulli(1.0).sum() == 50


def what_looks_on_sees_calls_on_gpus() -> None:
    """Modes below autograd come before devices, whichever a program used first."""
    from flambeau.utils.flop_counter import FlopCounterMode

    counts = []
    for place in ("cuda", "cpu", "cuda"):
        with FlopCounterMode(display=False) as counter:
            rows = torch.ones(8, 16, device=place)
            layer = torch.nn.Linear(16, 4, device=place)
            (layer(rows) @ torch.ones(4, 2, device=place)).sum().backward()
        counts.append(counter.get_total_flops())
    assert counts == [2 * (8 * 16 * 4) * 2 + 2 * (8 * 4 * 2) * 2] * 3, counts


def main() -> None:
    failures = {}
    for name, fact in FACTS.items():
        try:
            fact()
        except Exception:
            failures[name] = traceback.format_exc(limit=-4)
    print(json.dumps(failures))


if __name__ == "__main__":
    main()
