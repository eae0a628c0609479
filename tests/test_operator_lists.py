"""What is true of an operator stands on its row: no list of operators anywhere else.

The test reads the package without running it, and looks for literals (lists, sets, tuples, keys of
dicts, text that is split into words, cases of `match`) that name more than five operators. Modules
that declare rows are left out, and so is the index, which is written from them.

`python tests/test_operator_lists.py` prints what there is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from flambeau._ops.table import index

PACKAGE = Path(__file__).parents[1] / "flambeau"
SCHEMAS = PACKAGE / "jit" / "operators" / "schemas.txt"
MOST = 5
NAMESPACES = ("aten::", "torch.", "Tensor.", "nn.functional.")
WORD = re.compile(r"[\w.:]+")

ALLOWED: dict[tuple[str, str], str] = {
    ("_compiler/emitter.py", "COMPARISONS"): "primitives of kernels and their LLVM predicates",
    (
        "_compiler/expressions.py",
        "COMPARE",
    ): "Python's comparisons, by the classes of its syntax tree",
    ("_compiler/gpu/fast.py", "COMMON"): "those of `SHORT` that both half types have",
    ("_compiler/gpu/fast.py", "SHORT"): "primitives of kernels that GPUs compute in a short form",
    ("_compiler/kernel_source.py", "MADE"): "primitives whose kernel text is more than a call",
    ("_compiler/kernel_source.py", "ASKS"): "primitives that give bools",
    ("_compiler/kernel_source.py", "SAME"): "primitives whose NumPy name is the kernel's",
    ("_tensor/symbolic_numbers.py", "WORDS"): "Python's operators, as special methods of numbers",
    ("_tensor/symbolic_rules.py", "RULES"): "Python's operators on expressions of numbers",
    ("_compiler/primitives.py", "_UFUNCS"): "the primitives of expressions: NumPy's ufuncs",
    ("_compiler/row_numpy.py", "ASKING"): "primitives that give bools, in NumPy",
    ("_core/dtype.py", "ALIASES"): "torch's further names of element types",
    ("_ops/sparse/table.py", "ANYWHERE"): "methods of sparse tensors, no rows",
    ("_ops/table/binder.py", "CHECKS"): "types of parameters, no operators",
    ("_ops/table/bit_methods.py", "ABOUT_MEMORY"): "methods of Tensor, no rows",
    ("_ops/table/graph_tools.py", ""): "what `autograd` is handed, which stands below rows",
    (
        "_ops/table/namespace.py",
        "INPLACE_OPERATORS",
    ): "Python's operators, and the rows that they are",
    ("_ops/table/namespace.py", "OPERATORS"): "Python's operators, and the rows that they are",
    (
        "_ops/table/overrides.py",
        "UNGUARDED",
    ): "functions of Python that ask no __torch_function__ in torch",
    ("_ops/transforms/expressions.py", "PUBLIC"): "primitives, and the operators that they are",
    ("_runtime/cuda/libraries/cudnn_numbers.py", "MODES"): "cuDNN's numbers",
    ("_runtime/cuda/libraries/stand_in/cudnn_operations.py", "POINTWISE"): "cuDNN's operations",
    ("_tensor/interop.py", "COMPARISONS"): "NumPy's ufuncs, and Python's operators that they are",
    ("_tensor/interop.py", "OPERATORS"): "NumPy's ufuncs, and Python's operators that they are",
    ("_tensor/interop.py", "SIGNS"): "the same, as Python's errors write them",
    ("_tensor/numberless.py", "LOOKS"): "attributes of NumPy's arrays that look at numbers",
    ("_tensor/overriding.py", "BINARY"): "Python's operators",
    (
        "_tensor/overriding.py",
        "CALLED",
    ): "names that PyTorch gives Python's operators for __torch_function__",
    ("_warmup.py", "BINARY"): "the calls that a warm-up makes: common programs, no property",
    ("_warmup.py", "UNARY"): "the calls that a warm-up makes: common programs, no property",
    ("_warmup.py", "activations"): "the calls that a warm-up makes: common programs, no property",
    ("_warmup.py", "totals"): "the calls that a warm-up makes: common programs, no property",
    ("autograd/batched_checks.py", "WRITES"): "methods that write; `autograd` stands below rows",
    (
        "debug/advice/broadcasts.py",
        "ON_PURPOSE",
    ): "how programs ask for a shape: a judgement of this advice",
    (
        "debug/advice/composed.py",
        "FORMULAS",
    ): "formulas by hand that have a function, each with its own text",
    ("_tensor/method_names.py", "IN_PYTHON"): "methods that PyTorch writes in Python: their names",
    ("distributed/tensor/operators.py", "SIZES"): "operators of ATen whose sizes are the whole's",
    ("distributed/tensor/rules/along.py", "TERMS"): "which sum of parts each of these leaves",
    (
        "distributed/tensor/rules/along.py",
        "RULES",
    ): "rules of tensors in parts, by operator of ATen",
    (
        "distributed/tensor/rules/pointwise.py",
        "LIKE_POINTWISE",
    ): "operators of ATen that are no rows",
    ("distributed/tensor/rules/products.py", "RULES"): "rules of tensors in parts",
    ("distributed/tensor/rules/special.py", "HANDLERS"): "rules of tensors in parts",
    ("distributed/tensor/rules/views.py", "PLACES"): "where the dims stand that a view names",
    ("nested/_jagged_forms.py", ""): "reductions by rows: what their dims mean for ragged ones",
    ("nested/_shared.py", "SAME_SIZES"): "names as classes are shown them, Python's among them",
    ("distributed/stores/table.py", "OPERATIONS"): "messages of a key-value store",
    ("fx/code_generation.py", "INFIX"): "functions of Python's `operator`",
    ("fx/immutable_collections.py", "WRITERS"): "methods of lists and dicts",
    (
        "jit/archive/upgraders.py",
        "UNCHANGED",
    ): "old versions of operators in files: PyTorch's published upgrades",
    (
        "jit/archive/upgraders.py",
        "UPGRADERS",
    ): "old versions of operators in files: PyTorch's published upgrades",
    (
        "jit/frontend/augmented.py",
        "OPERATORS",
    ): "Python's operators, by the classes of its syntax tree",
    ("jit/frontend/builtins.py", "CMATH"): "functions of Python's `cmath`",
    ("jit/frontend/builtins.py", "JIT"): "functions of `torch.jit`",
    ("jit/frontend/builtins.py", "MATH"): "functions of Python's `math`",
    (
        "jit/frontend/expressions.py",
        "BINARY",
    ): "Python's operators, by the classes of its syntax tree",
    ("jit/frontend/names.py", "CASTS"): "Python's builtin types",
    ("jit/frontend/names.py", "MAGIC_OPERATORS"): "Python's builtin functions",
    ("jit/frontend/names.py", "OPERATORS"): "Python's builtin functions",
    ("jit/frontend/simple_value.py", "ATEN"): "attributes of tensors in scripts",
    ("jit/modules/classes.py", "MAGIC"): "special methods of classes",
    (
        "jit/operators/builtin_functions.py",
        "NUMBER_FIRST",
    ): "operators on numbers of scripts, which are no rows",
    (
        "jit/operators/builtin_functions.py",
        "NUMBER_FIRST_LINES",
    ): "operators on numbers of scripts, which are no rows",
    (
        "jit/operators/containers.py",
        "",
    ): "where operators on containers are defined: scripts' own rows",
    (
        "jit/operators/layers.py",
        "",
    ): "where operators are defined whose schemas differ from the rows': scripts' own rows",
    (
        "jit/operators/number_functions.py",
        "COMPLEX",
    ): "where operators on numbers are defined: scripts' own rows",
    (
        "jit/operators/number_functions.py",
        "REAL",
    ): "where operators on numbers are defined: scripts' own rows",
    ("jit/operators/numbers.py", ""): "where operators on numbers are defined: scripts' own rows",
    (
        "jit/operators/numbers.py",
        "COMPARISONS",
    ): "where operators on numbers are defined: scripts' own rows",
    ("jit/operators/rows.py", "UNLIKE"): "overloads of ATen that differ from the row of their name",
    (
        "jit/operators/sizes.py",
        "SIZES",
    ): "where operators on containers and text are measured, which are no rows",
    ("jit/operators/strings.py", ""): "where operators on text are defined: scripts' own rows",
    ("jit/operators/tensors.py", ""): "where attributes of tensors are defined: scripts' own rows",
    ("jit/operators/work.py", "DEEP"): "operators on containers, which are no rows",
    (
        "jit/operators/work.py",
        "FAMILIES",
    ): "estimates of work, one function for the arguments of each family",
    ("jit/operators/work.py", "QUICK"): "operators on containers, which are no rows",
    ("jit/operators/work.py", "looks"): "operators on containers and text, which are no rows",
    ("jit/optimise/facts.py", "listed"): "operators on lists, which are no rows",
    ("jit/optimise/scans/assembly.py", "REGULAR"): "primitives of kernels",
    (
        "jit/optimise/scans/rounds.py",
        "PARTS",
    ): "nodes that a rule of scans is written for, each by its arguments",
    ("jit/passes/normalise.py", "OF_ATEN"): "names that are one operator in ATen",
    ("jit/passes/peepholes.py", "RULES"): "rules of rewriting, one function each",
    ("jit/trace/recipes.py", "NAMES"): "Python's operators, and further names in ATen",
    ("jit/trace/recipes_of_functional.py", ""): "functions that take `inplace`, in Python",
    (
        "jit/trace/regions.py",
        "PRODUCTS",
    ): "composites that a trace records whole, before their rows are cast",
    ("jit/trace/sizes.py", ""): "Python's comparisons of sizes",
    ("func/without_writes.py", "BACK"): "the way back through each view of ATen, below rows",
    ("nn/init.py", "GAINS"): "PyTorch's published gains",
    ("nn/uninitialized.py", "OF_AUTOGRAD"): "attributes of tensors",
    ("nn/uninitialized.py", "PASSING"): "methods that PyTorch allows on parameters without shape",
    ("optim/formulas.py", "WORDS"): "primitives of expressions that optimizers may use",
    ("profiler/composites.py", "METHODS"): "methods of Tensor, no rows",
    ("profiler/composites.py", "QUESTIONS"): "functions of rows that are no operators in PyTorch",
    (
        "profiler/flops.py",
        "FORMULAS",
    ): "PyTorch's published formulas of its profiler, one function each",
    (
        "profiler/names.py",
        "SHAPES",
    ): "operators whose shapes are shown in another order, one function each",
    (
        "profiler/names.py",
        "_BY_COUNT",
    ): "how many arguments PyTorch's operators have where rows have others",
    ("return_types.py", "NAMES"): "the public names of the module",
}
"""(file, what the literal is assigned to, or the function that it stands in): the reason."""


class Found(NamedTuple):
    """A literal that names operators."""

    file: str
    holder: str
    line: int
    operators: tuple[str, ...]

    def __str__(self) -> str:
        shown = " ".join(self.operators[:8])
        return f"{self.file}:{self.line} {self.holder} ({len(self.operators)}): {shown}"


@cache
def operators() -> frozenset[str]:
    """Names of rows, of what Tensor has of them, and of ATen's operators in scripts."""
    tables = (index.NAMES, index.ATTRIBUTES)
    names = {name for table in tables for words in table.values() for name in words.split()}
    names |= {name.rpartition(".")[2] for name in names}
    names |= set(re.findall(r"^aten::(\w+)", SCHEMAS.read_text(encoding="utf-8"), re.MULTILINE))
    return frozenset(names | {f"{name}_" for name in names})


