"""`flambeau ops`: what is derived from a row."""

from __future__ import annotations

from typing import Any

import pytest

from flambeau._commands import ops
from flambeau._commands.row_facts import facts, rows_of, texts
from flambeau._ops.table.op import BY_NAME


def shown(capsys: Any, *words: str) -> str:
    assert ops.main(list(words)) == 0
    return str(capsys.readouterr().out)


def test_a_row_formula(capsys: Any) -> None:
    text = shown(capsys, "softmax")
    assert "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor" in text
    assert "of self, from result, dim" in text
    assert "aten::softmax.int" in text and "Tensor.softmax" in text
    assert "weight * (1 / total(weight))" in text, "the row"
    assert "_total(t3, axis=axis, keepdims=True)" in text, "NumPy's form"
    assert "math_exp" in text, "the kernel"


def test_a_pointwise_row(capsys: Any) -> None:
    text = shown(capsys, "aten::mul")
    assert "flambeau/_ops/elementwise/arithmetic.py" in text and "Tensor.mul_" in text
    assert "of self, from other; of other, from self" in text
    assert "t0 = v_self * v_other" in text


@pytest.mark.parametrize("name", ["torch.sin", "sin_", "Tensor.sin", "aten::sin"])
def test_names_are_found_as_users_spell_them(name: str) -> None:
    assert [op.name for op in rows_of(name)] == ["sin"]


def test_names_in_namespaces_are_found() -> None:
    assert rows_of("linalg.inv") == rows_of("aten::linalg_inv") != []
    assert rows_of("gelu") == rows_of("nn.functional.gelu")


def test_an_unknown_name_is_refused(capsys: Any) -> None:
    assert ops.main(["softmaxx"]) == 1
    assert "no operator is called 'softmaxx'; did you mean softmax" in capsys.readouterr().err


def test_everything_is_said_of_every_row() -> None:
    for public in list(BY_NAME):
        for op in BY_NAME[public]:
            known = dict(facts(op))
            assert known.keys() >= {"kind", "called", "gradient", "forward mode", "vmap", "meta"}
            assert dict(texts(op))["row"].strip(), op


def test_lists(capsys: Any) -> None:
    assert "pointwise  mul\n" in shown(capsys)
    page = shown(capsys, "--table")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) == sum(len(BY_NAME[public]) for public in list(BY_NAME))


def test_what_few_rows_say_is_shown() -> None:
    known = {name: dict(facts(rows_of(name)[0])) for name in ("put", "bincount", "erf", "sub")}
    assert known["put"]["nondeterministic"] == "put_"
    assert known["bincount"]["nondeterministic"] == "_bincount_cuda, for some arguments"
    assert known["erf"]["fused"] == "yes" and known["sub"]["complex half"] == "yes"
    assert dict(facts(rows_of("linalg.eigh")[0]))["python names"] == "input for A"
    assert "nondeterministic" not in known["erf"]
