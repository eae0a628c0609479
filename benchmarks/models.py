"""Training steps and one inference of small models, for `engine.py`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from drawing import Cases, Step, choices, drawn


def filled(torch: Any, net: Any, seed: int = 0) -> Any:
    """Parameters drawn by NumPy, small enough to train; the same under every library."""
    generator = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in sorted(net.named_parameters()):
            shape = tuple(parameter.shape)
            numbers = generator.standard_normal(shape, dtype=np.float32)
            if len(shape) > 1:
                numbers /= np.sqrt(np.prod(shape[1:]))
            else:
                numbers = numbers * 0.1 + (1.0 if name.endswith("weight") else 0.0)
            parameter.copy_(torch.from_numpy(numbers.astype(np.float32)))
    return net


def training(net: Any, loss_of: Any, optimizer: Any, batches: Any) -> Step:
    """One step: loss, gradients, update; batches in turn."""
    turn = itertools.cycle(batches)

    def step() -> Any:
        x, y = next(turn)
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def perceptron(torch: Any, name: str, **options: Any) -> Step:
    """784-512-512-10, batch 128."""
    nn = torch.nn
    net = filled(torch, nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512),
                                      nn.ReLU(), nn.Linear(512, 10)))  # fmt: skip
    batches = [(drawn(torch, 128, 784, seed=k), choices(torch, 10, 128, seed=k)) for k in range(4)]
    optimizer = getattr(torch.optim, name)(net.parameters(), **options)
    return training(net, nn.CrossEntropyLoss(), optimizer, batches)


def digits(torch: Any) -> Step:
    """Two convolutions, a pooling and two linear layers on 28x28, batch 64, Adadelta."""
    nn = torch.nn
    net = filled(torch, nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10),
        nn.LogSoftmax(1)))  # fmt: skip
    batches = [(drawn(torch, 64, 1, 28, 28, seed=k), choices(torch, 10, 64, seed=k))
               for k in range(4)]  # fmt: skip
    optimizer = torch.optim.Adadelta(net.parameters(), lr=0.1)
    return training(net, nn.functional.nll_loss, optimizer, batches)


VOCABULARY, WIDTH, HEADS, LENGTH = 65, 128, 4, 64


def character_model(torch: Any, fused: bool, half: bool = False) -> Step:
    """A GPT with 4 blocks of width 128 on 12 texts of 64 characters, AdamW; `half`: autocast."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.project, self.join = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
            future = torch.tril(torch.ones(LENGTH, LENGTH)) == 0
            self.register_buffer("future", future, persistent=False)

        def attend(self, x: Any) -> Any:
            texts, length, _ = x.shape
            parts = self.project(x).split(WIDTH, 2)
            q, k, v = (t.view(texts, length, HEADS, -1).transpose(1, 2) for t in parts)
            if fused:
                mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                scores = (q @ k.transpose(-2, -1)) * (WIDTH // HEADS) ** -0.5
                scores = scores.masked_fill(self.future, float("-inf"))
                mixed = functional.softmax(scores, -1) @ v
            return self.join(mixed.transpose(1, 2).reshape(texts, length, WIDTH))

        def forward(self, x: Any) -> Any:
            x = x + self.attend(self.before(x))
            return x + self.narrow(functional.gelu(self.wide(self.after(x))))

    class Model(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.characters = nn.Embedding(VOCABULARY, WIDTH)
            self.places = nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(4)])
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, text: Any) -> Any:
            x = self.characters(text) + self.places(torch.arange(text.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    def loss_of(scores: Any, text: Any) -> Any:
        return functional.cross_entropy(scores.view(-1, VOCABULARY), text.reshape(-1))

    net = filled(torch, Model())
    texts = [choices(torch, VOCABULARY, 12, LENGTH + 1, seed=k) for k in range(4)]
    batches = [(t[:, :-1].contiguous(), t[:, 1:].contiguous()) for t in texts]
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.1)

    def run(text: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            return net(text)

    return training(run if half else net, loss_of, optimizer, batches)


def language_model(torch: Any) -> Step:
    """Two LSTM layers of width 256 on 32 sequences of 35 words of 2000, SGD."""
    nn = torch.nn

    class Model(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(2000, 256)
            self.memory = nn.LSTM(256, 256, 2)
            self.head = nn.Linear(256, 2000)

        def forward(self, text: Any) -> Any:
            return self.head(self.memory(self.words(text))[0])

    def loss_of(scores: Any, text: Any) -> Any:
        return nn.functional.cross_entropy(scores.view(-1, 2000), text.reshape(-1))

    net = filled(torch, Model())
    texts = [choices(torch, 2000, 36, 32, seed=k) for k in range(4)]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    return training(net, loss_of, optimizer, [(t[:-1], t[1:]) for t in texts])


def board(torch: Any, half: bool) -> Step:
    """1x1 convolutions of 256 channels with batch norm on 128x128 points, Adam."""
    nn = torch.nn
    layers: list[Any] = []
    for inside in (2, 256, 256, 256):
        layers += [nn.Conv2d(inside, 256, 1), nn.BatchNorm2d(256), nn.ReLU()]
    net = filled(torch, nn.Sequential(*layers, nn.Conv2d(256, 1, 1)))
    place = torch.arange(128) / 128
    points = torch.stack([place.expand(128, 128), place[:, None].expand(128, 128)])[None]
    squares = (place * 4).fmod(1) > 0.5
    target = (squares[None] ^ squares[:, None]).float()[None, None]

    def run(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            return net(x)

    def loss_of(out: Any, y: Any) -> Any:
        return nn.functional.mse_loss(out.float(), y)

    return training(run, loss_of, torch.optim.Adam(net.parameters(), 1e-3), [(points, target)])


def resnet18(torch: Any) -> Any:
    """ResNet-18, for inference."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, inside: int, outside: int, stride: int) -> None:
            super().__init__()
            self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
            self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
            self.norms = nn.ModuleList([nn.BatchNorm2d(outside) for _ in range(2)])
            self.relu = nn.ReLU(inplace=True)
            self.short = nn.Identity()
            if stride != 1 or inside != outside:
                self.short = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False),
                                           nn.BatchNorm2d(outside))  # fmt: skip

        def forward(self, x: Any) -> Any:
            y = self.relu(self.norms[0](self.first(x)))
            return self.relu(self.norms[1](self.second(y)) + self.short(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, 2, 1)]  # fmt: skip
    inside = 64
    for outside, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(inside, outside, stride), Block(outside, outside, 1)]
        inside = outside
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)]
    return filled(torch, nn.Sequential(*layers)).eval()


def residual(torch: Any, batch: int) -> Step:
    """ResNet-18 on images of 224x224, inference."""
    net = resnet18(torch)
    images = drawn(torch, batch, 3, 224, 224)

    def step() -> Any:
        with torch.no_grad():
            return net(images)

    return step


def cases(torch: Any) -> Cases:
    """The models by name."""
    return {
        "perceptron, SGD": lambda: perceptron(torch, "SGD", lr=0.01, momentum=0.9),
        "perceptron, Adam": lambda: perceptron(torch, "Adam", lr=1e-4),
        "digits": lambda: digits(torch),
        "GPT": lambda: character_model(torch, False),
        "GPT, fused attention": lambda: character_model(torch, True),
        "LSTM language model": lambda: language_model(torch),
        "checkerboard": lambda: board(torch, False),
        "checkerboard, bfloat16": lambda: board(torch, True),
        "ResNet-18, 1 image": lambda: residual(torch, 1),
        "ResNet-18, 8 images": lambda: residual(torch, 8),
    }