def is_operator(word: str) -> bool:
    """Whether a word names an operator, an overload of one or the namespace before it included."""
    for prefix in NAMESPACES:
        word = word.removeprefix(prefix)
    return word in operators() or word.partition(".")[0] in operators() and "." in word


def words(node: ast.AST) -> list[str]:
    """The words that one literal lists."""
    if isinstance(node, ast.Set | ast.List | ast.Tuple):
        return [word for item in node.elts for word in listed(item)]
    if isinstance(node, ast.Dict):
        return [word for key in node.keys if key is not None for word in listed(key)]
    if isinstance(node, ast.Match):
        return [word for case in node.cases for word in constants(case.pattern)]
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "dict":
        return [keyword.arg for keyword in node.keywords if keyword.arg]
    split = text(node).split()
    return split if all(map(WORD.fullmatch, split)) else []


def text(node: ast.AST) -> str:
    """The text of a string; "" for anything else."""
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return node.value if is_text else ""  # type: ignore[union-attr]


def listed(item: ast.expr) -> list[str]:
    """The words of an item: a string, or a tuple or call that begins with one."""
    if isinstance(item, ast.Tuple | ast.List):
        return text(item.elts[0]).split() if item.elts else []
    if isinstance(item, ast.Call):
        return text(item.args[0]).split() if item.args else []
    return text(item).split()


