"""
Tensors and types
=================

**The question.** A list of lists holds numbers, too. What does a tensor have that a list has not, and of
which type are the numbers in it?

**What you need to know.** Python. NumPy helps, since a tensor is close to its array: a block of numbers of
one type, with a shape. In the folder of a copy of the repository, with Python 3.11 or newer, install and run this
page with::

    python -m pip install '.[examples]'
    flambeau run examples/guide/01_tensors.py

It says ``import torch``, as PyTorch's programs do: under ``flambeau run`` that is flambeau. Elsewhere write
``import flambeau as torch``. :doc:`The guide's first page <index>` says more, also about notebooks and pictures.
"""

import matplotlib.pyplot as plt
import torch

# %%
# Making them
# -----------
# From numbers, from a rule, or at random. The seed decides which numbers are drawn: the same seed gives the
# same numbers, today and tomorrow, and in PyTorch.

torch.manual_seed(3)
scalar = torch.tensor(7)
row = torch.tensor([1.5, 2.0, 4.0])
grid = torch.arange(12).reshape(3, 4)
drawn = torch.randn(2, 3)
print(scalar, scalar.shape)
print(row.dtype, grid.dtype, grid.shape)
print(drawn)

# %%
# Arithmetic is for all numbers at once; ``@`` is the matrix product. The last dim of the first operand meets
# the first dim of the second: (3, 4) and (4, 2) give (3, 2).

weights = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, -1.0]])
print((grid * 10)[1])
print(grid.float() @ weights)

# %%
# Which type comes out
# --------------------
# Integers become ``int64``, decimal numbers ``float32``. Where two types meet, the higher kind decides (bool, integer,
# float, complex), and within one kind the wider type; ``float16`` and ``bfloat16``, of which neither can hold the other,
# meet in ``float32``. A Python number counts by its kind alone: 2.5 leaves a ``float16`` tensor as it is, and makes
# an integer one ``float32``.

names = ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
types = [getattr(torch, name) for name in names]
table = [[torch.promote_types(a, b) for b in types] for a in types]
print("int64 + float16:", torch.promote_types(torch.int64, torch.float16))
print("float16 + bfloat16:", torch.promote_types(torch.float16, torch.bfloat16))
print("int32 tensor + 2.5:", (torch.ones(2, dtype=torch.int32) + 2.5).dtype)
print("float16 tensor + 2.5:", (torch.ones(2, dtype=torch.float16) + 2.5).dtype)

# %%
# The whole table as a picture: each row and column is an operand, each field the type of the sum.

ranks = torch.tensor([[types.index(result) for result in line] for line in table])
figure, axes = plt.subplots(figsize=(8.5, 5), layout="constrained")
axes.imshow(ranks, cmap="YlGnBu", vmax=10, aspect="auto")
for i, line in enumerate(table):
    for j, result in enumerate(line):
        text = str(result).removeprefix("torch.")
        ink = "white" if types.index(result) > 5 else "black"
        axes.text(j, i, text, ha="center", va="center", fontsize=8, color=ink)
axes.set_xticks(range(len(names)), names, fontsize=8)
axes.set_yticks(range(len(names)), names)
axes.set_title("The type of a + b")
plt.show()

# %%
# Views: two names for one memory
# -------------------------------
# Taking a row, a column or a transpose (``.t()``) copies nothing. What is written through one name is seen through
# the other. ``stride()`` says for each dim how many numbers further the next one lies in memory; ``clone()`` makes a
# copy where you want one. ``.item()`` gives the only number of a tensor to Python.

picture = torch.zeros(6, 6)
corner = picture[:3, :3]
corner += 1
copy = picture.clone()
picture[:, 4] = 3
print("sum of the base:", picture.sum().item(), " of the copy:", copy.sum().item())
print("strides:", picture.stride(), picture.t().stride(), picture[:, ::2].stride())

# %%
# NumPy's arrays share memory with tensors in the same way, in both directions.

array = picture.numpy()
array[5] = 2
print("the tensor sees it:", picture[5].tolist())

figure, panels = plt.subplots(1, 3, figsize=(8.5, 3), layout="constrained")
titles = ["picture, after all writes", "copy, taken before", "picture.t()"]
for panel, values, title in zip(panels, [picture, copy, picture.t()], titles, strict=True):
    panel.imshow(values, cmap="YlGnBu", vmax=4)
    panel.set_title(title, fontsize=10)
    panel.set(xticks=[], yticks=[])
plt.show()

# %%
# **What to try next.** Ask for ``torch.tensor([1, 2.5])`` and guess its type first. Write to ``picture[::2]`` and
# look at the picture. ``picture.view(36)`` works, ``picture.t().view(36)`` does not: read what the error says, and
# find out why ``reshape`` does both.
