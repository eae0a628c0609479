"""What people's programs do with PyTorch beside calling operators: one program, two libraries."""

from __future__ import annotations

import copy
import importlib
import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau
from conformance.side_by_side import attempt, plain


def programs() -> list[Any]:
    """The programs below."""
    return [
        pytest.param(found, id=name)
        for name, found in globals().items()
        if inspect.isfunction(found) and name.startswith("program_")
    ]


# ---- classes of tensors and parameters


def program_parameters_with_arguments_of_their_own(t: Any) -> Any:
    class Tagged(t.nn.Parameter):  # type: ignore[misc, name-defined]
        def __new__(cls, data, requires_grad=True, *, tag, **more):
            return super().__new__(cls, data, requires_grad)

        def __init__(self, data, requires_grad=True, *, tag, **more):
            self.tag = tag

    made = Tagged(t.ones(2), tag="x", other=1)
    module = t.nn.Linear(1, 1)
    module.own = made
    names = [name for name, _ in module.named_parameters()]
    return made.tag, repr(made), names, type(made * 2).__name__, attempt(copy.deepcopy, made)


def program_parameters_made_of_sizes(t: Any) -> Any:
    class Sized(t.nn.Parameter):  # type: ignore[misc, name-defined]
        def __new__(cls, count, scale=1.0):
            return super().__new__(cls, t.full((count,), scale))

    made = Sized(3, scale=2.0)
    return repr(made), vars(made), made.requires_grad, type(made.data).__name__


def program_parameters_of_tensor_classes(t: Any) -> Any:
    class Marked(t.Tensor):  # type: ignore[misc, name-defined]
        pass

    made = t.nn.Parameter(t.ones(2).as_subclass(Marked))
    return repr(made), isinstance(made, t.nn.Parameter), vars(made), type(made + 1).__name__


def program_attributes_of_images(t: Any) -> Any:
    class Described:
        def copy_from(self, other):
            self.__dict__ = other.__dict__.copy()

    class Image(Described, t.Tensor):  # type: ignore[misc, name-defined]
        def __new__(cls, data, meta=None):
            return t.as_tensor(data).as_subclass(cls)

        def __init__(self, data, meta=None):
            self.meta = meta

    one, other = Image(t.ones(2), {"a": 1}), Image(t.zeros(3))
    other.copy_from(one)
    return vars(one), other.meta, other, sorted(other.__dict__)


# ---- looking around


MODULES = (
    "activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold "
    "instancenorm linear loss module normalization padding pixelshuffle pooling rnn sparse "
    "transformer upsampling"
).split()
ABSENT = frozenset(("NonDynamicallyQuantizableLinear",))


@pytest.mark.parametrize("name", MODULES)
def test_vars_of_the_modules_of_layers(name: str) -> None:
    """Public classes that PyTorch's file itself defines are found by looking through ours."""
    home = importlib.import_module(f"torch.nn.modules.{name}")
    wanted = {
        key for key, value in vars(home).items()
        if inspect.isclass(value) and value.__module__ == home.__name__
        and issubclass(value, reference.nn.Module) and not key.startswith("_")
    }  # fmt: skip
    own = importlib.import_module(f"flambeau.nn.modules.{name}")
    found = {key for key, value in vars(own).items() if inspect.isclass(value)}
    assert wanted - ABSENT <= found
    assert all(getattr(own, key) is vars(own)[key] for key in wanted - ABSENT)


def program_named_tensors_are_gone(t: Any) -> Any:
    names = ("names", "has_names", "rename", "refine_names", "align_to")
    calls = [lambda: t.zeros(2, names=None), lambda: t.full((2,), 1.0, names=None)]
    return [hasattr(t.Tensor, name) for name in names], [attempt(call) for call in calls]


# ---- gradcheck


class _Counted:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return x.sin() * x


def program_gradcheck_in_fast_mode(t: Any) -> Any:
    from_module = importlib.import_module(f"{t.__name__}.autograd.gradcheck")
    check, again = t.autograd.gradcheck, t.autograd.gradgradcheck
    x = t.linspace(0.1, 2.0, 12, dtype=t.float64).reshape(3, 4).requires_grad_()
    z = t.complex(x.detach(), x.detach().flip(0)).requires_grad_()
    few, many = _Counted(), _Counted()
    right = [
        check(few, (x,), fast_mode=True), check(many, (x,)),
        again(_Counted(), (x,), fast_mode=True),
        check(lambda z: z * z.conj() + z.exp(), (z,), fast_mode=True),
        check(lambda x: (t.complex(x, x * x).exp(), x.sum()), (x,), fast_mode=True),
        check(lambda x, z: x * z, (x, z), fast_mode=True),
        check(lambda x: x.sum(), (x[0, 0].detach().requires_grad_(),), fast_mode=True),
    ]  # fmt: skip
    return from_module.gradcheck is check, right, few.calls < 12 < many.calls


