"""Names and texts that code could take for something else: they come back, or are refused."""

import enum
import io
import sys
import zipfile

import pytest

import flambeau
from flambeau import nn
from tests.jit.archive import handmade

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ODD = ("a'b", 'a"b', "a\\b", "a b", "a#b", 'x"] = int #', "{x}", "é", "0", "class", "self", "''")
UNWRITABLE = ("a\nb", "a\0b", "\x7f", "a\u2028b")
TEXTS = (*ODD, *UNWRITABLE, 'a"\n  def forward(self):', "\\303\\251", "\\", "")


class Holder(nn.Module):
    """A module with a buffer and a submodule of some name."""

    def __init__(self, name):
        super().__init__()
        self.inner = nn.Sequential()
        self.inner.add_module(name, nn.ReLU())
        self.register_buffer(name if name != "inner" else "x", flambeau.full((2,), 3.0))

    def forward(self, x):
        return self.inner(x)


def saved(module):
    sink = io.BytesIO()
    flambeau.jit.save(flambeau.jit.script(module), sink)
    return sink.getvalue()


@pytest.mark.parametrize("name", ODD)
def test_attributes_and_modules(name):
    content = saved(Holder(name))
    module = handmade.load(content)
    assert list(module.state_dict()) == [name]
    assert dict(module.inner.named_children()).keys() == {name}
    assert module(flambeau.tensor([-1.0, 2.0])).tolist() == [0, 2]
    with zipfile.ZipFile(io.BytesIO(content)) as one, zipfile.ZipFile(again(module)) as other:
        for record in one.namelist():
            if record.endswith(".py"):
                assert one.read(record) == other.read(record)


def again(module):
    """The file of a module that has been loaded."""
    sink = io.BytesIO()
    flambeau.jit.save(module, sink)
    return sink


@pytest.mark.parametrize("name", UNWRITABLE)
def test_names_that_cannot_be_shown_are_not_saved(name):
    with pytest.raises(RuntimeError, match="is no name of an attribute"):
        saved(Holder(name))


@pytest.mark.parametrize("name", ['a"b', "a b", "a\nb", "class", "1a", "a-b", "A(Module): x"])
def test_classes_and_members_are_identifiers(name):
    class Named(nn.Module):
        def forward(self, x):
            return x

    Named.__name__ = name
    with pytest.raises(RuntimeError, match="is not a valid identifier"):
        saved(Named())
    with pytest.raises(RuntimeError, match="is not a valid identifier"):
        saved(Chosen(enum.Enum("Choice", {name: 1}, module=__name__)))


class Chosen(nn.Module):
    """A module that holds a member of an enumeration."""

    def __init__(self, kind):
        super().__init__()
        self.choice = next(iter(kind))

    def forward(self):
        return self.choice


@pytest.mark.parametrize("text", TEXTS)
def test_values_of_enumerations(text, monkeypatch):
    choice = enum.Enum("Choice", {"first": text, "second": "2"}, module=__name__)
    monkeypatch.setattr(sys.modules[__name__], "Choice", choice, raising=False)
    module = handmade.load(saved(Chosen(choice)))
    assert module().value == text
    assert handmade.load(again(module).getvalue())().value == text


@pytest.mark.parametrize("text", TEXTS)
def test_texts_of_programs(text):
    unit = flambeau.jit.CompilationUnit(f"def f():\n    return {text!a}\n")
    sink = io.BytesIO()
    flambeau.jit.save(unit.f, sink)
    assert handmade.load(sink.getvalue())() == text


ENUM = "class E(Enum):\n  {}\n"
DECLARATIONS = {
    "member": ENUM.format('"a" = 1'),
    "code in a member": ENUM.format('a = "x" + __import__("os").name'),
    "a method in an enumeration": ENUM.format("def a(self) -> int:\n    return 3"),
    "private": ENUM.format("__module__ = 1"),
    "a field": "class E(NamedTuple):\n  _asdict : int\n",
    "a field that is no name": 'class E(NamedTuple):\n  __annotations__["a\\nb"] = int\n',
}


@pytest.mark.parametrize("name", DECLARATIONS)
def test_declarations_of_hostile_archives(name):
    text = (f"{DECLARATIONS[name]}class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n"
            "  e : __torch__.E\n")  # fmt: skip
    with pytest.raises(RuntimeError):
        handmade.load(handmade.archive(text))


def test_octal_escapes_are_bytes():
    """`é` as torch writes it in programs; PyTorch before 1.8 had no table for such texts."""
    text = handmade.module('return "\\303\\251"', result="str")
    assert handmade.load(handmade.archive(text))() == "é"


def test_identity_is_no_address():
    text = handmade.module("return [ops.prim.id(self), torch.hash(torch.ones([1]))]",
                           result="List[int]")  # fmt: skip
    found = handmade.load(handmade.archive(text))()
    assert all(0 < number < 1_000_000 for number in found)
    assert found[0] != found[1]
