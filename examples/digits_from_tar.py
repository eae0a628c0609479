"""Train on images in a tar archive, read by two workers, and go on in the middle of an epoch.

    flambeau run examples/digits_from_tar.py

The 1,797 UCI digits of 8x8 pixels that scikit-learn carries become PNG files in two archives, as
`00012.png` and `00012.cls`: one shuffled for training, one for testing. Written to --out (the
current folder): the archives and digits_from_tar.png.
"""

import argparse
import io
import sys
import tarfile
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TarDataset
from torch.utils.data.transforms import RandomCrop


def add_sample(tar, key, pixels, label):
    """A digit as two members of a tar: its image and its class."""
    image = io.BytesIO()
    Image.fromarray(np.uint8(pixels / 16 * 255)).save(image, "PNG")
    for name, data in ((f"{key}.png", image.getvalue()), (f"{key}.cls", str(label).encode())):
        member = tarfile.TarInfo(name)
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))


def write_archives(folder):
    """digits-train.tar and digits-test.tar, 4:1."""
    digits = load_digits()
    for name, start in (("train", 1), ("test", 0)):
        with tarfile.open(folder / f"digits-{name}.tar", "w") as tar:
            for k, (pixels, label) in enumerate(zip(digits.images, digits.target, strict=True)):
                if (k % 5 > 0) == start:
                    add_sample(tar, f"{k:05d}", pixels, label)


def for_testing(sample):
    """Grey pixels between 0 and 1, [1, 8, 8], and the class."""
    image, label = sample
    return image[:1] / 255, label


def for_training(sample):
    """The same, moved by a pixel at most."""
    image, label = for_testing(sample)
    return RandomCrop(8, padding=1)(image), label


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


def show_progress(done, total, text):
    """A bar on standard error, where that is a terminal; standard output holds only results."""
    if not sys.stderr.isatty():
        return
    width = 30
    filled = width * done // total
    end = "\n" if done == total else ""
    sys.stderr.write(f"\r[{'#' * filled}{'.' * (width - filled)}] {text}{end}")
    sys.stderr.flush()


def train(model, loader, epochs):
    """AdamW under a one-cycle schedule; the loss of every batch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    total = epochs * len(loader)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=total)
    losses = []
    for epoch in range(epochs):
        seen, start = 0, time.perf_counter()
        for images, labels in loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            seen += len(labels)
            rate = seen / (time.perf_counter() - start)
            show_progress(
                len(losses), total, f"epoch {epoch + 1}/{epochs}, {rate:,.0f} images per second"
            )
        recent = losses[-len(loader) :]
        print(f"epoch {epoch + 1:2d}  images {seen}  loss {sum(recent) / len(recent):.4f}")
    return losses


def go_on_in_the_middle(loader, make_loader):
    """Stop a pass after ten batches; another loader gives exactly the rest."""
    given = []
    for _, labels in loader:
        given += labels.tolist()
        if len(given) >= 10 * loader.batch_size:
            break
    another = make_loader()
    another.load_state_dict(loader.state_dict())
    rest = [label for _, labels in another for label in labels.tolist()]
    print(f"interrupted after {len(given)} images; the rest: {len(rest)}")


def accuracy(model, loader):
    """The share of right guesses; and images, labels and guesses for a picture."""
    shown, right, count = [], 0, 0
    model.eval()
    with torch.no_grad():
        for images, labels in loader:
            guesses = model(images).argmax(1)
            right += (guesses == labels).sum().item()
            count += len(labels)
            shown += zip(images, labels.tolist(), guesses.tolist(), strict=True)
    return right / count, shown


def draw(losses, shown, path):
    """The loss, and test images with their guesses: the wrong ones first, in red."""
    shown.sort(key=lambda item: item[1] == item[2])
    figure = plt.figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(5, 4))
    axes = left.subplots()
    axes.plot(losses, linewidth=0.8, color="#8aa4c8", label="each batch")
    smooth = torch.tensor(losses).unfold(0, 20, 1).mean(1)
    axes.plot(range(19, len(losses)), smooth, color="#c8102e", label="mean of 20 batches")
    axes.set(xlabel="batch", ylabel="cross-entropy", yscale="log", title="Training from a tar")
    axes.legend()
    right.suptitle("Guesses for test images; red: wrong")
    for box, (image, label, guess) in zip(right.subplots(4, 6).flat, shown, strict=False):
        box.imshow(image.squeeze(), cmap="gray_r")
        box.set_title(guess, color="black" if guess == label else "red", fontsize=9)
        box.axis("off")
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()

    torch.manual_seed(0)
    options.out.mkdir(parents=True, exist_ok=True)
    write_archives(options.out)

    def loader_of(name, transform, shuffle):
        dataset = TarDataset(
            options.out / f"digits-{name}.tar", ("png", "cls"), transform=transform, shuffle=shuffle
        )
        return DataLoader(dataset, batch_size=32, num_workers=options.workers)

    loader = loader_of("train", for_training, 500)
    model = make_model()
    losses = train(model, loader, options.epochs)
    go_on_in_the_middle(loader, lambda: loader_of("train", for_training, 500))
    share, shown = accuracy(model, loader_of("test", for_testing, 0))
    print(f"test accuracy {share:.2%} of {len(shown)} images")
    draw(losses, shown, options.out / "digits_from_tar.png")
    print("written: digits-train.tar, digits-test.tar, digits_from_tar.png")


if __name__ == "__main__":
    main()
