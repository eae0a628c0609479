"""What the site's pages are written from: docstrings, rows, and tables of what differs."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs/_extensions"))

import coming_page  # noqa: E402
import reference_pages  # noqa: E402
import rows  # noqa: E402
import speed  # noqa: E402
import stopwatch  # noqa: E402
from docstring_text import inline, to_rst  # noqa: E402
from formulas import latex  # noqa: E402
from instead import OTHERWISE, what_instead  # noqa: E402
from notebook_links import with_links  # noqa: E402
from outside_links import without_links  # noqa: E402
from pictures import breakable, linked  # noqa: E402
from rows import rows_of  # noqa: E402

import flambeau  # noqa: E402
from flambeau._compiler.expr import exp, parameter, where  # noqa: E402
from flambeau._compiler.fuse import amax  # noqa: E402
from flambeau._ops.table.redirection import Redirection  # noqa: E402


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`x` and y", "``x`` and y"),
        ("`x`s", "``x``\\ s"),
        ("*args, a_b", "\\*args, a\\_b"),
        ("a `*b`", "a ``*b``"),
    ],
)
def test_inline(text: str, expected: str):
    assert inline(text) == expected


def test_docstrings():
    lines = to_rst(
        """What it does.

        x: a tensor of shape (n,),
            of floats.
        dim: an int.

        >>> 1 + 1
        2

        Raises:
            ValueError: never.
        """
    )
    assert lines == [
        "What it does.", "",
        "* ``x``: a tensor of shape (n,), of floats.", "* ``dim``: an int.", "",
        ".. code-block:: pycon", "", "   >>> 1 + 1", "   2", "",
        "**Raises**", "", "* ``ValueError``: never.", "",
    ]  # fmt: skip


def test_formulas():
    x, y = parameter("self"), parameter("other")
    assert latex(x * (x + y)) == r"x \cdot \left(x + y\right)"
    assert latex(x - (x - y)) == r"x - \left(x - y\right)"
    assert latex(1 / (1 + exp(-x))) == r"\frac{1}{1 + \exp\left(-x\right)}"
    assert latex((x + 1) ** 2) == r"\left(x + 1\right)^{2}"
    assert "cases" in latex(where(x > 0, x, 0))
    assert latex(exp(x - amax(x)), index="i") == r"\exp\left(x_i - \max_j x_j\right)"


def text_of(namespace: str, name: str) -> str:
    where_it_is = reference_pages.find(namespace)
    return "\n".join(
        reference_pages.page(reference_pages.Name(namespace, name, getattr(where_it_is, name)))
    )


def test_page_of_an_operator():
    text = text_of("torch", "softmax")
    assert ".. py:function:: torch.softmax(input, dim=None" in text
    assert ".. math::" in text
    assert "The kernel that is compiled of it" in text
    assert "math_exp" in text
    assert "SoftmaxBackward0" in text


def test_page_of_a_class():
    text = text_of("torch.nn", "Linear")
    assert ".. py:class:: torch.nn.Linear(in_features, out_features" in text
    assert "``forward(input)``" in text
    assert "What a call of the module computes" in text


def test_row_of_a_function_that_was_redirected():
    """The operators that a site is built with have been looked at: their own code is shown."""
    op = rows_of("where")[0]
    watched = Redirection()
    watched.add(op.body, lambda before, args, kwargs: before(*args, **kwargs))
    try:
        assert "def where(condition" in "\n".join(rows.section(op))
    finally:
        watched.end()


def test_acronyms_in_titles():
    assert reference_pages.index_page("torch.cuda", "GPUs", [])[0] == "torch.cuda: GPUs"
    assert reference_pages.index_page("torch.fft", "Fourier", [])[0] == "torch.fft: fourier"


def test_page_of_tensors():
    names = list(reference_pages.public_names("torch.Tensor"))
    text = "\n".join(reference_pages.tensor_page(names))
    assert ".. py:method:: torch.Tensor.argmax(dim=None, keepdim=False, " in text
    assert " out=None" not in text
    assert "   See :doc:`torch.argmax <torch/argmax>`." in text
    assert ">>> torch.arange(6).view(2, -1)" in text
    assert "``False``, of sparse tensors ``True``." in text


def test_names_of_every_namespace():
    for namespace in (*reference_pages.NAMESPACES, *reference_pages.OWN):
        assert any(True for _ in reference_pages.public_names(namespace)), namespace


def test_missing_names_have_something_instead():
    text = "\n".join(reference_pages.missing_page())
    listed = [line for line in text.splitlines() if line.startswith("   * - ")]
    assert len(listed) > 300
    assert what_instead("torch", "quantize_per_tensor") != OTHERWISE
    assert what_instead("torch.cuda.amp", "anything").startswith("`torch.cuda`")


def test_differences_are_those_of_compatibility():
    text = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
    lines = coming_page.differences(text)
    rows = [
        line for line in text.splitlines() if line.startswith("|") and not set(line) <= set("|- ")
    ]
    bullets = [line for line in lines if line.startswith("* ")]
    assert 0.8 * len(rows) < len(bullets) <= len(rows)
    assert "### Autograd" in lines


def test_cells_keep_escaped_bars():
    assert coming_page.cells(r"| a \| b | c |") == [r"a \| b", "c"]


def test_links_outside():
    assert without_links("see [R](../benchmarks/R.md), [e](engine.md)") == (
        "see `benchmarks/R.md`, [e](engine.md)"
    )


def test_links_in_notebooks():
    assert with_links("see :ref:`loops\ncost <sphx_glr_gallery_08_indexing.py>`.") == (
        "see [loops\ncost](08_indexing.ipynb)."
    )
    assert with_links(":doc:`The first page <index>`, :math:`x <y>`") == (
        "The first page, :math:`x <y>`"
    )


def test_pictures_are_links():
    picture = '<img src="../_images/a.png" alt="A" class = "sphx-glr-single-img"/>'
    assert linked(f"<p>{picture}</p>") == (
        f'<p><a class="picture" href="../_images/a.png">{picture}</a></p>'
    )
    assert linked('<img src="b.png"/>') == '<img src="b.png"/>'


def test_names_break_after_dots():
    assert breakable("<h1>torch.utils.data<a>") == "<h1>torch.<wbr>utils.<wbr>data<a>"
    assert breakable('<span class="pre">add_module</span>') == (
        '<span class="pre">add_<wbr>module</span>'
    )
    assert breakable('<span class="pre">1.5</span>') == '<span class="pre">1.5</span>'


def calls_of(*names: str) -> dict[str, list[object]]:
    return speed.calls((name, rows_of(name)) for name in names)


def test_calls_that_are_timed():
    calls = calls_of("softmax", "mul", "exp", "gather", "tensor")
    assert calls == {"softmax": ["x", -1], "mul": ["x", "y"], "exp": ["x"]}


def test_stopwatch():
    times = stopwatch.measured(flambeau, "mm", ["x", "y"], until=math.inf)
    assert "small" not in times  # a vector is no matrix
    assert times["matrix"] > 0
    times = stopwatch.measured(flambeau, "exp", ["x"], until=math.inf)
    assert times.keys() >= {"small", "matrix"}


def test_stopwatch_without_time():
    assert stopwatch.measured(flambeau, "exp", ["x"], until=0.0).keys() == {"small"}
    calls = []
    assert stopwatch.seconds(lambda: calls.append(1), until=0.0) > 0
    assert len(calls) <= 2 + 2000  # one row


def test_of_two_measurements_the_faster():
    before = {"times": {"exp": {"small": 2.0, "matrix": 5.0}, "log": {"small": 1.0}}}
    now = {"times": {"exp": {"small": 3.0, "large": 9.0}}}
    assert speed.faster(None, now) is now
    assert speed.faster(before, now)["times"] == {
        "exp": {"small": 2.0, "matrix": 5.0, "large": 9.0},
        "log": {"small": 1.0},
    }


@pytest.mark.parametrize(
    ("setting", "torch", "expected"),
    [
        ("", True, ["flambeau", "torch"]),
        ("1", True, ["flambeau", "torch"]),
        ("", False, []),
        ("1", False, ["flambeau"]),
        ("0", True, []),
    ],
)
def test_which_libraries_are_timed(monkeypatch, setting: str, torch: bool, expected: list[str]):
    monkeypatch.setattr(speed, "has_torch", lambda: torch)
    assert speed.libraries_to_time(setting) == expected


def test_pytorch_is_found_beside_the_hook(monkeypatch, tmp_path: Path):
    """The hook answers to the name, too, and it is on while the site is built."""
    about = tmp_path / "torch-2.13.0.dist-info/METADATA"
    about.parent.mkdir()
    about.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n", encoding="utf-8")
    program = "import flambeau.hook, speed; flambeau.hook.install(); print(speed.has_torch())"
    path = os.pathsep.join([str(tmp_path), *map(str, (ROOT, ROOT / "docs/_extensions"))])
    monkeypatch.setenv("PYTHONPATH", path)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"


def test_times_are_kept(monkeypatch, tmp_path: Path):
    """Later builds on the same machine measure nothing; other calls do."""
    asked = []

    def timed(library: str, wanted: dict[str, list[object]]) -> dict[str, object]:
        asked.append(library)
        return {"version": "1", "times": {name: {"small": 1.0} for name in wanted}}

    monkeypatch.setattr(speed, "_timed", timed)
    monkeypatch.setattr(speed, "has_torch", lambda: False)
    monkeypatch.setenv("FLAMBEAU_SITE_SPEEDS", "1")
    first = speed.times(tmp_path, {"exp": ["x"]})
    assert speed.times(tmp_path, {"exp": ["x"]}) == first
    assert len(asked) == speed.ROUNDS
    assert speed.times(tmp_path, {"log": ["x"]})["flambeau"]["times"] == {"log": {"small": 1.0}}
    assert len(asked) == 2 * speed.ROUNDS


def test_section_of_speed():
    found = {
        "calls": {"exp": ["x"]}, "machine": "a machine", "torch": None,
        "flambeau": {"version": "1", "times": {"exp": {"small": 1e-6, "large": 2.5e-4}}},
    }  # fmt: skip
    text = "\n".join(speed.section("exp", found))
    assert "a machine. PyTorch was not installed there." in text
    assert "250 µs" in text
    found["torch"] = {"version": "2", "times": {"exp": {"small": 2e-6}}}
    text = "\n".join(speed.section("exp", found))
    assert "0.5 ×" in text
    assert "busy" not in text
    assert "kept it busy" in "\n".join(speed.section("exp", {**found, "busy": True}))
    assert "PyTorch 2" in text
    assert speed.section("log", found) == []


def test_every_page_is_in_the_contents():
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    listed = set()
    for path in (ROOT / "docs").glob("*.md"):
        for block in re.findall(r"```\{toctree\}(.*?)```", path.read_text("utf-8"), re.DOTALL):
            listed |= {line.rpartition("<")[2].strip("> ") for line in block.splitlines()}
    assert pages - listed == {"index"}
