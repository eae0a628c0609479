"""xitorch: roots, minima, equations, eigenpairs, integrals, with first and second derivatives."""

import torch
import xitorch
from xitorch import linalg
from xitorch.grad import hess, jac
from xitorch.integrate import SQuad, mcquad, quad, solve_ivp
from xitorch.interpolate import Interp1D
from xitorch.optimize import equilibrium, minimize, rootfinder

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
a = (torch.randn(3, 3) * 0.3).requires_grad_()
b = torch.randn(3, 1).requires_grad_()


def slopes(value, *inputs):
    first = torch.autograd.grad(value.square().sum(), inputs, create_graph=True)
    second = torch.autograd.grad(sum(g.square().sum() for g in first), inputs, retain_graph=True,
                                 allow_unused=True)  # fmt: skip
    return [part.detach().sum().item() for part in (*first, *second) if part is not None]


def equation(y, a, b):
    return torch.tanh(a @ y + b) + y / 2


for method in ("broyden1", "broyden2", "linearmixing"):
    options = {"f_tol": 1e-10, **({"alpha": -0.5} if method == "linearmixing" else {})}
    y = rootfinder(equation, torch.zeros(3, 1), params=(a, b), method=method, **options)
    print("root", method, y.flatten().tolist(), slopes(y, a, b))
y = equilibrium(lambda y, a, b: torch.tanh(a @ y + b) / 2, torch.zeros(3, 1), params=(a, b))
print("equilibrium", y.flatten().tolist(), slopes(y, a, b))


def bowl(y, a, b):
    return ((y - b) ** 2).sum() + (a @ y).square().sum() + (y**4).sum() / 4


for method, options in {"broyden1": {}, "gd": {"step": 0.05, "maxiter": 400},
                        "adam": {"step": 0.1, "maxiter": 300}}.items():  # fmt: skip
    y = minimize(bowl, torch.zeros(3, 1), params=(a, b), method=method, **options)
    print("minimum", method, [round(v, 3) for v in y.flatten().tolist()])
matrix = a @ a.mT + 2 * torch.eye(3)
operator = xitorch.LinearOperator.m(matrix, is_hermitian=True)
for method in ("exactsolve", "cg", "bicgstab", "gmres"):
    x = linalg.solve(operator, b, method=method)
    print("solve", method, x.flatten().tolist(), slopes(x, a, b))
values, vectors = linalg.symeig(operator, 2, "lowest", method="exacteig")
print("eigen", values.tolist(), vectors.abs().sum().item(), slopes(values, a))
large = torch.diag(torch.arange(1.0, 31.0)) + 0.01 * torch.randn(30, 30)
large = (large + large.mT) / 2
torch.manual_seed(1)
lowest, _ = linalg.symeig(xitorch.LinearOperator.m(large, is_hermitian=True), 3, method="davidson")
print("davidson", lowest.tolist())
u, s, vh = linalg.svd(xitorch.LinearOperator.m(a), k=2)
print("svd", s.tolist(), slopes(s, a))


def motion(t, y, a):
    return a @ y - 0.1 * y**3


times = torch.linspace(0, 1, 5)
start = torch.ones(3, 1, requires_grad=True)
for method in ("rk45", "rk23", "rk4", "rk38", "euler"):
    y = solve_ivp(motion, times, start, params=(a,), method=method)
    print("motion", method, y[-1].flatten().tolist(), slopes(y, a, start)[:2])
low, high = torch.tensor(-1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
area = quad(lambda x, a: torch.exp(-(x**2) * a.square().sum()), low, high, params=(a,), n=30)
print("area", area.item(), slopes(area, a, low, high))
far = torch.full((), torch.inf, requires_grad=True)
infinite = quad(lambda x, a: torch.exp(-(x**2)) * a.sum(), -far, far, params=(a,))
print("infinite", infinite.item())
torch.manual_seed(2)
mean = mcquad(lambda x, a: (a * x).sum(), lambda x, w: -(x**2).sum() * w.abs().sum(),
              x0=torch.zeros(3, 1), fparams=(a,), pparams=(b,), method="mh", nsamples=200,
              nburnout=20, step_size=0.5)  # fmt: skip
print("monte carlo", mean.item())
grid = torch.linspace(0, 3, 7)
for method in ("cspline", "linear"):
    f = Interp1D(grid, torch.sin(grid) * b.sum(), method=method)
    print("between", method, f(torch.tensor([0.3, 1.7])).tolist())
for method in ("cspline", "trapz", "simpson"):
    print("samples", method, SQuad(grid, method=method).cumsum(torch.sin(grid)).tolist())
jacobian = jac(equation, (torch.zeros(3, 1, requires_grad=True), a, b), idxs=0)
print("jacobian", jacobian.fullmatrix().flatten().tolist(), jacobian.mv(torch.ones(3)).tolist())
curvature = hess(bowl, (torch.ones(3, 1, requires_grad=True), a, b), idxs=0)
print("hessian", curvature.fullmatrix().diagonal().tolist())
