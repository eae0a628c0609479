"""Hostile archives: each is refused with a clear error, quickly, and nothing of it is executed."""

import pickle

import pytest

import flambeau
from flambeau.jit import Limits
from flambeau.jit.ir.source import ScriptError
from tests.jit.archive import handmade
from tests.jit.archive.handmade import Raw, code, made, named

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
REFUSALS = (RuntimeError, pickle.UnpicklingError, ValueError)
LIMITS = Limits(steps=100_000, memory=100_000_000)

BODIES = {
    "unknown operator": "return torch.nonsense(3)",
    "from_file": "return torch.len(torch.from_file('/etc/passwd'))",
    "save": "torch.save(3, 'x')\nreturn 3",
    "PythonOp": "return ops.prim.PythonOp(3)",
    "our own node": "return ops.flambeau.Call(3)",
    "if as a call": "return ops.prim.If(True)",
    "chunk as a call": "x = ops.prim.ConstantChunk(torch.ones([2]), 2, 0)\nreturn 3",
    "import": "return __import__('os')",
    "import statement": "import os\nreturn 3",
    "class": "return self.__class__",
    "dict": "return self.__dict__",
    "type of an int": "return (3).__class__.__base__",
    "wrong cast": "x = unchecked_cast(str, 5)\nreturn torch.len(x)",
    "open": "return open('/etc/passwd')",
    "lambda": "f = lambda: 3\nreturn f()",
    "recursion": "return (self).forward()",
    "big int": "return 99999999999999999999999999",
    "digits": "return " + "9" * 5000,
    "no constant": "return CONSTANTS.c" + "9" * 5000,
    "brackets": "return " + "(" * 15000 + "3" + ")" * 15000,
    "long sum": "return " + "+".join(["1"] * 20000),
    "many nots": "return " + "not " * 20000 + "True",
    "many ands": "return " + " and ".join(["True"] * 20000),
    "many attributes": "return self" + ".a" * 20000,
    "long list by a number": "x = torch.mul([1], 300000000)\nreturn torch.len(x)",
    "long text": "x = torch.ljust('a', 1000000000)\nreturn torch.len(x)",
    "large tensor": "x = torch.zeros([1000000000])\nreturn torch.len(x)",
    "larger than memory": "x = torch.zeros([4611686018427387904, 4])\nreturn torch.len(x)",
    "range": "x = torch.arange(1000000000000)\nreturn torch.len(x)",
    "outside of its storage": "return int(torch.sum(torch.as_strided(torch.ones([1]), [9], [9])))",
    "before its storage": "return int(torch.sum(torch.as_strided(torch.ones([9]), [3], [-9], 0)))",
    "an object as a key": "return torch.hash(self)",
}


@pytest.mark.parametrize("name", BODIES)
def test_programs(name):
    with pytest.raises(REFUSALS):
        handmade.run(BODIES[name], limits=LIMITS)


FORWARD = "  def forward(self: __torch__.M) -> int:\n    return 3\n"


def classes(fields="", before=""):
    return f"{before}class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n{fields}{FORWARD}"


RESERVED = ("_type", "_parameters", "_modules", "_data", "__class__", "__array_interface__",
            "_forward_hooks", "_concrete", "forward", "a\nb", "")  # fmt: skip


@pytest.mark.parametrize("name", RESERVED)
def test_names_that_mean_something_to_python(name):
    text = classes(f"  __annotations__[{name!r}] = int\n")
    with pytest.raises(RuntimeError, match="reserved|no name"):
        handmade.load(handmade.archive(text, made("__torch__.M", {name: 3})))


def test_constants_do_not_become_array_interfaces():
    text = classes("  __array_interface__ : Final[Dict[str, int]] = {'data': 3}\n")
    with pytest.raises(RuntimeError, match="reserved"):
        handmade.load(handmade.archive(text))


CLASSES = {
    "cycle of NamedTuples": classes("  a : __torch__.N\n",
                                    "class N(NamedTuple):\n  a : __torch__.N\n"),
    "many values": classes("  a : __torch__.N20\n", "class N0(NamedTuple):\n  a : int\n" + "".join(
        f"class N{i}(NamedTuple):\n  a : __torch__.N{i - 1}\n  b : __torch__.N{i - 1}\n"
        for i in range(1, 21))),
    "evil member": classes("  a : __torch__.N\n", "class N(Enum):\n  __init__ = 1\n"),
    "evil value": classes("  a : __torch__.N\n", "class N(Enum):\n  x = __import__('os')\n"),
    "metaclass": classes("  a : __torch__.N\n", "class N(metaclass=type):\n  x : int\n"),
    "decorator": "@evil\n" + classes(),
    "statement": "os.system('x')\n" + classes(),
    "no such hook": classes("  __forward_hooks__ = ['nope']\n"),
    "default": classes().replace("self: __torch__.M", "self: __torch__.M, x: int=__import__('os')"),
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name):
    with pytest.raises(REFUSALS):
        handmade.load(handmade.archive(CLASSES[name]))


VALUES = {
    "wrong type": ("int", "x"),
    "too large": ("int", 2**100),
    "function": ("int", Raw(b"cos\nsystem\nX\x02\x00\x00\x00id\x85R")),
    "class of code": ("int", Raw(bytes(named("__torch__.os.system")) + code("id") + b"\x85R")),
    "list in itself": ("List[List[int]]", Raw(b"]q\x05h\x05a")),
    "deep": ("Any", Raw(b"]" * 5000 + b"a" * 4999)),
    "type tag": ("List[int]", Raw(b"ctorch.jit._pickle\nrestore_type_tag\n]"
                                  + code("__import__('os')") + b"\x86R")),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    note, value = VALUES[name]
    content = handmade.archive(classes(f"  a : {note}\n"), made("__torch__.M", {"a": value}))
    with pytest.raises(REFUSALS):
        handmade.load(content)


def test_one_list_has_one_type():
    """An empty list that two attributes share would let a program change a value's type."""
    text = classes("  a : List[int]\n  b : List[Tensor]\n")
    value = {"a": Raw(b"]q\x05"), "b": Raw(b"h\x05")}
    with pytest.raises(pickle.UnpicklingError, match="elsewhere"):
        handmade.load(handmade.archive(text, made("__torch__.M", value)))


def test_shared_lists_do_not_multiply():
    value = b"](K\x01e"
    for slot in range(25):
        mark = bytes([slot])
        value += b"q" + mark + b"0](h" + mark + b"h" + mark + b"e"
    note = "List[" * 26 + "int" + "]" * 26
    content = handmade.archive(classes(f"  a : {note}\n"), made("__torch__.M", {"a": Raw(value)}))
    assert handmade.load(content).forward() == 3


def test_interfaces_are_loaded_under_limits():
    before = "class I(ModuleInterface):\n  def step(self, x: int) -> int:\n    pass\n"
    module = handmade.load(handmade.archive(classes(before=before)), limits=LIMITS)
    assert isinstance(module, flambeau.jit.ScriptModule)


@pytest.mark.parametrize("digits", [100_000, 5000])
def test_integers_that_python_does_not_write_out(digits):
    """Errors show where they are, though their decimal digits are not to be had."""
    with pytest.raises(ScriptError, match="Integral constant out of range"):
        handmade.load(handmade.archive(handmade.module("return 0x" + "f" * digits)))
