"""The reference: a page for each public name, written from its docstring and its rows.

Pages are written into `docs/reference` when a build begins, and only where they have changed, so
that a second build reads little. Names of PyTorch that are missing are listed with what to use
instead (`instead.py`).
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rows
import speed
from docstring_text import inline, to_rst
from instead import what_instead

import flambeau
from flambeau._core.absent import AbsentClass
from flambeau._core.missing import torch_names
from flambeau._tensor.sparse import SparseTensor

NAMESPACES = {
    "torch": "Functions of tensors",
    "torch.Tensor": "Methods and attributes of tensors",
    "torch.nn": "Layers and losses",
    "torch.nn.functional": "The same as functions",
    "torch.nn.init": "First values of parameters",
    "torch.nn.utils": "Clipping, norms, parametrizations",
    "torch.nn.utils.rnn": "Sequences of different lengths",
    "torch.nn.utils.parametrize": "Parameters that are computed",
    "torch.nn.utils.prune": "Pruning",
    "torch.optim": "Optimizers",
    "torch.optim.lr_scheduler": "Schedules of learning rates",
    "torch.optim.swa_utils": "Averages of weights",
    "torch.utils.data": "Datasets, samplers, loaders",
    "torch.utils.checkpoint": "Memory for time",
    "torch.autograd": "Gradients",
    "torch.autograd.forward_ad": "Forward mode",
    "torch.autograd.functional": "Jacobians and Hessians",
    "torch.autograd.graph": "The graph, and what it saves",
    "torch.autograd.profiler": "The older profiler",
    "torch.func": "Transforms of functions",
    "torch.amp": "Mixed precision",
    "torch.linalg": "Linear algebra",
    "torch.fft": "Fourier transforms",
    "torch.special": "Special functions",
    "torch.signal.windows": "Windows",
    "torch.distributions": "Random variables",
    "torch.masked": "Masked tensors' functions",
    "torch.sparse": "Sparse tensors",
    "torch.jit": "TorchScript",
    "torch.fx": "Graphs of programs",
    "torch.library": "Operators of programs",
    "torch.overrides": "Classes that take functions over",
    "torch.serialization": "Files",
    "torch.profiler": "Where the time goes",
    "torch.testing": "Comparisons in tests",
    "torch.random": "Random streams",
    "torch.multiprocessing": "Processes that share tensors",
    "torch.cuda": "GPUs",
    "torch.hub": "Models by name",
}
OWN = {"flambeau.debug": "Tools of flambeau's own", "flambeau.hook": "The import hook"}
"""Modules that PyTorch does not have."""


class Name:
    """A public name: its object, and the page that it gets."""

    def __init__(self, namespace: str, name: str, value: Any) -> None:
        self.namespace, self.name, self.value = namespace, name, value
        self.is_class = inspect.isclass(value)
        self.page = f"{name}-class" if self.is_class else name  # Tensor and tensor, on any disk

    @property
    def dotted(self) -> str:
        return f"{self.namespace}.{self.name}"

    @property
    def doc(self) -> str:
        if not (self.is_class or callable(self.value)):
            return ""
        own = self.value.__dict__.get("__doc__") if self.is_class else inspect.getdoc(self.value)
        return inspect.cleandoc(own or "")

    @property
    def summary(self) -> str:
        if not (self.is_class or callable(self.value)):
            return f"`{' '.join(repr(self.value).split())[:60]}`" if _is_plain(self.value) else ""
        return " ".join(self.doc.partition("\n\n")[0].split())


def _is_plain(value: Any) -> bool:
    return isinstance(value, (int, float, str, bool, type(flambeau.float32)))


def find(dotted: str) -> Any:
    """The object of a dotted name of `torch` or `flambeau`."""
    value: Any = flambeau
    for part in dotted.split(".")[1:]:
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(f"{value.__name__}.{part}")
    return value


def public_names(namespace: str) -> Iterator[Name]:
    """The names of a namespace that flambeau has, modules left out."""
    where = find(namespace)
    if namespace in OWN:
        names = getattr(where, "__all__", None) or ["install", "uninstall"]
    else:
        begins = f"{namespace}."
        listed = [n.removeprefix(begins) for n in torch_names() if n.startswith(begins)]
        names = [name for name in listed if "." not in name]
    for name in sorted(names, key=lambda name: (name.lower(), name)):
        try:
            value = getattr(where, name)
        except (AttributeError, RuntimeError):
            continue
        if not (inspect.ismodule(value) or isinstance(value, AbsentClass)):
            yield Name(namespace, name, value)


def signature(name: Name) -> str:
    """`(input, dim=None)`, without annotations that are text of the source.

    A tensor's method is shown as it is called: without the tensor, and without the `out` of the
    function that it shares.
    """
    try:
        found = inspect.signature(name.value)
    except (TypeError, ValueError):
        return "(...)"
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    if name.namespace == "torch.Tensor":
        this = int(bare[:1] != [] and bare[0].kind is not inspect.Parameter.VAR_POSITIONAL)
        bare = [p for p in bare[this:] if p.name != "out"]
    text = str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return "(...)" if "<" in text or "\n" in text else text.replace("\\", "\\\\")


def methods(value: type) -> list[tuple[str, str]]:
    """(name, summary) of the methods that a class itself documents."""
    found = []
    for name, member in vars(value).items():
        doc = inspect.cleandoc(getattr(member, "__doc__", None) or "")
        if name == "forward" and not doc:
            doc = "What a call of the module computes."
        shown = callable(member) or isinstance(member, (property, classmethod, staticmethod))
        if doc and shown and not name.startswith("_"):
            head = name + (_arguments(member) if name == "forward" else "")
            found.append((head, " ".join(doc.partition("\n\n")[0].split())))
    return found


def _arguments(method: Any) -> str:
    """`(input, target)`: what a call of a module takes."""
    found = inspect.signature(method).parameters.values()
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found][1:]
    return str(inspect.Signature(bare))


def rows_behind(name: Name) -> tuple[str, list[Any]]:
    """The key below `torch` of a function, and the rows of the table that it stands for."""
    key = name.dotted.removeprefix("torch.")
    if name.is_class or not callable(name.value):
        return key, []
    return key, rows.rows_of(key) or rows.rows_of(key.removeprefix("special."))


def page(name: Name, times: speed.Times | None = None) -> list[str]:
    """The page of one name."""
    title = escaped_title(name.dotted)
    kind = "class" if name.is_class else "function"
    lines = [title, "=" * len(title), ""]
    if not (name.is_class or callable(name.value)):
        return [*lines, f".. py:data:: {name.dotted}", "", inline(name.summary), ""]
    lines += [f".. py:{kind}:: {name.dotted}{signature(name)}", ""]
    lines += _indented(to_rst(name.doc))
    if name.is_class:
        lines += _table("Methods", methods(name.value))
    key, found = rows_behind(name)
    lines += speed.section(key, times) if times and found else []
    for op in found:
        heading = "What the row says" if len(found) == 1 else f"``{op.full_name}``"
        lines += ["", heading, "-" * len(heading), "", *rows.section(op)]
    return lines


def escaped_title(text: str) -> str:
    return text.replace("_", r"\_")


def _table(heading: str, items: list[tuple[str, str]]) -> list[str]:
    if not items:
        return []
    lines = ["", heading, "-" * len(heading), "", ".. list-table::", "   :widths: 30 70", ""]
    for name, summary in items:
        lines += [f"   * - ``{name}``", f"     - {inline(summary)}"]
    return [*lines, ""]


def index_page(namespace: str, title: str, names: list[Name]) -> list[str]:
    """The page of a namespace: its names, each with a line."""
    rest = title if title[:2].isupper() else title[:1].lower() + title[1:]  # "GPUs" as it is
    head = f"{namespace}: {rest}"
    lines = [head, "=" * len(head), ""]
    module_doc = inspect.getdoc(find(namespace)) or ""
    if inspect.ismodule(find(namespace)):
        lines += [inline(" ".join(module_doc.partition("\n\n")[0].split())), ""]
    folder = namespace
    for name in names:
        link = f":doc:`{name.name} <{folder}/{name.page}>`"
        lines.append(f"* {link}" + (f" — {inline(name.summary)}" if name.summary else ""))
    lines += ["", ".. toctree::", "   :hidden:", ""]
    return [*lines, *[f"   {folder}/{name.page}" for name in names], ""]


def tensor_page(names: list[Name]) -> list[str]:
    """All methods of tensors on one page: most have their own page as functions."""
    head = "torch.Tensor: methods and attributes"
    lines = [head, "=" * len(head), "", "Methods that are functions too have their page there.", ""]
    has_page = {n.name for n in public_names("torch")}
    for name in names:
        if not callable(name.value):
            doc = inspect.getdoc(name.value) if isinstance(name.value, property) else None
            lines += [f".. py:attribute:: {name.dotted}", ""]
            lines += _indented(to_rst(doc or _constant(name)))
            continue
        lines += [f".. py:method:: {name.dotted}{signature(name)}", ""]
        base = name.name.removesuffix("_")
        if base in has_page and not base.startswith("_"):
            see = f"See :doc:`torch.{base} <torch/{base}>`."
            lines += _indented([inline(name.summary), "", see, ""])
        else:
            lines += _indented(to_rst(name.doc))
    return lines


def _constant(name: Name) -> str:
    """An attribute that is the same for all tensors of a class."""
    of_sparse = getattr(SparseTensor, name.name)
    other = f", of sparse tensors `{of_sparse!r}`" if of_sparse != name.value else ""
    return f"`{name.value!r}`{other}."


def _indented(lines: list[str]) -> list[str]:
    return [f"   {line}".rstrip() for line in lines]


def missing_page() -> list[str]:
    """The names of PyTorch that are not there, with what to use instead."""
    head = "Names that are missing"
    lines = [head, "=" * len(head), "",
             "Each raises an error that names it when it is looked up; ``hasattr`` is False.", ""]  # fmt: skip
    for namespace in sorted({n.rpartition(".")[0] for n in torch_names()}):
        absent = [n for n in _absent(namespace) if not n.startswith("_")]
        if absent:
            lines += [
                namespace,
                "-" * len(namespace),
                "",
                ".. list-table::",
                "   :widths: 35 65",
                "",
            ]
            for name in absent:
                lines += [f"   * - ``{name}``", f"     - {inline(what_instead(namespace, name))}"]
            lines.append("")
    return lines


def _absent(namespace: str) -> list[str]:
    begins = f"{namespace}."
    names = [n.removeprefix(begins) for n in torch_names() if n.startswith(begins)]
    return sorted(n for n in names if "." not in n and not _is_there(f"{begins}{n}"))


def _is_there(dotted: str) -> bool:
    try:
        return not isinstance(find(dotted), AbsentClass)
    except (AttributeError, ImportError, RuntimeError):
        return False


def write(path: Path, lines: list[str]) -> None:
    """Write a page, if it is not there already as it is."""
    text = "\n".join([":orphan:", "", *lines, ""]) if path.name == "unlisted" else "\n".join(lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def all_names() -> Iterator[Name]:
    """The names that get a page of their own."""
    for namespace in NAMESPACES:
        yield from public_names(namespace) if namespace != "torch.Tensor" else ()


def write_all(app: Any) -> None:
    """Write `docs/reference`."""
    folder = Path(app.srcdir) / "reference"
    top = ["The reference", "=============", "",
           "Signatures, and what docstrings say; of operators also what their row says: formula, "
           "gradient, types, and the text of the kernel.", "", ".. list-table::",
           "   :widths: 40 60", ""]  # fmt: skip
    times = speed.times(folder, speed.calls(map(rows_behind, all_names())))
    for namespace, title in {**NAMESPACES, **OWN}.items():
        names = list(public_names(namespace))
        if namespace == "torch.Tensor":
            write(folder / f"{namespace}.rst", tensor_page(names))
        else:
            write(folder / f"{namespace}.rst", index_page(namespace, title, names))
            for name in names:
                write(folder / namespace / f"{name.page}.rst", page(name, times))
        top += [f"   * - :doc:`{namespace} <{namespace}>`", f"     - {title}"]
    write(folder / "missing.rst", missing_page())
    top += ["   * - :doc:`missing`", "     - What PyTorch has and flambeau has not", ""]
    top += [
        ".. toctree::",
        "   :hidden:",
        "",
        *[f"   {n}" for n in [*NAMESPACES, *OWN]],
        "   missing",
        "",
    ]
    write(folder / "index.rst", top)


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write_all, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
