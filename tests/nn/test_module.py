"""The rules of Module: attributes, walking, state, hooks, conversion, text."""

import copy
import pickle

import pytest

import flambeau as torch
from flambeau import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Linear(3, 1, bias=False)
        self.register_buffer("scale", torch.ones(1))
        self.register_buffer("cache", torch.ones(2), persistent=False)
        self.shared = self.first

    def forward(self, x):
        return self.second(torch.relu(self.first(x))) * self.scale


def test_registration_and_walking():
    net = Net()
    assert list(net._modules) == ["first", "second", "shared"]
    names = ["first.weight", "first.bias", "second.weight"]
    assert [name for name, _ in net.named_parameters()] == names
    duplicated = [name for name, _ in net.named_parameters(remove_duplicate=False)]
    assert duplicated == [*names, "shared.weight", "shared.bias"]
    assert [name for name, _ in net.named_buffers()] == ["scale", "cache"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "second"]
    assert len(list(net.children())) == 2
    assert net.get_parameter("first.bias") is net.first.bias
    assert net.get_buffer("scale") is net.scale
    assert net.get_submodule("second") is net.second


def test_assignment_changes_the_table():
    net = Net()
    net.scale = nn.Parameter(torch.zeros(1))
    assert "scale" in net._parameters
    assert "scale" not in net._buffers
    net.first = None
    assert net.first is None
    net.other = 3
    del net.other
    del net.second
    assert not hasattr(net, "second")
    with pytest.raises(TypeError, match="cannot assign 'int' as parameter 'scale'"):
        net.scale = 3
    with pytest.raises(TypeError, match=r"cannot assign 'torch.FloatTensor' as parameter 'scale'"):
        net.scale = torch.ones(1)
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'missing'"):
        net.missing


def test_init_must_come_first():
    class Early(nn.Module):
        def __init__(self, value):
            self.value = value

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__"):
        Early(nn.Parameter(torch.ones(1)))
    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__"):
        Early(nn.ReLU())
    assert Early(3).value == 3


def test_state_dict_round_trip():
    net, other = Net(), Net()
    state = net.state_dict()
    assert list(state) == [
        "scale", "first.weight", "first.bias", "second.weight", "shared.weight", "shared.bias",
    ]  # fmt: skip
    assert not state["first.weight"].requires_grad
    assert state["first.weight"].data_ptr() == net.first.weight.data_ptr()
    assert repr(other.load_state_dict(state)) == "<All keys matched successfully>"
    assert torch.equal(other.first.weight, net.first.weight)
    before = other.first.weight
    other.load_state_dict(state, assign=True)
    assert other.first.weight is not before
    assert isinstance(other.first.weight, nn.Parameter)


def test_state_dict_errors_are_collected():
    state = Net().state_dict()
    del state["scale"]
    state["first.weight"] = torch.ones(1, 1)
    state["new"] = torch.ones(1)
    with pytest.raises(RuntimeError) as caught:
        Net().load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Net:\n"
        '\tMissing key(s) in state_dict: "scale". \n'
        '\tUnexpected key(s) in state_dict: "new". \n'
        "\tsize mismatch for first.weight: copying a param with shape torch.Size([1, 1]) from "
        "checkpoint, the shape in current model is torch.Size([3, 2])."
    )


