"""Operators of programs: where they are kept, and what is left when they go."""

from __future__ import annotations

import copy
import pickle

import pytest

import flambeau as torch
from flambeau.jit.operators import table
from flambeau.library import overloads
from flambeau.utils._python_dispatch import TorchDispatchMode


@pytest.fixture
def library():
    with torch.library._scoped_library("flambeau_tests", "FRAGMENT") as made:
        yield made


def test_an_operator_goes_with_its_library(library):
    library.define("once(Tensor x) -> Tensor")
    library.impl("once", lambda x: x + 1, "CPU")
    assert table.overloads("flambeau_tests::once")
    assert torch.ops.flambeau_tests.once(torch.ones(1)).item() == 2
    library._destroy()
    assert not table.overloads("flambeau_tests::once")
    assert "flambeau_tests::once" not in overloads.DEFINED
    with pytest.raises(AttributeError):
        torch.ops.flambeau_tests.once  # noqa: B018


def test_what_a_library_has_filed_goes_with_it(library):
    library.define("filed(Tensor x) -> Tensor")
    with torch.library._scoped_library("flambeau_tests", "IMPL", "CPU") as other:
        other.impl("filed", lambda x: x + 1)
        assert torch.ops.flambeau_tests.filed(torch.ones(1)).item() == 2
        torch.library.register_fake("flambeau_tests::filed", torch.empty_like, lib=other)
        assert torch.ops.flambeau_tests.filed(torch.ones(3, device="meta")).shape == (3,)
    with pytest.raises(NotImplementedError, match="'CPU' backend"):
        torch.ops.flambeau_tests.filed(torch.ones(1))
    with pytest.raises(NotImplementedError, match="Meta tensors"):
        torch.ops.flambeau_tests.filed(torch.ones(3, device="meta"))


def test_two_overloads_of_a_name(library):
    library.define("either.ints(int a) -> int")
    library.define("either.texts(str a) -> str")
    library.impl("either.ints", lambda a: a + 1, "CompositeExplicitAutograd")
    library.impl("either.texts", lambda a: a + "!", "CompositeExplicitAutograd")
    either = torch.ops.flambeau_tests.either
    assert (either(1), either("a"), either.overloads()) == (2, "a!", ["ints", "texts"])


def test_overloads_are_themselves():
    add = torch.ops.aten.add.Tensor
    assert copy.deepcopy(add) is add
    assert pickle.loads(pickle.dumps(add)) is add


def test_kernels_of_aten_are_not_replaced():
    with (
        torch.library._scoped_library("aten", "IMPL") as made,
        pytest.raises(NotImplementedError, match=r"aten::add\.Tensor"),
    ):
        made.impl("add.Tensor", lambda *args: args[0], "CPU")


def test_operators_that_are_not_here_say_so():
    overload = torch.ops.aten._sparse_addmm.default
    assert str(overload._schema).startswith("aten::_sparse_addmm(Tensor self, Tensor mat1")
    with pytest.raises(NotImplementedError, match="aten::_sparse_addmm"):
        overload(torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1))


def test_names_of_torch_ops():
    import flambeau._ops as module

    assert module.OpOverload is overloads.OpOverload
    with pytest.raises(AttributeError):
        module.nothing  # noqa: B018


def test_nested_modes_leave_in_order():
    seen = []

    class Noting(TorchDispatchMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(self.name)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Noting("outer"), Noting("inner"):
        x.exp()
    with pytest.raises(ValueError, match="stop"), Noting("left"):
        raise ValueError("stop")
    x.exp()
    assert seen == ["inner", "outer"]


def test_a_triton_op_runs_without_triton_and_is_its_own_fake():
    @torch.library.triton_op("flambeau_tests::thrice", mutates_args={})
    def thrice(x: torch.Tensor, times: int) -> torch.Tensor:
        return x.repeat(times) * 3

    assert torch.ops.flambeau_tests.thrice(torch.ones(1), 2).tolist() == [3.0, 3.0]
    assert thrice(torch.empty(2, device="meta"), 3).shape == (6,)
    assert repr(thrice) == "<CustomOpDef(flambeau_tests::thrice)>"
    with pytest.raises(RuntimeError):
        thrice(torch.ones(1, requires_grad=True), 2).sum().backward()
