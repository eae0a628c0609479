"""Programs that switch settings: statements in threads, drawn without running them."""

from __future__ import annotations

import random

TYPES = ("torch.float32", "torch.float64", "torch.float16", "torch.bfloat16")
VALUES = {
    "type": TYPES, "bool": ("True", "False"), "count": ("1", "2", "3"),
    "half": ("torch.float16", "torch.bfloat16"),
    "device": ("'cpu'", "None", "'cpu:0'", "torch.device('cpu', 1)"),
    "block_device": ("'cpu'", "'cpu:0'", "'cpu', 2"),
    "mode": ("0", "1", "2", "'warn'", "'error'", "'default'", "'loud'", "3"),
    "word": ("'highest'", "'high'", "'medium'", "'low'"),
    "precision": ("'ieee'", "'tf32'", "'bf16'", "'none'", "'half'"),
    "profile": ("'default'", "'short'", "'full'"),
}  # fmt: skip
"""What stands for a word in braces."""

SETTERS = (
    "torch.set_default_dtype({type})",
    "torch.set_default_dtype({type})",
    "torch.set_default_device({device})",
    "torch.set_grad_enabled({bool})",
    "torch.set_num_threads({count})",
    "torch.use_deterministic_algorithms({bool}, warn_only={bool})",
    "torch.use_deterministic_algorithms(True)",
    "torch.set_deterministic_debug_mode({mode})",
    "setattr(torch.utils.deterministic, 'fill_uninitialized_memory', {bool})",
    "torch.set_autocast_enabled('cpu', {bool})",
    "torch.set_autocast_dtype('cpu', {half})",
    "torch.set_autocast_cache_enabled({bool})",
    "torch.autograd.set_detect_anomaly({bool}, check_nan={bool})",
    "torch.set_float32_matmul_precision({word})",
    "setattr(torch.backends.cuda.matmul, 'allow_tf32', {bool})",
    "setattr(torch.backends, 'fp32_precision', {precision})",
    "setattr(torch.backends.mkldnn.matmul, 'fp32_precision', {precision})",
    "setattr(torch.backends.cudnn, 'benchmark', {bool})",
    "torch.set_printoptions(precision={count}, sci_mode={bool})",
    "torch.set_printoptions(profile={profile})",
    "torch.set_printoptions(threshold={count}, edgeitems={count}, linewidth=60)",
    "torch.manual_seed({count})",
    "torch.set_warn_always({bool})",
    "torch.set_flush_denormal({bool})",
    "torch.backends.mha.set_fastpath_enabled({bool})",
    "torch.backends.cuda.enable_math_sdp({bool})",
    "torch.set_default_dtype(torch.int64)",
    "torch.set_num_threads(0)",
)
"""What switches a setting, for this thread or for all; a few raise."""

BLOCKS = (
    "torch.no_grad()", "torch.enable_grad()", "torch.set_grad_enabled({bool})",
    "torch.inference_mode({bool})", "torch.inference_mode()",
    "torch.autocast('cpu', dtype={type}, enabled={bool})", "torch.autocast('cpu')",
    "torch.autocast('cpu', dtype=torch.bfloat16, cache_enabled={bool})",
    "torch.device({block_device})", "torch.autograd.detect_anomaly(check_nan={bool})",
    "torch.autograd.set_detect_anomaly({bool})", "torch.random.fork_rng()",
    "torch.backends.cudnn.flags(enabled={bool}, benchmark={bool})",
    "torch.backends.flags(fp32_precision={precision})",
)  # fmt: skip
"""What can be begun in a thread and is ended later."""

APART = {"set_autocast_enabled": "inference_mode", "set_default_device": "torch.device"}
"""Setters, and the blocks in which they are not drawn: docs/compatibility.md, "Settings"."""

QUIET = (
    "tell(torch.tensor([1.5, -2.25, 3.0]))",
    "tell(torch.ones(2, 3) * 2 + 1)",
    "tell(torch.arange(4) / 2)",
    "tell(torch.full((2,), 7.5))",
    "tell(torch.linspace(0, 1, 3))",
    "tell(torch.ones(2, 3) @ torch.full((3, 2), 0.5))",
    "tell(F.linear(torch.ones(1, 2), torch.full((2, 2), 0.25)))",
    "tell(F.softmax(torch.tensor([[0.0, 0.0]]), 1))",
    "tell(torch.ones(2, requires_grad=True) * 3)",
    "tell(torch.ones(2, requires_grad=True).exp().sum())",
    "tell(fresh(3))",
    "tell(torch.tensor([1e-30]) * torch.tensor([1e-10], dtype=torch.float32))",
    "tell(torch.arange(3000.0).sum())",
    "tell(torch.zeros(3).index_add_(0, torch.tensor([0, 0]), torch.ones(2)))",
    "tell(torch.zeros(3).put_(torch.tensor([0, 2]), torch.ones(2)))",
    "shown(torch.tensor([1/3, 1e5, float('nan')]))",
    "tell(torch.tensor([1.0, 2.0], dtype=torch.float64))",
    "str(torch.empty(0).device)",
    "torch.result_type(torch.tensor([1]), 2.5) == torch.get_default_dtype()",
    "look()",
    "look()",
    "look()",
)
"""What calculates, or looks, and changes nothing for others."""