def program_gradcheck_in_fast_mode_finds_what_is_wrong(t: Any) -> Any:
    x = t.linspace(0.1, 2.0, 6, dtype=t.float64).requires_grad_()
    wrong: list[Callable[..., Any]] = [
        lambda x: x.detach() * 2 + x,
        lambda x: t.complex(x.detach() * 2 + x, x),
        lambda x: t.complex(x, x.detach() * 2 + x),
        lambda x: (x, x * x.detach()),
        lambda x: x.detach() * 2,
    ]
    found = [attempt(t.autograd.gradcheck, call, (x,), fast_mode=True) for call in wrong]
    quiet = t.autograd.gradcheck(wrong[0], (x,), fast_mode=True, raise_exception=False)
    return [str(getattr(error, "text", error)).split("\n")[0] for error in found], quiet


# ---- NumPy and Python around tensors


def program_functions_of_numpy(t: Any) -> Any:
    x = t.tensor([[3.0, 1.0], [2.0, 0.0]])
    calls: list[Callable[[], Any]] = [
        lambda: np.transpose(x), lambda: np.reshape(x, (4,)), lambda: np.argsort(x),
        lambda: np.cumsum(x), lambda: np.sort(x), lambda: np.clip(x, 0, 1), lambda: np.round(x),
        lambda: np.linspace(x[0, 0], x[0, 1], 3), lambda: np.allclose(x, x),
    ]  # fmt: skip
    found = [attempt(call) for call in calls]
    return [type(value).__name__ for value in found], found


def program_numbers_of_numpy_beside_tensors(t: Any) -> Any:
    tensors = [t.tensor(3, dtype=t.int32), t.tensor([3, 4], dtype=t.int32), t.tensor(0.5)]
    numbers = [np.int64(2), np.int32(2), np.float64(2.5), np.float32(2.5)]
    names = ("add", "sub", "mul", "truediv", "lt", "ge", "eq", "pow")
    found = []
    for name in names:
        for x in tensors:
            found += [attempt(getattr(operator, name), number, x) for number in numbers]
    return found


def program_results_of_numpy_in_arrays(t: Any) -> Any:
    array = np.zeros(2, np.float32)
    found = np.exp(t.zeros(2), out=array)
    return found is array, array.tolist()


def program_names_of_sizes(t: Any) -> Any:
    x = t.ones(4)
    calls: list[Callable[[], Any]] = [
        lambda: x.reshape(newshape=(2, 2)), lambda: x.reshape(shape=(2, 2), order="C"),
        lambda: x.reshape(shape=(2, 2)),
    ]  # fmt: skip
    found = [attempt(call) for call in calls]
    return [getattr(value, "kind", None) or value.shape for value in found]


def program_divisions_into_what_is_there(t: Any) -> Any:
    x, y = t.tensor([5.0, -7.0]), t.tensor([2.0, 2.0])
    found = []
    for operands in ((x, 2), (x, y)):
        for mode in ("floor", "trunc", None):
            out = t.zeros(2)
            found += [t.div(*operands, rounding_mode=mode, out=out) is out, out]
    return found, attempt(t.div, x, 2, rounding_mode="floor", out=t.zeros(2, dtype=t.int32))


# ---- slots, copies


class _Slotted:
    """Makes a class of tensors with a slot, for a library."""

    @staticmethod
    def of(t: Any) -> Any:
        class Scaled(t.Tensor):  # type: ignore[misc, name-defined]
            __slots__ = ("scale",)

            def __new__(cls, data, scale):
                made = t.Tensor._make_subclass(cls, data)
                made.scale = scale
                return made

        return Scaled(t.ones(2), 3.0)


def program_tensors_with_slots(t: Any) -> Any:
    made = _Slotted.of(t)
    made.other = 1
    shallow = copy.copy(made)
    shallow.zero_()
    return made.scale, vars(made), shallow.scale, shallow.other, made, type(made + 1).__name__


def program_copies_that_share_memory(t: Any) -> Any:
    base = t.arange(6.0)
    group = [base, base[2:], base.view(2, 3)[:, 1], base.untyped_storage()]
    one, part, column, memory = copy.deepcopy(group)
    one[2:5] = 9
    offsets = [x.storage_offset() for x in (one, part, column)]
    places = {x.untyped_storage().data_ptr() for x in (one, part, column)}
    memory[3] = 64
    return offsets, len(places), memory.data_ptr() in places, one, part, column, base


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", programs())
def test_program(program: Callable[[Any], Any]) -> None:
    ours, theirs = (repr(plain(attempt(program, t))) for t in (flambeau, reference))
    assert ours == theirs
