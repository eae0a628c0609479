"""tntorch: tensors in train, Tucker and CP form: arithmetic, rounding, sampling, fitting."""

import tntorch as tn
import torch

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
t = tn.rand(6, 7, 8, ranks_tt=3)
u = tn.rand(6, 7, 8, ranks_tt=2, ranks_tucker=4)
print(t.shape, t.ranks_tt.tolist(), t.numel(), t.numcoef(), tn.norm(t).item())
both = t * u + 2 * t - u / 3
print("arithmetic", both.ranks_tt.tolist(), both.torch().sum().item())
both.round_tt(eps=1e-8)
print("rounded", both.ranks_tt.tolist(), both.torch().square().mean().item())
print("dot", tn.dot(t, u).item(), tn.dist(t, u).item(), tn.relative_error(t, u).item())
print("moments", tn.mean(t).item(), tn.var(t).item(), tn.std(t).item())
print("slices", t[1, :, 2:5].torch().sum().item(), t[..., -1].shape, t[:, None].shape)
full = torch.randn(5, 6, 7)
for how in ({"ranks_tt": 4}, {"ranks_tucker": 3}, {"ranks_cp": 3}):
    torch.manual_seed(1)
    small = tn.Tensor(full, **how)
    print(how, small.numcoef(), tn.relative_error(full, small).item())
smooth = tn.Tensor(torch.linspace(0, 1, 32)[:, None] ** torch.arange(1, 9), eps=1e-6)
print("by accuracy", smooth.ranks_tt.tolist(), tn.relative_error(smooth, smooth).item())
domain = [torch.linspace(0.1, 1, 12)] * 4
torch.manual_seed(2)
made = tn.cross(lambda x, y, z, w: 1 / (x + y + z + w), domain=domain, ranks_tt=4, verbose=False)
exact = 1 / sum(torch.meshgrid(*domain, indexing="ij"))
print("cross", made.ranks_tt.tolist(), tn.relative_error(exact, made).item() < 1e-4)
print("   mean", tn.mean(made).item())
root = tn.cross(tensors=[t], function=lambda x: torch.sqrt(x + 1), verbose=False)
print("root", tn.mean(root).item())
print("slope", tn.partial(made, 0, bounds=[0.1, 1]).torch().mean().item())
print("laplacian", tn.laplacian(made, bounds=[[0.1, 1]] * 4).torch().mean().item())
x, y, z = tn.symbols(3)
print("logic", tn.sum(x & (y | ~z)).item(), tn.is_satisfiable(x & ~x), tn.relevant_symbols(x & z))
print("sensitivity", tn.sobol(made, mask=tn.only(tn.symbols(4)[0])).item())
print("   dimensions", tn.mean_dimension(made).item())
fitted = tn.rand(5, 6, 7, ranks_tt=3, requires_grad=True)


def loss(t):
    return tn.relative_error(full, t) ** 2


print("before", loss(fitted).item())
tn.optimize(fitted, loss, max_iter=40, tol=0, verbose=False)
print("after", loss(fitted).item())
torch.manual_seed(3)
points = torch.stack([torch.randint(0, n, (150,)) for n in (5, 6, 7)], 1)
done = tn.als_completion(points, full[tuple(points.T)], ranks_tt=2, niter=3, verbose=False)
print("completed", tn.norm(done).item())
batch = tn.Tensor(torch.randn(3, 4, 5, 6), ranks_tt=3, batch=True)
print("batch", batch.shape, batch.torch().abs().sum((1, 2, 3)).tolist())
matrix = tn.TTMatrix(torch.randn(12, 20), ranks=[4], input_dims=[3, 4], output_dims=[4, 5])
print("matrix", matrix.numcoef() if hasattr(matrix, "numcoef") else "", matrix.torch().sum().item())
print("product", tn.tt_multiply(matrix, torch.ones(2, 12)).sum().item())
print("joined", tn.cat(t, t, dim=1).shape, tn.flip(t, 0).torch()[0, 0, 0].item(), repr(t)[:20])