def constants(pattern: ast.AST) -> Iterator[str]:
    for node in ast.walk(pattern):
        if text(node):
            yield text(node)


def literals(tree: ast.AST, holder: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every literal with what holds it; docstrings and the parts of formatted text apart."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and text(node.value) or isinstance(node, ast.JoinedStr):
            continue
        inner = name_of(node) or holder
        yield inner, node
        yield from literals(node, inner)


def name_of(node: ast.AST) -> str:
    """What a statement defines: the name of a function, a class or a variable."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0])
    return ast.unparse(node.target) if isinstance(node, ast.AnnAssign) else ""


def lists(path: Path) -> Iterator[Found]:
    """What a file names of operators, the pieces of one constant together."""
    file = path.relative_to(PACKAGE).as_posix()
    held: dict[str, list[tuple[int, list[str]]]] = {}
    for holder, node in literals(ast.parse(path.read_text(encoding="utf-8"))):
        found = words(node)
        if found and holder != "__all__":
            held.setdefault(holder, []).append((getattr(node, "lineno", 0), found))
    for holder, parts in held.items():
        together = (parts[0][0], [word for _, found in parts for word in found])
        for line, found in [together, *parts] if holder.isupper() else parts:
            named = sorted(set(filter(is_operator, found)))
            if len(named) > MOST and 2 * len(named) >= len(set(found)):
                yield Found(file, holder, line, tuple(named))
                break


def outside_rows() -> Iterator[Found]:
    """The lists of all files but those of rows."""
    declaring = {name for names in (index.NAMES, index.ATTRIBUTES) for name in names if names[name]}
    own = {f"_ops/{name.replace('.', '/')}.py" for name in declaring} | {"_ops/table/index.py"}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).as_posix() not in own:
            yield from lists(path)


def test_operators_are_listed_nowhere_but_on_rows() -> None:
    wrong = [str(found) for found in outside_rows() if (found.file, found.holder) not in ALLOWED]
    assert not wrong, "say it on the rows, and ask them:\n" + "\n".join(wrong)


def test_every_exception_is_needed() -> None:
    there = {(found.file, found.holder) for found in outside_rows()}
    assert set(ALLOWED) <= there, sorted(set(ALLOWED) - there)


def test_lists_are_found(tmp_path: Path) -> None:
    forms = (
        'X = {"add", "sub", "mul", "div", "neg", "exp"}',
        'X = ("add sub mul "\n"div neg exp").split()',
        'X = frozenset(("add", "sub", "mul")) | {"div", "neg", "exp"}',
        'X = {"aten::add": 1, "aten::sub.Tensor": 2, "mul": 3, "div": 4, "neg": 5, "exp_": 6}',
        'def f(x):\n    return x in ("add", "sub", "mul", "div", "neg", "exp")',
        'def f(x):\n    match x:\n        case "add" | "sub" | "mul" | "div" | "neg": pass\n'
        '        case "exp": pass',
        "def f():\n    return dict(add=1, sub=2, mul=3, div=4, neg=5, exp=6)",
    )
    for form in forms:
        tree = ast.parse(form)
        named = {word for _, node in literals(tree) for word in words(node) if is_operator(word)}
        assert len(named) > MOST, form
    assert not words(ast.parse('"Add, sub, mul: three operators."').body[0].value)  # type: ignore[attr-defined]


if __name__ == "__main__":
    for one in outside_rows():
        print("allowed" if (one.file, one.holder) in ALLOWED else "       ", one)
