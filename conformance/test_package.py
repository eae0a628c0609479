"""`torch.package`: packages of one library, read by the other, and what both say of sources."""

import io
import sys
import zipfile

import pytest
import torch

import flambeau

LIBRARIES = (torch, flambeau)
pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")

SOURCE = """\
import math
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 3)
        self.register_buffer("steps", torch.arange(3))

    def forward(self, x):
        return self.layer(x).float() + self.steps + math.pi
"""


def packed(library, folder, protocol):
    """A package with a net, whose class is in a module below `folder`."""
    (folder / "packed_net.py").write_text(SOURCE)
    sys.path.insert(0, str(folder))
    real = sys.modules.get("torch")
    sys.modules["torch"] = library
    try:
        import packed_net

        library.manual_seed(0)
        net = packed_net.Net()
        buffer = io.BytesIO()
        with library.package.PackageExporter(buffer) as exporter:
            exporter.intern("packed_net")
            exporter.save_pickle("model", "net.pkl", [net, net.steps[1:]], pickle_protocol=protocol)
            exporter.save_text("model", "note.txt", "größer")
    finally:
        sys.path.remove(str(folder))
        del sys.modules["packed_net"]
        sys.modules["torch"] = real
    return net, buffer.getvalue()


@pytest.mark.parametrize("protocol", [3, 4])
@pytest.mark.parametrize("writer", [0, 1])
def test_packages_of_the_other_library(writer, protocol, tmp_path):
    net, content = packed(LIBRARIES[writer], tmp_path, protocol)
    reader = LIBRARIES[1 - writer]
    importer = reader.package.PackageImporter(io.BytesIO(content))
    loaded, steps = importer.load_pickle("model", "net.pkl")
    assert importer.load_text("model", "note.txt") == "größer"
    assert steps.tolist() == [1, 2] and steps.data_ptr() == loaded.steps[1:].data_ptr()
    values = [[0.5, -1.0]]
    theirs = net(LIBRARIES[writer].tensor(values)).tolist()
    assert loaded(reader.tensor(values)).tolist()[0] == pytest.approx(theirs[0])
    assert str(importer.file_structure(exclude="**/.data/**")) == "".join(
        line + "\n" for line in (
            "─── <binary>", "    ├── model", "    │   ├── net.pkl", "    │   └── note.txt",
            "    ├── byteorder", "    └── packed_net.py",
        )
    )  # fmt: skip


def test_the_same_files(tmp_path):
    names = []
    for library in LIBRARIES:
        _, content = packed(library, tmp_path, 3)
        names.append(sorted(zipfile.ZipFile(io.BytesIO(content)).namelist()))
    assert names[0] == names[1]


SOURCES = """
import math, os.path as p
from torch import nn, tensor
from collections import abc
import nonexistent
import sys
import numpy
from . import numpy
__import__("json")
__import__("xml.dom")
__import__("xml", fromlist=["dom", "sax"])
__import__(name)
import torch._C, pickle
def f(): import _ctypes
""".strip().splitlines()


def dependencies(library, source):
    exporter = library.package.PackageExporter(io.BytesIO())
    exporter.save_source_string("top.q", source)
    said = [exporter.dependency_graph_string(), exporter.externed_modules()]
    try:
        exporter.close()
    except library.package.PackagingError as error:
        said.append(str(error))
    return said


@pytest.mark.parametrize("source", SOURCES)
def test_dependencies(source):
    theirs, ours = (dependencies(library, source) for library in LIBRARIES)
    assert ours == theirs


PATTERNS = ["a", "a.*", "a.**", "**", "*", "a*b", "**.x", "a.**.b", "*.b", "a**", "a.*.**"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(pattern):
    names = "a a.b a.b.c ab axb x a.x a.c.b b.a.b".split()
    found = []
    for library in LIBRARIES:
        try:
            group = library.package.GlobGroup(pattern, exclude=["a.c.*"])
            found.append([str(group), [name for name in names if group.matches(name)]])
        except ValueError as error:
            found.append(str(error))
    assert found[1] == found[0]
