"""Train a small CNN on handwritten digits, in ordinary PyTorch code.

    flambeau run examples/digits.py            # with flambeau
    python examples/digits.py                  # with PyTorch: the same seed, the same losses

The data are the 1,797 UCI digits of 8x8 pixels that scikit-learn carries. Written to --out (the
current folder): digits.pth (the weights), digits_loss.png and digits_predictions.png.
"""

import argparse
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class Net(nn.Module):
    """Two convolutions and two linear layers: 8x8 pixels to 10 scores."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)
        self.dropout = nn.Dropout(0.25)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)  # (N, 16, 4, 4)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)  # (N, 32, 2, 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(self.dropout(x))


def load_data():
    """Images (N, 1, 8, 8) between 0 and 1, labels, split 4:1 in a fixed random order."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(images))
    images, labels = images[order], labels[order]
    cut = len(images) * 4 // 5
    return (images[:cut], labels[:cut]), (images[cut:], labels[cut:])


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def show_progress(done, total, text):
    """A bar on standard error, where that is a terminal; standard output holds only results."""
    if not sys.stderr.isatty():
        return
    width = 30
    filled = width * done // total
    end = "\n" if done == total else ""
    sys.stderr.write(f"\r[{'#' * filled}{'.' * (width - filled)}] {text}{end}")
    sys.stderr.flush()


def train(model, images, labels, epochs, batch_size=32):
    """SGD with momentum under a one-cycle schedule; returns the loss of every batch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    batches = (len(images) + batch_size - 1) // batch_size
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=epochs * batches)
    losses = []
    for epoch in range(epochs):
        model.train()
        order = torch.randperm(len(images))
        for start in range(0, len(images), batch_size):
            batch = order[start : start + batch_size]
            loss = F.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            show_progress(len(losses), epochs * batches, f"epoch {epoch + 1}/{epochs}")
        recent = losses[-batches:]
        print(f"epoch {epoch + 1:2d}  loss {sum(recent) / len(recent):.4f}")
    return losses


def plot_losses(losses, path):
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(losses, linewidth=0.8, color="#8aa4c8", label="each batch")
    smooth = torch.tensor(losses).unfold(0, 20, 1).mean(1)
    axes.plot(range(19, len(losses)), smooth, color="#c8102e", label="mean of 20 batches")
    axes.set(xlabel="batch", ylabel="cross-entropy", yscale="log", title="Training loss")
    axes.legend()
    figure.savefig(path, dpi=120)


def plot_predictions(model, images, labels, path):
    """The first 40 test images with the predicted digit; red where it is wrong."""
    model.eval()
    with torch.no_grad():
        predicted = model(images[:40]).argmax(1)
    figure, grid = plt.subplots(5, 8, figsize=(8, 5.6), layout="constrained")
    for axes, image, guess, label in zip(grid.flat, images, predicted, labels, strict=False):
        axes.imshow(image.squeeze(), cmap="gray_r")
        axes.set_title(guess.item(), color="black" if guess == label else "red", fontsize=10)
        axes.axis("off")
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path())
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    (train_images, train_labels), (test_images, test_labels) = load_data()
    model = Net()
    start = time.perf_counter()
    losses = train(model, train_images, train_labels, options.epochs)
    seconds = time.perf_counter() - start
    print(f"test accuracy {accuracy(model, test_images, test_labels):.2%}")
    print(f"trained in {seconds:.1f} s with torch {torch.__version__}", file=sys.stderr)

    options.out.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), options.out / "digits.pth")
    plot_losses(losses, options.out / "digits_loss.png")
    plot_predictions(model, test_images, test_labels, options.out / "digits_predictions.png")
    print("written: digits.pth, digits_loss.png, digits_predictions.png")


if __name__ == "__main__":
    main()
