"""Places in the original program, which archives keep beside their code: written and read again."""

import io
import pickle
import zipfile

import pytest

import flambeau
from flambeau.jit.archive.origins import Origins, places_pickle
from flambeau.jit.ir.source import Source, SourceRange
from flambeau.jit.printing.marks import Marks, Piece
from tests.jit.archive import handmade

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Failing(flambeau.nn.Module):
    def forward(self, x, n: int):
        # größer: a line beyond ASCII
        y = x + n
        return flambeau.cat([y, y.view(3, 3)])


def failure(module):
    with pytest.raises(RuntimeError) as caught:
        module(flambeau.ones(2), 1)
    return str(caught.value)


def saved(module):
    sink = io.BytesIO()
    flambeau.jit.save(module, sink)
    return sink.getvalue()


def test_errors_of_archives_show_the_program():
    scripted = flambeau.jit.script(Failing())
    original = failure(scripted).partition("(most recent call last):\n")[2]
    content = saved(scripted)
    for _ in range(2):
        module = handmade.load(content)
        head, _, shown = failure(module).partition("original code (most recent call last):\n")
        assert "serialized code" in head
        assert shown == original
        content = saved(module)


def test_each_file_of_code_has_its_places():
    with zipfile.ZipFile(io.BytesIO(saved(flambeau.jit.script(Failing())))) as archive:
        names = archive.namelist()
    files = [name for name in names if name.endswith(".py")]
    assert files
    assert {f"{name}.debug_pkl" for name in files} <= set(names)


def test_pieces_within_each_other():
    source = Source("first second", "p.py", 7)
    first, second = SourceRange(source, 0, 5), SourceRange(source, 6, 12)
    marks = Marks()
    text = "a" + marks.around(f"é{marks.around('bc', second)}d", first) + marks.around("e", first)
    assert marks.taken_apart(text) == (
        "aébcde",
        [Piece(0, None), Piece(1, first), Piece(3, second), Piece(5, first)],
    )


SOURCE = Source("def ü():\n  ü(1)\n  return 2\n", "p.py", 3)
PIECES = [
    Piece(0, None),
    Piece(4, SourceRange(SOURCE, 4, 5)),
    Piece(9, SourceRange(SOURCE, 11, 15)),
]
TEXT = "def é(x): y"


def test_places_come_back():
    origins = Origins(places_pickle(PIECES), TEXT)
    found = [origins(position) for position in range(len(TEXT))]
    assert found[3] is None
    assert found[4:8] == [PIECES[1].place] * 4  # `é` has two bytes
    assert found[8:] == [PIECES[2].place] * 3
    assert (found[8].line, found[8].text) == (4, "ü(1)")


def test_older_format():
    entries = ((0, (("abc\ndef", "p.py", 5), 4, 7)), (2, (("abc\ndef", None, 5), -3, 99)))
    origins = Origins(pickle.dumps(entries, 2), "xyz")
    assert (origins(1).text, origins(1).place) == ("def", "p.py:6:0")
    assert (origins(2).text, origins(2).place) == ("abc\ndef", "")


TABLE = "FORMAT_WITH_STRING_TABLE"
LINES = [0] * 10_000
DAMAGED = {
    "nothing": b"",
    "no pickle": b"abc",
    "None": None,
    "a number": 3,
    "a dict": {},
    "no entries": (TABLE, ("",)),
    "entries of numbers": (1, 2, 3),
    "a table of numbers": (TABLE, (1, 2), ((0, (([0], 0, 0), 0, 0), 0),)),
    "a number that the table lacks": (TABLE, ("",), ((0, (([5], 0, 0), 0, 0), 0),)),
    "a table that is a dict": (TABLE, {}, ((0, (([5], 0, 0), 0, 0), 0),)),
    "a large line": ((0, (("abc", "p.py", 10**5000), 0, 1)),),
    "a large offset": ((10**5000, (("abc", "p.py", 1), 0, 1)),),
    "a text place": ((0, (("abc", "p.py", 1), "0", 1)),),
    "lines without end": (TABLE, ("x" * 10_000,), ((0, ((LINES, 0, 0), 0, 0), 0),)),
    "sources without end": (TABLE, ("x" * 10_000,), tuple(
        (0, (([0] * 100, 0, line), 0, 0), 0) for line in range(100))),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_from_damaged_places_nothing_is_known(name):
    value = DAMAGED[name]
    data = value if isinstance(value, bytes) else pickle.dumps(value, 2)
    assert Origins(data, "abc")(1) is None


def test_damaged_places_do_not_hide_the_error():
    text = handmade.module("ops.prim.RaiseException('no')\nreturn 3")
    records = {"code/__torch__.py.debug_pkl": pickle.dumps(DAMAGED["a large line"], 2)}
    module = handmade.load(handmade.archive(text, **records))
    with pytest.raises(flambeau.jit.Error, match="no"):
        module()
    assert handmade.load(saved(module)) is not None
