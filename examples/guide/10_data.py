"""
Loading data: folders, shards, workers
======================================

**The question.** The data do not fit into memory, or lie in ten thousand files. Who brings the next batch while the
model is busy with this one?

**What you need to know.** Classes with ``__len__`` and ``__getitem__``; generators.

A dataset says what an example is, a sampler in which order, a loader makes batches of them, here or in workers.
"""

import io
import sys
import tarfile
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

torch.manual_seed(0)
rng = np.random.default_rng(0)
temporary = tempfile.TemporaryDirectory(prefix="guide-data-")  # gone when the program ends
folder = Path(temporary.name)
forms = ["disc", "square", "stripes"]

# %%
# A folder for each kind
# ----------------------
# First the data: small pictures of three forms, written as files, as one gets them.

lines = np.arange(24) - 11.5
y, x = np.meshgrid(lines, lines, indexing="ij")
for kind in forms:
    (folder / kind).mkdir()
    for number in range(60):
        dx, dy, size = rng.uniform(-4, 4, 2).tolist() + [rng.uniform(4, 9)]
        inside = {
            "disc": (x - dx) ** 2 + (y - dy) ** 2 < size**2,
            "square": np.maximum(abs(x - dx), abs(y - dy)) < size * 0.8,
            "stripes": np.sin((x * dx + y * dy) * 0.25) > 0,
        }[kind]
        picture = inside * 180 + rng.integers(0, 60, (24, 24))
        np.save(folder / kind / f"{number:03}.npy", picture.astype(np.uint8))


class Forms(Dataset):
    """(picture of shape (1, 24, 24) between 0 and 1, number of its folder)."""

    def __init__(self, folder):
        self.files = sorted(folder.glob("*/*.npy"))
        self.kinds = sorted({file.parent.name for file in self.files})

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        file = self.files[index]
        picture = torch.from_numpy(np.load(file)).float() / 255
        return picture.unsqueeze(0), self.kinds.index(file.parent.name)


dataset = Forms(folder)
print(len(dataset), "examples; the first:", dataset[0][0].shape, dataset.kinds[dataset[0][1]])

# %%
# Batches
# -------
# The loader stacks what the dataset gives. ``shuffle`` draws a new order for each pass, from torch's own random numbers.

loader = DataLoader(dataset, batch_size=32, shuffle=True)
pictures, kinds = next(iter(loader))
print(pictures.shape, kinds.dtype, kinds[:10].tolist())

figure, panels = plt.subplots(2, 8, figsize=(9, 2.7), layout="constrained")
for panel, picture, kind in zip(panels.flat, pictures, kinds, strict=False):
    panel.imshow(picture[0], cmap="YlGnBu_r")
    panel.set_title(dataset.kinds[kind], fontsize=8)
    panel.axis("off")
plt.show()

# %%
# Workers
# -------
# ``num_workers=2`` starts two processes that load ahead. The batches come in the same order, and hold the same numbers.
# (The start method is named because this page is run piece by piece; a script needs no such word, but
# ``if __name__ == "__main__":`` around its main part.)

context = "fork" if sys.platform != "win32" else None
with_workers = DataLoader(dataset, batch_size=32, num_workers=2, multiprocessing_context=context)
alone = DataLoader(dataset, batch_size=32)
equal = [torch.equal(a[0], b[0]) for a, b in zip(alone, with_workers, strict=True)]
print("batches:", len(equal), "all equal:", all(equal))

# %%
# One big file instead of many small ones
# ---------------------------------------
# Disks and networks read long files well and short ones badly: so examples are put into tar files, some thousands in each
# (shards), and read from front to end. That is an ``IterableDataset``: no numbers, only a next one.

shards = []
for s in range(4):
    path = folder / f"shard-{s}.tar"
    with tarfile.open(path, "w") as tar:
        for file in dataset.files[s::4]:
            tar.add(file, arcname=f"{file.parent.name}-{file.name}")
    shards.append(path)


class Shards(IterableDataset):
    """Examples of tar files; each worker reads its own."""

    def __init__(self, paths):
        self.paths = paths

    def __iter__(self):
        worker = get_worker_info()
        mine = self.paths if worker is None else self.paths[worker.id :: worker.num_workers]
        for path in mine:
            with tarfile.open(path) as tar:
                for member in tar:
                    content = tar.extractfile(member).read()
                    picture = torch.from_numpy(np.load(io.BytesIO(content))).float() / 255
                    yield picture.unsqueeze(0), member.name


seen = {}
for workers in (0, 2):
    loader = DataLoader(
        Shards(shards),
        batch_size=30,
        num_workers=workers,
        multiprocessing_context=context if workers else None,
    )
    names = [name for _, batch in loader for name in batch]
    seen[workers] = names
    print(
        workers,
        "workers:",
        len(names),
        "examples,",
        len(set(names)),
        "different; the first:",
        names[0],
    )

# %%
# Without ``get_worker_info`` each worker would read all shards, and every example would come twice. It is the fault that
# is made most often here, and nothing reports it (but ``flambeau run --advise``).
#
# The order in which examples arrive, as colours of their shards: one after the other alone, two at a time with two workers.

number_of = {f"{file.parent.name}-{file.name}": k % 4 for k, file in enumerate(dataset.files)}
figure, axes = plt.subplots(figsize=(8.5, 1.9), layout="constrained")
axes.imshow(
    [[number_of[name] for name in seen[workers]] for workers in (0, 2)],
    aspect="auto",
    cmap="YlGnBu",
)
axes.set(
    yticks=[0, 1], yticklabels=["alone", "2 workers"], xlabel="example, in the order of arrival"
)
plt.show()

# %%
# **What to try next.** Leave ``get_worker_info`` out and count again. Give the loader ``drop_last=True``, then
# ``collate_fn=list``. Use a ``WeightedRandomSampler`` that draws discs twice as often as stripes.
