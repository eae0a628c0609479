"""
A classifier of digits, and its mistakes
========================================

**The question.** A network is right for 97 of 100 pictures. What about the other three?

**What you need to know.** :ref:`The training loop <sphx_glr_gallery_04_modules.py>`. The data are 1,797 handwritten
digits of 8 by 8 pixels, which scikit-learn brings along; the extra ``examples`` has installed it
(else: ``python -m pip install scikit-learn``). Nothing is downloaded.
"""

import sys

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(4)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
labels = torch.tensor(digits.target)
order = torch.randperm(len(images))
images, labels = images[order], labels[order]
train_images, test_images = images[:1300], images[1300:]
train_labels, test_labels = labels[:1300], labels[1300:]
print(train_images.shape, test_images.shape, "per digit:", torch.bincount(train_labels).tolist())

# %%
# The network
# -----------
# A convolution looks at 3 by 3 pixels with the same weights everywhere; pooling halves the picture. Ten numbers come
# out, a score for each digit: the greatest is the answer. Comments give the shape after each line, for a batch of N
# pictures in one colour: write them, they find most faults before the first run.


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 12, 3, padding=1)
        self.second = nn.Conv2d(12, 24, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Linear(24 * 2 * 2, 10)

    def forward(self, x):  # (N, 1, 8, 8)
        x = self.pool(torch.relu(self.first(x)))  # (N, 12, 4, 4)
        x = self.pool(torch.relu(self.second(x)))  # (N, 24, 2, 2)
        return self.out(x.flatten(1))  # (N, 10)


model = Net()

# %%
# Training
# --------
# Eight passes over the data (epochs) in batches of 50. ``cross_entropy`` takes the scores as they are and the right
# digits: it is small where the right digit has by far the greatest score. The bar goes to standard error, so that
# results stay alone on standard output; after each pass the pictures are counted that training never sees.


def progress(done, total):
    """A bar, in a terminal or a notebook."""
    if sys.stderr.isatty() or "ipykernel" in sys.modules:
        filled = 30 * done // total
        end = "\n" if done == total else ""
        print(f"\r[{'#' * filled}{'.' * (30 - filled)}]", end=end, file=sys.stderr, flush=True)


optimizer = torch.optim.Adam(model.parameters(), lr=0.004)
epochs, size = 8, 50
history = []
for epoch in range(epochs):
    shuffled = torch.randperm(len(train_images))
    total = 0.0
    for start in range(0, len(shuffled), size):
        batch = shuffled[start : start + size]
        loss = nn.functional.cross_entropy(model(train_images[batch]), train_labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    with torch.no_grad():
        right = (model(test_images).argmax(1) == test_labels).float().mean().item()
    history.append((total / len(shuffled), right))
    progress(epoch + 1, epochs)
print(f"first epoch: loss {history[0][0]:.2f}, right {history[0][1]:.0%}")
print(f"last epoch: loss {history[-1][0]:.1f}, right {history[-1][1]:.0%}")

# %%
# What it takes for what
# ----------------------
# ``softmax`` makes shares of scores, which sum to 1. Then a table: a row for each true digit, a column for each
# answer. What lies off the diagonal is a mistake. ``index_put_`` with ``accumulate`` adds 1 at each pair's field.

with torch.no_grad():
    scores = model(test_images).softmax(1)
answers = scores.argmax(1)
confusion = torch.zeros(10, 10, dtype=torch.int64)
confusion.index_put_((test_labels, answers), torch.ones_like(answers), accumulate=True)
wrong = (answers != test_labels).nonzero().squeeze(1)

figure, panels = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", width_ratios=[1, 1])
off = confusion.clone().fill_diagonal_(0)
panels[0].imshow(off, cmap="OrRd", vmax=10)
for i in range(10):
    for j in range(10):
        count = confusion[i, j].item()
        if count:
            color = "#6b7f86" if i == j else "black"
            panels[0].text(j, i, count, ha="center", va="center", color=color, fontsize=9)
panels[0].set(xticks=range(10), yticks=range(10), xlabel="answer", ylabel="digit")
panels[0].set_title(f"{len(wrong)} mistakes in {len(test_labels)}")
panels[1].plot([loss for loss, _ in history], color="#1f6f8b", label="loss in training")
panels[1].plot(
    [1 - right for _, right in history], color="#e07a5f", label="share of mistakes in test"
)
panels[1].set(xlabel="epoch", yscale="log")
panels[1].legend()
plt.show()

# %%
# The mistakes themselves
# -----------------------
# Sorted by how sure the network was of the wrong answer. Many would make a person hesitate, too; those of which it
# was sure are worth a look: is the label right?

sure = scores[wrong].max(1).values
ranked = wrong[sure.argsort(descending=True)][:8]
figure, panels = plt.subplots(1, 8, figsize=(9, 1.9), layout="constrained")
for panel in panels:
    panel.axis("off")
for panel, k in zip(panels, ranked, strict=False):
    panel.imshow(test_images[k, 0], cmap="gray_r")
    answer, share = answers[k].item(), scores[k].max().item()
    panel.set_title(f"{test_labels[k].item()} taken\nfor {answer}\n({share:.0%})", fontsize=9)
plt.show()

# %%
# **What to try next.** Train with half of the data: do the mistakes double? Shift every test image by one pixel with
# ``torch.roll(test_images, 1, 3)`` and count again. Put ``nn.Dropout(0.2)`` before the last layer; then what do
# ``model.train()`` and ``model.eval()`` change?
