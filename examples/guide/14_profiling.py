"""
Profiling, with a flame graph
=============================

**The question.** A step takes 5 ms. For what?

**What you need to know.** A model and its training loop.

Guesses about time are wrong more often than not. A profiler notes each operator, when it began and when it ended.
"""

import io
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

FLAMBEAU = "flambeau" in torch.__version__


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.back = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.back(torch.relu(self.wide(self.norm(x))))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), Block(64), Block(64), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(128, 32), torch.randint(10, (128,))


def step():
    loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


# %%
# The first steps are left out: memory and kernels are made there. Ten are recorded.

for _ in range(3):
    step()
with profile(activities=[ProfilerActivity.CPU]) as recorded:
    for _ in range(10):
        last = step()
print(f"loss {last:.3f}")
rows = {row.key: row for row in recorded.key_averages()}
for name in ("aten::linear", "aten::relu", "aten::layer_norm", "aten::cross_entropy_loss"):
    print(f"{name:26} {rows[name].count} calls")

# %%
# Sorted by time of their own
# ---------------------------
# *Self* time is what is left when the operators within are taken off; these times add up to the whole.

ranked = sorted(rows.values(), key=lambda row: row.self_cpu_time_total, reverse=True)[:10]
figure, axes = plt.subplots(figsize=(8.5, 3.8), layout="constrained")
names = [
    row.key.replace("autograd::engine::evaluate_function: ", "engine: ")[:40] for row in ranked
]
axes.barh(names[::-1], [row.self_cpu_time_total / 1e4 for row in ranked[::-1]], color="#1f6f8b")
axes.set(xlabel="milliseconds per step", title="Self time, on the machine that made this page")
plt.show()

# %%
# A flame graph
# -------------
# A box is as wide as the time it took. Below a line of the program are the modules it called, below these their operators;
# backward lies under the line that called it. Click on a box to zoom in, Esc to come out. PyTorch writes a trace for
# another program to show; flambeau writes the page itself. With a file of yours: ``flambeau run --profile out.json train.py``.


class Page:
    """An HTML file, shown in a frame."""

    def __init__(self, text):
        self.text = text

    def _repr_html_(self):
        quoted = self.text.replace("&", "&amp;").replace('"', "&quot;")
        style = (
            "width:100%;height:460px;border:1px solid #b8c4c8;border-radius:4px;background:white"
        )
        return f'<iframe title="flame graph" style="{style}" srcdoc="{quoted}"></iframe>'


page = None
if FLAMBEAU:
    temporary = tempfile.TemporaryDirectory(prefix="guide-profile-")  # gone when the program ends
    folder = Path(temporary.name)
    with torch.debug.profile(str(folder / "steps.json"), file=io.StringIO()):
        for _ in range(3):
            step()
    page = Page((folder / "steps.html").read_text(encoding="utf-8"))
page

# %%
# What to do with it
# ------------------
# Look for what is wide, and for what there is much of. Many narrow boxes side by side mean small tensors, for which calls cost
# more than arithmetic: a larger batch takes hardly longer.

sizes, per_example = [8, 32, 128, 512], []
for size in sizes:
    batch = torch.randn(size, 32)
    with torch.no_grad():
        model(batch)
        begin = time.perf_counter()
        for _ in range(10):
            model(batch)
    per_example.append(1e5 * (time.perf_counter() - begin) / size)
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.loglog(sizes, per_example, marker="o", color="#e07a5f")
axes.set(xlabel="examples in a batch", ylabel="microseconds per example")
plt.show()

# %%
# **What to try next.** Record with ``record_shapes=True`` and group by shape. Mark a part of yours with
# ``torch.profiler.record_function("data")``. Open the trace, ``recorded.export_chrome_trace("trace.json")``, in ui.perfetto.dev.
