"""Coverage-guided fuzzing of TorchScript archives: `python fuzz/archives.py CORPUS [-max_…]`.

An input is turned into an archive in one of four ways, by its first byte: a program that a grammar
writes from the bytes, code as it stands, the pickle as it stands, or an honest archive whose zip
file is forged (`zips.py`). The archive is described, loaded under limits, each method runs, and the
module is saved. Only the documented refusals are fine.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import pickle
import sys
import warnings
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))
import flambeau
import flambeau.nn  # what is imported before, runs at full speed

with atheris.instrument_imports(
    include=["flambeau.jit.archive", "flambeau.jit.frontend", "flambeau.jit.passes",
             "flambeau.serialization"]
):  # fmt: skip
    from flambeau import serialization  # noqa: F401
    from flambeau.jit import archive, frontend, passes  # noqa: F401
from flambeau.jit.run import call
from flambeau.serialization import description
from flambeau.serialization.archive import ArchiveReader
from flambeau.serialization.safetensors import SafetensorError
from fuzz.choices import Choices
from fuzz.readers import limit_memory
from fuzz.zips import forged
from tests.jit.archive import handmade

REFUSALS = (RuntimeError, pickle.UnpicklingError, ValueError, EOFError, SafetensorError)
LIMITS = flambeau.jit.Limits(steps=2000, memory=1 << 24, depth=50)
CLASSES = """
class E(Enum):
  a = 1
  b = 2
class P(NamedTuple):
  x : int
  y : Tensor
class O:
  n : int
  def get(self: __torch__.O, k: int) -> int:
    return torch.add(self.n, k)
class I(ModuleInterface):
  def step(self, x: Tensor) -> Tensor:
    pass
class S(Module):
  __parameters__ = []
  __buffers__ = []
  def step(self: __torch__.S, x: Tensor) -> Tensor:
    return torch.mul(x, 2)
"""
FIELDS = """  w : Tensor
  n : int
  s : str
  l : List[int]
  d : Dict[str, Tensor]
  o : __torch__.O
  p : __torch__.P
  i : __torch__.I
  m : __torch__.S
  a : Any
  q : Optional[Tensor]
