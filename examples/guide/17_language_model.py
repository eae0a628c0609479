"""
A language model
================

**The question.** A model that writes: what is the least of it that works?

**What you need to know.** All pages before; attention is explained here.

The text is one that every Python brings along: the help on its language, ``pydoc_data.topics``. The model reads characters
and guesses the next one. Seconds on one core are too short for sense, but enough for words and brackets.
"""

import sys
from pydoc_data.topics import topics

import matplotlib.pyplot as plt
import torch
from torch import nn

text = "\n".join(topics[name] for name in sorted(topics))[:150_000].lower()
letters = sorted(set(text))
number_of = {letter: k for k, letter in enumerate(letters)}
data = torch.tensor([number_of[letter] for letter in text])
at_random = torch.tensor(float(len(letters))).log()
print(
    f"{len(text):,} characters, {len(letters)} different: a guess at random costs {at_random:.2f}"
)

# %%
# Attention
# ---------
# Each place asks a question (a vector), all places before it offer keys; where they fit, the value of that place is taken
# over. ``is_causal=True`` keeps the future out of sight: else guessing the next letter would be copying.

WIDTH, HEADS, LENGTH = 64, 4, 24


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.ask = nn.Linear(WIDTH, 3 * WIDTH)
        self.join = nn.Linear(WIDTH, WIDTH)
        self.think = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x):  # (batch, length, WIDTH)
        batch, length, _ = x.shape
        parts = self.ask(self.norm1(x)).reshape(batch, length, 3, HEADS, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)  # (batch, HEADS, length, WIDTH / HEADS)
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.join(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.think(self.norm2(x))


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.letter = nn.Embedding(len(letters), WIDTH)
        self.place = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm = nn.LayerNorm(WIDTH)
        self.out = nn.Linear(WIDTH, len(letters))

    def forward(self, x):  # (batch, length) of numbers of letters
        places = torch.arange(x.shape[1])
        return self.out(self.norm(self.blocks(self.letter(x) + self.place(places))))


torch.manual_seed(0)
model = Writer()
print(f"{sum(p.numel() for p in model.parameters()):,} parameters")

# %%
# Training
# --------
# Pieces from random places; the target is the piece, one letter further.


def progress(done, total, loss):
    if sys.stderr.isatty() or "ipykernel" in sys.modules:
        end = "\n" if done == total else ""
        print(f"\r{done}/{total} steps, loss {loss:.2f}", end=end, file=sys.stderr, flush=True)


steps = 180
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
losses = []
for step in range(steps):
    starts = torch.randint(len(data) - LENGTH - 1, (12,))
    pieces = data[starts[:, None] + torch.arange(LENGTH + 1)]
    scores = model(pieces[:, :-1])
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), pieces[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
    progress(step + 1, steps, losses[-1])
print(f"loss at the start {losses[0]:.3f}, at the end below 2.5: {sum(losses[-20:]) / 20 < 2.5}")

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(losses, color="#b8c4c8")
axes.plot(range(9, steps), torch.tensor(losses).unfold(0, 10, 1).mean(1), color="#1f6f8b")
axes.set(xlabel="step", ylabel="nats per letter", title="Loss")
plt.show()

# %%
# Writing
# -------
# Letter after letter, drawn from what the model holds likely. ``temperature`` below 1 makes it careful. The page shows
# what it has written where it was built; the letters differ as soon as a rounding does.


def write(prompt, count, temperature=0.7):
    numbers = torch.tensor([[number_of[letter] for letter in prompt]])
    generator = torch.Generator().manual_seed(5)
    for _ in range(count):
        with torch.no_grad():
            scores = model(numbers[:, -LENGTH:])[0, -1] / temperature
        following = torch.multinomial(scores.softmax(0), 1, generator=generator)
        numbers = torch.cat([numbers, following[None]], 1)
    return "".join(letters[k] for k in numbers[0].tolist())


written = write("the value of ", 320)
print("written:", len(written), "characters")


class Prose:
    """Text that a page shows as it is."""

    def __init__(self, text):
        self.text = text

    def _repr_html_(self):
        quoted = self.text.replace("&", "&amp;").replace("<", "&lt;")
        return f'<div class="highlight"><pre style="white-space:pre-wrap">{quoted}</pre></div>'


Prose(written)

# %%
# What it finds likely
# --------------------
# After "the functio" there is little doubt, after "the " there is much: the ten likeliest letters.

figure, panels = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained", sharey=True)
for panel, prompt in zip(panels, ["the functio", "the "], strict=True):
    numbers = torch.tensor([[number_of[letter] for letter in prompt]])
    with torch.no_grad():
        shares = model(numbers)[0, -1].softmax(0)
    top = shares.topk(10)
    panel.bar([repr(letters[k])[1:-1] for k in top.indices.tolist()], top.values, color="#1f6f8b")
    panel.set(title=f"after {prompt!r}", ylim=(0, 1))
plt.show()

# %%
# **What to try next.** Train ten times as long, then make it twice as wide. Take ``is_causal`` away: the loss falls to almost
# nothing, and what it writes is worthless; why? Feed it a text of yours. Save it (:ref:`checkpoints
# <sphx_glr_gallery_12_checkpoints.py>`), and fine-tune it with :ref:`LoRA <sphx_glr_gallery_16_lora.py>`.
