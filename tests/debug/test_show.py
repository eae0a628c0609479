"""Drawings of models, and tensors and modules as HTML."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from xml.etree import ElementTree

import numpy as np
import pytest

import flambeau as torch
from flambeau._notebook import load_ipython_extension, unload_ipython_extension
from flambeau.debug.html import heat_map, module_html, png, sparkline, tensor_html
from flambeau.debug.module_graph import record


class Residual(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x):
        unused = x * 3  # noqa: F841
        return x + self.norm(torch.relu(self.wide(x)))


def names(calls):
    return [call.path or call.title for call in calls]


def test_calls_and_where_they_come_from():
    calls = record(Residual(), (torch.ones(2, 4),))
    assert names(calls) == ["input", "wide", "relu", "norm", "add", "output"]
    assert names(calls[4].before) == ["input", "norm"]
    assert calls[1].parameters == 20
    assert all(call.shapes == [(2, 4)] for call in calls)


def test_what_is_not_there_any_more():
    model = Residual()
    record(model, (torch.ones(2, 4),))
    assert not model.wide._forward_hooks
    assert not model.wide._forward_pre_hooks
    out = model(torch.ones(2, 4))
    assert out.requires_grad


def test_hooks_go_when_the_model_fails():
    model = Residual()
    with pytest.raises(RuntimeError):
        record(model, (torch.ones(2, 5),))
    assert not model.wide._forward_hooks
    assert not model.wide._forward_pre_hooks


def test_several_inputs_and_outputs():
    class Both(torch.nn.Module):
        def forward(self, x, y):
            return {"sum": x + y, "x": x}

    drawing = torch.debug.show(Both(), (torch.ones(3), torch.ones(3)))
    assert names(drawing.calls) == ["input", "input 2", "add", "output"]
    assert names(drawing.calls[-1].before) == ["add", "input"]
    assert drawing.calls[-1].shapes == [(3,), (3,)]


def test_drawing_is_svg(tmp_path):
    drawing = torch.debug.show(Residual(), torch.ones(2, 4))
    drawing.save(tmp_path / "model.svg")
    root = ElementTree.parse(tmp_path / "model.svg").getroot()
    text = "".join(root.itertext())
    assert root.tag.endswith("svg")
    assert "Linear (wide)" in text
    assert "(2, 4)" in text


def test_notebooks_get_images():
    """Bare SVG is left out of notebooks that were run elsewhere."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    shown = torch.debug.show(model, torch.ones(1, 2))._repr_html_()
    assert "<svg" not in shown
    data = re.search(r"base64,([^\"]+)", shown)
    assert data is not None
    assert ElementTree.fromstring(base64.b64decode(data[1])).tag.endswith("svg")
    assert "Linear 0: (1, 3) from input" in shown


def test_whole_layers_hide_what_is_in_them():
    model = torch.nn.Sequential(torch.nn.TransformerEncoderLayer(8, 2, batch_first=True))
    drawing = torch.debug.show(model.eval(), torch.ones(1, 3, 8))
    assert [call.title for call in drawing.calls] == [
        "input", "TransformerEncoderLayer", "output"
    ]  # fmt: skip


# ---- HTML


def test_small_tensors_show_their_numbers():
    text = tensor_html(torch.tensor([1.0, 2.0], requires_grad=True))
    assert "tensor([1., 2.])" in text
    assert "requires grad" in text


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_large_ones_show_a_picture(dtype):
    x = (torch.arange(400) % 7).to(getattr(torch, dtype))
    assert "image/svg+xml" in tensor_html(x)
    assert "<img" in tensor_html(x.reshape(20, 20))
    assert "[0, :, :]" in tensor_html(x.reshape(4, 10, 10))


def test_without_numbers():
    assert "meta" in tensor_html(torch.empty(100, 100, device="meta"))
    assert "<pre " in tensor_html(torch.ones(100, dtype=torch.complex64))
    assert "<img" not in tensor_html(torch.zeros(0, 100, 100))
    assert "<img" not in tensor_html(torch.full((100,), float("nan")))


def test_a_line_breaks_at_nan():
    values = np.sin(np.arange(100.0))
    values[50] = np.nan
    assert sparkline(values).count("<polyline") == 2


def test_heat_maps_are_bounded():
    assert len(heat_map(np.random.default_rng(0).normal(size=(2000, 2000)))) < 60_000


def test_png_is_a_picture():
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    content = png(image)
    assert content.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", content[16:24])
    assert (width, height) == (4, 2)
    start = content.index(b"IDAT") + 4
    (length,) = struct.unpack(">I", content[start - 8 : start - 4])
    rows = zlib.decompress(content[start : start + length])
    assert rows == b"\0" + image[0].tobytes() + b"\0" + image[1].tobytes()


def test_modules_as_tables():
    model = Residual()
    model.norm.requires_grad_(False)
    text = module_html(model)
    assert "28 parameters, 20 of them trained" in text
    assert "BatchNorm1d" in text
    assert "weight (4, 4), bias (4,)" in text


# ---- notebooks


class Formatter(dict):
    def for_type(self, shown, function):
        self[shown] = function


class Shell:
    def __init__(self):
        self.display_formatter = self
        self.formatters = {"text/html": Formatter()}


@pytest.fixture
def hooked(monkeypatch):
    calls = []
    monkeypatch.setattr("flambeau.hook.install", lambda: calls.append("install"))
    monkeypatch.setattr("flambeau.hook.uninstall", lambda: calls.append("uninstall"))
    return calls


def test_extension(hooked):
    shell = Shell()
    load_ipython_extension(shell)
    formatter = shell.formatters["text/html"]
    assert "Tensor" in formatter[torch.Tensor](torch.ones(2))
    assert "Linear" in formatter[torch.nn.Module](torch.nn.Linear(1, 1))
    unload_ipython_extension(shell)
    assert not formatter
    assert hooked == ["install", "uninstall"]


def test_extension_as_text(hooked, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_HTML", "0")
    shell = Shell()
    load_ipython_extension(shell)
    assert not shell.formatters["text/html"]
    assert hooked == ["install"]


def test_where_ipython_looks():
    assert torch.load_ipython_extension is load_ipython_extension
    assert not hasattr(torch.Tensor, "_repr_html_")


def test_kernel_text():
    assert "math_exp" in torch.debug.kernel_text("softmax")
    assert "v_self" in torch.debug.kernel_text("tanh")
    with pytest.raises(ValueError, match="sort is no formula"):
        torch.debug.kernel_text("sort")
    with pytest.raises(KeyError):
        torch.debug.kernel_text("no_such_operator")
