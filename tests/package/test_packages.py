"""Packages: what goes in, what comes out, and what is refused."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

import pytest

import flambeau as torch
from flambeau.package import (
    EmptyMatchError,
    GlobGroup,
    ObjMismatchError,
    OrderedImporter,
    PackageExporter,
    PackageImporter,
    PackagingError,
    is_from_package,
    sys_importer,
)

NET = """\
import math
import torch
from . import helpers
from .deep import scale

class Net(torch.nn.Module):
    class Part:
        pass

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 3)
        self.part = self.Part()

    def forward(self, x):
        return scale.double(self.layer(x)) + helpers.ONE * math.pi
"""


class Reduced:
    """Writes a text, and is loaded as what `restore` makes of it."""

    def __reduce_package__(self, exporter):
        name = f"{exporter.get_unique_id()}.txt"
        exporter.save_text("reduced", name, "a text")
        return restore, (name,)


def restore(importer, name):
    return importer.load_text("reduced", name)


@pytest.fixture
def models(tmp_path, monkeypatch):
    """A package of sources that can be imported."""
    folder = tmp_path / "packed_models"
    (folder / "deep").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "net.py").write_text(NET)
    (folder / "helpers.py").write_text("ONE = 1.0\n")
    (folder / "deep" / "__init__.py").write_text("")
    (folder / "deep" / "scale.py").write_text("def double(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    # Sources say torch, which is this library where the import hook is installed.
    monkeypatch.setitem(sys.modules, "torch", torch)
    from packed_models import net

    yield net
    for name in [name for name in sys.modules if name.startswith("packed_models")]:
        del sys.modules[name]


def written(fill, **options):
    buffer = io.BytesIO()
    with PackageExporter(buffer, **options) as exporter:
        fill(exporter)
    buffer.seek(0)
    return buffer


def save_net(exporter, net):
    exporter.intern("packed_models.**")
    exporter.save_pickle("model", "net.pkl", {"net": net, "weight": net.layer.weight})


def test_a_model_with_its_code(models):
    torch.manual_seed(0)
    net = models.Net()
    importer = PackageImporter(written(lambda exporter: save_net(exporter, net)))
    loaded = importer.load_pickle("model", "net.pkl")
    again = loaded["net"]
    x = torch.randn(4, 2)
    assert torch.equal(again(x), net(x))
    assert loaded["weight"] is again.layer.weight
    assert type(again) is not models.Net and type(again.part) is type(again).Part
    assert is_from_package(again) and not is_from_package(net)
    assert type(again).__module__ == f"{importer.id()}.packed_models.net"
    assert importer.import_module("packed_models.net").Net is type(again)


def test_what_is_in_it(models):
    buffer = written(lambda exporter: save_net(exporter, models.Net()))
    names = {name.partition("/")[2] for name in zipfile.ZipFile(buffer).namelist()}
    assert names == {
        ".data/0.storage", ".data/1.storage", "model/net.pkl", "packed_models/net.py",
        "packed_models/helpers.py", "packed_models/deep/scale.py", ".data/extern_modules",
        ".data/python_version", ".data/version", ".data/serialization_id", "byteorder",
    }  # fmt: skip


def test_a_folder_that_it_was_unpacked_to(models, tmp_path):
    net = models.Net()
    buffer = written(lambda exporter: save_net(exporter, net))
    zipfile.ZipFile(buffer).extractall(tmp_path / "unpacked")
    importer = PackageImporter(tmp_path / "unpacked" / "archive")
    assert torch.equal(importer.load_pickle("model", "net.pkl")["weight"], net.layer.weight)
    assert not importer.file_structure().has_file(".data")


def test_a_package_of_objects_of_a_package(models):
    buffer = written(lambda exporter: save_net(exporter, models.Net()))
    importer = PackageImporter(buffer)
    net = importer.load_pickle("model", "net.pkl")["net"]
    second = written(lambda exporter: save_net(exporter, net), importer=(importer, sys_importer))
    other = PackageImporter(second).load_pickle("model", "net.pkl")["net"]
    assert torch.equal(other.layer.weight, net.layer.weight)
    assert type(other) is not type(net)
    with pytest.raises(ObjMismatchError, match="lists the importer for <torch_package"):
        sys_importer.get_name(type(net))
    with pytest.warns(UserWarning, match="Tried to call get_name"):
        assert OrderedImporter(sys_importer, importer).get_name(type(net)) == (
            "packed_models.net", "Net",
        )  # fmt: skip


def test_one_storage_once():
    x = torch.arange(6.0)

    def fill(exporter):
        exporter.save_pickle("data", "a.pkl", [x, x[2:]])
        exporter.save_pickle("data", "b.pkl", x.view(2, 3), pickle_protocol=4)

    buffer = written(fill)
    assert sum(name.endswith(".storage") for name in zipfile.ZipFile(buffer).namelist()) == 1
    buffer.seek(0)
    importer = PackageImporter(buffer)
    whole, part = importer.load_pickle("data", "a.pkl")
    part[0] = 9
    assert whole.tolist() == [0, 1, 9, 3, 4, 5]
    assert importer.load_pickle("data", "b.pkl").tolist() == [[0, 1, 2], [3, 4, 5]]


def test_objects_that_reduce_themselves():
    def fill(exporter):
        exporter.extern("tests.**")
        exporter.save_pickle("data", "a.pkl", [Reduced(), Reduced()])

    importer = PackageImporter(written(fill))
    assert importer.load_pickle("data", "a.pkl") == ["a text", "a text"]


def test_mocked_modules():
    def fill(exporter):
        exporter.mock("numpy.**")
        exporter.save_source_string("model", "import numpy as np\nimport numpy.linalg\nx = np.ones")

    module = PackageImporter(written(fill)).import_module("model")
    assert repr(module.x).startswith("MockedObject(<torch_package_")
    for use in (
        lambda: module.x(3),
        lambda: module.x + 1,
        lambda: module.x.shape,
        lambda: len(module.x),
    ):
        with pytest.raises(NotImplementedError, match="numpy.ones' was mocked out"):
            use()


def test_modules_are_apart_from_those_here():
    source = "import json\nfrom collections import abc\nimport os.path\nVALUE = json.dumps([1])"
    importer = PackageImporter(
        written(lambda exporter: exporter.save_source_string("json5", source))
    )
    module = importer.import_module("json5")
    assert module.VALUE == "[1]" and "json5" not in sys.modules
    assert importer.get_source("json5") == source
    with pytest.raises(ModuleNotFoundError, match='No module named "csv" in self-contained'):
        importer.import_module("csv")
    with pytest.raises(ImportError, match="needs the external module 'json' but"):
        PackageImporter(
            written(lambda exporter: exporter.save_source_string("q", "import json")),
            module_allowed=lambda name: name != "json",
        )


def refused(fill, **options):
    with pytest.raises(PackagingError) as found:
        written(fill, **options)
    return str(found.value)


def test_what_is_refused():
    told = refused(lambda exporter: exporter.save_source_string("q", "import numpy, sys"))
    assert "did not match against any action pattern" in told
    assert "    numpy\n" in told and "security risk" in told

    def denied(exporter):
        exporter.deny("numpy")
        exporter.save_source_string("q", "import numpy")

    assert "Module was denied by a pattern." in refused(denied)
    assert "A path to numpy: q -> numpy" in refused(denied, debug=True)

    def compiled(exporter):
        exporter.intern("numpy.**")
        exporter.save_source_string("q", "import numpy._core._multiarray_umath")

    assert "C extension module" in refused(compiled)

    def unmatched(exporter):
        exporter.intern("nothing.**", allow_empty=False)

    with pytest.raises(EmptyMatchError, match="did not match any modules to GlobGroup"):
        written(unmatched)
    with pytest.raises(AssertionError, match="'a/b', but it already exists"):
        written(lambda exporter: [exporter.save_text("a", "b", "c") for _ in range(2)])


def test_mocked_modules_that_pickles_need():
    import numpy as np

    def fill(exporter):
        exporter.mock("numpy.**")
        exporter.save_pickle("m", "m.pkl", np.ones(2))

    assert "from module `numpy` was mocked out during packaging but is being used" in refused(fill)


def test_a_file_is_not_left_half_written(tmp_path):
    path = tmp_path / "model.pt"
    with pytest.raises(PackagingError), PackageExporter(path) as exporter:
        exporter.save_source_string("q", "import numpy")
    assert not path.exists()
    with PackageExporter(path) as exporter:
        exporter.save_text("notes", "today.txt", "rain")
    assert "model/notes/today.txt" in zipfile.ZipFile(path).namelist()
    assert PackageImporter(Path(path)).load_text("notes", "today.txt") == "rain"


def test_hooks_tell_what_is_done_with_modules():
    told = []

    def fill(exporter):
        for kind in ("extern", "mock", "intern"):
            register = getattr(exporter, f"register_{kind}_hook")
            register(lambda _, name, kind=kind: told.append((kind, name)))
        exporter.mock("numpy")
        exporter.register_mock_hook(lambda *arguments: told.append(arguments)).remove()
        exporter.save_source_string("q", "import numpy, math")

    written(fill)
    assert told == [("intern", "q"), ("mock", "numpy"), ("extern", "math")]


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [("a.*", "a.b a.x"), ("a.**", "a a.b a.b.c a.x a.c.b"), ("*", "a ab axb x"),
     ("a*b", "ab axb"), ("**.x", "x a.x"), ("a.**.b", "a.b a.c.b")],
)  # fmt: skip
def test_patterns(pattern, matching):
    names = "a a.b a.b.c ab axb x a.x a.c.b".split()
    group = GlobGroup(pattern)
    assert [name for name in names if group.matches(name)] == matching.split()
