"""
TorchScript: loops that become one kernel
=========================================

**The question.** Some things are loops: a filter, a recurrence, a rule for each example. Do they have to be slow?

**What you need to know.** What :ref:`loops cost <sphx_glr_gallery_08_indexing.py>`.

``torch.jit.script`` compiles a function of a typed subset of Python. What it has compiled it can print, save to a file
that PyTorch and C++ read, and rewrite before it runs.
"""

import io
import time
import warnings

import matplotlib.pyplot as plt
import torch

warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch's word about torch.jit
FLAMBEAU = "flambeau" in torch.__version__

# %%
# A loop over rows
# ----------------
# Parameters without annotation are tensors. All else is written as in Python.


def windows(data, starts):
    taken = []
    for i in range(data.size(0)):
        taken.append(data[i].gather(0, starts[i]) * 2.0)
    return torch.stack(taken)


compiled = torch.jit.script(windows)
torch.manual_seed(0)
data = torch.randn(400, 64)
starts = torch.randint(0, 64, (400, 16))
print("the same:", torch.equal(compiled(data, starts), windows(data, starts)))
print(compiled.code)

# %%
# A recurrence
# ------------
# Here each step needs the one before, so that no index can take the loop's place: a line that follows noisy numbers, and
# trusts them the more the further it is away.


def follow(values):
    level = values[0]
    levels = []
    for i in range(values.size(0)):
        gap = values[i] - level
        level = level + gap * torch.sigmoid(gap.abs() - 1.5)
        levels.append(level)
    return torch.stack(levels)


scripted = torch.jit.script(follow)
noisy = torch.cat(
    [torch.zeros(60), torch.full((60,), 4.0), torch.linspace(4, 1, 80)]
) + 0.6 * torch.randn(200)
smooth = scripted(noisy)
print(f"last level: {smooth[-1].item():.4f}, in Python {follow(noisy)[-1].item():.4f}")

figure, axes = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
axes.plot(noisy, ".", color="#b8c4c8", label="values")
axes.plot(smooth, color="#e07a5f", linewidth=2, label="follow(values)")
axes.legend()
plt.show()

# %%
# What it saves
# -------------
# A batch of recurrences, ``h = tanh(x[t] + h @ w)``: Python calls three operators a step. flambeau proves that nothing else
# happens in the loop and compiles it whole, with its gradient; PyTorch runs the operators one by one without Python.


def recurrence(inputs, h, w):
    states = []
    for t in range(inputs.size(0)):
        h = torch.tanh(inputs[t] + h @ w)
        states.append(h)
    return torch.stack(states)


def seconds(function, *arguments):
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - begin)
    return min(times)


fast = torch.jit.script(recurrence)
w = torch.randn(32, 32) * 0.2
steps = [50, 200, 800]
plain_times, fast_times = [], []
for count in steps:
    given = torch.randn(count, 8, 32), torch.zeros(8, 32), w
    assert torch.allclose(fast(*given), recurrence(*given), atol=1e-5)
    plain_times.append(1e3 * seconds(recurrence, *given))
    fast_times.append(1e3 * seconds(fast, *given))

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
axes.plot(steps, plain_times, marker="o", color="#e07a5f", label="Python")
axes.plot(steps, fast_times, marker="o", color="#1f6f8b", label="script")
axes.set(
    xlabel="steps", ylabel="milliseconds", title="A recurrence, on the machine that made this page"
)
axes.legend()
plt.show()

# %%
# Into a file
# -----------
# The archive holds code and tensors; who loads it needs none of this page.


class Smoother(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.strength = torch.nn.Parameter(torch.tensor(0.5))

    def forward(self, values):
        level = values[0]
        for i in range(1, values.size(0)):
            level = level + self.strength * (values[i] - level)
        return level


file = io.BytesIO()
torch.jit.save(torch.jit.script(Smoother()), file)
file.seek(0)
loaded = torch.jit.load(file)
print(f"loaded: {loaded(noisy).item():.4f}", [name for name, _ in loaded.named_parameters()])

# %%
# What it does not do: Python that has no types. The error names the line.


def odd(values):
    return sorted(values, key=lambda v: -v)


try:
    torch.jit.script(odd)
except Exception as error:  # a class of the compiler's own
    print(str(error).strip().splitlines()[0])

# %%
# **What to try next.** Write ``if level > 3: level = level * 0.5`` into ``follow``, and compile it again. Then trace it,
# ``torch.jit.trace(follow, noisy)``: why has the trace no loop? With ``FLAMBEAU_DEBUG=loops flambeau run`` you see the
# kernel that the recurrence becomes.
