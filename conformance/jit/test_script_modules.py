"""Scripted modules, classes and functions as Python sees them: what PyTorch prints, we print.

A program is a text with `show(…)` calls, run under both libraries; what it shows is compared:
texts of code, values, and the messages of errors.
"""

import importlib.util
import re
import sys
import warnings

import pytest

HEAD = """
import collections, copy, dataclasses, enum, warnings
from typing import *
import {library} as torch
from {library} import nn
shown = []
def show(*values):
    shown.extend(values)
def fails(function, *args):
    try:
        function(*args)
    except Exception as error:
        shown.append(str(error))
    else:
        shown.append("no error")
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.n = 3
        self.sizes = [1, 2]
        self.strange = object()
        self.register_buffer("scale", torch.ones(2))
    def forward(self, x):
        return self.linear(x) + self.n
    @torch.jit.export
    def twice(self, x: int) -> int:
        return self.helper(x) * 2
    def helper(self, x: int) -> int:
        return x
    @torch.jit.ignore
    def stays(self, x: torch.Tensor) -> torch.Tensor:
        return x + 100
"""

PROGRAMS = {
    "shape of a module": """
m = torch.jit.script(Net())
show(repr(m), m.original_name, m.code, m.twice.code, m.forward.schema, m.n, m.training)
show(list(m.state_dict()), [n for n, _ in m.named_modules()], [n for n, _ in m.named_buffers()])
show(m.twice(3), m.linear.in_features, isinstance(m, nn.Module), m.stays(torch.ones(1)).item())
""",
    "attributes": """
m = torch.jit.script(Net())
m.n = 5
show(m(torch.zeros(1, 3)).shape, m.n)
fails(lambda: m.strange)
fails(lambda: m.nothing)
fails(setattr, m, "q", nn.Parameter(torch.ones(1)))
fails(setattr, m, "sub", nn.Linear(1, 1))
fails(setattr, m, "linear", nn.Linear(1, 1))
fails(setattr, m.linear, "in_features", 4)
fails(m.register_buffer, "c", torch.ones(1))
fails(m.add_module, "c", nn.ReLU())
fails(m.register_forward_hook, print)
fails(m.requires_grad_)
fails(delattr, m, "linear")
m.linear.weight = torch.ones(3, 3)
show(m.linear.weight.tolist())
""",
    "calls": """
m = torch.jit.script(Net())
fails(m, 1, 2, 3)
fails(m)
fails(m.twice, 2.5)
""",
    "copies and modes": """
m = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout(0.5)))
other = copy.deepcopy(m)
other.eval()
show(m.training, other.training, other.original_name)
x = torch.ones(4, 2)
m(x); m(x)
show(m.state_dict()["1.num_batches_tracked"].item())
show(other.state_dict()["1.num_batches_tracked"].item())
show(other.double()(x.double()).dtype == torch.float64, list(m.state_dict()))
""",
    "shared types": """
m = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 3)))
show(m.code)
a, b, c = (str(m.graph).split(f'name="{i}"')[0].rsplit(" : ", 1)[1] for i in range(3))
show(a == b, a == c)
""",
    "containers": """
class Lists(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(1, 1), nn.ReLU()])
        self.named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(1, 1)})
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(1))] * 2)
        self.other = nn.ParameterDict({"x": nn.Parameter(torch.ones(1))})
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        for key, layer in self.named.items():
            x = layer(x)
        for layer in self.named.values():
            x = layer(x)
        for weight in self.weights:
            x = x + weight
        x = self.layers[0](x) + self.layers[-1](x) + self.named["a"](x) + self.other["x"]
        return x * len(self.layers) * len(self.named), "a" in self.named
show(torch.jit.script(Lists()).code)
class ByVariable(Lists):
    def forward(self, x, i: int):
        return self.layers[i](x)
class ByName(Lists):
    def forward(self, x, i: str):
        return self.named[i](x)
class Beyond(Lists):
    def forward(self, x):
        return self.layers[7](x)
class NoKey(Lists):
    def forward(self, x):
        return self.named["zz"](x)
class NoContainer(Net):
    def forward(self, x):
        for part in self.linear:
            x = part(x)
        return x
for kind in (ByVariable, ByName, Beyond, NoKey, NoContainer):
    fails(torch.jit.script, kind())
""",
    "refused attributes": """
class Strange(Net):
    def forward(self, x):
        return self.strange
class Nothing(Net):
    def forward(self, x):
        return self.nothing
class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.mixed = [1, "a"]
    def forward(self, x):
        return self.mixed
class Assigned(Net):
    def forward(self, x):
        self.unheard_of = x
        return x
class NoInit(nn.Module):
    def __init__(self):
        pass
    def forward(self, x):
        return x
class Constant(nn.Module):
    __constants__ = ["k"]
    def __init__(self):
        super().__init__()
        self.k = object()
    def forward(self, x):
        return x
for kind in (Strange, Nothing, Mixed, Assigned, NoInit, Constant):
    fails(torch.jit.script, kind())
""",
    "state": """
class Counter(nn.Module):
    seen: List[int]
    last: Optional[int]
    step: Final[int]
    def __init__(self):
        super().__init__()
        self.seen = []
        self.last = None
        self.step = 2
        self.total = 0
        self.table = {"a": 1}
        self.shape = (3, 4)
    def forward(self, x: int):
        self.seen.append(x)
        self.last = x
        self.total += self.step
        for size in self.shape:
            self.total += size
        if hasattr(self, "table"):
            self.total += self.table["a"]
        return self.seen, self.total
m = torch.jit.script(Counter())
show(m.code, m(4), m(5), m.last, m.total, m.seen)
""",
    "properties and static methods": """
class Properties(nn.Module):
    __jit_unused_properties__ = ["unused"]
    def __init__(self):
        super().__init__()
        self.k = 2
    @property
    def size(self) -> int:
        return self.k
    @size.setter
    def size(self, value: int):
        self.k = value
    @property
    def unused(self):
        return [x for x in range(3) if x]
    @staticmethod
    def triple(x: int) -> int:
        return x * 3
    def forward(self, x):
        self.size = 5
        return x + self.triple(self.size)
m = torch.jit.script(Properties())
show(m.code, m(torch.ones(1)).tolist(), m.k)
""",
    "hooks": """
def before(self, input: Tuple[torch.Tensor]) -> Tuple[torch.Tensor]:
    return (input[0] * 2,)
def after(self, input: Tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
    return output + 1
class Inner(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 10
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.inner.register_forward_pre_hook(before)
        self.inner.register_forward_hook(after)
    def forward(self, x):
        return self.inner(x)
m = torch.jit.script(Outer())
show(m.code, m(torch.ones(1)).item(), m.inner(torch.ones(1)).item())
def no_return(self, input: Tuple[torch.Tensor]):
    return input
def no_tuple(self, input: torch.Tensor) -> None:
    pass
def too_many(self, x: Tuple[torch.Tensor], y: int) -> None:
    pass
def wrong_part(self, x: Tuple[int]) -> None:
    pass
def wrong_result(self, x: Tuple[torch.Tensor]) -> int:
    return 1
for hook in (no_return, no_tuple, too_many, wrong_part, wrong_result):
    inner = Inner()
    inner.register_forward_pre_hook(hook)
    fails(torch.jit.script, inner)
def wrong_output(self, input: Tuple[torch.Tensor], output: int) -> None:
    pass
def too_few(self, input: Tuple[torch.Tensor]) -> None:
    pass
for hook in (wrong_output, too_few):
    inner = Inner()
    inner.register_forward_hook(hook)
    fails(torch.jit.script, inner)
""",
    "interfaces": """
@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass
class AddOne(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1
class Double(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2
class Steps(nn.Module):
    step: Step
    def __init__(self):
        super().__init__()
        self.step = AddOne()
        self.steps = nn.ModuleList([AddOne(), Double()])
    def forward(self, x, k: int):
        chosen: Step = self.steps[k]
        return self.step.forward(x) + chosen.forward(x)
m = torch.jit.script(Steps())
show(m.code, m(torch.ones(1), 0).item(), m(torch.ones(1), 1).item())
m.step = torch.jit.script(Double())
show(m(torch.full((1,), 3.0), 1).item())
""",
    "classes": """
@torch.jit.script
class Point:
    def __init__(self, x: int):
        self.x = x
        self.seen: List[int] = []
    def __add__(self, other: "Point") -> "Point":
        return Point(self.x + other.x)
    def __len__(self) -> int:
        return self.x
    def __getitem__(self, i: int) -> int:
        return i + self.x
    def __contains__(self, i: int) -> bool:
        return i == self.x
    @property
    def double(self) -> int:
        return self.x * 2
    @double.setter
    def double(self, value: int):
        self.x = value
def use(x: int):
    p = Point(x)
    q = p + p
    q.double = 7
    return q[1], len(q), 3 in q, q.double, q
s = torch.jit.script(use)
*values, q = s(3)
show(s.code, values, type(q).__name__, q.x)
def read(p: Point):
    return p.x
show(torch.jit.script(read)(Point(4)))
class Child(Point):
    pass
fails(torch.jit.script, Child)
fails(torch.jit.script, nn.Linear)
@torch.jit.script
@dataclasses.dataclass
class Pair:
    a: int
    b: float = 2.0
def pairs(x: int):
    pair = Pair(x)
    return pair.a, pair.b, pair == Pair(x)
show(torch.jit.script(pairs).code, torch.jit.script(pairs)(3))
""",
    "enumerations and named tuples": """
class Color(enum.Enum):
    RED = 1
    BLUE = 2
def colors(c: Color):
    total = 0
    for other in Color:
        total += other.value
    return c == Color.RED, c == Color.BLUE, c.name, c.value, total, Color.BLUE
s = torch.jit.script(colors)
show(s.code, [str(v) for v in s(Color.RED)])
class Result(NamedTuple):
    a: int
    b: Optional[torch.Tensor] = None
Plain = collections.namedtuple("Plain", "x y")
def tuples(x: int):
    r = Result(x)
    full = Result(a=x, b=torch.ones(1))
    plain = Plain(torch.ones(1), torch.zeros(1))
    return r.a, full.b, r[0], r, plain.x
s = torch.jit.script(tuples)
show(s.code, s.schema, s(3)[3].a, s(3)[4].item())
""",
    "what stays Python": """
@torch.jit.ignore
def kept(x: int) -> int:
    return x + 1
@torch.jit.unused
def dropped(x: int) -> int:
    return x + 1
def use(x: int):
    if x > 3:
        y = kept(x)
    else:
        y = dropped(x)
    return y
s = torch.jit.script(use)
show(s.code, s(5))
fails(s, 1)
linear = nn.Linear(1, 1)
def closed_over(x):
    return linear(x)
show(torch.jit.script(closed_over).code)
""",
    "overloads": """
@torch.jit._overload
def more(x: int) -> int: ...
@torch.jit._overload
def more(x: float) -> float: ...
def more(x):
    return x + 1
def use(a: int, b: float):
    return more(a), more(b)
s = torch.jit.script(use)
show(s.code, s(1, 2.5))
fails(torch.jit.script, more)
class Overloaded(nn.Module):
    @torch.jit._overload_method
    def both(self, x: int) -> int:
        pass
    @torch.jit._overload_method
    def both(self, x: float) -> float:
        pass
    def both(self, x):
        return x + 1
    def forward(self, x: int, y: float):
        return self.both(x), self.both(y)
m = torch.jit.script(Overloaded())
show(m.code, m(1, 2.5))
""",
    "what Python has and programs have not": """
class Child(Net):
    def forward(self, x):
        return super().forward(x)
class Grandchild(Net):
    def forward(self, x):
        return x + self.helper(1)
    def helper(self, x: int):
        return super().helper(x)
def backwards(x: List[int]):
    return list(reversed(x))
class Never(nn.Module):
    def forward(self, x):
        return x
def made_here(x):
    return Never()(x)
def no_class(x: int):
    return frozenset(x)
for thing in (Child(), Grandchild(), backwards, made_here, no_class):
    fails(torch.jit.script, thing)
""",
    "torch.ops and torch.special": """
def operators(x):
    return torch.ops.aten.relu(x) + torch.special.expit(x) + torch.ops.aten.add(x, x, alpha=2)
def number(x: int):
    return torch.ops.prim.NumToTensor(x)
s = torch.jit.script(operators)
show(s.code, s(torch.ones(2)).tolist(), torch.jit.script(number).code)
def overload(x):
    return torch.ops.aten.add.Tensor(x, x)
def unknown(x):
    return torch.ops.aten.nothing_of_that_name(x)
def nowhere(x):
    return torch.ops.nowhere.relu(x)
for function in (overload, unknown, nowhere):
    fails(torch.jit.script, function)
""",
    "types in common": """
def tuples(a: int, b: str, n: Optional[int]):
    return [(a, b), (b, a)], {"a": (1, b), "b": (2.0, b)}, [(1, None), (None, a)], [(n, 1)]
show(torch.jit.script(tuples).code)
def branches(x: bool, a: Tuple[int, str], b: Tuple[float, str]):
    if x:
        y = a
    else:
        y = b
    return y
def choice(x: bool, a: int, b: str):
    return (a, 1.0) if x else (b, 2.0)
for function in (branches, choice):
    fails(torch.jit.script, function)
""",
    "the grad mode": """
def off(x):
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    return x * 2, before, torch.is_grad_enabled()
s = torch.jit.script(off)
y, *modes = s(torch.ones(1, requires_grad=True))
show(s.code, y.requires_grad, modes, torch.is_grad_enabled())
torch.set_grad_enabled(True)
def off_and_raise(x: int):
    torch.set_grad_enabled(False)
    if x > 0:
        raise ValueError("positive")
    torch.set_grad_enabled(True)
s = torch.jit.script(off_and_raise)
s(0)
show(torch.is_grad_enabled())
try:
    s(1)
except Exception:
    show(torch.is_grad_enabled())
torch.set_grad_enabled(True)
def as_block(x):
    with torch.set_grad_enabled(False):
        y = x * 2
    return y
fails(torch.jit.script, as_block)
""",
    "text": """
unit = torch.jit.CompilationUnit('''
def foo(x): return x + 1
def bar(x: int) -> int:
  return x * 2
''')
show(unit.foo(torch.ones(1)).item(), unit.bar(3), unit.foo.code)
m = torch.jit.script(Net())
m.define('''
def extra(self, x: int) -> int:
  return x + self.n
''')
show(m.extra(3))
class Old(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.k = torch.jit.Attribute(3, int)
    @torch.jit.script_method
    def forward(self, x):
        return self.linear(x) + self.k
    def python(self):
        return self.k + 1
old = Old()
show(old.code, old.python(), list(old.state_dict()), old.original_name, old(torch.ones(2)).shape)
""",
}


def run(text: str, library: str, folder) -> list[str]:
    """What a program shows under a library, without addresses, places and marks of unique names."""
    path = folder / f"program_{library}.py"
    path.write_text(HEAD.replace("{library}", library) + text)
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["program"] = module  # where `inspect` looks for the source of classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    return [normalised(str(value)) for value in module.shown]


def normalised(text: str) -> str:
    """The text without what differs by chance."""
    text = re.sub(r"\.___torch_mangle_\d+", "", text)
    text = re.sub(r" \(of Python compilation unit at: 0x[0-9a-f]+\)", "", text)
    text = re.sub(r'File "[^"]*/program_\w+.py", line', "File, line", text)
    text = re.sub(r"'?<class '(torch|flambeau)\.[\w.]*?(\w+)'>'?", r"\2", text)
    return re.sub(r"\b(Dynamic|NestedIO)?torch\.Size", "torch.Size", text)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_is_shown(name, tmp_path):
    """Both libraries show the same."""
    expected = run(PROGRAMS[name], "torch", tmp_path)
    found = run(PROGRAMS[name], "flambeau", tmp_path)
    for one, other in zip(found, expected, strict=True):
        assert one == other