"""
LEAVES = ["x", "self.w", "self.n", "self.s", "self.l", "self.d", "self.o", "self.p", "self.i",
          "self.m", "self.a", "self.q", "1", "-3", "2.5", "True", "None", "'t'", "[]", "[1, 2]",
          "{}", "()", "inf", "__torch__.E.a", "CONSTANTS.c0", "9223372036854775807", "y", "z",
          "annotate(List[int], [])", "annotate(Any, 3)", "uninitialized(Tensor)"]  # fmt: skip
TYPES = ["Tensor", "int", "float", "str", "bool", "Any", "List[int]", "Dict[str, Tensor]",
         "Optional[Tensor]", "__torch__.O", "__torch__.P", "__torch__.S", "__torch__.I",
         "__torch__.E", "Tuple[int, Tensor]", "NoneType", "Device", "List[Any]"]  # fmt: skip
METHODS = ["get", "step", "append", "size", "view", "sum", "__getitem__", "forward", "value", "x",
           "keys", "items", "pop", "format", "shape", "T", "unsqueeze", "name", "n"]  # fmt: skip


class Grammar:
    """Statements and expressions, chosen by the bytes of an input."""

    def __init__(self, data: bytes) -> None:
        from flambeau.jit.operators import table

        self.choose = Choices(data).number
        self.operators = table.names()

    def expression(self, depth: int) -> str:
        """An expression, of less than `depth` levels."""
        form = self.choose(12) if depth else 0
        if form < 4:
            return LEAVES[self.choose(len(LEAVES))]
        inner = [self.expression(depth - 1) for _ in range(1 + self.choose(3))]
        listed = ", ".join(inner)
        if form < 7:
            namespace, _, name = self.operators[self.choose(len(self.operators))].partition("::")
            return f"{'torch' if namespace == 'aten' else f'ops.{namespace}'}.{name}({listed})"
        texts = (
            f"({inner[0]}).{METHODS[self.choose(len(METHODS))]}({', '.join(inner[1:])})",
            f"({inner[0]}).{METHODS[self.choose(len(METHODS))]}",
            f"({inner[0]})[{inner[-1]}]",
            f"[{listed}]",
            f"unchecked_cast({TYPES[self.choose(len(TYPES))]}, {inner[0]})",
        )
        return texts[form - 7]

    def statements(self, count: int, pad: str) -> str:
        """Lines of a program."""
        return "".join(self.statement(pad) for _ in range(count)) or f"{pad}pass\n"

    def statement(self, pad: str) -> str:
        """One statement, with those inside."""
        form, value = self.choose(10), self.expression(3)
        deep = len(pad) < 10
        if form == 0 and deep:
            return f"{pad}if {value}:\n{self.statements(2, pad + '  ')}{pad}else:\n" + (
                self.statements(1, pad + "  ")
            )
        if form == 1 and deep:
            return f"{pad}while {value}:\n{self.statements(2, pad + '  ')}"
        if form == 2 and deep:
            return f"{pad}for y in {value}:\n{self.statements(2, pad + '  ')}"
        if form == 3:
            return f"{pad}self.{('n', 's', 'w', 'l', 'o', 'i', 'm')[self.choose(7)]} = {value}\n"
        if form == 4:
            return f"{pad}return {value}\n"
        if form == 5:
            return f"{pad}if isinstance({value}, {TYPES[self.choose(len(TYPES))]}):\n{pad}  y = 1\n"
        return f"{pad}{'yz'[form % 2]} = {value}\n"


def program(data: bytes) -> str:
    """The code of an archive, written from bytes."""
    grammar = Grammar(data)
    result = TYPES[grammar.choose(len(TYPES))]
    body = grammar.statements(1 + grammar.choose(6), "    ")
    return (
        f'{CLASSES}class M(Module):\n  __parameters__ = ["w"]\n  __buffers__ = []\n{FIELDS}'
        f"  def forward(self: __torch__.M, x: Tensor) -> {result}:\n{body}"
    )


def values() -> handmade.Raw:
    """The pickle of an honest module."""
    tensor = handmade.tensor(kind="torch.FloatStorage")
    return handmade.made("__torch__.M", {
        "w": tensor, "n": 3, "s": "text", "l": [1, 2], "d": {"k": tensor},
        "o": handmade.made("__torch__.O", {"n": 4}), "p": (5, tensor),
        "i": handmade.made("__torch__.S"), "m": handmade.made("__torch__.S"), "a": [1], "q": None,
    })  # fmt: skip


VALUE = values()
HONEST = program(b"")
CONSTANTS = b"\x80\x02" + handmade.code((3,)) + b"."
STORAGE = {"0": bytes(24)}


def saved_records() -> dict[str, bytes]:
    """The records of an archive as flambeau writes them."""
    model = flambeau.nn.Sequential(flambeau.nn.Linear(2, 3), flambeau.nn.BatchNorm1d(3))
    sink = io.BytesIO()
    flambeau.jit.save(flambeau.jit.script(model), sink, _extra_files={"labels.txt": "cat\ndog"})
    reader = ArchiveReader(sink.getvalue())
    return {name: reader.read(name) for name in reader.names()}


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    RECORDS = saved_records()


def written_program(data: bytes) -> bytes:
    return handmade.archive(program(data), VALUE, constants=CONSTANTS, storages=STORAGE)


def code_itself(data: bytes) -> bytes:
    return handmade.archive(data, VALUE, constants=CONSTANTS, storages=STORAGE)


def pickle_itself(data: bytes) -> bytes:
    return handmade.archive(HONEST, handmade.Raw(data), constants=CONSTANTS, storages=STORAGE)


def forged_zip(data: bytes) -> bytes:
    return forged(data, RECORDS)


WAYS = (written_program, code_itself, pickle_itself, forged_zip)
"""What makes an archive of an input; its first byte, in quarters of 256, says which."""


def content_of(data: bytes) -> bytes:
    """The archive that stands for an input."""
    way = data[0] // 64 if data else 0
    return WAYS[way](data[1:])


def load_and_run(content: bytes) -> None:
    """Load an archive and call its methods, with a tensor; describe it, as `inspect` does."""
    with contextlib.suppress(*REFUSALS):
        description.describe(memoryview(content))
    try:
        module = handmade.load(content, limits=LIMITS)
    except REFUSALS:
        return
    for name in module._type.methods:
        with contextlib.suppress(*REFUSALS):
            call(module._type.methods[name], (module, flambeau.ones(2, 3)), {})
    with contextlib.suppress(RuntimeError):
        flambeau.jit.save(module, io.BytesIO())


def one_input(data: bytes) -> None:
    """What the fuzzer calls; what programs print is not shown."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load_and_run(content_of(data))


def seeds() -> list[bytes]:
    """Programs and forgeries by chance, honest code, an honest pickle, an honest file."""
    chance = [hashlib.sha512(bytes([i])).digest() * 2 for i in range(64)]
    return [
        *(b"\0" + data for data in chance), *(b"\xc0" + data for data in chance),
        b"\x40" + HONEST.encode(), b"\x80" + VALUE, b"\xc0",
    ]  # fmt: skip


def main() -> None:
    corpus = Path(sys.argv[1])
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in seeds():
        (corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    atheris.Setup(sys.argv, one_input)
    limit_memory()
    atheris.Fuzz()


if __name__ == "__main__":
    main()
