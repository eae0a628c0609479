"""Types and devices by name, for what is not on the CPU: words and kinds of errors as PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.side_by_side import Raised, attempt, compare

ELEMENTS = ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool",
            "ComplexFloat", "ComplexDouble", "")  # fmt: skip
PLACES = ("", "cuda.", "sparse.", "cuda.sparse.", "xpu.", "mtia.", "hpu.", "privateuseone.", "xla.")
OTHERS = ("Float", "torch.float", "float32", "", "blah", "torch.FloatTensors", "FloatTensor",
          "torch.tensor", "torch.UInt16Tensor", "torch.Float8_e4m3fnTensor")  # fmt: skip


def said(result: Any) -> Any:
    """What a call gives, in plain words; errors up to PyTorch's explanations."""
    if isinstance(result, Raised):
        return [result.kind, result.text.split("\n")[0].partition(". ")[0].rstrip(".")]
    return str(result)


@pytest.mark.parametrize("place", PLACES)
def test_types_by_name(place: str) -> None:
    def scenario(t: Any) -> Any:
        x = t.tensor([0.0, 3.5])
        names = [f"torch.{place}{element}Tensor" for element in ELEMENTS]
        return {name: said(attempt(x.type, name)) for name in (*names, *OTHERS)}

    compare(scenario)


def test_types_by_class() -> None:
    def scenario(t: Any) -> Any:
        kinds = [t.FloatTensor, t.DoubleTensor, t.BoolTensor, t.Tensor, t.nn.Parameter, t.nn.Linear]
        kinds += [t.cuda.FloatTensor, float, int, bool, complex, object, 3, t.float16, t.strided]
        x, sparse = t.ones(2), t.eye(2).to_sparse()
        found = [said(attempt(x.type, kind)) for kind in kinds]
        found += [x.type("torch.FloatTensor") is x, x.type(t.float32) is x, sparse.type()]
        names = ("torch.DoubleTensor", "torch.sparse.DoubleTensor", t.float64)
        return found + [sparse.type(name).layout is t.sparse_coo for name in names]

    compare(scenario)


def test_the_default_type_by_name() -> None:
    def scenario(t: Any) -> Any:
        t.set_default_dtype(t.float64)
        try:
            return [
                t.ones(2, dtype=t.int32).type(kind).dtype for kind in ("torch.Tensor", t.Tensor)
            ]
        finally:
            t.set_default_dtype(t.float32)

    compare(scenario)


@pytest.mark.parametrize("kind", ["cuda", "xpu", "mtia"])
def test_devices_that_are_not_there(kind: str) -> None:
    def scenario(t: Any) -> Any:
        x, model = t.ones(2), t.nn.Linear(2, 2)
        calls = [
            lambda: x.to(kind), lambda: x.to(f"{kind}:1"), lambda: x.to(t.device(kind), t.float64),
            lambda: getattr(x, kind)(), lambda: getattr(model, kind)(), lambda: model.to(kind),
            lambda: t.ones(2, device=kind), lambda: t.tensor([1], device=kind),
            lambda: t.arange(3, device=kind), lambda: x.new_ones(2, device=kind),
            lambda: t.zeros_like(x, device=kind), lambda: t.as_tensor(x, device=kind),
        ]  # fmt: skip
        return [said(attempt(call)) for call in calls]

    compare(scenario)


def test_what_is_no_gpu() -> None:
    def scenario(t: Any) -> Any:
        x = t.ones(2)
        calls = [lambda: x.cuda("cpu"), lambda: x.to(0), x.ipu, lambda: x.to("elsewhere")]
        return [said(attempt(call)) for call in calls]

    compare(scenario)
