"""
Checkpoints and files
=====================

**The question.** The machine stops after six hours of training. What has to be in the file, so that nothing is lost and
the second half is what it would have been?

**What you need to know.** :ref:`Modules <sphx_glr_gallery_04_modules.py>` and
:ref:`optimizers <sphx_glr_gallery_05_optimizers.py>`.

A model's parameters are not enough: Adam has moments, a schedule knows its step, dropout draws random numbers. Each of
these has a ``state_dict()``, or a state.
"""

import pickle
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import nn

temporary = tempfile.TemporaryDirectory(prefix="guide-files-")  # gone when the program ends
folder = Path(temporary.name)
path = folder / "training.pt"


class Training:
    """All that a training is made of."""

    def __init__(self):
        torch.manual_seed(7)
        self.model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.02)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 40, gamma=0.5)
        self.losses = []

    def step(self):
        x = torch.randn(32, 4)
        target = x.prod(1, keepdim=True)
        loss = nn.functional.mse_loss(self.model(x), target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        self.losses.append(loss.item())

    def save(self, path):
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "random": torch.get_rng_state(),
            "losses": self.losses,
        }
        torch.save(state, path)

    def load(self, path):
        state = torch.load(path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["random"])
        self.losses = state["losses"]


# %%
# Interrupted, and not
# --------------------

whole = Training()
for _ in range(120):
    whole.step()

first = Training()
for _ in range(60):
    first.step()
first.save(path)

second = Training()  # in another process, on another day
second.load(path)
for _ in range(60):
    second.step()
print("the same 120 losses:", whole.losses == second.losses)

careless = Training()  # parameters only
careless.model.load_state_dict(torch.load(path)["model"])
torch.set_rng_state(torch.load(path)["random"])
careless.losses = list(first.losses)
for _ in range(60):
    careless.step()
print("with parameters alone:", whole.losses == careless.losses)

reference = torch.tensor(whole.losses)
figure, panels = plt.subplots(2, 1, figsize=(7.5, 4.6), layout="constrained", sharex=True)
panels[0].plot(reference, color="#b8c4c8", linewidth=5, label="in one go")
panels[0].plot(second.losses, color="#1f6f8b", linewidth=1.3, label="interrupted, everything saved")
panels[0].set(ylabel="loss", yscale="log")
panels[1].plot(torch.tensor(second.losses) - reference, color="#1f6f8b", label="everything saved")
panels[1].plot(torch.tensor(careless.losses) - reference, color="#e07a5f", label="parameters alone")
panels[1].set(xlabel="step", ylabel="difference of the loss")
for panel in panels:
    panel.axvline(60, color="#6b7f86", linestyle="--", linewidth=1)
    panel.legend(loc="upper left", fontsize=9)
plt.show()

# %%
# What is in a file
# -----------------
# A zip with the tensors' bytes and a description of what is made of them. On the command line,
# ``flambeau inspect training.pt`` shows it without loading, and ``flambeau verify`` compares the check sums.

state = torch.load(path)
for name, tensor in state["model"].items():
    print(f"{name:9} {tuple(tensor.shape)!s:9} {tensor.dtype}")
print("Adam keeps for each parameter:", sorted(state["optimizer"]["state"][0]))

# %%
# A file from a stranger
# ----------------------
# Descriptions are pickles, and a pickle may call functions. ``torch.load`` builds tensors and plain containers and refuses
# all else; under flambeau there is no way at all in which code of the file runs.


class Trap:
    def __reduce__(self):
        return (print, ("this would have been run",))


torch.save({"weights": Trap()}, folder / "trap.pt")
try:
    torch.load(folder / "trap.pt")
except pickle.UnpicklingError as error:
    print("refused:", "print" in str(error))

# %%
# Large models
# ------------
# ``mmap=True`` leaves the bytes in the file until they are used. ``assign=True`` takes the loaded tensors instead of copying
# them into those of the model.

big = nn.Linear(1000, 1000)
torch.save(big.state_dict(), folder / "big.pt")
with torch.device("meta"):
    empty = nn.Linear(1000, 1000)  # shapes without memory
empty.load_state_dict(torch.load(folder / "big.pt", mmap=True), assign=True)
print("equal:", torch.equal(empty.weight, big.weight))

# %%
# **What to try next.** Leave out ``"random"``: at which step does the curve part? Save ``first.model`` itself instead of its
# state and read what ``torch.load`` says. Say ``folder = Path(".")`` at the top, so that the files stay, where you are, and
# convert one with ``flambeau convert big.pt big.safetensors``.
