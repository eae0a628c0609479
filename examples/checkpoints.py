"""Saving and loading: weights, a whole training state, and a file that may not be trusted.

Usage: `flambeau run examples/checkpoints.py`
"""

import pickle
import tempfile
from pathlib import Path

import torch
from torch import nn


def train(model, optimizer, steps):
    for _ in range(steps):
        x = torch.rand(16, 4)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def new_training():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def main(folder):
    torch.manual_seed(0)
    model, optimizer = new_training()
    train(model, optimizer, 20)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 20}
    torch.save({**state, "random": torch.get_rng_state()}, folder / "training.pth")
    print(f"went on:   {train(model, optimizer, 20):.6f}")

    loaded = torch.load(folder / "training.pth")  # weights only: no code from the file runs
    model, optimizer = new_training()
    print(model.load_state_dict(loaded["model"]))
    optimizer.load_state_dict(loaded["optimizer"])
    torch.set_rng_state(loaded["random"])
    print(f"continued: {train(model, optimizer, 20):.6f} from step {loaded['step']}")

    torch.save(Path("no tensor"), folder / "object.pth")
    try:
        torch.load(folder / "object.pth")
    except pickle.UnpicklingError:
        print("an object of another library is refused")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
