"""Models for archives, written once and compiled by both libraries: `torch` in here is either one.

`both.load` reads this file; `EXAMPLES` has, for each model, what makes it and its inputs.
"""

import enum
from typing import Any, NamedTuple  # noqa: UP035

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

# ---- ResNet-18 (He et al. 2016)


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        inner = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(inner)) + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )  # fmt: skip
        blocks = []
        width = 8
        for wider in (8, 16, 32, 64):
            blocks += [Block(width, wider, 1 if width == wider else 2), Block(wider, wider, 1)]
            width = wider
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.stem(x))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


# ---- an LSTM tagger


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, 8, padding_idx=0)
        self.lstm = nn.LSTM(8, 6, num_layers=2, bidirectional=True, batch_first=True)
        self.tags = nn.Linear(12, 5)

    def forward(self, words: Tensor, state: tuple[Tensor, Tensor] | None = None) -> Tensor:
        hidden, _ = self.lstm(self.embedding(words), state)
        return F.log_softmax(self.tags(hidden), dim=-1)


# ---- a Transformer encoder


class Encoder(nn.Module):
    def __init__(self, norm_first: bool, activation: str) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            16, 4, 32, batch_first=True, norm_first=norm_first, activation=activation
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first)

    def forward(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        return self.encoder(x, src_key_padding_mask=padding)


# ---- beam search


class BeamSearch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(12, 6)
        self.cell = nn.GRUCell(6, 10)
        self.out = nn.Linear(10, 12)

    def forward(self, start: Tensor, beams: int, length: int) -> tuple[list[list[int]], Tensor]:
        sequences: list[list[int]] = [[0]]
        scores = torch.zeros(1)
        state = start.unsqueeze(0)
        for _ in range(length):
            last = torch.tensor([sequence[-1] for sequence in sequences])
            state = self.cell(self.embedding(last), state)
            totals = scores.unsqueeze(1) + F.log_softmax(self.out(state), dim=-1)
            scores, flat = totals.flatten().topk(beams)
            longer: list[list[int]] = []
            kept: list[int] = []
            for index in _ints(flat):
                kept.append(index // 12)
                longer.append(sequences[index // 12] + [index % 12])
            sequences = longer
            state = state[torch.tensor(kept)]
        return sequences, scores


def _ints(values: Tensor) -> list[int]:
    found: list[int] = values.tolist()
    return found


# ---- post-processing of detections, with non-maximum suppression (greedy)


class Found(NamedTuple):
    boxes: Tensor
    scores: Tensor
    labels: Tensor


def _overlaps(box: Tensor, others: Tensor) -> Tensor:
    low = torch.max(box[:2], others[:, :2])
    high = torch.min(box[2:], others[:, 2:])
    common = (high - low).clamp(min=0).prod(dim=1)
    area = (box[2:] - box[:2]).prod()
    areas = (others[:, 2:] - others[:, :2]).prod(dim=1)
    return common / (area + areas - common)


def suppressed(boxes: Tensor, scores: Tensor, limit: float) -> Tensor:
    order = torch.argsort(scores, descending=True)
    kept: list[int] = []
    while order.numel() > 0:
        best = int(order[0])
        kept.append(best)
        rest = order[1:]
        order = rest[_overlaps(boxes[best], boxes[rest]) <= limit]
    return torch.tensor(kept, dtype=torch.int64)


class Detections(nn.Module):
    limit: float

    def __init__(self, limit: float) -> None:
        super().__init__()
        self.limit = limit

    def forward(self, boxes: Tensor, logits: Tensor) -> dict[str, Found]:
        scores, labels = logits.softmax(dim=-1).max(dim=-1)
        result: dict[str, Found] = {}
        for label in range(logits.size(-1)):
            chosen = torch.where((labels == label) & (scores > 0.3))[0]
            if chosen.numel() == 0:
                continue
            kept = chosen[suppressed(boxes[chosen], scores[chosen], self.limit)]
            result[f"class {label}"] = Found(boxes[kept], scores[kept], labels[kept])
        return result


# ---- attributes of all types, classes, interfaces, hooks, properties


class Color(enum.Enum):
    RED = 1
    GREEN = 2


@torch.jit.script
class Counter:
    def __init__(self, start: int) -> None:
        self.count = start
        self.history: list[int] = []

    def add(self, by: int) -> int:
        self.count += by
        self.history.append(by)
        return self.count


@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Shift(nn.Module):
    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: Tensor) -> Tensor:
        return x + self.by


class Everything(nn.Module):
    ints: list[int]
    texts: dict[str, list[float]]
    pair: tuple[int, Tensor]
    maybe: Tensor | None
    nothing: int | None
    found: Found
    tables: dict[int, Tensor]
    flags: list[bool]
    tensors: list[Tensor]
    step: Step
    scale: torch.jit.Final[float]

    def __init__(self) -> None:
        super().__init__()
        self.ints, self.flags = [1, -2, 2**40], [True, False]
        self.texts = {"a\n\"'\\": [1.5, float("inf")], "é": []}
        self.pair = (7, torch.arange(3))
        self.maybe, self.nothing = None, None
        self.found = Found(torch.ones(2, 2), torch.zeros(1), torch.tensor(3))
        self.tables = {3: torch.ones(1), -1: torch.zeros(2, dtype=torch.int64)}
        self.tensors = [torch.ones(2), torch.ones(1, dtype=torch.float64)]
        self.number, self.text, self.complex = 3, "text", 1 - 2j
        self.where = torch.device("cpu")
        self.color = Color.GREEN
        self.counter = Counter(5)
        self.scale = 0.5
        self.step = Shift(1.0)
        self.other = Double()
        self.again = self.other
        self.weight = nn.Parameter(torch.arange(4.0))
        self.view = nn.Parameter(self.weight.detach()[1:3])
        self.register_buffer("kept", torch.ones(2))
        self.register_buffer("dropped", torch.full((2,), 3.0), persistent=False)
        self.register_parameter("absent", None)
        self.layers = nn.ModuleList([Shift(float(i)) for i in range(3)])
        self.named = nn.ModuleDict({"one": Double(), "two": Shift(0.25)})

    @property
    def total(self) -> int:
        return self.number + len(self.ints)

    @torch.jit.export
    def describe(self, key: str) -> str:
        return f"{self.text} {key} {self.number} {self.color.name} {self.texts[key]}"

    @torch.jit.export
    def count(self, by: int) -> tuple[int, list[int]]:
        self.counter.add(by)
        return self.counter.count, self.counter.history

    def forward(self, x: Tensor, times: int = 2) -> tuple[Tensor, dict[str, Any], Found]:
        for layer in self.layers:
            x = layer(x)
        for name, layer in self.named.items():
            if name != "none":
                x = layer(x)
        x = self.again(self.other(self.step(x))) * self.scale + self.weight.sum()
        maybe = self.maybe
        if maybe is not None:
            x = x + maybe
        if self.color == Color.GREEN:
            x = x + self.kept.sum() + self.dropped.sum() + self.view.sum()
        for index, value in self.tables.items():
            x = x + index * value.sum()
        info: dict[str, Any] = {
            "total": self.total,
            "pair": self.pair[0] * times,
            "text": self.text,
        }
        return x, info, self.found


class Stateful(nn.Module):
    """What is saved is what `__getstate__` says."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.arange(6.0).view(2, 3)
        self.name = "stateful"

    @torch.jit.export
    def __getstate__(self) -> tuple[list[int], Tensor, str, bool]:
        return list(self.weight.shape), self.weight.flatten().flip(0), self.name, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[list[int], Tensor, str, bool]) -> None:
        self.weight = state[1].flip(0).view(state[0])
        self.name = state[2].upper()
        self.training = state[3]

    def forward(self, x: Tensor) -> tuple[Tensor, str]:
        return x @ self.weight, self.name


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Double()
        self.inner.register_forward_pre_hook(_shift_input)
        self.register_forward_hook(_negate)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


def _shift_input(self, inputs: tuple[Tensor]) -> tuple[Tensor]:
    return (inputs[0] + 1,)


def _negate(self, inputs: tuple[Tensor], result: Tensor) -> Tensor:
    return -result - inputs[0]


class Constants(nn.Module):
    """Tensors that the code names, as tracing bakes them in."""

    def forward(self, x: Tensor) -> Tensor:
        return x @ torch.arange(6.0).view(3, 2) + torch.tensor([0.5, -0.5], dtype=torch.float64)


def _boxes(count: int) -> Tensor:
    low = torch.linspace(0, 5, count * 2).view(count, 2) % 3
    return torch.cat([low, low + 1 + torch.linspace(0, 1, count).unsqueeze(1)], 1)


def _wave(*shape: int) -> Tensor:
    count = 1
    for size in shape:
        count *= size
    return torch.sin(torch.arange(float(count)) * 0.7).view(shape)


PADDING = [[False, False, False, False, False], [False, False, True, True, True]]
EXAMPLES = {
    "resnet18": (ResNet18, lambda: (_wave(2, 3, 32, 32),)),
    "tagger": (Tagger, lambda: (torch.tensor([[3, 4, 5], [6, 0, 0]]),)),
    "encoder": (lambda: Encoder(False, "relu"), lambda: (_wave(2, 5, 16),)),
    "encoder_padded": (lambda: Encoder(False, "gelu"),
                       lambda: (_wave(2, 5, 16), torch.tensor(PADDING))),
    "encoder_norm_first": (lambda: Encoder(True, "relu"),
                           lambda: (_wave(2, 5, 16), torch.tensor(PADDING))),
    "beam_search": (BeamSearch, lambda: (_wave(10), 3, 5)),
    "detections": (lambda: Detections(0.4), lambda: (_boxes(12), _wave(12, 3) * 3)),
    "everything": (Everything, lambda: (_wave(3, 2),)),
    "stateful": (Stateful, lambda: (_wave(4, 2),)),
    "hooked": (Hooked, lambda: (_wave(3),)),
    "constants": (Constants, lambda: (_wave(4, 3),)),
}  # fmt: skip
TRACED = ("resnet18", "tagger", "encoder", "constants", "hooked")
