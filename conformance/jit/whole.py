"""Runs whole programs: every input several times, with gradients, from source and from archives.

A file of `whole_programs/` holds a dictionary PROGRAMS: for each name what is scripted, and a list
of inputs. What is scripted is a function, or a class of modules (made anew after seeding), or a
function whose name begins with `make`, which returns either.
"""

from __future__ import annotations

import copy
import io
import re
import zipfile
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch as reference

import flambeau
from flambeau.jit.printing.code_text import code_of

from .both import LIBRARIES, entered, load
from .reading import numbered

CALLS = 3
FILES = sorted(Path(__file__).with_name("whole_programs").glob("*.py"))


@dataclass
class Outcome:
    """What a call returned or raised, printed, left in its arguments; and the gradients.

    `raised` says where a script failed, `reason` only why.
    """

    result: Any = None
    raised: str | None = None
    printed: str = ""

    @property
    def reason(self) -> str | None:
        return None if self.raised is None else self.raised.splitlines()[-1]

    arguments: Any = None
    gradients: Any = None


@dataclass
class Program:
    """One program under one library."""

    file: Path
    name: str
    library: str
    torch: Any = field(init=False)

    def __post_init__(self) -> None:
        self.torch = LIBRARIES[self.library]

    def fresh(self) -> tuple[Any, list[tuple[Any, ...]]]:
        """What is scripted, and its inputs."""
        module = load(self.file, self.library)
        make, inputs = module.PROGRAMS[self.name]
        if isinstance(make, type) or make.__name__.startswith("make"):
            self.torch.manual_seed(7)
            with entered(module):
                make = make()
        return make, inputs

    def scripted(self) -> Any:
        """It, scripted."""
        subject, _ = self.fresh()
        is_script = isinstance(
            subject, (self.torch.jit.ScriptModule, self.torch.jit.ScriptFunction)
        )
        with entered(load(self.file, self.library)):
            return subject if is_script else self.torch.jit.script(subject)

    def outcomes(self, subject: Any, calls: int = CALLS) -> list[Outcome]:
        """Every input, several times, one after the other."""
        _, inputs = self.fresh()
        with entered(load(self.file, self.library)):
            return [self.outcome(subject, given) for given in inputs for _ in range(calls)]

    def outcome(self, subject: Any, inputs: tuple[Any, ...]) -> Outcome:
        """One call."""
        arguments = copy.deepcopy(inputs)
        leaves = self.leaves(arguments, subject)
        output, found = io.StringIO(), Outcome()
        self.torch.manual_seed(3)
        try:
            with redirect_stdout(output):
                result = subject(*arguments)
            found.result = plain(result)
            found.gradients = plain(self.gradients(result, leaves))
        except Exception as error:  # noqa: BLE001
            found.raised = f"{type(error).__name__}: {error}"
        finally:
            found.printed = output.getvalue()
            found.arguments = plain(arguments)
        return found

    def leaves(self, arguments: Any, subject: Any) -> list[Any]:
        """The tensors by which is differentiated: what is floating, and parameters."""
        found = [t for t in tensors(arguments, self.torch) if t.is_floating_point()]
        found = [t.requires_grad_() for t in found] if self.name not in IN_PLACE else []
        if isinstance(subject, self.torch.nn.Module):
            found += list(subject.parameters())
        return found

    def gradients(self, result: Any, leaves: list[Any]) -> list[Any]:
        """The gradients of a sum of all results."""
        ends = [t for t in tensors(result, self.torch) if t.requires_grad]
        if not ends or not leaves:
            return []
        parts = [t.real if t.is_complex() else t for t in ends]
        total = sum((i + 1) * t.double().sum() for i, t in enumerate(parts))
        gradients: list[Any] = self.torch.autograd.grad(total, leaves, allow_unused=True)
        return gradients


IN_PLACE: set[str] = set()
"""Programs that write into their arguments, which may not require a gradient then."""


