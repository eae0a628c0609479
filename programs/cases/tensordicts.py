"""tensordict: dicts of tensors with a batch of their own, modules over them, memory maps."""

import tempfile

import torch
from tensordict import NonTensorData, TensorDict, tensorclass
from tensordict.nn import (
    ProbabilisticTensorDictModule,
    TensorDictModule,
    TensorDictParams,
    TensorDictSequential,
)
from torch.distributions import Normal

torch.manual_seed(0)
data = TensorDict(
    {"seen": torch.randn(4, 3), "inner": {"mask": torch.tensor([True, False, True, True])}},
    batch_size=[4],
)
print("shape", data.shape, data["inner", "mask"].tolist(), sorted(data.keys(True, True), key=str))
print("index", data[1:3]["seen"].sum().item(), data[data["inner", "mask"]].shape)
print("view", data.reshape(2, 2).shape, data.unsqueeze(0).expand(3, 4).shape)
stacked = torch.stack([data, data.clone() + 1])
print("stack", stacked.shape, stacked["seen"].mean().item())
print("cat", torch.cat([data, data], 0).shape, data.to(torch.float64)["seen"].dtype)
print("apply", data.apply(lambda x: x.float().sum(), batch_size=[]).to_dict())
print("split", [part.shape for part in data.split(3)], data.gather(0, torch.tensor([2, 0])).shape)
data["note"] = NonTensorData("hello", batch_size=[4])
print("note", data["note"])
print("arithmetic", (data.exclude("note") * 2).sub(1)["seen"].sum().item())

net = TensorDictModule(torch.nn.Linear(3, 5), in_keys=["seen"], out_keys=["hidden"])
head = TensorDictModule(
    torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(5, 2)), ["hidden"], ["loc"]
)
spread = TensorDictModule(lambda x: torch.full_like(x, 0.5), ["loc"], ["scale"])
draw = ProbabilisticTensorDictModule(
    ["loc", "scale"], ["action"], distribution_class=Normal, return_log_prob=True
)
policy = TensorDictSequential(net, head, spread, draw)
out = policy(data.exclude("note"))
print("policy", policy.in_keys, policy.out_keys, out["action"].shape)
from tensordict.nn import set_interaction_type, InteractionType  # noqa: E402, I001

with set_interaction_type(InteractionType.RANDOM):
    torch.manual_seed(1)
    out = policy(data.exclude("note"))
print("drawn", out["action"].tolist(), out["action_log_prob"].tolist())
loss = out["loc"].square().mean()
loss.backward()
print("gradient", sum(p.grad.norm().item() for p in policy.parameters() if p.grad is not None))

weights = TensorDict.from_module(net)
print("weights", sorted(weights.keys(True, True), key=str))
with (weights.data * 0).to_module(net):
    print("zeroed", net(data.exclude("note"))["hidden"].abs().sum().item())
held = TensorDictParams(weights.clone())
print("params", len(list(held.parameters())), held.requires_grad)
batched = torch.vmap(lambda row: row["seen"].sum())(data.exclude("note", "inner"))
print("vmap", batched.tolist())


@tensorclass
class Points:
    place: torch.Tensor
    name: str


points = Points(torch.arange(6.0).reshape(3, 2), "three", batch_size=[3])
print("class", points[1].place.tolist(), points.name, points.shape)
with tempfile.TemporaryDirectory() as folder:
    data.exclude("note").memmap(folder)
    again = TensorDict.load_memmap(folder)
    print("memmap", again["seen"].sum().item(), again.is_memmap())
print("state", sorted(data.exclude("note").state_dict()))
