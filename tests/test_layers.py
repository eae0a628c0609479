"""Imports point down, and files stay small.

`python tests/test_layers.py` prints the size report.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "flambeau"

# What stands directly in flambeau/, from the bottom up. A new package gets its layer here.
LAYERS = [
    {"_version"},
    {"torch_version", "__future__", "_core"},
    {"_compiler"},
    {"_runtime"},
    {"_tensor"},
    {"autograd"},
    {"_ops"},
    {"cuda"},
    {
        "nn", "optim", "amp", "utils", "serialization", "testing",
        "linalg", "fft", "special", "random", "version", "backends", "types",
        "distributions", "overrides", "hub", "compiler", "storage", "futures",
        "masked", "signal", "cpu", "return_types", "functional", "accelerator", "mps", "mtia",
        "xpu", "sparse", "quasirandom", "_utils", "_tensor_str", "_prims_common", "onnx",
    },
    {"_subclasses"},
    {
        "jit", "func", "multiprocessing", "profiler", "fx", "_dynamo", "nested",
        "ao", "distributed", "package",
    },
    {"debug", "library", "_C", "_functorch", "_higher_order_ops", "_jit_internal", "_guards"},
    {
        "__init__", "__main__", "_lookup", "__config__", "cli", "_commands",
        "_environment", "_notebook", "_warmup", "hook",
    },
]  # fmt: skip

LAYER_OF = {name: layer for layer, names in enumerate(LAYERS) for name in names}

# (file, what it imports): imports against the rule, each with its reason. Keep it short.
ALLOWED: dict[tuple[str, str], str] = {
    ("_tensor/interop.py", ""): "the array API standard asks a tensor for the package's top",
    ("serialization/rebuild.py", "nn"): "a file may hold Parameters; nn is loaded when one is met",
    ("jit/annotations.py", "_jit_internal"): "marks of types have two homes in PyTorch",
    ("utils/model_zoo.py", "hub"): "an older name of what torch.hub loads",
    ("utils/collect_env.py", ""): "a report names the version; loaded when it is asked for",
    ("utils/collect_env.py", "version"): "the same",
    (
        "nn/parallel/distributed.py",
        "distributed.data_parallel",
    ): "torch.nn.parallel is its home in PyTorch; loaded when it is asked for",
    ("utils/data/distributed.py", "distributed"): "a sampler asks the group of processes, if any",
    ("hub.py", "serialization"): "torch.hub loads the checkpoints that it fetches",
    ("optim/swa_utils.py", "nn"): "an averaged model is a module; loaded when it is asked for",
    (
        "utils/data/archives/decoding.py",
        "serialization.safetensors.torch",
    ): "a field of a sample may be such a file; the reader is loaded when one is met",
    (
        "utils/data/datapipes/utils/decoder.py",
        "serialization",
    ): "a file of a sample may be a checkpoint; the reader is loaded when one is met",
    ("autograd/profiler.py", "profiler.autograd_profile"): "an older name of torch.profiler",
    ("autograd/profiler.py", "profiler.event_list"): "an older name of torch.profiler",
    ("autograd/profiler.py", "profiler.function_event"): "an older name of torch.profiler",
    ("autograd/profiler.py", "profiler.kinds"): "an older name of torch.profiler",
    ("autograd/profiler_util.py", "profiler.event_list"): "an older name of torch.profiler",
    ("autograd/profiler_util.py", "profiler.function_event"): "an older name of torch.profiler",
    ("cpu/amp/__init__.py", "amp.old_names"): "torch.cpu.amp is an old name of torch.amp",
    (
        "cuda/graphed_callables.py",
        "utils._pytree",
    ): "arguments and results of what becomes a graph are trees",
    ("utils/benchmark/utils/timer.py", ""): "statements that are measured see the name torch",
    (
        "utils/flop_counter/formulas.py",
        "library.overloads",
    ): "formulas are filed by operator; loaded when a program counts",
    ("utils/module_tracker.py", "nn.module_hooks"): "it follows the calls of modules",
    ("cuda/amp/__init__.py", "amp.old_names"): "torch.cuda.amp is an old name of torch.amp",
}

FILE_LIMIT = 600
ROWS_LIMIT = 800
FILE_ASKS_FOR_THOUGHT = 400
FUNCTION_ASKS_FOR_THOUGHT = 40


@dataclass(frozen=True)
class Import:
    """One import of flambeau's own: `flambeau/<importer>` line `line` takes `target`."""

    importer: str
    line: int
    target: str

    def __str__(self) -> str:
        return f"flambeau/{self.importer}:{self.line} imports flambeau.{self.target}"


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_in_package(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def top_level(dotted: str) -> str:
    """The entry of flambeau/ that a dotted name or a path belongs to; the package is __init__."""
    return dotted.replace("/", ".").removesuffix(".py").partition(".")[0] or "__init__"


def is_type_checking(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in {getattr(test, "id", None), getattr(test, "attr", None)}


def running_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below, except under `if TYPE_CHECKING:`, which never runs."""
    waiting = list(ast.iter_child_nodes(node))
    for child in waiting:  # which grows meanwhile
        if isinstance(child, ast.If) and is_type_checking(child.test):
            waiting += child.orelse
        elif not isinstance(child, ast.expr):
            yield child
            waiting += ast.iter_child_nodes(child)


def absolute_base(path: Path, node: ast.ImportFrom) -> list[str]:
    """The dotted name, in parts, that `from X import ...` takes from."""
    named = node.module.split(".") if node.module else []
    if node.level == 0:
        return named
    folder = ["flambeau", *path.relative_to(PACKAGE).parent.parts]
    return folder[: len(folder) - node.level + 1] + named


def targets(path: Path, node: ast.AST) -> list[str]:
    """The modules that one statement imports, below flambeau ("" for the package itself)."""
    if isinstance(node, ast.Import):
        dotted = [alias.name.split(".") for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = absolute_base(path, node)
        # `from . import graph` and `from flambeau import nn` name modules only if they exist.
        dotted = [
            [*base, alias.name] if is_module(base, alias.name) else base for alias in node.names
        ]
    else:
        return []
    return [".".join(parts[1:]) for parts in dotted if parts[:1] == ["flambeau"]]


def is_module(base: list[str], name: str) -> bool:
    folder = PACKAGE.joinpath(*base[1:])
    return (folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists()


@cache
def imports(path: Path) -> list[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    return [
        Import(name_in_package(path), getattr(node, "lineno", 0), target)
        for node in running_nodes(tree)
        for target in targets(path, node)
    ]


def points_down(found: Import) -> bool:
    importer, target = top_level(found.importer), top_level(found.target)
    return importer == target or LAYER_OF[target] < LAYER_OF[importer]


def is_top_of_the_package(found: Import) -> bool:
    """`__init__`, the hook and the command line stand in one layer and may use one another."""
    top = LAYERS[-1]
    return top_level(found.importer) in top and top_level(found.target) in top


def test_every_entry_has_a_layer():
    present = {top_level(name_in_package(path)) for path in files()}
    assert present <= set(LAYER_OF), "give these a layer in tests/test_layers.py"


@pytest.mark.parametrize("path", files(), ids=name_in_package)
def test_imports_point_down(path: Path):
    against = [
        str(found)
        for found in imports(path)
        if not points_down(found)
        and not is_top_of_the_package(found)
        and (found.importer, found.target) not in ALLOWED
    ]
    assert against == []


def test_allowances_are_needed():
    used = {(found.importer, found.target) for path in files() for found in imports(path)}
    assert set(ALLOWED) <= used, "an allowance that nothing needs"


def test_torch_is_never_imported():
    mentioned = re.compile(r"^\s*(from torch\b|import\b.*\btorch\b)", re.MULTILINE)
    for path in files():
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if mentioned.search(text) else ():
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            assert "torch" not in {name.partition(".")[0] for name in names}, path


def line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("path", files(), ids=name_in_package)
def test_file_size(path: Path):
    limit = ROWS_LIMIT if top_level(name_in_package(path)) == "_ops" else FILE_LIMIT
    assert line_count(path) <= limit


@pytest.mark.parametrize(
    ("importer", "statement", "expected"),
    [
        ("_tensor/storage.py", "from .._ops import add", ["_ops"]),
        ("_tensor/storage.py", "from . import printing", ["_tensor.printing"]),
        ("_core/dtype.py", "from .device import device", ["_core.device"]),
        ("cli.py", "from . import hook", ["hook"]),
        ("cli.py", "import flambeau.hook, numpy", ["hook"]),
        ("cli.py", "from flambeau import hook, tensor", ["hook", ""]),
        ("cli.py", "def f():\n    import flambeau", [""]),
        ("cli.py", "if TYPE_CHECKING:\n    import flambeau", []),
    ],
)
def test_the_walk_itself(importer: str, statement: str, expected: list[str]):
    path = PACKAGE / importer
    nodes = running_nodes(ast.parse(statement))
    assert [target for node in nodes for target in targets(path, node)] == expected


def long_functions(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_ASKS_FOR_THOUGHT:
                yield length, f"{name_in_package(path)}:{node.lineno} {node.name}"


def size_report() -> Iterator[str]:
    """The totals, then files and functions to think about again, largest first."""
    sizes = sorted(((line_count(path), name_in_package(path)) for path in files()), reverse=True)
    yield f"flambeau/: {sum(size for size, _ in sizes)} lines in {len(sizes)} files"
    for size, name in sizes:
        if size > FILE_ASKS_FOR_THOUGHT:
            yield f"{size:6} {name}"
    for length, where in sorted(
        (row for path in files() for row in long_functions(path)), reverse=True
    ):
        yield f"{length:6} {where}"


if __name__ == "__main__":
    print(*size_report(), sep="\n")