def test_extra_state():
    class Counter(nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    counter = Counter()
    counter.count = 5
    state = nn.Sequential(counter).state_dict()
    assert state["0._extra_state"] == {"count": 5}
    loaded = nn.Sequential(Counter())
    loaded.load_state_dict(state)
    assert loaded[0].count == 5


def test_forward_hooks():
    linear = nn.Linear(1, 1)
    seen = []
    handles = [
        linear.register_forward_pre_hook(lambda m, args: (args[0] * 2,)),
        linear.register_forward_hook(lambda m, args, out: seen.append(args[0].item())),
        linear.register_forward_hook(lambda m, args, kwargs, out: out + 1, with_kwargs=True),
    ]
    plain = torch.nn.functional.linear(torch.ones(1) * 2, linear.weight, linear.bias)
    assert torch.equal(linear(torch.ones(1)), plain + 1)
    assert seen == [2.0]
    for handle in handles:
        handle.remove()
    assert not linear._forward_hooks


def test_hooks_marked_always_call_see_errors():
    seen = []

    class Broken(nn.Module):
        def forward(self):
            raise KeyError("broken")

    broken = Broken()
    broken.register_forward_hook(lambda *args: seen.append("plain"))
    broken.register_forward_hook(lambda *args: seen.append("always"), always_call=True)
    with pytest.raises(KeyError, match="broken"):
        broken()
    assert seen == ["always"]


def test_full_backward_hooks():
    linear = nn.Linear(2, 2)
    seen = []
    linear.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 10,))
    linear.register_full_backward_hook(
        lambda m, grad_input, grad_output: seen.append((grad_input, grad_output))
    )
    x = torch.ones(1, 2, requires_grad=True)
    linear(x).sum().backward()
    ((grad_input,), (grad_output,)) = seen[0]
    assert grad_output.tolist() == [[10.0, 10.0]]
    assert torch.equal(grad_input, x.grad)
    assert torch.allclose(x.grad, 10 * linear.weight.sum(0, keepdim=True))


def test_backward_hook_replaces_the_input_gradient():
    module = nn.Identity()
    module.register_full_backward_hook(lambda m, grad_input, grad_output: (grad_input[0] * 3,))
    x = torch.ones(2, requires_grad=True)
    module(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full"):
        module.register_backward_hook(lambda *args: None)


def test_global_hooks():
    from flambeau.nn.modules.module import register_module_forward_hook

    seen = []
    with register_module_forward_hook(lambda module, args, out: seen.append(type(module))):
        nn.Sequential(nn.Identity())(3)
    nn.Identity()(3)
    assert seen == [nn.Identity, nn.Sequential]


def test_conversion_keeps_the_parameters():
    net = Net()
    weight = net.first.weight
    net(torch.ones(1, 2)).sum().backward()
    assert net.double() is net
    assert net.first.weight is weight
    assert weight.dtype is torch.float64
    assert weight.grad.dtype is torch.float64
    assert net.scale.dtype is torch.float64
    assert net.to(torch.float16).scale.dtype is torch.float16
    counted = nn.BatchNorm1d(2).half()
    assert counted.num_batches_tracked.dtype is torch.int64
    with pytest.raises(TypeError, match=r"nn.Module.to only accepts floating point or complex"):
        net.to(torch.int32)


def test_modes_and_gradients():
    net = Net()
    assert net.training
    assert not net.eval().first.training
    assert net.train().first.training
    net(torch.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.first.weight.grad.abs().sum().item() == 0
    net.zero_grad()
    assert net.first.weight.grad is None
    net.requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in net.parameters())


def test_copies_share_nothing():
    net = Net()
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(nn.Sequential(nn.Linear(1, 2))))):
        for parameter in twin.parameters():
            assert isinstance(parameter, nn.Parameter)
            assert parameter.requires_grad
    twin = copy.deepcopy(net)
    assert twin.shared is twin.first
    assert twin.first.weight.data_ptr() != net.first.weight.data_ptr()
    assert torch.equal(twin.first.weight, net.first.weight)


def test_text():
    net = Net()
    del net.shared
    assert repr(net) == (
        "Net(\n"
        "  (first): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (second): Linear(in_features=3, out_features=1, bias=False)\n"
        ")"
    )
    assert repr(nn.Parameter(torch.ones(1))) == (
        "Parameter containing:\ntensor([1.], requires_grad=True)"
    )


def test_parameters_of_subclasses():
    class Marked(torch.Tensor):
        pass

    assert isinstance(nn.Parameter(torch.ones(1)), torch.Tensor)
    assert not isinstance(torch.ones(1), nn.Parameter)
    assert isinstance(nn.Buffer(torch.ones(1)), nn.Buffer)
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype"):
        nn.Parameter(torch.ones(1, dtype=torch.int64))
    assert not nn.Parameter(torch.ones(1, dtype=torch.int64), requires_grad=False).requires_grad


def test_missing_names_say_so():
    with pytest.raises(NotImplementedError, match=r"torch.nn.DataParallel|torch.nn.quantized"):
        nn.quantized
    with pytest.raises(AttributeError, match=r"module 'torch.nn' has no attribute 'Linea'"):
        nn.Linea
