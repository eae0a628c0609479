"""
A checkerboard in single and in mixed precision
===============================================

**The question.** Half of the bits in half of the time: what does one lose?

**What you need to know.** The training loop, and the table of :ref:`types <sphx_glr_gallery_01_tensors.py>`.

``bfloat16`` has the range of ``float32`` with three digits, ``float16`` has four digits and a small range. Inside of
``torch.autocast`` products are computed in the half type and sums that need digits in float32, while parameters stay
float32 all the time.
"""

import math
import sys

import matplotlib.pyplot as plt
import torch
from torch import nn

for dtype in (torch.float32, torch.float16, torch.bfloat16):
    info = torch.finfo(dtype)
    print(f"{dtype!s:15} largest {info.max:9.3g}  smallest step at 1 {info.eps:9.3g}")

# %%
# The task
# --------
# A network gets the coordinates of a pixel and answers how bright it is. Waves of several lengths as input make sharp
# edges learnable.

side, squares = 48, 4
lines = (torch.arange(side) + 0.5) / side
y, x = torch.meshgrid(lines, lines, indexing="ij")
board = ((x * squares).long() + (y * squares).long()).remainder(2).float()
places = torch.stack([x, y], -1).reshape(-1, 2)
waves = [f(k * math.pi * places) for k in (1, 2, 4) for f in (torch.sin, torch.cos)]
inputs, targets = torch.cat(waves, 1), board.reshape(-1, 1)
print(inputs.shape, targets.shape)


def network():
    torch.manual_seed(2)
    return nn.Sequential(
        nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )


# %%
# Two trainings from the same start
# ---------------------------------
# They differ in one line. The loss is outside of the region for one reason only: so that its digits are float32.


def progress(done, total):
    if sys.stderr.isatty() or "ipykernel" in sys.modules:
        end = "\n" if done == total else ""
        print(f"\r{done}/{total} steps", end=end, file=sys.stderr, flush=True)


def train(mixed, steps=100):
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed):
            scores = model(inputs)
        loss = nn.functional.binary_cross_entropy_with_logits(scores.float(), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        progress(step + 1, steps)
    with torch.no_grad():
        shown = torch.sigmoid(model(inputs)).reshape(side, side)
    return losses, shown, {str(scores.dtype), str(model[0].weight.dtype)}


single, single_board, single_types = train(mixed=False)
mixed, mixed_board, mixed_types = train(mixed=True)
print(
    "single:",
    sorted(single_types),
    f"start {single[0]:.2f}, below 0.1 at the end: {single[-1] < 0.1}",
)
print(
    "mixed: ", sorted(mixed_types), f"start {mixed[0]:.2f}, below 0.1 at the end: {mixed[-1] < 0.1}"
)

# %%
# Side by side
# ------------

figure, panels = plt.subplots(
    1, 4, figsize=(10.5, 3), layout="constrained", width_ratios=[1, 1, 1, 1.3]
)
pictures = [(board, "wanted"), (single_board, "float32"), (mixed_board, "bfloat16 products")]
for panel, (values, title) in zip(panels[:3], pictures, strict=True):
    panel.imshow(values, cmap="gray", vmin=0, vmax=1)
    panel.set(title=title, xticks=[], yticks=[])
panels[3].semilogy(single, label="float32", color="#1f6f8b")
panels[3].semilogy(mixed, label="mixed", color="#e07a5f")
panels[3].set(xlabel="step", title="loss")
panels[3].legend()
plt.show()

# %%
# float16 needs a scaler
# ----------------------
# Its smallest numbers vanish: a gradient of 1e-8 is 0. ``GradScaler`` multiplies the loss, so that gradients are in
# range, and divides them again before the step. When one overflows it leaves the step out and halves the scale.

print("1e-8 in float16:", torch.tensor(1e-8).half().item())
print("times 65536:    ", f"{(torch.tensor(1e-8) * 65536).half().item():.3g}")

weight = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
scales = []
for step in range(10):
    loss = (weight * (float("inf") if step == 5 else 1.0)).sum()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    scales.append(scaler.get_scale())
print("scale after each step:", scales)
print("steps that counted:", round((1 - weight[0].item()) / 0.1))

# %%
# **What to try next.** Take ``.float()`` away from the loss: which types does ``autocast`` choose then? Run both trainings
# with 2,000 steps. On a processor without instructions for ``bfloat16`` flambeau warns, and the mixed training is slower:
# measure yours with ``time.perf_counter``.