def tensors(value: Any, torch: Any) -> list[Any]:
    """The tensors in nested containers."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in tensors(part, torch)]
    return []


def plain(value: Any) -> Any:
    """A result without anything of the library in it."""
    if isinstance(value, (reference.Tensor, flambeau.Tensor)):
        dtype = str(value.dtype).rsplit(".", 1)[-1]
        return {"tensor": value.detach().numpy(), "dtype": dtype, "grad": value.requires_grad}
    if isinstance(value, (list, tuple)):
        fields = getattr(value, "_fields", ())
        kind = type(value).__name__ if type(value) in (list, tuple) else "NamedTuple"
        return [kind, list(fields), [plain(item) for item in value]]
    if isinstance(value, dict):
        return [[plain(key), plain(item)] for key, item in value.items()]
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value if value == value else "nan"
    return re.sub(r"(flambeau|torch)\.|0x\w+", "", str(value))


def archived(subject: Any, library: str) -> io.BytesIO:
    """An archive of a scripted function or module."""
    buffer = io.BytesIO()
    LIBRARIES[library].jit.save(subject, buffer)
    buffer.seek(0)
    return buffer


OF_TORCH = re.compile(r"code/__torch__/torch/|__torch__\.torch\.")
"""Where archives hold the text of layers and functions: each library has its own."""


def texts(archive: io.BytesIO, whole: bool) -> dict[str, str]:
    """The code in an archive, with temporaries numbered as they appear. How often a name has been
    used before decides in which file a class stands, so all files of a module are one here.
    whole: with the text of torch's layers and functions.
    """
    with zipfile.ZipFile(archive) as records:
        names = [n for n in records.namelist() if n.endswith(".py")]
        found = {n.split("/", 1)[1]: records.read(n).decode() for n in names}
    if not whole:
        found = {name: text for name, text in found.items() if not OF_TORCH.match(name)}
    archive.seek(0)
    parts: dict[str, list[str]] = {}
    for name, text in found.items():
        plain = re.sub(r"/___torch_mangle_\d+", "", name)
        parts.setdefault(plain, []).extend(re.split(r"^(?=class |def )", text, flags=re.MULTILINE))
    return {
        name: "".join(sorted(ordered(normalised(part)) for part in found))
        for name, found in parts.items()
    }


def ordered(text: str) -> str:
    """The text of classes with constants sorted: torch keeps their names in a set."""
    pattern = r"(?:^  \w+ : Final\[.*\n)+"
    sort = lambda found: "".join(sorted(found[0].splitlines(keepends=True)))  # noqa: E731
    return re.sub(pattern, sort, text, flags=re.MULTILINE)


def normalised(code: str) -> str:
    """The text with temporaries numbered as they appear, and without marks of unique names. Values
    that nobody looks at stand where they are used: torch makes one for each type object.
    """
    unset = r"^ *(_\d+) = (uninitialized\(.*\))\n"
    for name, value in re.findall(unset, code, flags=re.MULTILINE):
        code = re.sub(rf"^ *{name} = uninitialized.*\n", "", code, count=1, flags=re.MULTILINE)
        code = re.sub(rf"\b{name}\b", value, code)
    return re.sub(r"\.?___torch_mangle_\d+", "", numbered(code, r"\b_\d+\b"))


def methods(subject: Any, library: str, whole: bool) -> dict[str, str]:
    """The code of a function, or of all methods of a module and of its submodules, by path. whole:
    those of torch's layers, too.
    """
    if not isinstance(subject, LIBRARIES[library].nn.Module):
        return {"": normalised(subject.code)}
    found = {}
    for path, inner in subject.named_modules():
        if not whole and OF_TORCH.match(class_name(inner, library)):
            continue
        if library == "torch":
            codes = {name: inner._c._get_method(name).code for name in inner._c._method_names()}
        else:
            codes = {name: code_of(method) for name, method in inner._type.methods.items()}
        found |= {f"{path}.{name}": normalised(code) for name, code in codes.items()}
    return found


def class_name(module: Any, library: str) -> str:
    """The qualified name of a compiled module's class."""
    found: str = str(module._c._type()) if library == "torch" else module._type.qualified_name
    return found
