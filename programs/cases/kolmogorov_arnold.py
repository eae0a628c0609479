"""pykan: networks of splines, fitted by LBFGS and Adam, pruned, and their symbolic functions."""

import tempfile

import torch
from kan import KAN
from kan.utils import create_dataset

torch.set_default_dtype(torch.float64)


def product_and_sine(x):
    return torch.sin(2 * x[:, [0]]) + x[:, [1]] ** 2


with tempfile.TemporaryDirectory() as folder:
    data = create_dataset(product_and_sine, n_var=2, train_num=30, test_num=10, seed=0)
    print("data", data["train_input"].sum().item(), data["test_label"].sum().item())
    for optimizer in ("Adam", "LBFGS"):
        model = KAN(width=[2, 2, 1], grid=3, k=3, seed=1, auto_save=False, ckpt_path=folder)
        print(optimizer, model(data["train_input"]).sum().item())
        told = model.fit(data, opt=optimizer, steps=2, lamb=1e-3, lr=0.02)
        print(optimizer, [float(v) for v in told["train_loss"]])
        print(optimizer, "test", [float(v) for v in told["test_loss"]])
        print(optimizer, "reg", [float(v) for v in told["reg"]])
    model.attribute()
    print("edges", model.edge_scores[0].flatten().tolist())
    finer = model.refine(6)
    print("refined", finer(data["train_input"]).sum().item())
    model.fix_symbolic(0, 0, 0, "sin", fit_params_bool=True, verbose=False, log_history=False)
    print("symbolic", model(data["test_input"]).sum().item())
