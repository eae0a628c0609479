"""einops on tensors, and safetensors files."""

import tempfile

import torch
from einops import rearrange, reduce, repeat
from einops.layers.torch import Rearrange
from safetensors.torch import load_file, save_file

torch.manual_seed(0)
x = torch.randn(2, 3, 8, 8, requires_grad=True)
y = rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4)
z = reduce(y, "b n (k two) -> b n k", "max", two=2) + repeat(torch.ones(2), "b -> b n 1", n=4)
z.sum().backward()
print(y.sum(-1).tolist(), z.mean().item(), x.grad.sum().item())
print(Rearrange("b c h w -> b (c h w)")(x).std().item())
with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
    save_file({"x": x.detach(), "y": y.detach().contiguous().half()}, file.name)
    print({name: (t.sum().item(), str(t.dtype)) for name, t in load_file(file.name).items()})