LOUD = (
    "tell(torch.rand(3))",
    "tell(torch.randn(2))",
    "tell(torch.randint(10, (4,)))",
    "tell(nn.Linear(2, 2).weight)",
    "tell(F.dropout(torch.ones(8), 0.5))",
    "torch.initial_seed()",
    "tell(torch.bernoulli(torch.full((4,), 0.5)))",
)
"""What draws random numbers, or goes backward: one thread at a time."""

LEARN = {
    "{}.exp().sum().backward()": 4,
    "({} * float('nan')).sum().backward()": 1,
    "({}.sqrt() * 0).sum().backward()": 1,
    "({0} @ {0}).backward()": 1,
}
"""How a leaf learns."""


class Drawing:
    """A program that grows."""

    def __init__(self, drawn: random.Random) -> None:
        self.random = drawn
        self.lines: list[str] = []
        self.threads = 1
        self.open: dict[int, list[str]] = {}
        self.names = 0

    def filled(self, text: str) -> str:
        """A statement with values for what stands in braces."""
        while "{" in text:
            before, _, rest = text.partition("{")
            kind, _, after = rest.partition("}")
            text = before + self.random.choice(VALUES[kind]) + after
        return text

    def thread(self) -> int:
        return self.random.randrange(self.threads)

    def add(self, text: str) -> None:
        self.names += 1
        self.lines.append(f"r{self.names} = {text}")

    # ---- statements

    def statement(self) -> None:
        kinds = ("start", "set", "enter", "leave", "act", "learn", "together", "look")
        kind = self.random.choices(kinds, (1, 6, 4, 2, 5, 1, 1, 3))[0]
        getattr(self, f"_{kind}")()

    def _start(self) -> None:
        if self.threads < 4:
            self.lines.append("start()")
            self.threads += 1

    def _set(self) -> None:
        setter = self.filled(self.random.choice(SETTERS))
        number = self.thread()
        blocks = [block for name, block in APART.items() if name in setter]
        if not any(self._is_open(number, block) for block in blocks):
            self.add(f"on({number}, lambda: ({setter}, None)[1])")

    def _is_open(self, number: int, block: str) -> bool:
        return any(block in text for text in self.open.get(number, ()))

    def _enter(self) -> None:
        number, block = self.thread(), self.filled(self.random.choice(BLOCKS))
        self.lines.append(f"enter({number}, lambda: {block})")
        self.open.setdefault(number, []).append(block)

    def _leave(self) -> None:
        numbers = [number for number, blocks in self.open.items() if blocks]
        if numbers:
            number = self.random.choice(numbers)
            self.lines.append(f"leave({number})")
            self.open[number].pop()

    def _act(self) -> None:
        self.add(f"on({self.thread()}, lambda: {self.random.choice((*QUIET, *LOUD))})")

    def _learn(self) -> None:
        self.names += 1
        leaf = f"x{self.names}"
        number = self.thread()
        how = self.random.choices(tuple(LEARN), tuple(LEARN.values()))[0].format(leaf)
        self.lines.append(f"{leaf} = on({number}, lambda: leaf(0.0, 1.0))")
        self.add(f"on({self.thread()}, lambda: ({how}, tell({leaf}.grad))[1])")

    def _together(self) -> None:
        if self.threads > 1:
            actions = [self.random.choice(QUIET) for _ in range(1, self.threads)]
            listed = ", ".join(f"lambda: {action}" for action in actions)
            self.add(f"together({listed})")

    def _look(self) -> None:
        self.add(f"on({self.thread()}, look)")


def case(seed: str) -> str:
    """The program of a seed."""
    drawing = Drawing(random.Random(seed))
    for _ in range(drawing.random.choice((0, 1, 2))):
        drawing._start()
    for _ in range(drawing.random.choice((6, 10, 15, 20))):
        drawing.statement()
    for number in range(drawing.threads):
        drawing.add(f"on({number}, look)")
    return "\n".join(drawing.lines) + "\n"
