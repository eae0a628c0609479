"""Schemas that follow from others, and that the file of schemas writes none of them out."""

from __future__ import annotations

import pytest

from flambeau.jit.operators import derived, implied, table

WITH_OUT = [
    ("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
     "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"),
    ("aten::eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None) -> Tensor",
     "aten::eye.out(SymInt n, *, Tensor(a!) out) -> Tensor(a!)"),
    ("aten::view_copy.dtype(Tensor(a) self, ScalarType dtype) -> Tensor",
     "aten::view_copy.dtype_out(Tensor self, ScalarType dtype, *, Tensor(a!) out) -> Tensor(a!)"),
    ("aten::_foreach_abs(Tensor[] self) -> Tensor[]",
     "aten::_foreach_abs.out(Tensor[] self, *, Tensor(a!)[] out) -> ()"),
    ("aten::aminmax(Tensor self) -> (Tensor min, Tensor max)",
     "aten::aminmax.out(Tensor self, *, Tensor(a!) min, Tensor(b!) max) -> (Tensor(a!) min, "
     "Tensor(b!) max)"),
    ("aten::var_mean(Tensor self) -> (Tensor, Tensor)",
     "aten::var_mean.out(Tensor self, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), "
     "Tensor(b!))"),
]  # fmt: skip


@pytest.mark.parametrize(("plain", "form"), WITH_OUT)
def test_with_out(plain, form):
    assert derived.with_out(plain) == form


@pytest.mark.parametrize("text", [
    "aten::relu_(Tensor(a!) self) -> Tensor(a!)",
    "aten::dim(Tensor self) -> int",
    "aten::histogramdd(Tensor self) -> (Tensor hist, Tensor[] bin_edges)",
])  # fmt: skip
def test_nothing_to_write_into(text):
    assert derived.with_out(text) is None


def test_in_place():
    written = derived.in_place("aten::div.Tensor(Tensor self, Tensor other) -> Tensor")
    assert written == "aten::div_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"
    listed = derived.in_place("aten::_foreach_abs(Tensor[] self) -> Tensor[]")
    assert listed == "aten::_foreach_abs_(Tensor(a!)[] self) -> ()"
    assert derived.in_place("aten::polygamma(int n, Tensor self) -> Tensor") is None


def test_the_file_writes_out_nothing_that_follows():
    told_twice = []
    for name in table.names():
        known, plain = implied.schemas(name), table.texts(name.removesuffix("_"))
        texts = table.texts(name)
        written = {part for line in table._lines().get(name, ()) for part in line.split("; ")}
        for place, text in enumerate(texts):
            head = text.partition("(")[0]
            follows = known.get(head) or derived.named(head, plain, texts[:place])
            if text in written and follows == text:
                told_twice.append(text)
    assert not told_twice


def test_a_form_that_follows_from_nothing(monkeypatch):
    monkeypatch.setattr(table, "_lines", lambda: {"aten::nonesuch_": ["aten::nonesuch_"]})
    with pytest.raises(LookupError, match=r"schemas\.txt: nothing says what aten::nonesuch_ is"):
        table.texts("aten::nonesuch_")
