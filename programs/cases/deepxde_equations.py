"""deepxde: networks that solve differential equations, and one that learns an operator."""

import contextlib
import io
import os

os.environ["DDE_BACKEND"] = "pytorch"
import deepxde as dde  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402


def compiled(model, *how, **settings):
    with contextlib.redirect_stdout(io.StringIO()):  # it tells how long that takes
        model.compile(*how, **settings)


dde.config.set_default_float("float64")
dde.config.set_random_seed(0)


def poisson(x, y):
    return dde.grad.hessian(y, x) + np.pi**2 * torch.sin(np.pi * x)


line = dde.geometry.Interval(-1, 1)
edges = dde.icbc.DirichletBC(line, lambda x: 0, lambda _, on_boundary: on_boundary)
data = dde.data.PDE(line, poisson, edges, 16, 2, solution=lambda x: np.sin(np.pi * x), num_test=20)
net = dde.nn.FNN([1, 16, 16, 1], "tanh", "Glorot uniform")
model = dde.Model(data, net)
compiled(model, "adam", lr=0.01, metrics=["l2 relative error"])
losses, _ = model.train(iterations=60, display_every=20, verbose=0)
print("poisson", np.array(losses.loss_train).tolist(), np.ravel(losses.metrics_test).tolist())
print("values", model.predict(np.array([[0.5], [-0.25]])).ravel().tolist())


def heat(x, y):
    return dde.grad.jacobian(y, x, i=0, j=1) - 0.3 * dde.grad.hessian(y, x, i=0, j=0)


dde.config.set_random_seed(1)
space, time = dde.geometry.Interval(0, 1), dde.geometry.TimeDomain(0, 1)
domain = dde.geometry.GeometryXTime(space, time)
walls = dde.icbc.DirichletBC(domain, lambda x: 0, lambda _, on_boundary: on_boundary)
start = dde.icbc.IC(domain, lambda x: np.sin(np.pi * x[:, :1]), lambda _, on_initial: on_initial)
data = dde.data.TimePDE(domain, heat, [walls, start], num_domain=20, num_boundary=8, num_initial=8)
net = dde.nn.FNN([2, 12, 12, 1], "sin", "Glorot normal")
model = dde.Model(data, net)
compiled(model, "adam", lr=0.005, loss_weights=[1, 2, 2])
losses, _ = model.train(iterations=40, display_every=20, verbose=0)
print("heat", np.array(losses.loss_train).tolist())
# A rounding grows tenfold in ten of its steps: a call takes 10 of them, not its 1,000.
dde.optimizers.set_LBFGS_options(maxiter=20)
dde.optimizers.config.LBFGS_options.update(iter_per_step=10, fun_per_step=12)
compiled(model, "L-BFGS")
losses, _ = model.train(verbose=0, display_every=10)
print("lbfgs", np.array(losses.loss_train).tolist())

dde.config.set_random_seed(2)
points = np.linspace(0, 1, 8).astype(np.float64)[:, None]
functions = np.random.default_rng(0).normal(size=(10, 5)).astype(np.float64)
targets = (functions.sum(1, keepdims=True) * points.T).astype(np.float64)
data = dde.data.TripleCartesianProd((functions, points), targets, (functions, points), targets)
net = dde.nn.DeepONetCartesianProd([5, 16, 8], [1, 16, 8], "relu", "Glorot normal")
model = dde.Model(data, net)
compiled(model, "adam", lr=0.01)
losses, _ = model.train(iterations=30, display_every=10, verbose=0)
print("operator", np.array(losses.loss_train).ravel().tolist())
